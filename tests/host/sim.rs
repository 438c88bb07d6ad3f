//! Every conformance case on the simulator: each on all profiles, at several sizes, under at least 1,000
//! seeds. `FLAGPOST_SEEDS=n` changes how many seeds each combination gets.
//!
//! A failure prints the run's timeline and the line that replays it.

use flagpost_explore::{cases, config_for, late, program, settings_of, sizes};
use flagpost_hal::Topology;
use flagpost_sim::{Profile, Sim, sweep};

/// Seeds per case, size and profile: with 4 profiles and at least 2 sizes, over 1,000 seeds per case.
const SEEDS: u64 = 150;

/// Runs the cases whose name starts with `prefix`.
fn group(prefix: &str) {
    let seeds = std::env::var("FLAGPOST_SEEDS").map_or(SEEDS, |n| n.parse().unwrap());
    let (mut runs, mut steps) = (0, 0);
    for case in cases() {
        if !case.name.starts_with(prefix) {
            continue;
        }
        for (first, setting) in (0..).zip(settings_of(case)) {
            // Seeds of their own: each case sees over 1,000 different ones.
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
fn link() {
    group("link.");
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
fn small() {
    group("small.");
}

#[test]
fn stencil() {
    group("stencil.");
}

/// No case is left out above, and names are unique.
#[test]
fn every_case_belongs_to_a_group() {
    let groups = [
        "hal.", "world.", "window.", "link.", "pscw.", "notify.", "timeout.", "small.", "stencil.",
    ];
    let all = cases();
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
    for case in cases() {
        let cores = 48.min(case.max_cores);
        let config = config_for(case, cores, Profile::WeakFill);
        runs = runs.case(case.name, config, move |core| {
            assert_eq!(core.cores(), cores);
            program(case, core)
        });
    }
    runs.run().assert_done();
}

/// Loads that finish after later stores of their core, as on Arm and RISC-V.
#[test]
fn late_loads() {
    let seeds = std::env::var("FLAGPOST_SEEDS").map_or(SEEDS, |n| n.parse().unwrap()) / 5;
    for case in cases() {
        let late = late::case(case.name).unwrap();
        for cores in sizes(case) {
            let mut sim = Sim::new(config_for(case, cores, Profile::Scc));
            for seed in 0..seeds {
                let report = late::run(&mut sim, late, seed);
                assert!(report.is_done(), "{} with a late load: {report}", case.name);
            }
        }
    }
}
