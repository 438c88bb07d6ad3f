//! Fences: epochs of all ranks.

use flagpost::epoch::Assert;
use flagpost::{EpochSlots, Error, Link, Model, Rma as _, Tag, Waiting, Window, World};

use super::handles::times_out;
use super::steps::{NO_ERROR, finds, hear, neighbours, refused as refuses};
use crate::{Result, context::check};

const NONE: Assert = Assert::empty();

fn value(rank: flagpost::Rank, epoch: u32) -> u32 {
    0x100 * (u32::from(rank.get()) + 1) + epoch
}

/// Each rank puts to the next and gets from it, in several epochs; in between it stores to its own
/// piece.
pub(super) fn ring<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let window = world.allocate::<u32>(5)?;
    let local = window.local();
    for round in 0..2 {
        local.set(1, value(me, round))?;
        let mut epoch = window.fence(NONE)?;
        for turn in 0..2 {
            let now = 2 * round + turn;
            // In turn: the next epoch's puts may come while this one's are looked at.
            let place = 3 + turn as usize;
            epoch.put(next, place, &[value(me, now)])?;
            finds("peer's store", &epoch, next, 1, [value(next, round)])?;
            refuses("own store", local.set(1, 0), Error::Exposed)?;
            epoch = epoch.fence(NONE)?;
            check("put", local.get(place)?, value(prev, now))?;
        }
        epoch.put(next, 2, &[value(me, round)])?;
        epoch.end()?;
        check("last put", local.get(2)?, value(prev, round))?;
        check("own store", local.get(1)?, value(me, round))?;
    }
    Ok(())
}

/// Nobody puts to odd ranks: these alone say so, and put to the ones before them.
pub(super) fn no_put_here<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let is_odd = |rank: flagpost::Rank| rank.get() % 2 == 1;
    let (next, prev) = (me.next(size), me.prev(size));
    let window = world.allocate::<u32>(4)?;
    // Their stores say nothing either: what they put leaves by the flush alone.
    let assert = if is_odd(me) {
        Assert::NO_PUT | Assert::NO_STORE
    } else {
        NONE
    };
    let mut epoch = window.fence(assert)?;
    // In turn: the next epoch's puts may come while this one's are looked at.
    for round in 0..4 {
        if is_odd(me) {
            epoch.put(prev, round as usize, &[value(me, round)])?;
        }
        epoch = epoch.fence(assert)?;
        if !is_odd(me) && is_odd(next) {
            let found = window.local().get(round as usize)?;
            check("put", found, value(next, round))?;
        }
    }
    Ok(epoch.end()?)
}

/// Each assertion where it holds.
pub(super) fn assertions<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let window = world.allocate::<u32>(2)?;
    let local = window.local();
    let mut epoch = window.fence(Assert::NO_PRECEDE | Assert::NO_STORE)?;
    for round in 1..=3 {
        epoch.put(next, 0, &[value(me, round)])?;
        // Behind this one pieces are read only: their owners may store to what nobody reads.
        epoch = epoch.fence(Assert::NO_STORE | Assert::NO_PUT)?;
        check("put", local.get(0)?, value(prev, round))?;
        let mut seen = [0];
        epoch.get(next, 0, &mut seen)?;
        check("own put, from afar", seen[0], value(me, round))?;
        local.set(1, value(me, round))?;
        epoch = epoch.fence(NONE)?;
        epoch.get(next, 1, &mut seen)?;
        check("peer's store", seen[0], value(next, round))?;
        epoch = epoch.fence(Assert::NO_STORE | Assert::NO_SUCCEED)?;
        refuses("closed", epoch.put(next, 0, &[1]), Error::NotInGroup(next))?;
        local.set(1, 7)?;
        epoch = epoch.fence(Assert::NO_PRECEDE)?;
        epoch.get(next, 1, &mut seen)?;
        check("peer's later store", seen[0], 7_u32)?;
        epoch = epoch.fence(Assert::NO_STORE)?;
    }
    epoch.end()?;
    // Nothing before, nothing behind: waits for nobody.
    let nothing = Assert::NO_PRECEDE | Assert::NO_SUCCEED;
    Ok(window.fence(nothing)?.end()?)
}

/// What a rank stored is kept and published by every fence, whatever that says of what comes behind
/// it.
pub(super) fn own_stores<L: Link>(world: &World<'_, L>) -> Result {
    /// In another line than the first.
    const FAR: usize = 64;
    let (me, next, _) = neighbours(world);
    let window = world.allocate::<u32>(FAR + 1)?;
    let local = window.local();
    let mut number = 0;
    let mut store = || -> Result<u32> {
        number += 1;
        local.set(0, value(me, number))?;
        local.set(FAR, value(me, number))?;
        Ok(number)
    };
    let kept = |number| -> Result {
        check("own", local.get(0)?, value(me, number))?;
        check("own, far", local.get(FAR)?, value(me, number))
    };
    for closed in [Assert::NO_SUCCEED, Assert::NO_SUCCEED | Assert::NO_PUT] {
        // Before the first one, behind one at which nobody is let in, and behind one at which
        // nobody may put.
        let mut last = store()?;
        let mut epoch = window.fence(closed)?;
        kept(last)?;
        for before in [closed, Assert::NO_PUT] {
            epoch = epoch.fence(before)?;
            last = store()?;
            epoch = epoch.fence(closed)?;
            kept(last)?;
            // Nothing was stored since, which says nothing of what was stored before.
            epoch = epoch.fence(Assert::NO_STORE)?;
            for place in [0, FAR] {
                finds("peer's store", &epoch, next, place, [value(next, last)])?;
            }
            kept(last)?;
        }
        epoch = epoch.fence(Assert::NO_PUT)?;
        last = store()?;
        epoch.end()?;
        kept(last)?;
        let epoch = window.fence(Assert::NO_STORE)?;
        finds("peer's store", &epoch, next, FAR, [value(next, last)])?;
        epoch.end()?;
    }
    Ok(())
}

/// Pieces that are not cached.
pub(super) fn unified<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let window = world.allocate_with::<u32, EpochSlots<'_>>(2, Model::Unified)?;
    let local = window.local();
    let mut epoch = window.fence(NONE)?;
    for round in 1..=3 {
        local.set(1, value(me, round))?;
        epoch.put(next, 0, &[value(me, round)])?;
        epoch = epoch.fence(NONE)?;
        check("put", local.get(0)?, value(prev, round))?;
        finds("peer's store", &epoch, next, 1, [value(next, round)])?;
        epoch = epoch.fence(NONE)?;
    }
    Ok(epoch.end()?)
}

pub(super) fn misuse<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(2)?;
    let nobody = flagpost::Rank::new(size);
    let group = [me];
    let group = world.group(&group)?;
    let opens = |error| -> Result {
        let Err(late) = window.fence(NONE) else {
            return Err(NO_ERROR);
        };
        check("error", late == error, true)
    };
    let exposure = window.post(&group)?;
    opens(Error::EpochOpen)?;
    let access = window.start(&group)?;
    opens(Error::EpochOpen)?;
    access.complete()?;
    exposure.wait()?;
    let lock = window.lock_shared(me)?;
    opens(Error::EpochOpen)?;
    lock.unlock()?;
    let epoch = window.fence(NONE)?;
    opens(Error::EpochOpen)?;
    refuses("start", window.start(&group).map(drop), Error::EpochOpen)?;
    refuses("lock", window.lock_shared(me), Error::EpochOpen)?;
    let unknown = Error::NoSuchRank { rank: nobody, size };
    refuses("nobody", epoch.put(nobody, 0, &[1]), unknown)?;
    let end = Error::OutOfRange { end: 3, len: 2 };
    refuses("range", epoch.put(me, 2, &[1]), end)?;
    epoch.end()?;
    let broken = world.allocate::<u32>(1)?;
    drop(broken.fence(NONE)?);
    refuses("abandoned", broken.fence(NONE), Error::EpochAbandoned)
}

/// Rank 0 comes early to each of three fences.
pub(super) fn timeout<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let (first, last) = (flagpost::Rank::new(0), flagpost::Rank::new(size - 1));
    let window = world.allocate::<u32>(2)?;
    let tell = || window.put_notify(last, 0, &[], Tag(1));
    let on_time = || -> Result {
        if me == last {
            hear(window.expect(0..0, Tag(1))?.from(first)?)?;
        }
        Ok(())
    };
    let next = me.next(size);
    window.local().set(1, value(me, 0))?;
    let early = me == first;
    if early {
        let stopped = times_out(window.fencing(NONE), Waiting::Collective, 1, &[last])?;
        tell()?;
        refuses("own store", window.local().set(1, 0), Error::Exposed)?;
        let epoch = stopped.wait()?;
        epoch.put(next, 0, &[1])?;
        let stopped = times_out(epoch.fencing(NONE), Waiting::Collective, 1, &[last])?;
        tell()?;
        let epoch = stopped.wait()?;
        let stopped = times_out(epoch.ending(), Waiting::Collective, 1, &[last])?;
        tell()?;
        stopped.wait()?;
    } else {
        on_time()?;
        let epoch = window.fence(NONE)?;
        epoch.put(next, 0, &[1])?;
        on_time()?;
        let epoch = epoch.fence(NONE)?;
        check("put", window.local().get(0)?, 1_u32)?;
        on_time()?;
        epoch.end()?;
    }
    window.local().set(0, 0)?;
    check("own store", window.local().get(1)?, value(me, 0))
}

/// An epoch of everybody, to be tried in every schedule.
pub(super) fn small<L: Link>(window: &Window<'_, u32, L>) -> Result {
    let world = window.world();
    let (me, next, prev) = neighbours(world);
    window.local().set(1, value(me, 1))?;
    let epoch = window.fence(Assert::NO_PRECEDE)?;
    finds("peer's store", &epoch, next, 1, [value(next, 1)])?;
    epoch.put(next, 0, &[value(me, 2)])?;
    epoch.end()?;
    check("put", window.local().get(0)?, value(prev, 2))
}
