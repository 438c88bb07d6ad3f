//! What calls cost where `docs/costs.md` does not say it (a test of `bench` compares that table):
//! lines that caches move, and accesses among more than two ranks.
//!
//! Each count is the difference between two runs that differ in the calls in question, on a chip
//! that does nothing on its own account.

mod collectives;
mod pscw;

use std::mem::forget;
use std::ops::Range;

use flagpost::epoch::Assert;
use flagpost::{
    Config, EpochSlots, Error, Link, Model, Rank, Rma as _, Session, Tag, Window, World,
};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config as Chip, Counters, Schedule, Sim, SimCore};

pub(crate) type Worlds<'w> = World<'w, Mapped<SimCore>>;
type Words<'w> = Window<'w, u32, Mapped<SimCore>>;

/// What is counted.
type Count = fn(&Counters) -> u64;

/// Words of a line.
const WORDS: usize = <Mapped<SimCore> as Link>::LINE / 4;

/// Words of a window: 8 lines.
const LINES: usize = 8 * WORDS;

/// A chip that does nothing on its own account.
pub(crate) fn quiet(cores: u16) -> Chip {
    Chip {
        memory_size: 32 << 10,
        max_steps: 1 << 30,
        ..Chip::quiet(cores)
    }
}

/// What each core did in `program`, with so many words of arena.
fn run_on(
    chip: Chip,
    words: usize,
    program: &dyn Fn(&Worlds<'_>) -> Result<(), Error>,
) -> Vec<Counters> {
    let report = Sim::new(chip).run(|core| {
        let mut arena = vec![0; words];
        let link = Mapped::start(core, Session::FIRST)?;
        let world = World::start(link, &mut arena, Config::default())?;
        program(&world)?;
        world.barrier()
    });
    report.assert_done();
    report.counters
}

/// [`run_on`] the usual chip.
pub(crate) fn run(
    cores: u16,
    words: usize,
    program: &dyn Fn(&Worlds<'_>) -> Result<(), Error>,
) -> Vec<Counters> {
    run_on(quiet(cores), words, program)
}

/// What each core did more in `with` than in `without`.
fn more<const N: usize>(
    counts: [Count; N],
    with: &[Counters],
    without: &[Counters],
) -> Vec<[u64; N]> {
    let less = |(with, without)| counts.map(|count| count(with) - count(without));
    with.iter().zip(without).map(less).collect()
}

/// What each core does more with a window of [`LINES`] in `program` if it is told `true`.
fn costs<const N: usize>(
    chip: &Chip,
    model: Model,
    counts: [Count; N],
    program: &dyn Fn(&Worlds<'_>, &Words<'_>, bool) -> Result<(), Error>,
) -> Vec<[u64; N]> {
    let [with, without] = [true, false].map(|calls| {
        run_on(chip.clone(), 256, &|world| {
            let window = world.allocate_with::<u32, EpochSlots<'_>>(LINES, model)?;
            program(world, &window, calls)
        })
    });
    more(counts, &with, &without)
}

/// An epoch of two ranks: lines written back and invalidated by the origin, none; by the target,
/// those that it exposes, and no other.
#[test]
fn epochs_move_only_the_lines_that_they_expose() {
    const WRITTEN: [Count; 2] = [|rank| rank.write_backs, |rank| rank.invalidations];
    let exposed = |model, range: Option<Range<usize>>| {
        costs(&quiet(2), model, WRITTEN, &|world, window, epoch| {
            for line in 0..8 {
                window.local().set(line * WORDS, 1)?;
            }
            if !epoch {
                return Ok(());
            }
            let [origin, target] = [0, 1].map(Rank::new);
            if world.rank() == origin {
                let access = window.start([target])?;
                let exposed = range.clone().unwrap_or(0..LINES);
                access.put(target, exposed.start, &[5][..exposed.len().min(1)])?;
                return access.complete();
            }
            match range.clone() {
                Some(range) => window.post_range(range, [origin])?.wait(),
                None => window.post([origin])?.wait(),
            }
        })
    };
    for (range, lines) in [
        (None, 8),
        (Some(0..LINES), 8),
        (Some(0..1), 1),
        (Some(WORDS - 1..WORDS + 1), 2),
        (Some(0..0), 0),
    ] {
        let found = exposed(Model::Separate, range.clone());
        assert_eq!(found, [[0, 0], [lines, lines]], "{range:?}");
    }
    assert_eq!(exposed(Model::Unified, None), [[0, 0], [0, 0]]);
}

/// Each assertion of a fence saves its steps, and no other: write-backs, invalidations, drains and
/// words stored at peers in two fences.
#[test]
fn assertions_save_what_they_say() {
    const NONE: Assert = Assert::empty();
    const FENCE: [Count; 4] = [
        |rank| rank.write_backs,
        |rank| rank.invalidations,
        |rank| rank.drains,
        |rank| rank.stores_remote,
    ];
    const NOTHING: Assert = Assert::NO_PRECEDE.union(Assert::NO_SUCCEED);
    for (stores, first, second, expected) in [
        // Publishing drains, and so does a flush. The first one refreshes, too: peers may have put
        // under locks.
        (true, NONE, NONE, [8, 16, 4, 2]),
        (false, NONE, NONE, [0, 16, 4, 2]),
        (false, Assert::NO_STORE, NONE, [0, 16, 3, 2]),
        (true, NONE, Assert::NO_STORE, [8, 16, 3, 2]),
        (true, Assert::NO_PUT, NONE, [8, 8, 4, 2]),
        (true, NONE, Assert::NO_PUT, [8, 16, 4, 2]),
        (true, Assert::NO_PRECEDE, NONE, [8, 8, 3, 2]),
        (true, NONE, Assert::NO_PRECEDE, [8, 8, 3, 2]),
        // What was stored before must outlive it.
        (true, NONE, Assert::NO_SUCCEED, [8, 16, 4, 2]),
        (true, NONE, NOTHING, [8, 8, 3, 1]),
        (true, NONE, NOTHING.union(Assert::NO_STORE), [8, 8, 2, 1]),
    ] {
        let found = costs(&quiet(2), Model::Separate, FENCE, &|_, window, fences| {
            if stores {
                for line in 0..8 {
                    window.local().set(line * WORDS, 1)?;
                }
            }
            if fences {
                let epoch = window.fence(first)?;
                for line in 0..8 {
                    window.local().get(line * WORDS)?;
                }
                forget(epoch.fence(second)?);
            }
            Ok(())
        });
        assert_eq!(found[0], expected, "{stores} {first:?} {second:?}");
    }
}

/// However many want a piece in turn, and however long they wait: none asks more of others than the
/// module says.
#[test]
fn queued_locks_are_bounded_in_remote_requests() {
    const ROUNDS: u64 = 5;
    const ASKED: [Count; 2] = [|rank| rank.locks, |rank| rank.loads_remote];
    for cores in [2, 5, 9] {
        let found = costs(
            &quiet(cores),
            Model::Separate,
            ASKED,
            &|_, window, locks| {
                let first = Rank::new(0);
                for _ in 0..if locks { ROUNDS } else { 0 } {
                    let lock = window.lock_queued(first)?;
                    let mut count = [0];
                    lock.get(first, 0, &mut count)?;
                    lock.put(first, 0, &[count[0] + 1])?;
                    lock.unlock()?;
                }
                Ok(())
            },
        );
        for &[operations, loads] in &found[1..] {
            assert!(
                operations <= ROUNDS * (8 + 3),
                "{cores} cores: {operations}"
            );
            // One in each remote operation, and that of the get.
            assert!(loads <= ROUNDS * (8 + 1), "{cores} cores: {loads}");
        }
    }
}

/// Notified puts of rank 1 to rank 0. Where two ranks have a ring for themselves: a line, and
/// nothing else; data that do not fit in it: their lines. Where many share one: an atomic operation
/// to be given a place, and a look at how far the ring was read.
#[test]
fn a_notified_put_is_a_line() {
    const PUTS: u16 = 5;
    const PUT: [Count; 4] = [
        |rank| rank.loads_remote,
        |rank| rank.stores_remote,
        |rank| rank.lines_remote,
        |rank| rank.locks,
    ];
    for (cores, words, expected) in [
        (2, 2, [0, 0, 5, 0]),
        (4, 4, [0, 0, 5, 0]),
        (2, 0, [0, 0, 5, 0]),
        (2, WORDS, [0, 0, 2 * 5, 0]),
        (5, 2, [5 + 1, 2 * 5, 5, 5]),
    ] {
        // Where time is kept, the combining buffer leaves in one piece.
        let chip = Chip {
            schedule: Schedule::Timed,
            ..quiet(cores)
        };
        let found = costs(&chip, Model::Separate, PUT, &|world, window, puts| {
            let [target, origin] = [0, 1].map(Rank::new);
            if puts && world.rank() == origin {
                for _ in 0..PUTS {
                    window.put_notify(target, 0, &[7; WORDS][..words], Tag(1))?;
                }
            } else if puts && world.rank() == target {
                let all = window.expect(0..WORDS, Tag(1))?;
                let mut all = all.from(origin)?.times(PUTS)?;
                all.start()?;
                all.wait()?;
            }
            Ok(())
        });
        assert_eq!(found[1], expected, "{words} words among {cores}");
    }
}
