//! What a comment or a document cites is in the repository.
//!
//! * A link in Markdown leads to a file, a directory or a heading that exists.
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
    DEFINITION, DOCUMENT, KEY, KEY_ROW, LABEL, LABEL_BOLD, LABEL_HEADING, LABELS, LINK, NOTEBOOK,
    SOURCE,
};
use super::prose::Prose;
use super::{Tree, is_at};

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
) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    if prose.markdown {
        links(tree, file, prose, &mut found);
    }
    documents(tree, file, prose, &mut found);
    keys(hardware, prose, &mut found);
    labels(hardware, prose, &mut found);
    notebooks(prose, &mut found);
    found
}

fn links(tree: &Tree, file: &str, prose: &Prose, found: &mut Vec<(usize, String)>) {
    for pattern in [&LINK, &DEFINITION] {
        for block in &prose.blocks {
            for hit in pattern.captures_iter(&block.masked) {
                let (whole, target) = (hit.get_match(), &hit[1]);
                if let Err(why) = follow(tree, file, target) {
                    found.push((block.line(whole.start()), why));
                }
            }
        }
    }
}

/// Where a link leads to.
fn follow(tree: &Tree, file: &str, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = match path {
        "" => file.to_owned(),
        _ => join(directory(file), path),
    };
    if !tree.has(&path) {
        return Err(format!(
            "the link's target {target} does not exist: correct or remove it"
        ));
    }
    let known = heading.is_empty() || !path.ends_with(".md");
    if known || headings(&tree.files[&path]).contains(heading) {
        Ok(())
    } else {
        Err(format!(
            "{path} has no heading #{heading}: correct the link"
        ))
    }
}

/// The anchors of a document's headings, as GitHub makes them.
fn headings(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let Some(prose) = Prose::read(".md", text) else {
        return found;
    };
    for block in &prose.blocks {
        for line in block.text.lines().filter(|line| line.starts_with('#')) {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            // Of a link in a heading only the text counts.
            let title = LINK.replace_all(&title, "");
            let kept = title.chars().filter_map(|c| match c {
                ' ' => Some('-'),
                '-' | '_' => Some(c),
                _ if c.is_alphanumeric() => Some(c),
                _ => None,
            });
            let anchor: String = kept.collect();
            let again = (1..).map(|n| format!("{anchor}-{n}"));
            let mut free = std::iter::once(anchor.clone()).chain(again);
            found.extend(free.find(|anchor| !found.contains(anchor)));
        }
    }
    found
}

fn directory(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// A path relative to a directory, without `.` and `..`; one that begins with `/` is relative to
/// the repository.
fn join(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = match path.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => directory
            .split('/')
            .filter(|part| !part.is_empty())
            .collect(),
    };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Files that are named in the text, links and addresses left out: line and path.
fn named(prose: &Prose, mention: &Regex) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for block in &prose.blocks {
        for hit in mention.captures_iter(&block.text) {
            if let Some(path) = hit.get(1) {
                found.push((block.line(path.start()), path.as_str().to_owned()));
            }
        }
    }
    found
}

fn documents(tree: &Tree, file: &str, prose: &Prose, found: &mut Vec<(usize, String)>) {
    for (line, path) in named(prose, &DOCUMENT) {
        let places = ["", "docs", directory(file)];
        if !places.iter().any(|place| tree.has(&join(place, &path))) {
            let what = format!("{path} is not in the repository: name a document that is");
            found.push((line, what));
        }
    }
}

/// Rust files that are named and do not exist.
pub(super) fn sources(tree: &Tree, prose: &Prose) -> Vec<(usize, String)> {
    let mut found = named(prose, &SOURCE);
    found.retain(|(_, path)| {
        let path = join("", path);
        path != SITE && !tree.files.keys().any(|file| is_at(file, &path))
    });
    for (_, what) in &mut found {
        *what = format!("{what} is not in the repository: name a file that is");
    }
    found
}

fn keys(hardware: &Hardware, prose: &Prose, found: &mut Vec<(usize, String)>) {
    for block in &prose.blocks {
        for hit in KEY.captures_iter(&block.masked) {
            let (key, link) = (&hit[1], hit.get(2).is_some());
            let heavy = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
            let is_key = key.contains(|c: char| c.is_ascii_uppercase())
                && key.chars().filter(|&c| heavy(c)).count() >= 2;
            if is_key && !link && !hardware.keys.contains(key) {
                let what = format!(
                    "[{key}] is not in the references of {HARDWARE}: add the row | [{key}] | … |"
                );
                found.push((block.line(hit.get_match().start()), what));
            }
        }
    }
}

fn labels(hardware: &Hardware, prose: &Prose, found: &mut Vec<(usize, String)>) {
    for block in &prose.blocks {
        for hit in LABELS.captures_iter(&block.text) {
            let line = block.line(hit.get_match().start());
            for label in LABEL.find_iter(&hit[1]).map(|label| label.as_str()) {
                if !hardware.labels.contains(label) {
                    let what =
                        format!("{HARDWARE} has no label **{label}**: cite one that is there");
                    found.push((line, what));
                }
            }
        }
    }
}

fn notebooks(prose: &Prose, found: &mut Vec<(usize, String)>) {
    for block in &prose.blocks {
        for hit in NOTEBOOK.find_iter(&block.masked) {
            // The name of a file is looked at above.
            if block.masked[hit.end()..].starts_with(".md") {
                continue;
            }
            let name = hit.as_str();
            let what = format!("{name} is no document of the repository: cite one below docs/");
            found.push((block.line(hit.start()), what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: (&str, &str) = (
        HARDWARE,
        "# Facts\n## A5. Times\n* **H7** No protection.\n## References\n\n| key | source |\n|---|---|\n| [NA] | a paper |\n",
    );

    fn findings(file: &str, text: &str) -> Vec<String> {
        let others = [
            DOCUMENT,
            ("kernel/src/epoch/mod.rs", ""),
            ("docs/x.md", "# A `b`, c\n"),
        ];
        Tree::findings(&[&others[..], &[(file, text)]].concat())
    }

    #[test]
    fn a_dangling_key_is_found() {
        assert_eq!(
            findings(
                "a.rs",
                "//! [NA] IV, [GONE, recalled], [Lines], [`GONE`], [NO](self), [1]\n"
            ),
            [
                "a.rs:1: [GONE] is not in the references of docs/hardware.md: add the row | [GONE] | … |"
            ]
        );
    }

    #[test]
    fn a_dangling_label_is_found() {
        let text = "// See hardware.md A5 and H7; docs/hardware.md\n// A5, B1.\nfn f() {}\n// `hardware.md`, H8: no.\n";
        assert_eq!(
            findings("a.rs", text),
            [
                "a.rs:1: docs/hardware.md has no label **B1**: cite one that is there",
                "a.rs:4: docs/hardware.md has no label **H8**: cite one that is there",
            ]
        );
    }

    #[test]
    fn names_of_notebooks_are_found() {
        assert_eq!(
            findings(
                "a.rs",
                "// (HARDWARE A5), `HARDWARE`, HARDWARE_A, HARDWARE.md\n"
            ),
            [
                "a.rs:1: HARDWARE is no document of the repository: cite one below docs/",
                "a.rs:1: HARDWARE.md is not in the repository: name a document that is",
            ]
        );
    }

    #[test]
    fn files_that_are_not_there_are_found() {
        let text = "// docs/x.md, x.md, `epoch/mod.rs`, https://docs.rs/a.rs, docs.rs,\n// docs/gone.md or och/mod.rs\n";
        assert_eq!(
            findings("a.rs", text),
            [
                "a.rs:2: docs/gone.md is not in the repository: name a document that is",
                "a.rs:2: och/mod.rs is not in the repository: name a file that is",
            ]
        );
    }

    #[test]
    fn dead_links_are_found() {
        let text = "[a](x.md#a-b-c) [`b`](../kernel/src) [c](#here) [d](https://a.b)\n\
                    [e](gone.md) [f](x.md#gone)\n# Here\n[g]: ../gone\n```\n[h](gone)\n```\n";
        assert_eq!(
            findings("docs/y.md", text),
            [
                "docs/y.md:2: docs/x.md has no heading #gone: correct the link",
                "docs/y.md:2: the link's target gone.md does not exist: correct or remove it",
                "docs/y.md:4: the link's target ../gone does not exist: correct or remove it",
            ]
        );
    }

    #[test]
    fn equal_headings_have_numbers() {
        let anchors = headings("# A b\n## A b\n# [A] (b)_-\n# [x](y.md)\n");
        let anchors: Vec<_> = anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["a-b", "a-b-1", "a-b_-", "x"]);
    }
}
