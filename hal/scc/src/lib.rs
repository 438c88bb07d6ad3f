//! Flagpost's port to the Intel SCC: 48 cores, private caches that nothing keeps coherent, message
//! buffers and lock bits on the chip, four memory controllers.
//!
//! [`Scc`] implements the traits of `flagpost-hal` at register level. The port does everything
//! through a [`Bus`]: physical accesses, each with the memory type of its page, and a few
//! instructions. Below the bus is the silicon, the simulated chip or the emulated board; the port
//! is the same. The port has never run on the chip itself. `examples/scc/silicon.rs` shows a
//! program for the chip, and `examples/bare-metal-rust` one that runs, on the emulated board.
//!
//! # Mental model
//! ```text
//!   kernel     put, get, post, complete …                     knows HAL traits
//!   ──────────────────────────────────────────────────────────────────────────
//!   Scc<B>     locks · doorbell · message data · caches       knows the chip       (this crate)
//!   ──────────────────────────────────────────────────────────────────────────
//!   Bus        load/store (physical address, memory type) · CL1INVMB · wbinvd · rdtsc
//!   ──────────────────────────────────────────────────────────────────────────
//!   silicon               simulator                emulated board
//! ```
//! # Modules
//! | module | idea |
//! |---|---|
//! | [`bus`] | what is under the port |
//! | [`map`] | where everything is, as physical addresses |
//! | [`lut`] | how a core's physical address becomes a place on the mesh |
//! | [`registers`] | register banks, field by field |
//! | [`lock`] | the test-and-set register's semantics |
//! | [`message`] | memory types, write-combining buffer, CL1INVMB |
//! | [`displace`] | writing back normal lines without an instruction for it |
//! | [`doorbell`] | one bit of the configuration register |
//! | [`fpga`] | counters and a clock that all cores share |
//! | [`views`] | virtual addresses: one view per memory type |
//! | `silicon` | the bus of the chip itself; on its own target only |
//!
//! # Hazards
//! The chip's known traps (docs/hardware.md A7), and where each is dealt with.
//! `tests/port/hazards.rs` and `tests/port/registers.rs` show them with and without their remedy;
//! the order of locks, `hal/sim/tests/sim/explore.rs`.
//!
//! | | hazard | remedy |
//! |---|---|---|
//! | H1 | the bypass to the own message buffer is not trusted | not used, see below |
//! | H2 | a store that hits an MPBT line stays in L1, and is lost | write through, or drop before |
//! | H3 | a stale line is written over fresh memory | no dirty line by default; see below |
//! | H4 | the write-combining buffer keeps the last line | `drain` |
//! | H5 | uncached and cached views of a line differ | one view per line; `let_go`, see below |
//! | H6 | a core waits for a register that it holds | interrupts masked; see below |
//! | H7 | no protection | the port writes two registers: lock and bit 1 of the configuration |
//! | H8 | a level interrupt is lost or stuck | set if clear, under the lock; clear before polling |
//! | H9 | 16-byte neighbours failed | the kernel's and the user's, see below |
//! | H10 | 64-bit values tear | high, low, high; else words only |
//!
//! * H1: a core accesses its own message buffer as any other core's. The tests' model refuses the
//!   bypass.
//! * H3: the default mapping has no dirty line. With the others the kernel's rule holds.
//! * H5: the port calls `let_go` where it mixes two views.
//! * H6: to take registers in ascending order is the caller's duty.
//! * H9, in the kernel: neighbours of several writers are words, each stored whole and uncached.
//!   What is longer has its lines for itself.
//! * H9, for the user: where a chip pads packets, puts of more than 8 bytes by several origins go
//!   to lines of their own.
//!
//! # What has been run
//! The arithmetic is tested against the documents' tables for all 48 cores; the port against a
//! model of the chip with sets, ways and replacement (`tests/`); the conformance cases run over the
//! other buses, and over the chip's own, `silicon`: as machine code for such cores, on emulated
//! ones (`cargo xtask qemu --board scc`). That code holds no instruction that the chip's cores
//! lack. Nothing here has run on the chip, of which few are left.
//!
//! docs/hardware.md has the facts, and their sources: Intel's SCC_API, RCCE, the
//! kernel drivers of SCC Linux, Barrelfish and its technical note 005, BareMichael.
#![no_std]
#![deny(unsafe_code)]

pub mod bus;
pub mod displace;
pub mod doorbell;
pub mod fpga;
pub mod lock;
pub mod lut;
pub mod map;
pub mod message;
pub mod registers;
mod scc;
#[cfg(target_arch = "x86")]
#[expect(
    unsafe_code,
    reason = "registers, instructions and physical memory of the chip"
)]
pub mod silicon;
pub mod views;

pub use bus::{Attribute, Bus, Fault, LINE, Physical, Processor, State};
pub use fpga::{Counter, Fpga};
pub use map::{Controller, Map, Place, Position};
pub use scc::{Mapping, Scc};
