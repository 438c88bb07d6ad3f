//! Between two ranks, over the size of a message.

use flagpost_bench::pingpong::{Setup, Variant, measure};

use super::{points, ran, tenths};
use crate::figure::{Axis, Curve, Figure, Kind, Plan, Task};
use crate::published::N14;

/// Core cycles of the SCC in a microsecond.
pub(super) const CYCLES: f64 = 533.0;

const SIZES: [usize; 10] = [8, 16, 32, 64, 256, 1024, 4096, 16384, 65536, 262_144];

const fn look(variant: Variant) -> (Kind, &'static str) {
    match variant {
        Variant::Notified => (Kind::Notified, "notified put"),
        Variant::NotifiedGet => (Kind::Third, "notified get"),
        Variant::Pscw => (Kind::Pscw, "PSCW, put"),
        Variant::PscwGet => (Kind::Pscw, "PSCW, get"),
        Variant::Fence => (Kind::Fence, "fence, put"),
        Variant::TwoSided => (Kind::Messages, "send and receive"),
        Variant::Bare => (Kind::Bare, "bare store and poll"),
    }
}

/// Half of a round trip, for each variant all sizes.
fn tasks(variants: &[Variant], sizes: &'static [usize]) -> Vec<Task> {
    let all = variants
        .iter()
        .flat_map(|&variant| sizes.iter().map(move |&bytes| (variant, bytes)));
    let task = |(variant, bytes)| {
        Task::new(10 + bytes as u64 / 20, move || {
            let measured = ran(measure(&Setup::new(variant, bytes)))?;
            Ok(vec![measured.half() as f64])
        })
    };
    all.map(task).collect()
}

/// A curve for each variant, of what `shown` makes of bytes and cycles.
fn curves(
    variants: &[Variant],
    sizes: &[usize],
    values: &[Vec<f64>],
    shown: impl Fn(f64, f64) -> f64,
) -> Vec<Curve> {
    let xs: Vec<f64> = sizes.iter().map(|&bytes| bytes as f64).collect();
    let each = variants.iter().zip(values.chunks(sizes.len()));
    each.map(|(&variant, values)| {
        let (kind, label) = look(variant);
        let ys = xs
            .iter()
            .zip(values)
            .map(|(&bytes, cycles)| shown(bytes, cycles[0]));
        Curve::line(kind, label, points(&xs, ys))
    })
    .collect()
}

/// After NA Fig. 3a.
pub(super) fn puts() -> Plan {
    const VARIANTS: [Variant; 5] = [
        Variant::Notified,
        Variant::TwoSided,
        Variant::Pscw,
        Variant::Fence,
        Variant::Bare,
    ];
    const SHOWN: &[usize] = SIZES.split_at(9).0;
    Plan {
        name: "puts",
        tasks: tasks(&VARIANTS, SHOWN),
        figure: Box::new(|values| {
            let ratio = values[0][0] / values[2 * SHOWN.len()][0];
            Figure {
                title: format!("A notified put of 8 bytes takes {} % of the time of a PSCW epoch", (100.0 * ratio).round()),
                x: Axis::log("bytes of a message").sizes(SHOWN),
                y: Axis::log("half of a round trip, core cycles (533 to a microsecond)"),
                curves: curves(&VARIANTS, SHOWN, values, |_, cycles| cycles),
                published: Vec::new(),
                notes: vec![
                    "Two cores on neighbouring tiles of the simulated SCC; the receiver reads all data. As [NA] Fig. 3a.".to_owned(),
                    N14.note(),
                ],
                command: "cargo xtask bench pingpong --variants notified,two-sided,pscw,fence,bare".to_owned(),
                listed: false,
            }
        }),
    }
}

/// After NA Fig. 3b.
pub(super) fn gets() -> Plan {
    const VARIANTS: [Variant; 3] = [Variant::NotifiedGet, Variant::PscwGet, Variant::TwoSided];
    const SHOWN: &[usize] = SIZES.split_at(7).0;
    Plan {
        name: "gets",
        tasks: tasks(&VARIANTS, SHOWN),
        figure: Box::new(|values| {
            let last = |curve: usize| values[(curve + 1) * SHOWN.len() - 1][0];
            let ratio = last(0) / last(2);
            Figure {
                title: format!("A get of 4 KiB takes {} times as long as a message: the SCC has no remote read of a line", tenths(ratio)),
                x: Axis::log("bytes of a get").sizes(SHOWN),
                y: Axis::log("half of a round trip, core cycles (533 to a microsecond)"),
                curves: curves(&VARIANTS, SHOWN, values, |_, cycles| cycles),
                published: Vec::new(),
                notes: vec![
                    "Two cores on neighbouring tiles of the simulated SCC get each other's data by turns. As [NA] Fig. 3b, whose values are not in the text.".to_owned(),
                ],
                command: "cargo xtask bench pingpong --variants notified-get,pscw-get,two-sided".to_owned(),
                listed: false,
            }
        }),
    }
}

/// After Figures 4 and 5 of foMPI.
pub(super) fn bandwidth() -> Plan {
    const VARIANTS: [Variant; 5] = [
        Variant::Notified,
        Variant::TwoSided,
        Variant::Pscw,
        Variant::Fence,
        Variant::NotifiedGet,
    ];
    const SHOWN: &[usize] = SIZES.split_at(9).0;
    Plan {
        name: "bandwidth",
        tasks: tasks(&VARIANTS, SHOWN),
        figure: Box::new(|values| {
            let rate = |bytes: f64, cycles: f64| bytes / cycles * CYCLES;
            Figure {
                title: "Notified puts reach their full rate at 1 KiB, epochs half of it".to_owned(),
                x: Axis::log("bytes of a message").sizes(SHOWN),
                y: Axis::linear("one message at a time, millions of bytes a second"),
                curves: curves(&VARIANTS, SHOWN, values, rate),
                published: Vec::new(),
                notes: vec![
                    "Two cores on neighbouring tiles of the simulated SCC; the receiver reads all data. As [foMPI] Fig. 4 and 5.".to_owned(),
                ],
                command: "cargo xtask bench pingpong --variants notified,two-sided,pscw,fence,notified-get".to_owned(),
                listed: false,
            }
        }),
    }
}
