//! Numbers beside a checked table are numbers of that table.
//!
//! `cargo xtask bench results` compares a `console` block with what its commands print; one that is
//! marked `host` it leaves alone. When a table changes, the sentences around it must change, too.
//! So in a section (from one heading to the next) with such a block, each number of the prose has
//! to stand in a block of that section, commands included. Words for ratios, such as *twice*, count
//! as numbers. Not looked at are code spans, links, and numbers inside of names (`H7`, `x86-64`).

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

pub(super) fn check(prose: &Prose) -> Vec<(usize, String)> {
    let mut found = Vec::new();
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
    found
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

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    const TABLE: &str = "```console\n$ bench tree --cores 17\nhalf of a trip\n\
                         cores  notified  ratio\n   17      1444   0.72\n```\n";

    /// What is found beside the table: lines after it, and numbers.
    fn beside(prose: &str) -> Vec<String> {
        let text = format!("# A tree\n{TABLE}{prose}\n# Next\n77\n");
        let findings = Tree::findings(&[("docs/a.md", &text)]);
        let short = |finding: &String| {
            let (place, what) = finding.split_once(": ").expect("a place");
            let line: usize = place.rsplit(':').next().unwrap().parse().unwrap();
            format!("{} {}", line - 7, what.split('"').nth(1).expect("quoted"))
        };
        findings.iter().map(short).collect()
    }

    #[test]
    fn a_wrong_number_is_found() {
        assert_eq!(
            beside("Now 1,445 cycles;\nbefore 3.3 times, 72 %."),
            ["1 1445", "2 3.3", "2 72"]
        );
        assert_eq!(
            beside("0.7 and 17.5, 16-ary,\n| 5 | 17 |"),
            ["1 0.7", "1 16", "1 17.5", "2 5"]
        );
        assert_eq!(
            beside("Twice as fast, a\nthird of it, three\ntimes, tenfold"),
            ["1 a third", "1 twice", "2 three times", "3 tenfold"]
        );
    }

    #[test]
    fn numbers_of_the_table_and_of_its_command_pass() {
        assert_eq!(
            beside("With 17 cores 1,444 cycles (1444), 0.72; half a trip."),
            [""; 0]
        );
    }

    #[test]
    fn code_links_and_names_are_not_looked_at() {
        let prose = "`--lead 100`, [chapter 9\nof it](x.md#9), hardware H7, x86-64, P54C.";
        let x = ("docs/x.md", "# 9\n");
        let text = format!("# A\n{TABLE}{prose}\n");
        assert_eq!(Tree::findings(&[("docs/a.md", &text), x]), [""; 0]);
    }

    #[test]
    fn a_line_in_each_finding_and_sections_of_their_own() {
        let other =
            "Before 3.\n# A\n```console host\n$ b\n```\n55\n\n```sh\n44\n```\n## B\n".to_owned();
        let slow = TABLE.replace("console", "console slow");
        let both = format!("{other}{slow}```console host\n$ c\n99\n```\n99, 1444\n1446\n");
        let found = Tree::findings(&[("docs/a.md", &both)]);
        // The block of a host has `99`, right after one that is compared.
        let lines: Vec<_> = found.iter().map(|finding| &finding[..13]).collect();
        assert_eq!(lines, ["docs/a.md:22:", "docs/a.md:23:"]);
    }
}
