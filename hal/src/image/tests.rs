//! I1 to I4, one by one, over memory that counts how often lines move.

extern crate std;

use core::cell::RefCell;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::Coherence;

const LINE: usize = 16;
const LINES: usize = 4;
const OWNER: CoreId = CoreId::new(3);

/// Two regions of 256 bytes, one after the other, and how often lines moved.
struct Ram {
    bytes: RefCell<Vec<u8>>,
    moved: RefCell<Vec<(&'static str, usize)>>,
}

impl Ram {
    fn new() -> Self {
        Self {
            bytes: RefCell::new((0..=255).chain(0..=255).collect()),
            moved: RefCell::new(vec![]),
        }
    }

    /// A store past every image, as of another core.
    fn store(&self, offset: usize, value: u8) {
        self.bytes.borrow_mut()[offset] = value;
    }

    fn load(&self, offset: usize) -> u8 {
        self.bytes.borrow()[offset]
    }
}

/// The place of a line in `Ram::bytes`.
fn place(line: Address) -> usize {
    assert_eq!(line.region.owner, OWNER);
    line.offset + if line.region == BUFFER { 256 } else { 0 }
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

fn at(offset: usize) -> Address {
    Region::memory(OWNER).at(offset)
}

fn lines(offset: usize, len: usize) -> Lines {
    Lines::covering::<Granule>(at(offset), len)
}

fn byte(image: &mut Image, ram: &Ram, offset: usize) -> u8 {
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
    let conflicting = LINES * LINE;
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
fn message_data_are_dropped_wherever_they_are_held() {
    // Slots 1 and 2 with 3 and 0, one after the other and in one.
    let reads: [&[(usize, usize)]; 4] = [
        &[(32, 32)],
        &[(0, 1), (32, 32)],
        &[(32, 16), (0, 16)],
        &[(0, 64)],
    ];
    for read in reads {
        let (mut image, ram) = (Image::EMPTY, Ram::new());
        for &(start, len) in read {
            image.read_message(&ram, at(start), &mut [0; 64][..len]);
            assert!(image.holds(at(start)));
        }
        image.invalidate_messages();
        for offset in [0, 16, 32, 48] {
            assert!(!image.holds(at(offset)), "{read:?}: {offset}");
        }
    }
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
