//! Ping-pong and tree: every variant delivers what was sent (the benchmarks compare it), and every
//! run is the same.

use flagpost_bench::pingpong::{Setup, Variant, measure};
use flagpost_bench::tree;
use flagpost_sim::Latencies;

fn half(variant: Variant, bytes: usize, hops: u16) -> u64 {
    let setup = Setup {
        hops,
        ..Setup::new(variant, bytes)
    };
    let measured = measure(&setup);
    measured.unwrap_or_else(|report| panic!("{report}")).half()
}

/// Below, at and above what fits a line, and the ring of send and receive. Longer ones are in a
/// documented table.
const SIZES: [usize; 7] = [8, 24, 32, 40, 1000, 4096, 5000];

#[test]
fn messages_arrive_and_take_the_same_time_again() {
    for variant in Variant::ALL {
        for hops in [0, 1] {
            let run = || SIZES.map(|bytes| half(variant, bytes, hops));
            let times = run();
            // A whole line leaves a little sooner than a part of one, and is kept sooner.
            let longer = |two: &[u64]| two[0] <= two[1] + 8;
            assert!(
                times.windows(2).all(longer),
                "{variant}, {hops} hops: {times:?}"
            );
            assert_eq!(times, run());
        }
    }
}

/// Trees of one core more than a level, too. More levels take longer.
#[test]
fn sums_arrive_and_take_the_same_time_again() {
    let run = || {
        [2, 17, 18, 48, 274].map(|cores| {
            let cycles = tree::measure(cores, Latencies::SccEas);
            cycles.unwrap_or_else(|report| panic!("{report}"))
        })
    };
    let times = run();
    for way in 0..2 {
        let [two, level, .., three] = times.each_ref().map(|row| row[way].1);
        assert!(two < level && level < three, "{times:?}");
    }
    assert_eq!(times, run());
}
