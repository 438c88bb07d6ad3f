//! A model of the chip with real caches: the geometry mode.
//!
//! Cores with an L1 (16 KiB, 4 ways), an L2 (256 KiB, 4 ways) and a write-combining buffer, around
//! memory that is reached through each core's own default lookup table. A plain data structure:
//! tests call one core after the other, in the order that they want to show.
//!
//! | rule | source |
//! |---|---|
//! | no allocation on a store that misses | docs/hardware.md A1 |
//! | message data bypass the L2 and are tagged in L1 | A4 |
//! | a miss fills an unused way first | assumption, and the less convenient one |
//! | else it replaces by tree pseudo-LRU, or a random way | A4 speaks of pseudo-LRU |
//! | a dirty line that leaves L1 goes to the L2 if that has it, else to memory | assumption |
//! | the bypass to the own message buffer must not be taken | A7, H1 |
//! | bytes of a line that were not stored stay as they are | A4 and A7, H9 |
//! | or, with [`Chip::that_pads`], a packet of more than 8 bytes is a whole line | the same |
//!
//! Both of the last two have been reported.
#![allow(
    dead_code,
    reason = "a model of the whole chip, of which tests use parts"
)]

pub(crate) mod cache;
mod core;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use flagpost_hal::CoreId;
use flagpost_scc::lut::{self, Entry, SubDestination};
use flagpost_scc::registers::TileId;
use flagpost_scc::{Map, Mapping, Physical, Scc};

pub(crate) use cache::Policy;
pub(crate) use core::Core;

pub(crate) type Line = [u8; 32];

/// Most bytes of a line that travel as what they are on every chip.
const PACKET: u32 = 8;

/// The slot of a table that leads to the own message buffer past the mesh.
const BYPASS: u8 = 0xD8;

/// What all cores share.
pub(crate) struct Board {
    lines: RefCell<HashMap<(u32, u64), Line>>,
    /// Lock bits: free?
    free: RefCell<Vec<bool>>,
    /// What was stored to tiles' registers: which, and the bits that it changed of a configuration.
    pub(crate) stored: RefCell<Vec<(u32, u32)>>,
    config: RefCell<Vec<u32>>,
    counters: RefCell<HashMap<u32, u32>>,
    /// The shared clock; each look at one of its words takes one tick.
    pub(crate) time: Cell<u64>,
    /// Whether packets of more than [`PACKET`] bytes are whole lines (H9).
    pads: bool,
    cores: Vec<Rc<core::Private>>,
}

/// A chip whose cores replace lines by `policy`.
pub(crate) struct Chip(Rc<Board>);

impl Chip {
    pub(crate) fn new(policy: Policy) -> Self {
        Self::build(policy, false)
    }

    /// A chip that makes a whole line of more than 8 bytes that it stores of one: the other bytes
    /// are overwritten.
    pub(crate) fn that_pads(policy: Policy) -> Self {
        Self::build(policy, true)
    }

    fn build(policy: Policy, pads: bool) -> Self {
        Self(Rc::new(Board {
            lines: RefCell::default(),
            free: RefCell::new(vec![false; 48]),
            stored: RefCell::default(),
            // with the bell rung: to be silenced at start
            config: RefCell::new(vec![0x34_0DFA; 48]),
            counters: RefCell::default(),
            time: Cell::new(0),
            pads,
            cores: (0..48)
                .map(|n| Rc::new(core::Private::new(policy, n)))
                .collect(),
        }))
    }

    /// Core `number`, as a bus.
    pub(crate) fn bus(&self, number: u16) -> Core {
        Core::new(self.0.clone(), CoreId::new(number))
    }

    /// The port on core `number`, its register freed.
    pub(crate) fn scc(&self, number: u16, mapping: Mapping) -> Scc<Core> {
        use flagpost_hal::TestAndSet;
        let scc = Scc::start(self.bus(number), Map::SCC, mapping);
        scc.release_at_start(CoreId::new(number));
        scc
    }

    pub(crate) fn board(&self) -> &Board {
        &self.0
    }
}

impl Board {
    /// The destination of a line, as a key.
    fn key(core: CoreId, at: Physical) -> (u32, u64) {
        let entry = Entry::default_of(core, lut::slot(at)).unwrap_or_else(|| {
            panic!("{core} touches {at:x?}, which its table maps to nothing: it hangs")
        });
        assert!(
            lut::slot(at) != BYPASS,
            "{core} touches {at:x?} by the bypass, which is not trusted (H1)"
        );
        let to = entry.translate(at);
        let route = u32::from(to.tile.y) << 4 | u32::from(to.tile.x);
        (route << 3 | to.sub as u32, to.address)
    }

    pub(crate) fn fetch(&self, core: CoreId, at: Physical) -> Line {
        let key = Self::key(core, at.line());
        self.lines.borrow().get(&key).copied().unwrap_or([0; 32])
    }

    /// Stores the bytes of `line` whose bit of `mask` is set.
    pub(crate) fn put(&self, core: CoreId, at: Physical, line: &Line, mask: u32) {
        let mask = match self.pads && mask.count_ones() > PACKET {
            true => !0,
            false => mask,
        };
        let key = Self::key(core, at.line());
        let mut lines = self.lines.borrow_mut();
        let into = lines.entry(key).or_insert([0; 32]);
        for (bit, byte) in line.iter().enumerate() {
            if mask >> bit & 1 == 1 {
                into[bit] = *byte;
            }
        }
    }

    /// The core and offset behind a register's address, if it is one.
    fn register(core: CoreId, at: Physical) -> Option<(u16, u32)> {
        let entry = Entry::default_of(core, lut::slot(at))?;
        let to = entry.translate(at);
        let tile = Map::SCC.core(to.tile, 0).get() / 2;
        (to.sub == SubDestination::Registers).then_some((tile, to.address as u32))
    }

    pub(crate) fn load_register(&self, core: CoreId, at: Physical) -> Option<u32> {
        if let Some(offset) = at.get().checked_sub(0xF900_0000).filter(|o| *o < 0x1_0000) {
            return Some(self.load_fpga(offset));
        }
        let (tile, offset) = Self::register(core, at)?;
        let own = |z: u16| usize::from(tile * 2 + z);
        Some(match offset {
            0x010 | 0x018 => self.config.borrow()[own((offset == 0x018).into())],
            0x080 => 0x00A8_E200,
            0x100 => TileId {
                tile: Map::SCC.position(core),
                z: core.get() % 2,
            }
            .encode(),
            0x200 | 0x400 => {
                let bit = &mut self.free.borrow_mut()[own((offset == 0x400).into())];
                std::mem::take(bit).into()
            }
            _ => panic!("load of register {offset:#x}"),
        })
    }

    pub(crate) fn store_register(&self, core: CoreId, at: Physical, value: u32) -> bool {
        if let Some(offset) = at.get().checked_sub(0xF900_0000).filter(|o| *o < 0x1_0000) {
            assert!(offset % 8 == 4 && offset >= 0xE000, "store to {offset:#x}");
            self.counters.borrow_mut().insert(offset - 4, value);
            return true;
        }
        let Some((tile, offset)) = Self::register(core, at) else {
            return false;
        };
        let own = |z: u16| usize::from(tile * 2 + z);
        match offset {
            0x010 | 0x018 => {
                let config = &mut self.config.borrow_mut()[own((offset == 0x018).into())];
                self.stored.borrow_mut().push((offset, *config ^ value));
                *config = value;
            }
            0x200 | 0x400 => self.free.borrow_mut()[own((offset == 0x400).into())] = true,
            _ => panic!("store to register {offset:#x}"),
        }
        true
    }

    fn load_fpga(&self, offset: u32) -> u32 {
        match offset {
            0x8224 | 0x8228 => {
                let now = self.time.get();
                self.time.set(now + 1);
                (now >> if offset == 0x8224 { 0 } else { 32 }) as u32
            }
            0xE000..0xE180 | 0xF000..0xF180 => {
                let mut counters = self.counters.borrow_mut();
                let counter = counters.entry(offset & !7).or_insert(0);
                let value = *counter;
                *counter += u32::from(offset.is_multiple_of(8));
                value
            }
            _ => panic!("undefined FPGA register {offset:#x}: the chip hangs"),
        }
    }

    /// A core's configuration register.
    pub(crate) fn config(&self, core: u16) -> u32 {
        self.config.borrow()[usize::from(core)]
    }
}
