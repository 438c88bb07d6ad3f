//! Exhaustive search: two searches that must agree, on small programs right and wrong.

use std::cell::Cell;

use crate::common::{Outcome, at, line, wait_for};
use flagpost_hal::{
    CachedMemory, Clock, Coherence, CoreId, Relax, TestAndSet, Topology, UncachedMemory, Watch,
};
use flagpost_sim::{Bounds, Config, End, Explored, Method, Oracles, Profile, Sim, SimCore};

type Program = fn(&SimCore) -> Outcome;

fn explore(
    cores: u16,
    profile: Profile,
    bounds: &Bounds,
    method: Method,
    program: Program,
) -> Explored {
    let config = Config {
        cores,
        profile,
        memory_size: 128,
        buffer_size: 32,
        ..Config::default()
    };
    Sim::new(config).explore(bounds, method, true, |core: SimCore| program(&core))
}

/// All words that the programs use are cleared by their owners before `go`.
fn set_up(core: &SimCore) {
    set_up_words(core);
    core.mark("go");
}

fn set_up_words(core: &SimCore) {
    for word in 0..32 {
        core.store_u32(at(core.core().get(), word * 4), 0);
    }
    core.drain();
}

/// Core 0 sends core 1 a word through its cache. Which of its duties it keeps is in the type.
fn message<const WRITE_BACK: bool, const DRAIN: bool, const INVALIDATE: bool>(
    core: &SimCore,
) -> Outcome {
    let (data, flag) = (at(1, 0), at(1, 32));
    let mut bytes = [0; 4];
    if core.core() == CoreId::new(1) {
        core.read(data, &mut bytes);
    }
    set_up(core);
    if core.core() == CoreId::new(0) {
        core.write(data, &7_u32.to_le_bytes());
        if WRITE_BACK {
            core.write_back(&line(data));
        }
        if DRAIN {
            core.drain();
        }
        core.store_u32(flag, 1);
        return Ok(());
    }
    wait_for(core, flag, 1);
    core.acquire();
    if INVALIDATE {
        core.invalidate(&line(data));
    }
    core.read(data, &mut bytes);
    match u32::from_le_bytes(bytes) {
        7 => Ok(()),
        _ => Err("old data".into()),
    }
}

/// Each core adds one to a word of core 0, with or without its lock.
fn count<const LOCK: bool>(core: &SimCore) -> Outcome {
    set_up(core);
    let word = at(0, 0);
    let owner = CoreId::new(0);
    while LOCK && !core.test_and_set(owner) {
        core.relax(&[]);
    }
    core.acquire();
    let old = core.load_u32(word);
    core.store_u32(word, old + 1);
    core.drain();
    if LOCK {
        core.clear(owner);
    }
    if core.core() == owner {
        wait_for(core, word, core.cores().into());
    }
    Ok(())
}

/// Registers hold garbage at the start; a set-up must free them.
fn free_and<const LOCK: bool>(core: &SimCore) -> Outcome {
    core.clear(core.core());
    count::<LOCK>(core)
}

/// Two words in one bulk store, and a flag.
fn bulk<const DRAIN: bool>(core: &SimCore) -> Outcome {
    set_up(core);
    let (data, flag) = (at(1, 0), at(1, 32));
    if core.core() == CoreId::new(0) {
        core.store_bytes(data, &[7; 8]);
        if DRAIN {
            core.drain();
        }
        core.store_u32(flag, 1);
        return Ok(());
    }
    wait_for(core, flag, 1);
    core.acquire();
    match (core.load_u32(data), core.load_u32(data.plus(4))) {
        (0x0707_0707, 0x0707_0707) => Ok(()),
        _ => Err("torn".into()),
    }
}

/// Both cores store to one word and read it when both have: only memory knows whose store came
/// last.
fn last_store(core: &SimCore) -> Outcome {
    set_up(core);
    let (me, other) = (core.core().get(), 1 - core.core().get());
    core.store_u32(at(0, 0), u32::from(me) + 1);
    core.drain();
    core.store_u32(at(other, 32), 1);
    core.drain();
    wait_for(core, at(me, 32), 1);
    core.acquire();
    match core.load_u32(at(0, 0)) {
        1 | 2 => Ok(()),
        _ => Err("neither".into()),
    }
}

/// Core 0 stores what is there already; whether core 1 fetched the line before shows in no byte,
/// but its copy is old then, and an oracle says so.
fn same_value(core: &SimCore) -> Outcome {
    set_up(core);
    let (data, flag) = (at(1, 0), at(1, 32));
    if core.core() == CoreId::new(0) {
        core.store_u32(data, 0);
        core.drain();
        core.store_u32(flag, 1);
        return Ok(());
    }
    let mut bytes = [0; 4];
    core.read(data, &mut bytes);
    wait_for(core, flag, 1);
    core.acquire();
    core.read(data, &mut bytes);
    Ok(())
}

/// Name, cores, program, and whether it is right.
const CASES: [(&str, u16, Program, bool); 12] = [
    ("last store", 2, last_store, true),
    ("same value", 2, same_value, false),
    ("message", 2, message::<true, true, true>, true),
    ("no write-back", 2, message::<false, true, true>, false),
    ("no drain", 2, message::<true, false, true>, false),
    ("no invalidate", 2, message::<true, true, false>, false),
    ("lock", 2, free_and::<true>, true),
    ("lock of three", 3, free_and::<true>, true),
    ("no lock", 2, free_and::<false>, false),
    ("no lock of three", 3, free_and::<false>, false),
    ("bulk", 2, bulk::<true>, true),
    ("bulk, no drain", 2, bulk::<false>, false),
];

fn bounds() -> impl Iterator<Item = Bounds> {
    let bounds = |evictions, fills, leaves, refusals| Bounds {
        evictions,
        fills,
        leaves,
        refusals,
        ..Bounds::default()
    };
    [bounds(0, 0, 0, 0), bounds(1, 1, 0, 1), bounds(2, 0, 1, 0)].into_iter()
}

/// How often the other search ends, at least, of 144 times, so that there is something to compare.
const UNREDUCED: usize = 120;

/// docs/verification.md: reductions are wrong in ways that only a comparison shows.
#[test]
fn two_searches_agree() {
    let mut compared = 0;
    for (name, cores, program, right) in CASES {
        let mut failing = 0;
        for profile in Profile::ALL {
            for bounds in bounds() {
                let search = |method| explore(cores, profile, &bounds, method, program);
                let states = search(Method::States);
                let what = format!("{name}: {states}");
                assert!(states.complete, "{what}");
                let limited = Bounds {
                    max_runs: 3_000,
                    ..bounds.clone()
                };
                let all = explore(cores, profile, &limited, Method::Unreduced, program);
                if right {
                    states.assert_done();
                }
                failing += usize::from(states.failure.is_some());
                if !all.complete {
                    continue;
                }
                compared += 1;
                assert_eq!(states.schedules, all.runs.into(), "{what}");
                assert_eq!(states.verdicts, all.verdicts, "{what}");
                assert_eq!(states.outcomes, all.outcomes, "{what}");
                println!("{what}");
            }
        }
        assert_eq!(failing == 0, right, "{name}");
    }
    assert!(compared >= UNREDUCED, "compared {compared}");
}

/// Takes the registers of cores 0 and 1: both cores the same one first, or each its own.
fn registers<const ASCENDING: bool>(core: &SimCore) -> Outcome {
    core.clear(core.core()); // nobody knows how it was
    set_up(core);
    let own = core.core().get();
    let first = if ASCENDING { 0 } else { own };
    for of in [first, 1 - first].map(CoreId::new) {
        while !core.test_and_set(of) {
            core.relax(&[]);
        }
    }
    for of in [0, 1].map(CoreId::new) {
        core.clear(of);
    }
    Ok(())
}

/// docs/hardware.md H6: who takes two registers takes them in ascending order.
#[test]
fn registers_in_opposite_order_deadlock() {
    let all = |program| explore(2, Profile::Scc, &Bounds::default(), Method::States, program);
    let right = all(registers::<true>);
    assert!(right.complete);
    right.assert_done();
    let wrong = all(registers::<false>);
    let report = wrong
        .failure
        .expect("each has its own and waits for the other's");
    assert!(matches!(report.end, End::Deadlock), "{report}");
}

/// A failure's one line repeats it; another program does not follow that line.
#[test]
fn failures_replay() {
    let bounds = Bounds {
        evictions: 1,
        ..Bounds::default()
    };
    let found = explore(
        2,
        Profile::Weak,
        &bounds,
        Method::States,
        message::<true, false, true>,
    );
    let report = found.failure.expect("a missing drain shows");
    let line = report.config.to_string();
    let config: Config = line.parse().expect("a report's line reads back");
    let again = Sim::new(config.clone()).run(message_without_drain);
    assert_eq!((again.end, again.hash), (report.end, report.hash));
    let other = Sim::new(config).run(|core: SimCore| free_and::<true>(&core));
    assert_eq!(other.end, End::Diverged);
}

fn message_without_drain(core: SimCore) -> Outcome {
    message::<true, false, true>(&core)
}

/// Core 1 waits for a word that core 0 stores, or for an hour.
fn patient(core: &SimCore) -> Outcome {
    set_up(core);
    let word = at(1, 0);
    if core.core() == CoreId::new(0) {
        core.store_u32(word, 1);
        core.drain();
        return Ok(());
    }
    let start = core.cycles();
    loop {
        match core.load_u32(word) {
            1 => return Ok(()),
            _ if core.cycles() > start => return Err("timeout".into()),
            seen => core.relax(&[Watch { at: word, seen }]),
        }
    }
}

/// A budget that may run out does so at each step where its core is blocked, and at no other.
#[test]
fn budgets_run_out_within_their_bound() {
    let search = |expiries| {
        let bounds = Bounds {
            expiries,
            ..Bounds::default()
        };
        explore(2, Profile::Scc, &bounds, Method::States, patient)
    };
    search(0).assert_done();
    let verdicts = search(1).verdicts;
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
}

/// Time that passes when nobody can go on ends a wait for what never comes, and no other.
#[test]
fn time_passes_for_those_who_are_stuck() {
    let alone: Program = |core| {
        if core.core() == CoreId::new(0) {
            core.mark("go");
            return Ok(());
        }
        patient(core)
    };
    let search = |program: Program, budgets_expire, method| {
        let config = Config {
            budgets_expire,
            memory_size: 128,
            ..Config::default()
        };
        let program = |core: SimCore| program(&core);
        Sim::new(config).explore(&Bounds::default(), method, true, program)
    };
    for method in [Method::States, Method::Unreduced] {
        search(patient, 1, method).assert_done();
        let ends = |budgets_expire| {
            let report = search(alone, budgets_expire, method).failure;
            report.map(|report| report.end)
        };
        assert_eq!(ends(0), Some(End::Deadlock));
        assert_eq!(ends(1), Some(End::Failed));
    }
}

/// What needs two preemptions is not found with one.
#[test]
fn preemptions_are_bounded() {
    let search = |preemptions| {
        let bounds = Bounds {
            preemptions,
            ..Bounds::default()
        };
        explore(3, Profile::Scc, &bounds, Method::States, free_and::<false>)
    };
    assert!(search(Some(0)).failure.is_none());
    assert!(search(Some(1)).failure.is_some());
    let (one, all) = (search(Some(1)), search(None));
    assert!(one.complete && all.complete && one.states > 0);
    assert!(one.verdicts.is_subset(&all.verdicts));
}

/// Programs that nobody can finish are told from those that take turns for ever. So they are when
/// the line is followed: nothing happens there that the search's bounds did not allow, such as a
/// budget's end; and what nobody could notice is the same, such as an invalidate where nothing is
/// prefetched.
#[test]
fn deadlocks_replay() {
    fn stuck(core: SimCore) -> Outcome {
        let (data, word) = (at(1, 32), at(0, 0));
        set_up(&core);
        core.read(data, &mut [0; 4]);
        core.invalidate(&line(data));
        core.invalidate(&line(data));
        core.store_u32(at(1, 64), u32::from(core.core().get()));
        core.drain();
        let start = core.cycles();
        loop {
            match core.load_u32(word) {
                1 => return Ok(()),
                _ if core.cycles() > start => return Err("timeout".into()),
                seen => core.relax(&[Watch { at: word, seen }]),
            }
        }
    }
    for profile in Profile::ALL {
        for (fills, preemptions) in [(0, None), (1, None), (0, Some(1))] {
            let bounds = Bounds {
                fills,
                preemptions,
                ..Bounds::default()
            };
            let found = explore(2, profile, &bounds, Method::States, |core| {
                stuck(core.clone())
            });
            let report = found.failure.expect("a deadlock");
            assert_eq!(report.end, End::Deadlock, "{profile} {bounds}");
            let line = report.config.to_string();
            let config: Config = line.parse().expect("a report's line reads back");
            let again = Sim::new(config).run(stuck);
            assert_eq!(
                (again.end, again.steps),
                (report.end, report.steps),
                "{line}"
            );
            assert_eq!(again.hash, report.hash, "{line}");
        }
    }
}

/// A search that gives up says so.
#[test]
fn a_search_that_was_cut_off_is_not_complete() {
    let bounds = Bounds {
        max_states: 3,
        ..Bounds::default()
    };
    let found = explore(
        2,
        Profile::Scc,
        &bounds,
        Method::States,
        message::<true, true, true>,
    );
    assert!(!found.complete && found.failure.is_none());
    assert_eq!(found.schedules, 0.into());
}

/// A search makes its set-up once; what it reports is what a run that makes its own does, to the
/// last event of its timeline.
#[test]
fn a_kept_set_up_is_like_one_that_is_made() {
    let mut compared = 0;
    for profile in Profile::ALL {
        let broken: [Program; 3] = [
            message::<false, true, true>,
            message::<true, false, true>,
            message::<true, true, false>,
        ];
        for program in broken {
            let bounds = Bounds {
                evictions: 1,
                fills: 1,
                ..Bounds::default()
            };
            let explored = explore(2, profile, &bounds, Method::States, program);
            let Some(found) = explored.failure else {
                continue;
            };
            let again = Sim::new(found.config.clone()).run(|core: SimCore| program(&core));
            assert_eq!(again.to_string(), found.to_string());
            assert_eq!((again.hash, again.steps), (found.hash, found.steps));
            compared += 1;
        }
    }
    assert!(compared >= 5, "{compared}");
}

/// The chip that is kept holds all that a chip can hold behind a set-up: bytes in combining
/// buffers, lines in caches and lines that may be fetched again, a bell that was rung, counters.
#[test]
fn a_kept_set_up_has_what_is_in_the_chip() {
    fn warm(core: SimCore) -> Outcome {
        let (data, gone, flag) = (at(1, 32), at(1, 64), at(0, 0));
        set_up_words(&core);
        core.read(data, &mut [0; 4]);
        core.read(gone, &mut [0; 4]);
        core.invalidate(&line(gone));
        core.ring(core.core());
        core.store_bytes(at(core.core().get(), 96), &[7; 4]);
        core.mark("go");
        core.wait_for_ring();
        core.store_bytes(at(core.core().get(), 100), &[8; 4]);
        core.drain();
        core.write(data, &[core.core().get() as u8; 4]);
        core.write_back(&line(data));
        match core.core().get() {
            0 => match core.load_u32(flag) {
                0 => Ok(()),
                _ => Err("the other one was first".into()),
            },
            _ => {
                core.store_u32(flag, 1);
                Ok(())
            }
        }
    }
    for profile in Profile::ALL {
        let config = Config {
            profile,
            memory_size: 128,
            oracles: Oracles::NONE,
            ..Config::default()
        };
        let bounds = Bounds {
            fills: 1,
            ..Bounds::default()
        };
        let explored = Sim::new(config).explore(&bounds, Method::States, false, warm);
        assert!(explored.runs > 1, "{explored}");
        let found = explored.failure.expect("one order in which core 0 fails");
        let again = Sim::new(found.config.clone()).run(warm);
        assert_eq!(again.to_string(), found.to_string());
        assert_eq!((again.hash, again.steps), (found.hash, found.steps));
        assert_eq!(again.counters, found.counters);
    }
}

/// A line that left its cache in the set-up may be fetched again behind it, too early.
#[test]
fn what_was_dropped_in_the_set_up_may_come_back() {
    let program: Program = |core| {
        let (data, flag) = (at(1, 32), at(1, 0));
        set_up_words(core);
        if core.core() == CoreId::new(0) {
            core.read(data, &mut [0; 4]);
            core.invalidate(&line(data));
        }
        core.mark("go");
        if core.core() == CoreId::new(1) {
            core.store_u32(data, 1);
            core.drain();
            core.store_u32(flag, 1);
            return Ok(());
        }
        wait_for(core, flag, 1);
        core.acquire();
        let mut found = [0; 4];
        core.read(data, &mut found);
        match u32::from_le_bytes(found) {
            1 => Ok(()),
            _ => Err("an old line".into()),
        }
    };
    for profile in Profile::ALL {
        let search = |fills| {
            let bounds = Bounds {
                fills,
                ..Bounds::default()
            };
            explore(2, profile, &bounds, Method::States, program)
        };
        search(0).assert_done();
        assert_eq!(search(1).failure.is_some(), profile.fills(), "{profile}");
    }
}

/// A program that decides by more than what its core is told, and does so in the set-up.
#[test]
fn another_set_up_is_noticed() {
    let runs = Cell::new(0);
    let program = |core: SimCore| {
        if core.core() == CoreId::new(0) {
            runs.set(runs.get() + 1);
        }
        for _ in 0..runs.get() {
            core.store_u32(at(core.core().get(), 0), 0);
        }
        core.mark("go");
        core.store_u32(at(0, 4), 1);
        Ok::<(), &str>(())
    };
    let config = Config {
        memory_size: 128,
        ..Config::default()
    };
    let explored = Sim::new(config).explore(&Bounds::default(), Method::States, false, program);
    let end = explored.failure.map(|report| report.end);
    assert_eq!(end, Some(End::Diverged));
}
