//! How words that many change are changed: under their owner's lock, or by the machine's own atomic operations.
//!
//! A link is of one kind or the other ([`Mapped::start`], [`Mapped::start_native`](crate::Mapped::start_native)), on all ranks alike,
//! so that no word is ever changed in both ways:
//!
//! | bytes | [`UnderLock`] | [`Native`] |
//! |---|---|---|
//! | half cells; elements of up to 4 bytes | owner's lock | atomic operations on the word |
//! | whole cells; elements of 8 bytes | owner's lock | owner's lock |
//!
//! # Steps ([`Native`])
//! | call                      | memory actions, in order                                                |
//! |---------------------------|-------------------------------------------------------------------------|
//! | `amo`, half a cell        | 1 atomic operation; to read: 1 load; acquire                             |
//! | ... `And`, `Xor`          | as `update`                                                              |
//! | `update`, up to 4 bytes   | load the word; while it changes: compare and swap; if that finds another: again |
//!
//! Nothing is locked, and nothing drained: an atomic operation is in memory when it returns. A rank whose compare and
//! swap finds another value [`ATTEMPTS`] times in a row is told to come again.
//!
//! A machine whose atomics do not reach all cores cannot name [`Native`]:
//! ```
//! # use {flagpost_hal::{Machine, NativeAtomics}, flagpost_mapped::{Mapped, Native}, flagpost_link::Refusal};
//! fn link<M: Machine + NativeAtomics>(machine: M) -> Result<Mapped<M, Native>, Refusal> {
//!     Mapped::start_native(machine, 1, None)
//! }
//! ```
//! ```compile_fail
//! # use {flagpost_hal::{Machine, NativeAtomics}, flagpost_mapped::{Mapped, Native}, flagpost_link::Refusal};
//! fn link<M: Machine>(machine: M) -> Result<Mapped<M, Native>, Refusal> {
//!     Mapped::start_native(machine, 1, None)
//! }
//! ```
//!
//! [`Mapped::start`]: crate::Mapped::start

use flagpost_hal::{Address, Atomic, Machine, NativeAtomics};
use flagpost_link::{Amo, Rank, Refusal};

use crate::Mapped;

/// Attempts of one call to change a word that others change.
pub const ATTEMPTS: u32 = 4;

/// Words are changed under their owner's lock: on any machine.
#[derive(Copy, Clone, Debug)]
pub enum UnderLock {}

/// Words are changed by atomic operations of the machine.
#[derive(Copy, Clone, Debug)]
pub enum Native {}

/// [`UnderLock`], or [`Native`] for machines `M` that have it.
pub trait Atomics<M>: sealed::Sealed {
    /// Whether [`atomic`](Self::atomic) does anything.
    const NATIVE: bool;

    /// The machine's atomic operation.
    fn atomic(machine: &M, at: Address, operation: Atomic) -> Option<u32>;
}

/// Closed to other types.
mod sealed {
    pub trait Sealed {}
    impl Sealed for super::UnderLock {}
    impl Sealed for super::Native {}
}

impl<M> Atomics<M> for UnderLock {
    const NATIVE: bool = false;

    fn atomic(_: &M, _: Address, _: Atomic) -> Option<u32> {
        None
    }
}

impl<M: NativeAtomics> Atomics<M> for Native {
    const NATIVE: bool = true;

    fn atomic(machine: &M, at: Address, operation: Atomic) -> Option<u32> {
        Some(machine.atomic_u32(at, operation))
    }
}

impl<M: Machine, A: Atomics<M>> Mapped<M, A> {
    /// Does `amo` to half a cell of `to`'s, natively.
    pub(crate) fn change_half(&self, to: Rank, at: Address, amo: Amo) -> Result<u64, Refusal> {
        let native = |operation| A::atomic(&self.machine, at, operation);
        let old = match amo {
            Amo::Read => Some(self.machine.load_u32(at)),
            Amo::Add(value) => native(Atomic::Add(value as u32)),
            Amo::Or(value) => native(Atomic::Or(value as u32)),
            Amo::Swap(value) => native(Atomic::Swap(value as u32)),
            Amo::CompareSwap { expected, new } => match u32::try_from(expected) {
                Ok(old) => native(Atomic::CompareSwap {
                    old,
                    new: new as u32,
                }),
                // The cell never holds as much.
                Err(_) => Some(self.machine.load_u32(at)),
            },
            Amo::And(_) | Amo::Xor(_) => None,
        };
        match old {
            Some(old) => Ok(old.into()),
            None => {
                let new = |old: u32| amo.apply(old.into()) as u32;
                Ok(self.change_word(to, at, new)?.into())
            }
        }
    }

    /// Makes of a word of `to`'s what `new` says, natively; what it was.
    pub(crate) fn change_word(
        &self,
        to: Rank,
        at: Address,
        mut new: impl FnMut(u32) -> u32,
    ) -> Result<u32, Refusal> {
        let mut old = self.machine.load_u32(at);
        for _ in 0..ATTEMPTS {
            let changed = new(old);
            if changed == old {
                return Ok(old);
            }
            let swap = Atomic::CompareSwap { old, new: changed };
            match A::atomic(&self.machine, at, swap) {
                Some(found) if found == old => return Ok(old),
                Some(found) => old = found,
                None => break,
            }
        }
        self.polled.note_unknown();
        Err(Refusal::Busy(to))
    }
}
