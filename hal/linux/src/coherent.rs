//! Memory that the hardware keeps coherent: one host.
//!
//! Nothing is written back or invalidated. Words and bulk copies are relaxed atomics, so that no access is a data race; order comes
//! from fences, where the protocols ask for it:
//!
//! | promise | by |
//! |---|---|
//! | S1, S2, S8 | coherence: `read` is `load_bytes`, `write` is `store_bytes` |
//! | S3 `drain` | a release fence: on x86_64 for the compiler only |
//! | S4 `acquire` | an acquire fence: the same |
//! | S7 `settle` | a sequentially consistent fence, on x86_64 a locked instruction: the store buffer empties |
//! | S5 | fences are not moved across atomics, nor past the string instruction |
//!
//! Test-and-set registers are words beside the regions; the host's atomic operations reach all ranks, so [`NativeAtomics`] is
//! there.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use flagpost_hal::{
    Address, Atomic, CachedMemory, Coherence, CoreId, Lines, NativeAtomics, TestAndSet,
    UncachedMemory,
};

use crate::machine::{Linux, Mode};

/// The mode for one host: no cache instructions.
#[derive(Debug, Default)]
pub struct Coherent(());

impl Mode for Coherent {
    const NAME: &'static str = "coherent";
    const PLAIN: bool = true;

    fn new() -> Self {
        Self(())
    }
}

impl UncachedMemory for Linux<Coherent> {
    const PUBLISH: usize = 8;

    #[inline]
    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        self.regions().byte(at).load(Relaxed)
    }

    #[inline]
    #[track_caller]
    fn store_u8(&self, at: Address, value: u8) {
        self.regions().byte(at).store(value, Relaxed);
    }

    #[inline]
    #[track_caller]
    fn load_u32(&self, at: Address) -> u32 {
        self.regions().word(at).load(Relaxed)
    }

    #[inline]
    #[track_caller]
    fn store_u32(&self, at: Address, value: u32) {
        self.regions().word(at).store(value, Relaxed);
    }

    #[inline]
    #[track_caller]
    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.regions().bytes(at, from.len()).store(from);
    }

    #[inline(always)]
    #[track_caller]
    fn store_record(&self, at: Address, body: [u64; 2], word: u32) {
        let (first, rest) = self.regions().record(at);
        for (to, from) in rest.into_iter().zip(body) {
            to.store(from, Relaxed);
        }
        self.drain();
        first.store(word, Relaxed);
    }

    #[inline(always)]
    #[track_caller]
    fn take_record(
        &self,
        at: u32,
        word: u32,
        looks: u32,
        answer: impl FnOnce([u64; 2]) -> Option<((u32, u64), (u32, u32))>,
    ) -> bool {
        let region = self.regions().own();
        let (first, rest) = region.record(at);
        let mut left = looks;
        while first.load(Relaxed) != word {
            left = left.saturating_sub(1);
            if left == 0 {
                return false;
            }
            std::hint::spin_loop();
        }
        self.acquire();
        let Some(((place, value), (then, word))) = answer(rest.map(|part| part.load(Relaxed)))
        else {
            return false;
        };
        let (last, Some(long)) = (region.word(then), region.long(place)) else {
            return false;
        };
        long.store(value, Relaxed);
        self.drain();
        last.store(word, Relaxed);
        true
    }

    #[inline]
    #[track_caller]
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        self.regions().bytes(at, into.len()).load(into);
    }
}

impl CachedMemory for Linux<Coherent> {
    #[inline]
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        self.load_bytes(at, into);
    }

    #[inline]
    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        self.store_bytes(at, from);
    }
}

// SAFETY: see the table of the module. All accesses to memory are atomics, or assembler that the compiler takes for a call which
// reads or writes memory, and fences are ordered with both (S5). What is coherent is never old (S1, S2, S6, S8).
unsafe impl Coherence for Linux<Coherent> {
    /// So that words of different writers do not share a line: aarch64 has lines of up to 128 bytes.
    const LINE: usize = if cfg!(target_arch = "x86_64") {
        64
    } else {
        128
    };
    const INVALIDATE_WRITES_BACK: bool = true;
    const COHERENT: bool = true;

    #[inline]
    fn write_back(&self, _: &[Lines]) {}

    #[inline]
    fn invalidate(&self, _: &[Lines]) {}

    #[inline]
    fn drain(&self) {
        fence(Release);
    }

    #[inline]
    fn acquire(&self) {
        fence(Acquire);
    }

    #[inline]
    fn settle(&self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: adds nothing to four bytes of the stack, which are mapped, below its end or in what nobody else touches. The
        // compiler takes it for a call that may change any memory (S5). As its own fence, a locked instruction, which empties
        // the store buffer; but for that it sets up a frame.
        unsafe {
            std::arch::asm!("lock or dword ptr [rsp - 64], 0", options(nostack));
        }
        #[cfg(not(target_arch = "x86_64"))]
        fence(std::sync::atomic::Ordering::SeqCst);
    }
}

impl TestAndSet for Linux<Coherent> {
    #[inline]
    fn test_and_set(&self, of: CoreId) -> bool {
        let register = self.segment().lock_of(of.get());
        register.load(Relaxed) == 0 && register.swap(1, Acquire) == 0
    }

    #[inline]
    fn clear(&self, of: CoreId) {
        self.segment().lock_of(of.get()).store(0, Release);
    }
}

/// `operation` on `word`.
macro_rules! change {
    ($word:expr, $operation:expr) => {
        match ($word, $operation) {
            (word, Atomic::Add(value)) => word.fetch_add(value, AcqRel),
            (word, Atomic::Or(value)) => word.fetch_or(value, AcqRel),
            (word, Atomic::Swap(value)) => word.swap(value, AcqRel),
            (word, Atomic::CompareSwap { old, new }) => {
                match word.compare_exchange(old, new, AcqRel, Relaxed) {
                    Ok(found) | Err(found) => found,
                }
            }
        }
    };
}

impl NativeAtomics for Linux<Coherent> {
    const WIDE: bool = true;

    #[inline]
    #[track_caller]
    fn atomic_u32(&self, at: Address, operation: Atomic) -> u32 {
        change!(self.regions().word(at), operation)
    }

    #[inline]
    #[track_caller]
    fn atomic_u64(&self, at: Address, operation: Atomic<u64>) -> u64 {
        change!(self.regions().long(at), operation)
    }
}
