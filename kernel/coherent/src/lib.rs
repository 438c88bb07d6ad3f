//! The link for machines whose caches the hardware keeps coherent.
//!
//! [`Coherent`] is a link over a machine that is coherent and has native atomic operations: one
//! host with processes, as `flagpost-linux` runs them, or a chip with such caches. The link itself
//! is a [`LoadStore`], which lays memory out and changes words that ranks share. This crate has its
//! [`mail`]: notifications with their data, in [`records`].
//!
//! Nothing is kept by an owner, and nothing is written back: a flush needs no call of the target.
//! Between few ranks a notified put, and the wait for it, are a few instructions each.
//!
//! ```
//! use flagpost_coherent::{Coherent, Records};
//! use flagpost_link::{Refusal, Session};
//!
//! /// Starts this core's link; its machine names the trait, and may keep all of the defaults.
//! fn start<M: Records>(machine: M) -> Result<Coherent<M>, Refusal> {
//!     Coherent::start(machine, Session::FIRST)
//! }
//! ```
//! A machine without native atomics cannot:
//! ```compile_fail
//! # use flagpost_coherent::Coherent;
//! # use flagpost_link::{Refusal, Session};
//! fn start<M: flagpost_hal::Machine>(machine: M) -> Result<Coherent<M>, Refusal> {
//!     Coherent::start(machine, Session::FIRST)
//! }
//! ```
#![no_std]

#[macro_use]
extern crate flagpost_points;

pub mod entry;
pub mod facing;
pub mod mail;
pub mod peer;
pub mod records;

pub use flagpost_loadstore::{LoadStore, Ring};
pub use flagpost_record::Records;
pub use mail::RecordMail;

/// A link over the memory of a coherent machine `M`.
pub type Coherent<M> = LoadStore<RecordMail<M>>;
