//! The monitor: start-up code and board of an emulated SCC, on QEMU's i386 machine.
//!
//! ```text
//!   QEMU      -kernel this, -initrd the image, -append the boot words
//!     │
//!   start     one core: page tables, the image into each core's private memory; then all cores
//!     │
//!   image     runs with paging on, in ring 0, as on the chip
//!     │ ▲
//!   traps     a page fault: a register, or a message line; 0F 0A: CL1INVMB; int 0x30: a call
//! ```
//! | module | concern |
//! |---|---|
//! | `start` | from the first instruction to the image's |
//! | `tables` | page tables, as `flagpost_scc::views` asks for them |
//! | `traps` | what is done in a page fault and in each other trap |
//! | `machine` | instructions and memory of the PC |
//! | `say` | lines for the host, and the end |
#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

/// Other hosts only type-check this crate's library.
#[cfg(not(all(target_os = "none", target_arch = "x86")))]
fn main() {}

#[cfg(all(target_os = "none", target_arch = "x86"))]
#[expect(unsafe_code, reason = "instructions and memory of the PC")]
mod machine;
#[cfg(all(target_os = "none", target_arch = "x86"))]
mod say;
#[cfg(all(target_os = "none", target_arch = "x86"))]
#[expect(
    unsafe_code,
    reason = "the first instructions, and the jump to the image"
)]
mod start;
#[cfg(all(target_os = "none", target_arch = "x86"))]
mod tables;
#[cfg(all(target_os = "none", target_arch = "x86"))]
#[expect(unsafe_code, reason = "the entry of each trap")]
mod traps;
