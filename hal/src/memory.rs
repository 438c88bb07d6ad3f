//! Loads and stores: past the caches, through them, and indivisible ones.

use core::{
    fmt::{Debug, Display},
    hash::Hash,
};

use crate::{Address, Region};

/// Loads and stores that pass the private caches by.
///
/// Cores communicate by these: polled words, locks' data, ring entries and all accesses to memory
/// that another core owns. On a chip these are accesses to pages mapped uncached or
/// write-combining.
///
/// # Contract
/// For the caller:
/// * U1. `at` (to the last byte) lies inside its region, and words are aligned to their size. A
///   port may stop the machine on a violation; it never touches other memory.
/// * U2. No core, this one included, holds a *dirty* cached copy of a line that is stored to here;
///   else that line's later write-back destroys the stored bytes. To read this core's uncached
///   stores through the cache: drain, then invalidate.
///
/// For the port:
/// * U3. `load_*` of a word returns what memory holds, never a private copy.
/// * U4. `store_u8` and `store_u32` change exactly the named bytes, in one step; a neighbour in the
///   same word or line keeps its value.
/// * U5. Accesses of one core to the *same* bytes are seen in program order, bulk ones included.
///   Between *different* words nothing is promised until [`drain`](crate::Coherence::drain)
///   (stores) or [`acquire`](crate::Coherence::acquire) (loads).
/// * U6. The compiler neither merges, splits, invents nor drops word accesses (volatile or atomic).
///
/// None of these block, except for the time that the access takes.
pub trait UncachedMemory {
    /// Loads one byte.
    fn load_u8(&self, at: Address) -> u8;

    /// Stores one byte.
    fn store_u8(&self, at: Address, value: u8);

    /// Loads an aligned 32-bit word.
    fn load_u32(&self, at: Address) -> u32;

    /// Stores an aligned 32-bit word.
    fn store_u32(&self, at: Address, value: u32);

    /// Stores `from` to consecutive bytes, by the fastest means the machine has (a write-combining
    /// buffer, whole lines). Bytes may arrive in any order and any grouping, and need not have
    /// arrived at all before the next [`drain`](crate::Coherence::drain). Bytes outside are not
    /// touched, and no copy stays in this core's cache that could be written back later.
    fn store_bytes(&self, at: Address, from: &[u8]);

    /// Loads consecutive bytes into `into`, each as fresh as a `load_u8` at some moment during the
    /// call; the bytes may be from different moments. The default loads words, and bytes at the
    /// ends.
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        let head = at.offset.wrapping_neg() % 4;
        // A short piece may end before its first whole word begins.
        let head = head.min(into.len());
        let (head, rest) = into
            .split_at_mut_checked(head)
            .unwrap_or((&mut [], &mut []));
        let mut cursor = at;
        for byte in head {
            *byte = self.load_u8(cursor);
            cursor = cursor.plus(1);
        }
        let mut words = rest.chunks_exact_mut(4);
        for word in &mut words {
            word.copy_from_slice(&self.load_u32(cursor).to_le_bytes());
            cursor = cursor.plus(4);
        }
        for byte in words.into_remainder() {
            *byte = self.load_u8(cursor);
            cursor = cursor.plus(1);
        }
    }

    /// Makes the `len` bytes at `at` of this core's memory zeros, if the machine has a way that
    /// costs less than stores do: pages that hold nothing. This core's cache has no copy of them
    /// after the call, and had no dirty one before. False if nothing has happened: the default has
    /// no way.
    fn zero(&self, at: Address, len: usize) -> bool {
        let _ = (at, len);
        false
    }

    /// True if [`load_bytes`](Self::load_bytes) of a whole line of `region` takes about as long as
    /// the load of a word. A poll of one word then loads the whole line, where the others are
    /// wanted, too. A hint: only time depends on it.
    fn loads_lines(&self, region: Region) -> bool {
        let _ = region;
        false
    }
}

/// Loads and stores through this core's private cache: ordinary memory accesses on a chip.
///
/// # Contract
/// * C1. A load may return a copy that was fetched at any earlier time since the line was last
///   [invalidated](crate::Coherence::invalidate), however old.
/// * C2. A store may stay in the cache until the line is
///   [written back](crate::Coherence::write_back), and may also be written back at any moment
///   before (eviction), or pass the cache and be in flight to memory until the next
///   [`drain`](crate::Coherence::drain). A write-back moves the *whole line*, over whatever others
///   stored there.
/// * C3. U1 of [`UncachedMemory`] holds here too.
/// * C4. A load finds what this core stored here before, even while that is in flight.
///
/// Hence the kernel's rule: a line is only ever stored to through the cache of the core that owns
/// its region, and only while no peer may store to it.
pub trait CachedMemory {
    /// Copies consecutive bytes at `at` into `into`.
    fn read(&self, at: Address, into: &mut [u8]);

    /// Copies `from` to consecutive bytes at `at`.
    fn write(&self, at: Address, from: &[u8]);
}

/// An indivisible operation on a word of type `T`. It returns the word's former value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Amo<T = u64> {
    /// Changes nothing.
    Read,
    /// Adds, wrapping around.
    Add(T),
    /// Keeps the given bits.
    And(T),
    /// Sets the given bits.
    Or(T),
    /// Turns the given bits over.
    Xor(T),
    /// Stores the value.
    Swap(T),
    /// Stores `new` if the word holds `expected`.
    CompareSwap {
        /// The value that the word should hold.
        expected: T,
        /// The value that it gets then.
        new: T,
    },
}

macro_rules! apply {
    ($($word:ty)*) => {$(
        impl Amo<$word> {
            /// The new value of a word that held `old`.
            pub const fn apply(self, old: $word) -> $word {
                match self {
                    Self::Read => old,
                    Self::Add(value) => old.wrapping_add(value),
                    Self::And(value) => old & value,
                    Self::Or(value) => old | value,
                    Self::Xor(value) => old ^ value,
                    Self::Swap(value) => value,
                    Self::CompareSwap { expected, new } if old == expected => new,
                    Self::CompareSwap { .. } => old,
                }
            }
        }
    )*};
}

apply!(u32 u64);

/// A number that a machine changes as a whole: of 4 bytes, or of 8. Closed to other types.
pub trait Word:
    Copy + Ord + Hash + Default + Debug + Display + From<u32> + Into<u64> + sealed::Sealed
{
    /// True if it has 8 bytes.
    const WIDE: bool;

    /// The largest one.
    const MAX: Self;

    /// The low bytes of `value`, as many as it has.
    fn low(value: u64) -> Self;

    /// The sum, wrapping around.
    #[must_use]
    fn wrapping_add(self, other: Self) -> Self;

    /// The difference, wrapping around.
    #[must_use]
    fn wrapping_sub(self, other: Self) -> Self;
}

/// Closed to other types.
mod sealed {
    pub trait Sealed {}
}

macro_rules! word {
    ($($word:ty: $wide:literal)*) => {$(
        impl sealed::Sealed for $word {}

        impl Word for $word {
            const WIDE: bool = $wide;
            const MAX: Self = Self::MAX;

            #[inline]
            fn low(value: u64) -> Self {
                value as Self
            }

            #[inline]
            fn wrapping_add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline]
            fn wrapping_sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    )*};
}

word!(u32: false u64: true);

/// Optional: atomic operations that reach every core of the machine.
///
/// A machine whose CPU atomics act in the core's own cache (the SCC; hosts that share a CXL pool)
/// must **not** implement this: then no shared word can be touched by one, and the kernel uses
/// locks or single-writer protocols instead.
pub trait NativeAtomics {
    /// The longest number that there are such operations on: `u32`, or `u64`.
    type Word: Word;

    /// Performs `operation` on the aligned word at `at`, past the caches, in one indivisible step,
    /// and returns the word's former value. Orders nothing else: see U5 of [`UncachedMemory`].
    fn atomic_u32(&self, at: Address, operation: Amo<u32>) -> u32;

    /// [`atomic_u32`](Self::atomic_u32) on the aligned 8 bytes at `at`. Not called unless
    /// [`Word`](Self::Word) is `u64`; the default does nothing.
    fn atomic_u64(&self, at: Address, operation: Amo) -> u64 {
        let _ = (at, operation);
        0
    }
}
