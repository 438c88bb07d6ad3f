//! Windows and events that are made with a budget of nothing.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost::{
    Differs, DynamicOptions, EpochSlots, Error, Link, Making, MatchingList, Rank, Rma as _, Tag,
    Unfinished, Window, World,
};

use super::created::largest;
use super::handles::NONE;
use super::steps::{finds, refused as refuses};
use crate::{Result, context::check};

/// Each is made by going on until it is there. Peers use it at once: nothing of it is prepared a
/// second time.
pub(super) fn late<L: Link>(world: &World<'_, L>) -> Result {
    let memory = world.reserve(64)?;
    for round in 1..=2 {
        memory.write(0, &[0_u32; 16])?;
        let window = made(world, || world.allocating::<_, EpochSlots<'_>>(4, ()))?;
        used_at_once(window, round)?;
        let window = made(world, || {
            world.creating::<_, EpochSlots<'_>>(&memory, 0..64, 4, ())
        })?;
        used_at_once(window, round)?;
        let options = DynamicOptions {
            regions: 2,
            kept: 2,
            ..DynamicOptions::default()
        };
        let dynamic = || world.making_dynamic::<EpochSlots<'_>>(options, ());
        made(world, dynamic)?.free()?;
        let events = made(world, || world.making_events(2))?;
        events.post(world.rank().next(world.size()), 1)?;
        events.wait(1, 1)?;
        check("no other", events.query(1)?, 0_u32)?;
        events.free()?;
    }
    Ok(memory.release().map_err(Unfinished::give_up)?)
}

/// The ranks do not ask for the same, or one cannot have it: all are told in the end, and nothing
/// is taken.
pub(super) fn fails<L: Link>(world: &World<'_, L>) -> Result {
    let first = Rank::new(0);
    let odd = world.rank() == first;
    let named = if odd { Rank::new(1) } else { first };
    let length = super::steps::differs(named, Differs::Length);
    let failed = super::steps::differs(named, Differs::Other);
    let memory = world.reserve(64)?;
    let room = largest(world)?;
    for _ in 0..2 {
        let len = if odd { 4 } else { 40 };
        let window = made(world, || world.allocating::<u32, EpochSlots<'_>>(len, ()));
        refuses("lengths differ", window, length)?;
        let unit = if odd { 0 } else { 4 };
        let window = made(world, || {
            world.creating::<u32, EpochSlots<'_>>(&memory, 0..64, unit, ())
        });
        let zero = if odd {
            Error::BadUnit { unit: 0 }
        } else {
            failed
        };
        refuses("unit 0", window, zero)?;
        let window = made(world, || {
            let options = DynamicOptions {
                regions: 1 + u16::from(odd),
                kept: 2,
                ..DynamicOptions::default()
            };
            world.making_dynamic::<EpochSlots<'_>>(options, ())
        });
        refuses("regions differ", window, length)?;
        let events = made(world, || world.making_events(2 + u32::from(odd)));
        refuses("numbers differ", events, length)?;
        check("room", largest(world)? as u64, room as u64)?;
        // Its memory is in no window.
        memory.write(0, &[1_u8])?;
        // One that no rank has heard of is given back.
        if odd {
            drop(world.allocating::<u32, EpochSlots<'_>>(40, ())?);
            drop(world.creating::<u32, EpochSlots<'_>>(&memory, 0..64, 4, ())?);
            memory.write(0, &[1_u8])?;
        }
    }
    used_at_once(
        made(world, || world.allocating::<_, EpochSlots<'_>>(4, ()))?,
        7,
    )?;
    Ok(memory.release().map_err(Unfinished::give_up)?)
}

/// Rank 0 makes windows while what it has sent to rank 1, which has answered, may not be in its
/// place yet.
pub(super) fn heard<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 600;
    let [zero, one] = [0, 1].map(Rank::new);
    let window = world.allocate::<u32>(WORDS)?;
    for round in 1..=6 {
        // Inline in an entry of the ring; or longer, where that travels in the ring as well.
        let len = if round % 2 == 0 { WORDS } else { 3 };
        let peer = match world.rank() {
            rank if rank == zero => Some(one),
            rank if rank == one => Some(zero),
            _ => None,
        };
        if let Some(peer) = peer {
            let mut told = window.expect(0..WORDS, Tag(1))?.from(peer)?;
            told.start()?;
            if world.rank() == zero {
                window.put_notify(one, 0, &[round; WORDS][..len], Tag(1))?;
                told.wait()?;
            } else {
                told.wait()?;
                window.notify(zero, Tag(1))?;
            }
        }
        used_at_once(
            made(world, || world.allocating::<_, EpochSlots<'_>>(4, ()))?,
            round,
        )?;
        made(world, || world.making_events(1))?.free()?;
        let list = made(world, || world.allocating::<u32, MatchingList<'_>>(1, 2))?;
        list.free()?;
        if world.rank() == one {
            check("payload", window.local().get(len - 1)?, round)?;
        }
        world.barrier()?;
    }
    Ok(window.free()?)
}

/// Goes on with a budget of nothing, then has what it takes.
fn made<'w, L: Link + 'w, M>(
    world: &World<'_, L>,
    make: impl FnOnce() -> Result<Making<'w, L, M>, Error>,
) -> Result<M, Error> {
    let mut call = make()?.test();
    let made = loop {
        call = match call {
            Err(Unfinished {
                handle: Some(making),
                error: Error::Timeout(_),
            }) => {
                world.link().relax();
                making.wait_within(NONE)
            }
            other => break other,
        };
    };
    made.map_err(Unfinished::give_up)
}

fn used_at_once<L: Link>(window: Window<'_, u32, L>, round: u32) -> Result {
    let world = window.world();
    let (me, size) = (world.rank(), world.size());
    let all = window.lock_all()?;
    all.put(me.next(size), 1, &[round])?;
    all.unlock()?;
    world.barrier()?;
    let own = window.lock_shared(me)?;
    finds("what was put", &own, me, 0, [0, round, 0, 0])?;
    own.unlock()?;
    Ok(window.free()?)
}
