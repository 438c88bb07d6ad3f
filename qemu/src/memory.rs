//! The memory of the machine: regions, private images, lock bits.
//!
//! # Layout
//! ```text
//!   MEMORY  [ core 0: 64 KiB ][ core 1 ] …      words, in .bss; every hart reaches all of them
//!   BUFFER  [ core 0:  8 KiB ][ core 1 ] …
//!   LOCKS   [ core 0: 1 word ][ core 1 ] …      1 = free, 0 = held
//!   IMAGES  [ core 0: 256 lines of 32 bytes ] … reached by its own hart only
//! ```
//! QEMU takes host memory for what is touched only, so the room for 512 harts costs a small run nothing.
//!
//! # Invariants
//! * M1. Words of regions are touched as `AtomicU32` only, always as whole words. Nothing is a data race
//!   then, and no access is merged, split or dropped (U6). A store of one byte replaces it in its word
//!   by compare-and-swap, so that a neighbour's byte keeps its value (U4).
//! * M2. All these accesses are relaxed: order comes from [`Coherence::drain`] and
//!   [`Coherence::acquire`] alone, as on the chips meant here.
//! * M3. An image is touched only by the hart whose number it bears, never from a trap.
//!
//! An address outside its region stops the machine with a panic that names it (U1).

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst, fence};

use flagpost_hal::image::{Backing, PrivateImage};
use flagpost_hal::{
    Address, Atomic, CachedMemory, Coherence, CoreId, Kind, Lines, MessageBuffer, NativeAtomics,
    Region, TestAndSet, Topology, UncachedMemory,
};

use crate::hart::{Hart, MAX_HARTS};

/// Bytes of ordinary memory per core.
pub(crate) const MEMORY_SIZE: u32 = 64 << 10;

/// Bytes of message buffer per core, as on the SCC.
const BUFFER_SIZE: u32 = 8 << 10;

/// Bytes per line of the private images, as on the SCC.
pub const LINE: usize = 32;

/// Lines per private image: small enough that the cases see evictions.
const LINES: usize = 256;

type Image = PrivateImage<LINES, LINE>;
type Words<const BYTES: usize> = [[AtomicU32; BYTES]; MAX_HARTS];

static MEMORY: Words<{ MEMORY_SIZE as usize / 4 }> =
    [const { [const { AtomicU32::new(0) }; _] }; _];
static BUFFER: Words<{ BUFFER_SIZE as usize / 4 }> =
    [const { [const { AtomicU32::new(0) }; _] }; _];
static LOCKS: [AtomicU32; MAX_HARTS] = [const { AtomicU32::new(HELD) }; _];
static IMAGES: Images = Images([const { UnsafeCell::new(Image::EMPTY) }; _]);

/// States of a lock bit. Reading the SCC's register returns the bit and clears it; writing sets it.
const HELD: u32 = 0;
const FREE: u32 = 1;

/// One private image per hart.
struct Images([UnsafeCell<Image>; MAX_HARTS]);

// SAFETY: M3: no cell is ever reached by two harts; `Hart::with_image` is the only way in.
unsafe impl Sync for Images {}

impl Hart {
    /// Calls `act` with this hart's image.
    fn with_image<R>(&self, act: impl FnOnce(&mut Image) -> R) -> R {
        let cell = &IMAGES.0[self.core().index()];
        // SAFETY: the reference is the only one to this image, because (1) the handle of a core exists
        // on that core only: it is made from the number of the hart that makes it, and is not `Send`;
        // (2) no code runs in between on this hart: interrupts are off, and a trap or panic ends the
        // machine without coming here; (3) `act` is not re-entered: the closures in this file call
        // into `PrivateImage` only, which calls `Backing` below, which touches no image.
        act(unsafe { &mut *cell.get() })
    }

    /// The words that hold the `len` bytes at `at`.
    ///
    /// # Panics
    /// If any of them is outside the region.
    #[track_caller]
    #[inline]
    fn words(&self, at: Address, len: usize) -> &'static [AtomicU32] {
        let start = at.offset as usize;
        let words = start / 4..(start + len).div_ceil(4);
        match self.region(at.region).and_then(|region| region.get(words)) {
            Some(words) => words,
            None => panic!("{at}: {len} bytes here are not inside a region"),
        }
    }

    /// The aligned word at `at`.
    #[track_caller]
    #[inline]
    fn word(&self, at: Address) -> &'static AtomicU32 {
        assert!(at.offset.is_multiple_of(4), "{at}: not aligned to 4 bytes");
        &self.words(at, 4)[0]
    }

    #[inline]
    fn region(&self, region: Region) -> Option<&'static [AtomicU32]> {
        let owner = region.owner.index();
        (owner < usize::from(self.cores())).then(|| match region.kind {
            Kind::Memory => &MEMORY[owner][..],
            Kind::MessageBuffer => &BUFFER[owner][..],
        })
    }

    /// Puts what this core owns into the undefined state that it has after a reset: regions full of
    /// bytes that follow from `garbage`, none of them zero, an empty image, its lock held, its bell
    /// silent.
    ///
    /// For runners, between two programs; all harts must be past the first and before the second.
    pub fn reset(&self, garbage: u32) {
        let own = self.core().index();
        // Eight different words over and over: at 512 harts these are ten million stores, most of the
        // time that a small case takes, so nothing else is in the loop.
        let pattern: [u32; 8] =
            core::array::from_fn(|i| garbage.rotate_left(4 * i as u32) | 0x0101_0101);
        for region in [&MEMORY[own][..], &BUFFER[own][..]] {
            for words in region.as_chunks::<8>().0 {
                for (word, value) in words.iter().zip(pattern) {
                    word.store(value, Relaxed);
                }
            }
        }
        self.with_image(Image::clear);
        LOCKS[own].store(HELD, Relaxed);
        self.silence_bell();
    }
}

/// Replaces the bytes of `word` from the `start`th (0 to 3) on; M1.
fn replace_bytes(word: &AtomicU32, start: usize, bytes: &[u8]) {
    let mut old = word.load(Relaxed);
    loop {
        let mut new = old.to_le_bytes();
        new[start..start + bytes.len()].copy_from_slice(bytes);
        match word.compare_exchange_weak(old, u32::from_le_bytes(new), Relaxed, Relaxed) {
            Ok(_) => return,
            Err(found) => old = found,
        }
    }
}

impl UncachedMemory for Hart {
    const PUBLISH: usize = 4;

    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        let word = self.words(at, 1)[0].load(Relaxed);
        word.to_le_bytes()[at.offset as usize % 4]
    }

    #[track_caller]
    fn store_u8(&self, at: Address, value: u8) {
        replace_bytes(&self.words(at, 1)[0], at.offset as usize % 4, &[value]);
    }

    #[track_caller]
    fn load_u32(&self, at: Address) -> u32 {
        self.word(at).load(Relaxed)
    }

    #[track_caller]
    fn store_u32(&self, at: Address, value: u32) {
        self.word(at).store(value, Relaxed);
    }

    #[track_caller]
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        let mut place = at.offset as usize % 4;
        let mut rest = into;
        for word in self.words(at, rest.len()) {
            let bytes = &word.load(Relaxed).to_le_bytes()[place..];
            let (here, behind) = rest.split_at_mut(bytes.len().min(rest.len()));
            here.copy_from_slice(&bytes[..here.len()]);
            (place, rest) = (0, behind);
        }
    }

    #[track_caller]
    fn store_bytes(&self, at: Address, from: &[u8]) {
        let words = self.words(at, from.len());
        let start = at.offset as usize % 4;
        // Up to the first word boundary; all of it, if there is none.
        let (head, rest) = from.split_at(from.len().min((4 - start) % 4));
        let (body, tail) = rest.as_chunks::<4>();
        let mut words = words.iter();
        if let (false, Some(word)) = (head.is_empty(), words.as_slice().first()) {
            replace_bytes(word, start, head);
            words.next();
        }
        // In this order: `zip` asks its first iterator first, and would take one word too many.
        for (bytes, word) in body.iter().zip(words.by_ref()) {
            word.store(u32::from_le_bytes(*bytes), Relaxed);
        }
        if let (false, Some(word)) = (tail.is_empty(), words.next()) {
            replace_bytes(word, 0, tail);
        }
    }
}

impl Backing<LINE> for Hart {
    fn fetch(&self, line: Address, into: &mut [u8; LINE]) {
        let (chunks, _) = into.as_chunks_mut::<4>();
        for (word, bytes) in self.words(line, LINE).iter().zip(chunks) {
            *bytes = word.load(Relaxed).to_le_bytes();
        }
    }

    fn put(&self, line: Address, from: &[u8; LINE]) {
        let (chunks, _) = from.as_chunks::<4>();
        for (word, bytes) in self.words(line, LINE).iter().zip(chunks) {
            word.store(u32::from_le_bytes(*bytes), Relaxed);
        }
    }
}

impl CachedMemory for Hart {
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        self.words(at, into.len()); // C3, named as the caller gave it
        self.with_image(|image| image.read(self, at, into));
    }

    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        self.words(at, from.len()); // C3
        self.with_image(|image| image.write(self, at, from));
    }
}

// SAFETY: S1: `write_back` stores the lines' words before it returns. S2: `invalidate` empties their
// slots, so that the next cached load fetches anew; S6: and no others. S3, S4, S5, S7: all memory is
// reached through relaxed atomics (M1), and a sequentially consistent fence, `fence rw, rw` here, orders
// those for the compiler and for other harts; the images themselves are this hart's own.
unsafe impl Coherence for Hart {
    const LINE: usize = LINE;

    // The stricter of the two kinds of chip: callers that hold dirty bytes there lose them.
    const INVALIDATE_WRITES_BACK: bool = false;

    fn write_back(&self, spans: &[Lines]) {
        self.with_image(|image| spans.iter().for_each(|span| image.write_back(self, *span)));
    }

    fn invalidate(&self, spans: &[Lines]) {
        self.with_image(|image| spans.iter().for_each(|span| image.invalidate(*span)));
    }

    fn drain(&self) {
        fence(SeqCst);
    }

    fn acquire(&self) {
        fence(SeqCst);
    }
}

impl TestAndSet for Hart {
    #[track_caller]
    fn test_and_set(&self, of: CoreId) -> bool {
        assert!(of.get() < self.cores(), "{of}: no such core");
        // ORDERING: Relaxed: the register orders nothing (T4).
        LOCKS[of.index()].swap(HELD, Relaxed) == FREE
    }

    #[track_caller]
    fn clear(&self, of: CoreId) {
        assert!(of.get() < self.cores(), "{of}: no such core");
        LOCKS[of.index()].store(FREE, Relaxed); // ORDERING: T4
    }
}

impl MessageBuffer for Hart {
    fn message_buffer_size(&self) -> u32 {
        BUFFER_SIZE
    }
}

impl NativeAtomics for Hart {
    #[track_caller]
    fn atomic_u32(&self, at: Address, operation: Atomic) -> u32 {
        let word = self.word(at);
        // ORDERING: Relaxed: "orders nothing else" (M2).
        match operation {
            Atomic::Add(value) => word.fetch_add(value, Relaxed),
            Atomic::Or(bits) => word.fetch_or(bits, Relaxed),
            Atomic::Swap(value) => word.swap(value, Relaxed),
            Atomic::CompareSwap { old, new } => word
                .compare_exchange(old, new, Relaxed, Relaxed)
                .unwrap_or_else(|found| found),
        }
    }
}
