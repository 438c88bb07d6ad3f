//! Where things are: mesh, memory controllers, regions, registers, as physical addresses.
//!
//! # Layout (the default lookup table of the chip, docs/hardware.md A2)
//! ```text
//!   0x0000_0000  private memory, 41 slots of 16 MiB
//!   0x8000_0000  shared memory: one slot on each of the 4 controllers, each shared out among the
//!                cores whose nearest controller it is:   [ core ][ core ] … 12 per quadrant
//!   0xC000_0000  message buffers: one slot per tile, row by row; 8 KiB per core, the second at
//!                0x2000. Core's 8 KiB:  [ region: 8,160 B ][ dummy line: 32 B ]
//!   0xD800_0000  own message buffer by the local bypass: not used (H1)
//!   0xE000_0000  register banks: one slot per tile, row by row
//!   0xF800_0000  register bank of the own tile
//!   0xF900_0000  registers of the board's FPGA
//! ```
//! # Invariants
//! * I1. An [`Address`] has the same physical address on all cores: the slots used here are the
//!   same in all default tables (the last test of `tests/port/map.rs`).
//! * I2. `place(physical(a)) == a`, and no two regions share a line. Regions of `Memory` are whole
//!   pages, so that each may be mapped as it wants.
//!
//! # Other sizes
//! An emulated board may have more than 24 tiles, but the address space stays one of 32 bits.
//! [`Map::mesh`] keeps the areas and makes the slots smaller: 384 MiB are 24 slots of 16 MiB, or
//! 256 of 1 MiB; a tile needs 16 KiB of either. It ends where the chip's own formats end: routes
//! and MYTILEID have four bits for each coordinate, so 16 x 16 tiles, 512 cores. Lookup tables,
//! whose entries are slots of 16 MiB, exist for the real size only.

use flagpost_hal::{Address, CoreId, Kind, Region};

use crate::bus::{LINE, Physical};

/// Bytes that one entry of a lookup table maps.
pub const SLOT: u32 = 1 << 24;

/// Bytes of on-chip memory per core.
pub const BUFFER: u32 = 8 << 10;

/// Bytes of a core's message buffer that are its region: the last line is the port's.
pub const BUFFER_REGION: u32 = BUFFER - LINE;

/// Cores per tile.
pub const TILE_CORES: u16 = 2;

/// Bytes per page: regions of `Memory` are whole pages.
const PAGE: u32 = 4096;

/// Start of shared memory: the four slots 0x80 to 0x83.
const MEMORIES: u32 = 0x8000_0000;
/// Start of the tiles' message buffers.
const BUFFERS: u32 = 0xC000_0000;
/// Start of the tiles' register banks.
const REGISTERS: u32 = 0xE000_0000;
/// Bytes of each of the two areas above.
const TILES: u32 = 24 * SLOT;
/// The register bank of the tile that asks.
const OWN_REGISTERS: u32 = 0xF800_0000;
/// The board's FPGA.
const FPGA: u32 = 0xF900_0000;

/// Place of a tile in the mesh.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Column.
    pub x: u16,
    /// Row.
    pub y: u16,
}

/// One of the four memory controllers: 0 and 1 are west and east of row 0, 2 and 3 of the row in
/// the middle.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Controller(pub u8);

/// What a core reaches at a physical address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Its private memory.
    Private,
    /// Shared memory or a message buffer, the dummy line included.
    Shared(Address),
    /// A byte of the register bank of the tile with this number.
    Registers {
        /// Number of the tile, row by row.
        tile: u16,
        /// Offset in the bank.
        offset: u32,
    },
    /// A byte of the board's FPGA.
    Fpga {
        /// Offset in its slot.
        offset: u32,
    },
    /// Nothing that the port may touch.
    Nothing,
}

/// The sizes that decide the map.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Map {
    columns: u16,
    rows: u16,
    cores: u16,
    /// Binary logarithm of the bytes between two tiles' slots.
    slot: u32,
    memory: u32,
}

impl Map {
    /// The chip: 6 x 4 tiles, 48 cores, 0x155000 bytes of shared memory for each.
    pub const SCC: Self = match Self::mesh(6, 4) {
        Some(map) => map,
        None => panic!("the chip's own mesh is one"),
    };

    /// A mesh of this many tiles, all of shared memory in use. `None` unless both numbers are even
    /// (there are four equal quadrants) and in 2..=16.
    pub const fn mesh(columns: u16, rows: u16) -> Option<Self> {
        if !columns.is_multiple_of(2) || !rows.is_multiple_of(2) {
            return None;
        }
        let (2..=16, 2..=16) = (columns, rows) else {
            return None;
        };
        let tiles = columns as u32 * rows as u32;
        let mut slot = SLOT.trailing_zeros();
        while TILES >> slot < tiles {
            slot -= 1;
        }
        let map = Self {
            columns,
            rows,
            cores: tiles as u16 * TILE_CORES,
            slot,
            memory: 0,
        };
        let memory = SLOT / map.cores_per_controller() / PAGE * PAGE;
        Some(Self { memory, ..map })
    }

    /// The same mesh, of which only the first `cores` cores are in use: at least 1.
    #[must_use]
    pub const fn with_cores(self, cores: u16) -> Self {
        let cores = if cores == 0 { 1 } else { cores };
        let cores = if cores < self.cores {
            cores
        } else {
            self.cores
        };
        Self { cores, ..self }
    }

    /// The same map, with at most `bytes` of shared memory per core: a multiple of a line.
    #[must_use]
    pub const fn with_memory(self, bytes: u32) -> Self {
        let bytes = bytes & !(LINE - 1);
        let memory = if bytes < self.memory {
            bytes
        } else {
            self.memory
        };
        Self { memory, ..self }
    }

    /// How many cores are in use.
    pub const fn cores(&self) -> u16 {
        self.cores
    }

    /// Bytes of shared memory per core.
    pub const fn memory_size(&self) -> u32 {
        self.memory
    }

    const fn cores_per_controller(&self) -> u32 {
        self.columns as u32 * self.rows as u32 / 4 * TILE_CORES as u32
    }

    /// Number of the core at this place of the mesh: `2 * (columns * y + x) + z`.
    pub const fn core(&self, position: Position, z: u16) -> CoreId {
        let tile = position
            .y
            .wrapping_mul(self.columns)
            .wrapping_add(position.x);
        CoreId::new(tile.wrapping_mul(TILE_CORES).wrapping_add(z))
    }

    /// Where the tile of `core` is.
    pub const fn position(&self, core: CoreId) -> Position {
        let (y, x) = divide(core.get() / TILE_CORES, self.columns);
        Position { x, y }
    }

    /// The controller that holds `core`'s memory, the nearest one. Row 1 is as far from the
    /// controllers of row 0 as from those of row 2; the quadrant decides.
    pub const fn controller(&self, core: CoreId) -> Controller {
        self.home(core).0
    }

    /// Number of `core` among those of its controller.
    pub const fn index(&self, core: CoreId) -> u32 {
        self.home(core).1
    }

    /// Controller and index, at once.
    const fn home(&self, core: CoreId) -> (Controller, u32) {
        let Position { x, y } = self.position(core);
        let (columns, rows) = (self.columns / 2, self.rows / 2);
        let (east, south) = (x >= columns, y >= rows);
        let column = if east { x - columns } else { x };
        let row = if south { y - rows } else { y };
        let tile = columns as u32 * row as u32 + column as u32;
        let index = tile * TILE_CORES as u32 + (core.get() % TILE_CORES) as u32;
        (Controller(east as u8 + 2 * south as u8), index)
    }

    /// Bytes of a region.
    pub const fn region_size(&self, kind: Kind) -> usize {
        match kind {
            Kind::Memory => self.memory as usize,
            Kind::MessageBuffer => BUFFER_REGION as usize,
        }
    }

    /// The physical address of the `len` bytes at `at`, if the core exists and all of them are
    /// inside its region (U1).
    pub const fn physical(&self, at: Address, len: usize) -> Option<Physical> {
        let size = self.region_size(at.region.kind);
        let owner = at.region.owner;
        if owner.get() >= self.cores || at.offset > size || len > size - at.offset {
            return None;
        }
        let start = match at.region.kind {
            Kind::Memory => self.memory(owner),
            Kind::MessageBuffer => self.buffer(owner),
        };
        Some(start.plus(at.offset as u32))
    }

    /// Start of `core`'s share of memory.
    const fn memory(&self, core: CoreId) -> Physical {
        let (controller, index) = self.home(core);
        Physical::new(MEMORIES + controller.0 as u32 * SLOT + index * self.memory)
    }

    /// Start of `core`'s message buffer.
    pub const fn buffer(&self, core: CoreId) -> Physical {
        let tile = (core.get() / TILE_CORES) as u32;
        let half = (core.get() % TILE_CORES) as u32 * BUFFER;
        Physical::new(BUFFERS).plus((tile << self.slot) + half)
    }

    /// The line of `core`'s message buffer that is kept free, to be stored to when the
    /// write-combining buffer must let go of another.
    pub const fn dummy_line(&self, core: CoreId) -> Physical {
        self.buffer(core).plus(BUFFER_REGION)
    }

    /// Start of the register bank of `core`'s tile, as every core sees it.
    pub const fn registers(&self, core: CoreId) -> Physical {
        let tile = (core.get() / TILE_CORES) as u32;
        Physical::new(REGISTERS).plus(tile << self.slot)
    }

    /// Start of the own tile's register bank.
    pub const fn own_registers() -> Physical {
        Physical::new(OWN_REGISTERS)
    }

    /// Start of the registers of the board's FPGA.
    pub const fn fpga() -> Physical {
        Physical::new(FPGA)
    }

    /// What `own` reaches at `at`: for buses that are not silicon.
    pub const fn place(&self, own: CoreId, at: Physical) -> Place {
        let at = at.get();
        match at {
            0..0x2900_0000 => Place::Private,
            MEMORIES..0x8400_0000 => self.place_in_memory(at),
            BUFFERS..0xD800_0000 => {
                let (tile, offset) = self.tile(at - BUFFERS);
                let core = tile as u32 * TILE_CORES as u32 + offset / BUFFER;
                if offset >= BUFFER * TILE_CORES as u32 || core >= self.cores as u32 {
                    return Place::Nothing;
                }
                let region = Region::message_buffer(CoreId::new(core as u16));
                Place::Shared(region.at((offset % BUFFER) as usize))
            }
            REGISTERS..OWN_REGISTERS => {
                let (tile, offset) = self.tile(at - REGISTERS);
                self.place_in_bank(tile, offset)
            }
            OWN_REGISTERS..FPGA => self.place_in_bank(own.get() / TILE_CORES, at - OWN_REGISTERS),
            FPGA..0xFA00_0000 => Place::Fpga { offset: at - FPGA },
            _ => Place::Nothing,
        }
    }

    /// Splits an offset in one of the tiles' areas.
    const fn tile(&self, offset: u32) -> (u16, u32) {
        (
            (offset >> self.slot) as u16,
            offset & ((1 << self.slot) - 1),
        )
    }

    const fn place_in_bank(&self, tile: u16, offset: u32) -> Place {
        if tile < self.cores.div_ceil(TILE_CORES) {
            Place::Registers { tile, offset }
        } else {
            Place::Nothing
        }
    }

    const fn place_in_memory(&self, at: u32) -> Place {
        let (controller, offset) = ((at - MEMORIES) / SLOT, at % SLOT);
        let (Some(index), Some(rest)) = (
            offset.checked_div(self.memory),
            offset.checked_rem(self.memory),
        ) else {
            return Place::Nothing;
        };
        // The inverse of `controller` and `index`.
        let (columns, rows) = (self.columns / 2, self.rows / 2);
        let tile = (index / TILE_CORES as u32) as u16;
        let (row, column) = divide(tile, columns);
        let position = Position {
            x: column + (controller % 2) as u16 * columns,
            y: row + (controller / 2) as u16 * rows,
        };
        let core = self.core(position, (index % TILE_CORES as u32) as u16);
        if index >= self.cores_per_controller() || core.get() >= self.cores {
            return Place::Nothing;
        }
        Place::Shared(Region::memory(core).at(rest as usize))
    }
}

/// Quotient and remainder. No size of a map is 0; this says so without a panic.
const fn divide(number: u16, by: u16) -> (u16, u16) {
    match (number.checked_div(by), number.checked_rem(by)) {
        (Some(quotient), Some(remainder)) => (quotient, remainder),
        _ => (0, 0),
    }
}
