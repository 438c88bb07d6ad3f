//! How long compilers have run for this command: what a test takes is told apart from what it takes
//! to build it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::children::{self, Running};
use crate::console::Console;
use crate::paths;

/// Milliseconds.
static SPENT: AtomicU64 = AtomicU64::new(0);

/// How long builds have taken since this program was started.
pub fn spent() -> Duration {
    Duration::from_millis(SPENT.load(Relaxed))
}

/// Builds `name` in the workspace, by these words of cargo, as [`shown`].
///
/// # Errors
/// If it does not build: the compiler has said why.
pub fn cargo<W: AsRef<OsStr>>(
    console: &Console,
    name: &str,
    words: impl IntoIterator<Item = W>,
) -> Result<()> {
    let mut command = Command::new(paths::cargo());
    command
        .args(words)
        .arg("--locked")
        .current_dir(paths::root());
    shown(console, name, &mut command).map(drop)
}

/// Runs a command of cargo that builds `name`. On a terminal cargo shows how far it is; elsewhere
/// it says no more than warnings and errors. Gives what it has printed on standard output.
///
/// # Errors
/// If it does not build: the compiler has said why.
pub fn shown(console: &Console, name: &str, command: &mut Command) -> Result<String> {
    console.building(name, command);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let started = Instant::now();
    let mut cargo = Running::start(command).context("cannot run cargo")?;
    let printed = children::all(cargo.child.stdout.take())?;
    let well = cargo.wait()?.success();
    SPENT.fetch_add(started.elapsed().as_millis() as u64, Relaxed);
    if !well {
        bail!("cannot build {name}");
    }
    Ok(String::from_utf8(printed)?)
}

/// Builds `program` in the profile of the tests. Gives its path.
///
/// All programs and libraries are built, as `cargo test` builds them: a program alone would be
/// built with libraries of its own, whose code is optimised for programs only.
///
/// # Errors
/// If cargo cannot be run, or does not build it.
pub fn tests_program(console: &Console, program: &str) -> Result<PathBuf> {
    cargo(console, program, ["build"])?;
    Ok(paths::target().join("debug").join(program))
}

/// Compiles a piece of the kernel that nothing else needs, from nothing: minutes of different
/// machines, and of different days, are compared by what this takes.
pub fn reference(console: &Console) -> Result<Duration> {
    let directory = paths::target().join("reference");
    match std::fs::remove_dir_all(&directory) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            return Err(why).context("cannot empty the reference's directory");
        }
        _ => (),
    }
    let started = Instant::now();
    let build = ["build", "--package", PIECE, "--target-dir"];
    let build = build.map(OsStr::new).into_iter();
    cargo(console, PIECE, build.chain([directory.as_os_str()]))?;
    Ok(started.elapsed())
}

/// It has no dependencies but the traits of machines and of links.
pub const PIECE: &str = "flagpost-mapped";
