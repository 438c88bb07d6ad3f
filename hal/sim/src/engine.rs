//! Runs a program on the chip, one access at a time.
//!
//! # A step
//! 1. The schedule picks a core among those that can go on. What it wants is already known.
//! 2. The chip does what it does on its own account: evictions, late stores, prefetches.
//! 3. The access has its effect; cores that waited for that are woken.
//! 4. The core runs on to its next access, its return or its panic.
//!
//! Time is the number of steps, or virtual time ([`Schedule::Timed`](crate::Schedule)): then the core goes next
//! whose access arrives first, and nothing is left to chance. Nothing else (host time, addresses, hash order)
//! enters anywhere, so the configuration decides the run.
//!
//! # Waiting
//! `relax` with words takes the core out of the schedule until one of them differs. So "nobody can go on"
//! is visible at once. Then, in this order: late stores arrive (weak profiles); a time budget expires
//! ([`Config::budgets_expire`]): the clock jumps and everybody is woken; the run is over.
//!
//! A woken core runs on to its next access at once: nobody can notice what it does until then.
//!
//! `relax` without words is a turn of a polling loop that nobody can see through. If many such turns
//! pass and nobody stores anything, it is a livelock, after the same two remedies.

mod account;
pub(crate) mod piloted;

use std::fmt::Debug;

use flagpost_hal::CoreId;

use crate::config::{Config, Schedule};
use crate::explore::digest::Digest;
use crate::explore::search::Follow;
use crate::explore::{Bounds, Explored, Method, explore};
use crate::handle::SimCore;
use crate::machine::Machine;
use crate::machine::message::Message;
use crate::machine::waits::Watched;
use crate::op::{Access, Op};
use crate::pick::Picker;
use crate::report::{End, Failure, Report};
use crate::rng::{Rng, Stream};
use crate::strand::{Last, Strand};
use crate::timing::Clocks;
use crate::trace::{Event, Note, Trace, Verb};

/// Cycles that pass when time budgets expire: more than an hour.
const JUMP: u64 = 1 << 42;

/// A simulated chip. Runs programs, one after the other, each on a chip fresh from power-on; what the
/// runs need is kept in between.
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
    /// A core that returns an error or panics stops there, with its locks held; the others go on until
    /// they are done or cannot.
    ///
    /// # Panics
    /// If the chip's lines have another size, or the host has no memory for the cores' stacks.
    pub fn run<E: Debug>(&mut self, program: impl Fn(SimCore) -> Result<(), E>) -> Report {
        self.run_with_lines(program)
    }

    /// [`run`](Self::run), on a chip with lines of `LINE` bytes.
    ///
    /// # Panics
    /// As `run`.
    pub fn run_with_lines<const LINE: usize, E: Debug>(
        &mut self,
        program: impl Fn(SimCore<LINE>) -> Result<(), E>,
    ) -> Report {
        assert!(
            self.config.line as usize == LINE,
            "the program is for lines of {LINE} bytes, the chip's have {}",
            self.config.line
        );
        if self.config.choices.is_empty() {
            return self.with(&program, |mut run| {
                let end = run.until_it_ends();
                run.report(end)
            });
        }
        let mut follow = Follow {
            rest: self.config.choices.0.clone().into_iter(),
        };
        // What is listed was within the bounds once; evictions need no other leave to be repeated.
        let bounds = Bounds {
            evictions: u8::MAX,
            fills: u8::MAX,
            leaves: u8::MAX,
            expiries: u8::MAX,
            refusals: u8::MAX,
            set_up: self.config.set_up,
            ..Bounds::default()
        };
        self.with(&program, |mut run| {
            let end = run.piloted(&bounds, &mut follow);
            run.report(end.unwrap_or(End::Done))
        })
    }

    /// Tries all schedules of `program` within `bounds`, evictions and other acts of the chip included; up
    /// to the first failure, or to the end if it is to `keep_going`.
    ///
    /// Rates of the configuration do not matter then, nor do its schedule and clock.
    ///
    /// # Panics
    /// As [`run`](Self::run); if the schedule is the timed one; in a build that cannot unwind.
    pub fn explore<const LINE: usize, E: Debug>(
        &mut self,
        bounds: &Bounds,
        method: Method,
        keep_going: bool,
        program: impl Fn(SimCore<LINE>) -> Result<(), E>,
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
        explore(&config, bounds, method, keep_going, |pilot| {
            self.with(&program, |mut run| {
                let end = run.piloted(bounds, pilot);
                let (steps, heard) = (run.steps, run.heard());
                (end.map(|end| run.report(end)), steps, heard)
            })
        })
    }

    /// Makes a run ready, every core at its first access, and hands it over.
    fn with<const LINE: usize, E: Debug, R>(
        &mut self,
        program: &impl Fn(SimCore<LINE>) -> Result<(), E>,
        then: impl FnOnce(Run<'_, '_>) -> R,
    ) -> R {
        assert!(
            self.config.line as usize == LINE,
            "the program is for lines of {LINE} bytes, the chip's have {}",
            self.config.line
        );
        self.machine.reset(self.config.seed);
        self.trace.reset();
        let shape = self.machine.shape;
        let strand = |core| {
            Strand::new(move |port| {
                let handle = SimCore::new(port, CoreId::new(core), shape);
                program(handle).map_err(|error| format!("{error:?}"))
            })
        };
        let mut run = Run {
            picker: Picker::new(&self.config),
            clocks: Clocks::new(&self.config, &shape),
            cores: (0..self.config.cores)
                .map(|core| Running::new(strand(core)))
                .collect(),
            live: usize::from(self.config.cores),
            steps: 0,
            offset: 0,
            quiet: 0,
            expiries: self.config.budgets_expire,
            failures: Vec::new(),
            rng: Rng::new(self.config.seed, Stream::Wakes),
            woken: Vec::new(),
            jumps: None,
            config: &self.config,
            machine: &mut self.machine,
            trace: &mut self.trace,
        };
        for core in 0..run.config.cores {
            run.picker.enable(core);
            run.advance(core, 0);
        }
        then(run)
    }
}

/// What a core is doing.
#[derive(Copy, Clone, PartialEq, Eq)]
enum State {
    /// It can take its next step.
    Ready,
    /// It waits for words.
    Waits,
    /// It waits for its bell.
    WaitsForRing,
    /// It has returned or panicked.
    Ended,
}

/// A core.
struct Running<'p> {
    strand: Strand<'p>,
    state: State,
    /// All that it was told; only with a pilot.
    heard: Digest,
    /// Lines it loaded from since its last relax; only with a pilot.
    loaded: Vec<u32>,
    /// The step since which it has only polled in vain.
    vain: Option<u64>,
}

impl<'p> Running<'p> {
    const fn new(strand: Strand<'p>) -> Self {
        Self {
            strand,
            state: State::Ready,
            heard: Digest::new(0),
            loaded: Vec::new(),
            vain: None,
        }
    }

    /// What it wants next; once it has ended, what it wanted last.
    #[inline]
    fn next(&self) -> Op {
        self.strand.desk().op.get()
    }
}

/// A run in progress.
struct Run<'s, 'p> {
    config: &'s Config,
    machine: &'s mut Machine,
    trace: &'s mut Trace,
    picker: Picker,
    /// Virtual time, which then decides who goes next, not the picker.
    clocks: Option<Clocks>,
    cores: Vec<Running<'p>>,
    /// Cores that have not ended.
    live: usize,
    steps: u64,
    /// How far time is ahead of steps.
    offset: u64,
    /// Polling turns since anybody stored anything.
    quiet: u64,
    /// Budgets that may still expire.
    expiries: u32,
    failures: Vec<Failure>,
    /// For wake-ups without a reason.
    rng: Rng,
    /// Scratch: watchers of a line that changed.
    woken: Vec<(u16, Watched)>,
    /// How far each core's clock has jumped, in a run with a pilot.
    jumps: Option<Vec<u64>>,
}

impl Run<'_, '_> {
    /// Steps until there is a reason not to.
    ///
    /// Reasons are looked at in the order in which they explain each other: a hazard explains wrong data,
    /// a failed core explains that others wait for it. So the first one found is the one to report.
    fn until_it_ends(&mut self) -> End {
        loop {
            if let Some(hazard) = &self.machine.hazard {
                return End::Oracle(self.machine.alarm(hazard));
            }
            if self.live == 0 {
                return self.failed().unwrap_or(End::Done);
            }
            // The product is the limit; the first comparison spares it.
            if self.quiet > self.config.quiet_turns
                && self.quiet > self.config.quiet_turns.saturating_mul(self.live as u64)
            {
                if !self.settle() && !self.expire() {
                    return self.failed().unwrap_or(End::Livelock);
                }
                self.quiet = 0;
            }
            if self.steps >= self.config.max_steps {
                return self.failed().unwrap_or(self.cut_off());
            }
            let next = match &mut self.clocks {
                None => self.picker.next(),
                Some(clocks) => clocks.next(),
            };
            match next {
                Some(core) => self.step(core),
                None if self.settle() => {}
                None if !self.failures.is_empty() || !self.expire() => {
                    return self.failed().unwrap_or(End::Deadlock);
                }
                None => {}
            }
        }
    }

    /// Failed or panicked, if any core did.
    fn failed(&self) -> Option<End> {
        let panicked = self.failures.iter().any(|failure| failure.panicked);
        match (self.failures.is_empty(), panicked) {
            (true, _) => None,
            (false, true) => Some(End::Panicked),
            (false, false) => Some(End::Failed),
        }
    }

    /// One step of `core`. Called in one place, and so is `run_on` here: a core's stack must be entered from the
    /// main loop itself, since each return to a function that was called before a switch of stacks costs as much
    /// as the switch.
    #[inline(always)]
    fn step(&mut self, core: u16) {
        self.steps += 1;
        if self.clocks.is_none() {
            self.machine.environment(self.steps, self.trace);
            self.wake();
            if self.config.wakes > 0 {
                self.wake_for_no_reason();
            }
        }
        if self.machine.hazard.is_none() {
            if let Some(reply) = self.act(core) {
                self.run_on(core, reply);
            }
            self.wake();
        }
    }

    /// What `core` wants happens.
    #[inline]
    fn act(&mut self, core: u16) -> Option<u64> {
        let index = usize::from(core);
        // Waking may have let this core run on, but a ready core keeps what it wanted.
        let op = self.cores[index].next();
        match op.access {
            Access::Relax => self.relax(core, &op),
            Access::WaitForRing => self.wait_for_ring(core, &op),
            Access::Ring(of) => self.ring(core, of, &op),
            Access::Cycles => {
                self.record(core, &op, 0, Note::None);
                let now = match (&self.clocks, &self.jumps) {
                    (Some(clocks), _) => clocks.cycles(core),
                    (None, Some(jumps)) => jumps[index],
                    (None, None) => self.steps + self.offset,
                };
                Some(now)
            }
            _ => {
                let bytes = &self.cores[index].strand.desk().bytes;
                let outcome = self.machine.execute(core, &op, bytes);
                self.record(core, &op, outcome.value, outcome.note);
                if matches!(op.access, Access::TestAndSet(_)) {
                    match outcome.value {
                        0 => self.turn(core),
                        _ => self.cores[index].vain = None,
                    }
                }
                if std::mem::take(&mut self.machine.progress) {
                    self.quiet = 0;
                    self.cores[index].vain = None;
                }
                Some(outcome.reply)
            }
        }
    }

    /// Notes since when `core` gets nowhere.
    fn polls_in_vain(&mut self, core: u16) {
        let vain = &mut self.cores[usize::from(core)].vain;
        *vain = vain.or(Some(self.steps));
    }

    /// Why the run is cut off: somebody has got nowhere for more than half of it, or there is just too much
    /// to do.
    fn cut_off(&self) -> End {
        let starves = |running: &Running<'_>| {
            let since = running.vain.filter(|_| running.state != State::Ended);
            since.is_some_and(|since| self.steps - since > self.config.max_steps / 2)
        };
        match self.cores.iter().position(starves) {
            Some(core) => End::Starvation(CoreId::new(core as u16)),
            None => End::StepBound,
        }
    }

    /// `core` polled in vain.
    fn turn(&mut self, core: u16) {
        self.polls_in_vain(core);
        self.quiet += 1;
        self.picker.yields(core);
    }

    /// Waits for a watched word to differ; or just a turn.
    fn relax(&mut self, core: u16, op: &Op) -> Option<u64> {
        self.machine.count(core).relaxes += 1;
        let number = self.machine.waits.words(core).len();
        let mut differs = number == 0;
        for word in 0..number {
            let Watched { at, seen } = self.machine.waits.words(core)[word];
            differs |= self.machine.peek(core, at) != seen;
        }
        if differs {
            self.record(core, op, 0, Note::None);
            self.machine.waits.forget(core);
            self.turn(core);
            Some(0)
        } else {
            self.record(core, op, 0, Note::Waits);
            self.polls_in_vain(core);
            self.machine.waits.block(core);
            if let Some(clocks) = &mut self.clocks {
                clocks.park(core, self.machine.waits.words(core), &self.machine.shape);
            }
            self.block(core, State::Waits);
            None
        }
    }

    fn wait_for_ring(&mut self, core: u16, op: &Op) -> Option<u64> {
        let bell = &mut self.machine.bells[usize::from(core)];
        if std::mem::take(bell) {
            self.record(core, op, 0, Note::None);
            Some(0)
        } else {
            self.record(core, op, 0, Note::Waits);
            self.polls_in_vain(core);
            self.block(core, State::WaitsForRing);
            None
        }
    }

    /// Rings a bell. Its owner goes on at once if it waits; else the bell remembers.
    fn ring(&mut self, core: u16, of: u16, op: &Op) -> Option<u64> {
        self.machine.count(core).rings += 1;
        self.record(core, op, 0, Note::None);
        self.quiet = 0;
        if self.cores[usize::from(of)].state == State::WaitsForRing {
            self.unblock(of);
        } else {
            self.machine.bells[usize::from(of)] = true;
        }
        Some(0)
    }

    fn block(&mut self, core: u16, state: State) {
        self.cores[usize::from(core)].state = state;
        self.picker.disable(core);
    }

    /// A waiting core goes on.
    fn unblock(&mut self, core: u16) {
        self.machine.waits.unblock(core);
        if let Some(clocks) = &mut self.clocks {
            match self.cores[usize::from(core)].state {
                State::WaitsForRing => clocks.wake_by_bell(core),
                _ => clocks.wake(core),
            }
        }
        self.cores[usize::from(core)].state = State::Ready;
        self.picker.enable(core);
        self.note(core, Verb::Wake);
        self.advance(core, 0);
    }

    /// Wakes the cores for which a watched word differs now.
    #[inline]
    fn wake(&mut self) {
        if self.machine.waits.any_changed() {
            self.wake_watchers();
        }
    }

    fn wake_watchers(&mut self) {
        while let Some(line) = self.machine.waits.take_changed() {
            let mut woken = std::mem::take(&mut self.woken);
            woken.clear();
            self.machine.waits.watchers(line, &mut woken);
            for &(core, Watched { at, seen }) in &woken {
                let waits = self.cores[usize::from(core)].state == State::Waits;
                if waits && self.machine.peek(core, at) != seen {
                    self.unblock(core);
                }
            }
            self.woken = woken;
        }
    }

    /// Perhaps wakes some core for no reason.
    #[cold]
    fn wake_for_no_reason(&mut self) {
        let core = self.rng.below(self.cores.len());
        let waits = matches!(self.cores[core].state, State::Waits | State::WaitsForRing);
        if waits && self.rng.next() & 1023 < u64::from(self.config.wakes) {
            self.unblock(core as u16);
        }
    }

    /// Late stores arrive. Returns whether there were any.
    fn settle(&mut self) -> bool {
        let any = self.machine.settle();
        self.wake();
        any
    }

    /// Lets a time budget run out, if one is left: time jumps, and everybody who waits looks again.
    fn expire(&mut self) -> bool {
        let Some(left) = self.expiries.checked_sub(1) else {
            return false;
        };
        self.expiries = left;
        self.offset += JUMP;
        if let Some(clocks) = &mut self.clocks {
            clocks.jump();
        }
        for core in 0..self.config.cores {
            if matches!(
                self.cores[usize::from(core)].state,
                State::Waits | State::WaitsForRing
            ) {
                self.note(core, Verb::BudgetsExpire);
                self.unblock(core);
            }
        }
        true
    }

    /// Gives `core` its reply and lets it run to its next access.
    fn advance(&mut self, core: u16, reply: u64) {
        self.run_on(core, reply);
    }

    /// [`advance`](Self::advance), for the main loop.
    #[inline(always)]
    fn run_on(&mut self, core: u16, mut reply: u64) {
        let index = usize::from(core);
        if self.jumps.is_some() {
            self.hear(index, reply);
        }
        loop {
            let running = &mut self.cores[index];
            match running.strand.resume(reply) {
                None => {
                    let Op { access, at, .. } = running.next();
                    if let Access::Watch { seen } = access {
                        // Not a step: these only say what the relax that follows will wait for.
                        self.machine.waits.watch(core, Watched { at, seen });
                        reply = 0;
                        continue;
                    }
                    if let Some(clocks) = &mut self.clocks {
                        clocks.issue(core, &running.next(), self.machine);
                    }
                    return;
                }
                Some(Last::Returned(Ok(()))) => return self.ended(core, None),
                Some(Last::Returned(Err(message))) => {
                    return self.ended(core, Some((false, message)));
                }
                Some(Last::Panicked(message)) => return self.ended(core, Some((true, message))),
            }
        }
    }

    /// Notes what a core is told, and where it looked.
    #[cold]
    fn hear(&mut self, index: usize, reply: u64) {
        let running = &mut self.cores[index];
        let Op { access, at, .. } = running.next();
        match access {
            // What these reply depends on nothing.
            Access::Relax | Access::Mark(_) => return,
            Access::Load { .. } => running.loaded.push(self.machine.shape.split(at).0),
            Access::Read { .. } | Access::Message(Message::Load { .. }) => {
                running.heard.bytes(&running.strand.desk().bytes.get());
            }
            _ => {}
        }
        running.heard.add(reply);
    }

    /// A digest of all that cores were told.
    fn heard(&self) -> u128 {
        let mut all = Digest::new(0);
        for running in &self.cores {
            all.long(running.heard.value());
        }
        all.value()
    }

    #[cold]
    fn ended(&mut self, core: u16, failure: Option<(bool, String)>) {
        self.block(core, State::Ended);
        self.live -= 1;
        self.quiet = 0;
        if let Some((panicked, message)) = failure {
            self.failures.push(Failure {
                core: CoreId::new(core),
                panicked,
                message,
            });
        }
    }

    /// Puts an access into the timeline.
    #[inline]
    fn record(&mut self, core: u16, op: &Op, value: u32, note: Note) {
        let (at, label) = match op.access {
            Access::TestAndSet(of) | Access::Clear(of) | Access::Ring(of) => (u32::from(of), ""),
            Access::Mark(label) => (0, label),
            // The one line of the span that it was: `value` is how much of the span lies behind it.
            Access::WriteBack { len } | Access::Invalidate { len }
                if !matches!(note, Note::Nothing | Note::Others) =>
            {
                let behind = op.at + (len - value);
                (behind - self.machine.shape.line(), "")
            }
            _ => (op.at, ""),
        };
        self.trace.record(Event {
            step: self.steps,
            at,
            value,
            number: 0,
            core,
            verb: Verb::of(&op.access),
            note,
            label,
            place: Some(op.place),
        });
    }

    /// Puts something that happened to `core` into the timeline.
    fn note(&mut self, core: u16, verb: Verb) {
        self.trace.record(Event {
            step: self.steps,
            at: 0,
            value: 0,
            number: 0,
            core,
            verb,
            note: Note::None,
            label: "",
            place: None,
        });
    }
}
