//! A ring that all ranks share: the data are in their place before a word announces them.
//!
//! This is the plain way, which needs no more than loads, stores and a lock. An entry is its first
//! word: the immediate, and the phase of the lap as its top bit.
//!
//! # Invariants
//! I1. Only the holder of ticket `t` writes entry `t`, and only while `t - head` is less than the
//!     number of entries. Tickets are given out under the owner's lock, or by an atomic operation.
//! I2. `head` never goes back, so a producer's older view errs on the safe side.
//!
//! # Steps
//! | call | core | memory actions, in order |
//! |---|---|---|
//! | `put_immediate` | producer | lock(owner), acquire; load tail (and head); store tail; drain; |
//! | | | unlock. Store the data; drain; store the entry |
//! | `progress` | owner | load the next entry; acquire; store head |
//!
//! # Source
//! The notification ring of Barrelfish on the SCC (claim under the receiver's test-and-set
//! register).

use core::cell::Cell;

use flagpost_hal::{Address, Coherence as _, Machine, UncachedMemory as _};
use flagpost_link::{Amo, Arrival, Rank, Refusal};

use crate::{
    Atomics, Base, Mail,
    flight::surely_has_room,
    phase::{announcing, immediate, is_of},
    ring::FIRST,
    words::change::ATTEMPTS,
};

/// The shared rings as a rank remembers them: its own, and those of up to `PEERS` others.
#[derive(Debug)]
pub struct Announced<const PEERS: usize> {
    /// The next ticket to take of this rank's ring.
    taken: Cell<u32>,
    /// A peer, and how far it was known to have taken its ring. Several ranks share a place.
    credit: [Cell<(Option<Rank>, u32)>; PEERS],
}

impl<const PEERS: usize> Announced<PEERS> {
    /// Nothing was sent.
    pub const fn nothing() -> Self {
        Self {
            taken: Cell::new(FIRST),
            credit: [const { Cell::new((None, FIRST)) }; PEERS],
        }
    }

    /// Puts `data` in their place at `to`, and announces `number` after them, in an entry of
    /// `bytes` bytes.
    ///
    /// # Errors
    /// [`Refusal::Full`], [`Refusal::Locked`].
    #[inline(never)]
    pub fn send<W: Mail>(
        &self,
        mail: &W,
        to: Rank,
        (place, data): (usize, &[u8]),
        number: u32,
        bytes: u32,
    ) -> Result<(), Refusal> {
        let base = mail.base();
        let rings = base.rings_of(to)?;
        let (ticket, ()) = order!("refused, nothing has moved": "loadstore.announced.claim<data",
            self.claim(base, to)?, put_before(mail, to, place, data));
        let at = base.layout.entry(rings, 0, ticket, bytes);
        order!("data are in memory before the entry for them": "loadstore.announced.drain<entry",
            if mail.must_drain() {
                point!(DRAIN "what was put, or read, before the entry that announces it":
                    "loadstore.announced.drain", base.machine.drain());
            },
            base.machine.store_u32(at, announcing(number, base.layout.phase(ticket))));
        base.told(to);
        Ok(())
    }

    /// Takes the next notification, if there is one.
    #[inline(never)]
    pub fn take<M: Machine, A: Atomics<M>>(
        &self,
        base: &Base<M, A>,
        bytes: u32,
    ) -> Option<Arrival> {
        let (rings, layout) = (base.own_rings(), &base.layout);
        let ticket = self.taken.get();
        let at = layout.entry(rings, 0, ticket, bytes);
        let first = look_first(base, at, layout.phase(ticket))?;
        let next = ticket.wrapping_add(1);
        self.taken.set(next);
        // No drain is needed: the entry was loaded before.
        base.machine.store_u32(layout.head(rings, 0), next);
        Some(Arrival {
            immediate: immediate(first),
            sender: None,
        })
    }

    // ---- Tickets ----

    /// Takes a ticket of the ring at `to`.
    #[inline(never)]
    fn claim<M: Machine, A: Atomics<M>>(
        &self,
        base: &Base<M, A>,
        to: Rank,
    ) -> Result<u32, Refusal> {
        let rings = base.rings_of(to)?;
        let head = base.layout.head(rings, 0);
        let place = to
            .index()
            .checked_rem(PEERS)
            .and_then(|place| self.credit.get(place));
        let known = place.map(Cell::get).filter(|(peer, _)| *peer == Some(to));
        let entries = base.layout.ring.entries();
        let room = |ticket: u32| match known {
            Some((_, credit)) if surely_has_room(ticket, credit, entries) => Ok(()),
            _ => {
                let taken = base.machine.load_u32(head);
                if let Some(place) = place {
                    place.set((Some(to), taken));
                }
                let none = base.layout.is_full(ticket, taken);
                if point!(ROOM "I1: no entry is written over before it is taken":
                    "loadstore.announced.claim.room", none; else false)
                {
                    base.polled.note(head, taken);
                    return Err(Refusal::Full(to));
                }
                Ok(())
            }
        };
        claim_shared(base, to, rings.at(base.layout.tail as usize), room)
    }
}

/// Takes a ticket that others may want as well, if there is `room` for it.
fn claim_shared<M: Machine, A: Atomics<M>>(
    base: &Base<M, A>,
    to: Rank,
    tail: Address,
    room: impl Fn(u32) -> Result<(), Refusal>,
) -> Result<u32, Refusal> {
    let machine = &base.machine;
    if A::NATIVE {
        for _ in 0..ATTEMPTS {
            let old = machine.load_u32(tail);
            room(old)?;
            let (expected, new) = (old, old.wrapping_add(1));
            let swap = Amo::CompareSwap { expected, new };
            if A::atomic(machine, tail, swap) == Some(old) {
                return Ok(old);
            }
        }
        base.polled.note_unknown();
        // Others were quicker each time.
        return Err(Refusal::Locked(to));
    }
    let site =
        site!(LOCK "two producers do not get the same entry": "loadstore.announced.claim.lock");
    let held = base.lock(to, site)?;
    let ticket = machine.load_u32(tail);
    if let Err(refusal) = room(ticket) {
        drop(held);
        return Err(refusal);
    }
    machine.store_u32(tail, ticket.wrapping_add(1));
    let site = site!(DRAIN "the next producer finds it taken": "loadstore.announced.claim.drain");
    base.unlock(held, site);
    Ok(ticket)
}

/// Stores data in their place, before the entry that announces them.
#[inline]
pub fn put_before(mail: &impl Mail, to: Rank, place: usize, data: &[u8]) {
    let base = mail.base();
    if let (false, Ok(region)) = (data.is_empty(), base.region_of(to)) {
        base.machine.store_bytes(region.at(place), data);
        mail.stored();
    }
}

/// The first word of the entry at `at`, if that has come.
#[inline(always)]
pub fn look_first<M: Machine, A: Atomics<M>>(
    base: &Base<M, A>,
    at: Address,
    phase: u32,
) -> Option<u32> {
    let here = |word: u32| is_of(word, phase);
    let sites = [
        site!(ORDER "loaded before the acquire": "loadstore.mail.take.poll<acquire"),
        site!(ACQUIRE "data are not loaded earlier than the entry": "loadstore.mail.take.acquire"),
    ];
    let first = base.poll_for(at, here, sites);
    here(first).then_some(first)
}
