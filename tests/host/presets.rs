//! Every conformance case on every preset: other lines, caches, orders and locks than the SCC's.
//!
//! `FLAGPOST_SEEDS=n` changes how many seeds each combination gets. A failure prints the run's
//! timeline and the line that replays it.
//!
//! A quick run gives each preset half of the settings, and its neighbour in the list the other
//! half. Its schedules have at most one preemption.

use flagpost_explore::{Chip, Setting, cases, preset_settings_of, settings};
use flagpost_sim::{Bounds, Preset, sweep};

use crate::groups;

/// Seeds per case and size.
const SEEDS: u64 = 30;

fn on(preset: Preset) {
    let seeds = groups::seeds(SEEDS);
    let (mut runs, mut steps) = (0, 0);
    let own = cases()
        .flat_map(preset_settings_of)
        .filter(|setting| setting.chip == Chip::Preset(preset));
    let place = Preset::ALL.iter().position(|&other| other == preset);
    let place = place.expect("all presets are listed");
    let step = groups::step(2);
    for setting in own.skip(place % step).step_by(step) {
        let swept = setting.add_to(sweep(0..seeds), setting.config()).run();
        swept.assert_done();
        runs += swept.runs;
        steps += swept.steps;
    }
    println!("{preset}: {runs} runs, {steps} steps");
}

#[test]
fn scc_normal() {
    on(Preset::SccNormal);
}

#[test]
fn tensix_bh() {
    on(Preset::TensixBh);
}

#[test]
fn et() {
    on(Preset::Et);
}

/// No registers: locks are made of words.
#[test]
fn cxl() {
    on(Preset::Cxl);
}

#[test]
fn rp2040() {
    on(Preset::Rp2040);
}

#[test]
fn arm_m7() {
    on(Preset::ArmM7);
}

/// Cores with and without a cache in one world.
#[test]
fn unequal() {
    on(Preset::Unequal);
}

/// No wake-up is lost.
#[test]
fn sleeping() {
    on(Preset::Sleeping);
}

/// With records and their claims.
#[test]
fn coherent() {
    on(Preset::Coherent);
}

/// All schedules of cases that are small enough for it on weak chips too, on two cores with
/// registers for locks: with so many evictions, prefetches, and units of bulk bytes that leave
/// without need. In a quick run with one preemption at the most.
fn all_schedules_of_small_cases(evictions: u8, fills: u8, leaves: u8) {
    let names = [
        "small.fan_out",
        "small.get",
        "small.notify",
        "small.shared.notify",
        "small.shared.ping_pong",
    ];
    for case in cases().filter(|case| names.contains(&case.name)) {
        for preset in Preset::ALL {
            // An entry of a pair's ring there is eight words that arrive one by one, in any order:
            // explored by seeds.
            let one_by_one = [Preset::ArmM7, Preset::Unequal, Preset::Sleeping];
            if case.name == "small.notify" && one_by_one.contains(&preset) {
                continue;
            }
            let setting = Setting {
                case,
                cores: 2,
                chip: Chip::Preset(preset),
            };
            let explored = setting.explore(
                &Bounds {
                    evictions,
                    fills,
                    leaves,
                    preemptions: (!groups::is_deep()).then_some(1),
                    ..Bounds::default()
                },
                setting.config(),
            );
            println!("{setting}: {explored}");
            explored.assert_done();
        }
    }
}

#[test]
fn all_schedules_with_a_prefetch() {
    all_schedules_of_small_cases(0, 1, 0);
}

#[test]
fn all_schedules_with_a_unit_that_leaves() {
    all_schedules_of_small_cases(0, 0, 1);
}

#[test]
fn all_schedules_with_an_eviction() {
    all_schedules_of_small_cases(1, 0, 0);
}

/// What a replay line bears names the setting again.
#[test]
fn settings_read_back() {
    let others = cases().flat_map(preset_settings_of);
    for setting in settings().chain(others) {
        let text = setting.to_string();
        let again: Setting = text.parse().unwrap();
        assert_eq!(again.to_string(), text);
    }
    for bad in [
        "",
        "pscw.ring",
        "pscw.ring/0/scc",
        "pscw.ring/2/sc",
        "no/2/scc",
        "pscw.switch/2/scc",
    ] {
        assert!(bad.parse::<Setting>().is_err(), "{bad}");
    }
}
