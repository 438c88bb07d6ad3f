//! Between two ranks, over the size of a message.

use anyhow::Context as _;
use flagpost_bench::pingpong::{Setup, Variant, measure};

use super::{points, ran, tenths};
use crate::figure::{Axis, Curve, Figure, Kind, Plan, Task};
use crate::published::{N14, N19};

const SIZES: [usize; 9] = [8, 16, 32, 64, 256, 1024, 4096, 16384, 65536];

const fn look(variant: Variant) -> (Kind, &'static str) {
    match variant {
        Variant::Notified => (Kind::Notified, "notified put"),
        Variant::Stored => (Kind::Third, "notified put, not inline"),
        Variant::NotifiedGet => (Kind::Third, "notified get"),
        Variant::Pscw => (Kind::Pscw, "PSCW, put"),
        Variant::PscwGet => (Kind::Pscw, "PSCW, get"),
        Variant::Fence => (Kind::Fence, "fence, put"),
        Variant::TwoSided => (Kind::Messages, "send and receive"),
        Variant::TwoSidedShare => (Kind::Third, "the same in shared buffers"),
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

/// A curve for each variant.
fn curves(variants: &[Variant], sizes: &[usize], values: &[Vec<f64>]) -> Vec<Curve> {
    let xs: Vec<f64> = sizes.iter().map(|&bytes| bytes as f64).collect();
    let each = variants.iter().zip(values.chunks(sizes.len()));
    each.map(|(&variant, values)| {
        let (kind, label) = look(variant);
        let ys = values.iter().map(|cycles| cycles[0]);
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
    const SHOWN: &[usize] = &SIZES;
    Plan {
        name: "puts",
        tasks: tasks(&VARIANTS, SHOWN),
        figure: Box::new(|values| {
            let ratio = values[0][0] / values[2 * SHOWN.len()][0];
            Figure {
                title: format!("A notified put of 8 bytes takes {} % of the time of a PSCW epoch", (100.0 * ratio).round()),
                x: Axis::log("bytes of a message").sizes(SHOWN),
                y: Axis::log("half of a round trip, core cycles (533 to a microsecond)"),
                curves: curves(&VARIANTS, SHOWN, values),
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
                curves: curves(&VARIANTS, SHOWN, values),
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

const STREAMS: [usize; 8] = [8, 32, 64, 256, 1024, 4096, 16384, 65536];

/// An experiment of `bench micro` at each of these sizes; the variants' values in the order of
/// `names`.
fn micro(at: fn(u64) -> Micro, names: &'static [(Kind, &'static str, &'static str)]) -> Vec<Task> {
    let task = |bytes: usize| {
        Task::new(50 + bytes as u64 / 15, move || {
            let row = ran(at(bytes as u64))?;
            let value = |name: &str| row.iter().find(|(of, _)| *of == name);
            let values = names.iter().map(|(_, name, _)| value(name));
            let values: Option<Vec<f64>> = values.map(|found| Some(found?.1 as f64)).collect();
            values.context("a variant that the experiment has not")
        })
    };
    STREAMS.into_iter().map(task).collect()
}

type Micro = Result<flagpost_bench::micro::Row, Box<flagpost_sim::Report>>;

fn micro_curves(names: &[(Kind, &str, &str)], values: &[Vec<f64>]) -> Vec<Curve> {
    let xs = STREAMS.map(|bytes| bytes as f64);
    let curve = |(nth, &(kind, _, label)): (usize, &(Kind, &str, &str))| {
        Curve::line(
            kind,
            label,
            points(&xs, values.iter().map(|values| values[nth])),
        )
    };
    names.iter().enumerate().map(curve).collect()
}

/// After figures 4 and 5 of foMPI.
pub(super) fn bandwidth() -> Plan {
    const NAMES: &[(Kind, &str, &str)] = &[
        (Kind::Fourth, "put", "put, flush at the end"),
        (Kind::Notified, "notified", "notified put"),
        (Kind::Messages, "two-sided", "send and receive"),
        (Kind::Pscw, "pscw", "PSCW, put"),
        (Kind::Fence, "fence", "fence, put"),
        (Kind::Third, "notified-get", "notified get"),
    ];
    Plan {
        name: "bandwidth",
        tasks: micro(flagpost_bench::micro::bandwidth, NAMES),
        figure: Box::new(|values| {
            let last = &values[STREAMS.len() - 1];
            Figure {
                title: format!(
                    "Streams of 64 KiB: {} MB/s by plain puts, {} by notified puts, {} by messages",
                    last[0], last[1], last[2]
                ),
                x: Axis::log("bytes of an access").sizes(&STREAMS),
                y: Axis::log("megabytes a second"),
                curves: micro_curves(NAMES, values),
                published: Vec::new(),
                notes: vec![
                    "Streams of 16 accesses between two cores of the simulated SCC, one hop apart. Messages and notified puts are read where they arrive. After [foMPI] Fig. 4, 5, whose values are not in the text.".to_owned(),
                ],
                command: "cargo xtask bench micro bandwidth".to_owned(),
                listed: false,
            }
        }),
    }
}

/// After Fig. 4a of NA.
pub(super) fn overlap() -> Plan {
    const NAMES: &[(Kind, &str, &str)] = &[
        (Kind::Notified, "notified", "notified put"),
        (Kind::Third, "stored", "notified put, not inline"),
        (Kind::Messages, "two-sided", "send and receive"),
        (Kind::Pscw, "pscw", "PSCW, put"),
        (Kind::Fence, "fence", "fence, put"),
    ];
    Plan {
        name: "overlap",
        tasks: micro(flagpost_bench::micro::overlap, NAMES),
        figure: Box::new(|values| {
            Figure {
            title: format!(
                "Computing hides {} % of a notified round trip of 8 bytes, {} % if data are not inline",
                values[0][0], values[0][1]
            ),
            x: Axis::log("bytes of a message").sizes(&STREAMS),
            y: Axis::linear("share of a round trip that computing hides, %"),
            curves: micro_curves(NAMES, values),
            published: Vec::new(),
            notes: vec![
                "Two cores of the simulated SCC, one hop apart; the chip has no engine that copies. Inline data pass a ring, out of which the receiver copies them."
                    .to_owned(),
                N19.to_owned(),
            ],
            command: "cargo xtask bench micro overlap".to_owned(),
            listed: false,
        }
        }),
    }
}
