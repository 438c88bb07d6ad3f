//! Budgets: how long a call may wait.

use flagpost_link::Link;

/// How long a call may wait for one peer before it gives [`Timeout`](crate::Error::Timeout). A call
/// that waits for several peers, one after the other, has the budget for each.
///
/// A call has a budget only if it is asked for: by the calls whose names end with `_within`, and by
/// [`World::within`](crate::World::within).
///
/// A call that gives a handle continues where its budget ran out. One that gives none begins anew
/// when it is repeated, so that what it reads is not older than the call: over a network its budget
/// must be longer than a round trip. [`Rma::rget`](crate::Rma::rget), requests and waits continue
/// instead; but for those on [attached memory](crate::DynamicWindow::at), which ask where it lies
/// before they begin.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Budget {
    /// `u64::MAX`: no end.
    microseconds: u64,
}

impl Budget {
    /// Waits until the call is done, or a rank is lost or has left.
    pub const UNLIMITED: Self = Self::microseconds(u64::MAX);

    /// At most so many microseconds.
    pub const fn microseconds(microseconds: u64) -> Self {
        Self { microseconds }
    }

    /// At most so many seconds.
    pub const fn seconds(seconds: u32) -> Self {
        Self::microseconds((seconds as u64).saturating_mul(1_000_000))
    }
}

/// Clock ticks of so many microseconds. Whole seconds apart, so that the product is only out of
/// range where the result is.
const fn ticks(microseconds: u64, per_second: u64) -> u64 {
    let (seconds, rest) = (microseconds / 1_000_000, microseconds % 1_000_000);
    seconds
        .saturating_mul(per_second)
        .saturating_add(rest.saturating_mul(per_second) / 1_000_000)
}

/// A budget that runs since [`Deadline::start`].
#[derive(Copy, Clone, Debug)]
pub(crate) struct Deadline {
    start: u64,
    ticks: Option<u64>,
}

impl Deadline {
    pub(crate) fn start<L: Link>(budget: Budget, link: &L) -> Self {
        let limited = budget != Budget::UNLIMITED;
        let now = link.now();
        Self {
            start: now.ticks,
            ticks: limited.then(|| ticks(budget.microseconds, now.per_second)),
        }
    }

    /// Whether it was none from the start.
    pub(crate) fn is_zero(&self) -> bool {
        self.ticks == Some(0)
    }

    pub(crate) fn passed<L: Link>(&self, link: &L) -> bool {
        self.ticks
            .is_some_and(|ticks| link.now().ticks.wrapping_sub(self.start) >= ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn long_and_short_budgets_are_exact() {
        assert_eq!(ticks(20, 1_000_000_000), 20_000);
        assert_eq!(ticks(1_500_000, 533_000_000), 799_500_000);
        let years = u64::from(u32::MAX) * 1_000_000;
        assert_eq!(
            ticks(years, 1_000_000_000),
            u64::from(u32::MAX) * 1_000_000_000
        );
        assert_eq!(ticks(u64::MAX, u64::MAX), u64::MAX);
    }
}
