//! Commands that a text names are there.
//!
//! | of a code span or a line of a console, such as | must be there |
//! |---|---|
//! | `cargo xtask qemu` | a variant `Qemu` of xtask's commands |
//! | `cargo xtask bench micro overlap` | in a program, a variant `Micro`, or `"overlap"` |
//! | `flagpost-run --mem 1` | in a program, a field `mem`, or `"--mem"` |
//!
//! Values of flags are not looked at.

use std::collections::BTreeSet;

use super::Tree;
use super::patterns::{FIELD, QUOTED, SPAN, VARIANT};
use super::prose::{Kind, Prose};

/// Where xtask's commands are.
const COMMANDS: &str = "xtask/src/main.rs";
/// Where programs and their arguments are.
const PROGRAMS: [&str; 6] = [
    "bench/",
    "examples/",
    "linux/",
    "tests/",
    "tools/",
    "xtask/",
];

/// What the programs know.
pub(super) struct Known {
    commands: BTreeSet<String>,
    /// Words, and flags with their dashes.
    words: BTreeSet<String>,
}

impl Known {
    pub(super) fn of(tree: &Tree) -> Self {
        let help = || ["help", "--help"].map(str::to_owned).into();
        let (mut commands, mut words): (BTreeSet<String>, BTreeSet<String>) = (help(), help());
        for (file, text) in &tree.files {
            let program = PROGRAMS.iter().any(|folder| file.starts_with(folder));
            if !program || !file.ends_with(".rs") {
                continue;
            }
            let variants = VARIANT.captures_iter(text).map(|name| kebab(&name[1]));
            if file == COMMANDS {
                commands.extend(variants);
            } else {
                words.extend(variants);
            }
            words.extend(QUOTED.captures_iter(text).map(|word| word[1].to_owned()));
            let fields = FIELD.captures_iter(text);
            words.extend(fields.map(|field| format!("--{}", field[1].replace('_', "-"))));
        }
        Self { commands, words }
    }

    /// The first word of a command that no program knows.
    fn stranger<'a>(&self, command: &'a str) -> Option<&'a str> {
        let xtask = command.strip_prefix("cargo xtask ");
        let words = xtask.or_else(|| command.strip_prefix("flagpost-run "))?;
        let first = xtask.map_or(&self.words, |_| &self.commands);
        let (mut known, mut before) = (first, "");
        let words = words
            .split_whitespace()
            .take_while(|&word| word != "--" && word != "#");
        for word in words {
            let name = word.split('=').next().unwrap_or(word);
            let plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            // What follows a flag may be its value; a program's own words are not ours.
            let ours = name.starts_with("--") || xtask.is_some() && !before.starts_with('-');
            if plain && ours && !known.contains(name) {
                return Some(word);
            }
            (known, before) = (&self.words, word);
        }
        None
    }
}

/// A variant's name, as clap makes a command of it.
fn kebab(variant: &str) -> String {
    let mut name = String::new();
    for c in variant.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(c.to_ascii_lowercase());
    }
    name
}

pub(super) fn check(known: &Known, prose: &Prose) -> Vec<(usize, String)> {
    let spans = prose.blocks.iter().flat_map(|block| {
        let spans = SPAN.captures_iter(&block.text);
        spans.map(|span| (block.line(span.get_match().start()), span[1].to_owned()))
    });
    let code = prose.lines.iter().filter(|line| line.kind == Kind::Code);
    let code = code.map(|line| (line.number, line.text.trim_start_matches("$ ").to_owned()));
    let stranger = |(line, command): (usize, String)| {
        let word = known.stranger(&command)?;
        Some((line, format!("no program knows {word} of \"{command}\"")))
    };
    spans.chain(code).filter_map(stranger).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_words_and_flags_must_be_there() {
        let page = "`cargo xtask qemu --cores N`, `cargo xtask gone`, `cargo xtask bench micro ring`\n\
                    `cargo xtask bench macro`, `flagpost-run --mem 1 -n 4 program --gone`\n\
                    ```console\n$ cargo xtask qemu --cores macro --lost --to x -- --any\n```\n";
        let found = Tree::findings(&[
            ("a.md", page),
            (COMMANDS, "enum Commands {\n    Qemu(X),\n    Bench,\n}\n"),
            (
                "bench/a.rs",
                "enum A {\n    Micro(B),\n}\nconst C: D = [\"ring\", \"--to\"];\n",
            ),
            (
                "linux/a.rs",
                "struct A {\n    pub(crate) cores: u16,\n    mem: u16,\n}\n",
            ),
            (
                "kernel/a.rs",
                "struct A {\n    gone: u16,\n    lost: u16,\n}\n",
            ),
        ]);
        let expected = [
            "a.md:1: no program knows gone of \"cargo xtask gone\"",
            "a.md:2: no program knows --gone of \"flagpost-run --mem 1 -n 4 program --gone\"",
            "a.md:2: no program knows macro of \"cargo xtask bench macro\"",
            "a.md:4: no program knows --lost of \"cargo xtask qemu --cores macro --lost --to x -- --any\"",
        ];
        assert_eq!(found, expected);
    }
}
