//! The conformance cases on the simulator: what every command and test that runs them shares.
//!
//! # Mental model
//! ```text
//!   case ──► sizes(case): core counts        one *setting* = case, cores, chip
//!        ──► Setting::config(): the chip; its seed and schedule are the caller's
//!        ──► program(case, core): what each simulated core runs
//! ```
//! A setting prints as `case/cores/chip`, such as `pscw.switch/3/weak+fill` or `pscw.switch/3/et`;
//! that is the name of a sweep's case, and what a replay line bears.
#![deny(unsafe_code)]

mod chip;
pub mod coherent;
mod forward;
pub mod late;
// A build of mutants holds only what points are broken on: it is compiled for nothing else.
#[cfg(not(mutants))]
pub mod native;
mod network;
#[cfg(not(mutants))]
pub mod programs;

use std::fmt;
use std::str::FromStr;

use flagpost_hal::NativeAtomics;
use flagpost_hal::Topology;
use flagpost_sim::{Config, Oracles, Profile, Schedule, SimCore};
use flagpost_tests::{
    Args, AtomicU32, Bell, Context, Failure, MachinePlatform, Mapped, Platform, Refusal, Ring,
    Session, mapped,
};

pub use network::{Mock, Network};

pub use chip::{Bells, Chip, NoRegisters, Port, preset_settings_of};

/// A conformance case on the simulator.
pub type Case = flagpost_tests::Case<Simulator>;

/// The simulator, as the cases see it.
pub struct Simulator<const LINE: usize = 32>;

impl<const LINE: usize> Platform for Simulator<LINE> {
    type Machine = SimCore<LINE>;
    type Link = Mapped<SimCore<LINE>>;
    const PROGRAMS: bool = LINE == 32;

    fn link(
        machine: &SimCore<LINE>,
        session: Session,
        ring: Option<Ring>,
    ) -> Result<Self::Link, Refusal> {
        mapped(machine, session, ring)
    }

    fn go(machine: &SimCore<LINE>) {
        machine.mark("go");
    }
}

impl<const LINE: usize> MachinePlatform for Simulator<LINE> {
    const ATOMICS: Option<AtomicU32<SimCore<LINE>>> = Some(SimCore::atomic_u32);
    const BELL: Option<Bell<SimCore<LINE>>> = Some((SimCore::ring, SimCore::wait_for_ring));
}

/// The conformance table.
pub fn cases() -> impl Iterator<Item = &'static Case> + Clone {
    flagpost_tests::cases::<Simulator>()
}

/// The program that each core runs.
///
/// # Errors
/// Why the case failed on this core.
pub fn program(case: &Case, core: SimCore) -> Result<(), Failure> {
    run_case(case, core)
}

/// [`program`] on any platform over the simulator.
fn run_case<P: Platform<Machine: Topology>>(
    case: &flagpost_tests::Case<P>,
    machine: P::Machine,
) -> Result<(), Failure> {
    let run = |machine, arena: &mut [u32]| {
        (case.run)(&mut Context {
            machine,
            session: Session::FIRST,
            args: Args::default(),
            arena,
            report: &mut |_, _| (),
        })
    };
    // Most runs have few cores, and clearing the arena takes a good part of them.
    match machine.cores() {
        ..=8 => run(machine, &mut [0; Context::<Simulator>::arena_words(8)]),
        cores => run(
            machine,
            &mut vec![0; Context::<Simulator>::arena_words(cores)],
        ),
    }
}

/// Whether `case` is small enough to be tried in every schedule.
pub fn is_small(case: &Case) -> bool {
    case.name.starts_with("small.")
}

/// Core counts to run `case` with: its smallest, and odd shapes above.
pub fn sizes(case: &Case) -> Vec<u16> {
    let min = case.min_cores;
    let mut sizes = vec![min, min.max(2), min.max(3), 5];
    if case.name.contains(".long_") {
        // As many as it travels in lines between.
        sizes.insert(3, min.max(4));
    }
    sizes.retain(|size| (min..=case.max_cores).contains(size));
    sizes.dedup();
    sizes
}

/// The chip on which `case` runs with so many cores: enough memory for its windows, and budgets
/// that expire for the cases that are about that. Schedules are mixed; the seed is the caller's.
pub fn config_for(case: &Case, cores: u16, profile: Profile) -> Config {
    Config {
        cores,
        profile,
        // Fixed parts and windows; from a few cores on both grow with the number of ranks.
        memory_size: 8 * 1024 + 128 * u32::from(cores.saturating_sub(8)),
        // Long payload travels through buffers that have room for its rings.
        buffer_size: if case.name.contains(".long_") {
            8 << 10
        } else {
            Config::default().buffer_size
        },
        schedule: Schedule::Mixed,
        budgets_expire: if case.name.starts_with("timeout.") {
            1000
        } else {
            0
        },
        oracles: Oracles {
            hidden_store: !case.leftovers,
            ..Oracles::ALL
        },
        ..Config::default()
    }
}

/// A case, how many cores run it, and on which chip.
#[derive(Copy, Clone)]
pub struct Setting {
    /// The case.
    pub case: &'static Case,
    /// Number of cores.
    pub cores: u16,
    /// The chip.
    pub chip: Chip,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.case.name, self.cores, self.chip)
    }
}

impl FromStr for Setting {
    type Err = String;

    /// Reads what `Display` prints.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '/');
        let mut part = |what| parts.next().ok_or(format!("{text}: no {what}"));
        let (name, cores) = (part("case")?, part("number of cores")?);
        let chip = part("chip")?.parse()?;
        let case = cases().find(|case| case.name == name);
        let case = case.ok_or(format!("no case is called {name:?}"))?;
        let cores = cores.parse().ok();
        let cores = cores.filter(|cores| (case.min_cores..=case.max_cores).contains(cores));
        let cores = cores.ok_or(format!("{text}: {name} does not run on so many cores"))?;
        Ok(Self { case, cores, chip })
    }
}

/// All cases at all their sizes, on all profiles: case by case, small first, kind first.
pub fn settings() -> impl Iterator<Item = Setting> {
    cases().flat_map(settings_of)
}

/// One case at all its sizes, on all profiles.
pub fn settings_of(case: &'static Case) -> impl Iterator<Item = Setting> {
    sizes(case).into_iter().flat_map(move |cores| {
        Profile::ALL.map(|profile| Setting {
            case,
            cores,
            chip: Chip::Profile(profile),
        })
    })
}
