//! Words to avoid on the pages that are read first and in the kernel, and `# Errors` sections that
//! only point elsewhere.

use std::sync::LazyLock;

use regex::Regex;

use super::patterns::{
    BEHIND, ELSEWHERE, ERRORS, HEADLESS, NEXT, OWN, SENTENCE, STRUCTURE, pattern,
};
use super::prose::Prose;

/// Words to avoid, and what to write instead.
const AVOID: [(&str, &str); 8] = [
    ("at once", "\"immediately\" or \"in one step\""),
    ("goes on", "\"continues\""),
    ("go on", "\"continue\""),
    ("whoever", "\"the rank that\""),
    ("so many", "the number, such as \"`n` lines\""),
    ("comes to", "\"reaches\""),
    ("come to", "\"reach\""),
    ("under way", "\"in flight\""),
];

/// The pages that are read first. Of Rust files the crates' front pages count, too (`//!` in
/// `lib.rs`).
const PAGES: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/guide/",
    "docs/results.md",
    "docs/verification.md",
];

/// Sources of which all comments count.
const SOURCES: [&str; 2] = ["kernel/", "hal/src/"];

static AVOIDED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let words = |words: &str| pattern(&format!(r"(?i)\b{}\b", words.replace(' ', r"\s+")));
    let all = AVOID.iter();
    all.map(|&(avoid, instead)| (words(avoid), instead))
        .collect()
});

/// Of these the first group is what is wrong, and a match without it is right.
static MISUSED: [(&LazyLock<Regex>, &str); 3] = [
    (
        &BEHIND,
        "\"after\", or of a place \"lies behind\" or \"stands behind\"",
    ),
    (&OWN, "whose, such as \"its own\", or \"this rank's\""),
    (&HEADLESS, "the noun, such as \"the rank that\""),
];

pub(super) fn check(file: &str, prose: &Prose) -> Vec<(usize, String)> {
    let below = |places: &[&str]| places.iter().any(|place| file.starts_with(place));
    let (page, source) = (below(&PAGES), below(&SOURCES) && !prose.markdown);
    let mut found = Vec::new();
    // Of lines that a program prints: the text says it once.
    for line in prose
        .lines
        .iter()
        .filter(|line| line.text.contains("rank rank"))
    {
        found.push((line.number, "\"rank\" twice: write it once".to_owned()));
    }
    for block in &prose.blocks {
        let mut add = |at, words: &str, instead: &str| {
            let words = words.split_whitespace().collect::<Vec<_>>();
            let what = format!("\"{}\": write {instead}", words.join(" "));
            found.push((block.line(at), what));
        };
        if page || source || file.ends_with("src/lib.rs") && block.mark == "//!" {
            for (pattern, instead) in &*AVOIDED {
                for hit in pattern.find_iter(&block.masked) {
                    add(hit.start(), hit.as_str(), instead);
                }
            }
        }
        if source {
            for (pattern, instead) in MISUSED {
                let hits = pattern.captures_iter(&block.masked);
                for hit in hits.filter_map(|hit| hit.get(1)) {
                    add(hit.start(), hit.as_str(), instead);
                }
            }
        }
    }
    found
}

/// A module of more lines has a header that begins with sentences.
const LONG: usize = 100;

/// The fewest sentences at the beginning of its header.
const SENTENCES: usize = 3;

/// A reader of a long module wants the idea before tables and lists.
pub(super) fn header(file: &str, lines: usize, prose: &Prose) -> Vec<(usize, String)> {
    if !file.starts_with("kernel/") || lines <= LONG {
        return Vec::new();
    }
    let header = prose.blocks.iter().find(|block| block.mark == "//!");
    let text = header.map_or("", |block| &block.text);
    let opening = STRUCTURE.find(text).map_or(text, |at| &text[..at.start()]);
    // Code spans may have full stops.
    let spans = opening.split('`').step_by(2).collect::<Vec<_>>().join("_");
    match SENTENCE.find_iter(&spans).count() {
        few @ ..SENTENCES => {
            let what = format!(
                "{few} sentences before the first table, list or heading: say in at least \
                 {SENTENCES} what the module does, and the idea"
            );
            vec![(1, what)]
        }
        _ => Vec::new(),
    }
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
            Tree::findings(&[("linux/src/lib.rs", source), ("linux/src/a.rs", source)]),
            ["linux/src/lib.rs:1: \"So many\": write the number, such as \"`n` lines\""]
        );
    }

    /// Words that are found in a comment of the kernel.
    fn kernel(comment: &str) -> Vec<String> {
        let found = Tree::findings(&[
            ("kernel/network/src/a.rs", comment),
            ("hal/src/a.rs", comment),
            ("linux/src/a.rs", comment),
        ]);
        let (hal, rest): (Vec<_>, Vec<_>) = found
            .iter()
            .partition(|finding| finding.starts_with("hal/src/a.rs:"));
        let words = |finding: &&String| {
            let place = finding.split_once(".rs:").expect("a Rust file").1;
            place.split('"').take(2).collect::<String>()
        };
        assert_eq!(hal.len(), rest.len(), "{found:?}");
        rest.iter().map(words).collect()
    }

    #[test]
    fn all_comments_of_the_kernel_are_read() {
        let source = "//! So many.\n\n/// A unit.\nfn f() {\n    // It goes\n    // on.\n}\n";
        assert_eq!(kernel(source), ["1: So many", "5: goes on"]);
        assert_eq!(
            kernel("// ```text\n// Who\n// ```\nf(\"at once\");\n"),
            [""; 0]
        );
    }

    #[test]
    fn reasons_of_mutation_points_are_read() {
        let points = "point!(DRAIN \"it goes on behind it\": \"a\", own());\n\
                      order!(\"all at once\":\n\"b\", f(), g());\n\
                      lock(to, site!(WAIT\n    \"Who has it\": \"c\"));\n";
        assert_eq!(
            kernel(points),
            ["1: behind", "1: goes on", "2: at once", "5: Who"]
        );
        let long = format!("point!(WAIT \"{}it\":\n\"a\", f());\n", "word ".repeat(20));
        assert_eq!(
            Tree::findings(&[("kernel/src/a.rs", &long)]),
            ["kernel/src/a.rs:1: 117 columns with a comment, at most 100: wrap the line"]
        );
    }

    #[test]
    fn behind_is_for_places() {
        assert_eq!(
            kernel("// Stored\n// behind a drain.\n// Behind it.\n"),
            ["2: behind", "3: Behind"]
        );
        assert_eq!(
            kernel("// The bell lies behind the ring; a rank that stands\n// behind another.\n"),
            [""; 0]
        );
    }

    #[test]
    fn own_names_whose() {
        assert_eq!(
            kernel("// The own ring, own\n// bells. Own memory; [own](A::Own) ones.\n"),
            ["1: own", "2: Own", "2: own"]
        );
        assert_eq!(
            kernel(
                "// Its own ring, the ranks' own\n// bells, `a`'s own, a rank's\n\
                 // [own](A::Own) one, of their own, owner, owned.\n"
            ),
            [""; 0]
        );
    }

    #[test]
    fn a_clause_has_a_noun() {
        assert_eq!(
            kernel("// # What there is\n// Whether it has. Who takes it\n"),
            ["1: What", "2: Whether", "2: Who"]
        );
        assert_eq!(kernel("// Says what, whether and who.\n"), [""; 0]);
    }

    #[test]
    fn a_long_module_begins_with_sentences() {
        let code = "fn f() {}\n".repeat(101);
        let found =
            |file: &str, header: &str| Tree::findings(&[(file, &format!("{header}{code}"))]);
        let few = |found: Vec<String>| {
            let [finding] = &found[..] else {
                panic!("{found:?}");
            };
            finding.starts_with("kernel/a.rs:1: ") && finding.contains(" sentences before")
        };
        assert!(few(found("kernel/a.rs", "")));
        assert!(few(found(
            "kernel/a.rs",
            "//! One. Two `a. b. c.`\n//! # Three. Four.\n"
        )));
        assert!(few(found(
            "kernel/a.rs",
            "//! One. Two.\n//!\n//! * Three. Four.\n"
        )));
        assert!(few(found(
            "kernel/a.rs",
            "//! One. Two.\n//! | Three. | Four. |\n"
        )));
        let three = "//! One\n//! is. [`Two.`] is. Three (and four).\n//! # Five\n";
        assert_eq!(found("kernel/a.rs", three), [""; 0]);
        assert_eq!(found("linux/a.rs", ""), [""; 0]);
        // A short module needs no more than a line.
        assert_eq!(
            Tree::findings(&[("kernel/a.rs", "//! One.\nfn f() {}\n")]),
            [""; 0]
        );
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
