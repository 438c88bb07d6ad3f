//! Payload that is longer than an entry of the ring: what the owner does with it, and what comes
//! between. Who stops in the middle: [`notify_stopped`](super::notify_stopped). Where ranks are few
//! and their message buffers large it travels in lines of its own; elsewhere these are cases like
//! the others.

use flagpost::{
    Budget, EpochSlots, Error, Link, Model, Rank, Rma as _, Tag, TagFilter, Unfinished, World,
};
use flagpost_link::Slots;

use super::notify_inline::{ROUNDS, check_all, start};
use super::steps::{finds, hear, holds, neighbours};
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

/// Who takes long payload finds what its producer put before, in memory: in front of it, or behind
/// it.
pub(super) fn behind<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 16;
    let (_, next, prev) = neighbours(world);
    let window = world.allocate::<u32>(2 * WORDS)?;
    let mut told = window.expect(0..2 * WORDS, Tag(1))?.from(prev)?;
    for round in 1..=ROUNDS {
        told.start()?;
        let lock = window.lock_all()?;
        let [plain, notified] = if round % 2 == 0 {
            [0, WORDS]
        } else {
            [WORDS, 0]
        };
        lock.put(next, plain, &[round; WORDS])?;
        window.put_notify(next, notified, &[round; WORDS], Tag(1))?;
        told.wait()?;
        check_all("both", &window.local(), 0..2 * WORDS, round)?;
        lock.unlock()?;
        world.barrier()?;
    }
    Ok(())
}

/// Who has heard of payload that its peer still holds makes a window with a matching list: its
/// first stores wait for that.
pub(super) fn list<L: Link>(world: &World<'_, L>) -> Result {
    let [first, second] = [0, 1].map(flagpost::Rank::new);
    let window = world.allocate::<u32>(SMALL)?;
    for round in 0..3 {
        if world.rank() == first {
            let mut told = window.expect(0..0, Tag(2))?.from(second)?;
            told.start()?;
            window.put_notify(second, 0, &[round; SMALL], Tag(1))?;
            told.wait()?;
        } else if world.rank() == second {
            hear(window.expect(0..SMALL, Tag(1))?.from(first)?)?;
            window.notify(first, Tag(2))?;
            for _ in 0..20 {
                world.link().relax();
            }
        }
        let other = world.allocate_with::<u32, flagpost::MatchingList<'_>>(1, 2)?;
        other.free()?;
    }
    Ok(())
}

/// Words of the window of [`small`]: two lines.
pub(super) const SMALL: usize = 16;

/// Rank 1 sends a line and the word before it; rank 0 finds them.
pub(super) fn small<L: Link>(window: &flagpost::Window<'_, u32, L>) -> Result {
    let world = window.world();
    let [first, second] = [0, 1].map(flagpost::Rank::new);
    let payload = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    if world.rank() == second {
        return Ok(window.put_notify(first, 7, &payload, Tag(1))?);
    }
    hear(window.expect(7..SMALL, Tag(1))?.from(second)?)?;
    holds("what came", &window.local(), 7, payload)
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
pub(super) fn streamed<L: Link, const N: usize>(world: &World<'_, L>) -> Result {
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

/// Puts over each other, while their target now and then moves to memory what it has of them.
pub(super) fn covered<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 100;
    let me = world.rank();
    let window = world.allocate::<u32>(3 + WORDS)?;
    for round in 1..=2 * ROUNDS {
        if me == SENDER {
            for value in [round, round + 100] {
                window.put_notify(TARGET, 3, &[value; WORDS], Tag(1))?;
            }
        } else if me == TARGET {
            let mut told = window
                .expect(3..3 + WORDS, Tag(1))?
                .from(SENDER)?
                .times(2)?;
            told.start()?;
            let lock = window.lock_all()?;
            let mut turn = round;
            while told.test()?.is_none() {
                turn += 1;
                if turn.is_multiple_of(4) {
                    lock.get(me, 0, &mut [0])?;
                }
                world.link().relax();
            }
            lock.unlock()?;
            check_all("what came last", &window.local(), 3..3 + WORDS, round + 100)?;
        }
        world.barrier()?;
        if me == SENDER {
            let lock = window.lock_all()?;
            lock.flush(TARGET)?;
            finds("in memory", &lock, TARGET, 3, [round + 100; WORDS])?;
            lock.unlock()?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// Two requests to one rank, each for far more than a ring holds, of one origin that goes on with
/// both in turn.
pub(super) fn both<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 1024;
    static DATA: [u32; WORDS] = [7; WORDS];
    let window = world.allocate::<u32>(WORDS)?;
    if world.rank() == SENDER {
        let mut puts = [
            window.to(TARGET, 0).notify(Tag(1)).put(&DATA)?,
            window.to(TARGET, 0).notify(Tag(1)).put(&DATA)?,
        ];
        while flagpost::wait_any(&mut puts)?.is_some() {}
    } else if world.rank() == TARGET {
        hear(window.expect(0..WORDS, Tag(1))?.from(SENDER)?.times(2)?)?;
        check_all("what came", &window.local(), 0..WORDS, 7)?;
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

/// A producer flushes what its target has, which does nothing but get from it meanwhile.
pub(super) fn got<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 20;
    let window = world.allocate::<u32>(8 + WORDS)?;
    let at = 8..8 + WORDS;
    for round in 1..=ROUNDS {
        let lock = window.lock_all()?;
        if world.rank() == SENDER {
            window.put_notify(TARGET, 8, &[round; WORDS], Tag(1))?;
            lock.flush(TARGET)?;
            lock.put(SENDER, 0, &[round])?;
        } else if world.rank() == TARGET {
            hear(window.expect(at.clone(), Tag(1))?.from(SENDER)?)?;
            let mut found = [0];
            while found != [round] {
                world.link().relax();
                lock.get(SENDER, 0, &mut found)?;
            }
            check_all("what came", &window.local(), at.clone(), round)?;
        }
        lock.unlock()?;
        world.barrier()?;
    }
    Ok(())
}

/// A target that has taken payload from two ranks, of one in lines, tells the other: who finds both
/// in its memory.
pub(super) fn of_two<L: Link, const N: usize>(world: &World<'_, L>) -> Result {
    let me = world.rank();
    let (at, third) = (start(N), Rank::new(2));
    let window = world.allocate::<u32>(at + N + 1)?;
    for round in 1..=2 * ROUNDS {
        if me == SENDER {
            window.put_notify(TARGET, at, &[round; N], Tag(1))?;
        } else if me == third {
            window.put_notify(TARGET, at + N, &[round], Tag(1))?;
            hear(window.expect(0..0, Tag(1))?.from(TARGET)?)?;
            let lock = window.lock_all()?;
            finds("in memory", &lock, TARGET, at, [round; N])?;
            lock.unlock()?;
        } else if me == TARGET {
            hear(window.expect(0..at + N + 1, Tag(1))?.times(2)?)?;
            window.notify(third, Tag(1))?;
        }
        world.barrier()?;
    }
    Ok(())
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

/// The same of two ranks, where one's payload ends in the middle of a line that the other fills.
pub(super) fn beside_other<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 24;
    let third = Rank::new(2);
    let window = world.allocate::<u32>(WORDS)?;
    for round in 1..=2 * ROUNDS {
        let other = round + 100;
        if world.rank() == SENDER {
            window.put_notify(TARGET, 0, &[round; 12], Tag(1))?;
        } else if world.rank() == third {
            window.put_notify(TARGET, 8, &[other; WORDS - 8], Tag(1))?;
        } else if world.rank() == TARGET {
            hear(window.expect(0..WORDS, Tag(1))?.times(2)?)?;
        }
        for _ in 0..2 {
            if world.rank() == TARGET {
                let local = window.local();
                check_all("of one", &local, 0..8, round)?;
                for index in 8..12 {
                    let found = local.get(index)?;
                    check("of both", [round, other].contains(&found), true)?;
                }
                check_all("of the other", &local, 12..WORDS, other)?;
            }
            world.barrier()?;
        }
    }
    Ok(())
}
