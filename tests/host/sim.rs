//! Every conformance case on the simulator: each on all profiles, at several sizes, under at least 1,000
//! seeds. `FLAGPOST_SEEDS=n` changes how many seeds each combination gets.
//!
//! A failure prints the run's timeline and the line that replays it.

use flagpost_hal::Topology;
use flagpost_sim::{Config, Profile, Schedule, SimCore, sweep};
use flagpost_tests::{Args, Case, Context, Failure, Platform, cases};

struct Simulator;

impl Platform for Simulator {
    type Machine = SimCore;
}

/// Seeds per case, size and profile: with 4 profiles and at least 2 sizes, over 1,000 seeds per case.
const SEEDS: u64 = 150;

/// The program that each core runs.
fn program(case: &Case<Simulator>, core: SimCore) -> Result<(), Failure> {
    let mut arena = [0; Context::<Simulator>::ARENA_WORDS];
    (case.run)(&mut Context {
        machine: core,
        session: 0x5E55_0001,
        args: Args::default(),
        arena: &mut arena,
        report: &mut |_, _| (),
    })
}

/// Core counts to run `case` with.
fn sizes(case: &Case<Simulator>) -> Vec<u16> {
    let mut sizes = vec![
        case.min_cores,
        case.min_cores.max(2),
        case.min_cores.max(3),
        5,
    ];
    sizes.retain(|size| (case.min_cores..=case.max_cores).contains(size));
    sizes.dedup();
    sizes
}

/// Runs the cases whose name starts with `prefix`.
fn group(prefix: &str) {
    let seeds = std::env::var("FLAGPOST_SEEDS").map_or(SEEDS, |n| n.parse().unwrap());
    let (mut runs, mut steps) = (0, 0);
    for case in cases::<Simulator>() {
        if !case.name.starts_with(prefix) {
            continue;
        }
        let profiles = |cores| Profile::ALL.map(|profile| (cores, profile));
        for (first, (cores, profile)) in (0..).zip(sizes(case).into_iter().flat_map(profiles)) {
            let config = Config {
                cores,
                profile,
                memory_size: 8 * 1024,
                schedule: Schedule::Mixed,
                budgets_expire: if prefix == "timeout." { 1000 } else { 0 },
                ..Config::default()
            };
            let name = format!("{}/{cores}/{profile}", case.name);
            // Seeds of their own: each case sees over 1,000 different ones.
            let swept = sweep(first * seeds..(first + 1) * seeds)
                .case(name, config, |core| program(case, core))
                .run();
            swept.assert_done();
            runs += swept.runs;
            steps += swept.steps;
        }
    }
    println!("{prefix}: {runs} runs, {steps} steps");
}

#[test]
fn hal() {
    group("hal.");
}

#[test]
fn world() {
    group("world.");
}

#[test]
fn window() {
    group("window.");
}

#[test]
fn pscw() {
    group("pscw.");
}

#[test]
fn notify() {
    group("notify.");
}

#[test]
fn timeout() {
    group("timeout.");
}

#[test]
fn stencil() {
    group("stencil.");
}

/// No case is left out above, and names are unique.
#[test]
fn every_case_belongs_to_a_group() {
    let groups = [
        "hal.", "world.", "window.", "pscw.", "notify.", "timeout.", "stencil.",
    ];
    let all = cases::<Simulator>();
    for (index, case) in all.iter().enumerate() {
        let known = groups.iter().any(|prefix| case.name.starts_with(prefix));
        assert!(known, "{}", case.name);
        assert!(all[..index].iter().all(|other| other.name != case.name));
    }
}

/// Sizes beyond the exhaustive ones: all cases once with as many cores as the SCC has.
#[test]
fn forty_eight_cores() {
    let mut runs = sweep(0..2);
    for case in cases::<Simulator>() {
        let config = Config {
            cores: 48.min(case.max_cores),
            profile: Profile::WeakFill,
            memory_size: 16 * 1024,
            schedule: Schedule::Mixed,
            budgets_expire: if case.name.starts_with("timeout.") {
                1000
            } else {
                0
            },
            ..Config::default()
        };
        runs = runs.case(case.name, config, |core| {
            assert_eq!(core.cores(), config_cores(case));
            program(case, core)
        });
    }
    runs.run().assert_done();
}

fn config_cores(case: &Case<Simulator>) -> u16 {
    48.min(case.max_cores)
}
