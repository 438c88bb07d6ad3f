//! The words that a link and its user share.

use core::fmt;

/// Number of a process (here: of a core) in the world, `0..size`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rank(u16);

impl Rank {
    /// Rank `number`. Whether the world has it is checked where it is used.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The number, as an index into per-rank tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The next rank round a ring of `size`.
    pub const fn next(self, size: u16) -> Self {
        self.ahead(1, size)
    }

    /// The previous rank round a ring of `size`.
    pub const fn prev(self, size: u16) -> Self {
        self.ahead(size.saturating_sub(1), size)
    }

    /// The rank `distance` further on round a ring of `size`.
    pub const fn ahead(self, distance: u16, size: u16) -> Self {
        // u32 holds the sum of two u16; a remainder by a u16 fits a u16 again.
        match (self.0 as u32)
            .wrapping_add(distance as u32)
            .checked_rem(size as u32)
        {
            Some(rank) => Self(rank as u16),
            None => self,
        }
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

/// Names a piece of memory that a rank exposes through its link. Opaque: only the link that made it, or a
/// link it was sent to, can tell what it means.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Key(u32);

impl Key {
    /// For links: a key with this meaning.
    pub const fn new(raw: u32) -> Self {
        Self(raw)
    }

    /// For links, and to send a key to a peer.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Number of a signal counter, `0..`[`Link::SLOTS`](crate::Link::SLOTS).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Slot(pub u8);

/// Why a link did not do what it was asked to. Nothing has changed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// The rank has not started up yet. Try again.
    NotReady(Rank),
    /// The rank's queue of immediates is full. Try again: it drains as the rank makes progress.
    Full(Rank),
    /// The rank's test-and-set register is held by somebody. Try again.
    Locked(Rank),
    /// Bytes up to `end` were named, and there are `size`.
    OutOfRange {
        /// Offset behind the last byte that was named.
        end: u64,
        /// How many bytes there are.
        size: u32,
    },
    /// The rank's shared memory is used up.
    NoMemory {
        /// How many bytes more it would take.
        missing: u32,
    },
    /// A ring of so many entries cannot be: ask for a power of two, up to 32,768.
    BadRing {
        /// How many were asked for.
        entries: u32,
    },
    /// There is no such rank.
    NoSuchRank(Rank),
    /// There is no such slot.
    NoSuchSlot(Slot),
}

impl Refusal {
    /// Whether the same call may succeed later.
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::NotReady(_) | Self::Full(_) | Self::Locked(_))
    }
}
