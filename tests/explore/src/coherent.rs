//! The simulator as a machine whose caches the hardware keeps in step: cached accesses go past the
//! cache, and there is nothing to write back or to drop ([`Coherence::COHERENT`]). Its stores and
//! loads pass each other as those of the profile do.
//!
//! What links and the kernel do on such machines only, they do here.

use std::fmt;

use flagpost_hal::{
    Address, Amo, CachedMemory, Coherence, CoreId, Lines, NativeAtomics, Relax,
    UncachedMemory as _, Watch,
};
use flagpost_sim::SimCore;
use flagpost_tests::{Failure, Platform, Refusal, Ring, Session, link_cases};

use crate::{forward, run_case};

/// The coherent simulator, with native atomics.
pub struct CoherentSimulator;

impl Platform for CoherentSimulator {
    type Machine = Coherent;
    type Link = flagpost_coherent::Coherent<Coherent>;

    fn link(
        machine: &Coherent,
        session: Session,
        ring: Option<Ring>,
    ) -> Result<Self::Link, Refusal> {
        Self::Link::start_with_ring(machine.clone(), session, ring)
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

    forward!(in Coherence => core: drain(); acquire());
}

forward!(UncachedMemory, TestAndSet, MessageBuffer, Clock for Coherent => core);

forward!(Topology for Coherent => core {
    fn lost(&self) -> Option<CoreId> {
        self.core.lost()
    }
});

impl Relax for Coherent {
    const LOOKS: u32 = 2;

    fn is_crowded(&self) -> bool {
        self.crowded
    }

    forward!(in Relax => core:
        relax(watched: &[Watch]); told(core: CoreId); waits(what: fmt::Arguments<'_>));
}

impl flagpost_coherent::Records for Coherent {}

impl NativeAtomics for Coherent {
    type Word = u32;

    forward!(in NativeAtomics => core: atomic_u32(at: Address, operation: Amo<u32>) -> u32);
}
