//! Programs small enough to be tried in every schedule: few words, one or two epochs, a ring of few
//! entries.
//!
//! Each says `go` once its world and window are there, so that a search begins where it becomes
//! interesting ([`Platform::go`]). Elsewhere they are cases like the others.
//!
//! Windows hold words of 32 bits, two of which share a line with one that only its owner stores: it
//! shows whether a line is carried over its neighbours.

use flagpost::{
    Config, Link, Rank, Rma as _, Tag, Window, World,
    epoch::{Strategy, pscw::Access},
    rma::Operation,
};

use flagpost_link::Refusal;

use super::steps::{Signals, finds};
use crate::{Context, Failure, Platform, Result, Ring, context::check};

/// The notification rings: as few entries as make a full ring within two puts.
pub(super) const RING: Ring = Ring::Pairs { entries: 2 };

/// Words of the window.
pub(super) const WORDS: usize = 3;

/// Joins the world of a small case, with rings of one's choice; one for all where the world is too
/// large for a ring per pair.
pub(super) fn join<'c, P: Platform>(
    context: &'c mut Context<'_, P>,
    ring: Ring,
) -> Result<World<'c, P::Link>> {
    let with = |ring| P::link(&context.machine, context.session, Some(ring));
    let link = match with(ring) {
        Err(Refusal::BadRing { entries }) => with(Ring::Shared { entries })?,
        other => other?,
    };
    let config = Config { unexpected: 2 };
    Ok(World::start(link, context.arena, config)?)
}

/// The window of a small case in whose epochs so many posts are under way to a rank.
pub(super) fn window<'w, L: Link, S: Signals<'w, L>>(
    world: &'w World<'w, L>,
    posts: u16,
) -> Result<Window<'w, u32, L, S>> {
    Ok(world.allocate_with(WORDS, S::posts(posts))?)
}

const fn rank(number: u16) -> Rank {
    Rank::new(number)
}

/// What rank `from` puts in epoch `epoch`.
fn value(from: Rank, epoch: u32) -> u32 {
    0x100 * (u32::from(from.get()) + 1) + epoch + 1
}

/// The own word, dirty in the cache when the window is exposed.
const OWN: usize = 2;

/// An exposure epoch to `origins`, each of which puts the word of its place in the group.
fn expose<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u32, L, S>,
    origins: &[Rank],
    epoch: u32,
) -> Result {
    let world = window.world();
    window.local().set(OWN, value(world.rank(), epoch))?;
    window.post(origins)?.wait()?;
    settled(window, origins, epoch)
}

/// Checks what `origins` have put, and that the own word is as it was.
fn settled<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u32, L, S>,
    origins: &[Rank],
    epoch: u32,
) -> Result {
    let world = window.world();
    for (index, &origin) in origins.iter().enumerate() {
        check("put", window.local().get(index)?, value(origin, epoch))?;
    }
    check(
        "own word",
        window.local().get(OWN)?,
        value(world.rank(), epoch),
    )
}

/// An access epoch to `targets`: one word each, at `index`.
fn access<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u32, L, S>,
    targets: &[Rank],
    index: usize,
    epoch: u32,
) -> Result {
    let world = window.world();
    let access = window.start(targets)?;
    for &target in targets {
        access.put(target, index, &[value(world.rank(), epoch)])?;
    }
    Ok(access.complete()?)
}

/// Rank 0 puts to all others.
pub(super) fn fan_out<'w, L: Link, S: Strategy<'w, L>, const EPOCHS: u32>(
    window: &Window<'w, u32, L, S>,
) -> Result {
    let world = window.world();
    let targets = [rank(1), rank(2), rank(3)];
    let targets = targets.get(..usize::from(world.size()) - 1);
    let targets = targets.ok_or(Failure::Argument("small cases take up to 4 cores"))?;
    for epoch in 0..EPOCHS {
        match world.rank().get() {
            0 => access(window, targets, 0, epoch)?,
            _ => expose(window, &[rank(0)], epoch)?,
        }
    }
    Ok(())
}

/// Ranks 1 and 2 put to rank 0, into one line.
pub(super) fn fan_in<'w, L: Link, S: Strategy<'w, L>, const EPOCHS: u32>(
    window: &Window<'w, u32, L, S>,
) -> Result {
    let world = window.world();
    for epoch in 0..EPOCHS {
        match world.rank().get() {
            0 => expose(window, &[rank(1), rank(2)], epoch)?,
            own => access(window, &[rank(0)], usize::from(own) - 1, epoch)?,
        }
    }
    Ok(())
}

/// Rank 0 has an epoch with rank 1, then one with rank 2, who posted long before.
pub(super) fn switch<'w, L: Link, S: Strategy<'w, L>>(window: &Window<'w, u32, L, S>) -> Result {
    let world = window.world();
    match world.rank().get() {
        0 => {
            access(window, &[rank(1)], 0, 0)?;
            access(window, &[rank(2)], 0, 0)
        }
        _ => expose(window, &[rank(0)], 0),
    }
}

/// Every rank is origin of the next and target of the previous one.
pub(super) fn ring<'w, L: Link, S: Strategy<'w, L>, const EPOCHS: u32>(
    window: &Window<'w, u32, L, S>,
) -> Result {
    let world = window.world();
    let (me, size) = (world.rank(), world.size());
    let (next, prev) = ([me.next(size)], [me.prev(size)]);
    for epoch in 0..EPOCHS {
        window.local().set(OWN, value(me, epoch))?;
        let exposure = window.post(prev)?;
        access(window, &next, 0, epoch)?;
        exposure.wait()?;
        settled(window, &prev, epoch)?;
    }
    Ok(())
}

/// Rank 1 exposes a word and stores to another line meanwhile, which is not written back nor
/// invalidated: rank 0 puts to the word.
pub(super) fn post_range<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u32, L, S>,
) -> Result {
    let world = window.world();
    if world.rank() == rank(0) {
        return access(window, &[rank(1)], 0, 0);
    }
    let (local, other) = (window.local(), window.len() - 1);
    local.set(OWN, 5)?;
    let origins = [rank(0)];
    let exposure = window.post_range(0..1, origins)?;
    local.set(other, 6)?;
    exposure.wait()?;
    check("put", local.get(0)?, value(rank(0), 0))?;
    check("own word beside it", local.get(OWN)?, 5_u32)?;
    check("own word of the other line", local.get(other)?, 6_u32)
}

/// Rank 0 gets what rank 1 has in its cache when it posts.
pub(super) fn get<'w, L: Link, S: Strategy<'w, L>>(window: &Window<'w, u32, L, S>) -> Result {
    let world = window.world();
    if world.rank() == rank(1) {
        window.local().set(0, 7)?;
        return Ok(window.post([rank(0)])?.wait()?);
    }
    let targets = [rank(1)];
    let access = window.start(targets)?;
    finds("target's word", &access, rank(1), 0, [7])?;
    Ok(access.complete()?)
}

/// Rank 0 gets notified puts from all others: words of one line.
pub(super) fn notify<'w, L: Link, S: Strategy<'w, L>, const PUTS: u32>(
    window: &Window<'w, u32, L, S>,
) -> Result {
    let world = window.world();
    let own = world.rank();
    let tag = Tag(u32::from(own.get()));
    if own != rank(0) {
        for put in 0..PUTS {
            let index = usize::from(own.get() - 1) & 1;
            window.put_notify(rank(0), index, &[value(own, put)], tag)?;
        }
        return Ok(());
    }
    for source in 1..world.size() {
        let source = rank(source);
        let index = usize::from(source.get() - 1) & 1;
        let tag = Tag(u32::from(source.get()));
        let mut request = window
            .expect(index..index + 1, tag)?
            .from(source)?
            .times(PUTS as u16)?;
        request.start()?;
        check("source", request.wait()?.source.get(), source.get())?;
        check("put", window.local().get(index)?, value(source, PUTS - 1))?;
    }
    Ok(())
}

/// A word goes to rank 1 and comes back, notified.
pub(super) fn ping_pong<'w, L: Link, S: Strategy<'w, L>>(window: &Window<'w, u32, L, S>) -> Result {
    let world = window.world();
    let (me, size) = (world.rank(), world.size());
    let peer = me.next(size);
    let mut request = window.expect(0..1, Tag(1))?.from(peer)?;
    if me == rank(0) {
        window.put_notify(peer, 0, &[5], Tag(1))?;
    }
    request.start()?;
    request.wait()?;
    check("word", window.local().get(0)?, 5_u32)?;
    if me != rank(0) {
        window.put_notify(peer, 0, &[5], Tag(1))?;
    }
    Ok(())
}

/// Two barriers: nobody leaves one that somebody has not entered.
pub(super) fn barrier<'w, L: Link, S: Strategy<'w, L>>(window: &Window<'w, u32, L, S>) -> Result {
    let world = window.world();
    world.barrier()?;
    Ok(world.barrier()?)
}

/// The start of a world, and nothing else.
pub(super) fn start<P: Platform>(context: &mut Context<'_, P>) -> Result {
    P::go(&context.machine);
    let link = P::link(
        &context.machine,
        context.session,
        Some(Ring::Pairs { entries: 1 }),
    )?;
    World::start(link, context.arena, Config::default())?;
    Ok(())
}

/// An epoch in which both ranks combine with words of rank 0. It is exposed to itself, too.
fn combine<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u32, L, S>,
    run: impl FnOnce(&Access<'_, 'w, u32, L, S>) -> Result,
) -> Result {
    let world = window.world();
    let (me, both, target) = (world.rank(), [rank(0), rank(1)], [rank(0)]);
    window.local().set(OWN, value(me, 0))?;
    let exposure = match me.get() {
        0 => Some(window.post(both)?),
        _ => None,
    };
    let access = window.start(target)?;
    run(&access)?;
    access.complete()?;
    if let Some(exposure) = exposure {
        exposure.wait()?;
    }
    check("own word", window.local().get(OWN)?, value(me, 0))
}

/// Both ranks add to both words of a cell.
pub(super) fn accumulate<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u32, L, S>,
) -> Result {
    let world = window.world();
    combine(window, |access| {
        let own = value(world.rank(), 0);
        Ok(access.accumulate(rank(0), 0, &[own, 1], Operation::SUM)?)
    })?;
    if world.rank() == rank(0) {
        let sum = value(rank(0), 0) + value(rank(1), 0);
        check("sum", window.local().get(0)?, sum)?;
        check("its neighbour", window.local().get(1)?, 2_u32)?;
    }
    Ok(())
}

/// Both ranks draw a number.
pub(super) fn fetch<'w, L: Link, S: Strategy<'w, L>>(window: &Window<'w, u32, L, S>) -> Result {
    let world = window.world();
    combine(window, |access| {
        let drawn = access.fetch_and_op(rank(0), 0, 1, Operation::SUM)?;
        // Who draws 0 adds nothing: the sum tells both numbers.
        Ok(access.accumulate(rank(0), 1, &[drawn], Operation::SUM)?)
    })?;
    if world.rank() == rank(0) {
        check("next", window.local().get(0)?, 2_u32)?;
        check("drawn", window.local().get(1)?, 1_u32)?;
    }
    Ok(())
}

/// Both ranks want the same word.
pub(super) fn compare_swap<'w, L: Link, S: Strategy<'w, L>>(
    window: &Window<'w, u32, L, S>,
) -> Result {
    let world = window.world();
    let me = world.rank();
    let own = value(me, 0);
    let mut found = own;
    combine(window, |access| {
        found = access.compare_and_swap(rank(0), 0, 0, own)?;
        Ok(())
    })?;
    let other = value(rank(1 - me.get()), 0);
    check(
        "nothing, or the other's",
        found == 0 || found == other,
        true,
    )?;
    if me == rank(0) {
        let left = if found == 0 { own } else { other };
        check("who was first", window.local().get(0)?, left)?;
    }
    Ok(())
}
