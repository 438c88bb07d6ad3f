//! How long compilers have run for this command: what a test takes is told apart from what it takes
//! to build it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::console::Console;
use crate::{children, paths};

/// Milliseconds.
static SPENT: AtomicU64 = AtomicU64::new(0);

/// A build that runs: its time counts until this is dropped.
pub struct Compiling(Instant);

impl Compiling {
    /// The build starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        SPENT.fetch_add(self.0.elapsed().as_millis() as u64, Relaxed);
    }
}

/// How long builds have taken since this program was started.
pub fn spent() -> Duration {
    Duration::from_millis(SPENT.load(Relaxed))
}

/// Builds something in the workspace, by these words of cargo. Tells whether it succeeded.
pub fn cargo<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Result<bool> {
    let _time = Compiling::start();
    let mut command = Command::new(paths::cargo());
    command
        .args(words)
        .arg("--locked")
        .current_dir(paths::root())
        .stdin(Stdio::null());
    let status = children::status(&mut command).context("cannot run cargo")?;
    Ok(status.success())
}

/// Builds `program` in the profile of the tests. Gives its path.
///
/// All programs and libraries are built, as `cargo test` builds them: a program alone would be
/// built with libraries of its own, whose code is optimised for programs only.
///
/// # Errors
/// If cargo cannot be run, or does not build it.
pub fn tests_program(console: &Console, program: &str) -> Result<PathBuf> {
    console.step(format!("building {program}"));
    if !cargo(["build", "--quiet"])? {
        bail!("{program} does not build");
    }
    Ok(paths::target().join("debug").join(program))
}

/// Compiles a piece of the kernel that nothing else needs, from nothing: minutes of different
/// machines, and of different days, are compared by what this takes.
pub fn reference(console: &Console) -> Result<Duration> {
    console.step("compiling a piece of the kernel, to know how fast this machine is");
    let directory = paths::target().join("reference");
    match std::fs::remove_dir_all(&directory) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            return Err(why).context("cannot empty the reference's directory");
        }
        _ => (),
    }
    let started = Instant::now();
    let build = ["build", "--quiet", "--package", PIECE, "--target-dir"];
    let build = build.map(OsStr::new).into_iter();
    if !cargo(build.chain([directory.as_os_str()]))? {
        bail!("{PIECE} does not build");
    }
    Ok(started.elapsed())
}

/// It has no dependencies but the traits of machines and of links.
pub const PIECE: &str = "flagpost-mapped";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_build_counts_when_it_has_ended() {
        let before = spent();
        let build = Compiling::start();
        std::thread::sleep(Duration::from_millis(20));
        drop(build);
        assert!(spent() >= before + Duration::from_millis(20));
    }
}
