//! Bytes of the regions: found, checked, and copied.
//!
//! # Invariants
//! * B1. A [`Bytes`] is made by [`Regions::bytes`] only, from an address that lies in its region to
//!   the last byte.
//! * B2. Other processes change these bytes at any time. So they are only touched by atomic
//!   operations, or by instructions that the compiler does not look into; there is never a
//!   reference to them. What is read is a number of some size, and any bits are one.
//! * B3. Where several ranks touch the same bytes at the same time, the kernel has them do so in
//!   one size. A peer that does not gets and gives wrong numbers, nothing else: on x86_64 and
//!   aarch64 accesses of different sizes may mix.
//!
//! # Costs
//! One aligned element of 4 or 8 bytes: one load or store; up to four of 8: one each. Else words of
//! 8 bytes, and bytes at the ends; from 256 bytes on x86_64's string instruction, which moves whole
//! lines as `memcpy` does.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use flagpost_hal::{Address, CoreId, Kind, Region};
use flagpost_record::Spot;

use crate::coherent::order::{self, Shared as _, Span};
use crate::hidden::LINE;
use crate::segment::Segment;

/// From how many bytes on the string instruction is used.
#[cfg(target_arch = "x86_64")]
const STRING: usize = 256;

/// Bytes of a record.
const RECORD: usize = 24;

/// The regions of all ranks, as this process has mapped them.
#[derive(Clone, Debug)]
pub(crate) struct Regions {
    base: NonNull<u8>,
    memory: usize,
    ranks: u16,
    rank: u16,
    /// Where this rank's begins.
    own: NonNull<u8>,
    /// The last [`Spot`] that has [`RECORD`] bytes of the regions behind it; how many times 8 bytes
    /// come before the last 8 of a region; and the offset of its last word.
    last_record: u64,
    last_long: u64,
    last_word: usize,
    segment: Arc<Segment>,
}

/// Some bytes of one region.
#[derive(Copy, Clone)]
pub(crate) struct Bytes<'s> {
    start: NonNull<u8>,
    len: usize,
    segment: PhantomData<&'s Segment>,
}

/// Stops this rank: it asked for what is not there (U1).
#[cold]
#[inline(never)]
#[track_caller]
fn no_such_bytes(owner: u16, offset: usize, len: usize) -> ! {
    let at = Region::memory(CoreId::new(owner)).at(offset);
    panic!("{at}: {len} bytes here are not in memory, or no aligned word")
}

impl Regions {
    /// # Panics
    /// If there is no such rank.
    pub(crate) fn new(segment: Arc<Segment>, rank: u16) -> Self {
        let (shape, base) = (segment.shape(), segment.regions());
        let (memory, ranks) = (shape.memory(), shape.ranks());
        assert!(rank < ranks && memory >= RECORD);
        Self {
            base,
            memory,
            ranks,
            rank,
            // SAFETY: `base` is followed by `ranks * memory` mapped bytes (M1), as long as
            // `segment` lives.
            own: unsafe { base.add(usize::from(rank) * memory) },
            last_record: (u64::from(ranks) * memory as u64 - RECORD as u64) / 8,
            last_long: (memory / 8 - 1) as u64,
            last_word: memory - 4,
            segment,
        }
    }

    /// How many there are.
    pub(crate) fn ranks(&self) -> u16 {
        self.ranks
    }

    /// Bytes of each.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// What they are part of.
    pub(crate) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// True if `region` is this rank's.
    pub(crate) fn owns(&self, region: Region) -> bool {
        region == Region::memory(CoreId::new(self.rank))
    }

    /// [`Segment::unhide`] of the lines of these bytes, if they are this rank's.
    pub(crate) fn unhide(&self, region: Region, start: usize, len: usize) {
        if self.owns(region) {
            let lines = start / LINE..(start + len).div_ceil(LINE);
            self.segment.unhide(self.rank, lines);
        }
    }

    /// The `len` bytes at `at`.
    ///
    /// # Panics
    /// Unless they lie in a region of [`Kind::Memory`].
    #[inline(always)]
    #[track_caller]
    pub(crate) fn bytes(&self, at: Address, len: usize) -> Bytes<'_> {
        let owner = at.region.owner.get();
        if !self.hold(at.offset, len) {
            no_such_bytes(owner, at.offset, len);
        }
        if owner >= self.ranks || at.region.kind != Kind::Memory {
            no_such_bytes(owner, at.offset, len);
        }
        let offset = usize::from(owner) * self.memory + at.offset;
        Bytes {
            // SAFETY: `base` is followed by `ranks * memory` mapped bytes (M1), as long as
            // `segment` lives; `owner` is below `ranks`, and `at.offset + len` is at most `memory`.
            start: unsafe { self.base.add(offset) },
            len,
            segment: PhantomData,
        }
    }

    /// True if each region has `len` bytes at `offset`.
    #[inline(always)]
    fn hold(&self, offset: usize, len: usize) -> bool {
        offset
            .checked_add(len)
            .is_some_and(|end| end <= self.memory)
    }

    /// `len` bytes at `offset` of this rank's region.
    ///
    /// # Panics
    /// Unless they lie in it.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn own_bytes(&self, offset: usize, len: usize) -> Bytes<'_> {
        if !self.hold(offset, len) {
            no_such_bytes(self.rank, offset, len);
        }
        Bytes {
            // SAFETY: `own` is followed by `memory` mapped bytes (M1), as long as `segment` lives;
            // `offset + len` is at most `memory`.
            start: unsafe { self.own.add(offset) },
            len,
            segment: PhantomData,
        }
    }

    /// [`Segment::clear`] of these pages.
    #[track_caller]
    pub(crate) fn clear(&self, at: Address, len: usize) -> bool {
        self.bytes(at, len);
        let before = at.region.owner.index() * self.memory;
        self.segment.clear(before + at.offset, len)
    }

    /// The 8 bytes of this rank's own region that come after `before` times 8, if they lie inside.
    #[inline(always)]
    pub(crate) fn own_long(&self, before: u64) -> Option<&AtomicU64> {
        let fits = before <= self.last_long;
        // SAFETY: `own` is followed by `memory` mapped bytes (M1), which hold `last_long` times 8,
        // and 8 more. Regions begin at pages, so they are aligned. B2: they are never referred to
        // but as an atomic; the reference lives no longer than `self`, which keeps the mapping.
        fits.then(|| unsafe {
            AtomicU64::from_ptr(self.own.as_ptr().cast::<u64>().add(before as usize))
        })
    }

    /// The aligned word at `offset` of this rank's own region.
    ///
    /// # Panics
    /// Unless it lies inside, and is aligned.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn own_word(&self, offset: usize) -> &AtomicU32 {
        if !offset.is_multiple_of(4) || offset > self.last_word {
            no_such_bytes(self.rank, offset, 4);
        }
        // SAFETY: as in `own_long`: `last_word` is 4 less than `memory`.
        unsafe { AtomicU32::from_ptr(self.own.add(offset).as_ptr().cast()) }
    }

    /// Where the record at `at` is: how many times 8 bytes behind the first region's start.
    ///
    /// # Panics
    /// Unless it lies in a region of [`Kind::Memory`], at a multiple of 8.
    #[inline]
    #[track_caller]
    pub(crate) fn spot(&self, at: Address) -> Spot {
        let bytes = self.bytes(at, RECORD);
        if !bytes.is_aligned(8) {
            no_such_bytes(at.region.owner.get(), at.offset, RECORD);
        }
        let before = u64::from(at.region.owner.get()) * self.memory as u64;
        Spot::new((before + at.offset as u64) / 8)
    }

    /// The words and the body of the record at `at`: two of 4 bytes, and two of 8.
    ///
    /// # Panics
    /// Unless they lie in the regions.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn record(&self, at: Spot) -> ([&AtomicU32; 2], [&AtomicU64; 2]) {
        if at.number() > self.last_record {
            no_such_bytes(0, (at.number() * 8) as usize, RECORD);
        }
        // SAFETY: `base` is followed by `ranks * memory` mapped bytes (M1), and 8 times the number
        // is at most what `last_record` says, 24 bytes less: all four lie inside. `base` is the
        // start of a page, so they are aligned. B2: they are never referred to but as atomics; the
        // references live no longer than `self`, which keeps the mapping.
        unsafe {
            let start = self.base.add(8 * at.number() as usize).as_ptr();
            let words = [
                AtomicU32::from_ptr(start.cast()),
                AtomicU32::from_ptr(start.add(4).cast()),
            ];
            let body = [
                AtomicU64::from_ptr(start.add(8).cast()),
                AtomicU64::from_ptr(start.add(16).cast()),
            ];
            (words, body)
        }
    }

    /// The aligned 8 bytes at `at`.
    ///
    /// # Panics
    /// As [`bytes`](Self::bytes); if they are not aligned.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn long(&self, at: Address) -> &AtomicU64 {
        if !at.offset.is_multiple_of(8) {
            no_such_bytes(at.region.owner.get(), at.offset, 8);
        }
        let bytes = self.bytes(at, 8);
        // SAFETY: as in `word`, with 8 bytes.
        unsafe { AtomicU64::from_ptr(bytes.start.as_ptr().cast()) }
    }

    /// The aligned word at `at`.
    ///
    /// # Panics
    /// As [`bytes`](Self::bytes); if it is not aligned.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn word(&self, at: Address) -> &AtomicU32 {
        if !at.offset.is_multiple_of(4) {
            no_such_bytes(at.region.owner.get(), at.offset, 4);
        }
        let bytes = self.bytes(at, 4);
        // SAFETY: B1: four mapped bytes; regions begin at pages, so the word is aligned as its
        // offset is. B2: it is never referred to but as an atomic; the reference lives no longer
        // than `self`, which keeps the mapping.
        unsafe { AtomicU32::from_ptr(bytes.start.as_ptr().cast()) }
    }

    /// The byte at `at`.
    #[inline]
    #[track_caller]
    pub(crate) fn byte(&self, at: Address) -> &AtomicU8 {
        let bytes = self.bytes(at, 1);
        // SAFETY: as in `word`; a byte is always aligned.
        unsafe { AtomicU8::from_ptr(bytes.start.as_ptr()) }
    }
}

impl<'s> Bytes<'s> {
    /// Where they are, for instructions that name bytes by their address.
    pub(crate) fn as_ptr(self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How many.
    pub(crate) fn len(self) -> usize {
        self.len
    }

    #[inline(always)]
    fn is_aligned(self, to: usize) -> bool {
        self.start.as_ptr().addr().is_multiple_of(to)
    }

    /// The first 4 bytes, which are aligned.
    #[inline(always)]
    fn word(self) -> &'s AtomicU32 {
        assert!(self.len >= 4);
        debug_assert!(self.is_aligned(4));
        // SAFETY: B1, B2: four mapped bytes of these; callers have looked whether they are aligned.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().cast()) }
    }

    /// Copies `from` to these bytes, which are as many.
    #[inline(always)]
    pub(crate) fn store(self, from: &[u8]) {
        debug_assert_eq!(self.len, from.len());
        // What an element is, and what an entry of a ring is. Elsewhere lengths are looked at in
        // turn.
        match (from.as_chunks::<8>(), self.is_aligned(8)) {
            (([one], []), true) => self.long(0).set(u64::from_le_bytes(*one)),
            (([a, b, c, d], []), true) => {
                self.long(0).set(u64::from_le_bytes(*a));
                self.long(8).set(u64::from_le_bytes(*b));
                self.long(16).set(u64::from_le_bytes(*c));
                self.long(24).set(u64::from_le_bytes(*d));
            }
            _ => self.store_many(from),
        }
    }

    #[inline(never)]
    fn store_many(self, from: &[u8]) {
        let len = self.len.min(from.len());
        if let (Ok(word), true) = (<[u8; 4]>::try_from(from), self.is_aligned(4)) {
            self.word().set(u32::from_le_bytes(word));
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if len >= STRING {
            // It moves whole lines if they begin where lines do.
            let head = self.start.as_ptr().addr().wrapping_neg() % LINE;
            let (first, from) = from.split_at(head);
            let (here, rest) = self.split_at(head);
            order::copy_in(&here, first);
            let len = rest.len.min(from.len());
            // SAFETY: B1: `len` bytes there are mapped, and `from` has as many to read. The
            // instruction reads and writes nothing else. For the compiler it is a call that stores
            // bytes one by one; other processes' accesses are no concern of its, and this one's
            // threads reach these bytes by atomics and by such calls only (B2). The direction flag
            // is clear, as the calling convention has it.
            unsafe {
                std::arch::asm!(
                    "rep movsb",
                    inout("rcx") len => _,
                    inout("rdi") rest.start.as_ptr() => _,
                    inout("rsi") from.as_ptr() => _,
                    options(nostack, preserves_flags)
                );
            }
            return;
        }
        order::copy_in(&self, &from[..len]);
    }

    /// Copies these bytes to `into`, which are as many.
    #[inline(always)]
    pub(crate) fn load(self, into: &mut [u8]) {
        debug_assert_eq!(self.len, into.len());
        match (into.as_chunks_mut::<8>(), self.is_aligned(8)) {
            (([one], []), true) => *one = self.long(0).get().to_le_bytes(),
            (([], [a, b, c, d]), _) if self.is_aligned(4) => {
                [*a, *b, *c, *d] = self.word().get().to_le_bytes();
            }
            _ => self.load_many(into),
        }
    }

    #[inline(never)]
    fn load_many(self, into: &mut [u8]) {
        let len = self.len.min(into.len());
        #[cfg(target_arch = "x86_64")]
        if len >= STRING {
            let head = into.as_ptr().addr().wrapping_neg() % LINE;
            let (first, into) = into.split_at_mut(head);
            let (here, rest) = self.split_at(head);
            order::copy_out(&here, first);
            let len = rest.len.min(into.len());
            // SAFETY: as in `store_many`, the other way round; `into` has `len` bytes to write, and
            // nobody else has it.
            unsafe {
                std::arch::asm!(
                    "rep movsb",
                    inout("rcx") len => _,
                    inout("rdi") into.as_mut_ptr() => _,
                    inout("rsi") rest.start.as_ptr() => _,
                    options(nostack, preserves_flags)
                );
            }
            return;
        }
        order::copy_out(&self, &mut into[..len]);
    }

    /// The first `len` of these bytes, and the others.
    #[cfg(target_arch = "x86_64")]
    fn split_at(self, len: usize) -> (Self, Self) {
        assert!(len <= self.len);
        let first = Self { len, ..self };
        let rest = Self {
            // SAFETY: B1: `len` is no more than these bytes are.
            start: unsafe { self.start.add(len) },
            len: self.len - len,
            ..self
        };
        (first, rest)
    }
}

impl Span for Bytes<'_> {
    type Byte = AtomicU8;
    type Long = AtomicU64;

    fn head(&self, len: usize) -> usize {
        let past = self.start.as_ptr().addr() % 8;
        ((8 - past) % 8).min(len)
    }

    #[inline(always)]
    fn byte(&self, index: usize) -> &AtomicU8 {
        assert!(index < self.len);
        // SAFETY: B1, B2: one mapped byte of these, which `self` keeps mapped.
        unsafe { AtomicU8::from_ptr(self.start.add(index).as_ptr()) }
    }

    #[inline(always)]
    fn long(&self, index: usize) -> &AtomicU64 {
        assert!(index + 8 <= self.len);
        debug_assert!((self.start.as_ptr().addr() + index).is_multiple_of(8));
        // SAFETY: B1, B2: eight mapped bytes of these. Callers step from an aligned address in
        // eights.
        unsafe { AtomicU64::from_ptr(self.start.add(index).as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    fn regions() -> Regions {
        let shape = Shape::new(2, 1 << 16).expect("it makes sense");
        Regions::new(Arc::new(Segment::of_threads(shape).expect("memory")), 0)
    }

    fn at(owner: u16, offset: usize) -> Address {
        Region::memory(CoreId::new(owner)).at(offset)
    }

    #[test]
    fn nothing_outside_of_a_region_is_reached() {
        let regions = regions();
        let size = regions.memory();
        let refused = |at, len| {
            let regions = regions.clone();
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                regions.bytes(at, len);
            }))
            .is_err()
        };
        assert!(!refused(at(1, 0), size));
        assert!(!refused(at(1, size), 0));
        assert!(refused(at(0, 1), size));
        assert!(refused(at(1, size), 1));
        assert!(refused(at(0, usize::MAX), 1));
        assert!(refused(at(0, 8), usize::MAX));
        assert!(refused(at(2, 0), 1));
        assert!(refused(Region::message_buffer(CoreId::new(0)).at(0), 1));
    }

    #[test]
    #[should_panic(expected = "aligned")]
    fn words_are_aligned() {
        regions().word(at(0, 2));
    }
}
