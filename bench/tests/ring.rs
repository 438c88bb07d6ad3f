//! The ring in simulated time: data arrive. `bench micro ring` prints what it takes.

use flagpost_bench::ring;
use flagpost_sim::{Latencies, Oracles};

/// The table of `bench micro ring` is compared with `--all` only.
#[test]
fn epochs_of_a_ring_are_exact() {
    let report = ring::run(ring::chip(48, Latencies::SccEas, Oracles::ALL), 20);
    let report = report.unwrap_or_else(|report| panic!("{report}"));
    let found = (report.steps, report.cycles[0], report.cycles[47]);
    assert_eq!(found, (46_028, 196_567, 196_585));
}

#[test]
fn other_sizes_and_latencies_get_through() {
    for latencies in Latencies::ALL {
        for (cores, epochs) in [(2, 5), (100, 2)] {
            let report = ring::run(ring::chip(cores, latencies, Oracles::ALL), epochs);
            report.unwrap_or_else(|report| panic!("{report}"));
        }
    }
}
