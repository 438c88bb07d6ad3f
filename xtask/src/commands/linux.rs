//! `cargo xtask linux`: the conformance cases on Linux, a process per rank. A part of
//! `cargo xtask test`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::children::Running;
use crate::compiling;
use crate::console::{Console, out};
use crate::count::Count;

pub(super) const PACKAGE: &str = "flagpost-linux-cases";

/// As `flagpost-linux-cases --platform` knows them.
const PLATFORMS: [&str; 4] = [
    "coherent",
    "coherent-locks",
    "software-coherent",
    "emulated",
];

/// Ranks: as many as a small host's processors, and more than those. Some cases are for three, and
/// one for nine.
const RANKS: [u16; 4] = [2, 3, 4, 9];

/// Run the conformance cases on Linux, a process per rank
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Ranks [default: 2, 3, 4 and 9]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    ranks: Option<u16>,
    /// How memory is kept in step, and how words are changed [default: all]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PLATFORMS))]
    platform: Option<String>,
    /// Only cases whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
}

/// Runs the command; `false` if a case failed.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    let of = |platform: &&str| {
        arguments
            .platform
            .as_deref()
            .is_none_or(|name| name == *platform)
    };
    let platforms: Vec<&str> = PLATFORMS.into_iter().filter(of).collect();
    let ranks = arguments.ranks.map_or(RANKS.to_vec(), |ranks| vec![ranks]);
    let count = all(console, &platforms, &ranks, &arguments.filter)?;
    Ok(console.verdict(count))
}

/// Runs all platforms at all sizes, and prints what failed, was skipped, and the sums.
pub(crate) fn cases(console: &Console) -> Result<Count> {
    all(console, &PLATFORMS, &RANKS, "")
}

fn all(console: &Console, platforms: &[&str], ranks: &[u16], filter: &str) -> Result<Count> {
    let program = compiling::tests_program(console, PACKAGE)?;
    let mut count = Count::default();
    for platform in platforms {
        let mut skipped = Vec::new();
        for ranks in ranks {
            console.step(format!("linux, {platform}, {ranks} ranks"));
            let part = job(console, &program, platform, *ranks, filter)?;
            if part.count.failed > 0 {
                console.failure(&format!(
                    "cargo xtask linux --platform {platform} --ranks {ranks}"
                ));
            }
            count.add(part.count);
            skipped.push(part.skipped);
        }
        // Who asks for one size knows what is left out.
        let never = if ranks == RANKS {
            never_run(&skipped)
        } else {
            Vec::new()
        };
        for case in never {
            console.error(&format!(
                "case {case} is possible on {platform} and was run at none of {ranks:?} ranks"
            ));
            count.add(Count::one(false));
        }
    }
    console.clear();
    Ok(count)
}

/// A case that a job has left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Skipped {
    case: String,
    /// The platform can run it, with other ranks.
    possible: bool,
}

/// What a job has shown.
pub(super) struct Part {
    pub(super) count: Count,
    pub(super) skipped: Vec<Skipped>,
}

/// The cases that each of these jobs of one platform has left out because of its ranks.
fn never_run(jobs: &[Vec<Skipped>]) -> Vec<&str> {
    let Some((first, others)) = jobs.split_first() else {
        return Vec::new();
    };
    let everywhere = |case: &&Skipped| others.iter().all(|job| job.contains(case));
    let cases = first.iter().filter(|case| case.possible);
    cases.filter(everywhere).map(|case| &*case.case).collect()
}

/// Reads `skipped small.fan_in: needs 3 to 3 ranks`.
fn skipped_of(line: &str) -> Option<Skipped> {
    let rest = line.strip_prefix("skipped ")?;
    let (case, why) = rest.split_once(": ").unwrap_or((rest, ""));
    Some(Skipped {
        case: case.to_owned(),
        possible: why.ends_with(" ranks"),
    })
}

fn job(
    console: &Console,
    program: &Path,
    platform: &str,
    ranks: u16,
    filter: &str,
) -> Result<Part> {
    let mut command = Command::new(program);
    command
        .args(["--platform", platform, "--ranks", &ranks.to_string()])
        .args(["--filter", filter]);
    let part = part(console, command)?;
    out(&format!(
        "linux, {platform}, {ranks} ranks: {}",
        part.count.line()
    ));
    Ok(part)
}

/// Runs a job, prints what failed in it, and counts. A job that ends without its sums, or not as it
/// should, has failed, and what passed in it before has passed.
pub(super) fn part(console: &Console, mut command: Command) -> Result<Part> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut cases = Running::start(&mut command)
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let stdout = cases
        .child
        .stdout
        .take()
        .context("no pipe from the cases")?;
    let (mut sums, mut seen) = (None, Count::default());
    let mut skipped = Vec::new();
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let verdict = verdict_of(&line);
        let mut is_news = false;
        if let Some(read) = sums_of(&line) {
            sums = Some(read);
        } else if let Some(case) = skipped_of(&line) {
            skipped.push(case);
        } else {
            seen.add(verdict.map_or(Count::default(), Count::one));
            is_news = !line.starts_with("ok ");
        }
        if is_news || console.is_verbose() {
            out(&line);
        }
    }
    let well = cases.wait()?.success() && sums.is_some();
    let mut count = sums.unwrap_or(seen);
    count.failed = count.failed.max(usize::from(!well));
    Ok(Part { count, skipped })
}

/// Reads `ok           0.1 ms NAME`: whether a case has passed.
fn verdict_of(line: &str) -> Option<bool> {
    let mut words = line.split_whitespace();
    let passed = match words.next()? {
        "ok" => true,
        "FAILED" => false,
        _ => return None,
    };
    words.next()?.parse::<f64>().ok()?;
    (words.next()? == "ms").then_some(passed)
}

/// Reads `251 passed, 0 failed, 37 skipped`.
fn sums_of(line: &str) -> Option<Count> {
    let mut numbers = ["passed", "failed", "skipped"]
        .into_iter()
        .zip(line.split(", "));
    let mut next = || {
        let (name, part) = numbers.next()?;
        part.strip_suffix(name)?.trim().parse().ok()
    };
    Some(Count {
        passed: next()?,
        failed: next()?,
        skipped: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read() {
        assert_eq!(
            sums_of("251 passed, 1 failed, 37 skipped"),
            Some(Count {
                passed: 251,
                failed: 1,
                skipped: 37
            })
        );
        for line in [
            "",
            "251 passed",
            "ok           0.1 ms a, b, c",
            "1 failed, 1 passed, 1 skipped",
        ] {
            assert_eq!(sums_of(line), None);
        }
    }

    #[test]
    fn a_job_that_crashes_has_failed() {
        let counted = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            let count = part(&Console::new(), command).expect("it runs").count;
            (count.passed, count.failed)
        };
        let sums = "echo 'ok 0.1 ms a'; echo '3 passed, 0 failed, 1 skipped'";
        assert_eq!(counted(sums), (3, 0));
        assert_eq!(counted(&format!("{sums}; exit 1")), (3, 1));
        assert_eq!(counted(&format!("{sums}; kill -SEGV $$")), (3, 1));
        let some = "echo 'ok      over tcp'; echo 'ok 0.1 ms a'; echo 'FAILED 3.0 ms b'";
        assert_eq!(counted("echo 'ok 0.1 ms a'; kill -SEGV $$"), (1, 1));
        assert_eq!(
            counted(&format!("{some}; echo 'ok 0.2 ms c'; exit 1")),
            (2, 1)
        );
        assert_eq!(counted("exit 0"), (0, 1), "no sums");
        assert_eq!(
            counted("echo '1 passed, 2 failed, 0 skipped'; exit 1"),
            (1, 2)
        );
    }

    #[test]
    fn cases_that_no_size_runs_are_found() {
        let job = |lines: &[&str]| -> Vec<Skipped> {
            lines.iter().filter_map(|line| skipped_of(line)).collect()
        };
        let three = "skipped small.fan_in: needs 3 to 3 ranks";
        let atomics = "skipped hal.atomics: needs atomics";
        let many = "skipped link.many: needs 4 to any ranks";
        let two = job(&["ok           0.1 ms a", three, atomics, many]);
        let four = job(&[three, atomics]);
        assert_eq!(never_run(&[two.clone(), four]), ["small.fan_in"]);
        let all = [two, job(&[atomics])];
        assert!(never_run(&all).is_empty());
        assert!(never_run(&[]).is_empty());
    }

    /// What `cargo xtask test` runs leaves no case out, on any platform.
    #[test]
    fn there_is_a_job_of_three() {
        assert!(RANKS.contains(&3), "small.fan_in and others are for three");
    }
}
