//! A hang is a verdict: what a test starts ends within [`LIMIT`]. Else it is killed with all that
//! it has started, and the test fails.

use std::io;
use std::process::{ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use flagpost_common::patience;
use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything takes on a machine at rest: see [`patience`].
const LIMIT: Duration = Duration::from_secs(30);
/// How long what is killed may take to end.
const AFTER: Duration = Duration::from_secs(10);

/// [`Command::output`], within the limit.
pub(crate) fn output(command: &mut Command) -> Output {
    start(command.stdin(Stdio::null())).output()
}

/// Starts `command`, whose output is kept.
pub(crate) fn start(command: &mut Command) -> Started {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let (words, pid, stdin) = (format!("{command:?}"), child.id(), child.stdin.take());
    let (sender, ended) = channel();
    // Nobody asks for it if the test has failed.
    std::thread::spawn(move || sender.send(child.wait_with_output()).ok());
    Started {
        words,
        pid,
        stdin,
        ended,
    }
}

/// A process and what it starts: all of it ends with this value.
pub(crate) struct Started {
    words: String,
    pub(crate) pid: u32,
    stdin: Option<ChildStdin>,
    ended: Receiver<io::Result<Output>>,
}

impl Started {
    /// Closes its standard input, and waits for its end.
    ///
    /// # Panics
    /// If that does not come within the limit.
    pub(crate) fn output(mut self) -> Output {
        drop(self.stdin.take());
        let limit = patience(LIMIT);
        if let Ok(output) = self.ended.recv_timeout(limit) {
            let output = output.expect("it ends");
            for text in [&output.stdout, &output.stderr] {
                let text = String::from_utf8_lossy(text);
                assert!(!text.contains("rank rank"), "{}: {text}", self.words);
            }
            return output;
        }
        kill_family(self.pid);
        let said = self.ended.recv_timeout(AFTER);
        panic!("no end in sight after {limit:?}: {}: {said:?}", self.words);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self
            .ended
            .try_recv()
            .is_err_and(|why| why == TryRecvError::Empty)
        {
            kill_family(self.pid);
        }
    }
}

/// Kills process `first`, its children, theirs, and so on.
fn kill_family(first: u32) {
    let stats = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes: Vec<(u32, u32)> = stats
        .filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // State and parent follow the name of the program.
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                parent.parse().ok()?,
            ))
        })
        .collect();
    let mut family = vec![first];
    let mut index = 0;
    while let Some(parent) = family.get(index).copied() {
        let children = processes.iter().filter(|(_, of)| *of == parent);
        family.extend(children.map(|(pid, _)| pid));
        index += 1;
    }
    for pid in family
        .into_iter()
        .filter_map(|pid| Pid::from_raw(pid.cast_signed()))
    {
        // It may have ended with another one.
        let _ = kill_process(pid, Signal::KILL);
    }
}
