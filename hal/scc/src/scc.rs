//! A core's handle of the chip.

use core::{fmt, panic::Location};

use flagpost_hal::{Address, Clock, CoreId, Kind, MessageBuffer, Region, Relax, Topology, Watch};

use crate::bus::{Attribute, Bus, Fault, Physical};
use crate::fpga::Fpga;
use crate::map::{BUFFER_REGION, Map};
use crate::registers::{self, CoreConfig, TileId};

/// How a core's cached accesses to shared memory are mapped: the memory type of those pages.
///
/// Message buffers, and memory that another core owns, are never mapped normal: with `Normal` they
/// are `MpbtWriteThrough`.
///
/// # Which one
/// | | store through the cache | `write_back` + `drain` | `invalidate` |
/// |---|---|---|---|
/// | `Normal` | L1 or L2, when it hits | `wbinvd`, 4 reads per line | the same |
/// | `Mpbt` | drops all message lines, then out | 1 store | 1 cycle, and refills |
/// | `MpbtWriteThrough` | out, and into L1 | 1 store | 1 cycle, and refills |
///
/// With `Normal`, 64 KiB take half a million cycles.
///
/// The default is `MpbtWriteThrough`: publishing and refreshing, which every epoch does, cost next
/// to nothing; no dirty line exists, so no eviction can destroy a neighbour's bytes (H3), and
/// CL1INVMB can discard no store (H2). Barrelfish and Intel's network driver chose it too. Its
/// price: each store crosses the mesh, combined to lines at best, and the L2 is not used. A program
/// that works long on its window between two epochs, and shares little of it, may do better with
/// `Normal`. `Mpbt` is how Intel's RCCE maps message buffers; it is here because its hazard must be
/// shown cured, and has no advantage.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// Both caches, write back.
    Normal,
    /// Message type; each store drops the lines in L1 first.
    Mpbt,
    /// Message type, written through.
    #[default]
    MpbtWriteThrough,
}

/// The chip, as one of its cores sees it: all HAL traits but `NativeAtomics`, which no access of
/// this chip could be (its atomic instructions act in the core's own cache).
///
/// Clones are handles of the same core, if clones of the bus are.
#[derive(Copy, Clone, Debug)]
pub struct Scc<B> {
    pub(crate) bus: B,
    pub(crate) map: Map,
    pub(crate) core: CoreId,
    pub(crate) mapping: Mapping,
}

impl<B: Bus> Scc<B> {
    /// The handle of the core that calls this, on a chip (or board) with this map.
    ///
    /// Call it once per core at start-up, with `bus.state()` new; clone it after that. It silences
    /// the core's bell, whatever its state after reset.
    #[track_caller]
    pub fn start(bus: B, map: Map, mapping: Mapping) -> Self {
        let id = Map::own_registers().plus(registers::TILE_ID);
        let id = TileId::decode(bus.load_u32(id, Attribute::Uncached));
        let scc = Self {
            core: map.core(id.tile, id.z),
            bus,
            map,
            mapping,
        };
        // Without the lock that guards this register: its state is not known yet either (T5), and
        // peers may use neither before this core has started.
        scc.change_config(scc.core, |config| config.difference(CoreConfig::INTR));
        scc
    }

    /// The bus under it.
    pub const fn bus(&self) -> &B {
        &self.bus
    }

    /// The map that it goes by.
    pub const fn map(&self) -> &Map {
        &self.map
    }

    /// The board's counters and its shared clock.
    pub const fn fpga(&self) -> Fpga<'_, B> {
        Fpga(&self.bus)
    }

    /// Where the `len` bytes at `at` are. Stops the machine if they are nowhere (U1).
    #[inline]
    #[track_caller]
    pub(crate) fn locate(&self, at: Address, len: usize) -> Physical {
        match self.map.physical(at, len) {
            Some(physical) => physical,
            None => self.bus.stop(Fault::Outside { at, len }),
        }
    }

    /// Where the aligned word at `at` is.
    #[inline]
    #[track_caller]
    pub(crate) fn locate_word(&self, at: Address) -> Physical {
        if !at.offset.is_multiple_of(4) {
            self.bus.stop(Fault::Misaligned(at));
        }
        self.locate(at, 4)
    }

    /// A register in `of`'s bank. Stops the machine if there is no such core.
    #[track_caller]
    pub(crate) fn register(&self, of: CoreId, offset: u32) -> Physical {
        if of.get() >= self.map.cores() {
            self.bus.stop(Fault::NoSuchCore(of));
        }
        self.map.registers(of).plus(offset)
    }

    /// A core's test-and-set register. Stops the machine if there is no such core.
    #[track_caller]
    pub(crate) fn lock_register(&self, of: CoreId) -> Physical {
        self.register(of, registers::lock(z(of)))
    }

    /// How this core maps a region for its cached accesses.
    pub(crate) fn mapped(&self, region: Region) -> Attribute {
        match self.mapping {
            Mapping::Normal if region == Region::memory(self.core) => Attribute::Normal,
            Mapping::Mpbt => Attribute::Mpbt,
            Mapping::Normal | Mapping::MpbtWriteThrough => Attribute::MpbtWriteThrough,
        }
    }
}

/// Which of its tile's cores a core is.
pub(crate) const fn z(core: CoreId) -> u16 {
    core.get() % 2
}

impl<B: Bus> MessageBuffer for Scc<B> {
    /// 8 KiB less the line that the port keeps for itself.
    fn message_buffer_size(&self) -> usize {
        BUFFER_REGION as usize
    }
}

impl<B: Bus> Topology for Scc<B> {
    const LISTENS: bool = B::LISTENS;

    fn cores(&self) -> u16 {
        self.map.cores()
    }

    fn core(&self) -> CoreId {
        self.core
    }

    fn memory_size(&self) -> usize {
        self.map.region_size(Kind::Memory)
    }

    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        self.bus.called(place);
    }

    #[inline(always)]
    fn has_left(&self, core: Option<CoreId>) -> bool {
        self.bus.has_left(core)
    }
}

impl<B: Bus> Clock for Scc<B> {
    #[track_caller]
    fn cycles(&self) -> u64 {
        self.bus.rdtsc()
    }

    fn hertz(&self) -> u64 {
        self.bus.hertz()
    }
}

impl<B: Bus> Relax for Scc<B> {
    #[track_caller]
    fn relax(&self, watched: &[Watch]) {
        let physical = |watch: &Watch| (self.locate_word(watch.at), watch.seen);
        self.bus.relax(watched.iter().map(physical));
    }

    #[inline(always)]
    fn waits(&self, what: fmt::Arguments<'_>) {
        self.bus.waits(what);
    }
}
