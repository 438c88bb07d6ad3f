//! The producers' side of the rings: see [`ring`](crate::ring).

use flagpost_hal::{Address, Machine, Region};
use flagpost_link::{Amo, Key, Link as _, Op, Rank, Refusal, order, point, site};

use crate::{
    Atomics, Mapped,
    atomics::ATTEMPTS,
    entry::{self, DATA, Entry, SECOND, phase, word},
    peer::{Peer, is_placed, surely_has_room},
};

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// Whether a ring has no room for `ticket`, as far as `credit` tells. A ticket that was loaded
    /// too early may be behind it: there is room for the next one.
    pub(crate) fn is_full(&self, ticket: u32, credit: u32) -> bool {
        ticket.wrapping_sub(credit) as i32 >= self.layout.ring.entries() as i32
    }

    /// Takes a ticket of the ring at `to` that this rank fills.
    #[inline]
    pub(crate) fn claim(&self, to: Rank) -> Result<u32, Refusal> {
        if let (true, Some(peer)) = (self.layout.ring.of_pairs(), self.peer(to)) {
            let ticket = peer.sent.get();
            if self.is_full(ticket, peer.credit.get()) {
                self.find_room(to, peer, ticket)?;
            }
            peer.sent.set(ticket.wrapping_add(1));
            return Ok(ticket);
        }
        self.claim_of_many(to)
    }

    /// Looks whether a pair's ring has room for `ticket`.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_room(&self, to: Rank, peer: &Peer, ticket: u32) -> Result<(), Refusal> {
        let (rings, own) = (self.rings_of(to)?, self.ring_number(self.rank()));
        let word = if self.takes_long {
            self.room(rings, own)
        } else {
            self.head(rings, own)
        };
        let consumed = self.machine.load_u32(word);
        if let Some(facing) = self.facing(to) {
            // What was heard before is never so old that numbers have come round to it.
            facing.answered.set(consumed);
        }
        if consumed.wrapping_sub(peer.credit.get()) as i32 > 0 {
            peer.credit.set(consumed);
        }
        // ROOM: G3.
        if point!("mapped.ring.pair.room", self.is_full(ticket, consumed); else false) {
            self.polled.note(word, consumed);
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
                let consumed = self.machine.load_u32(head);
                if let Some(peer) = peer {
                    peer.known.set(Some(to));
                    peer.credit.set(consumed);
                }
                // ROOM: G3.
                let none = self.is_full(ticket, consumed);
                if point!("mapped.ring.claim.room", none; else false) {
                    self.polled.note(head, consumed);
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
        let held = self.lock(to, site!("mapped.ring.claim.lock"))?;
        let ticket = self.machine.load_u32(tail);
        if let Err(refusal) = room(ticket) {
            drop(held);
            return Err(refusal);
        }
        self.machine.store_u32(tail, ticket.wrapping_add(1));
        self.unlock(held, site!("mapped.ring.claim.drain"));
        Ok(ticket)
    }

    /// Whether data may travel in an entry to `to`: short ones, of a pair.
    #[inline]
    fn travels_inline(&self, to: Rank, data: &[u8]) -> bool {
        let pairs = self.layout.ring.of_pairs();
        pairs && (1..=DATA).contains(&data.len()) && to != self.rank()
    }

    /// [`append`](Self::append) of one element of 4 or 8 bytes or of none, where the machine is
    /// coherent and nothing is in the way: what nearly all notifications are. False if it takes
    /// more; then nothing has happened.
    #[inline(always)]
    pub(crate) fn append_at_once(
        &self,
        to: Rank,
        (key, offset): (Key, u32),
        data: &[u8],
        immediate: u32,
    ) -> bool {
        if !M::COHERENT || !self.at_once.get() || to.get() >= self.size() || to == self.rank() {
            return false;
        }
        let (Some(place), Some(peer), Some(facing)) = (
            key.get().checked_add(offset),
            self.peer(to),
            self.facing.get(to.index()),
        ) else {
            return false;
        };
        let ticket = peer.sent.get();
        let free = facing.is_free(ticket);
        let full = !free && self.is_full(ticket, peer.credit.get());
        if full || self.check(place, data.len()).is_err() {
            return false;
        }
        let word = match (data.as_chunks(), data.as_chunks()) {
            ((&[one], []), _) => u64::from_le_bytes(one),
            (_, (&[one], [])) => u32::from_le_bytes(one).into(),
            ((&[], []), _) => 0,
            _ => return false,
        };
        let (behind, len) = (ticket.wrapping_add(1), data.len() as u32);
        let [out, _, ring, _] = &facing.spots;
        let (at, top) = if free {
            peer.credit.set(ticket);
            (out.get(), phase(facing.stores()))
        } else {
            let nth = facing.ring_out(ticket);
            (
                self.in_ring(ring.get(), nth),
                nth.wrapping_shl(self.layout.to_top),
            )
        };
        let words = [entry::announcing(immediate, top), peer.taken.get()];
        let body = [entry::head(place, len), word];
        A::store_record(&self.machine, at, words, body);
        peer.sent.set(behind);
        if len > 0 && peer.leaves(behind, place, place.wrapping_add(len)) {
            self.under_way.set(self.under_way.get().wrapping_add(1));
        }
        true
    }

    /// Where the entry of `ticket` is stored, and the lap of it. It will be.
    fn next_entry(&self, (rings, to): (Region, Rank), ticket: u32) -> (Address, u32) {
        let facing = self.facing(to);
        match facing {
            Some(facing) if facing.is_free(ticket) => {
                let [out, _] = self.facing_at(to);
                (out, facing.stores())
            }
            _ => {
                let nth = facing.map_or(ticket, |facing| facing.ring_out(ticket));
                let at = self.entry(rings, self.ring_number(self.rank()), nth);
                (at, self.lap(nth))
            }
        }
    }

    /// Stores the entry of `ticket`.
    fn enter(
        &self,
        (rings, to): (Region, Rank),
        ticket: u32,
        immediate: u32,
        (place, payload): (u32, &[u8]),
    ) {
        let (at, lap) = self.next_entry((rings, to), ticket);
        let pairs = self.layout.ring.of_pairs();
        order!(
            "mapped.ring.append.drain<entry",
            if M::COHERENT || self.unordered.take() {
                // DRAIN: G1, G5: what was put, or read, before the entry that announces it.
                point!("mapped.ring.append.drain", self.machine.drain());
            },
            if pairs && M::COHERENT {
                let (body, second) = entry::body(place, payload);
                if payload.len() > second.len() {
                    self.machine.store_bytes(at.plus(SECOND), &second);
                }
                let taken = self.peer(to).map_or(0, |peer| peer.taken.get());
                let spot = A::spot(&self.machine, at);
                A::store_record(&self.machine, spot, [word(immediate, lap), taken], body);
            } else if pairs {
                let entry = Entry::new(immediate, place, payload);
                self.enter_entry(rings, to, ticket, entry);
                self.ring_bell(rings, ticket.wrapping_add(1));
                self.leave();
            } else {
                self.machine.store_u32(at, word(immediate, lap));
            }
        );
    }

    /// Stores an entry of a pair, of `ticket`. It tells of the room in the ring the other way.
    pub(crate) fn enter_entry(&self, rings: Region, to: Rank, ticket: u32, mut entry: Entry) {
        if self.takes_long
            && let Some(peer) = self.peer(to)
        {
            entry.room = peer.taken.get();
        }
        let at = self.entry(rings, self.ring_number(self.rank()), ticket);
        self.machine.store_bytes(at, &entry.pack(self.lap(ticket)));
    }

    /// Lets what was stored leave.
    pub(crate) fn leave(&self) {
        // DRAIN: or the line might stay in this core's buffer for ever.
        point!("mapped.ring.append.leave", self.machine.drain());
    }

    /// Inline payload leaves for `peer`, in the entry before ticket `behind`.
    #[inline(always)]
    pub(crate) fn leaves(&self, peer: &Peer, behind: u32, place: u32, end: u32) {
        if peer.leaves(behind, place, end) {
            self.under_way.set(self.under_way.get().saturating_add(1));
        }
    }

    #[inline(never)]
    pub(crate) fn append(
        &self,
        to: Rank,
        place: u32,
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        let region = self.region_of(to)?;
        if inline && self.travels_long(to, data) {
            return self.append_long(to, place, data, immediate, op);
        }
        let rings = self.rings_of(to)?;
        let inline = inline && self.travels_inline(to, data);
        let end = place.saturating_add(data.len() as u32);
        let peer = self.peer(to);
        // Data that go to their place at once must not come before older ones that have not.
        if !inline && !data.is_empty() && peer.is_some_and(|peer| peer.has_inline(place, end)) {
            // ORDER: G2, for data.
            point!("mapped.ring.append.placed", self.inline_placed(Some(to))?);
        }
        let answers = self.answers(to);
        if answers {
            // WAIT: G2 of `held`.
            point!("mapped.ring.append.heard", self.await_heard(Some(to))?);
        } else {
            // PLACE, WAIT: G2 of `held`.
            point!("mapped.ring.append.told", self.before_telling(Some(to))?);
        }
        // The claim comes first: refused, it must not have moved a byte of the data.
        let ticket = order!("mapped.ring.append.claim<data", self.claim(to)?, {
            if !inline && !data.is_empty() {
                self.machine.store_bytes(region.at(place), data);
                self.stored();
            }
        });
        let payload = if inline { data } else { &[] };
        self.enter((rings, to), ticket, immediate, (place, payload));
        if let (true, Some(peer)) = (inline, peer) {
            self.leaves(peer, ticket.wrapping_add(1), place, end);
        }
        if to == self.rank() {
            self.at_once.set(false);
        }
        if answers {
            self.answered();
        }
        Ok(())
    }

    /// Behind an answer.
    pub(crate) fn answered(&self) {
        // PLACE: nothing waits for the next call.
        point!("mapped.ring.append.answered", self.place_entry());
    }

    /// Whether the payload that this rank has sent inline to `to` (to all, if none is named) is in
    /// its place: G4.
    #[inline(never)]
    pub(crate) fn inline_placed(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if self.under_way.get() == 0 {
            return Ok(());
        }
        let mut outcome = Ok(());
        let ranks = match to {
            Some(rank) => rank.get()..=rank.get(),
            None => 0..=u16::MAX,
        };
        for rank in ranks.map(Rank::new).take(PEERS) {
            let Some(peer) = self.peer(rank) else {
                continue;
            };
            let Some(ticket) = peer.inline() else {
                continue;
            };
            let head = self.head(self.rings_of(rank)?, self.ring_number(self.rank()));
            let placed = |head: u32| is_placed(peer.sent.get(), ticket, head);
            // ACQUIRE: what is loaded behind the flush is not older than it.
            let sites = [
                site!("mapped.ring.placed.poll<acquire"),
                site!("mapped.ring.placed.acquire"),
            ];
            let head = self.poll_for(head, placed, sites);
            if point!("mapped.ring.placed.wait", placed(head); else true) {
                peer.placed();
                self.under_way.set(self.under_way.get().saturating_sub(1));
            } else {
                // ASK: long payload is placed by nobody else's wish.
                point!("mapped.long.ask", self.ask(rank, peer));
                outcome = Err(Refusal::Busy(rank));
            }
        }
        outcome
    }
}
