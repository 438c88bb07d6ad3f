//! What a case gets, and what it gives back.

use flagpost_hal::{Address, Atomic, Doorbell, Machine};

use crate::Args;

/// A platform that runs cases.
pub trait Platform: Sized + 'static {
    /// The handle a core holds of its machine. Clones are handles of the same core.
    type Machine: Machine + Doorbell + Clone + 'static;

    /// The machine's [`NativeAtomics`](flagpost_hal::NativeAtomics), if it has them. Without, the cases that
    /// need them are skipped: no platform fakes them.
    const ATOMICS: Option<AtomicU32<Self::Machine>> = None;

    /// The set-up of a case is done: what follows is worth trying in many schedules. Called once or more; the
    /// first counts.
    fn go(_machine: &Self::Machine) {}
}

/// [`NativeAtomics::atomic_u32`](flagpost_hal::NativeAtomics::atomic_u32) of machine `M`.
pub type AtomicU32<M> = fn(&M, Address, Atomic) -> u32;

/// What a case is called with, on each core.
pub struct Context<'a, P: Platform> {
    /// This core's handle.
    pub machine: P::Machine,
    /// A number that is the same on all cores and was not used before on this machine (not 0). It tells
    /// this run's start-up words from whatever memory holds.
    pub session: u32,
    /// The run's arguments.
    pub args: Args<'a>,
    /// Scratch words for the world: at least [`Context::ARENA_WORDS`].
    pub arena: &'a mut [u32],
    /// Takes a measurement or a result worth printing.
    pub report: &'a mut dyn FnMut(&'static str, u64),
}

impl<P: Platform> Context<'_, P> {
    /// Arena words that every case can rely on.
    pub const ARENA_WORDS: usize = 512;
}

/// Why a case failed on a core.
#[derive(Copy, Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Failure {
    /// A call into the library failed.
    Library(flagpost::Error),
    /// A value was not what it should be.
    Wrong {
        /// What was checked.
        what: &'static str,
        /// What it should be.
        expected: u64,
        /// What it was.
        found: u64,
    },
    /// An argument of the run cannot be used.
    Argument(&'static str),
}

impl From<flagpost::Error> for Failure {
    fn from(error: flagpost::Error) -> Self {
        Self::Library(error)
    }
}

impl<H> From<flagpost::Unfinished<H>> for Failure {
    fn from(unfinished: flagpost::Unfinished<H>) -> Self {
        Self::Library(unfinished.error)
    }
}

impl From<flagpost_link::Refusal> for Failure {
    fn from(refusal: flagpost_link::Refusal) -> Self {
        Self::Library(refusal.into())
    }
}

/// Checks that `found == expected`.
pub(crate) fn check(
    what: &'static str,
    found: impl Into<u64>,
    expected: impl Into<u64>,
) -> Result<(), Failure> {
    let (found, expected) = (found.into(), expected.into());
    if found == expected {
        Ok(())
    } else {
        Err(Failure::Wrong {
            what,
            expected,
            found,
        })
    }
}

/// One conformance case.
pub struct Case<P: Platform> {
    /// `module.what`, in lower case.
    pub name: &'static str,
    /// Fewest cores it makes sense with.
    pub min_cores: u16,
    /// Most cores it makes sense with (it is quadratic in them, say).
    pub max_cores: u16,
    /// Whether it needs [`Platform::ATOMICS`].
    pub atomics: bool,
    /// Called on every core.
    pub run: fn(&mut Context<'_, P>) -> Result<(), Failure>,
}

impl<P: Platform> Case<P> {
    /// Whether it can run on so many cores of this platform. The others are skipped, counted and printed.
    pub const fn admits(&self, cores: u16) -> bool {
        let atomics = !self.atomics || P::ATOMICS.is_some();
        self.min_cores <= cores && cores <= self.max_cores && atomics
    }
}
