//! Records: 24 bytes that are announced by their first word.
//!
//! A *record* lies in one line of a region of [`Kind::Memory`], at a multiple of 8: two words, and
//! a body of 2 times 8 bytes. A core that finds the first word finds all of the record. Any machine
//! has records, by plain accesses: the methods of [`Spot`]. A machine that finds a place faster, or
//! stores a record in fewer steps, implements [`Records`].

#![no_std]

#[cfg(doc)]
use flagpost_hal::Kind;
use flagpost_hal::{
    Address, Amo, Coherence, CoreId, Machine, NativeAtomics, Region, Topology, UncachedMemory,
};

/// The place of a record: found once, and then used without finding it again. Its number counts 8
/// bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Spot(u64);

/// Bits of an offset in a [`Spot`] by plain accesses.
const OFFSET: u32 = 48;
const OFFSETS: u64 = 1_u64.wrapping_shl(OFFSET).wrapping_sub(1);

impl Spot {
    /// The spot with a number, which only machines give a meaning.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The spot `eights` times 8 bytes further on, in the same region.
    #[inline]
    pub const fn plus(self, eights: u32) -> Self {
        Self(self.0.wrapping_add(eights as u64))
    }

    /// Of an address of memory, where a machine has no better numbers: its region's owner, and its
    /// offset.
    #[inline]
    pub const fn of(at: Address) -> Self {
        let owner = (at.region.owner.get() as u64).wrapping_shl(OFFSET);
        let bytes = owner | at.offset as u64;
        Self(bytes.wrapping_shr(3))
    }

    /// The inverse of [`Spot::of`].
    const fn address(self) -> Address {
        let bytes = self.0.wrapping_shl(3);
        let owner = CoreId::new(bytes.wrapping_shr(OFFSET) as u16);
        Region::memory(owner).at((bytes & OFFSETS) as usize)
    }

    /// [`Records::store_record`] by plain accesses, at a spot [of](Spot::of) an address.
    #[inline]
    #[track_caller]
    pub fn store<M>(self, machine: &M, [first, second]: [u32; 2], body: [u64; 2])
    where
        M: UncachedMemory + Coherence + ?Sized,
    {
        let at = self.address();
        let body = body.map(u64::to_le_bytes);
        machine.store_bytes(at.plus(8), body.as_flattened());
        machine.store_u32(at.plus(4), second);
        machine.drain();
        machine.store_u32(at, first);
    }

    /// [`Records::take_record`] by plain accesses, at a spot [of](Spot::of) an address.
    #[inline]
    #[track_caller]
    pub fn take<M>(
        self,
        machine: &M,
        word: u32,
        answer: impl FnOnce(u32, [u64; 2]) -> Option<((u64, u64), (usize, u32))>,
    ) -> Option<bool>
    where
        M: UncachedMemory + Coherence + Topology + NativeAtomics + ?Sized,
    {
        let at = self.address();
        if machine.load_u32(at) != word {
            return None;
        }
        machine.acquire();
        let second = machine.load_u32(at.plus(4));
        let mut body = [[0; 8]; 2];
        machine.load_bytes(at.plus(8), body.as_flattened_mut());
        let body = body.map(u64::from_le_bytes);
        let Some(((place, value), (then, word))) = answer(second, body) else {
            return Some(false);
        };
        let [first, _] = body;
        if place >= (machine.memory_size() / 8) as u64 || !self.claim(machine, first, first | CLAIM)
        {
            return Some(false);
        }
        let own = Region::memory(machine.core());
        // Below the size of a region.
        let at = own.at(place.wrapping_mul(8) as usize);
        machine.store_bytes(at, &value.to_le_bytes());
        machine.drain();
        machine.store_u32(own.at(then), word);
        Some(true)
    }

    /// [`Records::claim_record`] by an atomic operation, at a spot [of](Spot::of) an address.
    #[inline]
    #[track_caller]
    pub fn claim<M>(self, machine: &M, expected: u64, new: u64) -> bool
    where
        M: NativeAtomics + ?Sized,
    {
        let (expected, new) = (expected as u32, new as u32);
        let swap = Amo::CompareSwap { expected, new };
        machine.atomic_u32(self.address().plus(8), swap) == expected
    }

    /// [`Records::load_record`] by a plain access, at a spot [of](Spot::of) an address.
    #[inline]
    #[track_caller]
    pub fn load<M: UncachedMemory + ?Sized>(self, machine: &M) -> u32 {
        machine.load_u32(self.address())
    }
}

/// The low 4 bytes of a record's body after it was taken.
pub const CLAIM: u64 = 0xFFFF_FFFF;

/// Optional: records as the machine has them. The defaults are the plain ones.
///
/// # Contract
/// * R1. [`spot`](Self::spot) is given what U1 of [`UncachedMemory`] allows, in a region of
///   [`Kind::Memory`], with 24 bytes at a multiple of 8 in one line. The other methods are given
///   spots that it has returned, or such spots plus what stays in the region.
/// * R2. The words and the halves of the body are each loaded and stored whole; in what order, is
///   open but for the first word.
pub trait Records: Machine + NativeAtomics {
    /// The spot of the record at `at`.
    #[inline]
    #[track_caller]
    fn spot(&self, at: Address) -> Spot {
        Spot::of(at)
    }

    /// Stores `body` and the second of `words`; and, after a [`drain`](Coherence::drain), the
    /// first, which announces them.
    #[inline]
    #[track_caller]
    fn store_record(&self, at: Spot, words: [u32; 2], body: [u64; 2]) {
        at.store(self, words, body);
    }

    /// Takes the record at `at` if its first word is `word`: after an
    /// [`acquire`](Coherence::acquire), loads the second word and the body, and hands them to
    /// `answer`. That names two places of this core's region of [`Kind::Memory`], and what to store
    /// there: 8 bytes at a multiple of 8, by how many times 8 bytes come before; and, after a
    /// [`drain`](Coherence::drain), a word, by its offset. Before it stores, it
    /// [claims](Self::claim_record) the record: the low 4 bytes of the body become [`CLAIM`].
    ///
    /// None if the record is not there. False, and nothing is stored, if nothing is named, the 8
    /// bytes are not inside, or another core has claimed the record.
    #[inline]
    #[track_caller]
    fn take_record(
        &self,
        at: Spot,
        word: u32,
        answer: impl FnOnce(u32, [u64; 2]) -> Option<((u64, u64), (usize, u32))>,
    ) -> Option<bool> {
        at.take(self, word, answer)
    }

    /// Changes the first half of the body of the record at `at` from `expected` to `new`, if it is
    /// that, by one atomic operation. The two numbers differ in their low 4 bytes only.
    #[inline]
    #[track_caller]
    fn claim_record(&self, at: Spot, expected: u64, new: u64) -> bool {
        at.claim(self, expected, new)
    }

    /// The first word of the record at `at`: no more is known by it.
    #[inline]
    #[track_caller]
    fn load_record(&self, at: Spot) -> u32 {
        at.load(self)
    }
}
