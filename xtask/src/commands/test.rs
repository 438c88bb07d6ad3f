//! `cargo xtask test`: the host's tests, the cases on Linux processes, a short exploration, a short mutation sweep, then
//! the cases under QEMU at several sizes.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{explore, linux, mutants};
use crate::boot::Setup;
use crate::children::Running;
use crate::console::{Console, out};
use crate::paths;
use crate::report;
use crate::run::{Outcome, Run};
use crate::session::Session;

/// Cores and seeds of the QEMU runs: small and odd shapes, the SCC's 48, the board's most. The longest first: they run
/// beside each other.
const RUNS: [(u32, &[u32]); 5] = [
    (512, &[0]),
    (48, &[0]),
    (16, &[0]),
    (8, &[0, 1, 2, 3]),
    (2, &[0]),
];

/// How windows are mapped in further runs of 8 cores; all others map them normal, which leaves most to be
/// forgotten.
const MAPPINGS: [&str; 2] = ["mapping=mpbt", "mapping=mpbt-wt"];

/// Schedules per mutation point.
const SCHEDULES: u64 = 20_000;

/// Checks passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Count {
    pub(crate) fn one(ok: bool) -> Self {
        Self {
            passed: usize::from(ok),
            failed: usize::from(!ok),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// The cases of a run that ran; what went wrong outside any case counts as one more failure.
    pub(crate) fn of(run: &Run) -> Self {
        let mut count = Self::default();
        for case in &run.cases {
            match case.outcome {
                Outcome::Passed => count.passed += 1,
                Outcome::Skipped(_) => {}
                Outcome::Failed(..) | Outcome::Running => count.failed += 1,
            }
        }
        if count.failed == 0 && !run.ok() {
            count.failed = 1;
        }
        count
    }

    /// The last line of a command.
    pub(crate) fn line(self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}

/// Runs the command; `false` if anything failed.
pub(crate) fn run(console: &Console) -> bool {
    let count = all(console);
    console.failures();
    out(&count.line());
    count.failed == 0
}

/// Host tests, Linux processes, exploration, mutants and QEMU runs, without the summary.
pub(crate) fn all(console: &Console) -> Count {
    console.release();
    let mut count = Count::default();
    for part in [
        host(console),
        processes(console),
        exploration(console),
        mutants(console),
        qemu(console),
    ] {
        match part {
            Ok(part) => count.add(part),
            Err(why) => {
                console.clear();
                console.error(&format!("{why:#}"));
                count.failed += 1;
            }
        }
    }
    count
}

/// `cargo test`, its output passed on and counted.
fn host(console: &Console) -> Result<Count> {
    let mut command = Command::new(paths::cargo());
    command
        .args(["test", "--locked", "--no-fail-fast"])
        .current_dir(paths::root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut cargo = Running::start(&mut command).context("cannot run cargo test")?;
    let mut count = Count::default();
    let stdout = cargo
        .child
        .stdout
        .take()
        .context("no pipe from cargo test")?;
    for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        out(&line);
        if let Some(test) = failed_test(&line) {
            console.failure(test);
        }
        if let Some(part) = result(&line) {
            count.add(part);
        }
    }
    // A failure to build prints no result.
    if !cargo.wait()?.success() && count.failed == 0 {
        console.failure("cargo test: see the errors above");
        count.failed = 1;
    }
    Ok(count)
}

/// Reads `test fence::opens ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_suffix(" ... FAILED")?.strip_prefix("test ")
}

/// Reads `test result: ok. 3 passed; 0 failed; ...`.
fn result(line: &str) -> Option<Count> {
    let words: Vec<&str> = line
        .strip_prefix("test result: ")?
        .split_whitespace()
        .collect();
    let before = |name: &str| {
        let at = words
            .iter()
            .position(|word| word.trim_end_matches(';') == name)?;
        words[at.checked_sub(1)?].parse().ok()
    };
    Some(Count {
        passed: before("passed")?,
        failed: before("failed")?,
    })
}

fn processes(console: &Console) -> Result<Count> {
    out("\nthe cases on Linux:");
    linux::cases(console)
}

fn exploration(console: &Console) -> Result<Count> {
    out("\nexploration:");
    explore::short(console)
}

fn mutants(console: &Console) -> Result<Count> {
    out("\nmutation points:");
    mutants::all(console, SCHEDULES, false)
}

fn qemu(console: &Console) -> Result<Count> {
    let session = Session::open(console)?;
    let sizes = RUNS
        .iter()
        .map(|&(cores, seeds)| seeds.iter().map(|&seed| Setup::new(cores, seed)).collect());
    let mappings = MAPPINGS.iter().map(|&mapping| {
        vec![Setup {
            arguments: vec![mapping.to_owned()],
            ..Setup::new(8, 0)
        }]
    });
    let groups: Vec<Vec<Setup>> = sizes.chain(mappings).collect();
    console.step("booting");
    let mut runs = session.all(console, &groups.concat())?.into_iter();
    let mut count = Count::default();
    for group in groups {
        let runs: Vec<_> = runs.by_ref().take(group.len()).collect();
        if let Some(setup) = group.first() {
            out(&format!(
                "\n{} cores {}",
                setup.cores,
                setup.arguments.join(" ")
            ));
        }
        count.add(show(console, &runs));
    }
    Ok(count)
}

/// Prints the table and errors of some runs, and counts them.
pub(crate) fn show(console: &Console, runs: &[Run]) -> Count {
    console.clear();
    out("");
    report::tables(runs);
    report::errors(console, runs, &|run| {
        format!("cargo xtask qemu --cores {} --seed {}", run.cores, run.seed)
    });
    let mut count = Count::default();
    runs.iter().for_each(|run| count.add(Count::of(run)));
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_cargo_test_are_read() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(
            result(line),
            Some(Count {
                passed: 12,
                failed: 3
            })
        );
        assert_eq!(result("running 3 tests"), None);
        assert_eq!(result("test result: "), None);
        assert_eq!(failed_test("test a::b ... FAILED"), Some("a::b"));
        assert_eq!(failed_test("test a::b ... ok"), None);
    }
}
