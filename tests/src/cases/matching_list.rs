//! What is particular to matching lists: how long they are, and that they can be full.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost::{Differs, Error, Link, MatchingList, Rank, Rma as _, Waiting, World};

use super::handles::{is_late, times_out};
use super::steps::{differs as different, refused};
use super::timeout::{await_go, go};
use crate::{Result, context::check};

/// Lists of no entry, of too many, and not the same on all ranks. What failed has taken nothing.
pub(super) fn options<L: Link>(world: &World<'_, L>) -> Result {
    let make = |entries| world.allocate_with::<u64, MatchingList<'_>>(1, entries);
    for _ in 0..2 {
        for entries in [0, 4097, u16::MAX] {
            let bad = Error::BadList { entries, max: 4096 };
            refused("entries", make(entries), bad)?;
        }
        let (me, last) = (world.rank(), Rank::new(world.size() - 1));
        if world.size() > 1 {
            let first = Rank::new(if me == last { 0 } else { last.get() });
            let differs = make(if me == last { 2 } else { 3 });
            // Who finds that it differs names the first that does.
            refused("different", differs, different(first, Differs::Other))?;
        }
    }
    let window = make(1)?;
    let group = [world.rank()];
    let exposure = window.post(group)?;
    window.start(group)?.complete()?;
    Ok(exposure.wait()?)
}

/// Neighbours change from epoch to epoch. Posts of four rounds may be under way to a rank, since a
/// fast rank is ahead of slow ones by as many.
pub(super) fn reuse<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate_with::<u64, MatchingList<'_>>(1, 4)?;
    for round in 1..=4.min(size) {
        let (to, from) = ([me.ahead(round, size)], [me.ahead(size - round, size)]);
        let exposure = window.post(from)?;
        let access = window.start(to)?;
        let sent = u64::from(me.get()) * 10 + u64::from(round);
        access.put(to[0], 0, &[sent])?;
        access.complete()?;
        exposure.wait()?;
        check(
            "put",
            window.local().get(0)?,
            u64::from(from[0].get()) * 10 + u64::from(round),
        )?;
    }
    Ok(())
}

/// A list of one entry and two that post: the second waits, is told whose list is full, and goes on
/// when the first's epoch is over. Its post is found once.
pub(super) fn full<L: Link>(world: &World<'_, L>) -> Result {
    let [origin, early, late] = [0, 1, 2].map(Rank::new);
    let origins = [origin];
    let window = world.allocate_with::<u64, MatchingList<'_>>(1, 1)?;
    match world.rank().get() {
        0 => {
            await_go(&window, late)?;
            for target in [early, late] {
                let targets = [target];
                let access = window.start(targets)?;
                access.put(target, 0, &[5])?;
                access.complete()?;
            }
            let targets = [late];
            let access = window.start(targets)?;
            is_late(world, Waiting::Post, late, || access.put(late, 0, &[6]))?;
            go(&window, late)?;
            access.put(late, 0, &[6])?;
            Ok(access.complete()?)
        }
        1 => {
            let exposure = window.post(origins)?;
            go(&window, late)?;
            exposure.wait()?;
            check("put", window.local().get(0)?, 5_u64)
        }
        2 => {
            await_go(&window, early)?;
            let mut posting = window.posting(origins)?;
            for _ in 0..3 {
                posting = times_out(posting, Waiting::ListSpace, 1, &[origin])?;
            }
            go(&window, origin)?;
            posting.wait()?.wait()?;
            check("put", window.local().get(0)?, 5_u64)?;
            await_go(&window, origin)?;
            window.post(origins)?.wait()?;
            check("second put", window.local().get(0)?, 6_u64)
        }
        _ => Ok(()),
    }
}

/// The same in every schedule: what rank 0 posts to itself fills its list from the start, and goes
/// while the other's post looks for room.
pub(super) fn small_full<L: Link>(world: &World<'_, L>, go: impl FnOnce()) -> Result {
    let all = [0, 1].map(Rank::new);
    let [origin, late] = all;
    let origins = &all[..1];
    let window = world.allocate_with::<u32, MatchingList<'_>>(1, 1)?;
    let first = match world.rank() == origin {
        true => Some(window.post(origins)?),
        false => None,
    };
    world.barrier()?;
    go();
    let exposure = match first {
        Some(first) => {
            window.start(origins)?.complete()?;
            let access = window.start(&all[1..])?;
            access.put(late, 0, &[5])?;
            access.complete()?;
            return Ok(first.wait()?);
        }
        None => window.post(origins)?,
    };
    exposure.wait()?;
    check("put", window.local().get(0)?, 5_u32)
}
