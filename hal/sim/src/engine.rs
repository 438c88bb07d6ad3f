//! Runs a program on the chip, one access at a time.
//!
//! # A step
//! 1. The schedule picks a core among those that can go on. What it wants is already known.
//! 2. The chip does what it does on its own account: evictions, late stores, prefetches.
//! 3. The access has its effect; cores that waited for that are woken.
//! 4. The core runs on to its next access, its return or its panic.
//!
//! Time is the number of steps, or virtual time ([`Schedule::Timed`](crate::Schedule)): then the
//! core goes next whose access arrives first, and nothing is left to chance. Nothing else (host
//! time, addresses, hash order) enters anywhere, so the configuration decides the run.
//!
//! # Waiting
//! `relax` with words takes the core out of the schedule until one of them differs. So "nobody can
//! go on" is visible at once. Then, in this order: late stores arrive (weak profiles); a time
//! budget expires ([`Config::budgets_expire`]): the clock jumps and everybody is woken; the run is
//! over.
//!
//! A woken core runs on to its next access at once: nobody can notice what it does until then.
//!
//! `relax` without words is a turn of a polling loop that nobody can see through. If many such
//! turns pass and nobody stores anything, it is a livelock, after the same two remedies.

mod account;
pub(crate) mod piloted;
pub(crate) mod set_up;
mod waiting;

use flagpost_hal::CoreId;

use crate::config::Config;
use crate::digest::Digest;
use crate::machine::Machine;
use crate::machine::hazard::Hazard;
use crate::machine::waits::Watched;
use crate::op::{Access, Bytes, Message, Op, Request};
use crate::pick::Picker;
use crate::place::Places;
use crate::report::{Alarm, End, Failure, Marked, Oracle};
use crate::rng::{Rng, Stream};
use crate::strand::{Last, Strand};
use crate::timing::clocks::Clocks;
use crate::trace::{Event, Note, Trace, Verb};

/// Cycles that pass when time budgets expire: more than an hour.
const JUMP: u64 = 1 << 42;

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
    /// The step since which it has only polled in vain.
    vain: Option<u64>,
}

impl<'p> Running<'p> {
    const fn new(strand: Strand<'p>) -> Self {
        Self {
            strand,
            state: State::Ready,
            heard: Digest::new(0),
            vain: None,
        }
    }

    /// What it wants next; once it has ended, what it wanted last.
    #[inline]
    fn next(&self) -> Op {
        self.strand.desk().op.get()
    }
}

/// What a core was told.
struct Told {
    core: u16,
    reply: u64,
    bytes: Bytes,
}

/// A run in progress.
pub(crate) struct Run<'s, 'p> {
    config: &'s Config,
    machine: &'s mut Machine,
    trace: &'s mut Trace,
    /// The access that has set off an oracle.
    alarmed: Option<(u16, Places)>,
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
    /// What cores said in timed mode.
    marks: Vec<Marked>,
    /// For wake-ups without a reason.
    rng: Rng,
    /// Scratch: watchers of a line that changed.
    woken: Vec<(u16, Watched)>,
    /// How far each core's clock has jumped, in a run with a pilot.
    jumps: Option<Vec<u64>>,
    /// All that cores are told, while a set-up is made.
    told: Option<Vec<Told>>,
    /// Steps of a set-up that an earlier run has taken.
    repeated: u64,
}

impl<'s, 'p> Run<'s, 'p> {
    /// A run of these cores, every one at its first access, on a chip fresh from power-on.
    pub(crate) fn new(
        config: &'s Config,
        machine: &'s mut Machine,
        trace: &'s mut Trace,
        cores: impl Iterator<Item = Strand<'p>>,
    ) -> Self {
        let mut run = Self {
            picker: Picker::new(config),
            clocks: Clocks::new(config, &machine.shape),
            cores: cores.map(Running::new).collect(),
            live: usize::from(config.cores),
            steps: 0,
            offset: 0,
            quiet: 0,
            expiries: config.budgets_expire,
            failures: Vec::new(),
            marks: Vec::new(),
            rng: Rng::new(config.seed, Stream::Wakes),
            woken: Vec::new(),
            jumps: None,
            told: None,
            repeated: 0,
            alarmed: None,
            config,
            machine,
            trace,
        };
        for core in 0..config.cores {
            run.picker.enable(core);
            run.advance(core, 0);
        }
        run
    }

    /// Steps that this run has taken itself.
    pub(crate) fn steps(&self) -> u64 {
        self.steps - self.repeated
    }

    /// Steps until there is a reason not to.
    ///
    /// Reasons are looked at in the order in which they explain each other: a hazard explains wrong
    /// data, a failed core explains that others wait for it. So the first one found is the one to
    /// report.
    pub(crate) fn until_it_ends(&mut self) -> End {
        loop {
            if let Some(hazard) = &self.machine.hazard {
                return End::Oracle(self.alarm(hazard));
            }
            if self.live == 0 {
                return self.failed().unwrap_or(End::Done);
            }
            // The product is the limit; the first comparison spares it.
            if self.quiet > self.config.quiet_turns
                && self.quiet > self.config.quiet_turns.saturating_mul(self.live as u64)
            {
                // What is in flight on a network arrives as steps go by: whoever polls it posts
                // more and more.
                if !self.settle_stores() && !self.expire() {
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

    /// The hazard in the reader's terms, with the lines of the program.
    #[cold]
    pub(crate) fn alarm(&self, hazard: &Hazard) -> Alarm {
        let (line, _) = self.machine.shape.split(hazard.at);
        let stored = |core| self.trace.last_store(core, line);
        // A store may arrive long after the call.
        let late = match hazard.oracle {
            Oracle::PendingClobber => stored(hazard.core),
            _ => None,
        };
        let hidden = hazard.oracle == Oracle::HiddenStore;
        let other = hazard.other.or(hidden.then_some(hazard.core));
        let alarmed = self.alarmed.filter(|(core, _)| *core == hazard.core);
        let places = late.or(alarmed.map(|(_, places)| places));
        let [place, other_place] = match hazard.oracle {
            Oracle::EarlyRead => self.cores[usize::from(hazard.core)]
                .strand
                .desk()
                .found
                .get(),
            _ => [places, other.and_then(stored)].map(|places| places.and_then(Places::of_program)),
        };
        Alarm {
            oracle: hazard.oracle,
            core: CoreId::new(hazard.core),
            other: hazard.other.map(CoreId::new),
            at: self.machine.shape.address(hazard.at),
            bytes: hazard.bytes,
            place,
            other_place,
        }
    }

    /// The places of what `core` asks for.
    #[inline]
    fn places(&self, core: u16, op: &Op) -> Places {
        Places {
            access: op.place,
            called: self.cores[usize::from(core)].strand.desk().called.get(),
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

    /// One step of `core`. Called in one place, and so is `run_on` here: a core's stack must be
    /// entered from the main loop itself, since each return to a function that was called before a
    /// switch of stacks costs as much as the switch.
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
            Access::Mark(label) => {
                self.record(core, &op, 0, Note::None);
                if let Some(clocks) = &self.clocks {
                    self.marks.push(Marked {
                        core: CoreId::new(core),
                        label,
                        cycles: clocks.cycles(core),
                        counters: *self.machine.count(core),
                    });
                }
                Some(0)
            }
            _ => {
                let desk = self.cores[index].strand.desk();
                let outcome = self.machine.execute(core, &op, &desk.bytes);
                desk.ticket.set(self.machine.memory.now());
                self.record(core, &op, outcome.value, outcome.note);
                if self.machine.hazard.is_some() && self.alarmed.is_none() {
                    self.alarmed = Some((core, self.places(core, &op)));
                }
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
                Some(last) => return self.ended(core, last),
            }
        }
    }

    /// Notes what a core is told, and where it looked.
    #[cold]
    fn hear(&mut self, index: usize, reply: u64) {
        let running = &mut self.cores[index];
        if let Some(told) = &mut self.told {
            told.push(Told {
                core: index as u16,
                reply,
                bytes: running.strand.desk().bytes.get(),
            });
        }
        match running.next().access {
            // What these reply depends on nothing.
            Access::Relax | Access::Mark(_) => return,
            Access::Read { .. }
            | Access::Message(Message::Load { .. })
            | Access::Network(Request::Poll | Request::Read { .. }) => {
                running.heard.bytes(&running.strand.desk().bytes.get());
            }
            _ => {}
        }
        running.heard.add(reply);
    }

    /// A digest of all that cores were told.
    pub(crate) fn heard(&self) -> u128 {
        let mut all = Digest::new(0);
        for running in &self.cores {
            all.long(running.heard.value());
        }
        all.value()
    }

    #[cold]
    fn ended(&mut self, core: u16, last: Last) {
        self.block(core, State::Ended);
        self.live -= 1;
        self.quiet = 0;
        let failure = match last {
            Last::Returned(Ok(())) => None,
            Last::Returned(Err(message)) => Some((false, message)),
            Last::Panicked(message) => Some((true, message)),
        };
        if let Some((panicked, message)) = failure {
            self.failures.push(Failure {
                core: CoreId::new(core),
                panicked,
                message,
                called: self.cores[usize::from(core)].strand.desk().called.get(),
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
        let verb = Verb::of(&op.access);
        if verb.stores() {
            let (line, _) = self.machine.shape.split(op.at);
            self.trace.stored(core, line, self.places(core, op));
        }
        self.trace.record(Event {
            step: self.steps,
            at,
            value,
            number: 0,
            core,
            verb,
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
