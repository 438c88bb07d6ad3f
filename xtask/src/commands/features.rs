//! The feature check: each crate for targets compiles for one, without features and with each of
//! its features alone.
//!
//! Ordinary builds unite the features of all crates of a call. There a feature that lacks a part
//! compiles, as long as another crate brings the part.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::console::Console;
use crate::count::Count;
use crate::toolchain::{self, Part};
use crate::{children, paths};

/// The directories of the crates for targets.
const TARGETS: [&str; 2] = ["kernel", "hal"];
/// Crates there that need an operating system.
const HOSTED: [&str; 3] = ["flagpost-sim", "flagpost-hal-linux", "flagpost-fabric"];

pub(crate) fn check(console: &Console) -> Result<Count> {
    if !toolchain::has(console, Part::BOARD) {
        console.left_out(&format!("features, no {} here", Part::BOARD.name()));
        return Ok(Count::default());
    }
    let crates = crates()?;
    let names: Vec<_> = crates.iter().map(|(name, _)| &**name).collect();
    let mut count = Count::one(compiles(&names, None)?);
    for (name, features) in &crates {
        for feature in features {
            let good = compiles(&[name], Some(feature))?;
            if !good {
                console.error(&format!("{name} does not compile with {feature} alone"));
            }
            count.add(Count::one(good));
        }
    }
    if count.passed + count.failed == 1 {
        bail!("no crate in {TARGETS:?} has a feature: this check has lost its subject");
    }
    Ok(count)
}

/// Whether these crates compile for the board's target.
fn compiles(crates: &[&str], feature: Option<&str>) -> Result<bool> {
    let mut command = Command::new(paths::cargo());
    command.args(["check", "--locked", "--no-default-features", "--quiet"]);
    command.args(["--target", Part::BOARD.name()]);
    for name in crates {
        command.args(["--package", name]);
    }
    if let Some(feature) = feature {
        command.args(["--features", feature]);
    }
    let status = children::status(command.current_dir(paths::root()));
    Ok(status.context("cannot run cargo")?.success())
}

/// The crates for targets, and the features of each.
fn crates() -> Result<Vec<(String, Vec<String>)>> {
    let mut command = Command::new(paths::cargo());
    command
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .current_dir(paths::root());
    let output = children::output(&mut command).context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed");
    }
    let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    Ok(read(&metadata, &paths::root().display().to_string()))
}

fn read(metadata: &Value, root: &str) -> Vec<(String, Vec<String>)> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let of = |package: &Value| {
        let name = package["name"].as_str()?;
        let manifest = package["manifest_path"].as_str()?.strip_prefix(root)?;
        let directory = manifest.trim_start_matches('/').split('/').next()?;
        if !TARGETS.contains(&directory) || HOSTED.contains(&name) {
            return None;
        }
        let features = package["features"].as_object()?.keys();
        let features = features.filter(|name| *name != "default").cloned();
        Some((name.to_owned(), features.collect()))
    };
    packages.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn crates_for_targets_are_found_with_their_features() {
        let package = |name, path, features: &[&str]| {
            let features: serde_json::Map<_, _> = features
                .iter()
                .map(|name| ((*name).to_owned(), json!([])))
                .collect();
            json!({ "name": name, "manifest_path": path, "features": features })
        };
        let metadata = json!({ "packages": [
            package("flagpost", "/r/kernel/Cargo.toml", &["default", "defmt"]),
            package("flagpost-scc", "/r/hal/scc/Cargo.toml", &[]),
            package("flagpost-hal-linux", "/r/hal/linux/Cargo.toml", &["x"]),
            package("flagpost-linux", "/r/linux/Cargo.toml", &["launcher"]),
            package("xtask", "/r/xtask/Cargo.toml", &["x"]),
        ]});
        let expected = [("flagpost", vec!["defmt"]), ("flagpost-scc", vec![])];
        let expected = expected.map(|(name, features)| {
            (
                name.to_owned(),
                features.into_iter().map(str::to_owned).collect(),
            )
        });
        assert_eq!(read(&metadata, "/r"), expected);
    }
}
