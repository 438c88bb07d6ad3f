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
                let name = frame.function.as_ref().and_then(|f| f.demangle().ok());
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
        match self
            .0
            .find_symbol(pc)
            .filter(|name| !name.starts_with(".L"))
        {
            Some(name) => short(&rustc_demangle::demangle(name).to_string()),
            None => format!("{pc:#x}"),
        }
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

/// A demangled name without the hash at its end.
fn short(name: &str) -> String {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()) => {
            path.to_owned()
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_dropped() {
        assert_eq!(short("a::b::h0123456789abcdef"), "a::b");
        assert_eq!(short("a::hello"), "a::hello");
    }
}
