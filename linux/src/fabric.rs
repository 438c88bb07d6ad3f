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
//! | `FLAGPOST_ENDS` | what the files of `shm` begin with |
//! | `FLAGPOST_PROVIDER` | the network's kind: `tcp`, `shm`, or another name of libfabric's |
//! | `FLAGPOST_HELPER` | microseconds between two looks of a helper thread; 0 for none |
//!
//! Launchers of others give rank and ranks, and rank 0 makes the place where ranks meet: at
//! `FLAGPOST_ADDRESS`, or 127.0.0.1 if all ranks are on one host. It tells the other ranks by PMI-1
//! or PMIx, see the modules `pmi` and `pmix`. Of the other variables only `FLAGPOST_LINK=fabric` is
//! needed there.
//!
//! # What differs from shared memory
//! * No process ends before all ranks have ended their program, or one is lost: until then, peers
//!   may need its memory. Waits for a rank that has ended its program fail with
//!   [`PeerLeft`](flagpost::Error::PeerLeft), as over shared memory.
//! * What a rank does to a peer that computes may wait until the peer calls Flagpost, see
//!   [`flagpost_fabric`].

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, ExitCode};
use std::str::FromStr;
use std::time::{Duration, Instant};

use flagpost::World;
use flagpost_fabric::{Apart, Hub, Job as Part, Network, Options, Presence, Secret, new_name};
use flagpost_hal::fabric::Fabric as _;
use flagpost_hal_linux::{Shape, State};
use flagpost_network::Networked;

use crate::bind::Bind;
use crate::choice::{ADDRESS, HELPER, PROVIDER, pause};
use crate::descriptors;
use crate::hosts::Hosts;
use crate::inherited::may_open_its_files;
use crate::job::{self, ENDS, HUB, JoinError, Meets, SECRET};
use crate::launch::{self, Ended, Register, Starting};
use crate::run::{Setup, say, say_failed};
use crate::{pmi, pmix};

/// The name that stands where that of a mode does.
pub const NAME: &str = job::FABRIC;

/// The network's kind, unless the user says another.
pub const DEFAULT_PROVIDER: &str = "tcp";

/// Immediates that a rank keeps of each other one: so many may be sent before any is taken.
const QUEUE: u32 = 256;

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

/// In this time a hub looks twice at each connection.
const HUB_LOOKS: Duration = Duration::from_millis(100);

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

    fn first_lost(&self) -> Option<u16> {
        self.0.first_lost()
    }

    fn has_ended(&self, rank: u16) -> bool {
        self.0.has_ended(rank)
    }

    fn ask(&self) {
        self.0.ask();
    }

    fn has_answered(&self, rank: u16) -> bool {
        self.0.has_answered(rank)
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
    let ends = new_name()?;
    let starting = Starting::new(bind, ranks, job.grace, Some(&ends))?;
    // Beside each rank's process, its connection.
    let own = descriptors::of_launcher(ranks, 2);
    let most = own.max(descriptors::of_rank(&job.provider, ranks));
    { descriptors::is_possible(most) }
        .and_then(|()| descriptors::raise(own))
        .map_err(io::Error::other)?;
    let hub = Hub::start(job.address, ranks, secret).map_err(|why| {
        let what = format!(
            "cannot listen at {} ({why}): take an address of this host (--address, {ADDRESS})",
            job.address
        );
        io::Error::new(why.kind(), what)
    });
    let hub = (hub?, ranks);
    let address = hub.0.address().to_string();
    let helper = job.helper.map_or(0, |pause| pause.as_micros());
    let describe = |command: &mut Command, rank| {
        launch::describe(command, job.shape, rank);
        command
            .env(job::MODE, NAME)
            .env(HUB, &address)
            .env(SECRET, secret.to_text())
            .env(ENDS, &ends)
            .env(PROVIDER, &job.provider)
            .env(HELPER, helper.to_string());
    };
    let ended = starting.start(&hub, others, command, describe, seen, signals);
    sweep(&ends);
    ended
}

/// Removes what ends of libfabric's `shm` have left in shared memory if their processes were
/// killed, whatever stood between those and the launcher: this user's files whose names begin with
/// `ends` and a dash.
fn sweep(ends: &str) {
    let named = format!("{ends}-");
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
fn word<T: FromStr>(name: &str, default: Option<T>) -> Result<T, JoinError> {
    let Some(text) = job::variable(name) else {
        let missing = || JoinError(format!("{name} is not set: use flagpost-run"));
        return default.ok_or_else(missing);
    };
    let word = text.to_str().and_then(|text| text.parse().ok());
    word.ok_or_else(|| JoinError(format!("{name}={} makes no sense", text.display())))
}

/// This process's end of its job's network.
#[derive(Debug)]
pub struct Joined {
    /// The network.
    pub network: Network,
    /// Where the ranks have met, on the rank that has made it.
    hub: Option<Hub>,
}

impl Joined {
    /// [`Network::leave`], for a program that ends well. Blocks until all ranks end theirs.
    ///
    /// # Errors
    /// [`Apart`]: a rank is gone, and so this one has not waited for all. It has left.
    pub fn leave(self) -> Result<(), Apart> {
        let left = self.network.leave();
        // The others leave now, or are lost: they are to find the hub.
        if let Some(hub) = self.hub.as_ref().filter(|_| self.network.is_own()) {
            let end = Instant::now() + HEARING;
            let is_there = |rank| hub.presence(rank) == Presence::Here;
            while (0..self.network.cores()).any(is_there) && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        left
    }
}

/// This process's end of its job's network, for programs that start their links themselves. Blocks
/// until all ranks are there.
///
/// # Errors
/// [`JoinError`]: this process was not started for such a job, or the network does not work.
pub fn join() -> Result<Joined, JoinError> {
    let (rank, shape, meets) = job::of_network()?;
    may_open_its_files().map_err(JoinError)?;
    let ranks = shape.ranks();
    let provider = word(PROVIDER, Some(DEFAULT_PROVIDER.to_owned()))?;
    let helper = job::variable(HELPER).map_or(Ok(0), |text| pause(&text.to_string_lossy()));
    let helper = helper.map_err(|why| JoinError(format!("{HELPER}: {why}")))?;
    let of_hub = match meets {
        Meets::AtLauncher => 0,
        _ if rank == 0 => descriptors::of_hub(ranks),
        _ => 0,
    };
    descriptors::raise(descriptors::of_rank(&provider, ranks) + of_hub).map_err(JoinError)?;
    let (place, hub) = match meets {
        Meets::AtLauncher => ((word(HUB, None)?, word(SECRET, None)?), None),
        Meets::Alone => start_hub(Ipv4Addr::LOCALHOST.into(), ranks)?,
        Meets::ByPmi { fd, one_host } => {
            let launcher = pmi::connect(fd).map_err(JoinError)?;
            meet_at_first(rank, ranks, one_host, |own| pmi::exchange(launcher, own))?
        }
        Meets::ByPmix { one_host } => {
            meet_at_first(rank, ranks, one_host, |own| pmix::exchange(rank, own))?
        }
    };
    let secret: String = place.1;
    let secret = Secret::from_text(&secret);
    let part = Part {
        rank,
        ranks,
        hub: place.0,
        secret: secret.ok_or_else(|| JoinError("the job's secret is none".to_owned()))?,
    };
    let options = Options {
        provider,
        address: None,
        name: job::variable(ENDS).and_then(|name| name.into_string().ok()),
        memory: shape.memory(),
        helper: (helper > 0).then(|| Duration::from_micros(helper)),
    };
    let network = Network::open(&part, &options).map_err(|why| JoinError(why.to_string()))?;
    Ok(Joined { network, hub })
}

/// Where ranks meet, and their secret.
type Place = (SocketAddr, String);

fn start_hub(address: IpAddr, ranks: u16) -> Result<(Place, Option<Hub>), JoinError> {
    let failed = |why| JoinError(format!("cannot meet the other ranks at {address}: {why}"));
    let secret = Secret::new().map_err(failed)?;
    let hub = Hub::start(address, ranks, secret).map_err(failed)?;
    Ok(((hub.address(), secret.to_text()), Some(hub)))
}

/// Rank 0 makes a place to meet, and tells the others of it by `exchange`.
fn meet_at_first(
    rank: u16,
    ranks: u16,
    one_host: bool,
    exchange: impl FnOnce(Option<&str>) -> Result<String, String>,
) -> Result<(Place, Option<Hub>), JoinError> {
    let exchange = |own: Option<&str>| exchange(own).map_err(JoinError);
    if rank == 0 {
        if !one_host && std::env::var_os(ADDRESS).is_none() {
            return Err(JoinError(format!(
                "the job's ranks are on several hosts: set {ADDRESS} to the address of rank 0's \
                 host that the others reach"
            )));
        }
        let address: IpAddr = word(ADDRESS, Some(Ipv4Addr::LOCALHOST.into()))?;
        if address.is_unspecified() {
            return Err(JoinError(format!("{ADDRESS}={address} is no one address")));
        }
        let (place, hub) = start_hub(address, ranks)?;
        exchange(Some(&format!("{},{}", place.0, place.1)))?;
        return Ok((place, hub));
    }
    let told = exchange(None)?;
    let place = told.split_once(',');
    let place = place.and_then(|(hub, secret)| Some((hub.parse().ok()?, secret.to_owned())));
    let none = || JoinError("rank 0 has not said where the ranks meet".to_owned());
    Ok((place.ok_or_else(none)?, None))
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
    let joined = match join() {
        Ok(joined) => joined,
        Err(why) => return failed(&why),
    };
    let network = &joined.network;
    let mut arena = setup.arena(network.cores());
    let link = match Networked::start_with_queue(network.clone(), QUEUE) {
        Ok(link) => link,
        Err(why) => return failed(&format!("cannot start: {}", flagpost::Error::from(why))),
    };
    let started = World::starting(link, &mut arena, setup.config);
    let started = started.and_then(|starting| starting.wait_within(setup.meeting));
    let world = match started {
        Ok(world) => world,
        Err(why) => return failed(&format!("cannot start: {why}")),
    };
    match program(&world) {
        Ok(()) => {
            // A rank that was lost meanwhile is the launcher's to report.
            let _ = joined.leave();
            ExitCode::SUCCESS
        }
        Err(why) => {
            if say_failed(&world, &why) {
                // The hub hears of the lost rank before it hears of this one.
                std::thread::sleep(HUB_LOOKS);
            }
            ExitCode::FAILURE
        }
    }
}
