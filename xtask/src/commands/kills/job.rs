//! A job of `flagpost-run`, one rank of which is killed or stopped; and what it leaves.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};

use crate::children::{self, Running};
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

/// Runs `command` to its end, for `limit` at most; `name` is another one for each job of this
/// process.
pub(super) fn run(
    mut command: Command,
    name: &str,
    mut due: Option<Disturbance>,
    limit: Duration,
) -> Result<Ended> {
    let mark = format!("{}-{name}", std::process::id());
    let directory = paths::target().join("kills").join(&mark);
    std::fs::create_dir_all(&directory).context("no directory for a job")?;
    command.env(MARK, &mark).current_dir(&directory);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut running = Running::start(&mut command).context("cannot start flagpost-run")?;
    let out = reader(running.child.stdout.take());
    let err = reader(running.child.stderr.take());
    let mut ended = Ended::default();
    // What the names of its ranks' files in shared memory begin with, once a rank is known.
    let mut ends = None;
    let mut stopped: Option<(Pid, Instant)> = None;
    loop {
        if let Some(status) = running.try_wait()? {
            ended.code = status.code();
            break;
        }
        let now = start.elapsed();
        ended.hung = now > limit;
        if ended.hung {
            break;
        }
        for (pid, environment) in ranks(running.child.id()) {
            ends = ends.or_else(|| variable(&environment, "FLAGPOST_ENDS"));
            let rank = variable(&environment, "FLAGPOST_RANK");
            let is_due = |what: &mut Disturbance| {
                now >= what.after && rank.is_some_and(|rank| rank == what.rank.to_string())
            };
            if let Some(what) = due.take_if(is_due) {
                let signal = what.pause.map_or(Signal::KILL, |_| Signal::STOP);
                ended.struck = kill_process(pid, signal).is_ok();
                stopped = what.pause.map(|pause| (pid, Instant::now() + pause));
            }
        }
        if let Some((pid, _)) = stopped.take_if(|(_, end)| Instant::now() >= *end) {
            // It may have been killed with its launcher.
            let _ = kill_process(pid, Signal::CONT);
        }
        thread::sleep(LOOK);
    }
    ended.length = start.elapsed();
    // The launcher's group, and with it the launcher: what it has started ends with it.
    drop(running);
    if !ended.hung {
        let processes = left_of(&mark, |_| ()).into_iter();
        let processes = processes.map(|pid| format!("process {}", pid.as_raw_nonzero()));
        let shared = files_of(Path::new(SHARED), ends.as_deref());
        // Without the backtraces of libraries for network cards.
        let files = files(&directory).filter(|name| !name.ends_with(".btr"));
        ended.left = processes.chain(shared).chain(files).collect();
    }
    // Else who is left would keep the pipes open.
    left_of(&mark, |pid| {
        let _ = kill_process(pid, Signal::KILL);
    });
    std::fs::remove_dir_all(&directory).context("a job's directory stays")?;
    ended.out = out.join().unwrap_or_default();
    ended.err = err.join().unwrap_or_default();
    Ok(ended)
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let bytes = children::all(pipe).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// These processes, each with the words of the environment that it was started with. One that has
/// ended has none.
fn with_environments(pids: impl Iterator<Item = String>) -> impl Iterator<Item = (Pid, String)> {
    pids.filter_map(|name| {
        let pid = Pid::from_raw(name.parse().ok()?)?;
        let words = std::fs::read(format!("/proc/{name}/environ")).unwrap_or_default();
        Some((pid, String::from_utf8_lossy(&words).into_owned()))
    })
}

/// A variable of an environment.
fn variable(environment: &str, name: &str) -> Option<String> {
    let value = |word: &str| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    environment.split('\0').find_map(value)
}

/// The processes that a launcher has started.
fn ranks(launcher: u32) -> Vec<(Pid, String)> {
    let children = format!("/proc/{launcher}/task/{launcher}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let children = children.split_ascii_whitespace().map(str::to_owned);
    with_environments(children).collect()
}

/// The processes of the job.
fn processes(mark: &str) -> Vec<Pid> {
    let all = with_environments(files(Path::new("/proc")));
    let ours = all.filter(|(_, environment)| variable(environment, MARK).as_deref() == Some(mark));
    ours.map(|(pid, _)| pid).collect()
}

/// The processes of a job that are there after a while, in which `each` of them is seen.
fn left_of(mark: &str, each: impl Fn(Pid)) -> Vec<Pid> {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = processes(mark);
        if left.is_empty() || Instant::now() > end {
            return left;
        }
        left.into_iter().for_each(&each);
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
        let name = format!("{pause:?}");
        run(shell(words), &name, Some(disturbance), LIMIT).unwrap()
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
        let ended = run(
            shell("sleep 600; true"),
            "hangs",
            None,
            Duration::from_millis(50),
        )
        .unwrap();
        assert!(ended.hung && ended.code.is_none(), "{ended:?}");
        let ended = run(
            shell("setsid sleep 600 & sleep 0.1; echo a"),
            "stays",
            None,
            LIMIT,
        )
        .unwrap();
        assert_eq!(ended.left.len(), 1, "{ended:?}");
        assert_eq!((ended.code, &*ended.out), (Some(0), "a\n"));
        assert!(processes(&format!("{}-stays", std::process::id())).is_empty());
    }

    #[test]
    fn files_in_the_directory_are_found_but_for_backtraces() {
        let ended = run(shell("touch a b.btr; pwd"), "files", None, LIMIT).unwrap();
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
