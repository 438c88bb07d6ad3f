//! Changes of a word by the machine's atomic operations ([`atomics`](super::atomics)).

use flagpost_hal::{Address, Machine};
use flagpost_link::{Amo, Rank, Refusal};

use crate::{Atomics, Base};

/// Attempts of one call to change a word that others change.
pub const ATTEMPTS: u32 = 4;

impl<M: Machine, A: Atomics<M>> Base<M, A> {
    /// Does `amo` to the word at `at`, if that is one operation of the machine. Its numbers have 4
    /// bytes.
    #[inline(always)]
    pub(crate) fn change_short(&self, at: Address, amo: Amo) -> Option<u32> {
        let native = |operation| A::atomic(&self.machine, at, operation);
        match amo {
            Amo::Read => Some(self.machine.load_u32(at)),
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
            Amo::And(_) | Amo::Xor(_) => None,
            one => A::atomic_long(&self.machine, at, one),
        }
    }

    /// Makes of the word at `at` of `to`'s what `new` says, natively; what it was.
    pub(crate) fn change_word(
        &self,
        to: Rank,
        at: Address,
        new: impl FnMut(u32) -> u32,
    ) -> Result<u32, Refusal> {
        let old = self.machine.load_u32(at);
        self.exchange_until(to, old, new, |expected, new| {
            A::atomic(&self.machine, at, Amo::CompareSwap { expected, new })
        })
    }

    /// The same of the aligned 8 bytes at `at`.
    pub(crate) fn change_two_words(
        &self,
        to: Rank,
        at: Address,
        new: impl FnMut(u64) -> u64,
    ) -> Result<u64, Refusal> {
        let old = A::atomic_long(&self.machine, at, Amo::Read);
        self.exchange_until(to, old.unwrap_or_default(), new, |expected, new| {
            A::atomic_long(&self.machine, at, Amo::CompareSwap { expected, new })
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
        self.polled.note_unknown();
        // Others were quicker each time.
        Err(Refusal::Locked(to))
    }
}
