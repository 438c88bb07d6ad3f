//! How long compilers have run for this command: what a test takes is told apart from what it takes
//! to build it.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::console::Console;
use crate::{children, paths};

/// Milliseconds.
static SPENT: AtomicU64 = AtomicU64::new(0);

/// A build that runs: its time counts until this is dropped.
pub(crate) struct Compiling(Instant);

impl Compiling {
    /// The build starts now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        SPENT.fetch_add(self.0.elapsed().as_millis() as u64, Relaxed);
    }
}

/// How long builds have taken since this program was started.
pub(crate) fn spent() -> Duration {
    Duration::from_millis(SPENT.load(Relaxed))
}

/// Compiles a piece of the kernel that nothing else needs, from nothing: minutes of different
/// machines, and of different days, are compared by what this takes.
pub(crate) fn reference(console: &Console) -> Result<Duration> {
    console.step("compiling a piece of the kernel, to know how fast this machine is");
    let directory = paths::target().join("reference");
    match std::fs::remove_dir_all(&directory) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            return Err(why).context("cannot empty the reference's directory");
        }
        _ => (),
    }
    let mut command = Command::new(paths::cargo());
    command
        .args(["build", "--quiet", "--locked", "--package", PIECE])
        .arg("--target-dir")
        .arg(&directory)
        .current_dir(paths::root())
        .stdin(Stdio::null());
    let started = Instant::now();
    if !children::status(&mut command)
        .context("cannot run cargo")?
        .success()
    {
        bail!("{PIECE} does not build");
    }
    Ok(started.elapsed())
}

/// It has no dependencies but the traits of machines and of links.
pub(crate) const PIECE: &str = "flagpost-mapped";

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
