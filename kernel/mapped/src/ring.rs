//! Rings of notifications: a line per entry, one consumer, and no lock where there is one producer.
//!
//! # Guarantee
//! G1. Who takes an entry finds its data, and its producer's earlier puts to this rank, in memory;
//!     inline payload as `held` says.
//! G2. Entries of one producer are taken in program order; those of a shared ring in the order of
//!     their tickets.
//! G3. No entry is lost or overwritten: a full ring refuses the producer, who has changed nothing;
//!     or sent a part of long payload, and knows how much.
//! G4. When [`flush`](flagpost_link::Access::flush) says so, inline payload is in its place as
//!     well.
//! G5. Who takes an entry may store to what its producer has read before: that does not find it any
//!     more.
//!
//! # Which ring
//! [`Ring::Pairs`]: every rank has one ring per peer, which only that peer fills. No lock, but a
//! line for each entry of each peer, and a word to poll per peer. [`Ring::Shared`]: every rank has
//! one ring, and producers take tickets under the owner's lock, or by a native atomic where the
//! machine has them. [`Ring::Bells`]: pairs, and a byte per peer to poll instead of a word
//! ([`bells`](crate::bells)).
//!
//! The default ([`Ring::for_ranks`]): for up to 4 ranks pairs, of 64 lines per rank (128 for two,
//! where half of the message buffer has room for them). For up to 64 ranks bells, of up to 128
//! lines per rank, where half of the message buffer has room for 2 lines per peer: on the SCC 2
//! lines for each of 48 ranks. Else, and where there are no message buffers, a shared ring of 64
//! lines. So it is, too, among more ranks than the link has [places](Mapped#sizes) for.
//!
//! Rings of pairs lie in the message buffer if their entries fill no more than half of it, since a
//! core polls its own buffer fastest; else in memory. So does a shared ring, if the slots of two
//! windows have room beside it (on the SCC: up to 378 ranks), and tickets are not taken by native
//! atomics.
//!
//! # Memory layout
//! An entry: the first 32 bytes of a line of its own; where caches are kept in step, just these.
//!
//! ```text
//!   word   0           1        2 … 5               6                              7
//!        ┌───────────┬────────┬───────────────────┬──────────────────────────────┬────────┐
//!   bit31│ phase     │ phase  │ phase             │ phase                        │ phase  │
//!   30…0 │ immediate │ place  │ 16 bytes of data  │ 30:    the line is no entry  │ room   │
//!        │           │        │                   │ 24…29: lines that follow     │        │
//!        │           │        │                   │ 8…23:  length                │        │
//!        │           │        │                   │ 0…5:   bits 31 of words 0…5  │        │
//!        └───────────┴────────┴───────────────────┴──────────────────────────────┴────────┘
//! ```
//! A line may arrive in pieces, in any order; only words arrive whole. So each word says by itself
//! that it is there: its *phase* is the parity of the ring's lap, the opposite of what the entry
//! held before. Data and flag travel in one bulk store, with no drain between them.
//!
//! Where the machine keeps its caches in step ([`COHERENT`](flagpost_hal::Coherence::COHERENT)) a
//! drain costs less than to pack words. There only word 0 has a phase, and it is stored behind a
//! drain (a shared ring's entries are such words everywhere):
//!
//! ```text
//!   word   0           1        2        3       4 … 7
//!        ┌───────────┬────────┬────────┬───────┬──────────────────┐
//!        │ phase,    │ unused │ length │ place │ 16 bytes of data │
//!        │ immediate │        │        │       │                  │
//!        └───────────┴────────┴────────┴───────┴──────────────────┘
//! ```
//!
//! Payload that is longer than 16 bytes may follow in lines of its own (`long`): length 65,534 says
//! so; the first word of data is its length, the other three begin it, and bits 24 to 29 of word 6
//! say how many lines follow at once. If yet more are to follow, one of these has bit 30, which no
//! entry has. Length 65,535 is none: the producer asks the owner to place what it holds.
//!
//! *Inline payload*: up to 16 bytes travel in the entry, and the target copies them to their place:
//! as soon as anybody but itself may look (`held`); on coherent machines, when they take the entry.
//! Longer data are stored in place by the producer, before the entry; and behind inline payload for
//! the same bytes, for which it waits as a flush does.
//!
//! Tickets start just below the wrap-around of `u32`, so that every run passes it. `head` counts
//! what was taken of a ring, and placed. Where long payload travels, it may be far behind: there
//! `room`, beside it, counts what was taken, and is what producers look at for room. It is told
//! when most of a ring was taken since, or a half and the owner has nothing else to do, or anything
//! and the owner's queue is full; and by each entry that goes the other way (word 7, which a
//! producer loads once half of its ring may be full), so that producers who are answered need not
//! look. The word is told whatever entries say: a producer that waits for room may not take those.
//!
//! # Invariants
//! I1. Only the holder of ticket `t` writes entry `t % n` between `head <= t - n` (or `room`) and
//!     taking it; a pair's ring has one holder, a shared ring's tickets are given out under the
//!     owner's lock (or by an atomic), and its entries are taken when all their words have arrived.
//! I2. `tail - head <= n`; or `tail - room <= n`, and `head` at most 2^30 and a put behind. Neither
//!     goes back, so a producer's older view errs on the safe side.
//! I3. An entry's words that have a phase are all written on every lap, so each word's phase
//!     changes with the lap.
//! I4. Whether `head` is stored depends on each word of the entry that is used: no load of one can
//!     finish behind it.
//!
//! # Steps
//! | call            | core     | memory actions, in order                                                   |
//! |-----------------|----------|----------------------------------------------------------------------------|
//! | `put_immediate` | producer | pairs: load head (room), if the last view says full. Shared: lock(owner),   |
//! |                 |          | acquire; load tail (and head); store tail; drain; unlock. Then bulk store  |
//! |                 |          | of longer data; drain, if anything was put or read since the last; bulk    |
//! |                 |          | store of the entry; its bell; drain                                        |
//! | `progress`      | owner    | load word 0 of the next entry of each ring (bells: load all bells, then    |
//! |                 |          | that word where one differs, and of the ring that was taken from last,     |
//! |                 |          | before or behind them): another phase: nothing there.                      |
//! |                 |          | Else acquire; load the others; hold the payload (`held`),                  |
//! |                 |          | or, if there is none, store head                                           |
//! | `flush`         | producer | load head, if payload of the own is under way                              |
//!
//! Remote accesses of a put_immediate of up to 16 bytes: pairs: 1 line, and 1 load per lap; bells:
//! 1 byte more; shared: the data, 1 lock, 1 load, 2 stores, 1 unlock, and 1 load per lap. An idle
//! `progress`: one load of own memory per ring, none of the own; bells: a line (or the words) per
//! 32 ranks.
//!
//! On coherent machines: `put_immediate` stores the entry's body; drains; stores its word.
//! `progress` loads the word; acquires; loads the body; stores the payload; drains; stores head.
//! Most take [one step](flagpost_hal::Records::take_record) of the machine for that, which
//! finds the ring whose turn it is.
//!
//! # Bounds
//! See [`Ring`]. A slow consumer makes its producers wait, never lose. Inline payload needs the
//! target's progress: a flush waits for it, and a target that never takes what arrives makes it
//! wait for ever; at no cost while none is under way.
//!
//! # Source
//! [NA] IV-C (ring of line-sized entries, inline payload) and the notification ring of Barrelfish
//! on the SCC (claim under the receiver's test-and-set register). We differ from both: phases in
//! the words replace a shared write position that the consumer would have to poll under the lock,
//! and a second store for the flag.
//!
//! [NA]: crate#sources

use flagpost_hal::{Address, CoreId, Lines, Machine, Region, Spot};
use flagpost_link::{Link as _, Rank, Refusal};

use crate::{
    Atomics, Mapped,
    entry::{WORDS, phase},
    layout::{MOST_ENTRIES, PAIRS, entry_size},
    peer::Peer,
};

/// The first ticket: 16 before the numbers wrap around.
pub(crate) const FIRST: u32 = 0_u32.wrapping_sub(16);

/// How notifications reach a rank; the same on all ranks. See the [module](self).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ring {
    /// One ring of so many lines per rank, for all producers.
    Shared {
        /// A power of two from 1 to 32,768.
        entries: u32,
    },
    /// One ring of so many lines per rank and peer. Up to 64 ranks, or as many as the link has
    /// [places](Mapped#sizes) for.
    Pairs {
        /// A power of two from 1 to 32,768.
        entries: u32,
    },
    /// [`Pairs`](Self::Pairs), and a byte per peer that says whether there is anything in its ring
    /// ([`bells`](crate::bells)). On machines that keep their caches in step the same as `Pairs`.
    /// Payload of more than 16 bytes does not travel in such rings.
    Bells {
        /// A power of two from 1 to 128.
        entries: u32,
    },
}

impl Ring {
    /// Lines per rank, unless asked for otherwise.
    const LINES: u32 = 64;
    /// And where half of the message buffer has room for so many: between two ranks, so that long
    /// payload waits for room half as often, and among more than a word each can be looked at.
    const MOST_LINES: u32 = 128;
    /// Least lines of a pair's ring without bells: a producer looks at `head` once in so many puts.
    /// And a rank that waits looks at a word of each of its rings, which are four then at most.
    const LEAST: u32 = 16;
    /// Least lines with bells.
    const LEAST_BELLED: u32 = 2;
    /// Most lines with bells: a bell of 8 bits is ahead then, never behind.
    const MOST_BELLED: u32 = 128;

    /// The default for so many ranks, with message buffers of so many bytes (0: none) and entries
    /// of `entry` bytes: see [there](self#which-ring).
    pub const fn for_ranks(ranks: u16, buffer: u32, entry: u32) -> Self {
        let near = match half(buffer).checked_div(entry) {
            Some(lines) => lines,
            None => 0,
        };
        let is_large = near >= Self::MOST_LINES;
        let lines = if ranks == 2 && is_large {
            Self::MOST_LINES
        } else {
            Self::LINES
        };
        let pairs = Self::share(lines, ranks);
        if pairs >= Self::LEAST {
            return Self::Pairs { entries: pairs };
        }
        let near = if is_large { Self::MOST_LINES } else { near };
        let belled = Self::share(near, ranks);
        if belled >= Self::LEAST_BELLED && ranks as usize <= PAIRS {
            return Self::Bells { entries: belled };
        }
        Self::Shared {
            entries: Self::LINES,
        }
    }

    /// The ring itself, or a shared one if so many `peers` are fewer than its ranks.
    pub(crate) const fn for_peers(self, ranks: u16, peers: usize) -> Self {
        if self.rings(ranks) as usize <= peers {
            return self;
        }
        Self::Shared {
            entries: Self::LINES,
        }
    }

    /// What each of so many ranks has of `lines`, rounded down to a power of two; or 0.
    const fn share(lines: u32, ranks: u16) -> u32 {
        let share = match lines.checked_div(ranks as u32) {
            Some(share) => share,
            None => lines,
        };
        match share.checked_ilog2() {
            Some(log) => 1_u32.wrapping_shl(log),
            None => 0,
        }
    }

    /// Entries of a ring.
    pub const fn entries(self) -> u32 {
        match self {
            Self::Shared { entries } | Self::Pairs { entries } | Self::Bells { entries } => entries,
        }
    }

    /// How many rings a rank has in a world of so many.
    pub(crate) const fn rings(self, ranks: u16) -> u32 {
        match self {
            Self::Shared { .. } => 1,
            Self::Pairs { .. } | Self::Bells { .. } => ranks as u32,
        }
    }

    /// Whether each has one producer.
    pub(crate) const fn of_pairs(self) -> bool {
        !matches!(self, Self::Shared { .. })
    }

    /// Whether a world of so many ranks can have such rings, where so many `peers` are remembered.
    pub(crate) fn check(self, ranks: u16, peers: usize) -> Result<(), Refusal> {
        let entries = self.entries();
        let fits = self.rings(ranks) as usize <= peers
            && !matches!(self, Self::Bells { entries } if entries > Self::MOST_BELLED);
        if entries.is_power_of_two() && entries <= MOST_ENTRIES && fits {
            Ok(())
        } else {
            Err(Refusal::BadRing { entries })
        }
    }
}

/// Half of a message buffer, of which a port may have kept a little for itself.
pub(crate) const fn half(buffer: u32) -> u32 {
    match buffer.checked_next_power_of_two() {
        Some(whole) => whole.wrapping_shr(1),
        None => buffer.wrapping_shr(1),
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    pub(crate) const ENTRY: u32 = entry_size(M::LINE as u32, M::COHERENT);

    // ---- Addresses ----

    /// Where `owner`'s rings lie.
    #[inline]
    pub(crate) fn rings_of(&self, owner: Rank) -> Result<Region, Refusal> {
        let Region { owner, .. } = self.region_of(owner)?;
        Ok(self.rings_in(owner))
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

    /// The `nth` entry of the ring whose first entry is at `first`, on a coherent machine.
    #[inline(always)]
    pub(crate) fn in_ring(&self, first: Spot, nth: u32) -> Spot {
        first.plus((nth & self.layout.mask).wrapping_mul(Self::ENTRY / 8))
    }

    /// How many of ring `number` were taken.
    pub(crate) fn head(&self, rings: Region, number: u32) -> Address {
        rings.at(self.layout.heads.wrapping_add(number.wrapping_mul(4)))
    }

    /// How many of ring `number` were taken, but perhaps not placed, when this was told last.
    pub(crate) fn room(&self, rings: Region, number: u32) -> Address {
        let before = self.layout.ring.rings(self.size());
        self.head(rings, number.wrapping_add(before))
    }

    /// What is remembered of `rank`; several ranks share it if there are more than `PEERS`.
    #[inline]
    pub(crate) fn peer(&self, rank: Rank) -> Option<&Peer> {
        self.peers.get(rank.index().checked_rem(PEERS)?)
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
            self.machine.store_u32(self.head(rings, number), FIRST);
            if self.takes_long {
                self.machine.store_u32(self.room(rings, number), FIRST);
            }
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
            assert_eq!(Ring::for_ranks(ranks, 0, 32), ring, "{ranks}");
            assert_eq!(ring.check(ranks, PAIRS), Ok(()));
        }
        let near = |ranks, buffer| Ring::for_ranks(ranks, buffer, 32);
        assert_eq!(near(2, 8 << 10), pairs(64));
        assert_eq!(near(2, (8 << 10) - 32), pairs(64));
        for (ranks, buffer) in [(2, 4 << 10), (3, 8 << 10), (4, u32::MAX)] {
            assert_eq!(near(ranks, buffer), near(ranks, 0));
        }
    }

    #[test]
    fn more_ranks_have_bells_where_half_of_the_buffer_has_room() {
        let bells = |entries| Ring::Bells { entries };
        let shared = Ring::Shared { entries: 64 };
        let expected = [
            (5, 8 << 10, bells(16)),
            (8, 8 << 10, bells(16)),
            (8, (8 << 10) - 32, bells(16)),
            (32, (8 << 10) - 32, bells(4)),
            (64, (8 << 10) - 32, bells(2)),
            (8, u32::MAX, bells(16)),
            (9, 8 << 10, bells(8)),
            (32, 8 << 10, bells(4)),
            (48, 8 << 10, bells(2)),
            (64, 8 << 10, bells(2)),
            (65, 8 << 10, shared),
            (65, u32::MAX, shared),
            (48, (4 << 10) + 1, bells(2)),
            (48, 4 << 10, shared),
        ];
        for (ranks, buffer, ring) in expected {
            assert_eq!(Ring::for_ranks(ranks, buffer, 32), ring, "{ranks}");
            assert_eq!(ring.check(ranks, PAIRS), Ok(()));
        }
        assert_eq!(Ring::for_ranks(48, 8 << 10, 64), shared);
    }

    #[test]
    fn more_ranks_than_are_remembered_share_a_ring() {
        let shared = Ring::Shared { entries: 64 };
        for ring in [Ring::Pairs { entries: 8 }, Ring::Bells { entries: 2 }] {
            for peers in [1, 2, 63, 64] {
                let ranks = peers as u16;
                assert_eq!(ring.for_peers(ranks, peers), ring);
                assert_eq!(ring.for_peers(ranks + 1, peers), shared);
            }
        }
        assert_eq!(shared.for_peers(u16::MAX, 1), shared);
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
            Ring::Bells { entries: 256 },
        ] {
            let entries = ring.entries();
            assert_eq!(ring.check(2, PAIRS), Err(Refusal::BadRing { entries }));
        }
        for ring in [Ring::Pairs { entries: 8 }, Ring::Bells { entries: 128 }] {
            for peers in [1, 2, 64] {
                let ranks = peers as u16;
                assert!(ring.check(ranks, peers).is_ok());
                assert!(ring.check(ranks + 1, peers).is_err());
            }
        }
    }
}
