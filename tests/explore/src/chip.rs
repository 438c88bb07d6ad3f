//! The chips that cases run on: the SCC with a memory of some [`Profile`], or a [`Preset`].
//!
//! A chip decides the size of a line, which programs know at compile time, and whether there are
//! registers, without which the machine is one with [`WithSoftwareLock`]. So it decides the
//! platform, too; [`Setting`] hides that.

use std::fmt;
use std::str::FromStr;

use flagpost_hal::WithSoftwareLock;
use flagpost_scc::{Mapping, Scc};
use flagpost_sim::{
    Bounds, Config, Explored, Method, Preset, Profile, Report, SccBus, Sim, SimCore, Sweep,
};
use flagpost_tests::{
    Bell, Failure, Has, MachinePlatform, Mapped, Plain, Platform, Refusal, Ring, Session,
    link_cases, mapped,
};

use crate::coherent::{Coherent, CoherentSimulator};
use crate::network::Network;
use crate::{Setting, Simulator, config_for, run_case};

/// The simulator without test-and-set registers.
pub struct NoRegisters<const LINE: usize>;

impl<const LINE: usize> Platform for NoRegisters<LINE> {
    type Machine = WithSoftwareLock<SimCore<LINE>>;
    type Link = Mapped<Self::Machine>;

    fn link(
        machine: &Self::Machine,
        session: Session,
        ring: Option<Ring>,
    ) -> Result<Self::Link, Refusal> {
        mapped(machine, session, ring)
    }

    fn go(machine: &Self::Machine) {
        machine.machine().mark("go");
    }
}

impl<const LINE: usize> MachinePlatform for NoRegisters<LINE> {
    const BELL: Option<Bell<Self::Machine>> = Some((
        |machine, core| machine.machine().ring(core),
        |machine| machine.machine().wait_for_ring(),
    ));
}

/// The SCC port on the simulated chip.
pub type Port = Plain<Scc<SccBus>, Bells>;

/// A core of the SCC can ring another.
pub struct Bells;

impl Has<Scc<SccBus>> for Bells {
    const BELL: Option<Bell<Scc<SccBus>>> = Some((Scc::ring, Scc::wait_for_ring));
    const PROGRAMS: bool = true;
}

/// What a case runs on. Prints as the profile's or the preset's name; none is both.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Chip {
    /// The SCC, with a memory that behaves so.
    Profile(Profile),
    /// Another chip.
    Preset(Preset),
}

impl Chip {
    /// The knobs; what makes a run (cores, sizes, schedule, seed) as by default.
    pub fn config(self) -> Config {
        match self {
            Self::Profile(profile) => Config {
                profile,
                ..Config::default()
            },
            Self::Preset(preset) => preset.config(),
        }
    }

    /// How the SCC port maps its windows, where cases run on the port.
    pub fn mapping(self) -> Option<Mapping> {
        match self {
            Self::Profile(_) => None,
            Self::Preset(preset) => preset.mapping(),
        }
    }

    /// Whether the hardware keeps its caches in step.
    pub fn is_coherent(self) -> bool {
        self == Self::Preset(Preset::Coherent)
    }

    /// Whether it is no chip, but a network.
    pub fn is_network(self) -> bool {
        let networks = [Preset::Network, Preset::NetworkOrdered];
        networks.map(Self::Preset).contains(&self)
    }
}

impl fmt::Display for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profile(profile) => profile.fmt(f),
            Self::Preset(preset) => preset.fmt(f),
        }
    }
}

impl FromStr for Chip {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let preset = text.parse().map(Self::Preset);
        preset.or_else(|_| text.parse().map(Self::Profile))
    }
}

/// What is done with a program, whatever the size of its lines.
trait Use {
    type Result;

    fn with<const LINE: usize>(
        self,
        program: impl Fn(SimCore<LINE>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self::Result;
}

impl Setting {
    /// The chip, with what the case needs of one: see [`config_for`].
    pub fn config(&self) -> Config {
        let chip = self.chip.config();
        let case = config_for(self.case, self.cores, chip.profile);
        let memory_size = match self.chip {
            Chip::Profile(_) => case.memory_size,
            // Layouts grow with lines; half as much again for the locks' flags and for rounding.
            // Rings lie in memory here, beside the windows.
            Chip::Preset(Preset::Coherent) => case.memory_size * 2,
            Chip::Preset(_) => case.memory_size * chip.line.div_ceil(32) * 3 / 2,
        };
        Config {
            cores: case.cores,
            memory_size,
            buffer_size: chip.buffer_size.max(case.buffer_size),
            schedule: case.schedule,
            budgets_expire: case.budgets_expire,
            oracles: case.oracles,
            ..chip
        }
    }

    /// Whether the chip has what the case needs: the SCC has no atomics, nor has a chip without
    /// registers, and on a network there is nothing below the link. The SCC port has names for 512
    /// cores. Whole programs are compiled for the SCC and the networks alone.
    pub fn fits(&self) -> bool {
        if self.chip.is_network() {
            return link_cases::<Network>().any(|case| case.name == self.case.name);
        }
        if self.chip.is_coherent() {
            return link_cases::<CoherentSimulator>().any(|case| case.name == self.case.name);
        }
        if self.chip.mapping().is_some() {
            return self.cores <= 512 && !self.case.atomics;
        }
        if matches!(self.chip, Chip::Preset(_)) && self.case.name.starts_with("apps.") {
            return false;
        }
        // A sleeping core's bell is not the program's.
        let bell = self.chip == Chip::Preset(Preset::Sleeping) && self.case.name == "hal.doorbell";
        !bell && (self.chip.config().registers || !self.case.atomics)
    }

    /// Adds the setting to a sweep, on a chip like its own ([`config`](Self::config)).
    pub fn add_to<'a>(&self, sweep: Sweep<'a>, config: Config) -> Sweep<'a> {
        struct Add<'a>(Sweep<'a>, String, Config);
        impl<'a> Use for Add<'a> {
            type Result = Sweep<'a>;

            fn with<const LINE: usize>(
                self,
                program: impl Fn(SimCore<LINE>) -> Result<(), Failure> + Send + Sync + 'static,
            ) -> Sweep<'a> {
                let Self(sweep, name, config) = self;
                sweep.case_with_lines(name, config, program)
            }
        }
        let (line, registers) = (config.line, config.registers);
        self.dispatch(line, registers, Add(sweep, self.to_string(), config))
    }

    /// One run, on a chip like its own.
    pub fn run(&self, config: Config) -> Report {
        struct Once(Config);
        impl Use for Once {
            type Result = Report;

            fn with<const LINE: usize>(
                self,
                program: impl Fn(SimCore<LINE>) -> Result<(), Failure> + Send + Sync + 'static,
            ) -> Report {
                Sim::new(self.0).run_with_lines(program)
            }
        }
        let (line, registers) = (config.line, config.registers);
        let mut report = self.dispatch(line, registers, Once(config));
        report.case = self.to_string();
        report
    }

    /// Tries all schedules within `bounds`, up to the first failure, on a chip like its own.
    ///
    /// Where there are no registers, locks are registers all the same: an attempt on a lock of
    /// words polls, and repeating it makes endless paths. That lock has a search of its own, in
    /// `hal/sim/tests`.
    pub fn explore(&self, bounds: &Bounds, config: Config) -> Explored {
        struct Explore<'a>(&'a Bounds, Config);
        impl Use for Explore<'_> {
            type Result = Explored;

            fn with<const LINE: usize>(
                self,
                program: impl Fn(SimCore<LINE>) -> Result<(), Failure> + Send + Sync + 'static,
            ) -> Explored {
                let Self(bounds, config) = self;
                Sim::new(config).explore(bounds, Method::States, false, program)
            }
        }
        let line = config.line;
        let config = Config {
            registers: !self.chip.is_network(),
            ..config
        };
        self.dispatch(line, config.registers, Explore(bounds, config))
    }

    fn dispatch<U: Use>(&self, line: u32, registers: bool, then: U) -> U::Result {
        if let Some(mapping) = self.chip.mapping() {
            return self.on::<32, Port, U>(then, move |core| Some(core.scc(mapping)));
        }
        match (line, registers) {
            _ if self.chip.is_network() => self.on_network(then),
            _ if self.chip.is_coherent() => self.on_coherent(then),
            #[cfg(not(mutants))]
            (4, true) => self.on::<4, Simulator<4>, U>(then, Some),
            #[cfg(not(mutants))]
            (16, true) => self.on::<16, Simulator<16>, U>(then, Some),
            (32, true) => self.on::<32, Simulator, U>(then, Some),
            (64, true) => self.on::<64, Simulator<64>, U>(then, Some),
            #[cfg(not(mutants))]
            (64, false) => self.on::<64, NoRegisters<64>, U>(then, WithSoftwareLock::new),
            other => unreachable!("no chip has such lines and registers: {other:?}"),
        }
    }

    /// The case on platform `P`, whose machine is made of the simulator's.
    fn on<const LINE: usize, P: MachinePlatform, U: Use>(
        &self,
        then: U,
        machine: impl Fn(SimCore<LINE>) -> Option<P::Machine> + Send + Sync + 'static,
    ) -> U::Result {
        let mut all = flagpost_tests::cases::<P>();
        let case = all.find(|case| case.name == self.case.name);
        let case = case.expect("the table is the same on all platforms");
        then.with(move |core: SimCore<LINE>| {
            let machine = machine(core).expect("regions are large enough for flags");
            run_case(case, machine)
        })
    }

    /// The case on cores whose caches are kept in step.
    fn on_coherent<U: Use>(&self, then: U) -> U::Result {
        let case = link_cases::<CoherentSimulator>().find(|case| case.name == self.case.name);
        let case = case.expect("a setting that does not fit is not run");
        then.with(move |core: SimCore| run_case(case, Coherent::new(core)))
    }

    /// The case on the simulated network.
    fn on_network<U: Use>(&self, then: U) -> U::Result {
        let case = link_cases::<Network>().find(|case| case.name == self.case.name);
        let case = case.expect("a setting that does not fit is not run");
        then.with(move |core: SimCore| run_case(case, core))
    }
}

/// One case at all its sizes, on all presets that have what it needs.
pub fn preset_settings_of(case: &'static crate::Case) -> impl Iterator<Item = Setting> {
    let all = crate::sizes(case).into_iter().flat_map(move |cores| {
        Preset::ALL.map(|preset| Setting {
            case,
            cores,
            chip: Chip::Preset(preset),
        })
    });
    all.filter(Setting::fits)
}
