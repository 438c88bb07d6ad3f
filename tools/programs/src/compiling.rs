//! How long compilers have run for this command: what a test takes is told apart from what it takes
//! to build it.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::children::Running;
use crate::console::Console;
use crate::paths;

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

/// Builds `name` in the workspace, by these words of cargo, as [`shown`].
///
/// # Errors
/// With everything the compiler said, if it failed.
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

/// Runs a command of cargo that builds `name`, and shows each line that it says. Gives what it has
/// printed on standard output. Warnings stay.
///
/// # Errors
/// With everything the compiler said, if it failed.
pub fn shown(console: &Console, name: &str, command: &mut Command) -> Result<String> {
    console.step(format!("building {name}"));
    let _time = Compiling::start();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut cargo = Running::start(command).context("cannot run cargo")?;
    let mut stdout = cargo.child.stdout.take().context("no pipe from cargo")?;
    let stderr = cargo.child.stderr.take().context("no pipe from cargo")?;
    let printed = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let mut said = String::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if is_status(&line) {
            console.step(format!("building {name}: {}", line.trim()));
        } else {
            said += &line;
            said.push('\n');
        }
    }
    let printed = printed.join().ok().and_then(Result::ok).unwrap_or_default();
    if !cargo.wait()?.success() {
        bail!("cannot build {name}:\n{}", said.trim_end());
    }
    if !said.is_empty() {
        console.say(said.trim_end());
    }
    Ok(printed)
}

/// Whether cargo says what it does: a word that ends in column 12.
fn is_status(line: &str) -> bool {
    let word = line
        .split_at_checked(12)
        .filter(|(_, rest)| rest.starts_with(' '));
    word.is_some_and(|(word, _)| {
        let word = word.trim_start();
        word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphabetic)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_does_is_told_apart_from_what_the_compiler_finds() {
        for status in [
            "   Compiling flagpost v0.1.0 (/r)",
            "    Finished `dev`",
            "  Downloaded a",
        ] {
            assert!(is_status(status), "{status}");
        }
        for line in [
            "",
            "warning: unused",
            "  --> kernel/src/lib.rs:1:1",
            "   |",
            "3  | use a;",
        ] {
            assert!(!is_status(line), "{line}");
        }
    }
}
