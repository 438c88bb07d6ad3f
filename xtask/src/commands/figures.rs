//! `cargo xtask figures`: builds what draws them, optimized, and hands everything over.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::console::Console;
use crate::error::refused;
use crate::{children, compiling, paths};

/// Draw docs/figures anew, all or some, from the simulator; or compare: --check
///
/// `cargo xtask figures --help` tells the rest.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Names of figures, and other arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

const PROGRAM: &str = "flagpost-figures";
const PROFILE: &str = "explore";

/// Runs the command; `false` if a figure differs.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    console.step(format!("building {PROGRAM}"));
    let words = ["build", "--quiet", "--profile", PROFILE, "--package"];
    if !compiling::cargo(words.into_iter().chain([PROGRAM]))? {
        bail!("{PROGRAM} does not build");
    }
    console.clear();
    let program = paths::target().join(PROFILE).join(PROGRAM);
    let status = children::status(Command::new(&program).args(&arguments.arguments))
        .with_context(|| format!("cannot run {}", program.display()))?;
    match status.code() {
        // It has said what is wrong.
        Some(2) => Err(refused()),
        code => Ok(code == Some(0)),
    }
}
