//! Payload that is longer than an entry of the ring: what the owner does with it, and what comes
//! between. Who stops in the middle: [`notify_stopped`](super::notify_stopped). Where ranks are few
//! and their message buffers large it travels in lines of its own; elsewhere these are cases like
//! the others.

use flagpost::{Budget, EpochSlots, Error, Link, Model, Rank, Tag, TagFilter, Unfinished, World};
use flagpost_link::Slots;

use super::notify_inline::{ROUNDS, check_all, start};
use super::steps::{finds, hear};
use crate::{Result, context::check};

/// Who sends, and whom to, in cases with two parts.
pub(super) const SENDER: Rank = Rank::new(0);
pub(super) const TARGET: Rank = Rank::new(1);

/// Payload that nobody wanted, for a window that is gone, does not come over what its memory
/// becomes: slots, which are stored to past the cache, and before anybody is told.
pub(super) fn discarded<L: Link>(world: &World<'_, L>) -> Result {
    /// What says in a slot's number that it lies in the message buffer.
    const IN_BUFFER: usize = 1 << (usize::BITS - 1);
    const LEN: usize = 64;
    let link = world.link();
    let mut count = 1024;
    while count > 0 {
        match link.allocate_slots(Slots::Count(count)) {
            Ok(slot) if slot.0 & IN_BUFFER != 0 => continue,
            Ok(slot) => link.withdraw(slot),
            Err(_) => {}
        }
        count /= 2;
    }
    for _ in 0..ROUNDS {
        let window = world.allocate::<u32>(LEN)?;
        if world.rank() == SENDER {
            window.put_notify(TARGET, 0, &[5; LEN], Tag(1))?;
        }
        if let Err(Unfinished { handle, error }) = window.freeing().wait_within(Budget::UNLIMITED) {
            check("it is told", matches!(error, Error::Unmatched { .. }), true)?;
            let window = handle.keep();
            window.discard_notifications()?;
            window.free()?;
        }
        let slots = link.allocate_slots(Slots::Count(LEN as u32))?;
        world.barrier()?;
        for index in 0..LEN {
            check("new slot", link.reached(slots.plus(index), 1)?, false)?;
        }
        world.barrier()?;
        link.withdraw(slots);
    }
    Ok(())
}

/// What the owner does around long payload: own loads and stores in its lines, through the cache
/// and past it.
pub(super) fn around<L: Link, const N: usize>(world: &World<'_, L>, model: Model) -> Result {
    let (me, size) = (world.rank(), world.size());
    let (next, at) = (me.next(size), start(N));
    let window = world.allocate_with::<u32, EpochSlots<'_>>(at + N + 1, model)?;
    let mut told = window.expect(0..at + N + 1, Tag(1))?.from(me.prev(size))?;
    let mut all = [0; 32];
    for round in 1..=6 * ROUNDS {
        told.start()?;
        world.barrier()?;
        window.put_notify(next, at, &[round; N], Tag(1))?;
        told.wait()?;
        let local = window.local();
        match round % 6 {
            0 => check_all("itself", &local, at..at + N, round)?,
            1 => local.set(at + N / 2, round + 100)?,
            2 => {
                // In the lines that it does not fill.
                local.set(at + N, round)?;
                local.set(at.saturating_sub(1), round)?;
            }
            3 => {
                let itself = all.get_mut(..N).unwrap_or_default();
                local.copy_out(at, itself)?;
                check("at once", itself.iter().all(|word| *word == round), true)?;
            }
            4 => {
                // Its last line is not all its own.
                let more = all.get_mut(..=N).unwrap_or_default();
                local.copy_out(at, more)?;
                let itself = more.iter().take(N);
                check("among others", itself.eq(&[round; N]), true)?;
            }
            _ => {
                // Past the cache.
                let lock = window.lock_all()?;
                finds("own, past the cache", &lock, me, at, [round; N])?;
                lock.unlock()?;
            }
        }
        world.barrier()?;
        let changed = if round % 6 == 1 { round + 100 } else { round };
        check("later, its middle", local.get(at + N / 2)?, changed)?;
        check_all("later", &local, at..at + N / 2, round)?;
        check_all("later, behind", &local, at + N / 2 + 1..at + N, round)?;
    }
    Ok(())
}

/// Payload of all lengths, more of it than the ring has room for, to one place and to others, from
/// all ranks to the first.
pub(super) fn lengths<L: Link>(world: &World<'_, L>) -> Result {
    const MOST: usize = 40;
    let (me, size) = (world.rank(), world.size());
    let first = SENDER;
    let piece = |rank: flagpost::Rank| rank.index() * MOST;
    let window = world.allocate::<u32>(MOST * usize::from(size))?;
    for round in 1..=2 * ROUNDS {
        // Every length, some at other places.
        let count = |step: u32| (step * 7 + round) as usize % MOST + 1;
        let skipped = |step: u32| (step as usize * 5) % (MOST + 1 - count(step));
        if me == first {
            for source in (1..size).map(flagpost::Rank::new) {
                for step in 0..4 {
                    let (len, at) = (count(step), piece(source) + skipped(step));
                    hear(window.expect(at..at + len, Tag(step))?.from(source)?)?;
                    if step == 3 {
                        check_all("what came last", &window.local(), at..at + len, round)?;
                    }
                }
            }
        } else {
            for step in 0..4 {
                let data = [if step == 3 { round } else { step }; MOST];
                let at = piece(me) + skipped(step);
                let data = data.get(..count(step)).unwrap_or(&[]);
                window.put_notify(first, at, data, Tag(step))?;
            }
        }
        world.barrier()?;
    }
    Ok(())
}

/// More puts of a few words to one place than any ring has lines, to a target that tells nobody
/// anything: it goes on giving room.
pub(super) fn streamed<L: Link>(world: &World<'_, L>) -> Result {
    const N: usize = 6;
    const PUTS: u16 = 140;
    let window = world.allocate::<u32>(N)?;
    let last = u32::from(PUTS);
    if world.rank() == SENDER {
        let lock = window.lock_all()?;
        for put in 1..=last {
            window.put_notify(TARGET, 0, &[put; N], Tag(1))?;
        }
        lock.flush(TARGET)?;
        finds("what was flushed", &lock, TARGET, 0, [last; N])?;
        lock.unlock()?;
    } else if world.rank() == TARGET {
        hear(window.expect(0..N, Tag(1))?.from(SENDER)?.times(PUTS)?)?;
        check_all("what came last", &window.local(), 0..N, last)?;
    }
    Ok(world.barrier()?)
}

/// A producer with more unexpected notifications than it has room for: it gets its payload through
/// all the same.
pub(super) fn crowded<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 600;
    const UNMATCHED: u16 = 64 + 4; // the queue holds 64
    let window = world.allocate::<u32>(WORDS)?;
    if world.rank() == SENDER {
        window.put_notify(TARGET, 0, &[1; WORDS], Tag(1))?;
        hear(
            window
                .expect(0..0, Tag(2))?
                .from(TARGET)?
                .times(UNMATCHED)?,
        )?;
    } else if world.rank() == TARGET {
        for _ in 0..UNMATCHED {
            window.notify(SENDER, Tag(2))?;
        }
        hear(window.expect(0..WORDS, Tag(1))?.from(SENDER)?)?;
        check_all("what came", &window.local(), 0..WORDS, 1)?;
    }
    Ok(world.barrier()?)
}

/// Puts of which nothing orders one before the other: of two to the same word either may win, but
/// neither loses what it has beside that. Here a word comes while payload over it is under way.
pub(super) fn beside_word<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 600;
    const AT: usize = 500;
    static DATA: [u32; WORDS] = [7; WORDS];
    let window = world.allocate::<u32>(WORDS)?;
    if world.rank() == SENDER {
        let put = window.to(TARGET, 0).notify(Tag(1)).put(&DATA)?;
        window.put_notify(TARGET, AT, &[9], Tag(2))?;
        put.wait()?;
    } else if world.rank() == TARGET {
        hear(
            window
                .expect(0..WORDS, TagFilter::Any)?
                .from(SENDER)?
                .times(2)?,
        )?;
    }
    for _ in 0..2 {
        if world.rank() == TARGET {
            let local = window.local();
            check_all("before it", &local, 0..AT, 7)?;
            check("itself", [7, 9].contains(&local.get(AT)?), true)?;
            check_all("behind it", &local, AT + 1..WORDS, 7)?;
        }
        world.barrier()?;
    }
    Ok(())
}
