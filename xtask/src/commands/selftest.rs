//! `cargo xtask selftest`: does this program notice what it must notice?
//!
//! Calls its own executable: with images that fail in each way a real one can (the `broken.` cases
//! of the image), and with input that must be refused. Part of `cargo xtask ci`; not a `#[test]`,
//! because it needs QEMU.

use std::process::{Command, Output, Stdio};

use anyhow::Result;
use flagpost_common::heeding;

use crate::children::{self, Running};
use crate::console::Console;
use crate::count::Count;

/// A call: what it shows, its arguments, and words of standard error, all of which must be there.
/// With `--json` they are words of standard output, which is one object.
type Check = (&'static str, &'static str, &'static [&'static str]);

/// Broken images: exit status 1, and the message names case, core and trouble. The ones that hang
/// get little time.
#[rustfmt::skip]
const BROKEN: [Check; 17] = [
    ("a case that fails", "--filter broken.fail",
        &["case broken.fail failed on core 7:", "--cores 8 --seed 0 --filter broken.fail"]),
    ("a case that waits for ever", "--filter broken.hang --timeout 10",
        &["case broken.hang hung", "core 1 still runs: ", ".rs:", "7 other cores"]),
    ("a case that spins for ever", "--filter broken.spin --timeout 10",
        &["case broken.spin hung", "core 1 still runs: ", ".rs:"]),
    ("a case that hangs on parallel cores",
        "--filter broken.hang --timeout 10 --parallel --cores 2",
        &["case broken.hang hung", "core 1 still runs: ", ".rs:"]),
    ("a case that deadlocks", "--filter broken.deadlock --timeout 10 --cores 2",
        &["core   1 warn  waits for a notification by any rank",
          "core   0 warn  waits for a collective call by 1",
          "in a barrier (call at ", "case broken.deadlock hung"]),
    ("a case in which a core leaves that others need", "--filter broken.leaver --timeout 10",
        &["case broken.leaver failed on core ", "PeerLeft"]),
    ("a case in which cores wait for each other after a failure", "--filter broken.stands",
        &["case broken.stands panicked on core ", "flagpost-cases/broken.rs:",
          "waits for a notification by ", "for ever, since 1 have failed"]),
    ("an assertion of defmt's that fails", "--filter broken.assert",
        &["case broken.assert panicked on core 7 at ", "flagpost-cases/broken.rs:",
          "an assertion after this call", "broken on purpose"]),
    ("a case that traps", "--filter broken.trap",
        &["case broken.trap trapped on core 1: load access fault", "at _flagpost_load_from_zero"]),
    ("a case that overflows its stack", "--filter broken.overflow",
        &["case broken.overflow trapped on core 1: stack overflow"]),
    ("a case that panics", "--filter broken.panic",
        &["case broken.panic panicked on core 1 at ", ".rs:"]),
    ("an image that ends as if all were well", "--filter broken.silent",
        &["case broken.silent fell silent", "8 cores"]),
    ("a case that traps on Cortex-M", "--board an521 --filter broken.trap",
        &["case broken.trap trapped on core 1: bus fault", "::load_from_nowhere ("]),
    ("a case that overflows its stack on Cortex-M", "--board an521 --filter broken.overflow",
        &["case broken.overflow trapped on core 1: stack overflow"]),
    ("a case that panics on Cortex-M", "--board an521 --filter broken.panic",
        &["case broken.panic panicked on core 1 at ", ".rs:"]),
    ("a case that traps, as JSON", "--filter broken.trap --json",
        &["\"case\":\"broken.trap\"", "\"cores\":8", "\"ok\":false", "core 1"]),
    ("a failure on the largest machine", "--filter broken.fail --cores 512",
        &["case broken.fail failed on core 511:"]),
];

/// Input that is refused: exit status 2, one line, nothing on standard output.
#[rustfmt::skip]
const REFUSED: [Check; 18] = [
    ("no cores", "--cores 0", &["1..=512"]),
    ("too many cores", "--cores 100000", &["1..=512"]),
    ("negative cores", "--cores -3", &["1..=512"]),
    ("an unknown case", "--filter no.such.case", &["no.such.case", "cases: "]),
    ("an unknown option", "--core 8", &["--core"]),
    ("no seeds", "--seeds 7..7", &["A..B"]),
    ("seeds backwards", "--seeds 8..5", &["A..B"]),
    ("seeds of words", "--seeds a..b", &["a"]),
    ("a negative seed", "--seed -1", &["-1"]),
    ("a seed as an argument", "--arg seed=1", &["use --seed instead"]),
    ("an argument without a name", "--arg =1", &["NAME=VALUE"]),
    ("another board's argument", "--arg lines=0", &["no argument is called lines"]),
    ("a value that the board has not", "--board scc --arg lines=2", &["lines takes"]),
    ("a mutant", "--arg mutant=pscw.wait.wait", &["no argument is called mutant"]),
    ("no time", "--timeout 0", &["1..=86400"]),
    ("half an argument", "--arg m", &["NAME=VALUE"]),
    ("an unknown argument", "--arg stencil.k=5",
        &["stencil.k", "stencil.m, stencil.n, stencil.iterations"]),
    ("a stencil with more columns than the cores hold", "--filter stencil --arg stencil.m=8193",
        &["stencil.m=8193", "1024 per core"]),
];

/// QEMU missing, and nothing may be installed: refused, too.
#[rustfmt::skip]
const NO_QEMU: Check = ("no QEMU, and no way to install it", "",
    &["qemu-system-riscv64", "apt-get install -y --no-install-recommends qemu-system-misc"]);

/// Runs the command; `false` if anything went unnoticed.
pub(crate) fn run(console: &Console) -> Result<bool> {
    let count = all(console)?;
    Ok(console.verdict(count))
}

/// All checks, without the summary.
pub(crate) fn all(console: &Console) -> Result<Count> {
    let mut count = Count::default();
    let mut note = |name: &str, wrong: Option<String>| {
        if let Some(wrong) = &wrong {
            console.error(&format!("{name}: {wrong}"));
        }
        count.add(Count::one(wrong.is_none()));
    };
    let checks = BROKEN.iter().map(|check| (1, check));
    for (status, check) in checks.chain(REFUSED.iter().map(|check| (2, check))) {
        let (name, arguments, _) = check;
        console.step(*name);
        note(
            name,
            wrong(check, status, &children::output(&mut call(arguments))?),
        );
    }
    let mut command = call("");
    command
        .env("PATH", "/dev/null/none")
        .env("FLAGPOST_NO_INSTALL", "1");
    let output = children::output(&mut command)?;
    note(NO_QEMU.0, wrong(&NO_QEMU, 2, &output));
    note("a closed pipe", closed_pipe()?);
    Ok(count)
}

/// A call of this program's `qemu` command.
fn call(arguments: &str) -> Command {
    // This program, also where a build of the steps before has put another one in its place.
    let mut command = heeding(format!("/proc/{}/exe", std::process::id()));
    command.arg("qemu").args(arguments.split_whitespace());
    command.stdin(Stdio::null());
    command
}

/// What is wrong with the outcome of a check, if anything.
fn wrong(&(_, arguments, words): &Check, status: i32, output: &Output) -> Option<String> {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let json = arguments.contains("--json");
    let said = if json { &stdout } else { &stderr };
    let mut wrong = Vec::new();
    if output.status.code() != Some(status) {
        wrong.push(format!("{}, not {status}", output.status));
    }
    for word in words.iter().filter(|word| !said.contains(**word)) {
        wrong.push(format!("`{word}` is not said"));
    }
    if json && serde_json::from_str::<serde_json::Value>(&stdout).is_err() {
        wrong.push("standard output is not one object".to_owned());
    }
    if status == 2 && (stderr.lines().count() != 1 || !stdout.is_empty()) {
        wrong.push("expected one line on standard error and nothing else".to_owned());
    }
    let what = wrong.join("; ");
    (!wrong.is_empty()).then(|| format!("{what}\n{stdout}{stderr}"))
}

/// Nobody reads standard output: the exit status is still that of the run.
fn closed_pipe() -> Result<Option<String>> {
    let mut command = call("--filter broken.fail");
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = Running::start(&mut command)?;
    drop(running.child.stdout.take());
    let status = running.wait()?;
    Ok((status.code() != Some(1)).then(|| format!("{status}, not 1")))
}
