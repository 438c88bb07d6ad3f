//! Mail: how a notification and its data travel from one rank to another.
//!
//! Every rank has rings of lines in memory that others store to. A *producer* takes a free line of
//! a ring, and stores an *entry* there: an immediate (the notification), the place of its data, and
//! short data themselves. The *owner* of the ring polls it, and takes the entries one by one. It
//! tells each producer how many lines it has taken, by a word beside the ring (`head`): these are
//! free again.
//!
//! Three ways carry entries. A world has one of them:
//!
//! | way | where | data | their place is filled by |
//! |---|---|---|---|
//! | [`pairs`] | no coherence, a ring per pair | in the entry, and in lines behind it | the owner |
//! | [`records`] | coherent, native atomics | up to 16 bytes in the entry | owner or producer |
//! | [`announced`] | all others | none in the entry | the producer, before |
//!
//! [`ring`] says which rings a world has and where they are, [`peer`] what a rank remembers of
//! each, [`line`](mod@line) how entries of pairs are packed, and [`bells`] how to find the ring in
//! which something has come. Which access waits for what: nothing waits. A full ring refuses the
//! producer ([`Refusal::Full`]), and the kernel asks again.
//!
//! # Progress
//! A rank that takes no notifications still makes progress for others: an
//! [`attend`](flagpost_link::Telling::attend) reads the entries that have come and places their
//! data. The notifications stay in the ring until they are taken. With [`records`] and
//! [`announced`] a flush needs no call of the target at all.

pub mod announced;
pub mod bells;
pub mod line;
pub mod pairs;
pub mod peer;
pub mod records;
pub mod ring;

use flagpost_hal::{Address, CoreId, Lines, Machine, Region};
use flagpost_link::{Link as _, Op, Rank, Refusal, point, site};

use crate::{Atomics, Mapped, Ring, deferred::Kept, layout::entry_size};
use line::{WORDS, is_of, phase};
use peer::{Peer, counts};
use ring::FIRST;

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// Sends `immediate` to `to`, after `data` for `place` in its memory. If `inline`, the data may
    /// come to their place later than the immediate is taken.
    #[inline(never)]
    pub(crate) fn send(
        &self,
        to: Rank,
        (place, data): (u32, &[u8]),
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        self.region_of(to)?;
        let Some(peer) = self.peer(to).filter(|_| self.layout.ring.of_pairs()) else {
            return self.send_word(to, (place, data), immediate);
        };
        let travels = inline && to != self.rank() && data.len() <= self.most_inline;
        let end = place.saturating_add(data.len() as u32);
        // Data that go to their place at once must not come before older ones that have not.
        if !travels && !data.is_empty() && peer.has_under_way(place, end) {
            // ORDER: of two puts of the same bytes.
            point!("mapped.mail.send.placed", self.has_placed(Some(to))?);
        }
        if self.keeps() {
            self.send_lines((to, peer), (place, data), immediate, travels, op)
        } else if A::NATIVE {
            self.send_record((to, peer), (place, data), immediate, travels)
        } else {
            self.send_word(to, (place, data), immediate)
        }
    }

    /// Data under way to `peer`, in an entry before ticket `after`.
    #[inline(always)]
    pub(crate) fn leaves(&self, peer: &Peer, after: u32, place: u32, end: u32) {
        if peer.leaves(after, place, end) {
            self.under_way.set(self.under_way.get().saturating_add(1));
        }
    }

    /// Whether all data that this rank has sent in entries to `to` (to all, if none is named) are
    /// in their place.
    #[inline(never)]
    pub(crate) fn has_placed(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if self.under_way.get() == 0 {
            return Ok(());
        }
        let ranks = match to {
            Some(rank) => rank.get()..=rank.get(),
            None => 0..=u16::MAX,
        };
        let mut outcome = Ok(());
        for rank in ranks.map(Rank::new).take(PEERS) {
            let Some((peer, ticket)) = self.peer(rank).and_then(|p| Some((p, p.under_way()?)))
            else {
                continue;
            };
            let placed = if M::COHERENT {
                self.records_placed(rank, peer, ticket)?
            } else {
                self.lines_placed(rank, peer, ticket)?
            };
            if placed {
                peer.has_arrived();
                self.under_way.set(self.under_way.get().saturating_sub(1));
            } else {
                outcome = Err(Refusal::Busy(rank));
            }
        }
        outcome
    }

    /// The first word of the entry at `at`, if that has come.
    #[inline(always)]
    pub(crate) fn look_first(&self, at: Address, phase: u32) -> Option<u32> {
        let here = |word: u32| is_of(word, phase);
        // ACQUIRE: data must not be loaded earlier than the entry that announces them.
        let sites = [
            site!("mapped.mail.take.poll<acquire"),
            site!("mapped.mail.take.acquire"),
        ];
        let first = self.poll_for(at, here, sites);
        here(first).then_some(first)
    }

    // ---- The owner ----

    /// Which ring is looked at after which.
    pub(crate) fn take_turns(&self) {
        let (me, count) = (self.rank(), self.size());
        for (number, peer) in (0..count).zip(&self.peers) {
            let next = Rank::new(number).next(count);
            let other = if next == me { next.next(count) } else { next };
            peer.next.set(other);
            peer.head
                .set((self.layout.heads >> 2).wrapping_add(number.into()));
            if M::COHERENT && Rank::new(number) == me {
                self.turn.set(other);
            }
        }
    }

    /// Takes the next notification of some ring. Rings take turns; and so do lines of bells, if
    /// this is done `aside`.
    #[inline(never)]
    pub(crate) fn take(&self, aside: bool) -> Option<u32> {
        let rings = self.rings_of(self.rank()).ok()?;
        if !self.layout.ring.of_pairs() {
            return self.take_word(rings, 0, &self.peers.first()?.taken);
        }
        if let Ring::Bells { .. } = self.layout.ring {
            let taken = self.take_rung(rings, aside);
            if taken.is_none() {
                self.is_idle(rings);
            }
            return taken;
        }
        let count = self.size();
        let mut next = self.turn.get();
        for _ in 0..count {
            let source = next;
            next = source.next(count);
            let peer = self.peer(source)?;
            // What this rank has sent to itself, it knows. (One that is alone has nothing else to
            // look at.)
            if count > 1 && source == self.rank() && peer.sent == peer.taken {
                self.at_once.set(self.layout.faces);
                if M::COHERENT {
                    self.turn.set(peer.next.get());
                }
                continue;
            }
            let taken = if !M::COHERENT {
                self.take_lines(rings, source, peer)
            } else if A::NATIVE {
                self.take_entry(rings, source, peer)
            } else {
                self.take_word(rings, self.ring_number(source), &peer.taken)
            };
            if let Some(immediate) = taken {
                let at_once = M::COHERENT && self.at_once.get();
                self.took(source, peer, if at_once { peer.next.get() } else { next });
                return Some(immediate);
            }
        }
        if !M::COHERENT {
            self.is_idle(rings);
        }
        None
    }

    /// An entry of `source` was taken; `next` is whose turn it is.
    #[inline]
    pub(crate) fn took(&self, source: Rank, peer: &Peer, next: Rank) {
        self.sender.set(source);
        self.turn.set(next);
        if !M::COHERENT && peer.hears() {
            self.hear(source);
        }
    }

    /// Reads what has come without taking it, places its data, and tells the producers.
    #[inline(never)]
    pub(crate) fn read_without_taking(&self) {
        let Ok(rings) = self.rings_of(self.rank()) else {
            return;
        };
        if !self.keeps() {
            return;
        }
        let all = || (0..self.size()).map(u32::from).zip(&self.peers);
        // READ: payload is placed although its notification cannot be taken.
        point!("mapped.mail.attend.read", {
            if let Ring::Bells { .. } = self.layout.ring {
                self.read_rung(rings);
            } else {
                all().for_each(|(number, _)| self.read_ring(rings, number));
            }
        });
        // PLACE: a flush waits for it, and so does a producer that has heard of it.
        point!("mapped.mail.attend.place", self.place_kept(Kept::All));
        // ROOM: what is not taken any more is in the ring, and all the rest of it is free.
        point!("mapped.mail.attend.room", {
            for (number, peer) in all() {
                let untold = peer.taken != peer.told || peer.seen != peer.placed;
                if untold {
                    self.tell_counts(rings, number, peer);
                }
            }
        });
    }

    // ---- Where rings are ----

    pub(crate) const ENTRY: u32 = entry_size(M::LINE as u32, M::COHERENT);

    /// Where `owner`'s rings lie.
    #[inline]
    pub(crate) fn rings_of(&self, owner: Rank) -> Result<Region, Refusal> {
        self.region_of(owner)
            .map(|region| self.rings_in(region.owner))
    }

    /// The memory of `core` that rings are in.
    pub(crate) fn rings_in(&self, core: CoreId) -> Region {
        if !M::COHERENT && self.layout.in_buffer {
            Region::message_buffer(core)
        } else {
            Region::memory(core)
        }
    }

    /// Number of the ring that `producer` fills, among each rank's.
    pub(crate) fn ring_number(&self, producer: Rank) -> u32 {
        match self.layout.ring {
            Ring::Shared { .. } => 0,
            Ring::Pairs { .. } | Ring::Bells { .. } => producer.get().into(),
        }
    }

    /// The entry of `ticket` in ring `number`.
    pub(crate) fn entry(&self, rings: Region, number: u32, ticket: u32) -> Address {
        let entries = self.layout.ring.entries();
        let index = ticket & entries.wrapping_sub(1);
        // Nothing wraps: all entries lie in a region.
        let index = number.wrapping_mul(entries).wrapping_add(index);
        let offset = index.wrapping_mul(Self::ENTRY);
        rings.at(self.layout.entries.wrapping_add(offset))
    }

    /// The word in which the owner tells how far ring `number` was taken.
    pub(crate) fn head(&self, rings: Region, number: u32) -> Address {
        rings.at(self.layout.heads.wrapping_add(number.wrapping_mul(4)))
    }

    /// What is remembered of `rank`; several ranks share it if there are more than `PEERS`.
    #[inline]
    pub(crate) fn peer(&self, rank: Rank) -> Option<&Peer> {
        self.peers.get(rank.index().checked_rem(PEERS)?)
    }

    /// Whether mail is kept before it is placed: that of pairs, on a machine without coherence.
    #[inline]
    pub(crate) fn keeps(&self) -> bool {
        !M::COHERENT && self.layout.ring.of_pairs()
    }

    /// Whether a ring has no room for `ticket`, as far as `credit` tells. A ticket that was loaded
    /// too early may be before it: there is room for the next one.
    pub(crate) fn is_full(&self, ticket: u32, credit: u32) -> bool {
        ticket.wrapping_sub(credit) as i32 >= self.layout.ring.entries() as i32
    }

    /// The lap of a ring that `ticket` is in.
    pub(crate) fn lap(&self, ticket: u32) -> u32 {
        // A power of two.
        ticket.wrapping_shr(self.layout.ring.entries().trailing_zeros())
    }

    /// Empties own rings, before any peer may use them.
    pub(crate) fn clear_rings(&self) -> Result<(), Refusal> {
        let (layout, rings) = (self.layout, self.rings_of(self.rank())?);
        let entries = layout.ring.entries();
        self.machine.store_u32(rings.at(layout.tail), FIRST);
        self.clear_bells(rings);
        for number in 0..layout.ring.rings(self.size()) {
            let told = if self.keeps() {
                counts(FIRST, FIRST)
            } else {
                FIRST
            };
            self.machine.store_u32(self.head(rings, number), told);
            for step in 0..entries {
                // The other phase than that of the first ticket which has this entry.
                let ticket = FIRST.wrapping_add(step);
                let empty = !phase(self.lap(ticket)) & phase(1);
                let line = [empty.to_le_bytes(); WORDS];
                let at = self.entry(rings, number, ticket);
                self.machine.store_bytes(at, line.as_flattened());
            }
        }
        Ok(())
    }

    /// The lines that hold these bytes of own memory.
    pub(crate) fn lines(&self, offset: u32, bytes: u32) -> Lines {
        Lines::covering::<M>(self.own(offset), bytes)
    }
}
