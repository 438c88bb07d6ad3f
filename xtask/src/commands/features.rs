//! The feature check: each crate for targets compiles for one, without features and with each of
//! its features alone.
//!
//! Ordinary builds unite the features of all crates of a call. There a feature that lacks a part
//! compiles, as long as another crate brings the part.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::console::Console;
use crate::count::Count;
use crate::rules::Packages;
use crate::toolchain::{self, Part};
use crate::{children, paths};

/// Crates for targets are below these directories, but for those that need an operating system.
const TARGETS: [&str; 2] = ["kernel/", "hal/"];
const HOSTED: [&str; 3] = ["flagpost-sim", "flagpost-hal-linux", "flagpost-fabric"];

pub(crate) fn check(console: &Console) -> Result<Count> {
    if !toolchain::has(console, Part::BOARD) {
        console.left_out(&format!("features, no {} here", Part::BOARD.name()));
        return Ok(Count::default());
    }
    let packages = Packages::read()?;
    let mut crates: Vec<_> = packages.all().collect();
    crates.retain(|(_, name, at)| {
        TARGETS.iter().any(|place| at.starts_with(place)) && !HOSTED.contains(name)
    });
    let names = crates.iter().map(|(_, name, _)| *name).collect();
    let mut checks = vec![(names, "")];
    for (package, name, _) in &crates {
        let features = package["features"].as_object().into_iter().flatten();
        let features = features.filter(|(feature, _)| *feature != "default");
        checks.extend(features.map(|(feature, _)| (vec![*name], feature.as_str())));
    }
    if checks.len() == 1 {
        bail!("no crate in {TARGETS:?} has a feature: this check has lost its subject");
    }
    let mut count = Count::default();
    for (names, feature) in checks {
        let mut command = Command::new(paths::cargo());
        command.args(["check", "--locked", "--quiet", "--no-default-features"]);
        command.args(["--target", Part::BOARD.name(), "--features", feature]);
        command.args(names.iter().flat_map(|name| ["--package", name]));
        let status = children::status(command.current_dir(paths::root()));
        let good = status.context("cannot run cargo")?.success();
        if !good {
            let names = names.join(", ");
            console.error(&format!("features: {names} with {feature:?} alone"));
        }
        count.add(Count::one(good));
    }
    Ok(count)
}
