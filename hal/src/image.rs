//! A private cache in software, for boards whose hardware hides what ours must show.
//!
//! An emulator models no cache, and a coherent host repairs every forgotten write-back in silence.
//! A port that passes its cached accesses through a [`PrivateImage`] per core fails there just as
//! it would on the chip: what is not written back does not arrive, what is not invalidated is old.
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
//! What this image promises is the *least* that [`CachedMemory`] and [`Coherence`] allow:
//! * I1. A read of a held line returns what was held, however old (C1).
//! * I2. A put moves the whole line, over whatever others stored in its neighbours meanwhile (C2).
//! * I3. A conflict puts the old line back if it is dirty, at any moment, unasked (C2).
//! * I4. [`invalidate`](PrivateImage::invalidate) loses dirty bytes: a port over this image has
//!   [`INVALIDATE_WRITES_BACK`](crate::Coherence::INVALIDATE_WRITES_BACK) `= false`.
//!
//! # Message data
//! Some chips tag lines that were loaded as message data, and drop all of these at once; stores to them are written
//! through, or stay, as the access says. [`read_message`](PrivateImage::read_message),
//! [`update`](PrivateImage::update) and [`invalidate_messages`](PrivateImage::invalidate_messages) are what a
//! port needs to show that.
//!
//! It never fetches ahead and evicts only on conflict; the simulator does both at any moment.
//!
//! # Bounds
//! Every call does at most one fetch and one put per line that it names. An image whose bytes are all
//! zero is empty, so images may live in `.bss` without any start-up code.
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

/// Which line a slot holds: nothing, or its address, and whether its bytes differ from memory.
///
/// Packed by hand because `Option<Address>` does not promise that `None` is all zeros.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Tag(u64);

impl Tag {
    const EMPTY: Self = Self(0);
    const VALID: u64 = 1 << 63;
    const DIRTY: u64 = 1 << 62;
    const MESSAGE: u64 = 1 << 61;
    const BUFFER: u64 = 1 << 48;

    const fn clean(line: Address) -> Self {
        let kind = match line.region.kind {
            Kind::Memory => 0,
            Kind::MessageBuffer => Self::BUFFER,
        };
        Self(Self::VALID | kind | (line.region.owner.get() as u64) << 32 | line.offset as u64)
    }

    const fn holds(self, line: Address) -> bool {
        self.0 & !(Self::DIRTY | Self::MESSAGE) == Self::clean(line).0
    }

    const fn is_dirty(self) -> bool {
        self.0 & Self::DIRTY != 0
    }

    /// The address that `clean` was given; meaningless for `EMPTY`.
    const fn line(self) -> Address {
        let owner = CoreId::new((self.0 >> 32) as u16);
        let region = match self.0 & Self::BUFFER {
            0 => Region::memory(owner),
            _ => Region::message_buffer(owner),
        };
        region.at(self.0 as u32)
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

/// A private write-back cache of `LINES` lines of `LINE` bytes (a power of two). See the [module](self).
pub struct PrivateImage<const LINES: usize, const LINE: usize> {
    slots: [Slot<LINE>; LINES],
    /// Whether any line may be tagged as message data.
    messages: bool,
}

impl<const LINES: usize, const LINE: usize> PrivateImage<LINES, LINE> {
    /// An image that holds nothing. All its bytes are zero.
    pub const EMPTY: Self = {
        assert!(LINES > 0 && LINE.is_power_of_two() && LINE <= 1 << 16);
        Self {
            slots: [Slot::EMPTY; LINES],
            messages: false,
        }
    };

    /// Copies consecutive bytes at `at` into `into`, fetching the lines that are not held.
    pub fn read(&mut self, memory: &impl Backing<LINE>, at: Address, into: &mut [u8]) {
        self.read_tagged(memory, at, into, 0);
    }

    /// [`read`](Self::read), of message data: tags the lines.
    pub fn read_message(&mut self, memory: &impl Backing<LINE>, at: Address, into: &mut [u8]) {
        self.messages = true;
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
            (at, rest) = (at.plus(len as u32), behind);
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
            (at, rest) = (at.plus(len as u32), behind);
        }
    }

    /// Copies `from` to consecutive bytes at `at`, as far as their lines are held. Makes none dirty: for stores
    /// that also go to memory.
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
            (at, rest) = (at.plus(len as u32), behind);
        }
    }

    /// Whether the line that `at` is in is held.
    pub fn holds(&self, at: Address) -> bool {
        let (line, ..) = Self::first_part(at, 1);
        self.slots[Self::slot_of(line)].tag.holds(line)
    }

    /// Drops all lines that are tagged as message data, dirty or not.
    pub fn invalidate_messages(&mut self) {
        if !core::mem::replace(&mut self.messages, false) {
            return;
        }
        for slot in &mut self.slots {
            if slot.tag.0 & Tag::MESSAGE != 0 {
                slot.tag = Tag::EMPTY;
            }
        }
    }

    /// Puts those of `lines` back that are held and dirty. They stay held.
    pub fn write_back(&mut self, memory: &impl Backing<LINE>, lines: Lines) {
        self.for_held(lines, |slot| slot.put_if_dirty(memory));
    }

    /// Drops those of `lines` that are held. **Loses** what was written to them since they were last put
    /// back (I4).
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
        for offset in lines.starts(LINE as u32) {
            let line = lines.region().at(offset);
            let slot = &mut self.slots[Self::slot_of(line)];
            if slot.tag.holds(line) {
                act(slot);
            }
        }
    }

    /// Where `line` goes. Consecutive lines go to consecutive slots; each owner's region starts seven
    /// slots after its predecessor's, and its buffer half-way round, so that the same offset of many
    /// cores (the usual layout of a protocol's words) does not fall on one slot.
    fn slot_of(line: Address) -> usize {
        let kind = match line.region.kind {
            Kind::Memory => 0,
            Kind::MessageBuffer => LINES / 2,
        };
        (line.offset as usize / LINE + 7 * line.region.owner.index() + kind) % LINES
    }

    /// The first line that `len` bytes at `at` touch, where in it they start, and how many of them
    /// lie in it.
    fn first_part(at: Address, len: usize) -> (Address, usize, usize) {
        let start = at.offset as usize % LINE;
        let line = at.region.at(at.offset - start as u32);
        (line, start, len.min(LINE - start))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::cell::RefCell;
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::Coherence;

    const LINE: usize = 16;
    const LINES: usize = 4;
    const OWNER: CoreId = CoreId::new(3);

    /// Two regions of 256 bytes, one behind the other, and how often lines moved.
    struct Ram {
        bytes: RefCell<Vec<u8>>,
        moved: RefCell<Vec<(&'static str, u32)>>,
    }

    impl Ram {
        fn new() -> Self {
            Self {
                bytes: RefCell::new((0..=255).chain(0..=255).collect()),
                moved: RefCell::new(vec![]),
            }
        }

        /// What another core does: a store past every image.
        fn store(&self, offset: usize, value: u8) {
            self.bytes.borrow_mut()[offset] = value;
        }

        fn load(&self, offset: usize) -> u8 {
            self.bytes.borrow()[offset]
        }
    }

    /// Where a line is in `Ram::bytes`.
    fn place(line: Address) -> usize {
        assert_eq!(line.region.owner, OWNER);
        line.offset as usize + if line.region == BUFFER { 256 } else { 0 }
    }

    const BUFFER: Region = Region::message_buffer(OWNER);

    impl Backing<LINE> for Ram {
        fn fetch(&self, line: Address, into: &mut [u8; LINE]) {
            self.moved.borrow_mut().push(("fetch", line.offset));
            into.copy_from_slice(&self.bytes.borrow()[place(line)..][..LINE]);
        }

        fn put(&self, line: Address, from: &[u8; LINE]) {
            self.moved.borrow_mut().push(("put", line.offset));
            self.bytes.borrow_mut()[place(line)..][..LINE].copy_from_slice(from);
        }
    }

    /// Gives `Lines::covering` its line size; never used as a machine.
    struct Granule;

    // SAFETY: S1 to S7 speak of calls that return; these never do.
    #[expect(unsafe_code, reason = "`Lines` are made by naming a `Coherence`")]
    unsafe impl Coherence for Granule {
        const LINE: usize = LINE;
        const INVALIDATE_WRITES_BACK: bool = false;
        fn write_back(&self, _: &[Lines]) {
            unreachable!()
        }
        fn invalidate(&self, _: &[Lines]) {
            unreachable!()
        }
        fn drain(&self) {
            unreachable!()
        }
        fn acquire(&self) {
            unreachable!()
        }
    }

    type Image = PrivateImage<LINES, LINE>;

    fn at(offset: u32) -> Address {
        Region::memory(OWNER).at(offset)
    }

    fn lines(offset: u32, len: u32) -> Lines {
        Lines::covering::<Granule>(at(offset), len)
    }

    fn byte(image: &mut Image, ram: &Ram, offset: u32) -> u8 {
        let mut byte = [0];
        image.read(ram, at(offset), &mut byte);
        byte[0]
    }

    #[test]
    fn read_is_stale_until_invalidate() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        assert_eq!(byte(&mut image, &ram, 5), 5);
        ram.store(5, 99);
        assert_eq!(byte(&mut image, &ram, 5), 5); // I1
        image.invalidate(lines(32, 16)); // another line: no effect
        assert_eq!(byte(&mut image, &ram, 5), 5);
        image.invalidate(lines(5, 1));
        assert_eq!(byte(&mut image, &ram, 5), 99);
    }

    #[test]
    fn write_stays_private_until_write_back() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        image.write(&ram, at(20), &[200]);
        assert_eq!(byte(&mut image, &ram, 20), 200);
        assert_eq!(ram.load(20), 20);
        image.write_back(&ram, lines(20, 1));
        assert_eq!(ram.load(20), 200);
        // Clean now: a second write-back moves nothing.
        image.write_back(&ram, lines(0, 64));
        assert_eq!(*ram.moved.borrow(), [("fetch", 16), ("put", 16)]);
    }

    #[test]
    fn write_back_keeps_the_line() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        image.write(&ram, at(20), &[200]);
        image.write_back(&ram, lines(20, 1));
        ram.store(20, 99);
        assert_eq!(byte(&mut image, &ram, 20), 200);
    }

    #[test]
    fn regions_are_told_apart() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        for offset in (0..256).step_by(LINE) {
            // Each dirty line is soon the victim of another, of either region.
            image.write(&ram, at(offset), &[201]);
            image.write(&ram, BUFFER.at(offset), &[202]);
        }
        image.write_back(&ram, lines(0, 256));
        image.write_back(&ram, Lines::covering::<Granule>(BUFFER.at(0), 256));
        for offset in (0..256).step_by(LINE) {
            assert_eq!((ram.load(offset), ram.load(256 + offset)), (201, 202));
            assert_eq!(ram.load(offset + 1), offset as u8 + 1);
        }
    }

    #[test]
    fn spans_may_be_longer_than_the_image() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        let mut all = [0; 256];
        image.read(&ram, at(0), &mut all);
        ram.store(255, 7);
        ram.store(200, 8);
        image.invalidate(lines(0, 256));
        assert_eq!(byte(&mut image, &ram, 255), 7);
        image.write(&ram, at(200), &[9]);
        image.write_back(&ram, lines(0, 256));
        assert_eq!(ram.load(200), 9);
    }

    #[test]
    fn invalidate_loses_dirty_bytes() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        image.write(&ram, at(7), &[200]);
        image.invalidate(lines(0, 1)); // I4: the same line
        assert_eq!(byte(&mut image, &ram, 7), 7);
        assert_eq!(ram.load(7), 7);
    }

    #[test]
    fn write_back_clobbers_neighbours_in_the_line() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        image.write(&ram, at(0), &[200]);
        ram.store(15, 99);
        ram.store(16, 98);
        image.write_back(&ram, lines(0, 1));
        assert_eq!(ram.load(15), 15); // I2: the peer's store is gone,
        assert_eq!(ram.load(16), 98); // but the next line is untouched.
    }

    #[test]
    fn conflict_evicts_and_puts_back_only_dirty_lines() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        let conflicting = (LINES * LINE) as u32;
        image.write(&ram, at(1), &[200]);
        ram.store(2, 99);
        byte(&mut image, &ram, conflicting);
        assert_eq!(ram.load(1), 200); // I3: put back unasked,
        assert_eq!(ram.load(2), 2); // with its whole line.
        byte(&mut image, &ram, 1);
        let moved = [
            ("fetch", 0),
            ("put", 0),
            ("fetch", conflicting),
            ("fetch", 0),
        ];
        assert_eq!(*ram.moved.borrow(), moved);
    }

    #[test]
    fn spans_cross_lines() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        let data: Vec<u8> = (100..140).collect();
        image.write(&ram, at(10), &data); // lines 0 to 3
        let mut back = [0; 42];
        image.read(&ram, at(9), &mut back);
        assert_eq!((back[0], &back[1..41], back[41]), (9, &data[..], 50));
        image.write_back(&ram, lines(10, 40));
        assert_eq!(ram.bytes.borrow()[10..50], data);
        // Longer than the image: it evicts itself on the way and still reads right.
        let mut all = [0; 256];
        image.read(&ram, at(0), &mut all);
        assert_eq!(all[..], ram.bytes.borrow()[..256]);
    }

    #[test]
    fn zero_bytes_are_an_empty_image() {
        let slot = Slot::<LINE>::EMPTY;
        assert_eq!((slot.tag.0, slot.bytes), (0, [0; LINE]));
        let line = Region::message_buffer(CoreId::new(511)).at(0x1fe0);
        assert!(Tag::clean(line).holds(line) && Tag::clean(line).line() == line);
        assert!(!Tag::clean(line).holds(Region::memory(CoreId::new(511)).at(0x1fe0)));
        assert!(!Tag::EMPTY.holds(Region::memory(CoreId::new(0)).at(0)));
    }

    #[test]
    fn message_lines_are_dropped_together_and_others_stay() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        let mut bytes = [0; 32];
        image.read_message(&ram, at(0), &mut bytes);
        assert_eq!(byte(&mut image, &ram, 32), 32);
        image.write(&ram, at(16), &[200]); // a message line: lost below
        image.write(&ram, at(32), &[201]);
        for offset in [0, 16, 32] {
            ram.store(offset, 99);
        }
        image.invalidate_messages();
        assert_eq!([image.holds(at(15)), image.holds(at(47))], [false, true]);
        assert_eq!(byte(&mut image, &ram, 0), 99);
        assert_eq!(byte(&mut image, &ram, 16), 99);
        assert_eq!(byte(&mut image, &ram, 32), 201);
        // Lines that were read again, not as messages, are none.
        image.invalidate_messages();
        assert!(image.holds(at(0)));
    }

    #[test]
    fn a_slot_that_is_used_again_has_no_tag() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        image.read_message(&ram, at(0), &mut [0]);
        image.write(&ram, at(64), &[200]); // takes the slot
        image.invalidate_messages();
        assert_eq!(byte(&mut image, &ram, 64), 200);
    }

    #[test]
    fn update_changes_what_is_held_and_makes_nothing_dirty() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        assert_eq!(byte(&mut image, &ram, 0), 0);
        image.update(at(14), &[200; 4]);
        assert_eq!(byte(&mut image, &ram, 15), 200);
        assert_eq!(byte(&mut image, &ram, 16), 16); // was not held
        image.write_back(&ram, lines(0, 32));
        assert_eq!(ram.load(15), 15);
    }

    #[test]
    fn clear_forgets_everything() {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        image.write(&ram, at(0), &[200; 64]);
        image.clear();
        image.write_back(&ram, lines(0, 64));
        assert_eq!(byte(&mut image, &ram, 0), 0);
    }
}
