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

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open,
    waitid,
};

use flagpost_hal_linux::segment::refused;

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
        let number = name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else {
            continue;
        };
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let session = session_of(&stat).and_then(Pid::from_raw);
        if session.is_some_and(|session| sessions.contains(&session)) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The session in the `stat` of a process.
fn session_of(stat: &str) -> Option<i32> {
    // The name of the program, in parentheses, may hold anything; then state, parent, group,
    // session.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(3)?.parse().ok()
}

/// A process that outlives the launcher and kills the ranks' sessions then. It reads from a pipe,
/// which ends with the launcher.
pub(crate) struct Keeper(Option<Child>);

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
        let mut command = Command::new("/bin/sh");
        command
            .args([
                "-c",
                Self::WORDS,
                "flagpost-keeper",
                ends.unwrap_or_default(),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // What is typed at the terminal is not for it.
            .process_group(0);
        Self(command.spawn().ok())
    }

    fn tell(&mut self, line: &str) {
        if let Some(pipe) = self.0.as_mut().and_then(|child| child.stdin.as_mut()) {
            // If somebody has killed it, the kernel's part remains.
            let _ = pipe.write_all(line.as_bytes());
        }
    }

    /// There is this group.
    pub(crate) fn know(&mut self, group: &Group) {
        self.tell(&format!("+ {}\n", group.number()));
    }

    /// It is about to be gone, and its number may be another's.
    pub(crate) fn forget(&mut self, group: &Group) {
        self.tell(&format!("- {}\n", group.number()));
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.tell(".\n");
        if let Some(mut child) = self.0.take() {
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;

    #[test]
    fn sessions_are_read() {
        assert_eq!(session_of("7 (a) b) S 1 2 3 4 5"), Some(3));
        assert_eq!(session_of("7 (a"), None);
        // A session that began outside of this process's namespace has no number in it: make one.
        let mut command = Command::new("sleep");
        command.arg("600");
        // SAFETY: `setsid` only asks the system, and may be called between fork and exec.
        unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
        let mut child = command.spawn().expect("it runs");
        let id = i32::try_from(child.id()).expect("it is one");
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("it is there");
        let _ = child.kill();
        let _ = child.wait();
        assert_eq!(session_of(&stat), Some(id));
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
}
