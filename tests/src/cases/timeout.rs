//! Budgets that run out: who is missing is named, and the call can be repeated.
//!
//! One rank is made to wait for what its peer does only later, when it is told to go on.

use bytemuck::Pod;
use flagpost::{Budget, Config, Error, Link, Rank, Tag, Waiting, Window, World};
use flagpost_hal::{Coherence, CoreId, Held, Region, Relax, TestAndSet, Topology, UncachedMemory};
use flagpost_link::{Access as _, LocalMemory as _, Op, Place, Slot, Waiting as _};

use super::handles::{SHORT, answered, is_late, short, timed_out};
use super::steps::{NO_ERROR, hear};
use super::{insist, join, join_shared, other};
use crate::{Context, MachinePlatform, Result, context::check};

/// A slot that no collective of the kernel uses.
pub(super) const SPARE: Slot = Slot(31);

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
            timed_out(starting.meet_within(budget), Waiting::StartUp, 1, &[late])?;
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
    hear(window.expect(0..0, Tag(1))?.from(from)?)?;
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
            timed_out(
                request.wait_within(SHORT),
                Waiting::Notification,
                19,
                &[there],
            )?;
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
            let from = Rank::new(world.size() - 1);
            is_late(world, Waiting::Collective, from, || world.barrier())?;
            go(&window, from)?;
            if world.size() > 2 {
                let second = loop {
                    match short(world, || world.barrier()) {
                        Err(Error::Timeout(late)) if late.missing.ranks().eq([from]) => {}
                        other => break other,
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

/// Fills the ring of `target`, which takes nothing from it, by puts of `len` elements, 0 or 1, with
/// tag 2. Returns how many it took.
pub(super) fn fill<L: Link>(window: &Window<'_, u64, L>, target: Rank, len: usize) -> Result<u64> {
    const ATTEMPTS: u64 = 1000;
    for sent in 0..ATTEMPTS {
        let data = [sent + 1];
        let put = window.to(target, 0).notify(Tag(2)).put(&data[..len])?;
        if let Err(late) = answered(put) {
            check("nothing was sent", late.handle.has_begun(), false)?;
            timed_out::<(), _>(Err(late.error), Waiting::RingSpace, 1, &[target])?;
            return Ok(sent);
        }
    }
    Err(NO_ERROR)
}

/// Tells `target`, past its ring, how many were sent: that it goes on, too.
pub(super) fn say_sent<L: Link>(link: &L, target: Rank, sent: u64) -> Result {
    let (key, _) = link.scratch();
    insist(link, || link.put(target, key, 0, &sent.to_le_bytes()))?;
    insist(link, || link.fence())?;
    insist(link, || link.signal(target, SPARE, 1))
}

/// Waits to be told by [`say_sent`].
pub(super) fn hear_sent<L: Link>(link: &L, me: Rank) -> Result<u64> {
    hear_signal(link)?;
    let mut bytes = [0; 8];
    link.get(me, link.scratch().0, 0, &mut bytes, &Op::new())?;
    Ok(u64::from_le_bytes(bytes))
}

/// Waits for a signal in [`SPARE`].
pub(super) fn hear_signal<L: Link>(link: &L) -> Result {
    while !link.reached(SPARE, 1)? {
        link.relax();
    }
    Ok(())
}

/// A sender whose target takes nothing from its ring.
pub(super) fn ring_space<L: Link>(world: &World<'_, L>) -> Result {
    let (sender, target) = (Rank::new(0), Rank::new(1));
    let window = world.allocate::<u64>(1)?;
    match world.rank().get() {
        0 => {
            let sent = fill(&window, target, 1)?;
            say_sent(world.link(), target, sent)?;
            Ok(window.put_notify(target, 0, &[sent + 1], Tag(2))?)
        }
        1 => {
            let sent = hear_sent(world.link(), target)?;
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
        timed_out(late, Waiting::Lock, 1, &[target])?;
        go(&window, target)?;
    } else if me == target {
        await_go(&window, Rank::new(0))?;
        check("nothing was sent before", window.local().get(0)?, 0_u64)?;
    }
    Ok(())
}
