//! How fast the simulator explores: the conformance case `pscw.ring` under seed after seed.
//!
//! The case starts a world, makes a window, and does three epochs in which every core is origin and
//! target. A step is one access of a core. Runs are made one after the other on one host thread,
//! each on a chip fresh from power-on.

use std::time::Duration;

use flagpost_explore::{Case, cases, config_for, program};
use flagpost_sim::{Config, Oracles, Profile, Report, Schedule, Sim};

use crate::processor_time;

/// The case that is run.
pub const CASE: &str = "pscw.ring";

/// Runs whose hashes are kept.
const HASHED: u64 = 4;

/// What to measure.
#[derive(Copy, Clone, Debug)]
pub struct Setup {
    /// Number of cores.
    pub cores: u16,
    /// Who runs next.
    pub schedule: Schedule,
    /// With all oracles, or none.
    pub oracles: bool,
}

/// How much was explored in what time.
#[derive(Copy, Clone, Debug)]
pub struct Measured {
    /// Runs.
    pub schedules: u64,
    /// Steps of all of them.
    pub steps: u64,
    /// The processor time they took.
    pub time: Duration,
    /// Of the hashes of seeds 0 to 3: whether two builds explored the same.
    pub hash: u64,
}

impl Measured {
    /// Runs per second.
    pub fn schedules_per_second(&self) -> f64 {
        self.schedules as f64 / self.time.as_secs_f64()
    }

    /// Steps per second.
    pub fn steps_per_second(&self) -> f64 {
        self.steps as f64 / self.time.as_secs_f64()
    }
}

/// Explores seeds from 0 on, for at least `time`.
///
/// # Errors
/// The account of a run that failed.
pub fn measure(setup: &Setup, time: Duration) -> Result<Measured, Box<Report>> {
    let case = ring();
    let base = config_for(case, setup.cores, Profile::Scc);
    let mut config = Config {
        schedule: setup.schedule,
        oracles: if setup.oracles {
            Oracles::ALL
        } else {
            Oracles::NONE
        },
        ..base
    };
    // Also warms up.
    config.pct_length = one(case, &mut Sim::new(config.clone()))?.steps.max(1);
    let mut sim = Sim::new(config);
    one(case, &mut sim)?;
    let mut measured = Measured {
        schedules: 0,
        steps: 0,
        time: Duration::ZERO,
        hash: 0,
    };
    let start = processor_time();
    while measured.time < time || measured.schedules < HASHED {
        let report = one(case, sim.reseed(measured.schedules))?;
        measured.schedules += 1;
        measured.steps += report.steps;
        if measured.schedules <= HASHED {
            measured.hash = measured.hash.rotate_left(7) ^ report.hash;
        }
        measured.time = processor_time().saturating_sub(start);
    }
    Ok(measured)
}

fn one(case: &Case, sim: &mut Sim) -> Result<Report, Box<Report>> {
    let report = sim.run(|core| program(case, core));
    match report.is_done() {
        true => Ok(report),
        false => Err(Box::new(report)),
    }
}

fn ring() -> &'static Case {
    let found = cases().find(|case| case.name == CASE);
    found.expect("the table has this case")
}
