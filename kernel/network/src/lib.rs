//! The link for networks with remote memory access.
//!
//! Ranks on a network have no memory in common. Each rank has *registered* memory, in which the
//! network stores and loads for peers, and a *completion queue*. The queue says which of the rank's
//! own operations are done, and brings the 32-bit immediates of peers. [`Fabric`] is the trait of
//! such a network, and [`Networked`] makes a [`Link`](flagpost_link::Link) of it. The link needs no
//! order between operations, and no atomic operation but those on cells of 8 bytes. Where the
//! network orders puts, the link uses that order. There are two fabrics: the simulated one of
//! `flagpost-sim`, and libfabric's of `flagpost-fabric`.
//!
//! [`Fabric`]: flagpost_hal::fabric::Fabric
//!
//! ```text
//!   kernel        put, get, put_immediate, signal …
//!   ─────────────────────────────────────────────────────────── Link
//!   Networked     fences · credits · answers that come later          (this crate)
//!   ─────────────────────────────────────────────────────────── Fabric
//!   network       work requests ──►          ──► completions, immediates
//! ```
//!
//! # Guarantee
//! Those of the link, by these means:
//!
//! * A slot is found signalled only after what was fenced is in place: a fence is refused until all
//!   earlier operations are done at their targets.
//! * An immediate is found after all earlier puts of its sender to the same rank: the immediate is
//!   refused until those are done. Its own data travel with it. Where the network [orders puts],
//!   the immediate leaves immediately.
//! * Immediates of one rank arrive in order: by the same means.
//! * Nothing is lost: the sender has a *credit* for each entry of the target's queue. The target
//!   gives the credit back when it takes the entry, or as soon as the network has room for that.
//! * Signals reach a rank that takes no immediates: they have no place in that queue, and are
//!   counted as they arrive.
//!
//! # Steps
//! | call | what is posted | done when |
//! |---|---|---|
//! | `put` | a store | immediately; `fence` and `flush` wait for its completion |
//! | `get` | loads into registered memory, up to 4 pieces at a time | all have come, copied out |
//! | the same, where the fabric can | nothing: the fabric [loads] | immediately |
//! | `amo` | an operation on a cell; if it adds to half a cell as `update` | its answer has come |
//! | `update` | a load of the cell; then compare-and-swap, see below | the swap's answer has come |
//! | `watch` | a load of this rank's cell, see below | its answer has come |
//! | `put_immediate` | a store that brings an immediate | immediately |
//! | `fence`, `flush` | where puts are ordered: empty stores, confirmed | all is done |
//! | `signal` | an immediate without a store: bit 31, the slot's number | immediately |
//! | `progress` | credits: an immediate with bits 31 and 30, and their number | immediately |
//!
//! * Where the network [orders puts], no put and no immediate is confirmed by itself: the sender
//!   needs no answer. A fence or flush asks for one, of each peer to which a put has left since the
//!   last confirmed one. Signals are confirmed, and so confirm what was put before.
//! * `update` repeats the compare-and-swap until the cell has the value that was loaded before.
//! * `watch` posts its load once this rank's memory shows that the awaited value may be there.
//! * `progress` posts credits for every few immediates that are taken. If the network refuses them,
//!   the next call that polls for events posts them.
//!
//! A rank accesses itself in its own memory, except for cells: the network may not be coherent with
//! the host's own atomic operations, so they are changed and read by the network alone.
//!
//! # Memory layout (registered, the same on each rank)
//! ```text
//!   offset        what                           who writes it
//!   ┌───────────┐
//!   │ 0         │ 4 places for what gets bring   the network, for the owner
//!   ├───────────┤
//!   │ m / 16    │ scratch: 56 bytes per rank     per use, see the kernel's collectives
//!   ├───────────┤
//!   │           │ allocations                    see their users
//!   └───────────┘
//! ```
//!
//! A place has 256 bytes to 64 KiB, and all places a sixteenth of the m bytes of memory in between.
//!
//! # Bounds
//! Besides this memory a link takes some from the heap, which hosts on a network have: 16 bytes per
//! rank, 4 per slot, 8 per immediate that waits (of each rank 64 at most, or what the link was
//! started with), and 64 for each of up to twice the most operations in flight. A heap that is
//! full is a refusal, and no panic; events wait in the network then. An operation whose
//! [`Op`](flagpost_link::Op) was dropped keeps its answer until the link ends, or, if it is a get,
//! until the place is needed; one that was [abandoned](flagpost_link::Access::abandon) before keeps
//! none. The kernel's are abandoned by the handle that is dropped, or the window that is freed; a
//! window that was not freed keeps a few.
//!
//! # Lost peers
//! When the fabric says that an operation has failed, its target is lost: each call that begins
//! something there from then on is refused with [`PeerLost`](flagpost_link::Refusal::PeerLost), and
//! so is, once, the next fence or flush, for what was to be ordered may not be there. The link
//! continues with all other ranks; the kernel ends each wait of any rank once the fabric names a
//! lost one.
//!
//! # Source
//! The division into puts with immediates and counted signals is that of [NA] and of [foMPI] 2.3 on
//! networks; credits are usual there.
//!
//! [loads]: flagpost_hal::fabric::Fabric::load
//! [orders puts]: flagpost_hal::fabric::Fabric::orders_puts
//! [NA]: flagpost_link
//! [foMPI]: flagpost_link
#![no_std]

extern crate alloc;
#[macro_use]
extern crate flagpost_points;

mod answers;
mod control;
mod lent;
mod link;
mod looks;
mod operations;
mod pieces;
#[cfg(test)]
mod tests;

pub use link::Networked;
