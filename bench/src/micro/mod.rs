//! The papers' microbenchmarks: what each call costs over sizes, ranks, neighbours, notifications.
//!
//! Each experiment is a function of one number, and gives a number per variant: the command prints
//! them as a table, figures draw them, and `bench model` fits lines to them. All of them
//! are simulated: the same on any host. Two cores are one hop apart; more of them lie on an SCC,
//! two to a tile.
//!
//! | experiment | over | it costs | source |
//! |---|---|---|---|
//! | [`latency`] | bytes | half a round trip; a `put` or `get` alone | [NA] Fig. 3, [foMPI] 3.1 |
//! | [`bandwidth`] | bytes | streams of 16 accesses | [foMPI] Fig. 5a |
//! | [`overlap`] | bytes | the share of a round trip that computing hides | [NA] Fig. 4a |
//! | [`rate`] | bytes | one of 1,000 calls; the flush does not count | [foMPI] Fig. 6 |
//! | [`atomics`] | elements | a call, under a lock or by atomics | [foMPI] Fig. 7 |
//! | [`fence`] | ranks | a fence | [foMPI] Fig. 8a |
//! | [`ring`] | ranks | an epoch with both neighbours, and 8 bytes | [foMPI] Fig. 8b |
//! | [`epochs`] | neighbours | each call of an epoch, without waiting | [foMPI] 3.2 |
//! | [`locks`] | ranks | free locks, unlocks, flush, sync | [foMPI] 3.2 |
//! | [`matching`] | notifications | taking one while others are queued | [NA] V |
//!
//! `matching` takes the other notifications out of the ring, and puts them into the queue: that is
//! private memory, which the simulator does not charge for.
//!
//! [NA]: flagpost#sources
//! [foMPI]: flagpost#sources

mod accesses;
mod ranks;

use std::cell::RefCell;

use flagpost::{Config as WorldConfig, Rank, Session, World};
use flagpost_hal::{Clock as _, Topology as _};
use flagpost_link::{Link, Refusal};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Latencies, Mesh, Report, SimCore};

pub use accesses::{atomics, bandwidth, latency, overlap, rate};
pub use ranks::{epochs, fence, locks, matching, ring};

use crate::{Chip, Failure, run};

/// Costs by variant.
pub type Row = Vec<(&'static str, u64)>;

/// The cost of a variant, if the row has it.
pub fn cost(row: &Row, variant: &str) -> Option<u64> {
    let found = row.iter().find(|(known, _)| *known == variant);
    found.map(|&(_, cost)| cost)
}

/// An experiment.
#[derive(Copy, Clone, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// What it is a function of.
    pub over: &'static str,
    /// Its usual arguments: none is less than the first, or more than the last.
    pub points: &'static [u64],
    /// The unit of its costs.
    pub unit: &'static str,
    /// Its costs for an argument.
    pub at: fn(u64) -> Result<Row, Box<Report>>,
}

const SIZES: &[u64] = &[8, 32, 64, 256, 1024, 4096, 16384, 65536];
const RANKS: &[u64] = &[2, 4, 8, 16, 24, 32, 48];
/// Sizes of worlds whose fences are measured.
pub(crate) const FENCES: &[u64] = &[
    2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 44, 48,
];
const CYCLES: &str = "cycles";

/// All experiments, in the order in which they are printed.
pub static ALL: [Experiment; 10] = [
    experiment("latency", "bytes", SIZES, CYCLES, latency),
    experiment("bandwidth", "bytes", SIZES, "MB/s", bandwidth),
    experiment("overlap", "bytes", SIZES, "%", overlap),
    experiment("rate", "bytes", &[8, 16, 32, 64], CYCLES, rate),
    experiment("atomics", "elements", &[1, 4, 16, 64, 256], CYCLES, atomics),
    experiment("fence", "ranks", FENCES, CYCLES, fence),
    experiment("ring", "ranks", &[2, 4, 16, 48, 256, 1024], CYCLES, ring),
    experiment(
        "epochs",
        "neighbours",
        &[1, 2, 4, 6, 8, 16, 32, 47],
        CYCLES,
        epochs,
    ),
    experiment("locks", "ranks", RANKS, CYCLES, locks),
    experiment("matching", "queued", &[0, 1, 4, 16, 64], CYCLES, matching),
];

impl Experiment {
    /// `Ok` if it can be made `at` this argument.
    ///
    /// # Errors
    /// The arguments that it takes.
    pub fn check(&self, at: u64) -> Result<(), String> {
        let (least, most) = (self.points[0], self.points[self.points.len() - 1]);
        let step = if self.over == "bytes" { 8 } else { 1 };
        if (least..=most).contains(&at) && at.is_multiple_of(step) {
            return Ok(());
        }
        let Self { name, over, .. } = self;
        let steps = if step > 1 { ", in steps of 8" } else { "" };
        Err(format!(
            "{name} takes {over} from {least} to {most}{steps}, and not {at}"
        ))
    }
}

const fn experiment(
    name: &'static str,
    over: &'static str,
    points: &'static [u64],
    unit: &'static str,
    at: fn(u64) -> Result<Row, Box<Report>>,
) -> Experiment {
    Experiment {
        name,
        over,
        points,
        unit,
        at,
    }
}

/// How often a call is timed; the median counts.
const TIMES: usize = 9;

const ONE: Rank = Rank::new(1);

/// Times calls of core 0.
struct Timer<'a> {
    core: &'a SimCore,
    noted: &'a RefCell<Vec<(&'static str, u64)>>,
}

impl Timer<'_> {
    /// Makes a call. Core 0 notes how many cycles it took, less what reading the clock takes.
    fn time<T>(&self, variant: &'static str, call: impl FnOnce() -> T) -> T {
        if self.core.core().get() > 0 {
            return call();
        }
        let [before, begin] = [(); 2].map(|()| self.core.cycles());
        let done = call();
        let cycles = self.core.cycles() - begin - (begin - before);
        self.noted.borrow_mut().push((variant, cycles));
        done
    }
}

/// Medians of what core 0 has timed, in the order in which they were timed first.
fn simulate(
    cores: u16,
    memory: usize,
    program: impl Fn(&SimCore, &Timer<'_>) -> Result<(), Failure>,
) -> Result<Row, Box<Report>> {
    let near = Mesh {
        columns: 2,
        rows: 1,
        cores_per_tile: 1,
    };
    let bytes = (16 << 10) + memory.next_multiple_of(32) as u32;
    let config = Config {
        mesh: (cores == 2).then_some(near),
        ..crate::scc(cores, bytes, Latencies::SccEas)
    };
    let noted = RefCell::new(Vec::new());
    run(config, |core| {
        let timer = Timer {
            core: &core,
            noted: &noted,
        };
        program(&core, &timer)
    })?;
    Ok(medians(&noted.into_inner()))
}

fn medians(noted: &[(&'static str, u64)]) -> Row {
    let mut row = Row::new();
    for &(variant, _) in noted {
        if row.iter().any(|&(known, _)| known == variant) {
            continue;
        }
        let of_it = noted.iter().filter(|(other, _)| *other == variant);
        let median = flagpost_common::median(of_it.map(|&(_, cycles)| cycles as f64));
        row.push((variant, median as u64));
    }
    row
}

/// The same in a world over the link that `start` gives.
fn in_world<L: Link>(
    cores: u16,
    memory: usize,
    start: fn(SimCore) -> Result<L, Refusal>,
    program: impl Fn(&Timer<'_>, &World<'_, L>) -> Result<(), Failure>,
) -> Result<Row, Box<Report>> {
    simulate(cores, memory, |core, timer| {
        let config = WorldConfig { unexpected: 80 };
        let mut words = vec![0; config.words(cores, 2)];
        let world = World::start(start(core.clone())?, &mut words, config)?;
        program(timer, &world)?;
        Ok(world.barrier()?)
    })
}

fn chip(core: SimCore) -> Result<Chip, Refusal> {
    Mapped::start(core, Session::FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each experiment runs at its smallest argument, with a cost for each variant, the same each
    /// time; a put of more bytes takes longer.
    #[test]
    fn experiments_run_and_say_the_same_again() {
        for experiment in ALL {
            let run =
                || (experiment.at)(experiment.points[0]).unwrap_or_else(|why| panic!("{why}"));
            let row = run();
            assert!(
                !row.is_empty() && row == run(),
                "{}: {row:?}",
                experiment.name
            );
        }
        let put = |bytes| latency(bytes).unwrap_or_else(|why| panic!("{why}"))[0];
        assert!(put(256).1 > put(8).1);
    }

    #[test]
    fn arguments_that_no_experiment_takes_are_refused() {
        for experiment in ALL {
            assert!(
                experiment
                    .points
                    .iter()
                    .all(|&at| experiment.check(at).is_ok())
            );
            for at in [u64::MAX, 65_538, 1 << 20] {
                assert!(experiment.check(at).is_err(), "{} {at}", experiment.name);
            }
        }
        let [latency, .., matching] = ALL;
        assert!(latency.check(12).is_err() && latency.check(0).is_err());
        assert!(matching.check(3).is_ok());
    }

    #[test]
    fn of_each_variant_the_median_counts() {
        let noted = [("b", 3), ("a", 1), ("b", 9), ("b", 4)];
        assert_eq!(medians(&noted), [("b", 4), ("a", 1)]);
    }
}
