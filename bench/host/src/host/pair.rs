//! Batches: bare memory, then the figure, in turn, on the same processors.
//!
//! Where every rank has a processor, a batch is cut into short ones, of some ten microseconds: most
//! of them are then not interrupted by what else the machine does, and the median of all is that of
//! an idle one.

use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Result, anyhow};
use flagpost::{Error, Link, World};
use flagpost_linux::{DEFAULT_MEMORY, Linked, Setup};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::figures::{Figure, Stage};
use super::raw::Raw;

/// Rounds of the bare line per batch.
const LINES: u64 = 20_000;

/// Into how many short ones a batch is cut.
const CUTS: u64 = 100;

/// How often something is done: a figure, the bare line; and in how many batches.
#[derive(Copy, Clone, Debug)]
struct Rounds {
    figure: u64,
    lines: u64,
    batches: u64,
}

impl Rounds {
    fn new(figure: u64, batches: u32, cut: bool) -> Self {
        let batches = u64::from(batches);
        if !cut {
            return Self {
                figure,
                lines: LINES,
                batches,
            };
        }
        Self {
            figure: (figure / CUTS).max(1),
            lines: LINES / CUTS,
            // Long ones are not cut as often.
            batches: batches * figure.min(CUTS),
        }
    }
}

/// Nanoseconds per round of one batch.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) ns: f64,
    pub(crate) raw_ns: f64,
    pub(crate) line_ns: f64,
    /// The slowest rank's time over the fastest one's.
    pub(crate) spread: f64,
    /// Cache instructions of rank 0, where the mode has any.
    pub(crate) flushes: f64,
}

/// Processors that this process may use.
pub(crate) fn processors() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect()
}

/// Keeps the calling thread on a processor, if it may be there.
fn bind(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    // Where that is not allowed, the scheduler chooses.
    let _ = sched_setaffinity(None, &set);
}

/// Measures `figure` so many times. `flushes` tells how many cache instructions a link's rank has
/// executed.
pub(crate) fn measure<M: Linked>(
    figure: &Figure<M::Link>,
    processors: &[usize],
    batches: u32,
    flushes: fn(&M::Link) -> u64,
) -> Result<Vec<Batch>> {
    let (raw, all) = (Raw::new(), Mutex::new(Vec::new()));
    let one_each = usize::from(figure.ranks) <= processors.len();
    let setup = Setup::default();
    let done =
        flagpost_linux::threads_with::<M, _, _>(figure.ranks, DEFAULT_MEMORY, setup, |world| {
            let me = world.rank().index();
            if one_each {
                bind(processors[me]);
            }
            let rounds = Rounds::new(figure.rounds, batches, one_each);
            let batches = rank(world, figure, &raw, rounds, flushes)?;
            if me == 0 {
                all.lock().map(|mut all| *all = batches).unwrap_or_default();
            }
            Ok::<(), Error>(())
        });
    done.map_err(|why| anyhow!("{why}"))?;
    all.into_inner().map_err(|_| anyhow!("a rank panicked"))
}

fn rank<L: Link>(
    world: &World<'_, L>,
    figure: &Figure<L>,
    raw: &Raw,
    rounds: Rounds,
    flushes: fn(&L) -> u64,
) -> Result<Vec<Batch>, Error> {
    let stage = Stage::new(world, raw, figure.bytes)?;
    let me = world.rank().index();
    let mut all = Vec::new();
    for batch in 0..=rounds.batches {
        if me == 0 {
            raw.reset();
        }
        let line_ns = time(world, 2 * rounds.lines, || {
            if me < 2 {
                raw.line(me, rounds.lines);
            }
            Ok(())
        })?;
        let raw_ns = match figure.bare {
            Some(bare) => time(world, rounds.figure, || {
                bare(&stage, rounds.figure);
                Ok(())
            })?,
            None => line_ns,
        };
        let mut flushed = 0;
        let ns = time(world, rounds.figure, || {
            let before = flushes(world.link());
            let start = Instant::now();
            let done = (figure.call)(&stage, rounds.figure);
            let time = if stage.has_part() {
                start.elapsed().as_nanos()
            } else {
                0
            };
            raw.note(me, time as u64);
            flushed = flushes(world.link()) - before;
            done
        })?;
        // The first one warms up. What goes there and back is half of it.
        if batch > 0 {
            let halves = if figure.halves { 2.0 } else { 1.0 };
            let raw_halves = if figure.bare.is_some() { halves } else { 1.0 };
            all.push(Batch {
                ns: ns / halves,
                raw_ns: raw_ns / raw_halves,
                line_ns,
                spread: raw.spread(),
                flushes: flushed as f64 / rounds.figure as f64,
            });
        }
    }
    Ok(all)
}

/// Nanoseconds per round, by this rank's clock, from a common beginning.
fn time<L: Link>(
    world: &World<'_, L>,
    rounds: u64,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<f64, Error> {
    world.barrier()?;
    let start = Instant::now();
    work()?;
    let time = start.elapsed();
    world.barrier()?;
    Ok(time.as_nanos() as f64 / rounds as f64)
}
