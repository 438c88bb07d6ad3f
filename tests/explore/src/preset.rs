//! The cases on other chips than the SCC: [`Preset`]s.
//!
//! A preset decides the size of a line, which programs know at compile time, and whether there are registers, without
//! which the machine is one with [`WithSoftwareLock`]. So it decides the platform, too; [`PresetSetting`] hides
//! that.

use std::fmt;

use flagpost_hal::WithSoftwareLock;
use flagpost_sim::{Bounds, Config, Explored, Method, Preset, Sim, SimCore, Sweep};
use flagpost_tests::{Failure, Platform};

use crate::{Case, Simulator, config_for, run_case};

/// The simulator without test-and-set registers.
pub struct NoRegisters<const LINE: usize>;

impl<const LINE: usize> Platform for NoRegisters<LINE> {
    type Machine = WithSoftwareLock<SimCore<LINE>>;

    fn go(machine: &Self::Machine) {
        machine.machine().mark("go");
    }
}

/// A case, how many cores run it, and on which chip. Prints as `case/cores/preset`.
#[derive(Copy, Clone)]
pub struct PresetSetting {
    /// The case.
    pub case: &'static Case,
    /// Number of cores.
    pub cores: u16,
    /// The chip.
    pub preset: Preset,
}

/// What is done with a program, whatever the size of its lines.
trait Use {
    type Result;

    fn with<const LINE: usize>(
        self,
        program: impl Fn(SimCore<LINE>) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self::Result;
}

impl PresetSetting {
    /// The chip, with what the case needs of one: see [`config_for`].
    pub fn config(&self) -> Config {
        let chip = self.preset.config();
        let case = config_for(self.case, self.cores, chip.profile);
        Config {
            cores: case.cores,
            // Layouts grow with lines; half as much again for the locks' flags and for rounding.
            memory_size: case.memory_size * chip.line.div_ceil(32) * 3 / 2,
            schedule: case.schedule,
            budgets_expire: case.budgets_expire,
            ..chip
        }
    }

    /// Adds the setting to a sweep.
    pub fn add_to<'a>(&self, sweep: Sweep<'a>) -> Sweep<'a> {
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
        let config = self.config();
        self.dispatch(config.registers, Add(sweep, self.to_string(), config))
    }

    /// Tries all schedules within `bounds`, up to the first failure.
    ///
    /// Where there are no registers, locks are registers all the same: an attempt on a lock of words polls, and
    /// repeating it makes endless paths. That lock has a search of its own, in `hal/sim/tests`.
    pub fn explore(&self, bounds: &Bounds) -> Explored {
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
        let config = Config {
            registers: true,
            ..self.config()
        };
        self.dispatch(true, Explore(bounds, config))
    }

    fn dispatch<U: Use>(&self, registers: bool, then: U) -> U::Result {
        match (self.preset.config().line, registers) {
            (4, true) => self.on::<4, Simulator<4>, U>(then, Some),
            (16, true) => self.on::<16, Simulator<16>, U>(then, Some),
            (32, true) => self.on::<32, Simulator, U>(then, Some),
            (64, true) => self.on::<64, Simulator<64>, U>(then, Some),
            (64, false) => self.on::<64, NoRegisters<64>, U>(then, WithSoftwareLock::new),
            other => unreachable!("no preset has such lines and registers: {other:?}"),
        }
    }

    /// The case on platform `P`, whose machine is made of the simulator's.
    fn on<const LINE: usize, P: Platform, U: Use>(
        &self,
        then: U,
        machine: fn(SimCore<LINE>) -> Option<P::Machine>,
    ) -> U::Result {
        let mut all = flagpost_tests::cases::<P>().iter();
        let case = all.find(|case| case.name == self.case.name);
        let case = case.expect("the table is the same on all platforms");
        then.with(move |core: SimCore<LINE>| {
            let machine = machine(core).expect("regions are large enough for flags");
            run_case(case, machine)
        })
    }
}

impl fmt::Display for PresetSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.case.name, self.cores, self.preset)
    }
}

/// One case at all its sizes, on all presets that have what it needs.
pub fn preset_settings_of(case: &'static Case) -> impl Iterator<Item = PresetSetting> {
    let all = crate::sizes(case).into_iter().flat_map(move |cores| {
        Preset::ALL.map(|preset| PresetSetting {
            case,
            cores,
            preset,
        })
    });
    // What has no registers has no atomics either: `NoRegisters`.
    all.filter(|setting| setting.preset.config().registers || !setting.case.atomics)
}
