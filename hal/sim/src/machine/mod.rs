//! The chip as plain data, and what every access does to it.
//!
//! # Where a stored byte can be (per core, then memory)
//! ```text
//!   cached write ──► cache line (dirty) ──write back, eviction──┐
//!   bulk store ────► combining buffer ──full, other line, drain─┤
//!   word store ─────────────────────────────────────────────────┤
//!                                                               ▼
//!                       store buffer (weak profiles only) ──any time, any order, drain──► memory
//! ```
//! # Invariants
//! I1. Memory changes only in [`Machine::arrive`] and [`Machine::arrive_word`]: there are the
//!     clobber oracle, the stamps and the wake-ups.
//! I2. Stores of one core to one word arrive in program order: a parcel never overtakes an older
//!     one that shares a word with it, and a word store takes its bytes out of the combining
//!     buffer.
//! I3. `memory.dirty(line)` = caches that hold the line dirty + write-backs of it under way.
//! I4. The combining buffer holds bytes of one line; it is never emptied by loads or registers.
//!
//! # Choices where the HAL's contract leaves room (the less convenient, if a chip could do it)
//! * Cached writes allocate, `write_back` keeps the line, clean, and `invalidate` loses dirty
//!   bytes: unless [`Caching`] says otherwise.
//! * Uncached loads see the core's own buffered stores, but never its cache. Line fetches see own
//!   write-backs under way, but no other buffered store: drain before reading through the cache.
//! * A combining buffer that is emptied lets its words arrive in random groups, over several steps.

mod cached;
pub(crate) mod caches;
mod digest;
mod early;
pub(crate) mod hazard;
pub(crate) mod kept;
mod listed;
pub(crate) mod memory;
mod message;
pub(crate) mod network;
mod observe;
mod oracle;
mod tags;
pub(crate) mod traffic;
mod uncached;
pub(crate) mod waits;

use std::cell::Cell;

use caches::Caches;
use early::Early;
use hazard::Hazard;
use memory::{Memory, Parcel, word_parcel};
use network::flights::Network;
use tags::Tags;
use waits::Waits;

use crate::caching::Caching;
use crate::chance::Chance;
use crate::config::{Config, Oracles, Profile};
use crate::mask::span;
use crate::mask::{Bytes, LINE_MAX, Mask, bits, word};
use crate::op::{self, Access, Op};
use crate::report::Counters;
use crate::rng::{Rng, Stream};
use crate::shape::Shape;
use crate::trace::{Event, Note, Trace, Verb};

/// The one-line write-combining buffer.
#[derive(Copy, Clone)]
struct Combining {
    line: u32,
    /// Bytes that are in it; the buffer is empty if none.
    mask: Mask,
    bytes: Bytes,
}

/// What belongs to one core, apart from its cache.
#[derive(Clone)]
struct Core {
    combining: Combining,
    /// Parcels on their way to memory, oldest first; only in weak profiles.
    stores: Vec<Parcel>,
    early: Early,
    counters: Counters,
}

/// What an access did.
pub(crate) struct Outcome {
    pub(crate) reply: u64,
    /// The value that a timeline shows.
    pub(crate) value: u32,
    pub(crate) note: Note,
}

impl Outcome {
    #[inline]
    const fn new(word: u32, note: Note) -> Self {
        Self {
            reply: word as u64,
            value: word,
            note,
        }
    }

    /// An outcome that shows `value` and replies nothing of interest.
    #[inline]
    const fn shown(value: u32, note: Note) -> Self {
        Self {
            reply: 0,
            value,
            note,
        }
    }
}

/// The chip.
pub(crate) struct Machine {
    pub(crate) shape: Shape,
    profile: Profile,
    caching: Caching,
    rates: Rates,
    oracles: Oracles,
    pub(crate) memory: Memory,
    caches: Caches,
    tags: Tags,
    cores: Vec<Core>,
    /// Test-and-set registers: held?
    registers: Vec<bool>,
    /// Bells: rung?
    pub(crate) bells: Vec<bool>,
    pub(crate) chance: Chance,
    /// Lines that were in a cache and are not now: what may be prefetched.
    dropped: Vec<(u16, u32)>,
    /// Cores whose store buffer is not empty.
    draining: Vec<u16>,
    pub(crate) waits: Waits,
    network: Option<Network>,
    /// The first hazard an oracle saw.
    pub(crate) hazard: Option<Hazard>,
    /// Whether anybody stored anything since the engine last looked.
    pub(crate) progress: bool,
}

/// Rates of spontaneous events, per 1024 steps.
struct Rates {
    evictions: u64,
    prefetches: u64,
    drains: u64,
    leaves: u64,
    deliveries: u64,
}

/// Entries of a store buffer; one more, and the oldest leaves.
const STORES: usize = 64;

/// Lines remembered for prefetching.
const DROPPED: usize = 1024;

impl Machine {
    pub(crate) fn new(config: &Config) -> Self {
        let shape = Shape::new(config);
        assert!(
            !(shape.timed && config.profile.weak()),
            "timed mode knows no weak profile: it has no latencies of store buffers"
        );
        assert!(
            !(shape.timed && config.network.is_some()),
            "timed mode knows no network: it has no latencies of one"
        );
        let rate = |on: bool, rate: u16| match on && !shape.timed {
            true => u64::from(rate.min(1024)),
            false => 0,
        };
        let core = || Core {
            combining: Combining {
                line: 0,
                mask: 0,
                bytes: [0; LINE_MAX],
            },
            stores: Vec::new(),
            early: Early::new(),
            counters: Counters::default(),
        };
        let cores = usize::from(config.cores);
        Self {
            shape,
            profile: config.profile,
            caching: config.caching,
            rates: Rates {
                evictions: rate(true, config.evictions),
                prefetches: rate(config.profile.fills(), config.prefetches),
                drains: rate(config.profile.weak(), config.drains),
                leaves: rate(true, config.leaves),
                deliveries: rate(true, config.network.map_or(0, |wire| wire.deliveries)),
            },
            oracles: config.oracles,
            memory: Memory::new(shape, config.profile.weak()),
            caches: Caches::new(),
            tags: Tags::new(),
            cores: (0..cores).map(|_| core()).collect(),
            registers: vec![false; cores],
            bells: vec![false; cores],
            chance: Chance::seeded(0),
            dropped: Vec::new(),
            draining: Vec::new(),
            waits: Waits::new(shape),
            network: config.network.map(|wire| Network::new(wire, cores)),
            hazard: None,
            progress: false,
        }
    }

    /// As after power-on: garbage everywhere, registers in any state.
    pub(crate) fn reset(&mut self, seed: u64) {
        self.memory.reset(seed);
        self.caches.clear();
        self.tags.clear();
        for core in &mut self.cores {
            core.combining.mask = 0;
            core.stores.clear();
            core.early.reset();
            core.counters = Counters::default();
        }
        let mut garbage = Rng::new(seed, Stream::Garbage);
        self.registers.fill_with(|| garbage.next() & 1 == 1);
        self.bells.fill(false);
        self.chance = Chance::seeded(seed);
        self.dropped.clear();
        self.draining.clear();
        self.waits.reset();
        self.network.iter_mut().for_each(Network::reset);
        self.hazard = None;
        self.progress = false;
    }

    /// Counters of a core.
    #[inline]
    pub(crate) fn count(&mut self, core: u16) -> &mut Counters {
        &mut self.cores[usize::from(core)].counters
    }

    /// Does what a core asked for. `desk` is where its bytes are, or will be. Waiting, bells and
    /// time are the engine's.
    #[inline]
    pub(crate) fn execute(&mut self, core: u16, op: &Op, desk: &Cell<op::Bytes>) -> Outcome {
        let (line, byte) = self.shape.split(op.at);
        match op.access {
            Access::Load { width } => self.load(core, line, byte, width, op.local),
            Access::Store { width, value } => self.store(core, line, byte, width, value, op.local),
            Access::Combine { len } => self.combine(core, line, byte, len, &desk.get()),
            Access::Empty => self.empty(core),
            Access::Atomic(operation) => self.atomic(core, line, byte, operation),
            Access::Read { len } => self.read(core, line, byte, len, desk),
            Access::Write { len } => self.write(core, line, byte, len, &desk.get()),
            Access::WriteBack { len } => self.write_back(core, op.at, len),
            Access::Invalidate { len } => self.invalidate(core, op.at, len),
            Access::Message(ref message) => self.message(core, line, byte, message, desk),
            Access::Network(ref request) => self.request(core, op.at, request, desk),
            Access::Drain => self.drain(core),
            Access::Acquire => {
                self.count(core).acquires += 1;
                let now = self.memory.now();
                self.cores[usize::from(core)].early.acquire(now);
                Outcome::new(0, Note::None)
            }
            Access::Early { len, since } => {
                self.check_early(core, line, span(byte, len.into()), since)
            }
            Access::TestAndSet(of) => self.test_and_set(core, of),
            Access::Clear(of) => {
                self.registers[usize::from(of)] = false;
                Outcome::new(0, Note::None)
            }
            Access::Mark(_)
            | Access::Spend(_)
            | Access::Cycles
            | Access::Watch { .. }
            | Access::Relax
            | Access::Ring(_)
            | Access::WaitForRing => Outcome::new(0, Note::None),
        }
    }

    /// Takes the register if it is free. Orders nothing (T4).
    fn test_and_set(&mut self, core: u16, of: u16) -> Outcome {
        let free = !std::mem::replace(&mut self.registers[usize::from(of)], true);
        let counters = self.count(core);
        if free {
            counters.locks += 1;
        } else {
            counters.locks_refused += 1;
        }
        Outcome::new(free.into(), Note::None)
    }

    /// The one place where memory changes (I1).
    fn arrive(&mut self, core: u16, parcel: &Parcel) {
        if parcel.intended != 0 && *self.memory.dirty(parcel.line) != 0 {
            self.check_clobber(core, parcel);
        }
        let newest = self.memory.newest(parcel.line);
        let (ticket, changed) = self.memory.write(core, parcel);
        if parcel.cached
            && let Some(slot) = self.caches.find(core, parcel.line)
        {
            // The cache already shows what it sent.
            let cached = self.caches.get_mut(slot);
            if !cached.dirty {
                cached.stored &= !parcel.intended;
            }
            bits(parcel.intended).for_each(|bit| cached.seen[bit] = ticket);
            if cached.fresh == newest && parcel.intended != 0 {
                cached.fresh = ticket;
            }
        }
        if !parcel.write_back {
            self.shown(core, parcel, ticket);
        }
        if changed {
            self.waits.changed(parcel.line);
        }
    }

    /// [`arrive`](Self::arrive) of a word store that is not buffered: without a parcel, since it is
    /// what happens most.
    #[inline]
    fn arrive_word(&mut self, core: u16, line: u32, byte: usize, width: usize, value: u32) {
        self.progress = true;
        if *self.memory.dirty(line) != 0 {
            self.check_clobber(core, &word_parcel(line, byte, width, value));
        }
        if self.memory.write_word(core, line, byte, width, value) {
            self.waits.changed(line);
        }
    }

    /// Lets a parcel go: into the store buffer if there is one, else straight to memory.
    fn send(&mut self, core: u16, parcel: Parcel) -> Note {
        self.progress = true;
        if !self.profile.weak() {
            self.deliver(core, &parcel);
            return Note::None;
        }
        let stores = &mut self.cores[usize::from(core)].stores;
        if stores.is_empty() {
            self.draining.push(core);
        }
        stores.push(parcel);
        if stores.len() > STORES {
            self.place(core, 0);
        }
        Note::Buffered
    }

    /// Lets a parcel arrive. A write-back is no longer under way then (I3).
    fn deliver(&mut self, core: u16, parcel: &Parcel) {
        if parcel.write_back {
            *self.memory.dirty(parcel.line) -= 1;
        }
        self.arrive(core, parcel);
    }

    /// Lets parcel `number` of a store buffer arrive, or the oldest that it must not overtake (I2).
    fn place(&mut self, core: u16, number: usize) -> Parcel {
        let stores = &mut self.cores[usize::from(core)].stores;
        let mut first = number;
        while let Some(older) = (0..first).find(|&i| share_a_word(&stores[i], &stores[first])) {
            first = older;
        }
        let parcel = stores.remove(first);
        if stores.is_empty() {
            self.draining.retain(|&c| c != core);
        }
        self.deliver(core, &parcel);
        parcel
    }

    /// The parcels of a core that overtake none if they arrive next.
    pub(crate) fn free_parcels(&self, core: u16) -> Vec<usize> {
        let stores = &self.cores[usize::from(core)].stores;
        let free = |&number: &usize| {
            let mut older = stores[..number].iter();
            !older.any(|older| share_a_word(older, &stores[number]))
        };
        (0..stores.len()).filter(free).collect()
    }

    /// Lets everything in all store buffers arrive, but not what is in combining buffers: stores
    /// get through in the end, bulk stores only by a drain. Of what is in flight on a network, one
    /// part arrives. Returns whether there was anything.
    pub(crate) fn settle(&mut self, step: u64, trace: &mut Trace) -> bool {
        self.settle_stores() || self.deliver_some(step, trace)
    }

    /// Lets everything in all store buffers arrive. Returns whether there was anything.
    pub(crate) fn settle_stores(&mut self) -> bool {
        let any = !self.draining.is_empty();
        while let Some(&core) = self.draining.last() {
            self.place(core, 0);
        }
        any
    }

    /// What the chip does on its own account between two steps: each kind of event at its own rate,
    /// at uniformly random steps (anything else spends the events where little is at stake).
    #[inline]
    pub(crate) fn environment(&mut self, step: u64, trace: &mut Trace) {
        let draw = self.chance.bits();
        if draw & 1023 < self.rates.evictions && self.caches.len() > 0 {
            let slot = self.chance.below(self.caches.len());
            self.evict(slot, step, trace);
        }
        if draw >> 10 & 1023 < self.rates.prefetches && !self.dropped.is_empty() {
            self.prefetch(step, trace);
        }
        if draw >> 20 & 1023 < self.rates.drains && !self.draining.is_empty() {
            let core = self.draining[self.chance.below(self.draining.len())];
            let count = self.cores[usize::from(core)].stores.len();
            let number = self.chance.below(count);
            self.arrives(core, number, step, trace);
        }
        if draw >> 30 & 1023 < self.rates.leaves {
            self.leave_early(step, trace);
        }
        if draw >> 40 & 1023 < self.rates.deliveries {
            self.deliver_some(step, trace);
        }
    }

    /// A buffered store arrives on the chip's own account.
    fn arrives(&mut self, core: u16, number: usize, step: u64, trace: &mut Trace) {
        let parcel = self.place(core, number);
        let first = parcel.intended.trailing_zeros() as usize % LINE_MAX;
        let at = self.shape.start(parcel.line) + first as u32;
        let value = word(&parcel.bytes, first / 4);
        trace.record(own_account(step, core, Verb::Arrive, at, value));
    }
}

/// Whether two parcels touch a common word: their byte masks, rounded out to words, overlap.
fn share_a_word(a: &Parcel, b: &Parcel) -> bool {
    let words = |mask: Mask| {
        let any = mask | mask >> 1 | mask >> 2 | mask >> 3;
        (any & 0x1111_1111_1111_1111) * 0xf
    };
    a.line == b.line && words(a.mask) & words(b.mask) != 0
}

/// A timeline's event without a caller.
fn own_account(step: u64, core: u16, verb: Verb, at: u32, value: u32) -> Event {
    Event {
        step,
        at,
        value,
        number: 0,
        core,
        verb,
        note: Note::None,
        label: "",
        place: None,
    }
}
