//! The processes of a rank: the one that was started, and what it starts in turn.
//!
//! Each rank is the leader of a session, and of a group in it, which bear its number; what it
//! starts is in them unless it goes to some of its own. Three things end what is there:
//!
//! * The rank's process has ended: the launcher kills its group, before the number can be
//!   another's.
//! * A rank is lost, or the time of the others is up: the launcher kills their groups, and what
//!   else is in their sessions.
//! * The launcher has ended, in whatever way: the kernel kills the processes that the launcher has
//!   started, and the [`Keeper`] kills the groups and the sessions. It removes what libfabric's
//!   `shm` has left of the ranks in `/dev/shm`.
//!
//! A session has no terminal: what is typed there as a signal comes to the launcher, which passes
//! it on, and rank 0 can read what is typed although it is not in the terminal's own group. So it
//! is given the terminal only if the launcher is started in the foreground. What makes a session of
//! its own (`setsid`, a daemon) is out of reach.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use rustix::net::{SendFlags, send};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group,
    pidfd_open, waitid,
};

use flagpost_hal_linux::segment::refused;

use crate::job::stat;

/// A rank's process, and all of its group. Ended when it is dropped.
pub(crate) struct Group {
    child: Child,
    /// What wakes who waits for its end, where descriptors suffice.
    pub(crate) pidfd: Option<OwnedFd>,
    reaped: bool,
}

impl Group {
    /// Takes `child` over, which leads its group; `watched` by a descriptor, if there is one left.
    pub(crate) fn new(child: Child, watched: bool) -> Self {
        let pid = Pid::from_child(&child);
        let open = || pidfd_open(pid, PidfdFlags::empty()).ok();
        Self {
            child,
            pidfd: watched.then(open).flatten(),
            reaped: false,
        }
    }

    /// The number of the process, its group and its session.
    pub(crate) fn id(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The same, as the system writes it.
    pub(crate) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Sends `signal` to all of the group. True if somebody is there.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        !self.reaped && kill_process_group(self.id(), signal).is_ok()
    }

    /// Whether the process has ended. It is not reaped: its number stays its own.
    pub(crate) fn has_ended(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = waitid(WaitId::Pid(self.id()), options);
        Ok(ended.map_err(|why| refused("waitid", why))?.is_some())
    }

    /// Kills what is left of the group, and waits for the process.
    pub(crate) fn reap(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let status = self.child.wait()?;
        self.reaped = true;
        Ok(status)
    }
}

impl Drop for Group {
    /// Whatever happens to the launcher's own work, no rank stays.
    fn drop(&mut self) {
        if !self.reaped {
            let _ = self.reap();
        }
    }
}

/// Kills all processes of these sessions. Their leaders have not been reaped: the numbers are
/// theirs.
pub(crate) fn kill_sessions(sessions: &[Pid]) {
    for session in sessions {
        let _ = kill_process_group(*session, Signal::KILL);
    }
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let name = process.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if session_of(number).is_some_and(|session| sessions.contains(&session))
            && let Some(pid) = Pid::from_raw(number.cast_signed())
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The session of a process, if it has one here.
fn session_of(process: u32) -> Option<Pid> {
    Pid::from_raw(stat(process).get(3)?.parse().ok()?)
}

/// A process that outlives the launcher and kills the ranks' sessions then. It reads from a socket,
/// which ends with the launcher. Each rank's process says itself that it is there, before it is the
/// program: the launcher might be killed before it could.
pub(crate) struct Keeper(Option<(Child, Arc<OwnedFd>)>);

impl Keeper {
    /// Shell words, since a shell is on every host and is small: a line is a group to know, one to
    /// forget, or the end.
    const WORDS: &str = r#"
        groups=' ' ends=$1
        while read -r what group; do
            case $what in
                +) groups="$groups$group " ;;
                -) groups="${groups%%" $group "*} ${groups#*" $group "}" ;;
                .) exit 0 ;;
            esac
        done
        for group in $groups; do kill -KILL "-$group"; done
        for stat in /proc/[0-9]*/stat; do
            read -r line < "$stat" || continue
            set -- ${line##*) }
            case $groups in
                *" $4 "*) process=${stat#/proc/}; kill -KILL "${process%/stat}" ;;
            esac
        done
        if [ -n "$ends" ]; then
            for file in "/dev/shm/$ends-"*; do
                if [ -O "$file" ]; then rm -f "$file"; fi
            done
        fi
    "#;

    /// Starts it; `ends` is what the names of the job's files of libfabric's `shm` begin with.
    /// Without a shell there is no keeper, and only the kernel ends ranks with their launcher.
    pub(crate) fn start(ends: Option<&str>) -> Self {
        use std::os::unix::process::CommandExt as _;
        let Ok((ours, theirs)) = UnixStream::pair() else {
            return Self(None);
        };
        let mut command = Command::new("/bin/sh");
        command
            .args([
                "-c",
                Self::WORDS,
                "flagpost-keeper",
                ends.unwrap_or_default(),
            ])
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // What is typed at the terminal is not for it.
            .process_group(0);
        let child = command.spawn().ok();
        Self(child.map(|child| (child, Arc::new(ours.into()))))
    }

    /// None, and what it would read.
    #[cfg(test)]
    pub(crate) fn heard() -> (Self, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let child = Command::new("true").spawn().expect("it runs");
        (Self(Some((child, Arc::new(ours.into())))), theirs)
    }

    /// Where it is told, for [`is_here`].
    pub(crate) fn ear(&self) -> Option<Arc<OwnedFd>> {
        self.0.as_ref().map(|(_, ours)| Arc::clone(ours))
    }

    fn tell(&self, line: &str) {
        if let Some((_, ours)) = &self.0 {
            // If somebody has killed it, the kernel's part remains.
            let _ = send(ours, line.as_bytes(), SendFlags::NOSIGNAL);
        }
    }

    /// A group is about to be gone, and its number may be another's.
    pub(crate) fn forget(&self, group: &Group) {
        self.tell(&format!("- {}\n", group.number()));
    }
}

/// Tells the keeper, by its ear, that this process is here, and leads a group and a session. May be
/// called between fork and exec: it asks the system, and nothing else.
pub(crate) fn is_here(ear: &OwnedFd) {
    let mut line = *b"+            \n";
    let mut number = getpid().as_raw_nonzero().get();
    // A blank stays in front.
    for place in line[2..].iter_mut().rev().skip(1) {
        if number > 0 {
            *place = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
    let _ = send(ear, &line, SendFlags::NOSIGNAL);
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.tell(".\n");
        if let Some((mut child, _)) = self.0.take() {
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};

    #[test]
    fn sessions_are_read() {
        // A session that began outside of this process's namespace has no number in it: make one.
        let mut command = Command::new("sleep");
        command.arg("600");
        // SAFETY: `setsid` only asks the system, and may be called between fork and exec.
        unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
        let mut child = command.spawn().expect("it runs");
        let (id, session) = (Pid::from_child(&child), session_of(child.id()));
        let _ = child.kill().and_then(|()| child.wait());
        assert_eq!(session, Some(id));
    }

    #[test]
    fn who_is_dropped_is_ended() {
        let mut command = Command::new("sleep");
        let child = command.arg("600").process_group(0).spawn();
        let group = Group::new(child.expect("it runs"), false);
        let id = group.id();
        assert!(!group.has_ended().expect("it is mine"));
        drop(group);
        assert!(kill_process_group(id, Signal::KILL).is_err(), "nobody left");
    }

    /// The launcher is killed as soon as a rank is there.
    #[test]
    fn the_keeper_hears_of_a_rank_before_it_begins() {
        let mut keeper = Keeper::start(None);
        let ear = keeper.ear().expect("there is a shell");
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo; wait"]);
        command.stdout(Stdio::piped()).process_group(0);
        // SAFETY: it only asks the system, and may be called between fork and exec.
        unsafe {
            command.pre_exec(move || {
                is_here(&ear);
                Ok(())
            });
        }
        let mut child = command.spawn().expect("it runs");
        drop(command);
        let mut out = child.stdout.take().expect("a pipe");
        out.read_exact(&mut [0]).expect("it has begun");
        let (mut shell, ours) = keeper.0.take().expect("there is a shell");
        // As the launcher's end does.
        drop(ours);
        assert!(shell.wait().expect("it ends").success());
        // Nobody is left who could write.
        assert_eq!(out.read(&mut [0]).expect("it ends"), 0);
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()));
    }
}
