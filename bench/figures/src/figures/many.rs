//! Among many ranks.

use flagpost_bench::{cross, micro, tree as trees};
use flagpost_sim::Latencies;

use super::{points, ran, tenths};
use crate::figure::{Axis, Curve, Drawn, Figure, Kind, Plan, Task, number};
use crate::published::{F7, F13};

const CORES: [u16; 7] = [17, 32, 48, 96, 256, 512, 1024];

/// After NA Fig. 4c.
pub(super) fn tree() -> Plan {
    let task = |cores: u16| {
        Task::new(23 * u64::from(cores), move || {
            let row = ran(trees::measure(cores, Latencies::SccEas))?;
            Ok(row.iter().map(|&(_, cycles)| cycles as f64).collect())
        })
    };
    Plan {
        name: "tree",
        tasks: CORES.map(task).into(),
        figure: Box::new(|values| {
            let xs = CORES.map(f64::from).to_vec();
            let ys = |way: usize| points(&xs, values.iter().map(|cycles| cycles[way]));
            Figure {
                title: format!(
                    "A tree of 48 cores: {} cycles notified, {} by messages",
                    number(values[2][0]),
                    number(values[2][1])
                ),
                x: Axis::log("cores of the chip").marked(xs.clone()),
                y: Axis::log("core cycles until core 0 has the sum"),
                curves: vec![
                    Curve::line(Kind::Notified, "notified, one counting request", ys(0)),
                    Curve::line(Kind::Messages, "send and receive", ys(1)),
                ],
                notes: vec![
                    LARGER.to_owned(),
                    "16 children each, 8 bytes. As [NA] Fig. 4c, whose values are not in the text."
                        .to_owned(),
                ],
                command: "cargo xtask bench tree --cores 17,32,48,96,256,512,1024".to_owned(),
                ..Figure::default()
            }
        }),
    }
}

/// A note of many figures.
const LARGER: &str = "Simulated SCC; above 48 cores, larger chips of its kind, with as many memory controllers per core.";

/// A curve over ranks of the one value that each has.
fn over(kind: Kind, label: &str, ranks: &[u16], values: &[Vec<f64>]) -> Curve {
    let xs: Vec<f64> = ranks.iter().map(|&ranks| f64::from(ranks)).collect();
    Curve::line(
        kind,
        label,
        points(&xs, values.iter().map(|value| value[0])),
    )
}

/// After Fig. 8a of foMPI.
pub(super) fn fence() -> Plan {
    const RANKS: [u16; 9] = [2, 3, 4, 6, 8, 16, 24, 32, 48];
    let task = |ranks| Task::new(50, move || Ok(vec![ran(cross::fence(ranks))? as f64]));
    Plan {
        name: "fence",
        tasks: RANKS.map(task).into(),
        figure: Box::new(|values| {
            let least = values[0][0];
            let published = RANKS.map(|ranks| (f64::from(ranks), least * f64::from(ranks).log2()));
            let grown = values[RANKS.len() - 1][0] / least;
            Figure {
                title: format!(
                    "A fence of 48 ranks takes {} times as long as one of 2: more than the 5.6 of a logarithm",
                    tenths(grown)
                ),
                x: Axis::log("ranks").marked(RANKS.map(f64::from)),
                y: Axis::linear("core cycles of a fence, means (533 to a microsecond)"),
                curves: vec![
                    over(Kind::Fence, "fence", &RANKS, values),
                    Curve::line(
                        Kind::Bare,
                        "F7's shape, log2 p, through ours at 2",
                        published.into(),
                    )
                    .drawn(Drawn::Dashes),
                ],
                notes: vec!["Simulated SCC, no data.".to_owned(), F7.note()],
                command: "cargo xtask bench micro fence --at 2,3,4,6,8,16,24,32,48".to_owned(),
                ..Figure::default()
            }
        }),
    }
}

/// After Fig. 8b of foMPI.
pub(super) fn ring() -> Plan {
    const RANKS: [u16; 8] = [2, 4, 8, 16, 48, 128, 256, 1024];
    let task = |ranks: u16| {
        Task::new(20 + 3 * u64::from(ranks), move || {
            let row = ran(micro::ring(ranks.into()))?;
            Ok(row.iter().map(|&(_, cycles)| cycles as f64).collect())
        })
    };
    Plan {
        name: "ring",
        tasks: RANKS.map(task).into(),
        figure: Box::new(|values| {
            let grown = values[RANKS.len() - 1][0] / values[4][0];
            Figure {
                title: format!(
                    "An epoch with two neighbours takes {} times as long among 1,024 ranks as among 48",
                    tenths(grown)
                ),
                x: Axis::log("ranks of the ring").marked(RANKS.map(f64::from)),
                y: Axis::linear("core cycles of an epoch that puts 8 bytes (533 to a microsecond)"),
                curves: vec![over(Kind::Pscw, "PSCW", &RANKS, values)],
                notes: vec![LARGER.to_owned(), F13.to_owned()],
                command: "cargo xtask bench micro ring --at 2,4,8,16,48,128,256,1024".to_owned(),
                ..Figure::default()
            }
        }),
    }
}
