//! Budgets: how long a call may wait.

use flagpost_link::Link;

/// How long a call may wait before it returns [`Timeout`](crate::Error::Timeout).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Budget {
    microseconds: Option<u64>,
}

impl Budget {
    /// Waits for ever. A lost peer then hangs the caller.
    pub const UNLIMITED: Self = Self { microseconds: None };

    /// At most so many microseconds.
    pub const fn microseconds(microseconds: u64) -> Self {
        Self {
            microseconds: Some(microseconds),
        }
    }

    /// At most so many seconds.
    pub const fn seconds(seconds: u32) -> Self {
        Self::microseconds((seconds as u64).saturating_mul(1_000_000))
    }
}

impl Default for Budget {
    /// A minute: longer than any healthy peer takes.
    fn default() -> Self {
        Self::seconds(60)
    }
}

/// A budget that runs since [`Deadline::start`].
#[derive(Copy, Clone, Debug)]
pub(crate) struct Deadline {
    start: u64,
    ticks: Option<u64>,
}

impl Deadline {
    pub(crate) fn start<L: Link>(budget: Budget, link: &L) -> Self {
        let ticks = budget
            .microseconds
            .map(|us| us.saturating_mul(link.ticks_per_second()) / 1_000_000);
        Self {
            start: link.now(),
            ticks,
        }
    }

    pub(crate) fn passed<L: Link>(&self, link: &L) -> bool {
        self.ticks
            .is_some_and(|ticks| link.now().wrapping_sub(self.start) >= ticks)
    }
}
