//! The dependency check: every package's licence is allowed, and the kernel crates depend on
//! nothing but what is named here.
//!
//! The kernel's list is short on purpose: these crates run on chips with a few kilobytes of local
//! memory, and each line below is code that someone has to trust there. Add to it knowingly.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{licence, paths};

/// The crates that end up on a target, and what each may depend on directly. Dependencies for
/// tests only are free.
const KERNEL: [(&str, &[&str]); 4] = [
    (
        "flagpost",
        &["bitflags", "bytemuck", "defmt", "flagpost-link"],
    ),
    ("flagpost-link", &["defmt", "flagpost-hal"]),
    (
        "flagpost-mapped",
        &["defmt", "flagpost-hal", "flagpost-link"],
    ),
    ("flagpost-hal", &["defmt"]),
];

/// How many packages were found in order, and what is wrong with the others.
pub(crate) struct Findings {
    pub(crate) good: usize,
    pub(crate) bad: Vec<String>,
}

/// Checks the workspace as its lock file has it.
pub(crate) fn check() -> Result<Findings> {
    let output = Command::new(paths::cargo())
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--all-features",
        ])
        .current_dir(paths::root())
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")?;
    Ok(judge(&metadata))
}

fn judge(metadata: &Value) -> Findings {
    let mut findings = Findings {
        good: 0,
        bad: Vec::new(),
    };
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or("?");
        let mut bad = Vec::new();
        match package["license"].as_str() {
            Some(expression) => bad.extend(licence::check(name, expression).err()),
            None => bad.push(format!("{name}: has no licence expression")),
        }
        if let Some((_, listed)) = KERNEL.iter().find(|(kernel, _)| *kernel == name) {
            bad.extend(unlisted(package, listed).map(|dependency| {
                format!("{name}: may not depend on {dependency} (see KERNEL in xtask/src/deps.rs)")
            }));
        }
        findings.good += usize::from(bad.is_empty());
        findings.bad.extend(bad);
    }
    for (name, _) in KERNEL {
        let mut packages = metadata["packages"].as_array().into_iter().flatten();
        if !packages.any(|package| package["name"] == name) {
            findings
                .bad
                .push(format!("{name}: no such package in the workspace"));
        }
    }
    findings
}

/// The direct dependencies of a package, other than for tests, that are not on its list.
fn unlisted<'a>(package: &'a Value, listed: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter(|dependency| dependency["kind"] != "dev")
        .filter_map(|dependency| dependency["name"].as_str())
        .filter(|name| !listed.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, licence: &str, dependency: &str, kind: Option<&str>) -> Value {
        let dependencies = json!([{"name": dependency, "kind": kind}]);
        json!({"name": name, "license": licence, "dependencies": dependencies})
    }

    fn bad(first: Value) -> Vec<String> {
        let others = [
            "flagpost",
            "flagpost-link",
            "flagpost-mapped",
            "flagpost-hal",
        ];
        let mut packages = vec![first];
        for name in others {
            if packages[0]["name"] != name {
                packages.push(package(name, "MIT", "defmt", None));
            }
        }
        judge(&json!({ "packages": packages })).bad
    }

    #[test]
    fn kernel_crates_keep_to_their_lists() {
        assert!(bad(package("flagpost", "MIT", "bytemuck", None)).is_empty());
        assert!(bad(package("flagpost", "MIT", "proptest", Some("dev"))).is_empty());
        assert_eq!(bad(package("flagpost", "MIT", "syn", None)).len(), 1);
        assert_eq!(
            bad(package("flagpost-hal", "MIT", "syn", Some("build"))).len(),
            1
        );
    }

    #[test]
    fn licences_and_missing_crates_are_reported() {
        assert_eq!(bad(package("x", "GPL-3.0", "syn", None)).len(), 1);
        assert_eq!(bad(json!({"name": "x", "license": null})).len(), 1);
        assert_eq!(judge(&json!({"packages": []})).bad.len(), 4);
    }
}
