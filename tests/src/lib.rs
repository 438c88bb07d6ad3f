//! Flagpost's conformance cases: one table of SPMD functions that every platform runs.
//!
//! A case is called once per core, at the same time on all cores, with fresh regions. It builds its own
//! world, communicates, checks what arrived, and returns. The same functions run in the simulator
//! under `cargo test` and bare metal under QEMU.
#![no_std]
#![forbid(unsafe_code)]

mod args;
pub mod cases;
mod context;

pub use args::Args;
pub use context::{AtomicU32, Case, Context, Failure, Platform};

/// The README's program, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The conformance table. A platform runs every case that the machine [admits](Case::admits), and counts and
/// prints the others as skipped.
pub const fn cases<P: Platform>() -> &'static [Case<P>] {
    cases::Table::<P>::ALL
}
