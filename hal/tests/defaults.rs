//! Every default method of every trait, on a machine that overrides none.

use std::cell::{Cell, RefCell};
use std::panic::Location;

use flagpost_hal::{
    Address, Amo, CachedMemory, Clock, Coherence, CoreId, Expected, Kind, Lines, MessageBuffer,
    NativeAtomics, Region, Relax, TestAndSet, Topology, UncachedMemory, Watch,
};
use flagpost_record::Records;

const MEMORY: usize = 64;
const BUFFER: usize = 16;
const ME: CoreId = CoreId::new(1);
const OTHER: CoreId = CoreId::new(0);

/// Plain bytes, one register, and an account of what was called.
struct Plain {
    memory: RefCell<[[u8; MEMORY]; 2]>,
    held: Cell<bool>,
    now: Cell<u64>,
    calls: RefCell<Vec<String>>,
}

impl Plain {
    fn new() -> Self {
        let ascending = std::array::from_fn(|offset| offset as u8);
        let others = std::array::from_fn(|offset| 0x80 + offset as u8);
        Self {
            memory: RefCell::new([others, ascending]),
            held: Cell::new(false),
            now: Cell::new(0),
            calls: RefCell::new(vec![]),
        }
    }

    fn called(&self, what: impl Into<String>) {
        self.calls.borrow_mut().push(what.into());
    }

    /// What was called since the last look.
    fn account(&self) -> Vec<String> {
        self.calls.take()
    }

    /// Loads past the account.
    fn peek(&self, at: Address, len: usize) -> Vec<u8> {
        assert_eq!(at.region.kind, Kind::Memory);
        self.memory.borrow()[at.region.owner.index()][at.offset..][..len].to_vec()
    }

    /// Stores past the account.
    fn poke(&self, at: Address, bytes: &[u8]) {
        assert_eq!(at.region.kind, Kind::Memory);
        self.memory.borrow_mut()[at.region.owner.index()][at.offset..][..bytes.len()]
            .copy_from_slice(bytes);
    }
}

impl UncachedMemory for Plain {
    fn load_u8(&self, at: Address) -> u8 {
        self.called(format!("load_u8 {at}"));
        self.peek(at, 1)[0]
    }

    fn store_u8(&self, at: Address, value: u8) {
        self.called(format!("store_u8 {at}"));
        self.poke(at, &[value]);
    }

    fn load_u32(&self, at: Address) -> u32 {
        assert_eq!(at.offset % 4, 0, "U1: {at}");
        self.called(format!("load_u32 {at}"));
        u32::from_le_bytes(self.peek(at, 4).try_into().unwrap())
    }

    fn store_u32(&self, at: Address, value: u32) {
        assert_eq!(at.offset % 4, 0, "U1: {at}");
        self.called(format!("store_u32 {at}"));
        self.poke(at, &value.to_le_bytes());
    }

    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.called(format!("store_bytes {at} {}", from.len()));
        self.poke(at, from);
    }
}

impl CachedMemory for Plain {
    fn read(&self, at: Address, into: &mut [u8]) {
        into.copy_from_slice(&self.peek(at, into.len()));
    }

    fn write(&self, at: Address, from: &[u8]) {
        self.poke(at, from);
    }
}

// SAFETY: one thread, no cache: every store is in memory when it returns.
unsafe impl Coherence for Plain {
    const LINE: usize = 16;

    fn write_back(&self, _: &[Lines]) {}

    fn invalidate(&self, _: &[Lines]) {}

    fn drain(&self) {
        self.called("drain");
    }

    fn acquire(&self) {
        self.called("acquire");
    }
}

impl TestAndSet for Plain {
    fn test_and_set(&self, of: CoreId) -> bool {
        self.called(format!("test_and_set {of}"));
        !self.held.replace(true)
    }

    fn clear(&self, of: CoreId) {
        self.called(format!("clear {of}"));
        self.held.set(false);
    }
}

impl MessageBuffer for Plain {
    fn message_buffer_size(&self) -> usize {
        BUFFER
    }
}

impl Topology for Plain {
    fn cores(&self) -> u16 {
        2
    }

    fn core(&self) -> CoreId {
        ME
    }

    fn memory_size(&self) -> usize {
        MEMORY
    }
}

impl Clock for Plain {
    fn cycles(&self) -> u64 {
        self.now.replace(self.now.get() + 1)
    }

    fn hertz(&self) -> u64 {
        1_000_000
    }
}

impl Relax for Plain {
    fn relax(&self, watched: &[Watch]) {
        self.called(format!("relax {}", watched.len()));
    }
}

impl Records for Plain {}

impl NativeAtomics for Plain {
    type Word = u32;

    fn atomic_u32(&self, at: Address, _: Amo<u32>) -> u32 {
        self.load_u32(at)
    }
}

fn own(offset: usize) -> Address {
    Region::memory(ME).at(offset)
}

/// All offsets in two words, and all lengths up to four words. Offset and length of (1, 1), (1, 2)
/// and (2, 1) end before the first word does.
#[test]
fn bulk_loads_of_every_offset_and_length_load_all_bytes_and_no_others() {
    let machine = Plain::new();
    for offset in 0..8 {
        for len in 0..=16 {
            let mut into = [0xEE; 20];
            machine.load_bytes(own(offset), &mut into[..len]);
            let expected: Vec<u8> = (offset as u8..).take(len).collect();
            assert_eq!(into[..len], expected, "{len} bytes at {offset}");
            assert!(
                into[len..].iter().all(|&byte| byte == 0xEE),
                "{len} bytes at {offset}"
            );
            // U1: no byte outside.
            for call in machine.account() {
                let (call, at) = call.split_once(" memory[1]+0x").unwrap();
                let at = usize::from_str_radix(at, 16).unwrap();
                let end = at + if call == "load_u32" { 4 } else { 1 };
                let inside = offset..=offset + len;
                assert!(
                    inside.contains(&at) && inside.contains(&end),
                    "{call} at {at}"
                );
            }
        }
    }
}

/// Whole words are loaded as words: each is seen whole, as ring entries demand.
#[test]
fn bulk_loads_load_words_whole() {
    let machine = Plain::new();
    machine.load_bytes(own(3), &mut [0; 6]);
    let byte = |at: &str| format!("load_u8 memory[1]+{at}");
    assert_eq!(
        machine.account(),
        [byte("0x3"), "load_u32 memory[1]+0x4".into(), byte("0x8")]
    );
}

#[test]
fn records_announce_themselves_last() {
    let machine = Plain::new();
    for region in [Region::memory(OTHER), Region::memory(ME)] {
        let at = region.at(32);
        let spot = machine.spot(at);
        let body = [0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908];
        machine.store_record(spot, [0xA3A2_A1A0, 0xB3B2_B1B0], body);
        let [first, second] = [[0xA0, 0xA1, 0xA2, 0xA3], [0xB0, 0xB1, 0xB2, 0xB3]];
        let expected = [&first[..], &second, &Vec::from_iter(0..16)].concat();
        assert_eq!(machine.peek(at, 24), expected);
        let account = machine.account();
        let drained = account.iter().position(|call| call == "drain").unwrap();
        let announced = format!("store_u32 {at}");
        assert_eq!(
            account[drained + 1..],
            [announced],
            "the first word, after all else"
        );
        assert_eq!(machine.load_record(spot), 0xA3A2_A1A0);
        machine.account();
    }
    // A spot counts in units of 8 bytes.
    assert_eq!(machine.spot(own(8)).plus(3), machine.spot(own(32)));
}

#[test]
fn a_record_is_taken_once_it_is_there_and_answered_in_order() {
    let machine = Plain::new();
    let spot = machine.spot(Region::memory(OTHER).at(0));
    let body = [1 << 63 | 7, 2];
    machine.store_record(spot, [5, 6], body);
    machine.account();
    let never = |_, _| panic!("another record was taken");
    assert_eq!(machine.take_record(spot, 4, never), None);
    machine.account();

    let taken = machine.take_record(spot, 5, |second, found| {
        assert_eq!((second, found), (6, body));
        Some(((7, 0x0102_0304_0506_0708), (4, 9)))
    });
    assert_eq!(taken, Some(true));
    assert_eq!(
        machine.peek(own(56), 8),
        [8, 7, 6, 5, 4, 3, 2, 1],
        "the last 8 bytes"
    );
    assert_eq!(machine.peek(own(4), 4), [9, 0, 0, 0]);
    let account = machine.account();
    assert_eq!(account[..2], ["load_u32 memory[0]+0x0", "acquire"]);
    let stores = [
        "store_bytes memory[1]+0x38 8",
        "drain",
        "store_u32 memory[1]+0x4",
    ];
    assert_eq!(account[account.len() - 3..], stores);
}

/// Not named, not inside: nothing is stored.
#[test]
fn a_record_with_a_bad_answer_stores_nothing() {
    let machine = Plain::new();
    let spot = machine.spot(Region::memory(OTHER).at(0));
    machine.store_record(spot, [5, 6], [0; 2]);
    let before = machine.peek(own(0), MEMORY);
    for place in [None, Some(8), Some(1 << 29), Some(u64::MAX - 7)] {
        let answer = place.map(|place| ((place, 1), (0, 1)));
        assert_eq!(
            machine.take_record(spot, 5, |_, _| answer),
            Some(false),
            "{place:?}"
        );
        assert_eq!(machine.peek(own(0), MEMORY), before, "{place:?}");
    }
}

#[test]
fn hints_and_optional_parts_are_off() {
    let machine = Plain::new();
    assert!(!machine.loads_lines(Region::memory(ME)));
    const { assert!(!Plain::LISTENS && !Plain::COHERENT && Plain::LOOKS == 0) };
    assert_eq!((machine.lost(), machine.is_lost(ME)), (None, false));
    machine.ended();
    Topology::called(&machine, Location::caller());
    machine.looks(Location::caller());
    machine.expected(own(8), 8, Expected::Starts);
    assert_eq!(machine.atomic_u64(own(8), Amo::Add(1)), 0);
    assert_eq!(
        machine.peek(own(8), 8),
        Vec::from_iter(8..16),
        "nothing was changed"
    );
    assert_eq!(machine.account(), Vec::<String>::new());
}

#[test]
fn settling_drains_and_then_acquires() {
    let machine = Plain::new();
    machine.settle();
    assert_eq!(machine.account(), ["drain", "acquire"]);
}

#[test]
fn a_lock_is_freed_when_dropped_and_only_by_its_holder() {
    let machine = Plain::new();
    machine.held.set(true); // after reset the state is undefined
    machine.release_at_start(ME);
    assert_eq!(machine.account(), ["clear core 1"]);
    let held = machine.try_lock(OTHER).expect("it is free");
    assert!(machine.try_lock(OTHER).is_none());
    assert_eq!(
        machine.account(),
        ["test_and_set core 0", "test_and_set core 0"]
    );
    drop(held);
    assert_eq!(machine.account(), ["clear core 0"]);
    assert!(machine.try_lock(OTHER).is_some());
}
