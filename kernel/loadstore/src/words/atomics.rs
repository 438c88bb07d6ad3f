//! How words that many change are changed: under their owner's lock, or by the machine's own atomic
//! operations.
//!
//! A link's type says which, on all ranks alike, so that no word is ever changed in both ways:
//!
//! | bytes | [`UnderLock`] | [`Native`] |
//! |---|---|---|
//! | half cells; elements of up to 4 bytes | owner's lock | atomic operations on the word |
//! | whole cells; elements of 8 bytes | owner's lock | the same on 8 bytes, if [`WIDE`] |
//!
//! # Steps ([`Native`])
//! | call | memory actions, in order |
//! |---|---|
//! | `amo`, half a cell | 1 atomic operation; to read: 1 load; acquire |
//! | ... `And`, `Xor` | as `update` |
//! | `update`, up to 4 bytes | load the word; compare and swap; again if another value was found |
//!
//! Nothing is locked, and nothing drained: an atomic operation is in memory when it returns. A rank
//! whose compare and swap finds another value [`ATTEMPTS`] times in a row is told to come again.
//!
//! A machine whose atomics do not reach all cores is no [`NativeAtomics`], and cannot have
//! [`Native`].
//!
//! [`WIDE`]: NativeAtomics::WIDE

use flagpost_hal::{Address, Machine, NativeAtomics};
use flagpost_link::{Amo, Rank, Refusal};

use crate::Base;

/// Attempts of one call to change a word that others change.
pub const ATTEMPTS: u32 = 4;

/// Words are changed under their owner's lock: on any machine.
#[derive(Copy, Clone, Debug)]
pub enum UnderLock {}

/// Words are changed by atomic operations of the machine.
#[derive(Copy, Clone, Debug)]
pub enum Native {}

/// [`UnderLock`], or [`Native`] for machines `M` that have it.
pub trait Atomics<M: Machine>: sealed::Sealed {
    /// Whether [`atomic`](Self::atomic) does anything.
    const NATIVE: bool;

    /// Whether [`atomic_long`](Self::atomic_long) does anything.
    const WIDE: bool;

    /// The machine's atomic operation.
    fn atomic(machine: &M, at: Address, operation: Amo<u32>) -> Option<u32>;

    /// The same on 8 bytes.
    fn atomic_long(machine: &M, at: Address, operation: Amo) -> Option<u64>;
}

/// Closed to other types.
mod sealed {
    pub trait Sealed {}
    impl Sealed for super::UnderLock {}
    impl Sealed for super::Native {}
}

impl<M: Machine> Atomics<M> for UnderLock {
    const NATIVE: bool = false;
    const WIDE: bool = false;

    fn atomic(_: &M, _: Address, _: Amo<u32>) -> Option<u32> {
        None
    }

    fn atomic_long(_: &M, _: Address, _: Amo) -> Option<u64> {
        None
    }
}

impl<M: Machine + NativeAtomics> Atomics<M> for Native {
    const NATIVE: bool = true;
    const WIDE: bool = M::WIDE;

    #[inline(always)]
    fn atomic(machine: &M, at: Address, operation: Amo<u32>) -> Option<u32> {
        Some(machine.atomic_u32(at, operation))
    }

    #[inline]
    fn atomic_long(machine: &M, at: Address, operation: Amo) -> Option<u64> {
        M::WIDE.then(|| machine.atomic_u64(at, operation))
    }
}

impl<M: Machine, A: Atomics<M>> Base<M, A> {
    /// Does `amo` to the word at `at`, if that is one operation of the machine. Its numbers have 4
    /// bytes.
    #[inline(always)]
    pub(crate) fn change_short(&self, at: Address, amo: Amo) -> Option<u32> {
        let native = |operation| A::atomic(self.machine(), at, operation);
        match amo {
            Amo::Read => Some(self.machine().load_u32(at)),
            Amo::Add(value) => native(Amo::Add(value as u32)),
            Amo::Or(value) => native(Amo::Or(value as u32)),
            Amo::Swap(value) => native(Amo::Swap(value as u32)),
            Amo::CompareSwap { expected, new } => native(Amo::CompareSwap {
                expected: expected as u32,
                new: new as u32,
            }),
            Amo::And(_) | Amo::Xor(_) => None,
        }
    }

    /// Does `amo` to the aligned 8 bytes at `at`, if that is one operation of the machine.
    #[inline]
    pub(crate) fn change_long(&self, at: Address, amo: Amo) -> Option<u64> {
        match amo {
            Amo::Read => A::atomic_long(self.machine(), at, Amo::Add(0)),
            Amo::And(_) | Amo::Xor(_) => None,
            one => A::atomic_long(self.machine(), at, one),
        }
    }

    /// Makes of the word at `at` of `to`'s what `new` says, natively; what it was.
    pub(crate) fn change_word(
        &self,
        to: Rank,
        at: Address,
        new: impl FnMut(u32) -> u32,
    ) -> Result<u32, Refusal> {
        let old = self.machine().load_u32(at);
        self.exchange_until(to, old, new, |expected, new| {
            A::atomic(self.machine(), at, Amo::CompareSwap { expected, new })
        })
    }

    /// The same of the aligned 8 bytes at `at`.
    pub(crate) fn change_two_words(
        &self,
        to: Rank,
        at: Address,
        new: impl FnMut(u64) -> u64,
    ) -> Result<u64, Refusal> {
        let old = A::atomic_long(self.machine(), at, Amo::Add(0));
        self.exchange_until(to, old.unwrap_or_default(), new, |expected, new| {
            A::atomic_long(self.machine(), at, Amo::CompareSwap { expected, new })
        })
    }

    /// Compares and swaps until `old` is what is found.
    fn exchange_until<T: Copy + PartialEq>(
        &self,
        to: Rank,
        mut old: T,
        mut new: impl FnMut(T) -> T,
        swap: impl Fn(T, T) -> Option<T>,
    ) -> Result<T, Refusal> {
        for _ in 0..ATTEMPTS {
            let changed = new(old);
            if changed == old {
                return Ok(old);
            }
            match swap(old, changed) {
                Some(found) if found == old => return Ok(old),
                Some(found) => old = found,
                None => break,
            }
        }
        self.polled().note_unknown();
        // Others were quicker each time.
        Err(Refusal::Locked(to))
    }
}
