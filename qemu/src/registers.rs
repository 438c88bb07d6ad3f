//! The registers of the emulated tiles and of the board's FPGA, as far as the SCC port uses them.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flagpost_hal::CoreId;
use flagpost_scc::map::TILE_CORES;
use flagpost_scc::registers::{self, CoreConfig};
use flagpost_scc::{Counter, fpga};

use crate::board::MAX_HARTS;

static LOCKS: [AtomicU32; MAX_HARTS] = [const { AtomicU32::new(HELD) }; _];
static CONFIGS: [AtomicU32; MAX_HARTS] = [const { AtomicU32::new(0) }; _];
static COUNTERS: [AtomicU32; Counter::COUNT as usize] = [const { AtomicU32::new(0) }; _];

/// States of a lock bit. Reading the register returns the bit and clears it; writing sets it.
const HELD: u32 = 0;
const FREE: u32 = 1;

/// A register of a core or of the FPGA.
#[derive(Copy, Clone)]
pub(crate) enum Register {
    /// Test-and-set: a load takes it, a store frees it.
    Lock(&'static AtomicU32),
    /// Loads and stores do what they say.
    Word(&'static AtomicU32),
    /// A load adds one.
    Counter(&'static AtomicU32),
    /// Who asks.
    TileId,
    /// The clock that all share, shifted right by so many bits.
    Time(u32),
}

impl Register {
    /// What is at `offset` of a tile's bank.
    pub(crate) fn of_tile(tile: u16, offset: u32) -> Option<Self> {
        if offset == registers::TILE_ID {
            return Some(Self::TileId);
        }
        (0..TILE_CORES).find_map(|z| {
            let core = usize::from(tile * TILE_CORES + z);
            if offset == registers::lock(z) {
                Some(Self::Lock(LOCKS.get(core)?))
            } else if offset == registers::core_config(z) {
                Some(Self::Word(CONFIGS.get(core)?))
            } else {
                None
            }
        })
    }

    /// What is at `offset` of the FPGA.
    pub(crate) fn of_fpga(offset: u32) -> Option<Self> {
        match offset {
            fpga::TIME_LOW => return Some(Self::Time(0)),
            fpga::TIME_HIGH => return Some(Self::Time(32)),
            _ => {}
        }
        let is = |&number: &u32| {
            Counter::new(number).is_some_and(|counter| counter.offset() == offset & !7)
        };
        let counter = COUNTERS.get((0..Counter::COUNT).find(is)? as usize)?;
        Some(match offset % 8 {
            0 => Self::Counter(counter),
            _ => Self::Word(counter),
        })
    }

    // ORDERING: Relaxed: registers order nothing (T4, M2 of `memory`).
    pub(crate) fn load(self, id: u32, cycles: u64) -> u32 {
        match self {
            Self::Lock(bit) => bit.swap(HELD, Relaxed),
            Self::Word(word) => word.load(Relaxed),
            Self::Counter(word) => word.fetch_add(1, Relaxed),
            Self::TileId => id,
            Self::Time(shift) => ((cycles / 8) >> shift) as u32,
        }
    }

    /// Does the store, if the register is one to store to.
    pub(crate) fn store(self, value: u32) -> bool {
        match self {
            Self::Lock(bit) => bit.store(FREE, Relaxed),
            Self::Word(word) => word.store(value, Relaxed),
            Self::Counter(_) | Self::TileId | Self::Time(_) => return false,
        }
        true
    }
}

/// The registers of `core` after a reset: lock held, bell rung, the rest anything.
pub(crate) fn reset(core: CoreId, garbage: u32) {
    LOCKS[core.index()].store(HELD, Relaxed);
    CONFIGS[core.index()].store(garbage | CoreConfig::INTR.bits(), Relaxed);
}
