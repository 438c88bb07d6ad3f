//! A notified put and an epoch between the two cores of an RP2350.
//!
//! `RESULTS` says how it went, to a debugger.
#![no_std]
#![no_main]

mod chip;
#[path = "../../two-cores/program.rs"]
mod program;
mod registers;
mod start;

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flagpost_cortex_m::{Chip as _, CortexM, Section, instructions};

use chip::{Rp2350, SHARED};

critical_section::set_impl!(Section<Rp2350>);

/// Of each core: 0 as long as it runs, 1 if all was well, 2 if a call failed, 3 after a panic.
#[used]
static RESULTS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

#[cortex_m_rt::entry]
fn first_core() -> ! {
    start::clocks();
    start::own_core();
    start::second_core();
    run()
}

/// The same on both cores.
fn run() -> ! {
    let passed = CortexM::<Rp2350>::start(&SHARED).is_some_and(|core| program::run(core).is_ok());
    end(if passed { 1 } else { 2 })
}

fn end(result: u32) -> ! {
    if let Some(own) = RESULTS.get(usize::from(Rp2350::core())) {
        own.store(result, Relaxed);
    }
    loop {
        instructions::wfe();
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    end(3)
}
