//! The board as a chip: what a port writes.

use flagpost_cortex_m::{Chip, Exclusives, Lock, Shared};

use crate::devices::Register;

/// Two Cortex-M33 without caches; their exclusives meet in QEMU's one monitor.
#[derive(Copy, Clone, Debug)]
pub(crate) struct An521;

/// Regions of 16 KiB.
pub(crate) static SHARED: Shared<2, 4096> = Shared::new();

// SAFETY: no core has a cache, and DMB orders what QEMU's one thread has not ordered already.
#[expect(unsafe_code, reason = "the contract of a chip")]
unsafe impl Chip for An521 {
    /// QEMU's WFE gives the turn away and returns: so no timer is needed.
    const SLEEPS: bool = true;

    fn core() -> u16 {
        Register::CpuId.load() as u16
    }

    /// An instruction takes a nanosecond, as QEMU is told; the board's counter steps every 50.
    fn counter() -> u32 {
        Register::Counter.load().wrapping_mul(50)
    }

    fn hertz() -> u64 {
        1_000_000_000
    }

    fn test_and_set(lock: Lock<'_>) -> bool {
        lock.swap()
    }

    fn clear(lock: Lock<'_>) {
        lock.free();
    }
}

impl Exclusives for An521 {}
