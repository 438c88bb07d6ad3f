//! Start-up, groups and collectives.

use flagpost::{Config, Differs, Error, Link, Rank, Room, Starting, Tag, TagFilter, World};
use flagpost_hal::{CachedMemory, CoreId, Region, Relax, TestAndSet, Topology};
use flagpost_link::{
    Access as _, LocalMemory as _, Op, Refusal, Slot, Telling as _, Waiting as _, Wants,
};

use super::handles;
use super::steps::{NO_ERROR, differs, fails, hear, refused};
use super::{insist, join, join_as, other, timeout};
use crate::{Context, Failure, MachinePlatform, Result, Ring, context::check};

pub(super) fn start<L: Link>(world: &World<'_, L>) -> Result {
    check("rank below size", world.rank().get() < world.size(), true)?;
    check("windows", world.limits().windows, 64_u16)?;
    check("tags of at least 9 bits", world.limits().tag >= 511, true)
}

/// A second world in the same memory finds nothing of the first: no signal, no notification. It is
/// refused, and the first one goes on, if its session is the first one's.
pub(super) fn restart<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let (machine, session) = (context.machine.clone(), context.session);
    let again = || {
        let link = P::link(&machine, session, None);
        let refusal = Refusal::BadSession { session };
        refused("session", link, refusal.into())
    };
    {
        let first = join(context)?;
        let window = first.allocate::<u32>(1)?;
        for tag in 0..3 {
            window.put_notify(first.rank().next(first.size()), 0, &[tag], Tag(tag))?;
        }
        again()?;
        hear(window.expect(0..1, TagFilter::Any)?.times(3)?)?;
        for tag in 0..3 {
            window.put_notify(first.rank().next(first.size()), 0, &[tag], Tag(tag))?;
        }
        first.barrier()?;
    }
    let session = other(session, 1);
    let second = join_as(context, session, None)?;
    let window = second.allocate::<u32>(1)?;
    let mut any = window.expect(0..1, TagFilter::Any)?;
    any.start()?;
    check("nothing is left over", any.test()?.is_none(), true)?;
    second.barrier()?;
    window.put_notify(second.rank().next(second.size()), 0, &[77], Tag(9))?;
    check("the second world's tag", any.wait()?.tag.0, 9_u32)?;
    check("and data", window.local().get(0)?, 77_u32)
}

/// Every other rank has an image that was built otherwise: with rings of another size. No rank's
/// world starts, and each is told which rank differs.
pub(super) fn other_build<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let odd = context.machine.core().get() % 2;
    let entries = 2 << odd;
    let world = join_as(context, context.session, Some(Ring::Shared { entries })).map(drop);
    let first_other = Error::OtherBuild(Rank::new(1 - odd));
    match world {
        Err(Failure::Library(error)) if error == first_other => Ok(()),
        Err(other) => Err(other),
        Ok(()) => Err(NO_ERROR),
    }
}

/// Rank 0 has another `Config`. No rank's world starts, and each is told which rank differs: as
/// often as it asks. Of a part's world, too, where the larger one's is the same.
pub(super) fn other_config<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let (machine, session) = (context.machine.clone(), context.session);
    let odd = machine.core().get() == 0;
    let error = differs(Rank::new(odd.into()), Differs::Config);
    let config = Config {
        unexpected: if odd { 2 } else { 1 },
    };
    let link = P::link(&machine, session, None)?;
    let world = World::start(link, context.arena, config).map(drop);
    refused("a world of ranks that differ", world, error)?;
    let world = join_as(context, other(session, 1), None)?;
    let room = Room {
        bytes: 0,
        windows: 0,
    };
    let part = world.split(Some(0), 0, room)?;
    let mut words = [0; 2];
    let starting = World::starting(part.link().ok_or(NO_ERROR)?, &mut words, config)?;
    refused("a part", meet(&starting, &machine), error)?;
    refused("again", starting.meet_within(handles::NONE), error)?;
    drop(starting);
    Ok(part.free()?)
}

/// Calls in vain until all have met.
fn meet<L: Link>(starting: &Starting<'_, L>, machine: &impl Relax) -> Result<(), Error> {
    loop {
        match starting.meet_within(handles::NONE) {
            Err(Error::Timeout(_)) => machine.relax(&[]),
            met => return met,
        }
    }
}

/// A rank that has met the others in several steps finds the note of one that was faster. One that
/// waits finds none of a call of the session before.
pub(super) fn restarted_call<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    /// A rank that has timed out twice reads the note of the rank before.
    const ATTEMPTS: usize = 3;
    let (machine, session) = (context.machine.clone(), context.session);
    let root = Rank::new(0);
    {
        let link = P::link(&machine, session, None)?;
        let starting = World::starting(link, context.arena, Config::DEFAULT)?;
        meet(&starting, &machine)?;
        let first = starting.wait()?;
        for _ in 0..2 {
            first.broadcast(root, &mut [7])?;
        }
        first.barrier()?;
    }
    let world = join_as(context, other(session, 1), None)?;
    let window = world.allocate::<u32>(1)?;
    if world.rank() == root {
        timeout::await_go(&window, Rank::new(1))?;
    } else if world.rank() == Rank::new(1) {
        for _ in 0..ATTEMPTS {
            fails(
                world.within(handles::NONE, || world.broadcast(root, &mut [0, 0])),
                |error| matches!(error, Error::Timeout(_)),
            )?;
        }
        timeout::go(&window, root)?;
    }
    let mut two = if world.rank() == root { [8, 9] } else { [0, 0] };
    world.broadcast(root, &mut two)?;
    check("the second session's", two == [8, 9], true)
}

/// Rank 0 is reset alone, twice: it begins the next session while its peers are in the last one,
/// notify it, and wait for it. Nothing of that is in the next session, which they come to when they
/// have waited in vain.
pub(super) fn reset_alone<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let alone = Rank::new(0);
    for number in 0..3 {
        let session = match number {
            0 => context.session,
            _ => other(context.session, number),
        };
        let world = join_as(context, session, None)?;
        let (me, size) = (world.rank(), world.size());
        let window = world.allocate::<u32>(1)?;
        let mut told = window.expect(0..1, TagFilter::Any)?;
        told.start()?;
        world.barrier()?;
        window.put_notify(me.next(size), 0, &[number], Tag(number))?;
        let found = told.wait()?;
        check("of this session", found.tag.0, number)?;
        check("from the rank before", found.source == me.prev(size), true)?;
        check("with its data", window.local().get(0)?, number)?;
        world.barrier()?;
        if me == alone || number == 2 {
            continue;
        }
        let waited = world.within(handles::NONE, || {
            window.put_notify(alone, 0, &[77], Tag(99))?;
            world.barrier()
        });
        fails(waited, |error| matches!(error, Error::Timeout(_)))?;
    }
    Ok(())
}

/// Rank 0 is reset alone, and rank 1 puts into its memory in the last session and begins the next
/// one at once. Nothing of that comes after rank 0 is up in the next session.
pub(super) fn late_put<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let first = Rank::new(0);
    // Longer than a rank takes to start.
    let a_while = || (0..600).for_each(|_| machine.relax(&[]));
    let connect = |link: &P::Link, to| {
        while link.connect(to).is_err() {
            link.relax();
        }
    };
    let meet = |link: &P::Link| (0..link.size()).for_each(|to| connect(link, Rank::new(to)));

    let last = P::link(&machine, context.session, None)?;
    let (key, _) = last.scratch();
    meet(&last);
    match last.rank() {
        rank if rank == first => a_while(),
        rank if rank == Rank::new(1) => last.put(first, key, 0, &[1; 4])?,
        _ => (),
    }
    drop(last);

    let next = P::link(&machine, other(context.session, 1), None)?;
    if next.rank() == first {
        connect(&next, first);
        next.put(first, key, 0, &[2; 4])?;
        next.flush(None)?;
    }
    a_while();
    if next.rank() == first {
        a_while();
        let mut found = [0; 4];
        next.get(first, key, 0, &mut found, &Op::new())?;
        check("what is there", u32::from_le_bytes(found), 0x0202_0202_u32)?;
    }
    meet(&next);
    Ok(())
}

/// Peers that use a rank's lock and ring as soon as that rank says that it is up, before any
/// barrier.
pub(super) fn early_peers<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let link = P::link(&machine, context.session, None)?;
    let first = Rank::new(0);
    let me = u32::from(link.rank().get());
    while link.connect(first).is_err() {
        link.relax();
    }
    // The last word that is cleared.
    let signaled = Slot(31);
    if link.rank() == first {
        let mut sum = 0;
        for _ in 0..8 {
            machine.relax(&[]);
        }
        while !link.reached(signaled, 1)? {
            link.relax();
        }
        for _ in 1..link.size() {
            sum += loop {
                match link.progress(Wants::Any).map(|arrival| arrival.immediate) {
                    Some(immediate) => break immediate,
                    None => link.relax(),
                }
            };
        }
        let others = u32::from(link.size()) - 1;
        return check("one from each", sum, others * (others + 1) / 2);
    }
    if me == 1 {
        link.signal(first, signaled, 1)?;
    }
    let core = CoreId::new(first.get());
    let held = loop {
        match machine.try_lock(core) {
            Some(held) => break held,
            None => machine.relax(&[]),
        }
    };
    for _ in 0..8 {
        check("nobody frees it", machine.try_lock(core).is_none(), true)?;
    }
    drop(held);
    let (key, _) = link.scratch();
    loop {
        match link.put_immediate(first, (key, 0), &[], me, true, &Op::new()) {
            Err(refusal) if refusal.is_transient() => link.relax(),
            other => return Ok(other?),
        }
    }
}

/// Worlds put their words where an earlier program, and an earlier world, have left dirty lines in
/// their owner's cache.
pub(super) fn dirty_restart<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let own = Region::memory(machine.core());
    for line in 0..32 {
        machine.write(own.at(32 * line), &[0xFF; 8]);
    }
    {
        let first = join(context)?;
        let window = first.allocate::<u64>(8)?;
        window.local().copy_in(0, &[u64::MAX; 8])?;
        first.barrier()?;
    }
    let session = other(context.session, 1);
    let second = join_as(context, session, None)?;
    let (me, size) = (second.rank(), second.size());
    let (next, prev) = ([me.next(size)], [me.prev(size)]);
    let (targets, origins) = (second.group(&next)?, second.group(&prev)?);
    let empty = second.allocate::<u64>(0)?; // its match vector lies where the window was
    for _ in 0..4 {
        let exposure = empty.post(&origins)?;
        empty.start(&targets)?.complete()?;
        exposure.wait()?;
    }
    Ok(())
}

pub(super) fn groups<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    check("ranks", world.group(&[me])?.ranks().len() as u64, 1_u64)?;
    check("empty", world.group(&[])?.ranks().len() as u64, 0_u64)?;
    let rank = Rank::new(size);
    let (unknown, twice) = ([me, rank], [me, me]);
    let error = Error::NoSuchRank { rank, size };
    refused("unknown rank", world.group(&unknown), error)?;
    refused("rank twice", world.group(&twice), Error::DuplicateRank(me))
}

/// A put before the barrier is in memory after it, on whatever rank.
pub(super) fn barrier<L: Link>(world: &World<'_, L>) -> Result {
    let (link, me, size) = (world.link(), world.rank(), world.size());
    let (key, bytes) = link.scratch();
    let stride = bytes / usize::from(size);
    let place = |rank: Rank| stride * rank.index();
    for round in 1..=4_u32 {
        // To the rank furthest away in the barrier's rounds: it hears of us through others.
        let far = me.ahead(size - 1, size);
        insist(link, || link.put(far, key, place(me), &round.to_le_bytes()))?;
        world.barrier()?;
        let from = me.next(size);
        let mut seen = [0; 4];
        link.get(me, key, place(from), &mut seen, &Op::new())?;
        check("put before the barrier", u32::from_le_bytes(seen), round)?;
        world.barrier()?;
    }
    Ok(())
}

pub(super) fn allgather<L: Link>(world: &World<'_, L>) -> Result {
    let me = u32::from(world.rank().get());
    let rounds = if world.size() > 64 { 1 } else { 4 };
    for round in 0..rounds {
        let mut count = 0_u32;
        let mut wrong = None;
        let mine = [me, me ^ round, round, 7];
        world.allgather_with(mine, |rank, element| {
            let number = u32::from(rank.get());
            let expected = [number, number ^ round, round, 7];
            if element != expected || number != count {
                wrong = wrong.or(Some((number, element)));
            }
            count += 1;
        })?;
        check("elements", count, u32::from(world.size()))?;
        if let Some((rank, element)) = wrong {
            check("element of this rank", element[0], rank)?;
            check("element's round", element[2], round)?;
            return Err(NO_ERROR);
        }
    }
    for round in 0..rounds as u8 {
        let mut wrong = 0_u32;
        world.allgather_with(me as u8 ^ round, |rank, element| {
            wrong += u32::from(element != rank.get() as u8 ^ round);
        })?;
        check("small elements that are wrong", wrong, 0_u32)?;
    }
    let mut none: [u32; 0] = [];
    match world.allgather(1_u32, &mut none) {
        Err(Error::WrongLength { len: 0, .. }) => {}
        _ => return Err(NO_ERROR),
    }
    world.barrier()?;
    match world.allgather_with([0_u64; 5], |_, _| ()) {
        Err(Error::ElementTooLarge { max: 32 }) => {}
        _ => return Err(NO_ERROR),
    }
    // What is refused is not under way.
    Ok(world.barrier()?)
}
