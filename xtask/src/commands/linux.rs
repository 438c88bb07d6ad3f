//! `cargo xtask linux`: the conformance cases on Linux, a process per rank. A part of
//! `cargo xtask test`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
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
            let mut command = Command::new(&program);
            command.args(["--platform", platform, "--ranks", &ranks.to_string()]);
            command.args(["--filter", filter]);
            let name = format!("linux, {platform}, {ranks} ranks");
            let again = format!("cargo xtask linux --platform {platform} --ranks {ranks}");
            let part = job(console, &name, &again, command)?;
            count.add(part.count);
            skipped.push(part.skipped);
        }
        // Someone who asks for one size knows what is left out.
        if ranks != RANKS {
            continue;
        }
        for case in never_run(skipped) {
            console.error(&format!(
                "case {case} is possible on {platform} and was run at none of {ranks:?} ranks"
            ));
            count.add(Count::one(false));
        }
    }
    console.clear();
    Ok(count)
}

/// What a job has shown: sums, and the cases that it has left out because of its ranks.
pub(super) struct Part {
    pub(super) count: Count,
    skipped: BTreeSet<String>,
}

/// The cases that each of these jobs of one platform has left out because of its ranks.
fn never_run(jobs: Vec<BTreeSet<String>>) -> BTreeSet<String> {
    let jobs = jobs.into_iter();
    jobs.reduce(|all, job| &all & &job).unwrap_or_default()
}

/// Reads `skipped small.fan_in: needs 3 to 3 ranks`. Other reasons hold for any number of ranks.
fn skipped_of(line: &str) -> Option<&str> {
    let (case, why) = line.strip_prefix("skipped ")?.split_once(": ")?;
    why.ends_with(" ranks").then_some(case)
}

/// Runs a job, prints what failed in it, and its sums; `again` is the command that repeats it. A
/// job that ends without its sums, or not as it should, has failed, and what passed in it before
/// has passed.
pub(super) fn job(
    console: &Console,
    name: &str,
    again: &str,
    mut command: Command,
) -> Result<Part> {
    console.step(name);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut cases = Running::start(&mut command)
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let stdout = cases
        .child
        .stdout
        .take()
        .context("no pipe from the cases")?;
    let (mut sums, mut seen) = (None, Count::default());
    let mut skipped = BTreeSet::new();
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let verdict = verdict_of(&line);
        let mut is_news = false;
        if let Some(read) = sums_of(&line) {
            sums = Some(read);
        } else if line.starts_with("skipped ") {
            skipped.extend(skipped_of(&line).map(str::to_owned));
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
    console.clear();
    out(&format!("{name}: {}", count.line()));
    if count.failed > 0 {
        console.failure(again);
    }
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
    fn cases_that_no_size_runs_are_found() {
        let job = |lines: &[&str]| {
            lines
                .iter()
                .filter_map(|line| skipped_of(line))
                .map(str::to_owned)
                .collect()
        };
        let three = "skipped small.fan_in: needs 3 to 3 ranks";
        let atomics = "skipped hal.atomics: needs atomics";
        let many = "skipped link.many: needs 4 to any ranks";
        let two: BTreeSet<_> = job(&["ok           0.1 ms a", three, atomics, many]);
        let never = never_run(vec![two.clone(), job(&[three, atomics])]);
        assert_eq!(never, ["small.fan_in".to_owned()].into());
        assert!(never_run(vec![two, job(&[atomics])]).is_empty());
    }
}
