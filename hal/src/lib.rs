//! The contract between Flagpost and a machine, as small traits.
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
//! | [`Relax`] | the time between two polls of a loop | 1 |
//! | [`NativeAtomics`] | optional: atomic operations that reach every core | 1 |
//!
//! [`Machine`] is the sum of those that a load/store machine needs to run the kernel.
//! [`WithSoftwareLock`] adds [`TestAndSet`] to a machine that has no registers. A network with
//! remote memory access is no such machine: its contract is [`fabric`].
//!
//! # Porting
//! Implement the traits on the handle that a core holds of itself (it is neither `Send` nor
//! shared). Here is a whole machine: two cores without caches, whose memories are two arrays. On a
//! chip each body is an access, or an instruction.
//!
//! ```
//! use std::{cell::{Cell, RefCell}, rc::Rc};
//!
//! use flagpost_hal::{
//!     Address, CachedMemory, Clock, Coherence, CoreId, Lines, Machine, MessageBuffer, Region,
//!     Relax, TestAndSet, Topology, UncachedMemory, Watch,
//! };
//!
//! struct Core {
//!     me: CoreId,
//!     memories: Rc<RefCell<[[u8; 1024]; 2]>>, // one of each core
//!     held: Rc<[Cell<bool>; 2]>,              // the registers
//!     now: Cell<u64>,
//! }
//!
//! impl UncachedMemory for Core {
//!     fn load_u8(&self, at: Address) -> u8 {
//!         self.memories.borrow()[at.region.owner.index()][at.offset]
//!     }
//!     fn store_u8(&self, at: Address, value: u8) {
//!         self.store_bytes(at, &[value]);
//!     }
//!     fn load_u32(&self, at: Address) -> u32 {
//!         let mut bytes = [0; 4];
//!         self.read(at, &mut bytes);
//!         u32::from_le_bytes(bytes)
//!     }
//!     fn store_u32(&self, at: Address, value: u32) {
//!         self.store_bytes(at, &value.to_le_bytes());
//!     }
//!     fn store_bytes(&self, at: Address, from: &[u8]) {
//!         let memory = &mut self.memories.borrow_mut()[at.region.owner.index()];
//!         memory[at.offset..][..from.len()].copy_from_slice(from);
//!     }
//! }
//! // No cache: what goes through it goes to memory.
//! impl CachedMemory for Core {
//!     fn read(&self, at: Address, into: &mut [u8]) {
//!         let memory = &self.memories.borrow()[at.region.owner.index()];
//!         into.copy_from_slice(&memory[at.offset..][..into.len()]);
//!     }
//!     fn write(&self, at: Address, from: &[u8]) {
//!         self.store_bytes(at, from);
//!     }
//! }
//! // SAFETY: one thread, no cache: every store is in memory when it returns, and no load is old.
//! unsafe impl Coherence for Core {
//!     const LINE: usize = 32;
//!     fn write_back(&self, _: &[Lines]) {}
//!     fn invalidate(&self, _: &[Lines]) {}
//!     fn drain(&self) {}
//!     fn acquire(&self) {}
//! }
//! impl TestAndSet for Core {
//!     fn test_and_set(&self, of: CoreId) -> bool {
//!         !self.held[of.index()].replace(true) // true: this core has it now
//!     }
//!     fn clear(&self, of: CoreId) {
//!         self.held[of.index()].set(false);
//!     }
//! }
//! impl MessageBuffer for Core {
//!     fn message_buffer_size(&self) -> usize { 0 }
//! }
//! impl Topology for Core {
//!     fn cores(&self) -> u16 { 2 }
//!     fn core(&self) -> CoreId { self.me }
//!     fn memory_size(&self) -> usize { 1024 }
//! }
//! impl Clock for Core {
//!     fn cycles(&self) -> u64 {
//!         self.now.replace(self.now.get() + 1)
//!     }
//!     fn hertz(&self) -> u64 { 1_000_000 }
//! }
//! impl Relax for Core {
//!     fn relax(&self, _: &[Watch]) {} // a chip sleeps here until a watched word changes
//! }
//!
//! fn greet(sender: &impl Machine, receiver: &impl Machine) -> [u8; 4] {
//!     let inbox = Region::memory(receiver.core()).at(64);
//!     sender.store_bytes(inbox, b"ball");
//!     sender.drain();
//!     receiver.acquire();
//!     let mut data = [0; 4];
//!     receiver.read(inbox, &mut data);
//!     data
//! }
//!
//! let memories = Rc::new(RefCell::new([[0; 1024]; 2]));
//! let held = Rc::new([const { Cell::new(false) }; 2]);
//! let core = |me| Core {
//!     me: CoreId::new(me),
//!     memories: memories.clone(),
//!     held: held.clone(),
//!     now: Cell::new(0),
//! };
//! assert_eq!(&greet(&core(0), &core(1)), b"ball");
//! ```
//!
//! A Cortex-M chip of several cores takes 40 lines over `hal/cortex-m`. For others there are two
//! ports to copy from: `hal/cortex-m/src/machine.rs` for cores without caches, or with caches that
//! the hardware keeps in step; `hal/linux/src/software.rs` for caches that obey instructions by
//! address, with its clock and topology in `hal/linux/src/machine.rs`. The cases named `hal.*` in
//! the conformance table check the contracts on a new machine.
#![no_std]
#![deny(unsafe_code)]

mod address;
mod coherence;
#[cfg(feature = "embedded-hal")]
mod delay;
mod early;
pub mod fabric;
pub mod image;
mod lock;
mod machine;
mod memory;
mod place;
mod software_lock;

pub use address::{Address, CoreId, Kind, Region};
pub use coherence::{Coherence, Lines};
#[cfg(feature = "embedded-hal")]
pub use delay::Delay;
pub use early::{Early, EarlyRead, Expected};
pub use lock::{Held, TestAndSet};
pub use machine::{Clock, Machine, MessageBuffer, Relax, Topology, Watch};
pub use memory::{Amo, CachedMemory, NativeAtomics, UncachedMemory, Word};
pub use place::is_library;
pub use software_lock::WithSoftwareLock;
