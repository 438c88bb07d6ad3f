//! Which crate may use which, and under which licences the crates of others may come.
//!
//! No arrow between crates points up: what a machine offers is the lowest floor, then come the
//! kernel with its links, and what starts ranks. A machine that knew the kernel could not be read,
//! or ported, without it. The lists of the crates that end up on a target are short on purpose:
//! these chips have a few kilobytes of local memory, and someone has to trust each line there.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use spdx::{Expression, LicenseReq, ParseMode};

use crate::paths;

/// What some crates may use directly.
struct Rule {
    /// A crate, or all below a directory.
    of: &'static str,
    /// Whether their tests are free to use more.
    tests: bool,
    /// Crates, and directories of crates of this repository.
    may: &'static [&'static str],
}

/// Stands for all crates of others.
const OTHERS: &str = "crates of others";

/// A crate must keep all the rules that are about it.
const RULES: [Rule; 13] = [
    code(
        "flagpost",
        &[
            "bitflags",
            "bytemuck",
            "defmt",
            "flagpost-link",
            "flagpost-points",
        ],
    ),
    code("flagpost-points", &[]),
    code("flagpost-link", &["defmt", "flagpost-hal"]),
    code(
        "flagpost-loadstore",
        &["defmt", "flagpost-hal", "flagpost-link", "flagpost-points"],
    ),
    // These two do not know each other.
    code(
        "flagpost-mapped",
        &[
            "flagpost-hal",
            "flagpost-link",
            "flagpost-loadstore",
            "flagpost-points",
        ],
    ),
    code(
        "flagpost-coherent",
        &[
            "flagpost-hal",
            "flagpost-link",
            "flagpost-loadstore",
            "flagpost-points",
            "flagpost-record",
        ],
    ),
    code("flagpost-record", &["flagpost-hal"]),
    code("flagpost-hal", &["defmt", "embedded-hal"]),
    all("tools/common/", &[]),
    all("tools/", &[OTHERS, "tools/"]),
    // What needs the kernel has its place above, tests and examples as well.
    // The points are macros that know nothing.
    all("hal/", &[OTHERS, "points/", "hal/", "tools/common/"]),
    code("kernel/", &[OTHERS, "points/", "hal/", "kernel/"]),
    code("linux/", &[OTHERS, "points/", "hal/", "kernel/"]),
];

const fn code(of: &'static str, may: &'static [&'static str]) -> Rule {
    Rule {
        of,
        tests: true,
        may,
    }
}

const fn all(of: &'static str, may: &'static [&'static str]) -> Rule {
    Rule {
        of,
        tests: false,
        may,
    }
}

/// The licences that are allowed, and the exceptions.
const DENY: &str = include_str!("../../deny.toml");

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
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let mut findings = Findings {
        good: 0,
        bad: Vec::new(),
    };
    let packages = || metadata["packages"].as_array().into_iter().flatten();
    for package in packages() {
        let name = text(package, "name");
        let mut bad: Vec<_> = licence(name, package["license"].as_str())
            .into_iter()
            .collect();
        let at = place(root, package, "manifest_path");
        for rule in RULES.iter().filter(|rule| rule.is_about(name, &at)) {
            bad.extend(rule.broken(root, package));
        }
        findings.good += usize::from(bad.is_empty());
        findings.bad.extend(bad);
    }
    for Rule { of, .. } in RULES {
        let about = |package: &Value| {
            let at = place(root, package, "manifest_path");
            RULES
                .iter()
                .any(|rule| rule.of == of && rule.is_about(text(package, "name"), &at))
        };
        if !packages().any(about) {
            findings.bad.push(format!(
                "{of}: there is no such crate; see RULES in xtask/src/rules.rs"
            ));
        }
    }
    findings
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// The directory that a member names, from the root on, with a slash at its end. Empty for crates
/// of others.
fn place(root: &str, object: &Value, member: &str) -> String {
    let path = text(object, member).trim_end_matches("Cargo.toml");
    let inside = Path::new(path).strip_prefix(root).ok();
    inside.map_or(String::new(), |inside| format!("{}/", inside.display()))
}

impl Rule {
    fn is_about(&self, name: &str, at: &str) -> bool {
        if self.of.ends_with('/') {
            at.starts_with(self.of)
        } else {
            self.of == name
        }
    }

    /// What the package uses against the rule, however its manifest says so.
    fn broken(&self, root: &str, package: &Value) -> Vec<String> {
        let used = package["dependencies"].as_array().into_iter().flatten();
        let used = used.filter(|used| !(self.tests && used["kind"] == "dev"));
        let wrong = used.filter_map(|used| {
            let (name, at) = (text(used, "name"), place(root, used, "path"));
            let is = |may: &str| match may {
                OTHERS => at.is_empty(),
                may if may.ends_with('/') => at.starts_with(may),
                may => may == name,
            };
            if self.may.iter().any(|may| is(may)) {
                return None;
            }
            let (of, may) = (text(package, "name"), self.may.join(", "));
            let tests = if self.tests { "; its tests may" } else { "" };
            Some(format!(
                "{of}: may not use {name}, only: {may}{tests} (see RULES in xtask/src/rules.rs)"
            ))
        });
        wrong.collect()
    }
}

/// What is wrong with the licence of a package, if anything.
fn licence(package: &str, expression: Option<&str>) -> Option<String> {
    let Some(expression) = expression else {
        return Some(format!("{package}: has no licence expression"));
    };
    let Ok(read) = Expression::parse_mode(expression, ParseMode::LAX) else {
        return Some(format!("{package}: cannot read the licence `{expression}`"));
    };
    // An exception (`WITH`) only grants more.
    let allowed = |licence: &LicenseReq| {
        let id = licence.license.id();
        id.is_some_and(|id| allowed(package, id.name))
    };
    (!read.evaluate(allowed))
        .then(|| format!("{package}: licence `{expression}` is not on the list of deny.toml"))
}

/// Whether `deny.toml` has the licence, for all packages or for this one.
fn allowed(package: &str, licence: &str) -> bool {
    let list = DENY
        .split_once("\nallow = [")
        .and_then(|(_, rest)| rest.split_once("\n]"));
    let all = list.is_some_and(|(list, _)| list.contains(&format!("\"{licence}\",")));
    all || DENY.contains(&format!(
        "{{ crate = \"{package}\", allow = [\"{licence}\"] }}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What is wrong if the crate at this place uses another one.
    fn bad(place: &str, name: &str, used: (&str, &str), kind: Option<&str>) -> Vec<String> {
        let used = json!({"name": used.0, "path": (!used.1.is_empty()).then(|| format!("/r/{}", used.1)), "kind": kind});
        let package = json!({
            "name": name, "license": "MIT", "manifest_path": format!("/r/{place}Cargo.toml"),
            "dependencies": [used],
        });
        let metadata = json!({"workspace_root": "/r", "packages": [package]});
        let mut bad = judge(&metadata).bad;
        bad.retain(|what| !what.contains("there is no such crate"));
        bad
    }

    #[test]
    fn crates_for_targets_keep_to_their_lists_and_their_tests_need_not() {
        let (others, sim) = (("syn", ""), ("flagpost-sim", "hal/sim"));
        for (used, kind, wrong) in [
            (("bytemuck", ""), None, 0),
            (("flagpost-link", "kernel/link"), None, 0),
            (sim, Some("dev"), 0),
            (others, Some("dev"), 0),
            (others, None, 1),
            (others, Some("build"), 1),
            (sim, None, 1),
            // Above all of kernel/, too.
            (("flagpost-linux", "linux"), None, 2),
        ] {
            assert_eq!(
                bad("kernel/", "flagpost", used, kind).len(),
                wrong,
                "{used:?} {kind:?}"
            );
        }
    }

    #[test]
    fn no_arrow_points_up_not_even_in_tests() {
        let kernel = ("flagpost", "kernel");
        for (place, used, kind, wrong) in [
            ("hal/sim/", ("flagpost-scc", "hal/scc"), None, 0),
            (
                "hal/sim/",
                ("flagpost-common", "tools/common"),
                Some("dev"),
                0,
            ),
            ("hal/sim/", ("clap", ""), None, 0),
            ("hal/sim/", kernel, None, 1),
            ("hal/sim/", kernel, Some("dev"), 1),
            ("hal/sim/", kernel, Some("build"), 1),
            ("hal/sim/", ("halo", "halo"), None, 1),
            ("kernel/network/", ("flagpost-tests", "tests"), None, 1),
            (
                "kernel/network/",
                ("flagpost-tests", "tests"),
                Some("dev"),
                0,
            ),
            ("linux/", kernel, None, 0),
            ("linux/", ("flagpost-explore", "tests/explore"), None, 1),
            ("tools/common/", ("rand", ""), Some("dev"), 1),
            ("tests/", kernel, None, 0),
        ] {
            assert_eq!(
                bad(place, "x", used, kind).len(),
                wrong,
                "{place} {used:?} {kind:?}"
            );
        }
        let up = bad("hal/sim/", "x", kernel, None);
        assert!(up[0].starts_with("x: may not use flagpost, only: crates of others, hal/, "));
    }

    #[test]
    fn a_rule_about_a_crate_that_is_gone_is_reported() {
        let found = judge(&json!({"workspace_root": "/r", "packages": []}));
        assert_eq!(found.bad.len(), RULES.len(), "{:?}", found.bad);
    }

    #[test]
    fn licences_are_those_of_the_list() {
        for good in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "Zlib",
        ] {
            assert_eq!(licence("p", Some(good)), None);
        }
        assert_eq!(licence("colored", Some("MPL-2.0")), None);
        for bad in [
            "GPL-3.0",
            "MIT AND GPL-2.0",
            "MPL-2.0",
            "(MIT OR GPL-3.0) AND GPL-3.0",
        ] {
            let why = licence("p", Some(bad)).expect(bad);
            assert!(why.contains("not on the list"), "{why}");
        }
        for bad in ["", "MIT OR", "(MIT", "MIT MIT", "AND", "MIT WITH"] {
            let why = licence("p", Some(bad)).expect(bad);
            assert!(why.contains("cannot read"), "{why}");
        }
        assert!(licence("p", None).is_some());
    }
}
