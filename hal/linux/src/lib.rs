//! Flagpost on Linux: one process per rank, over memory that all of them map.
//!
//! # A program
//! ```no_run
//! use flagpost::Error;
//!
//! fn main() -> std::process::ExitCode {
//!     flagpost_linux::run(|world| {
//!         world.barrier()?;
//!         println!("{} of {}", world.rank(), world.size());
//!         Ok::<(), Error>(())
//!     })
//! }
//! ```
//! `flagpost-run -n 4 program` starts four ranks of it; in unit tests, [`threads`] does.
//!
//! # Modes
//! | mode | for | shared words |
//! |---|---|---|
//! | [`Coherent`] | one host | atomics; no cache instructions |
//! | [`SoftwareCoherent`] | memory that hosts share without coherence | past the caches, by cache instructions; no atomics, by type |
//! | [`Emulated`] | tests | as [`Coherent`]; cached accesses go to a private image per rank |
//!
//! # `unsafe`
//! Lives in `segment` (one mapping), `bytes` (addresses in it), `cache` (cache instructions), `clock` (one counter) and `launch` (what
//! happens between fork and exec), and where [`Coherence`](flagpost_hal::Coherence) is promised.
//!
//! What ranks of one job may do to each other, and what not: `docs/log/linux.md`.

pub mod bind;
mod bytes;
mod cache;
mod clock;
mod coherent;
mod control;
mod emulated;
mod group;
mod job;
pub mod launch;
mod machine;
mod named;
mod peers;
mod run;
mod segment;
mod shape;
mod software;
mod wait;

pub use bind::Bind;
pub use coherent::Coherent;
pub use emulated::Emulated;
pub use job::{DEFAULT_MEMORY, JoinError};
pub use launch::{Ended, launch};
pub use machine::{Linux, MODES, Mode};
pub use run::{
    HostLink, Linked, RunError, Setup, join, machines_with, mode_of_job, run, run_with, threads,
    threads_with,
};
pub use shape::{BadShape, MAX_MEMORY, MAX_RANKS, MIN_MEMORY, Shape};
pub use software::SoftwareCoherent;
