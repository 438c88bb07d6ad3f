//! The network: what is in flight, and how it arrives.
//!
//! # Life of an operation
//! ```text
//!   post ──► parts, one per line ──► arrive, in any order ──► the immediate ──► completion
//!                                      put:  stored                              at the origin
//!                                      get:  loaded there, then stored here
//!                                      cell: changed there, then its value comes here
//! ```
//! Each arrow into memory or a queue is an event of its own, on the network's account. A completion
//! queue is a list of what has happened at an end, and one word, at the start of the core's message
//! buffer, that counts it: cores that wait watch that word.
//!
//! # Invariants
//! I1. Operations in flight whose origin will be told, and completions that were not taken, are
//!     together at most [`Wire::sends`]; so there is always room for a completion.
//! I2. The immediates in a queue are at most [`Wire::queue`]: one more does not arrive.

mod arrival;
pub(crate) mod asked;
pub(super) mod flights;

use std::cell::Cell;

use flagpost_hal::fabric::Event;
use flagpost_hal::{Amo, CoreId, Region};

use super::memory::{plain, word_parcel};
use super::{Machine, Outcome};
use crate::mask::{self, LINE_MAX, span};
use crate::op::{Bytes, CHUNK, PostKind, Posted, Request};
use crate::shape::Shape;
use crate::trace::Note;
use asked::{Wanted, pack};
use flights::{Does, Flight, Network, Part};

/// Flat index of the word that counts a core's events.
fn counter(shape: &Shape, core: u16) -> u32 {
    let at = Region::message_buffer(CoreId::new(core)).at(0);
    shape.flat(at, 4).expect("a network has message buffers")
}

impl Machine {
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
        mask::word(self.memory.line(line), byte / 4)
    }

    fn post(&mut self, core: u16, at: u32, posted: Posted, desk: &Bytes) -> Outcome {
        let shape = self.shape;
        let Posted { id, to, kind } = posted;
        let wanted = Wanted::unpack(kind, desk);
        let network = self.network();
        let (sends, ordered) = (usize::from(network.wire.sends), network.wire.ordered);
        let end = network.end(core);
        let staged = std::mem::take(&mut end.staged);
        if end.unfinished() >= sends {
            return Outcome {
                reply: 1,
                value: id,
                note: Note::Full,
            };
        }
        let own = |offset: u32| {
            let at = Region::memory(CoreId::new(core)).at(offset as usize);
            shape.flat(at, wanted.len as usize)
        };
        let parts = match (kind, wanted.amo) {
            (PostKind::Put, _) => by_lines(&shape, [at, at], staged.len() as u32, |start, len| {
                let mut bytes = [0; CHUNK];
                bytes[..len].copy_from_slice(&staged[start..start + len]);
                Does::Store(bytes)
            }),
            (PostKind::Get, _) => {
                let into = own(wanted.into).expect("a get brings its bytes to registered memory");
                by_lines(&shape, [at, into], wanted.len, |start, _| Does::Load {
                    into: into + start as u32,
                })
            }
            (PostKind::Amo, amo) => {
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
            ordered: ordered && kind == PostKind::Put,
            confirmed: !ordered || kind != PostKind::Put || wanted.confirmed,
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
        self.arrive(core, &word_parcel(line, byte, 4, count));
        self.progress |= matches!(event, Event::Immediate { .. });
    }
}

/// The parts of `len` bytes that are at two places: none crosses a line there, or has more than a
/// desk has room for.
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
