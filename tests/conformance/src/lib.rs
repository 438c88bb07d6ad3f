//! Runs the conformance cases on a new chip, from an image of the chip's own.
//!
//! A port starts its cores, implements [`Board`], and calls [`run`] on every core. The runner gives
//! each case fresh regions and a session of its own, lets the cores meet before and after it, and
//! logs a line for what came of it. Take [`hal_cases`] first: they ask the machine alone, need no
//! kernel, and say which promise of the HAL a failure breaks. Then take [`fn@cases`].
//!
//! ```ignore
//! use flagpost_conformance::{Args, Board, Plain, Record, hal_cases, run};
//!
//! #[derive(Copy, Clone)]
//! struct Image(CoreId);
//!
//! impl Board for Image {
//!     type Platform = Plain<Chip>;                                   // `Chip` is the port
//!     fn machine(&self) -> Chip { Chip::new(self.0) }
//!     fn barrier(&self, well: bool) -> bool { chip::barrier(well) }
//!     fn reset(&self, garbage: u32) { chip::fill_own_regions(garbage) }
//!     fn log(&self, record: &Record<'_>) { chip::print_line(format_args!("{record}")) }
//! }
//!
//! let passed = run(Image(core), hal_cases(), Args::default());       // on every core
//! ```
//!
//! # One case
//! ```text
//!   core 0:      @begin                                       @note @end
//!   all:   barrier ─ reset own regions ─ barrier ─ delay ─ run ─ @fail ─ barrier ─ …
//!                                          └──────── cycles ─────────┘
//! ```
//! # Records
//! A [`Record`] is one line that begins with `@`. `cargo xtask qemu` reads them; so can a person.
//!
//! # What goes wrong
//! | sign | meaning |
//! |---|---|
//! | `@fail`, for a case `hal.*` | the text names the promise of the HAL that was broken |
//! | `@fail … Timeout` | a call has waited for its budget: a store of a peer was not seen |
//! | `@fail … stack` | a core has used all of its stack: it may have written over its regions |
//! | no `@end` | the case hangs, or a core has died: see [`FLAGPOST_STATUS`] |
//!
//! # Statics
//! An image may have its statics once for all cores or once for each. The runner hands nothing from
//! core to core by statics: the barrier carries each core's word.
#![no_std]
#![deny(unsafe_code)]

mod board;
mod record;
mod stack;
mod turn;

pub use board::{Board, FLAGPOST_STATUS, MAX_CORES, Status};
pub use flagpost_tests::{Args, AtomicU32, Bell, Case, Has, Plain, cases, hal_cases, link_cases};
pub use record::Record;
pub use turn::run;
