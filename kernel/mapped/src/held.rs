//! Payload that was taken from a ring of a pair, and is not in memory yet.
//!
//! # Guarantee
//! G1. The owner finds the payload of each notification that it was given.
//! G2. Whoever this rank tells anything afterwards finds it as well: in memory. So does whoever
//!     *its producer* tells after it has heard of it. Payload that is longer than an entry is held
//!     in another way, and for longer: [`long`](crate::long).
//! G3. `head` passes an entry only when its payload is in memory: a flush of its producer waits for
//!     that.
//!
//! # Why
//! To store a line in memory behind a controller takes longer than a notification takes to come.
//! Own memory needs the payload only when somebody else may look, or the owner at what lies around
//! it; mostly a rank waits before that, or answers.
//!
//! Where the machine is [coherent](flagpost_hal::Coherence::COHERENT), memory is as near as any
//! message buffer: payload is placed when it is taken, and nothing is ever held or heard of.
//!
//! # Steps
//! | the owner                             | does                                                          |
//! |---------------------------------------|---------------------------------------------------------------|
//! | takes an entry of a pair's ring       | keeps payload and head; places the one before                 |
//! | reads just bytes of the payload       | gets them from here                                           |
//! | else reads or writes its lines, or    | places it first                                               |
//! | accesses own memory past the cache    |                                                               |
//! | finds nothing in its rings            | places it (long payload not)                                  |
//! | takes no more, its queue being full   | places it                                                     |
//! | tells a rank (signal, cell, put, …)   | places it first; a notification to its producer: right behind |
//!
//! *Placing* it: store the payload; drain; invalidate its lines, which may have been fetched ahead
//! since the request refreshed them; store head.
//!
//! # The producer
//! An answer may thus come before the payload is in place. A producer that has taken one while its
//! payload is under way has *heard*: it waits until `head` says so before it tells others, and
//! before it accesses memory of others directly. That takes no call of the consumer where the
//! answer came behind the payload: it places that right behind the answer. (Else, and with long
//! payload, for which the producer asks, it takes the consumer's next wait, test, get or telling.)
//!
//! # Invariants
//! I1. Held payload is the newest entry that this rank took, and its lines are not dirty in the own
//!     cache: own stores place it first.
//! I2. Who may know of the payload is its owner; or its producer, which has heard.
//!
//! # Bounds
//! One entry of one ring: a producer finds so much less room until the owner's next call.

use core::cell::Cell;

use flagpost_hal::{Lines, Machine};
use flagpost_link::{Link as _, Rank, Refusal, order, point};

use crate::{Atomics, Mapped, entry::Entry, long::Long};

/// What is held.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Whether anything is held, or heard of: what every call looks at.
    busy: Cell<bool>,
    any: Cell<bool>,
    /// Long payload is owed: see [`long`](crate::long).
    owed: Cell<bool>,
    entry: Cell<Entry>,
    /// Number of its ring, which is its producer, and what `head` becomes.
    ring: Cell<u32>,
    next: Cell<u32>,
    /// The rank that told this one something while payload for it was under way; [`NOBODY`],
    /// [`SEVERAL`].
    heard: Cell<u32>,
}

const NOBODY: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

impl Pending {
    pub(crate) const fn new() -> Self {
        Self {
            busy: Cell::new(false),
            any: Cell::new(false),
            owed: Cell::new(false),
            entry: Cell::new(Entry::EMPTY),
            ring: Cell::new(0),
            next: Cell::new(0),
            heard: Cell::new(NOBODY),
        }
    }

    fn note(&self) {
        let holds = self.any.get() || self.owed.get();
        self.busy.set(holds || self.heard.get() != NOBODY);
    }

    /// Long payload is owed.
    pub(crate) fn owe(&self) {
        self.owed.set(true);
        self.busy.set(true);
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// Keeps an entry of ring `ring`, behind which `head` is `next`.
    pub(crate) fn hold(&self, entry: Entry, ring: u32, next: u32) {
        // PLACE: what is held is one entry.
        point!("mapped.held.next", self.place_held());
        let held = &self.held;
        held.entry.set(entry);
        held.ring.set(ring);
        held.next.set(next);
        held.any.set(true);
        held.busy.set(true);
    }

    /// Places what is held, and gives its entry back.
    #[inline]
    pub(crate) fn place_held(&self) {
        if self.holds_entry() || self.holds_lines() {
            self.place_now();
        }
    }

    /// Whether the payload of an entry is held: never, where the machine is coherent.
    #[inline]
    fn holds_entry(&self) -> bool {
        !M::COHERENT && self.held.any.get()
    }

    /// Whether long payload is held.
    #[inline]
    pub(crate) fn holds_lines(&self) -> bool {
        !M::COHERENT && self.held.owed.get()
    }

    /// Whether nothing is held but long payload of ring `number`.
    pub(crate) fn owes_only(&self, number: u32) -> bool {
        let others = (0..).zip(&self.longs).filter(|(ring, _)| *ring != number);
        !self.holds_entry() && !others.map(|(_, long)| long).any(Long::is_owed)
    }

    /// Whether anything is held, or heard of.
    #[inline]
    fn is_busy(&self) -> bool {
        !M::COHERENT && self.held.busy.get()
    }

    #[inline(never)]
    fn place_now(&self) {
        // PLACE: all that is held is meant.
        point!("mapped.held.now", self.place_entry());
        if self.held.owed.take() {
            let owed = (0..).zip(&self.longs).filter(|(_, long)| long.is_owed());
            owed.for_each(|(number, long)| self.place_long(number, long));
            self.held.note();
        }
    }

    /// Places the payload of an entry, if any is held.
    #[inline]
    pub(crate) fn place_entry(&self) {
        let held = &self.held;
        if self.holds_entry() {
            held.any.set(false);
            held.note();
            let entry = held.entry.get();
            self.place(
                entry.place,
                entry.payload(),
                held.ring.get(),
                held.next.get(),
            );
        }
    }

    /// Stores payload of ring `ring` at `place`, and gives its entry back: `head` becomes `next`.
    #[inline]
    pub(crate) fn place(&self, place: u32, payload: &[u8], ring: u32, next: u32) {
        order!(
            "mapped.held.place<head",
            self.store_own(place, payload),
            if let Ok(rings) = self.rings_of(self.rank()) {
                self.machine.store_u32(self.head(rings, ring), next);
                if let Some(peer) = self.peers.get(ring as usize) {
                    peer.placed_to.set(next);
                }
            }
        );
    }

    /// Stores payload in own memory, past the cache.
    #[inline]
    pub(crate) fn store_own(&self, place: u32, payload: &[u8]) {
        let (at, len) = (self.own(place), payload.len());
        if len > 0 {
            self.machine.store_bytes(at, payload);
            // DRAIN: G2, G3, and for the cache to fetch it.
            point!("mapped.held.drain", self.machine.drain());
            // INVALIDATE: G1: what was fetched ahead of it.
            point!(
                "mapped.held.invalidate",
                self.machine
                    .invalidate(&[Lines::covering::<M>(at, len as u32)])
            );
        }
    }

    /// Own bytes, if some are held; places them if only others of their lines are.
    #[inline]
    pub(crate) fn look_held(&self, start: u32, into: &mut [u8]) -> bool {
        if self.holds_entry() && self.read_held(start, into) {
            return true;
        }
        let lines = self.holds_lines();
        if lines {
            self.read_beside_edges(start, into);
        }
        lines
    }

    #[inline(never)]
    fn read_held(&self, start: u32, into: &mut [u8]) -> bool {
        let entry = self.held.entry.get();
        let skipped = start
            .checked_sub(entry.place)
            .map(|skipped| skipped as usize);
        let bytes = skipped.and_then(|from| {
            let end = from.saturating_add(into.len());
            entry.payload().get(from..end)
        });
        if let Some(bytes) = bytes
            && bytes.len() == into.len()
        {
            into.copy_from_slice(bytes);
            return true;
        }
        // PLACE: G1.
        point!("mapped.held.read", self.place_lines(start, into.len()));
        false
    }

    /// Whether the payload of an entry is held, and shares a line with these bytes.
    pub(crate) fn entry_touches(&self, start: u32, end: u32) -> bool {
        let entry = self.held.entry.get();
        let first = |at: u32| at & !(M::LINE as u32).wrapping_sub(1);
        let its_end = entry.place.saturating_add(entry.payload().len() as u32);
        self.holds_entry() && first(start) < its_end && first(entry.place) < end
    }

    /// Before own cached accesses: places what is held of these bytes' lines.
    #[inline]
    pub(crate) fn place_lines(&self, start: u32, len: usize) {
        let end = start.saturating_add(len as u32);
        if self.entry_touches(start, end) {
            self.place_now();
        }
        if self.holds_lines() && self.first_edge(start, end).is_some() {
            self.place_now();
        }
    }

    /// Before this rank tells `to`, or, if nobody is named, changes a word that others may wait
    /// for.
    #[inline]
    pub(crate) fn before_telling(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if self.is_busy() {
            return self.tell_held(to);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn tell_held(&self, to: Option<Rank>) -> Result<(), Refusal> {
        // PLACE: G2.
        point!("mapped.held.tell", self.place_held());
        // WAIT: the same.
        point!("mapped.held.tell.heard", self.await_heard(to)?);
        Ok(())
    }

    /// Before this rank accesses `owner`'s memory directly.
    #[inline]
    pub(crate) fn before_access(&self, owner: Rank) -> Result<(), Refusal> {
        if self.is_busy() {
            return self.access_held(owner);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn access_held(&self, owner: Rank) -> Result<(), Refusal> {
        // PLACE: G1, past the cache; and no producer waits for a rank that goes on getting.
        point!("mapped.held.own", self.place_held());
        if owner == self.rank() {
            return Ok(());
        }
        // WAIT: what this rank has heard of is in `owner`'s memory.
        point!("mapped.held.access.heard", self.await_heard(None)?);
        Ok(())
    }

    /// G2, of what this rank has heard of: unless `to` is who told it.
    pub(crate) fn await_heard(&self, to: Option<Rank>) -> Result<(), Refusal> {
        let heard = self.held.heard.get();
        if heard != NOBODY && to.is_none_or(|to| u32::from(to.get()) != heard) {
            // WAIT: the consumer does it without being asked.
            point!("mapped.held.heard", self.heard_placed(to)?);
        }
        Ok(())
    }

    /// Whether an entry for `to` may leave before what is held is placed: an answer to its
    /// producer.
    #[inline]
    pub(crate) fn answers(&self, to: Rank) -> bool {
        let (entry, lines) = (self.holds_entry(), self.holds_lines());
        let ring = u32::from(to.get());
        if lines && !entry {
            return self.owes_only(ring);
        }
        entry && !lines && self.held.ring.get() == ring
    }

    /// Whether the payload of those whom this rank has heard of is in place; `to`'s need not be.
    fn heard_placed(&self, to: Option<Rank>) -> Result<(), Refusal> {
        let mut left = NOBODY;
        for (number, _) in (0..).zip(&self.peers).filter(|(_, peer)| peer.has_told()) {
            let rank = Rank::new(number);
            if Some(rank) == to {
                left = rank.get().into();
            } else {
                self.inline_placed(Some(rank))?;
            }
        }
        self.held.heard.set(left);
        self.held.note();
        Ok(())
    }

    /// `source`, for whom payload is under way, has told something.
    pub(crate) fn hear(&self, source: Rank) {
        let source = source.get().into();
        let heard = match self.held.heard.get() {
            NOBODY => source,
            heard if heard == source => heard,
            _ => SEVERAL,
        };
        self.held.heard.set(heard);
        self.held.busy.set(true);
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize> Drop
    for Mapped<M, A, PEERS, PIECES>
{
    fn drop(&mut self) {
        // PLACE: a flush waits for it.
        point!("mapped.held.drop", self.place_held());
    }
}
