//! `cargo xtask doctor`: what is here, what is missing, and the command that brings it.

use std::path::Path;
use std::process::Command;

use crate::console::{Console, out};
use crate::toolchain::{Part, Survey};
use crate::{paths, tools};
use flagpost_common::table;

/// What is known about one tool.
struct Finding {
    name: &'static str,
    /// Version or place; `None` if it is missing.
    found: Option<String>,
    /// How to get it.
    bring: String,
}

/// Prints the table; `false` if `cargo xtask qemu` cannot run, not even by installing.
pub(crate) fn run(console: &Console) -> bool {
    console.step("looking around");
    let survey = Survey::look();
    let qemu = tools::find(tools::RISCV.program);
    let apt = tools::apt().is_some();
    let findings = findings(&survey, qemu.as_deref(), apt);
    console.clear();

    let row = |finding: Finding| match finding.found {
        Some(found) => vec![finding.name.to_owned(), "ok".to_owned(), found],
        None => vec![finding.name.to_owned(), "missing".to_owned(), finding.bring],
    };
    let rows: Vec<_> = findings.into_iter().map(row).collect();
    table(&["tool", "state", "version, or how to get it"], &rows);

    let qemu_way = if qemu.is_some() {
        Some("")
    } else {
        apt.then_some("QEMU by apt")
    };
    let rust_way = match (survey.has(Part::BOARD), survey.may_add(Part::BOARD)) {
        (true, _) => Some(""),
        (false, may_add) => may_add.then_some("the target by rustup"),
    };
    out("");
    match (qemu_way, rust_way) {
        (Some(""), Some("")) => out("cargo xtask qemu can run."),
        (Some(qemu), Some(rust)) => {
            let brought: Vec<&str> = [qemu, rust]
                .into_iter()
                .filter(|way| !way.is_empty())
                .collect();
            out(&format!(
                "cargo xtask qemu can run; it will first get {}.",
                brought.join(" and ")
            ));
        }
        _ => out("cargo xtask qemu cannot run: bring what is missing above."),
    }
    qemu_way.is_some() && rust_way.is_some()
}

fn findings(survey: &Survey, qemu: Option<&Path>, apt: bool) -> Vec<Finding> {
    let version = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let text = tools::answer(command.args(arguments).current_dir(paths::root()))?;
        text.lines().next().map(str::to_owned)
    };
    let cargo = paths::cargo().to_string_lossy().into_owned();
    let finding = |name, found, bring: &str| Finding {
        name,
        found,
        bring: bring.to_owned(),
    };
    let part = |name, part: Part| {
        let found = survey.has(part).then(|| part.name().to_owned());
        finding(name, found, &part.line())
    };
    vec![
        finding("rustc", survey.rustc.clone(), "see https://rustup.rs"),
        finding(
            "rustfmt",
            version(&cargo, &["fmt", "--version"]),
            "rustup component add rustfmt",
        ),
        finding(
            "clippy",
            version(&cargo, &["clippy", "--version"]),
            "rustup component add clippy",
        ),
        finding(
            tools::RISCV.program,
            qemu.and_then(|program| version(&program.to_string_lossy(), &["--version"])),
            &tools::RISCV.line(),
        ),
        part("bare-metal target", Part::BOARD),
        part("sources of core, for the SCC's image", Part::Sources),
        finding(
            tools::VALGRIND,
            version(tools::VALGRIND, &["--version"]),
            &tools::apt_line(&[tools::VALGRIND]),
        ),
        finding(
            tools::LIBFABRIC,
            tools::find_libfabric().map(|file| file.display().to_string()),
            &tools::apt_line(&[tools::LIBFABRIC_PACKAGE]),
        ),
        finding(
            "apt, for installing",
            apt.then(|| "may install without asking".to_owned()),
            "not needed if all else is here; wants root or sudo -n, and no FLAGPOST_NO_INSTALL",
        ),
    ]
}
