//! `flagpost-explore`, built and called: the program that runs the cases on the simulator.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::children::Running;
use crate::console::Console;
use crate::{compiling, paths, tools};

const PACKAGE: &str = "flagpost-explore";

/// The built program.
pub struct Explorer {
    program: PathBuf,
}

impl Explorer {
    /// Builds it with the kernel as it is.
    pub fn plain(console: &Console) -> Result<Self> {
        Self::build(console, "explore", "explore", &[])
    }

    /// The program that `cargo test` builds for its own tests.
    pub fn of_tests(console: &Console) -> Result<Self> {
        let program = compiling::tests_program(console, PACKAGE)?;
        Ok(Self { program })
    }

    /// Builds it with all mutants in the kernel: for a few runs, what is built quickly; for a
    /// search, what runs quickly.
    pub fn mutants(console: &Console, search: bool) -> Result<Self> {
        let profile = if search { "explore" } else { "mutants" };
        Self::build(console, "mutants", profile, &["--cfg", "mutants"])
    }

    /// Flags differ, so there is a target directory for each kind: neither evicts the other, nor
    /// the tests' build.
    fn build(console: &Console, directory: &str, profile: &str, flags: &[&str]) -> Result<Self> {
        let directory = paths::target().join(directory);
        let mut command = Command::new(paths::cargo());
        command
            .args(["build", "--locked", "--package", PACKAGE])
            .args(["--profile", profile, "--target-dir"])
            .arg(&directory)
            .current_dir(paths::root())
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
        compiling::shown(console, PACKAGE, &mut command)?;
        let program = directory.join(profile).join(PACKAGE);
        Ok(Self { program })
    }

    /// The program, to be called: it is told of which code it was built.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(code) = code() {
            command.env("FLAGPOST_CODE", code);
        }
        command
    }

    /// Calls it and hands on each line of its standard output, a JSON object. Tells whether it
    /// ended well.
    ///
    /// # Errors
    /// If it cannot be called, or prints something else.
    pub fn lines(
        &self,
        arguments: impl IntoIterator<Item = String>,
        mut take: impl FnMut(Value) -> Result<()>,
    ) -> Result<bool> {
        let mut command = self.command();
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut running = Running::start(&mut command)
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let stdout = running.child.stdout.take().context("no pipe")?;
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            take(serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?)?;
        }
        Ok(running.wait()?.success())
    }
}

/// The commit that is checked out, with `-dirty` if files differ from it; none outside a
/// repository.
fn code() -> Option<String> {
    let words = "describe --always --dirty --abbrev=12 --exclude=*";
    let mut git = Command::new("git");
    tools::answer(git.args(words.split(' ')).current_dir(paths::root()))
}
