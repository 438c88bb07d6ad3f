//! A deterministic chip without cache coherence, on one host thread.
//!
//! [`Sim`] runs a program on each core of a simulated many-core chip, one memory access at a time.
//! A seed decides the order of the accesses, and the same seed gives the same run. The chip does
//! all that the HAL's contract allows: lines stay stale for ever, and dirty lines are evicted at
//! any moment over the stores of other cores. A program that forgets a write-back, an invalidate, a
//! drain, an acquire or a lock fails here, and the seed repeats the failure. Bulk stores stay in a
//! combining buffer, and on weak profiles stores arrive late and loads are satisfied early.
//!
//! Programs of the kernel start as the hello in `examples/simulator` does. A program may use the
//! machine itself, too:
//!
//! ```
//! use flagpost_hal::{CoreId, Region, Relax, Topology, UncachedMemory, Watch};
//! use flagpost_sim::{Config, Sim, SimCore};
//!
//! /// Core 1 waits until core 0 has said something.
//! fn program(core: SimCore) -> Result<(), &'static str> {
//!     let flag = Region::memory(CoreId::new(1)).at(0);
//!     if core.core() == CoreId::new(0) {
//!         core.store_u32(flag, 7);
//!         return Ok(());
//!     }
//!     loop {
//!         match core.load_u32(flag) {
//!             7 => return Ok(()),
//!             seen => core.relax(&[Watch { at: flag, seen }]),
//!         }
//!     }
//! }
//!
//! let report = Sim::new(Config { seed: 87, ..Config::default() }).run(program);
//! report.assert_done();
//! ```
//!
//! # Mental model
//! ```text
//!   core 0        core 1        core 2            coroutines, each suspended at its next access
//!     │ Op          │ Op          │ Op            (strand, handle, op)
//!   ┌─▼─────────────▼─────────────▼──────┐
//!   │ engine: picks one, lets it happen, │ ◄── schedule: round-robin, random, PCT     (pick)
//!   │ replies, wakes who waited for it   │     or virtual time                        (timing)
//!   │                                    │ ──► timeline, trace hash                   (trace)
//!   └─┬──────────────────────────────────┘
//!   ┌─▼──────────────────────────────────┐
//!   │ machine: caches, buffers, memory,  │ ◄── environment: evictions, late stores, prefetches
//!   │ registers, as plain data           │ ──► oracles: hazards seen before they bite
//!   └────────────────────────────────────┘                                           (machine/)
//! ```
//!
//! # What is modelled (details in `machine/`)
//! * Memory and registers: seeded garbage at the start, never zero.
//! * Cache: whole 32-byte lines with one dirty bit. Hits never read memory. Lines are evicted at
//!   random steps.
//! * Bulk store: a combining buffer of one line. Words leave in random groups. Only a store to
//!   another line, a full line or `drain` empties the buffer.
//! * Word store: in `scc` it arrives immediately. In `weak` it arrives any time later, in any order
//!   between words.
//! * Load: in `scc` it reads immediately. In `weak` it may be early, that is, old, until `acquire`.
//! * `+fill`: a line that was dropped may be prefetched again.
//! * Polling: `relax` blocks until a watched word differs. So a deadlock is that no core can
//!   continue.
//!
//! Not modelled: instruction fetch, cache geometry, faults of the hardware.
//!
//! # Knobs: which chip it is
//! | [`Config`] | what differs between chips | default |
//! |---|---|---|
//! | `profile` | order of stores and loads; prefetching | `scc` |
//! | `line` | bytes per line: 4 to 64 | 32 |
//! | `caching` | side effects of cache actions; where stores go: [`Caching`] | none; into it |
//! | `publish` | bytes of a bulk store that are never torn: 4 to 32 | 4 |
//! | `registers` | whether there are test-and-set registers | yes |
//! | `sleeps` | whether waiting cores sleep until they are told | no |
//! | `evictions`, `prefetches` | how often the chip does them by itself | 16, 32 |
//! | `drains`, `leaves` | the same | 256, 0 |
//! | `mesh`, `controllers`, `latencies` | places and times | the SCC's |
//!
//! [`Preset`] names sets of them that stand for chips.
//!
//! # Timed mode
//! Under [`Schedule::Timed`] nothing is left to chance: cores have clocks, accesses cost what is
//! published of the chip, and memory controllers and tiles serve one access at a time (`timing/`).
//! The same program takes the same cycles on any host.
//!
//! # The SCC port
//! [`SimCore::scc`] makes a core the handle of `flagpost-scc`, over a bus of this chip: the port's
//! own code is explored then, and the kernel above it.
//!
//! # Many runs
//! [`sweep()`] runs cases with many seeds on several threads and returns the first failure. A
//! report ends with the line that replays it.
#![deny(unsafe_code)]

mod bus;
mod caching;
mod chance;
mod choices;
mod config;
mod digest;
mod engine;
mod explore;
mod handle;
mod machine;
mod mask;
mod named;
mod nic;
mod op;
mod pick;
mod place;
mod plan;
mod preset;
mod report;
mod rng;
mod shape;
mod sim;
mod strand;
mod sweep;
mod timing;
mod trace;
mod wire;

pub use bus::{SCC_BUFFER, SccBus};
pub use caching::{Caching, Stores};
pub use choices::{Bounds, Choices};
pub use config::{Config, Oracles, Profile, Schedule};
pub use explore::count::Count;
pub use explore::{Explored, Method};
pub use handle::SimCore;
pub use nic::Nic;
pub use plan::{Controllers, Mesh};
pub use preset::Preset;
pub use report::{Alarm, Counters, End, Failure, Marked, Oracle, Report, Waiting, Word};
pub use sim::Sim;
pub use sweep::{Sweep, Swept, sweep};
pub use timing::preset::Latencies;
pub use timing::{Costs, Trip};
pub use wire::Wire;
