//! Cost models: what a call costs as a line over bytes, elements, neighbours or ranks.
//!
//! [foMPI] gives each call a function of the bytes s, the ranks p or the neighbours k; [NA] gives
//! the parameters of LogGP. Here the same functions are fitted to [`micro`]'s numbers on the
//! simulated SCC: least squares of relative distances, so that small messages count as much as
//! long ones. A fence is a line over ceil(log2 p), the rounds of its messages.
//!
//! [`check`] asks [`flagpost_model`] for random worlds which is faster, a fence or an epoch, and
//! measures both.
//!
//! [NA]: flagpost#sources
//! [foMPI]: flagpost#sources

use std::collections::BTreeMap;

use flagpost_common::Dice;
use flagpost_model::{Costs, STEPS, Scheme, steps};
use flagpost_sim::Report;

pub use crate::fit::Line;
use crate::{cross, micro, ops};

/// What a call costs.
#[derive(Copy, Clone, Debug)]
pub struct Model {
    /// The call.
    pub call: &'static str,
    /// What it is a function of; nothing if it is a constant.
    pub over: &'static str,
    /// The fitted line, in core cycles.
    pub line: Line,
    /// What the sources found on other machines.
    pub published: &'static str,
}

/// A call of an experiment, in the order in which they are printed.
struct Fit {
    call: &'static str,
    experiment: &'static str,
    variant: &'static str,
    published: &'static str,
}

const fn fit(
    call: &'static str,
    experiment: &'static str,
    variant: &'static str,
    published: &'static str,
) -> Fit {
    Fit {
        call,
        experiment,
        variant,
        published,
    }
}

/// Bytes of the messages that lines are fitted to.
const SIZES: [u64; 7] = [8, 32, 64, 256, 1024, 4096, 16384];

/// The same for the gap per byte: messages of several lines.
const LONG: [u64; 5] = [64, 256, 1024, 4096, 16384];

const FITS: [Fit; 23] = [
    fit("put", "latency", "put", "1 us + 0.16 ns s"),
    fit("get", "latency", "get", "1.9 us + 0.17 ns s"),
    fit("put_notify", "latency", "notified", "1.38 us + 0.105 ns s"),
    fit("send, receive", "latency", "two-sided", "-"),
    fit("accumulate, sum", "atomics", "sum", "2.4 us + 28 ns s"),
    fit("accumulate, min", "atomics", "min", "7.3 us + 0.8 ns s"),
    fit("compare_and_swap", "atomics", "cas", "2.4 us"),
    fit("fetch_and_op", "atomics", "fetch-add", "-"),
    fit("fence", "fence", "fence", "2.9 us log2 p"),
    fit("post", "epochs", "post", "0.35 us k"),
    fit("start", "epochs", "start", "0.7 us"),
    fit("complete", "epochs", "complete", "0.35 us k"),
    fit("wait", "epochs", "wait", "1.8 us"),
    fit("epoch", "epochs", "epoch", "2.5 us + 0.7 us k"),
    fit("lock_exclusive", "locks", "exclusive", "5.4 us"),
    fit("unlock_exclusive", "locks", "unlock_exclusive", "0.4 us"),
    fit("lock_shared", "locks", "shared", "2.7 us"),
    fit("unlock_shared", "locks", "unlock_shared", "0.4 us"),
    fit("lock_queued", "locks", "queued", "-"),
    fit("lock_all", "locks", "lock_all", "2.7 us"),
    fit("unlock_all", "locks", "unlock_all", "0.4 us"),
    fit("flush", "locks", "flush", "76 ns"),
    fit("sync", "locks", "sync", "17 ns"),
];

/// Experiments that have been made, by name and argument.
type Made = BTreeMap<(&'static str, u64), micro::Row>;

/// The models of the simulated SCC. `tell` hears how many of how many experiments are made.
///
/// # Errors
/// The account of a run that failed.
pub fn simulated(tell: &dyn Fn(u64, u64)) -> Result<Vec<Model>, Box<Report>> {
    let used = |name| FITS.iter().any(|fit| fit.experiment == name);
    let mut wanted = Vec::new();
    for experiment in micro::ALL.iter().filter(|experiment| used(experiment.name)) {
        let points = match experiment.over {
            "bytes" => &SIZES[..],
            _ => experiment.points,
        };
        wanted.extend(points.iter().map(|&at| (experiment, at)));
    }
    let mut made = Made::new();
    for (done, &(experiment, at)) in (0..).zip(&wanted) {
        tell(done, wanted.len() as u64);
        made.insert((experiment.name, at), (experiment.at)(at)?);
    }
    let mut models = log_gp(&made)?;
    for fit in &FITS {
        let points = points(&made, fit.experiment, fit.variant);
        let over = match fit.experiment {
            "latency" => "bytes s",
            "atomics" if points.len() > 1 => "elements",
            "fence" => "ceil(log2 p)",
            "epochs" => "neighbours k",
            "locks" => "ranks p",
            _ => "",
        };
        models.push(Model {
            call: fit.call,
            over,
            line: Line::fit(&points),
            published: fit.published,
        });
    }
    Ok(models)
}

/// The points of a variant of an experiment; of a fence, over its rounds.
fn points(made: &Made, experiment: &str, variant: &str) -> Vec<(f64, f64)> {
    let of_it = made.iter().filter(|((name, _), _)| *name == experiment);
    let point = |((_, at), row): (&(&str, u64), &micro::Row)| {
        let cost = micro::cost(row, variant)?;
        let x = match experiment {
            "fence" => (*at as f64).log2().ceil(),
            _ => *at as f64,
        };
        Some((x, cost as f64))
    };
    of_it.filter_map(point).collect()
}

/// The sender's and the receiver's shares of a notified put of 8 bytes, what lies between, and the
/// gap per byte.
fn log_gp(made: &Made) -> Result<Vec<Model>, Box<Report>> {
    let notified = points(made, "latency", "notified");
    let half = notified.first().map_or(0.0, |&(_, half)| half);
    let sends = micro::cost(&ops::measure("notify.put_notify", 8)?, "cycles").unwrap_or(0) as f64;
    let receives = micro::matching(0)?;
    let receives = receives
        .iter()
        .map(|&(_, cycles)| cycles as f64)
        .sum::<f64>();
    let long: Vec<(f64, f64)> = notified
        .into_iter()
        .filter(|(bytes, _)| LONG.contains(&(*bytes as u64)))
        .collect();
    let constant = |call, cost, published| Model {
        call,
        over: "",
        line: Line::fit(&[(0.0, cost)]),
        published,
    };
    Ok(vec![
        constant("LogGP o_s", sends, "0.29 us"),
        constant("LogGP o_r", receives, "0.07 us"),
        constant("LogGP L", half - sends - receives, "1.02 us"),
        Model {
            call: "LogGP G",
            over: "bytes s",
            line: Line::fit(&long),
            published: "0.105 ns s",
        },
    ])
}

/// The costs that the rule compares, fitted: of a fence the means of worlds with as many half
/// rounds.
///
/// # Errors
/// The account of a run that failed.
pub fn costs() -> Result<Costs, Box<Report>> {
    const NEIGHBOURS: [u16; 7] = [1, 2, 4, 8, 16, 32, 47];
    let (mut sums, mut counts) = ([0_u64; STEPS], [0_u64; STEPS]);
    for &ranks in micro::FENCES {
        let step = usize::from(steps(ranks as u16)) - 1;
        sums[step] += cross::fence(ranks as u16)?;
        counts[step] += 1;
    }
    let mut epochs = Vec::new();
    for ranks in [cross::CORES_MAX / 2, cross::CORES_MAX] {
        for k in NEIGHBOURS.into_iter().filter(|&k| k < ranks) {
            let cycles = cross::epoch(ranks, k)?;
            epochs.push((f64::from(k), cycles as f64));
        }
    }
    let epoch = Line::fit(&epochs);
    Ok(Costs {
        fence: std::array::from_fn(|step| (sums[step] / counts[step].max(1)) as u32),
        epoch: flagpost_model::Line {
            base: epoch.base.round() as i32,
            slope: epoch.slope.round() as i32,
        },
    })
}

/// How often the rule picks the faster way.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Check {
    /// Worlds and numbers of neighbours that were tried.
    pub pairs: u32,
    /// Those in which it picked the faster one.
    pub right: u32,
    /// By how many % what it picked was slower, at most.
    pub most: f64,
}

/// Asks `costs` for `pairs` random worlds of 2 to 48 ranks with 1 neighbour up to all, and measures
/// both ways.
///
/// # Errors
/// The account of a run that failed.
pub fn check(
    costs: &Costs,
    pairs: u32,
    seed: u64,
    tell: &dyn Fn(u64, u64),
) -> Result<Check, Box<Report>> {
    let mut dice = Dice::new(seed);
    let mut known = BTreeMap::new();
    let mut found = Check::default();
    for pair in 0..pairs {
        tell(pair.into(), pairs.into());
        let ranks = 2 + dice.below(usize::from(cross::CORES_MAX) - 1) as u16;
        let neighbours = 1 + dice.below(usize::from(ranks) - 1) as u16;
        // The fence stands as an epoch with nobody.
        let [fence, epoch] = [0, neighbours].map(|k| match known.get(&(ranks, k)) {
            Some(&cycles) => Ok(cycles),
            None => {
                let cycles = match k {
                    0 => cross::fence(ranks)?,
                    k => cross::epoch(ranks, k)?,
                };
                known.insert((ranks, k), cycles);
                Ok::<u64, Box<Report>>(cycles)
            }
        });
        let (fence, epoch) = (fence?, epoch?);
        let (picked, other) = match costs.faster(ranks, neighbours) {
            Scheme::Fence => (fence, epoch),
            Scheme::Pscw => (epoch, fence),
        };
        found.note(picked, other);
    }
    Ok(found)
}

impl Check {
    /// What it picked took so many cycles, and the other way so many.
    fn note(&mut self, picked: u64, other: u64) {
        self.pairs += 1;
        if picked <= other {
            self.right += 1;
        } else {
            let slower = 100.0 * (picked - other) as f64 / other as f64;
            self.most = self.most.max(slower);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--compare` finds a model by its call.
    #[test]
    fn no_two_models_have_a_name() {
        for (number, fit) in (0..).zip(&FITS) {
            assert!(
                FITS[..number].iter().all(|other| other.call != fit.call),
                "{}",
                fit.call
            );
        }
    }

    /// Also where the number of ranks is no power of two.
    #[test]
    fn a_fence_is_a_line_over_its_rounds() {
        let rounds = [(2, 1.0), (3, 2.0), (4, 2.0), (5, 3.0), (47, 6.0), (48, 6.0)];
        let made = { rounds.iter() }.map(|&(ranks, _)| (("fence", ranks), vec![("fence", ranks)]));
        let over = points(&made.collect(), "fence", "fence").into_iter();
        assert!(over.eq(rounds.map(|(ranks, rounds)| (rounds, ranks as f64))));
    }

    #[test]
    fn a_wrong_choice_counts_by_how_much_slower_it_is() {
        let mut check = Check::default();
        for (picked, other) in [(10, 20), (30, 20), (20, 20), (24, 20)] {
            check.note(picked, other);
        }
        let expected = Check {
            pairs: 4,
            right: 2,
            most: 50.0,
        };
        assert_eq!(check, expected);
    }

    /// What programs are given is what `bench model` fits; and it is right nearly always.
    #[test]
    fn the_rule_is_what_is_fitted_and_picks_the_faster_one() {
        let fitted = costs().unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(fitted, Costs::SCC);
        let found = check(&fitted, 40, 7, &|_, _| ()).unwrap_or_else(|why| panic!("{why}"));
        assert!(found.pairs == 40 && found.right >= 37, "{found:?}");
        // A fence that costs too much is never picked.
        let wrong = Costs {
            fence: [u32::MAX; STEPS],
            ..fitted
        };
        let found = check(&wrong, 20, 7, &|_, _| ()).unwrap_or_else(|why| panic!("{why}"));
        assert!(found.right < 18, "{found:?}");
    }
}
