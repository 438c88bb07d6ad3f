//! The hazards of machines without coherence, one by one: each is shown to fail without its remedy
//! and to be harmless with it, by trying everything within small bounds. They show that the
//! simulator's chips have them, and that its oracles see them. The kernel's own steps against them
//! are mutation points (docs/verification.md).
//!
//! # What is claimed of a hazard ([`Hazard`](bench::Hazard))
//! On each chip, and for all numbers of evictions up to its own bound:
//! 1. With the remedy no schedule fails, and no oracle objects.
//! 2. Without it and without oracles, exactly its consequences show where they are said to show:
//!    old data, lost puts. Elsewhere (no eviction, no prefetch, no weak memory) leaving the remedy
//!    out is equivalent: no schedule fails.
//! 3. Without it and with oracles, its oracle sees it, exactly where it is said to; where the
//!    consequence takes an eviction, the oracle needs none.
//! 4. A search that remembers states finds the same verdicts and the same outcomes as one that runs
//!    each schedule, where these are few.
//!
//! `cargo test -p flagpost-tests --test host hazards:: -- --nocapture` prints the table.
#![allow(unreachable_pub, reason = "a test's modules have no outside")]

mod bench;
mod caches;
mod resets;

use std::time::Instant;

use crate::groups;

/// In a quick run every second.
#[test]
fn caches() {
    for hazard in caches::ALL.iter().step_by(groups::step(2)) {
        let started = Instant::now();
        let effort = hazard.show();
        println!(
            "{}: {}\n    shows on: {}\n    tried: cores={}; {effort}, {:.1?}",
            hazard.name,
            hazard.consequences.join(" or "),
            hazard.needs(),
            hazard.cores,
            started.elapsed(),
        );
    }
}
