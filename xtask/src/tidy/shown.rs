//! What `docs/sources.md` names is there, and no row is missing.
//!
//! | a code span like | names |
//! |---|---|
//! | `notify.kinds` | a conformance case; those of a family are read from its macro |
//! | `tests/host/rma.rs::native_atomics` | a function of a file |
//! | `linux/src/fabric.rs` | a file or directory; directories at its front may be left out |
//!
//! Rust files and commands that do not exist are found in every document (`citations`, `commands`).
//!
//! And of each row, as far as a program can see it:
//!
//! * What runs anywhere has in *shown by* something that runs: a case, a test or a command.
//! * *On* says no more than that: *all* needs a case, B and H a benchmark or a test of one, X an
//!   example.
//! * A call, or a name in a code span, of the *feature* stands in a file that the row names, or in
//!   its last column.

use std::collections::BTreeSet;

use super::patterns::{CALL, CASE, FAMILY, MEMBER, PREFIX, ROW, SPAN};
use super::prose::Prose;
use super::{Found, Tree, is_at};

/// The document.
pub(super) const FILE: &str = "docs/sources.md";

/// Where cases are listed.
const CASES: &str = "tests/src/cases/";

pub(super) fn check(tree: &Tree, prose: &Prose, found: &mut Found) {
    let (cases, mut rows) = (cases(tree), BTreeSet::new());
    for (line, span) in prose.all(&SPAN) {
        let name = &span[1];
        let why = if let Some((file, function)) = name.split_once("::") {
            let function = format!("fn {function}(");
            let has = tree.ending(file).any(|text| text.contains(&function));
            (!has).then(|| format!("{name}: the file has no such function"))
        } else if name.contains('/') {
            let there = tree.has(name) || tree.ending(name).next().is_some();
            let elsewhere = name.ends_with(".rs") || name.contains([' ', '*']);
            (!there && !elsewhere).then(|| format!("{name} is not in the repository"))
        } else {
            let case = CASE.is_match(name) && !cases.contains(name);
            case.then(|| format!("no case is named {name}"))
        };
        found.extend(why.map(|why| (line, why)));
    }
    for (line, row) in prose.all(&ROW) {
        let number: u32 = row[1].parse().unwrap_or(0);
        if !rows.insert(number) {
            found.push((line, format!("row {number} twice")));
        }
        let cells: Vec<_> = row[0].split('|').map(str::trim).collect();
        if let [_, _, feature, place, shown, on, rest, _] = cells[..] {
            let said = said(tree, feature, place, shown, rest);
            let said = said.chain(runs(place, shown, on));
            found.extend(said.map(|why| (line, format!("row {number}: {why}"))));
        }
    }
    let last = rows.last().copied().unwrap_or(0);
    let missing = (1..last).filter(|row| !rows.contains(row));
    found.extend(missing.map(|row| (1, format!("no row {row}"))));
}

fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Names in a row's feature that its files do not have, nor its last column.
fn said<'a>(
    tree: &'a Tree,
    feature: &'a str,
    place: &'a str,
    shown: &'a str,
    rest: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let files = spans(place).chain(spans(shown));
    let paths: Vec<_> = files.filter_map(|name| name.split("::").next()).collect();
    let named = |file: &str| {
        let inside = |path: &str| {
            file.strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        paths.iter().any(|&path| inside(path) || is_at(file, path))
    };
    let texts = tree.files.iter().filter(|(file, _)| named(file));
    let mut texts: Vec<_> = texts.map(|(_, text)| text.as_str()).collect();
    texts.extend([shown, rest]);
    let has = move |name: &str| texts.iter().any(|text| text.contains(name));
    let calls = CALL.find_iter(feature).map(|call| call.as_str());
    let names = spans(feature).chain(calls).filter(move |_| place != "no");
    let strangers = names.filter(move |name| !has(name) && !has(&name.replace('-', "_")));
    strangers.map(|name| format!("no file of the row has {name}"))
}

/// Where a row says that it runs, beside what shows it.
fn runs(place: &str, shown: &str, on: &str) -> impl Iterator<Item = String> {
    let mut named = spans(shown);
    let has = |parts: &[&str]| spans(shown).any(|name| parts.iter().any(|of| name.contains(of)));
    let case = named.any(|name| CASE.is_match(name)) || shown == "an assertion of the compiler";
    let host = ["bench host", "bench instructions", "host/lines.rs"];
    let says = |word| on.split(' ').any(|on| on == word);
    let example = place.contains("examples") || has(&["examples", "xtask app"]);
    let wrong = [
        (
            on.is_empty() || case || has(&["::", "cargo ", "tests/"]),
            "nothing in it runs",
        ),
        (!says("all") || case, "only a case runs on all"),
        (
            !says("B") || has(&["bench", "xtask figures", "xtask app"]),
            "B needs a benchmark",
        ),
        (!says("H") || has(&host), "H needs a benchmark of the host"),
        (!says("X") || example, "X needs an example"),
    ];
    let wrong = wrong.into_iter().filter(|(right, _)| !right);
    wrong.map(|(_, why)| format!("shown by: {why}"))
}

/// The names in the tables, and those that families make of a prefix.
fn cases(tree: &Tree) -> BTreeSet<String> {
    let files = tree
        .files
        .iter()
        .filter(|(file, _)| file.starts_with(CASES));
    let texts: Vec<_> = files.map(|(_, text)| text.as_str()).collect();
    let mut names = BTreeSet::new();
    for text in &texts {
        let quoted = text.split('"').skip(1).step_by(2);
        names.extend(quoted.filter(|name| CASE.is_match(name)).map(str::to_owned));
        for family in FAMILY.captures_iter(text) {
            let prefixes = texts.iter().flat_map(|text| PREFIX.captures_iter(text));
            for prefix in prefixes.filter(|prefix| prefix[1] == family[1]) {
                let members = MEMBER.captures_iter(&family[2]);
                names.extend(members.map(|of| format!("{}{}{}", &of[1], &prefix[2], &of[2])));
            }
        }
    }
    names
}
