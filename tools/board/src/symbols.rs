//! Source places of addresses in an image.

use std::path::Path;

use addr2line::Loader;
use anyhow::{Result, anyhow};
use object::{Object, ObjectSymbol};

use crate::paths;

/// The debug information of an ELF file.
pub(crate) struct Symbols(Loader);

impl Symbols {
    pub(crate) fn open(elf: &Path) -> Result<Self> {
        let loader = Loader::new(elf).map_err(|e| anyhow!("no debug information: {e}"))?;
        Ok(Self(loader))
    }

    /// `function at file:line` of the instruction at `pc`; inlined calls are joined by ` <- `,
    /// innermost first.
    pub(crate) fn place(&self, pc: u64) -> String {
        let mut parts = Vec::new();
        if let Ok(mut frames) = self.0.find_frames(pc) {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
                let name = name.map_or_else(|| self.symbol(pc), |name| short(&name));
                parts.push(match frame.location.and_then(|at| at.file.zip(at.line)) {
                    Some((file, line)) => format!("{name} at {}:{line}", paths::shorten(file)),
                    None => name,
                });
            }
        }
        if parts.is_empty() {
            self.symbol(pc)
        } else {
            parts.join(" <- ")
        }
    }

    /// The symbol around `pc`, for code without debug information.
    fn symbol(&self, pc: u64) -> String {
        // The assembler's own labels begin with `.L` and mean nothing to people.
        let name = self.0.find_symbol(pc);
        let name = name.filter(|name| !name.starts_with(".L"));
        name.map_or_else(|| format!("{pc:#x}"), short)
    }
}

/// The address of a symbol, by its exact name.
pub(crate) fn address(elf: &Path, name: &str) -> Option<u64> {
    let bytes = std::fs::read(elf).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    file.symbols()
        .find(|symbol| symbol.name() == Ok(name))
        .map(|symbol| symbol.address())
}

/// A name as in the source, without the hash at its end.
fn short(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}
