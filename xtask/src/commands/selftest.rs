//! `cargo xtask selftest`: does this program notice what it must notice?
//!
//! Calls its own executable: with images that fail in each way a real one can (the `broken.` cases
//! of the image), and with input that must be refused. Part of `cargo xtask ci`; not a `#[test]`,
//! because it needs QEMU.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::boot;
use crate::children::{self, Running};
use crate::console::{Console, out};
use crate::count::Count;

/// One call and what must come of it.
struct Check {
    name: &'static str,
    arguments: &'static [&'static str],
    status: i32,
    /// All of these must be in standard error.
    words: &'static [&'static str],
}

/// Broken images: exit status 1, and the message names case, core and trouble. The ones that hang
/// get little time.
const BROKEN: [Check; 11] = [
    Check {
        name: "a case that fails",
        arguments: &["--filter", "broken.fail"],
        status: 1,
        words: &[
            "case broken.fail failed on core 7:",
            "--cores 8 --seed 0 --filter broken.fail",
        ],
    },
    Check {
        name: "a case that waits for ever",
        arguments: &["--filter", "broken.hang", "--timeout", "10"],
        status: 1,
        words: &[
            "case broken.hang hung",
            "core 1 still runs: ",
            ".rs:",
            "7 other cores",
        ],
    },
    Check {
        name: "a case that spins for ever",
        arguments: &["--filter", "broken.spin", "--timeout", "10"],
        status: 1,
        words: &["case broken.spin hung", "core 1 still runs: ", ".rs:"],
    },
    Check {
        name: "a case that hangs on parallel cores",
        arguments: &[
            "--filter",
            "broken.hang",
            "--timeout",
            "10",
            "--parallel",
            "--cores",
            "2",
        ],
        status: 1,
        words: &["case broken.hang hung", "core 1 still runs: ", ".rs:"],
    },
    Check {
        name: "a case that deadlocks",
        arguments: &[
            "--filter",
            "broken.deadlock",
            "--timeout",
            "10",
            "--cores",
            "2",
        ],
        status: 1,
        words: &[
            "core   1 warn  waits for a notification by any rank",
            "core   0 warn  waits for a collective call by 1",
            "in a barrier (call at ",
            "case broken.deadlock hung",
        ],
    },
    Check {
        name: "a case in which a core leaves that others need",
        arguments: &["--filter", "broken.leaver", "--timeout", "10"],
        status: 1,
        words: &["case broken.leaver failed on core ", "PeerLeft"],
    },
    Check {
        name: "a case that traps",
        arguments: &["--filter", "broken.trap"],
        status: 1,
        words: &[
            "case broken.trap trapped on core 1: load access fault",
            "at _flagpost_load_from_zero",
        ],
    },
    Check {
        name: "a case that overflows its stack",
        arguments: &["--filter", "broken.overflow"],
        status: 1,
        words: &["case broken.overflow trapped on core 1: stack overflow"],
    },
    Check {
        name: "a case that panics",
        arguments: &["--filter", "broken.panic"],
        status: 1,
        words: &["case broken.panic panicked on core 1 at ", ".rs:"],
    },
    Check {
        name: "an image that ends as if all were well",
        arguments: &["--filter", "broken.silent"],
        status: 1,
        words: &["case broken.silent fell silent", "8 cores"],
    },
    Check {
        name: "a failure on the largest machine",
        arguments: &["--filter", "broken.fail", "--cores", "512"],
        status: 1,
        words: &["case broken.fail failed on core 511:"],
    },
];

/// Input that is refused: exit status 2, one line, nothing on standard output.
const REFUSED: [Check; 10] = [
    Check {
        name: "no cores",
        arguments: &["--cores", "0"],
        status: 2,
        words: &["1 to 512"],
    },
    Check {
        name: "too many cores",
        arguments: &["--cores", "100000"],
        status: 2,
        words: &["1 to 512"],
    },
    Check {
        name: "negative cores",
        arguments: &["--cores", "-3"],
        status: 2,
        words: &["1 to 512"],
    },
    Check {
        name: "an unknown case",
        arguments: &["--filter", "no.such.case"],
        status: 2,
        words: &["no.such.case", "cases: "],
    },
    Check {
        name: "an unknown option",
        arguments: &["--core", "8"],
        status: 2,
        words: &["--core"],
    },
    Check {
        name: "no seeds",
        arguments: &["--seeds", "7..7"],
        status: 2,
        words: &["A..B"],
    },
    Check {
        name: "no time",
        arguments: &["--timeout", "0"],
        status: 2,
        words: &["seconds"],
    },
    Check {
        name: "half an argument",
        arguments: &["--arg", "m"],
        status: 2,
        words: &["NAME=VALUE"],
    },
    Check {
        name: "an unknown argument",
        arguments: &["--arg", "stencil.k=5"],
        status: 2,
        words: &["stencil.k", "stencil.m, stencil.n, stencil.iterations"],
    },
    Check {
        name: "a stencil with more columns than the cores hold",
        arguments: &["--filter", "stencil", "--arg", "stencil.m=8193"],
        status: 2,
        words: &["stencil.m=8193", "1024 per core"],
    },
];

/// QEMU missing, and nothing may be installed.
const NO_QEMU: Check = Check {
    name: "no QEMU, and no way to install it",
    arguments: &[],
    status: 2,
    words: &[
        "qemu-system-riscv64",
        "apt-get install -y --no-install-recommends qemu-system-misc",
    ],
};

/// Runs the command; `false` if anything went unnoticed.
pub(crate) fn run(console: &Console) -> Result<bool> {
    let count = all(console)?;
    out(&count.line());
    Ok(count.failed == 0)
}

/// All checks, without the summary.
pub(crate) fn all(console: &Console) -> Result<Count> {
    let mut count = Count::default();
    let mut note = |name: &str, wrong: Option<String>| {
        out(&format!(
            "{} {name}",
            if wrong.is_none() { "ok    " } else { "FAILED" }
        ));
        if let Some(wrong) = &wrong {
            console.say(wrong);
        }
        count.add(Count::one(wrong.is_none()));
    };
    for check in BROKEN.iter().chain(&REFUSED) {
        console.step(check.name);
        note(
            check.name,
            check.judge(&children::output(&mut call(check.arguments))?),
        );
    }
    let mut command = call(NO_QEMU.arguments);
    command
        .env("PATH", "/dev/null/none")
        .env("FLAGPOST_NO_INSTALL", "1");
    let output = children::output(&mut command)?;
    note(NO_QEMU.name, NO_QEMU.judge(&output));
    note("a failing case as JSON", json()?);
    note("a closed pipe", closed_pipe()?);
    for signal in [Signal::TERM, Signal::INT] {
        note("a signal during a run", stopped(signal)?);
    }
    Ok(count)
}

/// A call of this program's `qemu` command.
fn call(arguments: &[&str]) -> Command {
    // This program, also where a build of the steps before has put another one in its place.
    let mut command = Command::new("/proc/self/exe");
    command.arg("qemu").args(arguments).stdin(Stdio::null());
    command
}

impl Check {
    /// What is wrong with the outcome, if anything.
    fn judge(&self, output: &Output) -> Option<String> {
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let mut wrong = Vec::new();
        if output.status.code() != Some(self.status) {
            wrong.push(format!("{}, not {}", output.status, self.status));
        }
        for word in self.words.iter().filter(|word| !stderr.contains(**word)) {
            wrong.push(format!("standard error lacks `{word}`"));
        }
        if self.status == 2 && (stderr.lines().count() != 1 || !stdout.is_empty()) {
            wrong.push("expected one line on standard error and nothing else".to_owned());
        }
        let name = self.name;
        let what = wrong.join("; ");
        (!wrong.is_empty()).then(|| format!("{name}: {what}\n{stdout}{stderr}"))
    }
}

/// With `--json` a failing case is one object, and standard output holds nothing else.
fn json() -> Result<Option<String>> {
    let output = children::output(&mut call(&["--filter", "broken.trap", "--json"]))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let value: serde_json::Value = serde_json::from_str(&stdout).unwrap_or_default();
    let good = output.status.code() == Some(1)
        && value["case"] == "broken.trap"
        && value["cores"] == 8
        && value["ok"] == false
        && value["error"]
            .as_str()
            .is_some_and(|error| error.contains("core 1"));
    Ok((!good).then(|| format!("{}: {stdout}", output.status)))
}

/// Nobody reads standard output: the exit status is still that of the run.
fn closed_pipe() -> Result<Option<String>> {
    let mut command = call(&["--filter", "broken.fail"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = Running::start(&mut command)?;
    drop(running.child.stdout.take());
    let status = running.wait()?;
    Ok((status.code() != Some(1)).then(|| format!("{status}, not 1")))
}

/// A signal ends the program, its QEMU, and the socket between them.
fn stopped(signal: Signal) -> Result<Option<String>> {
    let mut command = call(&["--filter", "broken.hang"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running::start(&mut command)?;
    let socket = boot::socket_of(running.child.id(), 0);
    // QEMU makes it.
    while !socket.exists() {
        if let Some(status) = running.try_wait()? {
            bail!("ended before it was told to: {status}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&running.child), signal)?;
    let status = running.wait()?;
    let mut wrong = Vec::new();
    if status.signal() != Some(signal.as_raw()) {
        wrong.push(format!("{status}, not signal {}", signal.as_raw()));
    }
    if socket.exists() {
        wrong.push(format!("{} is still there", socket.display()));
    }
    wrong.extend(users_of(&socket)?.map(|process| format!("{process} still runs")));
    Ok((!wrong.is_empty()).then(|| wrong.join("; ")))
}

/// The directories in `/proc` of the processes that were called with this socket.
fn users_of(socket: &Path) -> Result<impl Iterator<Item = String>> {
    let socket = socket.display().to_string();
    let called = move |process: &PathBuf| {
        let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&socket)
    };
    let processes = std::fs::read_dir("/proc")?.flatten();
    let users = processes.map(|entry| entry.path()).filter(called);
    Ok(users.map(|process| process.display().to_string()))
}
