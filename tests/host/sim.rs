//! Every conformance case on the simulator: each on all profiles, at several sizes, under at least
//! 1,000 seeds. `FLAGPOST_SEEDS=n` changes how many seeds each combination gets.
//!
//! A failure prints the run's timeline and the line that replays it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use flagpost::{Budget, Config, Error, Rank, Session, Tag, World};
use flagpost_explore::{cases, config_for, late, program, settings_of, sizes};
use flagpost_hal::{Clock, Topology};
use flagpost_link::Waiting as _;
use flagpost_mapped::{Mapped, Ring};
use flagpost_sim::{End, Profile, Sim, SimCore, sweep};

use crate::groups;

/// Seeds per case, shared by its sizes and profiles.
const SEEDS: u64 = 1000;

/// Runs the cases whose name starts with `prefix`.
fn group(prefix: &str) {
    let (mut runs, mut steps) = (0, 0);
    for case in cases() {
        if !case.name.starts_with(prefix) {
            continue;
        }
        let settings = settings_of(case).count() as u64;
        let seeds = groups::seeds(SEEDS.div_ceil(settings));
        for (first, setting) in (0..).zip(settings_of(case)) {
            // Seeds of their own: each case sees so many different ones.
            let swept = sweep(first * seeds..(first + 1) * seeds)
                .case(setting.to_string(), setting.config(), |core| {
                    program(case, core)
                })
                .run();
            swept.assert_done();
            runs += swept.runs;
            steps += swept.steps;
        }
    }
    println!("{prefix}: {runs} runs, {steps} steps");
}

groups!(group);

/// No case is left out above, and names are unique.
#[test]
fn every_case_belongs_to_a_group() {
    let all: Vec<_> = cases().collect();
    for (index, case) in all.iter().enumerate() {
        let known = GROUPS.iter().any(|prefix| case.name.starts_with(prefix));
        assert!(known, "{}", case.name);
        let first = all[..index].iter().all(|other| other.name != case.name);
        assert!(first, "{} twice", case.name);
    }
}

/// Each protocol, and cases that show it at any size.
const PROTOCOLS: &[(&str, &[&str])] = &[
    (
        "starting and rings of cores",
        &["world.start", "world.groups"],
    ),
    ("barrier", &["world.barrier", "timeout.barrier"]),
    ("allgather", &["world.allgather"]),
    ("broadcast", &["collective.broadcast"]),
    ("reduce", &["collective.reduce"]),
    ("allreduce", &["collective.allreduce"]),
    ("collectives that stop", &["timeout.collectives"]),
    ("fence", &["fence.ring", "timeout.fence"]),
    (
        "epochs by slots",
        &["pscw.ring", "pscw.fan_in", "pscw.fan_out"],
    ),
    (
        "epochs by match vectors",
        &["pscw.vector.ring", "pscw.vector.fan_in"],
    ),
    (
        "epochs by matching lists",
        &["pscw.list.ring", "pscw.list.fan_in"],
    ),
    (
        "immediate epochs",
        &["pscw.immediate", "pscw.vector.immediate"],
    ),
    (
        "late epochs",
        &["timeout.post", "timeout.wait", "timeout.who"],
    ),
    (
        "shared and exclusive locks",
        &["lock.mixed", "lock.exclusive"],
    ),
    ("queued locks", &["lock.queued", "timeout.locked_queue"]),
    ("lock_all", &["lock.all", "timeout.locked_all"]),
    ("flush", &["lock.flush"]),
    (
        "notified puts",
        &["notify.ring", "notify.tags", "notify.any_source"],
    ),
    ("notified puts by a shared ring", &["notify.shared.ring"]),
    ("long notified puts", &["notify.long_streamed"]),
    ("unexpected notifications", &["notify.queue_full"]),
    ("notified changes", &["notify.changes", "timeout.notified"]),
    ("notified gets", &["notify.gets"]),
    (
        "one of several requests",
        &["timeout.several", "counters.any"],
    ),
    (
        "telling",
        &["told.by_put", "told.by_fetch", "told.answered"],
    ),
    ("counters", &["counters.ring"]),
    ("signals", &["signals.pipeline"]),
    (
        "events",
        &["events.ring", "events.requests", "timeout.events"],
    ),
    ("accumulates and fetches", &["rma.floats"]),
    ("compare and swap", &["notify.changes", "rma.cells"]),
    ("requests of accesses", &["rma.requests"]),
    ("allocated windows", &["window.zero", "window.released"]),
    ("created windows", &["window.created"]),
    (
        "dynamic windows",
        &["window.dynamic", "window.dynamic_told"],
    ),
    ("windows of one model", &["model.unified"]),
    ("the stencil", &["stencil.notified", "stencil.pscw"]),
];

/// The largest board skips cases, but no protocol.
#[test]
fn every_protocol_is_tried_at_512_cores() {
    for (protocol, names) in PROTOCOLS {
        for name in *names {
            let case = cases().find(|case| case.name == *name);
            let case = case.unwrap_or_else(|| panic!("{protocol}: there is no case {name}"));
            assert!(case.admits(512), "{protocol}: {name} is for fewer cores");
        }
    }
}

/// Sizes beyond the exhaustive ones: cases with as many cores as the SCC has. In a quick run every
/// eighth; `scc` and `network` have others.
#[test]
fn forty_eight_cores() {
    let mut runs = sweep(0..groups::seeds(2));
    for case in cases().step_by(groups::step(8)) {
        let cores = 48.min(case.max_cores);
        let config = config_for(case, cores, Profile::WeakFill);
        runs = runs.case(case.name, config, move |core| {
            assert_eq!(core.cores(), cores);
            program(case, core)
        });
    }
    runs.run().assert_done();
}

/// Ranks beyond 64, of which several share a word or a place.
#[test]
fn sixty_six_cores() {
    let mut runs = sweep(0..2);
    for case in cases().filter(|case| case.name.starts_with("window.dynamic")) {
        let config = config_for(case, 66.min(case.max_cores), Profile::WeakFill);
        runs = runs.case(case.name, config, move |core| program(case, core));
    }
    runs.run().assert_done();
}

/// Rank 1 notifies ranks 0 and 64, whose rings it remembers in one place: what it knows of one is
/// not taken for the other.
#[test]
fn one_place_for_two_rings() {
    const EMPTIED: Rank = Rank::new(0);
    const SENDER: Rank = Rank::new(1);
    const FULL: Rank = Rank::new(64);
    let tried = AtomicBool::new(false);
    let config = flagpost_sim::Config {
        memory_size: 32 << 10,
        ..flagpost_sim::Config::quiet(66)
    };
    let report = Sim::new(config).run(|core| -> Result<(), Error> {
        let mut arena = [0; 1024];
        let link =
            Mapped::start_with_ring(core, Session::FIRST, Some(Ring::Shared { entries: 2 }))?;
        let world = World::start(link, &mut arena, Config::default())?;
        let window = world.allocate::<u32>(1)?;
        let send = |to| window.notify(to, Tag(1));
        let take = |count| {
            let mut all = window.expect(0..0, Tag(1))?.from(SENDER)?.times(count)?;
            all.start()?;
            all.wait()
        };
        // ORDERING: Relaxed: cores are coroutines of one thread.
        if world.rank() == SENDER {
            send(FULL)?;
            send(FULL)?;
            (0..8).try_for_each(|_| send(EMPTIED))?;
            let none = || window.put_notify(FULL, 0, &[], Tag(1));
            let late = world.within(Budget::microseconds(0), none);
            assert!(matches!(late, Err(Error::Timeout(_))));
            let put = window.to(FULL, 0).notify(Tag(1)).put(&[])?;
            let late = put
                .wait_within(Budget::microseconds(0))
                .map_err(|late| late.error);
            assert!(matches!(late, Err(Error::Timeout(_))));
            tried.store(true, Ordering::Relaxed);
        } else if world.rank() == EMPTIED {
            take(8)?;
        } else if world.rank() == FULL {
            while !tried.load(Ordering::Relaxed) {
                world.link().relax();
            }
            take(2)?;
        }
        world.barrier()
    });
    report.assert_done();
}

/// Loads that finish after later stores of their core, as on Arm and RISC-V. In a quick run every
/// fourth case and size, with half the share of seeds.
#[test]
fn late_loads() {
    let seeds = groups::seeds(SEEDS / 5 / groups::step(2) as u64);
    // Whole programs are not built for such cores; calls that time out again and again take long.
    let calls =
        cases().filter(|case| !case.name.starts_with("apps.") && case.name != "timeout.differ");
    let all = calls.flat_map(|case| sizes(case).into_iter().map(move |cores| (case, cores)));
    let all: Vec<_> = all.step_by(groups::step(4)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        // ORDERING: Relaxed: only that each number is drawn once counts.
        while let Some(&(case, cores)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let late = late::case(case.name).unwrap();
            let mut sim = Sim::new(config_for(case, cores, Profile::Scc));
            for seed in 0..seeds {
                let report = late::run(&mut sim, late, seed);
                assert!(report.is_done(), "{} with a late load: {report}", case.name);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        (1..threads).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
}

/// A budget runs out when so much time has passed, not much earlier and not much later: one jump of
/// the simulated clock ends one that is a little shorter, and none that is a little longer.
#[test]
fn budgets_last_as_long_as_they_say() {
    const JUMP: u64 = 1 << 42; // cycles
    fn waits(core: SimCore, budget: Budget) -> Result<(), Error> {
        let mut arena = [0; 128];
        let link = Mapped::start(core, Session::FIRST)?;
        let world = World::start(link, &mut arena, Config::default())?;
        let window = world.allocate::<u32>(1)?;
        let mut never = window.expect(0..0, Tag(0))?.from(Rank::new(0))?;
        never.start()?;
        match never.wait_within(budget) {
            Err(Error::Timeout(_)) => Ok(()),
            other => panic!("{other:?}"),
        }
    }
    let config = flagpost_sim::Config {
        cores: 1,
        budgets_expire: 1,
        ..flagpost_sim::Config::default()
    };
    let run = |budget| {
        let mut sim = Sim::new(config.clone());
        sim.run(|core| waits(core, budget)).end
    };
    let hertz = Cell::new(0);
    Sim::new(config.clone()).run(|core| -> Result<(), Error> {
        hertz.set(core.hertz());
        Ok(())
    });
    let seconds = (JUMP / hertz.get()) as u32;
    assert_eq!(run(Budget::seconds(seconds)), End::Done);
    assert_eq!(run(Budget::seconds(seconds + 1)), End::Deadlock);
    let microseconds = u64::from(seconds) * 1_000_000;
    assert_eq!(run(Budget::microseconds(microseconds)), End::Done);
    let longer = microseconds + 1_000_000;
    assert_eq!(run(Budget::microseconds(longer)), End::Deadlock);
}
