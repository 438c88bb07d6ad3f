//! `cargo xtask bench`: builds the benchmarks, optimized, and hands everything over to them.
//!
//! They are a program of their own (`bench/`), so that the simulator is not part of xtask: xtask builds quickly, and
//! unoptimized.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::console::Console;
use crate::error::refused;
use crate::paths;

/// Run a benchmark: pscw, pingpong, tree, ops (simulated time), or explore (speed of the simulator)
///
/// `cargo xtask bench pscw --help` tells the rest.
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

/// Runs the command; `false` if the benchmark failed.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    console.step("building flagpost-bench");
    let built = Command::new(paths::cargo())
        .args(["build", "--quiet", "--locked", "--profile", "explore"])
        .args(["--package", "flagpost-bench"])
        .current_dir(paths::root())
        .stdin(Stdio::null())
        .status()
        .context("cannot run cargo build")?;
    if !built.success() {
        bail!("flagpost-bench does not build");
    }
    console.clear();
    let program = paths::target().join("explore/flagpost-bench");
    let status = Command::new(&program)
        .args(&arguments.arguments)
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    match status.code() {
        // It has said what is wrong.
        Some(2) => Err(refused()),
        code => Ok(code == Some(0)),
    }
}
