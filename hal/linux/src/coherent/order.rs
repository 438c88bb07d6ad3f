//! The operations of coherent memory that carry order: once, for the processor and for a model of
//! it.
//!
//! What they do to shared words, and which fence stands between, is written over a few traits. The
//! machine has them on the processor's atomics ([`Processor`]), and inlines them. The tests have
//! them on those of `loom`, which tries all orders that the language allows: with all fences, where
//! nothing goes wrong, and without each, where something does.
//!
//! Not here: the [atomic operations](flagpost_hal::NativeAtomics), each of which acquires and
//! releases, and words beside the regions.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, fence};

/// A number that ranks share. Accesses are relaxed atomics.
pub(crate) trait Shared {
    type Number: PartialEq;
    fn get(&self) -> Self::Number;
    fn set(&self, value: Self::Number);
}

/// A number that one of several ranks claims.
pub(crate) trait Claimed: Shared {
    /// Changes it from `from` to `to`, if it is that.
    fn exchange(&self, from: Self::Number, to: Self::Number) -> bool;
}

/// A test-and-set register.
pub(crate) trait Register {
    fn load(&self, order: Ordering) -> u32;
    fn swap(&self, value: u32, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
}

/// What orders a rank's accesses.
pub(crate) trait Fences {
    /// A fence of this order.
    fn fence(&self, order: Ordering);

    /// Earlier accesses come before later stores.
    #[inline(always)]
    fn drain(&self) {
        self.fence(Release);
    }

    /// Earlier loads come before later accesses.
    #[inline(always)]
    fn acquire(&self) {
        self.fence(Acquire);
    }

    /// Earlier accesses come before later ones, loads behind stores too.
    #[inline(always)]
    fn settle(&self) {
        self.fence(SeqCst);
    }
}

/// Some bytes: elements of 8 bytes where their address is a multiple of that, and bytes at the
/// ends.
pub(crate) trait Span {
    type Byte: Shared<Number = u8>;
    type Long: Shared<Number = u64>;
    /// How many of `len` bytes come before the first element of 8.
    fn head(&self, len: usize) -> usize;
    /// Byte `index`.
    fn byte(&self, index: usize) -> &Self::Byte;
    /// The element of 8 bytes that begins at byte `index`.
    fn long(&self, index: usize) -> &Self::Long;
}

/// Stores `word`, behind all that this rank has loaded and stored before.
#[inline(always)]
pub(crate) fn announce<W: Shared>(fences: &impl Fences, at: &W, word: W::Number) {
    fences.drain();
    at.set(word);
}

/// Whether `word` is there. If so, later accesses come behind those that its storer has
/// [announced](announce) by it.
#[inline(always)]
pub(crate) fn has_come<W: Shared>(fences: &impl Fences, at: &W, word: W::Number) -> bool {
    let come = at.get() == word;
    if come {
        fences.acquire();
    }
    come
}

/// A record in shared memory: its words, and its body.
pub(crate) type Record<'s, W, L> = ([&'s W; 2], [&'s L; 2]);

/// Stores a record. Who finds its first word finds all of it.
#[inline(always)]
pub(crate) fn store_record<W: Shared, L: Shared>(
    fences: &impl Fences,
    ([first, second], rest): Record<'_, W, L>,
    words: [W::Number; 2],
    body: [L::Number; 2],
) {
    let [word, other] = words;
    for (to, from) in rest.into_iter().zip(body) {
        to.set(from);
    }
    second.set(other);
    announce(fences, first, word);
}

/// A place, and what to store there.
pub(crate) type Put<'s, S> = (&'s S, <S as Shared>::Number);

/// Takes the record if its first word is `word`: hands the rest to `answer`, claims it by `claimed`
/// of the first half of its body, stores what `answer` names, and announces so by a word. None if
/// the record is not there; false if nothing is named, or another rank has claimed it.
#[inline(always)]
pub(crate) fn take_record<'o, W: Shared + 'o, L: Claimed<Number: Copy> + 'o>(
    fences: &impl Fences,
    ([first, second], rest): Record<'_, W, L>,
    word: W::Number,
    claimed: impl FnOnce(L::Number) -> L::Number,
    answer: impl FnOnce(W::Number, [L::Number; 2]) -> Option<(Put<'o, L>, Put<'o, W>)>,
) -> Option<bool> {
    if !has_come(fences, first, word) {
        return None;
    }
    let body = rest.map(L::get);
    let Some(((place, value), (last, word))) = answer(second.get(), body) else {
        return Some(false);
    };
    let ([claim, _], [head, _]) = (rest, body);
    if !claim.exchange(head, claimed(head)) {
        return Some(false);
    }
    place.set(value);
    announce(fences, last, word);
    Some(true)
}

/// The first word of a record: no more is known by it.
#[inline(always)]
pub(crate) fn load_record<W: Shared, L>(([first, _], _): Record<'_, W, L>) -> W::Number {
    first.get()
}

/// Sets the register; whether it was clear. What was done between an earlier [`clear`] and this is
/// found.
#[inline(always)]
pub(crate) fn test_and_set(register: &impl Register) -> bool {
    register.load(Relaxed) == 0 && register.swap(1, Acquire) == 0
}

/// Clears the register.
#[inline(always)]
pub(crate) fn clear(register: &impl Register) {
    register.store(0, Release);
}

/// Copies `from` to the first bytes of `to`, element by element, in no order.
pub(crate) fn copy_in(to: &impl Span, from: &[u8]) {
    let (head, rest) = from.split_at(to.head(from.len()));
    for (index, byte) in head.iter().enumerate() {
        to.byte(index).set(*byte);
    }
    let (longs, tail) = rest.as_chunks::<8>();
    for (step, long) in longs.iter().enumerate() {
        let long = u64::from_le_bytes(*long);
        to.long(head.len() + 8 * step).set(long);
    }
    for (index, byte) in tail.iter().enumerate() {
        to.byte(from.len() - tail.len() + index).set(*byte);
    }
}

/// Copies the first bytes of `from` to `into`, the same way.
pub(crate) fn copy_out(from: &impl Span, into: &mut [u8]) {
    let len = into.len();
    let (head, rest) = into.split_at_mut(from.head(len));
    let start = head.len();
    for (index, byte) in head.iter_mut().enumerate() {
        *byte = from.byte(index).get();
    }
    let (longs, tail) = rest.as_chunks_mut::<8>();
    for (step, long) in longs.iter_mut().enumerate() {
        *long = from.long(start + 8 * step).get().to_le_bytes();
    }
    let end = len - tail.len();
    for (index, byte) in tail.iter_mut().enumerate() {
        *byte = from.byte(end + index).get();
    }
}

macro_rules! shared {
    ($($atomic:ty: $number:ty),*) => {$(
        impl Shared for $atomic {
            type Number = $number;

            #[inline(always)]
            fn get(&self) -> $number {
                self.load(Relaxed)
            }

            #[inline(always)]
            fn set(&self, value: $number) {
                self.store(value, Relaxed);
            }
        }
    )*

        impl Claimed for AtomicU64 {
            #[inline(always)]
            fn exchange(&self, from: u64, to: u64) -> bool {
                self.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
            }
        }
    };
}

shared!(AtomicU8: u8, AtomicU32: u32, AtomicU64: u64);

impl Register for AtomicU32 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    #[inline(always)]
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.swap(value, order)
    }

    #[inline(always)]
    fn store(&self, value: u32, order: Ordering) {
        self.store(value, order);
    }
}

/// The fences of the processor.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Processor;

impl Fences for Processor {
    #[inline(always)]
    fn fence(&self, order: Ordering) {
        #[cfg(target_arch = "x86_64")]
        if order == SeqCst {
            // SAFETY: adds nothing to four bytes of the stack, which are mapped, below its end or
            // in what nobody else touches. The compiler takes it for a call that may change any
            // memory (S5). As its own fence, a locked instruction, which empties the store buffer;
            // but for that it sets up a frame.
            unsafe {
                std::arch::asm!("lock or dword ptr [rsp - 64], 0", options(nostack));
            }
            return;
        }
        fence(order);
    }
}

#[cfg(test)]
mod model;
