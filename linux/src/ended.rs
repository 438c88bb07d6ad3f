//! How a rank ended, and how its user is told.

use std::collections::BTreeSet;
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

    /// How, if no signal has ended it.
    fn by_itself(&self) -> Option<String> {
        Some(match self.status.code()? {
            0 if self.stranger => "ended without having joined the job".to_owned(),
            0 if self.unfinished => "ended without leaving the job".to_owned(),
            code => format!("ended with status {code}"),
        })
    }
}

/// Ranks that have failed after another one, of which only the first is told by itself.
#[derive(Debug, Default)]
pub struct Followers(Vec<(String, Vec<u16>)>);

impl Followers {
    /// Keeps `ended`, to be counted. False if it is to be told by itself: a signal has ended it.
    pub fn keep(&mut self, ended: &Ended) -> bool {
        let by_us = || (ended.killed).then(|| "had to be ended, by flagpost-run".to_owned());
        let Some(how) = ended.by_itself().or_else(by_us) else {
            return false;
        };
        match self.0.iter_mut().find(|(known, _)| *known == how) {
            Some((_, ranks)) => ranks.push(ended.rank),
            None => self.0.push((how, vec![ended.rank])),
        }
        true
    }

    /// A line for each way to end.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(how, ranks)| match &ranks[..] {
            [rank] => format!("after that rank {rank} {how}"),
            ranks => format!("after that {} ranks {how}: {}", ranks.len(), list(ranks)),
        })
    }
}

/// Numbers, each row of neighbours as `first-last`.
fn list(numbers: &[u16]) -> String {
    let mut rows: Vec<(u16, u16)> = Vec::new();
    let sorted = BTreeSet::from_iter(numbers);
    for number in sorted {
        match rows.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => rows.push((*number, *number)),
        }
    }
    let row = |(first, last): &(u16, u16)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    rows.iter().map(row).collect::<Vec<_>>().join(", ")
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} (process {}) ", self.rank, self.pid)?;
        let Some(signal) = self.status.signal() else {
            return f.write_str(&self.by_itself().unwrap_or("ended".to_owned()));
        };
        write!(f, "was ended by signal {signal}")?;
        if let Some(name) = signal_name(signal) {
            write!(f, " (SIG{name})")?;
        }
        match self.starved {
            true => f.write_str(", it seems for want of memory"),
            false => Ok(()),
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

/// A rank that has not left its job, and whose process has ended so.
#[cfg(test)]
pub(crate) fn ended(rank: u16, status: i32) -> Ended {
    Ended {
        rank,
        pid: 7,
        status: ExitStatus::from_raw(status),
        killed: false,
        stranger: false,
        unfinished: true,
        starved: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_that_end_alike_are_counted() {
        let mut followers = Followers::default();
        let ended = |rank, status, killed| Ended {
            killed,
            ..ended(rank, status)
        };
        for rank in [6, 0, 2, 1, 4, 7, 5] {
            assert!(followers.keep(&ended(rank, 1 << 8, false)));
        }
        assert!(followers.keep(&ended(9, 0, false)));
        assert!(followers.keep(&ended(8, 9, true)));
        assert!(!followers.keep(&ended(3, 11, false)), "a cause of its own");
        let lines: Vec<String> = followers.lines().collect();
        let expected = [
            "after that 7 ranks ended with status 1: 0-2, 4-7",
            "after that rank 9 ended without leaving the job",
            "after that rank 8 had to be ended, by flagpost-run",
        ];
        assert_eq!(lines, expected);
    }

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
            starved: true,
            ..ended(1, Signal::KILL.as_raw())
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
