//! The ring in simulated time: data arrive, and every host prints the same.

use flagpost_bench::ring;
use flagpost_sim::{Latencies, Oracles};

#[test]
fn epochs_of_a_ring_are_exact() {
    let report = ring::run(48, 20, Latencies::SccEas, Oracles::ALL);
    report.assert_done();
    let found = (report.steps, report.cycles[0], report.cycles[47]);
    assert_eq!(found, (40_540, 166_570, 166_629));
}

#[test]
fn other_sizes_and_latencies_get_through() {
    for latencies in Latencies::ALL {
        ring::run(2, 5, latencies, Oracles::ALL).assert_done();
        ring::run(100, 2, latencies, Oracles::ALL).assert_done();
    }
}
