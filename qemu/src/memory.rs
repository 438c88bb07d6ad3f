//! The memory of the machine: regions, and what is private to each hart.
//!
//! # Layout
//! ```text
//!   .memory [ core 0: 64 KiB ][ core 1 ] …      words; every hart reaches all of them
//!   BUFFER  [ core 0:  8 KiB ][ core 1 ] …      the same, in .bss
//!   PRIVATE [ core 0: image of 256 lines of 32 bytes, combining buffer ] … for its own hart only
//! ```
//! The linker script sets `.memory` aside: an image has as much as `_flagpost_memory_size` says.
//! QEMU takes host memory for what is touched only, so the room for 512 harts costs a small run
//! nothing.
//!
//! # Invariants
//! * M1. Words of regions are touched as `AtomicU32` only, always as whole words. Nothing is a data
//!   race then, and no access is merged, split or dropped (U6). A store of one byte replaces it in
//!   its word by compare-and-swap, so that a neighbour's byte keeps its value (U4).
//! * M2. All these accesses are relaxed: order comes from `Processor::order` alone, where the port
//!   asks for it.
//! * M3. What is private is touched only by the hart whose number it bears, never from a trap.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flagpost_hal::image::{Backing, PrivateImage};
use flagpost_hal::{Address, CoreId, Kind, Lines, Region};
use flagpost_scc::map::BUFFER as BUFFER_SIZE;
use flagpost_scc::{Scc, State};

use crate::board::MAX_HARTS;
use crate::boot;
use crate::hart::Hart;
use crate::registers;
use crate::silence::Silence;

/// Bytes per line of the private images, as on the SCC.
pub const LINE: usize = flagpost_scc::LINE as usize;

/// Lines per private image: small enough that the cases see evictions.
const LINES: usize = 256;

type Image = PrivateImage<LINES, LINE>;
type Words<const BYTES: usize> = [[AtomicU32; BYTES]; MAX_HARTS];

static BUFFER: Words<{ BUFFER_SIZE as usize / 4 }> =
    [const { [const { AtomicU32::new(0) }; _] }; _];
static PRIVATE: Cells = Cells(
    [const {
        Private {
            caches: UnsafeCell::new(Caches::EMPTY),
            state: State::new(),
            silence: Silence::new(),
        }
    }; _],
);

/// What no other hart reaches.
struct Private {
    caches: UnsafeCell<Caches>,
    state: State,
    silence: Silence,
}

struct Cells([Private; MAX_HARTS]);

// SAFETY: M3: nothing in here is ever reached by two harts; `Hart::with_caches`,
// `Hart::port_state` and `Hart::silence` are the only ways in.
unsafe impl Sync for Cells {}

/// Image and write-combining buffer of a hart. All zeros when empty, so that it lives in `.bss`.
struct Caches {
    image: Image,
    /// The line that is in the combining buffer,
    line: Address,
    /// and which of its bytes; the buffer is empty if none.
    mask: u32,
    bytes: [u8; LINE],
}

impl Caches {
    const EMPTY: Self = Self {
        image: Image::EMPTY,
        line: Region::memory(CoreId::new(0)).at(0),
        mask: 0,
        bytes: [0; LINE],
    };

    /// Puts bytes of one line into the combining buffer, after what is there of another has left.
    fn combine(&mut self, hart: &Hart, at: Address, from: &[u8]) {
        let start = at.offset % LINE;
        let line = at.region.at(at.offset - start);
        if self.line != line {
            self.let_go(hart);
            self.line = line;
        }
        self.bytes[start..start + from.len()].copy_from_slice(from);
        self.mask |= u32::MAX >> (LINE - from.len()) << start;
        if self.mask == u32::MAX {
            self.let_go(hart);
        }
    }

    /// Empties the combining buffer. Bytes that are not in it are not touched.
    fn let_go(&mut self, hart: &Hart) {
        let mask = core::mem::take(&mut self.mask);
        if mask == 0 {
            return;
        }
        let (words, _) = self.bytes.as_chunks::<4>();
        for (index, (word, bytes)) in hart.words(self.line, LINE).iter().zip(words).enumerate() {
            match mask >> (index * 4) & 0xF {
                0 => {}
                0xF => word.store(u32::from_le_bytes(*bytes), Relaxed),
                some => {
                    for (place, byte) in bytes.iter().enumerate() {
                        if some >> place & 1 == 1 {
                            replace_byte(word, place, *byte);
                        }
                    }
                }
            }
        }
    }
}

/// Replaces byte `place` (0 to 3) of `word`; M1.
fn replace_byte(word: &AtomicU32, place: usize, byte: u8) {
    let replaced = |old: u32| {
        let mut bytes = old.to_le_bytes();
        bytes[place] = byte;
        Some(u32::from_le_bytes(bytes))
    };
    // The closure never refuses.
    let _ = word.fetch_update(Relaxed, Relaxed, replaced);
}

impl Hart {
    /// Calls `act` with this hart's caches.
    fn with_caches<R>(&self, act: impl FnOnce(&mut Caches) -> R) -> R {
        let cell = &PRIVATE.0[self.core().index()].caches;
        // SAFETY: the reference is the only one to these caches, because (1) the handle of a core
        // exists on that core only: it is made from the number of the hart that makes it, and is
        // not `Send`; (2) no code runs in between on this hart: interrupts are off, and a trap or
        // panic ends the machine without coming here; (3) `act` is not re-entered: the closures in
        // this file call into `PrivateImage` and `Caches` only, which call `Backing` and `words`
        // below, which touch none.
        act(unsafe { &mut *cell.get() })
    }

    /// What the port remembers of this core.
    pub(crate) fn port_state(&self) -> &State {
        &PRIVATE.0[self.core().index()].state
    }

    /// What is known of this core's last call.
    pub(crate) fn silence(&self) -> &Silence {
        &PRIVATE.0[self.core().index()].silence
    }

    /// Empties the combining buffer, as [`Coherence::drain`](flagpost_hal::Coherence::drain) does.
    pub(crate) fn empty(&self) {
        self.with_caches(|caches| caches.let_go(self));
    }

    /// The words that hold the `len` bytes at `at`.
    ///
    /// # Panics
    /// If any of them is outside the core's memory. The port has looked before.
    #[track_caller]
    #[inline]
    fn words(&self, at: Address, len: usize) -> &'static [AtomicU32] {
        let start = at.offset;
        let words = start / 4..(start + len).div_ceil(4);
        let owner = at.region.owner.index();
        let region = match at.region.kind {
            Kind::Memory => boot::memory(owner),
            Kind::MessageBuffer => BUFFER.get(owner).map(|words| &words[..]),
        };
        match region.and_then(|region| region.get(words)) {
            Some(words) => words,
            None => panic!("{at}: {len} bytes here are not in memory"),
        }
    }

    /// The aligned word at `at`.
    #[track_caller]
    #[inline]
    pub(crate) fn word(&self, at: Address) -> &'static AtomicU32 {
        &self.words(at, 4)[0]
    }

    pub(crate) fn store_byte(&self, at: Address, value: u8) {
        replace_byte(&self.words(at, 1)[0], at.offset % 4, value);
    }

    /// Loads past the image, words where the address allows.
    pub(crate) fn load_words(&self, at: Address, into: &mut [u8]) {
        let mut place = at.offset % 4;
        let mut rest = into;
        for word in self.words(at, rest.len()) {
            let bytes = &word.load(Relaxed).to_le_bytes()[place..];
            let (here, behind) = rest.split_at_mut(bytes.len().min(rest.len()));
            here.copy_from_slice(&bytes[..here.len()]);
            (place, rest) = (0, behind);
        }
    }

    /// Loads through the image: message data, or normal.
    pub(crate) fn read(&self, at: Address, into: &mut [u8], message: bool) {
        self.with_caches(|caches| match message {
            true => caches.image.read_message(self, at, into),
            false => caches.image.read(self, at, into),
        });
    }

    /// Stores to the image only.
    pub(crate) fn write(&self, at: Address, from: &[u8]) {
        self.with_caches(|caches| caches.image.write(self, at, from));
    }

    /// Stores message data: past the image, by the combining buffer. Lines that the image holds are
    /// changed there too; or *only* there, if it is not `through`.
    pub(crate) fn write_message(&self, at: Address, from: &[u8], through: bool) {
        self.with_caches(|caches| {
            let (mut at, mut rest) = (at, from);
            while !rest.is_empty() {
                let room = LINE - at.offset % LINE;
                let (part, behind) = rest.split_at(room.min(rest.len()));
                let stays = !through && caches.image.holds(at);
                if stays {
                    caches.image.write(self, at, part);
                } else {
                    caches.image.update(at, part);
                    caches.combine(self, at, part);
                }
                (at, rest) = (at.plus(part.len()), behind);
            }
        });
    }

    /// Drops all message data from the image, unsaved stores too.
    pub(crate) fn drop_messages(&self) {
        self.with_caches(|caches| caches.image.invalidate_messages());
    }

    /// Writes these lines back, and keeps them.
    pub(crate) fn write_back_lines(&self, at: Address, len: u32) {
        let lines = Lines::covering::<Scc<Self>>(at, len as usize);
        self.with_caches(|caches| caches.image.write_back(self, lines));
    }

    /// Drops these lines, unsaved stores too.
    pub(crate) fn drop_lines(&self, at: Address, len: u32) {
        let lines = Lines::covering::<Scc<Self>>(at, len as usize);
        self.with_caches(|caches| caches.image.invalidate(lines));
    }

    /// Puts what this core owns into the undefined state that it has after a reset: memory full of
    /// bytes that follow from `garbage`, none of them zero, empty caches, its lock held, its bell
    /// rung.
    ///
    /// For runners, between two programs; all harts must be past the first and before the second.
    pub fn reset(&self, garbage: u32) {
        let own = self.core().index();
        // Eight different words over and over: at 512 harts these are ten million stores, most of
        // the time that a small case takes, so nothing else is in the loop.
        let pattern: [u32; 8] =
            core::array::from_fn(|i| garbage.rotate_left(4 * i as u32) | 0x0101_0101);
        let memory = boot::memory(own).unwrap_or(&[]);
        for region in [memory, &BUFFER[own][..]] {
            for words in region.as_chunks::<8>().0 {
                for (word, value) in words.iter().zip(pattern) {
                    word.store(value, Relaxed);
                }
            }
        }
        self.with_caches(|caches| {
            caches.image.clear();
            caches.mask = 0;
        });
        self.port_state().reset();
        registers::reset(self.core(), garbage);
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
