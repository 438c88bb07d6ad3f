//! What a case gets, and what it gives back.

use core::fmt;
use core::marker::PhantomData;

use flagpost::{Link, Session, VectorLink};
use flagpost_hal::{Address, Amo, CoreId, Machine};
use flagpost_link::Refusal;
use flagpost_mapped::{Mapped, Ring};

use crate::Args;
use crate::arguments::{self, Argument};

/// A platform that runs cases.
pub trait Platform: Sized + 'static {
    /// What a core has to begin with: the handle of its machine, or its end of a network. Clones
    /// are the same core's.
    type Machine: Clone + 'static;

    /// What connects its ranks.
    type Link: Link;

    /// This core's link. `session` as in [`Context::session`]; rings as `ring` says, if it does
    /// (links without rings take the number of entries as a hint).
    ///
    /// # Errors
    /// The link's.
    fn link(
        machine: &Self::Machine,
        session: Session,
        ring: Option<Ring>,
    ) -> Result<Self::Link, Refusal>;

    /// Whether its table has the cases `apps.`. To compile whole programs for a link takes seconds:
    /// a link of each kind has them.
    const PROGRAMS: bool = false;

    /// The set-up of a case is done: what follows is worth trying in many schedules. Called once or
    /// more; the first counts.
    fn go(_machine: &Self::Machine) {}
}

/// A platform that is a load/store machine: it runs all cases.
pub trait MachinePlatform: Platform<Machine: Machine, Link: VectorLink> {
    /// The machine's [`NativeAtomics`](flagpost_hal::NativeAtomics), if it has them. Without, the
    /// cases that need them are skipped: no platform fakes them.
    const ATOMICS: Option<AtomicU32<Self::Machine>> = None;

    /// The bells of the machine's cores, if it has them.
    const BELL: Option<Bell<Self::Machine>> = None;

    /// Whether the link changes words under the machine's locks. Where it does so by atomic
    /// operations, a lock that a case keeps makes no call wait: cases of such waits are skipped.
    const LOCKS: bool = true;
}

/// A load/store machine whose ranks are connected by [`Mapped`], and what it has besides: nothing,
/// if not said.
pub struct Plain<M, H = ()>(PhantomData<(M, H)>);

/// What a machine has that others lack, as in [`MachinePlatform`].
pub trait Has<M>: 'static {
    /// Atomics.
    const ATOMICS: Option<AtomicU32<M>> = None;
    /// Bells.
    const BELL: Option<Bell<M>> = None;
    /// [`Platform::PROGRAMS`].
    const PROGRAMS: bool = false;
}

impl<M> Has<M> for () {}

impl<M: Machine + Clone + 'static, H: Has<M>> Platform for Plain<M, H> {
    type Machine = M;
    type Link = Mapped<M>;
    const PROGRAMS: bool = H::PROGRAMS;

    fn link(machine: &M, session: Session, ring: Option<Ring>) -> Result<Mapped<M>, Refusal> {
        mapped(machine, session, ring)
    }
}

impl<M: Machine + Clone + 'static, H: Has<M>> MachinePlatform for Plain<M, H> {
    const ATOMICS: Option<AtomicU32<M>> = H::ATOMICS;
    const BELL: Option<Bell<M>> = H::BELL;
}

/// How a core of machine `M` rings another's bell, and how it waits until its own has been rung.
pub type Bell<M> = (fn(&M, CoreId), fn(&M));

/// [`Platform::link`] of load/store machines.
///
/// # Errors
/// The link's.
pub fn mapped<M: Machine + Clone>(
    machine: &M,
    session: Session,
    ring: Option<Ring>,
) -> Result<Mapped<M>, Refusal> {
    Mapped::start_with_ring(machine.clone(), session, ring)
}

/// [`NativeAtomics::atomic_u32`](flagpost_hal::NativeAtomics::atomic_u32) of machine `M`.
pub type AtomicU32<M> = fn(&M, Address, Amo<u32>) -> u32;

/// What a case is called with, on each core.
pub struct Context<'a, P: Platform> {
    /// This core's handle.
    pub machine: P::Machine,
    /// The same on all cores, and not used before on this machine. It
    /// tells this run's start-up words from whatever memory holds.
    pub session: Session,
    /// The run's arguments.
    pub args: Args<'a>,
    /// Scratch words for the world: at least [`Context::arena_words`].
    pub arena: &'a mut [u32],
    /// Takes a measurement or a result worth printing.
    pub report: &'a mut dyn FnMut(&'static str, u64),
}

impl<P: Platform> Context<'_, P> {
    /// Arena words that every case can rely on, with so many cores: windows take some per rank.
    pub const fn arena_words(cores: u16) -> usize {
        512 + 8 * cores as usize
    }
}

/// The outcome of a case, or of a step of one.
pub type Result<T = (), E = Failure> = core::result::Result<T, E>;

/// Why a case failed on a core.
#[derive(Copy, Clone, Debug)]
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // The name first: people and tools look for it.
            Self::Library(error) => write!(f, "{error:?}: {error}"),
            Self::Wrong {
                what,
                expected,
                found,
            } => write!(f, "{what}: expected {expected}, found {found}"),
            Self::Argument(why) => f.write_str(why),
        }
    }
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

impl Args<'_> {
    /// The value of `argument`, a number, or `default` if it is not given.
    ///
    /// # Errors
    /// What the argument takes, if it does not take that value on so many cores.
    pub(crate) fn of(&self, argument: &Argument, cores: u16, default: u32) -> Result<u32> {
        let Some(value) = self.text(argument.name) else {
            return Ok(default);
        };
        let number = value.parse().ok();
        let usable =
            number.filter(|_| arguments::check(argument.name, value, cores.into()).is_ok());
        usable.ok_or(Failure::Argument(argument.takes))
    }
}

/// Checks that `found == expected`.
pub(crate) fn check(what: &'static str, found: impl Into<u64>, expected: impl Into<u64>) -> Result {
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

impl<P: Platform> Copy for Case<P> {}

impl<P: Platform> Clone for Case<P> {
    fn clone(&self) -> Self {
        *self
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
    /// How many epochs, messages, barriers or calls follow each other on the rank that has most; of
    /// interest in small cases.
    pub epochs: u32,
    /// Whether it needs [`MachinePlatform::ATOMICS`].
    pub atomics: bool,
    /// What it needs and the platform lacks, if anything: then it is skipped, counted and printed.
    pub lacks: Option<&'static str>,
    /// Whether ranks find dirty lines in their peers' caches on purpose: the machine's oracle of
    /// stores that were not written back is off.
    pub leftovers: bool,
    /// Called on every core.
    pub run: fn(&mut Context<'_, P>) -> Result,
}

impl<P: Platform> Case<P> {
    /// Whether it can run on so many cores of this platform. The others are skipped, counted and
    /// printed.
    pub const fn admits(&self, cores: u16) -> bool {
        self.min_cores <= cores && cores <= self.max_cores && self.lacks.is_none()
    }
}
