//! The image of conformance cases for QEMU's `mps2-an521`: two Cortex-M33, over
//! `flagpost-cortex-m`.
//!
//! `cargo xtask qemu --board an521` builds it, boots it and reads what it prints. Its arguments are
//! those of [`run`](flagpost_conformance::run), and come by semihosting.
//!
//! | file | what |
//! |---|---|
//! | `chip.rs` | the port: registers, clock, locks |
//! | `boot.rs` | vectors, stacks, start of core 1, records of traps and panics |
//! | `broken.rs` | cases that end the machine, to try the records of that |
//! | `devices.rs` | registers of the board, UART, semihosting |
//! | `an521.x` | the map of memory |
//!
//! All cores take turns on one thread of the host: each poll gives its turn away by YIELD. QEMU
//! models neither caches nor weak order, and core 0 has an FPU only if it is told so.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

mod boot;
mod broken;
mod chip;
mod devices;

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flagpost_conformance::{Args, AtomicU32 as Atomic, Bell, Board, Has, Plain, Record, cases};
use flagpost_cortex_m::{Chip as _, CortexM, instructions};
use flagpost_hal::{
    NativeAtomics as _, Region, TestAndSet as _, Topology as _, UncachedMemory as _,
};

use chip::{An521, SHARED};

/// Other hosts only type-check this image.
#[cfg(not(target_os = "none"))]
fn main() {
    let _ = run;
}

/// The platform, as the cases see it.
type TwoCores = Plain<CortexM<An521>, Both>;

/// The chip has atomics and bells.
struct Both;

impl Has<CortexM<An521>> for Both {
    const ATOMICS: Option<Atomic<CortexM<An521>>> = Some(CortexM::atomic_u32);
    const BELL: Option<Bell<CortexM<An521>>> = Some((CortexM::ring, CortexM::wait_for_ring));
}

/// A core, as the runner sees it.
#[derive(Copy, Clone)]
struct Core(CortexM<An521>);

impl Board for Core {
    type Platform = TwoCores;

    fn machine(&self) -> CortexM<An521> {
        self.0
    }

    fn barrier(&self, well: bool) -> bool {
        meet(self.0.core().index(), well)
    }

    fn reset(&self, garbage: u32) {
        let machine = self.0;
        let own = machine.core();
        for offset in (0..machine.memory_size()).step_by(4) {
            machine.store_u32(Region::memory(own).at(offset), garbage);
        }
        machine.test_and_set(own);
        machine.ring(own);
    }

    fn log(&self, record: &Record<'_>) {
        boot::print(format_args!("{record}"));
    }

    fn enters(&self, case: &'static str) {
        boot::set_case(case);
    }

    fn give_way(&self) {
        An521::relax();
    }

    fn stack(&self) -> &'static [AtomicU32] {
        boot::free_stack(self.0.core().index())
    }
}

/// Waits for the other core; true if both are well.
///
/// Each core stores a word per meeting: its number times 2, plus 1 if the core is not well. Words
/// of even and of odd meetings take turns, so that none is lost on a slow core.
fn meet(me: usize, well: bool) -> bool {
    static MEETINGS: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
    static WORDS: [[AtomicU32; 2]; 2] = [const { [const { AtomicU32::new(0) }; 2] }; 2];
    let number = MEETINGS[me].load(Relaxed).wrapping_add(1);
    MEETINGS[me].store(number, Relaxed);
    let words = &WORDS[number as usize % 2];
    An521::barrier();
    words[me].store(number << 1 | u32::from(!well), Relaxed);
    let other = loop {
        let word = words[1 - me].load(Relaxed);
        if word >> 1 == number {
            break word;
        }
        An521::relax();
    };
    An521::barrier();
    well && other & 1 == 0
}

/// Runs the selected cases, on each core. Core 0 ends QEMU.
fn run() -> ! {
    let mut buffer = [0; 512];
    let args = Args::new(devices::arguments(&mut buffer));
    #[cfg(mutants)]
    flagpost_points::break_point(args.text("mutant"));
    let Some(machine) = CortexM::start(&SHARED) else {
        panic!("the board has two cores");
    };
    let cases = cases().chain(broken::CASES);
    let passed = flagpost_conformance::run(Core(machine), cases, args);
    if machine.core().get() == 0 {
        devices::exit(u32::from(!passed));
    }
    loop {
        instructions::wfe();
    }
}
