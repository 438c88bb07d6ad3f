//! Lines of at most 100 columns; words to avoid on the pages that are read first and in the kernel;
//! headers of long modules; and `# Errors` sections that only point elsewhere.

use std::sync::LazyLock;

use regex::Regex;

use super::Found;
use super::patterns::{
    BEHIND, ELSEWHERE, ERRORS, HEADLESS, NEXT, OWN, SENTENCE, STRUCTURE, pattern,
};
use super::prose::{Kind, Line, Prose};

const COLUMNS: usize = 100;

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
    let words = |words: &str| pattern(&format!(r"(?i)\b({})\b", words.replace(' ', r"\s+")));
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

/// Lines without a blank at which they could be wrapped may be longer, such as addresses and link
/// definitions. In Markdown so may code blocks, and rows of tables, which cannot be wrapped. A row
/// in a comment has to be shorter, or its table becomes a list: sources are read as they are.
pub(super) fn width(prose: &Prose, found: &mut Found) {
    let breakable = |line: &&Line| {
        let text = line.text.trim_start_matches(['*', '-', ' ']);
        // Of a link definition only the key may have blanks.
        let target = text.split_once("]: ").filter(|_| text.starts_with('['));
        target.map_or(text, |(_, target)| target).contains(' ')
    };
    let long = prose
        .lines
        .iter()
        .filter(|line| line.columns > COLUMNS && !(prose.markdown && line.kind != Kind::Text));
    for line in long.filter(breakable) {
        let remedy = match line.kind {
            Kind::Table => "shorten the cells, or make a list",
            Kind::Text | Kind::Code => "wrap the line",
        };
        let columns = line.columns;
        let what = format!("{columns} columns, at most {COLUMNS}: {remedy}");
        found.push((line.number, what));
    }
}

pub(super) fn check(file: &str, prose: &Prose, found: &mut Found) {
    let below = |places: &[&str]| places.iter().any(|place| file.starts_with(place));
    let (page, source) = (below(&PAGES), below(&SOURCES) && !prose.markdown);
    // Of lines that a program prints: the text says it once.
    let twice = prose
        .lines
        .iter()
        .filter(|line| line.text.contains("rank rank"));
    found.extend(twice.map(|line| (line.number, "\"rank\" twice: write it once".to_owned())));
    let avoided = AVOIDED.iter().map(|(pattern, instead)| (pattern, *instead));
    let misused = MISUSED
        .iter()
        .map(|(pattern, instead)| (&***pattern, *instead));
    let misused = misused.filter(|_| source);
    for block in &prose.blocks {
        if page || source || file.ends_with("src/lib.rs") && block.mark == "//!" {
            for (pattern, instead) in avoided.clone().chain(misused.clone()) {
                let hits = pattern.captures_iter(&block.masked);
                for hit in hits.filter_map(|hit| hit.get(1)) {
                    let words: Vec<_> = hit.as_str().split_whitespace().collect();
                    let what = format!("\"{}\": write {instead}", words.join(" "));
                    found.push((block.line(hit.start()), what));
                }
            }
        }
        // A reader of one page does not have the other page.
        for start in ERRORS
            .find_iter(&block.text)
            .filter(|_| block.mark == "///")
        {
            let rest = &block.text[start.end()..];
            let section = NEXT.find(rest).map_or(rest, |end| &rest[..end.start()]);
            for hit in ELSEWHERE.find_iter(section) {
                let what = "\"As …\" in an # Errors section: say which errors there are";
                found.push((block.line(start.end() + hit.start()), what.to_owned()));
            }
        }
    }
}

/// A module of more lines has a header that begins with sentences.
const LONG: usize = 100;

/// The fewest sentences at the beginning of its header.
const SENTENCES: usize = 3;

/// A reader of a long module wants the idea before tables and lists.
pub(super) fn header(file: &str, lines: usize, prose: &Prose, found: &mut Found) {
    if !file.starts_with("kernel/") || !file.ends_with(".rs") || lines <= LONG {
        return;
    }
    let header = prose.blocks.iter().find(|block| block.mark == "//!");
    let text = header.map_or("", |block| &block.text);
    let opening = STRUCTURE.find(text).map_or(text, |at| &text[..at.start()]);
    // Code spans may have full stops.
    let spans = opening.split('`').step_by(2).collect::<Vec<_>>().join("_");
    let few = SENTENCE.find_iter(&spans).count();
    if few < SENTENCES {
        let what = format!(
            "{few} sentences before the first table, list or heading: say in at least {SENTENCES} \
             what the module does, and the idea"
        );
        found.push((1, what));
    }
}
