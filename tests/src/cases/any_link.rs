//! What every link promises of cells, slots and long gets, by itself.
//!
//! Where a link answers later, every call is repeated with the same [`Op`] until it has answered.

use flagpost::{Link, World};
use flagpost_link::{Amo, Op, Place, Rank, Refusal, Slot, Slots, Wants, Width};

use super::insist;
use super::steps::FIRST;
use crate::{Failure, Result, context::check};

/// A slot that no collective of the kernel uses.
const TOLD: Slot = Slot(31);

/// Ranks change cells of rank 0 at the same time, each in all ways. Nothing is lost.
pub(super) fn cells<L: Link>(world: &World<'_, L>) -> Result {
    const ROUNDS: u64 = 3;
    let (link, ranks) = (world.link(), u64::from(world.size()));
    let key = link.allocate(32, Place::Symmetric)?;
    insist(link, || link.put(world.rank(), key, 0, &[0; 32]))?;
    world.barrier()?;
    let big = 1_u64 << 40;
    for _ in 0..ROUNDS {
        let op = Op::new();
        insist(link, || {
            link.amo(FIRST, key, 0, Amo::Add(big), Width::Whole, &op)
        })?;
        // A sum of half a cell wraps around.
        let half = Amo::Add(u64::from(u32::MAX));
        insist(link, || link.amo(FIRST, key, 8, half, Width::Half, &op))?;
        let mut add = |bytes: &mut [u8]| {
            if let Some(byte) = bytes.first_mut() {
                *byte = byte.wrapping_add(1);
            }
        };
        insist(link, || link.update(FIRST, key, 19, 2, &mut add, &op))?;
    }
    world.barrier()?;
    let read = |at, width| {
        let op = Op::new();
        insist(link, || link.amo(FIRST, key, at, Amo::Read, width, &op))
    };
    let all = ROUNDS * ranks;
    check("whole", read(0, Width::Whole)?, all * big)?;
    let minus = 0_u32.wrapping_sub(all as u32);
    check("half", read(8, Width::Half)?, u64::from(minus))?;
    check("the other half", read(8, Width::Whole)?, u64::from(minus))?;
    let byte = (all & 0xff) << 24;
    check("byte", read(16, Width::Whole)?, byte)?;
    // Half a cell never holds as much as is expected here.
    let (expected, new) = (1 << 32 | u64::from(minus), 7);
    let compare = Amo::CompareSwap { expected, new };
    let op = Op::new();
    let found = insist(link, || link.amo(FIRST, key, 8, compare, Width::Half, &op))?;
    check("found", found, u64::from(minus))?;
    check("not swapped", read(8, Width::Half)?, u64::from(minus))?;
    world.barrier()?;
    // Over a border of 8 bytes: all of it, or a refusal.
    let op = Op::new();
    let mut fill = |bytes: &mut [u8]| bytes.fill(7);
    let me = world.rank();
    insist(link, || link.put(me, key, 0, &[0; 32]))?;
    let left = loop {
        match link.update(me, key, 20, 8, &mut fill, &op) {
            Err(refusal) if refusal.is_transient() => link.relax(),
            Err(Refusal::BadCell { .. }) => break [0; 8],
            done => break done.map(|()| [7; 8])?,
        }
    };
    let mut seen = [0; 8];
    insist(link, || link.flush(None))?;
    insist(link, || link.get(me, key, 20, &mut seen, &op))?;
    check("over a border", seen == left, true)?;
    Ok(world.barrier()?)
}

/// A put that was flushed is at its target: a peer that is told so finds it.
pub(super) fn flushed<L: Link>(world: &World<'_, L>) -> Result {
    let (link, size) = (world.link(), world.size());
    let (next, me) = (world.rank().next(size), world.rank());
    let key = link.allocate(64, Place::Symmetric)?;
    insist(link, || link.put(me, key, 0, &[0; 64]))?;
    world.barrier()?;
    for round in 1..=4_u32 {
        let to = (round % 2 == 0).then_some(next);
        insist(link, || link.put(next, key, 0, &[round as u8; 64]))?;
        insist(link, || link.flush(to))?;
        insist(link, || link.signal(next, TOLD, round))?;
        while !link.reached(TOLD, round)? {
            link.relax();
        }
        let mut seen = [0; 64];
        link.get(me, key, 0, &mut seen, &Op::new())?;
        check("flushed", seen == [round as u8; 64], true)?;
        world.barrier()?;
    }
    Ok(())
}

/// An answer to notified data takes no further call of its sender: whoever has it can flush what it
/// had sent. Where payload is held back, it is placed behind the answer.
pub(super) fn answered<L: Link>(world: &World<'_, L>) -> Result {
    const ASKED: u32 = 1;
    const ANSWERED: u32 = 2;
    let (link, me) = (world.link(), world.rank());
    let key = link.allocate(8, Place::Symmetric)?;
    insist(link, || link.put(me, key, 0, &[0; 8]))?;
    world.barrier()?;
    let second = Rank::new(1);
    let tell = |to, data: &[u8], immediate| {
        let op = Op::new();
        insist(link, || {
            link.put_immediate(to, (key, 0), data, immediate, true, &op)
        })
    };
    let hear = |immediate| {
        while link.progress(Wants::Any).map(|arrival| arrival.immediate) != Some(immediate) {
            link.relax();
        }
    };
    let reached = |round: u8| {
        while !link.reached(TOLD, round.into())? {
            link.relax();
        }
        Ok::<_, Failure>(())
    };
    for round in 1..=3 {
        if me == FIRST {
            // It has left the barrier, which would take what comes.
            reached(round)?;
            tell(second, &[round; 8], ASKED)?;
            hear(ANSWERED);
            insist(link, || link.flush(Some(second)))?;
            insist(link, || link.signal(second, TOLD, round.into()))?;
        } else if me == second {
            insist(link, || link.signal(FIRST, TOLD, round.into()))?;
            hear(ASKED);
            tell(FIRST, &[], ANSWERED)?;
            // Looks for nothing but this.
            reached(round)?;
            let mut seen = [0; 8];
            link.get(me, key, 0, &mut seen, &Op::new())?;
            check("placed", seen == [round; 8], true)?;
        }
    }
    Ok(world.barrier()?)
}

/// A get of more than a link may bring at a time, and of nothing; then what another get was told is
/// forgotten.
pub(super) fn long_get<L: Link>(world: &World<'_, L>) -> Result {
    const LEN: usize = 700;
    let (link, size) = (world.link(), world.size());
    let (next, me) = (world.rank().next(size), world.rank());
    let key = link.allocate(LEN, Place::Symmetric)?;
    let byte = |of: Rank, at: usize| (at as u8).wrapping_mul(7).wrapping_add(of.get() as u8);
    let own: [u8; LEN] = core::array::from_fn(|at| byte(me, at));
    insist(link, || link.put(me, key, 0, &own))?;
    world.barrier()?;
    let (mut seen, op) = ([0; LEN], Op::new());
    insist(link, || link.get(next, key, 0, &mut [], &op))?;
    for start in [0, 3, 500] {
        let part = seen.get_mut(start..).unwrap_or(&mut []);
        insist(link, || link.get(next, key, start, part, &op))?;
    }
    let same = (0..LEN).all(|at| seen.get(at) == Some(&byte(next, at)));
    check("bytes", same, true)?;
    Ok(world.barrier()?)
}

/// Slots that were signalled and given back count from the start for whoever gets them next.
pub(super) fn slots_again<L: Link>(world: &World<'_, L>) -> Result {
    let (link, size) = (world.link(), world.size());
    let next = world.rank().next(size);
    for _ in 0..2 {
        let slots = link.allocate_slots(Slots::Count(2))?;
        world.barrier()?;
        check("nothing yet", link.reached(slots.plus(1), 1)?, false)?;
        world.barrier()?;
        for value in 1..=3 {
            insist(link, || link.signal(next, slots.plus(1), value))?;
        }
        while !link.reached(slots.plus(1), 3)? {
            link.relax();
        }
        check("no more", link.reached(slots.plus(1), 4)?, false)?;
        check("nor the other", link.reached(slots, 1)?, false)?;
        world.barrier()?;
        link.withdraw(slots);
    }
    Ok(())
}

/// Loops of the user's own that look at a peer's and at own memory in every way there is, after
/// waits and beside polls of the kernel that note other words: none sleeps on those.
pub(super) fn own_loops<L: Link>(world: &World<'_, L>) -> Result {
    const WAYS: usize = 4;
    let (link, me) = (world.link(), world.rank());
    let key = link.allocate(64, Place::Symmetric)?;
    let slots = link.allocate_slots(Slots::Count(1))?;
    insist(link, || link.put(me, key, 0, &[0; 64]))?;
    world.barrier()?;
    let last = Rank::new(world.size() - 1);
    let op = Op::new();
    // A wait in between: what it polled last is not what the loop waits for.
    let noted = me == last && link.reached(slots, 1)?;
    check("nothing yet", noted, false)?;
    world.barrier()?;
    if me == last {
        link.relax();
        while !link.reached(slots, 1)? {
            link.relax();
        }
    }
    if me == FIRST {
        insist(link, || link.signal(last, slots, 1))?;
        for way in 0..WAYS {
            // The loop is under way: it has looked at least once.
            while !link.reached(slots, way as u32 + 1)? {
                link.relax();
            }
            let add = Amo::Add(1);
            insist(link, || {
                link.amo(last, key, 8 * way, add, Width::Whole, &op)
            })?;
        }
        return Ok(world.barrier()?);
    }
    for way in 0..if me == last { WAYS } else { 0 } {
        let at = 8 * way;
        let mut told = false;
        loop {
            let mut bytes = [0; 8];
            match way {
                0 => insist(link, || link.get(last, key, at, &mut bytes, &op))?,
                1 => {
                    let read = || link.amo(last, key, at, Amo::Read, Width::Whole, &op);
                    bytes = insist(link, read)?.to_le_bytes();
                }
                2 => {
                    let mut copy = |found: &mut [u8]| bytes.copy_from_slice(found);
                    insist(link, || link.update(last, key, at, 8, &mut copy, &op))?;
                }
                _ => {
                    let read = || link.amo(last, key, at, Amo::Or(0), Width::Half, &op);
                    bytes = insist(link, read)?.to_le_bytes();
                }
            }
            if bytes != [0; 8] {
                break;
            }
            if !told {
                insist(link, || link.signal(FIRST, slots, way as u32 + 1))?;
                told = true;
            }
            // Noted, and never comes.
            check("never", link.reached(slots, 2)?, false)?;
            link.relax();
        }
    }
    Ok(world.barrier()?)
}
