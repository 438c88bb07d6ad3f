//! Where on the emulated mesh an address leads: to memory of the PC, or to a register.
//!
//! The core's physical address goes through its default lookup table ([`Entry`]), as on the chip:
//! the entry's tile and sub-destination decide. Memory controllers and message buffers then are
//! ranges of the PC's memory; register banks and the FPGA are not memory.
//!
//! ```text
//!   core-physical                            memory of the PC                      shared
//!   0 .. 8 MiB, of 41 slots                  0x0900_0000 + 8 MiB x core            no
//!   0x2800_0000, 256 KiB displacement area   0x0800_0000, one for all: only read   yes
//!   0x8000_0000, 64 MiB of shared memory     0x0400_0000                           yes
//!   0xC000_0000 + 16 MiB x tile, 16 KiB      0x0380_0000 + 16 KiB x tile           yes
//! ```
//! All else of private memory is not there.

use flagpost_hal::CoreId;
use flagpost_scc::lut::{self, Entry, PRIVATE_SLOTS, SubDestination};
use flagpost_scc::map::{BUFFER, SLOT, TILE_CORES};
use flagpost_scc::{Controller, Map, Physical, Position};

/// Bytes of private memory per core that are there.
pub const PRIVATE: u32 = 8 << 20;
/// Where the private memory of core 0 is; the others' follow.
pub const PRIVATES: u32 = 0x0900_0000;

const DISPLACEMENT: u32 = 0x0800_0000;
const DISPLACEMENT_SIZE: u32 = 256 << 10;
const DISPLACEMENT_SLOT: u32 = 0x28;
const MEMORY: u32 = 0x0400_0000;
const BUFFERS: u32 = 0x0380_0000;
const TILE_BUFFER: u32 = BUFFER * TILE_CORES as u32;

/// What an address leads to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// This byte of the PC's memory.
    Memory(u32),
    /// A byte of the register bank of the tile with this number.
    Bank {
        /// Number of the tile, row by row.
        tile: u16,
        /// Offset in the bank.
        offset: u32,
    },
    /// A byte of the board's FPGA.
    Fpga {
        /// Offset in its slot.
        offset: u32,
    },
}

/// Where `core`'s address `at` leads. `None` if nothing is there.
pub fn place(core: CoreId, at: Physical) -> Option<Place> {
    let slot = lut::slot(at);
    if slot == lut::slot(Map::fpga()) {
        // No source gives this entry of the table.
        let offset = at.get() % SLOT;
        return Some(Place::Fpga { offset });
    }
    let to = Entry::default_of(core, slot)?.translate(at);
    let tile = Map::SCC.core(to.tile, 0).get() / TILE_CORES;
    let within = u32::try_from(to.address);
    match to.sub {
        SubDestination::MessageBuffer => {
            let offset = within.ok().filter(|offset| *offset < TILE_BUFFER)?;
            Some(Place::Memory(
                BUFFERS + u32::from(tile) * TILE_BUFFER + offset,
            ))
        }
        SubDestination::Registers => {
            let offset = within.ok()?;
            Some(Place::Bank { tile, offset })
        }
        SubDestination::West | SubDestination::East => {
            memory(core, controller(to.tile), to.address).map(Place::Memory)
        }
        _ => None,
    }
}

/// The memory controller beside this tile.
fn controller(tile: Position) -> Controller {
    Controller(u8::from(tile.x > 0) + 2 * u8::from(tile.y > 0))
}

/// The byte of the PC's memory that stands for this address of a controller.
fn memory(core: CoreId, controller: Controller, address: u64) -> Option<u32> {
    const SHARED: u32 = 12 * PRIVATE_SLOTS;
    let slot = (address / u64::from(SLOT)) as u32;
    let offset = (address % u64::from(SLOT)) as u32;
    if slot == SHARED {
        return Some(MEMORY + u32::from(controller.0) * SLOT + offset);
    }
    let (index, private) = (slot / PRIVATE_SLOTS, slot % PRIVATE_SLOTS);
    if (Map::SCC.controller(core), Map::SCC.index(core)) != (controller, index) {
        return None; // another core's: no table leads there
    }
    match private {
        0 if offset < PRIVATE => Some(PRIVATES + PRIVATE * u32::from(core.get()) + offset),
        DISPLACEMENT_SLOT if offset < DISPLACEMENT_SIZE => Some(DISPLACEMENT + offset),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flagpost_hal::Region;
    use std::collections::BTreeMap;

    fn cores() -> impl Iterator<Item = CoreId> {
        (0..48).map(CoreId::new)
    }

    /// All cores reach a shared byte at one place, and no two bytes are at one.
    #[test]
    fn regions_are_where_all_cores_find_them_and_do_not_overlap() {
        let mut starts = BTreeMap::new();
        for owner in cores() {
            let memory = Map::SCC.physical(Region::memory(owner).at(0), 1);
            for (at, len) in [
                (memory.expect("a region"), Map::SCC.memory_size()),
                (Map::SCC.buffer(owner), BUFFER),
            ] {
                let ends = [0, len - 1].map(|offset| {
                    let places = cores().map(|core| place(core, at.plus(offset)));
                    let places: Vec<_> = places.collect();
                    assert!(places.iter().all(|one| *one == places[0]));
                    match places[0] {
                        Some(Place::Memory(byte)) => byte,
                        other => panic!("{at:x?}: {other:?}"),
                    }
                });
                assert_eq!(ends[1] - ends[0], len - 1);
                starts.insert(ends[0], ends[1]);
            }
            let byte = |at| match place(owner, Physical::new(at)) {
                Some(Place::Memory(byte)) => byte,
                other => panic!("{at:x}: {other:?}"),
            };
            starts.insert(byte(0), byte(PRIVATE - 1));
            assert_eq!(byte(0x2800_0000), DISPLACEMENT);
            assert_eq!(place(owner, Physical::new(PRIVATE)), None);
            assert_eq!(place(owner, Physical::new(0x0100_0000)), None);
        }
        starts.insert(DISPLACEMENT, DISPLACEMENT + DISPLACEMENT_SIZE - 1);
        assert_eq!(starts.len(), 3 * 48 + 1);
        let (firsts, lasts): (Vec<_>, Vec<_>) = starts.into_iter().unzip();
        assert!(
            lasts
                .iter()
                .zip(&firsts[1..])
                .all(|(last, next)| last < next)
        );
        assert!(lasts[144] < 640 << 20, "QEMU is given 640 MiB");
    }

    /// The last byte of each piece leads somewhere, and the one after it nowhere.
    #[test]
    fn pieces_have_their_ends() {
        for core in cores() {
            let tile = CoreId::new(core.get() / 2 * 2);
            let buffer = Map::SCC.buffer(tile);
            for (start, len) in [
                (buffer, TILE_BUFFER),
                (Physical::new(0), PRIVATE),
                (Physical::new(DISPLACEMENT_SLOT * SLOT), DISPLACEMENT_SIZE),
            ] {
                let last = place(core, start.plus(len - 1));
                assert!(matches!(last, Some(Place::Memory(_))), "{start:x?}");
                assert_eq!(place(core, start.plus(len)), None, "{start:x?}");
            }
        }
    }

    #[test]
    fn banks_are_their_tiles() {
        for core in cores() {
            let tile = core.get() / 2;
            for asker in cores() {
                let found = place(asker, Map::SCC.registers(core).plus(0x200));
                let offset = 0x200;
                assert_eq!(found, Some(Place::Bank { tile, offset }));
            }
            let own = place(core, Map::own_registers().plus(0x100));
            let offset = 0x100;
            assert_eq!(own, Some(Place::Bank { tile, offset }));
        }
        let time = place(CoreId::new(3), Map::fpga().plus(0x8224));
        assert_eq!(time, Some(Place::Fpga { offset: 0x8224 }));
        assert_eq!(place(CoreId::new(3), Physical::new(0xFA00_0000)), None);
    }

    use std::vec::Vec;
}
