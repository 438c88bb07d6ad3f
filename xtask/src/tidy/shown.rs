//! What `docs/sources.md` names is there, and no row is missing.
//!
//! | a code span like | names |
//! |---|---|
//! | `notify.kinds` | a conformance case; those of a family are read from its macro |
//! | `tests/host/told.rs::native_atomics_tell` | a function of a file |
//! | `linux/src/fabric.rs` | a file or directory; directories at its front may be left out |
//!
//! Rust files that do not exist are found in every document (`citations`).

use std::collections::BTreeSet;

use super::Tree;
use super::patterns::{CASE, FAMILY, MEMBER, PREFIX, ROW, SPAN};
use super::prose::Prose;

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
            if !rows.insert(number) {
                found.push((block.line(hit.start()), format!("row {number} twice")));
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
                        | 3 | `a.gone`, `b.two.z`, `cargo xtask gone/it` |\n";
        let found = Tree::findings(&[
            (FILE, document),
            ("bench/x/raw.c", ""),
            ("tests/host/told.rs", "fn tells() {}\n"),
            (
                "tests/src/cases/families.rs",
                "macro_rules! bs {\n    () => { concat!(\"b.\", $prefix, \"x\"), concat!(\"b.\", $prefix, \"y\") }\n}\n",
            ),
            (
                "tests/src/cases/tables/t.rs",
                "const A: X = case(\"a.one\", 1);\nconst B: X = bs!(\"two.\", B);\nconst C: X = bs!(\"\", C);\n",
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
}
