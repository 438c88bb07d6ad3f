//! The sources' programs, in their variants.
//!
//! The simulator charges for accesses to shared memory and for floating-point operations, not for
//! other instructions.

use flagpost_apps::{Size, Variant};
use flagpost_bench_apps::{SimLink, Task as Run, simulator};
use flagpost_sim::Latencies;

use super::{points, tenths};
use crate::figure::{Axis, Curve, Drawn, Figure, Kind, Mark, Plan, Task, number};
use crate::published::{N26, N30, Published};

const RANKS: &[u16] = &[2, 4, 8, 16, 32, 48];
const NOTE: &str = "Simulated SCC: shared memory and floating-point operations take time. Each result is that of a serial run.";

/// What the programs call messages.
const MESSAGES: &str = "Messages are notified puts into a mailbox, copied out and acknowledged: a program's own, without a library's matching.";

const fn look(variant: Variant) -> (Kind, &'static str) {
    match variant {
        Variant::Messages => (Kind::Messages, "send and receive"),
        Variant::Fence => (Kind::Fence, "fence"),
        Variant::Pscw => (Kind::Pscw, "PSCW"),
        Variant::Notified => (Kind::Notified, "notified"),
        Variant::Accumulate => (Kind::Third, "accumulate"),
        Variant::Alltoall => (Kind::Fourth, "alltoall"),
        Variant::ReduceScatter => (Kind::Bare, "reduce_scatter"),
    }
}

/// Cycles and work of a run.
fn run(name: &'static str, variant: Variant, ranks: u16, size: Size) -> Task {
    Task::new(5 * u64::from(ranks), move || {
        let run = Run {
            name,
            variant,
            ranks,
            size,
        };
        let outcome = simulator(run, Latencies::SccEas)?;
        Ok(vec![outcome.ticks as f64, outcome.work as f64])
    })
}

/// A program over cores: per variant, what `shown` makes of cycles and work.
struct Scaling {
    name: &'static str,
    variants: &'static [Variant],
    ranks: &'static [u16],
    size: Size,
    /// What the cores share or have each.
    cores: &'static str,
}

impl Scaling {
    fn tasks(&self) -> Vec<Task> {
        let of = |variant| { self.ranks.iter() }.map(move |&ranks| (variant, ranks));
        let all = self.variants.iter().flat_map(|&variant| of(variant));
        all.map(|(variant, ranks)| run(self.name, variant, ranks, self.size))
            .collect()
    }

    fn curves(&self, values: &[Vec<f64>], shown: impl Fn(f64, f64) -> f64) -> Vec<Curve> {
        let xs = self.xs();
        let each = self.variants.iter().zip(values.chunks(xs.len()));
        each.map(|(&variant, values)| {
            let (kind, label) = look(variant);
            let ys = values.iter().map(|value| shown(value[0], value[1]));
            Curve::line(kind, label, points(&xs, ys))
        })
        .collect()
    }

    fn xs(&self) -> Vec<f64> {
        self.ranks.iter().copied().map(f64::from).collect()
    }

    fn command(&self) -> String {
        let Size { side, steps } = self.size;
        let ranks: Vec<_> = self.ranks.iter().map(u16::to_string).collect();
        let ranks = ranks.join(",");
        format!(
            "cargo xtask app {} --ranks {ranks} --size {side}x{steps}",
            self.name
        )
    }

    /// Operations per cycle, beside a published ratio to messages.
    fn rates(
        self,
        title: &'static str,
        what: &'static str,
        ratio: Published,
        after: &'static str,
    ) -> Plan {
        Plan {
            name: self.name,
            tasks: self.tasks(),
            figure: Box::new(move |values| {
                let curves = self.curves(values, |cycles, work| work / cycles);
                let end = |kind| {
                    let curve = curves.iter().find(|curve| curve.kind == kind);
                    let end = curve.and_then(|curve| curve.points.last());
                    end.copied().unwrap_or_default()
                };
                let (messages, notified) = (end(Kind::Messages), end(Kind::Notified));
                let mark = Mark {
                    kind: Kind::Notified,
                    label: String::new(),
                    at: (messages.0, messages.1 * ratio.value),
                };
                Figure {
                    title: format!(
                        "{title} on 48 cores: notified puts are {} times as fast as messages",
                        tenths(notified.1 / messages.1)
                    ),
                    x: Axis::log(self.cores).marked(self.xs()),
                    y: Axis::log(what),
                    curves,
                    published: vec![mark],
                    notes: vec![
                        format!("{after} {NOTE}"),
                        MESSAGES.to_owned(),
                        format!("Hollow: our messages times {}", ratio.note()),
                    ],
                    command: self.command(),
                    ..Figure::default()
                }
            }),
        }
    }
}

/// After Fig. 4b of NA.
pub(super) fn stencil() -> Plan {
    let scaling = Scaling {
        name: "stencil",
        variants: &[Variant::Notified, Variant::Messages, Variant::Pscw],
        ranks: RANKS,
        size: Size { side: 64, steps: 4 },
        cores: "cores, each with as much work",
    };
    scaling.rates(
        "The wavefront stencil of 64 columns a core",
        "floating-point operations in a core cycle, all cores together",
        N26,
        "After [NA] Fig. 4b.",
    )
}

/// After Fig. 5 of NA.
pub(super) fn cholesky() -> Plan {
    let scaling = Scaling {
        name: "cholesky",
        variants: &[
            Variant::Notified,
            Variant::Messages,
            Variant::Pscw,
            Variant::Fence,
        ],
        ranks: RANKS,
        size: Size { side: 4, steps: 48 },
        cores: "cores, which share a matrix of 192 x 192",
    };
    scaling.rates(
        "Cholesky in tiles of 4 x 4",
        "floating-point operations in a core cycle, all cores together",
        N30,
        "After [NA] Fig. 5.",
    )
}

/// After Fig. 9a of foMPI.
pub(super) fn hashtable() -> Plan {
    let scaling = Scaling {
        name: "hashtable",
        variants: &[Variant::Fence, Variant::Messages],
        ranks: RANKS,
        size: Size {
            side: 64,
            steps: 64,
        },
        cores: "cores, each with as many inserts",
    };
    Plan {
        name: scaling.name,
        tasks: scaling.tasks(),
        figure: Box::new(move |values| {
            // A core has 533 million cycles a second.
            let mut curves = scaling.curves(values, |cycles, work| work / cycles * 533.0);
            let ends: Vec<f64> = curves
                .iter()
                .filter_map(|curve| Some(curve.points.last()?.1))
                .collect();
            curves[0].label = "compare-and-swap, fetch-and-add".to_owned();
            Figure {
                title: format!(
                    "A hash table on 48 cores takes {} million inserts a second by atomics, {} by messages",
                    tenths(ends[0]),
                    tenths(ends[1])
                ),
                x: Axis::log(scaling.cores).marked(scaling.xs()),
                y: Axis::linear("millions of inserts a second, all cores together"),
                curves,
                notes: vec![format!(
                    "After [foMPI] Fig. 9a, whose values are not in the text. {NOTE}"
                )],
                command: scaling.command(),
                ..Figure::default()
            }
        }),
    }
}

/// After Fig. 9b of foMPI.
pub(super) fn sparse() -> Plan {
    let scaling = Scaling {
        name: "sparse",
        variants: &[
            Variant::Accumulate,
            Variant::Alltoall,
            Variant::ReduceScatter,
            Variant::Notified,
        ],
        ranks: &[2, 4, 8, 16, 48, 256, 1024],
        size: Size { side: 1, steps: 2 },
        cores: "cores, up to 6 random targets each",
    };
    Plan {
        name: scaling.name,
        tasks: scaling.tasks(),
        figure: Box::new(move |values| {
            let per_round = f64::from(scaling.size.steps);
            let curves = scaling.curves(values, |cycles, _| cycles / per_round);
            let ends: Vec<f64> = curves
                .iter()
                .filter_map(|curve| Some(curve.points.last()?.1))
                .collect();
            Figure {
                title: format!(
                    "A sparse exchange among 1,024: {} cycles with accumulates, {} with alltoall",
                    number(ends[0].round()),
                    number(ends[1].round())
                ),
                x: Axis::log(scaling.cores).marked(scaling.xs()),
                y: Axis::log("core cycles of an exchange (533 to a microsecond)"),
                curves,
                notes: vec![format!("After [foMPI] Fig. 9b. {NOTE}"), F36.to_owned()],
                command: scaling.command(),
                ..Figure::default()
            }
        }),
    }
}

const F36: &str = "F36: on Blue Waters accumulates are 2 to nearly 100 times as fast as the others, and as the non-blocking barrier: [foMPI] 4.2.";

/// All programs in their small size.
pub(super) fn programs() -> Plan {
    const CORES: u16 = 48;
    let all = flagpost_apps::programs::<SimLink>();
    let rows: Vec<(&'static str, &'static [Variant], Size)> = all
        .iter()
        .map(|program| (program.name, program.variants, program.small))
        .collect();
    let task = |&(name, variants, size): &(&'static str, &'static [Variant], Size)| {
        variants
            .iter()
            .map(move |&variant| run(name, variant, CORES, size))
            .collect::<Vec<_>>()
    };
    let tasks: Vec<Task> = rows.iter().flat_map(task).collect();
    Plan {
        name: "programs",
        tasks,
        figure: Box::new(move |values| {
            let mut values = values.iter();
            let mut curves: Vec<Curve> = Vec::new();
            let (mut published, mut faster, mut compared) = (Vec::new(), 0, 0);
            for (place, (name, variants, _)) in rows.iter().enumerate() {
                let y = (rows.len() - place) as f64;
                let times: Vec<f64> = values
                    .by_ref()
                    .take(variants.len())
                    .map(|value| value[0])
                    .collect();
                let of = |wanted| {
                    variants
                        .iter()
                        .zip(&times)
                        .find(|(variant, _)| **variant == wanted)
                };
                // The sparse exchange has no messages: there all are compared with the accumulate.
                let base = of(Variant::Messages).or(of(Variant::Accumulate));
                let base = base.map_or(times[0], |(_, time)| *time);
                for (&variant, time) in variants.iter().zip(&times) {
                    let (kind, label) = look(variant);
                    let point = (base / time, y);
                    match curves.iter_mut().find(|curve| curve.kind == kind) {
                        Some(curve) => curve.points.push(point),
                        None => {
                            curves.push(Curve::line(kind, label, vec![point]).drawn(Drawn::Points))
                        }
                    }
                }
                if let (Some((_, time)), Some(_)) = (of(Variant::Notified), of(Variant::Messages)) {
                    compared += 1;
                    faster += usize::from(*time * 1.02 < base);
                }
                let ratio = [("stencil", N26), ("cholesky", N30)]
                    .into_iter()
                    .find(|(of, _)| of == name);
                published.extend(ratio.map(|(_, ratio)| Mark {
                    kind: Kind::Notified,
                    label: ratio.id.to_owned(),
                    at: (ratio.value, y),
                }));
            }
            let names: Vec<&str> = rows.iter().map(|(name, ..)| *name).collect();
            let size = |(name, _, Size { side, steps }): &_| format!("{name} {side}x{steps}");
            let sizes: Vec<String> = rows.iter().map(size).collect();
            Figure {
                title: format!(
                    "On 48 cores, at these small sizes, notified access is faster than messages in {faster} of {compared} programs, by 2 % at least"
                ),
                x: Axis::log("time by messages over that of the variant: to the right is faster"),
                y: Axis::named(&names),
                curves,
                published,
                notes: vec![
                    format!(
                        "Sizes: {}; at larger ones the ratios are others. {NOTE} The sparse exchange is compared with its accumulates.",
                        sizes.join(", ")
                    ),
                    MESSAGES.to_owned(),
                    N26.note(),
                    N30.note(),
                ],
                command: format!("cargo xtask app all --ranks {CORES}"),
                listed: true,
            }
        }),
    }
}
