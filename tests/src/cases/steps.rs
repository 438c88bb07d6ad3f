//! Steps that many cases take: something is heard of, or found.

use bytemuck::Pod;
use flagpost::{
    Differs, EpochSlots, Error, Link, Local, MatchVector, MatchingList, Rank, Request, Rma, Status,
    VectorLink, Window, World, epoch::Strategy,
};

use crate::{Failure, Result, context::check};

/// The ranks of cases with few parts.
pub(super) const FIRST: Rank = Rank::new(0);
pub(super) const SECOND: Rank = Rank::new(1);
pub(super) const THIRD: Rank = Rank::new(2);

/// Stands for a call that should have failed and did not.
pub(super) const NO_ERROR: Failure = Failure::Wrong {
    what: "should have been refused",
    expected: 1,
    found: 0,
};

/// The error that names a rank whose call differs so.
pub(super) const fn differs(rank: Rank, differs: Differs) -> Error {
    Error::Asymmetric { rank, differs }
}

/// Checks that `result` is exactly this error.
pub(super) fn refused<T, E: Into<Failure>>(
    what: &'static str,
    result: Result<T, E>,
    expected: Error,
) -> Result {
    match result.map_err(Into::into) {
        Err(Failure::Library(error)) if error == expected => Ok(()),
        Err(other) => Err(other),
        Ok(_) => check(what, 0_u64, 1_u64),
    }
}

/// Checks that `result` is an error, and one that is `expected`.
pub(super) fn fails<T, E: Into<Failure>>(
    result: Result<T, E>,
    expected: impl FnOnce(&Error) -> bool,
) -> Result {
    match result.map_err(Into::into) {
        Err(Failure::Library(error)) if expected(&error) => Ok(()),
        Err(other) => Err(other),
        Ok(_) => Err(NO_ERROR),
    }
}

/// Checks that rank `bad` was refused more than there is, and that all others are told of that.
pub(super) fn too_much<T>(result: Result<T, Error>, me: Rank, bad: Rank) -> Result {
    fails(result, |error| match error {
        Error::MemoryFull { .. } | Error::ArenaFull { .. } => me == bad,
        Error::Asymmetric { rank, .. } => me != bad && *rank == bad,
        _ => false,
    })
}

/// Starts `request` and waits for what it asks for.
#[track_caller]
pub(super) fn hear<L: Link>(mut request: Request<'_, L>) -> Result<Status> {
    request.start()?;
    Ok(request.wait()?)
}

/// Checks what lies in the memory of `target` from `index` on.
#[track_caller]
pub(super) fn finds<'w, T: Pod + Into<u64>, L: Link + 'w, const N: usize>(
    what: &'static str,
    access: &impl Rma<'w, T, L>,
    target: Rank,
    index: usize,
    expected: [T; N],
) -> Result {
    let mut found = [T::zeroed(); N];
    access.get(target, index, &mut found)?;
    same(what, found, expected)
}

/// [`finds`], past all caches, whatever epochs there are.
#[track_caller]
pub(super) fn finds_locked<'w, T: Pod + Into<u64>, L: Link, const N: usize>(
    what: &'static str,
    window: &Window<'w, T, L>,
    target: Rank,
    index: usize,
    expected: [T; N],
) -> Result {
    let lock = window.lock_all()?;
    finds(what, &lock, target, index, expected)?;
    Ok(lock.unlock()?)
}

/// Checks what this rank's loads find from `index` on.
#[track_caller]
pub(super) fn holds<T: Pod + Into<u64>, L: Link, S, const N: usize>(
    what: &'static str,
    local: &Local<'_, T, L, S>,
    index: usize,
    expected: [T; N],
) -> Result {
    let mut found = [T::zeroed(); N];
    local.copy_out(index, &mut found)?;
    same(what, found, expected)
}

/// Checks that `found == expected`, element by element.
pub(super) fn same<T: Into<u64>, const N: usize>(
    what: &'static str,
    found: [T; N],
    expected: [T; N],
) -> Result {
    let mut pairs = found.into_iter().zip(expected);
    pairs.try_for_each(|(found, expected)| check(what, found, expected))
}

/// A strategy of epochs, whose windows differ in what they have room for.
pub(super) trait Signals<'w, L: Link>: Strategy<'w, L> {
    /// The options of a window to whose ranks so many posts are under way at the same time.
    fn posts(most: u16) -> Self::Options;
}

impl<'w, L: Link> Signals<'w, L> for EpochSlots<'w> {
    fn posts(_: u16) -> Self::Options {}
}

impl<'w, L: VectorLink> Signals<'w, L> for MatchVector<'w> {
    fn posts(_: u16) -> Self::Options {}
}

impl<'w, L: Link> Signals<'w, L> for MatchingList<'w> {
    fn posts(most: u16) -> Self::Options {
        most
    }
}

/// This rank, the next one and the one before it.
pub(super) fn neighbours<L: Link>(world: &World<'_, L>) -> (Rank, Rank, Rank) {
    let (me, size) = (world.rank(), world.size());
    (me, me.next(size), me.prev(size))
}
