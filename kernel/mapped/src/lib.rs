//! The link for load/store machines without cache coherence.
//!
//! All ranks reach all shared memory by loads and stores, and the hardware does not keep their
//! caches coherent. [`Mapped::start`] makes a [`Link`](flagpost_link::Link) of such a machine. A
//! program calls it once on each core, and gives the link to its world:
//!
//! ```
//! use flagpost_link::{Link as _, Refusal, Session};
//! use flagpost_mapped::Mapped;
//! use flagpost_sim::{Config, Sim, SimCore};
//!
//! fn program(core: SimCore) -> Result<(), Refusal> {
//!     let link = Mapped::start(core, Session::FIRST)?; // memory is cleared before
//!     assert!(link.rank().get() < link.size());
//!     Ok(())
//! }
//!
//! Sim::new(Config::default()).run(program).assert_done();
//! ```
//!
//! The link has three parts:
//!
//! | part | what it has |
//! |---|---|
//! | [`words`] | words that ranks share: signals, cells, match vectors, and what a wait polls |
//! | [`mail`] | notifications with their data: rings of lines |
//! | `deferred` | data that were taken from the mail and are not in memory yet |
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
//!   │ max(L, 8)     │ slots: 32 words             per word: the one peer that signals it
//!   ├───────────────┤
//!   │ scratch       │ 32 bytes per rank           per use, see the kernel's collectives
//!   ├───────────────┤
//!   │ tail          │ next ticket of the ring     its taker: under a lock, or by an atomic
//!   ├───────────────┤
//!   │ heads         │ what was taken of each ring owner
//!   ├───────────────┤
//!   │ bells         │ a byte per ring, or none    per bell: the producer of its ring
//!   ├───────────────┤
//!   │ entries       │ a line each                 per entry: the holder of its ticket
//!   ├───────────────┤
//!   │ facing        │ a line per rank, or none    per half: one of two ranks
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

pub mod deferred;
mod layout;
mod link;
pub mod mail;
mod start;
pub mod words;

pub use link::Mapped;
pub use mail::ring::Ring;
pub use words::atomics::{Atomics, Native, UnderLock};
