//! The panic check: no call into the library can reach a panic.
//!
//! `tests/no-panic` calls everything and names a function that does not exist in its panic handler.
//! After optimization the library it makes must not ask for that function; and it must once the
//! feature `panics` adds a panic, else the check itself is broken.

use std::process::Command;

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection, ObjectSymbol};

use crate::console::out;
use crate::count::Count;
use crate::{children, paths};

const CRATE: &str = "tests/no-panic";
const LIBRARY: &str = "target/release/libflagpost_no_panic.so";
const HANDLER: &str = "flagpost_can_panic";

pub(crate) fn check() -> Result<Count> {
    let mut count = Count::default();
    for (features, expected) in [(&["--features", "panics"][..], true), (&[], false)] {
        let reaches = reaches_panic(features)?;
        out(&match (expected, reaches) {
            (true, true) => "a panic that is there is found".to_owned(),
            (true, false) => "error: the check does not find a panic that is there".to_owned(),
            (false, true) => format!("error: library code can panic: see {CRATE}"),
            (false, false) => "no library code can reach a panic".to_owned(),
        });
        count.add(Count::one(expected == reaches));
    }
    Ok(count)
}

/// Builds the library and looks whether it asks for the handler's function.
fn reaches_panic(features: &[&str]) -> Result<bool> {
    let directory = paths::root().join(CRATE);
    let mut command = Command::new(paths::cargo());
    command
        .args(["build", "--release", "--quiet", "--locked"])
        .args(features)
        .env_remove("CARGO_TARGET_DIR")
        .current_dir(&directory);
    let status = children::status(&mut command).context("cannot run cargo")?;
    if !status.success() {
        bail!("cannot build {CRATE}");
    }
    let path = directory.join(LIBRARY);
    let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let library = object::File::parse(&*bytes)?;
    let text = library.section_by_name(".text");
    out(&format!(
        ".text of a library that calls everything: {} bytes",
        text.map_or(0, |text| text.size())
    ));
    let wanted =
        |symbol: object::Symbol<'_, '_>| symbol.is_undefined() && symbol.name() == Ok(HANDLER);
    Ok(library.dynamic_symbols().any(wanted))
}
