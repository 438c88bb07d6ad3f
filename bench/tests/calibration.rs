//! The published experiment: its shape, and its one figure.
//!
//! `docs/log/calibration.md` says what is behind them.

use flagpost_bench::pscw::{Measured, Setup, measure};
use flagpost_sim::{Counters, Latencies};

/// The value that `docs/log/calibration.md` states.
const SOFTWARE: u32 = 200;

/// Nanoseconds that [PSCW-SCC] V-C gives for the origin's start and complete with 13 targets.
const PUBLISHED: u64 = 25_800;

fn run(setup: Setup) -> Measured {
    measure(&setup).unwrap_or_else(|report| panic!("{report}"))
}

fn short(targets: u16, software_cycles: u32) -> Measured {
    run(Setup {
        software_cycles,
        epochs: 101,
        ..Setup::new(targets)
    })
}

// ---- The shape ----

/// Start takes no access; post does not grow with the number of targets, apart from their distance
/// and from locks that two of them want at once; complete and wait grow by the same for each
/// target.
#[test]
fn start_and_post_are_flat_complete_and_wait_linear() {
    for software in [0, SOFTWARE] {
        let rows: Vec<_> = (1..=31).map(|k| short(k, software)).collect();
        let last = &rows[30];
        assert!(rows.iter().all(|row| row.start.count == 14), "no access");
        assert!(
            rows.iter()
                .all(|row| row.post.count < 2 * rows[0].post.count)
        );
        // From 20 targets on, where posts have begun to find each other's locks: 31 cost less than
        // a tenth more.
        assert!(last.post.count * 10 < rows[19].post.count * 11);
        for call in [
            |row: &Measured| row.complete.nanoseconds(),
            |row: &Measured| row.wait.nanoseconds(),
        ] {
            let slope = |from: usize, to: usize| {
                (call(&rows[to - 1]) - call(&rows[from - 1])) / (to - from) as u64
            };
            let whole = slope(2, 31);
            for (from, to) in [(2, 9), (9, 16), (16, 23), (23, 31)] {
                let part = slope(from, to);
                assert!(
                    part.abs_diff(whole) * 10 <= whole,
                    "{software}: {part} ns per target between {from} and {to}, {whole} in all"
                );
            }
            // The rest is small: the line goes nearly through the origin.
            assert!(call(last).abs_diff(31 * whole) < 2 * whole);
        }
    }
}

// ---- The figure ----

#[test]
fn thirteen_targets_take_what_was_published() {
    let run = |software_cycles| {
        run(Setup {
            software_cycles,
            ..Setup::new(13)
        })
    };
    let formulas = run(0).origin().nanoseconds();
    let fitted = run(SOFTWARE).origin().nanoseconds();
    assert!(fitted.abs_diff(PUBLISHED) * 5 <= PUBLISHED, "{fitted} ns");
    // The formulas explain nearly two thirds.
    assert_eq!((formulas * 100 + PUBLISHED / 2) / PUBLISHED, 64);
    // One number is a weak test: half and double the value miss it, or nearly.
    assert!(run(SOFTWARE / 4).origin().nanoseconds() * 5 < PUBLISHED * 4);
    assert!(run(SOFTWARE * 2).origin().nanoseconds() * 5 > PUBLISHED * 6);
}

/// As published: within 5 % at the origin, 10 % at targets. But a post takes the origin's lock.
#[test]
fn quartiles_are_near_their_medians() {
    for targets in [1, 13, 31] {
        let [_, start, complete, wait] = run(Setup::new(targets)).spread;
        let near = start <= 5.0 && complete <= 5.0 && wait <= 10.0;
        assert!(near, "{targets}: {start} {complete} {wait}");
    }
}

/// Links that are busy with each packet make less than a hundredth of it, but something.
#[test]
fn the_mesh_hardly_matters() {
    let measured = [1, 13, 31].map(|targets| {
        [Latencies::SccEas, Latencies::SccMesh].map(|latencies| {
            let setup = Setup {
                latencies,
                epochs: 101,
                ..Setup::new(targets)
            };
            run(setup).origin().nanoseconds()
        })
    });
    for [idle, busy] in measured {
        assert!(busy.abs_diff(idle) * 100 < idle, "{idle} ns, {busy} ns");
    }
    assert!(measured.iter().any(|[idle, busy]| idle != busy));
}

// ---- What is behind it ----

/// A core's accesses in each of ten epochs, start-up left out.
fn per_epoch(targets: u16, core: usize) -> [u64; 8] {
    let after = |epochs| {
        let setup = Setup {
            epochs,
            ..Setup::new(targets)
        };
        let Counters {
            loads_local,
            loads_remote,
            stores_local,
            stores_remote,
            locks,
            locks_refused,
            drains,
            relaxes,
            ..
        } = run(setup).counters[core];
        [
            loads_local,
            loads_remote,
            stores_local,
            stores_remote,
            locks,
            locks_refused,
            drains,
            relaxes,
        ]
    };
    let (ten, twenty) = (after(10), after(20));
    std::array::from_fn(|n| (twenty[n] - ten[n]) / 10)
}

/// With the posts there already, a target costs the origin: a poll; its own lock, load, store,
/// drain, unlock; the target's lock, load, store, drain, unlock. Four of them leave for another
/// core's tile or memory.
#[test]
fn an_origin_makes_thirteen_accesses_per_target() {
    let (few, many) = (per_epoch(10, 0), per_epoch(20, 0));
    let per_target: [u64; 8] = std::array::from_fn(|n| (many[n] - few[n]) / 10);
    // Loads local and remote, stores local and remote, locks taken (and freed), refused, drains,
    // relaxes.
    assert_eq!(per_target, [2, 1, 1, 1, 2, 0, 2, 0]);
}
