//! The RP2350 as a chip: registers, clock, locks.

use flagpost_cortex_m::{Chip, Lock, Shared};

use crate::registers::{self, load, store};

/// Two Cortex-M33 and 520 KiB of memory without data caches.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Rp2350;

/// Regions of 16 KiB, in `.bss`: core 0 clears them before it starts core 1.
pub(crate) static SHARED: Shared<2, 4096> = Shared::new();

// SAFETY: `SHARED` lies in the chip's SRAM, which no data cache holds, and a DMB orders accesses
// to it.
unsafe impl Chip for Rp2350 {
    fn core() -> u16 {
        load(registers::CPU_ID) as u16
    }

    /// The cycles of this core.
    fn counter() -> u32 {
        load(registers::CYCLES)
    }

    /// The crystal's, as `start::clocks` sets it.
    fn hertz() -> u64 {
        12_000_000
    }

    /// A read of 0: another core holds it.
    fn test_and_set(lock: Lock<'_>) -> bool {
        load(spinlock(lock)) != 0
    }

    fn clear(lock: Lock<'_>) {
        store(spinlock(lock), 1);
    }
}

/// 5, 6 and 7 are three of those that erratum E2 spares.
fn spinlock(lock: Lock<'_>) -> usize {
    registers::SPINLOCKS + 4 * (5 + usize::from(lock.number % 3))
}
