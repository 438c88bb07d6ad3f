//! Flagpost's benchmarks.
//!
//! * [`pscw`]: Algorithm 3 of [PSCW-SCC]. One origin synchronizes with k targets. Unit: simulated
//!   time, which is exact, on any host.
//! * [`pingpong`]: a message there and back, by notified access, PSCW, fences and [`two_sided`].
//!   Unit: simulated time.
//! * [`tree`]: a reduction over a 16-ary tree, by notified access and [`two_sided`]. Unit:
//!   simulated time.
//! * [`cross`]: with how many neighbours an epoch takes longer than a fence. Unit: simulated time.
//! * [`micro`]: the papers' microbenchmarks over sizes, ranks and neighbours. Unit: simulated
//!   time.
//! * [`model`]: lines fitted to those. Unit: simulated time.
//! * [`ops`]: remote accesses, locks, misses and cycles of every call. All are simulated.
//! * [`ring`]: epochs of a ring of cores. Units: simulated time, and how fast the host simulates
//!   it.
//! * [`explore`]: schedules and steps per second of exploration. Unit: the host's processor time.
//!
//! All of them run the real kernel, `flagpost::World`, on the simulator, but for [`two_sided`]:
//! that is what it is compared with. `docs/log/calibration.md` of the repository compares the first
//! with what was published.
//!
//! [PSCW-SCC]: flagpost#sources
#![forbid(unsafe_code)]

use flagpost::{Config as WorldConfig, Session, World};
use flagpost_hal::Topology as _;
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Report, Sim, SimCore};

use chip::timed;

mod charged;
mod chip;
pub mod cross;
#[cfg(feature = "explore")]
pub mod explore;
mod fit;
pub mod micro;
pub mod model;
pub mod ops;
pub mod pingpong;
pub mod pscw;
pub mod ring;
mod time;
pub mod tree;
pub mod two_sided;

pub use charged::Charged;
pub use chip::{BUFFER, scc};
pub use time::{Cycles, processor_time};

type Chip = Mapped<SimCore>;

/// Runs `program` on all cores of a chip.
fn run(
    chip: Config,
    program: impl Fn(SimCore) -> Result<(), Failure>,
) -> Result<Report, Box<Report>> {
    let report = Sim::new(chip).run(program);
    match report.is_done() {
        true => Ok(report),
        false => Err(Box::new(report)),
    }
}

/// The part of a core in a world of all cores.
fn in_world(
    core: SimCore,
    program: impl for<'w> FnOnce(&'w World<'w, Chip>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut words = vec![0; 256 + 4 * usize::from(core.cores())];
    let link = Mapped::start(core, Session::FIRST)?;
    program(&World::start(link, &mut words, WorldConfig::default())?)
}

/// Why a core of a benchmark stopped.
#[derive(Debug)]
pub enum Failure {
    /// A call into the library failed.
    Library(flagpost::Error),
    /// A link refused to start.
    Link(flagpost_link::Refusal),
    /// Something arrived with other data than were sent.
    Data,
    /// Start-up, or a round, took longer than was left for it.
    Late,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Library(error) => write!(f, "{error}"),
            Self::Link(refusal) => write!(f, "{refusal:?}"),
            Self::Data => f.write_str("other data have arrived than were sent"),
            Self::Late => f.write_str("start-up, or a round, took too long"),
        }
    }
}

impl From<flagpost::Error> for Failure {
    fn from(error: flagpost::Error) -> Self {
        Self::Library(error)
    }
}

impl<H> From<flagpost::Unfinished<H>> for Failure {
    fn from(unfinished: flagpost::Unfinished<H>) -> Self {
        Self::Library(unfinished.error)
    }
}

impl From<flagpost_link::Refusal> for Failure {
    fn from(refusal: flagpost_link::Refusal) -> Self {
        Self::Link(refusal)
    }
}
