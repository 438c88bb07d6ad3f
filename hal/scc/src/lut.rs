//! The lookup table: from a core's physical address to a place on the mesh.
//!
//! Each core's 4 GiB are 256 slots of 16 MiB; its table has an entry for each. An address leaves
//! the core as: the *route* (a tile), the *sub-destination* there (a port of its router, or one of
//! its devices), and 34 bits of address, of which the table gives the upper 10.
//!
//! ```text
//!    31      22  21   20   17 16   13 12    10 9         0
//!   ┌──────────┬────┬────────┬────────┬────────┬───────────┐
//!   │    0     │ by │   y    │   x    │  sub   │ bits 33:24│      one entry; stride 8 bytes
//!   └──────────┴────┴────────┴────────┴────────┴───────────┘
//! ```
//! docs/hardware.md A2, from sccsys.h, rck.dev and rck.c, which agree. (Constants
//! `mc2_tile = 0x50`, `mc3_tile = 0x02` in rck.dev have x and y swapped; the code that ran used
//! 0x05, 0x20, 0x25, as here.)
//!
//! The port relies on the default table and changes no entry: a wrong one hangs the core that uses
//! it (H7).

use bitflags::bitflags;
use flagpost_hal::CoreId;

use crate::bus::Physical;
use crate::map::{Controller, Map, Position, SLOT};

bitflags! {
    /// One entry of a lookup table.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    pub struct Entry: u32 {
        /// Bits 33:24 of the address at the destination.
        const UPPER = 0x3FF;
        /// Where to at the destination's router: [`SubDestination`].
        const SUB = 7 << 10;
        /// Column of the destination.
        const X = 0xF << 13;
        /// Row of the destination.
        const Y = 0xF << 17;
        /// Skip the mesh: the own tile. Not trusted (H1).
        const BYPASS = 1 << 21;
    }
}

/// What to do with a packet at the router of its destination.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum SubDestination {
    Core0,
    Core1,
    /// The tile's register bank.
    Registers,
    MessageBuffer,
    /// Out of the mesh to the east: a memory controller, at column 5.
    East,
    /// Out to the south: the system interface, at tile (3, 0).
    South,
    /// Out to the west: a memory controller, at column 0.
    West,
    North,
}

impl SubDestination {
    const ALL: [Self; 8] = [
        Self::Core0,
        Self::Core1,
        Self::Registers,
        Self::MessageBuffer,
        Self::East,
        Self::South,
        Self::West,
        Self::North,
    ];
}

/// Where an access ends up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The tile.
    pub tile: Position,
    /// What of it.
    pub sub: SubDestination,
    /// The 34-bit address there.
    pub address: u64,
}

/// Slots of private memory per core.
pub const PRIVATE_SLOTS: u32 = 41;

/// The slot of a controller that all cores share by default: behind the 12 x 41 private ones.
const SHARED_SLOT: u32 = 12 * PRIVATE_SLOTS;

impl Entry {
    /// The entry that leads to `sub` of `tile`, with `upper` as bits 33:24 of the address there.
    /// Bits that do not fit their field are dropped.
    pub const fn new(tile: Position, sub: SubDestination, upper: u32) -> Self {
        let route = (tile.y as u32 & 0xF) << 17 | (tile.x as u32 & 0xF) << 13;
        Self::from_bits_retain(route | (sub as u32) << 10 | upper & 0x3FF)
    }

    /// The entry that leads to `slot` of a memory controller.
    const fn memory(controller: Controller, slot: u32) -> Self {
        let (x, sub) = match controller.0 % 2 {
            0 => (0, SubDestination::West),
            _ => (5, SubDestination::East),
        };
        let y = controller.0 as u16 / 2 * 2;
        Self::new(Position { x, y }, sub, slot)
    }

    /// Entry `slot` of `core`'s table as the chip's software sets it at start, as far as known.
    ///
    /// `None` for slots that are unused or whose entry no source gives: the FPGA, the mailbox, the
    /// voltage regulator, the slot of the reset vector. That 0xD8 and 0xF8 are the own tile's with
    /// the bypass set is unverified.
    pub const fn default_of(core: CoreId, slot: u8) -> Option<Self> {
        use SubDestination::{MessageBuffer, Registers};
        const MAP: Map = Map::SCC;
        let slot_of = slot as u32;
        Some(match slot {
            0..0x29 => {
                let first = PRIVATE_SLOTS * MAP.index(core);
                Self::memory(MAP.controller(core), first + slot_of)
            }
            0x80..0x84 => Self::memory(Controller(slot - 0x80), SHARED_SLOT),
            0xC0..0xD8 => Self::new(tile_at(slot - 0xC0), MessageBuffer, 0),
            0xD8 => Self::new(MAP.position(core), MessageBuffer, 0).union(Self::BYPASS),
            0xE0..0xF8 => Self::new(tile_at(slot - 0xE0), Registers, 0),
            0xF8 => Self::new(MAP.position(core), Registers, 0).union(Self::BYPASS),
            _ => return None,
        })
    }

    /// Where the byte at `at` is, if this is the entry of its slot.
    pub fn translate(self, at: Physical) -> Destination {
        let upper = u64::from(self.intersection(Self::UPPER).bits());
        let sub = (self.intersection(Self::SUB).bits() >> 10) as usize;
        Destination {
            tile: Position {
                x: (self.intersection(Self::X).bits() >> 13) as u16,
                y: (self.intersection(Self::Y).bits() >> 17) as u16,
            },
            // Three bits: never out of range.
            sub: SubDestination::ALL
                .get(sub)
                .copied()
                .unwrap_or(SubDestination::Core0),
            address: upper << 24 | u64::from(at.get() % SLOT),
        }
    }
}

/// The place of a tile, by its number.
const fn tile_at(number: u8) -> Position {
    Map::SCC.position(CoreId::new(number as u16 * 2))
}

/// The slot that an address is in.
pub const fn slot(at: Physical) -> u8 {
    (at.get() / SLOT) as u8
}
