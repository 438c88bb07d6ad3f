//! Post, start, complete, wait.

use flagpost::{Error, Link, Rank, Rma as _, Tag, World};

use super::steps::{NO_ERROR, Signals, neighbours, refused};
use crate::{Failure, Result, context::check};

/// Epochs of the cases that repeat: reuse of every word is where resets go wrong.
const EPOCHS: u64 = 3;

fn value(rank: Rank, epoch: u64) -> u64 {
    (u64::from(rank.get()) + 1) * 1000 + epoch
}

/// Every rank is origin and target. Its own word and the one that is put to it share a line.
pub(super) fn ring<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let window = world.allocate_with::<u64, S>(4, S::posts(1))?;
    let local = window.local();
    for epoch in 0..EPOCHS {
        // Fetches the line before it becomes stale, and makes it dirty.
        check(
            "own word",
            local.get(3)?,
            if epoch == 0 { 0 } else { value(me, epoch - 1) },
        )?;
        local.set(3, value(me, epoch))?;
        let exposure = window.post([prev])?;
        refused("store while exposed", local.set(0, 1), Error::Exposed)?;
        let access = window.start([next])?;
        access.put(next, 0, &[value(me, epoch)])?;
        access.put(next, 1, &[epoch])?;
        access.complete()?;
        exposure.wait()?;
        check("put by the neighbour", local.get(0)?, value(prev, epoch))?;
        check("second put", local.get(1)?, epoch)?;
        check("untouched", local.get(2)?, 0_u64)?;
        check("own word kept", local.get(3)?, value(me, epoch))?;
    }
    Ok(())
}

/// What a target stored before its post is what `get` returns.
pub(super) fn get<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let window = world.allocate_with::<u64, S>(9, S::posts(1))?;
    for epoch in 0..EPOCHS {
        for index in 0..9 {
            window.local().set(index, value(me, epoch) + index as u64)?;
        }
        let exposure = window.post([prev])?;
        let access = window.start([next])?;
        let mut seen = [0; 7];
        access.get(next, 1, &mut seen)?;
        for (found, index) in seen.into_iter().zip(1..) {
            check("target's word", found, value(next, epoch) + index)?;
        }
        access.complete()?;
        exposure.wait()?;
    }
    Ok(())
}

/// All others put neighbouring bytes to rank 0: origins share its lines.
pub(super) fn fan_in<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let first = [Rank::new(0)];
    let targets = world.group(&first)?;
    let window = world.allocate_with::<u8, S>(usize::from(size) * 3, S::posts(1))?;
    let own = usize::from(me.get()) * 3;
    for epoch in 0..EPOCHS as u8 {
        if me == first[0] {
            window.local().copy_in(0, &[epoch; 3])?;
            let mut all = [Rank::new(0); 1024];
            let others = others(me, size, &mut all)?;
            window.post(&world.group(others)?)?.wait()?;
            for rank in 0..size {
                let byte = rank as u8 ^ epoch;
                let expected = if rank == 0 {
                    [epoch; 3]
                } else {
                    [byte, 0xA5, byte]
                };
                let mut seen = [0; 3];
                window.local().copy_out(usize::from(rank) * 3, &mut seen)?;
                for (found, expected) in seen.into_iter().zip(expected) {
                    check("byte from an origin", found, expected)?;
                }
            }
        } else {
            let access = window.start(&targets)?;
            access.put(first[0], own, &[me.get() as u8 ^ epoch, 0xA5])?;
            access.put(first[0], own + 2, &[me.get() as u8 ^ epoch])?;
            access.complete()?;
        }
    }
    Ok(())
}

/// All ranks but `me`, in `buffer`.
fn others(me: Rank, size: u16, buffer: &mut [Rank; 1024]) -> Result<&[Rank]> {
    let count = usize::from(size) - 1;
    let ranks = (0..size).map(Rank::new).filter(|rank| *rank != me);
    for (place, rank) in buffer.iter_mut().zip(ranks) {
        *place = rank;
    }
    buffer
        .get(..count)
        .ok_or(Failure::Argument("more than 1025 ranks"))
}

/// Rank 0 puts to all others in one epoch.
pub(super) fn fan_out<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let first = [Rank::new(0)];
    let origins = world.group(&first)?;
    let window = world.allocate_with::<u64, S>(2, S::posts(size - 1))?;
    let mut buffer = [Rank::new(0); 1024];
    let others = others(first[0], size, &mut buffer)?;
    let targets = world.group(others)?;
    for epoch in 0..EPOCHS {
        if me == first[0] {
            let access = window.start(&targets)?;
            for &target in others.iter().rev() {
                access.put(target, 1, &[value(target, epoch)])?;
            }
            access.complete()?;
        } else {
            window.post(&origins)?.wait()?;
            check("put by rank 0", window.local().get(1)?, value(me, epoch))?;
        }
    }
    Ok(())
}

/// Every rank is origin and target of every other.
pub(super) fn all_to_all<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate_with::<u64, S>(usize::from(size), S::posts(size - 1))?;
    let mut buffer = [Rank::new(0); 1024];
    let others = others(me, size, &mut buffer)?;
    let group = world.group(others)?;
    for epoch in 0..2 {
        let exposure = window.post(&group)?;
        let access = window.start(&group)?;
        for &target in others {
            let sent = value(me, epoch) + 7 * u64::from(target.get());
            access.put(target, me.index(), &[sent])?;
        }
        access.complete()?;
        exposure.wait()?;
        for &origin in others {
            let expected = value(origin, epoch) + 7 * u64::from(me.get());
            check("put by each", window.local().get(origin.index())?, expected)?;
        }
    }
    Ok(())
}

/// Rank 0 accesses ranks 1 and 2 in turn; each posts as early as it can, so that its post falls
/// together with the other's and with rank 0's clearing of bits. All bits share a byte.
pub(super) fn switch<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let me = world.rank();
    let first = [Rank::new(0)];
    let origins = world.group(&first)?;
    let window = world.allocate_with::<u64, S>(1, S::posts(2))?;
    for epoch in 0..2 * EPOCHS {
        let target = [Rank::new(1 + (epoch % 2) as u16)];
        if me == first[0] {
            let access = window.start(&world.group(&target)?)?;
            access.put(target[0], 0, &[value(target[0], epoch)])?;
            access.complete()?;
        } else if me == target[0] {
            window.post(&origins)?.wait()?;
            check("put in turn", window.local().get(0)?, value(me, epoch))?;
        }
    }
    Ok(())
}

/// Targets post epoch after epoch while rank 0 serves them in another order.
pub(super) fn early_posts<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let first = [Rank::new(0)];
    let origins = world.group(&first)?;
    let window = world.allocate_with::<u32, S>(8, S::posts((size - 1).min(4)))?;
    let last = (size - 1).min(4);
    for epoch in 0..EPOCHS as u32 {
        if me == first[0] {
            for target in (1..=last).rev() {
                let target = [Rank::new(target)];
                let access = window.start(&world.group(&target)?)?;
                access.put(target[0], 7, &[epoch + 1])?;
                access.complete()?;
            }
        } else if me.get() <= last {
            let exposure = window.post(&origins)?;
            exposure.wait()?;
            check("epoch by epoch", window.local().get(7)?, epoch + 1)?;
        }
    }
    Ok(())
}

/// Epochs of two windows are independent, also interleaved.
pub(super) fn windows<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let (one, two) = (
        world.allocate_with::<u64, S>(2, S::posts(1))?,
        world.allocate_with::<u8, S>(3, S::posts(1))?,
    );
    for epoch in 0..EPOCHS {
        let exposure_two = two.post([prev])?;
        let exposure_one = one.post([prev])?;
        let access_one = one.start([next])?;
        let access_two = two.start([next])?;
        access_one.put(next, 0, &[value(me, epoch)])?;
        access_two.put(next, 1, &[epoch as u8 + 1])?;
        access_two.complete()?;
        exposure_two.wait()?;
        check("second window", two.local().get(1)?, epoch as u8 + 1)?;
        access_one.complete()?;
        exposure_one.wait()?;
        check("first window", one.local().get(0)?, value(prev, epoch))?;
    }
    Ok(())
}

/// `test` ends the epoch like `wait`, without waiting.
pub(super) fn test<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let window = world.allocate_with::<u64, S>(9, S::posts(1))?;
    for epoch in 0..EPOCHS {
        check(
            "stale soon",
            window.local().get(0)? < value(prev, epoch),
            true,
        )?;
        check("stale soon", window.local().get(8)? <= epoch, true)?;
        let mut exposure = window.post([prev])?;
        check("nobody can have completed", exposure.test()?, false)?;
        world.barrier()?;
        let access = window.start([next])?;
        access.put(next, 0, &[value(me, epoch)])?;
        access.put(next, 8, &[epoch + 1])?;
        access.complete()?;
        while !exposure.test()? {
            world.link().relax();
        }
        check("still", exposure.test()?, true)?;
        exposure.wait()?;
        check("put", window.local().get(0)?, value(prev, epoch))?;
        check("in the last line", window.local().get(8)?, epoch + 1)?;
    }
    Ok(())
}

/// Epochs that wait for all posts first: then every target has posted, which each can be asked
/// before.
pub(super) fn immediate<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let [origin, one, other] = [0, 1, 2].map(Rank::new);
    let (only_origin, both) = ([origin], [one, other]);
    let (origins, targets) = (world.group(&only_origin)?, world.group(&both)?);
    let window = world.allocate_with::<u64, S>(1, S::posts(2))?;
    for epoch in 0..EPOCHS {
        // Nobody posts before the origin has looked.
        if world.rank() == origin {
            let access = window.start(&targets)?;
            for target in both {
                check("posted", access.has_posted(target)?, false)?;
            }
            let stranger = access.has_posted(origin);
            refused("not in the group", stranger, Error::NotInGroup(origin))?;
            world.barrier()?;
            access.await_posts()?;
            for target in both {
                check("posted", access.has_posted(target)?, true)?;
                access.put(target, 0, &[value(target, epoch)])?;
            }
            access.complete()?;
        } else {
            world.barrier()?;
            if both.contains(&world.rank()) {
                window.post(&origins)?.wait()?;
                check("put", window.local().get(0)?, value(world.rank(), epoch))?;
            }
        }
    }
    Ok(())
}

/// A rank that has posted is none of an epoch that does not name it.
pub(super) fn strangers<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let [origin, one, other] = [0, 1, 2].map(Rank::new);
    let (only_origin, both) = ([origin], [one, other]);
    let origins = world.group(&only_origin)?;
    let window = world.allocate_with::<u64, S>(1, S::posts(2))?;
    let exposure = match both.contains(&world.rank()) {
        true => Some(window.post(&origins)?),
        false => None,
    };
    world.barrier()?; // both have posted
    if let Some(exposure) = exposure {
        exposure.wait()?;
        check("put", window.local().get(0)?, value(world.rank(), 0))?;
    } else if world.rank() == origin {
        for (target, stranger) in [(one, other), (other, one)] {
            let targets = [target];
            let access = window.start(&world.group(&targets)?)?;
            let outside = || access.put(stranger, 0, &[0]);
            refused("before", outside(), Error::NotInGroup(stranger))?;
            access.put(target, 0, &[value(target, 0)])?;
            refused("behind", outside(), Error::NotInGroup(stranger))?;
            access.complete()?;
        }
    }
    Ok(())
}

/// An origin that waits for room in the target's ring can complete: whoever tests or waits for its
/// epoch takes notifications meanwhile.
pub(super) fn full_ring<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let many = super::crowd(world.size());
    let (me, target, origin) = (world.rank(), Rank::new(0), Rank::new(1));
    let (only_target, only_origin) = ([target], [origin]);
    let (targets, origins) = (world.group(&only_target)?, world.group(&only_origin)?);
    let window = world.allocate_with::<u64, S>(1, S::posts(1))?;
    let mut all = window.expect(0..0, Tag(1))?.from(origin)?.times(many)?;
    for with_test in [false, true] {
        if me == origin {
            let access = window.start(&targets)?;
            for _ in 0..many {
                window.put_notify(target, 0, &[], Tag(1))?;
            }
            access.complete()?;
        } else if me == target {
            let mut exposure = window.post(&origins)?;
            while with_test && !exposure.test()? {
                world.link().relax();
            }
            exposure.wait()?;
            all.start()?;
            all.wait()?;
        }
    }
    Ok(())
}

/// Groups of nobody and of everybody in any order, windows interleaved, where a failed allocation
/// lay.
pub(super) fn groups<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let odd = me.get() == 0 && size > 1;
    let failed = world.allocate_with::<u64, S>(if odd { 4 } else { 40 }, S::posts(size));
    check("failed", failed.is_err(), size > 1)?;
    drop(failed);
    let (one, two) = (
        world.allocate_with::<u64, S>(0, S::posts(size))?,
        world.allocate_with::<u64, S>(3, S::posts(size))?,
    );
    let mut buffer = [Rank::new(0); 1024];
    for (place, distance) in buffer.iter_mut().zip(1..=size) {
        *place = me.ahead(distance, size);
    }
    let (nobody, all) = (
        world.group(&[])?,
        world.group(&buffer[..usize::from(size)])?,
    );
    for epoch in 1..=2_u64 {
        one.post(&nobody)?.wait()?;
        one.start(&nobody)?.complete()?;
        let (exposed_one, exposed_two) = (one.post(&all)?, two.post(&all)?);
        let (access_one, access_two) = (one.start(&all)?, two.start(&all)?);
        access_two.put(me.next(size), 2, &[epoch])?;
        access_one.get(me.next(size), 0, &mut [])?;
        access_two.complete()?;
        access_one.complete()?;
        exposed_one.wait()?;
        exposed_two.wait()?;
        check("put", two.local().get(2)?, epoch)?;
    }
    Ok(())
}

/// What types cannot stop is an error value, and epochs go on.
pub(super) fn misuse<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let me = [world.rank()];
    let group = world.group(&me)?;
    let window = world.allocate_with::<u64, S>(2, S::posts(1))?;
    let exposure = window.post(&group)?;
    match window.post(&group) {
        Err(again) => refused("second post", Err::<(), _>(again), Error::EpochOpen)?,
        Ok(_) => return Err(NO_ERROR),
    }
    let access = window.start(&group)?;
    refused("second start", window.start(&group), Error::EpochOpen)?;
    let end = Error::OutOfRange { end: 3, len: 2 };
    refused("put beyond", access.put(me[0], 1, &[1, 2]), end)?;
    let stranger = Rank::new(world.size());
    let outside = access.put(stranger, 0, &[1]);
    let nobody = Error::NoSuchRank {
        rank: stranger,
        size: world.size(),
    };
    refused("nobody", outside, nobody)?;
    if world.size() > 1 {
        let other = me[0].next(world.size());
        let outside = access.put(other, 0, &[1]);
        refused("not in the group", outside, Error::NotInGroup(other))?;
    }
    access.put(me[0], 1, &[5])?; // to itself
    access.complete()?;
    exposure.wait()?;
    check("put to oneself", window.local().get(1)?, 5_u64)?;

    drop(window.start(&group)?);
    refused(
        "after a dropped epoch",
        window.start(&group),
        Error::EpochAbandoned,
    )?;
    match window.post(&group) {
        Err(refusal) => {
            let result = Err::<(), _>(refusal);
            refused("post after a dropped epoch", result, Error::EpochAbandoned)
        }
        Ok(_) => Err(NO_ERROR),
    }
}
