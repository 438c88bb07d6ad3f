//! Data that travel with their notification, and what other accesses see of them.

use flagpost::{EpochSlots, Link, Model, Rma as _, Tag, World, epoch::Assert};

use super::small;
use super::steps::{finds, finds_locked, hear, neighbours};
use crate::{Result, context::check};

/// Rounds of the cases.
pub(super) const ROUNDS: u32 = 3;

/// Where payload of `words` words starts: long payload, in the middle of a line.
pub(super) const fn start(words: usize) -> usize {
    if words > 4 { 3 } else { 0 }
}

/// Checks that all words of `local` from `at` on are `value`.
pub(super) fn check_all<L: Link, S>(
    what: &'static str,
    local: &flagpost::Local<'_, u32, L, S>,
    range: core::ops::Range<usize>,
    value: u32,
) -> Result {
    for index in range {
        check(what, local.get(index)?, value)?;
    }
    Ok(())
}

/// What is put behind a flush comes behind what travelled inline before it.
pub(super) fn flushed<L: Link, const N: usize>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let (next, at) = (me.next(size), start(N));
    let window = world.allocate::<u32>(at + N)?;
    let mut told = window.expect(0..at + N, Tag(2))?.from(me.prev(size))?;
    for round in 1..=ROUNDS {
        // Held by all at once: a flush waits for the target's progress, and the target waits for
        // nothing else.
        let lock = window.lock_all()?;
        window.put_notify(next, at, &[round; N], Tag(1))?;
        match round {
            1 => lock.flush(next)?,
            2 => lock.flush_all()?,
            _ => window.flush(next)?,
        }
        finds("what was flushed", &lock, next, at, [round; N])?;
        lock.put(next, at + N / 2, &[round + 100])?;
        lock.unlock()?;
        window.put_notify(next, 0, &[], Tag(2))?;
        told.start()?;
        told.wait()?;
        let local = window.local();
        check("what was put last", local.get(at + N / 2)?, round + 100)?;
        check_all("before it", &local, at..at + N / 2, round)?;
        check_all("behind it", &local, at + N / 2 + 1..at + N, round)?;
        hear(window.expect(0..0, Tag(1))?.from(me.prev(size))?)?;
        world.barrier()?;
    }
    Ok(())
}

/// What was flushed is found by the get behind it: whenever the target placed it, also while this
/// rank was looking.
pub(super) fn flushed_often<L: Link>(world: &World<'_, L>) -> Result {
    const PUTS: u16 = 12;
    let [target, origin] = [0, 1].map(flagpost::Rank::new);
    let window = world.allocate::<u32>(1)?;
    if world.rank() == origin {
        let lock = window.lock_all()?;
        for put in 1..=u32::from(PUTS) {
            window.put_notify(target, 0, &[put], Tag(1))?;
            match put % 2 {
                0 => lock.flush(target)?,
                _ => window.flush_all()?,
            }
            finds("what was flushed", &lock, target, 0, [put])?;
        }
        lock.unlock()?;
    } else if world.rank() == target {
        hear(window.expect(0..1, Tag(1))?.from(origin)?.times(PUTS)?)?;
    }
    Ok(world.barrier()?)
}

/// Behind a fence, what travelled inline before it is there, though nobody has asked for its
/// notification.
pub(super) fn fenced<L: Link>(world: &World<'_, L>) -> Result {
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
    hear(
        window
            .expect(0..0, Tag(1))?
            .from(me.prev(size))?
            .times(ROUNDS as u16)?,
    )?;
    Ok(())
}

/// Rank 1 sends a word inline, flushes, and puts another in its place; rank 0 must end up with
/// that.
pub(super) fn small_flushed<L: Link>(window: &flagpost::Window<'_, u32, L>) -> Result {
    let world = window.world();
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
        hear(window.expect(0..small::WORDS, Tag(tag))?.from(second)?)?;
        if let Some(expected) = expected {
            check("what was put last", window.local().get(0)?, expected)?;
        }
    }
    Ok(())
}

/// Rank 0, whose queue is full, waits for rank 1, which waits until what has travelled inline is in
/// rank 0's memory.
pub(super) fn queue_stays_full<L: Link>(window: &flagpost::Window<'_, u32, L>) -> Result {
    let world = window.world();
    let (me, [full, other]) = (world.rank(), [0, 1].map(flagpost::Rank::new));
    let events = world.events(1)?;
    let from =
        |source, tag, count| hear(window.expect(0..1, Tag(tag))?.from(source)?.times(count)?);
    for round in 1..=ROUNDS {
        // As many as the queue keeps, and each other's, at once.
        if me == other {
            window.put_notify(full, 0, &[], Tag(2))?;
            window.put_notify(full, 0, &[], Tag(2))?;
            window.put_notify(full, 0, &[round], Tag(1))?;
            from(full, 1, 1)?;
        } else if me == full {
            window.put_notify(other, 0, &[], Tag(1))?;
            from(other, 1, 1)?;
        }
        let mut word = [round];
        world.broadcast(other, &mut word)?;
        if me == full {
            check("what travelled inline", window.local().get(0)?, round)?;
            from(other, 2, 2)?;
        }
        world.barrier()?;
        // The last one that fits, too: a flush finds it in place, though rank 0 waits for an event.
        if me == other {
            let lock = window.lock_all()?;
            window.put_notify(full, 0, &[round + 10], Tag(2))?;
            window.put_notify(full, 0, &[round + 20], Tag(2))?;
            lock.flush(full)?;
            finds("what was flushed", &lock, full, 0, [round + 20])?;
            lock.unlock()?;
            events.post(full, 0)?;
        } else if me == full {
            events.wait(0, 1)?;
        }
        world.broadcast(other, &mut word)?;
        if me == full {
            from(other, 2, 2)?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// Who was told by the target of data that travelled inline finds them in its memory, and may put
/// there.
pub(super) fn forwarded<L: Link>(world: &World<'_, L>) -> Result {
    let [target, origin, third] = [0, 1, 2].map(flagpost::Rank::new);
    let me = world.rank();
    let window = world.allocate::<u32>(1)?;
    for round in 1..=ROUNDS {
        let from = |source| hear(window.expect(0..1, Tag(1))?.from(source)?);
        if me == origin {
            window.put_notify(target, 0, &[round], Tag(1))?;
        } else if me == target {
            from(origin)?;
            check("what travelled inline", window.local().get(0)?, round)?;
            window.put_notify(third, 0, &[], Tag(1))?;
            from(third)?;
            check("what was put over it", window.local().get(0)?, round + 100)?;
        } else if me == third {
            from(target)?;
            let lock = window.lock_all()?;
            finds("in memory", &lock, target, 0, [round])?;
            lock.put(target, 0, &[round + 100])?;
            lock.unlock()?;
            window.put_notify(target, 0, &[], Tag(1))?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// Who was told by the origin, which the target had answered, does as well.
pub(super) fn relayed<L: Link, const N: usize>(world: &World<'_, L>) -> Result {
    let [target, origin, third] = [0, 1, 2].map(flagpost::Rank::new);
    let me = world.rank();
    let at = start(N);
    let window = world.allocate::<u32>(at + N)?;
    for round in 1..=ROUNDS {
        let from = |source| hear(window.expect(0..at + N, Tag(1))?.from(source)?);
        if me == origin {
            window.put_notify(target, at, &[round; N], Tag(1))?;
            from(target)?;
            window.put_notify(third, 0, &[], Tag(1))?;
        } else if me == target {
            from(origin)?;
            window.put_notify(origin, 0, &[], Tag(1))?;
            from(third)?;
            check_all(
                "what was put over it",
                &window.local(),
                at..at + N,
                round + 100,
            )?;
        } else if me == third {
            from(origin)?;
            let lock = window.lock_all()?;
            lock.put(target, at, &[round + 100; N])?;
            lock.unlock()?;
            window.put_notify(target, 0, &[], Tag(1))?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// What the owner does around data that travelled inline: own loads and stores beside them, through
/// the cache and past it.
pub(super) fn around<L: Link>(world: &World<'_, L>, model: Model) -> Result {
    let (me, next, prev) = neighbours(world);
    let window = world.allocate_with::<u32, EpochSlots<'_>>(4, model)?;
    let mut told = window.expect(0..4, Tag(1))?.from(prev)?;
    for round in 1..=4 * ROUNDS {
        told.start()?;
        world.barrier()?;
        window.put_notify(next, 1, &[round], Tag(1))?;
        told.wait()?;
        let (local, mut all) = (window.local(), [0; 4]);
        match round % 4 {
            0 => check("itself", local.get(1)?, round)?,
            1 => local.set(2, round)?,
            2 => {
                local.copy_out(0, &mut all)?;
                check("among others", all[1], round)?;
            }
            _ => {
                // Past the cache.
                finds_locked("own, past the cache", &window, me, 1, [round, round - 2])?;
            }
        }
        world.barrier()?;
        check("later", local.get(1)?, round)?;
    }
    Ok(())
}

/// Data that travelled inline lie in two lines, both of which their owner has in its cache, and
/// stores to beside them.
pub(super) fn across<L: Link>(world: &World<'_, L>) -> Result {
    const LEN: usize = 8;
    let (_, next, prev) = neighbours(world);
    let window = world.allocate::<u64>(LEN)?;
    let mut told = window.expect(3..5, Tag(1))?.from(prev)?;
    let local = window.local();
    for round in 1..=4 * u64::from(ROUNDS) {
        local.copy_out(0, &mut [0; LEN])?;
        told.start()?;
        world.barrier()?;
        window.put_notify(next, 3, &[round, round + 100], Tag(1))?;
        told.wait()?;
        if round % 2 == 0 {
            local.set(0, round)?;
            local.set(LEN - 1, round)?;
        }
        check("in the second line", local.get(4)?, round + 100)?;
        check("in the first line", local.get(3)?, round)?;
        world.barrier()?;
        let mut all = [0; LEN];
        local.copy_out(0, &mut all)?;
        check("first, later", all[3], round)?;
        check("second, later", all[4], round + 100)?;
        check("own, before", all[0], round / 2 * 2)?;
        check("own, behind", all[LEN - 1], round / 2 * 2)?;
    }
    Ok(())
}

/// A range that ends one byte behind a line, expected and exposed: that byte comes, whatever lies
/// in the cache.
pub(super) fn range_of_bytes<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, prev) = neighbours(world);
    let line = L::LINE;
    let window = world.allocate::<u8>(3 * line)?;
    let mut told = window.expect(0..line + 1, Tag(1))?.from(prev)?;
    let local = window.local();
    for round in 1..=2 * ROUNDS as u8 {
        local.set(line + 1, round)?;
        check("before", local.get(line)?, 2 * (round - 1))?;
        told.start()?;
        world.barrier()?;
        window.put_notify(next, line, &[2 * round - 1], Tag(1))?;
        told.wait()?;
        check("expected", local.get(line)?, 2 * round - 1)?;
        world.barrier()?;
        let exposure = window.post_range(0..line + 1, [prev])?;
        let access = window.start([next])?;
        access.put(next, line, &[2 * round])?;
        access.complete()?;
        exposure.wait()?;
        check("exposed", local.get(line)?, 2 * round)?;
        check("own", local.get(line + 1)?, round)?;
    }
    Ok(())
}

/// Rank 1 puts a word over one that travelled inline, once rank 0 has answered.
pub(super) fn small_answered<L: Link>(window: &flagpost::Window<'_, u32, L>) -> Result {
    let world = window.world();
    let [first, second] = [0, 1].map(flagpost::Rank::new);
    let from = |source| hear(window.expect(0..small::WORDS, Tag(1))?.from(source)?);
    if world.rank() == second {
        window.put_notify(first, 0, &[1], Tag(1))?;
        from(first)?;
        let lock = window.lock_shared(first)?;
        lock.put(first, 0, &[2])?;
        lock.unlock()?;
        window.put_notify(first, 0, &[], Tag(1))?;
        return Ok(());
    }
    from(second)?;
    window.put_notify(second, 0, &[], Tag(1))?;
    from(second)?;
    check("what was put last", window.local().get(0)?, 2_u32)
}
