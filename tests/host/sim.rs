//! Every conformance case on the simulator: each on all profiles, at several sizes, under at least
//! 1,000 seeds. `FLAGPOST_SEEDS=n` changes how many seeds each combination gets.
//!
//! A failure prints the run's timeline and the line that replays it.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flagpost::{Budget, Config, Error, Rank, Session, Tag, World};
use flagpost_explore::{cases, config_for, late, program, settings_of, sizes};
use flagpost_hal::{Clock, Topology};
use flagpost_mapped::Mapped;
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

/// Runs each group of cases, by the first part of their names, as a test of its own.
macro_rules! groups {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                group(concat!(stringify!($name), "."));
            }
        )*

        const GROUPS: &[&str] = &[$(concat!(stringify!($name), ".")),*];
    };
}

groups! {
    hal world window model collective link fence lock pscw rma notify told progress part
    counters signals events timeout small stencil apps
}

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

/// The largest board skips cases, but no protocol.
#[test]
fn every_protocol_is_tried_at_512_cores() {
    let families = ["pscw.vector.", "pscw.list.", "notify.shared.", "told.list."];
    // Those are for few cores, all of them.
    let few = ["progress.", "small.", "apps."];
    let many = GROUPS.iter().copied().filter(|group| !few.contains(group));
    for prefix in many.chain(families) {
        let tried =
            |case: &flagpost_explore::Case| case.name.starts_with(prefix) && case.admits(512);
        assert!(cases().any(tried), "{prefix}: all are for fewer cores");
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
