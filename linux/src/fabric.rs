//! Jobs whose ranks share no memory: each has its own, and reaches the others' over a network.
//!
//! The network is libfabric's, see [`flagpost_fabric`]: what it needs of a provider, what it
//! promises, what was tried. A program for it is a function over any link; with
//! [`run_in_mode`](crate::run_in_mode) the same program runs over shared memory or a network, as
//! its launcher says: `flagpost-run --link fabric -n 4 program`.
//!
//! # Environment of a rank
//! | variable | what |
//! |---|---|
//! | `FLAGPOST_RANK`, `FLAGPOST_RANKS`, `FLAGPOST_MEMORY` | as for shared memory |
//! | `FLAGPOST_MODE` | `fabric` |
//! | `FLAGPOST_HUB` | address and port at which the ranks meet |
//! | `FLAGPOST_SECRET` | what the hub asks of a rank, in hexadecimal digits |
//! | `FLAGPOST_PROVIDER` | the network's kind: `tcp`, `shm`, or another name of libfabric's |
//! | `FLAGPOST_HELPER` | microseconds between two looks of a helper thread; 0 for none |
//!
//! # What differs from shared memory
//! * No rank ends before all have ended their program, or one is lost: until then, peers may need
//!   its memory. So no call fails with [`PeerLeft`](flagpost::Error::PeerLeft): it waits.
//! * What a rank does to a peer that computes may wait until the peer calls Flagpost, see
//!   [`flagpost_fabric`].

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use flagpost::World;
use flagpost_fabric::{Hub, Job as Part, Network, Options, Presence, Secret};
use flagpost_hal::fabric::Fabric as _;
use flagpost_hal_linux::{Shape, State};
use flagpost_network::Networked;

use crate::bind::Bind;
use crate::hosts::Hosts;
use crate::job::{self, JoinError};
use crate::launch::{self, Ended, Register, Starting};
use crate::run::{Setup, say};

/// The name that stands where that of a mode does.
pub const NAME: &str = "fabric";

pub(crate) const HUB: &str = "FLAGPOST_HUB";
const SECRET: &str = "FLAGPOST_SECRET";
const PROVIDER: &str = "FLAGPOST_PROVIDER";
const HELPER: &str = "FLAGPOST_HELPER";

/// libfabric's name of its network within one host.
const SHM: &str = "shm";

/// The link of ranks on a network.
pub type FabricLink = Networked<Network>;

/// What to start.
#[derive(Clone, Debug)]
pub struct Job {
    /// Ranks, and memory of each.
    pub shape: Shape,
    /// The network's kind: `tcp`, `shm`, or another name of libfabric's.
    pub provider: String,
    /// The address of this host at which the ranks meet: one that their hosts reach.
    pub address: IpAddr,
    /// The hosts of the ranks; none: all on this one.
    pub hosts: Option<Hosts>,
    /// How long a helper thread of each rank rests between two looks at the network; none: no such
    /// thread.
    pub helper: Option<Duration>,
    /// Which processors ranks run on, if all are on this host. Else they are not bound.
    pub bind: Bind,
    /// How long the others may take to end after a rank is lost, or after a signal.
    pub grace: Duration,
}

/// How long the hub may take to hear what a rank has told before its process ended.
const HEARING: Duration = Duration::from_secs(2);

impl Register for (Hub, u16) {
    fn ranks(&self) -> u16 {
        self.1
    }

    fn state_of(&self, rank: u16) -> State {
        match self.0.presence(rank) {
            Presence::Expected => State::Expected,
            Presence::Left => State::Done,
            Presence::Here | Presence::Lost => State::Here,
        }
    }

    fn last_state_of(&self, rank: u16) -> State {
        let end = Instant::now() + HEARING;
        while self.0.presence(rank) == Presence::Here && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.state_of(rank)
    }

    fn mark_lost(&self, rank: u16) {
        self.0.mark_lost(rank);
    }
}

/// [`launch_with`](launch::launch_with) of a job over a network.
///
/// Where [`Job::hosts`] names other hosts, the processes that are told of are those of the command
/// that starts a rank there, and end as the rank does: with its status, or 128 + N for signal N.
/// The ranks there end when this process does.
///
/// # Errors
/// What the system refused; the ranks that were started are ended.
pub fn launch(
    job: &Job,
    command: &mut dyn FnMut(u16) -> Command,
    seen: &mut dyn FnMut(&Ended),
    signals: Option<BorrowedFd<'_>>,
) -> io::Result<Vec<Ended>> {
    let (ranks, secret) = (job.shape.ranks(), Secret::new()?);
    let others = job.hosts.as_ref().filter(|hosts| !hosts.are_here());
    let bind = others.map_or(&job.bind, |_| &Bind::None);
    let starting = Starting::new(bind, ranks, job.grace)?;
    let hub = (Hub::start(job.address, ranks, secret)?, ranks);
    let address = hub.0.address().to_string();
    let helper = job.helper.map_or(0, |pause| pause.as_micros());
    let describe = |command: &mut Command, rank| {
        launch::describe(command, job.shape, rank);
        command
            .env(job::MODE, NAME)
            .env(HUB, &address)
            .env(SECRET, secret.to_text())
            .env(PROVIDER, &job.provider)
            .env(HELPER, helper.to_string());
    };
    let ended = starting.start(&hub, others, command, describe, seen, signals)?;
    if job.provider == SHM {
        let badly = ended.iter().filter(|ended| !ended.is_well());
        badly.for_each(|ended| sweep(ended.pid));
    }
    Ok(ended)
}

/// Removes what an end of libfabric's `shm` has left in shared memory if its process, `pid`, was
/// killed: this user's files whose names begin with the process's number.
fn sweep(pid: u32) {
    let named = format!("{pid}:");
    let user = rustix::process::geteuid().as_raw();
    for entry in std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten()
    {
        let is_ours = || entry.metadata().is_ok_and(|file| file.uid() == user);
        if entry.file_name().to_string_lossy().starts_with(&named) && is_ours() {
            // Somebody else may have done so.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A variable of the environment, read as what it should be.
fn word<T: std::str::FromStr>(name: &str) -> Result<T, JoinError> {
    let text = std::env::var(name).ok();
    let why = || {
        JoinError(format!(
            "{name} is missing, or makes no sense: use flagpost-run"
        ))
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(why)
}

/// This process's end of its job's network, for programs that start their links themselves. Blocks
/// until all ranks are there. A program that ends well calls [`Network::leave`] last.
///
/// # Errors
/// [`JoinError`]: this process was not started for such a job, or the network does not work.
pub fn join() -> Result<Network, JoinError> {
    let secret: String = word(SECRET)?;
    let secret = Secret::from_text(&secret);
    let part = Part {
        rank: word(job::RANK)?,
        ranks: word(job::RANKS)?,
        hub: word::<SocketAddr>(HUB)?,
        secret: secret.ok_or_else(|| JoinError(format!("{SECRET} is no secret of a job")))?,
    };
    let helper: u64 = word(HELPER)?;
    let options = Options {
        provider: word(PROVIDER)?,
        address: None,
        memory: word(job::MEMORY)?,
        helper: (helper > 0).then(|| Duration::from_micros(helper)),
    };
    Network::open(&part, &options).map_err(|why| JoinError(why.to_string()))
}

/// [`run_with`](crate::run_with), over the network of the job that this process was started for.
///
/// ```no_run
/// use flagpost::{Error, Link, World};
/// use flagpost_linux::{Setup, fabric};
///
/// fn program<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
///     world.barrier()
/// }
///
/// fn main() -> std::process::ExitCode {
///     fabric::run(Setup::default(), program)
/// }
/// ```
#[must_use = "the status says whether the program has failed: return it from main"]
pub fn run<E: Display>(
    setup: Setup,
    program: impl FnOnce(&World<'_, FabricLink>) -> Result<(), E>,
) -> ExitCode {
    let failed = |why: &dyn Display| {
        say(&format!("error: {why}"));
        ExitCode::from(2)
    };
    let network = match join() {
        Ok(network) => network,
        Err(why) => return failed(&why),
    };
    let mut arena = setup.arena(network.cores());
    let link = match Networked::start(network.clone()) {
        Ok(link) => link,
        Err(why) => return failed(&format!("cannot start: {}", flagpost::Error::from(why))),
    };
    let result = match World::start_within(link, &mut arena, setup.config, setup.meeting) {
        Ok(world) => program(&world),
        Err(why) => return failed(&format!("cannot start: {why}")),
    };
    match result {
        Ok(()) => {
            // A rank that was lost meanwhile is the launcher's to report.
            let _ = network.leave();
            ExitCode::SUCCESS
        }
        Err(why) => {
            say(&format!("{}: {why}", network.core()));
            ExitCode::FAILURE
        }
    }
}
