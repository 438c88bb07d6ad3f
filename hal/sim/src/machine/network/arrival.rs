//! What is in flight arrives, one part after the other.

use flagpost_hal::CoreId;
use flagpost_hal::fabric::Event;

use super::super::{Machine, own_account};
use super::asked::{Wanted, desk, pack};
use super::flights::{Does, Part};
use super::word;
use crate::choices::Transition;
use crate::digest::Digest;
use crate::op::CHUNK;
use crate::trace::{Trace, Verb};

impl Machine {
    /// Adds what can arrive of `core`'s operations.
    pub(in crate::machine) fn network_options(&self, core: u16, options: &mut Vec<Transition>) {
        if let Some(network) = &self.network {
            let arrivals = network.arrivals(core);
            options.extend(arrivals.map(|(serial, part)| Transition::Deliver {
                core,
                serial,
                part,
            }));
        }
    }

    /// Some part of some operation arrives, if any can.
    pub(in crate::machine) fn deliver_some(&mut self, step: u64, trace: &mut Trace) -> bool {
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
    pub(in crate::machine) fn delivers(
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
            return self.end_flight(core, index, Event::Failed { id });
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
            let from = CoreId::new(core);
            self.tell(to, Event::Immediate { from, immediate });
        }
        let flight = &self.network().end(core).flights[index];
        if flight.parts.is_empty() && flight.immediate.is_none() {
            let value = flight.value;
            self.end_flight(core, index, Event::Done { id, value });
        }
    }

    /// An operation has come to its end.
    fn end_flight(&mut self, core: u16, index: usize, event: Event) {
        let network = self.network();
        let flight = network.end(core).flights.remove(index);
        network.flights -= 1;
        if flight.confirmed {
            self.tell(core, event);
        }
    }

    /// The network's state.
    pub(in crate::machine) fn digest_network(&self, digest: &mut Digest) {
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
                digest.add(u64::from(flight.ordered) << 1 | u64::from(flight.confirmed));
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
