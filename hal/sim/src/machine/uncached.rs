//! Accesses past the cache: words, bulk stores, drains, atomics.
//!
//! # What a core sees of its own stores
//! Memory, then its store buffer from old to young, then its combining buffer: each layer over the
//! one before (`forward`). That order is also the order of arrival: a word store takes its bytes
//! out of the combining buffer, so a byte that is left there is younger than any in the store
//! buffer (I2).
//!
//! # When bulk bytes leave the combining buffer
//! | event | what leaves |
//! |---|---|
//! | bulk store to another line | all, in random groups of units, before the new bytes go in |
//! | the line is full | all, in random groups of units |
//! | `drain` | all, and then the store buffer |
//! | its own account ([`Config::leaves`](crate::Config::leaves)) | a random group of units |
//! | word store to one of the bytes | nothing; the byte is replaced |
//! | atomic on the word | that word's bytes |
//! | loads, registers, time, `acquire` | nothing |
//!
//! A *unit* is what arrives whole: [`Config::publish`](crate::Config::publish) bytes, aligned; by
//! default a word. On `weak` profiles "leave" means: into the store buffer, a parcel per unit.
//!
//! # Steps
//! Emptying takes a step per group, in which other cores may run. So the accesses here that empty a
//! buffer reply "more", and the handle repeats them: see [`Access`](crate::op::Access).

use flagpost_hal::Amo;

use super::memory::{plain, word_parcel};
use super::{Machine, Outcome, STORES, own_account};
use crate::mask::{self, LINE_MAX, Mask, blend, span, word};
use crate::op;
use crate::trace::{Note, Trace, Verb};

impl Machine {
    /// The word as `core` reads it past its cache, given what memory shows: its own stores on their
    /// way come first, the youngest last. Also says whether there was any.
    #[inline]
    fn forward(&self, core: u16, line: u32, index: usize, shown: u32) -> (u32, bool) {
        let core = &self.cores[usize::from(core)];
        let word = span(index * 4, 4);
        if core.stores.is_empty() && (core.combining.mask == 0 || core.combining.line != line) {
            return (shown, false);
        }
        let mut bytes = [0; LINE_MAX];
        bytes[index * 4..index * 4 + 4].copy_from_slice(&shown.to_le_bytes());
        let mut any = 0;
        for parcel in core.stores.iter().filter(|parcel| parcel.line == line) {
            blend(&mut bytes, &parcel.bytes, parcel.mask & word);
            any |= parcel.mask & word;
        }
        let combining = &core.combining;
        if combining.line == line {
            blend(&mut bytes, &combining.bytes, combining.mask & word);
            any |= combining.mask & word;
        }
        (mask::word(&bytes, index), any != 0)
    }

    /// What a core that waits would read at `at`, without the effects of reading.
    pub(crate) fn peek(&mut self, core: u16, at: u32) -> u32 {
        let (line, byte) = self.shape.split(at);
        let index = byte / 4;
        let shown = word(self.memory.line(line), index);
        self.forward(core, line, index, shown).0
    }

    /// Loads a byte or a word.
    #[inline]
    pub(super) fn load(
        &mut self,
        core: u16,
        line: u32,
        byte: usize,
        width: u8,
        local: bool,
    ) -> Outcome {
        let counters = self.count(core);
        if local {
            counters.loads_local += 1;
        } else {
            counters.loads_remote += 1;
        }
        let index = byte / 4;
        let (shown, early) = self.observe(core, line, index);
        if *self.memory.dirty(line) != 0 {
            self.check_hidden(core, line, span(byte, width.into()), true);
        }
        let (word, forwarded) = self.forward(core, line, index, shown);
        let value = match width {
            1 => word >> (byte % 4 * 8) & 0xff,
            _ => word,
        };
        let note = match (forwarded, early) {
            (true, _) => Note::Forwarded,
            (false, true) => Note::Early,
            (false, false) => Note::None,
        };
        Outcome::new(value, note)
    }

    /// Stores a byte or a word.
    #[inline]
    pub(super) fn store(
        &mut self,
        core: u16,
        line: u32,
        byte: usize,
        width: u8,
        value: u32,
        local: bool,
    ) -> Outcome {
        let counters = self.count(core);
        if local {
            counters.stores_local += 1;
        } else {
            counters.stores_remote += 1;
        }
        let width = usize::from(width);
        let mask = span(byte, width);
        let combining = &mut self.cores[usize::from(core)].combining;
        if combining.line == line {
            // I2: the younger store replaces what still waits in the combining buffer.
            combining.mask &= !mask;
        }
        if !self.profile.weak() && self.tags.none() {
            self.arrive_word(core, line, byte, width, value);
            return Outcome::shown(value, Note::None);
        }
        let note = self.send(core, word_parcel(line, byte, width, value));
        Outcome::shown(value, note)
    }

    /// Bulk store of part of a line: see [`Access::Combine`](crate::op::Access::Combine).
    pub(super) fn combine(
        &mut self,
        core: u16,
        line: u32,
        byte: usize,
        len: u8,
        bytes: &op::Bytes,
    ) -> Outcome {
        let combining = &self.cores[usize::from(core)].combining;
        if combining.mask != 0 && combining.line != line {
            self.empty_some(core);
            return Outcome::new(1, Note::More);
        }
        let len = usize::from(len);
        self.count(core).bulk_bytes += len as u64;
        self.progress = true;
        let combining = &mut self.cores[usize::from(core)].combining;
        combining.line = line;
        combining.mask |= span(byte, len);
        combining.bytes[byte..byte + len].copy_from_slice(&bytes[..len]);
        let full = combining.mask == self.shape.whole();
        let shown = word(&combining.bytes, byte / 4);
        Outcome {
            value: shown,
            ..Outcome::new(if full { 2 } else { 0 }, Note::Buffered)
        }
    }

    /// Empties a full combining buffer, step by step.
    pub(super) fn empty(&mut self, core: u16) -> Outcome {
        if self.cores[usize::from(core)].combining.mask == 0 {
            // All of it has left on the chip's own account.
            return Outcome::new(0, Note::Nothing);
        }
        let more = self.empty_some(core);
        Outcome::new(more.into(), if more { Note::More } else { Note::None })
    }

    /// Lets a random group of the combining buffer's units go, together. Returns whether some are
    /// left.
    ///
    /// Nothing bigger than a unit arrives whole: who puts a flag and its payload in one
    /// bulk store must see them torn.
    fn empty_some(&mut self, core: u16) -> bool {
        let group = self.draw_group(self.cores[usize::from(core)].combining.mask);
        self.leave(core, group)
    }

    /// Lets a group of the combining buffer's units go, together. Returns whether some are left.
    pub(super) fn leave(&mut self, core: u16, group: Mask) -> bool {
        let combining = &mut self.cores[usize::from(core)].combining;
        let mask = combining.mask & group;
        combining.mask &= !group;
        let (left, line, bytes) = (combining.mask != 0, combining.line, combining.bytes);
        if mask != 0 {
            let owner = self.shape.address(self.shape.start(line)).region.owner;
            let counters = self.count(core);
            if owner.get() == core {
                counters.lines_local += 1;
            } else {
                counters.lines_remote += 1;
            }
        }
        if !self.profile.weak() {
            self.send(core, plain(line, mask, bytes));
            return left;
        }
        let shape = self.shape;
        for unit in (0..shape.units()).map(|number| mask & shape.unit(number)) {
            if unit != 0 {
                self.send(core, plain(line, unit, bytes));
            }
        }
        left
    }

    /// A core's combining buffer loses a group of units on the chip's own account.
    pub(super) fn leave_early(&mut self, step: u64, trace: &mut Trace) {
        let cores = self.cores.len();
        let first = self.chance.below(cores);
        let filled = |&core: &usize| self.cores[core].combining.mask != 0;
        let found = (first..cores).chain(0..first).find(filled);
        if let Some(core) = found {
            let (core, combining) = (core as u16, self.cores[core].combining);
            self.empty_some(core);
            let first = combining.mask.trailing_zeros() as usize;
            let at = self.shape.start(combining.line) + first as u32;
            let value = word(&combining.bytes, first / 4);
            trace.record(own_account(step, core, Verb::Arrive, at, value));
        }
    }

    /// Which bytes leave next, of those in `mask`: perhaps more than are in it, and at least one
    /// unit.
    fn draw_group(&mut self, mask: Mask) -> Mask {
        let (shape, units) = (self.shape, self.shape.units());
        let unit = |number| shape.unit(number);
        if self.chance.listed() {
            // One unit: to leave together is to leave one by one with nobody looking in between.
            let present = || (0..units).map(unit).filter(|unit| unit & mask != 0);
            let number = self.chance.below(present().count());
            return present().nth(number).unwrap_or(mask);
        }
        if self.shape.timed {
            return Mask::MAX;
        }
        // A coin per unit; if that chose none that is in the buffer, all of them. Few steps on
        // average, and every grouping possible.
        let coin = |group, number| {
            if self.chance.coin() {
                group | unit(number)
            } else {
                group
            }
        };
        match (0..units).fold(0, coin) {
            group if group & mask == 0 => Mask::MAX,
            group => group,
        }
    }

    /// Places some of what is on its way; replies 1 while something is left.
    pub(super) fn drain(&mut self, core: u16) -> Outcome {
        let index = usize::from(core);
        let mut left = false;
        if self.cores[index].combining.mask != 0 {
            left = self.empty_some(core);
        }
        // One parcel per step, in any order that I2 allows: a peer may look in between, so whoever
        // relies on the order *within* one drain is found out.
        let count = self.cores[index].stores.len();
        if count > 0 {
            let number = if self.chance.listed() {
                let free = self.free_parcels(core);
                free[self.chance.below(free.len())]
            } else {
                self.chance.below(count.min(STORES))
            };
            self.place(core, number);
            left |= count > 1;
        }
        if !left {
            self.count(core).drains += 1;
        }
        Outcome::new(left.into(), if left { Note::More } else { Note::None })
    }

    /// An indivisible read-modify-write. Own stores to the word go first (U5); nothing else is
    /// ordered.
    pub(super) fn atomic(
        &mut self,
        core: u16,
        line: u32,
        byte: usize,
        operation: Amo<u32>,
    ) -> Outcome {
        self.count(core).atomics += 1;
        let mask = span(byte, 4);
        let combining = &mut self.cores[usize::from(core)].combining;
        if combining.line == line && combining.mask & mask != 0 {
            let parcel = plain(line, combining.mask & mask, combining.bytes);
            combining.mask &= !mask;
            self.send(core, parcel);
        }
        let stores = |machine: &Self| {
            let mut parcels = machine.cores[usize::from(core)].stores.iter();
            parcels.position(|p| p.line == line && p.mask & mask != 0)
        };
        while let Some(number) = stores(self) {
            self.place(core, number);
        }
        // The operation works on memory itself: never early, never late.
        let old = word(self.memory.line(line), byte / 4);
        self.know(core, line, byte / 4);
        if *self.memory.dirty(line) != 0 {
            self.check_hidden(core, line, mask, true);
        }
        match operation {
            Amo::Read => return Outcome::new(old, Note::None),
            Amo::CompareSwap { expected, .. } if old != expected => {
                return Outcome::new(old, Note::None);
            }
            _ => {}
        }
        let mut bytes = [0; LINE_MAX];
        bytes[byte..byte + 4].copy_from_slice(&operation.apply(old).to_le_bytes());
        self.progress = true;
        self.deliver(core, &plain(line, mask, bytes));
        Outcome::new(old, Note::None)
    }
}
