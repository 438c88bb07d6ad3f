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
        // While a rank panics, the reason has been said.
        let changed = found.into_iter().find(|read| read.changed);
        let Some(read) = changed.filter(|_| self.oracle.get() && !std::thread::panicking()) else {
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

/// Memory behind the images.
struct Memory<'s> {
    regions: &'s Regions,
    fetched: &'s RefCell<HashMap<Address, Fetched>>,
    called: Option<Place>,
    oracle: bool,
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
        // While a rank panics, the reason has been said.
        if !self.oracle || std::thread::panicking() {
            return;
        }
        let mut now = [0; LINE];
        self.regions.bytes(line, LINE).load(&mut now);
        let fetched = self.fetched.borrow();
        let Some(Fetched { bytes, stored }) = fetched.get(&line) else {
            return;
        };
        let lost = bytes
            .iter()
            .zip(&now)
            .filter(|(old, new)| old != new)
            .count();
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
        let (called, oracle) = (self.mode().called.get(), self.mode().oracle.get());
        self.with_caches(|caches, regions| {
            let fetched = &caches.fetched;
            let memory = Memory {
                regions,
                fetched,
                called,
                oracle,
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
        // While a rank panics, the reason has been said.
        if !mode.oracle.get() || std::thread::panicking() {
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
mod tests {
    use flagpost_hal::Topology;

    use super::*;
    use crate::part::on_ranks;

    /// Rank 0 does something to its first bytes; what rank 1 then finds there, past the caches.
    fn found(act: impl Fn(&Linux<Emulated>, Address) + Sync) -> u32 {
        let found = on_ranks(2, |machine: Linux<Emulated>| {
            let at = Region::memory(CoreId::new(0)).at(64);
            let is_first = flagpost_hal::Topology::core(&machine) == CoreId::new(0);
            if is_first {
                act(&machine, at);
            }
            assert!(machine.meet());
            // Rank 0 does not look: it would let go of what it has stored there.
            machine.mode().set_oracle(false); // it may be old
            let found = if is_first { 0 } else { machine.load_u32(at) };
            // Nothing is put back before rank 1 has looked.
            assert!(machine.meet());
            found
        });
        found[1]
    }

    #[test]
    fn a_register_is_free_once_its_holder_is_lost() {
        on_ranks(3, |machine: Linux<Emulated>| {
            let (me, of) = (machine.rank, CoreId::new(2));
            assert!(me != 0 || machine.test_and_set(of));
            assert!(machine.meet());
            assert!(me == 0 || !machine.test_and_set(of));
            assert!(machine.meet());
            if me == 1 {
                machine.segment().mark_lost(0);
                assert!(machine.test_and_set(of));
                assert!(!machine.test_and_set(of));
            }
            while me == 0 && machine.segment().lock_of(2).load(Relaxed) != 2 {
                std::thread::yield_now();
            }
            if me == 0 {
                machine.clear(of); // it is the other rank's
                assert_eq!(machine.segment().lock_of(2).load(Relaxed), 2);
            }
        });
    }

    #[test]
    fn what_is_not_written_back_does_not_arrive() {
        let write = |machine: &Linux<Emulated>, at| machine.write(at, &[7, 0, 0, 0]);
        assert_eq!(found(write), 0);
        let remedy = |machine: &Linux<Emulated>, at| {
            write(machine, at);
            machine.write_back(&[Lines::covering::<Linux<Emulated>>(at, 4)]);
        };
        assert_eq!(found(remedy), 7);
    }

    #[test]
    fn what_is_not_drained_does_not_arrive() {
        let store = |machine: &Linux<Emulated>, at| machine.store_bytes(at, &[7, 0, 0, 0]);
        assert_eq!(found(store), 0);
        let remedy = |machine: &Linux<Emulated>, at| {
            store(machine, at);
            machine.drain();
        };
        assert_eq!(found(remedy), 7);
        let other_line = |machine: &Linux<Emulated>, at: Address| {
            store(machine, at);
            machine.store_bytes(at.plus(64), &[1]);
        };
        assert_eq!(found(other_line), 7);
    }

    #[test]
    fn what_is_not_invalidated_is_old() {
        let old = found(|machine, at| {
            let mut bytes = [0; 4];
            machine.read(at, &mut bytes);
            machine.store_u32(at, 7);
            machine.read(at, &mut bytes);
            machine.store_u32(at, u32::from_le_bytes(bytes));
        });
        assert_eq!(old, 0);
        let new = found(|machine, at| {
            let mut bytes = [0; 4];
            machine.read(at, &mut bytes);
            machine.store_u32(at, 7);
            machine.invalidate(&[Lines::covering::<Linux<Emulated>>(at, 4)]);
            machine.read(at, &mut bytes);
            machine.store_u32(at, u32::from_le_bytes(bytes));
        });
        assert_eq!(new, 7);
    }

    #[test]
    fn own_bulk_stores_are_seen_in_order() {
        let seen = found(|machine, at| {
            machine.store_bytes(at.plus(1), &[1, 2, 3]);
            assert_eq!(machine.load_u8(at.plus(2)), 2);
            machine.store_bytes(at, &[4]);
            machine.store_u8(at, 5);
            assert_eq!(machine.load_u32(at), u32::from_le_bytes([5, 1, 2, 3]));
        });
        assert_eq!(seen, u32::from_le_bytes([5, 1, 2, 3]));
    }

    type Act<'a> = &'a (dyn Fn(&Linux<Emulated>, Address) + Sync);

    /// Two ranks act by turns, at rank 0's line. What the one that acts last panics with.
    fn told(before: [(u16, Act<'_>); 2], (last, act): (u16, Act<'_>)) -> Option<String> {
        let said = std::sync::Mutex::new(None);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            on_ranks(2, |machine: Linux<Emulated>| {
                let at = Region::memory(CoreId::new(0)).at(64);
                for (rank, act) in before {
                    if rank == machine.rank {
                        act(&machine, at);
                    }
                    assert!(machine.meet());
                }
                if machine.rank == last {
                    let act = std::panic::AssertUnwindSafe(|| act(&machine, at));
                    let why = std::panic::catch_unwind(act).err();
                    let why = why.and_then(|why| why.downcast::<String>().ok());
                    *said.lock().unwrap() = why.map(|why| *why);
                }
            })
        }));
        ended.expect("nobody else panics");
        said.into_inner().unwrap()
    }

    /// What the rank that stores through its cache says when it is the second writer of a line.
    fn second_writer(act: impl Fn(&Linux<Emulated>, Address) + Sync) -> Option<String> {
        let read: Act<'_> = &|machine, at| machine.read(at, &mut [0; 8]);
        let store: Act<'_> = &|machine, at| machine.store_u32(at.plus(4), 7);
        told([(0, read), (1, store)], (0, &act))
    }

    #[test]
    fn a_load_of_what_its_owner_has_not_written_back_is_told() {
        let here = Location::caller();
        let write: Act<'_> = &|machine, at| {
            machine.mode().called.set(Some(here));
            machine.write(at.plus(62), &[1; 3]);
        };
        let nothing: Act<'_> = &|_, _| {};
        let drop: Act<'_> = &|machine, at| {
            machine.invalidate(&[Lines::covering::<Linux<Emulated>>(at, 65)]);
        };
        let put: Act<'_> = &|machine, at| {
            machine.write_back(&[Lines::covering::<Linux<Emulated>>(at, 65)]);
        };
        let evict: Act<'_> = &|machine, at| machine.read(at.plus(LINES * LINE), &mut [0; 128]);
        let beside: Act<'_> = &|machine, at| assert_eq!(machine.load_u32(at.plus(56)), 0);
        let loads: [(&str, u16, Act<'_>); 4] = [
            ("2 bytes from memory[0]+0x7e", 1, &|machine, at| {
                machine.load_bytes(at, &mut [0; 80]);
            }),
            ("1 bytes from memory[0]+0x80", 1, &|machine, at| {
                machine.load_u32(at.plus(64));
            }),
            ("1 bytes from memory[0]+0x7f", 1, &|machine, at| {
                machine.load_u8(at.plus(63));
            }),
            ("2 bytes from memory[0]+0x7e", 0, &|machine, at| {
                machine.load_u32(at.plus(60));
            }),
        ];
        for (what, rank, load) in loads {
            let why = told([(0, write), (1, beside)], (rank, load)).expect("it is old");
            let stored = format!("stored by {}:{},", here.file(), here.line());
            assert!(why.contains(what) && why.contains(&stored), "{why}");
            for remedy in [drop, put, evict] {
                assert_eq!(told([(0, write), (0, remedy)], (rank, load)), None);
            }
            let meant: Act<'_> = &|machine, at| {
                machine.mode().set_oracle(false);
                load(machine, at);
            };
            assert_eq!(told([(0, write), (0, nothing)], (rank, meant)), None);
        }
    }

    #[test]
    fn a_read_before_the_wait_is_told() {
        let here = Location::caller();
        let reads: Act<'_> = &|machine, at| {
            machine.mode().called.set(Some(here));
            machine.expected(at, 64, Expected::Starts);
            let mut bytes = [0; 4];
            machine.read(at.plus(4), &mut bytes);
            machine.expected(at.plus(4), 4, Expected::Reads(&bytes));
            machine.invalidate(&[Lines::covering::<Linux<Emulated>>(at, 4)]);
        };
        let ends: Act<'_> = &|machine, at| {
            let now = |distance, into: &mut [u8]| machine.read(at.plus(distance), into);
            machine.expected(at, 64, Expected::Ends(Some(&now)));
        };
        let put = |beside| {
            move |machine: &Linux<Emulated>, at: Address| {
                machine.store_u32(at.plus(beside), 7);
            }
        };
        let why = told([(0, reads), (1, &put(4))], (0, ends)).expect("it was old");
        let name = name_of(Some(here));
        let place = format!("read by {name}, started by {name}");
        assert!(why.contains("4 bytes from memory[0]+0x44"), "{why}");
        assert!(why.contains(&place), "{why}");
        assert_eq!(told([(0, reads), (1, &put(8))], (0, ends)), None);
        let tells: Act<'_> = &|machine, at| {
            reads(machine, at);
            Topology::called(machine, here);
        };
        assert_eq!(told([(0, tells), (1, &put(4))], (0, ends)), None);
        let meant: Act<'_> = &|machine, at| {
            machine.mode().set_oracle(false);
            ends(machine, at);
        };
        assert_eq!(told([(0, reads), (1, &put(4))], (0, meant)), None);
    }

    #[test]
    fn the_second_writer_of_a_line_is_told() {
        let lines = |at| [Lines::covering::<Linux<Emulated>>(at, 4)];
        let here = Location::caller();
        let why = second_writer(|machine, at| {
            machine.mode().called.set(Some(here));
            machine.write(at, &[1, 0, 0, 0]);
            machine.write_back(&lines(at));
        });
        let why = why.expect("7 would be lost");
        assert!(why.contains("memory[0]+0x40"), "{why}");
        assert!(why.contains("over 1 bytes"), "{why}");
        let place = format!("stored by {}:{}", here.file(), here.line());
        assert!(why.contains(&place), "{why}");
        // By eviction, too: a line in the same place of the image.
        let why = second_writer(|machine, at| {
            machine.write(at, &[1, 0, 0, 0]);
            machine.read(at.plus(LINES * LINE), &mut [0; 4]);
        });
        assert!(why.is_some());
    }

    #[test]
    fn an_owner_that_drops_its_old_copy_first_is_no_second_writer() {
        let lines = |at| [Lines::covering::<Linux<Emulated>>(at, 4)];
        let why = second_writer(|machine, at| {
            machine.invalidate(&lines(at));
            machine.write(at, &[1, 0, 0, 0]);
            machine.write_back(&lines(at));
            machine.write(at, &[2, 0, 0, 0]);
            machine.write_back(&lines(at));
            assert_eq!(machine.load_u32(at.plus(4)), 7);
        });
        assert_eq!(why, None);
    }
}
