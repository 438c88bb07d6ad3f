//! Windows: allocation and the own piece.

use flagpost::{Differs, Error, Link, Rank, Rma as _, World};

use super::steps::{NO_ERROR, differs, fails, neighbours, refused as refuses, too_much};
use crate::{Result, context::check};

/// A new window holds zeros, for its owner and for peers.
pub(super) fn zero<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(19)?;
    let (_, next, prev) = neighbours(world);
    let exposure = window.post([prev])?;
    let access = window.start([next])?;
    let mut seen = [1_u32; 19];
    access.get(next, 0, &mut seen)?;
    for value in seen {
        check("peer's new element", value, 0_u32)?;
    }
    access.complete()?;
    exposure.wait()?;
    for index in 0..window.len() {
        check("own new element", window.local().get(index)?, 0_u32)?;
    }
    Ok(())
}

/// Memory that has been used holds zeros in the window that gets it next: for its owner at once,
/// and for a peer that reads before its owner has published anything.
pub(super) fn zero_again<L: Link>(world: &World<'_, L>) -> Result {
    let next = world.rank().next(world.size());
    for round in 1..=4_u32 {
        let window = world.allocate::<u32>(19)?;
        let local = window.local();
        for index in 0..window.len() {
            check("own new element", local.get(index)?, 0_u32)?;
        }
        let lock = window.lock_shared(next)?;
        let mut seen = [1_u32; 19];
        lock.get(next, 0, &mut seen)?;
        lock.unlock()?;
        for value in seen {
            check("peer's new element", value, 0_u32)?;
        }
        world.barrier()?;
        for index in 0..window.len() {
            local.set(index, round)?;
        }
        // Memory holds them as well, not only this cache.
        window.sync()?;
        window.free()?;
    }
    Ok(())
}

pub(super) fn local<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u16>(50)?;
    let local = window.local();
    for index in 0..50_u16 {
        local.set(usize::from(index), index * 3)?;
    }
    local.copy_in(10, &[1, 2, 3])?;
    let mut seen = [0; 6];
    local.copy_out(8, &mut seen)?;
    for (found, expected) in seen.into_iter().zip([24_u16, 27, 1, 2, 3, 39]) {
        check("own element", found, expected)?;
    }
    let empty = world.allocate::<u64>(0)?;
    check("empty window", empty.is_empty(), true)?;
    let end = Error::OutOfRange { end: 1, len: 0 };
    refuses("beyond an empty window", empty.local().get(0), end)
}

/// Index, length, and the end that the error names.
const BAD_RANGES: [(usize, usize, u64); 4] = [
    (8, 1, 9),
    (0, 9, 9),
    (usize::MAX, 1, (usize::MAX as u64).saturating_add(1)),
    (3, 6, 9),
];

/// Bad input to a window is an error value, and nothing changes.
pub(super) fn refused<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u64>(8)?;
    let local = window.local();
    for (index, len, end) in BAD_RANGES {
        let data = [9_u64; 9];
        let result = local.copy_in(index, &data[..len]);
        refuses("range", result, Error::OutOfRange { end, len: 8 })?;
    }
    for index in 0..8 {
        check("unchanged", local.get(index)?, 0_u64)?;
    }
    // More memory than there is: on all ranks together, and the next window is as if nothing had
    // been.
    fails(world.allocate::<u64>(usize::MAX / 2), |error| {
        matches!(error, Error::MemoryFull { .. })
    })?;
    match world.allocate::<u8>(1 << 30) {
        Err(Error::MemoryFull { missing_bytes }) => {
            check("says how much", missing_bytes > 1 << 20, true)?;
        }
        Err(other) => return Err(other.into()),
        Ok(_) => return Err(NO_ERROR),
    }
    check("next window", world.allocate::<u64>(4)?.len() as u64, 4_u64)
}

/// Ranks that ask for different windows all get an error, and can go on.
pub(super) fn asymmetric<L: Link>(world: &World<'_, L>) -> Result {
    let first = Rank::new(0);
    let odd = world.rank() == first;
    let named = if odd { Rank::new(1) } else { first };
    let result = world.allocate::<u32>(if odd { 4 } else { 40 });
    refuses("lengths differ", result, differs(named, Differs::Length))?;

    let result = world.allocate::<u8>(if odd { 1 << 30 } else { 4 });
    too_much(result, world.rank(), first)?;
    check("next window", world.allocate::<u8>(4)?.len() as u64, 4_u64)
}
