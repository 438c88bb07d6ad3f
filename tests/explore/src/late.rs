//! Loads that finish late: after later stores of their core, until `drain` (S3 of the HAL's `Coherence`).
//!
//! Arm and RISC-V cores do that: the load of a ring entry may be satisfied after the store that gives the entry
//! back, and then returns what the next producer has put there. A simulator that hands a core its value before the core
//! goes on cannot show it. So a run is made twice.
//!
//! # Steps
//! 1. *Watch*: an ordinary run. A load is *open* until its core drains or acquires, loads or stores the same word
//!    again, or waits for that word. If another core changes the word while the load is open, and its core has stored
//!    something since, then the load could have returned the new value: a *prophecy*. One of those of the run
//!    is kept, drawn by the seed.
//! 2. *Fulfil*: the same run again, but that load returns the new value at once. Up to the change, the core must make
//!    exactly the accesses that it made before: only then did nothing depend on the load, and the run is one that
//!    such a core could make. Otherwise it proves nothing and is dropped.
//!
//! The chip below has profile `scc`, on which word stores take effect at once and in order: then the order in
//! which calls return here is that of their effects.
//!
//! # Bounds
//! Word loads and word stores only; one late load per run. Loads are taken to be done at an `acquire`, which promises
//! less.

use std::cell::RefCell;

use flagpost_hal::{
    Address, Atomic, CachedMemory, Clock, Coherence, CoreId, Doorbell, Lines, MessageBuffer,
    NativeAtomics, Position, Relax, TestAndSet, Topology, UncachedMemory, Watch,
};
use flagpost_sim::{End, Report, Sim, SimCore};
use flagpost_tests::{AtomicU32, MachinePlatform, Mapped, Platform, Refusal, Ring, mapped};

/// The simulator with late loads, as the cases see it.
pub struct LateSimulator;

impl Platform for LateSimulator {
    type Machine = Late;
    type Link = Mapped<Late>;

    fn link(machine: &Late, session: u32, ring: Option<Ring>) -> Result<Self::Link, Refusal> {
        mapped(machine, session, ring)
    }

    fn go(machine: &Late) {
        machine.0.mark("go");
    }
}

impl MachinePlatform for LateSimulator {
    const ATOMICS: Option<AtomicU32<Late>> = Some(Late::atomic_u32);
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

/// A load that returns what its word holds only later.
#[derive(Copy, Clone)]
struct Prophecy {
    core: u16,
    /// Number of the load, among its core's.
    load: u32,
    at: Address,
    /// The new value, the call that stores it (of all cores'), and what the core has asked for by then.
    value: u32,
    call: u64,
    asked: u64,
}

/// What to do with calls.
#[derive(Copy, Clone, Default)]
enum Mode {
    #[default]
    Watch,
    Fulfil(Prophecy),
}

/// A load that may finish late.
struct Open {
    at: Address,
    load: u32,
    value: u32,
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
}

/// A run, as far as this module goes. All cores of a run share one host thread.
#[derive(Default)]
struct State {
    mode: Mode,
    cores: Vec<Core>,
    /// Stores of all cores.
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

/// Spreads bits: splitmix64's output function.
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A call, as one number.
fn number(kind: u8, at: Address, value: u32) -> u64 {
    let place = u64::from(at.offset) << 16 | u64::from(at.region.owner.get());
    mix(mix(place ^ u64::from(kind) << 56) ^ u64::from(value))
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

    /// `core` has loaded `value`. What it gets.
    fn load(&mut self, core: CoreId, at: Address, value: u32) -> u32 {
        self.ask(core, number(1, at, 0));
        let mode = self.mode;
        let own = self.core(core);
        let load = own.loads;
        own.loads += 1;
        match mode {
            Mode::Fulfil(p) if p.core == core.get() && p.load == load => return p.value,
            Mode::Fulfil(_) => return value,
            Mode::Watch => {}
        }
        own.open.retain(|open| open.at != at);
        own.open.push(Open {
            at,
            load,
            value,
            overtaken: false,
        });
        value
    }

    /// `core` has stored `value`.
    fn store(&mut self, core: CoreId, at: Address, value: u32) {
        self.ask(core, number(2, at, value));
        self.calls += 1;
        if let Mode::Fulfil(prophecy) = self.mode {
            let asked = self.cores[usize::from(prophecy.core)].asked;
            self.fulfilled |= prophecy.call == self.calls
                && (prophecy.at, prophecy.value) == (at, value)
                && prophecy.asked == asked;
            return;
        }
        let mut possible = Vec::new();
        for (number, other) in (0_u16..).zip(&mut self.cores) {
            if number == core.get() {
                other.open.retain(|open| open.at != at);
                other.open.iter_mut().for_each(|open| open.overtaken = true);
            } else if let Some(place) = other.open.iter().position(|open| open.at == at) {
                let open = other.open.swap_remove(place);
                if open.overtaken && open.value != value {
                    possible.push(Prophecy {
                        core: number,
                        load: open.load,
                        at,
                        value,
                        call: self.calls,
                        asked: other.asked,
                    });
                }
            }
        }
        for prophecy in possible {
            // Each of n is kept with chance 1/n.
            self.count += 1;
            self.draw = mix(self.draw.wrapping_add(0x9e37_79b9_7f4a_7c15));
            if self.draw.is_multiple_of(self.count) {
                self.found = Some(prophecy);
            }
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
        let waits = |open: &Open| watched.iter().any(|watch| watch.at == open.at);
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
}

impl UncachedMemory for Late {
    const PUBLISH: usize = <SimCore as UncachedMemory>::PUBLISH;

    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        let value = self.0.load_u8(at);
        self.note(|state, core| state.load(core, at, value.into())) as u8
    }

    #[track_caller]
    fn store_u8(&self, at: Address, value: u8) {
        self.0.store_u8(at, value);
        self.note(|state, core| state.store(core, at, value.into()));
    }

    #[track_caller]
    fn load_u32(&self, at: Address) -> u32 {
        let value = self.0.load_u32(at);
        self.note(|state, core| state.load(core, at, value))
    }

    #[track_caller]
    fn store_u32(&self, at: Address, value: u32) {
        self.0.store_u32(at, value);
        self.note(|state, core| state.store(core, at, value));
    }

    #[track_caller]
    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.0.store_bytes(at, from);
        self.ask(7, at, from.len());
    }

    #[track_caller]
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        self.0.load_bytes(at, into);
        self.ask(8, at, into.len());
    }
}

impl CachedMemory for Late {
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        self.0.read(at, into);
        self.ask(9, at, into.len());
    }

    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        self.0.write(at, from);
        self.ask(10, at, from.len());
    }
}

// SAFETY: every call goes to the simulated core, which keeps the promises. A load that is made late returns what a load
// after later stores would; none is made late across `drain` or `acquire` (S3, S4).
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Coherence for Late {
    const LINE: usize = <SimCore as Coherence>::LINE;
    const INVALIDATE_WRITES_BACK: bool = <SimCore as Coherence>::INVALIDATE_WRITES_BACK;

    #[track_caller]
    fn write_back(&self, spans: &[Lines]) {
        self.0.write_back(spans);
    }

    #[track_caller]
    fn invalidate(&self, spans: &[Lines]) {
        self.0.invalidate(spans);
    }

    #[track_caller]
    fn drain(&self) {
        self.0.drain();
        self.note(|state, core| state.order(core, 4));
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

impl MessageBuffer for Late {
    fn message_buffer_size(&self) -> u32 {
        self.0.message_buffer_size()
    }
}

impl Topology for Late {
    fn cores(&self) -> u16 {
        self.0.cores()
    }

    fn core(&self) -> CoreId {
        self.0.core()
    }

    fn position(&self, core: CoreId) -> Position {
        self.0.position(core)
    }

    fn controller(&self, core: CoreId) -> u16 {
        self.0.controller(core)
    }

    fn memory_size(&self) -> u32 {
        self.0.memory_size()
    }

    fn lost(&self) -> Option<CoreId> {
        self.0.lost()
    }
}

impl Clock for Late {
    #[track_caller]
    fn cycles(&self) -> u64 {
        self.0.cycles()
    }

    fn hertz(&self) -> u64 {
        self.0.hertz()
    }
}

impl Relax for Late {
    #[track_caller]
    fn relax(&self, watched: &[Watch]) {
        self.note(|state, core| state.wait(core, watched));
        self.0.relax(watched);
    }
}

impl NativeAtomics for Late {
    #[track_caller]
    fn atomic_u32(&self, at: Address, operation: Atomic) -> u32 {
        let old = self.0.atomic_u32(at, operation);
        self.ask(12, at, 0);
        old
    }
}

impl Doorbell for Late {
    #[track_caller]
    fn ring(&self, core: CoreId) {
        self.0.ring(core);
    }

    fn wait_for_ring(&self) {
        self.0.wait_for_ring();
    }
}
