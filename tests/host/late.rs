//! Loads that finish late (`flagpost_explore::late`): what was read before a rank is told that it
//! has been read.

use flagpost_explore::{cases, config_for, late};
use flagpost_sim::{Profile, Sim};

use crate::groups;

/// Runs of each case.
const SEEDS: u64 = 300;

/// Cases in which ranks that are told store to what was read.
const CASES: [&str; 4] = [
    "notify.gets",
    "notify.cached_get",
    "notify.read_before",
    "small.notify_get",
];

/// Fails if a notification is not ordered behind the loads of its sender.
#[test]
fn who_is_told_of_a_read_does_not_change_what_was_read() {
    for case in cases().filter(|case| CASES.contains(&case.name)) {
        let late_case = late::case(case.name).unwrap();
        let mut sim = Sim::new(config_for(case, 2, Profile::Scc));
        for seed in 0..groups::seeds(SEEDS) {
            late::run(&mut sim, late_case, seed).assert_done();
        }
    }
}
