//! What Flagpost asks of a machine, as small traits.
//!
//! Each core of such a machine has a private cache, and the hardware does **not** keep these caches
//! coherent. Software moves each byte between a cache and memory, by the calls of these traits. The
//! traits know no protocol, and the kernel above them knows no chip. A program that uses Flagpost
//! needs this crate only to port Flagpost to a new machine.
//!
//! Core 0 sends four bytes to core 1, which has an old copy of them in its cache:
//!
//! ```
//! use flagpost_hal::{Coherence, CoreId, Lines, Machine, Region, UncachedMemory};
//!
//! fn send<M: Machine>(machine: &M) {
//!     let inbox = Region::memory(CoreId::new(1));
//!     machine.store_bytes(inbox.at(64), b"ball");
//!     machine.drain(); // the data are in memory before the flag
//!     machine.store_u32(inbox.at(0), 1);
//! }
//!
//! fn receive<M: Machine>(machine: &M) -> Option<[u8; 4]> {
//!     let inbox = Region::memory(CoreId::new(1));
//!     if machine.load_u32(inbox.at(0)) == 0 {
//!         return None;
//!     }
//!     machine.acquire(); // no later load is older than the flag
//!     machine.invalidate(&[Lines::covering::<M>(inbox.at(64), 4)]); // drops the old copy
//!     let mut data = [0; 4];
//!     machine.read(inbox.at(64), &mut data); // through the cache
//!     Some(data)
//! }
//! ```
//!
//! # Mental model
//! ```text
//!   core 0                         core 1
//!   ┌───────────────┐              ┌───────────────┐
//!   │ private cache │              │ private cache │      read / write         (CachedMemory)
//!   └──────┬────────┘              └──────┬────────┘
//!          │ write_back / invalidate      │                                     (Coherence)
//!   ═══════╪══════════════════════════════╪════════ load / store: past the caches (UncachedMemory)
//!   ┌──────┴───────────┐  ┌───────────────┴──┐
//!   │ region of core 0 │  │ region of core 1 │  one `Memory`, one `MessageBuffer` region each
//!   └──────────────────┘  └──────────────────┘
//! ```
//! Every byte that several cores touch has an [`Address`]: a [`Region`] and a byte offset. There
//! are no references to it, because another core may write it at any time.
//!
//! # The traits
//! | trait | what | required methods |
//! |---|---|---|
//! | [`UncachedMemory`] | loads and stores that pass the caches by | 5 |
//! | [`CachedMemory`] | loads and stores through the private cache | 2 |
//! | [`Coherence`] | write back, invalidate, drain, acquire | 4 |
//! | [`TestAndSet`] | one lock bit per core | 2 |
//! | [`MessageBuffer`] | size of the on-chip buffers | 1 |
//! | [`Topology`] | how many cores, which one this is | 3 |
//! | [`Clock`] | cycle counter | 2 |
//! | [`Relax`] | what a polling loop does between polls | 1 |
//! | [`NativeAtomics`] | optional: atomic operations that reach every core | 1 |
//! | [`Records`] | optional: records stored and taken faster than by plain accesses | 0 |
//!
//! [`Machine`] is the sum of those that a load/store machine needs to run the kernel.
//! [`WithSoftwareLock`] adds [`TestAndSet`] to a machine that has no registers. A network with
//! remote memory access is no such machine: its contract is [`fabric`].
//!
//! # For those who port
//! Implement the traits on the handle that a core holds of itself (it is neither `Send` nor
//! shared). There are two models to copy from: `hal/linux/src/coherent.rs` for cores without
//! caches, or with caches that the hardware keeps in step; `hal/linux/src/software.rs` for caches
//! that obey instructions by address. The rest of both, such as clock and topology, is in
//! `hal/linux/src/machine.rs`. The cases named `hal.*` in the conformance table check the contracts
//! on a new machine.
#![no_std]
#![deny(unsafe_code)]

mod address;
mod coherence;
pub mod fabric;
pub mod image;
mod lock;
mod machine;
mod memory;
mod place;
mod record;
mod software_lock;

pub use address::{Address, CoreId, Kind, Region};
pub use coherence::{Coherence, Lines};
pub use lock::{Held, TestAndSet};
pub use machine::{Clock, Machine, MessageBuffer, Relax, Topology, Watch};
pub use memory::{Amo, CachedMemory, NativeAtomics, UncachedMemory};
pub use place::is_library;
pub use record::{CLAIM, Records, Spot};
pub use software_lock::WithSoftwareLock;
