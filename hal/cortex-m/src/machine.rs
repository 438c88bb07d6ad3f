//! The traits of `flagpost-hal`, over [`Shared`] and a [`Chip`].
//!
//! All accesses are relaxed atomic loads and stores of words and bytes: one instruction each, which
//! the compiler neither drops nor merges (U6). Bulk copies go by whole words, with bytes at the
//! ends. So no access is unaligned, and no neighbour of a byte changes (U4).
//!
//! | promise | by |
//! |---|---|
//! | U3, S1, S2, S8 | the memory is not cached: `read` is `load_bytes`, `write` is `store_bytes` |
//! | U5 | a core's accesses to the same bytes are done in program order |
//! | S3, S4, S7 | [`Chip::barrier`] |
//! | S5 | it is, for the compiler, an access to any memory |
//! | T3 | a flag per lock, of each core |
//! | R1, R4 | words are looked at once more; then [`Chip::sleep`], which an event ends |

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use flagpost_hal::{
    Address, CachedMemory, Clock, Coherence, CoreId, Kind, Lines, MessageBuffer, Relax, TestAndSet,
    Topology, UncachedMemory, Watch,
};
#[cfg(target_has_atomic = "32")]
use flagpost_hal::{Amo, NativeAtomics};

#[cfg(target_has_atomic = "32")]
use crate::chip::Exclusives;
use crate::chip::{Chip, Lock};
use crate::instructions;
use crate::shared::{LINE, PerCore, Shared};

/// A core's handle of the machine. Copies are the same core's.
#[derive(Debug)]
pub struct CortexM<C> {
    /// Of all cores, one after the other.
    regions: &'static [AtomicU32],
    /// Words of a region.
    words: usize,
    cores: &'static [PerCore],
    own: &'static PerCore,
    core: CoreId,
    /// It stays on its core.
    chip: PhantomData<*const C>,
}

impl<C> Copy for CortexM<C> {}

impl<C> Clone for CortexM<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Chip> CortexM<C> {
    /// The handle of the core that calls. Once on each core, for each start of it: the clock begins
    /// at 0. `None` if `shared` has no place for a core of this number.
    pub fn start<const CORES: usize, const WORDS: usize>(
        shared: &'static Shared<CORES, WORDS>,
    ) -> Option<Self> {
        let core = C::core();
        let own = shared.cores.get(usize::from(core))?;
        own.held.store(0, Relaxed);
        own.rung.store(0, Relaxed);
        let [last, low, high] = &own.clock;
        last.store(C::counter(), Relaxed);
        low.store(0, Relaxed);
        high.store(0, Relaxed);
        Some(Self {
            regions: shared.regions.as_flattened(),
            words: WORDS,
            cores: &shared.cores,
            own,
            core: CoreId::new(core),
            chip: PhantomData,
        })
    }

    /// Rings `core`'s bell, this core's own or another's. What was stored before is seen by a core
    /// whose [`wait_for_ring`](Self::wait_for_ring) returns for it.
    pub fn ring(&self, core: CoreId) {
        if let Some(of) = self.cores.get(core.index()) {
            C::barrier();
            of.rung.store(1, Relaxed);
            instructions::dsb();
            instructions::sev();
        }
    }

    /// Waits until this core's bell was rung since the last call.
    pub fn wait_for_ring(&self) {
        while self.own.rung.load(Relaxed) == 0 {
            C::relax();
        }
        // The bell is silent before the caller looks: a ring from then on is another.
        self.own.rung.store(0, Relaxed);
        C::barrier();
    }

    /// The words that hold the `len` bytes at `at`.
    #[inline]
    fn span(&self, at: Address, len: usize) -> &'static [AtomicU32] {
        let (from, to) = (at.offset / 4, at.offset.saturating_add(len).div_ceil(4));
        if at.region.kind != Kind::Memory || to > self.words {
            outside();
        }
        let base = at.region.owner.index().wrapping_mul(self.words);
        match self
            .regions
            .get(base.wrapping_add(from)..base.wrapping_add(to))
        {
            Some(words) => words,
            None => outside(),
        }
    }

    /// The word that holds the byte at `at`.
    #[inline]
    fn holder(&self, at: Address) -> &'static AtomicU32 {
        match self.span(at, 1) {
            [word, ..] => word,
            [] => outside(),
        }
    }

    /// The aligned word at `at`.
    #[inline]
    fn word(&self, at: Address) -> &'static AtomicU32 {
        if !at.offset.is_multiple_of(4) {
            outside();
        }
        self.holder(at)
    }

    fn lock(&self, of: CoreId) -> Option<Lock<'static>> {
        let core = self.cores.get(of.index())?;
        Some(Lock {
            number: of.get().wrapping_add(1),
            word: &core.lock,
        })
    }

    /// Which bit of [`PerCore::held`] is `of`'s. [`Shared`] has at most 32 cores.
    fn bit(of: CoreId) -> u32 {
        1_u32.wrapping_shl(of.get().into())
    }
}

/// U1: the machine stops, and touches no other memory.
#[cold]
#[inline(never)]
fn outside() -> ! {
    panic!("flagpost: an address outside of its region, or a word that is not aligned")
}

/// Stores one byte of a word, and no other.
#[inline]
fn store_byte(word: &AtomicU32, index: usize, value: u8) {
    byte(word, index).store(value, Relaxed);
}

/// Byte `index` of a word, modulo 4.
#[inline]
#[expect(unsafe_code, reason = "a byte of a word")]
fn byte(word: &AtomicU32, index: usize) -> &AtomicU8 {
    let byte = word.as_ptr().cast::<u8>().wrapping_add(index % 4);
    // SAFETY: the byte lies in the word, whose lifetime the result has; bytes are always aligned.
    // The word is only ever accessed by atomics. Those of other size are one instruction each, on
    // all processors that this runs on, and do what they say.
    unsafe { AtomicU8::from_ptr(byte) }
}

impl<C: Chip> UncachedMemory for CortexM<C> {
    #[inline]
    fn load_u8(&self, at: Address) -> u8 {
        byte(self.holder(at), at.offset).load(Relaxed)
    }

    #[inline]
    fn store_u8(&self, at: Address, value: u8) {
        store_byte(self.holder(at), at.offset, value);
    }

    #[inline]
    fn load_u32(&self, at: Address) -> u32 {
        self.word(at).load(Relaxed)
    }

    #[inline]
    fn store_u32(&self, at: Address, value: u32) {
        self.word(at).store(value, Relaxed);
    }

    fn store_bytes(&self, at: Address, from: &[u8]) {
        let words = self.span(at, from.len());
        let (head, from) = split(from, at.offset);
        let mut words = words.iter();
        if !head.is_empty() {
            let Some(word) = words.next() else { return };
            for (index, &value) in (at.offset % 4..).zip(head) {
                store_byte(word, index, value);
            }
        }
        let (whole, tail) = from.as_chunks();
        // `words` comes last: what is taken from the first and has no partner is lost.
        for (&value, word) in whole.iter().zip(&mut words) {
            word.store(u32::from_ne_bytes(value), Relaxed);
        }
        for word in words {
            for (index, &value) in tail.iter().enumerate() {
                store_byte(word, index, value);
            }
        }
    }

    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        let words = self.span(at, into.len());
        let (head, into) = split_mut(into, at.offset);
        let mut words = words.iter();
        if !head.is_empty() {
            let Some(word) = words.next() else { return };
            let bytes = word.load(Relaxed).to_ne_bytes();
            for (to, byte) in head.iter_mut().zip(bytes.into_iter().skip(at.offset % 4)) {
                *to = byte;
            }
        }
        let (whole, tail) = into.as_chunks_mut();
        for (to, word) in whole.iter_mut().zip(&mut words) {
            *to = word.load(Relaxed).to_ne_bytes();
        }
        for word in words {
            let bytes = word.load(Relaxed).to_ne_bytes();
            for (to, byte) in tail.iter_mut().zip(bytes) {
                *to = byte;
            }
        }
    }
}

/// How many of `len` bytes at `offset` lie before the first whole word.
fn before_words(offset: usize, len: usize) -> usize {
    (offset.wrapping_neg() % 4).min(len)
}

fn split(from: &[u8], offset: usize) -> (&[u8], &[u8]) {
    from.split_at_checked(before_words(offset, from.len()))
        .unwrap_or_default()
}

fn split_mut(into: &mut [u8], offset: usize) -> (&mut [u8], &mut [u8]) {
    let head = before_words(offset, into.len());
    into.split_at_mut_checked(head).unwrap_or_default()
}

impl<C: Chip> CachedMemory for CortexM<C> {
    #[inline]
    fn read(&self, at: Address, into: &mut [u8]) {
        self.load_bytes(at, into);
    }

    #[inline]
    fn write(&self, at: Address, from: &[u8]) {
        self.store_bytes(at, from);
    }
}

// SAFETY: see the table of the module, and what `Chip` demands of its implementor.
#[expect(unsafe_code, reason = "implements the contract")]
unsafe impl<C: Chip> Coherence for CortexM<C> {
    const LINE: usize = LINE;
    const COHERENT: bool = true;

    #[inline(always)]
    fn write_back(&self, _: &[Lines]) {}

    #[inline(always)]
    fn invalidate(&self, _: &[Lines]) {}

    #[inline(always)]
    fn drain(&self) {
        C::barrier();
    }

    #[inline(always)]
    fn acquire(&self) {
        C::barrier();
    }

    #[inline(always)]
    fn settle(&self) {
        C::barrier();
    }
}

impl<C: Chip> TestAndSet for CortexM<C> {
    fn test_and_set(&self, of: CoreId) -> bool {
        let held = self.own.held.load(Relaxed);
        let Some(lock) = self.lock(of) else {
            return false;
        };
        // The chip may tell the holder of success a second time.
        if held & Self::bit(of) != 0 || !C::test_and_set(lock) {
            return false;
        }
        self.own.held.store(held | Self::bit(of), Relaxed);
        true
    }

    fn clear(&self, of: CoreId) {
        if let Some(lock) = self.lock(of) {
            let held = self.own.held.load(Relaxed);
            self.own.held.store(held & !Self::bit(of), Relaxed);
            C::clear(lock);
        }
    }

    fn release_at_start(&self, own: CoreId) {
        if let Some(lock) = self.lock(own) {
            self.own.held.store(0, Relaxed);
            C::release_at_start(lock);
        }
    }
}

impl<C: Chip> MessageBuffer for CortexM<C> {
    fn message_buffer_size(&self) -> usize {
        0
    }
}

impl<C: Chip> Topology for CortexM<C> {
    #[inline]
    fn cores(&self) -> u16 {
        self.cores.len() as u16
    }

    #[inline]
    fn core(&self) -> CoreId {
        self.core
    }

    fn memory_size(&self) -> usize {
        self.words.saturating_mul(4)
    }
}

impl<C: Chip> Clock for CortexM<C> {
    /// The counter, widened: adds what it has counted since the last call. See the crate's rules
    /// for how often that must be.
    fn cycles(&self) -> u64 {
        let [last, low, high] = &self.own.clock;
        let now = C::counter();
        let unused = 32_u32.saturating_sub(C::COUNTER_BITS);
        let counted = now.wrapping_sub(last.load(Relaxed));
        let counted = counted.wrapping_shl(unused).wrapping_shr(unused);
        let (sum, carry) = low.load(Relaxed).overflowing_add(counted);
        let upper = high.load(Relaxed).wrapping_add(carry.into());
        last.store(now, Relaxed);
        low.store(sum, Relaxed);
        high.store(upper, Relaxed);
        u64::from(upper) << 32 | u64::from(sum)
    }

    fn hertz(&self) -> u64 {
        C::hertz()
    }
}

impl<C: Chip> Relax for CortexM<C> {
    #[inline]
    fn relax(&self, watched: &[Watch]) {
        let own = |watch: &Watch| watch.at.region.owner == self.core;
        if !C::SLEEPS || watched.is_empty() || !watched.iter().all(own) {
            return C::relax();
        }
        // A change from here on is followed by an event, which ends the sleep (R1).
        if { watched.iter() }.all(|watch| self.load_u32(watch.at) == watch.seen) {
            C::sleep();
            C::barrier();
        }
    }

    #[inline(always)]
    fn told(&self, core: CoreId) {
        if C::SLEEPS {
            C::wake(core.get());
        }
    }
}

#[cfg(target_has_atomic = "32")]
impl<C: Exclusives> NativeAtomics for CortexM<C> {
    type Word = u32;

    #[inline(always)]
    fn atomic_u32(&self, at: Address, operation: Amo<u32>) -> u32 {
        let word = self.word(at);
        match operation {
            Amo::Read => word.load(Relaxed),
            Amo::Add(value) => word.fetch_add(value, Relaxed),
            Amo::And(value) => word.fetch_and(value, Relaxed),
            Amo::Or(value) => word.fetch_or(value, Relaxed),
            Amo::Xor(value) => word.fetch_xor(value, Relaxed),
            Amo::Swap(value) => word.swap(value, Relaxed),
            Amo::CompareSwap { expected, new } => {
                match word.compare_exchange(expected, new, Relaxed, Relaxed) {
                    Ok(found) | Err(found) => found,
                }
            }
        }
    }
}
