//! `cargo xtask doctor`: what is here, what is missing, and the command that brings it.

use std::path::Path;
use std::process::Command;

use crate::console::{Console, out};
use crate::toolchain::{Part, Survey};
use crate::{paths, tools};
use flagpost_common::table;

/// A tool; its version or place, or none if it is missing; and how to get it.
type Finding = (&'static str, Option<String>, String);

/// Prints the table; `false` if `cargo xtask qemu` cannot run, not even by installing.
pub(crate) fn run(console: &Console) -> bool {
    console.step("looking around");
    let survey = Survey::look();
    let qemu = tools::find(tools::RISCV.program);
    let apt = tools::apt().is_some();
    let findings = findings(&survey, qemu.as_deref(), apt);
    console.clear();

    let row = |(name, found, bring): Finding| {
        let state = if found.is_some() { "ok" } else { "missing" };
        vec![name.to_owned(), state.to_owned(), found.unwrap_or(bring)]
    };
    let rows: Vec<_> = findings.into_iter().map(row).collect();
    table(&["tool", "state", "version, or how to get it"], &rows);

    // What is missing, and whether it can be brought.
    let missing = [
        ("QEMU by apt", qemu.is_some(), apt),
        (
            "the target by rustup",
            survey.has(Part::BOARD),
            survey.may_add(Part::BOARD),
        ),
    ];
    let missing: Vec<_> = missing.into_iter().filter(|(_, has, _)| !has).collect();
    let can = missing.iter().all(|(.., may)| *may);
    let ways: Vec<_> = missing.iter().map(|(way, ..)| *way).collect();
    out("");
    out(&match (can, ways.is_empty()) {
        (true, true) => "cargo xtask qemu can run.".to_owned(),
        (true, false) => {
            format!(
                "cargo xtask qemu can run; it will first get {}.",
                ways.join(" and ")
            )
        }
        _ => "cargo xtask qemu cannot run: bring what is missing above.".to_owned(),
    });
    can
}

fn findings(survey: &Survey, qemu: Option<&Path>, apt: bool) -> Vec<Finding> {
    let version = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let text = tools::answer(command.args(arguments).current_dir(paths::root()))?;
        text.lines().next().map(str::to_owned)
    };
    let cargo = paths::cargo().to_string_lossy().into_owned();
    let finding = |name, found, bring: &str| (name, found, bring.to_owned());
    let package = |name, found, package| (name, found, tools::line(package));
    let component = |name| {
        let word = if name == "rustfmt" { "fmt" } else { name };
        let bring = format!("rustup component add {name}");
        (name, version(&cargo, &[word, "--version"]), bring)
    };
    let part = |name, part: Part| {
        let found = survey.has(part).then(|| part.name().to_owned());
        (name, found, part.line())
    };
    let emulator = qemu.and_then(|program| version(&program.to_string_lossy(), &["--version"]));
    let libfabric = tools::find_libfabric().map(|file| file.display().to_string());
    let installs = apt.then(|| "may install without asking".to_owned());
    let not_needed =
        "not needed if all else is here; wants root or sudo -n, and no FLAGPOST_NO_INSTALL";
    let valgrind = version(tools::VALGRIND, &["--version"]);
    vec![
        finding("rustc", survey.rustc.clone(), "see https://rustup.rs"),
        component("rustfmt"),
        component("clippy"),
        package(tools::RISCV.program, emulator, tools::RISCV.package),
        part("bare-metal target", Part::BOARD),
        part("sources of core, for the SCC's image", Part::Sources),
        package(tools::VALGRIND, valgrind, tools::VALGRIND),
        package(tools::LIBFABRIC, libfabric, tools::LIBFABRIC_PACKAGE),
        finding("apt, for installing", installs, not_needed),
    ]
}
