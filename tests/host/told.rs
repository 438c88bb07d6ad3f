//! Who is told that a rank has been notified: the cases `told.*` under many schedules, with locks
//! and with atomics of the machine's own.
//!
//! The protocol: `kernel/mapped/src/deferred.rs`.

use flagpost_explore::{cases, config_for, native, program};
use flagpost_sim::{Profile, sweep};

use crate::groups;

/// Seeds per case and profile.
const SEEDS: u64 = 400;

fn is_told(name: &str) -> bool {
    name.starts_with("told.")
}

#[test]
fn whoever_is_told_finds_the_payload() {
    let mut runs = sweep(0..groups::seeds(SEEDS));
    for case in cases().filter(|case| is_told(case.name)) {
        for profile in Profile::ALL {
            let name = format!("{}/3/{profile}", case.name);
            runs = runs.case(name, config_for(case, 3, profile), |core| {
                program(case, core)
            });
        }
    }
    runs.run().assert_done();
}

/// Fails if an operation of the machine leaves before the payload is placed.
#[test]
fn native_atomics_tell() {
    let mut runs = sweep(0..groups::seeds(SEEDS));
    for (known, case) in native::cases().filter(|(known, _)| is_told(known.name)) {
        for profile in Profile::ALL {
            let name = format!("{}/3/{profile}", case.name);
            let program = |core| native::program(case, core);
            runs = runs.case(name, config_for(known, 3, profile), program);
        }
    }
    runs.run().assert_done();
}
