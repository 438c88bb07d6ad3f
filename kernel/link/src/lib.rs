//! The interface between Flagpost's kernel and whatever moves its bytes.
//!
//! A [`Link`] connects one rank with all other ranks. `flagpost-mapped` is the link for load/store
//! machines without coherence, `flagpost-network` the link for networks with remote memory access.
//! The kernel above a link knows windows, epochs and matching. A link knows how a put, a signal or
//! a notification travels, and owns the memory for these (rings, slots, credits). A program names a
//! link once, when it starts its world, and is generic over [`Link`] elsewhere.
//!
//! ```text
//!   program      window.put_notify(to, index, data, tag)
//!   kernel       checks the arguments; waits within the budget
//!   ─────────────────────────────────────────────────────────── Link
//!   link         put_immediate(to, place, bytes, immediate): the message, or a refusal
//!   machine      stores, drains, or a network's work request
//! ```
//!
//! # Rules for every link
//! * **Never block.** An operation that cannot be done now changes nothing and answers with a
//!   [`Refusal`]; the kernel polls, relaxes and repeats it within its caller's budget.
//! * **Continue, do not repeat.** An operation whose answer comes later is refused with
//!   [`Refusal::Busy`] until then; its [`Op`] tells the link that the next call means the same
//!   operation.
//! * **Copy slices.** Data given as a slice is copied, or has left, when the call returns: the
//!   caller may reuse it immediately.
//! * **Order only on request.** Two puts may arrive in any order. [`Access::fence`] orders; an
//!   immediate orders what the same rank did before it to the same target; a signal orders nothing.
//! * **Trust no peer with memory.** Offsets that arrive from others are checked before use.
//!
//! # Two ways to tell a peer something
//! *Slots* are counters at the target with a single writer each: [`Telling::signal`] advances one,
//! [`Telling::reached`] asks for it. They cost one small remote write, never fill up, and are what
//! collectives use. *Immediates* are 32-bit records that arrive in a queue, each with the data of
//! its put: [`Telling::put_immediate`] sends one, [`Telling::progress`] takes the next. They carry
//! notifications. The queue is bounded, and a full one refuses the sender.
#![no_std]

mod access;
mod fast;
mod heap;
mod link;
mod memory;
mod telling;
mod types;
mod vector;
mod waiting;
mod wraps;

pub use access::Access;
pub use fast::Fast;
pub use flagpost_hal::{Amo, Expected, Word};
pub use heap::{Full, Heap, PIECES};
pub use link::Link;
pub use memory::LocalMemory;
pub use telling::{Arrival, Telling, Wants};
pub use types::{Given, Key, Op, Pending, Place, Rank, Refusal, Session, Slot, Slots, Width};
pub use vector::VectorLink;
pub use waiting::{Gone, Step, Time, Waiting};
pub use wraps::Wraps;
