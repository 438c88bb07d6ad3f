//! [`Waiting`]: what a loop that waits asks of its link.

use core::{fmt, panic::Location};

use flagpost_hal::Expected;

#[cfg(doc)]
use crate::{Access, Link};
use crate::{Key, Rank};

/// The questions of a loop that waits to its link: may it sleep, which ranks are gone, what time it
/// is.
///
/// # Contract
/// 1. `relax` returns some time after a change of something that was polled since the last `relax`.
///    It may return for no reason, too: a link whose `relax` always returns is right, and wastes
///    time.
/// 2. Some things cannot be watched, and let the next `relax` return: bytes that were got or read,
///    an [`Access::amo`] or [`Access::update`] that had its effect.
/// 3. Between two calls of `relax`, the kernel polls everything that it waits for.
/// 4. A link may ignore each [`Step`].
/// 5. The clock never goes back. Clocks of different ranks need not agree.
///
/// # Refusals
/// None.
pub trait Waiting {
    /// Gives time to others between two polls. Returns when something that was polled since the
    /// last call may have changed, or for no reason.
    fn relax(&self);

    /// The kernel takes this step. The default ignores it.
    #[inline(always)]
    fn step(&self, step: Step<'_>) {
        let _ = step;
    }

    /// A rank that the link knows to be gone: `rank`, or any. The kernel asks between two polls.
    ///
    /// With no rank named: [`Gone::Revoked`], if this link's world is; else a rank that is
    /// [lost](Gone::Lost), if there is one; else whether any rank has [left](Gone::Left). With a
    /// rank named: whether this rank has left; the kernel has asked for losses before. The default
    /// is for links that do not know.
    fn gone(&self, rank: Option<Rank>) -> Option<Gone> {
        let _ = rank;
        None
    }

    /// True if `rank` is lost, of all ranks that are. The default is for links that know of one.
    fn is_lost(&self, rank: Rank) -> bool {
        self.gone(None) == Some(Gone::Lost(rank))
    }

    /// The time on this rank's clock.
    fn now(&self) -> Time;
}

/// A step of the kernel that a link may want to know.
#[derive(Copy, Clone)]
pub enum Step<'a> {
    /// The program has called the kernel at this place. For links that give an account of a run.
    Called(&'static Location<'static>),
    /// The same of a call that tells other ranks nothing.
    Looks(&'static Location<'static>),
    /// The program starts a request for this many bytes of this rank's from an offset on, reads
    /// them, or ends the request. For links that tell of a read before the wait.
    Expected(Key, usize, usize, Expected<'a>),
    /// A loop has polled once, and polls again before it begins to wait: the link may look at what
    /// was polled last, up to [`Link::LOOKS`] times, until it has changed.
    Look,
    /// A wait begins, which polls all that it waits for. Earlier polls do not matter to it.
    Begin,
    /// A wait has found nothing, and relaxes or returns next: what it waits for and where, in words
    /// (`waits for …`). They cost nothing unless they are written, which a link does if it is asked
    /// what its rank waits for.
    Waits(fmt::Arguments<'a>),
    /// A wait has ended. The next [`relax`](Waiting::relax) may be the program's, in a loop that
    /// looks at other things, too: it only gives time to others.
    End,
}

/// How a rank is gone.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// This rank does not answer any more.
    Lost(Rank),
    /// A rank has ended its program in order. All that it has sent can be found, and it does
    /// nothing more.
    Left,
    /// No rank, but the world of this link: ranks have given it up for another one.
    Revoked,
}

/// A time on a clock.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Time {
    /// Ticks since some moment.
    pub ticks: u64,
    /// Ticks per second.
    pub per_second: u64,
}
