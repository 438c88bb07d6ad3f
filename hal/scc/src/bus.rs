//! What the port needs of the machine under it: physical accesses and a few instructions.
//!
//! Everything that the port does to the chip goes through [`Bus`] and [`Processor`], so that the
//! same port runs on silicon, on the simulated chip and on the emulated board: what is tested is
//! what would run. A bus knows no protocol and no region; it does one access to one physical
//! address, with the memory type that the page of that access would have.

use core::cell::Cell;
use core::fmt;
use core::panic::Location;
use core::sync::atomic::{Ordering, compiler_fence};

use flagpost_hal::{Address, CoreId};

/// Bytes per cache line, in both caches and in the write-combining buffer.
pub const LINE: u32 = 32;

/// See [`Bus::displacement_area`].
pub(crate) const DISPLACEMENT_AREA: Physical = Physical::new(0x2800_0000);

/// A physical address as the core puts it on its bus: an index into *its own* lookup table, and an
/// offset of 24 bits. See [`lut`](crate::lut).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Physical(u32);

impl Physical {
    /// The address `address`.
    pub const fn new(address: u32) -> Self {
        Self(address)
    }

    /// The address as a number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The address `bytes` further on; wraps around, as the core's adder does.
    pub const fn plus(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// The first byte of the line that this address is in.
    pub const fn line(self) -> Self {
        Self(self.0 & !(LINE - 1))
    }
}

/// The memory type of an access: bits 3, 4 and 7 of its page table entry (docs/hardware.md A4).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// PCD, PWT. Neither cache; each access is one transaction, in program order, complete before
    /// the next.
    Uncached,
    /// PMB. L1 only, its line tagged as message data. A store that misses goes out through the
    /// write-combining buffer; a store that *hits* stays in L1, and the next CL1INVMB discards it
    /// (H2).
    Mpbt,
    /// PMB, PWT. As [`Mpbt`](Self::Mpbt), but every store also goes out through the write-combining
    /// buffer, so that a line in L1 is never newer than what left the core.
    MpbtWriteThrough,
    /// No bit set. L1 and L2, write back; neither allocates on a store that misses.
    Normal,
}

impl Attribute {
    /// The bits of a page table entry that give this type. CR4.MPE must be set and CR4.PSE clear,
    /// since bit 7 has another meaning elsewhere.
    pub const fn page_bits(self) -> u32 {
        const PWT: u32 = 1 << 3;
        const PCD: u32 = 1 << 4;
        const PMB: u32 = 1 << 7;
        match self {
            Self::Uncached => PCD | PWT,
            Self::Mpbt => PMB,
            Self::MpbtWriteThrough => PMB | PWT,
            Self::Normal => 0,
        }
    }
}

/// What a caller of the port did wrong; ends the machine ([`Processor::stop`]).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `len` bytes at `at` are not inside a region.
    Outside {
        /// First byte.
        at: Address,
        /// How many.
        len: usize,
    },
    /// A word access at an address that is not a multiple of 4.
    Misaligned(Address),
    /// The machine has no such core.
    NoSuchCore(CoreId),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside { at, len } => {
                write!(f, "{at}: {len} bytes here are not inside a region")
            }
            Self::Misaligned(at) => write!(f, "{at}: not aligned to 4 bytes"),
            Self::NoSuchCore(core) => write!(f, "{core}: no such core"),
        }
    }
}

/// Instructions of the core, other than loads and stores.
pub trait Processor {
    /// `0F 0A`: drops *every* L1 line tagged as message data, unsaved stores with it. One cycle.
    /// Touches neither normal lines, nor the L2, nor the write-combining buffer.
    #[track_caller]
    fn cl1invmb(&self);

    /// `wbinvd`: writes back and drops the whole L1, and nothing of the L2.
    #[track_caller]
    fn wbinvd(&self);

    /// `rdtsc`: cycles of this core. Not synchronised between cores.
    #[track_caller]
    fn rdtsc(&self) -> u64;

    /// Cycles of this core per second.
    fn hertz(&self) -> u64;

    /// Ends the machine: a caller broke its contract (U1), and going on would touch what is not
    /// its.
    #[track_caller]
    fn stop(&self, fault: Fault) -> !;

    /// Masks (`false`) or admits (`true`) interrupts, and returns what was before. The default is
    /// for programs that take none.
    fn set_interrupts(&self, admitted: bool) -> bool {
        let _ = admitted;
        false
    }

    /// Keeps earlier accesses ahead of later ones. On the chip this is for the compiler only: the
    /// core has no store buffer, and one outstanding access. A bus whose host is weaker overrides
    /// it.
    #[track_caller]
    fn order(&self) {
        compiler_fence(Ordering::SeqCst);
    }
}

/// Accesses to physical memory, one at a time.
///
/// # Contract
/// For the caller: words are aligned; all accesses to one line by one core, other than uncached
/// ones, have one attribute.
///
/// For the bus: the accesses do what [`Attribute`] says; the compiler neither merges, splits,
/// invents nor drops them; a load returns before the next access starts.
pub trait Bus: Processor {
    /// Loads one byte.
    #[track_caller]
    fn load_u8(&self, at: Physical, attribute: Attribute) -> u8;

    /// Loads an aligned word.
    #[track_caller]
    fn load_u32(&self, at: Physical, attribute: Attribute) -> u32;

    /// Stores one byte.
    #[track_caller]
    fn store_u8(&self, at: Physical, attribute: Attribute, value: u8);

    /// Stores an aligned word.
    #[track_caller]
    fn store_u32(&self, at: Physical, attribute: Attribute, value: u32);

    /// [`Topology::LISTENS`](flagpost_hal::Topology::LISTENS).
    const LISTENS: bool = false;

    /// [`Topology::called`](flagpost_hal::Topology::called).
    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        let _ = place;
    }

    /// [`Relax::waits`](flagpost_hal::Relax::waits).
    #[inline(always)]
    fn waits(&self, what: fmt::Arguments<'_>) {
        let _ = what;
    }

    /// [`Topology::has_left`](flagpost_hal::Topology::has_left).
    #[inline(always)]
    fn has_left(&self, core: Option<CoreId>) -> bool {
        let _ = core;
        false
    }

    /// Whether lines may come into L1 that nobody asked for. The chip has no prefetcher.
    fn prefetches(&self) -> bool {
        false
    }

    /// What the port remembers of this core between two calls. Clones of a bus share it.
    fn state(&self) -> &State;

    /// Loads consecutive bytes: words where the address allows, bytes at the ends.
    #[track_caller]
    fn load_bytes(&self, at: Physical, attribute: Attribute, into: &mut [u8]) {
        let head = (at.get().wrapping_neg() % 4) as usize;
        let (head, rest) = split_mut(into, head);
        let mut cursor = at;
        for byte in head {
            *byte = self.load_u8(cursor, attribute);
            cursor = cursor.plus(1);
        }
        let (words, tail) = rest.as_chunks_mut::<4>();
        for word in words {
            *word = self.load_u32(cursor, attribute).to_le_bytes();
            cursor = cursor.plus(4);
        }
        for byte in tail {
            *byte = self.load_u8(cursor, attribute);
            cursor = cursor.plus(1);
        }
    }

    /// Stores consecutive bytes, in ascending order: words where the address allows, bytes at the
    /// ends.
    #[track_caller]
    fn store_bytes(&self, at: Physical, attribute: Attribute, from: &[u8]) {
        let head = (at.get().wrapping_neg() % 4) as usize;
        let (head, rest) = from.split_at_checked(head).unwrap_or((from, &[]));
        let mut cursor = at;
        for byte in head {
            self.store_u8(cursor, attribute, *byte);
            cursor = cursor.plus(1);
        }
        let (words, tail) = rest.as_chunks::<4>();
        for word in words {
            self.store_u32(cursor, attribute, u32::from_le_bytes(*word));
            cursor = cursor.plus(4);
        }
        for byte in tail {
            self.store_u8(cursor, attribute, *byte);
            cursor = cursor.plus(1);
        }
    }

    /// Writes back the normally cached lines of these spans (first byte, length; whole lines), and
    /// may keep them. False, and nothing is done, on buses that cannot name a line, as the chip's:
    /// the port [displaces](crate::displace) them then.
    #[track_caller]
    fn write_back(&self, spans: impl Iterator<Item = (Physical, u32)> + Clone) -> bool {
        let _ = spans;
        false
    }

    /// Drops these lines, and may lose what is dirty in them. False, and nothing is done, as for
    /// [`write_back`](Self::write_back).
    #[track_caller]
    fn invalidate(&self, spans: impl Iterator<Item = (Physical, u32)> + Clone) -> bool {
        let _ = spans;
        false
    }

    /// 256 KiB, aligned to as much, mapped normal and cacheable, for
    /// [`displace`](crate::displace) alone to read. What is in it does not matter. The default: the
    /// start of slot 0x28, the last of the private ones.
    fn displacement_area(&self) -> Physical {
        DISPLACEMENT_AREA
    }

    /// What a polling loop does between two polls, given the words that it polls and what it saw
    /// there (see [`Relax`](flagpost_hal::Relax)). The default: a few idle turns, so as not to fill
    /// the mesh with polls.
    #[track_caller]
    fn relax(&self, watched: impl Iterator<Item = (Physical, u32)> + Clone) {
        let _ = watched;
        for _ in 0..16 {
            core::hint::spin_loop(); // `rep nop`, harmless on this core
        }
    }
}

fn split_mut(bytes: &mut [u8], at: usize) -> (&mut [u8], &mut [u8]) {
    let at = at.min(bytes.len());
    bytes.split_at_mut_checked(at).unwrap_or((&mut [], &mut []))
}

/// What the port remembers of its core; in memory that only this core uses. All zeros is a valid
/// start.
#[derive(Debug, Default)]
pub struct State {
    /// The line that the write-combining buffer may hold, plus 1; 0 if none of ours.
    pub(crate) pending: Cell<u32>,
    /// Own stores passed L1 since the last CL1INVMB of a read: where lines come by themselves, one
    /// may have come without them.
    pub(crate) passed: Cell<bool>,
    /// Whether all ways of the L2 are known to be in use.
    pub(crate) warm: Cell<bool>,
    /// How many test-and-set registers this core holds.
    pub(crate) held: Cell<u16>,
    /// Whether interrupts were admitted before it took the first of them.
    pub(crate) interrupts: Cell<bool>,
}

impl State {
    /// The state of a core that has done nothing yet.
    pub const fn new() -> Self {
        Self {
            pending: Cell::new(0),
            passed: Cell::new(false),
            warm: Cell::new(false),
            held: Cell::new(0),
            interrupts: Cell::new(false),
        }
    }

    /// Forgets everything, as after a reset of the core.
    pub fn reset(&self) {
        self.pending.set(0);
        self.passed.set(false);
        self.warm.set(false);
        self.held.set(0);
        self.interrupts.set(false);
    }
}
