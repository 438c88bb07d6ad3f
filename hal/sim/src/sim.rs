//! [`Sim`]: a chip, and the ways to run programs on it.

use std::fmt::Display;

use flagpost_hal::CoreId;

use crate::choices::Bounds;
use crate::config::{Config, Schedule};
use crate::engine::Run;
use crate::explore::search::{Follow, explore};
use crate::explore::{Explored, Method};
use crate::handle::SimCore;
use crate::machine::Machine;
use crate::report::{End, Report};
use crate::strand::Strand;
use crate::trace::Trace;

/// A simulated chip. Runs programs, one after the other, each on a chip fresh from power-on; what
/// the runs need is kept in between.
pub struct Sim {
    config: Config,
    machine: Machine,
    trace: Trace,
}

impl Sim {
    /// The chip that `config` describes.
    ///
    /// # Panics
    /// If `config` has no core, a region size is not a multiple of 32, or memory exceeds 4 GiB.
    pub fn new(config: Config) -> Self {
        Self {
            machine: Machine::new(&config),
            trace: Trace::new(config.cores, config.timeline),
            config,
        }
    }

    /// What runs are made of now.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Uses another seed from the next run on.
    pub fn reseed(&mut self, seed: u64) -> &mut Self {
        self.config.seed = seed;
        self
    }

    /// Runs `program` on every core of a chip with lines of 32 bytes, and tells what came of it.
    ///
    /// A core that returns an error or panics stops there, with its locks held; the others go on
    /// until they are done or cannot.
    ///
    /// # Panics
    /// If the chip's lines have another size, or the host has no memory for the cores' stacks.
    pub fn run<E: Display>(&mut self, program: impl Fn(SimCore) -> Result<(), E>) -> Report {
        self.run_with_lines(program)
    }

    /// [`run`](Self::run), on a chip with lines of `LINE` bytes.
    ///
    /// # Panics
    /// As `run`.
    pub fn run_with_lines<const LINE: usize, E: Display>(
        &mut self,
        program: impl Fn(SimCore<LINE>) -> Result<(), E>,
    ) -> Report {
        self.once(&|core| in_words(program(core)))
    }

    fn once<const LINE: usize>(&mut self, program: &Program<'_, LINE>) -> Report {
        self.check_lines::<LINE>();
        if self.config.choices.is_empty() {
            return self.with(program, |mut run| {
                let end = run.until_it_ends();
                run.report(end)
            });
        }
        let mut follow = Follow {
            rest: self.config.choices.0.clone().into_iter(),
        };
        let bounds = self.config.within.clone();
        self.with(program, |mut run| {
            let end = run.piloted(&bounds, &mut None, &mut follow);
            run.report(end.unwrap_or(End::Done))
        })
    }

    /// Tries all schedules of `program` within `bounds`, evictions and other acts of the chip
    /// included; up to the first failure, or to the end if it is to `keep_going`.
    ///
    /// Rates of the configuration do not matter then, nor do its schedule and clock.
    ///
    /// # Panics
    /// As [`run`](Self::run); if the schedule is the timed one; in a build that cannot unwind.
    pub fn explore<const LINE: usize, E: Display>(
        &mut self,
        bounds: &Bounds,
        method: Method,
        keep_going: bool,
        program: impl Fn(SimCore<LINE>) -> Result<(), E>,
    ) -> Explored {
        self.search(bounds, method, keep_going, &|core| in_words(program(core)))
    }

    fn search<const LINE: usize>(
        &mut self,
        bounds: &Bounds,
        method: Method,
        keep_going: bool,
        program: &Program<'_, LINE>,
    ) -> Explored {
        if cfg!(panic = "abort") {
            panic!(
                "a search leaves cores behind, whose stacks would leak: build with panic = \"unwind\""
            );
        }
        assert!(
            self.config.schedule != Schedule::Timed,
            "time decides a timed run: there is nothing to explore"
        );
        let config = self.config.clone();
        let mut set_up = None;
        explore(&config, bounds, method, keep_going, |pilot| {
            self.with(program, |mut run| {
                let end = run.piloted(bounds, &mut set_up, pilot);
                let (steps, heard) = (run.steps(), run.heard());
                (end.map(|end| run.report(end)), steps, heard)
            })
        })
    }

    /// Makes a run ready, every core at its first access, and hands it over.
    fn with<const LINE: usize, R>(
        &mut self,
        program: &Program<'_, LINE>,
        then: impl FnOnce(Run<'_, '_>) -> R,
    ) -> R {
        self.check_lines::<LINE>();
        self.machine.reset(self.config.seed);
        self.trace.reset();
        let shape = self.machine.shape;
        let strand =
            |core| Strand::new(move |port| program(SimCore::new(port, CoreId::new(core), shape)));
        let strands = (0..self.config.cores).map(strand);
        then(Run::new(
            &self.config,
            &mut self.machine,
            &mut self.trace,
            strands,
        ))
    }

    fn check_lines<const LINE: usize>(&self) {
        assert!(
            self.config.line as usize == LINE,
            "the program is for lines of {LINE} bytes, the chip's have {}",
            self.config.line
        );
    }
}

/// What each core runs: one type for all, so that what runs it is not compiled for each program.
type Program<'p, const LINE: usize> = dyn Fn(SimCore<LINE>) -> Result<(), String> + 'p;

/// A program's result, with its error as it is reported.
fn in_words(result: Result<(), impl Display>) -> Result<(), String> {
    result.map_err(|error| error.to_string())
}
