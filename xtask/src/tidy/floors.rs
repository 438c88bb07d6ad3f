//! No arrow between crates points up: a crate under `hal/` uses no crate outside of `hal/`.
//!
//! What a machine offers is the lowest floor. A machine that knew the kernel could not be read, or
//! ported, without it. Tests and examples count as well: one that needs the kernel has its place
//! above. (The crates of the kernel have lists of all that they may use, in `xtask/src/deps.rs`.)

use super::{Finding, Tree};

/// The lowest floor.
const LOWEST: &str = "hal/";

/// The dependencies of crates of the lowest floor that are crates of this repository above it.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let root = tree.files.get("Cargo.toml").map_or("", String::as_str);
    let crates: Vec<_> = dependencies(root).collect();
    let mut found = Vec::new();
    for (file, text) in &tree.files {
        let Some(directory) = file.strip_suffix("Cargo.toml") else {
            continue;
        };
        if !file.starts_with(LOWEST) {
            continue;
        }
        for used in dependencies(text) {
            let here = used.path.map(|path| resolve(directory, path));
            let of_workspace = || {
                let known = crates.iter().find(|known| known.name == used.name)?;
                Some(resolve("", known.path?))
            };
            let place = here.or_else(of_workspace);
            if let Some(place) = place.filter(|place| !format!("{place}/").starts_with(LOWEST)) {
                found.push(Finding {
                    file: file.clone(),
                    line: used.line,
                    what: format!(
                        "{} is in {place}/, above {LOWEST}: move what needs it up, or the contract down",
                        used.name
                    ),
                });
            }
        }
    }
    found
}

/// A line of a manifest that names another crate.
struct Used<'a> {
    line: usize,
    name: &'a str,
    path: Option<&'a str>,
}

/// What the sections of dependencies in a manifest name, of whatever kind, one line each: `a = …`,
/// `a.workspace = true`, or the section `[dependencies.a]`.
fn dependencies(manifest: &str) -> impl Iterator<Item = Used<'_>> {
    let mut section = "";
    let lines = (1..).zip(manifest.lines());
    lines.filter_map(move |(line, text)| {
        let text = text.trim();
        let path = { text.split_once("path = \"") }.and_then(|(_, rest)| rest.split('"').next());
        if let Some(header) = text.strip_prefix('[') {
            section = header.split(']').next().unwrap_or(header);
            let name = { section.rsplit_once('.') }
                .filter(|(kind, _)| kind.ends_with("dependencies"))?
                .1;
            return Some(Used { line, name, path });
        }
        if !section.ends_with("dependencies") {
            return None;
        }
        let (key, _) = text.split_once('=')?;
        let name = key.split('.').next().unwrap_or(key).trim();
        (!name.starts_with('#')).then_some(Used { line, name, path })
    })
}

/// `path` from `directory` on, from the root.
fn resolve(directory: &str, path: &str) -> String {
    let mut parts: Vec<_> = directory.split_terminator('/').collect();
    for part in path.split_terminator('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "[workspace.dependencies]\n\
        flagpost = { path = \"kernel\" }\n\
        flagpost-hal = { path = \"hal\" }\n\
        flagpost-scc = { path = \"hal/scc\" }\n\
        clap = \"4\"\n";

    fn findings(manifest: &str) -> Vec<String> {
        Tree::findings(&[("Cargo.toml", ROOT), ("hal/sim/Cargo.toml", manifest)])
    }

    #[test]
    fn machines_may_use_machines_and_crates_of_others() {
        let manifest = "[package]\nname = \"flagpost\"\n\n[dependencies]\n\
            flagpost-hal.workspace = true\nflagpost-scc = { path = \"../scc\" }\n\
            clap = { workspace = true, optional = true }\n# flagpost.workspace = true\n\n\
            [[example]]\npath = \"../../examples/a.rs\"\n";
        assert!(findings(manifest).is_empty());
    }

    #[test]
    fn an_arrow_that_points_up_is_refused_however_it_is_written() {
        let up = "flagpost is in kernel/, above hal/: move what needs it up, or the contract down";
        for (manifest, line) in [
            ("[dependencies]\nflagpost.workspace = true\n", 2),
            ("[dependencies]\nflagpost = { workspace = true }\n", 2),
            (
                "[dependencies]\n\nflagpost = { path = \"../../kernel\" }\n",
                3,
            ),
            ("[dev-dependencies]\nflagpost.workspace = true\n", 2),
            ("[build-dependencies]\nflagpost.workspace = true\n", 2),
            (
                "[target.'cfg(unix)'.dependencies]\nflagpost.workspace = true\n",
                2,
            ),
            ("[dependencies.flagpost]\nworkspace = true\n", 1),
        ] {
            let expected = format!("hal/sim/Cargo.toml:{line}: {up}");
            assert_eq!(findings(manifest), [expected], "{manifest}");
        }
    }

    #[test]
    fn crates_above_may_use_each_other() {
        let manifest = "[dependencies]\nflagpost.workspace = true\n";
        let files = [("Cargo.toml", ROOT), ("linux/Cargo.toml", manifest)];
        assert!(Tree::findings(&files).is_empty());
    }
}
