//! Budgets: how long a call may wait. A program that must not wait for ever gives a budget to a
//! handle, or to a scope of calls. The budget's clock starts with the first turn that has to wait,
//! so calls that find their answer never read it. The kernel's one loop that waits asks here
//! whether the time is over.

use flagpost_link::Time;

/// How long something may wait: a call on a handle (`wait_within`), or all calls in
/// [`World::within`](crate::World::within). It is one end for the whole of it, and begins with the
/// first turn that has to wait. After that each further call polls once.
///
/// A call that runs out of it gives [`Timeout`](crate::Error::Timeout), and its handle, which
/// continues where the budget ran out. A short form (`post`, `fence`, `lock_shared`, ...) drops the
/// handle. An access that fetches begins anew when it is repeated, so that what it reads is not
/// older than the call: over a network its budget must be longer than a round trip. Its request
/// continues instead; but for one on [attached memory](crate::DynamicWindow::at), which asks where
/// it lies before it begins. [`World::within`](crate::World::within) has the list.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Budget {
    /// `u64::MAX`: no end.
    microseconds: u64,
}

impl Budget {
    /// Waits until the call is done, or a rank is lost or has left.
    pub const UNLIMITED: Self = Self::microseconds(u64::MAX);

    /// One look: what is not there yet is not waited for.
    pub const ZERO: Self = Self::microseconds(0);

    /// At most this many microseconds.
    pub const fn microseconds(microseconds: u64) -> Self {
        Self { microseconds }
    }

    /// At most this many seconds.
    pub const fn seconds(seconds: u32) -> Self {
        Self::microseconds((seconds as u64).saturating_mul(1_000_000))
    }
}

/// The product. It fits: small processors multiply faster than they divide, and in less code.
const fn product(a: u64, b: u64) -> u128 {
    (a as u128).wrapping_mul(b as u128)
}

/// When a budget ends that has begun.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Deadline {
    start: u64,
    /// Millionths of clock ticks from there.
    after: u128,
}

impl Deadline {
    /// How much is left at `now`, which is not before the start. The clock may wrap around.
    const fn left(self, now: u64) -> u128 {
        let gone = product(now.wrapping_sub(self.start), 1_000_000);
        self.after.saturating_sub(gone)
    }
}

/// When the waits of a scope end: the earliest of the budgets that it is in.
///
/// Budgets that have not begun begin together, with the first turn that has to wait. So of these
/// the shortest is enough; and the scope around this one hears of that turn when this one is left.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The shortest budget that has not begun.
    budget: Budget,
    /// The earliest end of those that have.
    end: Option<Deadline>,
    /// When budgets began since the scope was entered.
    began: Option<Time>,
}

impl Limit {
    /// No end.
    pub(crate) const NONE: Self = Self {
        budget: Budget::UNLIMITED,
        end: None,
        began: None,
    };

    /// That of a scope in this one, with a budget of its own.
    pub(crate) const fn and(self, budget: Budget) -> Self {
        let shorter = budget.microseconds < self.budget.microseconds;
        Self {
            budget: if shorter { budget } else { self.budget },
            began: None,
            ..self
        }
    }

    /// This one again, after the scope in it has been left with `inner`.
    pub(crate) fn after(self, inner: Self) -> Self {
        inner.began.map_or(self, |began| self.begin(began))
    }

    /// True if there is an end.
    #[inline(always)]
    pub(crate) const fn is_set(&self) -> bool {
        self.end.is_some() || self.is_pending()
    }

    /// True if there is a budget that has not begun.
    const fn is_pending(&self) -> bool {
        self.budget.microseconds != Budget::UNLIMITED.microseconds
    }

    /// At `now` something has to wait: what has not begun begins.
    pub(crate) fn begin(self, now: Time) -> Self {
        if !self.is_pending() {
            return self;
        }
        let new = Deadline {
            start: now.ticks,
            after: product(self.budget.microseconds, now.per_second),
        };
        let earlier = |old: &Deadline| old.left(now.ticks) <= new.after;
        Self {
            budget: Budget::UNLIMITED,
            end: Some(self.end.filter(earlier).unwrap_or(new)),
            began: self.began.or(Some(now)),
        }
    }

    /// True if the end has come.
    pub(crate) fn has_passed(&self, now: Time) -> bool {
        self.end.is_some_and(|end| end.left(now.ticks) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_short_budgets_are_exact() {
        let years = u64::from(u32::MAX) * 1_000_000;
        for (microseconds, per_second, ticks) in [
            (0, 1_000_000_000, 0),
            (20, 1_000_000_000, 20_000),
            (1_500_000, 533_000_000, 799_500_000),
            // Of a tick that has begun, all.
            (1, 1_500_000, 2),
            (years, 1_000_000_000, u64::from(u32::MAX) * 1_000_000_000),
        ] {
            let now = |ticks| Time { ticks, per_second };
            let limit = Limit::NONE.and(Budget::microseconds(microseconds));
            let limit = limit.begin(now(7));
            assert!(limit.has_passed(now(7 + ticks)));
            assert!(ticks == 0 || !limit.has_passed(now(7 + ticks - 1)));
        }
    }

    const MS: u64 = 1000;

    fn at(milliseconds: u64) -> Time {
        Time {
            // It wraps around in between.
            ticks: milliseconds.wrapping_sub(5).wrapping_mul(MS),
            per_second: 1_000_000,
        }
    }

    fn ms(milliseconds: u64) -> Budget {
        Budget::microseconds(milliseconds.wrapping_mul(MS))
    }

    /// The first millisecond at which `limit` has ended. All begin by the 5th, and end after it.
    fn end(limit: Limit) -> Option<u64> {
        (5..100).find(|now| limit.has_passed(at(*now)))
    }

    #[test]
    fn a_budget_begins_with_the_first_turn_that_waits() {
        assert!(!Limit::NONE.begin(at(1)).is_set());
        let limit = Limit::NONE.and(ms(10));
        assert!(limit.is_set());
        assert_eq!(end(limit), None);
        let begun = limit.begin(at(2));
        assert_eq!(end(begun), Some(12));
        // One end for all waits: later ones do not move it.
        assert_eq!(begun.begin(at(7)), begun);
        assert!(Limit::NONE.and(Budget::ZERO).begin(at(3)).has_passed(at(3)));
    }

    #[test]
    fn of_nested_budgets_the_earlier_one_ends_the_wait() {
        for (outer, inner, first, last) in [(10, 4, 6, 12), (4, 10, 6, 6)] {
            let outer = Limit::NONE.and(ms(outer));
            // Neither has begun.
            let within = outer.and(ms(inner)).begin(at(2));
            assert_eq!(end(within), Some(first));
            assert_eq!(end(outer.after(within)), Some(last));
        }
        // The outer one has begun: unlimited is no way out of it.
        let outer = Limit::NONE.and(ms(10)).begin(at(2));
        for (inner, first) in [(ms(3), 8), (ms(50), 12), (Budget::UNLIMITED, 12)] {
            let within = outer.and(inner).begin(at(5));
            assert_eq!(end(within), Some(first));
            assert_eq!(outer.after(within), outer);
        }
        // Nothing has waited inside: the outer one has not begun either.
        let outer = Limit::NONE.and(ms(10));
        assert_eq!(outer.after(outer.and(ms(1))), outer);
        // Three deep, and the outermost hears of it.
        let middle = outer.and(ms(20));
        let middle = middle.after(middle.and(ms(5)).begin(at(1)));
        assert_eq!(end(middle), Some(11));
        assert_eq!(end(outer.after(middle)), Some(11));
    }
}
