//! The registers of all tiles and of the board's FPGA, as far as the port uses them.
//!
//! A test-and-set register remembers the core that took it: a handler of an interrupt that finds
//! one of its own core held has interrupted what must not be interrupted (H6). All words are
//! atomic, and each access is one step, as the mesh makes it.

use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

use flagpost_hal::CoreId;
use flagpost_scc::lut::Entry;
use flagpost_scc::map::TILE_CORES;
use flagpost_scc::registers::{self, CoreConfig, TileId};
use flagpost_scc::{Counter, Map, fpga};

use crate::mesh::Place;
use crate::options::Fault;

/// Cores of the chip.
pub const CORES: usize = 48;

/// A test-and-set register that nobody holds; else the holder's number, plus 1.
const FREE: u32 = 0;
/// Nobody's that can be asked: as after a reset.
const HELD: u32 = !0;

/// The clock setting of 533 MHz.
const CLOCKS: u32 = 0x0A8_0200;

/// All of them.
pub struct Devices {
    locks: [AtomicU32; CORES],
    configs: [AtomicU32; CORES],
    counters: [AtomicU32; Counter::COUNT as usize],
    /// Cores that have been counted by counter 0; cores that have silenced their bell after that.
    counted: [AtomicU32; CORES],
    heard: AtomicU32,
}

/// What a store does besides.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Raises the interrupt of this core.
    Rings(CoreId),
}

enum Register {
    Lock(usize),
    Config(usize),
    Clocks,
    TileId,
    Lut(CoreId, u8),
    /// The clock that all share, shifted right.
    Time(u32),
    Counter(usize),
    CounterValue(usize),
}

/// The register there, if the port uses one.
fn register(place: Place) -> Option<Register> {
    match place {
        Place::Memory(_) => None,
        Place::Bank { tile, offset } => match offset {
            registers::TILE_ID => Some(Register::TileId),
            registers::CLOCKS => Some(Register::Clocks),
            _ => (0..TILE_CORES).find_map(|z| of_core(tile * TILE_CORES + z, z, offset)),
        },
        Place::Fpga { offset } => match offset {
            fpga::TIME_LOW => Some(Register::Time(0)),
            fpga::TIME_HIGH => Some(Register::Time(32)),
            _ => {
                let is = |number: &u32| {
                    Counter::new(*number).is_some_and(|counter| counter.offset() == offset & !7)
                };
                let number = (0..Counter::COUNT).find(is)? as usize;
                match offset % 8 {
                    0 => Some(Register::Counter(number)),
                    4 => Some(Register::CounterValue(number)),
                    _ => None,
                }
            }
        },
    }
}

fn of_core(core: u16, z: u16, offset: u32) -> Option<Register> {
    let table = registers::lut(z, 0)..registers::lut(z, 0) + 8 * 256;
    if offset == registers::lock(z) {
        Some(Register::Lock(core.into()))
    } else if offset == registers::core_config(z) {
        Some(Register::Config(core.into()))
    } else if table.contains(&offset) && offset.is_multiple_of(8) {
        let slot = ((offset - table.start) / 8) as u8;
        Some(Register::Lut(CoreId::new(core), slot))
    } else {
        None
    }
}

impl Default for Devices {
    fn default() -> Self {
        Self::new()
    }
}

impl Devices {
    /// Registers as some reset may leave them: all held, no bell rung.
    pub const fn new() -> Self {
        Self {
            locks: [const { AtomicU32::new(HELD) }; _],
            configs: [const { AtomicU32::new(0) }; _],
            counters: [const { AtomicU32::new(0) }; _],
            counted: [const { AtomicU32::new(0) }; _],
            heard: AtomicU32::new(0),
        }
    }

    /// What `core` loads there, at this time of its clock. `None` if there is nothing to load.
    pub fn load(&self, core: CoreId, place: Place, time: u64, fault: Option<Fault>) -> Option<u32> {
        Some(match register(place)? {
            Register::Lock(of) => {
                let mine = u32::from(core.get()) + 1;
                let lock = self.locks.get(of)?;
                let taken = lock.compare_exchange(FREE, mine, SeqCst, SeqCst).is_ok();
                u32::from(taken || fault == Some(Fault::Lock))
            }
            Register::Config(of) => self.configs.get(of)?.load(SeqCst),
            Register::Clocks => CLOCKS,
            Register::TileId => {
                let tile = Map::SCC.position(core);
                let z = core.get() % TILE_CORES;
                TileId { tile, z }.encode()
            }
            Register::Lut(of, slot) => Entry::default_of(of, slot)?.bits(),
            Register::Time(shift) => (time >> shift) as u32,
            Register::Counter(number) => {
                if number == 0 {
                    self.counted.get(core.index())?.store(1, SeqCst);
                }
                self.counters.get(number)?.fetch_add(1, SeqCst)
            }
            Register::CounterValue(number) => self.counters.get(number)?.load(SeqCst),
        })
    }

    /// Stores there. `None` if there is nothing to store to.
    pub fn store(&self, core: CoreId, place: Place, value: u32) -> Option<Effect> {
        match register(place)? {
            Register::Lock(of) => self.locks.get(of)?.store(FREE, SeqCst),
            Register::Config(of) => {
                let old = self.configs.get(of)?.swap(value, SeqCst);
                let bell = CoreConfig::INTR.bits();
                if !old & value & bell != 0 {
                    return Some(Effect::Rings(CoreId::new(of as u16)));
                }
                if old & !value & bell != 0 && of == core.index() {
                    let counted = self.counted.get(of)?.swap(0, SeqCst);
                    self.heard.fetch_add(counted, SeqCst);
                }
            }
            Register::CounterValue(number) => self.counters.get(number)?.store(value, SeqCst),
            _ => return None,
        }
        Some(Effect::None)
    }

    /// How many cores have silenced their bell after counter 0 had counted them.
    pub fn heard(&self) -> u32 {
        self.heard.load(SeqCst)
    }

    /// Whether `core` holds a test-and-set register.
    pub fn holds(&self, core: CoreId) -> bool {
        let mine = u32::from(core.get()) + 1;
        self.locks.iter().any(|lock| lock.load(SeqCst) == mine)
    }

    /// The registers of `core` as after a reset: lock held, bell rung, the rest anything.
    pub fn reset(&self, core: CoreId, garbage: u32) {
        if let (Some(lock), Some(config)) =
            (self.locks.get(core.index()), self.configs.get(core.index()))
        {
            lock.store(HELD, SeqCst);
            config.store(garbage | CoreConfig::INTR.bits(), SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: CoreId = CoreId::new(5);

    fn bank(offset: u32) -> Place {
        Place::Bank { tile: 2, offset }
    }

    #[test]
    fn a_lock_is_granted_once_and_freed_by_any_store() {
        let devices = Devices::new();
        let take = |fault| devices.load(ME, bank(0x400), 0, fault);
        assert_eq!(take(None), Some(0), "held after a reset");
        assert_eq!(
            devices.store(CoreId::new(1), bank(0x400), 0),
            Some(Effect::None)
        );
        assert!(!devices.holds(ME));
        assert_eq!((take(None), take(None)), (Some(1), Some(0)));
        assert!(devices.holds(ME));
        assert_eq!(take(Some(Fault::Lock)), Some(1));
        devices.reset(ME, 7);
        assert_eq!(take(None), Some(0));
    }

    #[test]
    fn a_bell_rings_when_its_bit_rises_and_is_heard_when_its_owner_clears_it() {
        let devices = Devices::new();
        let config = bank(registers::core_config(1));
        assert_eq!(
            devices.store(CoreId::new(0), config, 2),
            Some(Effect::Rings(ME))
        );
        assert_eq!(devices.store(CoreId::new(0), config, 2), Some(Effect::None));
        assert_eq!(devices.load(ME, config, 0, None), Some(2));
        devices.store(ME, config, 0);
        assert_eq!(devices.heard(), 0, "not counted yet");
        let counter = Place::Fpga { offset: 0xE000 };
        assert_eq!(devices.load(ME, counter, 0, None), Some(0));
        for (core, heard) in [(CoreId::new(0), 0), (ME, 1), (ME, 1)] {
            devices.store(ME, config, 2);
            devices.store(core, config, 0);
            assert_eq!(devices.heard(), heard);
        }
    }

    #[test]
    fn other_registers_say_what_the_chip_says() {
        let devices = Devices::new();
        let load = |place| devices.load(ME, place, 0x1_0000_0002, None);
        let id = TileId::decode(load(bank(registers::TILE_ID)).expect("an id"));
        assert_eq!(Map::SCC.core(id.tile, id.z), ME);
        let clocks = registers::Clocks::from_bits_retain(load(bank(0x80)).expect("clocks"));
        assert_eq!(clocks.tile_megahertz(), Some(533));
        let entry = load(bank(registers::lut(1, 0xC0))).expect("an entry");
        assert_eq!(Entry::default_of(ME, 0xC0).map(|e| e.bits()), Some(entry));
        let fpga = |offset| load(Place::Fpga { offset });
        assert_eq!((fpga(0x8224), fpga(0x8228)), (Some(2), Some(1)));
        assert_eq!(
            [0xF000, 0xF000, 0xF004].map(fpga),
            [Some(0), Some(1), Some(2)]
        );
        assert_eq!(
            (fpga(0x8000), load(bank(0x300)), load(bank(0x804))),
            (None, None, None)
        );
        let store = |place| devices.store(ME, place, 9);
        assert_eq!(store(Place::Fpga { offset: 0xF004 }), Some(Effect::None));
        assert_eq!(fpga(0xF004), Some(9));
        assert_eq!(store(Place::Fpga { offset: 0xF000 }), None);
        assert_eq!(store(bank(registers::TILE_ID)), None);
        assert_eq!(store(Place::Memory(0)), None);
    }
}
