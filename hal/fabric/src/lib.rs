//! Real networks for Flagpost: remote memory access by [libfabric].
//!
//! [`Network`] is a rank's end of a network, and implements
//! [`Fabric`](flagpost_hal::fabric::Fabric). libfabric 1.17 or later is loaded when the first end
//! is opened: a program builds, and runs without a network, where there is none. The ranks of a
//! [`Job`] meet over TCP first, at the [`Hub`] of their launcher; the network itself may be any
//! other.
//!
//! This crate knows no kernel. Programs use `flagpost-linux`, which starts jobs and worlds over it.
//!
//! [libfabric]: https://ofiwg.github.io/libfabric/
//!
//! # How the contract is kept
//! | `Fabric` | libfabric |
//! |---|---|
//! | put | `fi_writemsg`, delivery-complete: done when the data are in place |
//! | immediate | 8 bytes of remote completion data: 4 for the immediate, 2 for its sender |
//! | get | `fi_read`, into own registered memory |
//! | operation on a cell | `fi_fetch_atomic`, `fi_compare_atomic`, also on own cells |
//! | `SendQueueFull` | all slots in use, or `-FI_EAGAIN` |
//! | failed | an error completion, or a peer that the meeting tells to be lost |
//! | F4, nothing is lost | `FI_RM_ENABLED`: the provider protects the completion queue |
//!
//! # Progress (F8)
//! Providers in software do a rank's part in what peers do to its memory only while the rank calls
//! libfabric. So the promise that the network works while the target computes is kept in one of two
//! ways only:
//!
//! * the provider does it by itself, as most network cards do for puts and gets;
//! * [`Options::helper`] is set: a thread looks at the network while the rank computes, and rests
//!   as long as that says between two looks.
//!
//! Without either, what a rank does to a peer that computes waits for the peer's next call of
//! Flagpost: one that polls for events, or one in 16 accesses to own memory.
//!
//! # What is needed of a provider
//! Found out when the network is opened, whatever the provider's name:
//!
//! | what | if it is missing |
//! |---|---|
//! | unconnected endpoints with remote memory access, delivery-complete | refused |
//! | remote completion data of 8 bytes | refused |
//! | seven atomic operations on 8 bytes, that also answer in a probe | refused |
//! | messages as large as memory | refused |
//! | order of writes | not needed, and so not asked for |
//! | progress by itself | see above |
//!
//! # `unsafe`
//! Stands in `library` (loading, and libfabric's functions outside of tables), `end` (calls through
//! libfabric's tables) and `memory` (registered memory). The bindings in `bindings` are its own.
//!
//! # Tried
//! `shm` and `tcp;ofi_rxm` of libfabric 1.17 and 2.5, on one host. No network card was at hand: the
//! code for registrations of local buffers, and for addresses and keys that the provider chooses,
//! was not run against one.

mod bindings;
mod end;
mod library;
mod meet;
mod memory;
mod network;

pub use end::Abilities;
pub use meet::{Apart, Hub, Job, Meeting, Presence, Secret};
pub use network::{Network, OpenError, Options};
