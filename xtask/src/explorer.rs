//! `flagpost-explore`, built and called: the program that runs the cases on the simulator.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::console::Console;
use crate::paths;

const PACKAGE: &str = "flagpost-explore";

/// The built program.
pub(crate) struct Explorer {
    program: PathBuf,
}

impl Explorer {
    /// Builds it with the kernel as it is.
    pub(crate) fn plain(console: &Console) -> Result<Self> {
        Self::build(console, "explore", "explore", &[])
    }

    /// Builds it with all mutants in the kernel: for a few runs, what is built quickly; for a search, what runs quickly.
    pub(crate) fn mutants(console: &Console, search: bool) -> Result<Self> {
        let profile = if search { "explore" } else { "mutants" };
        Self::build(console, "mutants", profile, &["--cfg", "mutants"])
    }

    /// Flags differ, so there is a target directory for each kind: neither evicts the other, nor the tests' build.
    fn build(console: &Console, directory: &str, profile: &str, flags: &[&str]) -> Result<Self> {
        let directory = paths::target().join(directory);
        console.step(format!("building {PACKAGE}"));
        let mut child = Command::new(paths::cargo())
            .args([
                "build",
                "--locked",
                "--package",
                PACKAGE,
                "--profile",
                profile,
            ])
            .arg("--target-dir")
            .arg(&directory)
            .current_dir(paths::root())
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run cargo")?;
        let stderr = child.stderr.take().context("no pipe from cargo")?;
        let mut said = String::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            console.step(format!("building {PACKAGE}: {}", line.trim()));
            said += &line;
            said.push('\n');
        }
        if !child.wait()?.success() {
            bail!("cannot build {PACKAGE}:\n{}", said.trim_end());
        }
        let program = directory.join(profile).join(PACKAGE);
        Ok(Self { program })
    }

    /// The program, to be called: it is told of which code it was built.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(code) = code() {
            command.env("FLAGPOST_CODE", code);
        }
        command
    }

    /// Calls it and hands on each line of its standard output, a JSON object. Tells whether it ended well.
    ///
    /// # Errors
    /// If it cannot be called, or prints something else.
    pub(crate) fn lines(
        &self,
        arguments: impl IntoIterator<Item = String>,
        mut take: impl FnMut(Value) -> Result<()>,
    ) -> Result<bool> {
        let child = self
            .command()
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let mut child = Running(child);
        let stdout = child.0.stdout.take().context("no pipe")?;
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            take(serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?)?;
        }
        Ok(child.0.wait()?.success())
    }
}

/// The commit that is checked out, with `-dirty` if files differ from it; none outside a repository.
fn code() -> Option<String> {
    let mut command = Command::new("git");
    command
        .args([
            "describe",
            "--always",
            "--dirty",
            "--abbrev=12",
            "--exclude=*",
        ])
        .current_dir(paths::root());
    let output = command.output().ok().filter(|o| o.status.success())?;
    let code = String::from_utf8(output.stdout).ok()?;
    Some(code.trim().to_owned())
}

/// Ends the program when this value goes, whatever happens.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
