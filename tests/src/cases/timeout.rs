//! Budgets that run out: who is missing is named, and the call can be repeated.
//!
//! One rank is made to wait for what its peer does only later, when it is told to go on.

use bytemuck::Pod;
use flagpost::{
    Budget, Config, Error, Link, Missing, Rank, Tag, Unfinished, Waiting, Window, World, rma,
};
use flagpost_hal::{Coherence, CoreId, Held, Region, Relax, TestAndSet, Topology, UncachedMemory};
use flagpost_link::{Access as _, LocalMemory as _, Op, Place, Slot, Waiting as _};

use super::world::NO_ERROR;
use super::{insist, join, join_shared, other};
use crate::{Context, MachinePlatform, Result, context::check};

/// A slot that no collective of the kernel uses.
const SPARE: Slot = Slot(31);

pub(super) const SHORT: Budget = Budget::microseconds(20);

/// One poll.
pub(super) const NONE: Budget = Budget::microseconds(0);

/// Checks a timeout: what was waited for, how many are missing, and who is named.
pub(super) fn timed_out(error: Error, waiting: Waiting, count: u32, named: &[Rank]) -> Result {
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

/// `attempt`, which had a short budget. While it ends for lack of an answer, it continues: beside
/// other work a network may take longer than one budget to answer for an earlier step.
pub(super) fn answered<T, H>(
    attempt: Result<T, Unfinished<H>>,
    go_on: impl FnMut(H, Budget) -> Result<T, Unfinished<H>>,
) -> Result<T, Unfinished<H>> {
    unless_early(attempt, |late| late == Waiting::Answer, go_on)
}

/// [`answered`], where more is too early to tell than [`Waiting::Answer`].
pub(super) fn unless_early<T, H>(
    mut attempt: Result<T, Unfinished<H>>,
    is_early: impl Fn(Waiting) -> bool,
    mut go_on: impl FnMut(H, Budget) -> Result<T, Unfinished<H>>,
) -> Result<T, Unfinished<H>> {
    /// Some 10 seconds of short budgets.
    const UNANSWERED: usize = 500_000;
    for _ in 0..UNANSWERED {
        attempt = match attempt {
            Err(Unfinished {
                handle,
                error: Error::Timeout(late),
            }) if is_early(late.waiting) => go_on(handle, SHORT),
            other => return other,
        };
    }
    attempt
}

/// `call` with a short budget, as [`answered`] does.
pub(super) fn short<L: Link, T>(
    world: &World<'_, L>,
    mut call: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    shortly(|budget| world.within(budget, &mut call))
}

/// `call` with a short budget, as [`answered`] does. It continues when it is called again.
pub(super) fn shortly<T>(mut call: impl FnMut(Budget) -> Result<T, Error>) -> Result<T, Error> {
    let mut call = |(), budget| call(budget).map_err(|error| Unfinished { handle: (), error });
    answered(call((), SHORT), call).map_err(|late| late.error)
}

/// A peer that has not started is named. It is told to go on past the link, by a word of an earlier
/// world.
pub(super) fn start<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let session = |number| other(context.session, number);
    let (second, third) = (session(1), session(2));
    let (me, late) = (machine.core().get(), Rank::new(1));
    let told = {
        let world = join(context)?;
        let line = <P::Link as Link>::LINE; // What a key counts, where offsets have 64 bits.
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
        let unit = if usize::BITS > 32 { line } else { 1 };
        Region::memory(CoreId::new(late.get())).at(key.get() as usize * unit)
    };
    if me == 0 {
        let link = P::link(&machine, second, None)?;
        let config = Config::default();
        // One look, and then more: what has not come is waited for by the same handle.
        let starting = World::starting(link, context.arena, config)?;
        for budget in [Budget::ZERO, SHORT] {
            let Err(error) = starting.meet_within(budget) else {
                return Err(NO_ERROR);
            };
            timed_out(error, Waiting::StartUp, 1, &[late])?;
        }
        drop(starting);
        machine.store_u32(told, 1);
        machine.drain();
    }
    let link = P::link(&machine, third, None)?;
    Ok(World::start(link, context.arena, Config::default())?.barrier()?)
}

/// Tells `to` to go on, and waits to be told.
pub(super) fn go<T: Pod, L: Link, S>(window: &Window<'_, T, L, S>, to: Rank) -> Result {
    Ok(window.put_notify(to, 0, &[], Tag(1))?)
}

pub(super) fn await_go<T: Pod, L: Link, S>(window: &Window<'_, T, L, S>, from: Rank) -> Result {
    let mut request = window.expect(0..0, Tag(1))?.from(from)?;
    request.start()?;
    request.wait()?;
    Ok(())
}

/// A request that is answered in part.
pub(super) fn request<L: Link>(world: &World<'_, L>) -> Result {
    let (here, there) = (Rank::new(0), Rank::new(1));
    let window = world.allocate::<u64>(2)?;
    match world.rank().get() {
        0 => {
            let mut request = window.expect(1..2, Tag(4))?.from(there)?.times(20)?;
            request.start()?;
            await_go(&window, there)?; // behind the first
            let Err(late) = request.wait_within(SHORT) else {
                return Err(NO_ERROR);
            };
            timed_out(late, Waiting::Notification, 19, &[there])?;
            go(&window, there)?;
            request.wait()?;
            check("put", window.local().get(1)?, 9_u64)
        }
        1 => {
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

/// A barrier that the others enter later is gone on with, not begun anew. Who is waited for in the
/// second round is named there.
pub(super) fn barrier<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u64>(1)?;
    let (me, first) = (world.rank(), Rank::new(0));
    for _ in 0..2 {
        if me == first {
            let Err(late) = short(world, || world.barrier()) else {
                return Err(NO_ERROR);
            };
            let from = Rank::new(world.size() - 1);
            timed_out(late, Waiting::Collective, 1, &[from])?;
            go(&window, from)?;
            if world.size() > 2 {
                let second = loop {
                    match short(world, || world.barrier()) {
                        Ok(()) => return Err(NO_ERROR),
                        Err(Error::Timeout(late)) if late.missing.ranks().eq([from]) => {}
                        Err(late) => break late,
                    }
                };
                let from = Rank::new(world.size() - 2);
                timed_out(second, Waiting::Collective, 1, &[from])?;
            }
            for rank in 1..from.get() {
                go(&window, Rank::new(rank))?;
            }
        } else {
            await_go(&window, first)?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// A sender whose target takes nothing from its ring.
pub(super) fn ring_space<L: Link>(world: &World<'_, L>) -> Result {
    const ATTEMPTS: u64 = 1000;
    let (sender, target) = (Rank::new(0), Rank::new(1));
    let window = world.allocate::<u64>(1)?;
    let (key, _) = world.link().scratch();
    match world.rank().get() {
        0 => {
            let mut sent = 0;
            let late = loop {
                if sent == ATTEMPTS {
                    return Err(NO_ERROR);
                }
                let data = [sent + 1];
                let put = window.to(target, 0).notify(Tag(2)).put(&data)?;
                match answered(put.wait_within(SHORT), rma::Request::wait_within) {
                    Ok(()) => sent += 1,
                    Err(late) => {
                        check("nothing was sent", late.handle.has_begun(), false)?;
                        break late.error;
                    }
                }
            };
            timed_out(late, Waiting::RingSpace, 1, &[target])?;
            // Past the ring: tells how many were sent, which also says "go on".
            let link = world.link();
            insist(link, || link.put(target, key, 0, &sent.to_le_bytes()))?;
            insist(link, || link.fence())?;
            insist(link, || link.signal(target, SPARE, 1))?;
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
            let mut request = window.expect(0..1, Tag(2))?.from(sender)?;
            for _ in 0..=sent {
                request.start()?;
                request.wait()?;
            }
            check("the last one", window.local().get(0)?, sent + 1)
        }
        _ => Ok(()),
    }
}

/// Takes `of`'s lock, as a core does that is slow to give it back.
pub(super) fn take<M: TestAndSet + Relax>(machine: &M, of: Rank) -> Held<'_, M> {
    loop {
        if let Some(held) = machine.try_lock(CoreId::new(of.get())) {
            return held;
        }
        machine.relax(&[]);
    }
}

/// A lock that is not freed: its owner is named.
pub(super) fn lock<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let world = join_shared(context)?;
    let window = world.allocate::<u64>(1)?;
    let (me, target) = (world.rank(), Rank::new(1));
    if me.get() == 0 {
        let held = take(&machine, target);
        let put = window.to(target, 0).notify(Tag(1)).put(&[1])?;
        let late = put.wait_within(SHORT);
        drop(held);
        let Err(late) = late else {
            return Err(NO_ERROR);
        };
        timed_out(late.error, Waiting::Lock, 1, &[target])?;
        go(&window, target)?;
    } else if me == target {
        await_go(&window, Rank::new(0))?;
        check("nothing was sent before", window.local().get(0)?, 0_u64)?;
    }
    Ok(())
}
