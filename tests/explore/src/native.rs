//! The simulator with a link that changes words by the chip's atomic operations: the cases that any
//! link can run.

use flagpost_mapped::MappedNative;
use flagpost_sim::SimCore;
use flagpost_tests::{Failure, Platform, Refusal, Ring, Session, link_cases};

use crate::run_case;

/// The simulator, with native atomics.
pub struct NativeSimulator;

impl Platform for NativeSimulator {
    type Machine = SimCore;
    type Link = MappedNative<SimCore>;

    fn link(
        machine: &SimCore,
        session: Session,
        ring: Option<Ring>,
    ) -> Result<Self::Link, Refusal> {
        MappedNative::start_with_ring(machine.clone(), session, ring)
    }

    fn go(machine: &SimCore) {
        machine.mark("go");
    }
}

/// A case on this platform.
pub type Case = flagpost_tests::Case<NativeSimulator>;

/// The cases that any link can run, and what the simulator calls them.
pub fn cases() -> impl Iterator<Item = (&'static crate::Case, &'static Case)> {
    let same = |case: &Case| crate::cases().find(|other| other.name == case.name);
    link_cases::<NativeSimulator>().filter_map(move |case| Some((same(case)?, case)))
}

/// The program that each core runs.
///
/// # Errors
/// Why the case failed on this core.
pub fn program(case: &Case, core: SimCore) -> Result<(), Failure> {
    run_case(case, core)
}
