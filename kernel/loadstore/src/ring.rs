//! [`Ring`]: which rings a world has.
//!
//! [`Ring::Pairs`]: every rank has one ring per peer, which only that peer fills. No lock, but a
//! line for each entry of each peer, and a word to poll per peer. [`Ring::Bells`]: pairs, and a
//! byte per peer to poll instead of a word. [`Ring::Shared`]: every rank has one ring, and
//! producers take tickets under the owner's lock, or by a native atomic.
//!
//! Tickets start just below the wrap-around of `u32`, so that every run passes it.

use flagpost_link::Refusal;

/// The first ticket: 16 before the numbers wrap around.
pub const FIRST: u32 = 0_u32.wrapping_sub(16);

/// Most ranks with a ring per pair.
pub const PAIRS: usize = 64;

/// Most entries of a ring.
const MOST_ENTRIES: u32 = 1 << 15;

/// Most entries with bells: a bell of 8 bits is ahead then, never late.
pub const MOST_BELLED: u32 = 128;

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
    /// places for.
    Pairs {
        /// A power of two from 1 to 32,768.
        entries: u32,
    },
    /// [`Pairs`](Self::Pairs), and a byte per peer that says whether there is anything in its ring.
    /// On a link for coherent machines the same as `Pairs`.
    Bells {
        /// A power of two from 1 to 128.
        entries: u32,
    },
}

impl Ring {
    /// One ring for all, of the default size.
    pub const SHARED: Self = Self::Shared { entries: 64 };

    /// The ring itself, or a shared one if `peers` are fewer than its ranks.
    #[must_use]
    pub const fn for_peers(self, ranks: u16, peers: usize) -> Self {
        if self.rings(ranks) as usize <= peers {
            self
        } else {
            Self::SHARED
        }
    }

    /// Entries of a ring.
    #[inline(always)]
    pub const fn entries(self) -> u32 {
        match self {
            Self::Shared { entries } | Self::Pairs { entries } | Self::Bells { entries } => entries,
        }
    }

    /// How many rings a rank has in a world of `ranks`.
    pub const fn rings(self, ranks: u16) -> u32 {
        match self {
            Self::Shared { .. } => 1,
            Self::Pairs { .. } | Self::Bells { .. } => ranks as u32,
        }
    }

    /// True if each has one producer.
    #[inline(always)]
    pub const fn of_pairs(self) -> bool {
        !matches!(self, Self::Shared { .. })
    }

    /// `Ok` if a world of `ranks` can have such rings, where `peers` are remembered.
    ///
    /// # Errors
    /// [`Refusal::BadRing`].
    pub fn check(self, ranks: u16, peers: usize) -> Result<(), Refusal> {
        let entries = self.entries();
        let fits = self.rings(ranks) as usize <= peers
            && !matches!(self, Self::Bells { entries } if entries > MOST_BELLED);
        if entries.is_power_of_two() && entries <= MOST_ENTRIES && fits {
            Ok(())
        } else {
            Err(Refusal::BadRing { entries })
        }
    }
}

/// The share of `lines` that each of `ranks` has, rounded down to a power of two; or 0.
pub const fn share(lines: u32, ranks: u16) -> u32 {
    let share = match lines.checked_div(ranks as u32) {
        Some(share) => share,
        None => lines,
    };
    match share.checked_ilog2() {
        Some(log) => 1_u32.wrapping_shl(log),
        None => 0,
    }
}

/// Three quarters of a message buffer, of which a port may have kept a little for itself.
pub const fn three_quarters(buffer: u32) -> u32 {
    let half = half(buffer);
    half.saturating_add(half.wrapping_shr(1))
}

/// Half of a message buffer, of which a port may have kept a little for itself.
pub const fn half(buffer: u32) -> u32 {
    match buffer.checked_next_power_of_two() {
        Some(whole) => whole.wrapping_shr(1),
        None => buffer.wrapping_shr(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_ranks_than_are_remembered_share_a_ring() {
        let shared = Ring::SHARED;
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
