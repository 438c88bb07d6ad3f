//! The register bank of a tile: what is where in it, and what its bits mean.
//!
//! All accesses are uncached words; nothing protects a bank from any core (H7).
//! docs/hardware.md A3.
//!
//! | offset | register | [this port](crate) |
//! |---|---|---|
//! | 0x010, 0x018 | core configuration, GLCFG0 and 1 | bit 1 is the doorbell |
//! | 0x020, 0x028 | L2 configuration, L2CFG0 and 1 | |
//! | 0x080 | clocks and resets, GCBCFG | read for the clock rate |
//! | 0x100 | MYTILEID | who am I |
//! | 0x200, 0x400 | LOCK0 and 1, test-and-set | see [`lock`](crate::lock) |
//! | 0x800, 0x1000 | lookup tables | see [`lut`](crate::lut) |

use bitflags::bitflags;

use crate::map::Position;

/// Offset of MYTILEID.
pub const TILE_ID: u32 = 0x100;
/// Offset of the clock and reset register.
pub const CLOCKS: u32 = 0x080;

/// Offset of a core's configuration register.
pub const fn core_config(z: u16) -> u32 {
    0x010 + 8 * (z as u32 & 1)
}

/// Offset of a core's L2 configuration register.
pub const fn l2_config(z: u16) -> u32 {
    0x020 + 8 * (z as u32 & 1)
}

/// Offset of a core's test-and-set register.
pub const fn lock(z: u16) -> u32 {
    0x200 << (z & 1)
}

/// Offset of entry `slot` of a core's lookup table.
pub const fn lut(z: u16, slot: u8) -> u32 {
    (0x800 << (z & 1)) + 8 * slot as u32
}

bitflags! {
    /// A core's configuration register. Its bits have several writers: change it by
    /// read-modify-write under that core's test-and-set register only.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub struct CoreConfig: u32 {
        /// Raises LINT1, the non-maskable interrupt.
        const NMI = 1 << 0;
        /// Raises LINT0: the doorbell.
        const INTR = 1 << 1;
        /// INIT.
        const INIT = 1 << 2;
        /// Bits that software may change; those above are status.
        const WRITABLE = 0x1FFF;
        const _ = !0;
    }
}

bitflags! {
    /// The clock and reset register of a tile.
    ///
    /// Sources disagree about which of the two ratios is the router's and which the tile's. So
    /// rates are found by comparing all of the bits that BareMichael compares, not by fields.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub struct Clocks: u32 {
        /// Holds core 0 in reset.
        const RESET_CORE0 = 1 << 0;
        /// Holds core 1 in reset.
        const RESET_CORE1 = 1 << 1;
        /// Holds the L2 of core 0 in reset.
        const RESET_L2_0 = 1 << 2;
        /// Holds the L2 of core 1 in reset.
        const RESET_L2_1 = 1 << 3;
        /// What decides the tile's rate.
        const TILE = 0x03F8_0F00;
        /// What decides the mesh's rate.
        const MESH = 0x0007_F000;
        const _ = !0;
    }
}

impl Clocks {
    /// Rate of the tile's cores in MHz, if it is one of the known settings.
    pub const fn tile_megahertz(self) -> Option<u32> {
        match self.intersection(Self::TILE).bits() {
            0x070_0100 => Some(800),
            0x0A8_0200 => Some(533),
            0x0E0_0300 => Some(400),
            _ => None,
        }
    }

    /// Rate of the mesh in MHz, if it is one of the known settings.
    pub const fn mesh_megahertz(self) -> Option<u32> {
        match self.intersection(Self::MESH).bits() {
            0x0_E000 => Some(800),
            0x0_7000 => Some(1600),
            _ => None,
        }
    }
}

/// What MYTILEID says: x in bits 6:3, y in bits 10:7, who asks in bits 2:0.
///
/// The comments `TID_XPOS_RANGE 10:07` and `TID_YPOS_RANGE 06:03` in Intel's SCC_API.h are the
/// wrong way round; all four code bases that run on the chip, Intel's own included, decode it as
/// here.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TileId {
    /// Where the tile is.
    pub tile: Position,
    /// Which of its cores asks: 0 or 1.
    pub z: u16,
}

impl TileId {
    /// Decodes the register.
    pub const fn decode(bits: u32) -> Self {
        Self {
            tile: Position {
                x: (bits >> 3 & 0xF) as u16,
                y: (bits >> 7 & 0xF) as u16,
            },
            z: (bits & 7) as u16,
        }
    }

    /// The inverse of [`decode`](Self::decode): for buses that are not silicon.
    pub const fn encode(self) -> u32 {
        (self.tile.y as u32 & 0xF) << 7 | (self.tile.x as u32 & 0xF) << 3 | self.z as u32 & 7
    }
}
