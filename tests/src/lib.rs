//! Flagpost's conformance cases: one table of SPMD functions that every platform runs.
//!
//! A case is called once per core, at the same time on all cores, with fresh regions. It builds its
//! own world, communicates, checks what arrived, and returns. The same functions run in the
//! simulator under `cargo test` and bare metal under QEMU.
#![no_std]
#![forbid(unsafe_code)]

mod args;
pub mod arguments;
pub mod cases;
mod context;

pub use args::Args;
pub use flagpost_link::{Refusal, Session};
pub use flagpost_mapped::{Mapped, Ring};

pub use context::{
    AtomicU32, Bell, Case, Context, Failure, Has, MachinePlatform, Plain, Platform, Result, mapped,
};

/// The conformance table. A platform runs every case that the machine [admits](Case::admits), and
/// counts and prints the others as skipped.
pub fn cases<P: MachinePlatform>() -> impl Iterator<Item = &'static Case<P>> + Clone {
    cases::Machines::<P>::ALL
        .iter()
        .copied()
        .flatten()
        .chain(link_cases())
}

/// The part of the table that asks the machine alone, and needs no kernel: a new port begins with
/// it. What a failure says names the promise of `flagpost-hal` that was broken.
pub fn hal_cases<P: MachinePlatform>() -> impl Iterator<Item = &'static Case<P>> + Clone {
    cases::Machines::<P>::HAL.iter()
}

/// The cases of the link itself, of [`link_cases`].
pub fn own_link_cases<P: Platform>() -> impl Iterator<Item = &'static Case<P>> + Clone {
    cases::Links::<P>::LINK.iter()
}

/// The part of the table that any link can run: no case looks below it.
pub fn link_cases<P: Platform>() -> impl Iterator<Item = &'static Case<P>> + Clone {
    cases::Links::<P>::ALL.iter().copied().flatten()
}
