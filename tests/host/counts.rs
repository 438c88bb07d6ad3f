//! What calls cost, counted by the simulator: lines that caches move, and remote accesses.
//!
//! Each count is the difference between two runs that differ in the calls in question, on a chip
//! that does nothing on its own account.

use std::mem::forget;

use flagpost::epoch::{Assert, Lock};
use flagpost::{
    Compare, Config, Counter, EpochSlots, Events, Link, Model, Rank, Rma as _, Session, Signal,
    Tag, Window, World,
};
use flagpost_link::Refusal;
use flagpost_mapped::{Mapped, Native};
use flagpost_sim::{Config as Chip, Counters, Schedule, Sim, SimCore};

type Words<'w> = Window<'w, u32, Mapped<SimCore>>;

/// What a core does.
type Program<'p> =
    &'p dyn Fn(&World<'_, Mapped<SimCore>>, &Words<'_>) -> Result<(), flagpost::Error>;

/// A chip that does nothing on its own account.
fn quiet(cores: u16) -> Chip {
    Chip {
        memory_size: 16 << 10,
        ..Chip::quiet(cores)
    }
}

/// What each core did in `program`, which is run with a window of 8 lines of words.
fn counters(cores: u16, model: Model, program: Program<'_>) -> Vec<Counters> {
    counters_on(quiet(cores), model, program)
}

fn counters_on(chip: Chip, model: Model, program: Program<'_>) -> Vec<Counters> {
    let report = Sim::new(chip).run(|core| {
        let mut arena = [0; 256];
        let link = Mapped::start(core, Session::FIRST)?;
        let world = World::start(link, &mut arena, Config::default())?;
        let window = world.allocate_with::<u32, EpochSlots<'_>>(8 * WORDS, model)?;
        program(&world, &window)?;
        world.barrier()
    });
    report.assert_done();
    report.counters
}

/// Words of a line.
const WORDS: usize = <Mapped<SimCore> as Link>::LINE as usize / 4;

/// An epoch in which rank 1 exposes some lines to rank 0, after it has stored to all.
fn exposed_lines(model: Model, range: Option<std::ops::Range<usize>>) -> [(u64, u64); 2] {
    let run = |epoch: bool| {
        counters(2, model, &|world, window| {
            let (origin, target) = ([Rank::new(0)], [Rank::new(1)]);
            for line in 0..8 {
                window.local().set(line * WORDS, 1)?;
            }
            if !epoch {
                return Ok(());
            }
            if world.rank() == origin[0] {
                let access = window.start(&world.group(&target)?)?;
                let exposed = range.clone().unwrap_or(0..8 * WORDS);
                access.put(target[0], exposed.start, &[5][..exposed.len().min(1)])?;
                return access.complete();
            }
            let origins = world.group(&origin)?;
            let exposure = match range.clone() {
                Some(range) => window.post_range(range, &origins)?,
                None => window.post(&origins)?,
            };
            exposure.wait()
        })
    };
    let (with, without) = (run(true), run(false));
    [0, 1].map(|core: usize| {
        let (with, without) = (with[core], without[core]);
        (
            with.write_backs - without.write_backs,
            with.invalidations - without.invalidations,
        )
    })
}

/// Lines written back and invalidated: at the origin none; at the target those that it exposed, and
/// no other.
#[test]
fn epochs_move_only_the_lines_that_they_expose() {
    const NONE: (u64, u64) = (0, 0);
    let separate = |range| exposed_lines(Model::Separate, range);
    assert_eq!(separate(None), [NONE, (8, 8)]);
    assert_eq!(separate(Some(0..8 * WORDS)), [NONE, (8, 8)]);
    assert_eq!(separate(Some(0..1)), [NONE, (1, 1)]);
    assert_eq!(separate(Some(WORDS - 1..WORDS + 1)), [NONE, (2, 2)]);
    assert_eq!(separate(Some(0..0)), [NONE, NONE]);
    assert_eq!(exposed_lines(Model::Unified, None), [NONE, NONE]);
}

/// Write-backs, invalidations, drains and words told to peers of rank 0 in two fences with these
/// assertions; its piece is stored to before the first if `stores`, and loaded before the second.
fn fences(stores: bool, first: Assert, second: Assert) -> [u64; 4] {
    let run = |fences: bool| {
        let all = counters(2, Model::Separate, &|_, window| {
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
        let rank = all[0];
        [
            rank.write_backs,
            rank.invalidations,
            rank.drains,
            rank.stores_remote,
        ]
    };
    let (with, without) = (run(true), run(false));
    [0, 1, 2, 3].map(|count: usize| with[count] - without[count])
}

/// Each assertion saves its steps, and no other.
#[test]
fn assertions_save_what_they_say() {
    const NONE: Assert = Assert::empty();
    // Publishing drains, and so does a flush. The first one refreshes, too: peers may have put
    // under locks.
    assert_eq!(fences(true, NONE, NONE), [8, 16, 4, 2]);
    assert_eq!(fences(false, NONE, NONE), [0, 16, 4, 2]);
    assert_eq!(fences(false, Assert::NO_STORE, NONE), [0, 16, 3, 2]);
    assert_eq!(fences(true, NONE, Assert::NO_STORE), [8, 16, 3, 2]);
    assert_eq!(fences(true, Assert::NO_PUT, NONE), [8, 8, 4, 2]);
    assert_eq!(fences(true, NONE, Assert::NO_PUT), [8, 16, 4, 2]);
    assert_eq!(fences(true, Assert::NO_PRECEDE, NONE), [8, 8, 3, 2]);
    assert_eq!(fences(true, NONE, Assert::NO_PRECEDE), [8, 8, 3, 2]);
    // What was stored before must outlive it.
    assert_eq!(fences(true, NONE, Assert::NO_SUCCEED), [8, 16, 4, 2]);
    let nothing = Assert::NO_PRECEDE | Assert::NO_SUCCEED;
    assert_eq!(fences(true, NONE, nothing), [8, 8, 3, 1]);
    assert_eq!(fences(true, NONE, nothing | Assert::NO_STORE), [8, 8, 2, 1]);
}

/// A fence tells as many ranks as the number of all has bits, looks at none, and takes no lock.
#[test]
fn a_fence_tells_log_p_ranks() {
    for (cores, tells) in [(1, 0), (2, 1), (3, 2), (5, 3), (8, 3), (16, 4), (48, 6)] {
        let run = |fences: u32| {
            counters(cores, Model::Separate, &|_, window| {
                let mut epoch = window.fence(Assert::empty())?;
                for _ in 1..fences {
                    epoch = epoch.fence(Assert::empty())?;
                }
                forget(epoch);
                Ok(())
            })
        };
        for (rank, (two, one)) in run(2).iter().zip(run(1)).enumerate() {
            let remote = |all: &Counters| [all.stores_remote, all.loads_remote, all.locks];
            let before = remote(&one);
            let fence = [0, 1, 2].map(|count: usize| remote(two)[count] - before[count]);
            assert_eq!(fence, [tells, 0, 0], "rank {rank} of {cores}");
        }
    }
}

/// Atomic operations, and all accesses to other ranks' memory and registers, of the last rank in
/// what `program` does.
fn atomics(program: Program<'_>) -> (u64, u64) {
    let run = |program: Program<'_>| {
        let all = counters(3, Model::Separate, program);
        let rank = *all.last().unwrap();
        // An operation takes a register and gives it back.
        let remote = rank.loads_remote + rank.stores_remote + 2 * rank.locks;
        (rank.locks, remote)
    };
    let (with, without) = (run(program), run(&|_, _| Ok(())));
    (with.0 - without.0, with.1 - without.1)
}

/// Locks and unlocks that find nobody in their way.
#[test]
fn uncontended_locks() {
    type Given<'e, 'w> = Result<Lock<'e, 'w, u32, Mapped<SimCore>>, flagpost::Error>;
    type Call = for<'e, 'w> fn(&'e Words<'w>) -> Given<'e, 'w>;
    let counts = |call: Call, others: bool| {
        let is_last = |world: &World<'_, _>| world.rank().get() == 2;
        let with = |ends: bool| {
            move |world: &World<'_, Mapped<SimCore>>, window: &Words<'_>| {
                if !is_last(world) {
                    return Ok(());
                }
                let other = others.then(|| window.lock_exclusive(Rank::new(1)));
                let lock = call(window)?;
                if ends {
                    lock.unlock()?;
                } else {
                    forget(lock);
                }
                forget(other.transpose()?);
                Ok(())
            }
        };
        let other = move |world: &World<'_, Mapped<SimCore>>, window: &Words<'_>| {
            if is_last(world) && others {
                forget(window.lock_exclusive(Rank::new(1))?);
            }
            Ok(())
        };
        let (nothing, lock, both) = (atomics(&other), atomics(&with(false)), atomics(&with(true)));
        let less = |a: (u64, u64), b: (u64, u64)| (a.0 - b.0, a.1 - b.1);
        [less(lock, nothing), less(both, lock)]
    };
    let first: [Call; 4] = [
        |window| window.lock_shared(Rank::new(0)),
        |window| window.lock_all(),
        |window| window.lock_exclusive(Rank::new(0)),
        |window| window.lock_queued(Rank::new(0)),
    ];
    let [shared, all, exclusive, queued] = first;
    assert_eq!(counts(shared, false), [(1, 4), (1, 4)]);
    assert_eq!(counts(all, false), [(1, 4), (1, 4)]);
    assert_eq!(counts(exclusive, false), [(2, 8), (2, 8)]);
    assert_eq!(counts(exclusive, true), [(1, 4), (1, 4)]);
    let [lock, unlock] = counts(queued, false);
    assert_eq!((lock.0, unlock.0), (3 + 2, 3 + 1));
    // Those of the rank's own words, and its looks at its next one, are local.
    assert_eq!((lock.1, unlock.1), (12 + 2 * 2, 12 + 2));
}

/// However many want a piece in turn, and however long they wait: none asks more of others than the
/// module says.
#[test]
fn queued_locks_are_bounded_in_remote_requests() {
    const ROUNDS: u64 = 5;
    for cores in [2, 5, 9] {
        let run = |rounds: u64| {
            counters(cores, Model::Separate, &|_, window| {
                for _ in 0..rounds {
                    let lock = window.lock_queued(Rank::new(0))?;
                    let mut count = [0];
                    lock.get(Rank::new(0), 0, &mut count)?;
                    lock.put(Rank::new(0), 0, &[count[0] + 1])?;
                    lock.unlock()?;
                }
                Ok(())
            })
        };
        let (with, without) = (run(ROUNDS), run(0));
        for (with, without) in with.iter().zip(&without).skip(1) {
            let operations = with.locks - without.locks;
            assert!(
                operations <= ROUNDS * (8 + 3),
                "{cores} cores: {operations}"
            );
            // One in each remote operation, and that of the get.
            let loads = with.loads_remote - without.loads_remote;
            assert!(loads <= ROUNDS * (8 + 1), "{cores} cores: {loads}");
        }
    }
}

/// What is done with a window that has 2 counters, and an event.
type Call<'p, L> = &'p dyn Fn(&Window<'_, u32, L>, &Events<'_, L>) -> Result<(), flagpost::Error>;

/// What the last rank does in `call`, with a window whose lines are dirty: registers taken; atomic
/// operations; words loaded and stored at other ranks; bytes stored in bulk; lines written back;
/// lines invalidated.
fn telling<L: Link>(start: fn(SimCore) -> Result<L, Refusal>, call: Call<'_, L>) -> [u64; 7] {
    let run = |calls: bool| {
        let report = Sim::new(quiet(3)).run(|core| {
            let mut arena = [0; 256];
            let world = World::start(start(core)?, &mut arena, Config::default())?;
            let mut window = world.allocate::<u32>(8 * WORDS)?;
            window.set_num_notify(2)?;
            let events = world.events(1)?;
            if world.rank() == LAST {
                for line in 0..8 {
                    window.local().set(line * WORDS, 1)?;
                }
                if calls {
                    call(&window, &events)?;
                }
            }
            world.barrier()
        });
        report.assert_done();
        let rank = *report.counters.last().unwrap();
        [
            rank.locks,
            rank.atomics,
            rank.loads_remote,
            rank.stores_remote,
            rank.bulk_bytes,
            rank.write_backs,
            rank.invalidations,
        ]
    };
    let (with, without) = (run(true), run(false));
    [0, 1, 2, 3, 4, 5, 6].map(|count: usize| with[count] - without[count])
}

fn locked(call: Call<'_, Mapped<SimCore>>) -> [u64; 7] {
    telling(|core| Mapped::start(core, Session::FIRST), call)
}

fn native(call: Call<'_, Mapped<SimCore, Native>>) -> [u64; 7] {
    telling(
        |core| Mapped::start_native(core, Session::FIRST, None),
        call,
    )
}

const PEER: Rank = Rank::new(0);
const LAST: Rank = Rank::new(2);

/// Counters, signals and events: an atomic operation at the target beside the data; nothing remote
/// for their owner, which moves the lines of its range and no other.
#[test]
fn counters_signals_and_events() {
    const NOTHING: [u64; 7] = [0; 7];
    const ATOMIC: [u64; 7] = [1, 0, 1, 1, 0, 0, 0];
    const WITH_A_WORD: [u64; 7] = [1, 0, 1, 1, 4, 0, 0];
    const OWN: [u64; 7] = [1, 0, 0, 0, 0, 0, 0];
    let counter = locked(&|window, _| window.notify(PEER, Counter(1)));
    assert_eq!(counter, ATOMIC);
    let signal = locked(&|window, _| window.notify(PEER, Signal(1).set(7)));
    assert_eq!(signal, ATOMIC);
    let post = locked(&|_, events| events.post(PEER, 0));
    assert_eq!(post, ATOMIC);
    let put = locked(&|window, _| window.put_notify(PEER, 0, &[1], Counter(1)));
    assert_eq!(put, WITH_A_WORD);
    let put = locked(&|window, events| window.put_event(PEER, 0, &[1], events, 0));
    assert_eq!(put, WITH_A_WORD);
    let counter = native(&|window, _| window.notify(PEER, Counter(1)));
    assert_eq!(counter, [0, 1, 0, 0, 0, 0, 0]);
    let put = native(&|window, events| window.put_event(PEER, 0, &[1], events, 0));
    assert_eq!(put, [0, 1, 0, 0, 4, 0, 0]);

    let looks = locked(&|window, events| {
        window.num_notify(PEER)?;
        window.notify_value(Counter(1))?;
        window.signal_fetch(Signal(1))?;
        events.query(0)?;
        Ok(())
    });
    assert_eq!(looks, NOTHING);
    // The own lock.
    assert_eq!(
        locked(&|window, _| window.set_notify_value(Counter(1), 7)),
        OWN
    );
    let reset = locked(&|window, _| window.reset_notify_value(Counter(1)).map(|_| ()));
    assert_eq!(reset, OWN);
    // That of the post.
    let waits = locked(&|_, events| {
        events.post(LAST, 0)?;
        events.wait(0, 1)
    });
    assert_eq!(waits, OWN);
    let lines = |count: u64| [1, 0, 0, 0, 0, count, count];
    let signal = locked(&|window, _| {
        window.set_notify_value(Counter(1), 7)?;
        let range = 2 * WORDS..4 * WORDS;
        window
            .signal_wait_until(range, Signal(1), Compare::Eq, 7)
            .map(|_| ())
    });
    assert_eq!(signal, lines(2));
    let request = locked(&|window, _| {
        window.set_notify_value(Counter(1), 7)?;
        let mut request = window.expect_count(0..3 * WORDS, Counter(1), 5)?;
        request.start()?;
        request.wait().map(|_| ())
    });
    assert_eq!(request, lines(3));
    let bound = locked(&|window, events| {
        events.post(LAST, 0)?;
        events.bind(window, 0..1, 0)?.wait(1)
    });
    assert_eq!(bound, lines(1));
}

/// Rank 1's loads, stores, lines and locks at others for `puts` notified puts of so many words to
/// rank 0, which takes them.
fn notified(cores: u16, puts: usize, words: usize) -> [u64; 4] {
    let run = |puts: usize| {
        let program: Program<'_> = &|world, window| {
            let target = Rank::new(0);
            if world.rank().get() == 1 {
                for _ in 0..puts {
                    window.put_notify(target, 0, &[7; WORDS][..words], Tag(1))?;
                }
            }
            if world.rank() == target && puts > 0 {
                let mut all = window
                    .expect(0..WORDS, Tag(1))?
                    .from(Rank::new(1))?
                    .times(puts as u16)?;
                all.start()?;
                all.wait()?;
            }
            Ok(())
        };
        // Where time is kept, the combining buffer leaves in one piece.
        let chip = Chip {
            schedule: Schedule::Timed,
            ..quiet(cores)
        };
        let rank = counters_on(chip, Model::Separate, program)[1];
        [
            rank.loads_remote,
            rank.stores_remote,
            rank.lines_remote,
            rank.locks,
        ]
    };
    let (with, without) = (run(puts), run(0));
    [0, 1, 2, 3].map(|count: usize| with[count] - without[count])
}

/// Where two ranks have a ring for themselves: a line, and nothing else; data that do not fit in
/// it: their lines. Where many share one: an atomic operation to be given a place, and a look at
/// how far the ring was read.
#[test]
fn a_notified_put_is_a_line() {
    assert_eq!(notified(2, 5, 2), [0, 0, 5, 0]);
    assert_eq!(notified(4, 5, 4), [0, 0, 5, 0]);
    assert_eq!(notified(2, 5, 0), [0, 0, 5, 0]);
    assert_eq!(notified(2, 5, WORDS), [0, 0, 2 * 5, 0]);
    let [loads, stores, lines, locks] = notified(5, 5, 2);
    assert_eq!([loads, stores, lines, locks], [5 + 1, 2 * 5, 5, 5]);
}
