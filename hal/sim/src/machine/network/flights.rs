//! What is in flight, and the ends of the network: as plain data.

use std::collections::VecDeque;

use flagpost_hal::Amo;
use flagpost_hal::fabric::Event;

use crate::op::Bytes;
use crate::wire::Wire;

/// Number of the part that is an immediate.
pub(super) const TELLS: u16 = u16::MAX;

/// A part of an operation, up to a line.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) number: u16,
    /// Flat index, and how many bytes.
    pub(super) at: u32,
    pub(super) len: u8,
    pub(super) does: Does,
}

#[derive(Clone)]
pub(super) enum Does {
    Store(Bytes),
    Load {
        into: u32,
    },
    Change(Amo),
    /// The answer of an operation on a cell is on its way.
    Answer(u64),
}

/// An operation in flight.
#[derive(Clone)]
pub(super) struct Flight {
    /// How many its origin had posted before.
    pub(super) serial: u32,
    pub(super) id: u32,
    pub(super) to: u16,
    pub(super) parts: Vec<Part>,
    pub(super) immediate: Option<u32>,
    /// It is a put on an ordered network: later ones to its target wait for it, if they have an
    /// immediate or are confirmed.
    pub(super) ordered: bool,
    /// Its origin is told of its end.
    pub(super) confirmed: bool,
    /// The answer.
    pub(super) value: u64,
}

/// A core's end.
#[derive(Clone, Default)]
pub(super) struct End {
    pub(super) open: bool,
    pub(super) dropped: bool,
    pub(super) staged: Vec<u8>,
    pub(super) posted: u32,
    pub(super) flights: Vec<Flight>,
    pub(super) events: VecDeque<Event>,
}

impl End {
    pub(super) fn immediates(&self) -> usize {
        let is = |event: &&Event| matches!(event, Event::Immediate { .. });
        self.events.iter().filter(is).count()
    }

    /// Operations whose origin is still to be told, or has not taken what it was told.
    pub(super) fn unfinished(&self) -> usize {
        let confirmed = self.flights.iter().filter(|flight| flight.confirmed);
        confirmed.count() + self.events.len() - self.immediates()
    }

    /// Whether puts that were posted before must arrive first: it has an immediate, or confirms
    /// them.
    fn waits(&self, flight: &Flight) -> bool {
        let mut before = self.flights.iter();
        flight.ordered
            && (flight.immediate.is_some() || flight.confirmed)
            && before
                .any(|other| other.ordered && other.to == flight.to && other.serial < flight.serial)
    }
}

/// The network.
#[derive(Clone)]
pub(in crate::machine) struct Network {
    pub(super) wire: Wire,
    pub(super) ends: Vec<End>,
    /// Operations in flight, of all.
    pub(super) flights: usize,
}

impl Network {
    pub(in crate::machine) fn new(wire: Wire, cores: usize) -> Self {
        Self {
            wire,
            ends: (0..cores).map(|_| End::default()).collect(),
            flights: 0,
        }
    }

    pub(in crate::machine) fn reset(&mut self) {
        self.ends.fill_with(End::default);
        self.flights = 0;
    }

    /// Whether anything is in flight.
    pub(in crate::machine) fn busy(&self) -> bool {
        self.flights > 0
    }

    pub(super) fn end(&mut self, core: u16) -> &mut End {
        &mut self.ends[usize::from(core)]
    }

    /// The parts of `core`'s operations that can arrive next: operation, part.
    pub(super) fn arrivals(&self, core: u16) -> impl Iterator<Item = (u32, u16)> {
        let end = &self.ends[usize::from(core)];
        end.flights.iter().flat_map(move |flight| {
            let target = &self.ends[usize::from(flight.to)];
            let parts = if target.dropped {
                // It fails as a whole.
                vec![TELLS]
            } else if !target.open || end.waits(flight) {
                Vec::new()
            } else if flight.parts.is_empty() {
                let full = target.immediates() >= usize::from(self.wire.queue);
                let room = flight.immediate.is_none() || !full;
                vec![TELLS; room.into()]
            } else {
                flight.parts.iter().map(|part| part.number).collect()
            };
            parts.into_iter().map(|part| (flight.serial, part))
        })
    }
}
