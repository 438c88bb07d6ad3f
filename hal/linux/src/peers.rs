//! Noticing that a peer's process is gone, where no launcher of ours does.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};

use crate::control::State;
use crate::segment::Segment;

/// How often a rank that waits looks.
const PERIOD: Duration = Duration::from_millis(20);
/// One in so many calls of a rank that only asks reads the clock.
const CALLS: u8 = 64;

/// The peers' processes.
#[derive(Debug)]
pub(crate) struct Peers {
    /// Opened at the first look: a number may be another process's later.
    processes: RefCell<Vec<Option<OwnedFd>>>,
    next: Cell<Option<Instant>>,
    /// Calls of [`Peers::glance`] until one reads the clock.
    calls: Cell<u8>,
}

impl Peers {
    pub(crate) fn new() -> Self {
        Self {
            processes: RefCell::new(Vec::new()),
            next: Cell::new(None),
            calls: Cell::new(CALLS),
        }
    }

    /// [`look`](Self::look), for calls that a rank which polls makes again and again.
    pub(crate) fn glance(&self, segment: &Segment) {
        match self.calls.get().checked_sub(1) {
            Some(left) => self.calls.set(left),
            None => {
                self.calls.set(CALLS);
                self.look(segment);
            }
        }
    }

    /// Looks, if the last look is a while ago, and tells all of the peers that are gone without
    /// having said so.
    pub(crate) fn look(&self, segment: &Segment) {
        let now = Instant::now();
        if self.next.get().is_some_and(|next| now < next) {
            return;
        }
        self.next.set(Some(now + PERIOD));
        let mut processes = self.processes.borrow_mut();
        processes.resize_with(usize::from(segment.shape().ranks()), || None);
        for (rank, process) in (0_u16..).zip(processes.iter_mut()) {
            if segment.state_of(rank) == State::Here
                && is_gone(process, open, || segment.pid_of(rank))
                && segment.state_of(rank) == State::Here
            {
                segment.mark_lost(rank);
            }
        }
    }
}

fn open(pid: Pid) -> Result<OwnedFd, Errno> {
    pidfd_open(pid, PidfdFlags::empty())
}

fn is_gone(
    process: &mut Option<OwnedFd>,
    open: impl Fn(Pid) -> Result<OwnedFd, Errno>,
    pid: impl FnOnce() -> Option<i32>,
) -> bool {
    if process.is_none() {
        let Some(pid) = pid().and_then(Pid::from_raw) else {
            return false;
        };
        match open(pid) {
            Ok(fd) => *process = Some(fd),
            Err(Errno::SRCH) => return true,
            // No descriptor left, say. Its number says the same, until another process has it.
            Err(_) => return test_kill_process(pid) == Err(Errno::SRCH),
        }
    }
    let Some(fd) = process else { return false };
    // A process that has ended can be "read".
    let mut fds = [PollFd::new(&*fd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn processes_that_have_ended_are_noticed() {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn();
        let mut child = child.expect("cat runs");
        let pid = i32::try_from(child.id()).ok();
        let mut process = None;
        let none_left = |_| Err(Errno::MFILE);
        assert!(!is_gone(&mut None, none_left, || pid));
        assert!(!is_gone(&mut process, open, || pid));
        child.kill().expect("it is mine");
        child.wait().expect("it ends");
        assert!(is_gone(&mut process, open, || pid), "by its descriptor");
        assert!(is_gone(&mut None, open, || pid), "by its number");
        assert!(is_gone(&mut None, none_left, || pid), "no descriptor left");
        assert!(!is_gone(&mut None, open, || None), "it has not come yet");
    }
}
