//! Budgets of epochs that run out, with each strategy: who is missing is named, and the handle goes
//! on where it stopped.

use flagpost::{Error, Link, Rank, Rma as _, Tag, Waiting, World};
use flagpost_hal::{Relax, TestAndSet};

use super::handles::{again, answered, finish, is_late, times_out};
use super::steps::{NO_ERROR, Signals, refused};
use super::timeout::{await_go, go, take};
use crate::{Result, context::check};

/// An origin that waits for a post, in its first put and in complete.
pub(super) fn post<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (origin, target) = (Rank::new(0), Rank::new(1));
    let (origins, targets) = ([origin], [target]);
    let window = world.allocate_with::<u64, S>(2, S::posts(1))?;
    match world.rank().get() {
        0 => {
            let access = window.start(targets)?;
            is_late(world, Waiting::Post, target, || access.put(target, 0, &[1]))?;
            go(&window, target)?;
            access.put(target, 0, &[2])?;
            access.complete()?;

            // Nothing was accessed in the second epoch: its complete is what waits.
            let access = window.start(targets)?;
            let late = times_out(access.completing(), Waiting::Post, 1, &[target])?;
            refused("still open", window.start(targets), Error::EpochOpen)?;
            go(&window, target)?;
            late.wait()?;
        }
        1 => {
            for _ in 0..2 {
                await_go(&window, origin)?;
                window.post(origins)?.wait()?;
                check("put once", window.local().get(0)?, 2_u64)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// A target that waits for room in its origin's ring can post: whoever looks for its post takes
/// notifications meanwhile.
pub(super) fn looks_full_ring<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let many = super::crowd(world.size());
    let (me, origin, target) = (world.rank(), Rank::new(0), Rank::new(1));
    let (origins, targets) = ([origin], [target]);
    let window = world.allocate_with::<u64, S>(1, S::posts(1))?;
    if me == origin {
        let mut all = window.expect(0..0, Tag(1))?.from(target)?.times(many)?;
        let access = window.start(targets)?;
        while !access.has_posted(target)? {
            world.link().relax();
        }
        access.put(target, 0, &[7])?;
        access.complete()?;
        all.start()?;
        all.wait()?;
    } else if me == target {
        for _ in 0..many {
            window.put_notify(origin, 0, &[], Tag(1))?;
        }
        window.post(origins)?.wait()?;
        check("put", window.local().get(0)?, 7_u64)?;
    }
    Ok(())
}

/// A target that waits for its origins.
pub(super) fn wait<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (target, origin) = (Rank::new(0), Rank::new(1));
    let (targets, origins) = ([target], [origin]);
    let window = world.allocate_with::<u64, S>(2, S::posts(1))?;
    match world.rank().get() {
        0 => {
            let late = times_out(window.post(origins)?, Waiting::Completion, 1, &[origin])?;
            refused("still exposed", window.local().set(0, 1), Error::Exposed)?;
            go(&window, origin)?;
            late.wait()?;
            check("put", window.local().get(1)?, 7_u64)
        }
        1 => {
            await_go(&window, target)?;
            let access = window.start(targets)?;
            access.put(target, 1, &[7])?;
            Ok(access.complete()?)
        }
        _ => Ok(()),
    }
}

/// Three origins are missing, then two. Where completions are told apart these are named; a counter
/// only tells that they are among the three, so all are.
pub(super) fn several<'w, L: Link, S: Signals<'w, L>>(
    world: &'w World<'w, L>,
    told_apart: bool,
) -> Result {
    let (target, all) = (Rank::new(0), [1, 2, 3].map(Rank::new));
    let window = world.allocate_with::<u64, S>(4, S::posts(1))?;
    for epoch in 1..=2_u64 {
        if world.rank() == target {
            let open = times_out(window.post(all)?, Waiting::Completion, 3, &all)?;
            go(&window, all[0])?;
            await_go(&window, all[0])?;
            let named = if told_apart { &all[1..] } else { &all };
            let open = times_out(open, Waiting::Completion, 2, named)?;
            for origin in &all[1..] {
                go(&window, *origin)?;
            }
            open.wait()?;
            for origin in all {
                check("put", window.local().get(origin.index())?, epoch)?;
            }
        } else if all.contains(&world.rank()) {
            await_go(&window, target)?;
            let access = window.start([target])?;
            access.put(target, world.rank().index(), &[epoch])?;
            access.complete()?;
            if world.rank() == all[0] {
                go(&window, target)?;
            }
        }
    }
    Ok(())
}

/// Every call with a budget of nothing, repeated until it is done: each goes on where it stopped,
/// and tells nobody twice.
pub(super) fn every_call<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate_with::<u64, S>(usize::from(size), S::posts(size))?;
    let mut buffer = [Rank::new(0); 64];
    for (place, rank) in buffer.iter_mut().zip(0..size) {
        *place = Rank::new(rank);
    }
    let all = world.group(&buffer[..usize::from(size)])?;
    for epoch in 1..=2_u64 {
        let value = |rank: Rank| u64::from(rank.get()) * 10 + epoch;
        again(world, || {
            world.allgather_with(value(me), |rank, element| {
                assert_eq!(element, value(rank));
            })
        })?;
        let exposure = finish(world, window.posting(&all)?)?;
        let access = window.start(&all)?;
        for &target in all.ranks() {
            again(world, || access.put(target, me.index(), &[value(me)]))?;
        }
        finish(world, access.completing())?;
        finish(world, exposure)?;
        for &origin in all.ranks() {
            check("put", window.local().get(origin.index())?, value(origin))?;
        }
        again(world, || world.barrier())?;
    }
    Ok(world.barrier()?)
}

/// A post that stops halfway, at an origin's lock. Going on tells only the rest: the first origin,
/// whose epoch is over by then, is not let in a second time.
pub(super) fn rest_of_post<'w, M: TestAndSet + Relax, L: Link, S: Signals<'w, L>>(
    machine: &M,
    world: &'w World<'w, L>,
) -> Result {
    let window = world.allocate_with::<u64, S>(3, S::posts(2))?;
    let [target, early, late] = [0, 1, 2].map(Rank::new);
    let (both, only_early, targets) = ([early, late], [early], [target]);
    match world.rank().get() {
        0 => {
            let held = take(machine, late);
            let stopped = times_out(window.posting(both)?, Waiting::Lock, 1, &[late])?;
            await_go(&window, early)?;
            drop(held);
            stopped.wait()?.wait()?;
            check("early's put", window.local().get(1)?, 10_u64)?;
            check("late's put", window.local().get(2)?, 20_u64)?;
            go(&window, early)?;
            await_go(&window, early)?;
            window.post(only_early)?.wait()?;
            check("early's second put", window.local().get(1)?, 11_u64)
        }
        1 => {
            let access = window.start(targets)?;
            access.put(target, 1, &[10])?;
            access.complete()?;
            go(&window, target)?;
            await_go(&window, target)?;
            let access = window.start(targets)?;
            is_late(world, Waiting::Post, target, || {
                access.put(target, 1, &[11])
            })?;
            go(&window, target)?;
            access.put(target, 1, &[11])?;
            Ok(access.complete()?)
        }
        2 => {
            let access = window.start(targets)?;
            access.put(target, 2, &[20])?;
            Ok(access.complete()?)
        }
        _ => Ok(()),
    }
}

/// A complete that stops halfway, at a target's lock. Going on counts only the rest down: the first
/// target still waits for its other origin.
pub(super) fn rest_of_complete<'w, M: TestAndSet + Relax, L: Link, S: Signals<'w, L>>(
    machine: &M,
    world: &'w World<'w, L>,
) -> Result {
    let window = world.allocate_with::<u64, S>(3, S::posts(2))?;
    let [origin, early, late] = [0, 1, 2].map(Rank::new);
    let (targets, origins) = ([early, late], [origin, late]);
    let (only_early, only_origin) = ([early], [origin]);
    match world.rank().get() {
        0 => {
            world.barrier()?; // all posts are made
            let access = window.start(targets)?;
            access.put(early, 0, &[10])?;
            access.put(late, 0, &[20])?;
            let held = take(machine, late);
            let stopped = times_out(access.completing(), Waiting::Lock, 1, &[late])?;
            drop(held);
            stopped.wait()?;
            go(&window, early)
        }
        1 => {
            let exposure = window.post(origins)?;
            world.barrier()?;
            await_go(&window, origin)?;
            // Which of the two it is, a counter does not tell.
            let open = times_out(exposure, Waiting::Completion, 1, &origins)?;
            go(&window, late)?;
            open.wait()?;
            check("origin's put", window.local().get(0)?, 10_u64)?;
            check("late's put", window.local().get(2)?, 12_u64)
        }
        2 => {
            let exposure = window.post(only_origin)?;
            let access = window.start(only_early)?;
            world.barrier()?;
            await_go(&window, early)?;
            access.put(early, 2, &[12])?;
            access.complete()?;
            exposure.wait()?;
            check("origin's other put", window.local().get(0)?, 20_u64)
        }
        _ => Ok(world.barrier()?),
    }
}

/// Handles that are dropped when their budget ran out: the window takes no further epoch, who waits
/// for them learns it by its own budget, and nobody hangs. Other windows go on.
pub(super) fn dropped<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let [origin, early, never] = [0, 1, 2].map(Rank::new);
    let (origins, targets, only_never) = ([origin], [early, never], [never]);
    let window = world.allocate_with::<u64, S>(1, S::posts(2))?;
    let signals = world.allocate::<u64>(1)?;
    match world.rank().get() {
        0 => {
            let late = times_out(
                window.post(only_never)?,
                Waiting::Completion,
                1,
                &only_never,
            )?;
            let access = window.start(targets)?;
            let late_access = answered(access.completing()).err().ok_or(NO_ERROR)?;
            // Nobody but one of them is waited for.
            let Error::Timeout(timeout) = late_access.error else {
                return Err(late_access.error.into());
            };
            check("waiting", timeout.waiting == Waiting::Post, true)?;
            check("one is missing", timeout.missing.count(), 1_u32)?;
            drop(late_access);
            refused("start", window.start(targets), Error::EpochAbandoned)?;
            drop(late);
            go(&signals, early)?;
        }
        1 => {
            let exposure = window.post(origins)?;
            await_go(&signals, origin)?;
            let late = times_out(exposure, Waiting::Completion, 1, &origins)?;
            drop(late);
            refused("abandoned", window.post(origins), Error::EpochAbandoned)?;
        }
        _ => {}
    }
    world.barrier()?;
    let (me, size) = (world.rank(), world.size());
    let (next, prev) = ([me.next(size)], [me.prev(size)]);
    let again = world.allocate_with::<u64, S>(1, S::posts(2))?;
    let exposure = again.post(prev)?;
    let access = again.start(next)?;
    access.put(next[0], 0, &[7])?;
    access.complete()?;
    exposure.wait()?;
    check("another window's put", again.local().get(0)?, 7_u64)
}
