//! What both images have: the chip, its start, the program.
#![no_std]

pub mod chip;
#[path = "../../two-cores/program.rs"]
mod program;
mod registers;
pub mod start;

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use chip::{H745, SHARED};
use flagpost_cortex_m::{CortexM, instructions};

/// How it went, to a debugger; each image has its own. 0 as long as the core runs, 1 if all was
/// well, 2 if a call failed, 3 after a panic.
#[used]
static RESULT: AtomicU32 = AtomicU32::new(0);

/// Runs the program on core `CORE`.
pub fn run<const CORE: u16>() -> ! {
    let core = CortexM::<H745<CORE>>::start(&SHARED);
    let passed = core.is_some_and(|core| program::run(core).is_ok());
    end(if passed { 1 } else { 2 })
}

fn end(result: u32) -> ! {
    RESULT.store(result, Relaxed);
    loop {
        instructions::wfe();
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    end(3)
}
