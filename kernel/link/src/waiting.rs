//! [`Waiting`]: what a loop that waits asks of its link.

use core::panic::Location;

use crate::Rank;
#[cfg(doc)]
use crate::{Access, Link};

/// What a loop that waits asks of its link: to sleep, which ranks are gone, what time it is.
///
/// # Contract
/// 1. `relax` returns some time after something changes that was polled since the last `relax`. It
///    may return for no reason, too: a link that always returns is right, and wastes time.
/// 2. What cannot be watched makes the next `relax` return without sleep.
/// 3. The kernel polls between two calls of `relax` everything that it waits for.
/// 4. The clock does not go back. Clocks of different ranks need not agree.
///
/// # Refusals
/// None.
pub trait Waiting {
    /// The program has called the kernel at `place`. For links that give an account of a run; the
    /// default ignores it.
    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        let _ = place;
    }

    /// Looks at what was polled last, up to [`LOOKS`](Link::LOOKS) times, until it has changed.
    /// Returns for no reason as well.
    fn look(&self) {}

    /// Gives time to others between two polls. Returns when something that was polled since the
    /// last call may have changed, or for no reason.
    ///
    /// Where something was looked at that cannot be watched (bytes that were got or read, an
    /// [`amo`](Access::amo) or [`update`](Access::update) that had its effect), it only gives time to
    /// others.
    fn relax(&self);

    /// A wait begins that polls all it waits for: what was polled before does not matter to it.
    /// Nothing is to be done where [`relax`](Self::relax) always returns.
    fn begin_wait(&self) {}

    /// That wait is over. What it polled may be what somebody else waits for in a loop of his own,
    /// who looks at other things besides: the next [`relax`](Self::relax) only gives time to
    /// others.
    fn end_wait(&self) {}

    /// A rank that will not answer any more, if that is known: whoever still waits then is told so.
    /// Asked between two polls.
    fn lost(&self) -> Option<Rank> {
        None
    }

    /// Whether `rank` has ended its program in order (any rank, if none is named), if that is
    /// known: what it has sent can be found then, and it does nothing more. Asked between two
    /// polls.
    fn has_left(&self, rank: Option<Rank>) -> bool {
        let _ = rank;
        false
    }

    /// A clock, in ticks that never go back.
    fn now(&self) -> u64;

    /// Ticks of [`now`](Self::now) per second.
    fn ticks_per_second(&self) -> u64;
}
