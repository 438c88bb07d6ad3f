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

use super::patterns::{FIELD, QUOTED, SPAN, VARIANT};
use super::prose::{Kind, Prose};
use super::{Found, Tree};

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

pub(super) fn check(known: &Known, prose: &Prose, found: &mut Found) {
    let spans = prose
        .all(&SPAN)
        .map(|(line, span)| (line, span[1].to_owned()));
    let code = prose.lines.iter().filter(|line| line.kind == Kind::Code);
    let code = code.map(|line| (line.number, line.text.trim_start_matches("$ ").to_owned()));
    for (line, command) in spans.chain(code) {
        let stranger = known.stranger(&command);
        found.extend(
            stranger.map(|word| (line, format!("no program knows {word} of \"{command}\""))),
        );
    }
}
