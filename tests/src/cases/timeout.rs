//! Budgets that run out: who is missing is named, and the call can be repeated.
//!
//! One rank is made to wait for what its peer does only later, when it is told to go on.

use flagpost::{
    Budget, Config, Error, Link, MatchVector, Missing, Rank, Rma as _, Tag, Waiting, Window, World,
};
use flagpost_hal::{Coherence, CoreId, Held, Region, Relax, TestAndSet, Topology, UncachedMemory};
use flagpost_link::{Op, Place, Slot};
use flagpost_mapped::Mapped;

use super::join;
use super::world::NO_ERROR;
use crate::{Context, Failure, MachinePlatform, context::check};

/// A slot that no collective of the kernel uses.
const SPARE: Slot = Slot(31);

const SHORT: Budget = Budget::microseconds(20);

/// Checks a timeout: what was waited for, how many are missing, and who is named.
fn timed_out(error: Error, waiting: Waiting, count: u32, named: &[Rank]) -> Result<(), Failure> {
    match error {
        Error::Timeout(timeout) if timeout.waiting == waiting => {
            let missing: Missing = timeout.missing;
            check("missing", missing.count(), count)?;
            let named = named.iter().copied();
            check("ranks are named", missing.ranks().eq(named), true)
        }
        other => Err(other.into()),
    }
}

/// A peer that has not started is named. It is told to go on past the link, by a word of an earlier world.
pub(super) fn start<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result<(), Failure> {
    let machine = context.machine.clone();
    let session = |number: u32| context.session.wrapping_add(number << 30);
    let (second, third) = (session(1), session(2));
    let (me, late) = (machine.core().get(), Rank::new(1));
    let told = {
        let world = join(context)?;
        let key = world.link().allocate(4, Place::Symmetric)?;
        world.link().put(world.rank(), key, 0, &[0; 4])?;
        world.barrier()?;
        if me == late.get() {
            let mut word = [0; 4];
            while word == [0; 4] {
                world.link().relax();
                world.link().get(late, key, 0, &mut word, &Op::new())?;
            }
        }
        Region::memory(CoreId::new(late.get())).at(key.get())
    };
    if me == 0 {
        let link = Mapped::start(machine.clone(), second)?;
        let config = Config {
            budget: SHORT,
            ..Config::default()
        };
        let Err(error) = World::start(link, context.arena, config) else {
            return Err(NO_ERROR);
        };
        timed_out(error, Waiting::StartUp, 1, &[late])?;
        machine.store_u32(told, 1);
        machine.drain();
    }
    let config = Config {
        budget: Budget::UNLIMITED,
        ..Config::default()
    };
    let link = Mapped::start(machine, third)?;
    Ok(World::start(link, context.arena, config)?.barrier()?)
}

/// Tells `to` to go on, and waits to be told.
fn go<L: Link, S>(window: &Window<'_, u64, L, S>, to: Rank) -> Result<(), Failure> {
    Ok(window.put_notify(to, 0, &[], Tag(1))?)
}

fn await_go<L: Link, S>(window: &Window<'_, u64, L, S>, from: Rank) -> Result<(), Failure> {
    let mut request = window.expect(0..0, from, Tag(1), 1)?;
    request.start()?;
    request.wait()?;
    Ok(())
}

/// An origin that waits for a post, in its first put and in complete.
pub(super) fn post<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (origin, target) = (Rank::new(0), Rank::new(1));
    let (only_origin, only_target) = ([origin], [target]);
    let (origins, targets) = (world.group(&only_origin)?, world.group(&only_target)?);
    let window = world.allocate::<u64>(2)?;
    match world.rank().get() {
        0 => {
            let access = window.start(&targets)?;
            world.set_budget(SHORT);
            let Err(late) = access.put(target, 0, &[1]) else {
                return Err(NO_ERROR);
            };
            timed_out(late, Waiting::Post, 1, &[target])?;
            world.set_budget(Budget::UNLIMITED);
            go(&window, target)?;
            access.put(target, 0, &[2])?;
            access.complete()?;

            // Nothing was accessed in the second epoch: its complete is what waits.
            let access = window.start(&targets)?;
            world.set_budget(SHORT);
            let Err(late) = access.complete() else {
                return Err(NO_ERROR);
            };
            timed_out(late.error, Waiting::Post, 1, &[target])?;
            let still_open = window.start(&targets).err();
            check("still open", still_open == Some(Error::EpochOpen), true)?;
            world.set_budget(Budget::UNLIMITED);
            go(&window, target)?;
            late.handle.go_on()?;
        }
        1 => {
            world.set_budget(Budget::UNLIMITED);
            for _ in 0..2 {
                await_go(&window, origin)?;
                window.post(&origins)?.wait()?;
                check("put once", window.local().get(0)?, 2_u64)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// An origin whose first target has posted and whose second has not: the second is named, and going on clears its bit
/// too.
pub(super) fn second_post<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let [origin, early, late] = [0, 1, 2].map(Rank::new);
    let (only_origin, both) = ([origin], [early, late]);
    let (origins, targets) = (world.group(&only_origin)?, world.group(&both)?);
    let window = world.allocate::<u64>(1)?;
    world.set_budget(Budget::UNLIMITED);
    for epoch in 1..=2_u64 {
        match world.rank().get() {
            0 => {
                let access = window.start(&targets)?;
                access.put(early, 0, &[epoch])?;
                world.set_budget(SHORT);
                let Err(closed) = access.put(late, 0, &[epoch]) else {
                    return Err(NO_ERROR);
                };
                timed_out(closed, Waiting::Post, 1, &[late])?;
                let Err(stopped) = access.complete() else {
                    return Err(NO_ERROR);
                };
                timed_out(stopped.error, Waiting::Post, 1, &[late])?;
                world.set_budget(Budget::UNLIMITED);
                go(&window, late)?;
                stopped.handle.go_on()?;
            }
            1 => {
                window.post(&origins)?.wait()?;
                check("put", window.local().get(0)?, epoch)?;
            }
            2 => {
                await_go(&window, origin)?;
                window.post(&origins)?.wait()?;
                check("no put", window.local().get(0)?, 0_u64)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A target that waits for its origins.
pub(super) fn wait<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (target, origin) = (Rank::new(0), Rank::new(1));
    let (only_target, only_origin) = ([target], [origin]);
    let (targets, origins) = (world.group(&only_target)?, world.group(&only_origin)?);
    let window = world.allocate::<u64>(2)?;
    match world.rank().get() {
        0 => {
            let exposure = window.post(&origins)?;
            world.set_budget(SHORT);
            let Err(late) = exposure.wait() else {
                return Err(NO_ERROR);
            };
            timed_out(late.error, Waiting::Completion, 1, &[origin])?;
            let still_open = window.local().set(0, 1).err();
            check("still exposed", still_open == Some(Error::Exposed), true)?;
            world.set_budget(Budget::UNLIMITED);
            go(&window, origin)?;
            late.handle.wait()?;
            check("put", window.local().get(1)?, 7_u64)
        }
        1 => {
            world.set_budget(Budget::UNLIMITED);
            await_go(&window, target)?;
            let access = window.start(&targets)?;
            access.put(target, 1, &[7])?;
            Ok(access.complete()?)
        }
        _ => Ok(()),
    }
}

/// A request that is answered in part.
pub(super) fn request<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (here, there) = (Rank::new(0), Rank::new(1));
    let window = world.allocate::<u64>(2)?;
    match world.rank().get() {
        0 => {
            let mut request = window.expect(1..2, there, Tag(4), 20)?;
            request.start()?;
            world.set_budget(Budget::UNLIMITED);
            await_go(&window, there)?; // behind the first
            world.set_budget(SHORT);
            let Err(late) = request.wait() else {
                return Err(NO_ERROR);
            };
            timed_out(late, Waiting::Notification, 19, &[there])?;
            world.set_budget(Budget::UNLIMITED);
            go(&window, there)?;
            request.wait()?;
            check("put", window.local().get(1)?, 9_u64)
        }
        1 => {
            world.set_budget(Budget::UNLIMITED);
            window.put_notify(here, 1, &[8], Tag(4))?;
            go(&window, here)?;
            await_go(&window, here)?;
            for _ in 0..18 {
                window.put_notify(here, 1, &[8], Tag(4))?;
            }
            Ok(window.put_notify(here, 1, &[9], Tag(4))?)
        }
        _ => Ok(()),
    }
}

/// A barrier that the others enter later is gone on with, not begun anew. Who is waited for in the second round is
/// named there.
pub(super) fn barrier<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let window = world.allocate::<u64>(1)?;
    let (me, first) = (world.rank(), Rank::new(0));
    for _ in 0..2 {
        if me == first {
            world.set_budget(SHORT);
            let Err(late) = world.barrier() else {
                return Err(NO_ERROR);
            };
            let from = Rank::new(world.size() - 1);
            timed_out(late, Waiting::Collective, 1, &[from])?;
            world.set_budget(Budget::UNLIMITED);
            go(&window, from)?;
            if world.size() > 2 {
                world.set_budget(SHORT);
                let second = loop {
                    match world.barrier() {
                        Ok(()) => return Err(NO_ERROR),
                        Err(Error::Timeout(late)) if late.missing.ranks().eq([from]) => {}
                        Err(late) => break late,
                    }
                };
                let from = Rank::new(world.size() - 2);
                timed_out(second, Waiting::Collective, 1, &[from])?;
                world.set_budget(Budget::UNLIMITED);
            }
            for rank in 1..from.get() {
                go(&window, Rank::new(rank))?;
            }
        } else {
            world.set_budget(Budget::UNLIMITED);
            await_go(&window, first)?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// A sender whose target takes nothing from its ring.
pub(super) fn ring_space<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    const ATTEMPTS: u64 = 1000;
    let (sender, target) = (Rank::new(0), Rank::new(1));
    let window = world.allocate::<u64>(1)?;
    let (key, _) = world.link().scratch();
    match world.rank().get() {
        0 => {
            world.set_budget(SHORT);
            let mut sent = 0;
            let late = loop {
                if sent == ATTEMPTS {
                    return Err(NO_ERROR);
                }
                match window.put_notify(target, 0, &[sent + 1], Tag(2)) {
                    Ok(()) => sent += 1,
                    Err(error) => break error,
                }
            };
            timed_out(late, Waiting::RingSpace, 1, &[target])?;
            // Past the ring: tells how many were sent, which also says "go on".
            world.set_budget(Budget::UNLIMITED);
            let put = world.link().put(target, key, 0, &sent.to_le_bytes());
            put?;
            world.link().fence()?;
            world.link().signal(target, SPARE, 1)?;
            Ok(window.put_notify(target, 0, &[sent + 1], Tag(2))?)
        }
        1 => {
            while !world.link().reached(SPARE, 1)? {
                world.link().relax();
            }
            let mut bytes = [0; 8];
            let get = world.link().get(target, key, 0, &mut bytes, &Op::new());
            get?;
            let sent = u64::from_le_bytes(bytes);
            let mut request = window.expect(0..1, sender, Tag(2), 1)?;
            world.set_budget(Budget::UNLIMITED);
            for _ in 0..=sent {
                request.start()?;
                request.wait()?;
            }
            check("the last one", window.local().get(0)?, sent + 1)
        }
        _ => Ok(()),
    }
}

/// Repeats `call` while it times out.
fn again<L: Link, T>(
    world: &World<'_, L>,
    mut call: impl FnMut() -> Result<T, Error>,
) -> Result<T, Failure> {
    loop {
        match call() {
            Err(Error::Timeout(_)) => world.link().relax(),
            other => return Ok(other?),
        }
    }
}

/// Every call with a budget of nothing, repeated until it is done: each goes on where it stopped, and tells
/// nobody twice.
pub(super) fn every_call<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u64>(usize::from(size))?;
    let mut buffer = [Rank::new(0); 64];
    for (place, rank) in buffer.iter_mut().zip(0..size) {
        *place = Rank::new(rank);
    }
    let all = world.group(&buffer[..usize::from(size)])?;
    for epoch in 1..=2_u64 {
        world.set_budget(Budget::microseconds(0));
        let value = |rank: Rank| u64::from(rank.get()) * 10 + epoch;
        again(world, || {
            world.allgather_with(value(me), |rank, element| {
                assert_eq!(element, value(rank));
            })
        })?;
        let mut posting = window.post(&all);
        let mut exposure = loop {
            match posting {
                Ok(exposure) => break exposure,
                Err(late) => {
                    check_timeout(late.error)?;
                    world.link().relax();
                    posting = late.handle.go_on();
                }
            }
        };
        let access = window.start(&all)?;
        for &target in all.ranks() {
            again(world, || access.put(target, me.index(), &[value(me)]))?;
        }
        let mut completing = access.complete();
        while let Err(late) = completing {
            check_timeout(late.error)?;
            world.link().relax();
            completing = late.handle.go_on();
        }
        while let Err(late) = exposure.wait() {
            check_timeout(late.error)?;
            world.link().relax();
            exposure = late.handle;
        }
        for &origin in all.ranks() {
            check("put", window.local().get(origin.index())?, value(origin))?;
        }
        again(world, || world.barrier())?;
    }
    world.set_budget(Budget::UNLIMITED);
    Ok(world.barrier()?)
}

fn check_timeout(error: Error) -> Result<(), Failure> {
    match error {
        Error::Timeout(_) => Ok(()),
        other => Err(other.into()),
    }
}

/// Takes `of`'s lock, as a core does that is slow to give it back.
fn take<M: TestAndSet + Relax>(machine: &M, of: Rank) -> Held<'_, M> {
    loop {
        if let Some(held) = machine.try_lock(CoreId::new(of.get())) {
            return held;
        }
        machine.relax(&[]);
    }
}

/// A post that stops halfway, at an origin's lock. Going on tells only the rest: the first origin, whose epoch is
/// over by then, is not let in a second time.
pub(super) fn rest_of_post<P: MachinePlatform>(
    context: &mut Context<'_, P>,
) -> Result<(), Failure> {
    let machine = context.machine.clone();
    let world = join(context)?;
    let window = world.allocate_with::<u64, MatchVector<'_>>(3, ())?;
    let [target, early, late] = [0, 1, 2].map(Rank::new);
    let (both, only_early, only_target) = ([early, late], [early], [target]);
    let (both, only_early) = (world.group(&both)?, world.group(&only_early)?);
    let targets = world.group(&only_target)?;
    match world.rank().get() {
        0 => {
            let held = take(&machine, late);
            world.set_budget(SHORT);
            let Err(stopped) = window.post(&both) else {
                return Err(NO_ERROR);
            };
            timed_out(stopped.error, Waiting::Lock, 1, &[late])?;
            world.set_budget(Budget::UNLIMITED);
            await_go(&window, early)?;
            drop(held);
            stopped.handle.go_on()?.wait()?;
            check("early's put", window.local().get(1)?, 10_u64)?;
            check("late's put", window.local().get(2)?, 20_u64)?;
            go(&window, early)?;
            await_go(&window, early)?;
            window.post(&only_early)?.wait()?;
            check("early's second put", window.local().get(1)?, 11_u64)
        }
        1 => {
            world.set_budget(Budget::UNLIMITED);
            let access = window.start(&targets)?;
            access.put(target, 1, &[10])?;
            access.complete()?;
            go(&window, target)?;
            await_go(&window, target)?;
            let access = window.start(&targets)?;
            world.set_budget(SHORT);
            let Err(closed) = access.put(target, 1, &[11]) else {
                return Err(NO_ERROR);
            };
            timed_out(closed, Waiting::Post, 1, &[target])?;
            world.set_budget(Budget::UNLIMITED);
            go(&window, target)?;
            access.put(target, 1, &[11])?;
            Ok(access.complete()?)
        }
        2 => {
            world.set_budget(Budget::UNLIMITED);
            let access = window.start(&targets)?;
            access.put(target, 2, &[20])?;
            Ok(access.complete()?)
        }
        _ => Ok(()),
    }
}

/// A complete that stops halfway, at a target's lock. Going on counts only the rest down: the first target still
/// waits for its other origin.
pub(super) fn rest_of_complete<P: MachinePlatform>(
    context: &mut Context<'_, P>,
) -> Result<(), Failure> {
    let machine = context.machine.clone();
    let world = join(context)?;
    let window = world.allocate_with::<u64, MatchVector<'_>>(3, ())?;
    let [origin, early, late] = [0, 1, 2].map(Rank::new);
    let (targets, origins) = ([early, late], [origin, late]);
    let (only_early, only_origin) = ([early], [origin]);
    let (targets, origins) = (world.group(&targets)?, world.group(&origins)?);
    let (only_early, only_origin) = (world.group(&only_early)?, world.group(&only_origin)?);
    world.set_budget(Budget::UNLIMITED);
    match world.rank().get() {
        0 => {
            world.barrier()?; // all posts are made
            let access = window.start(&targets)?;
            access.put(early, 0, &[10])?;
            access.put(late, 0, &[20])?;
            let held = take(&machine, late);
            world.set_budget(SHORT);
            let Err(stopped) = access.complete() else {
                return Err(NO_ERROR);
            };
            timed_out(stopped.error, Waiting::Lock, 1, &[late])?;
            drop(held);
            world.set_budget(Budget::UNLIMITED);
            stopped.handle.go_on()?;
            go(&window, early)
        }
        1 => {
            let exposure = window.post(&origins)?;
            world.barrier()?;
            await_go(&window, origin)?;
            world.set_budget(SHORT);
            let Err(open) = exposure.wait() else {
                return Err(NO_ERROR);
            };
            // Which of the two it is, a counter does not tell.
            timed_out(open.error, Waiting::Completion, 1, origins.ranks())?;
            world.set_budget(Budget::UNLIMITED);
            go(&window, late)?;
            open.handle.wait()?;
            check("origin's put", window.local().get(0)?, 10_u64)?;
            check("late's put", window.local().get(2)?, 12_u64)
        }
        2 => {
            let exposure = window.post(&only_origin)?;
            let access = window.start(&only_early)?;
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

/// A lock that is not freed: its owner is named.
pub(super) fn lock<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result<(), Failure> {
    let machine = context.machine.clone();
    let world = join(context)?;
    let window = world.allocate::<u64>(1)?;
    let (me, target) = (world.rank(), Rank::new(1));
    if me.get() == 0 {
        let held = take(&machine, target);
        world.set_budget(SHORT);
        let late = window.put_notify(target, 0, &[1], Tag(1));
        drop(held);
        let Err(late) = late else {
            return Err(NO_ERROR);
        };
        timed_out(late, Waiting::Lock, 1, &[target])?;
        world.set_budget(Budget::UNLIMITED);
        go(&window, target)?;
    } else if me == target {
        world.set_budget(Budget::UNLIMITED);
        await_go(&window, Rank::new(0))?;
        check("nothing was sent before", window.local().get(0)?, 0_u64)?;
    }
    Ok(())
}
