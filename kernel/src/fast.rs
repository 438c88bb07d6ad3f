//! Fast paths: what a call does in the usual case, in few instructions.
//!
//! Most calls find things as they usually are: the pieces lie alike on all ranks, nothing is
//! queued, no other rank is in the way. For these cases a call tries its fast path first, here. A
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
//! I2. What a fast path orders is what the full path orders: [`Fast`](flagpost_link::Fast).

use core::cell::Cell;

use bytemuck::Pod;
use flagpost_link::{Amo, Key, Link, Rank, Width};

use crate::{
    Error, Model, Request, Status, Tag, Window,
    epoch::{
        Lock,
        lock::{EXCLUSIVE, Hold, Kind, MASTER, Phase, Step, Words},
    },
    rma::{Element, Integer, Operation, Reach, word},
    window::{Core, Lines, Pieces, cell},
};

/// The full path of a call whose fast path has declined. This is what keeps it away from the fast
/// one in the machine code: no full path is marked as unusual by itself.
#[cold]
#[inline(never)]
pub(crate) fn declined<R>(full: impl FnOnce() -> R) -> R {
    full()
}

/// The same for a notified put, whose arguments stay in registers.
#[cold]
#[inline(never)]
pub(crate) fn put_notify_declined<T: Pod, L: Link, S>(
    window: &Window<'_, T, L, S>,
    to: Rank,
    index: usize,
    data: &[T],
    tag: Tag,
) -> Result<(), Error> {
    window.put_tagged(to, index, data, tag)
}

// ---- Places ----

/// Where `count` elements of `rank`'s piece lie, from `index` on, if the pieces lie alike.
#[inline]
fn place<T, L: Link>(
    core: &Core<'_, L>,
    rank: Rank,
    index: usize,
    count: usize,
) -> Option<(Key, u32)> {
    if !matches!(core.pieces, Pieces::Same) || rank.get() >= core.world.size() {
        return None;
    }
    Some((core.key, core.own().fit::<T>(index, count)?))
}

// ---- Accesses ----

/// Stores `data`; false if it declines.
#[inline]
pub(crate) fn put<'w, T: Pod, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    data: &[T],
) -> bool {
    let core = epoch.core();
    let link = core.world.link();
    let Some((key, offset)) = place::<T, L>(core, to, index, data.len()) else {
        return false;
    };
    let bytes = bytemuck::cast_slice(data);
    epoch.admits(to) && link.put(to, key, offset, bytes).is_ok()
}

/// Loads element `index` of this rank's piece.
#[inline(always)]
pub(crate) fn read<T: Pod, L: Link>(core: &Core<'_, L>, index: usize) -> Option<T> {
    if !L::COHERENT || core.model != Model::Separate {
        return None;
    }
    let offset = core.own().fit::<T>(index, 1)?;
    let mut value = T::zeroed();
    let bytes = bytemuck::bytes_of_mut(&mut value);
    let read = core.world.link().read_local(core.key, offset, bytes);
    read.is_ok().then_some(value)
}

/// Combines one element with `operand`, and gives what it was.
#[inline]
pub(crate) fn fetch_and_op<'w, T: Element, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    operand: T,
    operation: Operation<T>,
) -> Option<T> {
    let amo = operation.combine().as_word(operand)?;
    change(epoch, to, index, amo)
}

/// Stores `new` in one element if it is as `expected`, and gives what it was.
#[inline]
pub(crate) fn compare_and_swap<'w, T: Integer, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    expected: T,
    new: T,
) -> Option<T> {
    let (expected, new) = (word(expected)?, word(new)?);
    change(epoch, to, index, Amo::CompareSwap { expected, new })
}

/// Does `amo` to one element of 4 or 8 bytes, and gives what it was.
#[inline]
fn change<'w, T: Pod, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    amo: Amo,
) -> Option<T> {
    let core = epoch.core();
    let (key, offset) = place::<T, L>(core, to, index, 1)?;
    if !epoch.admits(to) || core.world.is_poll_due() {
        return None;
    }
    let link = core.world.link();
    if size_of::<T>() == size_of::<u64>() {
        let old = link.fast_amo(to, key, offset, amo, Width::Whole)?;
        return bytemuck::try_cast(old).ok();
    }
    let old = link.fast_amo(to, key, offset, amo, Width::Half)?;
    bytemuck::try_cast(old as u32).ok()
}

// ---- Notifications ----

/// Puts `data`, and tells `to` by `tag`; false if it declines.
#[inline(always)]
pub(crate) fn put_notify<T: Pod, L: Link>(
    core: &Core<'_, L>,
    to: Rank,
    index: usize,
    data: &[T],
    tag: Tag,
) -> bool {
    if !core.inline.get() {
        return false;
    }
    let Some(place) = place::<T, L>(core, to, index, data.len()) else {
        return false;
    };
    let (link, bytes) = (core.world.link(), bytemuck::cast_slice(data));
    tag.0 <= core.world.limits().tag && link.fast_put(to, place, bytes, core.immediate | tag.0)
}

/// The first place for the closed lines of a request, if it may take that.
#[inline(always)]
pub(crate) fn room<'r, L: Link>(request: &Request<'r, L>) -> Option<&'r Cell<Lines>> {
    let usual = !request.is_started() && !request.lines().is_empty();
    request.first_room().filter(|_| usual)
}

/// Completes a request whose last notification is the next one that arrives, within this many
/// `looks`.
#[inline(always)]
pub(crate) fn test<L: Link>(request: &mut Request<'_, L>, looks: u32) -> Option<Status> {
    if request.lacks_one()
        && request.has_first_lines()
        && request.world().queue.is_empty()
        && request.world().link().fast_take(request.next(), looks)
    {
        return Some(request.complete_first());
    }
    None
}

// ---- Flush and locks ----

/// [`Lock::flush`]; false if it declines.
#[inline(always)]
pub(crate) fn flush<'w, T: Pod, L: Link + 'w>(lock: &Lock<'_, 'w, T, L>, target: Rank) -> bool {
    lock.is_of(target) && lock.core().world.link().fast_flush(false)
}

/// All that this rank has put is in its place before the steps by which it gives a lock back; false
/// if that declines.
#[inline(always)]
pub(crate) fn flush_before_release<L: Link>(link: &L) -> bool {
    link.fast_flush(true)
}

/// A step of a lock: `amo` on a cell, and what it was.
#[inline(always)]
pub(crate) fn step<L: Link>(core: &Core<'_, L>, rank: Rank, cell: u32, amo: Amo) -> Option<u32> {
    // Where the machine keeps caches coherent, nothing has to come before the step, and it is done
    // when the call returns.
    let link = L::COHERENT.then(|| core.world.link())?;
    let old = link.fast_amo(rank, core.cells, cell, amo, Width::Half)?;
    Some(old as u32)
}

/// Takes an exclusive lock; false if it declines. The full path continues with what has been taken.
#[inline(always)]
pub(crate) fn lock_exclusive<L: Link>(hold: &mut Hold<'_, '_, L>) -> bool {
    let core = hold.words.core;
    let (world, target) = (core.world, hold.words.usual);
    if !L::COHERENT
        || target.get() >= world.size()
        || target == world.rank()
        || core.abandoned.get() | core.access_open.get()
        || !core.passive.is_idle()
        || !register(&mut hold.words)
    {
        return false;
    }
    core.passive.insert_first(target);
    world.add_lock();
    hold.phase = Phase::Acquiring;
    if !take(&mut hold.words) {
        return false;
    }
    hold.words.hand_over();
    core.passive.got();
    hold.phase = Phase::Held;
    true
}

/// The first step of [`lock_exclusive`]: false if nothing has happened.
#[inline(always)]
fn register<L: Link>(words: &mut Words<'_, '_, L>) -> bool {
    let add = Amo::Add(EXCLUSIVE.into());
    if let Some(old) = step(words.core, MASTER, cell::GLOBAL, add) {
        words.done(Step::Register, old);
    }
    words.registered
}

/// The second step: whether the lock is taken.
#[inline(always)]
fn take<L: Link>(words: &mut Words<'_, '_, L>) -> bool {
    if words.blocked.is_some() {
        return false;
    }
    let writer = Amo::CompareSwap {
        expected: 0,
        new: words.core.passive.mark.into(),
    };
    if let Some(old) = step(words.core, words.usual, cell::LOCAL, writer) {
        words.done(Step::Take(0), old);
    }
    words.taken
}

/// Gives back an exclusive lock, which is the only lock that this rank has; false if it declines.
/// The full path continues with what has not been given back.
#[inline(always)]
pub(crate) fn unlock_exclusive<L: Link>(hold: &mut Hold<'_, '_, L>) -> bool {
    let core = hold.words.core;
    let (world, target) = (core.world, hold.words.usual);
    if !L::COHERENT
        || hold.phase != Phase::Held
        || hold.words.kind != Kind::Exclusive
        || target == world.rank()
        || !core.passive.is_only(target)
        // FLUSH: G2 of `epoch::lock`.
        || !flush_before_release(world.link())
        || !leave(&mut hold.words)
    {
        return false;
    }
    core.passive.remove_first();
    world.remove_lock();
    hold.phase = Phase::Done;
    true
}

/// Both steps of [`lock_exclusive`] the other way round.
#[inline(always)]
fn leave<L: Link>(words: &mut Words<'_, '_, L>) -> bool {
    let core = words.core;
    let free = Amo::Add(core.passive.mark.wrapping_neg().into());
    if !words.taken || step(core, words.usual, cell::LOCAL, free).is_none() {
        return false;
    }
    words.taken = false;
    let less = Amo::Add(EXCLUSIVE.wrapping_neg().into());
    if step(core, MASTER, cell::GLOBAL, less).is_none() {
        words.registered = true;
        return false;
    }
    true
}
