//! Memory that the hardware keeps coherent: one host.
//!
//! Nothing is written back or invalidated. Words and bulk copies are relaxed atomics, so that no
//! access is a data race; order comes from fences, where the protocols ask for it:
//!
//! | promise | by |
//! |---|---|
//! | S1, S2, S8 | coherence: `read` is `load_bytes`, `write` is `store_bytes` |
//! | S3 `drain` | a release fence: on x86_64 for the compiler only |
//! | S4 `acquire` | an acquire fence: the same |
//! | S7 `settle` | a sequentially consistent fence; on x86_64 a locked instruction, see below |
//! | S5 | fences are not moved across atomics, nor past the string instruction |
//!
//! What carries order is in [`order`], which is explored.
//!
//! Test-and-set registers are words beside the regions; the host's atomic operations reach all
//! ranks, so [`NativeAtomics`] is there.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use flagpost_hal::{
    Address, Amo, CachedMemory, Coherence, CoreId, Lines, NativeAtomics, Region, TestAndSet,
    Topology as _, UncachedMemory,
};
use flagpost_record::{CLAIM, Records, Spot};

use crate::machine::sealed::Sealed;
use crate::machine::{Linux, Mode};

pub(crate) mod order;

use order::{Claimed as _, Fences as _, Processor, Shared as _};

/// The mode for one host: no cache instructions.
#[derive(Debug, Default)]
pub struct Coherent(());

impl Sealed for Coherent {}

impl Mode for Coherent {
    const NAME: &'static str = "coherent";
    const PLAIN: bool = true;

    fn new() -> Self {
        Self(())
    }
}

impl UncachedMemory for Linux<Coherent> {
    #[inline]
    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        self.regions().byte(at).get()
    }

    #[inline]
    #[track_caller]
    fn store_u8(&self, at: Address, value: u8) {
        self.regions().byte(at).set(value);
    }

    #[inline]
    #[track_caller]
    fn load_u32(&self, at: Address) -> u32 {
        self.regions().word(at).get()
    }

    #[inline]
    #[track_caller]
    fn store_u32(&self, at: Address, value: u32) {
        self.regions().word(at).set(value);
    }

    #[inline]
    #[track_caller]
    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.regions().bytes(at, from.len()).store(from);
    }

    #[inline]
    #[track_caller]
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        self.regions().bytes(at, into.len()).load(into);
    }

    #[track_caller]
    fn zero(&self, at: Address, len: usize) -> bool {
        self.give_back(at, len)
    }
}

impl Records for Linux<Coherent> {
    #[inline]
    #[track_caller]
    fn spot(&self, at: Address) -> Spot {
        self.regions().spot(at)
    }

    #[inline(always)]
    #[track_caller]
    fn load_record(&self, at: Spot) -> u32 {
        order::load_record(self.regions().record(at))
    }

    #[inline(always)]
    #[track_caller]
    fn claim_record(&self, at: Spot, expected: u64, new: u64) -> bool {
        let (_, [first, _]) = self.regions().record(at);
        first.exchange(expected, new)
    }

    #[inline(always)]
    #[track_caller]
    fn store_record(&self, at: Spot, words: [u32; 2], body: [u64; 2]) {
        order::store_record(&Processor, self.regions().record(at), words, body);
    }

    #[inline(always)]
    #[track_caller]
    fn take_record(
        &self,
        at: Spot,
        word: u32,
        answer: impl FnOnce(u32, [u64; 2]) -> Option<((u64, u64), (usize, u32))>,
    ) -> Option<bool> {
        let own = self.regions();
        let claimed = |head| head | CLAIM;
        order::take_record(&Processor, own.record(at), word, claimed, |second, body| {
            let ((place, value), (then, word)) = answer(second, body)?;
            let (last, long) = (own.own_word(then), own.own_long(place)?);
            Some(((long, value), (last, word)))
        })
    }
}

impl CachedMemory for Linux<Coherent> {
    #[inline]
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        if at.region == Region::memory(self.core()) {
            let own = self.regions().own_bytes(at.offset, into.len());
            return own.load(into);
        }
        self.load_bytes(at, into);
    }

    #[inline]
    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        self.store_bytes(at, from);
    }
}

// SAFETY: see the table of the module. All accesses to memory are atomics, or assembler that the
// compiler takes for a call which reads or writes memory, and fences are ordered with both (S5).
// What is coherent is never old (S1, S2, S6, S8).
unsafe impl Coherence for Linux<Coherent> {
    /// So that words of different writers do not share a line: aarch64 has lines of up to 128
    /// bytes.
    const LINE: usize = if cfg!(target_arch = "x86_64") {
        64
    } else {
        128
    };
    const COHERENT: bool = true;

    #[inline]
    fn write_back(&self, _: &[Lines]) {}

    #[inline]
    fn invalidate(&self, _: &[Lines]) {}

    #[inline]
    fn drain(&self) {
        Processor.drain();
    }

    #[inline]
    fn acquire(&self) {
        Processor.acquire();
    }

    #[inline]
    fn settle(&self) {
        Processor.settle();
    }
}

impl TestAndSet for Linux<Coherent> {
    #[inline]
    fn test_and_set(&self, of: CoreId) -> bool {
        order::test_and_set(self.segment().lock_of(of.get()))
    }

    #[inline]
    fn clear(&self, of: CoreId) {
        order::clear(self.segment().lock_of(of.get()));
    }
}

/// `operation` on `word`.
macro_rules! change {
    ($word:expr, $operation:expr) => {
        match ($word, $operation) {
            (word, Amo::Read) => word.load(Acquire),
            (word, Amo::Add(value)) => word.fetch_add(value, AcqRel),
            (word, Amo::And(value)) => word.fetch_and(value, AcqRel),
            (word, Amo::Or(value)) => word.fetch_or(value, AcqRel),
            (word, Amo::Xor(value)) => word.fetch_xor(value, AcqRel),
            (word, Amo::Swap(value)) => word.swap(value, AcqRel),
            (word, Amo::CompareSwap { expected, new }) => {
                match word.compare_exchange(expected, new, AcqRel, Relaxed) {
                    Ok(found) | Err(found) => found,
                }
            }
        }
    };
}

impl NativeAtomics for Linux<Coherent> {
    type Word = u64;

    // An operation that its caller has chosen is one instruction.
    #[inline(always)]
    #[track_caller]
    fn atomic_u32(&self, at: Address, operation: Amo<u32>) -> u32 {
        change!(self.regions().word(at), operation)
    }

    #[inline]
    #[track_caller]
    fn atomic_u64(&self, at: Address, operation: Amo) -> u64 {
        change!(self.regions().long(at), operation)
    }
}
