//! Flagpost on Linux: one process per rank, over memory that all of them map, or a network.
//!
//! A program calls [`run_in_mode!`] in its `main`, and `flagpost-run -n 4 program` starts four
//! ranks of it; `mpiexec` and `srun` start ranks, too. Each rank gets its
//! [`World`](flagpost::World), and all calls of the kernel work as on a chip. [`threads`] runs the
//! same function on threads of one process, for unit tests. Programs that run this way are in
//! `examples/linux`.
//!
//! # A program
//! Each rank puts a number into the memory of the next rank.
//! ```no_run
//! use flagpost::{Error, Link, Tag, World};
//!
//! fn hello<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
//!     let (me, size) = (world.rank(), world.size());
//!     let window = world.allocate::<u32>(1)?;
//!     let mut arrived = window.expect(0..1, Tag(0))?;
//!     arrived.start()?;
//!     world.barrier()?; // every rank is ready to receive
//!     window.put_notify(me.next(size), 0, &[u32::from(me.get())], Tag(0))?;
//!     let sender = arrived.wait()?.source;
//!     println!("rank {me}: rank {sender} has put {}", window.local().get(0)?);
//!     Ok(())
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     flagpost_linux::run_in_mode!(hello)
//! }
//! ```
//! [`run_in_mode!`] lets the user of the program choose what connects the ranks, see [`Choice`]. A
//! program that calls [`run`] is for shared memory.
//!
//! # Modes
//! | mode | for | shared words |
//! |---|---|---|
//! | [`Coherent`] | one host | atomics; no cache instructions |
//! | [`SoftwareCoherent`] | hosts that share memory, without coherence | past the caches |
//! | [`Emulated`] | tests | as [`Coherent`]; cached accesses go to a private image per rank |
//!
//! [`SoftwareCoherent`] goes past the caches by cache instructions. It has no atomics, by type.
//!
//! # `unsafe`
//! Stands in `launch`, for what happens between fork and exec; in `pmi`, for a descriptor that was
//! inherited; and in `pmix`, for a library. The machine below, in [`flagpost_hal_linux`], has more.
//!
//! What ranks of one job may do to each other, and what not: `docs/log/linux.md`.

pub mod bind;
pub mod choice;
mod descriptors;
mod ended;
pub mod fabric;
mod group;
mod hosts;
mod job;
pub mod launch;
mod named;
mod pmi;
mod pmix;
mod run;

pub use bind::Bind;
pub use choice::Choice;
pub use flagpost_hal_linux::{
    BadShape, Coherent, Emulated, Linux, MAX_MEMORY, MAX_RANKS, MIN_MEMORY, MODES, Mode, Shape,
    SoftwareCoherent,
};
pub use hosts::Hosts;
pub use job::{DEFAULT_MEMORY, JoinError};
pub use launch::{Ended, launch};
pub use run::{
    HostLink, Linked, RunError, Setup, join, machines_with, mode_of_job, run, run_with, threads,
    threads_with,
};
