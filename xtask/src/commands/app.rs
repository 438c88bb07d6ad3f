//! `cargo xtask app`: builds the programs of `examples/apps` with what runs them, optimized, and
//! hands everything over.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::console::Console;
use crate::error::refused;
use crate::{children, compiling, image, paths};

/// Run a program of the sources, such as stencil or cholesky, or all: on the simulator, on this
/// machine, or over libfabric
///
/// `cargo xtask app --help` tells the rest.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

/// The program that runs them; it finds the others beside itself.
const APP: &str = "flagpost-app";

/// Runs the command; `false` if a program failed.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    console.step("building the programs");
    let profile = ["--profile", image::PROFILE];
    let packages = ["flagpost-bench-apps", "flagpost-linux"].map(|name| ["--package", name]);
    let programs = [APP, "flagpost-app-rank", "flagpost-run"].map(|name| ["--bin", name]);
    let words = [profile].into_iter().chain(packages).chain(programs);
    let words = ["build", "--quiet"].into_iter().chain(words.flatten());
    if !compiling::cargo(words)? {
        bail!("{APP} does not build");
    }
    console.clear();
    let program = paths::target().join(image::PROFILE).join(APP);
    let status = children::status(Command::new(&program).args(&arguments.arguments))
        .with_context(|| format!("cannot run {}", program.display()))?;
    match status.code() {
        // It has said what is wrong.
        Some(2) => Err(refused()),
        code => Ok(code == Some(0)),
    }
}
