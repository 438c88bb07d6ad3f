//! Programs as their users write them.

use std::fmt::Display;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use flagpost::{Budget, Config, Error, Link, Session, World};
use flagpost_hal::{Topology as _, WithSoftwareLock};
use flagpost_hal_linux::segment::Segment;
use flagpost_hal_linux::{
    Coherent, Emulated, Linux, Mode, Shape, SoftwareCoherent, on_threads, take_part,
};
use flagpost_link::Refusal;
use flagpost_mapped::Mapped;

use crate::job::{self, Job, JoinError};
use crate::named;

/// The session of a job's first world: its memory is zeros before.
const SESSION: Session = Session::FIRST;

/// A mode, and the link over it.
pub trait Linked: Mode {
    /// What connects ranks in this mode.
    type Link: Link;

    /// This rank's link. `session` as for [`LoadStore::start`](flagpost_mapped::LoadStore::start).
    ///
    /// # Errors
    /// The link's.
    fn link(machine: Linux<Self>, session: Session) -> Result<Self::Link, Refusal>;
}

/// The link of one host: words are changed by its atomic operations.
pub type HostLink = flagpost_coherent::Coherent<Linux<Coherent>>;

impl Linked for Coherent {
    type Link = HostLink;

    fn link(machine: Linux<Self>, session: Session) -> Result<HostLink, Refusal> {
        HostLink::start(machine, session)
    }
}

impl Linked for SoftwareCoherent {
    type Link = Mapped<WithSoftwareLock<Linux<Self>>>;

    fn link(machine: Linux<Self>, session: Session) -> Result<Self::Link, Refusal> {
        let too_small = Refusal::NoMemory { missing: 4096 };
        Mapped::start(WithSoftwareLock::new(machine).ok_or(too_small)?, session)
    }
}

impl Linked for Emulated {
    type Link = Mapped<Linux<Self>>;

    fn link(machine: Linux<Self>, session: Session) -> Result<Self::Link, Refusal> {
        Mapped::start(machine, session)
    }
}

/// How a world is set up. The same on all ranks.
#[derive(Copy, Clone, Debug)]
pub struct Setup {
    /// The kernel's part.
    pub config: Config,
    /// How long this rank waits for each other one to join: a minute by default. Later calls have
    /// no budget.
    pub meeting: Budget,
    /// The working memory has room for so many windows ([`Config::words`]), and for some events
    /// and counters: 16 by default.
    pub windows: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            config: Config::default(),
            meeting: Budget::seconds(60),
            windows: 16,
        }
    }
}

impl Setup {
    pub(crate) fn arena(&self, ranks: u16) -> Vec<u32> {
        // Other windows than allocated ones take more, up to twice as many per rank.
        let more = 256 + 64 * self.windows;
        vec![0; more + self.config.words(ranks, 2 * self.windows)]
    }
}

/// Why a rank's program did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError<E> {
    /// It could not join its job.
    #[error("{0}")]
    Join(JoinError),
    /// Its world could not start.
    #[error("cannot start: {0}")]
    Start(flagpost::Error),
    /// The program failed.
    #[error("{0}")]
    Program(E),
}

fn with_world<M: Linked, T, E>(
    machine: Linux<M>,
    setup: Setup,
    program: impl FnOnce(&World<'_, M::Link>) -> Result<T, E>,
) -> Result<T, RunError<E>> {
    let of_job = machine.clone();
    let link = M::link(machine, SESSION).map_err(|refusal| RunError::Start(refusal.into()))?;
    let mut arena = setup.arena(link.size());
    let failed = |why| match why {
        Error::Timeout(_) => match named::not_come(of_job.segment()) {
            Some(missing) => RunError::Join(JoinError(missing)),
            None => RunError::Start(why),
        },
        why => RunError::Start(why),
    };
    let world = World::starting(link, &mut arena, setup.config)
        .and_then(|starting| starting.wait_within(setup.meeting));
    let world = world.map_err(failed)?;
    job::count_processors(&of_job);
    program(&world).map_err(RunError::Program)
}

/// Runs `program` as one rank of the job that this process was started for: by `flagpost-run`,
/// `mpiexec` or `srun`. Started by hand, it is a job of one.
///
/// Returns when the program has. Its errors go to standard error, with the rank and the place of
/// the call that failed ([`World::last_call`]); then the status is
/// 1, and the others' waits end with [`PeerLost`](flagpost::Error::PeerLost). So they do if it
/// panics, or if its process dies.
///
/// ```no_run
/// use flagpost::{Error, Tag};
///
/// fn main() -> std::process::ExitCode {
///     flagpost_linux::run(|world| {
///         let (me, size) = (world.rank(), world.size());
///         let window = world.allocate::<u64>(1)?;
///         let mut arrived = window.expect(0..1, Tag(7))?;
///         arrived.start()?;
///         window.put_notify(me.next(size), 0, &[u64::from(me.get())], Tag(7))?;
///         arrived.wait()?;
///         println!("rank {me}: rank {} was here", window.local().get(0)?);
///         Ok::<(), Error>(())
///     })
/// }
/// ```
///
/// A job of `flagpost-run` is run once: a rank that comes to it again, in the same process or
/// another, is refused in one line, and reaches no memory of the first world. Under other launchers
/// a second call is a world of its own, in memory of its own. The status is what the others and the
/// launcher go by, and must not be dropped:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// fn main() {
///     flagpost_linux::run(|world| world.barrier());
/// }
/// ```
#[must_use = "the status says whether the program has failed: return it from main"]
pub fn run<E: Display>(program: impl FnOnce(&World<'_, HostLink>) -> Result<(), E>) -> ExitCode {
    run_with::<Coherent, E>(Setup::default(), program)
}

/// [`run`], with another setup, or in another mode.
#[must_use = "the status says whether the program has failed: return it from main"]
pub fn run_with<M: Linked, E: Display>(
    setup: Setup,
    program: impl FnOnce(&World<'_, M::Link>) -> Result<(), E>,
) -> ExitCode {
    let mut rank = None;
    let result = join(|machine: Linux<M>| {
        rank = Some(machine.core().get());
        with_world::<M, (), E>(machine, setup, |world| {
            // Before the others hear that this rank is lost, and say so.
            program(world).inspect_err(|why| {
                say_failed(world, why);
            })
        })
    });
    match (rank, result) {
        (_, Ok(())) => ExitCode::SUCCESS,
        (Some(rank), Err(RunError::Program(why))) => {
            if !matches!(why, RunError::Program(_)) {
                say(&format!("rank {rank}: {why}"));
            }
            ExitCode::FAILURE
        }
        (_, Err(why)) => {
            say(&format!("error: {why}"));
            ExitCode::from(2)
        }
    }
}

/// Says why the program of this rank has failed, and where it has called Flagpost last. If it is
/// that another rank is lost, `flagpost-run` counts it among those that fail so. True then.
pub(crate) fn say_failed<L: Link>(world: &World<'_, L>, why: &dyn Display) -> bool {
    let line = why.to_string();
    let is_counted = std::env::var_os(job::RANK).is_some();
    let told = |lost| line == Error::PeerLost(lost).to_string();
    if is_counted && world.lost().any(told) {
        return true;
    }
    let call = world.last_call();
    let call = call.map_or(String::new(), |place| format!(" (call at {place})"));
    say(&format!("rank {}: {line}{call}", world.rank()));
    false
}

/// A line on standard error, in one piece among those of other ranks. If nobody reads it, that is
/// no reason to panic.
pub(crate) fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// This process's machine in its job, for programs that start their links themselves; `program` as
/// in [`run`].
///
/// # Errors
/// [`RunError::Join`], or the program's.
pub fn join<M: Mode, T, E>(
    program: impl FnOnce(Linux<M>) -> Result<T, E>,
) -> Result<T, RunError<E>> {
    let job = Job::join().map_err(RunError::Join)?;
    let mode = job.mode;
    take_part(job.segment, job.rank, job.crowded, job.noticed, |machine| {
        check_mode::<M>(&mode).map_err(RunError::Join)?;
        program(machine).map_err(RunError::Program)
    })
}

fn check_mode<M: Mode>(mode: &str) -> Result<(), JoinError> {
    if mode == M::NAME {
        return Ok(());
    }
    Err(JoinError(format!(
        "the program runs in mode {}, and the job in {}: start it with --mode {}, or write it for all modes \
         (flagpost_linux::run_in_mode)",
        M::NAME,
        mode,
        M::NAME
    )))
}

/// The mode of the job that this process was started for, or [`fabric::NAME`](crate::fabric::NAME).
/// Where the environment makes no sense, the first mode, in which joining says why.
pub fn mode_of_job() -> String {
    crate::job::mode()
}

/// [`run`] of a program for all modes, and for networks: a function over any link.
///
/// ```no_run
/// use flagpost::{Error, Link, World};
///
/// fn program<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
///     world.barrier()
/// }
///
/// fn main() -> std::process::ExitCode {
///     flagpost_linux::run_in_mode!(program)
/// }
/// ```
#[macro_export]
macro_rules! run_in_mode {
    ($program:path) => {{
        use $crate::{Coherent, Emulated, Mode as _, Setup, SoftwareCoherent, fabric, run_with};
        match &*$crate::mode_of_job() {
            fabric::NAME => fabric::run(Setup::default(), |world| $program(world)),
            SoftwareCoherent::NAME => {
                run_with::<SoftwareCoherent, _>(Setup::default(), |world| $program(world))
            }
            Emulated::NAME => run_with::<Emulated, _>(Setup::default(), |world| $program(world)),
            // Any other name is refused there.
            _ => run_with::<Coherent, _>(Setup::default(), |world| $program(world)),
        }
    }};
}

/// Runs `program` as a job whose `ranks` ranks are threads of this process: for unit tests. Returns
/// what each returned.
///
/// ```
/// use flagpost::Error;
///
/// let sums = flagpost_linux::threads(4, |world| {
///     world.barrier()?;
///     Ok::<u32, Error>(u32::from(world.rank().get()))
/// });
/// assert_eq!(sums.unwrap(), [0, 1, 2, 3]);
/// ```
///
/// # Errors
/// Of the first rank that failed; the others' waits end with
/// [`PeerLost`](flagpost::Error::PeerLost) then.
///
/// # Panics
/// If a rank's program does.
pub fn threads<T: Send, E: Display + Send>(
    ranks: u16,
    program: impl Fn(&World<'_, HostLink>) -> Result<T, E> + Sync,
) -> Result<Vec<T>, RunError<E>> {
    threads_with::<Coherent, T, E>(ranks, crate::DEFAULT_MEMORY, Setup::default(), program)
}

/// [`threads`], with `memory` bytes per rank, another setup, or in another mode.
///
/// # Errors
/// Of the first rank that failed; the others' waits end with
/// [`PeerLost`](flagpost::Error::PeerLost) then.
///
/// # Panics
/// As [`threads`].
pub fn threads_with<M: Linked, T: Send, E: Display + Send>(
    ranks: u16,
    memory: u64,
    setup: Setup,
    program: impl Fn(&World<'_, M::Link>) -> Result<T, E> + Sync,
) -> Result<Vec<T>, RunError<E>> {
    machines_with::<M, _, _>(ranks, memory, |machine| {
        with_world::<M, T, E>(machine, setup, &program)
    })
}

/// [`threads_with`], a level below: each thread gets its machine. A thread that fails or panics is
/// lost to the others.
///
/// # Errors
/// Of the first that was not told to be [lost](flagpost::Error::PeerLost) by another.
///
/// # Panics
/// If a thread does.
pub fn machines_with<M: Mode, T: Send, E: Send>(
    ranks: u16,
    memory: u64,
    program: impl Fn(Linux<M>) -> Result<T, RunError<E>> + Sync,
) -> Result<Vec<T>, RunError<E>> {
    let join = |why: String| RunError::Join(JoinError(why));
    let shape = Shape::new(ranks.into(), memory).map_err(|bad| join(bad.to_string()))?;
    let segment = Segment::of_threads(shape).map_err(|why| join(why.to_string()))?;
    let segment = Arc::new(segment);
    let crowded = usize::from(ranks) > crate::bind::processors();
    let results = on_threads(&segment, crowded, program);
    let mut done = Vec::new();
    let mut failed: Option<(usize, RunError<E>)> = None;
    let first = segment.lost().map(usize::from);
    for (number, result) in results.into_iter().enumerate() {
        match result {
            Ok(value) => done.push(value),
            // Who was lost first is the cause.
            Err(why) if failed.is_none() || first == Some(number) => failed = Some((number, why)),
            Err(_) => {}
        }
    }
    match failed {
        None => Ok(done),
        Some((_, why)) => Err(why),
    }
}
