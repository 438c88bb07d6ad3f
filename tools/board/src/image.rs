//! Builds an image and opens it.
//!
//! The image is built with frame pointers, so that the stack of a hung core can be walked, and
//! with `DEFMT_LOG=info` unless the caller sets another level. All else the image needs, such as
//! its linker script, its own package says.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use defmt_decoder::Table;
use serde_json::Value;

use crate::board::{Bin, Board};
use crate::console::Console;
use crate::toolchain;
use crate::{compiling, paths};

/// How what is measured is built: the whole program as one unit.
pub const PROFILE: &str = "image";

/// How the image of all cases is built, unless it is measured.
pub const CASES: &str = "cases";

/// A built image.
pub struct Image {
    pub board: Board,
    pub elf: PathBuf,
    /// The program that starts it, where it does not start itself.
    pub monitor: Option<PathBuf>,
    /// What decodes its log, if that is not plain text.
    pub table: Option<Table>,
}

impl Image {
    /// Reads the log strings of an ELF file, for [`Board::Virt`].
    pub fn open(elf: &Path) -> Result<Self> {
        let name = elf.display();
        let bytes = std::fs::read(elf).with_context(|| format!("cannot read {name}"))?;
        let table = Table::parse(&bytes);
        let table = table.with_context(|| format!("cannot read the log strings of {name}"))?;
        if table.is_none() {
            bail!("{name} has no defmt log strings; link it with -Tdefmt.x");
        }
        Ok(Self {
            table,
            ..Self::plain(Board::Virt, elf)
        })
    }

    /// An ELF file whose log is text.
    pub(crate) fn plain(board: Board, elf: &Path) -> Self {
        Self {
            board,
            elf: elf.to_owned(),
            monitor: None,
            table: None,
        }
    }
}

/// What to build.
pub struct Source<'a> {
    /// The directory cargo is called in.
    pub dir: &'a Path,
    /// Package, binary and features; without them, whatever the directory's package holds.
    pub bin: Option<Bin>,
    pub board: Board,
    pub profile: &'a str,
    /// With all mutants in the kernel; in a target directory of its own.
    pub mutants: bool,
}

/// The image of the conformance cases.
pub fn cases(console: &Console, board: Board, profile: &str, mutants: bool) -> Result<Image> {
    let dir = paths::root();
    let built = |bin| {
        let source = Source {
            dir: &dir,
            bin: Some(bin),
            board,
            profile,
            mutants,
        };
        build(console, &source)
    };
    let elf = built(board.facts().cases)?;
    match board {
        Board::Virt => Image::open(&elf),
        Board::Scc | Board::An521 => Ok(Image {
            monitor: board.facts().monitor.map(built).transpose()?,
            ..Image::plain(board, &elf)
        }),
    }
}

/// Builds, and returns the path of the executable.
///
/// # Errors
/// With everything the compiler said, if it failed.
pub fn build(console: &Console, source: &Source<'_>) -> Result<PathBuf> {
    toolchain::need(console, source.board.facts().part)?;
    let name = source.bin.map_or_else(
        || source.dir.display().to_string(),
        |[_, bin, _]| bin.into(),
    );
    let mut command = toolchain::build(source.board.facts().target, source.profile);
    command
        .current_dir(source.dir)
        .arg("--target-dir")
        .arg(match source.mutants {
            true => paths::images().join("mutants"),
            false => paths::images(),
        });
    command.arg("--message-format=json-render-diagnostics");
    if let Some([package, bin, features]) = source.bin {
        command.args(["--package", package, "--bin", bin]);
        if !features.is_empty() {
            command.args(["--features", features]);
        }
    }
    if std::env::var_os("DEFMT_LOG").is_none() {
        command.env("DEFMT_LOG", "info");
    }
    let flags = source.board.flags().iter().copied();
    let flags: Vec<&str> = flags
        .chain(["--cfg", "mutants"].into_iter().filter(|_| source.mutants))
        .collect();
    // The encoded form may hold blanks, and it goes before RUSTFLAGS and config files.
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    let printed = compiling::shown(console, &name, &mut command)?;
    let mut built: Vec<_> = printed.lines().filter_map(executable).collect();
    match built.len() {
        1 => Ok(built.remove(0)),
        n => bail!("{name} has {n} executables, expected one: {built:?}"),
    }
}

/// The executable that one of cargo's JSON messages reports.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_bin = message["target"]["kind"]
        .as_array()?
        .iter()
        .any(|kind| kind == "bin");
    let path = message["executable"].as_str()?;
    (message["reason"] == "compiler-artifact" && is_bin).then(|| path.into())
}
