//! Starting a job, and watching over it.
//!
//! # Steps
//! * Sweep: the launcher removes what killed jobs of other launchers have left in `/dev/shm`.
//! * Memory: a sealed memfd, or a file without a name, which the ranks inherit.
//! * Start: one process per rank, in a session of its own, bound to its processor. Each is killed
//!   when the launcher dies.
//! * Watch: the launcher sleeps until a process ends, by pidfds. Where there are not enough
//!   descriptors it polls every 50 ms.
//! * A rank dies: the launcher marks it lost. The others' waits end with `PeerLost`; they have
//!   [`Job::grace`] to end by themselves.
//! * The rest is killed after that.
//!
//! A rank is dead if its process was ended by a signal or with a status other than 0; with 0,
//! between joining and leaving; or with 0, without having joined, while others have.
//!
//! Nothing is left behind: the memory has no name, and is gone with the last process. What a rank
//! has started ends with it, and all of it with the launcher: see the module `group`.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpgrp, getrlimit,
    set_parent_process_death_signal, setrlimit, waitid,
};
use rustix::termios::tcgetpgrp;

use flagpost_hal_linux::segment::{self, Segment, refused};
use flagpost_hal_linux::{Shape, State};

use crate::bind::{self, Bind};
use crate::choice::job_variable;
use crate::descriptors;
use crate::ended::{is_starved, starved_processes, vmstat};
use crate::group::{Group, Keeper, is_here, kill_sessions};
use crate::hosts::Hosts;
use crate::inherited::{hear_of_children, unblock_signals};
use crate::job;
use crate::named;
use crate::run::say;

pub use crate::ended::{Ended, Followers};

/// [`Job::grace`], unless the user says another.
pub const GRACE: Duration = Duration::from_secs(3);

/// What to start.
#[derive(Clone, Debug)]
pub struct Job {
    /// Ranks, and memory of each.
    pub shape: Shape,
    /// Name of the mode.
    pub mode: String,
    /// Where ranks run.
    pub bind: Bind,
    /// A directory for a file without a name to be the memory, instead of a memfd.
    pub directory: Option<PathBuf>,
    /// How long the others may take to end after a rank is lost, or after a signal.
    pub grace: Duration,
}

struct Process {
    rank: u16,
    group: Group,
    killed: bool,
}

/// Starts `command` once per rank of `job`, and waits until all have ended. Tells `seen` of each in
/// turn. If this process ignores SIGCHLD, it no longer does: else nobody would hear how they end.
///
/// # Errors
/// What the system refused; the ranks that were started are ended.
pub fn launch(
    job: &Job,
    command: &mut dyn FnMut(u16) -> Command,
    seen: &mut dyn FnMut(&Ended),
) -> io::Result<Vec<Ended>> {
    launch_with(job, command, seen, None)
}

/// [`launch`], passing on `signals`: each byte that can be read there is the number of one, for the
/// ranks and what they have started. SIGUSR1 is kept: it asks the ranks what they wait for, as the
/// first SIGINT does before it is passed on; the answers go to standard error. After SIGHUP,
/// SIGINT, SIGQUIT and SIGTERM they have [`Job::grace`] to end; what is left is killed, or at once
/// with the next of these. SIGTSTP stops them and the launcher, SIGCONT lets them go on.
///
/// # Errors
/// What the system refused; the ranks that were started are ended.
pub fn launch_with(
    job: &Job,
    command: &mut dyn FnMut(u16) -> Command,
    seen: &mut dyn FnMut(&Ended),
    signals: Option<BorrowedFd<'_>>,
) -> io::Result<Vec<Ended>> {
    named::sweep_leftovers();
    // Before the memory, which its children inherit.
    let starting = Starting::new(&job.bind, job.shape.ranks(), job.grace, None)?;
    let file = match &job.directory {
        None => segment::create(job.shape)?,
        Some(directory) => segment::create_in(directory, job.shape).map_err(|why| {
            let what = format!("no memory in {}: {why}", directory.display());
            io::Error::new(why.kind(), what)
        })?,
    };
    let segment = Segment::map(&file, job.shape)?;
    let describe = move |command: &mut Command, rank: u16| {
        describe(command, job.shape, rank);
        command.env(job::FD, file.as_raw_fd().to_string());
        command.env(job::MODE, &job.mode);
    };
    starting.start(&segment, None, command, describe, seen, signals)
}

/// Where it is known which ranks have joined a job, and which have left it.
pub(crate) trait Register {
    /// How many ranks there are.
    fn ranks(&self) -> u16;

    /// What is known of a rank.
    fn state_of(&self, rank: u16) -> State;

    /// [`state_of`](Self::state_of) a rank whose process has ended: what it has told before is
    /// known.
    fn last_state_of(&self, rank: u16) -> State {
        self.state_of(rank)
    }

    /// The others are to know that a rank is lost.
    fn mark_lost(&self, rank: u16);

    /// The rank that was lost first, as far as anybody knows: why others fail.
    fn first_lost(&self) -> Option<u16>;

    /// Whether `rank` has ended its program in order. Its process may still be needed.
    fn has_ended(&self, rank: u16) -> bool {
        self.state_of(rank) == State::Done
    }

    /// Asks all ranks what they wait for. Those that wait say so on their standard error.
    fn ask(&self);

    /// Whether `rank` has answered the last question.
    fn has_answered(&self, rank: u16) -> bool;
}

impl Register for Segment {
    fn ranks(&self) -> u16 {
        self.shape().ranks()
    }

    fn state_of(&self, rank: u16) -> State {
        Segment::state_of(self, rank)
    }

    fn mark_lost(&self, rank: u16) {
        Segment::mark_lost(self, rank);
    }

    fn first_lost(&self) -> Option<u16> {
        self.lost()
    }

    fn ask(&self) {
        Segment::ask(self);
    }

    fn has_answered(&self, rank: u16) -> bool {
        Segment::has_answered(self, rank)
    }
}

/// What a job is started with, whatever connects its ranks.
pub(crate) struct Starting {
    /// Of this process's descriptors, as it was started: its ranks have the same.
    limit: Rlimit,
    places: Option<Vec<usize>>,
    grace: Duration,
    keeper: Keeper,
}

impl Starting {
    /// Finds a processor for each of `ranks` ranks, and starts what ends them with this process;
    /// `ends` as for the [`Keeper`].
    pub(crate) fn new(
        bind: &Bind,
        ranks: u16,
        grace: Duration,
        ends: Option<&str>,
    ) -> io::Result<Self> {
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        are_permitted()?;
        hear_of_children();
        Ok(Self {
            limit: getrlimit(Resource::Nofile),
            places: bind.places(ranks).map_err(invalid)?,
            grace,
            keeper: Keeper::start(ends),
        })
    }

    /// Starts a process per rank, which `describe` gives what its link needs, on the host that it
    /// belongs to, and waits until all have ended.
    pub(crate) fn start(
        self,
        register: &dyn Register,
        hosts: Option<&Hosts>,
        command: &mut dyn FnMut(u16) -> Command,
        describe: impl Fn(&mut Command, u16),
        seen: &mut dyn FnMut(&Ended),
        signals: Option<BorrowedFd<'_>>,
    ) -> io::Result<Vec<Ended>> {
        /// Bytes that a pipe takes of a writer without a reader, which may never come.
        const PIPE: usize = 64 << 10;
        let Self {
            limit,
            places,
            grace,
            keeper,
        } = self;
        let starved = starved_processes(&vmstat());
        let watched = descriptors::raise(descriptors::of_launcher(register.ranks(), 1)).is_ok();
        let few = { places.iter() }.map(|places| BTreeSet::from_iter(places).len());
        let processors = few.chain([bind::processors()]).min().unwrap_or(1);
        let (_, asked) = job_variable(job::PROCESSORS);
        let processors = asked.unwrap_or_else(|| processors.to_string().into());
        let mut processes = Vec::new();
        for rank in 0..register.ranks() {
            let cpu = places.as_ref().map(|places| places[usize::from(rank)]);
            let mut command = command(rank);
            describe(&mut command, rank);
            command.env(job::PROCESSORS, &processors);
            let input = hosts.and_then(|hosts| hosts.send(&mut command, rank));
            if let Some(input) = input.as_ref().filter(|input| input.len() > PIPE) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!(
                        "rank {rank} has {} bytes of environment and arguments for its host: {PIPE} \
                         are possible",
                        input.len()
                    ),
                ));
            }
            to_be_led(&mut command, limit, keeper.ear());
            let child = bind::on(cpu, || command.spawn());
            let mut child = child.map_err(|why| {
                let program = command.get_program().display();
                io::Error::new(why.kind(), format!("cannot start {program}: {why}"))
            })?;
            if let (Some(input), Some(pipe)) = (input, child.stdin.as_mut()) {
                // What does not read it has ended, and that is told. The pipe stays open.
                let _ = pipe.write_all(&input);
            }
            let group = Group::new(child, watched);
            processes.push(Process {
                rank,
                group,
                killed: false,
            });
        }
        drop(describe);
        let watch = Watch {
            register,
            processes,
            keeper,
            signals,
            seen,
            ended: Vec::new(),
            strangers: Vec::new(),
            followers: Vec::new(),
            starved,
            grace,
            deadline: None,
        };
        watch.run()
    }
}

/// Whether the system permits the calls by which ranks are watched. Where a container forbids them,
/// it is told before any rank is there.
fn are_permitted() -> io::Result<()> {
    let refused = |call| move |why| refused(call, why);
    // As ranks call it, in a thread that has nothing to lose by it.
    let none = || set_parent_process_death_signal(None);
    let permitted = std::thread::Builder::new().spawn(none)?.join();
    permitted.unwrap_or(Ok(())).map_err(refused("prctl"))?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::All, options) {
        Ok(_) | Err(Errno::CHILD | Errno::INTR) => Ok(()),
        Err(why) => Err(refused("waitid")(why)),
    }
}

/// Gives `command` what its process needs to join, whatever its link.
pub(crate) fn describe(command: &mut Command, shape: Shape, rank: u16) {
    for name in job::of_outer_jobs() {
        command.env_remove(name);
    }
    command
        .env(job::RANK, rank.to_string())
        .env(job::RANKS, shape.ranks().to_string())
        .env(job::MEMORY, shape.memory().to_string());
    if rank != 0 || !may_read() {
        command.stdin(Stdio::null());
    }
}

/// Whether rank 0 may have this process's standard input: not if that is a terminal where another
/// job of the shell is in the foreground. A rank is in a session of its own, and the system does
/// not stop it when it reads what is typed for others.
fn may_read() -> bool {
    let foreground = tcgetpgrp(std::io::stdin());
    // What is no terminal, or not this session's, has no foreground.
    foreground.is_err() || foreground == Ok(getpgrp())
}

/// Makes `command`'s process the leader of a session, with the limits that the launcher was started
/// with and no signal blocked, which dies with it, and of which the keeper knows.
fn to_be_led(command: &mut Command, limit: Rlimit, ear: Option<Arc<OwnedFd>>) {
    let launcher = rustix::process::getpid();
    let prepare = move || {
        rustix::process::setsid()?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        setrlimit(Resource::Nofile, limit)?;
        unblock_signals();
        if let Some(ear) = &ear {
            is_here(ear);
        }
        // It may be dead already.
        if rustix::process::getppid() == Some(launcher) {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::NotConnected))
        }
    };
    // SAFETY: between fork and exec, a few system calls and nothing else: no lock is taken, no
    // memory allocated.
    unsafe {
        command.pre_exec(prepare);
    }
}

/// The ranks, until all have ended.
struct Watch<'a> {
    register: &'a dyn Register,
    processes: Vec<Process>,
    keeper: Keeper,
    signals: Option<BorrowedFd<'a>>,
    seen: &'a mut dyn FnMut(&Ended),
    ended: Vec<Ended>,
    /// Ended in order, without having joined: a failure once somebody has.
    strangers: Vec<Ended>,
    /// Failed, while the process of the rank that was lost first is still to end: that is told
    /// before them.
    followers: Vec<Ended>,
    /// Processes that the system had ended for want of memory before.
    starved: u64,
    grace: Duration,
    /// When the rest is killed.
    deadline: Option<Instant>,
}

impl Watch<'_> {
    fn run(mut self) -> io::Result<Vec<Ended>> {
        /// How soon it is noticed that others have joined a job that a rank has left alone, or that
        /// a process without a descriptor has ended.
        const LOOK: Duration = Duration::from_millis(50);
        loop {
            let ranks = 0..self.register.ranks();
            let state = |rank| self.register.state_of(rank);
            let joined = { ranks }.any(|rank| state(rank) != State::Expected);
            if joined || self.processes.is_empty() {
                for mut end in std::mem::take(&mut self.strangers) {
                    end.stranger = joined;
                    self.tell(end);
                }
            }
            let cause = self.register.first_lost();
            if !self
                .processes
                .iter()
                .any(|process| Some(process.rank) == cause)
            {
                for end in std::mem::take(&mut self.followers) {
                    self.report(end);
                }
            }
            if self.processes.is_empty() {
                return Ok(self.ended);
            }
            let now = Instant::now();
            let mut rest = self.deadline.map(|end| end.saturating_duration_since(now));
            if rest.is_some_and(|rest| rest.is_zero()) {
                self.kill();
                self.deadline = Some(now + self.grace);
                rest = Some(self.grace);
            }
            let mut groups = self.processes.iter().map(|process| &process.group);
            if !self.strangers.is_empty() || groups.any(|group| group.pidfd.is_none()) {
                rest = Some(rest.map_or(LOOK, |rest| rest.min(LOOK)));
            }
            self.wait(rest)?;
            self.reap()?;
        }
    }

    /// Kills all that are left.
    fn kill(&mut self) {
        let ids: Vec<Pid> = { self.processes.iter_mut() }
            .map(|process| {
                process.killed = true;
                process.group.id()
            })
            .collect();
        kill_sessions(&ids);
    }

    /// Finds out who has ended, and how.
    fn reap(&mut self) -> io::Result<()> {
        let mut index = 0;
        while index < self.processes.len() {
            if !self.processes[index].group.has_ended()? {
                index += 1;
                continue;
            }
            let mut process = self.processes.swap_remove(index);
            self.keeper.forget(&process.group);
            let status = process.group.reap()?;
            let state = self.register.last_state_of(process.rank);
            let killed = process.killed && status.signal() == Some(Signal::KILL.as_raw());
            let grown = !killed && starved_processes(&vmstat()) > self.starved;
            let end = Ended {
                rank: process.rank,
                pid: process.group.number(),
                status,
                killed,
                stranger: false,
                unfinished: state == State::Here,
                starved: is_starved(status.signal(), grown),
            };
            if status.success() && state == State::Expected {
                self.strangers.push(end);
            } else {
                self.tell(end);
            }
        }
        Ok(())
    }

    /// A rank has ended: if it should not have, the others are told, and have so long.
    fn tell(&mut self, end: Ended) {
        if !end.is_well() {
            self.register.mark_lost(end.rank);
            let grace = self.grace;
            self.deadline.get_or_insert_with(|| Instant::now() + grace);
            let cause = self.register.first_lost();
            if cause != Some(end.rank) {
                return self.followers.push(end);
            }
        }
        self.report(end);
    }

    fn report(&mut self, end: Ended) {
        (self.seen)(&end);
        self.ended.push(end);
    }

    /// Sleeps until a process ends, a signal has come, or so long.
    fn wait(&mut self, rest: Option<Duration>) -> io::Result<()> {
        let groups = self.processes.iter().map(|process| &process.group);
        let pidfds = groups.filter_map(|group| group.pidfd.as_ref());
        let mut fds: Vec<PollFd<'_>> = { self.signals.iter() }
            .map(|signals| PollFd::new(signals, PollFlags::IN))
            .chain(pidfds.map(|fd| PollFd::new(fd, PollFlags::IN)))
            .collect();
        let rest = rest.map(|rest| Timespec {
            tv_sec: i64::try_from(rest.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(rest.subsec_nanos()),
        });
        match poll(&mut fds, rest.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(why) => return Err(refused("poll", why)),
        }
        let told = fds.first().is_some_and(|first| !first.revents().is_empty());
        if let (Some(signals), true) = (self.signals, told) {
            let mut number = [0];
            match rustix::io::read(signals, &mut number) {
                Ok(0) => self.signals = None,
                Ok(_) => self.pass_on(Signal::from_named_raw(number[0].into())),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Asks the ranks what they wait for, and says which ones do not answer. They may compute, or
    /// have no processor.
    fn ask(&self) {
        /// A rank that waits looks every few milliseconds, a hub each 50.
        const PATIENCE: Duration = Duration::from_millis(300);
        const NO_ANSWER: &str = "does not answer: it is in no call that waits";
        self.register.ask();
        let end = Instant::now() + PATIENCE;
        let silence = |rank| match self.register.state_of(rank) {
            _ if self.register.has_answered(rank) => None,
            State::Expected => Some("has not joined the job"),
            _ if self.register.has_ended(rank) => Some("has ended its program"),
            _ => Some(NO_ANSWER),
        };
        let ranks = 0..self.register.ranks();
        let may_answer = |rank| silence(rank) == Some(NO_ANSWER);
        while ranks.clone().any(may_answer) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        for (rank, why) in ranks.filter_map(|rank| Some((rank, silence(rank)?))) {
            say(&format!("flagpost-run: rank {rank} {why}"));
        }
    }

    /// Passes a signal on, unless it is a question.
    fn pass_on(&mut self, signal: Option<Signal>) {
        let Some(signal) = signal else { return };
        if signal == Signal::USR1 || signal == Signal::INT && self.deadline.is_none() {
            self.ask();
        }
        if signal == Signal::USR1 {
            return;
        }
        // A session without a terminal is not stopped by less.
        let stops = signal == Signal::TSTP;
        let sent = if stops { Signal::STOP } else { signal };
        for process in &self.processes {
            process.group.signal(sent);
        }
        if stops {
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        } else if [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].contains(&signal) {
            let now = Instant::now();
            self.deadline = Some(self.deadline.map_or(now + self.grace, |_| now));
        }
    }
}

#[cfg(test)]
mod tests;
