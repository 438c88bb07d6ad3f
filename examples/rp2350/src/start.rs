//! Clocks, what each core sets for itself, and the start of core 1.

use flagpost_cortex_m::{Stack, entry, instructions};

use crate::registers::{self, load, store};

/// What the boot ROM looks for: a program for Arm, in secure state.
// SAFETY (`link_section`): `memory.x` places it, and nothing else reads it.
#[used]
#[unsafe(link_section = ".start_block")]
static IMAGE: [u32; 5] = [0xffff_ded3, 0x1021_0142, 0x0000_01ff, 0, 0xab12_3579];

/// 96 KiB: starting a world takes most of it.
static STACK: Stack<{ 24 << 10 }> = Stack::new();

entry!(second, second_main);

extern "C" fn second_main() -> ! {
    STACK.guard();
    own_core();
    crate::run()
}

/// Runs both cores by the crystal of 12 MHz. For core 0.
pub(crate) fn clocks() {
    store(registers::XOSC_STARTUP, 47); // a millisecond, in units of 256 of its cycles
    store(registers::XOSC_CONTROL, 0xfab << 12 | 0xaa0); // on; 1 to 15 MHz
    while load(registers::XOSC_STATUS) >> 31 == 0 {}
    store(registers::CLOCK_SYS, 0); // by the reference
    while load(registers::CLOCK_SYS_IS) != 1 {}
    store(registers::CLOCK_REF, 2); // by the crystal
    while load(registers::CLOCK_REF_IS) != 1 << 2 {}
}

/// What each core sets for itself, before it uses anything that both use.
pub(crate) fn own_core() {
    // Exclusives go to the monitor that both cores share.
    store(registers::AUXILIARY, load(registers::AUXILIARY) | 1 << 29);
    store(registers::DEBUG, load(registers::DEBUG) | 1 << 24);
    store(
        registers::CYCLES_CONTROL,
        load(registers::CYCLES_CONTROL) | 1,
    );
    instructions::dsb();
    instructions::isb();
}

/// Starts core 1, which waits in the boot ROM: it echoes the words that it has taken.
pub(crate) fn second_core() {
    let entry: unsafe extern "C" fn() -> ! = second;
    let vectors = load(registers::VECTORS);
    let words = [
        0,
        0,
        1,
        vectors,
        STACK.top().addr() as u32,
        entry as usize as u32,
    ];
    let mut next = 0;
    while let Some(&word) = words.get(next) {
        if word == 0 {
            // It begins anew.
            while load(registers::FIFO_STATUS) & 1 != 0 {
                load(registers::FIFO_READ);
            }
            instructions::sev();
        }
        while load(registers::FIFO_STATUS) & 2 == 0 {}
        store(registers::FIFO_WRITE, word);
        instructions::sev();
        while load(registers::FIFO_STATUS) & 1 == 0 {}
        let is_taken = load(registers::FIFO_READ) == word;
        next = if is_taken { next + 1 } else { 0 };
    }
}
