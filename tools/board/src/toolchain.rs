//! What images need of the Rust toolchain, which is rustup's active one: the `core` of the board's
//! target, and for targets that are files the sources of `core`, which are built along.
//!
//! What is missing is added by rustup. Tried once: where the network is closed the failure is
//! remembered in `target/qemu/`, so that later runs do not wait for it again. No file
//! `rust-toolchain.toml` lists these parts, on purpose: rustup would then try to download them on
//! every cargo call.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::console::Console;
use crate::error::usage;
use crate::{paths, tools};

/// What rustup can add to a toolchain.
#[derive(Copy, Clone)]
pub enum Part {
    Target(&'static str),
    /// The sources of `core`.
    Sources,
}

impl Part {
    /// The board's target.
    pub const BOARD: Self = Self::Target("riscv64gc-unknown-none-elf");

    pub const fn name(self) -> &'static str {
        match self {
            Self::Target(name) => name,
            Self::Sources => "rust-src",
        }
    }

    fn words(self) -> [&'static str; 3] {
        match self {
            Self::Target(name) => ["target", "add", name],
            Self::Sources => ["component", "add", self.name()],
        }
    }

    /// The command that a person types.
    pub fn line(self) -> String {
        format!("rustup {}", self.words().join(" "))
    }

    /// Whether this sysroot has it. A target's directory alone may be left over.
    fn is_in(self, sysroot: &Path) -> bool {
        let library = sysroot.join("lib/rustlib");
        let Self::Target(name) = self else {
            return library.join("src/rust/library/core/src/lib.rs").exists();
        };
        let files = fs::read_dir(library.join(name).join("lib"));
        let files = files.into_iter().flatten().flatten();
        files.map(|file| file.file_name()).any(|file| {
            let file = file.to_string_lossy();
            file.starts_with("libcore-") && file.ends_with(".rlib")
        })
    }
}

/// The active toolchain.
pub struct Survey {
    /// `rustc --version`.
    pub rustc: Option<String>,
    /// Where it is.
    sysroot: Option<PathBuf>,
}

impl Survey {
    /// Changes nothing.
    pub fn look() -> Self {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let ask = |what: &[&str]| {
            tools::answer(Command::new(&rustc).args(what).current_dir(paths::root()))
        };
        Self {
            rustc: ask(&["--version"]),
            sysroot: ask(&["--print", "sysroot"]).map(PathBuf::from),
        }
    }

    pub fn has(&self, part: Part) -> bool {
        { self.sysroot.as_ref() }.is_some_and(|root| part.is_in(root))
    }

    /// rustup may be asked to add it.
    pub fn may_add(&self, part: Part) -> bool {
        let rustup = tools::find("rustup").is_some() && tools::may_install();
        rustup && self.rustc.is_some() && !self.memo(part).exists()
    }

    /// Where a failure to add it is remembered.
    fn memo(&self, part: Part) -> PathBuf {
        let root = self.sysroot.as_ref().and_then(|root| root.file_name());
        let toolchain = root.unwrap_or_default().display();
        paths::images().join(format!("rustup-failed-{toolchain}-{}", part.name()))
    }
}

/// Whether the active toolchain has a part, which is added if it can be.
pub fn has(console: &Console, part: Part) -> bool {
    let survey = Survey::look();
    survey.has(part) || survey.may_add(part) && add(console, part, &survey.memo(part))
}

/// [`has`], for what cannot do without.
///
/// # Errors
/// [`usage`] with the command to type.
pub fn need(console: &Console, part: Part) -> Result<()> {
    if has(console, part) {
        return Ok(());
    }
    Err(usage(format!(
        "the Rust toolchain has no {}; type: {}",
        part.name(),
        part.line()
    )))
}

/// `cargo build` for a target, before any package is named. One that is a file is built with the
/// sources of `core`, by options that a stable toolchain has only when it is told so.
pub fn build(target: &str, profile: &str) -> Command {
    let mut command = Command::new(paths::cargo());
    command.args(["build", "--locked", "--profile", profile]);
    command.args(["--target", target]);
    if target.ends_with(".json") {
        command
            .args(["-Zbuild-std=core", "-Zjson-target-spec"])
            .env("RUSTC_BOOTSTRAP", "1");
    }
    command
}

/// Tries once; a failure is remembered in `memo` and told to the user.
fn add(console: &Console, part: Part, memo: &Path) -> bool {
    let line = part.line();
    console.step(line.clone());
    let mut command = Command::new("rustup");
    command.args(part.words()).current_dir(paths::root());
    // There is no other way: a slow network deserves patience.
    match tools::logged(&mut command, "rustup", Duration::from_secs(240)) {
        Ok(()) => Survey::look().has(part),
        Err(why) => {
            let _ = fs::write(memo, format!("{why:#}\n"));
            let memo = memo.display();
            console.hold(format!("{line} failed and is not tried again (see {memo})"));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_there_with_its_core_and_not_with_an_empty_directory() {
        let root = std::env::temp_dir().join(format!("flagpost-sysroot-{}", std::process::id()));
        let target = root
            .join("lib/rustlib")
            .join(Part::BOARD.name())
            .join("lib");
        let sources = root.join("lib/rustlib/src/rust/library/core/src");
        for (part, directory, file) in [
            (Part::BOARD, &target, "libcore-1f.rlib"),
            (Part::Sources, &sources, "lib.rs"),
        ] {
            assert!(!part.is_in(&root));
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join("libcore-1f.rmeta"), "").unwrap();
            assert!(!part.is_in(&root));
            fs::write(directory.join(file), "").unwrap();
            assert!(part.is_in(&root));
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
