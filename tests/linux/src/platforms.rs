//! Linux as the cases see it: five platforms.
//!
//! | platform | mode | cases |
//! |---|---|---|
//! | `coherent` | coherent, words changed by atomics, as by `flagpost_linux::run` | see below |
//! | `coherent-locks` | coherent, words changed under locks | all |
//! | `software-coherent` | the same, locks of plain words | all but those that need atomics |
//! | `emulated` | the same, the chip's locks | all but those that need atomics |
//! | `fabric` | none: a network, see `network` | those that any link can run |
//!
//! `coherent` runs all cases but those that wait for a lock. Its link is that of
//! `flagpost_linux::run`.

use std::process::ExitCode;

use flagpost_hal::{NativeAtomics as _, WithSoftwareLock};
use flagpost_linux::{Coherent, Emulated, HostLink, Linux, Mode, SoftwareCoherent, fabric};
use flagpost_tests::{
    AtomicU32, Has, MachinePlatform, Plain, Platform, Refusal, Ring, Session, cases,
};

use crate::arguments::Arguments;
use crate::network;
use crate::rank::{Plan, go};

/// The mode of a platform.
pub(crate) fn mode_of(platform: &str) -> &'static str {
    let modes = [SoftwareCoherent::NAME, Emulated::NAME];
    let mode = modes.into_iter().find(|mode| *mode == platform);
    mode.unwrap_or(Coherent::NAME)
}

/// One host, atomics.
struct Native;

impl Platform for Native {
    type Machine = Linux<Coherent>;
    type Link = HostLink;
    const PROGRAMS: bool = true;

    fn link(
        machine: &Self::Machine,
        session: Session,
        ring: Option<Ring>,
    ) -> Result<HostLink, Refusal> {
        HostLink::start_with_ring(machine.clone(), session, ring)
    }
}

impl MachinePlatform for Native {
    const ATOMICS: Option<AtomicU32<Self::Machine>> = Some(Linux::atomic_u32);
    const LOCKS: bool = false;
}

/// One host, locks.
type Locks = Plain<Linux<Coherent>, Atomics>;

/// A host has atomics.
struct Atomics;

impl Has<Linux<Coherent>> for Atomics {
    const ATOMICS: Option<AtomicU32<Linux<Coherent>>> = Some(Linux::atomic_u32);
}

/// Cache instructions, locks of plain words.
type Software = Plain<WithSoftwareLock<Linux<SoftwareCoherent>>>;

/// A private image per rank.
type Images = Plain<Linux<Emulated>>;

/// Goes through the plan of the platform that is asked for, as a rank; or lists it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let plan = Plan::new(arguments);
    match &*arguments.platform {
        SoftwareCoherent::NAME => go::<Software, SoftwareCoherent>(
            &plan,
            cases::<Software>().collect(),
            // There is room: the memory is this program's choice.
            |linux| WithSoftwareLock::new(linux.clone()).unwrap_or_else(|| unreachable!("no room")),
            |_| (),
        ),
        Emulated::NAME => go::<Images, Emulated>(
            &plan,
            cases::<Images>().collect(),
            Clone::clone,
            Linux::<Emulated>::reset,
        ),
        fabric::NAME => network::go(&plan),
        "coherent-locks" => {
            go::<Locks, Coherent>(&plan, cases::<Locks>().collect(), Clone::clone, |_| ())
        }
        _ => go::<Native, Coherent>(&plan, cases::<Native>().collect(), Clone::clone, |_| ()),
    }
}
