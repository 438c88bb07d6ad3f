//! A chip without coherence, in software: each rank has a private cache and a write-combining
//! buffer.
//!
//! On a coherent host a forgotten write-back, invalidate or drain goes unnoticed. Here it does not:
//! cached accesses go to the rank's own image ([`flagpost_hal::image`]), bulk stores stay in a
//! buffer of one line until it is full, another line is stored to, or the rank drains. Words,
//! test-and-set registers and bells stand for the chip's own, and are the host's atomics.

use std::cell::RefCell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use flagpost_hal::image::{Backing, PrivateImage};
use flagpost_hal::{
    Address, CachedMemory, Coherence, CoreId, Lines, Region, TestAndSet, UncachedMemory,
};

use crate::bytes::Regions;
use crate::machine::{Linux, Mode};

/// Bytes of a line.
const LINE: usize = 64;

/// Lines of an image: few enough that programs see evictions.
const LINES: usize = 256;

/// The mode that shows what is forgotten: a private image per rank.
pub struct Emulated(RefCell<Caches>);

struct Caches {
    image: Box<PrivateImage<LINES, LINE>>,
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

impl Mode for Emulated {
    const NAME: &'static str = "emulated";

    fn new() -> Self {
        Self(RefCell::new(Caches {
            image: Box::new(PrivateImage::EMPTY),
            line: Region::memory(CoreId::new(0)).at(0),
            mask: 0,
            bytes: [0; LINE],
        }))
    }
}

/// Memory behind the images.
struct Memory<'s>(&'s Regions);

impl Backing<LINE> for Memory<'_> {
    fn fetch(&self, line: Address, into: &mut [u8; LINE]) {
        self.0.bytes(line, LINE).load(into);
    }

    fn put(&self, line: Address, from: &[u8; LINE]) {
        self.0.bytes(line, LINE).store(from);
    }
}

impl Caches {
    /// Puts bytes into the combining buffer, line by line.
    fn combine(&mut self, memory: &Regions, at: Address, from: &[u8]) {
        let (mut at, mut rest) = (at, from);
        while !rest.is_empty() {
            let start = at.offset as usize % LINE;
            let (part, behind) = rest.split_at(rest.len().min(LINE - start));
            let line = at.region.at(at.offset - start as u32);
            if self.line != line {
                self.let_go(memory);
                self.line = line;
            }
            self.bytes[start..start + part.len()].copy_from_slice(part);
            self.mask |= u64::MAX >> (LINE - part.len()) << start;
            if self.mask == u64::MAX {
                self.let_go(memory);
            }
            (at, rest) = (at.plus(part.len() as u32), behind);
        }
    }

    /// Empties the combining buffer. Bytes that are not in it are not touched.
    fn let_go(&mut self, memory: &Regions) {
        let mut mask = std::mem::take(&mut self.mask);
        while mask != 0 {
            let start = mask.trailing_zeros();
            let len = (mask >> start).trailing_ones();
            let part = &self.bytes[start as usize..(start + len) as usize];
            memory.bytes(self.line.plus(start), part.len()).store(part);
            mask &= !(u64::MAX >> (LINE as u32 - len) << start);
        }
    }

    /// Own accesses to the same bytes stay in order (U5).
    fn let_go_of(&mut self, memory: &Regions, at: Address, len: usize) {
        let line = u64::from(self.line.offset);
        let (start, end) = (u64::from(at.offset), u64::from(at.offset) + len as u64);
        if self.mask != 0
            && self.line.region == at.region
            && start < line + LINE as u64
            && line < end
        {
            self.let_go(memory);
        }
    }
}

impl Linux<Emulated> {
    fn with_caches<R>(&self, act: impl FnOnce(&mut Caches, &Regions) -> R) -> R {
        act(&mut self.mode().0.borrow_mut(), self.regions())
    }

    /// Empties image and buffer without writing anything back: the state after a reset.
    pub fn reset(&self) {
        self.with_caches(|caches, _| {
            caches.image.clear();
            caches.mask = 0;
        });
    }
}

impl UncachedMemory for Linux<Emulated> {
    const PUBLISH: usize = 4;

    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        let byte = self.regions().byte(at);
        self.with_caches(|caches, memory| caches.let_go_of(memory, at, 1));
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
        bytes.load(into);
    }
}

impl CachedMemory for Linux<Emulated> {
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        self.regions().bytes(at, into.len());
        self.with_caches(|caches, memory| caches.image.read(&Memory(memory), at, into));
    }

    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        self.regions().bytes(at, from.len());
        self.with_caches(|caches, memory| caches.image.write(&Memory(memory), at, from));
    }
}

// SAFETY: S1, S2, S6: the image does what it is told to the lines that are named, and writes back
// what it evicts. S3: the buffer is emptied, and the fence orders what came before ahead of later
// stores. S4: an acquire fence. S5: fences and atomics. S7: `settle` empties the buffer, and its
// fence the processor's.
unsafe impl Coherence for Linux<Emulated> {
    const LINE: usize = LINE;
    const INVALIDATE_WRITES_BACK: bool = false;

    fn write_back(&self, spans: &[Lines]) {
        self.with_caches(|caches, memory| {
            let memory = Memory(memory);
            spans
                .iter()
                .for_each(|span| caches.image.write_back(&memory, *span));
        });
    }

    fn invalidate(&self, spans: &[Lines]) {
        self.with_caches(|caches, _| {
            spans.iter().for_each(|span| caches.image.invalidate(*span));
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
    fn test_and_set(&self, of: CoreId) -> bool {
        self.segment().lock_of(of.get()).swap(1, Relaxed) == 0
    }

    fn clear(&self, of: CoreId) {
        self.segment().lock_of(of.get()).store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::{RunError, machines_with};

    /// Rank 0 does something to its first bytes; what rank 1 then finds there, past the caches.
    fn found(act: impl Fn(&Linux<Emulated>, Address) + Sync) -> u32 {
        let found = machines_with::<Emulated, u32, Infallible>(2, 1 << 16, |machine| {
            let at = Region::memory(CoreId::new(0)).at(64);
            let is_first = flagpost_hal::Topology::core(&machine) == CoreId::new(0);
            if is_first {
                act(&machine, at);
            }
            assert!(machine.meet());
            // Rank 0 does not look: it would let go of what it has stored there.
            let found = if is_first { 0 } else { machine.load_u32(at) };
            // Nothing is put back before rank 1 has looked.
            assert!(machine.meet());
            Ok::<u32, RunError<Infallible>>(found)
        });
        found.expect("both end")[1]
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
}
