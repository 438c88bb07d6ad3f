//! Payload that travels in notifications, and who is told of it: whoever learns, by any way, that a
//! rank has been notified finds the payload in that rank's memory. And what comes behind it, or
//! before.
//!
//! Three ranks take part: [`ZERO`] mostly is the producer, [`ONE`] the first consumer.

use flagpost::{Link, Rank, Rma as _, Tag, Window, World, epoch::Lock, rma::Operation};

use super::steps::{self, Signals, finds, holds};
use crate::{Result, context::check};

const ZERO: Rank = Rank::new(0);
const ONE: Rank = Rank::new(1);
const TWO: Rank = Rank::new(2);

/// Rounds of each case.
const ROUNDS: u32 = 3;

/// Words of the window: what is told of, a line that others may share, and the word by which one is
/// told.
const WORDS: usize = 64;
const WORD: usize = 40;

type Words<'w, L, S> = Window<'w, u32, L, S>;
type All<'e, 'w, L> = Lock<'e, 'w, u32, L>;

/// A part of a case: what `rank` does in a round.
type Part<L> = fn(&Window<'_, u32, L>, Rank, u32) -> Result;

/// Runs some rounds; each begins when all have ended the one before it.
pub(super) fn rounds<L: Link>(world: &World<'_, L>, part: Part<L>) -> Result {
    let window = world.allocate::<u32>(WORDS)?;
    for round in 1..=ROUNDS {
        part(&window, world.rank(), round)?;
        world.barrier()?;
    }
    Ok(())
}

/// Puts `value` at `at`, in the notification.
fn say<L: Link, S>(window: &Words<'_, L, S>, to: Rank, at: usize, value: u32) -> Result {
    Ok(window.put_notify(to, at, &[value], Tag(1))?)
}

/// Tells without a word.
fn tell<L: Link, S>(window: &Words<'_, L, S>, to: Rank) -> Result {
    Ok(window.notify(to, Tag(1))?)
}

/// Waits for so many notifications.
fn hear<L: Link, S>(window: &Words<'_, L, S>, from: Rank, count: u16) -> Result {
    steps::hear(window.expect(0..WORDS, Tag(1))?.from(from)?.times(count)?)?;
    Ok(())
}

/// What is in a peer's memory; what is looked at afterwards is not older.
fn look<L: Link>(all: &All<'_, '_, L>, at: Rank, index: usize) -> Result<u32> {
    let mut word = [0];
    all.get(at, index, &mut word)?;
    all.flush(at)?;
    let [word] = word;
    Ok(word)
}

/// Rank 1 has been notified and says so in a word of rank 2's by `say_so`. Rank 2 then looks at
/// rank 1's memory. Both have locked all pieces before: to lock one tells, too.
fn by_a_word<L: Link>(
    window: &Window<'_, u32, L>,
    (me, round): (Rank, u32),
    say_so: fn(&All<'_, '_, L>, u32) -> Result,
) -> Result {
    if me == ZERO {
        return say(window, ONE, 0, round);
    }
    if me != ONE && me != TWO {
        return Ok(());
    }
    let all = window.lock_all()?;
    if me == ONE {
        hear(window, ZERO, 1)?;
        say_so(&all, round)?;
    } else {
        while look(&all, TWO, WORD)? != round {
            window.world().link().relax();
        }
        check("payload", look(&all, ONE, 0)?, round)?;
    }
    Ok(all.unlock()?)
}

/// By an atomic operation of one word.
pub(super) fn by_fetch<L: Link>(window: &Window<'_, u32, L>, me: Rank, round: u32) -> Result {
    by_a_word(window, (me, round), |all, round| {
        all.fetch_and_op(TWO, WORD, round, Operation::REPLACE)?;
        Ok(())
    })
}

/// By one that has no operation of the machine.
pub(super) fn by_product<L: Link>(window: &Window<'_, u32, L>, me: Rank, round: u32) -> Result {
    by_a_word(window, (me, round), |all, round| {
        all.accumulate(TWO, WORD, &[round], Operation::MAX)?;
        all.flush(TWO)?;
        Ok(())
    })
}

/// By a put.
pub(super) fn by_put<L: Link>(window: &Window<'_, u32, L>, me: Rank, round: u32) -> Result {
    by_a_word(window, (me, round), |all, round| {
        all.put(TWO, WORD, &[round])?;
        all.flush(TWO)?;
        Ok(())
    })
}

/// By a post: rank 1 is told, then posts to rank 2, which gets from it.
pub(super) fn by_post<'w, L: Link, S: Signals<'w, L>>(world: &'w World<'w, L>) -> Result {
    let me = world.rank();
    let (targets, origins) = ([ONE], [TWO]);
    let window = world.allocate_with::<u32, S>(WORDS, S::posts(1))?;
    for round in 1..=ROUNDS {
        if me == ZERO {
            say(&window, ONE, 0, round)?;
        } else if me == ONE {
            hear(&window, ZERO, 1)?;
            window.post(origins)?.wait()?;
        } else if me == TWO {
            let access = window.start(targets)?;
            finds("payload", &access, ONE, 0, [round])?;
            access.complete()?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// A flush waits for the last payload.
pub(super) fn last_flushed<L: Link>(window: &Window<'_, u32, L>, me: Rank, round: u32) -> Result {
    if me == ZERO {
        let all = window.lock_all()?;
        say(window, ONE, 0, round)?;
        say(window, ONE, 16, round + 1)?;
        all.flush(ONE)?;
        check("the last", look(&all, ONE, 16)?, round + 1)?;
        all.unlock()?;
    } else if me == ONE {
        hear(window, ZERO, 2)?;
    }
    Ok(())
}

/// Longer data come behind older payload, wherever that lies among their bytes, and though newer
/// payload lies elsewhere.
pub(super) fn covered<L: Link>(window: &Window<'_, u32, L>, me: Rank, _: u32) -> Result {
    const LEN: usize = 8;
    for at in 0..LEN {
        if me == ZERO {
            say(window, ONE, at, 7)?;
            if at % 2 == 0 {
                say(window, ONE, 32, 8)?;
            }
            window.put_notify(ONE, 0, &[9; LEN], Tag(1))?;
            hear(window, ONE, 1)?;
        } else if me == ONE {
            hear(window, ZERO, if at % 2 == 0 { 3 } else { 2 })?;
            holds("what came last", &window.local(), 0, [9; LEN])?;
            tell(window, ZERO)?;
        }
    }
    Ok(())
}

/// A notification, with payload or without, comes behind puts that were no notified ones.
pub(super) fn behind_puts<L: Link>(window: &Window<'_, u32, L>, me: Rank, round: u32) -> Result {
    for step in 0..4 {
        let (len, value) = (if step < 2 { 1 } else { 16 }, 10 * round + step);
        if me == ZERO {
            let all = window.lock_all()?;
            // What came before is in memory: it does not order what follows.
            all.flush(ONE)?;
            all.put(ONE, 0, [value; 16].get(..len).unwrap_or(&[]))?;
            match step % 2 {
                0 => tell(window, ONE)?,
                _ => say(window, ONE, 32, value)?,
            }
            all.unlock()?;
            hear(window, ONE, 1)?;
        } else if me == ONE {
            hear(window, ZERO, 1)?;
            check("put before", window.local().get(len - 1)?, value)?;
            tell(window, ZERO)?;
        }
    }
    Ok(())
}

/// A producer that its target has answered finds its payload in memory, past the target's cache.
pub(super) fn answered<L: Link>(window: &Window<'_, u32, L>, me: Rank, round: u32) -> Result {
    if me == ZERO {
        let all = window.lock_all()?;
        say(window, ONE, 0, round)?;
        hear(window, ONE, 1)?;
        check("payload", look(&all, ONE, 0)?, round)?;
        all.unlock()?;
    } else if me == ONE {
        hear(window, ZERO, 1)?;
        tell(window, ZERO)?;
    }
    Ok(())
}

/// To unlock all pieces places what is under way, to whichever rank: who is told afterwards finds
/// it.
pub(super) fn unlocked<L: Link>(window: &Window<'_, u32, L>, me: Rank, round: u32) -> Result {
    if me == ZERO {
        let all = window.lock_all()?;
        say(window, ONE, 0, round)?;
        all.unlock()?;
        tell(window, TWO)?;
    } else if me == TWO {
        hear(window, ZERO, 1)?;
        let lock = window.lock_shared(ONE)?;
        finds("payload", &lock, ONE, 0, [round])?;
        lock.unlock()?;
    } else if me == ONE {
        hear(window, ZERO, 1)?;
    }
    Ok(())
}

/// An answer to one rank waits until what another has answered is in place. That takes a few steps
/// only: so it is tried often.
pub(super) fn answers_wait<L: Link>(window: &Window<'_, u32, L>, me: Rank, round: u32) -> Result {
    const OFTEN: u32 = 8;
    for value in OFTEN * round..OFTEN * (round + 1) {
        if me == ZERO {
            say(window, ONE, 0, value)?;
            hear(window, ONE, 1)?;
            hear(window, TWO, 1)?;
            window.put_notify(TWO, 24, &[9; 24], Tag(1))?; // longer than an entry
        } else if me == ONE {
            hear(window, ZERO, 1)?;
            tell(window, ZERO)?;
        } else if me == TWO {
            say(window, ZERO, 16, value)?;
            hear(window, ZERO, 1)?;
            let all = window.lock_all()?;
            check("payload", look(&all, ONE, 0)?, value)?;
            all.unlock()?;
        }
        window.world().barrier()?;
    }
    Ok(())
}

/// A rank that ends behind its match leaves nothing behind: a flush need not wait for more of it.
pub(super) fn ended<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(WORDS)?;
    if world.rank() == ZERO {
        let all = window.lock_all()?;
        say(&window, ONE, 0, 7)?;
        all.flush(ONE)?;
        check("payload", look(&all, ONE, 0)?, 7_u32)?;
        all.unlock()?;
    } else if world.rank() == ONE {
        hear(&window, ZERO, 1)?;
    }
    Ok(())
}
