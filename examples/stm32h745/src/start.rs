//! What each core sets for itself, and how the Cortex-M7 starts the Cortex-M4.

use flagpost_cortex_m::instructions::{dsb, isb};

use crate::chip::SHARED;
use crate::registers::{self, load, store};

/// Each core, before it uses anything that both use: the cycle counter, the semaphores.
pub fn own_core() {
    set(registers::DEBUG, 1 << 24);
    store(registers::CYCLES_UNLOCK, 0xc5ac_ce55);
    set(registers::CYCLES_CONTROL, 1);
    set(registers::CLOCKS, 1 << 25);
    load(registers::CLOCKS); // the clock runs two cycles later
}

/// The Cortex-M7: keeps SRAM 4 out of its caches, and turns these on.
pub fn caches() {
    const NEVER_RUN: u32 = 1 << 28;
    const LOAD_AND_STORE: u32 = 0b11 << 24;
    const NOT_CACHEABLE: u32 = 1 << 19; // Normal memory
    const SHAREABLE: u32 = 1 << 18;
    const SIZE: u32 = 15 << 1; // 64 KiB
    const ON: u32 = 1;
    store(registers::MPU_NUMBER, 0);
    store(registers::MPU_BASE, 0x3800_0000);
    let attributes = NEVER_RUN | LOAD_AND_STORE | NOT_CACHEABLE | SHAREABLE | SIZE | ON;
    store(registers::MPU_ATTRIBUTES, attributes);
    store(registers::MPU_CONTROL, 0b101); // on; the default map elsewhere
    dsb();
    isb();

    // After a reset the caches hold anything: 4 ways of 128 lines of 32 bytes.
    store(registers::DROP_INSTRUCTIONS, 0);
    for way in 0..4 {
        for line in 0..128 {
            store(registers::DROP_LINE, way << 30 | line << 5);
        }
    }
    dsb();
    isb();
    set(registers::CACHES, 0b11 << 16);
    dsb();
    isb();
}

/// The Cortex-M7: clears what both share, and starts the Cortex-M4, which option byte BCM4 = 0
/// keeps from starting alone.
pub fn second_core() {
    SHARED.clear();
    dsb(); // in memory before the other core runs
    set(registers::BOOT, 1 << 3);
}

fn set(register: usize, bits: u32) {
    store(register, load(register) | bits);
}
