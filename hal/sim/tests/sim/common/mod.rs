//! What the tests share: short names, a wait, and "some seed fails, every seed passes".
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of it"
)]

use std::fmt::Debug;

use flagpost_hal::{Address, Coherence, CoreId, Lines, Region, Relax, UncachedMemory, Watch};
use flagpost_sim::{Config, Oracles, Profile, Report, Schedule, Sim, SimCore, sweep};

/// What programs return: an error that says what was wrong.
pub type Outcome = Result<(), String>;

/// The byte at `offset` of core `owner`'s memory.
pub fn at(owner: u16, offset: usize) -> Address {
    Region::memory(CoreId::new(owner)).at(offset)
}

/// The line of `at`.
pub fn line(at: Address) -> [Lines; 1] {
    [Lines::covering::<SimCore>(at, 1)]
}

/// Waits until the word is `value`. Orders nothing.
#[track_caller]
pub fn wait_for(core: &SimCore, at: Address, value: u32) {
    loop {
        match core.load_u32(at) {
            seen if seen == value => return,
            seen => core.relax(&[Watch { at, seen }]),
        }
    }
}

/// Waits until the word is `value`, and orders the loads that follow.
#[track_caller]
pub fn wait_and_acquire(core: &SimCore, at: Address, value: u32) {
    wait_for(core, at, value);
    core.acquire();
}

/// Fails unless `found == expected`.
pub fn check<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: found {found:?}, expected {expected:?}"))
}

/// Two cores, no oracles: hazards show by their consequences.
pub fn blind(profile: Profile) -> Config {
    Config {
        profile,
        oracles: Oracles::NONE,
        schedule: Schedule::Mixed,
        ..Config::default()
    }
}

/// Two cores, all oracles.
pub fn watched(profile: Profile) -> Config {
    Config {
        oracles: Oracles::ALL,
        ..blind(profile)
    }
}

/// Seeds that every claim is checked with.
pub const SEEDS: std::ops::Range<u64> = 0..600;

/// The report of the first seed that is not done.
#[track_caller]
pub fn some_seed_fails(
    config: Config,
    program: impl Fn(SimCore) -> Outcome + Send + Sync,
) -> Report {
    let swept = sweep(SEEDS).case("hazard", config, program).run();
    swept.failure.expect("no seed shows the hazard")
}

/// Every seed is done.
#[track_caller]
pub fn every_seed_passes(config: Config, program: impl Fn(SimCore) -> Outcome + Send + Sync) {
    let swept = sweep(SEEDS).case("remedy", config, program).run();
    swept.assert_done();
    assert_eq!(swept.runs, SEEDS.end - SEEDS.start);
}

/// One run.
pub fn run(config: Config, program: impl Fn(SimCore) -> Outcome) -> Report {
    Sim::new(config).run(program)
}
