//! A rank holds up to three locks of different kinds, of different targets, and gives them back in
//! any order: random programs. What each lock promises is counted.
//!
//! Locks are asked for in the order of their targets, so that no two ranks wait for each other. A
//! rank that shares a piece asks for another exclusively only in programs without locks of all
//! pieces: it would wait for one of all that waits for a third rank.

use std::sync::atomic::{AtomicU32, Ordering};

use flagpost::epoch::Lock;
use flagpost::{Config, Error, Rank, Rma as _, Session, Window, World, rma::Operation};
use flagpost_common::Dice;
use flagpost_explore::coherent::Coherent;
use flagpost_link::{Link, Refusal};
use flagpost_mapped::{Mapped, MappedNative};
use flagpost_sim::{Config as Chip, Schedule, Sim, SimCore};

const RANKS: u16 = 4;
const ROUNDS: usize = 6;

/// Two words that only exclusive locks change, in two lines, and one that is added to.
const FIRST: usize = 0;
const FAR: usize = 16;
const ADDED: usize = 8;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum How {
    Shared,
    Exclusive,
    Queued,
}

/// What all ranks did: exclusive changes, and additions.
#[derive(Default)]
struct Done {
    changed: AtomicU32,
    added: AtomicU32,
}

// ORDERING: Relaxed: cores are coroutines of one thread.
const RELAXED: Ordering = Ordering::Relaxed;

type Words<'w, L> = Window<'w, u32, L>;

struct Held<'e, 'w, L: Link> {
    lock: Lock<'e, 'w, u32, L>,
    target: Rank,
    how: How,
}

impl<L: Link> Held<'_, '_, L> {
    /// What this lock allows, done while whichever others are held.
    fn work(&self, done: &Done) -> Result<(), Error> {
        let (lock, target) = (&self.lock, self.target);
        let [mut first, mut far] = [[0]; 2];
        lock.get(target, FIRST, &mut first)?;
        if self.how == How::Shared {
            lock.fetch_and_op(target, ADDED, 1, Operation::SUM)?;
            done.added.fetch_add(1, RELAXED);
            lock.get(target, FAR, &mut far)?;
            assert_eq!(first, far, "a writer is in between");
        } else {
            lock.get(target, FAR, &mut far)?;
            assert_eq!(first, far, "another writer is in between");
            lock.put(target, FAR, &[first[0] + 1])?;
            lock.put(target, FIRST, &[first[0] + 1])?;
            done.changed.fetch_add(1, RELAXED);
            lock.flush(target)?;
        }
        Ok(())
    }
}

/// What must be refused while the targets of these are locked, of which one may be queued for.
fn refuses<L: Link>(window: &Words<'_, L>, held: &[Held<'_, '_, L>]) -> Result<(), Error> {
    for target in held.iter().map(|held| held.target) {
        let twice = |call: Result<(), Error>| assert_eq!(call, Err(Error::LockedTwice(target)));
        twice(window.lock_shared(target).map(drop));
        twice(window.lock_exclusive(target).map(drop));
        twice(window.lock_queued(target).map(drop));
    }
    let refused = |call: Result<(), Error>| assert_eq!(call, Err(Error::EpochOpen));
    if !held.is_empty() {
        refused(window.lock_all().map(drop));
        refused(window.start(&window.world().group(&[])?).map(drop));
    }
    let mut others = (0..RANKS).map(Rank::new);
    let other = others.find(|rank| held.iter().all(|held| held.target != *rank));
    if let (true, Some(other)) = (held.iter().any(|held| held.how == How::Queued), other) {
        refused(window.lock_queued(other).map(drop));
    }
    Ok(())
}

/// An epoch of no targets lets no lock begin.
fn refuses_in_an_epoch<L: Link>(window: &Words<'_, L>) -> Result<(), Error> {
    let access = window.start(&window.world().group(&[])?)?;
    for target in (0..RANKS).map(Rank::new) {
        let refused = window.lock_exclusive(target).map(drop);
        assert_eq!(refused, Err(Error::EpochOpen));
        let refused = window.lock_shared(target).map(drop);
        assert_eq!(refused, Err(Error::EpochOpen));
    }
    assert_eq!(window.lock_all().map(drop), Err(Error::EpochOpen));
    access.complete()
}

/// One rank's locks.
fn play<L: Link>(
    window: &Words<'_, L>,
    dice: &mut Dice,
    with_all: bool,
    done: &Done,
) -> Result<(), Error> {
    for _ in 0..ROUNDS {
        refuses_in_an_epoch(window)?;
        if with_all && dice.below(3) == 0 {
            let all = window.lock_all()?;
            for target in (0..RANKS).map(Rank::new) {
                let [mut first, mut far] = [[0]; 2];
                all.get(target, FIRST, &mut first)?;
                all.get(target, FAR, &mut far)?;
                assert_eq!(first, far, "a writer is in between");
            }
            all.unlock()?;
        }
        let mut held: Vec<Held<'_, '_, L>> = Vec::new();
        for target in (0..RANKS).map(Rank::new) {
            if dice.below(4) == 0 {
                continue;
            }
            let mut how = [How::Shared, How::Exclusive, How::Queued][dice.below(3)];
            let has = |what: How| held.iter().any(|held| held.how == what);
            if how == How::Queued && has(How::Queued) {
                // One queue at a time: another lock that has gone does not change that.
                how = How::Exclusive;
            }
            let has_exclusive = has(How::Exclusive) || has(How::Queued);
            if with_all && has(How::Shared) && !has_exclusive {
                how = How::Shared;
            }
            let lock = match how {
                How::Shared => window.lock_shared(target)?,
                How::Exclusive => window.lock_exclusive(target)?,
                How::Queued => window.lock_queued(target)?,
            };
            held.push(Held { lock, target, how });
            refuses(window, &held)?;
            if dice.below(2) == 0 {
                held.last().map_or(Ok(()), |held| held.work(done))?;
            }
            while held.len() == 3 || !held.is_empty() && dice.below(3) == 0 {
                let gone = held.swap_remove(dice.below(held.len()));
                gone.work(done)?;
                gone.lock.unlock()?;
                refuses(window, &held)?;
            }
        }
        while !held.is_empty() {
            let gone = held.swap_remove(dice.below(held.len()));
            // Others hold what they did before.
            held.first().map_or(Ok(()), |held| held.work(done))?;
            gone.lock.unlock()?;
            refuses(window, &held)?;
        }
    }
    Ok(())
}

fn check<L: Link>(
    seed: u64,
    with_all: bool,
    start: &(impl Fn(SimCore) -> Result<L, Refusal> + Sync),
) {
    let chip = Chip {
        memory_size: 32 << 10,
        cores: RANKS,
        schedule: Schedule::Mixed,
        ..Chip::default()
    };
    let done = Done::default();
    let report = Sim::new(chip)
        .reseed(seed)
        .run(|core| -> Result<(), Error> {
            let mut arena = [0; 256];
            let world = World::start(start(core)?, &mut arena, Config::default())?;
            let window = world.allocate::<u32>(FAR + 1)?;
            let me = world.rank();
            let mut dice = Dice::new(seed << 8 | u64::from(me.get()));
            play(&window, &mut dice, with_all, &done)?;
            world.barrier()?;
            if me.get() == 0 {
                let all = window.lock_all()?;
                let mut sums = [0; 3];
                for target in (0..RANKS).map(Rank::new) {
                    for (place, sum) in [FIRST, FAR, ADDED].into_iter().zip(&mut sums) {
                        let mut word = [0];
                        all.get(target, place, &mut word)?;
                        *sum += word[0];
                    }
                }
                all.unlock()?;
                let changed = done.changed.load(RELAXED);
                assert_eq!(sums, [changed, changed, done.added.load(RELAXED)]);
            }
            // All is as it was: each can be had exclusively.
            world.barrier()?;
            let next = me.next(RANKS);
            window.lock_exclusive(next)?.unlock()?;
            world.barrier()
        });
    assert!(
        report.is_done(),
        "seed {seed}, with all {with_all}: {report}"
    );
}

#[test]
fn a_rank_holds_several_locks() {
    for seed in 0..100 {
        for with_all in [false, true] {
            check(seed, with_all, &|core| Mapped::start(core, Session::FIRST));
            let native = |core| MappedNative::start(core, Session::FIRST);
            check(seed, with_all, &native);
            // Its fast paths are those of a coherent machine.
            let coherent =
                |core| flagpost_coherent::Coherent::start(Coherent::new(core), Session::FIRST);
            check(seed, with_all, &coherent);
        }
    }
}
