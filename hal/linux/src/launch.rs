//! Starting a job, and watching over it.
//!
//! # Steps
//! | step | what |
//! |---|---|
//! | memory | a sealed memfd, or a file without a name, inherited by the ranks |
//! | start | one process per rank, bound to its processor; each is killed when the launcher dies |
//! | watch | sleeps until a process ends (pidfd) |
//! | a rank dies | it is marked lost: the others' waits end with `PeerLost`; they have [`GRACE`] to end by themselves |
//! | the rest | is killed after that |
//!
//! A rank is dead if its process was ended by a signal or with a status other than 0; or with 0, without having joined, while
//! others have.
//!
//! Nothing is left behind: the memory has no name, and is gone with the last process. If the launcher is killed, the kernel kills
//! the ranks.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, set_parent_process_death_signal};

use crate::bind::{self, Bind};
use crate::control::State;
use crate::job;
use crate::segment::{self, Segment};
use crate::shape::Shape;

/// How long the others may take to end once a rank is lost.
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
}

/// How a rank ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which.
    pub rank: u16,
    /// Its process.
    pub pid: u32,
    /// How.
    pub status: ExitStatus,
    /// It was the launcher that ended it.
    pub killed: bool,
    /// It never joined the job.
    pub stranger: bool,
}

impl Ended {
    /// Whether it ended as it should.
    pub fn is_well(&self) -> bool {
        self.status.success() && !self.stranger
    }

    /// The status that a shell would have for it.
    pub fn code(&self) -> u8 {
        match (self.status.code(), self.status.signal()) {
            (Some(0), _) => u8::from(self.stranger),
            (Some(code), _) => u8::try_from(code).unwrap_or(1),
            (None, Some(signal)) => 128_u8.wrapping_add(u8::try_from(signal).unwrap_or(0)),
            (None, None) => 1,
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} (process {}) ", self.rank, self.pid)?;
        match (self.status.code(), self.status.signal()) {
            (Some(0), _) if self.stranger => f.write_str("ended without having joined the job"),
            (Some(code), _) => write!(f, "ended with status {code}"),
            (None, Some(signal)) => match signal_name(signal) {
                Some(name) => write!(f, "was ended by signal {signal} ({name})"),
                None => write!(f, "was ended by signal {signal}"),
            },
            (None, None) => f.write_str("ended"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
    ];
    let found = names.iter().find(|(known, _)| known.as_raw() == signal);
    found.map(|(_, name)| *name)
}

struct Process {
    rank: u16,
    child: Child,
    pidfd: OwnedFd,
    killed: bool,
}

impl Drop for Process {
    /// Whatever happens to the launcher's own work, no rank stays.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `command` once per rank of `job`, and waits until all have ended. Tells `seen` of each in turn.
///
/// # Errors
/// What the system refused; the ranks that were started are ended.
pub fn launch(
    job: &Job,
    command: &mut dyn FnMut(u16) -> Command,
    seen: &mut dyn FnMut(&Ended),
) -> io::Result<Vec<Ended>> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    let places = job.bind.places(job.shape.ranks()).map_err(invalid)?;
    let file = match &job.directory {
        None => segment::create(job.shape)?,
        Some(directory) => segment::create_in(directory, job.shape).map_err(|why| {
            let what = format!("no memory in {}: {why}", directory.display());
            io::Error::new(why.kind(), what)
        })?,
    };
    let segment = Segment::map(&file, job.shape)?;
    let mut processes = Vec::new();
    for rank in 0..job.shape.ranks() {
        let cpu = places.as_ref().map(|places| places[usize::from(rank)]);
        let mut command = command(rank);
        describe(&mut command, job, rank, places.as_deref(), &file);
        let child = bind::on(cpu, || command.spawn())?;
        let pid = Pid::from_child(&child);
        processes.push(Process {
            rank,
            child,
            pidfd: pidfd_open(pid, PidfdFlags::empty())?,
            killed: false,
        });
    }
    drop(file);
    watch(&segment, processes, seen)
}

/// Gives `command` what its process needs to join.
fn describe(command: &mut Command, job: &Job, rank: u16, places: Option<&[usize]>, file: &File) {
    let mut processors = places.map_or_else(bind::allowed, <[usize]>::to_vec);
    processors.sort_unstable();
    processors.dedup();
    command
        .env(job::FD, file.as_raw_fd().to_string())
        .env(job::RANK, rank.to_string())
        .env(job::RANKS, job.shape.ranks().to_string())
        .env(job::MEMORY, job.shape.memory().to_string())
        .env(job::MODE, &job.mode)
        .env(job::PROCESSORS, processors.len().to_string());
    if rank != 0 {
        command.stdin(Stdio::null());
    }
    let launcher = rustix::process::getpid();
    let dies_with_launcher = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may be dead already.
        if rustix::process::getppid() == Some(launcher) {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::NotConnected))
        }
    };
    // SAFETY: between fork and exec, two system calls and nothing else: no lock is taken, no memory allocated.
    unsafe {
        command.pre_exec(dies_with_launcher);
    }
}

fn watch(
    segment: &Segment,
    mut processes: Vec<Process>,
    seen: &mut dyn FnMut(&Ended),
) -> io::Result<Vec<Ended>> {
    /// How soon it is noticed that others have joined a job that a rank has left alone.
    const LOOK: Duration = Duration::from_millis(50);
    let has_joined = |rank| segment.state_of(rank) != State::Expected;
    let mut ended: Vec<Ended> = Vec::new();
    // Ended in order, without having joined: a failure once somebody has.
    let mut strangers: Vec<Ended> = Vec::new();
    let mut deadline: Option<Instant> = None;
    loop {
        let joined = (0..segment.shape().ranks()).any(has_joined);
        let known = if joined || processes.is_empty() {
            std::mem::take(&mut strangers)
        } else {
            Vec::new()
        };
        for mut end in known {
            end.stranger = joined;
            tell(segment, end, &mut deadline, &mut ended, seen);
        }
        if processes.is_empty() {
            return Ok(ended);
        }
        let mut rest = deadline.map(|end| end.saturating_duration_since(Instant::now()));
        if rest.is_some_and(|rest| rest.is_zero()) {
            for process in &mut processes {
                process.killed |= process.child.kill().is_ok();
            }
            deadline = Some(Instant::now() + GRACE);
            rest = Some(GRACE);
        }
        if !strangers.is_empty() {
            rest = Some(rest.map_or(LOOK, |rest| rest.min(LOOK)));
        }
        wait_for_any(&processes, rest)?;
        let mut index = 0;
        while index < processes.len() {
            let Some(status) = processes[index].child.try_wait()? else {
                index += 1;
                continue;
            };
            let process = processes.swap_remove(index);
            let end = Ended {
                rank: process.rank,
                pid: process.child.id(),
                status,
                killed: process.killed,
                stranger: false,
            };
            if status.success() && !has_joined(end.rank) {
                strangers.push(end);
            } else {
                tell(segment, end, &mut deadline, &mut ended, seen);
            }
        }
    }
}

/// A rank has ended: if it should not have, the others are told, and have so long.
fn tell(
    segment: &Segment,
    end: Ended,
    deadline: &mut Option<Instant>,
    ended: &mut Vec<Ended>,
    seen: &mut dyn FnMut(&Ended),
) {
    if !end.is_well() {
        segment.mark_lost(end.rank);
        deadline.get_or_insert_with(|| Instant::now() + GRACE);
    }
    seen(&end);
    ended.push(end);
}

/// Sleeps until a process ends, or so long.
fn wait_for_any(processes: &[Process], rest: Option<Duration>) -> io::Result<()> {
    let fds = processes.iter().map(|process| &process.pidfd);
    let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let rest = rest.map(|rest| Timespec {
        tv_sec: i64::try_from(rest.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(rest.subsec_nanos()),
    });
    match poll(&mut fds, rest.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(why) => Err(why.into()),
    }
}
