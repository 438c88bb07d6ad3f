//! Names of cores and of their memory.

use core::fmt;

/// Number of a core, `0..Topology::cores()`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CoreId(u16);

impl CoreId {
    /// Core number `number`. Only the machine knows if it has such a core.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The number, as an index into per-core tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "core {}", self.0)
    }
}

/// Which of a core's two pieces of shared memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Kind {
    /// Its share of ordinary (usually off-chip) memory, at the controller nearest to it.
    Memory,
    /// Its on-chip message buffer: small and fast.
    MessageBuffer,
}

/// A piece of shared memory that one core owns and every core can reach.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Region {
    /// The core that owns it.
    pub owner: CoreId,
    /// Which of the owner's pieces.
    pub kind: Kind,
}

impl Region {
    /// `owner`'s share of ordinary memory.
    pub const fn memory(owner: CoreId) -> Self {
        Self {
            owner,
            kind: Kind::Memory,
        }
    }

    /// `owner`'s message buffer.
    pub const fn message_buffer(owner: CoreId) -> Self {
        Self {
            owner,
            kind: Kind::MessageBuffer,
        }
    }

    /// The byte at `offset` of this region.
    pub const fn at(self, offset: usize) -> Address {
        Address {
            region: self,
            offset,
        }
    }
}

/// One byte of shared memory: a region and a byte offset into it.
///
/// The same `Address` means the same byte on every core, whatever the cores' own address maps look
/// like; a port translates.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Address {
    /// Bytes from the region's start. It comes first, as addresses that are compared mostly differ
    /// in it.
    pub offset: usize,
    /// The region.
    pub region: Region,
}

impl Address {
    /// The address `bytes` after this one. Saturates at the end of the offset's range, which no
    /// region reaches: a wrong sum is out of every region, and not at its start.
    pub const fn plus(self, bytes: usize) -> Self {
        Self {
            region: self.region,
            offset: self.offset.saturating_add(bytes),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.region.kind {
            Kind::Memory => "memory",
            Kind::MessageBuffer => "buffer",
        };
        write!(f, "{kind}[{}]+{:#x}", self.region.owner.get(), self.offset)
    }
}
