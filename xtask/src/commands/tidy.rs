//! `cargo xtask tidy`: comments and documents as `docs/style.md` asks for.

use anyhow::Result;

use crate::console::out;
use crate::count::Count;
use crate::paths;
use crate::tidy::Tree;

/// Prints what is wrong, a line each; `false` if anything is.
///
/// # Errors
/// If git cannot be run, or a file cannot be read.
pub(crate) fn run() -> Result<bool> {
    let (findings, circle) = Tree::tracked(&paths::root())?.check();
    findings
        .iter()
        .for_each(|finding| out(&finding.to_string()));
    let files = circle.join(", ");
    out(&format!(
        "largest circle of files: {} ({files})",
        circle.len()
    ));
    out(&format!("{} findings", findings.len()));
    Ok(findings.is_empty())
}

/// The same as a step of `cargo xtask ci`.
///
/// # Errors
/// If git cannot be run, or a file cannot be read.
pub(crate) fn check() -> Result<Count> {
    run().map(Count::one)
}
