//! The simulated chip as a bus for the SCC port: `flagpost-scc` over this simulator.
//!
//! A physical access becomes the accesses that the simulator has; so the port's own code is
//! explored, with evictions at any moment, together with the kernel above it.
//!
//! | the port's access | the simulator's |
//! |---|---|
//! | uncached | word load or store, past the caches |
//! | MPBT, with and without write-through | message load or store (`machine/message.rs`) |
//! | normal | cached read or write |
//! | CL1INVMB | all message lines of the core dropped, in one step |
//! | write-back, invalidate of normal lines | of just these, where the chip displaces: see below |
//! | a lock register | test-and-set |
//! | configuration registers, FPGA counters | words after each core's buffer, in no region |
//! | tile id | known; no step |
//! | FPGA clock | the run's clock, an eighth of its rate |
//!
//! That line is why a chip for the port needs `buffer_size` = [`SCC_BUFFER`]. In it the
//! configuration register can be watched, so that a core that waits for its bell waits in one step,
//! and a deadlock is seen as one.
//!
//! Displacement writes back *and* drops, whatever was asked for. The simulator does only what was
//! asked, and loses dirty bytes when it drops: who relies on more than the contract is found out.
//!
//! Only for profiles `scc` and, but for [`Mapping::Mpbt`], `scc+fill`: the port relies on accesses
//! that complete in program order, and with `Mpbt` a line that is prefetched between CL1INVMB and
//! the store would swallow that. (The chip prefetches nothing.)
//!
//! And only for caches of the default [`Caching`](crate::Caching): the rest is what the port itself
//! decides.
//!
//! In timed mode all of it is charged by the simulator's own floor plan; choose one that is the
//! port's.

use std::rc::Rc;

use flagpost_hal::{
    Address, Amo, Clock, Coherence, CoreId, Lines, NativeAtomics, Region, TestAndSet, Topology,
    UncachedMemory,
};
use flagpost_scc::bus::State;
use flagpost_scc::map::{BUFFER, TILE_CORES};
use flagpost_scc::registers::{self, TileId};
use flagpost_scc::{
    Attribute, Bus, Counter, Fault, LINE, Map, Mapping, Physical, Place, Processor, Scc, fpga,
};

use crate::handle::{SimCore, pieces};
use crate::op::{Access, CHUNK, Message};

/// [`Config::buffer_size`](crate::Config::buffer_size) of a chip for the port: the message buffer,
/// and a line for registers.
pub const SCC_BUFFER: u32 = BUFFER + LINE;

/// A simulated core, as a bus.
#[derive(Clone, Debug)]
pub struct SccBus {
    core: SimCore,
    map: Map,
    state: Rc<State>,
}

impl SimCore {
    /// The SCC port on this core, as at its start. Call it once per core; clone what it returns.
    ///
    /// # Panics
    /// If the chip has another `buffer_size` than [`SCC_BUFFER`], or more than 512 cores.
    #[track_caller]
    pub fn scc(self, mapping: Mapping) -> Scc<SccBus> {
        assert_eq!(
            self.shape().buffer,
            SCC_BUFFER,
            "the SCC port needs buffer={SCC_BUFFER}"
        );
        let mesh = match self.cores() {
            0..=48 => Some(Map::SCC),
            49..=512 => Map::mesh(16, 16),
            _ => None,
        };
        let map = mesh.expect("the SCC port has room for 512 cores");
        let map = map
            .with_cores(self.cores())
            .with_memory(self.shape().memory);
        let bus = SccBus {
            core: self,
            map,
            state: Rc::default(),
        };
        Scc::start(bus, map, mapping)
    }
}

/// What is behind an uncached access.
enum Behind {
    Word(Address),
    Lock(CoreId),
    TileId,
    /// A counter's word; whether a load counts.
    Counter(Address, bool),
    /// The clock, shifted right.
    Time(u32),
}

impl SccBus {
    /// A word of the line of registers that the simulator keeps for `core`.
    fn word_of(core: u16, number: u32) -> Address {
        Region::message_buffer(CoreId::new(core)).at((BUFFER + 4 * number) as usize)
    }

    /// The shared byte at `at`.
    #[track_caller]
    fn shared(&self, at: Physical) -> Address {
        match self.map.place(self.core.core(), at) {
            Place::Shared(address) => address,
            other => panic!("the port asks for {at:x?}: {other:?}"),
        }
    }

    #[track_caller]
    fn behind(&self, at: Physical) -> Behind {
        match self.map.place(self.core.core(), at) {
            Place::Shared(address) => Behind::Word(address),
            Place::Registers { tile, offset } => {
                let core = |z: u16| tile * TILE_CORES + z;
                let is = |offset_of: fn(u16) -> u32| (0..2).find(|&z| offset_of(z) == offset);
                if offset == registers::TILE_ID {
                    Behind::TileId
                } else if let Some(z) = is(registers::lock) {
                    Behind::Lock(CoreId::new(core(z)))
                } else if let Some(z) = is(registers::core_config) {
                    Behind::Word(Self::word_of(core(z), 0))
                } else {
                    panic!("register {offset:#x} is not simulated")
                }
            }
            Place::Fpga { offset } => Self::behind_fpga(offset),
            other => panic!("the port asks for {at:x?}: {other:?}"),
        }
    }

    /// The FPGA's counters: two in the line of each core.
    #[track_caller]
    fn behind_fpga(offset: u32) -> Behind {
        match offset {
            fpga::TIME_LOW => return Behind::Time(0),
            fpga::TIME_HIGH => return Behind::Time(32),
            _ => {}
        }
        let is = |&number: &u32| {
            Counter::new(number).is_some_and(|counter| counter.offset() == offset & !7)
        };
        let Some(number) = (0..Counter::COUNT).find(is) else {
            panic!("the FPGA has nothing at {offset:#x}: this would hang the chip");
        };
        let word = Self::word_of((number / 2) as u16, 1 + number % 2);
        Behind::Counter(word, offset.is_multiple_of(8))
    }

    /// Asks for something at `len` bytes from `at`, which do not cross a line.
    #[track_caller]
    fn ask(&self, access: Access, at: Address, len: usize) -> u64 {
        self.core.ask_at(access, at, len)
    }

    /// Cached load of part of a line.
    #[track_caller]
    fn load_part(&self, at: Address, attribute: Attribute, into: &mut [u8]) {
        let len = into.len() as u8;
        let access = match attribute {
            Attribute::Normal => Access::Read { len },
            _ => Access::Message(Message::Load { len }),
        };
        self.ask(access, at, into.len());
        into.copy_from_slice(&self.core.found()[..into.len()]);
    }

    /// Cached store to part of a line.
    #[track_caller]
    fn store_part(&self, at: Address, attribute: Attribute, from: &[u8]) {
        let len = from.len() as u8;
        let mut bytes = [0; CHUNK];
        bytes[..from.len()].copy_from_slice(from);
        let through = attribute == Attribute::MpbtWriteThrough;
        let access = match attribute {
            Attribute::Normal => Access::Write { len },
            _ => Access::Message(Message::Store { len, through }),
        };
        self.core.bring(bytes);
        let answer = loop {
            // 1: the combining buffer is still busy with another line.
            match self.ask(access, at, from.len()) {
                1 => continue,
                answer => break answer,
            }
        };
        if answer == 2 {
            while self.core.ask(Access::Empty) != 0 {}
        }
    }
}

impl Processor for SccBus {
    #[track_caller]
    fn cl1invmb(&self) {
        self.core.ask(Access::Message(Message::Invalidate));
    }

    /// The port calls it only to displace.
    fn wbinvd(&self) {
        unreachable!("no line is displaced here");
    }

    #[track_caller]
    fn rdtsc(&self) -> u64 {
        self.core.cycles()
    }

    fn hertz(&self) -> u64 {
        self.core.hertz()
    }

    #[track_caller]
    fn stop(&self, fault: Fault) -> ! {
        panic!("{fault} (U1)")
    }
}

impl Bus for SccBus {
    #[track_caller]
    fn load_u8(&self, at: Physical, attribute: Attribute) -> u8 {
        let at = self.shared(at);
        if attribute == Attribute::Uncached {
            return self.core.load_u8(at);
        }
        let mut byte = [0];
        self.load_part(at, attribute, &mut byte);
        byte[0]
    }

    #[track_caller]
    fn load_u32(&self, at: Physical, attribute: Attribute) -> u32 {
        if attribute != Attribute::Uncached {
            let mut bytes = [0; 4];
            self.load_part(self.shared(at), attribute, &mut bytes);
            return u32::from_le_bytes(bytes);
        }
        match self.behind(at) {
            Behind::Word(word) => self.core.load_u32(word),
            Behind::Lock(of) => self.core.test_and_set(of).into(),
            Behind::TileId => {
                let own = self.core.core();
                let tile = self.map.position(own);
                TileId {
                    tile,
                    z: own.get() % TILE_CORES,
                }
                .encode()
            }
            Behind::Counter(word, true) => self.core.atomic_u32(word, Amo::Add(1)),
            Behind::Counter(word, false) => self.core.load_u32(word),
            Behind::Time(shift) => ((self.core.cycles() / 8) >> shift) as u32,
        }
    }

    #[track_caller]
    fn store_u8(&self, at: Physical, attribute: Attribute, value: u8) {
        let at = self.shared(at);
        match attribute {
            Attribute::Uncached => self.core.store_u8(at, value),
            _ => self.store_part(at, attribute, &[value]),
        }
    }

    #[track_caller]
    fn store_u32(&self, at: Physical, attribute: Attribute, value: u32) {
        if attribute != Attribute::Uncached {
            return self.store_part(self.shared(at), attribute, &value.to_le_bytes());
        }
        match self.behind(at) {
            Behind::Word(word) | Behind::Counter(word, false) => self.core.store_u32(word, value),
            Behind::Lock(of) => self.core.clear(of),
            Behind::Counter(_, true) | Behind::TileId | Behind::Time(_) => {
                panic!("the port stores to {at:x?}, which is for loads")
            }
        }
    }

    /// Less kind than the chip, where schedules are explored.
    fn prefetches(&self) -> bool {
        !self.core.shape().timed
    }

    fn state(&self) -> &State {
        &self.state
    }

    #[track_caller]
    fn load_bytes(&self, at: Physical, attribute: Attribute, into: &mut [u8]) {
        if into.is_empty() {
            return;
        }
        let at = self.shared(at);
        if attribute == Attribute::Uncached {
            return self.core.load_bytes(at, into);
        }
        for (here, piece, start) in pieces(at, into.len(), LINE as usize) {
            self.load_part(here, attribute, &mut into[start..start + piece]);
        }
    }

    #[track_caller]
    fn store_bytes(&self, at: Physical, attribute: Attribute, from: &[u8]) {
        if from.is_empty() {
            return;
        }
        let at = self.shared(at);
        for (here, piece, start) in pieces(at, from.len(), LINE as usize) {
            let part = &from[start..start + piece];
            if attribute == Attribute::Uncached {
                let bytes = (0..).zip(part);
                bytes.for_each(|(offset, byte)| self.core.store_u8(here.plus(offset), *byte));
            } else {
                self.store_part(here, attribute, part);
            }
        }
    }

    /// Exactly these lines. They stay, clean: the less convenient of what a write-back may do.
    #[track_caller]
    fn write_back(&self, spans: impl Iterator<Item = (Physical, u32)> + Clone) -> bool {
        for (start, len) in spans.filter(|(_, len)| *len > 0) {
            let lines = Lines::covering::<SimCore>(self.shared(start), len as usize);
            self.core.write_back(&[lines]);
        }
        true
    }

    /// Exactly these lines, unsaved stores and all, which the caller must not have there.
    #[track_caller]
    fn invalidate(&self, spans: impl Iterator<Item = (Physical, u32)> + Clone) -> bool {
        for (start, len) in spans.filter(|(_, len)| *len > 0) {
            let lines = Lines::covering::<SimCore>(self.shared(start), len as usize);
            self.core.invalidate(&[lines]);
        }
        true
    }

    #[track_caller]
    fn relax(&self, watched: impl Iterator<Item = (Physical, u32)> + Clone) {
        for (at, seen) in watched {
            let Behind::Word(word) = self.behind(at) else {
                panic!("{at:x?} is no word to wait for");
            };
            self.ask(Access::Watch { seen }, word, 4);
        }
        self.core.ask(Access::Relax);
    }
}
