//! A private cache in software, for boards whose hardware would hide a missing cache action.
//!
//! An emulator models no cache, and a coherent host repairs every forgotten write-back in silence.
//! A port that passes its cached accesses through a [`PrivateImage`] per core fails there just as
//! it would on the chip: bytes that are not written back do not arrive, and lines that are not
//! invalidated are old.
//!
//! # Mental model
//! ```text
//!    read / write ──►  slots: [ tag │ bytes of one line ]      one image per core
//!                        │ put: whole line    ▲ fetch: whole line
//!                        ▼                    │
//!                      the board's memory, behind `Backing`
//! ```
//! Direct-mapped and write-back, with whole lines in every respect: one valid and one dirty bit per
//! line, so that a line is fetched before it is written in part, and put back with all its bytes.
//!
//! # Guarantee
//! This image promises the *least* that [`CachedMemory`] and [`Coherence`] allow:
//! * I1. A read of a held line returns what was held, however old (C1).
//! * I2. A put moves the whole line, over whatever others stored in its neighbours meanwhile (C2).
//! * I3. A conflict puts the old line back if it is dirty, at any moment, unasked (C2).
//! * I4. [`invalidate`](PrivateImage::invalidate) loses dirty bytes.
//!
//! # Message data
//! Some chips tag lines that were loaded as message data, and drop all of these in one step; stores
//! to them are written through, or stay, as the access says. A port shows that by
//! [`read_message`](PrivateImage::read_message), [`update`](PrivateImage::update) and
//! [`invalidate_messages`](PrivateImage::invalidate_messages).
//!
//! It never fetches ahead and evicts only on conflict; the simulator does both at any moment.
//!
//! # Bounds
//! Every call does at most one fetch and one put per line that it names. An image whose bytes are
//! all zero is empty, so images may live in `.bss` without any start-up code.
//!
//! [`CachedMemory`]: crate::CachedMemory
//! [`Coherence`]: crate::Coherence

use crate::{Address, CoreId, Kind, Lines, Region};

/// The memory under a [`PrivateImage`], in whole lines of `LINE` bytes.
pub trait Backing<const LINE: usize> {
    /// Loads the line at `line`, past all images. Stops the machine if no such line exists.
    fn fetch(&self, line: Address, into: &mut [u8; LINE]);

    /// Stores the line at `line`, past all images.
    fn put(&self, line: Address, from: &[u8; LINE]);
}

/// The line that a slot holds, if any: its address, and a bit that says if it is dirty.
///
/// Packed by hand because `Option<Address>` does not promise that `None` is all zeros.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Tag(u64);

impl Tag {
    const EMPTY: Self = Self(0);
    const VALID: u64 = 1 << 63;
    const DIRTY: u64 = 1 << 62;
    const MESSAGE: u64 = 1 << 61;
    const BUFFER: u64 = 1 << 60;
    /// Bits of an offset; the owner's number has those between.
    const OFFSET: u32 = 44;

    const fn clean(line: Address) -> Self {
        let kind = match line.region.kind {
            Kind::Memory => 0,
            Kind::MessageBuffer => Self::BUFFER,
        };
        let owner = (line.region.owner.get() as u64) << Self::OFFSET;
        Self(Self::VALID | kind | owner | line.offset as u64)
    }

    const fn holds(self, line: Address) -> bool {
        self.0 & !(Self::DIRTY | Self::MESSAGE) == Self::clean(line).0
    }

    const fn is_dirty(self) -> bool {
        self.0 & Self::DIRTY != 0
    }

    /// The address that `clean` was given; meaningless for `EMPTY`.
    const fn line(self) -> Address {
        let owner = CoreId::new((self.0 >> Self::OFFSET) as u16);
        let region = match self.0 & Self::BUFFER {
            0 => Region::memory(owner),
            _ => Region::message_buffer(owner),
        };
        region.at((self.0 & ((1 << Self::OFFSET) - 1)) as usize)
    }
}

/// Room for one line.
#[derive(Copy, Clone)]
struct Slot<const LINE: usize> {
    tag: Tag,
    bytes: [u8; LINE],
}

impl<const LINE: usize> Slot<LINE> {
    const EMPTY: Self = Self {
        tag: Tag::EMPTY,
        bytes: [0; LINE],
    };

    /// Puts the line back if memory does not have these bytes yet.
    fn put_if_dirty(&mut self, memory: &impl Backing<LINE>) {
        if self.tag.is_dirty() {
            // FLUSH: I2: all bytes of the line, not only those that were written.
            memory.put(self.tag.line(), &self.bytes);
            self.tag = Tag(self.tag.0 & !Tag::DIRTY);
        }
    }
}

/// A private write-back cache of `LINES` lines of `LINE` bytes (a power of two). See the
/// [module](self).
pub struct PrivateImage<const LINES: usize, const LINE: usize> {
    slots: [Slot<LINE>; LINES],
    /// The slots in which lines may be tagged as message data: the first, and the one after the
    /// last.
    messages: (usize, usize),
}

impl<const LINES: usize, const LINE: usize> PrivateImage<LINES, LINE> {
    /// An image that holds nothing. All its bytes are zero.
    pub const EMPTY: Self = {
        assert!(LINES > 0 && LINE.is_power_of_two() && LINE <= 1 << 16);
        Self {
            slots: [Slot::EMPTY; LINES],
            messages: (0, 0),
        }
    };

    /// Copies consecutive bytes at `at` into `into`, fetching the lines that are not held.
    pub fn read(&mut self, memory: &impl Backing<LINE>, at: Address, into: &mut [u8]) {
        self.read_tagged(memory, at, into, 0);
    }

    /// [`read`](Self::read), of message data: tags the lines.
    pub fn read_message(&mut self, memory: &impl Backing<LINE>, at: Address, into: &mut [u8]) {
        self.note_messages(at, into.len());
        self.read_tagged(memory, at, into, Tag::MESSAGE);
    }

    fn read_tagged(&mut self, memory: &impl Backing<LINE>, at: Address, into: &mut [u8], tag: u64) {
        let mut at = at;
        let mut rest = into;
        while !rest.is_empty() {
            let (line, start, len) = Self::first_part(at, rest.len());
            let (part, behind) = rest.split_at_mut(len);
            let slot = self.hold(memory, line);
            slot.tag.0 |= tag;
            part.copy_from_slice(&slot.bytes[start..start + len]);
            (at, rest) = (at.plus(len), behind);
        }
    }

    /// Copies `from` to consecutive bytes at `at`; they stay in the image.
    pub fn write(&mut self, memory: &impl Backing<LINE>, at: Address, from: &[u8]) {
        let mut at = at;
        let mut rest = from;
        while !rest.is_empty() {
            let (line, start, len) = Self::first_part(at, rest.len());
            let (part, behind) = rest.split_at(len);
            let slot = self.hold(memory, line);
            slot.bytes[start..start + len].copy_from_slice(part);
            slot.tag.0 |= Tag::DIRTY;
            (at, rest) = (at.plus(len), behind);
        }
    }

    /// Copies `from` to consecutive bytes at `at`, as far as their lines are held. Makes none
    /// dirty: for stores that also go to memory.
    pub fn update(&mut self, at: Address, from: &[u8]) {
        let mut at = at;
        let mut rest = from;
        while !rest.is_empty() {
            let (line, start, len) = Self::first_part(at, rest.len());
            let (part, behind) = rest.split_at(len);
            let slot = &mut self.slots[Self::slot_of(line)];
            if slot.tag.holds(line) {
                slot.bytes[start..start + len].copy_from_slice(part);
            }
            (at, rest) = (at.plus(len), behind);
        }
    }

    /// True if the line of `at` is held.
    pub fn holds(&self, at: Address) -> bool {
        let (line, ..) = Self::first_part(at, 1);
        self.slots[Self::slot_of(line)].tag.holds(line)
    }

    /// Notes that the lines of these bytes may be tagged.
    fn note_messages(&mut self, at: Address, len: usize) {
        let (line, start, _) = Self::first_part(at, len);
        let first = Self::slot_of(line);
        let behind = first + (start + len).div_ceil(LINE);
        self.messages = match self.messages {
            (0, 0) => (first, behind),
            (from, to) => (from.min(first), to.max(behind)),
        };
        if behind > LINES {
            self.messages = (0, LINES); // they begin again at the first slot
        }
    }

    /// Drops all lines that are tagged as message data, dirty or not.
    pub fn invalidate_messages(&mut self) {
        let (first, behind) = core::mem::take(&mut self.messages);
        for slot in self.slots.get_mut(first..behind).unwrap_or_default() {
            if slot.tag.0 & Tag::MESSAGE != 0 {
                slot.tag = Tag::EMPTY;
            }
        }
    }

    /// Puts those of `lines` back that are held and dirty. They stay held.
    pub fn write_back(&mut self, memory: &impl Backing<LINE>, lines: Lines) {
        self.for_held(lines, |slot| slot.put_if_dirty(memory));
    }

    /// Drops those of `lines` that are held. **Loses** what was written to them since they were
    /// last put back (I4).
    pub fn invalidate(&mut self, lines: Lines) {
        self.for_held(lines, |slot| slot.tag = Tag::EMPTY);
    }

    /// Drops everything, dirty or not: the state after reset.
    pub fn clear(&mut self) {
        for slot in &mut self.slots {
            slot.tag = Tag::EMPTY;
        }
    }

    /// The slot that holds `line`, after making it so.
    fn hold(&mut self, memory: &impl Backing<LINE>, line: Address) -> &mut Slot<LINE> {
        let slot = &mut self.slots[Self::slot_of(line)];
        if !slot.tag.holds(line) {
            slot.put_if_dirty(memory); // I3
            // Empty while fetching: a backing that stops the machine leaves no half-true slot.
            slot.tag = Tag::EMPTY;
            memory.fetch(line, &mut slot.bytes);
            slot.tag = Tag::clean(line);
        }
        slot
    }

    /// Calls `act` with each slot that holds one of `lines`.
    fn for_held(&mut self, lines: Lines, mut act: impl FnMut(&mut Slot<LINE>)) {
        if lines.end() - lines.start() > LINES * LINE {
            let inside = |line: Address| {
                line.region == lines.region() && (lines.start()..lines.end()).contains(&line.offset)
            };
            let held = |slot: &&mut Slot<LINE>| slot.tag != Tag::EMPTY && inside(slot.tag.line());
            self.slots.iter_mut().filter(held).for_each(act);
            return;
        }
        for offset in lines.starts(LINE) {
            let line = lines.region().at(offset);
            let slot = &mut self.slots[Self::slot_of(line)];
            if slot.tag.holds(line) {
                act(slot);
            }
        }
    }

    /// The slot for `line`. Consecutive lines go to consecutive slots; each owner's region starts
    /// seven slots after its predecessor's, and its buffer half-way round, so that the same offset
    /// of many cores (the usual layout of a protocol's words) does not fall on one slot.
    fn slot_of(line: Address) -> usize {
        let kind = match line.region.kind {
            Kind::Memory => 0,
            Kind::MessageBuffer => LINES / 2,
        };
        (line.offset / LINE + 7 * line.region.owner.index() + kind) % LINES
    }

    /// Of `len` bytes at `at`: their first line, their offset in it, and the number of them that
    /// lie in it.
    fn first_part(at: Address, len: usize) -> (Address, usize, usize) {
        let start = at.offset % LINE;
        let line = at.region.at(at.offset - start);
        (line, start, len.min(LINE - start))
    }
}

#[cfg(test)]
mod tests;
