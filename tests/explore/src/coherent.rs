//! The simulator as a machine whose caches the hardware keeps in step: cached accesses go past the
//! cache, and there is nothing to write back or to drop ([`Coherence::COHERENT`]). Its stores and
//! loads pass each other as those of the profile do.
//!
//! What links and the kernel do on such machines only, they do here.

use std::fmt;
use std::panic::Location;

use flagpost_hal::{
    Address, Amo, CachedMemory, Clock, Coherence, CoreId, Lines, MessageBuffer, NativeAtomics,
    Records, Relax, TestAndSet, Topology, UncachedMemory, Watch,
};
use flagpost_sim::SimCore;
use flagpost_tests::{Failure, Mapped, Native, Platform, Refusal, Ring, Session, link_cases};

use crate::run_case;

/// The coherent simulator, with [`Native`] atomics.
pub struct CoherentSimulator;

impl Platform for CoherentSimulator {
    type Machine = Coherent;
    type Link = Mapped<Coherent, Native>;

    fn link(
        machine: &Coherent,
        session: Session,
        ring: Option<Ring>,
    ) -> Result<Self::Link, Refusal> {
        Mapped::start_native(machine.clone(), session, ring)
    }

    fn go(machine: &Coherent) {
        machine.core.mark("go");
    }
}

/// A case on this platform.
pub type Case = flagpost_tests::Case<CoherentSimulator>;

/// The cases that any link can run, and what the simulator calls them.
pub fn cases() -> impl Iterator<Item = (&'static crate::Case, &'static Case)> {
    let same = |case: &Case| crate::cases().find(|other| other.name == case.name);
    link_cases::<CoherentSimulator>().filter_map(move |case| Some((same(case)?, case)))
}

/// The program that each core runs.
///
/// # Errors
/// Why the case failed on this core.
pub fn program(case: &Case, core: SimCore) -> Result<(), Failure> {
    run_case(case, Coherent::new(core))
}

/// A simulated core that looks at nothing through its cache.
#[derive(Clone, Debug)]
pub struct Coherent {
    core: SimCore,
    /// Whether it says that ranks share processors.
    pub crowded: bool,
}

impl Coherent {
    /// One that shares no processor.
    pub fn new(core: SimCore) -> Self {
        let crowded = false;
        Self { core, crowded }
    }
}

impl UncachedMemory for Coherent {
    #[track_caller]
    fn load_u8(&self, at: Address) -> u8 {
        self.core.load_u8(at)
    }

    #[track_caller]
    fn store_u8(&self, at: Address, value: u8) {
        self.core.store_u8(at, value);
    }

    #[track_caller]
    fn load_u32(&self, at: Address) -> u32 {
        self.core.load_u32(at)
    }

    #[track_caller]
    fn store_u32(&self, at: Address, value: u32) {
        self.core.store_u32(at, value);
    }

    #[track_caller]
    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.core.store_bytes(at, from);
    }

    #[track_caller]
    fn load_bytes(&self, at: Address, into: &mut [u8]) {
        self.core.load_bytes(at, into);
    }
}

impl CachedMemory for Coherent {
    #[track_caller]
    fn read(&self, at: Address, into: &mut [u8]) {
        self.core.load_bytes(at, into);
    }

    #[track_caller]
    fn write(&self, at: Address, from: &[u8]) {
        self.core.store_bytes(at, from);
    }
}

// SAFETY: every call goes to the simulated core, which keeps the promises; and nothing is ever in
// its cache (S1, S2, S8).
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Coherence for Coherent {
    const LINE: usize = <SimCore as Coherence>::LINE;
    const COHERENT: bool = true;

    fn write_back(&self, _: &[Lines]) {}

    fn invalidate(&self, _: &[Lines]) {}

    #[track_caller]
    fn drain(&self) {
        self.core.drain();
    }

    #[track_caller]
    fn acquire(&self) {
        self.core.acquire();
    }
}

impl TestAndSet for Coherent {
    #[track_caller]
    fn test_and_set(&self, of: CoreId) -> bool {
        self.core.test_and_set(of)
    }

    #[track_caller]
    fn clear(&self, of: CoreId) {
        self.core.clear(of);
    }
}

impl MessageBuffer for Coherent {
    fn message_buffer_size(&self) -> u32 {
        self.core.message_buffer_size()
    }
}

impl Topology for Coherent {
    const LISTENS: bool = true;

    fn cores(&self) -> u16 {
        self.core.cores()
    }

    fn core(&self) -> CoreId {
        self.core.core()
    }

    fn memory_size(&self) -> u32 {
        self.core.memory_size()
    }

    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        self.core.called(place);
    }

    fn lost(&self) -> Option<CoreId> {
        self.core.lost()
    }
}

impl Clock for Coherent {
    #[track_caller]
    fn cycles(&self) -> u64 {
        self.core.cycles()
    }

    fn hertz(&self) -> u64 {
        self.core.hertz()
    }
}

impl Relax for Coherent {
    const LOOKS: u32 = 2;

    fn is_crowded(&self) -> bool {
        self.crowded
    }

    #[track_caller]
    fn relax(&self, watched: &[Watch]) {
        self.core.relax(watched);
    }

    fn waits(&self, what: fmt::Arguments<'_>) {
        self.core.waits(what);
    }
}

impl Records for Coherent {}

impl NativeAtomics for Coherent {
    #[track_caller]
    fn atomic_u32(&self, at: Address, operation: Amo<u32>) -> u32 {
        self.core.atomic_u32(at, operation)
    }
}
