//! A run in which every choice is made by a pilot: a search, or a list of choices to repeat.
//!
//! # What is a choice
//! Between two choices the state is complete, and the pilot sees all that can happen
//! ([`Transition`]). Steps that nobody could notice are no choices; they happen as soon as a core
//! comes to them: marks, looks at the clock, `acquire` and `drain` with nothing to order,
//! `write_back` and `invalidate` of lines that are not there, a `relax` whose words differ already.
//! Each of them commutes with everything that others can do, so no behaviour is lost.
//!
//! # Blocking
//! `relax` is not enabled until a watched word differs, `test_and_set` not while the register is
//! held (unless the bounds let it be refused). So a loop that polls makes no endless path.
//!
//! # Time
//! A core's clock stands still, except that its budget may run out while it is blocked (`Expire`);
//! and when nobody can go on any more, time passes for all
//! ([`Config::budgets_expire`](crate::Config::budgets_expire) times).
//!
//! # Set-up
//! If the program says `mark("go")`, all that comes before it happens in turns, with an environment
//! that does nothing and stores that arrive at once; choices begin when every core is there. See
//! [`super::set_up`].

use super::set_up::{SetUp, Stands};
use super::{JUMP, Run, State};
use crate::chance::{Chance, List, Pick};
use crate::choices::{Bounds, Transition};
use crate::digest::Digest;
use crate::op::{Access, Op};
use crate::report::End;

/// Makes the choices of a run.
pub(crate) trait Pilot {
    /// What happens next, if that was found possible in an earlier run with the same beginning.
    fn known(&mut self) -> Option<(Transition, Vec<u32>)> {
        None
    }

    /// What happens next: one of `state.options`, and the chip's decisions within it, as far as
    /// they are prescribed. None: the run is of no more interest.
    fn choose(&mut self, state: &mut Choosing<'_, '_, '_>) -> Option<(Transition, Vec<u32>)>;

    /// What the chip decided within the transition that was chosen last.
    fn decided(&mut self, picks: &[Pick]);
}

/// A state in which a choice is due.
pub(crate) struct Choosing<'r, 's, 'p> {
    run: &'r mut Run<'s, 'p>,
    left: &'r Left,
    /// All that can happen; never empty.
    pub(crate) options: Vec<Transition>,
}

impl Choosing<'_, '_, '_> {
    /// The digest of the state.
    pub(crate) fn digest(&mut self) -> u128 {
        self.run.digest(self.left)
    }
}

/// What is left of the bounds.
struct Left {
    bounds: Bounds,
    /// The core that took the last step.
    last: Option<u16>,
}

impl Run<'_, '_> {
    /// Runs to the end, or until the pilot has seen enough: then none. The set-up is made once and
    /// kept.
    pub(crate) fn piloted(
        &mut self,
        bounds: &Bounds,
        set_up: &mut Option<SetUp>,
        pilot: &mut dyn Pilot,
    ) -> Option<End> {
        self.jumps = Some(vec![0; self.cores.len()]);
        self.machine.chance = Chance::Listed(List::default());
        if bounds.set_up {
            match self.set_up(set_up) {
                Stands::Ready => {}
                Stands::Stuck => return Some(self.failed().unwrap_or(End::Deadlock)),
                Stands::Elsewhere => return Some(End::Diverged),
            }
        }
        let mut left = Left {
            bounds: bounds.clone(),
            last: None,
        };
        loop {
            self.unnoticed(&left.bounds);
            if let Some(hazard) = &self.machine.hazard {
                return Some(End::Oracle(self.alarm(hazard)));
            }
            if self.live == 0 {
                return Some(self.failed().unwrap_or(End::Done));
            }
            if self.steps >= self.config.max_steps {
                return Some(self.failed().unwrap_or(End::StepBound));
            }
            let (chosen, picks) = match pilot.known() {
                Some(known) => known,
                None => {
                    let options = self.options(&left);
                    if !options.iter().any(|option| option.guaranteed()) {
                        return Some(self.failed().unwrap_or(End::Deadlock));
                    }
                    let mut state = Choosing {
                        run: self,
                        left: &left,
                        options,
                    };
                    let (chosen, picks) = pilot.choose(&mut state)?;
                    if !state.options.contains(&chosen) {
                        return Some(End::Diverged);
                    }
                    (chosen, picks)
                }
            };
            self.perform(chosen, picks, &mut left);
            if let Chance::Listed(list) = &self.machine.chance {
                pilot.decided(&list.made);
            }
        }
    }

    /// One step of `core`, which is able to take it.
    pub(super) fn take_step(&mut self, core: u16) {
        self.steps += 1;
        let op = self.cores[usize::from(core)].next();
        if matches!(op.access, Access::Relax) {
            self.go_on(core, &op);
        } else {
            if let Some(reply) = self.act(core) {
                self.advance(core, reply);
            }
        }
    }

    /// Ends a `relax`.
    fn go_on(&mut self, core: u16, op: &Op) {
        self.machine.count(core).relaxes += 1;
        self.record(core, op, 0, crate::trace::Note::None);
        self.machine.waits.forget(core);
        self.advance(core, 0);
    }

    /// Whether `core` has a next step and nothing blocks it.
    pub(super) fn able(&mut self, core: u16) -> bool {
        let running = &self.cores[usize::from(core)];
        if running.state != State::Ready {
            return false;
        }
        match running.next().access {
            Access::Relax => {
                let number = self.machine.waits.words(core).len();
                number == 0
                    || (0..number).any(|word| {
                        let watched = self.machine.waits.words(core)[word];
                        self.machine.peek(core, watched.at) != watched.seen
                    })
            }
            Access::TestAndSet(of) => !self.machine.held(of),
            Access::WaitForRing => self.machine.bells[usize::from(core)],
            _ => true,
        }
    }

    /// Takes all steps that nobody could notice.
    fn unnoticed(&mut self, bounds: &Bounds) {
        let mut any = true;
        while std::mem::take(&mut any) && self.steps < self.config.max_steps {
            for core in 0..self.config.cores {
                while self.machine.hazard.is_none()
                    && self.steps < self.config.max_steps
                    && self.able(core)
                    && self.goes_unnoticed(core, bounds)
                {
                    self.take_step(core);
                    any = true;
                }
            }
        }
    }

    /// Whether nobody could tell when `core` takes its next step.
    fn goes_unnoticed(&self, core: u16, bounds: &Bounds) -> bool {
        let op = self.cores[usize::from(core)].next();
        match op.access {
            Access::Relax | Access::Cycles | Access::Spend(_) | Access::Mark(_) => true,
            access => self
                .machine
                .does_nothing(core, access, op.at, bounds.fills > 0),
        }
    }

    /// All that can happen.
    fn options(&mut self, left: &Left) -> Vec<Transition> {
        let bounds = &left.bounds;
        let mut options = Vec::new();
        let able: Vec<bool> = (0..self.config.cores).map(|core| self.able(core)).collect();
        // Out of preemptions: the core that ran last goes on while it can.
        let stays = left
            .last
            .filter(|&core| bounds.preemptions == Some(0) && able[usize::from(core)]);
        for core in 0..self.config.cores {
            let running = &self.cores[usize::from(core)];
            if running.state == State::Ended || stays.is_some_and(|stays| stays != core) {
                continue;
            }
            if able[usize::from(core)] {
                options.push(Transition::Run(core));
                continue;
            }
            let tries = matches!(running.next().access, Access::TestAndSet(_));
            if tries && bounds.refusals > 0 {
                options.push(Transition::Refuse(core));
            }
            if bounds.expiries > 0 {
                options.push(Transition::Expire(core));
            }
        }
        self.machine.own_accord(bounds, &mut options);
        let stuck = !options.iter().any(|option| option.guaranteed());
        if stuck && self.expiries > 0 && self.failures.is_empty() {
            options.push(Transition::Elapse);
        }
        options
    }

    /// Time passes while nobody can go on.
    fn elapse(&mut self) {
        self.expiries -= 1;
        for core in 0..self.config.cores {
            let blocked = self.cores[usize::from(core)].state == State::Ready && !self.able(core);
            let access = self.cores[usize::from(core)].next().access;
            if blocked && matches!(access, Access::Relax | Access::TestAndSet(_)) {
                self.jump(core);
                self.take_step(core);
            }
        }
    }

    /// Lets `transition` happen.
    fn perform(&mut self, transition: Transition, picks: Vec<u32>, left: &mut Left) {
        if let Chance::Listed(list) = &mut self.machine.chance {
            list.give(picks);
        }
        let bounds = &mut left.bounds;
        let spend = |budget: &mut u8| *budget = budget.saturating_sub(1);
        match transition {
            Transition::Run(core) | Transition::Refuse(core) | Transition::Expire(core) => {
                let preempts = left
                    .last
                    .is_some_and(|last| last != core && self.able(last));
                if preempts && let Some(preemptions) = &mut bounds.preemptions {
                    spend(preemptions);
                }
                left.last = Some(core);
                match transition {
                    Transition::Refuse(_) => spend(&mut bounds.refusals),
                    Transition::Expire(_) => {
                        spend(&mut bounds.expiries);
                        self.jump(core);
                    }
                    _ => {}
                }
                self.take_step(core);
            }
            Transition::Evict { .. } => spend(&mut bounds.evictions),
            Transition::Fill { .. } => spend(&mut bounds.fills),
            Transition::Leave { .. } => spend(&mut bounds.leaves),
            Transition::Arrive { .. } | Transition::Deliver { .. } => {}
            Transition::Elapse => self.elapse(),
        }
        let own_accord = !matches!(
            transition,
            Transition::Run(_) | Transition::Refuse(_) | Transition::Expire(_) | Transition::Elapse
        );
        if own_accord {
            self.steps += 1;
            self.machine.happen(transition, self.steps, self.trace);
        }
        self.machine.progress = false;
    }

    /// `core`'s clock jumps.
    fn jump(&mut self, core: u16) {
        if let Some(jumps) = &mut self.jumps {
            jumps[usize::from(core)] += JUMP;
        }
        self.note(core, crate::trace::Verb::BudgetsExpire);
    }

    /// Everything that decides what can still happen.
    fn digest(&mut self, left: &Left) -> u128 {
        let mut digest = Digest::new(0);
        let Left { bounds, last } = left;
        for budget in [
            bounds.evictions,
            bounds.fills,
            bounds.leaves,
            bounds.expiries,
            bounds.refusals,
        ] {
            digest.add(budget.into());
        }
        digest.add(self.expiries.into());
        if let Some(preemptions) = bounds.preemptions {
            digest.add(preemptions.into());
            digest.add(last.map_or(u64::MAX, u64::from));
        }
        for (core, running) in self.cores.iter().enumerate() {
            digest.long(running.heard.value());
            digest.add(self.jumps.as_ref().map_or(0, |jumps| jumps[core]));
            // A relax differs from the next only in what it waits for, and replies alike.
            for watched in self.machine.waits.words(core as u16) {
                digest.add(u64::from(watched.at) << 32 | u64::from(watched.seen));
            }
        }
        self.machine.digest(&mut digest, bounds.fills > 0);
        digest.value()
    }
}
