//! Locks for machines that have no test-and-set register.
//!
//! [`WithSoftwareLock`] is a machine that adds [`TestAndSet`] to another one, by plain uncached
//! words. Hosts that share a CXL pool need it: their atomic instructions act in their own caches.
//!
//! # Guarantee
//! G1. At most one core holds a lock. Flags of a core that is lost count as clear.
//! G2. Of cores that try at the same time, one gets in, unless all lose
//!     [patience](WithSoftwareLock).
//!
//! # Memory layout (the end of each core's region; n cores)
//! ```text
//!    memory_size() as this machine tells it                 as the machine below tells it
//!   ─ ─ ──┬──────────────────────────────────────────────────┬────────┐
//!         │ flags of this core: lock 0, lock 1, … lock n - 1 │ unused │   n words: n * n in all
//!   ─ ─ ──┴──────────────────────────────────────────────────┴────────┘
//!           only this core ever stores to them
//! ```
//! Flag `k` of core `j`: "`j` holds the lock of core `k`, or is trying to". All of a core's flags
//! lie in its region, so even a whole line has one writer; this matters where uncached words are
//! made of cached lines. They are only accessed past the caches.
//!
//! # Steps (Lamport's one-bit algorithm, as an attempt that gives up)
//! | call                  | memory actions, in order                                             |
//! |-----------------------|----------------------------------------------------------------------|
//! | `test_and_set`        | load all flags of this lock: any set, its own included: refused      |
//! |                       | store its flag; settle                                               |
//! |                       | load the flags of lower cores: any set: clear its flag, refused      |
//! |                       | load the flags of higher cores, each until it is clear: no patience  |
//! |                       | left: clear its flag, refused                                        |
//! | `clear`               | clear its flag                                                       |
//! | `release_at_start`    | write its flags' lines back; drain; clear all its flags              |
//!
//! # Why G1 holds
//! Say that i < k both hold the lock. Each has loaded the other's flag as clear *after* its own was
//! in memory (S7). If i's flag was in memory first, k found it set; if k's was, i did. Either way
//! one of them did not get in. A core that gets in also sees all that the last holder did: a flag
//! that was set and is clear now was cleared after the drain that ended the critical section (T4).
//!
//! # Why G2 holds, and what starves
//! Of those whose flags are set, the lowest core meets no set flag below. Each of those above
//! either is in already, or finds a lower flag set and withdraws; and once a flag is in memory no
//! core sets another, except those that had polled before. So the lowest has to wait for each
//! higher one once. But no core's wait is bounded: a high core can lose to lower ones for ever, and
//! a low one, out of patience, to those that happen to poll at a better moment. The kernel holds
//! locks for one read-modify-write and tries again.
//!
//! Until all cores have called [`release_at_start`](TestAndSet::release_at_start), left-over flags
//! may look set: attempts are refused, never let in.
//!
//! # Bounds
//! Uncontended: 2n - 1 loads, one store, and one to free it. Refused: at most (2 + `PATIENCE`) n
//! loads and two stores; while the lock is held, n loads at most and no store. A register costs one
//! access. This is for few cores: protocols with single writers (slots, rings) do without locks.
//!
//! # Source
//! Lamport, The mutual exclusion problem, part II, J. ACM 1986 (one-bit algorithm). We differ:
//! no core waits for a lower one, since an attempt may fail (T2); the first poll is ours.
//!
//! # Evidence
//! `hal/sim/tests/sim/software_lock.rs`: all schedules of two and three cores; without the drain,
//! the acquire, or either half of the polls, some of them fail.

use core::{fmt, panic::Location};

use crate::{
    Address, CachedMemory, Clock, Coherence, CoreId, Expected, Lines, MessageBuffer, Region, Relax,
    TestAndSet, Topology, UncachedMemory, Watch,
};

/// A machine with locks in memory, made of one without (or instead of those it has).
///
/// `PATIENCE`: the number of loads, per core of the machine, in which an attempt waits for other
/// attempts to withdraw. One that withdraws has to load a flag per core at most.
#[derive(Clone, Debug)]
pub struct WithSoftwareLock<M, const PATIENCE: u32 = 4> {
    machine: M,
    /// The offset of the flags, in each region.
    flags: usize,
}

impl<M, const PATIENCE: u32> WithSoftwareLock<M, PATIENCE>
where
    M: UncachedMemory + Coherence + Topology,
{
    /// Takes the last bytes of each core's region for the locks. None if they do not fit.
    ///
    /// All cores of the machine must do so.
    pub fn new(machine: M) -> Option<Self> {
        let bytes = usize::from(machine.cores()).saturating_mul(4);
        let flags = machine.memory_size().checked_sub(bytes)?;
        // Whole lines, so that no cached data lie beside them.
        let flags = flags & !M::LINE.saturating_sub(1);
        Some(Self { machine, flags })
    }

    /// The machine underneath. Its registers, if there are any, are other locks than these.
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// `core`'s flag for the lock of `of`.
    fn flag(&self, core: CoreId, of: CoreId) -> Address {
        let offset = usize::from(of.get()).saturating_mul(4);
        Region::memory(core).at(self.flags.saturating_add(offset))
    }

    /// True if `core`'s flag for the lock of `of` is set. Anything but zero is: left-over bytes
    /// keep others out. A core that is lost has no lock.
    #[track_caller]
    fn is_set(&self, core: u16, of: CoreId) -> bool {
        let core = CoreId::new(core);
        self.machine.load_u32(self.flag(core, of)) != 0 && !self.machine.is_lost(core)
    }

    /// True if this core is in, now that its flag is in memory.
    #[track_caller]
    fn gets_in(&self, of: CoreId) -> bool {
        let (own, cores) = (self.machine.core().get(), self.machine.cores());
        if (0..own).any(|lower| self.is_set(lower, of)) {
            return false;
        }
        let mut patience = PATIENCE.saturating_mul(u32::from(cores));
        for higher in own.saturating_add(1)..cores {
            while self.is_set(higher, of) {
                let Some(left) = patience.checked_sub(1) else {
                    return false;
                };
                patience = left;
            }
        }
        true
    }
}

impl<M, const PATIENCE: u32> TestAndSet for WithSoftwareLock<M, PATIENCE>
where
    M: UncachedMemory + Coherence + Topology,
{
    #[track_caller]
    fn test_and_set(&self, of: CoreId) -> bool {
        let machine = &self.machine;
        // An attempt that would be refused anyway stores nothing: it disturbs no holder, and none
        // that waits for others to withdraw. This core's flag is set if it holds the lock (T3).
        if (0..machine.cores()).any(|core| self.is_set(core, of)) {
            return false;
        }
        let own = self.flag(machine.core(), of);
        machine.store_u32(own, 1);
        // SETTLE: S7: the flag is in memory before the others' are loaded.
        machine.settle();
        let held = self.gets_in(of);
        if !held {
            machine.store_u32(own, 0);
        }
        held
    }

    /// Frees the lock of `of` if this core holds it. It cannot end another core's hold.
    #[track_caller]
    fn clear(&self, of: CoreId) {
        self.machine
            .store_u32(self.flag(self.machine.core(), of), 0);
    }

    /// Clears all flags of this core, for every lock.
    #[track_caller]
    fn release_at_start(&self, own: CoreId) {
        let bytes = self.machine.memory_size().saturating_sub(self.flags);
        let start = Region::memory(own).at(self.flags);
        // WRITE BACK, DRAIN: a dirty line that an earlier program left in the cache must not travel
        // over the flags later.
        self.machine
            .write_back(&[Lines::covering::<M>(start, bytes)]);
        self.machine.drain();
        for of in 0..self.machine.cores() {
            self.machine.store_u32(self.flag(own, CoreId::new(of)), 0);
        }
    }
}

// ---- Everything else is the machine's. (No `NativeAtomics`: a machine with those needs no such
// lock.) ----

/// Methods that are those of the machine underneath.
macro_rules! passed_on {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        $(
            #[inline(always)]
            #[track_caller]
            fn $name(&self $(, $argument: $type)*) $(-> $result)? {
                self.machine.$name($($argument),*)
            }
        )*
    };
}

impl<M: UncachedMemory, const PATIENCE: u32> UncachedMemory for WithSoftwareLock<M, PATIENCE> {
    passed_on! {
        fn load_u8(&self, at: Address) -> u8;
        fn store_u8(&self, at: Address, value: u8);
        fn load_u32(&self, at: Address) -> u32;
        fn store_u32(&self, at: Address, value: u32);
        fn store_bytes(&self, at: Address, from: &[u8]);
        fn load_bytes(&self, at: Address, into: &mut [u8]);
        fn zero(&self, at: Address, len: usize) -> bool;
        fn loads_lines(&self, region: Region) -> bool;
    }
}

impl<M: CachedMemory, const PATIENCE: u32> CachedMemory for WithSoftwareLock<M, PATIENCE> {
    passed_on! {
        fn read(&self, at: Address, into: &mut [u8]);
        fn write(&self, at: Address, from: &[u8]);
    }
}

// SAFETY: every call is the machine's, unchanged; so are its promises S1 to S7.
#[expect(unsafe_code, reason = "passes an implementation on")]
unsafe impl<M: Coherence, const PATIENCE: u32> Coherence for WithSoftwareLock<M, PATIENCE> {
    const LINE: usize = M::LINE;

    passed_on! {
        fn write_back(&self, spans: &[Lines]);
        fn invalidate(&self, spans: &[Lines]);
        fn drain(&self);
        fn acquire(&self);
        fn settle(&self);
    }
}

impl<M: MessageBuffer, const PATIENCE: u32> MessageBuffer for WithSoftwareLock<M, PATIENCE> {
    passed_on! {
        fn message_buffer_size(&self) -> usize;
    }
}

impl<M: Topology, const PATIENCE: u32> Topology for WithSoftwareLock<M, PATIENCE> {
    const LISTENS: bool = M::LISTENS;

    /// Less than the machine's: the flags lie after it.
    fn memory_size(&self) -> usize {
        self.flags
    }

    passed_on! {
        fn cores(&self) -> u16;
        fn core(&self) -> CoreId;
        fn called(&self, place: &'static Location<'static>);
        fn looks(&self, place: &'static Location<'static>);
        fn expected(&self, at: Address, len: usize, what: Expected<'_>);
        fn lost(&self) -> Option<CoreId>;
        fn is_lost(&self, core: CoreId) -> bool;
        fn has_left(&self, core: Option<CoreId>) -> bool;
    }
}

impl<M: Clock, const PATIENCE: u32> Clock for WithSoftwareLock<M, PATIENCE> {
    passed_on! {
        fn cycles(&self) -> u64;
        fn hertz(&self) -> u64;
    }
}

impl<M: Relax, const PATIENCE: u32> Relax for WithSoftwareLock<M, PATIENCE> {
    const LOOKS: u32 = M::LOOKS;

    passed_on! {
        fn is_crowded(&self) -> bool;
        fn relax(&self, watched: &[Watch]);
        fn told(&self, core: CoreId);
        fn waits(&self, what: fmt::Arguments<'_>);
        fn ended(&self);
    }
}
