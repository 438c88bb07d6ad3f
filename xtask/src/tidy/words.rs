//! Words to avoid on the pages that are read first, and `# Errors` sections that only point
//! elsewhere.

use std::sync::LazyLock;

use regex::Regex;

use super::patterns::{ELSEWHERE, ERRORS, NEXT, pattern};
use super::prose::Prose;

/// Words to avoid, and what to write instead.
const AVOID: [(&str, &str); 7] = [
    ("at once", "\"immediately\" or \"in one step\""),
    ("goes on", "\"continues\""),
    ("go on", "\"continue\""),
    ("whoever", "\"the rank that\""),
    ("so many", "the number, such as \"`n` lines\""),
    ("comes to", "\"reaches\""),
    ("under way", "\"in flight\""),
];

/// The pages that are read first, and sources of which all comments count. Of other Rust files the
/// crates' front pages count (`//!` in `lib.rs`).
const PAGES: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/guide/",
    "docs/results.md",
    "docs/verification.md",
    "hal/src/",
];

static AVOIDED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let words = |words: &str| pattern(&format!(r"(?i)\b{}\b", words.replace(' ', r"\s+")));
    let all = AVOID.iter();
    all.map(|&(avoid, instead)| (words(avoid), instead))
        .collect()
});

pub(super) fn check(file: &str, prose: &Prose) -> Vec<(usize, String)> {
    let page = PAGES.iter().any(|page| file.starts_with(page));
    let mut found = Vec::new();
    // Of lines that a program prints: the text says it once.
    for line in prose
        .lines
        .iter()
        .filter(|line| line.text.contains("rank rank"))
    {
        found.push((line.number, "\"rank\" twice: write it once".to_owned()));
    }
    for (pattern, instead) in &*AVOIDED {
        for block in &prose.blocks {
            if !(page || file.ends_with("src/lib.rs") && block.mark == "//!") {
                continue;
            }
            for hit in pattern.find_iter(&block.masked) {
                let words = hit.as_str().split_whitespace().collect::<Vec<_>>();
                let what = format!("\"{}\": write {instead}", words.join(" "));
                found.push((block.line(hit.start()), what));
            }
        }
    }
    found
}

/// `# Errors` says which errors there are. A reader of one page does not have the other page.
pub(super) fn errors(prose: &Prose) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for block in prose.blocks.iter().filter(|block| block.mark == "///") {
        for start in ERRORS.find_iter(&block.text) {
            let rest = &block.text[start.end()..];
            let section = NEXT.find(rest).map_or(rest, |end| &rest[..end.start()]);
            for hit in ELSEWHERE.find_iter(section) {
                let what = "\"As …\" in an # Errors section: say which errors there are";
                found.push((block.line(start.end() + hit.start()), what.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    #[test]
    fn words_to_avoid_are_found_on_front_pages() {
        let text = "Call it at\nonce. `at once` is code. Whoever looks goes on.\n";
        assert_eq!(
            Tree::findings(&[("README.md", text), ("docs/other.md", text)]),
            [
                "README.md:1: \"at once\": write \"immediately\" or \"in one step\"",
                "README.md:2: \"Whoever\": write \"the rank that\"",
                "README.md:2: \"goes on\": write \"continues\"",
            ]
        );
        let source = "//! So many.\n\n/// So many.\nfn f() {}\n";
        assert_eq!(
            Tree::findings(&[("kernel/src/lib.rs", source), ("kernel/src/a.rs", source)]),
            ["kernel/src/lib.rs:1: \"So many\": write the number, such as \"`n` lines\""]
        );
        let every = Tree::findings(&[("hal/src/a.rs", source)]);
        assert_eq!(every.len(), 2, "{every:?}");
    }

    #[test]
    fn a_rank_is_named_once() {
        let text = "```text\nrank 0 waits for\nrank rank 3\n```\n";
        assert_eq!(
            Tree::findings(&[("docs/other.md", text)]),
            ["docs/other.md:3: \"rank\" twice: write it once"]
        );
    }

    #[test]
    fn errors_that_point_elsewhere_are_found() {
        let source = "/// As there it is fine.\n///\n/// # Errors\n/// As there.\nfn f() {}\n\
                      /// # Errors\n/// [`A`]. As\n/// [`B::c`]; more.\n\
                      /// # Panics\n/// As [`d`].\nfn g() {}\n";
        let what = "\"As …\" in an # Errors section: say which errors there are";
        assert_eq!(
            Tree::findings(&[("a.rs", source)]),
            [format!("a.rs:4: {what}"), format!("a.rs:7: {what}")]
        );
    }
}
