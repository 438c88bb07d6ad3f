//! Collective calls that run out of their budget: no other one takes over what they have done.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost::{
    Budget, DynamicOptions, EpochSlots, Error, Events, Link, Making, Memory, Rank, Unfinished,
    Window, World,
    epoch::{Assert, Fencing},
};

use super::created::largest;
use super::handles::shortly;
use super::steps::{NO_ERROR, refused as refuses};
use super::timeout::{await_go, go};
use crate::{Result, context::check};

/// How many calls [`call`] knows. No two go on with each other.
const CALLS: usize = 14;

/// The first that is an allreduce, of one word.
const ALLREDUCE: usize = 11;

/// Most ranks.
pub(super) const MOST: u16 = 48;

/// Counters that are asked for when they are refused.
const REFUSED: u32 = 5;

/// Bytes of own memory.
const MEMORY: usize = 64;

const NONE: Assert = Assert::empty();

type Data = [u32; 2];

fn call<L: Link>(world: &World<'_, L>, number: usize, data: &mut Data) -> Result<(), Error> {
    let (size, first) = (usize::from(world.size()), Rank::new(0));
    let last = Rank::new(world.size() - 1);
    let mut blocks = [0; 2 * MOST as usize];
    let add = u32::wrapping_add;
    match number {
        0 => world.barrier(),
        1 => world.allgather_with(data[0], |_, _| {}),
        2 => world.allgather_with(*data, |_, _| {}),
        3 => world.alltoall(&[7; MOST as usize][..size], &mut blocks[..size]),
        4 => world.alltoall(&[7; 2 * MOST as usize][..2 * size], &mut blocks[..2 * size]),
        5 => world.broadcast(first, &mut data[..1]),
        6 => world.broadcast(first, data),
        7 => world.broadcast(last, &mut data[..1]),
        8 => world.reduce(first, &mut data[..1], add),
        9 => world.reduce(first, data, add),
        10 => world.reduce(last, &mut data[..1], add),
        ALLREDUCE => world.allreduce(&mut data[..1], add),
        12 => world.allreduce(data, add),
        // As many bytes as 12.
        _ => world.allreduce(core::slice::from_mut(data), |one, other| {
            [add(one[0], other[0]), add(one[1], other[1])]
        }),
    }
}

/// All calls but `except`, and all that is made, fenced and freed: refused.
fn others_are_refused<'w, L: Link>(
    window: &mut Window<'w, u64, L>,
    memory: &'w Memory<'w, L>,
    except: Option<usize>,
) -> Result {
    let (world, refusal) = (window.world(), Error::CollectiveUnfinished);
    for number in (0..CALLS).filter(|&number| Some(number) != except) {
        let mut data = [5, 6];
        refuses("another", call(world, number, &mut data), refusal)?;
        check("untouched", data == [5, 6], true)?;
    }
    let fenced = window.fence(NONE).map(drop);
    refuses("fence", fenced, refusal)?;
    refuses("counters", window.set_num_notify(REFUSED), refusal)?;
    let room = largest(world)?;
    let window = world.allocating::<u32, EpochSlots<'_>>(16, ());
    refuses("window", window.map(drop), refusal)?;
    let created = world.creating::<u32, EpochSlots<'_>>(memory, 0..MEMORY, 4, ());
    refuses("created", created.map(drop), refusal)?;
    let options = DynamicOptions::default();
    let dynamic = world.making_dynamic::<EpochSlots<'_>>(options, ());
    refuses("dynamic", dynamic.map(drop), refusal)?;
    refuses("events", world.making_events(64).map(drop), refusal)?;
    check("room", largest(world)? as u64, room as u64)?;
    // It is in no window.
    Ok(memory.write(0, &[1_u8])?)
}

/// How many words of the arena are free in one piece. Collective.
fn words<L: Link>(world: &World<'_, L>) -> Result<u32> {
    /// More than any arena has.
    const MANY: u32 = 1 << 20;
    let each = (size_of::<L::Word>() / 4) as u32; // words of an event
    match world.events(MANY).map(drop) {
        Err(Error::ArenaFull { missing_words }) => Ok(MANY * each - missing_words),
        Err(other) => Err(other.into()),
        Ok(()) => Err(NO_ERROR),
    }
}

/// Runs `case` with memory of its own. What was refused in it has taken nothing.
fn takes_nothing<L: Link>(
    world: &World<'_, L>,
    case: for<'w> fn(&'w World<'w, L>, &'w Memory<'w, L>) -> Result,
) -> Result {
    let memory = world.reserve(MEMORY)?;
    let (before, room) = (words(world)?, largest(world)?);
    case(world, &memory)?;
    check("words", words(world)?, before)?;
    check("room behind", largest(world)? as u64, room as u64)?;
    Ok(memory.release()?)
}

/// Rank 0 begins a call before the last rank comes to it, tries all others, and goes on.
fn begun_early<'w, L: Link>(
    told: &mut Window<'w, u64, L>,
    memory: &'w Memory<'w, L>,
    except: Option<usize>,
    attempt: &mut dyn FnMut(Budget) -> Result<(), Error>,
) -> Result {
    let world = told.world();
    let (me, first, last) = (world.rank(), Rank::new(0), Rank::new(world.size() - 1));
    if me == first {
        let Err(Error::Timeout(_)) = shortly(&mut *attempt) else {
            return Err(NO_ERROR);
        };
        others_are_refused(told, memory, except)?;
        go(told, last)?;
    }
    if me == last {
        await_go(told, first)?;
    }
    Ok(attempt(Budget::UNLIMITED)?)
}

pub(super) fn other_calls<L: Link>(world: &World<'_, L>) -> Result {
    takes_nothing(world, other_calls_of)
}

fn other_calls_of<'w, L: Link>(world: &'w World<'w, L>, memory: &'w Memory<'w, L>) -> Result {
    let (me, size) = (world.rank(), u32::from(world.size()));
    let mut told = world.allocate::<u64>(1)?;
    for number in 0..CALLS {
        let mut data = [u32::from(me.get()), 1];
        begun_early(&mut told, memory, Some(number), &mut |budget| {
            world.within(budget, || call(world, number, &mut data))
        })?;
        if number >= ALLREDUCE {
            check("sum", data[0], size * (size - 1) / 2)?;
            check(
                "other sum",
                data[1],
                if number == ALLREDUCE { 1 } else { size },
            )?;
        }
    }
    counted(&mut told)?;
    Ok(told.free()?)
}

/// What was asked for when it was refused decides nothing.
fn counted<L: Link>(told: &mut Window<'_, u64, L>) -> Result {
    const COUNT: u32 = 2;
    told.set_num_notify(COUNT)?;
    let own = told.num_notify(told.world().rank())?;
    check("counters", own, COUNT)
}

/// The same of what goes on with a handle: a window is made, fenced and freed, then events.
pub(super) fn handles<L: Link>(world: &World<'_, L>) -> Result {
    takes_nothing(world, handles_of)
}

fn handles_of<'w, L: Link>(world: &'w World<'w, L>, memory: &'w Memory<'w, L>) -> Result {
    let mut told = world.allocate::<u64>(1)?;
    let (mut window, mut left) = (None, None);
    begun_early(&mut told, memory, None, &mut |budget| {
        let made = match left.take().flatten() {
            Some(making) => Making::wait_within(making, budget),
            None => world
                .allocating::<u32, EpochSlots<'_>>(1, ())?
                .wait_within(budget),
        };
        kept(made, &mut window, &mut left)
    })?;
    let window = window.ok_or(NO_ERROR)?;
    {
        let (mut epoch, mut left) = (None, None);
        begun_early(&mut told, memory, None, &mut |budget| {
            let fenced = match left.take() {
                Some(fencing) => Fencing::wait_within(fencing, budget),
                None => window.fencing(NONE).wait_within(budget),
            };
            kept(fenced, &mut epoch, &mut left)
        })?;
        epoch.ok_or(NO_ERROR)?.end()?;
    }
    let mut left = Some(window.freeing());
    begun_early(&mut told, memory, None, &mut |budget| match left.take() {
        Some(freeing) => kept(freeing.wait_within(budget), &mut None, &mut left),
        None => Ok(()),
    })?;
    let (mut events, mut left) = (None, None);
    begun_early(&mut told, memory, None, &mut |budget| {
        let made = match left.take().flatten() {
            Some(making) => Making::wait_within(making, budget),
            None => world.making_events(1)?.wait_within(budget),
        };
        kept(made, &mut events, &mut left)
    })?;
    let mut left = events.map(Events::freeing);
    begun_early(&mut told, memory, None, &mut |budget| match left.take() {
        Some(freeing) => kept(freeing.wait_within(budget), &mut None, &mut left),
        None => Ok(()),
    })?;
    // What was refused while they were under way has taken nothing, and opened nothing.
    told.fence(NONE)?.end()?;
    counted(&mut told)?;
    Ok(told.free()?)
}

/// Keeps what was done, or the handle to go on with.
fn kept<M, H>(
    attempt: Result<M, Unfinished<H>>,
    done: &mut Option<M>,
    left: &mut Option<H>,
) -> Result<(), Error> {
    match attempt {
        Ok(made) => {
            *done = Some(made);
            Ok(())
        }
        Err(late) => {
            *left = Some(late.handle);
            Err(late.error)
        }
    }
}
