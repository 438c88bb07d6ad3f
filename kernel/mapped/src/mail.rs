//! [`LineMail`]: mail between ranks of a machine whose caches may be old. Two ranks exchange lines
//! in a ring. The owner of the ring keeps the data that come with notifications, and places them in
//! memory later, when others could notice. This module is the front of the parts in the table:
//!
//! | module | what it has |
//! |---|---|
//! | `pairs` | a ring of lines per pair: who sends, who takes, who places |
//! | `line` | how an entry is packed, so that it may arrive in pieces |
//! | `bells` | how to find the ring in which something has come |
//! | `deferred` | data that were taken and are not in memory yet, and who waits for them |
//! | `peer` | the two ends of a ring, and their numbers |
//! | `ring` | which rings a world has by default |
//!
//! More ranks than a rank can have rings for share one ([`announced`]), and nothing is kept then.
//!
//! # Progress
//! A rank that takes no notifications still makes progress for others: it reads the entries that
//! have come ([`attend`](Mail::attend)) and places their data. The notifications stay in the ring
//! until they are taken.
//!
//! [`announced`]: flagpost_loadstore::announced

use core::cell::Cell;

use flagpost_hal::{Lines, Machine};
use flagpost_link::{Arrival, Op, Rank, Refusal, Wants};
use flagpost_loadstore::{
    Atomics, Base, Mail, Ring,
    announced::Announced,
    layout::Parts,
    mail::Plan,
    ring::{FIRST, PAIRS},
};

use crate::{
    bells::Bells,
    deferred::{Deferred, Kept},
    line,
    peer::{Outbox, Peer, counts},
    ring::for_ranks,
};

/// Notifications in lines of words that tell by themselves that they have come.
///
/// `PEERS` is of how many peers something is remembered: from 1 to 64. More ranks than that share a
/// ring.
#[derive(Debug)]
pub struct LineMail<M: Machine, A: Atomics<M>, const PEERS: usize = PAIRS> {
    pub(crate) base: Base<M, A>,
    /// The rings between this rank and each peer.
    pub(crate) peers: [Peer; PEERS],
    /// Which of them have rung.
    pub(crate) bells: Bells,
    /// Whose ring is looked at first.
    pub(crate) turn: Cell<Rank>,
    /// Whose entry was taken last.
    pub(crate) sender: Cell<Rank>,
    /// Data that were taken and are not placed.
    pub(crate) deferred: Deferred,
    /// The ring of all, where there are no pairs.
    announced: Announced<PEERS>,
    /// The most data that travel in an entry, and in the lines after it.
    most_inline: usize,
    /// To how many peers data are in flight.
    pub(crate) in_flight: Cell<u32>,
    /// Something was stored at a peer, or loaded that others may store to once they are told, since
    /// the last drain.
    pub(crate) unordered: Cell<bool>,
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize> LineMail<M, A, PEERS> {
    /// Bytes of an entry: a line, but at least 32 bytes, so that nobody stores to a line whose
    /// stores another core may not have let go of.
    pub(crate) const ENTRY: u32 = if M::LINE < 32 { 32 } else { M::LINE as u32 };

    /// The rings of these `ranks`, with message buffers of `buffer` bytes.
    const fn planned(ranks: u16, buffer: usize, asked: Option<Ring>) -> Plan {
        let ring = match asked {
            Some(ring) => ring,
            None => for_ranks(ranks, buffer as u32, Self::ENTRY).for_peers(ranks, PEERS),
        };
        let bells = match ring {
            Ring::Bells { .. } => ranks as u32,
            _ => 0,
        };
        let parts = Parts {
            entry: Self::ENTRY,
            bells,
            behind: 0,
        };
        Plan {
            ring,
            parts,
            buffer,
        }
    }

    /// Bytes of each rank's memory that the link takes for itself, with message buffers of `buffer`
    /// bytes. Windows lie after them.
    pub const fn fixed_bytes(ranks: u16, buffer: usize) -> usize {
        let plan = Self::planned(ranks, buffer, None);
        plan.fixed_bytes(M::LINE, ranks, A::NATIVE)
    }

    /// This rank's rings, each with its number and the peer that fills it.
    fn inboxes(&self) -> impl Iterator<Item = (u32, &Peer)> {
        (0..self.base.size()).map(u32::from).zip(&self.peers)
    }

    /// `Ok` if all data in flight to `rank` are in their place.
    fn placed_at(&self, rank: Rank) -> Result<(), Refusal> {
        let Some(Peer { out, .. }) = self.peers.get(rank.index()) else {
            return Ok(());
        };
        let Some(ticket) = out.flight.ticket() else {
            return Ok(());
        };
        if !self.lines_placed(rank, out, ticket)? {
            return Err(Refusal::Busy(rank));
        }
        out.has_arrived();
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
        Ok(())
    }

    /// An entry of `source` was taken; `next` is whose turn it is.
    #[inline]
    pub(crate) fn took(&self, source: Rank, out: &Outbox, next: Rank) {
        self.sender.set(source);
        self.turn.set(next);
        if out.hears() {
            self.deferred.hears(source);
        }
    }

    /// Takes the next notification of some ring of pairs. Rings take turns.
    fn take_of_pairs(&self) -> Option<u32> {
        let (rings, count) = (self.base.own_rings(), self.base.size());
        let mut next = self.turn.get();
        for _ in 0..count {
            let source = next;
            next = source.next(count);
            let Peer { out, inbox } = self.peers.get(source.index())?;
            // This rank knows what it has sent to itself. (One that is alone has nothing else to
            // look at.)
            if count > 1 && source == self.base.rank() && out.is_all_taken(inbox) {
                continue;
            }
            if let Some(immediate) = self.take_lines(rings, source, inbox) {
                self.took(source, out, next);
                return Some(immediate);
            }
        }
        None
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize> Mail for LineMail<M, A, PEERS> {
    type Machine = M;
    type Atomics = A;
    const PEERS: usize = PEERS;

    fn plan(machine: &M, asked: Option<Ring>) -> Plan {
        Self::planned(machine.cores(), machine.message_buffer_size(), asked)
    }

    #[inline(always)]
    fn new(base: Base<M, A>) -> Self {
        let layout = &base.layout;
        let most_inline = if layout.in_buffer && M::LINE == 32 {
            line::most_inline(layout.ring.entries())
        } else {
            line::DATA
        };
        Self {
            base,
            peers: [const { Peer::new() }; PEERS],
            bells: Bells::new(),
            turn: Cell::new(Rank::new(0)),
            sender: Cell::new(Rank::new(0)),
            deferred: Deferred::new(),
            announced: Announced::nothing(),
            most_inline,
            in_flight: Cell::new(0),
            unordered: Cell::new(false),
        }
    }

    #[inline(always)]
    fn base(&self) -> &Base<M, A> {
        &self.base
    }

    fn clear_rings(&self) {
        let told = if self.base.layout.ring.of_pairs() {
            counts(FIRST, FIRST)
        } else {
            FIRST
        };
        self.base.clear_tail();
        if let Ring::Bells { .. } = self.base.layout.ring {
            Bells::clear(&self.base);
        }
        self.base.empty_rings(Self::ENTRY, told);
    }

    // ---- Notifications ----

    #[inline(never)]
    fn send(
        &self,
        to: Rank,
        (place, data): (usize, &[u8]),
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        self.base.region_of(to)?;
        let pair = self
            .peers
            .get(to.index())
            .filter(|_| self.base.layout.ring.of_pairs());
        let Some(Peer { out, .. }) = pair else {
            let entry = Self::ENTRY;
            return self
                .announced
                .send(self, to, (place, data), immediate, entry);
        };
        let travels = inline && to != self.base.rank() && data.len() <= self.most_inline;
        let end = place.saturating_add(data.len());
        // Data that go to their place immediately must not come before older ones that have not.
        if !travels && !data.is_empty() && out.flight.has(place, end) {
            point!(ORDER "of two puts of the same bytes the later one stays":
                "mapped.mail.send.placed", self.placed(Some(to))?);
        }
        self.send_lines((to, out), (place, data), immediate, travels, op)
    }

    /// Rings take turns. Where they have bells, that of the rank whose notification is wanted comes
    /// first.
    #[inline(never)]
    fn take(&self, wants: Wants) -> Option<Arrival> {
        let (ring, rings) = (self.base.layout.ring, self.base.own_rings());
        if !ring.of_pairs() {
            return self.announced.take(&self.base, Self::ENTRY);
        }
        let taken = match ring {
            Ring::Bells { .. } => self.take_rung(rings, wants),
            _ => self.take_of_pairs(),
        };
        if taken.is_none() {
            self.is_idle();
        }
        let sender = Some(self.sender.get());
        taken.map(|immediate| Arrival { immediate, sender })
    }

    #[inline(never)]
    fn attend(&self) {
        if !self.base.layout.ring.of_pairs() {
            return;
        }
        let rings = self.base.own_rings();
        point!(PROGRESS "data do not wait for room in the queue": "mapped.mail.attend.read", {
            if let Ring::Bells { .. } = self.base.layout.ring {
                self.read_rung(rings);
            } else {
                self.inboxes()
                    .for_each(|(number, peer)| self.read_ring(rings, number, &peer.inbox));
            }
        });
        point!(PLACE "a flush, or a producer that has heard of it, waits for it":
            "mapped.mail.attend.place", self.place_kept(Kept::All));
        point!(NOTIFY "what is taken is free for its producer": "mapped.mail.attend.room", {
            for (number, Peer { inbox, .. }) in self.inboxes() {
                if inbox.owes_word() {
                    self.tell_counts(rings, number, inbox);
                }
            }
        });
    }

    fn relax(&self) {
        let polled = &self.base.polled;
        if self.deferred.stays_awake() {
            polled.note_unknown();
        }
        polled.relax(&self.base.machine, self.bells.watched(&self.base));
    }

    // ---- Order ----

    #[inline]
    fn stored(&self) {
        self.unordered.set(true);
    }

    #[inline]
    fn drained(&self) {
        self.unordered.set(false);
    }

    #[inline]
    fn must_drain(&self) -> bool {
        self.unordered.take()
    }

    #[inline]
    fn has_settled(&self, _: bool) -> bool {
        self.base.finish_puts();
        self.drained();
        self.in_flight.get() == 0
    }

    #[inline(never)]
    fn placed(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if self.in_flight.get() == 0 {
            return Ok(());
        }
        if let Some(rank) = to {
            return self.placed_at(rank);
        }
        let mut outcome = Ok(());
        for rank in (0..).map(Rank::new).take(PEERS) {
            if let Err(why) = self.placed_at(rank) {
                outcome = Err(why);
            }
        }
        outcome
    }

    // ---- Kept data ----

    #[inline]
    fn before_telling(&self, to: Option<Rank>) -> Result<(), Refusal> {
        self.place_before_telling(to)
    }

    #[inline]
    fn before_access(&self, owner: Rank) -> Result<(), Refusal> {
        self.place_before_access(owner)
    }

    #[inline]
    fn before_writing(&self, start: usize, len: usize) {
        let busy = self.deferred.is_busy();
        if busy && self.deferred.has_pieces(self.base.lines(start, len)) {
            self.place_kept(Kept::Pieces);
        }
    }

    #[inline]
    fn before_withdrawing(&self) {
        self.place_kept(Kept::All);
    }

    #[inline]
    fn read_own(&self, start: usize, into: &mut [u8]) {
        self.deferred.read(start, into, |at, into| {
            self.base.machine.read(self.base.own(at), into);
            point!(ORDER "a notification after it lets its receiver store there":
                "mapped.read.order", self.beside_kept(at, into.len(), |_| self.stored()));
        });
    }

    #[inline]
    fn beside_kept(&self, start: usize, bytes: usize, mut act: impl FnMut(&[Lines])) {
        self.deferred
            .beside(start, bytes, |at, bytes| act(&[self.base.lines(at, bytes)]));
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize> Drop for LineMail<M, A, PEERS> {
    fn drop(&mut self) {
        point!(PLACE "a flush waits for it": "mapped.deferred.drop", self.place_kept(Kept::All));
    }
}
