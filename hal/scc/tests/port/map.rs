//! Address arithmetic, against the tables of the chip's documents, for all 48 cores.
//!
//! Expected values are written down here, or computed from the documents' formulas in their own
//! form; the code under test computes them otherwise.

use std::collections::HashMap;

use flagpost_hal::{CoreId, Kind, Region};
use flagpost_scc::lut::{self, Destination, Entry, SubDestination};
use flagpost_scc::registers::{self, Clocks, TileId};
use flagpost_scc::{Controller, Counter, Map, Physical, Place, Position};

const MAP: Map = Map::SCC;

fn cores() -> impl Iterator<Item = CoreId> {
    (0..48).map(CoreId::new)
}

/// (x, y, z) of a core, by counting instead of dividing.
fn places() -> impl Iterator<Item = (u16, u16, u16)> {
    (0..4).flat_map(|y| (0..6).flat_map(move |x| (0..2).map(move |z| (x, y, z))))
}

#[test]
fn cores_are_numbered_row_by_row_two_per_tile() {
    for (pid, (x, y, z)) in places().enumerate() {
        assert_eq!(MAP.core(Position { x, y }, z), CoreId::new(pid as u16));
        assert_eq!(MAP.position(CoreId::new(pid as u16)), Position { x, y });
        assert_eq!(pid as u16, 2 * (6 * y + x) + z);
    }
    assert_eq!(MAP.cores(), 48);
}

/// Controller and index of each core: quadrants of 3 x 2 tiles, as in Barrelfish's table of 48.
#[test]
fn each_quadrant_uses_its_controller() {
    #[rustfmt::skip]
    let controllers = [
        [0, 0, 0, 1, 1, 1],
        [0, 0, 0, 1, 1, 1],
        [2, 2, 2, 3, 3, 3],
        [2, 2, 2, 3, 3, 3],
    ];
    #[rustfmt::skip]
    let first_index = [
        [0, 2, 4, 0, 2, 4],
        [6, 8, 10, 6, 8, 10],
        [0, 2, 4, 0, 2, 4],
        [6, 8, 10, 6, 8, 10],
    ];
    for (core, (x, y, z)) in cores().zip(places()) {
        let (row, column) = (usize::from(y), usize::from(x));
        assert_eq!(MAP.controller(core), Controller(controllers[row][column]));
        assert_eq!(MAP.index(core), first_index[row][column] + u32::from(z));
    }
}

#[test]
fn the_nearest_controller_is_the_quadrants() {
    let at = [(0, 0), (5, 0), (0, 2), (5, 2)].map(|(x, y)| Position { x, y });
    for core in cores() {
        let here = MAP.position(core);
        let hops = at.map(|c| c.x.abs_diff(here.x) + c.y.abs_diff(here.y));
        let own = hops[usize::from(MAP.controller(core).0)];
        assert_eq!(Some(own), hops.into_iter().min(), "{core}");
    }
}

#[test]
fn message_buffers_and_register_banks_are_where_the_documents_say() {
    for (core, (x, y, z)) in cores().zip(places()) {
        let tile = 0x0100_0000 * u32::from(6 * y + x);
        let buffer = 0xC000_0000 + tile + 0x2000 * u32::from(z);
        assert_eq!(MAP.buffer(core).get(), buffer);
        assert_eq!(MAP.registers(core).get(), 0xE000_0000 + tile);
        // 8,160 bytes, and the line behind them is the port's own.
        assert_eq!(MAP.region_size(Kind::MessageBuffer), 8160);
        assert_eq!(MAP.dummy_line(core).get(), buffer + 8160);
    }
    assert_eq!(Map::own_registers().get(), 0xF800_0000);
    assert_eq!(Map::fpga().get(), 0xF900_0000);
}

#[test]
fn shared_memory_is_shared_out_in_each_controllers_slot() {
    let slots = [0x8000_0000, 0x8100_0000, 0x8200_0000, 0x8300_0000];
    for core in cores() {
        let slot = slots[usize::from(MAP.controller(core).0)];
        let start = MAP.physical(Region::memory(core).at(0), MAP.memory_size() as usize);
        let expected = slot + MAP.index(core) * 0x15_5000;
        assert_eq!(start, Some(Physical::new(expected)));
        assert!(expected + MAP.memory_size() <= slot + 0x0100_0000);
    }
    assert_eq!(MAP.memory_size(), 0x15_5000);
    assert_eq!(MAP.memory_size() % 4096, 0);
}

#[test]
fn nothing_outside_a_region_has_an_address() {
    let last = CoreId::new(47);
    for region in [Region::memory(last), Region::message_buffer(last)] {
        let size = MAP.region_size(region.kind);
        assert!(MAP.physical(region.at(size - 4), 4).is_some());
        assert!(MAP.physical(region.at(size), 0).is_some());
        assert!(MAP.physical(region.at(size - 4), 5).is_none());
        assert!(MAP.physical(region.at(size + 1), 0).is_none());
        assert!(MAP.physical(region.at(4), usize::MAX).is_none());
    }
    let nobody = Region::memory(CoreId::new(48));
    assert!(MAP.physical(nobody.at(0), 0).is_none());
    let few = MAP.with_cores(5);
    assert!(
        few.physical(Region::memory(CoreId::new(5)).at(0), 1)
            .is_none()
    );
}

/// Every line of every region, on the chip and on boards of other sizes: `place` finds it again,
/// and no two are the same.
#[test]
fn place_is_the_inverse_of_physical() {
    let maps = [
        MAP,
        MAP.with_cores(7),
        MAP.with_memory(8192),
        Map::mesh(16, 16).unwrap().with_memory(4096),
        Map::mesh(2, 4).unwrap(),
    ];
    for map in maps {
        let mut taken = HashMap::new();
        for core in (0..map.cores()).map(CoreId::new) {
            for region in [Region::memory(core), Region::message_buffer(core)] {
                let size = map.region_size(region.kind);
                // The first lines, and the last; shared memory is large.
                for offset in (0..size.min(8192)).step_by(32).chain([size - 32]) {
                    let at = region.at(offset);
                    let physical = map.physical(at, 32).unwrap();
                    assert_eq!(map.place(CoreId::new(0), physical), Place::Shared(at));
                    let before = taken.insert(physical.line(), at);
                    assert!(
                        before.is_none_or(|other| other == at),
                        "{at} and {before:?}"
                    );
                }
            }
            let dummy = Region::message_buffer(core).at(8160);
            let place = map.place(CoreId::new(0), map.dummy_line(core));
            assert_eq!(place, Place::Shared(dummy));
            assert!(!taken.contains_key(&map.dummy_line(core)));
            let bank = Place::Registers {
                tile: core.get() / 2,
                offset: 0x100,
            };
            assert_eq!(map.place(core, map.registers(core).plus(0x100)), bank);
            assert_eq!(map.place(core, Map::own_registers().plus(0x100)), bank);
        }
    }
}

#[test]
fn what_is_not_ours_is_no_place() {
    let place = |at| MAP.place(CoreId::new(3), Physical::new(at));
    assert_eq!(place(0x1234_5678), Place::Private);
    assert_eq!(place(0xF900_8224), Place::Fpga { offset: 0x8224 });
    // The bypass (H1), the mailbox, the hole in a tile's slot, the end of a controller's slot.
    for at in [
        0xD800_0000,
        0xFA00_0000,
        0xC000_4000,
        0x80FF_FFFF,
        0x8400_0000,
        0x2900_0000,
    ] {
        assert_eq!(place(at), Place::Nothing, "{at:#x}");
    }
}

#[test]
fn meshes_are_even_and_fit_the_formats() {
    for (columns, rows) in [
        (0, 4),
        (6, 0),
        (5, 4),
        (6, 3),
        (18, 2),
        (2, 18),
        (u16::MAX, 2),
    ] {
        assert_eq!(Map::mesh(columns, rows), None);
    }
    let board = Map::mesh(16, 16).unwrap();
    assert_eq!(board.cores(), 512);
    assert_eq!(board.memory_size(), 128 << 10); // 16 MiB for 128 cores
    assert_eq!(
        board.buffer(CoreId::new(511)).get(),
        0xC000_0000 + (255 << 20) + 0x2000
    );
}

// ---- Lookup tables ----

#[test]
fn entries_of_shared_memory_are_the_worked_words() {
    let words = [0x0000_19EC, 0x0000_B1EC, 0x0004_19EC, 0x0004_B1EC];
    for core in cores() {
        for (slot, word) in (0x80..).zip(words) {
            assert_eq!(Entry::default_of(core, slot).unwrap().bits(), word);
        }
        assert_eq!(Entry::default_of(core, 0x84), None);
    }
}

#[test]
fn entries_of_tiles_are_the_documents_formulas() {
    for core in cores() {
        for (number, (x, y, _)) in (0..).zip(places().filter(|place| place.2 == 0)) {
            let route = u32::from(y) << 17 | u32::from(x) << 13;
            let entry = |slot: u8| Entry::default_of(core, slot).unwrap().bits();
            assert_eq!(entry(0xC0 + number), route | 3 << 10);
            assert_eq!(entry(0xE0 + number), route | 2 << 10);
        }
        let Position { x, y } = MAP.position(core);
        let own = u32::from(y) << 17 | u32::from(x) << 13 | 1 << 21;
        assert_eq!(Entry::default_of(core, 0xD8).unwrap().bits(), own | 3 << 10);
        assert_eq!(Entry::default_of(core, 0xF8).unwrap().bits(), own | 2 << 10);
    }
}

/// Private memory: 41 slots per core from slot 0x29 * i of its controller; the 12th core's end
/// where the shared slot begins.
#[test]
fn private_slots_are_disjoint_and_end_at_the_shared_one() {
    let mut taken = HashMap::new();
    for core in cores() {
        for slot in 0..0x29_u8 {
            let at = Physical::new(u32::from(slot) << 24);
            let to = Entry::default_of(core, slot).unwrap().translate(at);
            let number = (to.address >> 24) as u32;
            assert_eq!(number, 0x29 * MAP.index(core) + u32::from(slot));
            assert!(number < 0x1EC);
            assert_eq!(taken.insert((to.tile.x, to.tile.y, number), core), None);
        }
        assert_eq!(Entry::default_of(core, 0x29), None);
    }
    assert_eq!(taken.len(), 48 * 41);
}

#[test]
fn controllers_leave_the_mesh_at_routes_00_05_20_25() {
    for core in cores() {
        let to = Entry::default_of(core, 0)
            .unwrap()
            .translate(Physical::new(0));
        let (route, sub) = [
            (0x00, SubDestination::West),
            (0x05, SubDestination::East),
            (0x20, SubDestination::West),
            (0x25, SubDestination::East),
        ][usize::from(MAP.controller(core).0)];
        assert_eq!((to.tile.y << 4 | to.tile.x, to.sub), (route, sub));
    }
}

/// Each address that the port uses means the same on all cores.
#[test]
fn all_cores_translate_regions_and_registers_alike() {
    let translate = |core, at: Physical| -> Destination {
        Entry::default_of(core, lut::slot(at))
            .unwrap()
            .translate(at)
    };
    for owner in cores() {
        let of_memory = MAP.physical(Region::memory(owner).at(68), 4).unwrap();
        let addresses = [
            of_memory,
            MAP.buffer(owner).plus(68),
            MAP.registers(owner).plus(0x200),
        ];
        for at in addresses {
            let first = translate(CoreId::new(0), at);
            assert!(cores().all(|core| translate(core, at) == first), "{at:x?}");
        }
        let to = translate(owner, MAP.buffer(owner));
        let half = 0x2000 * u64::from(owner.get() % 2);
        assert_eq!(
            (to.tile, to.sub),
            (MAP.position(owner), SubDestination::MessageBuffer)
        );
        assert_eq!(to.address, half);
        let to = translate(owner, Map::own_registers());
        assert_eq!(
            (to.tile, to.sub),
            (MAP.position(owner), SubDestination::Registers)
        );
    }
}

// ---- Registers ----

#[test]
fn tile_ids_are_decoded_as_by_the_code_not_as_by_the_comments() {
    // Tile (5, 1), core 1: x in bits 6:3, y in bits 10:7.
    let id = TileId::decode(1 << 7 | 5 << 3 | 1);
    assert_eq!(
        id,
        TileId {
            tile: Position { x: 5, y: 1 },
            z: 1
        }
    );
    // The comments in SCC_API.h have it the other way round: tile (1, 5), and a chip with six rows.
    assert_ne!(id.tile, Position { x: 1, y: 5 });
    for (core, (x, y, z)) in cores().zip(places()) {
        let bits = u32::from(y) << 7 | u32::from(x) << 3 | u32::from(z);
        let id = TileId::decode(bits);
        assert_eq!(MAP.core(id.tile, id.z), core);
        assert_eq!(id.encode(), bits);
    }
}

#[test]
fn registers_are_at_the_documents_offsets() {
    let both = |offset: fn(u16) -> u32| [offset(0), offset(1)];
    assert_eq!(both(registers::core_config), [0x010, 0x018]);
    assert_eq!(both(registers::l2_config), [0x020, 0x028]);
    assert_eq!(both(registers::lock), [0x200, 0x400]);
    assert_eq!(both(|z| registers::lut(z, 0)), [0x800, 0x1000]);
    assert_eq!(registers::lut(0, 255), 0x800 + 255 * 8);
    assert_eq!((registers::CLOCKS, registers::TILE_ID), (0x080, 0x100));
}

#[test]
fn clock_rates_are_compared_as_whole_values() {
    let clocks = |bits| Clocks::from_bits_retain(bits);
    for (bits, rate) in [(0x070_0100, 800), (0x0A8_0200, 533), (0x0E0_0300, 400)] {
        assert_eq!(clocks(bits | 0xE0FF).tile_megahertz(), Some(rate));
    }
    assert_eq!(clocks(0x0A8_0100).tile_megahertz(), None);
    assert_eq!(clocks(0x0A8_E2FF).mesh_megahertz(), Some(800));
    assert_eq!(clocks(0x0A8_72FF).mesh_megahertz(), Some(1600));
}

#[test]
fn counters_are_two_blocks_of_48() {
    let offset = |number| Counter::new(number).map(Counter::offset);
    assert_eq!([offset(0), offset(1)], [Some(0xE000), Some(0xE008)]);
    assert_eq!([offset(47), offset(48)], [Some(0xE178), Some(0xF000)]);
    assert_eq!([offset(95), offset(96)], [Some(0xF178), None]);
}
