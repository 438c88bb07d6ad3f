//! The rings between a rank and one peer, as the rank remembers them: two ends.
//!
//! Entries of a ring have numbers, *tickets*, that count on from lap to lap. The producer's end of
//! a ring is an `Outbox`, the owner's end an `Inbox`. Nobody else changes their numbers.

use core::cell::Cell;

use flagpost_link::Rank;
use flagpost_loadstore::{Layout, flight::Flight, ring::FIRST};

/// The producer's end of a ring: what this rank has sent to a peer.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The next ticket.
    sent: Cell<u32>,
    /// As far as the peer was known to have taken it.
    credit: Cell<u32>,
    /// Data that have left, and are not known to be in place.
    pub(crate) flight: Flight,
}

impl Outbox {
    const fn new() -> Self {
        Self {
            sent: Cell::new(FIRST),
            credit: Cell::new(FIRST),
            flight: Flight::nothing(),
        }
    }

    /// The next ticket.
    #[inline(always)]
    pub(crate) fn next(&self) -> u32 {
        self.sent.get()
    }

    /// True if the ring has no room for it, as far as this rank knows.
    #[inline(always)]
    pub(crate) fn is_full(&self, layout: &Layout) -> bool {
        layout.is_full(self.sent.get(), self.credit.get())
    }

    /// The peer has taken all before `ticket`.
    #[inline(always)]
    pub(crate) fn hears_taken(&self, ticket: u32) {
        self.credit.set(ticket);
    }

    /// An entry was stored, or will be: `after` is the next ticket.
    #[inline(always)]
    pub(crate) fn sends(&self, after: u32) {
        self.sent.set(after);
    }
}

/// The owner's end of a ring: what this rank has taken of a peer.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The next ticket to take.
    taken: Cell<u32>,
    /// Whose ring is looked at after the peer's: this rank's own is left out, since it knows what
    /// is in it.
    turn: Cell<Rank>,
    /// The word that tells the peer, in words from the start of the region.
    head: Cell<u32>,
}

impl Inbox {
    const fn new() -> Self {
        Self {
            taken: Cell::new(FIRST),
            turn: Cell::new(Rank::new(0)),
            head: Cell::new(0),
        }
    }

    /// Finds out whose turn comes after the peer's, and where the word is that tells it: its offset
    /// in the region.
    pub(crate) fn place(&self, turn: Rank, head: usize) {
        self.turn.set(turn);
        self.head.set(head.wrapping_shr(2) as u32);
    }

    /// The next ticket to take.
    #[inline(always)]
    pub(crate) fn next(&self) -> u32 {
        self.taken.get()
    }

    /// An entry was taken: `next` is the next ticket.
    #[inline(always)]
    pub(crate) fn takes(&self, next: u32) {
        self.taken.set(next);
    }

    /// Whose ring is looked at next.
    #[inline(always)]
    pub(crate) fn turn(&self) -> Rank {
        self.turn.get()
    }

    /// Where the word is that tells the peer.
    #[inline(always)]
    pub(crate) fn head(&self) -> usize {
        (self.head.get() as usize).wrapping_mul(4)
    }
}

/// The rings between this rank and a peer. Of 64 bytes, so that a shift finds it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Peer {
    /// The ring at the peer, which this rank fills.
    pub(crate) out: Outbox,
    /// This rank's ring, which the peer fills.
    pub(crate) inbox: Inbox,
}

impl Peer {
    pub(crate) const fn new() -> Self {
        Self {
            out: Outbox::new(),
            inbox: Inbox::new(),
        }
    }
}
