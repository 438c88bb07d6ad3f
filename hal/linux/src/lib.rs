//! Linux as a machine: memory that all processes of a job map, and a rank's handle of it.
//!
//! This crate knows no kernel. Programs use `flagpost-linux`, which starts jobs and worlds over it.
//! [`Linux`] implements the traits of [`flagpost_hal`]; a [`Mode`] says how memory is kept in step.
//! [`Segment`](segment::Segment) is the memory; [`take_part`] makes a process one of its ranks, and
//! [`on_threads`] makes a rank of each of some threads.
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
//! Lives in `segment` (one mapping), `bytes` (addresses in it), `cache` (cache instructions),
//! `clock` (one counter) and `coherent/order` (a fence), and where
//! [`Coherence`](flagpost_hal::Coherence) is promised.
//!
//! What ranks of one job may do to each other, and what not, the page of `flagpost-linux` says.

mod bytes;
mod cache;
mod clock;
mod coherent;
mod control;
mod emulated;
mod hidden;
mod machine;
mod part;
mod peers;
pub mod segment;
mod shape;
mod software;
mod wait;

pub use coherent::Coherent;
pub use control::State;
pub use emulated::Emulated;
pub use machine::{Linux, Mode};
pub use part::{Noticed, on_threads, take_part};
pub use shape::{BadShape, MAX_MEMORY, MAX_RANKS, MIN_MEMORY, Shape};
pub use software::SoftwareCoherent;

/// Names of all modes.
pub const MODES: [&str; 3] = [Coherent::NAME, SoftwareCoherent::NAME, Emulated::NAME];
