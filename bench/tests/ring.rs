//! The ring in simulated time: data arrive. `bench micro ring` prints what it takes.

use flagpost_bench::ring;
use flagpost_sim::{Latencies, Oracles};

#[test]
fn other_sizes_and_latencies_get_through() {
    for latencies in Latencies::ALL {
        for (cores, epochs) in [(2, 5), (100, 2)] {
            let report = ring::run(ring::chip(cores, latencies, Oracles::ALL), epochs);
            report.unwrap_or_else(|report| panic!("{report}"));
        }
    }
}
