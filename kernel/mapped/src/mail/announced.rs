//! Mail as one word: the data are in their place before the word announces them.
//!
//! This is the plain way, for rings that all ranks share, and for machines that keep their caches
//! in step but have no atomic operations. An entry is its first word: the immediate, and
//! the phase of the lap as its top bit.
//!
//! # Invariants
//! I1. Only the holder of ticket `t` writes entry `t`, and only while `t - head` is less than the
//!     number of entries. A pair's ring has one holder. A shared ring's tickets are given out under
//!     the owner's lock, or by an atomic operation.
//! I2. `head` never goes back, so a producer's older view errs on the safe side.
//!
//! # Steps
//! | call | core | memory actions, in order |
//! |---|---|---|
//! | `put_immediate` | producer | shared: lock(owner), acquire; load tail (and head); store tail; |
//! | | | drain; unlock. Store the data; drain; store the entry |
//! | `progress` | owner | load the next entry; acquire; store head |
//!
//! # Source
//! The notification ring of Barrelfish on the SCC (claim under the receiver's test-and-set
//! register).

use core::cell::Cell;

use flagpost_hal::{Address, Machine, Region};
use flagpost_link::{Amo, Link as _, Rank, Refusal, order, point, site};

use super::{
    line::{announcing, immediate, phase},
    peer::{Peer, surely_has_room},
};
use crate::{Atomics, Mapped, words::atomics::ATTEMPTS};

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// Puts `data` in their place at `to`, and announces `number` behind them.
    pub(super) fn send_word(
        &self,
        to: Rank,
        (place, data): (u32, &[u8]),
        number: u32,
    ) -> Result<(), Refusal> {
        let rings = self.rings_of(to)?;
        let ticket = order!(
            "mapped.announced.claim<data",
            self.claim(to)?,
            self.put_before(to, place, data)
        );
        let at = self.entry(rings, self.ring_number(self.rank()), ticket);
        order!(
            "mapped.announced.drain<entry",
            self.drain_before_entry(),
            self.machine
                .store_u32(at, announcing(number, phase(self.lap(ticket))))
        );
        Ok(())
    }

    /// Stores data in their place, before the entry that announces them.
    #[inline]
    pub(super) fn put_before(&self, to: Rank, place: u32, data: &[u8]) {
        if let (false, Ok(region)) = (data.is_empty(), self.region_of(to)) {
            self.machine.store_bytes(region.at(place), data);
            self.stored();
        }
    }

    /// Before an entry that is stored after its data.
    #[inline]
    pub(super) fn drain_before_entry(&self) {
        if M::COHERENT || self.unordered.take() {
            // DRAIN: what was put, or read, before the entry that announces it.
            point!("mapped.announced.drain", self.machine.drain());
        }
    }

    /// Takes the next notification of ring `number`, if there is one.
    pub(super) fn take_word(&self, rings: Region, number: u32, taken: &Cell<u32>) -> Option<u32> {
        let ticket = taken.get();
        let at = self.entry(rings, number, ticket);
        let first = self.look_first(at, phase(self.lap(ticket)))?;
        let next = ticket.wrapping_add(1);
        taken.set(next);
        // No drain is needed: the entry was loaded before.
        self.machine.store_u32(self.head(rings, number), next);
        Some(immediate(first))
    }

    // ---- Tickets ----

    /// Takes a ticket of the ring at `to` that this rank fills, of one entry.
    #[inline]
    pub(super) fn claim(&self, to: Rank) -> Result<u32, Refusal> {
        if let (true, Some(peer)) = (self.layout.ring.of_pairs(), self.peer(to)) {
            let ticket = peer.sent.get();
            if self.is_full(ticket, peer.credit.get()) {
                self.look_for_room(to, peer, ticket)?;
            }
            peer.sent.set(ticket.wrapping_add(1));
            return Ok(ticket);
        }
        self.claim_of_many(to)
    }

    /// Looks whether a pair's ring has room for `ticket`.
    #[inline(never)]
    fn look_for_room(&self, to: Rank, peer: &Peer, ticket: u32) -> Result<(), Refusal> {
        let head = self.head(self.rings_of(to)?, self.ring_number(self.rank()));
        let taken = self.machine.load_u32(head);
        if let Some(facing) = self.facing(to) {
            // What was heard before is never so old that numbers have come round to it.
            facing.answered.set(taken);
        }
        peer.credit.set(taken);
        // ROOM: I1.
        if point!("mapped.announced.pair.room", self.is_full(ticket, taken); else false) {
            self.polled.note(head, taken);
            return Err(Refusal::Full(to));
        }
        Ok(())
    }

    /// Takes a ticket of a shared ring.
    #[inline(never)]
    fn claim_of_many(&self, to: Rank) -> Result<u32, Refusal> {
        let rings = self.rings_of(to)?;
        let head = self.head(rings, 0);
        let peer = self.peer(to);
        let known = |peer: &&Peer| peer.known.get() == Some(to);
        let credit = peer.filter(known).map(|peer| peer.credit.get());
        let entries = self.layout.ring.entries();
        let room = |ticket: u32| match credit {
            Some(credit) if surely_has_room(ticket, credit, entries) => Ok(()),
            _ => {
                let taken = self.machine.load_u32(head);
                if let Some(peer) = peer {
                    peer.known.set(Some(to));
                    peer.credit.set(taken);
                }
                // ROOM: I1.
                let none = self.is_full(ticket, taken);
                if point!("mapped.announced.claim.room", none; else false) {
                    self.polled.note(head, taken);
                    return Err(Refusal::Full(to));
                }
                Ok(())
            }
        };
        self.claim_shared(to, rings.at(self.layout.tail), room)
    }

    /// Takes a ticket that others may want as well, if there is `room` for it.
    fn claim_shared(
        &self,
        to: Rank,
        tail: Address,
        room: impl Fn(u32) -> Result<(), Refusal>,
    ) -> Result<u32, Refusal> {
        if A::NATIVE {
            for _ in 0..ATTEMPTS {
                let old = self.machine.load_u32(tail);
                room(old)?;
                let (expected, new) = (old, old.wrapping_add(1));
                let swap = Amo::CompareSwap { expected, new };
                if A::atomic(&self.machine, tail, swap) == Some(old) {
                    return Ok(old);
                }
            }
            self.polled.note_unknown();
            // Others were quicker each time.
            return Err(Refusal::Locked(to));
        }
        let held = self.lock(to, site!("mapped.announced.claim.lock"))?;
        let ticket = self.machine.load_u32(tail);
        if let Err(refusal) = room(ticket) {
            drop(held);
            return Err(refusal);
        }
        self.machine.store_u32(tail, ticket.wrapping_add(1));
        self.unlock(held, site!("mapped.announced.claim.drain"));
        Ok(ticket)
    }
}
