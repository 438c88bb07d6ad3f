//! A chip without coherence, in software: each rank has a private cache and a write-combining
//! buffer.
//!
//! On a coherent host a forgotten write-back, invalidate or drain goes unnoticed. Here it does not:
//! cached accesses go to the rank's own image ([`flagpost_hal::image`]), bulk stores stay in a
//! buffer of one line until it is full, another line is stored to, or the rank drains. Words and
//! test-and-set registers stand for the chip's own, and are the host's atomics.
//!
//! # Three oracles
//! A write-back moves a whole line, over what other ranks, or this one by puts, have stored there
//! since the line was fetched. On a chip these bytes are lost without a sign. Here each line is
//! compared with memory before it is written back, and the rank that would destroy others' bytes
//! panics: the message says which line, and which lines of the program stored to it and called
//! last.
//!
//! What an owner has stored and not written back is in its cache, and a rank that loads the bytes
//! past all caches finds old ones. That rank panics, too: the message says which lines of the
//! program stored and loaded them. Each rank notes in the job's memory which of its bytes are so
//! (`hidden`).
//!
//! A rank that reads bytes before its wait for them ([`Early`]) panics when it has waited, if they
//! are others then: the message says which lines of the program read, and started the request.
//!
//! `FLAGPOST_ORACLE=off` in the environment, or [`Mode::set_oracle`], turns all off: for programs
//! that destroy bytes, or read old ones, on purpose.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use flagpost_hal::image::{Backing, PrivateImage};
use flagpost_hal::{
    Address, CachedMemory, Coherence, CoreId, Early, Expected, Lines, Region, TestAndSet,
    UncachedMemory, is_library,
};

use crate::bytes::Regions;
use crate::hidden::{LINE, LINES};
use crate::machine::sealed::Sealed;
use crate::machine::{Linux, Mode};

/// What turns the oracle off in the environment: `off`.
const ORACLE: &str = "FLAGPOST_ORACLE";

/// The mode that shows what is forgotten: a private image per rank.
pub struct Emulated {
    caches: RefCell<Caches>,
    /// Where the program has called the kernel last.
    called: Cell<Option<Place>>,
    /// A second writer of a line panics, and a rank that loads what an owner has not written back.
    oracle: Cell<bool>,
    /// The program's requests, and its reads of their bytes.
    early: RefCell<Early>,
}

type Place = &'static Location<'static>;

/// What memory had of a line when the image last agreed with it; and where the program has stored
/// to the line since.
struct Fetched {
    bytes: [u8; LINE],
    stored: Option<Place>,
}

type Image = PrivateImage<LINES, LINE>;

struct Caches {
    fetched: RefCell<HashMap<Address, Fetched>>,
    image: Box<Image>,
    /// The line in the combining buffer, and which of its bytes: none, if it is empty.
    line: Address,
    mask: u64,
    bytes: [u8; LINE],
}

impl std::fmt::Debug for Emulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Emulated")
    }
}

impl Sealed for Emulated {}

impl Mode for Emulated {
    const NAME: &'static str = "emulated";
    const LISTENS: bool = true;

    fn new() -> Self {
        Self {
            caches: RefCell::new(Caches {
                fetched: RefCell::default(),
                image: Box::new(PrivateImage::EMPTY),
                line: Region::memory(CoreId::new(0)).at(0),
                mask: 0,
                bytes: [0; LINE],
            }),
            called: Cell::new(None),
            early: RefCell::default(),
            oracle: Cell::new(std::env::var_os(ORACLE).is_none_or(|word| word != "off")),
        }
    }

    fn called(&self, place: Place) {
        self.early.borrow_mut().tells();
        self.looks(place);
    }

    fn looks(&self, place: Place) {
        if !is_library(place) {
            self.called.set(Some(place));
        }
    }

    fn expected(&self, at: Address, len: usize, what: Expected<'_>) {
        let called = self.called.get();
        let found = self.early.borrow_mut().note((at, len), what, called, 0);
        let changed = found.into_iter().find(|read| read.changed);
        let Some(read) = changed.filter(|_| self.tells()) else {
            return;
        };
        panic!(
            "read before the wait: this rank has read {} bytes from {} after it had started a request for them, and \
             before that was complete; peers have put others there; read by {}, started by {}",
            read.len,
            read.at,
            name_of(read.place),
            name_of(read.started),
        );
    }

    fn set_oracle(&self, on: bool) {
        self.oracle.set(on);
    }
}

impl Emulated {
    /// Whether an oracle says what it has found. While a rank panics, the reason has been said.
    fn tells(&self) -> bool {
        self.oracle.get() && !std::thread::panicking()
    }
}

/// Memory behind the images.
struct Memory<'s> {
    regions: &'s Regions,
    fetched: &'s RefCell<HashMap<Address, Fetched>>,
    called: Option<Place>,
    /// [`Emulated::tells`].
    tells: bool,
}

impl Backing<LINE> for Memory<'_> {
    fn fetch(&self, line: Address, into: &mut [u8; LINE]) {
        self.regions.bytes(line, LINE).load(into);
        self.agree(line, into);
    }

    fn put(&self, line: Address, from: &[u8; LINE]) {
        self.check(line);
        self.regions.bytes(line, LINE).store(from);
        self.agree(line, from);
        self.regions.unhide(line.region, line.offset, LINE);
    }
}

impl Memory<'_> {
    /// The image and memory have the same bytes of `line`.
    fn agree(&self, line: Address, bytes: &[u8; LINE]) {
        let (bytes, stored) = (*bytes, None);
        let agreed = Fetched { bytes, stored };
        self.fetched.borrow_mut().insert(line, agreed);
    }

    /// The program stores to the `len` bytes at `at` of the image.
    fn stores(&self, at: Address, len: usize) {
        let mut fetched = self.fetched.borrow_mut();
        let own = self.regions.owns(at.region);
        for (line, bytes) in lines_of(at.offset, len) {
            if let Some(line) = fetched.get_mut(&at.region.at(line * LINE)) {
                line.stored = self.called;
            }
            // No link lets a rank cache what is another's.
            if own {
                let (segment, rank) = (self.regions.segment(), at.region.owner.get());
                segment.hide(rank, line, bytes, self.called);
            }
        }
    }

    /// # Panics
    /// If others have stored to the line since the image fetched it, or put it back.
    fn check(&self, line: Address) {
        if !self.tells {
            return;
        }
        let mut now = [0; LINE];
        self.regions.bytes(line, LINE).load(&mut now);
        let fetched = self.fetched.borrow();
        let Some(Fetched { bytes, stored }) = fetched.get(&line) else {
            return;
        };
        let pairs = bytes.iter().zip(&now);
        let lost = pairs.filter(|(old, new)| old != new).count();
        assert!(
            lost == 0,
            "two writers of a line: this rank has stored to the line at {line} and writes it back, over {lost} \
             bytes that others, or it itself past its cache, have stored there; stored by {}, written back by {}",
            name_of(*stored),
            name_of(self.called),
        );
    }
}

/// The lines of `len` bytes from `offset` on, by number, and which of their bytes these are, a bit
/// each.
fn lines_of(offset: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = offset + len;
    let lines = if len == 0 {
        0..0
    } else {
        offset / LINE..end.div_ceil(LINE)
    };
    lines.map(move |line| {
        let start = line * LINE;
        let (from, to) = (offset.max(start) - start, end.min(start + LINE) - start);
        (line, u64::MAX >> (LINE - (to - from)) << from)
    })
}

/// A line of the program, for people.
fn name_of(place: Option<Place>) -> String {
    place.map_or("?".to_owned(), |at| format!("{}:{}", at.file(), at.line()))
}

impl Caches {
    /// Puts bytes into the combining buffer, line by line.
    fn combine(&mut self, memory: &Regions, at: Address, from: &[u8]) {
        let (mut at, mut rest) = (at, from);
        while !rest.is_empty() {
            let start = at.offset % LINE;
            let (part, behind) = rest.split_at(rest.len().min(LINE - start));
            let line = at.region.at(at.offset - start);
            if self.line != line {
                self.let_go(memory);
                self.line = line;
            }
            self.bytes[start..start + part.len()].copy_from_slice(part);
            self.mask |= u64::MAX >> (LINE - part.len()) << start;
            if self.mask == u64::MAX {
                self.let_go(memory);
            }
            (at, rest) = (at.plus(part.len()), behind);
        }
    }

    /// Empties the combining buffer. Bytes that are not in it are not touched.
    fn let_go(&mut self, memory: &Regions) {
        let mut mask = std::mem::take(&mut self.mask);
        while mask != 0 {
            let start = mask.trailing_zeros();
            let len = (mask >> start).trailing_ones();
            let part = &self.bytes[start as usize..(start + len) as usize];
            memory
                .bytes(self.line.plus(start as usize), part.len())
                .store(part);
            mask &= !(u64::MAX >> (LINE as u32 - len) << start);
        }
    }

    /// Own accesses to the same bytes stay in order (U5).
    fn let_go_of(&mut self, memory: &Regions, at: Address, len: usize) {
        let line = self.line.offset;
        let (start, end) = (at.offset, at.offset.saturating_add(len));
        if self.mask != 0 && self.line.region == at.region && start < line + LINE && line < end {
            self.let_go(memory);
        }
    }
}

impl Linux<Emulated> {
    fn with_caches<R>(&self, act: impl FnOnce(&mut Caches, &Regions) -> R) -> R {
        act(&mut self.mode().caches.borrow_mut(), self.regions())
    }

    fn with_image<R>(&self, act: impl FnOnce(&mut Image, &Memory<'_>) -> R) -> R {
        let (called, tells) = (self.mode().called.get(), self.mode().tells());
        self.with_caches(|caches, regions| {
            let fetched = &caches.fetched;
            let memory = Memory {
                regions,
                fetched,
                called,
                tells,
            };
            act(&mut caches.image, &memory)
        })
    }

    /// Empties image and buffer without writing anything back: the state after a reset.
    pub fn reset(&self) {
        self.with_caches(|caches, regions| {
            caches.image.clear();
            caches.mask = 0;
            let own = Region::memory(CoreId::new(self.rank));
            regions.unhide(own, 0, regions.memory());
        });
    }

    /// This rank is about to load past the caches.
    ///
    /// # Panics
    /// If the owner has stored to some of the bytes and not written them back.
    fn check_hidden(&self, at: Address, len: usize) {
        let (mode, segment) = (self.mode(), self.segment());
        let owner = at.region.owner.get();
        let hidden = |(line, bytes)| segment.hidden(owner, line) & bytes;
        let Some((line, bytes)) = lines_of(at.offset, len).find(|&part| hidden(part) != 0) else {
            return;
        };
        if !mode.tells() {
            return;
        }
        let bytes = hidden((line, bytes));
        panic!(
            "old bytes: this rank loads {} bytes from {} past the caches that rank {owner} has stored, and neither \
             an epoch, a fence, a lock nor a sync of it has published; stored by {}, loaded by {}",
            bytes.count_ones(),
            at.region.at(line * LINE + bytes.trailing_zeros() as usize),
            segment.hidden_by(owner, line),
            name_of(mode.called.get()),
        );
    }
}

impl UncachedMemory for Linux<Emulated> {
    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        let byte = self.regions().byte(at);
        self.with_caches(|caches, memory| caches.let_go_of(memory, at, 1));
        self.check_hidden(at, 1);
        byte.load(Relaxed)
    }

    #[track_caller]
    fn store_u8(&self, at: Address, value: u8) {
        let byte = self.regions().byte(at);
        self.with_caches(|caches, memory| caches.let_go_of(memory, at, 1));
        byte.store(value, Relaxed);
    }

    #[track_caller]
    fn load_u32(&self, at: Address) -> u32 {
        let word = self.regions().word(at);
        self.with_caches(|caches, memory| caches.let_go_of(memory, at, 4));
        self.check_hidden(at, 4);
        word.load(Relaxed)
    }

    #[track_caller]
    fn store_u32(&self, at: Address, value: u32) {
        let word = self.regions().word(at);
        self.with_caches(|caches, memory| caches.let_go_of(memory, at, 4));
        word.store(value, Relaxed);
    }

    #[track_caller]
    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.regions().bytes(at, from.len());
        self.with_caches(|caches, memory| caches.combine(memory, at, from));
    }

    #[track_caller]
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        let bytes = self.regions().bytes(at, into.len());
        self.with_caches(|caches, memory| caches.let_go_of(memory, at, bytes.len()));
        self.check_hidden(at, bytes.len());
        bytes.load(into);
    }

    #[track_caller]
    fn zero(&self, at: Address, len: usize) -> bool {
        let cleared = self.give_back(at, len);
        if cleared {
            self.invalidate(&[Lines::covering::<Self>(at, len)]);
        }
        cleared
    }
}

impl CachedMemory for Linux<Emulated> {
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        self.regions().bytes(at, into.len());
        self.with_image(|image, memory| image.read(memory, at, into));
    }

    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        self.regions().bytes(at, from.len());
        self.with_image(|image, memory| {
            image.write(memory, at, from);
            memory.stores(at, from.len());
        });
    }
}

// SAFETY: S1, S2, S6: the image does what it is told to the lines that are named, and writes back
// what it evicts. S3: the buffer is emptied, and the fence orders what came before ahead of later
// stores. S4: an acquire fence. S5: fences and atomics. S7: `settle` empties the buffer, and its
// fence the processor's.
unsafe impl Coherence for Linux<Emulated> {
    const LINE: usize = LINE;

    fn write_back(&self, spans: &[Lines]) {
        self.with_image(|image, memory| {
            spans
                .iter()
                .for_each(|span| image.write_back(memory, *span));
        });
    }

    fn invalidate(&self, spans: &[Lines]) {
        self.with_caches(|caches, regions| {
            for span in spans {
                caches.image.invalidate(*span);
                regions.unhide(span.region(), span.start(), span.end() - span.start());
            }
        });
    }

    fn drain(&self) {
        self.with_caches(Caches::let_go);
        fence(Release);
    }

    fn acquire(&self) {
        fence(Acquire);
    }

    fn settle(&self) {
        self.drain();
        fence(SeqCst);
    }
}

impl TestAndSet for Linux<Emulated> {
    /// The register has 1 + the rank that holds it. A rank that is lost holds none.
    fn test_and_set(&self, of: CoreId) -> bool {
        let (segment, mine) = (self.segment(), u32::from(self.rank) + 1);
        let take = |old| {
            let register = segment.lock_of(of.get());
            register.compare_exchange(old, mine, Relaxed, Relaxed)
        };
        let is_lost = |rank| u16::try_from(rank).is_ok_and(|rank| segment.is_lost(rank));
        match take(0) {
            Err(holder) if is_lost(holder - 1) => take(holder).is_ok(),
            taken => taken.is_ok(),
        }
    }

    /// Another rank may hold it by now, if this one was taken for lost.
    fn clear(&self, of: CoreId) {
        let mine = u32::from(self.rank) + 1;
        let register = self.segment().lock_of(of.get());
        let _ = register.compare_exchange(mine, 0, Relaxed, Relaxed);
    }

    fn release_at_start(&self, own: CoreId) {
        self.segment().lock_of(own.get()).store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests;
