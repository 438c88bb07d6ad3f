//! Flagpost's port to Cortex-M chips of several cores.
//!
//! Such a chip has one memory that all its cores reach, and either no data caches, or an MPU that
//! keeps a piece of the memory out of them. [`CortexM`] is the whole machine over that piece, and
//! [`Chip`] the little that differs from chip to chip: registers, barrier and clock. A port is
//! about 40 lines: `examples/rp2350`, `examples/stm32h745` and `qemu/an521` are three.
//!
//! # Mental model
//! ```text
//!   kernel       put, get, post, complete …                   knows the traits of flagpost-hal
//!   ──────────────────────────────────────────────────────────────────────────────────────────
//!   CortexM<C>   bounds · copies · wide clock · bell · own flags of locks         (this crate)
//!   ──────────────────────────────────────────────────────────────────────────────────────────
//!   C: Chip      core · counter · test_and_set · clear · barrier · relax            (40 lines)
//!   ──────────────────────────────────────────────────────────────────────────────────────────
//!   Shared       regions of all cores, and a line per core for the port: a `static`
//! ```
//!
//! # A port, in order
//! 1. Place [`Shared`]: a `static` of a size that the chip's memory has. One image for all cores:
//!    in `.bss`, which one core clears before it starts the others. An image for each core: in a
//!    section that each image's linker script places at the same address, and that none loads.
//! 2. Implement [`Chip`] on a type without fields.
//! 3. Start the other core: [`entry!`] makes a function that turns the FPU on before anything uses
//!    it, and [`Stack`] is a stack of its own.
//! 4. On each core: [`CortexM::start`] once; `Mapped::start` and `World::start` with it.
//! 5. Run the cases named `hal.*` first, then the others, as `qemu/an521` does.
//!
//! # What a port must know
//! **Caches**
//! * Regions are not cached. Then nothing is ever old and nothing is dirty: [`CortexM`] says
//!   `COHERENT`, and `flagpost_mapped::Small` takes the shorter way.
//! * A Cortex-M7, M55 or M85 has data caches. Its MPU keeps [`Shared`] out of them: Normal memory,
//!   not cacheable. Each core with a cache sets its own MPU, before its first access.
//! * Not *write-through*: on a Cortex-M7 r1p1 (STM32H7) an erratum returns stale data then
//!   (`docs/hardware.md` B1).
//!
//! **Barriers**
//! * DMB, as nothing but loads and stores is to be ordered: `write_back` has nothing to complete.
//!   DSB where a cache is operated by address, and before WFE, SEV, or a store that starts a core.
//! * All of [`Shared`] lies in one memory. A bridge before a second one may answer before a store
//!   has arrived, and then no barrier orders the two.
//!
//! **Locks and atomics**
//! * LDREX and STREX by several cores need a *global monitor* at the memory. Without one a swap
//!   succeeds on two cores. STM32H7 has none between its cores: no chip of this kind is
//!   [`Exclusives`], and no `static` that both cores reach is changed by atomics, least of all in
//!   memory that is not cacheable. Its semaphores are the locks.
//! * A Cortex-M33 sends exclusives to the global monitor for shareable memory only, and no memory
//!   is by default. RP2350: set `ACTLR.EXTEXCLALL` (bit 29 at 0xE000E008) on *each* core, before
//!   the first atomic: without it additions of two cores are lost.
//! * A Cortex-M0+ has no LDREX; `Lock::swap` is not there. RP2040: spinlocks of SIO.
//! * RP2350's erratum E2: stores to SIO registers at 0x180 and above also free spinlocks. Use 5, 6,
//!   7, 10, 11, 18 to 31 only.
//! * Some registers know their holder, such as STM32H7's: its second read looks like success, and
//!   no other can free them. [`CortexM`] keeps a flag per lock; [`Chip::release_at_start`] frees
//!   what is left over.
//! * An interrupt handler that uses a world is masked while the world is in use elsewhere: a core
//!   that holds a lock and does not run keeps the other waiting.
//!
//! **Time**
//! * A counter of 32 bits or less is widened at each call of `cycles`. Waits call it often enough.
//!   A program that makes no call for a whole turn of the counter loses that turn: its next budget
//!   is longer.
//! * YIELD does nothing on silicon: a wait polls. With [`Chip::SLEEPS`] it sleeps by WFE until a
//!   peer has changed a word of this core: see R1 to R4 of `flagpost_hal::Relax`.
//!
//! **Start**
//! * Core 0 of an image for all clears `.bss` before it starts the others.
//! * A core starts again with all others, or alone by the recipe of sessions: see
//!   `flagpost::Session`. Where one may be reset alone, [`Shared`], the stacks and what critical
//!   sections keep lie outside of `.bss`, and are cleared at power-on only. The core calls
//!   `Section::release_at_start` first.
#![no_std]
#![deny(unsafe_code)]

mod chip;
pub mod instructions;
mod machine;
#[cfg(feature = "critical-section")]
mod section;
mod shared;
mod start;

pub use chip::{Chip, Exclusives, Lock};
pub use machine::CortexM;
#[cfg(feature = "critical-section")]
pub use section::Section;
pub use shared::Shared;
pub use start::{Stack, Vectors};
