//! The registers that the example uses, by their addresses.

#[path = "../../two-cores/access.rs"]
mod access;

pub(crate) use access::{load, store};

/// The semaphores: to free; to take, 0x80 behind; to free all of one core.
pub(crate) const SEMAPHORES: usize = 0x5802_6400;
pub(crate) const CLEAR: usize = SEMAPHORES + 0x140;

/// Clocks of the fourth bus, of which bit 25 is the semaphores'; which cores boot.
pub(crate) const CLOCKS: usize = 0x5802_44e0;
pub(crate) const BOOT: usize = 0x5802_44a0;

/// Of each core: debug, the cycle counter, and what lets it be stored to.
pub(crate) const DEBUG: usize = 0xe000_edfc;
pub(crate) const CYCLES_CONTROL: usize = 0xe000_1000;
pub(crate) const CYCLES: usize = 0xe000_1004;
pub(crate) const CYCLES_UNLOCK: usize = 0xe000_1fb0;

/// Of the Cortex-M7: the MPU's control, number, base and attributes of a region.
pub(crate) const MPU_CONTROL: usize = 0xe000_ed94;
pub(crate) const MPU_NUMBER: usize = 0xe000_ed98;
pub(crate) const MPU_BASE: usize = 0xe000_ed9c;
pub(crate) const MPU_ATTRIBUTES: usize = 0xe000_eda0;

/// Of the Cortex-M7: which caches are on; to drop all instructions, and a line of data.
pub(crate) const CACHES: usize = 0xe000_ed14;
pub(crate) const DROP_INSTRUCTIONS: usize = 0xe000_ef50;
pub(crate) const DROP_LINE: usize = 0xe000_ef60;
