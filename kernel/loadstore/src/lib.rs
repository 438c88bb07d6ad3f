//! The shared parts of Flagpost's links over loads and stores.
//!
//! All ranks reach all shared memory by loads and stores. [`LoadStore`] is a link over such a
//! machine: it lays the memory out, hands out its pieces, and changes words that ranks share. How
//! notifications travel depends on the machine's caches, and is a [`Mail`]. Two crates have one
//! each, and neither knows the other:
//!
//! | machine | link | mail |
//! |---|---|---|
//! | any: its caches may be old | `flagpost_mapped::Mapped` | lines whose words tell their lap |
//! | coherent, with atomics | `flagpost_coherent::Coherent` | records, which one rank claims |
//!
//! Ports and programs name those crates; this one is for who writes a third.
//!
//! | module | what it has |
//! |---|---|
//! | [`base`] | the machine, and where things are in its memory |
//! | [`words`] | words that ranks share: slots, cells, match vectors, and what a wait polls |
//! | [`mail`] | what a mail must do |
//! | [`announced`] | the mail of many ranks: one ring, which all share |
//! | [`flight`], [`phase`], [`ring`], [`layout`] | parts that mails are made of |
//!
//! Puts and gets are uncached bulk accesses.
//!
//! # Memory layout (the same offsets in each rank's region; L = line size)
//! ```text
//!   offset            what                        who writes it
//!   ┌───────────────┐
//!   │ 0             │ ready: session number       owner, when all have arrived
//!   ├───────────────┤
//!   │ 4             │ arrived: session number     owner, when it starts
//!   ├───────────────┤
//!   │ 8             │ how its image was built     owner, before
//!   ├───────────────┤
//!   │ max(L, 12)    │ slots: 32 words             per word: the one peer that signals it
//!   ├───────────────┤
//!   │ scratch       │ 56 bytes per rank           per use, see the kernel's collectives
//!   ├───────────────┤
//!   │ tail          │ next ticket of the ring     its taker: under a lock, or by an atomic
//!   ├───────────────┤
//!   │ heads         │ what was taken of each ring owner
//!   ├───────────────┤
//!   │ bells         │ a byte per ring, or none    per bell: the producer of its ring
//!   ├───────────────┤
//!   │ entries       │ a line each                 per entry: the holder of its ticket
//!   ├───────────────┤
//!   │ behind        │ more of the mail, or none   see there
//!   ├───────────────┤
//!   │ allocations   │ windows and their words     see their users
//!   └───────────────┘
//! ```
//! Tail, heads, bells and entries lie in the message buffer instead, where that is large enough
//! ([`Ring`]). Everything up to the allocations is only accessed past the caches. In the
//! allocations, the owner caches window data; each allocation has its lines for itself.
//!
//! # Which access waits for what
//! Nothing waits. Where a lock is held or a ring is full, the operation is refused and repeated by
//! the kernel. A core holds a lock for one read-modify-write and never two at a time.
//!
//! # Sources
//! [PSCW-SCC] Christgau & Schnor, PSCW synchronization on the Intel SCC; [foMPI] Gerstenberger,
//! Besta, Hoefler 2013/14; [NA] Belli & Hoefler, Notified Access 2015.
//!
//! [PSCW-SCC]: crate#sources
//! [foMPI]: crate#sources
//! [NA]: crate#sources
#![no_std]

#[macro_use]
extern crate flagpost_points;

pub mod announced;
pub mod base;
mod build;
pub mod flight;
pub mod layout;
mod link;
pub mod mail;
pub mod phase;
pub mod ring;
mod start;
pub mod words;

pub use base::Base;
pub use layout::Layout;
pub use link::LoadStore;
pub use mail::Mail;
pub use ring::Ring;
pub use words::atomics::{Atomics, Native, UnderLock};
