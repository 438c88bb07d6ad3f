//! Budgets that run out, and the handles that are left then.
//!
//! A call that may have to wait gives a handle: [`Handle`] is what all of them can do. A step of a
//! case gives a handle too little time, checks what it was late for, and goes on with it.

use bytemuck::Pod;
use flagpost::{
    Budget, Entering, Error, Freeing, Link, Rank, Unfinished, Waiting, World,
    epoch::{Ending, Fence, Fencing, Lock, Locking, Strategy, pscw},
    notify::{EventPost, Syncing},
    rma::{self, Fetch},
};
use flagpost_hal::{Held, Relax, TestAndSet};

use super::steps::NO_ERROR;
use crate::{Failure, Result, context::check};

pub(super) const SHORT: Budget = Budget::microseconds(20);

/// One poll.
pub(super) const NONE: Budget = Budget::microseconds(0);

/// The handle of a call that may have to wait.
pub(super) trait Handle: Sized {
    type Done;

    /// Goes on as long as `budget` says.
    fn go_on(self, budget: Budget) -> Result<Self::Done, Unfinished<Self>>;
}

macro_rules! handles {
    ($([$($of:tt)*] $handle:ty, $done:ty;)*) => {$(
        impl<$($of)*> Handle for $handle {
            type Done = $done;

            #[track_caller]
            fn go_on(self, budget: Budget) -> Result<$done, Unfinished<Self>> {
                self.wait_within(budget)
            }
        }
    )*};
}

handles! {
    ['w, L: Link] Entering<'w, L>, ();
    ['w, L: Link, M] Freeing<'w, L, M>, ();
    ['e, 'g, L: Link] Syncing<'e, 'g, L>, ();
    ['e, L: Link] EventPost<'e, L>, ();
    ['r, 'w, L: Link] rma::Request<'r, 'w, L>, ();
    ['r, 'w, T: Pod, L: Link] Fetch<'r, 'w, T, L>, T;
    ['e, 'w, T: Pod, L: Link] Locking<'e, 'w, T, L>, Lock<'e, 'w, T, L>;
    ['e, 'w, T: Pod, L: Link] Fencing<'e, 'w, T, L>, Fence<'e, 'w, T, L>;
    ['e, 'w, T: Pod, L: Link] Ending<'e, 'w, T, L>, ();
    ['e, 'w, L: Link, S: Strategy<'w, L>] pscw::Posting<'e, 'w, L, S>, pscw::Exposure<'e, 'w, L, S>;
    ['e, 'w, L: Link, S: Strategy<'w, L>] pscw::Exposure<'e, 'w, L, S>, ();
    ['e, 'w, L: Link, S: Strategy<'w, L>] pscw::Completing<'e, 'w, L, S>, ();
}

/// A call that continues when it is called again.
struct Call<F>(F);

impl<T, F: FnMut(Budget) -> Result<T, Error>> Handle for Call<F> {
    type Done = T;

    fn go_on(mut self, budget: Budget) -> Result<T, Unfinished<Self>> {
        (self.0)(budget).map_err(|error| Unfinished {
            handle: self,
            error,
        })
    }
}

/// Goes on with `handle` as long as `budget` says; and further, while it is too early to tell more
/// than for which peer it waits, as `is_early` says.
#[track_caller]
pub(super) fn unless_early<H: Handle>(
    handle: H,
    budget: Budget,
    is_early: impl Fn(Waiting) -> bool,
) -> Result<H::Done, Unfinished<H>> {
    /// Some 10 seconds of short budgets.
    const UNANSWERED: usize = 500_000;
    let mut attempt = handle.go_on(budget);
    for _ in 0..UNANSWERED {
        attempt = match attempt {
            Err(Unfinished {
                handle,
                error: Error::Timeout(late),
            }) if is_early(late.waiting) => handle.go_on(SHORT),
            other => return other,
        };
    }
    attempt
}

/// `handle` with a short budget. While it ends for lack of an answer, it continues: beside other
/// work a network may take longer than one budget to answer for an earlier step.
#[track_caller]
pub(super) fn answered<H: Handle>(handle: H) -> Result<H::Done, Unfinished<H>> {
    unless_early(handle, SHORT, |late| late == Waiting::Answer)
}

/// `call` with a short budget, as [`answered`] does.
pub(super) fn short<L: Link, T>(
    world: &World<'_, L>,
    mut call: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    shortly(|budget| world.within(budget, &mut call))
}

/// `call` with a short budget, as [`answered`] does. It continues when it is called again.
pub(super) fn shortly<T>(call: impl FnMut(Budget) -> Result<T, Error>) -> Result<T, Error> {
    answered(Call(call)).map_err(|late| late.error)
}

/// Checks that `attempt` ran out of its budget: what was waited for, how many are missing, and who
/// is named.
pub(super) fn timed_out<T, E: Into<Failure>>(
    attempt: Result<T, E>,
    waiting: Waiting,
    count: u32,
    named: &[Rank],
) -> Result {
    match attempt.map_err(Into::into) {
        Err(Failure::Library(Error::Timeout(timeout))) if timeout.waiting == waiting => {
            check("missing", timeout.missing.count(), count)?;
            let named = named.iter().copied();
            check("ranks are named", timeout.missing.ranks().eq(named), true)
        }
        Err(other) => Err(other),
        Ok(_) => Err(NO_ERROR),
    }
}

/// Checks that a short budget is not enough for `call`, since it waits for `named`.
pub(super) fn is_late<L: Link, T>(
    world: &World<'_, L>,
    waiting: Waiting,
    named: Rank,
    call: impl FnMut() -> Result<T, Error>,
) -> Result {
    timed_out(short(world, call), waiting, 1, &[named])
}

/// Checks that a short budget is not enough for `handle`, as [`timed_out`] does, and gives it back.
#[track_caller]
pub(super) fn times_out<H: Handle>(
    handle: H,
    waiting: Waiting,
    count: u32,
    named: &[Rank],
) -> Result<H> {
    let late = answered(handle).err().ok_or(NO_ERROR)?;
    timed_out::<(), _>(Err(late.error), waiting, count, named)?;
    Ok(late.handle)
}

/// Checks that `handle` waits for the lock of rank 1 that is `held`, frees that, and goes on.
#[track_caller]
pub(super) fn at_lock<H: Handle, M: TestAndSet + Relax>(
    held: Held<'_, M>,
    handle: H,
) -> Result<H::Done> {
    let late = handle.go_on(SHORT).err();
    drop(held);
    let late = late.ok_or(NO_ERROR)?;
    timed_out::<(), _>(Err(late.error), Waiting::Lock, 1, &[Rank::new(1)])?;
    Ok(late.handle.go_on(Budget::UNLIMITED)?)
}

/// Goes on with a budget of nothing until it is done.
#[track_caller]
pub(super) fn finish<L: Link, H: Handle>(world: &World<'_, L>, handle: H) -> Result<H::Done> {
    let mut attempt = handle.go_on(NONE);
    loop {
        attempt = match attempt {
            Err(Unfinished {
                handle,
                error: Error::Timeout(_),
            }) => {
                world.link().relax();
                handle.go_on(NONE)
            }
            other => return Ok(other?),
        };
    }
}

/// [`finish`] of a call that continues when it is called again.
pub(super) fn again<L: Link, T>(
    world: &World<'_, L>,
    mut call: impl FnMut() -> Result<T, Error>,
) -> Result<T> {
    finish(world, Call(|budget| world.within(budget, &mut call)))
}
