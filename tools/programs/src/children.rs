//! The programs that this one starts and waits for: none of them outlives it.
//!
//! ```text
//!   SIGINT, SIGTERM, SIGHUP ──► the thread of `watch` takes the register and keeps it
//!                                 │ SIGTERM to each group, SIGKILL after GRACE
//!                                 │ removes the files
//!                                 ▼
//!                               dies by the same signal
//! ```
//! Each child leads a process group of its own, so that what it starts in turn (cargo its
//! compilers, a test its ranks) ends with it. What is typed at the terminal comes to this program
//! alone, which passes it on.
//!
//! A thread that waits for a child which the signal has ended goes no further: [`Running`] cannot
//! leave the register any more. So no thread reports the end as a failure of the child.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::parallel::lock;

/// How long children may take to end by themselves. One may be this program once more, with
/// children of its own.
const GRACE: Duration = Duration::from_secs(5);

/// The groups of the children that run, each with a file that goes with it.
static REGISTER: Mutex<BTreeMap<i32, Option<PathBuf>>> = Mutex::new(BTreeMap::new());

fn register() -> MutexGuard<'static, BTreeMap<i32, Option<PathBuf>>> {
    lock(&REGISTER)
}

/// From now on, a signal that ends this program ends its children first. A signal that this program
/// was started to ignore, as by `nohup`, stays ignored.
pub fn watch() -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter();
    let mut signals = Signals::new(wanted.filter(|signal| ignored >> (signal - 1) & 1 == 0))?;
    thread::Builder::new().spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let register = register();
            end_all(&register);
            let _ = emulate_default_handler(signal);
            // Not reached: the default of each of these signals is death.
            drop(register);
        }
    })?;
    Ok(())
}

/// The signals that are ignored, in the `status` of a process: bit n - 1 for signal n.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

fn end_all(register: &BTreeMap<i32, Option<PathBuf>>) {
    let groups = || register.keys().filter_map(|group| Pid::from_raw(*group));
    let signal_all = |signal| {
        for group in groups() {
            // None is there any more: just as well.
            let _ = kill_process_group(group, signal);
        }
    };
    signal_all(Signal::TERM);
    let deadline = Instant::now() + GRACE;
    // The threads that wait for the children reap them; until then a group is there.
    while groups().any(|group| test_kill_process_group(group).is_ok()) && Instant::now() < deadline
    {
        thread::sleep(Duration::from_millis(5));
    }
    signal_all(Signal::KILL);
    for file in register.values().flatten() {
        let _ = std::fs::remove_file(file);
    }
}

/// A child. It, its group and its file go when this value does, whatever happens.
pub struct Running {
    /// To take its pipes from.
    pub child: Child,
    /// Absent once the child is reaped: its number may be another's then.
    group: Option<Pid>,
}

impl Running {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Self::start_with(command, None)
    }

    /// Starts `command`, which makes `file`, or lets it be made.
    pub fn start_with(command: &mut Command, file: Option<PathBuf>) -> io::Result<Self> {
        let mut register = register();
        let child = command.process_group(0).spawn()?;
        let group = Pid::from_child(&child);
        register.insert(group.as_raw_pid(), file);
        Ok(Self {
            child,
            group: Some(group),
        })
    }

    /// Waits for the end of the child.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.leave();
        Ok(status)
    }

    /// The child's status, if it has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.leave();
        }
        Ok(status)
    }

    fn leave(&mut self) {
        if let Some(group) = self.group.take() {
            let file = register().remove(&group.as_raw_pid()).flatten();
            file.map(std::fs::remove_file);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.wait();
        }
    }
}

/// [`Command::status`].
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    Running::start(command)?.wait()
}

/// [`Command::output`].
pub fn output(command: &mut Command) -> io::Result<Output> {
    let mut running = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let (stdout, stderr) = (running.child.stdout.take(), running.child.stderr.take());
    let stderr = thread::spawn(move || all(stderr));
    let stdout = all(stdout)?;
    let stderr = stderr.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    Ok(Output {
        status: running.wait()?,
        stdout,
        stderr,
    })
}

/// All that a pipe delivers.
pub fn all(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.map(|mut pipe| pipe.read_to_end(&mut bytes))
        .transpose()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::ExitStatusExt as _;
    use std::path::Path;

    use flagpost_common::heeding;

    use super::*;

    /// Set for the process that gets the signal: the file that its child makes.
    const VICTIM: &str = "FLAGPOST_TEST_VICTIM";

    /// Not a test but what [`ended_by`] starts: it watches, has a child and a grandchild, and
    /// waits.
    #[test]
    fn victim() {
        let Some(file) = std::env::var_os(VICTIM).map(PathBuf::from) else {
            return;
        };
        watch().unwrap();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "touch \"$0\"; sleep 600 & echo pid $$ pid $!; wait"])
            .arg(&file);
        let mut running = Running::start_with(&mut shell, Some(file)).unwrap();
        running.wait().unwrap();
        unreachable!("the child has outlived its parent, or the parent the signal");
    }

    fn alive(process: &str) -> bool {
        // A zombie is what the parent of all, which is not ours, has not reaped yet.
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    fn ended_by(signal: Signal) {
        let name = format!("flagpost-victim-{}-{}", std::process::id(), signal.as_raw());
        let file = std::env::temp_dir().join(name);
        let mut victim = heeding(std::env::current_exe().unwrap())
            .args(["--exact", "children::tests::victim", "--nocapture"])
            .env(VICTIM, &file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        // The test harness has written on the same line.
        let pids: Vec<String> = lines
            .map_while(Result::ok)
            .find_map(|line| {
                let at = line.find("pid ")?;
                let words = line[at..].split(' ').filter(|word| *word != "pid");
                Some(words.map(str::to_owned).collect())
            })
            .unwrap();
        assert_eq!(pids.len(), 2);
        assert!(pids.iter().all(|pid| alive(pid)) && Path::exists(&file));
        rustix::process::kill_process(Pid::from_child(&victim), signal).unwrap();
        assert_eq!(victim.wait().unwrap().signal(), Some(signal.as_raw()));
        assert!(!Path::exists(&file), "the file is still there");
        for pid in pids {
            assert!(!alive(&pid), "process {pid} is still there");
        }
    }

    #[test]
    fn signals_end_children_and_their_children() {
        for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
            ended_by(signal);
        }
    }

    #[test]
    fn output_is_that_of_both_pipes() {
        let output = output(Command::new("sh").args(["-c", "echo a; echo b >&2; exit 3"])).unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (&*output.stdout, &*output.stderr),
            (&b"a\n"[..], &b"b\n"[..])
        );
    }

    #[test]
    fn ignored_signals_are_read() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000000003\n"), 3);
        assert_eq!(ignored(""), 0);
    }
}
