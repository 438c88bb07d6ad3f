//! The ring of immediates: many producers, one consumer, one line per entry.
//!
//! # Guarantee
//! G1. Who takes an entry finds its data, and its producer's earlier puts to this rank, in memory.
//! G2. Entries are taken in the order of their tickets; those of one producer are in program order.
//! G3. No entry is lost or overwritten: a full ring refuses the producer, who has changed nothing.
//!
//! # Memory layout (an entry; one line, at least 32 bytes)
//! ```text
//!   0          4          8                                               L
//!   ┌──────────┬──────────┬──────────────────────────────── ─ ─ ──────────┐
//!   │ sequence │ immediate│ unused                                        │
//!   └──────────┴──────────┴──────────────────────────────── ─ ─ ──────────┘
//! ```
//! With n entries, entry `t % n` with sequence `t + 1` holds ticket `t`; any other sequence means: not yet. Tickets start
//! just below the wrap-around of `u32`, so that every run passes it. The data themselves are in the
//! target's memory before their entry is.
//!
//! # Invariants
//! I1. `tail` is changed only under the owner's lock; `head` only by the owner; `tail - head <= n`.
//! I2. Between claiming ticket `t` and writing its sequence, only the claimer writes entry `t % n`.
//! I3. The sequence is written last, alone, in one word: it can be polled, however the rest arrives.
//!
//! # Steps
//! | call            | core     | memory actions, in order                                       |
//! |-----------------|----------|----------------------------------------------------------------|
//! | `put_immediate` | producer | lock(owner), acquire; load tail, head; store tail; drain;       |
//! |                 |          | unlock; bulk store of the data; store immediate; drain; store  |
//! |                 |          | sequence                                                       |
//! | `progress`      | owner    | load sequence of entry `head`: not `head + 1`: nothing there.  |
//! |                 |          | Else acquire; load immediate; drain; store head                |
//!
//! Remote accesses of a put_immediate, beside the data: 1 lock, 2 loads, 3 stores, 1 unlock. An idle
//! `progress`: one load of own memory.
//!
//! # Bounds
//! 64 entries per rank, or as many as [`Mapped::start_with_ring`] was told. A slow consumer makes its producers wait, never lose.
//!
//! # Source
//! [NA] IV-C (ring of line-sized entries; its inline payload is not here yet: docs/decisions.md, 12) and the notification ring of Barrelfish
//! on the SCC (claim under the receiver's test-and-set register). We differ from both: the sequence
//! word replaces a shared write position that the consumer would have to poll under the lock.
//!
//! [NA]: crate#sources

use flagpost_hal::{Lines, Machine};
use flagpost_link::{Rank, Refusal, order, point, site};

use crate::{Atomics, Mapped, layout::entry_size};

/// The first ticket: 16 before the numbers wrap around.
const FIRST: u32 = 0_u32.wrapping_sub(16);

/// Offset of the immediate in its entry.
const IMMEDIATE: u32 = 4;

impl<M: Machine, A: Atomics<M>> Mapped<M, A> {
    const ENTRY: u32 = entry_size(M::LINE as u32);

    fn entry(&self, ticket: u32) -> u32 {
        let index = ticket & self.layout.ring.wrapping_sub(1);
        self.layout
            .entries
            .saturating_add(index.saturating_mul(Self::ENTRY))
    }

    /// Empties own ring, before any peer may use it.
    pub(crate) fn clear_ring(&self) {
        let layout = self.layout;
        self.machine.store_u32(self.own(layout.tail), FIRST);
        self.machine.store_u32(self.own(layout.head), FIRST);
        self.head.set(FIRST);
        for ticket in 0..layout.ring {
            // No ticket of the first round has this sequence: they go from FIRST + 1 upwards.
            self.machine.store_u32(self.own(self.entry(ticket)), FIRST);
        }
    }

    /// Takes a ticket of `to`'s ring.
    fn claim(&self, to: Rank) -> Result<u32, Refusal> {
        let region = self.region_of(to)?;
        let (tail, head) = (region.at(self.layout.tail), region.at(self.layout.head));
        let held = self.lock(to, site!("mapped.ring.claim.lock"))?;
        let ticket = self.machine.load_u32(tail);
        let consumed = self.machine.load_u32(head);
        let full = ticket.wrapping_sub(consumed) >= self.layout.ring;
        if point!("mapped.ring.claim.room", full; else false) {
            drop(held);
            self.polled.note(head, consumed);
            return Err(Refusal::Full(to));
        }
        self.machine.store_u32(tail, ticket.wrapping_add(1));
        self.unlock(held, site!("mapped.ring.claim.drain"));
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
        let ticket = order!(
            "mapped.ring.append.claim<data",
            self.claim(to)?,
            self.machine.store_bytes(region.at(place), data)
        );
        let entry = region.at(self.entry(ticket));
        order!(
            "mapped.ring.append.immediate<sequence",
            self.machine.store_u32(entry.plus(IMMEDIATE), immediate),
            {
                // DRAIN: G1, I3: data and entry before the sequence that announces them.
                point!("mapped.ring.append.drain", self.machine.drain());
                self.machine.store_u32(entry, ticket.wrapping_add(1));
            }
        );
        Ok(())
    }

    pub(crate) fn take(&self) -> Option<u32> {
        let ticket = self.head.get();
        let entry = self.own(self.entry(ticket));
        let next = ticket.wrapping_add(1);
        // ACQUIRE: G1: immediate and data must not be loaded earlier than the sequence.
        let sites = [
            site!("mapped.ring.take.poll<acquire"),
            site!("mapped.ring.take.acquire"),
        ];
        if self.poll_for(entry, |sequence| sequence == next, sites) != next {
            return None;
        }
        let immediate = order!(
            "mapped.ring.take.read<head",
            self.machine.load_u32(entry.plus(IMMEDIATE)),
            {
                // DRAIN: G3: the entry is read before a producer may use it again.
                point!("mapped.ring.take.drain", self.machine.drain());
                self.machine.store_u32(self.own(self.layout.head), next);
            }
        );
        self.head.set(next);
        Some(immediate)
    }

    /// The lines that hold these bytes of own memory.
    pub(crate) fn lines(&self, offset: u32, bytes: u32) -> Lines {
        Lines::covering::<M>(self.own(offset), bytes)
    }
}
