//! The registers that the example uses, by their addresses.

#[path = "../../two-cores/access.rs"]
mod access;

pub(crate) use access::{load, store};

/// SIO: which core reads; the FIFO to the other core; the spinlocks.
pub(crate) const CPU_ID: usize = 0xd000_0000;
pub(crate) const FIFO_STATUS: usize = 0xd000_0050;
pub(crate) const FIFO_WRITE: usize = 0xd000_0054;
pub(crate) const FIFO_READ: usize = 0xd000_0058;
pub(crate) const SPINLOCKS: usize = 0xd000_0100;

/// The crystal, and what the clocks are made of.
pub(crate) const XOSC_CONTROL: usize = 0x4004_8000;
pub(crate) const XOSC_STATUS: usize = 0x4004_8004;
pub(crate) const XOSC_STARTUP: usize = 0x4004_800c;
pub(crate) const CLOCK_REF: usize = 0x4001_0030;
pub(crate) const CLOCK_REF_IS: usize = 0x4001_0038;
pub(crate) const CLOCK_SYS: usize = 0x4001_003c;
pub(crate) const CLOCK_SYS_IS: usize = 0x4001_0044;

/// Of each core: auxiliary control, debug, the cycle counter.
pub(crate) const AUXILIARY: usize = 0xe000_e008;
pub(crate) const DEBUG: usize = 0xe000_edfc;
pub(crate) const CYCLES_CONTROL: usize = 0xe000_1000;
pub(crate) const CYCLES: usize = 0xe000_1004;
pub(crate) const VECTORS: usize = 0xe000_ed08;
