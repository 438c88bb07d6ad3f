//! What epochs and fences cost.

use flagpost_bench::pscw::{Setup, Strategy, measure};
use flagpost_bench::{Cycles, cross};

use super::{points, ran, tenths};
use crate::figure::{Axis, Curve, Drawn, Figure, Kind, Mark, Plan, Task};
use crate::published::{F7, F12, P1, P2};

const TARGETS: [u16; 9] = [1, 2, 4, 6, 9, 13, 18, 24, 31];
/// As published.
const EPOCHS: u32 = 1001;

fn us(cycles: Cycles) -> f64 {
    cycles.nanoseconds() as f64 / 1000.0
}

/// Post, start, complete and wait in us, for each strategy all numbers of targets.
fn tasks(strategies: &[Strategy]) -> Vec<Task> {
    let all = strategies
        .iter()
        .flat_map(|&strategy| TARGETS.map(move |targets| (strategy, targets)));
    let task = |(strategy, targets): (Strategy, u16)| {
        Task::new(u64::from(targets) * 20, move || {
            let setup = Setup {
                strategy,
                epochs: EPOCHS,
                ..Setup::new(targets)
            };
            let measured = ran(measure(&setup))?;
            let calls = [
                measured.post,
                measured.start,
                measured.complete,
                measured.wait,
            ];
            Ok(calls.map(us).to_vec())
        })
    };
    all.map(task).collect()
}

fn targets() -> Vec<f64> {
    TARGETS.map(f64::from).to_vec()
}

/// After PSCW-SCC Fig. 4.
pub(super) fn pscw_calls() -> Plan {
    const STRATEGIES: [Strategy; 3] = [
        Strategy::EpochSlots,
        Strategy::MatchingList,
        Strategy::MatchVector,
    ];
    Plan {
        name: "pscw-calls",
        tasks: tasks(&STRATEGIES),
        figure: Box::new(|values| {
            let n = TARGETS.len();
            let call = |strategy: usize, call: usize| {
                values[strategy * n..][..n]
                    .iter()
                    .map(move |calls| calls[call])
            };
            let curve = |kind, label: &str, strategy, of| {
                Curve::line(kind, label, points(&targets(), call(strategy, of)))
            };
            let last = |strategy: usize| call(strategy, 2).next_back().unwrap_or(0.0);
            Figure {
                title: format!("Complete grows with the targets; slots make it {} times faster than match vectors", tenths(last(2) / last(0))),
                x: Axis::linear("targets of one origin").marked(targets()),
                y: Axis::log("medians, microseconds"),
                curves: vec![
                    curve(Kind::Notified, "complete, slots", 0, 2),
                    curve(Kind::Fourth, "post, slots", 0, 0),
                    curve(Kind::Third, "complete, list", 1, 2),
                    curve(Kind::Fence, "post, list", 1, 0),
                    curve(Kind::Messages, "complete, match vector", 2, 2),
                    curve(Kind::Pscw, "post, match vector", 2, 0),
                    curve(Kind::Bare, "start, all three", 0, 1),
                ],
                notes: vec![
                    "Simulated SCC, no data. As [PSCW-SCC] Fig. 4, which found post and start nearly constant, complete and wait linear (P4, P5). Wait is a little below complete.".to_owned(),
                ],
                command: "cargo xtask bench pscw --targets 1..31 --strategy epoch-slots,matching-list,match-vector".to_owned(),
                ..Figure::default()
            }
        }),
    }
}

/// After PSCW-SCC Fig. 5.
pub(super) fn pscw_epochs() -> Plan {
    const STRATEGIES: [Strategy; 3] = [
        Strategy::EpochSlots,
        Strategy::MatchVector,
        Strategy::Messages,
    ];
    Plan {
        name: "pscw-epochs",
        tasks: tasks(&STRATEGIES),
        figure: Box::new(|values| {
            let n = TARGETS.len();
            let origin = |strategy: usize| {
                values[strategy * n..][..n]
                    .iter()
                    .map(|calls| calls[1] + calls[2])
            };
            let curve = |kind, label: &str, strategy| {
                Curve::line(kind, label, points(&targets(), origin(strategy)))
            };
            let at13 = |strategy: usize| origin(strategy).nth(5).unwrap_or(0.0);
            Figure {
                title: format!("An epoch with 13 targets takes {} us with slots and {} us with match vectors", tenths(at13(0)), tenths(at13(1))),
                x: Axis::linear("targets of one origin").marked(targets()),
                y: Axis::log("start and complete at the origin, microseconds"),
                curves: vec![
                    curve(Kind::Notified, "slots", 0),
                    curve(Kind::Pscw, "match vectors", 1),
                    curve(Kind::Messages, "messages, lean", 2),
                ],
                published: vec![
                    Mark { kind: Kind::Pscw, label: "P1 25.8".to_owned(), at: (13.0, P1.value) },
                    Mark { kind: Kind::Messages, label: "P2 115.2".to_owned(), at: (13.0, P2.value) },
                ],
                notes: vec![
                    P1.note(),
                    P2.note(),
                    "Simulated SCC, no data, no cycles charged for software: the time published for MPI's messages is nearly all software. As [PSCW-SCC] Fig. 5.".to_owned(),
                ],
                command: "cargo xtask bench pscw --targets 1..31 --strategy epoch-slots,match-vector,messages".to_owned(),
                ..Figure::default()
            }
        }),
    }
}

/// After foMPI 3.2 and 6.
pub(super) fn fence_or_pscw() -> Plan {
    const NEIGHBOURS: [u16; 10] = [1, 2, 4, 6, 8, 9, 10, 11, 12, 15];
    const MORE: [u16; 14] = [1, 2, 4, 6, 8, 10, 12, 15, 17, 18, 19, 22, 26, 31];
    let fence = |cores| {
        Task::new(30 * u64::from(cores), move || {
            Ok(vec![ran(cross::fence(cores))? as f64])
        })
    };
    let epochs = |cores: u16, neighbours: &[u16]| {
        let task = |&k: &u16| {
            Task::new(u64::from(k * cores) * 3, move || {
                Ok(vec![ran(cross::epoch(cores, k))? as f64])
            })
        };
        neighbours.iter().map(task).collect::<Vec<_>>()
    };
    let mut tasks = vec![fence(16), fence(48)];
    tasks.extend(epochs(16, &NEIGHBOURS));
    tasks.extend(epochs(48, &MORE));
    Plan {
        name: "fence-or-pscw",
        tasks,
        figure: Box::new(|values| {
            let (small, large) = values[2..].split_at(NEIGHBOURS.len());
            let few: Vec<f64> = NEIGHBOURS.map(f64::from).to_vec();
            let more: Vec<f64> = MORE.map(f64::from).to_vec();
            let flat =
                |fence: usize, to: f64| vec![(1.0, values[fence][0]), (to, values[fence][0])];
            let cross = |xs: &[f64], values: &[Vec<f64>], fence: f64| {
                let above = xs
                    .iter()
                    .zip(values)
                    .take_while(|(_, cycles)| cycles[0] <= fence);
                above.last().map_or(0.0, |(k, _)| *k)
            };
            let at16 = cross(&few, small, values[0][0]);
            let at48 = cross(&more, large, values[1][0]);
            Figure {
                title: format!(
                    "Epochs beat a fence up to {at16} neighbours of 16 ranks, {at48} of 48"
                ),
                x: Axis::linear("neighbours on each side of a ring").marked(more.clone()),
                y: Axis::linear("core cycles, means (533 to a microsecond)"),
                curves: vec![
                    Curve::line(
                        Kind::Pscw,
                        "PSCW, 48 ranks",
                        points(&more, large.iter().map(|c| c[0])),
                    ),
                    Curve::line(
                        Kind::Third,
                        "PSCW, 16 ranks",
                        points(&few, small.iter().map(|c| c[0])),
                    ),
                    Curve::line(Kind::Fence, "fence of 48", flat(1, 31.0)).drawn(Drawn::Dashes),
                    Curve::line(Kind::Fourth, "fence of 16", flat(0, 31.0)).drawn(Drawn::Dashes),
                ],
                notes: vec![
                    F7.note(),
                    F12.note(),
                    format!(
                        "There the two cross at k = {} for 16 processes and {} for 48.",
                        tenths((F7.value * 4.0 - 2.5) / F12.value),
                        tenths((F7.value * 48f64.log2() - 2.5) / F12.value)
                    ),
                ],
                command: "cargo xtask bench cross --cores 16,48 --neighbours 1,2,4,6,8,9,10,11,12,15,17,18,19,22,26,31".to_owned(),
                ..Figure::default()
            }
        }),
    }
}
