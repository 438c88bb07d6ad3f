//! How often others have a lock while one waits for it, where they take it again and again, in
//! simulated time.
//!
//! [`epoch::lock`](flagpost::epoch::lock#fairness) says what is promised. A queued lock comes in
//! its turn: whoever else is in the queue has it once. A shared one comes behind the writer that is
//! there, once it has counted in. A plain exclusive one among such has no turn, but pauses that are
//! drawn: that nobody is left out for long is what is measured here.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use flagpost::epoch::Lock;
use flagpost::{Budget, Config, Error, Rank, Rma as _, Session, Waiting, Window, World};
use flagpost_hal::Clock as _;
use flagpost_link::{Link, Refusal};
use flagpost_mapped::{Mapped, MappedNative};
use flagpost_sim::{Config as Chip, Schedule, Sim, SimCore};

type Words<'w, L> = Window<'w, u32, L>;

/// How a rank locks.
#[derive(Copy, Clone, Debug)]
enum How {
    Shared,
    All,
    /// All pieces or one, as the rank's number says.
    Mixed,
    Exclusive,
    Queued,
}

impl How {
    fn lock<'e, 'w, L: Link>(
        self,
        window: &'e Words<'w, L>,
        target: Rank,
    ) -> Result<Lock<'e, 'w, u32, L>, Error> {
        match self {
            Self::Mixed if window.world().rank().get().is_multiple_of(2) => window.lock_all(),
            Self::All => window.lock_all(),
            Self::Shared | Self::Mixed => window.lock_shared(target),
            Self::Exclusive => window.lock_exclusive(target),
            Self::Queued => window.lock_queued(target),
        }
    }
}

const SHARED: How = How::Shared;
const ALL: How = How::All;
const MIXED: How = How::Mixed;
const EXCLUSIVE: How = How::Exclusive;
const QUEUED: How = How::Queued;

/// How often the rank in question locks.
const ROUNDS: u32 = 30;

const TARGET: Rank = Rank::new(0);

/// Of `ranks` ranks, rank 1 locks rank 0's piece as `one` says and the others as `others` say, each
/// again at once. The most holds of others that one lock of rank 1 waited for.
fn overtaken(ranks: u16, one: How, others: How) -> u64 {
    overtaken_on(ranks, one, others, |core| {
        Mapped::start(core, Session::FIRST)
    })
}

/// [`overtaken`] on links that `start` gives.
fn overtaken_on<L: Link>(
    ranks: u16,
    one: How,
    others: How,
    start: impl Fn(SimCore) -> Result<L, Refusal>,
) -> u64 {
    let chip = Chip {
        // The target does nothing.
        cores: ranks + 1,
        memory_size: 32 << 10,
        schedule: Schedule::Timed,
        ..Chip::default()
    };
    // ORDERING: Relaxed: cores are coroutines of one thread.
    const RELAXED: Ordering = Ordering::Relaxed;
    let [holds, most, done] = [const { AtomicU64::new(0) }; 3];
    let report = Sim::new(chip).run(|core| -> Result<(), Error> {
        let mut arena = [0; 256];
        let world = World::start(start(core)?, &mut arena, Config::default())?;
        let window = world.allocate::<u32>(1)?;
        let (target, it) = (world.rank() == TARGET, world.rank().get() == 1);
        let mut round = 0;
        // The others go on until rank 1 has had all its locks.
        while !target && done.load(RELAXED) == 0 {
            let before = holds.load(RELAXED);
            let lock = if it { one } else { others }.lock(&window, TARGET)?;
            let waited = holds.fetch_add(1, RELAXED) - before;
            let mut word = [0];
            lock.get(TARGET, 0, &mut word)?;
            lock.unlock()?;
            round += 1;
            if it {
                most.fetch_max(waited, RELAXED);
                done.store(u64::from(round == ROUNDS), RELAXED);
            }
        }
        world.barrier()
    });
    report.assert_done();
    most.into_inner()
}

/// In turn: everybody else once.
#[test]
fn queued_locks_come_in_turn() {
    for ranks in [2, 3, 5, 8] {
        let most = overtaken(ranks, QUEUED, QUEUED);
        println!("{ranks} ranks: {most}");
        assert!(most < u64::from(ranks), "{ranks} ranks: {most}");
    }
}

/// The writer that is there, and those that come while this rank counts in: as many as there are,
/// at the most.
#[test]
fn readers_come_behind_the_present_writer() {
    for (what, one, others) in [
        ("shared, queued", SHARED, QUEUED),
        ("all, queued", ALL, QUEUED),
        ("shared, exclusive", SHARED, EXCLUSIVE),
        ("all, exclusive", ALL, EXCLUSIVE),
    ] {
        for ranks in [2, 3, 5, 8] {
            let most = overtaken(ranks, one, others);
            println!("{what}, {ranks} ranks: {most}");
            assert!(
                most <= 4 * u64::from(ranks),
                "{what}, {ranks} ranks: {most}"
            );
        }
    }
}

/// No turn, but nobody is left out: with pauses that only grew, three ranks fell into step, and one
/// of them never got it.
#[test]
fn exclusive_locks_are_had_by_all() {
    for (what, one) in [("exclusive", EXCLUSIVE), ("queued among exclusive", QUEUED)] {
        for ranks in [2, 3, 5, 8] {
            let most = overtaken(ranks, one, EXCLUSIVE);
            println!("{what}, {ranks} ranks: {most}");
            assert!(
                most <= 10 * u64::from(ranks),
                "{what}, {ranks} ranks: {most}"
            );
        }
    }
}

/// A writer that waits keeps new readers out: it waits for those that are there, and those that
/// come until it has said so. On a machine that changes words in one step: where that takes a lock
/// of the machine, a rank has that one by chance.
#[test]
fn writers_get_their_turn_among_readers() {
    for (what, one, others, times) in [
        ("exclusive, shared", EXCLUSIVE, SHARED, 4),
        ("queued, shared", QUEUED, SHARED, 4),
        ("exclusive, all", EXCLUSIVE, ALL, 4),
        ("queued, all", QUEUED, ALL, 4),
        ("exclusive, mixed", EXCLUSIVE, MIXED, 4),
        ("queued, mixed", QUEUED, MIXED, 5),
    ] {
        for ranks in [2, 3, 5, 8, 16] {
            let native = |core| MappedNative::start(core, Session::FIRST);
            let most = overtaken_on(ranks, one, others, native);
            println!("{what}, {ranks} ranks: {most}");
            assert!(
                most <= times * u64::from(ranks),
                "{what}, {ranks} ranks: {most}"
            );
        }
    }
}

/// Holders of all pieces are counted beyond a byte: 256 of them keep an exclusive lock out.
#[test]
fn many_hold_all() {
    const HOLDERS: u16 = 256;
    let chip = Chip {
        memory_size: 32 << 10,
        budgets_expire: 1,
        ..Chip::quiet(HOLDERS + 1)
    };
    let report = Sim::new(chip).run(|core| -> Result<(), Error> {
        let mut arena = [0; 1024];
        let world = World::start(
            Mapped::start(core, Session::FIRST)?,
            &mut arena,
            Config::default(),
        )?;
        let window = world.allocate::<u32>(1)?;
        if world.rank() == TARGET {
            world.barrier()?;
            let late = window
                .locking_exclusive(TARGET)?
                .wait_within(Budget::microseconds(20));
            assert!(matches!(&late, Err(late) if matches!(late.error, Error::Timeout(_))));
            drop(late);
            world.barrier()?;
        } else {
            let lock = window.lock_all()?;
            world.barrier()?;
            world.barrier()?;
            lock.unlock()?;
        }
        world.barrier()?;
        window.lock_exclusive(TARGET)?.unlock()
    });
    report.assert_done();
}

/// A reader that unlocks and locks again: the word is free at many looks, and taken when the
/// attempt comes. All attempts together have the budget, not each: one and a half times what a hold
/// takes is enough for any one of them, and too little for all.
#[test]
fn attempts_share_a_budget() {
    for queued in [false, true] {
        for hold in (4_000..16_000).step_by(1_000) {
            let late = attempts(queued, hold);
            assert!(
                late > 0,
                "queued {queued}, held {hold}: nothing was waited for"
            );
        }
    }
}

/// How many of ten attempts run out of their budget, where a reader holds the lock for so many
/// cycles.
fn attempts(queued: bool, hold: u32) -> u32 {
    let chip = Chip {
        memory_size: 16 << 10,
        schedule: Schedule::Timed,
        cores: 2,
        ..Chip::default()
    };
    // ORDERING: Relaxed: cores are coroutines of one thread.
    const RELAXED: Ordering = Ordering::Relaxed;
    let (done, all) = (AtomicU64::new(0), Cell::new(0));
    let report = Sim::new(chip).run(|core| -> Result<(), Error> {
        let mut arena = [0; 256];
        let link = Mapped::start(core.clone(), Session::FIRST)?;
        let world = World::start(link, &mut arena, Config::default())?;
        let window = world.allocate::<u32>(1)?;
        if world.rank() == TARGET {
            // A rank that has another lock does not give way.
            let other = window.lock_shared(Rank::new(1))?;
            while done.load(RELAXED) == 0 {
                let lock = window.lock_shared(TARGET)?;
                core.spend(hold);
                lock.unlock()?;
            }
            other.unlock()?;
            return world.barrier();
        }
        let microseconds = u64::from(hold) * 3 / 2 * 1_000_000 / core.hertz();
        let budget = microseconds * core.hertz() / 1_000_000;
        let limit = Budget::microseconds(microseconds);
        let (mut late, begun) = (0, core.cycles());
        for _ in 0..10 {
            let lock = if queued {
                window.locking_queued(TARGET)?.wait_within(limit)
            } else {
                window.locking_exclusive(TARGET)?.wait_within(limit)
            };
            match lock {
                Ok(lock) => lock.unlock()?,
                Err(unfinished) => {
                    assert!(matches!(unfinished.error, Error::Timeout(_)));
                    late += 1;
                    drop(unfinished);
                }
            }
        }
        let cycles = core.cycles() - begun;
        println!(
            "queued {queued}, held {hold}: {late} of 10 late, {cycles} cycles, budgets of {budget}"
        );
        all.set(late);
        assert!(cycles < 11 * (budget + u64::from(hold)), "{cycles}");
        done.store(1, RELAXED);
        world.barrier()
    });
    report.assert_done();
    all.get()
}

/// A timeout of a lock of all pieces says how many ranks have exclusive locks; which ones, nothing
/// records.
#[test]
fn who_waits_for_all_pieces_is_told_how_many_ranks_have_some() {
    let chip = Chip {
        memory_size: 16 << 10,
        cores: 4,
        budgets_expire: 1,
        ..Chip::default()
    };
    let report = Sim::new(chip).run(|core| -> Result<(), Error> {
        let mut arena = [0; 256];
        let world = World::start(
            Mapped::start(core, Session::FIRST)?,
            &mut arena,
            Config::default(),
        )?;
        let window = world.allocate::<u32>(1)?;
        let me = world.rank();
        // Each rank is counted once.
        let targets: &[u16] = match me.get() {
            1 => &[0],
            2 => &[1, 3],
            _ => &[],
        };
        let locks = targets
            .iter()
            .map(|target| window.lock_exclusive(Rank::new(*target)));
        let locks = locks.collect::<Result<Vec<_>, _>>()?;
        world.barrier()?;
        if me.get() == 3 {
            let late = window.locking_all().wait_within(Budget::microseconds(100));
            let late = late.expect_err("it is locked");
            let Error::Timeout(timeout) = late.error else {
                return Err(late.error);
            };
            assert_eq!(timeout.waiting, Waiting::Unlock);
            assert_eq!(timeout.missing.count(), 2);
            assert_eq!(timeout.missing.ranks().count(), 0);
            drop(late);
        }
        world.barrier()?;
        for lock in locks {
            lock.unlock()?;
        }
        window.lock_all()?.unlock()?;
        Ok(())
    });
    report.assert_done();
}
