//! The set-up of a piloted run: all that precedes `mark("go")`.
//!
//! # Made once
//! It happens in one way only, and a search makes very many runs, in which it is most of the steps.
//! So the first run keeps what the chip is like at its end, and what each core was told until then.
//! In later runs the cores are told the same, in the same order, without the chip (programs are
//! deterministic, so they come to the same place), and then the chip is made what it was. A core
//! that comes to another place ends the run as [`End::Diverged`](crate::End).

use super::{Run, Running, State, Told};
use crate::digest::Digest;
use crate::machine::kept::Kept;
use crate::op::Access;
use crate::trace::Trace;

/// The mark that ends the set-up.
const GO: &str = "go";

/// A set-up that has been made.
pub(crate) struct SetUp {
    told: Vec<Told>,
    chip: Kept,
    trace: Trace,
    /// What each core's run has noted.
    cores: Vec<(Digest, Option<u64>)>,
    steps: u64,
    quiet: u64,
}

/// How cores stand behind the set-up.
pub(super) enum Stands {
    /// Every core says `go` or has ended, or there is something to report.
    Ready,
    /// Some cannot get there.
    Stuck,
    /// Some are not where they were when the set-up was made.
    Elsewhere,
}

impl Run<'_, '_> {
    /// Runs up to where every core says `go`: as `made` says, or else anew, and keeps it there.
    pub(super) fn set_up(&mut self, made: &mut Option<SetUp>) -> Stands {
        if let Some(made) = made {
            return self.repeat(made);
        }
        self.told = Some(Vec::new());
        let stands = self.make();
        let told = self.told.take();
        let all_there = (0..self.config.cores).all(|core| self.at_go(core));
        if all_there && self.machine.hazard.is_none() {
            let noted = |core: &Running<'_>| (core.heard, core.vain);
            *made = told.map(|told| SetUp {
                told,
                chip: self.machine.keep(),
                trace: self.trace.clone(),
                cores: self.cores.iter().map(noted).collect(),
                steps: self.steps,
                quiet: self.quiet,
            });
        }
        stands
    }

    /// Takes the steps of the set-up, in turns.
    fn make(&mut self) -> Stands {
        loop {
            let mut any = false;
            for core in 0..self.config.cores {
                if !self.at_go(core) && self.able(core) {
                    self.take_step(core);
                    while self.machine.settle(self.steps, self.trace) {}
                    any = true;
                }
            }
            if self.machine.hazard.is_some() || self.steps >= self.config.max_steps {
                return Stands::Ready;
            }
            if !any {
                break;
            }
        }
        self.machine.catch_up(self.steps, self.trace);
        let ended = |core: u16| self.cores[usize::from(core)].state == State::Ended;
        match (0..self.config.cores).all(|core| ended(core) || self.at_go(core)) {
            true => Stands::Ready,
            false => Stands::Stuck,
        }
    }

    /// Tells the cores what they were told when the set-up was made.
    fn repeat(&mut self, made: &SetUp) -> Stands {
        for told in &made.told {
            if self.at_go(told.core) {
                return Stands::Elsewhere;
            }
            let running = &mut self.cores[usize::from(told.core)];
            running.strand.desk().bytes.set(told.bytes);
            let mut reply = told.reply;
            loop {
                if let Some(last) = running.strand.resume(reply) {
                    self.ended(told.core, last);
                    return Stands::Elsewhere;
                }
                // What it will wait for: the chip that is kept knows.
                let Access::Watch { .. } = running.next().access else {
                    break;
                };
                reply = 0;
            }
        }
        self.machine.restore(&made.chip);
        self.trace.clone_from(&made.trace);
        for (running, (heard, vain)) in self.cores.iter_mut().zip(&made.cores) {
            running.heard = *heard;
            running.vain = *vain;
        }
        (self.steps, self.quiet) = (made.steps, made.quiet);
        self.repeated = made.steps;
        match (0..self.config.cores).all(|core| self.at_go(core)) {
            true => Stands::Ready,
            false => Stands::Elsewhere,
        }
    }

    /// Whether `core` has come to the end of its set-up.
    fn at_go(&self, core: u16) -> bool {
        let running = &self.cores[usize::from(core)];
        running.state == State::Ready && matches!(running.next().access, Access::Mark(GO))
    }
}
