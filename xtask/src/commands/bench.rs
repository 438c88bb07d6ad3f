//! `cargo xtask bench`: builds the benchmarks, optimized, and hands everything over to them.
//!
//! They are programs of their own (`bench/`, `bench/host/`), so that the simulator is not part of
//! xtask: xtask builds quickly, and unoptimized.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use super::{bench_compare, bench_fabric};
use crate::console::Console;
use crate::count::Count;
use crate::error::refused;
use crate::{children, compiling, image, paths, tools};

/// Run a benchmark: pscw, pingpong, tree, micro, model, ops (simulated time), host, instructions,
/// stack (this machine), fabric (a real network, beside bare libfabric), explore (speed of the
/// simulator); or compare the documented tables with what benchmarks print: results
///
/// `cargo xtask bench pscw --help` tells the rest. With any of them, `--compare FILE` prints the
/// ratios to a saved run (what the command printed with `--json`), and fails if a number is more
/// than `--bound` times as slow [default: 1.1].
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// The benchmark and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

/// Benchmarks of this machine: a program of their own, which does not need the simulator and is
/// built as users build theirs.
const OF_HOST: [&str; 3] = ["host", "instructions", STACK];
/// That benchmark is a program of its own, in the same package.
const STACK: &str = "stack";
/// Two programs, in a package of their own.
const FABRIC: &str = "fabric";

/// Instructions per call, each within its limit: for `cargo xtask ci`.
pub(crate) fn instructions(console: &Console) -> Result<Count> {
    tools::valgrind(console)?;
    let arguments = vec!["instructions".into()];
    Ok(Count::one(run(console, &Arguments { arguments })?))
}

/// All tables of the documents, each compared with what its command prints.
pub(crate) fn results(console: &Console) -> Result<Count> {
    let arguments = vec!["results".into(), "--all".into()];
    Ok(Count::one(run(console, &Arguments { arguments })?))
}

/// Runs the command; `false` if the benchmark failed.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    let words = arguments.arguments.iter();
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let Some(within) = bench_compare::run(console, &words)? {
        return Ok(within);
    }
    if arguments
        .arguments
        .first()
        .is_some_and(|first| first == FABRIC)
    {
        return bench_fabric::run(console, &arguments.arguments);
    }
    let of_host = arguments
        .arguments
        .first()
        .is_some_and(|first| OF_HOST.iter().any(|name| first == name));
    let (package, profile) = match of_host {
        true => ("flagpost-bench-host", image::PROFILE),
        false => ("flagpost-bench", "explore"),
    };
    let program = match arguments.arguments.first() {
        Some(first) if first == STACK => "flagpost-bench-stack",
        _ => package,
    };
    hand_over(
        console,
        profile,
        &[package],
        &[program],
        &arguments.arguments,
    )
}

/// Builds programs, and runs the first of them; `false` if it failed. It finds the others beside
/// itself.
pub(super) fn hand_over(
    console: &Console,
    profile: &str,
    packages: &[&str],
    programs: &[&str],
    arguments: &[OsString],
) -> Result<bool> {
    let program = programs.first().context("no program")?;
    let packages = packages.iter().map(|name| ["--package", name]);
    let programs = { programs.iter() }.map(|name| match name.strip_prefix("examples/") {
        Some(example) => ["--example", example],
        None => ["--bin", name],
    });
    let all = packages.chain(programs);
    let words = ["build", "--profile", profile].into_iter();
    compiling::cargo(console, program, words.chain(all.flatten()))?;
    console.clear();
    let program = paths::target().join(profile).join(program);
    let status = children::status(Command::new(&program).args(arguments))
        .with_context(|| format!("cannot run {}", program.display()))?;
    match status.code() {
        // It has said what is wrong.
        Some(2) => Err(refused()),
        code => Ok(code == Some(0)),
    }
}
