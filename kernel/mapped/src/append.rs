//! The producers' side of the rings: see [`ring`](crate::ring).

use flagpost_hal::{Address, Atomic, Machine};
use flagpost_link::{Link as _, Rank, Refusal, order, point, site};

use crate::{
    Atomics, Mapped, Ring,
    atomics::ATTEMPTS,
    entry::{DATA, Entry, word},
    ring::{Inline, Peer},
};

impl<M: Machine, A: Atomics<M>> Mapped<M, A> {
    /// Whether a ring has no room for `ticket`, as far as `credit` tells. A ticket that was loaded too early may be behind it:
    /// there is room for the next one.
    fn is_full(&self, ticket: u32, credit: u32) -> bool {
        ticket.wrapping_sub(credit) as i32 >= self.layout.ring.entries() as i32
    }

    /// Takes a ticket of the ring at `to` that this rank fills.
    fn claim(&self, to: Rank) -> Result<u32, Refusal> {
        let rings = self.rings_of(to)?;
        let number = self.ring_number(self.rank());
        let head = self.head(rings, number);
        let full = |consumed| {
            self.polled.note(head, consumed);
            Refusal::Full(to)
        };
        match (self.layout.ring, self.peer(to)) {
            (Ring::Pairs { .. }, Some(peer)) => {
                let ticket = peer.sent.get();
                if self.is_full(ticket, peer.credit.get()) {
                    let consumed = self.machine.load_u32(head);
                    peer.credit.set(consumed);
                    // ROOM: G3.
                    if point!("mapped.ring.pair.room", self.is_full(ticket, consumed); else false) {
                        return Err(full(consumed));
                    }
                }
                peer.sent.set(ticket.wrapping_add(1));
                Ok(ticket)
            }
            (_, peer) => {
                let known = |peer: &&Peer| peer.known.get() == Some(to);
                let credit = peer.filter(known).map(|peer| peer.credit.get());
                let room = |ticket: u32| match credit {
                    Some(credit) if !self.is_full(ticket, credit) => Ok(()),
                    _ => {
                        let consumed = self.machine.load_u32(head);
                        if let Some(peer) = peer {
                            peer.known.set(Some(to));
                            peer.credit.set(consumed);
                        }
                        // ROOM: G3.
                        let none = self.is_full(ticket, consumed);
                        if point!("mapped.ring.claim.room", none; else false) {
                            return Err(full(consumed));
                        }
                        Ok(())
                    }
                };
                self.claim_shared(to, rings.at(self.layout.tail), room)
            }
        }
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
                let new = old.wrapping_add(1);
                if A::atomic(&self.machine, tail, Atomic::CompareSwap { old, new }) == Some(old) {
                    return Ok(old);
                }
            }
            self.polled.note_unknown();
            return Err(Refusal::Busy(to));
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

    /// Whether data may travel in an entry to `to`: short ones, of a pair, if what is under way can be remembered.
    fn travels_inline(&self, to: Rank, data: &[u8]) -> bool {
        if let Ring::Shared { .. } = self.layout.ring {
            return false;
        }
        let free = |peer: &Peer| peer.inline.get().is_none_or(|inline| inline.to == to);
        let fits = (1..=DATA).contains(&data.len());
        fits && to != self.rank() && self.peer(to).is_some_and(free)
    }

    pub(crate) fn append(
        &self,
        to: Rank,
        place: u32,
        data: &[u8],
        immediate: u32,
        inline: bool,
    ) -> Result<(), Refusal> {
        let region = self.region_of(to)?;
        let rings = self.rings_of(to)?;
        let inline = inline && self.travels_inline(to, data);
        let end = place.saturating_add(data.len() as u32);
        let peer = self.peer(to);
        let before = peer.and_then(|peer| peer.inline.get());
        let before = before.filter(|before| before.to == to);
        // Data that go to their place at once must not come before older ones that have not.
        if before.is_some_and(|before| !inline && before.start < end && place < before.end) {
            // ORDER: G2, for data.
            point!("mapped.ring.append.placed", self.inline_placed(Some(to))?);
        }
        let answers = self.answers(to);
        if answers {
            self.await_heard(Some(to))?;
        } else {
            self.before_telling(Some(to))?;
        }
        // The claim comes first: refused, it must not have moved a byte of the data.
        let ticket = order!("mapped.ring.append.claim<data", self.claim(to)?, {
            if !inline && !data.is_empty() {
                self.machine.store_bytes(region.at(place), data);
                self.unordered.set(true);
            }
        });
        let payload = if inline { data } else { &[] };
        let lap = self.lap(ticket);
        let at = self.entry(rings, self.ring_number(self.rank()), ticket);
        order!(
            "mapped.ring.append.drain<entry",
            if self.unordered.take() {
                // DRAIN: G1: what was put before the entry that announces it.
                point!("mapped.ring.append.drain", self.machine.drain());
            },
            match self.layout.ring {
                Ring::Pairs { .. } => {
                    let words = Entry::new(immediate, place, payload).pack(lap);
                    self.machine.store_bytes(at, &words);
                    // DRAIN: or the line might stay in this core's buffer for ever.
                    point!("mapped.ring.append.leave", self.machine.drain());
                }
                Ring::Shared { .. } => self.machine.store_u32(at, word(immediate, lap)),
            }
        );
        if let (true, Some(peer)) = (inline, peer) {
            if before.is_none() {
                self.under_way.set(self.under_way.get().saturating_add(1));
            }
            peer.inline.set(Some(Inline {
                to,
                ticket: ticket.wrapping_add(1),
                start: before.map_or(place, |before| before.start.min(place)),
                end: before.map_or(end, |before| before.end.max(end)),
                heard: before.is_some_and(|before| before.heard),
            }));
        }
        if answers {
            self.place_held();
        }
        Ok(())
    }

    /// Whether the payload that this rank has sent inline to `to` (to all, if none is named) is in its place: G4.
    pub(crate) fn inline_placed(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if self.under_way.get() == 0 {
            return Ok(());
        }
        let mut outcome = Ok(());
        let named = to.and_then(|rank| self.peer(rank)).into_iter();
        let all = self.peers.iter().filter(|_| to.is_none());
        for peer in named.chain(all) {
            let Some(Inline {
                to: rank, ticket, ..
            }) = peer.inline.get()
            else {
                continue;
            };
            if to.is_some_and(|to| to != rank) {
                continue;
            }
            let head = self.head(self.rings_of(rank)?, self.ring_number(self.rank()));
            let placed = |head: u32| head.wrapping_sub(ticket) as i32 >= 0;
            // ACQUIRE: what is loaded behind the flush is not older than it.
            let sites = [
                site!("mapped.ring.placed.poll<acquire"),
                site!("mapped.ring.placed.acquire"),
            ];
            let head = self.poll_for(head, placed, sites);
            if point!("mapped.ring.placed.wait", placed(head); else true) {
                peer.inline.set(None);
                self.under_way.set(self.under_way.get().saturating_sub(1));
            } else {
                outcome = Err(Refusal::Busy(rank));
            }
        }
        outcome
    }
}
