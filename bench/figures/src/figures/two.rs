//! Between two ranks, over the size of a message.

use anyhow::Context as _;
use flagpost_bench::micro::{self, Row, cost};
use flagpost_bench::pingpong::{Setup, Variant, halves};
use flagpost_sim::Report;

use super::{points, ran, tenths};
use crate::figure::{Axis, Curve, Figure, Kind, Plan, Task};
use crate::published::{N14, N19};

const SIZES: &[usize] = &[8, 16, 32, 64, 256, 1024, 4096, 16384, 65536];
const STREAMS: &[usize] = &[8, 32, 64, 256, 1024, 4096, 16384, 65536];

/// Curves: of each its kind, its variant and its label.
type Names = &'static [(Kind, &'static str, &'static str)];

/// An experiment at each of these sizes; the variants' values in the order of `names`.
fn tasks(
    at: impl Fn(u64) -> Result<Row, Box<Report>> + Copy + Send + Sync + 'static,
    names: Names,
    sizes: &[usize],
) -> Vec<Task> {
    let task = |&bytes: &usize| {
        Task::new(10 + bytes as u64 / 15, move || {
            let row = ran(at(bytes as u64))?;
            let values = { names.iter() }.map(|(_, name, _)| Some(cost(&row, name)? as f64));
            let values: Option<Vec<f64>> = values.collect();
            values.context("a variant that the experiment has not")
        })
    };
    sizes.iter().map(task).collect()
}

/// Half of a round trip in each of these variants.
fn half_of(
    variants: &'static [Variant],
) -> impl Fn(u64) -> Result<Row, Box<Report>> + Copy + Send + Sync {
    move |bytes| halves(Setup::new(Variant::Notified, bytes as usize), variants)
}

fn curves(names: Names, sizes: &[usize], values: &[Vec<f64>]) -> Vec<Curve> {
    let xs: Vec<f64> = sizes.iter().map(|&bytes| bytes as f64).collect();
    let curve = |(nth, &(kind, _, label)): (usize, &(Kind, &str, &str))| {
        Curve::line(
            kind,
            label,
            points(&xs, values.iter().map(|values| values[nth])),
        )
    };
    names.iter().enumerate().map(curve).collect()
}

/// After NA Fig. 3a.
pub(super) fn puts() -> Plan {
    use Variant::{Bare, Fence, Notified, Pscw, TwoSided};
    const NAMES: Names = &[
        (Kind::Notified, "notified", "notified put"),
        (Kind::Messages, "two-sided", "send and receive"),
        (Kind::Pscw, "pscw", "PSCW, put"),
        (Kind::Fence, "fence", "fence, put"),
        (Kind::Bare, "bare", "bare store and poll"),
    ];
    Plan {
        name: "puts",
        tasks: tasks(
            half_of(&[Notified, TwoSided, Pscw, Fence, Bare]),
            NAMES,
            SIZES,
        ),
        figure: Box::new(|values| {
            let ratio = values[0][0] / values[0][2];
            Figure {
                title: format!("A notified put of 8 bytes takes {} % of the time of a PSCW epoch", (100.0 * ratio).round()),
                x: Axis::log("bytes of a message").sizes(SIZES),
                y: Axis::log("half of a round trip, core cycles (533 to a microsecond)"),
                curves: curves(NAMES, SIZES, values),
                notes: vec![
                    "Two cores on neighbouring tiles of the simulated SCC; the receiver reads all data. As [NA] Fig. 3a.".to_owned(),
                    N14.note(),
                ],
                command: "cargo xtask bench pingpong --variants notified,two-sided,pscw,fence,bare".to_owned(),
                ..Figure::default()
            }
        }),
    }
}

/// After NA Fig. 3b.
pub(super) fn gets() -> Plan {
    use Variant::{NotifiedGet, PscwGet, TwoSided};
    const NAMES: Names = &[
        (Kind::Third, "notified-get", "notified get"),
        (Kind::Pscw, "pscw-get", "PSCW, get"),
        (Kind::Messages, "two-sided", "send and receive"),
    ];
    const SHOWN: &[usize] = SIZES.split_at(7).0;
    Plan {
        name: "gets",
        tasks: tasks(half_of(&[NotifiedGet, PscwGet, TwoSided]), NAMES, SHOWN),
        figure: Box::new(|values| {
            let last = &values[SHOWN.len() - 1];
            let ratio = last[0] / last[2];
            Figure {
                title: format!("A get of 4 KiB takes {} times as long as a message: the SCC has no remote read of a line", tenths(ratio)),
                x: Axis::log("bytes of a get").sizes(SHOWN),
                y: Axis::log("half of a round trip, core cycles (533 to a microsecond)"),
                curves: curves(NAMES, SHOWN, values),
                notes: vec![
                    "Two cores on neighbouring tiles of the simulated SCC get each other's data by turns. As [NA] Fig. 3b, whose values are not in the text.".to_owned(),
                ],
                command: "cargo xtask bench pingpong --variants notified-get,pscw-get,two-sided".to_owned(),
                ..Figure::default()
            }
        }),
    }
}

/// After figures 4 and 5 of foMPI.
pub(super) fn bandwidth() -> Plan {
    const NAMES: Names = &[
        (Kind::Fourth, "put", "put, flush at the end"),
        (Kind::Notified, "notified", "notified put"),
        (Kind::Messages, "two-sided", "send and receive"),
        (Kind::Pscw, "pscw", "PSCW, put"),
        (Kind::Fence, "fence", "fence, put"),
        (Kind::Third, "notified-get", "notified get"),
    ];
    Plan {
        name: "bandwidth",
        tasks: tasks(micro::bandwidth, NAMES, STREAMS),
        figure: Box::new(|values| {
            let last = &values[STREAMS.len() - 1];
            Figure {
                title: format!(
                    "Streams of 64 KiB: {} MB/s by plain puts, {} by notified puts, {} by messages",
                    last[0], last[1], last[2]
                ),
                x: Axis::log("bytes of an access").sizes(STREAMS),
                y: Axis::log("megabytes a second"),
                curves: curves(NAMES, STREAMS, values),
                notes: vec![
                    "Streams of 16 accesses between two cores of the simulated SCC, one hop apart. Messages and notified puts are read where they arrive. After [foMPI] Fig. 4, 5, whose values are not in the text.".to_owned(),
                ],
                command: "cargo xtask bench micro bandwidth".to_owned(),
                ..Figure::default()
            }
        }),
    }
}

/// After Fig. 4a of NA.
pub(super) fn overlap() -> Plan {
    const NAMES: Names = &[
        (Kind::Notified, "notified", "notified put"),
        (Kind::Third, "stored", "notified put, not inline"),
        (Kind::Messages, "two-sided", "send and receive"),
        (Kind::Pscw, "pscw", "PSCW, put"),
        (Kind::Fence, "fence", "fence, put"),
    ];
    Plan {
        name: "overlap",
        tasks: tasks(micro::overlap, NAMES, STREAMS),
        figure: Box::new(|values| {
            Figure {
            title: format!(
                "Computing hides {} % of a notified round trip of 8 bytes, {} % if data are not inline",
                values[0][0], values[0][1]
            ),
            x: Axis::log("bytes of a message").sizes(STREAMS),
            y: Axis::linear("share of a round trip that computing hides, %"),
            curves: curves(NAMES, STREAMS, values),
            notes: vec![
                "Two cores of the simulated SCC, one hop apart; the chip has no engine that copies. Inline data pass a ring, out of which the receiver copies them."
                    .to_owned(),
                N19.to_owned(),
            ],
            command: "cargo xtask bench micro overlap".to_owned(),
            ..Figure::default()
        }
        }),
    }
}
