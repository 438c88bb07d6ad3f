//! Commands that build programs, optimized, and hand everything over: `app`, `bench`, `figures` and
//! `replay`.
//!
//! The programs are not part of xtask, and neither is the simulator, so that xtask builds quickly.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use super::{bench_compare, bench_fabric};
use crate::console::Console;
use crate::count::Count;
use crate::error::refused;
use crate::explorer::Explorer;
use crate::{children, compiling, image, paths, tools};

// What the program gets: all that follows, as it stands. The commands have the documentation.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Words {
    /// The program's arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    words: Vec<OsString>,
}

/// A program: of which words it takes the first (any, if empty), the profile that it is built with,
/// the packages to build, and what of them. The first of these runs, and finds the others beside
/// itself.
type Program = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const OPTIMIZED: &str = "explore";
const HOST: &[&str] = &["flagpost-bench-host"];

const APP: Program = (
    "",
    OPTIMIZED,
    &["flagpost-bench-apps", "flagpost-linux"],
    &["flagpost-app", "flagpost-run", "examples/app"],
);
const FIGURES: Program = ("", OPTIMIZED, &["flagpost-figures"], &["flagpost-figures"]);
/// Those of this machine do not need the simulator, and are built as users build theirs.
const BENCH: [Program; 4] = [
    ("host", image::PROFILE, HOST, HOST),
    ("instructions", image::PROFILE, HOST, HOST),
    ("stack", image::PROFILE, HOST, &["flagpost-bench-stack"]),
    ("", OPTIMIZED, &["flagpost-bench"], &["flagpost-bench"]),
];

/// `cargo xtask app`; `false` if a program failed.
pub(crate) fn app(console: &Console, arguments: &Words) -> Result<bool> {
    hand_over(console, APP, &arguments.words)
}

/// `cargo xtask figures`; `false` if a figure differs.
pub(crate) fn figures(console: &Console, arguments: &Words) -> Result<bool> {
    hand_over(console, FIGURES, &arguments.words)
}

/// `cargo xtask replay`; `false` if the run fails.
pub(crate) fn replay(console: &Console, arguments: &Words) -> Result<bool> {
    let mut command = Explorer::plain(console)?.command();
    console.clear();
    ended(command.arg("replay").args(&arguments.words))
}

/// `cargo xtask bench`; `false` if the benchmark failed.
pub(crate) fn bench(console: &Console, arguments: &Words) -> Result<bool> {
    let words = &arguments.words;
    if let Some(within) = bench_compare::run(console, words)? {
        return Ok(within);
    }
    let first = words.first().and_then(|first| first.to_str());
    if first == Some("fabric") {
        return bench_fabric::run(console, words);
    }
    let mut programs = BENCH.into_iter();
    let program = programs.find(|(word, ..)| word.is_empty() || first == Some(word));
    hand_over(console, program.context("no program")?, words)
}

/// Instructions per call, each within its limit: for `cargo xtask ci`.
pub(crate) fn instructions(console: &Console) -> Result<Count> {
    tools::valgrind(console)?;
    let words = vec!["instructions".into()];
    bench(console, &Words { words }).map(Count::one)
}

/// All tables of the documents, each compared with what its command prints.
pub(crate) fn results(console: &Console) -> Result<Count> {
    let words = vec!["results".into(), "--all".into()];
    bench(console, &Words { words }).map(Count::one)
}

fn hand_over(console: &Console, program: Program, words: &[OsString]) -> Result<bool> {
    let (_, profile, packages, programs) = program;
    let mut build = vec!["build", "--profile", profile];
    build.extend(packages.iter().flat_map(|name| ["--package", name]));
    for name in programs {
        build.extend(match name.strip_prefix("examples/") {
            Some(example) => ["--example", example],
            None => ["--bin", name],
        });
    }
    compiling::cargo(console, programs[0], build)?;
    console.clear();
    ended(Command::new(paths::target().join(profile).join(programs[0])).args(words))
}

/// Runs the program; `false` if it failed.
pub(super) fn ended(command: &mut Command) -> Result<bool> {
    let status = children::status(command)
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    match status.code() {
        // It has said what is wrong.
        Some(2) => Err(refused()),
        code => Ok(code == Some(0)),
    }
}
