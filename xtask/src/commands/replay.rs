//! `cargo xtask replay`: a failing run once more.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result};
use clap::Args;

use crate::children::Running;
use crate::console::Console;
use crate::error::usage;
use crate::explorer::Explorer;

/// Repeat the run of a trace that `cargo xtask explore` wrote, to the last step, and print its
/// account
///
/// Exit status: 0 if the run is done now; 1 if it fails, also if it "diverged" because the code has
/// changed since; 2 if FILE is no trace.
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
    let mut command = explorer.command();
    command.arg("replay").arg(file).stderr(Stdio::piped());
    let mut running = Running::start(&mut command).context("cannot run the explorer")?;
    let mut said = Vec::new();
    let stderr = running.child.stderr.as_mut().context("no pipe")?;
    stderr.read_to_end(&mut said)?;
    let said = String::from_utf8_lossy(&said);
    match running.wait()?.code() {
        Some(2) => Err(usage(said.trim())),
        code => {
            if !said.is_empty() {
                console.say(said.trim_end());
            }
            Ok(code == Some(0))
        }
    }
}
