//! What a comment or a document cites is in the repository. (Of links lychee tells.)
//!
//! * A document that is named exists; `docs/` may be left out. So does a Rust file that is named;
//!   any directories at the front of its path may be left out.
//! * A key in brackets, such as `[NA]`, has a row in the references of `docs/hardware.md`:
//!   `| [NA] | … |`.
//! * A label that is cited after the name of that document, a letter and a number, is there in
//!   bold, or at the beginning of a heading.
//! * The names of five notebooks in capitals are no citation: these are not in the repository.

use std::collections::BTreeSet;

use regex::Regex;

use super::patterns::{
    DOCUMENT, KEY, KEY_ROW, LABEL, LABEL_BOLD, LABEL_HEADING, LABELS, NOTEBOOK, SOURCE,
};
use super::prose::Prose;
use super::{Found, Tree, is_at};

const HARDWARE: &str = "docs/hardware.md";

/// A page with this name is a site, not a file.
const SITE: &str = "docs.rs";

/// What `docs/hardware.md` defines.
#[derive(Debug, Default)]
pub(super) struct Hardware {
    keys: BTreeSet<String>,
    labels: BTreeSet<String>,
}

impl Hardware {
    pub(super) fn of(tree: &Tree) -> Self {
        let text = tree.files.get(HARDWARE).map_or("", |text| text);
        let all = |pattern: &Regex| -> BTreeSet<String> {
            let captures = pattern.captures_iter(text);
            captures.map(|found| found[1].to_owned()).collect()
        };
        Self {
            keys: all(&KEY_ROW),
            labels: &all(&LABEL_BOLD) | &all(&LABEL_HEADING),
        }
    }
}

pub(super) fn check(
    tree: &Tree,
    hardware: &Hardware,
    file: &str,
    prose: &Prose,
    found: &mut Found,
) {
    let directory = file.rsplit_once('/').map_or("", |(directory, _)| directory);
    for (line, path) in named(prose, &DOCUMENT) {
        let mut places = ["", "docs", directory].into_iter();
        if !places.any(|place| tree.has(&join(place, &path))) {
            let what = format!("{path} is not in the repository: name a document that is");
            found.push((line, what));
        }
    }
    for (line, hit) in prose.masked(&KEY) {
        let (key, link) = (&hit[1], hit.get(2).is_some());
        let heavy = |c: &char| c.is_ascii_uppercase() || c.is_ascii_digit();
        let is_key = key.contains(|c: char| c.is_ascii_uppercase())
            && key.chars().filter(heavy).count() >= 2;
        if is_key && !link && !hardware.keys.contains(key) {
            let what = format!(
                "[{key}] is not in the references of {HARDWARE}: add the row | [{key}] | … |"
            );
            found.push((line, what));
        }
    }
    for (line, hit) in prose.all(&LABELS) {
        for label in LABEL.find_iter(&hit[1]).map(|label| label.as_str()) {
            if !hardware.labels.contains(label) {
                let what = format!("{HARDWARE} has no label **{label}**: cite one that is there");
                found.push((line, what));
            }
        }
    }
    for (line, hit) in prose.masked(&NOTEBOOK) {
        // The name of a file is looked at above.
        if hit.get(2).is_none() {
            let name = &hit[1];
            let what = format!("{name} is no document of the repository: cite one below docs/");
            found.push((line, what));
        }
    }
}

/// Rust files that are named and do not exist.
pub(super) fn sources(tree: &Tree, prose: &Prose, found: &mut Found) {
    for (line, path) in named(prose, &SOURCE) {
        let whole = join("", &path);
        if whole != SITE && !tree.files.keys().any(|file| is_at(file, &whole)) {
            let what = format!("{path} is not in the repository: name a file that is");
            found.push((line, what));
        }
    }
}

/// Files that are named in the text, links and addresses left out: line and path.
fn named(prose: &Prose, mention: &Regex) -> Vec<(usize, String)> {
    let hits = prose.all(mention);
    hits.filter_map(|(line, hit)| Some((line, hit.get(1)?.as_str().to_owned())))
        .collect()
}

/// A path relative to a directory, without `.` and `..`; one that begins with `/` is relative to
/// the repository.
fn join(directory: &str, path: &str) -> String {
    let directory = if path.starts_with('/') { "" } else { directory };
    let mut parts = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}
