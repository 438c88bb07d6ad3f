//! How a rank ended, and how its user is told.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::process::Signal;

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
    /// It has joined the job and not left it, however well it ended.
    pub unfinished: bool,
    /// The system has ended it, it seems for want of memory: by SIGBUS, or by SIGKILL while it
    /// counted that it had to end processes for that.
    pub starved: bool,
}

impl Ended {
    /// Whether it ended as it should.
    pub fn is_well(&self) -> bool {
        self.status.success() && !self.stranger && !self.unfinished
    }

    /// The status that a shell would have for it.
    pub fn code(&self) -> u8 {
        match (self.status.code(), self.status.signal()) {
            (Some(0), _) => u8::from(!self.is_well()),
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
            (Some(0), _) if self.unfinished => f.write_str("ended without leaving the job"),
            (Some(code), _) => write!(f, "ended with status {code}"),
            (None, Some(signal)) => {
                write!(f, "was ended by signal {signal}")?;
                if let Some(name) = signal_name(signal) {
                    write!(f, " (SIG{name})")?;
                }
                match self.starved {
                    true => f.write_str(", it seems for want of memory"),
                    false => Ok(()),
                }
            }
            (None, None) => f.write_str("ended"),
        }
    }
}

/// How many processes the system has ended for want of memory, as `vmstat` says.
pub(crate) fn starved_processes(vmstat: &str) -> u64 {
    let count = { vmstat.lines() }.find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

pub(crate) fn vmstat() -> String {
    std::fs::read_to_string("/proc/vmstat").unwrap_or_default()
}

/// Whether a process that was ended by `signal` seems to have been for want of memory; `grown` if
/// the system has counted more of those.
pub(crate) fn is_starved(signal: Option<i32>, grown: bool) -> bool {
    signal == Some(Signal::BUS.as_raw()) || grown && signal == Some(Signal::KILL.as_raw())
}

/// The names of the signals from 1 on.
const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

fn signal_name(signal: i32) -> Option<&'static str> {
    let index = usize::try_from(signal).ok()?.checked_sub(1)?;
    SIGNALS.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_memory_is_told() {
        assert_eq!(
            starved_processes("pgfault 7\noom_kill 12\noom_kill_x 3\n"),
            12
        );
        assert_eq!(starved_processes("pgfault 7\n"), 0, "an old system");
        let starved = |signal: Signal, grown| is_starved(Some(signal.as_raw()), grown);
        assert!(starved(Signal::BUS, false) && starved(Signal::KILL, true));
        assert!(!starved(Signal::KILL, false) && !starved(Signal::SEGV, true));
        let mut ended = Ended {
            rank: 1,
            pid: 7,
            status: ExitStatus::from_raw(Signal::KILL.as_raw()),
            killed: false,
            stranger: false,
            unfinished: true,
            starved: true,
        };
        let line = "rank 1 (process 7) was ended by signal 9 (SIGKILL)";
        assert_eq!(
            ended.to_string(),
            format!("{line}, it seems for want of memory")
        );
        ended.starved = false;
        assert_eq!(ended.to_string(), line);
        let named = [
            (1, "HUP"),
            (10, "USR1"),
            (15, "TERM"),
            (25, "XFSZ"),
            (31, "SYS"),
        ];
        for (signal, name) in named {
            ended.status = ExitStatus::from_raw(signal);
            let line = format!("rank 1 (process 7) was ended by signal {signal} (SIG{name})");
            assert_eq!(ended.to_string(), line);
        }
        // Of the real-time ones there are no names.
        assert_eq!((signal_name(0), signal_name(32)), (None, None));
    }
}
