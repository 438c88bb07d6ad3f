//! Which crate may use which. Licences, and crates of others, are `cargo deny`'s (`deny.toml`).
//!
//! No arrow between crates points up: what a machine offers is the lowest floor, then come the
//! kernel with its links, and what starts ranks. A machine that knew the kernel could not be read,
//! or ported, without it. The lists of the crates that end up on a target are short on purpose:
//! these chips have a few kilobytes of local memory, and someone has to trust each line there.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{children, paths};

/// Stands for all crates of others.
const OTHERS: &str = "others";

/// Before each colon a crate, or a directory of crates; after it the crates, and directories, that
/// these may use. A crate must keep all the rules that are about it. Tests are free to use more.
const CODE: [&str; 10] = [
    "flagpost: bitflags bytemuck defmt flagpost-link flagpost-points",
    // In builds of all mutants on a host alone.
    "flagpost-points: linkme",
    "flagpost-link: defmt flagpost-hal",
    "flagpost-loadstore: defmt flagpost-hal flagpost-link flagpost-points",
    // These two do not know each other.
    "flagpost-mapped: flagpost-hal flagpost-link flagpost-loadstore flagpost-points",
    "flagpost-coherent: flagpost-hal flagpost-link flagpost-loadstore flagpost-points \
     flagpost-record",
    "flagpost-record: flagpost-hal",
    "flagpost-hal: defmt embedded-hal",
    "kernel/: others points/ hal/ kernel/",
    "linux/: others points/ hal/ kernel/",
];

/// The same for tests and examples: those that need the kernel have their place above.
const ALL: [&str; 3] = [
    "tools/common/: ",
    "tools/: others tools/",
    "hal/: others points/ hal/ tools/common/",
];

/// The packages of the workspace, as cargo has them.
pub(crate) struct Packages(Vec<Value>);

impl Packages {
    pub(crate) fn read() -> Result<Self> {
        let mut command = Command::new(paths::cargo());
        command.args(["metadata", "--format-version", "1", "--no-deps", "--locked"]);
        let output = children::output(command.current_dir(paths::root()));
        let output = output.context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!(
                "cargo metadata: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let mut metadata: Value = serde_json::from_slice(&output.stdout)?;
        let packages = metadata["packages"].as_array_mut();
        Ok(Self(packages.map(std::mem::take).context("no packages")?))
    }

    /// Each with its name and its directory.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Value, &str, String)> {
        let of = |package| {
            (
                package,
                text(package, "name"),
                place(package, "manifest_path"),
            )
        };
        self.0.iter().map(of)
    }

    /// What breaks the rules, however the manifests say so.
    pub(crate) fn judge(&self) -> Vec<String> {
        let mut bad = Vec::new();
        let code = CODE.into_iter().map(|rule| (rule, true));
        let all = ALL.into_iter().map(|rule| (rule, false));
        for (rule, tests_may) in code.chain(all) {
            let (of, may) = rule.split_once(": ").unwrap_or((rule, ""));
            let mut about = self
                .all()
                .filter(|(_, name, at)| is(of, name, at))
                .peekable();
            if about.peek().is_none() {
                bad.push(format!(
                    "{of}: there is no such crate; see xtask/src/rules.rs"
                ));
            }
            for (package, name, _) in about {
                let used = package["dependencies"].as_array().into_iter().flatten();
                for used in used.filter(|used| !(tests_may && used["kind"] == "dev")) {
                    let (other, at) = (text(used, "name"), place(used, "path"));
                    if !may.split(' ').any(|may| is(may, other, &at)) {
                        let tests = if tests_may { "; its tests may" } else { "" };
                        bad.push(format!(
                            "{name}: may not use {other}, only: {may}{tests} (see \
                             xtask/src/rules.rs)"
                        ));
                    }
                }
            }
        }
        bad
    }
}

fn is(word: &str, name: &str, at: &str) -> bool {
    match word {
        OTHERS => at.is_empty(),
        word if word.ends_with('/') => at.starts_with(word),
        word => word == name,
    }
}

fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// The directory that a member names, from the root on, with a slash at its end. Empty for crates
/// of others.
fn place(object: &Value, member: &str) -> String {
    let path = text(object, member).trim_end_matches("Cargo.toml");
    let inside = Path::new(path).strip_prefix(paths::root()).ok();
    inside.map_or(String::new(), |inside| format!("{}/", inside.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn crates_use_what_their_lists_have_and_no_arrow_points_up() {
        // A crate's place and name; the crate that it uses, and where that is; what for; and how
        // many rules that breaks.
        for row in [
            "kernel/ flagpost bytemuck - code 0",
            "kernel/ flagpost flagpost-link kernel/link code 0",
            "kernel/ flagpost flagpost-sim hal/sim dev 0",
            "kernel/ flagpost syn - dev 0",
            "kernel/ flagpost syn - code 1",
            "kernel/ flagpost syn - build 1",
            "kernel/ flagpost flagpost-sim hal/sim code 1",
            // Above all of kernel/, too.
            "kernel/ flagpost flagpost-linux linux code 2",
            "hal/sim/ x flagpost-scc hal/scc code 0",
            "hal/sim/ x flagpost-common tools/common dev 0",
            "hal/sim/ x clap - code 0",
            "hal/sim/ x flagpost kernel code 1",
            "hal/sim/ x flagpost kernel dev 1",
            "hal/sim/ x halo halo code 1",
            "kernel/network/ x flagpost-tests tests code 1",
            "kernel/network/ x flagpost-tests tests dev 0",
            "linux/ x flagpost kernel code 0",
            "linux/ x flagpost-explore tests/explore code 1",
            "tools/common/ x rand - dev 1",
            "tests/ x flagpost kernel code 0",
        ] {
            let [place, name, other, at, kind, wrong] = row.split(' ').collect::<Vec<_>>()[..]
            else {
                panic!("{row}");
            };
            let kind = (kind != "code").then_some(kind);
            let root = paths::root().display().to_string();
            let path = (at != "-").then(|| format!("{root}/{at}"));
            let packages = Packages(vec![json!({
                "name": name, "manifest_path": format!("{root}/{place}Cargo.toml"),
                "dependencies": [json!({"name": other, "path": path, "kind": kind})],
            })]);
            let mut bad = packages.judge();
            bad.retain(|what| !what.contains("there is no such crate"));
            assert_eq!(bad.len().to_string(), wrong, "{row}: {bad:?}");
        }
    }

    #[test]
    fn a_rule_about_a_crate_that_is_gone_is_reported() {
        let bad = Packages(Vec::new()).judge();
        assert_eq!(bad.len(), CODE.len() + ALL.len(), "{bad:?}");
    }
}
