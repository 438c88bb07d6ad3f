//! The C program of bare libfabric, as this rank's child.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use flagpost::Link;

use crate::figures::Figure;

/// The child. It ends when this value is dropped, as its standard input does.
#[derive(Debug)]
pub(crate) struct Raw {
    child: Child,
    into: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    card: String,
}

impl Raw {
    pub(crate) fn start(program: &Path, provider: &str) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .arg(provider)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let into = child.stdin.take();
        let from = child.stdout.take().context("a pipe is missing")?;
        let mut raw = Self {
            child,
            into,
            from: BufReader::new(from),
            card: String::new(),
        };
        raw.card = raw.answer()?;
        Ok(raw)
    }

    /// What the peer's child needs to know of this one.
    pub(crate) fn card(&self) -> &str {
        &self.card
    }

    /// Tells the child its rank and its peer.
    pub(crate) fn connect(&mut self, rank: usize, peer: &str) -> Result<()> {
        self.ask(&format!("{rank} {peer}"))
    }

    /// Measures `rounds` rounds of what `figure` stands beside. The peer's child does, too.
    pub(crate) fn run<L: Link>(&mut self, figure: &Figure<L>, rounds: u64) -> Result<Duration> {
        let Figure { kind, bytes, .. } = figure;
        self.ask(&format!(
            "{} {bytes} {rounds} {}",
            kind.raw(),
            figure.window
        ))?;
        let nanoseconds = self.answer()?.parse()?;
        Ok(Duration::from_nanos(nanoseconds))
    }

    fn ask(&mut self, line: &str) -> Result<()> {
        let mut into = self.into.as_ref().context("a pipe is missing")?;
        writeln!(into, "{line}").context("the raw program has ended")
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        let line = line
            .strip_suffix('\n')
            .context("the raw program has ended")?;
        Ok(line.to_owned())
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.into = None;
        // Its error, if it had one, was seen when it did not answer.
        let _ = self.child.wait();
    }
}
