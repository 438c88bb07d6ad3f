//! Algorithm 3 of [PSCW-SCC]: what synchronization alone costs.
//!
//! Rank 0 is the origin, ranks 1 to k are the targets, on cores 0 to k of a 6 x 4 mesh, two cores to a tile. Nobody
//! puts anything. Each call is measured by the core's own cycle counter, read before and after it; there is no
//! barrier between epochs. Medians: of the origin's 1001 epochs, and of the targets' k times 1001.
//!
//! ```text
//!   for i in 0..=1000:   rank 0: start(1..=k), complete        others: post(0), wait
//! ```
//!
//! [PSCW-SCC]: flagpost#sources

use std::cell::RefCell;

use flagpost::{Config as WorldConfig, MatchVector, Rank, World};
use flagpost_hal::{Clock, Topology};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Counters, Latencies, Mesh, Oracles, Report, Schedule, Sim, SimCore};

use crate::{Charged, Cycles, Failure, median};

/// How post and complete find each other: the only way there is.
pub const STRATEGY: &str = "match-vector";

/// Epochs of the published experiment.
pub const EPOCHS: u32 = 1001;

/// Most targets that fit the SCC.
pub const TARGETS_MAX: u16 = 47;

/// The mesh of the SCC.
const MESH: Mesh = Mesh {
    columns: 6,
    rows: 4,
    cores_per_tile: 2,
};

/// What to measure.
#[derive(Copy, Clone, Debug)]
pub struct Setup {
    /// How many targets: 1 to [`TARGETS_MAX`].
    pub targets: u16,
    /// Core cycles charged per target and loop for code that the model does not execute.
    pub software_cycles: u32,
    /// What accesses cost.
    pub latencies: Latencies,
    /// How often: [`EPOCHS`], unless in a hurry.
    pub epochs: u32,
}

impl Setup {
    /// The published experiment with so many targets, by the formulas only.
    pub const fn new(targets: u16) -> Self {
        Self {
            targets,
            software_cycles: 0,
            latencies: Latencies::SccEas,
            epochs: EPOCHS,
        }
    }
}

/// Medians, and what it took.
#[derive(Clone, Debug)]
pub struct Measured {
    /// A target's `post`.
    pub post: Cycles,
    /// The origin's `start`.
    pub start: Cycles,
    /// The origin's `complete`.
    pub complete: Cycles,
    /// A target's `wait`.
    pub wait: Cycles,
    /// What each core did, start-up included.
    pub counters: Vec<Counters>,
    /// What each core's clock showed at the end.
    pub cycles: Vec<u64>,
}

impl Measured {
    /// The origin's `start` and `complete`, what the paper's Fig. 5 shows.
    pub fn origin(&self) -> Cycles {
        Cycles {
            count: self.start.count + self.complete.count,
            hertz: self.start.hertz,
        }
    }
}

/// Cycles of each call, of all epochs; on targets also of all cores.
#[derive(Default)]
struct Samples {
    post: Vec<u64>,
    start: Vec<u64>,
    complete: Vec<u64>,
    wait: Vec<u64>,
}

/// Runs the experiment.
///
/// # Errors
/// The account of the run if it did not come to its end.
///
/// # Panics
/// If there are no targets or too many.
pub fn measure(setup: &Setup) -> Result<Measured, Box<Report>> {
    assert!((1..=TARGETS_MAX).contains(&setup.targets));
    let config = Config {
        cores: setup.targets + 1,
        memory_size: 8 << 10,
        mesh: Some(MESH),
        latencies: setup.latencies,
        schedule: Schedule::Timed,
        oracles: Oracles::ALL,
        max_steps: u64::MAX,
        ..Config::default()
    };
    let samples = RefCell::new(Samples::default());
    let report = Sim::new(config).run(|core| program(core, setup, &samples));
    if !report.is_done() {
        return Err(Box::new(report));
    }
    let mut samples = samples.into_inner();
    let hertz = setup.latencies.costs().hertz;
    let middle = |samples: &mut Vec<u64>| Cycles {
        count: median(samples),
        hertz,
    };
    Ok(Measured {
        post: middle(&mut samples.post),
        start: middle(&mut samples.start),
        complete: middle(&mut samples.complete),
        wait: middle(&mut samples.wait),
        counters: report.counters,
        cycles: report.cycles,
    })
}

/// What each core runs.
fn program(core: SimCore, setup: &Setup, samples: &RefCell<Samples>) -> Result<(), Failure> {
    let clock = core.clone();
    let link = Mapped::start(core.clone(), 1)?;
    let mut arena = [0; 128];
    let world = World::start(link, &mut arena, WorldConfig::default())?;
    // A line, so that post and wait have one to keep coherent.
    let options = (setup.software_cycles, ());
    let window = world.allocate_with::<u64, Charged<MatchVector<'_>>>(4, options)?;
    let origin = [Rank::new(0)];
    let targets: Vec<Rank> = (1..core.cores()).map(Rank::new).collect();
    let (origins, targets) = (world.group(&origin)?, world.group(&targets)?);
    for _ in 0..setup.epochs {
        let begin = clock.cycles();
        if world.rank() == origin[0] {
            let access = window.start(&targets)?;
            let middle = clock.cycles();
            // The second call's first reading of the clock.
            let again = clock.cycles();
            access.complete()?;
            let end = clock.cycles();
            let mut samples = samples.borrow_mut();
            samples.start.push(middle - begin);
            samples.complete.push(end - again);
        } else {
            let exposure = window.post(&origins)?;
            let middle = clock.cycles();
            let again = clock.cycles();
            exposure.wait()?;
            let end = clock.cycles();
            let mut samples = samples.borrow_mut();
            samples.post.push(middle - begin);
            samples.wait.push(end - again);
        }
    }
    Ok(())
}
