//! How often readers have a lock while a writer waits for it, as threads of this machine.
//!
//! No test asks how long something takes: what is counted is the readers' turns.

use std::sync::atomic::{AtomicU64, Ordering};

use flagpost::{Error, Rank};

#[path = "limit/threads.rs"]
mod threads;

use threads::within;

/// How often the writer locks.
const ROUNDS: usize = 50;

/// Where the counts come in order, that is the program's doing.
const RELAXED: Ordering = Ordering::Relaxed;

/// All ranks but rank 1 lock rank 0's piece, shared or among all, again at once. The writer's locks
/// wait for `TURNS` of each rank's turns at the most, taken together: few each, and many where the
/// system does not let the writer run before it has said that it waits.
fn writers_among_readers(ranks: u16, queued: bool, all: bool) {
    const TURNS: u64 = 200 * ROUNDS as u64;
    let (turns, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let target = Rank::new(0);
    let waited = flagpost_linux::threads(ranks, |world| {
        let window = world.allocate::<u32>(1)?;
        let mut waited = Vec::new();
        world.barrier()?;
        if world.rank().get() == 1 {
            // Readers are there.
            while turns.load(RELAXED) < u64::from(ranks) {
                std::thread::yield_now();
            }
            for _ in 0..ROUNDS {
                let before = turns.load(RELAXED);
                let lock = match queued {
                    true => window.lock_queued(target)?,
                    false => window.lock_exclusive(target)?,
                };
                waited.push(turns.load(RELAXED) - before);
                lock.unlock()?;
            }
            done.store(1, RELAXED);
        } else {
            while done.load(RELAXED) == 0 {
                let lock = match all {
                    true => window.lock_all()?,
                    false => window.lock_shared(target)?,
                };
                turns.fetch_add(1, RELAXED);
                lock.unlock()?;
            }
        }
        world.barrier()?;
        Ok::<_, Error>(waited)
    });
    let waited = waited.expect("all have had their locks").concat();
    assert_eq!(waited.len(), ROUNDS);
    let (all_turns, most) = (waited.iter().sum::<u64>(), waited.iter().max());
    println!("{ranks} ranks, queued {queued}, all {all}: {all_turns} turns, {most:?} at the most");
    assert!(all_turns <= TURNS * u64::from(ranks), "{waited:?}");
}

#[test]
fn writers_have_their_turn_among_readers() {
    for ranks in [4, 8, 16] {
        for (queued, all) in [(false, false), (true, false), (false, true), (true, true)] {
            within(|| writers_among_readers(ranks, queued, all));
        }
    }
}
