//! Which Rust builds the image.
//!
//! Three ways, in this order:
//!
//! 1. rustup's `riscv64gc-unknown-none-elf`, if the active toolchain has it;
//! 2. the same after `rustup target add`. Tried once: where the network is closed the failure is
//!    remembered in `target/qemu/`, so that later runs do not wait for it again;
//! 3. Debian's own rustc and cargo with the sources of `core`, which are built along
//!    (`-Zbuild-std=core`). That needs nothing but a Debian mirror, by apt. Its linker is rustup's
//!    `rust-lld`, or else apt's `lld`.
//!
//! `FLAGPOST_TOOLCHAIN=rustup` or `=debian` leaves out the other ways. `rust-toolchain.toml` does
//! not list the target on purpose: rustup would then try to download it on every cargo call.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::console::Console;
use crate::error::usage;
use crate::{paths, tools};

/// The target of every image.
pub(crate) const TARGET: &str = "riscv64gc-unknown-none-elf";
/// The Debian packages of way 3.
pub(crate) const DEBIAN: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
const DEBIAN_CARGO: &str = "/usr/bin/cargo";

/// A cargo that can build the image, with what it needs to be told.
pub(crate) struct Toolchain {
    /// One line for people.
    pub(crate) what: String,
    cargo: OsString,
    arguments: Vec<String>,
    pub(crate) flags: Vec<String>,
    debian: bool,
}

impl Toolchain {
    /// `cargo build` for the board's target, before any package is named.
    pub(crate) fn build(&self, profile: &str) -> Command {
        self.build_for(TARGET, profile)
    }

    /// The same for another target. Only [`from_source`] has what it takes for one that is a file.
    pub(crate) fn build_for(&self, target: &str, profile: &str) -> Command {
        let mut command = Command::new(&self.cargo);
        command
            .args(["build", "--profile", profile, "--target", target])
            .args(&self.arguments);
        if self.debian {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let dirs = [PathBuf::from("/usr/bin")]
                .into_iter()
                .chain(std::env::split_paths(&path));
            if let Ok(path) = std::env::join_paths(dirs) {
                command.env("PATH", path);
            }
            // `cargo run` points the last two at rustup's toolchain.
            command
                .env("RUSTC", DEBIAN_RUSTC)
                .env("RUSTC_BOOTSTRAP", "1");
            command
                .env_remove("RUSTUP_TOOLCHAIN")
                .env_remove("LD_LIBRARY_PATH");
        }
        command
    }
}

/// What of the three ways is here. Looking changes nothing.
pub(crate) struct Survey {
    /// `rustc --version` of the active toolchain.
    pub(crate) rustc: Option<String>,
    /// The active toolchain has the target.
    pub(crate) target: bool,
    pub(crate) rustup: Option<PathBuf>,
    /// `/usr/bin/rustc --version`, if there is a cargo beside it and both are new enough.
    pub(crate) debian: Option<String>,
    /// The sources of Debian's `core` are here.
    pub(crate) debian_src: bool,
    pub(crate) lld: Option<PathBuf>,
    /// Where the active toolchain is.
    sysroot: Option<PathBuf>,
    /// Where a failed `rustup target add` is remembered for this toolchain.
    memo: PathBuf,
}

impl Survey {
    pub(crate) fn new() -> Self {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let ask = |program: &OsString, what: &[&str]| {
            tools::answer(Command::new(program).args(what).current_dir(paths::root()))
        };
        let sysroot = ask(&rustc, &["--print", "sysroot"]).map(PathBuf::from);
        let host = ask(&rustc, &["-vV"]).and_then(|text| host(&text));
        let debian_rustc = OsString::from(DEBIAN_RUSTC);
        let debian = ask(&debian_rustc, &["--version"])
            .filter(|version| recent(version) && tools::executable(Path::new(DEBIAN_CARGO)));
        let sources = ask(&debian_rustc, &["--print", "sysroot"]).is_some_and(|root| {
            Path::new(&root)
                .join("lib/rustlib/src/rust/library/core/src/lib.rs")
                .exists()
        });
        let name = sysroot
            .as_ref()
            .and_then(|root| root.file_name())
            .unwrap_or_default();
        let memo = format!("rustup-target-add-failed-{}", name.display());
        Self {
            rustc: ask(&rustc, &["--version"]),
            target: sysroot
                .as_ref()
                .is_some_and(|root| has_target(root, TARGET)),
            rustup: tools::find("rustup"),
            debian,
            debian_src: sources,
            lld: linker(sysroot.as_deref(), host.as_deref()),
            memo: paths::images().join(memo),
            sysroot,
        }
    }

    /// The active toolchain has `target`.
    fn has(&self, target: &str) -> bool {
        let sysroot = self.sysroot.as_ref();
        sysroot.is_some_and(|root| has_target(root, target))
    }

    /// Way 3 works as things are.
    pub(crate) fn debian_ready(&self) -> bool {
        self.debian.is_some() && self.debian_src && self.lld.is_some()
    }

    /// `rustup target add` may be tried.
    pub(crate) fn rustup_may_add(&self) -> bool {
        self.rustup.is_some() && tools::may_install() && !self.memo.exists()
    }

    fn debian_packages(&self) -> Vec<&'static str> {
        let mut packages = DEBIAN.to_vec();
        if self.lld.is_none() {
            packages.push("lld");
        }
        packages
    }
}

/// Finds a toolchain for images, or brings one.
///
/// # Errors
/// [`usage`] with the commands to type if there is none and none can be installed from here.
pub(crate) fn choose(console: &Console) -> Result<Toolchain> {
    let only = std::env::var("FLAGPOST_TOOLCHAIN").unwrap_or_default();
    if !["", "rustup", "debian"].contains(&only.as_str()) {
        return Err(usage(format!(
            "FLAGPOST_TOOLCHAIN={only}: say rustup or debian, or unset it"
        )));
    }
    let survey = Survey::new();
    if only != "debian" && survey.rustc.is_some() {
        if survey.target {
            return Ok(rustup(&survey, "installed"));
        }
        if survey.rustup_may_add() && add_target(console, &survey, TARGET, &survey.memo) {
            return Ok(rustup(&survey, "added just now"));
        }
    }
    if only != "rustup" {
        return from_source(console);
    }
    Err(usage(format!(
        "no Rust toolchain for {TARGET}; {}",
        by_hand()
    )))
}

/// Way 3: a toolchain that builds `core` along, for whatever target.
///
/// # Errors
/// [`usage`] with the commands to type if there is none and none can be installed from here.
pub(crate) fn from_source(console: &Console) -> Result<Toolchain> {
    let survey = Survey::new();
    if survey.debian_ready() {
        return Ok(debian(&survey, "installed"));
    }
    if tools::apt().is_some() {
        tools::apt_install(console, &survey.debian_packages()).map_err(|why| {
            let why = tools::first_line(&why);
            usage(format!(
                "no Rust that builds core, and apt brought none: {why}; {}",
                by_hand()
            ))
        })?;
        let survey = Survey::new();
        if survey.debian_ready() {
            return Ok(debian(&survey, "installed just now"));
        }
    }
    Err(usage(format!("no Rust that builds core; {}", by_hand())))
}

/// The commands a person can type to get a toolchain.
fn by_hand() -> String {
    let packages = [&DEBIAN[..], &["lld"]].concat();
    format!(
        "type: rustup target add {TARGET} (or on Debian: {})",
        tools::apt_line(&packages)
    )
}

fn rustup(survey: &Survey, how: &str) -> Toolchain {
    let version = survey.rustc.as_deref().unwrap_or("rustc");
    Toolchain {
        what: format!(
            "image toolchain: {} with rustup's {TARGET} ({how})",
            short(version)
        ),
        cargo: paths::cargo(),
        arguments: Vec::new(),
        flags: Vec::new(),
        debian: false,
    }
}

fn debian(survey: &Survey, how: &str) -> Toolchain {
    let version = survey.debian.as_deref().unwrap_or("rustc");
    let mut flags = Vec::new();
    if let Some(lld) = &survey.lld {
        flags.push(format!("-Clinker={}", lld.display()));
        if lld.ends_with("ld.lld") {
            flags.push("-Clinker-flavor=ld.lld".to_owned());
        }
    }
    Toolchain {
        what: format!(
            "image toolchain: Debian's {}, building core from source ({how})",
            short(version)
        ),
        cargo: DEBIAN_CARGO.into(),
        arguments: vec!["-Zbuild-std=core".to_owned()],
        flags,
        debian: true,
    }
}

/// Whether the active toolchain has `target`, for a check that needs no image; it is added if it
/// can be. Debian's own has none.
pub(crate) fn has(console: &Console, target: &str) -> bool {
    let only = std::env::var("FLAGPOST_TOOLCHAIN").unwrap_or_default();
    let survey = Survey::new();
    if survey.has(target) {
        return true;
    }
    let memo = PathBuf::from(format!("{}-{target}", survey.memo.display()));
    let may_add = only != "debian" && survey.rustc.is_some() && survey.rustup.is_some();
    may_add && tools::may_install() && !memo.exists() && add_target(console, &survey, target, &memo)
}

/// Tries `rustup target add` once; a failure is remembered in `memo` and told to the user.
fn add_target(console: &Console, survey: &Survey, target: &str, memo: &Path) -> bool {
    console.step(format!("rustup target add {target}"));
    // Without an alternative a slow network deserves patience.
    let limit = Duration::from_secs(if survey.debian_ready() { 40 } else { 240 });
    let mut command = Command::new("rustup");
    command
        .args(["target", "add", target])
        .current_dir(paths::root());
    match tools::logged(&mut command, "rustup-target-add", limit) {
        Ok(()) => Survey::new().has(target),
        Err(why) => {
            let _ = fs::write(memo, format!("{why:#}\n"));
            console.hold(format!(
                "rustup target add {target} failed and is not tried again (see {})",
                memo.display()
            ));
            false
        }
    }
}

/// Does this sysroot hold `core` for the target? Its directory alone may be left over.
fn has_target(sysroot: &Path, target: &str) -> bool {
    let dir = sysroot.join("lib/rustlib").join(target).join("lib");
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.map(|file| file.file_name()).any(|name| {
        let name = name.to_string_lossy();
        name.starts_with("libcore-") && name.ends_with(".rlib")
    })
}

fn linker(sysroot: Option<&Path>, host: Option<&str>) -> Option<PathBuf> {
    let inside = sysroot
        .zip(host)
        .map(|(root, host)| root.join("lib/rustlib").join(host).join("bin/rust-lld"));
    inside
        .filter(|file| tools::executable(file))
        .or_else(|| tools::find("rust-lld"))
        .or_else(|| tools::find("ld.lld"))
}

/// The host triple in the output of `rustc -vV`.
fn host(text: &str) -> Option<String> {
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
}

/// `rustc 1.96.0` of `rustc 1.96.0 (hash date) (from Debian)`.
fn short(version: &str) -> String {
    version
        .split_whitespace()
        .take(2)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Is this rustc as new as the workspace demands?
fn recent(version: &str) -> bool {
    let numbers = |text: &str| -> Option<(u32, u32)> {
        let mut parts = text.split(['.', '-']);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    let found = version.split_whitespace().nth(1).and_then(numbers);
    found.is_some() && found >= numbers(env!("CARGO_PKG_RUST_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_compilers_do_not_count() {
        assert!(recent(
            "rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)"
        ));
        assert!(recent("rustc 2.0.0-nightly (abc 2030-01-01)"));
        assert!(!recent("rustc 1.63.0"));
        assert!(!recent("rustc"));
        assert!(!recent(""));
    }

    #[test]
    fn host_and_version_are_read() {
        let text =
            "rustc 1.95.0 (5980 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n";
        assert_eq!(host(text).as_deref(), Some("x86_64-unknown-linux-gnu"));
        assert_eq!(short(text.lines().next().unwrap()), "rustc 1.95.0");
    }
}
