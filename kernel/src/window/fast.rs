//! Fast paths: what a call does in the usual case, in few instructions.
//!
//! Most calls find things as they usually are: the pieces lie alike on all ranks, nothing is
//! queued, no other rank is in the way. For these cases a call tries its fast path first. A
//! fast path does all of the call, or it declines and has changed nothing. Then the full path does
//! the call from its beginning, as if it were the only one, and says what is wrong.
//!
//! # Fast paths
//! | call | the usual case | of the link |
//! |---|---|---|
//! | `put` | the pieces lie alike; the epoch admits the target | `put` |
//! | `fetch_and_op`, `compare_and_swap` | the same; the machine has the operation | `fast_amo` |
//! | `Local::get` | coherent; the window is of the separate model | `read_local` |
//! | `put_notify` with a tag | coherent; the pieces lie alike; short data | `fast_put` |
//! | `Request::start` | no other request is started; it has lines | |
//! | `Request::{test, wait}` | coherent; the next notification is the last one | `fast_take` |
//! | `Lock::flush` | coherent; the lock is of this target | `fast_flush` |
//! | `lock_exclusive`, `unlock` | coherent; this rank's only lock, of another | `fast_amo`, |
//! | | rank's piece; no rank is in the way | `fast_flush` |
//! | a step of any lock | coherent | `fast_amo`, `fast_flush` |
//!
//! # Invariants
//! I1. A path that declines has changed nothing: or, of a lock, what the full path continues with.
//! I2. A fast path orders all that the full path orders: [`Fast`](flagpost_link::Fast).

use bytemuck::Pod;
use flagpost_link::{Amo, Key, Link, Rank, Width};

use super::{Core, Model, Pieces};

/// The full path of a call whose fast path has declined. This is what keeps it away from the fast
/// one in the machine code: no full path is marked as unusual by itself.
#[cold]
#[inline(never)]
pub(crate) fn declined<R>(full: impl FnOnce() -> R) -> R {
    full()
}

/// Where `count` elements of `rank`'s piece lie, from `index` on, if the pieces lie alike.
#[inline]
pub(crate) fn place<T, L: Link>(
    core: &Core<'_, L>,
    rank: Rank,
    index: usize,
    count: usize,
) -> Option<(Key, usize)> {
    if !matches!(core.pieces, Pieces::Same) {
        return None;
    }
    place_alike::<T, L>(core, rank, index, count)
}

/// The same in a window whose pieces lie alike.
#[inline]
pub(crate) fn place_alike<T, L: Link>(
    core: &Core<'_, L>,
    rank: Rank,
    index: usize,
    count: usize,
) -> Option<(Key, usize)> {
    if rank.get() >= core.world.size() {
        return None;
    }
    Some((core.own.key, core.own.inside::<T>(index, count).ok()?))
}

/// Loads element `index` of this rank's piece.
#[inline(always)]
pub(crate) fn read<T: Pod, L: Link>(core: &Core<'_, L>, index: usize) -> Option<T> {
    if !L::FAST || core.model != Model::Separate {
        return None;
    }
    let offset = core.own.inside::<T>(index, 1).ok()?;
    let mut value = T::zeroed();
    let bytes = bytemuck::bytes_of_mut(&mut value);
    let read = core.world.link().read_local(core.own.key, offset, bytes);
    read.is_ok().then_some(value)
}

/// A step of a lock: `amo` on a cell, and what it was.
#[inline(always)]
pub(crate) fn step<L: Link>(core: &Core<'_, L>, rank: Rank, cell: u32, amo: Amo) -> Option<u32> {
    // Where the machine keeps caches coherent, nothing has to come before the step, and it is done
    // when the call returns.
    let link = L::FAST.then(|| core.world.link())?;
    let old = link.fast_amo(rank, core.cells, cell as usize, amo, Width::Half)?;
    Some(old as u32)
}
