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

/// Also below, at and above what fits a line, and the ring of send and receive. Longer ones are in
/// a documented table.
#[test]
fn messages_arrive_and_take_the_same_time_again() {
    arrive([8, 24, 32, 40, 1000, 4096, 5000]);
}

#[test]
#[ignore = "takes long: cargo xtask test --deep"]
fn long_messages_arrive_and_take_the_same_time_again() {
    arrive([5000, 65536]);
}

fn arrive<const SIZES: usize>(sizes: [usize; SIZES]) {
    for variant in Variant::ALL {
        for hops in [0, 1] {
            let run = || sizes.map(|bytes| half(variant, bytes, hops));
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
    for variant in tree::Variant::ALL {
        let run = || {
            [2, 17, 18, 48, 274].map(|cores| {
                let cycles = tree::measure(variant, cores, Latencies::SccEas);
                cycles.unwrap_or_else(|report| panic!("{report}"))
            })
        };
        let times = run();
        assert!(times[0] < times[1] && times[1] < times[4], "{times:?}");
        assert_eq!(times, run());
    }
}
