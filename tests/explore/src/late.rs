//! Loads that finish late: after later stores of their core, until `drain` (S3 of the HAL's
//! `Coherence`).
//!
//! Arm and RISC-V cores do that: the load of a ring entry may be satisfied after the store that
//! gives the entry back, and then returns what the next producer has put there. A simulator that
//! hands a core its value before the core goes on cannot show it. So a run is made twice.
//!
//! # Steps
//! 1. *Watch*: an ordinary run. A load, of a word or in bulk, past the caches or through its
//!    core's, is *open* until its core drains or acquires, loads or stores some of the same bytes
//!    again, or waits for a word of them. If another core changes some while the load is open, and
//!    its core has stored something since, then the load could have returned the new bytes: a
//!    *prophecy*. One of those of the run is kept, drawn by the seed. Words change when they are
//!    stored; other bytes when their core drains behind the bulk store, or behind the write-back of
//!    what it stored through its cache: then they are in memory for sure.
//! 2. *Fulfil*: the same run again, but that load returns the new value at once. Up to the change,
//!    the core must make exactly the accesses that it made before: only then did nothing depend on
//!    the load, and the run is one that such a core could make. Otherwise it proves nothing and is
//!    dropped.
//!
//! What a core stores in bulk others may see before it drains, though that is its next step. So a
//! drain that open loads wait for takes some time here.
//!
//! The chip below has profile `scc`, on which word stores take effect at once and in order: then
//! the order in which calls return here is that of their effects.
//!
//! # Bounds
//! One late load per run, which returns one change of its bytes. Loads are taken to be done at an
//! `acquire`, which promises less, and atomic operations to change nothing. What was evicted is
//! taken to change memory no earlier than by its write-back.

use std::cell::RefCell;
use std::fmt;

use flagpost_common::{Dice, mix};
use flagpost_hal::{
    Address, Amo, CachedMemory, Coherence, CoreId, Lines, NativeAtomics, Relax, TestAndSet,
    Topology as _, UncachedMemory, Watch,
};
use flagpost_sim::{End, Report, Sim, SimCore};
use flagpost_tests::{
    AtomicU32, Bell, MachinePlatform, Mapped, Platform, Refusal, Ring, Session, mapped,
};
use smallvec::SmallVec;

use crate::forward;

/// The simulator with late loads, as the cases see it.
pub struct LateSimulator;

impl Platform for LateSimulator {
    type Machine = Late;
    type Link = Mapped<Late>;

    fn link(machine: &Late, session: Session, ring: Option<Ring>) -> Result<Self::Link, Refusal> {
        mapped(machine, session, ring)
    }

    fn go(machine: &Late) {
        machine.0.mark("go");
    }
}

impl MachinePlatform for LateSimulator {
    const ATOMICS: Option<AtomicU32<Late>> = Some(Late::atomic_u32);
    const BELL: Option<Bell<Late>> = Some((
        |machine, core| machine.0.ring(core),
        |machine| machine.0.wait_for_ring(),
    ));
}

/// A case on it.
pub type Case = flagpost_tests::Case<LateSimulator>;

/// The case called `name`.
pub fn case(name: &str) -> Option<&'static Case> {
    flagpost_tests::cases::<LateSimulator>().find(|case| case.name == name)
}

/// Runs `case` on `sim`, and if it passes and a load could have been late, runs it again with that.
///
/// Gives the first run that fails, else the last that counts.
pub fn run(sim: &mut Sim, case: &Case, seed: u64) -> Report {
    let program = |core| crate::run_case(case, Late(core));
    begin(Mode::Watch, seed);
    let watched = sim.reseed(seed).run(program);
    let prophecy = STATE.take().found;
    let Some(prophecy) = prophecy.filter(|_| watched.end == End::Done) else {
        return watched;
    };
    begin(Mode::Fulfil(prophecy), seed);
    let late = sim.run(program);
    if STATE.take().fulfilled {
        late
    } else {
        watched
    }
}

fn begin(mode: Mode, seed: u64) {
    STATE.set(State {
        mode,
        draw: seed,
        ..State::default()
    });
}

/// A load that returns what its bytes hold only later.
#[derive(Clone)]
struct Prophecy {
    core: u16,
    /// Number of the load, among its core's.
    load: u32,
    /// The new bytes, their number among all changes of memory, and what the core has asked for by
    /// then.
    change: Bytes,
    call: u64,
    asked: u64,
}

/// Bytes, and where they are.
#[derive(Clone, PartialEq)]
struct Bytes {
    at: Address,
    /// Words are most of it, and have their place here.
    bytes: SmallVec<[u8; 8]>,
}

impl Bytes {
    fn new(at: Address, bytes: &[u8]) -> Self {
        let bytes = SmallVec::from_slice(bytes);
        Self { at, bytes }
    }

    fn end(&self) -> usize {
        self.at.offset + self.bytes.len()
    }

    /// Whether some lie in both.
    fn meets(&self, other: &Self) -> bool {
        self.at.region == other.at.region
            && self.at.offset < other.end()
            && other.at.offset < self.end()
    }

    /// Takes those over that lie in `from` as well. True if that changes any.
    fn take(&mut self, from: &Self) -> bool {
        let mut changed = false;
        if self.meets(from) {
            for (offset, to) in (self.at.offset..).zip(&mut self.bytes) {
                let place = offset.checked_sub(from.at.offset);
                if let Some(&from) = place.and_then(|place| from.bytes.get(place)) {
                    changed |= *to != from;
                    *to = from;
                }
            }
        }
        changed
    }
}

/// What to do with calls.
#[derive(Clone, Default)]
enum Mode {
    #[default]
    Watch,
    Fulfil(Prophecy),
}

/// A load that may finish late.
struct Open {
    found: Bytes,
    load: u32,
    /// Its core has stored something since.
    overtaken: bool,
}

/// What a core has done.
#[derive(Default)]
struct Core {
    loads: u32,
    /// Hash of all that it asked for.
    asked: u64,
    open: Vec<Open>,
    /// Stored through the cache, and not written back.
    dirty: Vec<Bytes>,
    /// On its way to memory until the next drain.
    leaving: Vec<Bytes>,
}

impl Core {
    /// `change` is on its way, behind all others: what they have of the same bytes is not seen any
    /// more once it is in memory.
    fn leave(&mut self, change: Bytes) {
        for earlier in &mut self.leaving {
            earlier.take(&change);
        }
        self.leaving.push(change);
    }
}

/// A run, as far as this module goes. All cores of a run share one host thread.
#[derive(Default)]
struct State {
    mode: Mode,
    cores: Vec<Core>,
    /// Changes of memory, by all cores.
    calls: u64,
    /// How many prophecies there were, and the one that was drawn.
    count: u64,
    draw: u64,
    found: Option<Prophecy>,
    fulfilled: bool,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// A call, as one number.
fn number(kind: u8, at: Address, value: u32) -> u64 {
    let place = (at.offset as u64) << 16 | u64::from(at.region.owner.get());
    mix(mix(place ^ u64::from(kind) << 56) ^ u64::from(value))
}

/// The same of a call that stores these.
fn number_of(kind: u8, stored: &Bytes) -> u64 {
    let len = stored.bytes.len() as u32;
    let bytes = stored.bytes.iter();
    bytes.fold(number(kind, stored.at, len), |all, byte| {
        mix(all ^ u64::from(*byte))
    })
}

impl State {
    fn core(&mut self, core: CoreId) -> &mut Core {
        let index = core.index();
        if self.cores.len() <= index {
            self.cores.resize_with(index + 1, Core::default);
        }
        &mut self.cores[index]
    }

    /// `core` has asked for something.
    fn ask(&mut self, core: CoreId, call: u64) {
        let core = self.core(core);
        core.asked = mix(core.asked ^ call);
    }

    /// `core` has loaded `into`, which becomes what it gets.
    fn load(&mut self, core: CoreId, kind: u8, at: Address, into: &mut [u8]) {
        self.ask(core, number(kind, at, into.len() as u32));
        let mut found = Bytes::new(at, into);
        let own = self.core(core);
        let load = own.loads;
        own.loads += 1;
        own.open.retain(|open| !open.found.meets(&found));
        if let Mode::Fulfil(late) = &self.mode
            && (late.core, late.load) == (core.get(), load)
        {
            let late = late.change.clone();
            found.take(&late);
            into.copy_from_slice(&found.bytes);
        }
        self.core(core).open.push(Open {
            found,
            load,
            overtaken: false,
        });
    }

    /// `core` stores something, at once or on its way.
    fn store(&mut self, core: CoreId, kind: u8, stored: &Bytes) {
        self.ask(core, number_of(kind, stored));
        let own = self.core(core);
        own.open.retain(|open| !open.found.meets(stored));
        own.open.iter_mut().for_each(|open| open.overtaken = true);
    }

    /// What `core` has stored is in memory.
    fn change(&mut self, core: CoreId, change: &Bytes) {
        self.calls += 1;
        if let Mode::Fulfil(late) = &self.mode {
            let asked = self.cores[usize::from(late.core)].asked;
            self.fulfilled |=
                (late.call, late.asked) == (self.calls, asked) && late.change == *change;
        }
        let mut possible = Vec::new();
        for (number, other) in (0_u16..).zip(&mut self.cores) {
            if number == core.get() {
                continue;
            }
            let asked = other.asked;
            let changed = other
                .open
                .extract_if(.., |open| open.found.meets(change))
                .filter_map(|mut open| {
                    (open.found.take(change) && open.overtaken).then_some(open.load)
                });
            possible.extend(changed.map(|load| Prophecy {
                core: number,
                load,
                change: change.clone(),
                call: self.calls,
                asked,
            }));
        }
        if let Mode::Fulfil(_) = self.mode {
            return;
        }
        for prophecy in possible {
            // Each of n is kept with chance 1/n.
            self.count += 1;
            self.draw = Dice::new(self.draw).roll();
            if self.draw.is_multiple_of(self.count) {
                self.found = Some(prophecy);
            }
        }
    }

    /// `core` has written lines back, which leave.
    fn write_back(&mut self, core: CoreId, spans: &[Lines]) {
        let own = self.core(core);
        let written: Vec<_> = own
            .dirty
            .extract_if(.., |dirty| {
                let at = dirty.at.offset;
                spans.iter().any(|span| {
                    span.region() == dirty.at.region
                        && span.start() < dirty.end()
                        && at < span.end()
                })
            })
            .collect();
        written.into_iter().for_each(|written| own.leave(written));
    }

    /// How long `core`'s drain takes: until others have come as far as they can with what has left.
    fn delay(&mut self, core: CoreId) -> u64 {
        let own = self.core(core);
        if own.open.iter().any(|open| open.overtaken) {
            mix(own.asked) % 64
        } else {
            0
        }
    }

    /// `core` has drained.
    fn drain(&mut self, core: CoreId) {
        self.order(core, 4);
        for change in std::mem::take(&mut self.core(core).leaving) {
            self.change(core, &change);
        }
    }

    /// `core` has given a register back: a store that others see.
    fn clear(&mut self, core: CoreId, of: CoreId) {
        self.ask(core, mix(u64::from(of.get()) ^ 3 << 56));
        let own = self.core(core);
        own.open.iter_mut().for_each(|open| open.overtaken = true);
    }

    /// `core` has ordered its loads.
    fn order(&mut self, core: CoreId, kind: u8) {
        self.ask(core, mix(u64::from(kind) << 56));
        self.core(core).open.clear();
    }

    /// `core` waits for words: it would look again if it had got their newer values.
    fn wait(&mut self, core: CoreId, watched: &[Watch]) {
        self.ask(core, mix(6 << 56 ^ watched.len() as u64));
        let own = self.core(core);
        let waits = |open: &Open| {
            let word = |watch: &Watch| Bytes::new(watch.at, &watch.seen.to_le_bytes());
            watched.iter().any(|watch| word(watch).meets(&open.found))
        };
        own.open.retain(|open| !waits(open));
    }
}

/// A simulated core whose loads may be late.
#[derive(Clone, Debug)]
pub struct Late(SimCore);

impl Late {
    fn note<R>(&self, act: impl FnOnce(&mut State, CoreId) -> R) -> R {
        STATE.with_borrow_mut(|state| act(state, self.0.core()))
    }

    /// A call that is only remembered.
    fn ask(&self, kind: u8, at: Address, len: usize) {
        self.note(|state, core| state.ask(core, number(kind, at, len as u32)));
    }

    /// A load that has brought `into`.
    fn loaded(&self, kind: u8, at: Address, into: &mut [u8]) {
        self.note(|state, core| state.load(core, kind, at, into));
    }

    /// A store of a word, which is in memory.
    fn stored(&self, kind: u8, at: Address, bytes: &[u8]) {
        let stored = Bytes::new(at, bytes);
        self.note(|state, core| {
            state.store(core, kind, &stored);
            state.change(core, &stored);
        });
    }
}

impl UncachedMemory for Late {
    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        let mut bytes = [self.0.load_u8(at)];
        self.loaded(13, at, &mut bytes);
        let [byte] = bytes;
        byte
    }

    #[track_caller]
    fn store_u8(&self, at: Address, value: u8) {
        self.0.store_u8(at, value);
        self.stored(14, at, &[value]);
    }

    #[track_caller]
    fn load_u32(&self, at: Address) -> u32 {
        let mut bytes = self.0.load_u32(at).to_le_bytes();
        self.loaded(1, at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    #[track_caller]
    fn store_u32(&self, at: Address, value: u32) {
        self.0.store_u32(at, value);
        self.stored(2, at, &value.to_le_bytes());
    }

    #[track_caller]
    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.0.store_bytes(at, from);
        let stored = Bytes::new(at, from);
        self.note(|state, core| {
            state.store(core, 7, &stored);
            state.core(core).leave(stored);
        });
    }

    #[track_caller]
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        self.0.load_bytes(at, into);
        self.loaded(8, at, into);
    }
}

impl CachedMemory for Late {
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        self.0.read(at, into);
        self.loaded(9, at, into);
    }

    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        self.0.write(at, from);
        let stored = Bytes::new(at, from);
        self.note(|state, core| {
            state.store(core, 10, &stored);
            state.core(core).dirty.push(stored);
        });
    }
}

// SAFETY: every call goes to the simulated core, which keeps the promises. A load that is made late
// returns what a load after later stores would; none is made late across `drain` or `acquire` (S3,
// S4).
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Coherence for Late {
    const LINE: usize = <SimCore as Coherence>::LINE;

    #[track_caller]
    fn write_back(&self, spans: &[Lines]) {
        self.0.write_back(spans);
        self.note(|state, core| state.write_back(core, spans));
    }

    forward!(in Coherence => 0: invalidate(spans: &[Lines]));

    #[track_caller]
    fn drain(&self) {
        for _ in 0..self.note(State::delay) {
            self.0.relax(&[]);
        }
        self.0.drain();
        self.note(State::drain);
    }

    #[track_caller]
    fn acquire(&self) {
        self.0.acquire();
        self.note(|state, core| state.order(core, 5));
    }
}

impl TestAndSet for Late {
    #[track_caller]
    fn test_and_set(&self, of: CoreId) -> bool {
        let taken = self.0.test_and_set(of);
        self.note(|state, core| state.ask(core, mix(u64::from(of.get()) ^ 11 << 56)));
        taken
    }

    #[track_caller]
    fn clear(&self, of: CoreId) {
        self.0.clear(of);
        self.note(|state, core| state.clear(core, of));
    }
}

forward!(MessageBuffer, Clock for Late => 0);

forward!(Topology for Late => 0 {
    fn lost(&self) -> Option<CoreId> {
        self.0.lost()
    }
});

impl Relax for Late {
    #[track_caller]
    fn relax(&self, watched: &[Watch]) {
        self.note(|state, core| state.wait(core, watched));
        self.0.relax(watched);
    }

    forward!(in Relax => 0: waits(what: fmt::Arguments<'_>));
}

impl NativeAtomics for Late {
    type Word = u32;

    #[track_caller]
    fn atomic_u32(&self, at: Address, operation: Amo<u32>) -> u32 {
        let old = self.0.atomic_u32(at, operation);
        self.ask(12, at, 0);
        old
    }
}
