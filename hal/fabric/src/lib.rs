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
//! | confirmed put | `fi_writemsg`, delivery-complete: done when the data are in place |
//! | other put | `fi_inject_write`, or `fi_writemsg`; no event tells of it |
//! | immediate | 8 bytes of remote completion data: immediate 4, its number 2, its sender 2 |
//! | get | `fi_read`, into a buffer, whose bytes are then copied to own memory |
//! | large put, `load` | within one host, the system's copy: see below |
//! | operation on a cell | `fi_fetch_atomic`, `fi_compare_atomic`, also on own cells |
//! | `SendQueueFull` | all slots in use, or `-FI_EAGAIN` |
//! | failed | an error completion, or a peer that the meeting tells to be lost |
//! | F4, nothing is lost | `FI_RM_ENABLED`: the provider protects the completion queue |
//!
//! # Within one host
//! Where a provider reaches this host only, as `shm` does, the system copies: the data of a put
//! that is longer than the provider injects (4 KiB over `shm`) straight to the target's memory,
//! those of a get straight from there. The call returns when that is done, and the target does
//! nothing. The system copies between two processes of one user, if it is set up so. A rank finds
//! that out when it opens its network, for each peer: [`Abilities::attached`] says how many. What
//! the system does not copy goes by libfabric, as small puts do.
//!
//! # Order of puts (F9)
//! Puts are ordered if the providers of all ranks grant that: writes after writes in order, of any
//! size up to that of memory. The provider is asked; its name does not matter. Three things follow
//! from the grant:
//!
//! * when an immediate is reported, the data of its own write are in place, so those of all writes
//!   before it are, too;
//! * when a delivery-complete write is done, all writes before it are in place;
//! * writes' immediates may be reported in any order, so they are numbered, and wait here for their
//!   turn.
//!
//! `ofi_rxm` grants this order only to endpoints without atomics. There, each rank has two
//! endpoints: one for puts, immediates and gets; one for operations on cells. A target looks at the
//! second one in one of 64 polls, or one of 16 idle turns, unless it waits for an operation of its
//! own there.
//!
//! What the system copies is in place immediately, and may overtake puts that libfabric still has.
//!
//! A connection that is reset while both its ranks live breaks this: `ofi_rxm` connects anew, and
//! does not say what it has lost. If libfabric tells of an error that belongs to no operation, all
//! ranks with unconfirmed puts count as lost. If it tells nothing, a later confirmation is wrong. A
//! network that resets connections is none for Flagpost.
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
//! | order of writes | each put is confirmed, for itself only |
//! | keys of memory that the user chooses | the provider's: they may be easy to guess |
//! | progress by itself | see above |
//! | no `FI_REMOTE_COMM`: it reaches this host only | nothing is left to the system's copies |
//!
//! # `unsafe`
//! Stands in `library` (loading, and libfabric's functions outside of tables), below `end` (calls
//! through libfabric's tables), in `memory` (registered memory) and in `attach` (the system's
//! copies). The bindings in `bindings` are its own.
//!
//! # Tried
//! `shm` and `tcp;ofi_rxm` of libfabric 1.17 and 2.5, on one host. No network card was at hand: the
//! code for registrations of local buffers, and for addresses and keys that the provider chooses,
//! was not run against one.

mod attach;
mod bindings;
mod card;
mod end;
mod library;
mod meet;
mod memory;
mod network;
mod random;
mod sequence;

pub use end::Abilities;
pub use meet::{Apart, Hub, Job, Meeting, Presence, Secret};
pub use network::{Network, OpenError, Options, new_name};
