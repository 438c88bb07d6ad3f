//! How words that many change are changed: under their owner's lock, or by the machine's own atomic
//! operations.
//!
//! A link's type says which, on all ranks alike, so that no word is ever changed in both ways:
//!
//! | bytes | [`UnderLock`] | [`Native`] |
//! |---|---|---|
//! | half cells; elements of up to 4 bytes | owner's lock | atomic operations on the word |
//! | whole cells; elements of 8 bytes | owner's lock | the same on 8 bytes, if [`Word`] is `u64` |
//!
//! # Steps ([`Native`])
//! | call | memory actions, in order |
//! |---|---|
//! | `amo`, half a cell | 1 atomic operation; to read: 1 load; acquire |
//! | ... `And`, `Xor` | as `update` |
//! | `update`, up to 4 bytes | load the word; compare and swap; again if another value was found |
//!
//! Nothing is locked, and nothing drained: an atomic operation is in memory when it returns. A rank
//! whose compare and swap finds another value [so often](super::change::ATTEMPTS) in a row is told
//! to come again.
//!
//! A machine whose atomics do not reach all cores is no [`NativeAtomics`], and cannot have
//! [`Native`].
//!
//! [`Word`]: NativeAtomics::Word

use flagpost_hal::{Address, Machine, NativeAtomics};
use flagpost_link::{Amo, Word};

/// Words are changed under their owner's lock: on any machine.
#[derive(Copy, Clone, Debug)]
pub enum UnderLock {}

/// Words are changed by atomic operations of the machine.
#[derive(Copy, Clone, Debug)]
pub enum Native {}

/// [`UnderLock`], or [`Native`] for machines `M` that have it.
pub trait Atomics<M: Machine>: sealed::Sealed {
    /// True if [`atomic`](Self::atomic) does anything.
    const NATIVE: bool;

    /// The longest number that is changed without a lock, or `u32`.
    type Word: Word;

    /// True if [`atomic_long`](Self::atomic_long) does anything.
    const WIDE: bool = Self::Word::WIDE;

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
    type Word = u32;

    const NATIVE: bool = false;

    fn atomic(_: &M, _: Address, _: Amo<u32>) -> Option<u32> {
        None
    }

    fn atomic_long(_: &M, _: Address, _: Amo) -> Option<u64> {
        None
    }
}

impl<M: Machine + NativeAtomics> Atomics<M> for Native {
    type Word = M::Word;

    const NATIVE: bool = true;

    #[inline(always)]
    fn atomic(machine: &M, at: Address, operation: Amo<u32>) -> Option<u32> {
        Some(machine.atomic_u32(at, operation))
    }

    #[inline]
    fn atomic_long(machine: &M, at: Address, operation: Amo) -> Option<u64> {
        M::Word::WIDE.then(|| machine.atomic_u64(at, operation))
    }
}
