//! Notified access beside its alternatives: what must hold, whatever the cycles.

use flagpost_bench::pingpong::{SIZES, Setup, Variant, measure};
use flagpost_sim::Latencies;

/// Cycles of a notified put, and of the best other way.
fn halves(cores: u16, hops: u16, bytes: usize) -> (u64, u64) {
    let [notified, others @ ..] = Variant::ALL.map(|variant| {
        let setup = Setup {
            cores,
            hops,
            ..Setup::new(variant, bytes)
        };
        let measured = measure(&setup);
        measured.unwrap_or_else(|report| panic!("{report}")).half()
    });
    (notified, others.into_iter().min().unwrap())
}

/// Longer messages have tests of their own.
const LONG: usize = 8_192;

fn not_slower_than_the_best_other_one(is_tried: impl Fn(usize) -> bool) {
    for bytes in SIZES.into_iter().filter(|bytes| is_tried(*bytes)) {
        let (notified, best) = halves(2, 1, bytes);
        assert!(notified <= best, "{bytes} bytes: {notified}, not {best}");
    }
}

#[test]
fn notified_puts_are_not_slower_than_the_best_other_one() {
    not_slower_than_the_best_other_one(|bytes| bytes <= LONG);
}

#[test]
#[ignore = "takes long: cargo xtask test --deep"]
fn long_notified_puts_are_not_slower_than_the_best_other_one() {
    not_slower_than_the_best_other_one(|bytes| bytes > LONG);
}

/// Where `docs/results.md` says that they lose: cores, hops, bytes, and by how much at most, in
/// thousandths of the best other one.
const LOSSES: [(u16, u16, usize, u64); 12] = [
    (2, 1, 24, 1_270),
    (2, 0, 8, 1_000),
    (2, 0, 4_096, 1_000),
    (2, 0, 65_536, 1_030),
    (8, 1, 8, 1_060),
    (8, 1, 16, 1_060),
    (8, 1, 32, 1_010),
    (8, 1, 64, 1_000),
    (8, 1, 256, 1_010),
    (8, 1, 4_096, 1_090),
    (48, 1, 8, 1_150),
    (48, 1, 64, 1_300),
];

#[test]
fn notified_puts_lose_no_more_than_is_known() {
    lose_no_more(|bytes| bytes <= LONG);
}

#[test]
#[ignore = "takes long: cargo xtask test --deep"]
fn long_notified_puts_lose_no_more_than_is_known() {
    lose_no_more(|bytes| bytes > LONG);
}

fn lose_no_more(is_tried: impl Fn(usize) -> bool) {
    for (cores, hops, bytes, most) in LOSSES.into_iter().filter(|loss| is_tried(loss.2)) {
        let (notified, best) = halves(cores, hops, bytes);
        let limit = best * most / 1_000;
        assert!(
            notified <= limit,
            "{cores} cores, {hops} hops, {bytes} bytes: {notified}, not {limit}"
        );
    }
}

/// Whatever the latencies.
#[test]
fn eight_bytes_take_half_of_what_an_epoch_takes() {
    for latencies in [Latencies::SccEas, Latencies::SccBarrelfish] {
        let [notified, pscw] = [Variant::Notified, Variant::Pscw].map(|variant| {
            let setup = Setup {
                latencies,
                ..Setup::new(variant, 8)
            };
            let measured = measure(&setup);
            measured.unwrap_or_else(|report| panic!("{report}")).half()
        });
        assert!(2 * notified <= pscw, "{latencies}: {notified} {pscw}");
    }
}
