//! Data that travel with their notification, and what other accesses see of them.

use flagpost::{Link, Rma as _, Tag, World, epoch::Assert};

use super::small;
use crate::{Failure, context::check};

/// Rounds of the cases.
const ROUNDS: u32 = 3;

/// What is put behind a flush comes behind what travelled inline before it.
pub(super) fn flushed<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (me, size) = (world.rank(), world.size());
    let next = me.next(size);
    let window = world.allocate::<u32>(2)?;
    let mut told = window.expect(0..2, me.prev(size), Tag(2), 1)?;
    for round in 1..=ROUNDS {
        // Held by all at once: a flush waits for the target's progress, and the target waits for nothing else.
        let lock = window.lock_all()?;
        window.put_notify(next, 0, &[round, round], Tag(1))?;
        if round % 2 == 0 {
            lock.flush_all()?;
        } else {
            lock.flush(next)?;
        }
        lock.put(next, 0, &[round + 100])?;
        lock.unlock()?;
        window.put_notify(next, 0, &[], Tag(2))?;
        told.start()?;
        told.wait()?;
        check("what was put last", window.local().get(0)?, round + 100)?;
        check("what was not", window.local().get(1)?, round)?;
        let mut first = window.expect(0..0, me.prev(size), Tag(1), 1)?;
        first.start()?;
        first.wait()?;
        world.barrier()?;
    }
    Ok(())
}

/// Behind a fence, what travelled inline before it is there, though nobody has asked for its notification.
pub(super) fn fenced<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(1)?;
    let mut epoch = window.fence(Assert::empty())?;
    for round in 1..=ROUNDS {
        window.put_notify(me.next(size), 0, &[round], Tag(1))?;
        epoch = epoch.fence(Assert::empty())?;
        check("what travelled inline", window.local().get(0)?, round)?;
        epoch = epoch.fence(Assert::empty())?;
    }
    epoch.end()?;
    let mut all = window.expect(0..0, me.prev(size), Tag(1), ROUNDS as u16)?;
    all.start()?;
    all.wait()?;
    Ok(())
}

/// Rank 1 sends a word inline, flushes, and puts another in its place; rank 0 must end up with that.
pub(super) fn small_flushed<L: Link>(
    world: &World<'_, L>,
    window: &flagpost::Window<'_, u32, L>,
) -> Result<(), Failure> {
    let [first, second] = [0, 1].map(flagpost::Rank::new);
    if world.rank() == second {
        let lock = window.lock_shared(first)?;
        window.put_notify(first, 0, &[1], Tag(1))?;
        lock.flush(first)?;
        lock.put(first, 0, &[2])?;
        lock.unlock()?;
        window.put_notify(first, 0, &[], Tag(2))?;
        return Ok(());
    }
    for (tag, expected) in [(1, None), (2, Some(2_u32))] {
        let mut told = window.expect(0..small::WORDS, second, Tag(tag), 1)?;
        told.start()?;
        told.wait()?;
        if let Some(expected) = expected {
            check("what was put last", window.local().get(0)?, expected)?;
        }
    }
    Ok(())
}
