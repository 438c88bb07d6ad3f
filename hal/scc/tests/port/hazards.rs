//! The chip's known traps (docs/hardware.md A7), each with and without its remedy: those of caches,
//! buffers and packets, H1 to H5 and H9. `registers.rs` has the others.
//!
//! Two kinds of tests: the trap itself, by raw accesses to the model; and the port in the same
//! situation, which is not caught.

use crate::chip::{Chip, Core, Policy};
use flagpost_hal::{
    Address, CachedMemory, Coherence, CoreId, Lines, MessageBuffer, Region, UncachedMemory,
};
use flagpost_scc::{Attribute, Bus, Map, Mapping, Physical, Processor, Scc};

const MAP: Map = Map::SCC;
const ALL: [Mapping; 3] = [Mapping::Normal, Mapping::Mpbt, Mapping::MpbtWriteThrough];
const MESSAGE: [Mapping; 2] = [Mapping::Mpbt, Mapping::MpbtWriteThrough];

fn chip() -> Chip {
    Chip::new(Policy::PseudoLru)
}

fn own(core: u16, offset: usize) -> Address {
    Region::memory(CoreId::new(core)).at(offset)
}

fn buffer(core: u16, offset: usize) -> Address {
    Region::message_buffer(CoreId::new(core)).at(offset)
}

fn physical(at: Address) -> Physical {
    MAP.physical(at, 4).unwrap()
}

fn lines(at: Address, len: usize) -> Lines {
    Lines::covering::<Scc<Core>>(at, len)
}

/// What memory holds, whatever any core's caches and buffers say: seen by a core that has none of
/// it.
fn in_memory(chip: &Chip, at: Address) -> u32 {
    chip.bus(47).load_u32(physical(at), Attribute::Uncached)
}

fn read(scc: &Scc<Core>, at: Address) -> u32 {
    let mut bytes = [0; 4];
    scc.read(at, &mut bytes);
    u32::from_le_bytes(bytes)
}

// ---- H1: the bypass ----

#[test]
fn h1_no_access_of_the_port_goes_by_the_bypass() {
    for core in (0..48).map(CoreId::new) {
        let first = MAP.physical(Region::message_buffer(core).at(0), 1).unwrap();
        assert!((0xC000_0000..0xD800_0000).contains(&first.get()));
        assert!((0xC000_0000..0xD800_0000).contains(&MAP.dummy_line(core).get()));
    }
}

/// The model refuses to take it: every other test of the port shows that it does not.
#[test]
#[should_panic(expected = "by the bypass")]
fn h1_the_trap_the_model_lets_nobody_take_it() {
    chip()
        .bus(0)
        .load_u32(Physical::new(0xD800_0000), Attribute::Uncached);
}

// ---- H2: a store that hits an MPBT line ----

#[test]
fn h2_the_trap_a_store_that_hits_is_discarded() {
    let chip = chip();
    let core = chip.bus(0);
    let at = physical(buffer(0, 64));
    core.load_u32(at, Attribute::Mpbt);
    core.store_u32(at, Attribute::Mpbt, 7);
    core.store_u32(MAP.dummy_line(CoreId::new(0)), Attribute::Mpbt, 0);
    assert_eq!(in_memory(&chip, buffer(0, 64)), 0, "it stayed in L1");
    core.cl1invmb();
    assert_eq!(core.load_u32(at, Attribute::Mpbt), 0, "and is lost");
    // The same with write-through: not caught.
    core.store_u32(at, Attribute::MpbtWriteThrough, 7);
    core.store_u32(MAP.dummy_line(CoreId::new(0)), Attribute::Mpbt, 0);
    core.cl1invmb();
    assert_eq!(core.load_u32(at, Attribute::Mpbt), 7);
}

/// Read, modify, write; then refresh: with each mapping, through the cache and in bulk.
#[test]
fn h2_the_port_loses_no_store() {
    for mapping in ALL {
        let chip = chip();
        let scc = chip.scc(0, mapping);
        for at in [own(0, 64), buffer(0, 64)] {
            for turn in 1..4 {
                let value = read(&scc, at) + 1;
                scc.write(at, &value.to_le_bytes());
                assert_eq!(read(&scc, at), turn, "{mapping:?}: own store");
                scc.write_back(&[lines(at, 4)]);
                scc.drain();
                assert_eq!(in_memory(&chip, at), turn, "{mapping:?}: published");
                scc.invalidate(&[lines(at, 4)]);
                assert_eq!(read(&scc, at), turn, "{mapping:?}: refreshed");
            }
            read(&scc, at);
            scc.store_bytes(at, &9_u32.to_le_bytes());
            scc.drain();
            scc.invalidate(&[lines(at, 4)]);
            assert_eq!(
                read(&scc, at),
                9,
                "{mapping:?}: bulk store over a line in L1"
            );
        }
    }
}

// ---- H3: a stale line over fresh memory ----

#[test]
fn h3_the_trap_an_evicted_line_destroys_its_neighbours_bytes() {
    for attribute in [Attribute::Normal, Attribute::Mpbt] {
        let chip = chip();
        let core = chip.bus(0);
        let (mine, theirs) = (own(0, 0), own(0, 4));
        core.load_u32(physical(mine), attribute);
        core.store_u32(physical(mine), attribute, 1);
        chip.bus(1)
            .store_u32(physical(theirs), Attribute::Uncached, 2);
        core.evict(physical(mine));
        assert_eq!(
            in_memory(&chip, theirs),
            0,
            "{attribute:?}: the peer's store is gone"
        );
    }
}

/// With message mappings no line is ever dirty, whatever the kernel does: nothing can travel back.
#[test]
fn h3_message_mappings_have_no_dirty_lines() {
    for mapping in MESSAGE {
        let chip = chip();
        let scc = [0, 1].map(|core| chip.scc(core, mapping));
        for at in [own(0, 0), buffer(0, 0)] {
            read(&scc[0], at);
            scc[0].write(at, &[1; 4]);
            scc[0].drain();
            scc[1].store_u32(at.plus(4), 2);
            assert_eq!(scc[0].bus().dirty(|_| true), 0);
            scc[0].bus().evict(physical(at));
            assert_eq!(in_memory(&chip, at.plus(4)), 2, "{mapping:?}");
        }
    }
}

// ---- H4: the write-combining buffer keeps the last line ----

#[test]
fn h4_the_trap_nothing_but_another_line_empties_the_buffer() {
    let chip = chip();
    let core = chip.bus(0);
    let (data, flag) = (own(1, 0), own(1, 32));
    core.store_u32(physical(data), Attribute::MpbtWriteThrough, 1);
    core.cl1invmb();
    core.wbinvd();
    core.load_u32(physical(flag), Attribute::Uncached);
    core.store_u32(physical(flag), Attribute::Uncached, 0);
    assert_eq!(in_memory(&chip, data), 0, "not by all of these");
    core.store_u32(physical(flag), Attribute::MpbtWriteThrough, 1);
    assert_eq!(in_memory(&chip, data), 1, "the flag pushes the data out");
    assert_eq!(in_memory(&chip, flag), 0, "and stays itself");
}

#[test]
fn h4_drain_empties_it() {
    for mapping in ALL {
        let chip = chip();
        let scc = chip.scc(0, mapping);
        scc.store_bytes(own(1, 40), &[1; 4]);
        assert_eq!(in_memory(&chip, own(1, 40)), 0, "{mapping:?}: still inside");
        scc.drain();
        assert_eq!(in_memory(&chip, own(1, 40)), 0x0101_0101, "{mapping:?}");
    }
}

/// The dummy line is in nobody's region: draining changes no byte that anybody owns.
#[test]
fn h4_the_dummy_line_is_reserved() {
    let chip = chip();
    let scc = chip.scc(3, Mapping::default());
    let size = scc.message_buffer_size();
    assert_eq!(size, 8160);
    let all = vec![0xAB; size];
    scc.store_bytes(buffer(3, 0), &all);
    scc.drain();
    scc.store_bytes(own(1, 0), &[5; 5]);
    scc.drain();
    let mut seen = vec![0; size];
    chip.scc(4, Mapping::default())
        .load_bytes(buffer(3, 0), &mut seen);
    assert!(seen == all);
}

/// A drain that has nothing to take out is no access at all.
#[test]
fn drain_is_free_when_nothing_is_pending() {
    let chip = chip();
    let scc = chip.scc(0, Mapping::default());
    scc.store_u32(own(1, 0), 1);
    let dummy = MAP.dummy_line(CoreId::new(0));
    chip.bus(1).store_u32(dummy, Attribute::Uncached, 77);
    scc.drain();
    scc.store_bytes(own(1, 0), &[1; 4]);
    scc.store_bytes(own(1, 0), &[]);
    let dummy = |_: ()| chip.bus(1).load_u32(dummy, Attribute::Uncached);
    assert_eq!(dummy(()), 77);
    scc.drain();
    scc.store_bytes(own(1, 0), &[1; 4]); // pushes the dummy line out
    assert_eq!(dummy(()), 0);
}

// ---- H5: uncached and cached views of one line ----

#[test]
fn h5_the_trap_an_uncached_store_passes_the_buffer_by() {
    let chip = chip();
    let core = chip.bus(0);
    let at = physical(own(1, 0));
    core.store_u32(at, Attribute::MpbtWriteThrough, 1); // older
    core.store_u32(at, Attribute::Uncached, 2); // younger
    assert_eq!(core.load_u32(at, Attribute::Uncached), 2);
    core.store_u32(physical(own(1, 32)), Attribute::MpbtWriteThrough, 0);
    assert_eq!(in_memory(&chip, own(1, 0)), 1, "the older store wins");
}

/// U5: accesses to the same bytes are in program order, in every combination.
#[test]
fn h5_the_port_keeps_the_order_of_accesses_to_the_same_bytes() {
    for mapping in ALL {
        let chip = chip();
        let scc = chip.scc(0, mapping);
        for at in [own(0, 28), own(1, 28), buffer(0, 28), buffer(1, 28)] {
            // Two lines: the second one stays in the buffer.
            let behind = at.plus(4);
            let bulk = |value: u8| scc.store_bytes(at, &[value; 8]);
            let is = |found: u32, value: u32, what: &str| {
                assert_eq!(found, value, "{mapping:?}: {what}");
            };
            bulk(1);
            scc.store_u32(behind, 2);
            scc.drain();
            is(in_memory(&chip, behind), 2, "word over bulk");
            bulk(3);
            is(scc.load_u32(behind), 0x0303_0303, "word of bulk");
            bulk(4);
            is(scc.load_u8(behind.plus(3)).into(), 4, "byte of bulk");
            bulk(5);
            scc.store_u8(behind, 6);
            scc.drain();
            is(in_memory(&chip, behind), 0x0505_0506, "byte over bulk");
            bulk(7);
            let mut seen = [0; 64];
            scc.load_bytes(at, &mut seen[..8]);
            assert_eq!(seen[..8], [7; 8], "{mapping:?}: bulk of bulk");
            bulk(8);
            scc.load_bytes(at, &mut seen);
            assert_eq!(seen[..8], [8; 8], "{mapping:?}: much of bulk");
            scc.store_u32(behind, 9);
            bulk(10);
            scc.drain();
            is(in_memory(&chip, behind), 0x0A0A_0A0A, "bulk over word");
        }
    }
}

/// Own cached stores are seen by own cached loads, though a store that misses only goes to the
/// buffer.
#[test]
fn h5_a_core_reads_what_it_wrote() {
    for mapping in ALL {
        let scc = chip().scc(0, mapping);
        for at in [own(0, 30), buffer(0, 30)] {
            scc.write(at, &[1, 2, 3, 4]);
            let mut seen = [0; 4];
            scc.read(at, &mut seen);
            assert_eq!(seen, [1, 2, 3, 4], "{mapping:?}");
        }
    }
}

/// W2: own bulk bytes that are still in the buffer do not arrive over a later cached store to the
/// same line.
#[test]
fn h5_a_cached_store_comes_behind_bulk_bytes_of_its_line() {
    for mapping in ALL {
        let chip = chip();
        let scc = chip.scc(0, mapping);
        let (first, last) = (own(0, 0), own(0, 4));
        scc.store_bytes(first, &[2; 8]);
        scc.write(last, &[3; 4]);
        scc.write_back(&[lines(last, 4)]);
        scc.drain();
        assert_eq!(in_memory(&chip, first), 0x0202_0202, "{mapping:?}");
        assert_eq!(in_memory(&chip, last), 0x0303_0303, "{mapping:?}");
    }
}

/// U3: bulk loads return what memory holds, though the same lines are in L1.
#[test]
fn h5_bulk_loads_are_fresh() {
    for mapping in ALL {
        let chip = chip();
        let scc = chip.scc(0, mapping);
        for at in [own(0, 0), own(1, 0), buffer(0, 0), buffer(1, 0)] {
            for value in 1..4_u8 {
                read(&scc, at);
                let peer = chip.scc(2, mapping);
                peer.store_bytes(at, &[value; 64]);
                peer.drain();
                for len in [4, 20, 64] {
                    let mut seen = [0; 64];
                    scc.load_bytes(at, &mut seen[..len]);
                    assert_eq!(seen[..len], [value; 64][..len], "{mapping:?} {at}");
                }
            }
        }
    }
}

/// Staleness itself: cached reads are old until `invalidate`, with every mapping.
#[test]
fn h5_cached_reads_are_stale_until_invalidate() {
    for mapping in ALL {
        let chip = chip();
        let scc = [0, 1].map(|core| chip.scc(core, mapping));
        for at in [own(0, 0), buffer(0, 0)] {
            assert_eq!(read(&scc[0], at), 0);
            scc[1].store_u32(at, 5);
            assert_eq!(read(&scc[0], at), 0, "{mapping:?}");
            scc[0].invalidate(&[lines(at, 0)]);
            assert_eq!(read(&scc[0], at), 0, "{mapping:?}: no line named");
            scc[0].invalidate(&[lines(at, 4)]);
            assert_eq!(read(&scc[0], at), 5, "{mapping:?}");
        }
    }
}

// ---- H9: 16-byte neighbours ----

/// Two cores each store a record of `len` bytes to one line, 16 bytes apart: what of the first one
/// is left.
fn neighbours(chip: &Chip, len: usize) -> Vec<u8> {
    let records = [(0, own(1, 0)), (2, own(1, 16))];
    for (core, at) in records {
        let scc = chip.scc(core, Mapping::default());
        scc.store_bytes(at, &vec![core as u8 + 1; len]);
        scc.drain();
    }
    let mut seen = vec![0; len];
    chip.scc(4, Mapping::default())
        .load_bytes(own(1, 0), &mut seen);
    seen
}

#[test]
fn h9_the_trap_a_record_takes_its_neighbour_of_the_same_line_away() {
    let chip = Chip::that_pads(Policy::PseudoLru);
    assert_eq!(neighbours(&chip, 12), [0; 12], "the first record is gone");
    assert_eq!(neighbours(&chip, 8), [1; 8], "8 bytes travel as they are");
    // Where every byte has its bit, as others report it: not caught.
    assert_eq!(neighbours(&self::chip(), 12), [1; 12]);
}

/// What the kernel's records of several writers are: whole lines, or single words.
#[test]
fn h9_lines_and_words_are_not_caught() {
    for mapping in ALL {
        let chip = Chip::that_pads(Policy::PseudoLru);
        let writers = [0, 2, 3].map(|core| chip.scc(core, mapping));
        for at in [own(1, 0), buffer(1, 0)] {
            for (turn, value) in [(0, 1_u8), (1, 2)] {
                for (scc, n) in writers.iter().zip(0..) {
                    scc.store_bytes(at.plus(32 * n), &[value << 4 | n as u8; 32]);
                    scc.drain();
                    scc.store_u32(at.plus(128 + 4 * n), u32::from(value) << 4 | n as u32);
                    scc.store_u8(at.plus(160 + n), value << 4 | n as u8);
                }
                let reader = chip.scc(5, mapping);
                for n in 0..3 {
                    let want = value << 4 | n as u8;
                    let mut line = [0; 32];
                    reader.load_bytes(at.plus(32 * n), &mut line);
                    assert_eq!(line, [want; 32], "{mapping:?}, {turn}: line {n}");
                    let word = reader.load_u32(at.plus(128 + 4 * n));
                    assert_eq!(word, u32::from(want), "{mapping:?}, {turn}: word {n}");
                    let byte = reader.load_u8(at.plus(160 + n));
                    assert_eq!(byte, want, "{mapping:?}, {turn}: byte {n}");
                }
            }
        }
    }
}
