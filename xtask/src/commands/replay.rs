//! `cargo xtask replay`: a failing run once more.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::console::Console;
use crate::error::usage;
use crate::explorer::Explorer;

/// Repeat the run of a trace that `cargo xtask explore` wrote, to the last step, and print its account
///
/// Exit status: 0 if the run is done now; 1 if it fails, also if it "diverged" because the code has changed
/// since; 2 if FILE is no trace.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The trace
    file: PathBuf,
}

/// Runs the command; `false` if the run fails.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    let file = &arguments.file;
    if !file.is_file() {
        return Err(usage(format!("{}: there is no such file", file.display())));
    }
    let explorer = Explorer::plain(console)?;
    console.clear();
    let status = explorer.command().arg("replay").arg(file).status();
    match status.context("cannot run the explorer")?.code() {
        Some(2) => Err(usage(format!("{}: cannot be replayed", file.display()))),
        code => Ok(code == Some(0)),
    }
}
