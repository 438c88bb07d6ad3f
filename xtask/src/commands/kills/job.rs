//! A job of `flagpost-run`, one rank of which is killed or stopped; and what it leaves.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};

use crate::children::Running;
use crate::paths;

/// What the environment of all processes of a job has, and of no others.
const MARK: &str = "FLAGPOST_KILLS";

/// Where libfabric's `shm` has its files.
const SHARED: &str = "/dev/shm";

/// What a rank prints before the number of ranks that have finished its work with it.
const WORLD: &str = ", in a world of ";

/// How soon the next look is.
const LOOK: Duration = Duration::from_millis(1);

/// How long the system may take to end processes that were killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// What happens to a rank.
pub(super) struct Disturbance {
    pub(super) rank: u16,
    /// From the start of the job on.
    pub(super) after: Duration,
    /// How long the rank is stopped; none: it is killed.
    pub(super) pause: Option<Duration>,
}

/// A job that runs.
pub(super) struct Job {
    running: Running,
    start: Instant,
    mark: String,
    /// In which it runs; of this job alone.
    directory: PathBuf,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
    /// The processes of its ranks, of which some may have ended.
    ranks: BTreeMap<u16, i32>,
    /// What the names of its ranks' files in shared memory begin with, once a rank is known.
    ends: Option<String>,
}

/// How it ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Its status, if it had one.
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
    /// The rank was there when it was to be disturbed.
    pub(super) struck: bool,
    pub(super) length: Duration,
    /// It did not end, and was killed.
    pub(super) hung: bool,
    /// What was there of it after its end.
    pub(super) left: Vec<String>,
}

impl Ended {
    /// What it has printed, in order, without what differs from run to run.
    pub(super) fn lines(&self) -> Vec<String> {
        static VARIES: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r#"[\d.]+ (ns each way|of \d+ pieces)|"(?:ticks|per_second)":\d+"#).ok()
        });
        let plain = |line: &str| match &*VARIES {
            // A smaller world has done the same.
            _ if let Some((same, _)) = line.split_once(WORLD) => same.to_owned(),
            Some(varies) => varies.replace_all(line, "N $1").into_owned(),
            None => line.to_owned(),
        };
        let mut lines: Vec<String> = self.out.lines().map(plain).collect();
        lines.sort();
        lines
    }

    /// With how many ranks its work was finished, if a rank says so: the fewest.
    pub(super) fn finished_with(&self) -> Option<u16> {
        let worlds = self.out.lines().filter_map(|line| line.split_once(WORLD));
        worlds.filter_map(|(_, ranks)| ranks.parse().ok()).min()
    }
}

impl Job {
    /// Starts `command`; `name` is another one for each job of this process.
    pub(super) fn start(mut command: Command, name: &str) -> Result<Self> {
        let mark = format!("{MARK}={}-{name}", std::process::id());
        let (variable, value) = mark.split_once('=').unwrap_or_default();
        let directory = paths::target().join("kills").join(value);
        std::fs::create_dir_all(&directory).context("no directory for a job")?;
        command.env(variable, value).stdin(Stdio::null());
        command.current_dir(&directory);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = Instant::now();
        let mut running = Running::start(&mut command).context("cannot start flagpost-run")?;
        let (out, err) = (running.child.stdout.take(), running.child.stderr.take());
        Ok(Self {
            running,
            start,
            mark,
            directory,
            out: thread::spawn(move || all(out)),
            err: thread::spawn(move || all(err)),
            ranks: BTreeMap::new(),
            ends: None,
        })
    }

    /// Runs it to its end, `limit` at most.
    pub(super) fn run(
        mut self,
        disturbance: Option<Disturbance>,
        limit: Duration,
    ) -> Result<Ended> {
        let mut due = disturbance;
        let mut stopped: Option<(Pid, Instant)> = None;
        let mut struck = false;
        let (status, hung) = loop {
            if let Some(status) = self.running.try_wait()? {
                break (Some(status), false);
            }
            self.find_ranks();
            let now = self.start.elapsed();
            if let Some(what) =
                due.take_if(|what| now >= what.after && self.ranks.contains_key(&what.rank))
            {
                let pid = self.process(what.rank);
                let signal = if what.pause.is_some() {
                    Signal::STOP
                } else {
                    Signal::KILL
                };
                struck = pid.is_some_and(|pid| kill_process(pid, signal).is_ok());
                stopped = pid.zip(what.pause.map(|pause| Instant::now() + pause));
            }
            if let Some((pid, _)) = stopped.take_if(|(_, end)| Instant::now() >= *end) {
                // It may have been killed with its launcher.
                let _ = kill_process(pid, Signal::CONT);
            }
            if now > limit {
                break (None, true);
            }
            thread::sleep(LOOK);
        };
        let length = self.start.elapsed();
        // The launcher's group, and with it the launcher: what it has started ends with it.
        drop(self.running);
        let left = if hung {
            Vec::new()
        } else {
            let left = left_of(&self.mark, |_| ()).into_iter();
            let mut left: Vec<_> = left.map(|pid| format!("process {pid}")).collect();
            left.extend(files_of(Path::new(SHARED), self.ends.as_deref()));
            // Without the backtraces of libraries for network cards.
            left.extend(files(&self.directory).filter(|name| !name.ends_with(".btr")));
            left
        };
        // Else who is left would keep the pipes open.
        left_of(&self.mark, |pid| {
            let _ = kill_process(pid, Signal::KILL);
        });
        std::fs::remove_dir_all(&self.directory).context("a job's directory stays")?;
        let text = |reader: JoinHandle<String>| reader.join().unwrap_or_default();
        Ok(Ended {
            code: status.and_then(|status| status.code()),
            out: text(self.out),
            err: text(self.err),
            struck,
            length,
            hung,
            left,
        })
    }

    /// Learns which processes of the launcher are ranks.
    fn find_ranks(&mut self) {
        let launcher = self.running.child.id();
        let children = format!("/proc/{launcher}/task/{launcher}/children");
        let children = std::fs::read_to_string(children).unwrap_or_default();
        for pid in children
            .split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
        {
            if !self.ranks.values().any(|known| *known == pid)
                && let Some(rank) = variable(pid, "FLAGPOST_RANK")
                && let Ok(rank) = rank.parse()
            {
                self.ends = self.ends.take().or_else(|| variable(pid, "FLAGPOST_ENDS"));
                self.ranks.insert(rank, pid);
            }
        }
    }

    /// The process of `rank`, if it has not ended: not one that bears its number now.
    fn process(&self, rank: u16) -> Option<Pid> {
        let pid = *self.ranks.get(&rank)?;
        is_of(&self.mark, pid).then(|| Pid::from_raw(pid)).flatten()
    }
}

fn all(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // What has come until then is told.
        let _: io::Result<usize> = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The words of the environment that a process was started with. None for one that has ended.
fn environment(pid: i32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

fn is_of(mark: &str, pid: i32) -> bool {
    let environment = environment(pid);
    let mut words = environment.split(|byte| *byte == 0);
    words.any(|word| word == mark.as_bytes())
}

/// A variable that a process was started with.
fn variable(pid: i32, name: &str) -> Option<String> {
    let environment = environment(pid);
    let value = |word: &[u8]| {
        let value = word.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    };
    environment.split(|byte| *byte == 0).find_map(value)
}

/// The processes of the job.
fn processes(mark: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| is_of(mark, *pid)).collect()
}

/// The processes of a job that are there after a while, in which `each` of them is seen.
fn left_of(mark: &str, each: impl Fn(Pid)) -> Vec<i32> {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = processes(mark);
        if left.is_empty() || Instant::now() > end {
            return left;
        }
        { left.into_iter() }
            .filter_map(Pid::from_raw)
            .for_each(&each);
        thread::sleep(LOOK);
    }
}

/// The files in a directory.
fn files(directory: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// The files that libfabric has for ranks of a job whose files' names begin with `ends`.
fn files_of(directory: &Path, ends: Option<&str>) -> Vec<String> {
    let is_ours = |name: &String| ends.is_some_and(|ends| name.starts_with(&format!("{ends}-")));
    files(directory).filter(is_ours).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(words: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", words]);
        command
    }

    const LIMIT: Duration = Duration::from_secs(60);

    /// The rank is the shell's child.
    fn disturbed(words: &str, pause: Option<Duration>) -> Ended {
        let disturbance = Disturbance {
            rank: 1,
            after: Duration::ZERO,
            pause,
        };
        let job = Job::start(shell(words), &format!("{pause:?}")).unwrap();
        job.run(Some(disturbance), LIMIT).unwrap()
    }

    #[test]
    fn a_rank_is_killed_or_stopped() {
        let rank = "FLAGPOST_RANK=1 sleep 600; echo ended $?";
        let ended = disturbed(rank, None);
        assert!(ended.struck && ended.out.contains("ended 137"), "{ended:?}");
        let rank = "FLAGPOST_RANK=1 sleep 0.3; echo ended $?";
        let pause = Duration::from_millis(700);
        let ended = disturbed(rank, Some(pause));
        assert!(ended.struck && ended.length >= pause, "{ended:?}");
        assert!(ended.out.contains("ended 0"), "{ended:?}");
        assert!(!ended.hung && ended.left.is_empty());
    }

    #[test]
    fn what_hangs_or_stays_is_found_and_ended() {
        let job = Job::start(shell("sleep 600; true"), "hangs").unwrap();
        let ended = job.run(None, Duration::from_millis(50)).unwrap();
        assert!(ended.hung && ended.code.is_none(), "{ended:?}");
        let job = Job::start(shell("setsid sleep 600 & sleep 0.1; echo a"), "stays").unwrap();
        let ended = job.run(None, LIMIT).unwrap();
        assert_eq!(ended.left.len(), 1, "{ended:?}");
        assert_eq!((ended.code, &*ended.out), (Some(0), "a\n"));
        assert!(processes(&format!("{MARK}={}-stays", std::process::id())).is_empty());
    }

    #[test]
    fn files_in_the_directory_are_found_but_for_backtraces() {
        let job = Job::start(shell("touch a b.btr; pwd"), "files").unwrap();
        let ended = job.run(None, LIMIT).unwrap();
        assert_eq!(ended.left, ["a"]);
        assert!(!Path::new(ended.out.trim()).exists(), "{ended:?}");
    }

    #[test]
    fn files_of_ranks_are_found() {
        let own = i32::try_from(std::process::id()).unwrap();
        let directory = std::env::temp_dir().join(format!("flagpost-kills-{own}"));
        std::fs::create_dir_all(&directory).unwrap();
        for name in ["net-7-0:0:0", "net-70-0:0:0", "net-7", "7:0:0"] {
            std::fs::write(directory.join(name), []).unwrap();
        }
        let found = files_of(&directory, Some("net-7"));
        let unknown = files_of(&directory, None);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(found, ["net-7-0:0:0"]);
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn what_varies_is_left_out() {
        let ended = Ended {
            out: "rank 1 did 36 of 200 pieces\n20000 round trips, 123 ns each way\n\
                  {\"ticks\":7,\"per_second\":8,\"work\":9}\n"
                .to_owned(),
            ..Ended::default()
        };
        let lines = [
            "20000 round trips, N ns each way",
            "rank 1 did N of 200 pieces",
            "{N ,N ,\"work\":9}",
        ];
        assert_eq!(ended.lines(), lines);
    }
}
