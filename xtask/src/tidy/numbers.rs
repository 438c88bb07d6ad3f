//! Numbers beside a checked table are numbers of that table.
//!
//! `cargo xtask bench results` compares a `console` block with what its commands print; one that is
//! marked `host` it leaves alone. When a table changes, the sentences around it must change, too.
//! So in a section (from one heading to the next) with such a block, each number of the prose has
//! to stand in a block of that section, commands included. Words for ratios, such as *twice*, count
//! as numbers. Not looked at are code spans, links, and numbers inside of names (`H7`, `x86-64`).

use super::Found;
use super::patterns::{NUMBER, WHOLE_LINK};
use super::prose::{Kind, Prose};

/// What a fence says before a block that is compared.
const CHECKED: [&str; 2] = ["```console", "```console slow"];

/// From one heading to the next.
struct Section {
    /// The number of its first line.
    first: usize,
    /// A line for each line of the document; code, and what is masked, is left out.
    prose: String,
    /// The blocks that are compared.
    tables: String,
}

pub(super) fn check(prose: &Prose, found: &mut Found) {
    for section in sections(prose) {
        if section.tables.is_empty() {
            continue;
        }
        let known: Vec<_> = numbers(&section.tables).map(|(_, number)| number).collect();
        for (at, number) in numbers(&section.prose) {
            if !known.contains(&number) {
                let line = section.first + section.prose[..at].matches('\n').count();
                let what = format!(
                    "no checked table of this section has \"{number}\": write what the table has, \
                     or no number"
                );
                found.push((line, what));
            }
        }
    }
}

fn sections(prose: &Prose) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    let masked = prose.blocks.iter().flat_map(|block| block.masked.lines());
    let (mut inside, mut compared) = (false, false);
    for (line, masked) in prose.lines.iter().zip(masked) {
        let heading = line.kind == Kind::Text && line.text.starts_with('#');
        if heading || found.is_empty() {
            found.push(Section {
                first: line.number,
                prose: String::new(),
                tables: String::new(),
            });
        }
        let Some(section) = found.last_mut() else {
            continue;
        };
        section.prose.push_str(masked);
        section.prose.push('\n');
        if line.kind != Kind::Code {
            inside = false;
        } else if !inside || line.text.starts_with("```console") {
            // Blocks may follow each other without a line between them.
            inside = true;
            compared = CHECKED.contains(&line.text.as_str());
        } else if compared {
            section.tables.push_str(&line.text);
            section.tables.push('\n');
        }
    }
    found
}

/// Numbers and words for ratios: where, and what, in one way of writing.
fn numbers(text: &str) -> impl Iterator<Item = (usize, String)> {
    // Newlines stay, so that lines can be counted.
    let blank = |link: &regex::Captures<'_>| -> String {
        let bytes = link[0].bytes();
        bytes.map(|b| if b == b'\n' { '\n' } else { ' ' }).collect()
    };
    let text = WHOLE_LINK.replace_all(text, blank).into_owned();
    let hits: Vec<_> = NUMBER
        .captures_iter(&text)
        .filter_map(|hit| hit.get(1).or(hit.get(2)))
        .map(|hit| {
            let words: Vec<_> = hit.as_str().split_whitespace().collect();
            (hit.start(), words.join(" ").replace(',', "").to_lowercase())
        })
        .collect();
    hits.into_iter()
}
