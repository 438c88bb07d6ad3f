//! What `docs/sources.md` names is there, and no row is missing.
//!
//! | a code span like | names |
//! |---|---|
//! | `notify.kinds` | a conformance case; those of a family are read from its macro |
//! | `tests/host/told.rs::native_atomics_tell` | a function of a file |
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
use super::{Tree, is_at};

/// The document.
pub(super) const FILE: &str = "docs/sources.md";

/// Where cases are listed.
const CASES: &str = "tests/src/cases/";

pub(super) fn check(tree: &Tree, prose: &Prose) -> Vec<(usize, String)> {
    let cases = cases(tree);
    let (mut found, mut rows) = (Vec::new(), BTreeSet::new());
    for block in &prose.blocks {
        for span in SPAN.captures_iter(&block.text) {
            let (hit, name) = (span.get_match(), &span[1]);
            let why = if let Some((file, function)) = name.split_once("::") {
                let has = tree.ending(file).any(|text| is_in(text, function));
                (!has).then(|| format!("{name}: the file has no such function"))
            } else if name.contains('/') {
                let there = tree.has(name) || tree.ending(name).next().is_some();
                let elsewhere = name.ends_with(".rs") || name.contains([' ', '*']);
                (!there && !elsewhere).then(|| format!("{name} is not in the repository"))
            } else {
                let case = CASE.is_match(name) && !cases.contains(name);
                case.then(|| format!("no case is named {name}"))
            };
            found.extend(why.map(|why| (block.line(hit.start()), why)));
        }
        for row in ROW.captures_iter(&block.text) {
            let (hit, number) = (row.get_match(), row[1].parse().unwrap_or(0));
            let line = block.line(hit.start());
            if !rows.insert(number) {
                found.push((line, format!("row {number} twice")));
            }
            let row = block.text[hit.start()..].lines().next().unwrap_or_default();
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            if let [_, _, feature, place, shown, on, rest, _] = cells[..] {
                let said = said(tree, feature, place, shown, rest);
                let said = said.chain(runs(place, shown, on));
                found.extend(said.map(|why| (line, format!("row {number}: {why}"))));
            }
        }
    }
    let last = rows.last().copied().unwrap_or(0);
    let missing = (1..last).filter(|row: &u32| !rows.contains(row));
    found.extend(missing.map(|row| (1, format!("no row {row}"))));
    found
}

fn is_in(text: &str, function: &str) -> bool {
    text.contains(&format!("fn {function}("))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_cases_functions_and_files_must_be_there() {
        let document = "| row |\n|---|\n| 1 | `a.one`, `b.two.x`, `b.y` |\n\
                        | 3 | `host/told.rs::tells` `told.rs::gone` `tests` `x/raw.c` `x/gone.c` |\n\
                        | 3 | `a.gone`, `b.two.z`, `cargo run gone/it` |\n";
        let found = Tree::findings(&[
            (FILE, document),
            ("bench/x/raw.c", ""),
            ("tests/host/told.rs", "fn tells() {}\n"),
            (
                "tests/src/cases/families.rs",
                "macro_rules! bs {\n    () => { [\"b.\" $prefix \"x\", 1] [\"b.\" $prefix \"y\", 1] }\n}\n",
            ),
            (
                "tests/src/cases/tables/t.rs",
                "const A: X = cases! { [\"a.one\", 1] };\nconst B: X = bs!(\"two.\", B);\nconst C: X = bs!(\"\", C);\n",
            ),
        ]);
        let expected = [
            "docs/sources.md:1: no row 2",
            "docs/sources.md:4: told.rs::gone: the file has no such function",
            "docs/sources.md:4: x/gone.c is not in the repository",
            "docs/sources.md:5: no case is named a.gone",
            "docs/sources.md:5: no case is named b.two.z",
            "docs/sources.md:5: row 3 twice",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_row_runs_where_it_says_and_names_what_its_files_have() {
        let document = "| 1 | `heap`, a_b, c_d | `a/x.rs` | `a/x.rs::f` | S | `c_d` is new |\n\
                        | 2 | `heap-less` | `a/x.rs` | | | |\n\
                        | 3 | a | `a/x.rs` | `a/x.rs` | S | |\n\
                        | 4 | a | `a/x.rs` | `a/x.rs::f` | all B H X | |\n\
                        | 5 | a_gone | no | | | |\n\
                        | 6 | a | `examples` | `a.b`, `cargo xtask bench host` | all B H X | |\n";
        let found = Tree::findings(&[
            (FILE, document),
            ("a/x.rs", "fn f() {}\n#[doc = heap_less]\n"),
            ("tests/src/cases/t.rs", "const A: X = cases! { [\"a.b\", 1] };\n"),
            ("xtask/src/main.rs", "enum Commands {\n    Bench,\n}\n"),
            ("bench/a.rs", "const A: B = \"host\";\n"),
            ("examples/a.rs", ""),
        ]);
        let expected = [
            "docs/sources.md:1: row 1: no file of the row has a_b",
            "docs/sources.md:3: row 3: shown by: nothing in it runs",
            "docs/sources.md:4: row 4: shown by: B needs a benchmark",
            "docs/sources.md:4: row 4: shown by: H needs a benchmark of the host",
            "docs/sources.md:4: row 4: shown by: X needs an example",
            "docs/sources.md:4: row 4: shown by: only a case runs on all",
        ];
        assert_eq!(found, expected);
    }
}
