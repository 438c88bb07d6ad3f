//! The ring of immediates: many producers, one consumer, one line per entry.
//!
//! # Guarantee
//! G1. Who takes an entry finds its data, and its producer's earlier puts to this rank, in memory.
//! G2. Entries are taken in the order of their tickets; those of one producer are in program order.
//! G3. No entry is lost or overwritten: a full ring refuses the producer, who has changed nothing.
//!
//! # Memory layout (an entry; one line, at least 32 bytes)
//! ```text
//!   0          4          8          12         16                        L
//!   ┌──────────┬──────────┬──────────┬──────────┬──────────── ─ ─ ────────┐
//!   │ sequence │ immediate│ place    │ length   │ payload, up to L - 16   │
//!   └──────────┴──────────┴──────────┴──────────┴──────────── ─ ─ ────────┘
//! ```
//! `place` is the region offset where the payload belongs; longer data travel by themselves and leave
//! `length` 0. Entry `t % 64` with sequence `t + 1` holds ticket `t`; any other sequence means: not yet.
//! Tickets start just below the wrap-around of `u32`, so that every run passes it.
//!
//! # Invariants
//! I1. `tail` is changed only under the owner's lock; `head` only by the owner; `tail - head <= 64`.
//! I2. Between claiming ticket `t` and writing its sequence, only the claimer writes entry `t % 64`.
//! I3. The sequence is written last, alone, in one word: it can be polled, however the rest arrives.
//!
//! # Steps
//! | call            | core     | memory actions, in order                                       |
//! |-----------------|----------|----------------------------------------------------------------|
//! | `put_immediate` | producer | lock(owner), acquire; load tail, head; store tail; drain;      |
//! |                 |          | unlock; [long data: bulk store]; bulk store of the entry;      |
//! |                 |          | drain; store sequence                                          |
//! | `progress`      | owner    | load sequence of entry `head`: not `head + 1`: nothing there.  |
//! |                 |          | Else acquire; bulk load; [bulk store of the payload]; drain;   |
//! |                 |          | store head                                                     |
//!
//! Remote accesses of a small put_immediate: 1 lock, 2 loads, 1 store, 1 unlock, 1 line, 1 word. An idle
//! `progress`: one load of own memory.
//!
//! # Bounds
//! 64 entries per rank. A slow consumer makes its producers wait, never lose.
//!
//! # Source
//! [NA] IV-C (ring of line-sized entries with inline payload) and the notification ring of Barrelfish
//! on the SCC (claim under the receiver's test-and-set register). We differ from both: the sequence
//! word replaces a shared write position that the consumer would have to poll under the lock.
//!
//! [NA]: crate#sources

use flagpost_hal::{Lines, Machine};
use flagpost_link::{Rank, Refusal};

use crate::{
    Mapped,
    layout::{ENTRIES, entry_size},
};

/// The first ticket: 16 before the numbers wrap around.
const FIRST: u32 = 0_u32.wrapping_sub(16);

/// Offsets in an entry.
const BODY: u32 = 4;
const PAYLOAD: usize = 16;

/// The longest entry of any machine.
const LONGEST: usize = 256;

impl<M: Machine> Mapped<M> {
    const ENTRY: u32 = entry_size(M::LINE as u32);

    /// Data of up to this many bytes travel in their ring entry.
    pub(crate) const INLINE: usize = (Self::ENTRY as usize).saturating_sub(PAYLOAD);

    fn entry(ticket: u32) -> u32 {
        let index = ticket & ENTRIES.wrapping_sub(1);
        Self::LAYOUT
            .entries
            .saturating_add(index.saturating_mul(Self::ENTRY))
    }

    /// Empties own ring, before any peer may use it.
    pub(crate) fn clear_ring(&self) {
        let layout = Self::LAYOUT;
        self.machine.store_u32(self.own(layout.tail), FIRST);
        self.machine.store_u32(self.own(layout.head), FIRST);
        self.head.set(FIRST);
        for ticket in 0..ENTRIES {
            // No ticket of the first round has this sequence: they go from FIRST + 1 upwards.
            self.machine.store_u32(self.own(Self::entry(ticket)), FIRST);
        }
    }

    /// Takes a ticket of `to`'s ring.
    fn claim(&self, to: Rank) -> Result<u32, Refusal> {
        let region = self.region_of(to)?;
        let (tail, head) = (region.at(Self::LAYOUT.tail), region.at(Self::LAYOUT.head));
        let held = self.lock(to)?;
        let ticket = self.machine.load_u32(tail);
        let consumed = self.machine.load_u32(head);
        if ticket.wrapping_sub(consumed) >= ENTRIES {
            drop(held);
            self.polled.note(head, consumed);
            return Err(Refusal::Full(to));
        }
        self.machine.store_u32(tail, ticket.wrapping_add(1));
        self.unlock(held);
        Ok(ticket)
    }

    pub(crate) fn append(
        &self,
        to: Rank,
        place: u32,
        data: &[u8],
        immediate: u32,
    ) -> Result<(), Refusal> {
        let region = self.region_of(to)?;
        // The claim comes first: refused, it must not have moved a byte of the data.
        let ticket = self.claim(to)?;
        let entry = region.at(Self::entry(ticket));

        let inline = data.len() <= Self::INLINE;
        let mut body = [0_u8; LONGEST];
        let payload = if inline { data } else { &[] };
        let length = payload.len() as u32;
        let mut end = 0_usize;
        for bytes in [
            &immediate.to_le_bytes()[..],
            &place.to_le_bytes()[..],
            &length.to_le_bytes()[..],
            payload,
        ] {
            let start = end;
            end = start.saturating_add(bytes.len());
            if let Some(part) = body.get_mut(start..end) {
                part.copy_from_slice(bytes);
            }
        }
        if !inline {
            self.machine.store_bytes(region.at(place), data);
        }
        self.machine
            .store_bytes(entry.plus(BODY), body.get(..end).unwrap_or(&[]));
        // DRAIN: G1, I3: data and entry before the sequence that announces them.
        self.machine.drain();
        self.machine.store_u32(entry, ticket.wrapping_add(1));
        Ok(())
    }

    pub(crate) fn take(&self) -> Option<u32> {
        let ticket = self.head.get();
        let entry = self.own(Self::entry(ticket));
        let next = ticket.wrapping_add(1);
        if self.poll(entry) != next {
            return None;
        }
        // ACQUIRE: G1: entry and data must not be loaded earlier than the sequence.
        self.machine.acquire();
        let mut body = [0_u8; LONGEST];
        let size = (Self::ENTRY as usize).saturating_sub(BODY as usize);
        if let Some(body) = body.get_mut(..size) {
            self.machine.load_bytes(entry.plus(BODY), body);
        }
        let word = |index: usize| {
            let start = index.saturating_mul(4);
            body.get(start..start.saturating_add(4))
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u32::from_le_bytes)
        };
        let (immediate, place, length) = (word(0), word(1), word(2));
        self.place(place, length, body.get(12..).unwrap_or(&[]));
        // DRAIN: the entry is read and its payload placed before a producer may use it again (G3), and
        // before anything that this rank tells others about the payload.
        self.machine.drain();
        self.machine.store_u32(self.own(Self::LAYOUT.head), next);
        self.head.set(next);
        Some(immediate)
    }

    /// Stores an entry's payload where it belongs: past the cache, as if its producer had put it there, so
    /// that the owner's cached copy is treated the same in both cases.
    fn place(&self, place: u32, length: u32, payload: &[u8]) {
        let Some(payload) = payload.get(..length as usize) else {
            return; // No producer of ours writes such a length.
        };
        if payload.is_empty() || self.check(place, payload.len()).is_err() {
            return; // Never write outside of the region, whatever a peer has written here.
        }
        self.machine.store_bytes(self.own(place), payload);
    }

    /// The lines that hold these bytes of own memory.
    pub(crate) fn lines(&self, offset: u32, bytes: u32) -> Lines {
        Lines::covering::<M>(self.own(offset), bytes)
    }
}
