//! Which rings a world has, and where their lines are.
//!
//! [`Ring::Pairs`]: every rank has one ring per peer, which only that peer fills. No lock, but a
//! line for each entry of each peer, and a word to poll per peer. [`Ring::Bells`]: pairs, and a
//! byte per peer to poll instead of a word ([`bells`](super::bells)). [`Ring::Shared`]: every rank
//! has one ring, and producers take tickets under the owner's lock, or by a native atomic.
//!
//! # The default
//! | machine | ranks | ring |
//! |---|---|---|
//! | coherent, native atomics | up to 64 | pairs, of 64 lines per rank, at least 16 per peer |
//! | others | up to 4 | pairs, of 64 lines per rank; 128 for two, if half of the message buffer |
//! | | | has room for them |
//! | ... | up to 64 | bells, of up to 128 lines per rank, if half of the message buffer has room |
//! | | | for 2 lines per peer: on the SCC 2 lines for each of 48 ranks |
//! | all | else | a shared ring of 64 lines |
//!
//! More ranks than the link has [places](crate::Mapped#sizes) for share a ring, too.
//!
//! Rings of pairs lie in the message buffer if their lines fill no more than half of it, since a
//! core polls its own buffer fastest; else in memory. So does a shared ring, if the slots of two
//! windows have room beside it (on the SCC: up to 378 ranks), and tickets are not taken by native
//! atomics.
//!
//! Tickets start just below the wrap-around of `u32`, so that every run passes it.

use flagpost_link::Refusal;

use crate::layout::{MOST_ENTRIES, PAIRS};

/// The first ticket: 16 before the numbers wrap around.
pub(crate) const FIRST: u32 = 0_u32.wrapping_sub(16);

/// How notifications reach a rank; the same on all ranks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ring {
    /// One ring of `entries` lines per rank, for all producers.
    Shared {
        /// A power of two from 1 to 32,768.
        entries: u32,
    },
    /// One ring of `entries` lines per rank and peer. Up to 64 ranks, or as many as the link has
    /// [places](crate::Mapped#sizes) for.
    Pairs {
        /// A power of two from 1 to 32,768.
        entries: u32,
    },
    /// [`Pairs`](Self::Pairs), and a byte per peer that says whether there is anything in its ring
    /// ([`bells`](super::bells)). On machines that keep their caches in step the same as `Pairs`.
    Bells {
        /// A power of two from 1 to 128.
        entries: u32,
    },
}

impl Ring {
    /// Lines per rank, unless asked for otherwise.
    const LINES: u32 = 64;
    /// And where half of the message buffer has room for these: between two ranks, so that long
    /// data wait for room half as often, and among more than a word each can be looked at.
    const MOST_LINES: u32 = 128;
    /// Least lines of a pair's ring without bells: a producer loads `head` once in as many puts.
    /// And where no records travel, a rank that waits looks at four words then at most.
    const LEAST: u32 = 16;
    /// Least lines with bells.
    const LEAST_BELLED: u32 = 2;
    /// Most lines with bells: a bell of 8 bits is ahead then, never behind.
    const MOST_BELLED: u32 = 128;

    /// The default for `ranks`, where entries are `records`, or have `entry` bytes and may lie in
    /// message buffers of `buffer` bytes (0: none).
    pub(crate) const fn for_ranks(ranks: u16, buffer: u32, entry: u32, records: bool) -> Self {
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
        let mut pairs = Self::share(lines, ranks);
        if records && pairs < Self::LEAST && ranks as usize <= PAIRS {
            pairs = Self::LEAST;
        }
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

    /// The ring itself, or a shared one if `peers` are fewer than its ranks.
    pub(crate) const fn for_peers(self, ranks: u16, peers: usize) -> Self {
        if self.rings(ranks) as usize <= peers {
            return self;
        }
        Self::Shared {
            entries: Self::LINES,
        }
    }

    /// What each of `ranks` has of `lines`, rounded down to a power of two; or 0.
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

    /// How many rings a rank has in a world of `ranks`.
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

    /// Whether a world of `ranks` can have such rings, where `peers` are remembered.
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
            assert_eq!(Ring::for_ranks(ranks, 0, 32, false), ring, "{ranks}");
            assert_eq!(ring.check(ranks, PAIRS), Ok(()));
        }
        let near = |ranks, buffer| Ring::for_ranks(ranks, buffer, 32, false);
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
            assert_eq!(Ring::for_ranks(ranks, buffer, 32, false), ring, "{ranks}");
            assert_eq!(ring.check(ranks, PAIRS), Ok(()));
        }
        assert_eq!(Ring::for_ranks(48, 8 << 10, 64, false), shared);
    }

    #[test]
    fn records_have_a_ring_per_pair_of_up_to_64_ranks() {
        for (ranks, entries) in [(1, 64), (2, 32), (4, 16), (5, 16), (64, 16)] {
            let ring = Ring::for_ranks(ranks, 0, 32, true);
            assert_eq!(ring, Ring::Pairs { entries }, "{ranks}");
        }
        assert!(!Ring::for_ranks(65, 0, 32, true).of_pairs());
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
