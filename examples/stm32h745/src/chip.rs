//! The STM32H745 as a chip: registers, clock, locks.

use flagpost_cortex_m::{Chip, Lock, Shared};

use crate::registers::{CLEAR, CYCLES, SEMAPHORES, load, store};

/// Core 0, the Cortex-M7, or core 1, the Cortex-M4.
#[derive(Copy, Clone, Debug)]
pub struct H745<const CORE: u16>;

/// Regions of 16 KiB, in SRAM 4: see `shared.x`. The Cortex-M7 clears them.
// SAFETY (`link_section`): the linker script of each image places nothing else there.
#[unsafe(link_section = ".shared")]
pub static SHARED: Shared<2, 4096> = Shared::new();

const LOCKED: u32 = 1 << 31;

impl<const CORE: u16> H745<CORE> {
    /// How the semaphores name this core: a bus master.
    const MASTER: u32 = [3, 1][CORE as usize] << 8;
}

// SAFETY: the Cortex-M4 has no cache, and the MPU of the Cortex-M7 keeps `SHARED` out of its own.
// A DMB orders accesses to SRAM 4, which each core reaches by one way.
unsafe impl<const CORE: u16> Chip for H745<CORE> {
    fn core() -> u16 {
        CORE
    }

    /// The cycles of this core.
    fn counter() -> u32 {
        load(CYCLES)
    }

    /// The internal oscillator, as after a reset, for both cores.
    fn hertz() -> u64 {
        64_000_000
    }

    /// A read takes a free semaphore, and says which core has it.
    fn test_and_set(lock: Lock<'_>) -> bool {
        let read = SEMAPHORES + 0x80 + 4 * usize::from(lock.number);
        load(read) == LOCKED | Self::MASTER
    }

    fn clear(lock: Lock<'_>) {
        store(SEMAPHORES + 4 * usize::from(lock.number), Self::MASTER);
    }

    /// Only the holder can free: each core frees all that it held. The key is 0 after a reset.
    fn release_at_start(_: Lock<'_>) {
        store(CLEAR, Self::MASTER);
    }
}
