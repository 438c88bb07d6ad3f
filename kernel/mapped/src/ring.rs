//! Rings of notifications: a line per entry, one consumer, and no lock where there is one producer.
//!
//! # Guarantee
//! G1. Who takes an entry finds its data, and its producer's earlier puts to this rank, in memory.
//! G2. Entries of one producer are taken in program order; those of a shared ring in the order of their tickets.
//! G3. No entry is lost or overwritten: a full ring refuses the producer, who has changed nothing.
//! G4. When [`flush`](flagpost_link::Link::flush) says so, inline payload is in its place as well.
//!
//! # Which ring
//! [`Ring::Pairs`]: every rank has one ring per peer, which only that peer fills. No lock, but a line for each entry of each
//! peer, and a word to poll per peer. [`Ring::Shared`]: every rank has one ring, and producers take tickets under the
//! owner's lock, or by a native atomic where the machine has them. The default is 64 lines per rank: pairs for up to 4
//! ranks, shared beyond, where pairs would be short and the words to poll many ([`Ring::for_ranks`]).
//!
//! Pairs lie in the message buffer if they fill no more than half of it, since a core polls its own buffer fastest; else in
//! memory. A shared ring lies in memory: where there are many ranks, the buffer is for their slots.
//!
//! # Memory layout (an entry of a pair: the first 32 bytes of a line of its own; a shared one: word 0 of that)
//! ```text
//!   word   0           1        2 … 5               6                      7
//!        ┌───────────┬────────┬───────────────────┬──────────────────────┬────────┐
//!   bit31│ phase     │ phase  │ phase             │ phase                │ phase  │
//!   30…0 │ immediate │ place  │ 16 bytes of data  │ length (8…12), and   │ 0      │
//!        │           │        │                   │ bits 31 of words 1…5 │        │
//!        └───────────┴────────┴───────────────────┴──────────────────────┴────────┘
//! ```
//! A shared entry is one word, which is one access of its consumer, for whom all producers queue; its data are stored in
//! place. A pair's line may arrive in pieces, in any order; only words arrive whole. So each word says by itself that it is there: its
//! *phase* is the parity of the ring's lap, the opposite of what the entry held before. Data and flag travel in one bulk
//! store, with no drain between them.
//!
//! *Inline payload*: up to 16 bytes travel in a pair's entry, and the target's `progress` copies them to their place before the
//! notification surfaces. Longer data are stored in place by the producer, before the entry; and behind inline payload
//! for the same bytes, for which it waits as a flush does.
//!
//! Tickets start just below the wrap-around of `u32`, so that every run passes it. `head` counts what was taken of a ring.
//!
//! # Invariants
//! I1. Only the holder of ticket `t` writes entry `t % n` between `head <= t - n` and taking it; a pair's ring has one holder, a
//!     shared ring's tickets are given out under the owner's lock (or by an atomic).
//! I2. `tail - head <= n`. `head` never goes back, so a producer's older view of it errs on the safe side.
//! I3. An entry's words (a shared one's: word 0) are all written on every lap, so each word's phase changes with the lap.
//!
//! # Steps
//! | call            | core     | memory actions, in order                                                   |
//! |-----------------|----------|----------------------------------------------------------------------------|
//! | `put_immediate` | producer | pairs: load head, if the last view of it says full. Shared: lock(owner),   |
//! |                 |          | acquire; load tail (and head); store tail; drain; unlock. Then bulk store  |
//! |                 |          | of data, unless inline; drain, if anything was put since the last; pairs:  |
//! |                 |          | bulk store of the entry; drain. Shared: store of the entry                 |
//! | `progress`      | owner    | load word 0 of the next entry of each ring: another phase: nothing there.  |
//! |                 |          | Else acquire; load the others; store the payload; drain; store head        |
//! | `flush`         | producer | load head, if payload of the own is under way                              |
//!
//! Remote accesses of a put_immediate of up to 16 bytes: pairs: 1 line, and 1 load per lap; shared: the data's line, 1 lock, 1 load,
//! 2 stores, 1 unlock, and 1 load per lap. An idle `progress`: one load of own memory per ring; none of the own.
//!
//! # Bounds
//! See [`Ring`]. A slow consumer makes its producers wait, never lose. Inline payload needs the target's progress: a flush waits for
//! it, and a target that never takes what arrives makes it wait for ever; at no cost while none is under way.
//!
//! # Source
//! [NA] IV-C (ring of line-sized entries, inline payload) and the notification ring of Barrelfish
//! on the SCC (claim under the receiver's test-and-set register). We differ from both: phases in the words
//! replace a shared write position that the consumer would have to poll under the lock, and a second store for the flag.
//!
//! [NA]: crate#sources

use core::cell::Cell;

use flagpost_hal::{Address, Atomic, Lines, Machine, Region};
use flagpost_link::{Link as _, Rank, Refusal, order, point, site};

use crate::{
    Atomics, Mapped,
    atomics::ATTEMPTS,
    entry::{DATA, Entry, WORDS, phase, word},
    layout::{MOST_ENTRIES, PAIRS, entry_size},
};

/// The first ticket: 16 before the numbers wrap around.
const FIRST: u32 = 0_u32.wrapping_sub(16);

/// How notifications reach a rank; the same on all ranks. See the [module](self).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ring {
    /// One ring of so many lines per rank, for all producers.
    Shared {
        /// A power of two from 1 to 32,768.
        entries: u32,
    },
    /// One ring of so many lines per rank and peer. Up to 64 ranks.
    Pairs {
        /// A power of two from 1 to 32,768.
        entries: u32,
    },
}

impl Ring {
    /// Lines per rank, unless asked for otherwise.
    const LINES: u32 = 64;
    /// Least lines of a pair's ring: a producer looks at `head` once in so many puts. And a rank that waits looks at a
    /// word of each of its rings, which are four then at most.
    const LEAST: u32 = 16;

    /// The default for so many ranks: 64 lines per rank, in pairs of at least 16 lines, or shared.
    pub const fn for_ranks(ranks: u16) -> Self {
        let entries = match Self::LINES.checked_div(ranks as u32) {
            Some(share) => share,
            None => Self::LINES,
        };
        match entries.checked_ilog2() {
            Some(log) if entries >= Self::LEAST => Self::Pairs {
                entries: 1_u32.wrapping_shl(log),
            },
            _ => Self::Shared {
                entries: Self::LINES,
            },
        }
    }

    /// Entries of a ring.
    pub const fn entries(self) -> u32 {
        match self {
            Self::Shared { entries } | Self::Pairs { entries } => entries,
        }
    }

    /// How many rings a rank has in a world of so many.
    pub(crate) const fn rings(self, ranks: u16) -> u32 {
        match self {
            Self::Shared { .. } => 1,
            Self::Pairs { .. } => ranks as u32,
        }
    }

    /// Whether a world of so many ranks can have such rings.
    pub(crate) fn check(self, ranks: u16) -> Result<(), Refusal> {
        let entries = self.entries();
        let fits = self.rings(ranks) <= PAIRS as u32;
        if entries.is_power_of_two() && entries <= MOST_ENTRIES && fits {
            Ok(())
        } else {
            Err(Refusal::BadRing { entries })
        }
    }
}

/// What a rank remembers of the rings between itself and some peer.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Pairs: the next ticket of the peer's ring.
    sent: Cell<u32>,
    /// `head` of the peer's ring, when it was last looked at.
    credit: Cell<u32>,
    /// Pairs: the next ticket to take of the own ring that the peer fills. Shared, of the first peer: of the own ring.
    taken: Cell<u32>,
    /// Inline payload that is under way.
    inline: Cell<Option<Inline>>,
    /// Shared: the peer whose `credit` this is.
    known: Cell<Option<Rank>>,
}

/// Inline payload that may not be in its place yet.
#[derive(Copy, Clone, Debug)]
struct Inline {
    to: Rank,
    /// The ticket behind the last one.
    ticket: u32,
    /// The bytes that it is for, and perhaps others between them.
    start: u32,
    end: u32,
}

impl Peer {
    pub(crate) const fn new() -> Self {
        Self {
            sent: Cell::new(FIRST),
            credit: Cell::new(FIRST),
            taken: Cell::new(FIRST),
            inline: Cell::new(None),
            known: Cell::new(None),
        }
    }
}

impl<M: Machine, A: Atomics<M>> Mapped<M, A> {
    const ENTRY: u32 = entry_size(M::LINE as u32);

    // ---- Addresses ----

    /// Where `owner`'s rings lie.
    fn rings_of(&self, owner: Rank) -> Result<Region, Refusal> {
        let Region { owner, .. } = self.region_of(owner)?;
        Ok(if self.layout.in_buffer {
            Region::message_buffer(owner)
        } else {
            Region::memory(owner)
        })
    }

    /// Number of the ring that `producer` fills, among each rank's.
    fn ring_number(&self, producer: Rank) -> u32 {
        match self.layout.ring {
            Ring::Shared { .. } => 0,
            Ring::Pairs { .. } => producer.get().into(),
        }
    }

    /// The entry of `ticket` in ring `number`.
    fn entry(&self, rings: Region, number: u32, ticket: u32) -> Address {
        let entries = self.layout.ring.entries();
        let index = ticket & entries.wrapping_sub(1);
        let index = number.saturating_mul(entries).saturating_add(index);
        let offset = index.saturating_mul(Self::ENTRY);
        rings.at(self.layout.entries.saturating_add(offset))
    }

    /// How many of ring `number` were taken.
    fn head(&self, rings: Region, number: u32) -> Address {
        rings.at(self.layout.heads.saturating_add(number.saturating_mul(4)))
    }

    /// What is remembered of `rank`; several ranks may share it if there are more than 64.
    fn peer(&self, rank: Rank) -> Option<&Peer> {
        self.peers.get(rank.index() % PAIRS)
    }

    /// The lap of a ring that `ticket` is in.
    fn lap(&self, ticket: u32) -> u32 {
        ticket
            .checked_div(self.layout.ring.entries())
            .unwrap_or(ticket)
    }

    // ---- Producer ----

    /// Empties own rings, before any peer may use them.
    pub(crate) fn clear_rings(&self) -> Result<(), Refusal> {
        let (layout, rings) = (self.layout, self.rings_of(self.rank())?);
        let entries = layout.ring.entries();
        self.machine.store_u32(rings.at(layout.tail), FIRST);
        for number in 0..layout.ring.rings(self.size()) {
            self.machine.store_u32(self.head(rings, number), FIRST);
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
            }));
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

    // ---- Consumer ----

    /// Takes the next entry of some ring. Rings take turns.
    pub(crate) fn take(&self) -> Option<u32> {
        let rings = self.rings_of(self.rank()).ok()?;
        if let Ring::Shared { .. } = self.layout.ring {
            return self.take_of(rings, 0, &self.peers.first()?.taken);
        }
        let count = self.size();
        let mut next = self.turn.get();
        for _ in 0..count {
            let source = next;
            next = source.next(count);
            let peer = self.peer(source)?;
            // What this rank has sent to itself, it knows.
            if source == self.rank() && peer.sent == peer.taken {
                continue;
            }
            let number = self.ring_number(source);
            if let Some(immediate) = self.take_of(rings, number, &peer.taken) {
                self.turn.set(next);
                return Some(immediate);
            }
        }
        None
    }

    /// Takes the next entry of ring `number`.
    fn take_of(&self, rings: Region, number: u32, taken: &Cell<u32>) -> Option<u32> {
        let ticket = taken.get();
        let at = self.entry(rings, number, ticket);
        let phase = phase(self.lap(ticket));
        let entry = self.look(at, phase)?;
        let next = ticket.wrapping_add(1);
        order!("mapped.ring.take.place<head", self.place(&entry), {
            // DRAIN: G3, G4: the entry is read, and its payload placed, before its producer may know it.
            point!("mapped.ring.take.drain", self.machine.drain());
            self.machine.store_u32(self.head(rings, number), next);
        });
        taken.set(next);
        Some(entry.immediate)
    }

    /// Puts inline payload in its place; none that lies elsewhere than in own memory.
    fn place(&self, entry: &Entry) {
        let payload = entry.payload();
        if !payload.is_empty() && self.check(entry.place, payload.len()).is_ok() {
            self.machine.store_bytes(self.own(entry.place), payload);
        }
    }

    /// The entry at `at`, if it is there: a word to look, then those that matter.
    fn look(&self, at: Address, phase: u32) -> Option<Entry> {
        let here = |word: u32| Entry::is_of(word, phase);
        // ACQUIRE: G1: data must not be loaded earlier than the entry that announces them.
        let sites = [
            site!("mapped.ring.take.poll<acquire"),
            site!("mapped.ring.take.acquire"),
        ];
        // Where a line takes no longer than a word: all of it, at once.
        let whole =
            matches!(self.layout.ring, Ring::Pairs { .. }) && self.machine.loads_lines(at.region);
        let line = Cell::new([[0; 4]; WORDS]);
        let load = |number: u32| {
            if !whole {
                return self.machine.load_u32(at.plus(number.wrapping_mul(4)));
            }
            let mut words = line.get();
            if number == 0 {
                self.machine.load_bytes(at, words.as_flattened_mut());
                line.set(words);
            }
            let word = words.get(number as usize).copied().unwrap_or_default();
            u32::from_le_bytes(word)
        };
        let first = self.poll_with(|| load(0), at, here, sites);
        if !here(first) {
            return None;
        }
        if let Ring::Shared { .. } = self.layout.ring {
            return Some(Entry::of_word(first));
        }
        let word = |number: u32| {
            let at = at.plus(number.wrapping_mul(4));
            let word = load(number);
            if point!("mapped.ring.take.whole", here(word); else true) {
                return Some(word);
            }
            // Not here yet: it is what a waiting loop looks at.
            self.polled.note(at, word);
            None
        };
        // What is late of an entry comes before its producer's next one.
        Entry::unpack(first, word)
    }

    /// The lines that hold these bytes of own memory.
    pub(crate) fn lines(&self, offset: u32, bytes: u32) -> Lines {
        Lines::covering::<M>(self.own(offset), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_ranks_have_a_ring_per_pair() {
        let pairs = |entries| Ring::Pairs { entries };
        let shared = Ring::Shared { entries: 64 };
        let expected = [
            (1, pairs(64)),
            (2, pairs(32)),
            (3, pairs(16)),
            (4, pairs(16)),
            (5, shared),
            (48, shared),
            (u16::MAX, shared),
        ];
        for (ranks, ring) in expected {
            assert_eq!(Ring::for_ranks(ranks), ring, "{ranks}");
            assert_eq!(ring.check(ranks), Ok(()));
        }
    }

    #[test]
    fn rings_that_cannot_be_are_refused() {
        for ring in [
            Ring::Shared { entries: 0 },
            Ring::Shared { entries: 3 },
            Ring::Pairs { entries: 0 },
            Ring::Pairs {
                entries: MOST_ENTRIES * 2,
            },
        ] {
            let entries = ring.entries();
            assert_eq!(ring.check(2), Err(Refusal::BadRing { entries }));
        }
        assert!(Ring::Pairs { entries: 8 }.check(64).is_ok());
        assert!(Ring::Pairs { entries: 8 }.check(65).is_err());
    }
}
