//! Flagpost on QEMU's riscv64 `virt` board: 1 to 512 harts, bare metal, M mode.
//!
//! QEMU models no cache and its harts are coherent. To be a fair stand-in for the chips meant here,
//! this board is a bus of the SCC port ([`flagpost_scc`]): it gives every hart a private cache in
//! software ([`flagpost_hal::image`]), a write-combining buffer and the SCC's registers. Memory is
//! zero at reset, which a chip's is not: a runner of cases fills it with garbage before each one
//! ([`Hart::reset`]). The library under test runs on the port, [`Hart::machine`]; the board's own
//! code (logger, start-up, [`barrier`]) is free to use what the emulated hardware really has:
//! coherent atomics.
//!
//! [`Mapping::Normal`] leaves dirty lines in the cache, and so shows most: a write-back, an
//! invalidate or a drain that is missing. With the message mappings there is nothing to write back.
//!
//! # A program
//! ```ignore
//! #![no_std]
//! #![no_main]
//! use flagpost_qemu::{Exit, Hart};
//!
//! flagpost_qemu::entry!(main);
//!
//! fn main(hart: Hart) -> Exit {              // on every hart, at the same time
//!     defmt::println!("one of {=u16}", hart.cores());
//!     Exit::Pass                             // the machine ends when all harts have returned
//! }
//! ```
//! It is linked with `linker/flagpost-riscv64-virt.x` and `defmt.x`; `examples/bare-metal-rust` is
//! a whole project. Arguments come from QEMU's `-append`: [`boot_args`].
//!
//! # From reset to the end
//! | step | where | what |
//! |---|---|---|
//! | 1 | `boot.s` | trap vector, floating point, stack and trap stack |
//! | 2 | `boot` | own software interrupt pending (so that `wfi` yields), guard below the stack |
//! | 3 | `boot`, hart 0 | device tree: how many harts, which arguments |
//! | 4 | `barrier` | all harts are up |
//! | 5 | `flagpost_main` | what [`entry!`] names |
//! | 6 | `end` | barrier; status 0 if all passed |
//!
//! A trap or a panic on any hart logs one record and ends the machine with status 1.
//!
//! # Waiting
//! Run it with `-accel tcg,thread=single -icount shift=0,sleep=off`. All harts then share one host
//! thread, so a loop that polls must hand its turn on: [`Relax::relax`](flagpost_hal::Relax), which
//! is `wfi` with an interrupt pending. Every run does the same, instruction by instruction. Without
//! `sleep=off` it does not: QEMU 7.2 lets the host's clock cut turns short, and some runs of
//! hundreds of harts all but stop. A host thread per hart works too, slowly.
//!
//! A call that waits for very long logs once what it waits for, and at which line; so does the
//! error that a program returns. A hart whose program has returned has left: calls that need it
//! give `Error::PeerLeft`. If a program has failed, and all harts that have not left wait for very
//! long, the machine ends with status 1.
//!
//! # The log
//! defmt frames (rzcobs) on the 16550 UART; the timestamp of a record is the number of its core.
//!
//! # `unsafe`
//! Lives in `boot` (start-up, registers of the core), `devices` (device registers), `memory` (one
//! cell per hart) and `log` (the contract of defmt's logger), nowhere else, but for names that the
//! linker, the boot code or the host look for (`no_mangle`).
#![no_std]

mod barrier;
mod board;
mod boot;
mod bus;
mod csr;
mod devices;
mod end;
mod entry;
mod hart;
mod log;
mod memory;
mod registers;
mod silence;
mod standing;
mod status;
mod trap;

pub use barrier::{agree, barrier};
pub use board::{MAX_HARTS, boot_args};
pub use boot::load_from_zero;
pub use end::{finish, leave};
pub use entry::{Exit, Outcome};
pub use flagpost_scc::{Mapping, Scc};
pub use hart::Hart;
pub use memory::LINE;
pub use status::set_case;
