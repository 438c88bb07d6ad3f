//! The network: what is in flight, and how it arrives.
//!
//! # Life of an operation
//! ```text
//!   post ──► parts, one per line ──► arrive, one by one, in any order ──► the immediate ──► completion at the origin
//!                                      put:  stored
//!                                      get:  loaded there, then stored here
//!                                      cell: changed there, then its value comes here
//! ```
//! Each arrow into memory or a queue is an event of its own, on the network's account. A completion queue is a list of
//! what has happened at an end, and one word, at the start of the core's message buffer, that counts it: cores
//! that wait watch that word.
//!
//! # Invariants
//! I1. Operations in flight and completions that were not taken are together at most [`Wire::sends`]; so there is always
//!     room for a completion.
//! I2. The immediates in a queue are at most [`Wire::queue`]: one more does not arrive.

use std::cell::Cell;
use std::collections::VecDeque;

use flagpost_hal::{CoreId, Region};
use flagpost_link::{Amo, Rank};
use flagpost_network::Event;

use super::memory::span;
use super::uncached::plain;
use super::{Machine, Outcome, own_account};
use crate::explore::choice::Transition;
use crate::explore::digest::Digest;
use crate::network::Wire;
use crate::op::{Bytes, CHUNK};
use crate::shape::{LINE_MAX, Shape};
use crate::trace::{Note, Trace, Verb};

/// What a core asks of its end.
#[derive(Copy, Clone)]
pub(crate) enum Request {
    /// Opens the end. Replies the count of events.
    Open,
    /// No part in anything from now on.
    DropOut,
    /// Loads from own registered memory.
    Read { len: u8 },
    /// Stores to it.
    Write { len: u8 },
    /// Adds bytes to what the next put will bring.
    Stage { len: u8 },
    /// Begins an operation. Replies 1 if there is no room for it.
    Post(Posted),
    /// Takes the oldest event. Replies the count of events, and 1 << 32 if there is one.
    Poll,
}

/// An operation; what else it wants is on the desk.
#[derive(Copy, Clone)]
pub(crate) struct Posted {
    pub(crate) id: u32,
    pub(crate) to: u16,
    pub(crate) kind: Kind,
}

#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Put,
    Get,
    Amo,
}

impl Request {
    pub(crate) const fn verb(&self) -> Verb {
        match self {
            Self::Open => Verb::OpenNic,
            Self::DropOut => Verb::DropOut,
            Self::Read { .. } => Verb::ReadRegistered,
            Self::Write { .. } => Verb::WriteRegistered,
            Self::Stage { .. } => Verb::Stage,
            Self::Post(Posted { kind, .. }) => match kind {
                Kind::Put => Verb::PostPut,
                Kind::Get => Verb::PostGet,
                Kind::Amo => Verb::PostAmo,
            },
            Self::Poll => Verb::Poll,
        }
    }
}

/// What an operation wants besides.
#[derive(Copy, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) immediate: Option<u32>,
    pub(crate) into: u32,
    pub(crate) len: u32,
    pub(crate) amo: Option<Amo>,
}

/// Up to four numbers of 8 bytes, as a desk holds them.
fn desk(numbers: [u64; 4]) -> Bytes {
    let mut bytes = [0; CHUNK];
    for (place, number) in bytes.chunks_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn numbers(bytes: &Bytes) -> [u64; 4] {
    std::array::from_fn(|index| {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
        u64::from_le_bytes(number)
    })
}

impl Wanted {
    pub(crate) fn pack(self) -> Bytes {
        match (self.amo, self.immediate) {
            (None, immediate) => {
                let place = u64::from(self.into) << 32 | u64::from(self.len);
                let (has, immediate) = (immediate.is_some(), immediate.unwrap_or(0));
                desk([has.into(), immediate.into(), place, 0])
            }
            (Some(amo), _) => match amo {
                Amo::Read => desk([0, 0, 0, 0]),
                Amo::Add(value) => desk([1, value, 0, 0]),
                Amo::And(value) => desk([2, value, 0, 0]),
                Amo::Or(value) => desk([3, value, 0, 0]),
                Amo::Xor(value) => desk([4, value, 0, 0]),
                Amo::Swap(value) => desk([5, value, 0, 0]),
                Amo::CompareSwap { expected, new } => desk([6, expected, new, 0]),
            },
        }
    }

    fn unpack(kind: Kind, bytes: &Bytes) -> Self {
        let [first, second, third, _] = numbers(bytes);
        if kind != Kind::Amo {
            return Self {
                immediate: (first != 0).then_some(second as u32),
                into: (third >> 32) as u32,
                len: third as u32,
                amo: None,
            };
        }
        let amo = match first {
            0 => Amo::Read,
            1 => Amo::Add(second),
            2 => Amo::And(second),
            3 => Amo::Or(second),
            4 => Amo::Xor(second),
            5 => Amo::Swap(second),
            _ => Amo::CompareSwap {
                expected: second,
                new: third,
            },
        };
        Self {
            amo: Some(amo),
            ..Self::default()
        }
    }
}

/// An event, as a desk holds it.
fn pack(event: Event) -> Bytes {
    match event {
        Event::Done { id, value } => desk([0, id.into(), value, 0]),
        Event::Failed { id } => desk([1, id.into(), 0, 0]),
        Event::Immediate { from, immediate } => {
            desk([2, from.get().into(), u64::from(immediate), 0])
        }
    }
}

pub(crate) fn unpack(bytes: &Bytes) -> Event {
    let [kind, second, third, _] = numbers(bytes);
    match kind {
        0 => Event::Done {
            id: second as u32,
            value: third,
        },
        1 => Event::Failed { id: second as u32 },
        _ => Event::Immediate {
            from: Rank::new(second as u16),
            immediate: third as u32,
        },
    }
}

/// Number of the part that is an immediate.
const TELLS: u16 = u16::MAX;

/// A part of an operation, up to a line.
#[derive(Clone)]
struct Part {
    number: u16,
    /// Flat index, and how many bytes.
    at: u32,
    len: u8,
    does: Does,
}

#[derive(Clone)]
enum Does {
    Store(Bytes),
    Load {
        into: u32,
    },
    Change(Amo),
    /// The answer of an operation on a cell is on its way.
    Answer(u64),
}

/// An operation in flight.
struct Flight {
    /// How many its origin had posted before.
    serial: u32,
    id: u32,
    to: u16,
    parts: Vec<Part>,
    immediate: Option<u32>,
    /// The answer.
    value: u64,
}

/// A core's end.
#[derive(Default)]
struct End {
    open: bool,
    dropped: bool,
    staged: Vec<u8>,
    posted: u32,
    flights: Vec<Flight>,
    events: VecDeque<Event>,
}

impl End {
    fn immediates(&self) -> usize {
        let is = |event: &&Event| matches!(event, Event::Immediate { .. });
        self.events.iter().filter(is).count()
    }
}

/// The network.
pub(super) struct Network {
    wire: Wire,
    ends: Vec<End>,
    /// Operations in flight, of all.
    flights: usize,
}

impl Network {
    pub(super) fn new(wire: Wire, cores: usize) -> Self {
        Self {
            wire,
            ends: (0..cores).map(|_| End::default()).collect(),
            flights: 0,
        }
    }

    pub(super) fn reset(&mut self) {
        self.ends.fill_with(End::default);
        self.flights = 0;
    }

    /// Whether anything is in flight.
    pub(super) fn busy(&self) -> bool {
        self.flights > 0
    }

    fn end(&mut self, core: u16) -> &mut End {
        &mut self.ends[usize::from(core)]
    }

    /// The parts of `core`'s operations that can arrive next: operation, part.
    fn arrivals(&self, core: u16) -> impl Iterator<Item = (u32, u16)> {
        let flights = self.ends[usize::from(core)].flights.iter();
        flights.flat_map(move |flight| {
            let target = &self.ends[usize::from(flight.to)];
            let parts = if target.dropped {
                // It fails as a whole.
                vec![TELLS]
            } else if !target.open {
                Vec::new()
            } else if flight.parts.is_empty() {
                let room = target.immediates() < usize::from(self.wire.queue);
                vec![TELLS; room.into()]
            } else {
                flight.parts.iter().map(|part| part.number).collect()
            };
            parts.into_iter().map(|part| (flight.serial, part))
        })
    }
}

/// Flat index of the word that counts a core's events.
fn counter(shape: &Shape, core: u16) -> u32 {
    let at = Region::message_buffer(CoreId::new(core)).at(0);
    shape.flat(at, 4).expect("a network has message buffers")
}

impl Machine {
    /// The line of the word that counts a core's events.
    pub(crate) fn events_line(&self, core: u16) -> u32 {
        self.shape.split(counter(&self.shape, core)).0
    }

    /// Does what a core asks of its end.
    pub(super) fn request(
        &mut self,
        core: u16,
        at: u32,
        request: &Request,
        desk: &Cell<Bytes>,
    ) -> Outcome {
        let (line, byte) = self.shape.split(at);
        match *request {
            Request::Read { len } => {
                let mut bytes = [0; CHUNK];
                let (found, len) = (self.memory.line(line), usize::from(len));
                bytes[..len].copy_from_slice(&found[byte..byte + len]);
                desk.set(bytes);
                Outcome::shown(word(&bytes), Note::None)
            }
            Request::Write { len } => {
                self.place_bytes(core, at, len, &desk.get());
                Outcome::shown(word(&desk.get()), Note::None)
            }
            Request::Open => {
                self.progress = true;
                self.network().end(core).open = true;
                Outcome::new(self.count_of_events(core), Note::None)
            }
            Request::DropOut => {
                self.progress = true;
                self.network().end(core).dropped = true;
                Outcome::new(0, Note::None)
            }
            Request::Stage { len } => {
                let bytes = desk.get();
                let end = self.network().end(core);
                end.staged.extend_from_slice(&bytes[..usize::from(len)]);
                Outcome::new(0, Note::None)
            }
            Request::Post(posted) => self.post(core, at, posted, &desk.get()),
            Request::Poll => {
                let event = self.network().end(core).events.pop_front();
                let count = u64::from(self.count_of_events(core));
                desk.set(event.map_or([0; CHUNK], pack));
                let (value, note) = match event {
                    None => (0, Note::Nothing),
                    Some(Event::Done { id, .. }) => (id, Note::Done),
                    Some(Event::Failed { id }) => (id, Note::Fails),
                    Some(Event::Immediate { immediate, .. }) => (immediate, Note::Told),
                };
                Outcome {
                    reply: u64::from(event.is_some()) << 32 | count,
                    value,
                    note,
                }
            }
        }
    }

    fn network(&mut self) -> &mut Network {
        self.network.as_mut().expect("this chip is on no network")
    }

    /// How many events there have been at a core's end, and some garbage.
    fn count_of_events(&mut self, core: u16) -> u32 {
        let (line, byte) = self.shape.split(counter(&self.shape, core));
        super::memory::word(self.memory.line(line), byte / 4)
    }

    fn post(&mut self, core: u16, at: u32, posted: Posted, desk: &Bytes) -> Outcome {
        let shape = self.shape;
        let Posted { id, to, kind } = posted;
        let wanted = Wanted::unpack(kind, desk);
        let network = self.network();
        let sends = usize::from(network.wire.sends);
        let end = network.end(core);
        let staged = std::mem::take(&mut end.staged);
        let untaken = end.events.len() - end.immediates();
        if end.flights.len() + untaken >= sends {
            return Outcome {
                reply: 1,
                value: id,
                note: Note::Full,
            };
        }
        let own = |offset: u32| {
            let at = Region::memory(CoreId::new(core)).at(offset);
            shape.flat(at, wanted.len)
        };
        let parts = match (kind, wanted.amo) {
            (Kind::Put, _) => by_lines(&shape, [at, at], staged.len() as u32, |start, len| {
                let mut bytes = [0; CHUNK];
                bytes[..len].copy_from_slice(&staged[start..start + len]);
                Does::Store(bytes)
            }),
            (Kind::Get, _) => {
                let into = own(wanted.into).expect("a get brings its bytes to registered memory");
                by_lines(&shape, [at, into], wanted.len, |start, _| Does::Load {
                    into: into + start as u32,
                })
            }
            (Kind::Amo, amo) => {
                assert!(at.is_multiple_of(8), "a cell lies at a multiple of 8");
                let does = Does::Change(amo.unwrap_or(Amo::Read));
                let (number, len) = (0, 8);
                vec![Part {
                    number,
                    at,
                    len,
                    does,
                }]
            }
        };
        let end = network.end(core);
        let serial = end.posted;
        end.posted += 1;
        end.flights.push(Flight {
            serial,
            id,
            to,
            parts,
            immediate: wanted.immediate,
            value: 0,
        });
        network.flights += 1;
        Outcome {
            reply: 0,
            value: id,
            note: Note::None,
        }
    }

    /// Stores up to a line's bytes, those of a core or of the network on its behalf.
    fn place_bytes(&mut self, core: u16, at: u32, len: u8, bytes: &Bytes) {
        let (line, byte) = self.shape.split(at);
        let len = usize::from(len);
        let mut whole = [0; LINE_MAX];
        whole[byte..byte + len].copy_from_slice(&bytes[..len]);
        self.progress |= self.memory.line(line)[byte..byte + len] != bytes[..len];
        self.arrive(core, &plain(line, span(byte, len), whole));
    }

    /// Something happens at `core`'s end.
    fn tell(&mut self, core: u16, event: Event) {
        self.network().end(core).events.push_back(event);
        let count = self.count_of_events(core).wrapping_add(1);
        let (line, byte) = self.shape.split(counter(&self.shape, core));
        self.arrive(core, &super::uncached::word_parcel(line, byte, 4, count));
        self.progress |= matches!(event, Event::Immediate { .. });
    }

    /// Adds what can arrive of `core`'s operations.
    pub(super) fn network_options(&self, core: u16, options: &mut Vec<Transition>) {
        if let Some(network) = &self.network {
            let arrivals = network.arrivals(core);
            options.extend(arrivals.map(|(serial, part)| Transition::Deliver {
                core,
                serial,
                part,
            }));
        }
    }

    /// The lines that part `part` of an operation touches when it arrives: those it loads, and those it stores.
    pub(crate) fn delivery_touches(
        &self,
        core: u16,
        serial: u32,
        part: u16,
    ) -> (Vec<u32>, Vec<u32>) {
        let (mut loads, mut stores) = (Vec::new(), vec![self.events_line(core)]);
        let found = self.network.as_ref().and_then(|network| {
            let mut flights = network.ends[usize::from(core)].flights.iter();
            flights.find(|flight| flight.serial == serial)
        });
        if let Some(flight) = found {
            let mut parts = flight.parts.iter();
            match parts.find(|other| other.number == part) {
                None => stores.push(self.events_line(flight.to)),
                Some(Part { at, does, .. }) => {
                    let line = self.shape.split(*at).0;
                    match does {
                        Does::Load { .. } | Does::Answer(_) => loads.push(line),
                        Does::Store(_) | Does::Change(_) => stores.push(line),
                    }
                }
            }
        }
        (loads, stores)
    }

    /// Some part of some operation arrives, if any can.
    pub(super) fn deliver_some(&mut self, step: u64, trace: &mut Trace) -> bool {
        let Some(network) = self.network.as_ref().filter(|network| network.busy()) else {
            return false;
        };
        let cores = network.ends.len();
        let first = self.chance.below(cores);
        for core in (first..cores).chain(0..first) {
            let core = core as u16;
            let Some(network) = &self.network else {
                continue;
            };
            let all: Vec<_> = network.arrivals(core).collect();
            if !all.is_empty() {
                let (serial, part) = all[self.chance.below(all.len())];
                self.delivers(core, serial, part, step, trace);
                return true;
            }
        }
        false
    }

    /// Part `part` of operation `serial` of `core` arrives.
    pub(super) fn delivers(
        &mut self,
        core: u16,
        serial: u32,
        part: u16,
        step: u64,
        trace: &mut Trace,
    ) {
        let network = self.network();
        let mut flights = network.ends[usize::from(core)].flights.iter();
        let Some(index) = flights.position(|flight| flight.serial == serial) else {
            return;
        };
        let flight = &mut network.ends[usize::from(core)].flights[index];
        let (id, to) = (flight.id, flight.to);
        let mut record = |verb, at, value| trace.record(own_account(step, core, verb, at, value));
        if self.network().end(to).dropped {
            record(Verb::Fails, to.into(), id);
            self.end_flight(core, index);
            return self.tell(core, Event::Failed { id });
        }
        let flight = &mut self.network().end(core).flights[index];
        let place = flight.parts.iter().position(|other| other.number == part);
        if let Some(place) = place {
            let Part { at, len, does, .. } = flight.parts[place].clone();
            match does {
                Does::Store(bytes) => {
                    flight.parts.remove(place);
                    record(Verb::Deliver, at, word(&bytes));
                    self.place_bytes(core, at, len, &bytes);
                }
                Does::Load { into } => {
                    let (line, byte) = self.shape.split(at);
                    let mut bytes = [0; CHUNK];
                    let len = usize::from(len);
                    bytes[..len].copy_from_slice(&self.memory.line(line)[byte..byte + len]);
                    record(Verb::Fetch, at, word(&bytes));
                    let part = &mut self.network().end(core).flights[index].parts[place];
                    (part.at, part.does) = (into, Does::Store(bytes));
                }
                Does::Change(amo) => {
                    let (line, byte) = self.shape.split(at);
                    let mut cell = [0; 8];
                    cell.copy_from_slice(&self.memory.line(line)[byte..byte + 8]);
                    let old = u64::from_le_bytes(cell);
                    record(Verb::Change, at, old as u32);
                    let new = amo.apply(old);
                    if new != old {
                        self.place_bytes(core, at, 8, &desk([new, 0, 0, 0]));
                    }
                    let part = &mut self.network().end(core).flights[index].parts[place];
                    part.does = Does::Answer(old);
                }
                Does::Answer(value) => {
                    flight.parts.remove(place);
                    flight.value = value;
                    record(Verb::Answer, at, value as u32);
                }
            }
        } else if let Some(immediate) = flight.immediate.take() {
            record(Verb::Tell, to.into(), immediate);
            let from = Rank::new(core);
            self.tell(to, Event::Immediate { from, immediate });
        }
        let flight = &self.network().end(core).flights[index];
        if flight.parts.is_empty() && flight.immediate.is_none() {
            let value = flight.value;
            self.end_flight(core, index);
            self.tell(core, Event::Done { id, value });
        }
    }

    fn end_flight(&mut self, core: u16, index: usize) {
        let network = self.network();
        network.end(core).flights.remove(index);
        network.flights -= 1;
    }

    /// The network's state.
    pub(super) fn digest_network(&self, digest: &mut Digest) {
        let Some(network) = &self.network else { return };
        for end in &network.ends {
            digest.add(u64::from(end.open) << 1 | u64::from(end.dropped));
            digest.bytes(&end.staged);
            digest.add(u64::from(end.posted) << 32 | end.events.len() as u64);
            for event in &end.events {
                digest.bytes(&pack(*event));
            }
            for flight in &end.flights {
                digest.add(u64::from(flight.serial) << 32 | u64::from(flight.id));
                digest.add(u64::from(flight.to) << 32 | flight.parts.len() as u64);
                digest.add(flight.immediate.map_or(u64::MAX, u64::from));
                digest.add(flight.value);
                for part in &flight.parts {
                    digest.add(
                        u64::from(part.at) << 32
                            | u64::from(part.number) << 8
                            | u64::from(part.len),
                    );
                    match &part.does {
                        Does::Store(bytes) => digest.bytes(bytes),
                        Does::Load { into } => digest.add(u64::from(*into) << 1),
                        Does::Change(amo) => {
                            let amo = Some(*amo);
                            digest.bytes(
                                &Wanted {
                                    amo,
                                    ..Wanted::default()
                                }
                                .pack(),
                            );
                        }
                        Does::Answer(value) => digest.add(*value),
                    }
                }
            }
        }
    }
}

/// The parts of `len` bytes that are at two places: none crosses a line there, or has more than a desk has room for.
fn by_lines(
    shape: &Shape,
    at: [u32; 2],
    len: u32,
    does: impl Fn(usize, usize) -> Does,
) -> Vec<Part> {
    let room = shape.line().min(CHUNK as u32);
    let mut parts = Vec::new();
    let mut done = 0;
    while done < len {
        let left = at.map(|at| room - (at + done) % room);
        let piece = left[0].min(left[1]).min(len - done);
        parts.push(Part {
            number: parts.len() as u16,
            at: at[0] + done,
            len: piece as u8,
            does: does(done as usize, piece as usize),
        });
        done += piece;
    }
    parts
}

/// The first word, for a timeline.
fn word(bytes: &Bytes) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
