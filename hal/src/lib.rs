//! What Flagpost asks of a machine, as small traits.
//!
//! The machines meant here have cores with private caches that the hardware does **not** keep
//! coherent. Software moves every byte between a cache and memory on purpose, and these traits are
//! the words it does so in. They know nothing of protocols; the kernel above them knows nothing of
//! chips.
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
//! Every byte that several cores touch has an [`Address`]: a [`Region`] and a byte offset. There are
//! no references to it, because another core may write it at any time.
//!
//! # The traits
//! | trait | what | required methods |
//! |---|---|---|
//! | [`UncachedMemory`] | loads and stores that pass the caches by | 5 |
//! | [`CachedMemory`] | loads and stores through the private cache | 2 |
//! | [`Coherence`] | write back, invalidate, drain, acquire | 4 |
//! | [`TestAndSet`] | one lock bit per core | 2 |
//! | [`MessageBuffer`] | size of the on-chip buffers | 1 |
//! | [`Topology`] | how many cores, which one is this, where | 4 |
//! | [`Clock`] | cycle counter | 2 |
//! | [`Relax`] | what a polling loop does between polls | 1 |
//! | [`NativeAtomics`] | optional: atomic operations that reach every core | 1 |
//! | [`Doorbell`] | optional: wake a core | 2 |
//!
//! [`Machine`] is the sum of those that a load/store machine needs to run the kernel. [`WithSoftwareLock`] adds
//! [`TestAndSet`] to a machine that has no registers.
//!
//! # For those who port
//! Implement the traits on the handle that a core holds of itself (it is neither `Send` nor
//! shared). Take the implementations of `flagpost-sim` and `flagpost-qemu` as the two models. The
//! cases named `hal.*` in the conformance table check the contracts on a new machine.
#![no_std]
#![deny(unsafe_code)]

mod address;
mod coherence;
pub mod image;
mod lock;
mod machine;
mod memory;
mod software_lock;

pub use address::{Address, CoreId, Kind, Region, Spot};
pub use coherence::{Coherence, Lines};
pub use lock::{Held, TestAndSet};
pub use machine::{
    Clock, Delay, Doorbell, Machine, MessageBuffer, Position, Relax, Topology, Watch,
};
pub use memory::{Atomic, CachedMemory, NativeAtomics, UncachedMemory};
pub use software_lock::WithSoftwareLock;
