//! The account of a run that is over.
//!
//! A report must be enough to understand a failure without running it again: who waits for which
//! word and what is in it, who failed and how, and what those concerned did last, in one timeline.
//! Cores that have nothing to do with it only fill up what room is left.

use flagpost_hal::CoreId;

use super::{Run, Running, State};
use crate::machine::waits::Watched;
use crate::op::Access;
use crate::report::{End, Report, Waiting, Word};

/// The environment variable that asks for the library's own accesses, too.
const TIMELINE: &str = "FLAGPOST_SIM_TIMELINE";

/// Cores whose accesses a timeline shows, at most.
const SHOWN: usize = 12;

impl Run<'_, '_> {
    /// The account of the run, which is over.
    pub(crate) fn report(mut self, end: End) -> Report {
        let mut waiting = self.waiting();
        let timeline = match end {
            End::Done => String::new(),
            _ => self.timeline(&end, &waiting),
        };
        let cores = 0..self.config.cores;
        let counters = { cores.clone() }.map(|core| *self.machine.count(core));
        let counters = counters.collect();
        self.ask(&mut waiting);
        Report {
            end,
            failures: self.failures,
            waiting,
            steps: self.steps,
            cycles: match &self.clocks {
                None => Vec::new(),
                Some(clocks) => cores.clone().map(|core| clocks.cycles(core)).collect(),
            },
            marks: self.marks,
            hash: self.trace.hash(),
            counters,
            timeline,
            config: self.config.clone(),
            case: String::new(),
        }
    }

    /// The cores that wait, and what for.
    fn waiting(&mut self) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        for (core, running) in (0..).zip(&self.cores) {
            if running.state == State::Ended {
                continue;
            }
            let op = running.next();
            let register = match op.access {
                Access::TestAndSet(of) => Some(CoreId::new(of)),
                _ => None,
            };
            // With a pilot, nobody blocks: who cannot go on is not chosen.
            let piloted = self.jumps.is_some();
            let polls = matches!(op.access, Access::Relax | Access::WaitForRing);
            let waits = matches!(running.state, State::Waits | State::WaitsForRing);
            let vain = running.vain.is_some();
            if !waits && !vain && !(piloted && (polls || register.is_some())) {
                continue;
            }
            // A core that the program has not called yet starts on the library's own account.
            let place = self.places(core, &op).of_program().unwrap_or(op.place);
            let bell = matches!(op.access, Access::WaitForRing);
            let mut watched = self.machine.waits.words(core).to_vec();
            if let (true, Access::Load { .. }, at) = (watched.is_empty(), op.access, op.at & !3) {
                // A loop that nobody can see through: this is the word it looks at now.
                let seen = self.machine.peek(core, at);
                watched.push(Watched { at, seen });
            }
            let word = |Watched { at, seen }| Word {
                at: self.machine.shape.address(at),
                seen,
                now: self.machine.peek(core, at),
            };
            waiting.push(Waiting {
                core: CoreId::new(core),
                words: watched.into_iter().map(word).collect(),
                register,
                bell,
                what: None,
                place,
            });
        }
        waiting
    }

    /// Asks the cores that wait what for, in words: each polls once more. Its accesses are in no
    /// account.
    fn ask(&mut self, waiting: &mut [Waiting]) {
        /// Accesses between two rests, at most.
        const POLL: usize = 10_000;
        for waiting in waiting {
            let core = waiting.core.get();
            let index = usize::from(core);
            self.cores[index].strand.desk().asked.set(true);
            // A core that says something does so before its second rest on words. One that never
            // does is stopped there: searches come to thousands of deadlocks. Pauses are no rests.
            let mut rests = 0;
            for _ in 0..POLL {
                let op = self.cores[index].next();
                let desk = self.cores[index].strand.desk();
                let reply = match op.access {
                    Access::Watch { .. } | Access::WaitForRing if rests > 0 => break,
                    Access::Relax | Access::Watch { .. } | Access::WaitForRing => {
                        rests += 1;
                        0
                    }
                    Access::Mark(_) | Access::Ring(_) => 0,
                    Access::Cycles => self.steps + self.offset,
                    _ => self.machine.execute(core, &op, &desk.bytes).reply,
                };
                let strand = &mut self.cores[index].strand;
                if strand.resume(reply).is_some() || !strand.desk().asked.get() {
                    break;
                }
            }
            let what = self.cores[index].strand.desk().waits.take();
            // The place stands at the end of the line.
            let what = what.map(|what| match what.split_once(" (call at ") {
                Some((what, _)) => what.to_owned(),
                None => what,
            });
            waiting.what = what;
        }
    }

    /// The last accesses of those concerned: by the oracle, by failure, by waiting; then of others.
    fn timeline(&self, end: &End, waiting: &[Waiting]) -> String {
        let mut order: Vec<CoreId> = Vec::new();
        if let End::Oracle(alarm) = end {
            order.push(alarm.core);
            order.extend(alarm.other);
        }
        order.extend(self.failures.iter().map(|failure| failure.core));
        order.extend(waiting.iter().map(|waiting| waiting.core));
        order.extend((0..self.config.cores).map(CoreId::new));
        let mut shown: Vec<u16> = Vec::new();
        for core in order {
            if shown.len() < SHOWN && !shown.contains(&core.get()) {
                shown.push(core.get());
            }
        }
        // A program that calls the kernel is told its own accesses, and not those of its calls.
        let calls = |running: &Running<'_>| running.strand.desk().called.get().is_some();
        let whole = std::env::var_os(TIMELINE).is_some() || !self.cores.iter().any(calls);
        let mut text = self.trace.render(&shown, &self.machine.shape, whole);
        if !whole {
            text.push_str(&format!("    (with {TIMELINE}=all: all accesses)\n"));
        }
        let hidden = self.cores.len() - shown.len();
        if hidden > 0 {
            text.push_str(&format!("    ({hidden} more cores are not shown)\n"));
        }
        text
    }
}
