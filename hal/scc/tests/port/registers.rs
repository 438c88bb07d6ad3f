//! The chip's known traps (docs/hardware.md A7), each with and without its remedy: those of
//! registers, H6, H7, H8 and H10; and whom they belong to. `hazards.rs` has those of caches and
//! buffers.

use std::cell::RefCell;
use std::rc::Rc;

use crate::chip::{Chip, Policy};
use flagpost_hal::{Address, CoreId, Region, TestAndSet, Topology, UncachedMemory};
use flagpost_scc::registers::{self, CoreConfig};
use flagpost_scc::{Attribute, Bus, Counter, Map, Mapping, Physical, Processor};

const MAP: Map = Map::SCC;

fn chip() -> Chip {
    Chip::new(Policy::PseudoLru)
}

fn buffer(core: u16, offset: usize) -> Address {
    Region::message_buffer(CoreId::new(core)).at(offset)
}

// ---- H6: the lock, and its semantics ----

fn register(core: u16) -> Physical {
    let core = CoreId::new(core);
    MAP.registers(core).plus(registers::lock(core.get() % 2))
}

#[test]
fn h6_the_register_is_read_to_take_and_written_to_free() {
    let chip = chip();
    let bus = chip.bus(9);
    let at = register(5);
    let load = || bus.load_u32(at, Attribute::Uncached);
    assert_eq!(load(), 0, "held after reset, by nobody");
    for value in [0, 1, 0xFFFF_FFFF] {
        bus.store_u32(at, Attribute::Uncached, value);
        bus.store_u32(at, Attribute::Uncached, value); // twice is once
        assert_eq!(
            [load(), load(), load()],
            [1, 0, 0],
            "any write frees it: {value}"
        );
    }
    bus.store_u8(at, Attribute::Uncached, 0);
    assert_eq!([load(), load()], [1, 0], "single bytes, as RCCE does it");
}

#[test]
fn h6_the_port_takes_and_frees_every_core_s_register() {
    let chip = chip();
    let scc: Vec<_> = (0..48)
        .map(|core| chip.scc(core, Mapping::default()))
        .collect();
    for of in (0..48).map(CoreId::new) {
        let held = scc[7].try_lock(of).expect("free");
        assert!(
            scc.iter().all(|other| other.try_lock(of).is_none()),
            "not re-entrant"
        );
        // All others are free meanwhile.
        let next = CoreId::new((of.get() + 1) % 48);
        drop(scc[9].try_lock(next).expect("another register"));
        drop(held);
        drop(scc[8].try_lock(of).expect("free again"));
    }
}

#[test]
fn h6_interrupts_are_masked_from_the_first_register_to_the_last() {
    let chip = chip();
    let scc = [0, 1].map(|core| chip.scc(core, Mapping::default()));
    let bus = scc[0].bus();
    let first = scc[0].try_lock(CoreId::new(0)).unwrap();
    assert!(!bus.admits_interrupts());
    let second = scc[0].try_lock(CoreId::new(1)).unwrap();
    assert!(scc[0].try_lock(CoreId::new(0)).is_none());
    drop(first);
    assert!(!bus.admits_interrupts());
    drop(second);
    assert!(bus.admits_interrupts());
    // One that was not to be had leaves them as they were.
    let other = scc[1].try_lock(CoreId::new(0)).unwrap();
    assert!(scc[0].try_lock(CoreId::new(0)).is_none());
    assert!(bus.admits_interrupts());
    drop(other);
    // And so do programs that have them off anyway.
    bus.set_interrupts(false);
    drop(scc[0].try_lock(CoreId::new(0)));
    assert!(!bus.admits_interrupts());
}

#[test]
fn h6_interrupts_are_masked_before_the_register_is_read_and_until_it_is_freed() {
    let chip = chip();
    let scc = chip.scc(0, Mapping::default());
    let seen = Rc::new(RefCell::new(Vec::new()));
    let look_before = |what: &'static str| {
        let (bus, seen) = (scc.bus().clone(), seen.clone());
        scc.bus().before(1, move || {
            seen.borrow_mut().push((what, bus.admits_interrupts()));
        });
    };
    look_before("taken");
    let held = scc.try_lock(CoreId::new(0)).expect("free");
    look_before("freed");
    drop(held);
    assert_eq!(*seen.borrow(), [("taken", false), ("freed", false)]);
    assert!(scc.bus().admits_interrupts());
}

// ---- H7: nothing is protected ----

/// The chip's model refuses stores to registers other than locks and configurations (and the
/// board's counters). Of a configuration the port changes the bell, and no other bit, whatever the
/// others are.
#[test]
fn h7_the_port_changes_one_bit_of_a_configuration() {
    let chip = chip();
    let scc: Vec<_> = (0..48)
        .map(|core| chip.scc(core, Mapping::default()))
        .collect();
    for of in (0..48).map(CoreId::new) {
        drop(scc[11].try_lock(of).expect("free"));
        scc[11].ring(of);
        scc[of.index()].wait_for_ring();
    }
    let stored = chip.board().stored.borrow();
    // Silenced at start, rung, silenced.
    assert_eq!(stored.len(), 3 * 48, "configurations stored");
    let other = |&&(_, changed): &&(u32, u32)| changed & !CoreConfig::INTR.bits() != 0;
    assert_eq!(stored.iter().find(other), None);
}

// ---- H8: the doorbell ----

fn bell(chip: &Chip, core: u16) -> bool {
    CoreConfig::from_bits_retain(chip.board().config(core)).contains(CoreConfig::INTR)
}

#[test]
fn h8_start_silences_the_bell_and_nothing_else() {
    let chip = chip();
    let before = chip.board().config(6);
    assert!(bell(&chip, 6));
    chip.scc(6, Mapping::default());
    assert_eq!(chip.board().config(6), before & !2);
}

/// The trap: two cores change the register at the same time, and the later one writes back what it
/// read.
#[test]
fn h8_the_trap_two_writers_lose_a_bit() {
    let chip = chip();
    chip.scc(6, Mapping::default());
    let (a, b) = (chip.bus(0), chip.bus(1));
    let at = MAP
        .registers(CoreId::new(6))
        .plus(registers::core_config(0));
    let old = a.load_u32(at, Attribute::Uncached);
    b.store_u32(at, Attribute::Uncached, old | CoreConfig::INTR.bits());
    a.store_u32(at, Attribute::Uncached, old | CoreConfig::NMI.bits());
    assert!(!bell(&chip, 6), "the ring is lost");
}

/// The port changes it under the target's register: while another holds that, it waits.
#[test]
fn h8_the_port_rings_under_the_targets_register() {
    let chip = chip();
    let scc = [0, 1, 6].map(|core| chip.scc(core, Mapping::default()));
    let target = CoreId::new(6);
    // Core 1 is in its critical section, and sets another bit in it.
    let writer = chip.bus(1);
    let at = MAP.registers(target).plus(registers::core_config(0));
    let held = scc[1].try_lock(target).unwrap();
    core::mem::forget(held); // freed below, by hand
    let old = writer.load_u32(at, Attribute::Uncached);
    // The ringer finds the lock taken; before it looks again, core 1 finishes. A ringer without the
    // lock would have read the register by then, and now write it back.
    scc[0].bus().before(2, move || {
        writer.store_u32(at, Attribute::Uncached, old | CoreConfig::NMI.bits());
        writer.store_u32(register(6), Attribute::Uncached, 0);
    });
    scc[0].ring(target);
    let config = CoreConfig::from_bits_retain(chip.board().config(6));
    assert!(
        config.contains(CoreConfig::INTR | CoreConfig::NMI),
        "{config:?}"
    );
    scc[2].wait_for_ring();
    assert!(!bell(&chip, 6));
    assert!(
        scc[2].try_lock(target).is_some(),
        "the register is free again"
    );
}

/// Rings while one is pending are merged, and a ring after the clear is a new one.
#[test]
fn h8_no_ring_is_lost_or_stuck() {
    let chip = chip();
    let scc = [0, 6].map(|core| chip.scc(core, Mapping::default()));
    for _ in 0..3 {
        scc[0].ring(CoreId::new(6));
        scc[0].ring(CoreId::new(6));
        assert!(bell(&chip, 6));
        scc[1].wait_for_ring();
        assert!(!bell(&chip, 6));
    }
    // It waits: until somebody rings.
    let ringer = scc[0].clone();
    scc[1].bus().before(2, move || ringer.ring(CoreId::new(6)));
    scc[1].wait_for_ring();
}

// ---- H10: two-step counters ----

#[test]
fn h10_the_trap_low_then_high_tears() {
    let chip = chip();
    chip.board().time.set(0xFFFF_FFFF);
    let bus = chip.bus(0);
    let load = |offset| u64::from(bus.load_u32(Map::fpga().plus(offset), Attribute::Uncached));
    let torn = load(0x8224) | load(0x8228) << 32;
    assert_eq!(torn, 0x1_FFFF_FFFF, "half a minute ahead of its time");
}

#[test]
fn h10_high_low_high_does_not() {
    let chip = chip();
    let scc = chip.scc(0, Mapping::default());
    for start in [0, 0xFFFF_FFFD, 0xFFFF_FFFE, 0xFFFF_FFFF, 0x1_0000_0000] {
        chip.board().time.set(start);
        let seen = scc.fpga().time();
        assert!((start..start + 6).contains(&seen), "{start:#x}: {seen:#x}");
    }
}

#[test]
fn counters_count_when_read_and_not_when_looked_at() {
    let chip = chip();
    let scc = [0, 40].map(|core| chip.scc(core, Mapping::default()));
    for number in [0, 47, 48, 95] {
        let counter = Counter::new(number).unwrap();
        scc[0].fpga().set(counter, 5);
        assert_eq!(scc[1].fpga().increment(counter), 5);
        assert_eq!(scc[0].fpga().increment(counter), 6);
        assert_eq!(
            [scc[0].fpga().get(counter), scc[1].fpga().get(counter)],
            [7, 7]
        );
    }
}

// ---- Who am I ----

#[test]
fn every_core_finds_out_its_number() {
    let chip = chip();
    for core in 0..48 {
        let scc = chip.scc(core, Mapping::default());
        assert_eq!(scc.core(), CoreId::new(core));
        assert_eq!(scc.cores(), 48);
    }
}

/// An address outside its region stops the machine, and touches nothing (U1).
#[test]
#[should_panic(expected = "not inside a region")]
fn addresses_outside_stop_the_machine() {
    chip()
        .scc(0, Mapping::default())
        .store_u32(buffer(1, 8160), 1);
}

#[test]
#[should_panic(expected = "not aligned")]
fn misaligned_words_stop_the_machine() {
    chip().scc(0, Mapping::default()).load_u32(buffer(1, 2));
}

#[test]
#[should_panic(expected = "no such core")]
fn registers_of_nobody_stop_the_machine() {
    chip().scc(0, Mapping::default()).clear(CoreId::new(48));
}
