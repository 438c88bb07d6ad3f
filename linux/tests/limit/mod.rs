//! A hang is a verdict: what a test starts ends within [`LIMIT`]. Else its group is killed, and
//! with the launcher its ranks; and the test fails.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use flagpost_common::patience;
use rustix::process::{Pid, Signal, kill_process_group};

/// Longer than anything takes on a machine at rest: see [`patience`].
const LIMIT: Duration = Duration::from_secs(30);
/// How long what is killed may take to end.
const AFTER: Duration = Duration::from_secs(10);

/// How a process ended, or several.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The status of each; 128 + N for signal N.
    pub(crate) codes: Vec<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// [`Command::output`], within the limit.
pub(crate) fn output(command: &mut Command) -> Ended {
    start(command.stdin(Stdio::null())).output()
}

/// Starts `command`, whose output is kept.
pub(crate) fn start(command: &mut Command) -> Started {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // With a number for all that it starts; ranks end with their launcher.
    command.process_group(0);
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

/// A process and its group: all of it ends with this value.
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
    pub(crate) fn output(mut self) -> Ended {
        drop(self.stdin.take());
        let limit = patience(LIMIT);
        if let Ok(output) = self.ended.recv_timeout(limit) {
            let output = output.expect("it ends");
            let [out, err] = [output.stdout, output.stderr].map(|text| {
                let text = String::from_utf8_lossy(&text).into_owned();
                assert!(!text.contains("rank rank"), "{}: {text}", self.words);
                text
            });
            let signal = || output.status.signal().map(|signal| 128 + signal);
            let codes = vec![output.status.code().or_else(signal).unwrap_or(-1)];
            return Ended { codes, out, err };
        }
        self.kill();
        let said = self.ended.recv_timeout(AFTER);
        panic!("no end in sight after {limit:?}: {}: {said:?}", self.words);
    }

    fn kill(&self) {
        let group = Pid::from_raw(self.pid.cast_signed()).expect("a number of a process");
        // All of it may have ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self
            .ended
            .try_recv()
            .is_err_and(|why| why == TryRecvError::Empty)
        {
            self.kill();
        }
    }
}
