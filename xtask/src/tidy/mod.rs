//! What `docs/style.md` asks of comments and documents, as far as a program can tell.
//!
//! | file | concern |
//! |---|---|
//! | `patterns` | the regular expressions of these |
//! | `prose` | finding comments in Rust, and prose in Markdown |
//! | `width` | lines of at most 100 columns |
//! | `words` | words to avoid, and `# Errors` sections that only point elsewhere |
//! | `citations` | links, files, keys and labels that must exist |
//! | `numbers` | numbers beside a checked table that are not in it |
//! | `commands` | commands, and their flags, that must exist |
//! | `shown` | files, cases and tests of `docs/sources.md` that must exist |
//! | `circles` | no more than two files of a crate need each other in a circle |
//!
//! The last one is about the code, not about language.
//!
//! Only files that git tracks are read.

mod circles;
mod citations;
mod commands;
mod numbers;
mod patterns;
mod prose;
mod shown;
mod width;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use prose::Prose;

/// A kind of check.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Rule {
    Width,
    Words,
    Errors,
    /// Links, documents, keys and labels.
    Citations,
    /// Rust files, and commands, that a text names.
    Sources,
    /// Numbers beside a checked table.
    Numbers,
}

/// Files and directories that a rule leaves out, with the reason. There are no other exemptions.
const EXEMPT: [(&str, Rule, &str); 2] = [
    ("docs/log/", Rule::Width, "notebooks and generated data"),
    (
        "docs/log/",
        Rule::Sources,
        "old notes name files of their time",
    ),
];

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    /// What is wrong, and what to do.
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, what } = self;
        write!(f, "{file}:{line}: {what}")
    }
}

/// The repository's files. Only Rust files and Markdown files have a text here.
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// The files that git tracks below `root`.
    ///
    /// # Errors
    /// If git cannot be run, or a file cannot be read.
    pub(crate) fn tracked(root: &Path) -> Result<Self> {
        let mut git = Command::new("git");
        let listed = git.args(["ls-files", "-z"]).current_dir(root).output();
        let listed = listed.context("cannot run git")?;
        if !listed.status.success() {
            bail!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
        }
        let mut files = BTreeMap::new();
        for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
            let path = root.join(name);
            let text = match prose::readable(name) {
                true if path.exists() => std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?,
                _ => String::new(),
            };
            if path.exists() {
                files.insert(name.to_owned(), text);
            }
        }
        Ok(Self { files })
    }

    /// Checks all files; the findings are in order of files and lines. And the largest circle of
    /// files.
    pub(crate) fn check(&self) -> (Vec<Finding>, Vec<String>) {
        let hardware = citations::Hardware::of(self);
        let known = commands::Known::of(self);
        let (mut found, circle) = circles::check(self);
        for (file, text) in &self.files {
            let Some(prose) = Prose::read(file, text) else {
                continue;
            };
            let mut run = |rule, lines: Vec<(usize, String)>| {
                if !exempt(file, rule) {
                    found.extend(lines.into_iter().map(|(line, what)| Finding {
                        file: file.clone(),
                        line,
                        what,
                    }));
                }
            };
            run(Rule::Width, width::check(&prose));
            run(Rule::Words, words::check(file, &prose));
            run(Rule::Errors, words::errors(&prose));
            run(
                Rule::Words,
                words::header(file, text.lines().count(), &prose),
            );
            run(
                Rule::Citations,
                citations::check(self, &hardware, file, &prose),
            );
            run(Rule::Sources, citations::sources(self, &prose));
            run(Rule::Sources, commands::check(&known, &prose));
            if file == shown::FILE {
                run(Rule::Citations, shown::check(self, &prose));
            }
            if prose.markdown {
                run(Rule::Numbers, numbers::check(&prose));
            }
        }
        found.sort();
        found.dedup();
        (found, circle)
    }

    /// Is this a file, or a directory with files?
    fn has(&self, path: &str) -> bool {
        let inside = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.keys().any(|file| file.starts_with(&inside))
    }

    /// The texts of the files of this path; directories at its front may be left out.
    fn ending(&self, path: &str) -> impl Iterator<Item = &str> {
        let files = self.files.iter().filter(move |(file, _)| is_at(file, path));
        files.map(|(_, text)| text.as_str())
    }

    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Self {
        let owned = |&(name, text): &(&str, &str)| (name.to_owned(), text.to_owned());
        Self {
            files: files.iter().map(owned).collect(),
        }
    }

    /// All findings, as they are printed.
    #[cfg(test)]
    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let (found, _) = Self::of(files).check();
        found.iter().map(Finding::to_string).collect()
    }
}

/// Is `path` the file's, or the end of the file's, with whole names?
fn is_at(file: &str, path: &str) -> bool {
    let front = file.strip_suffix(path);
    front.is_some_and(|front| front.is_empty() || front.ends_with('/'))
}

fn exempt(file: &str, rule: Rule) -> bool {
    let matches =
        |&(path, exempt, _): &(&str, Rule, &str)| exempt == rule && file.starts_with(path);
    EXEMPT.iter().any(matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exempt_files_are_not_checked_for_that_rule_only() {
        let line = "word ".repeat(25);
        let [log, notes] = ["docs/log/a.md", "docs/notes.md"];
        let found = Tree::findings(&[(log, &line), (notes, &line)]);
        assert_eq!(
            found,
            ["docs/notes.md:1: 125 columns of text, at most 100: wrap the line"]
        );
        let found = Tree::findings(&[(log, "See [this](gone.md).\n")]);
        assert_eq!(
            found,
            ["docs/log/a.md:1: the link's target gone.md does not exist: correct or remove it"]
        );
    }

    #[test]
    fn findings_are_sorted_and_told_once() {
        let found = Tree::findings(&[
            (
                "b.rs",
                "// See HARDWARE and HARDWARE.\nfn f() {}\n// See FABRIC.\n",
            ),
            ("a.rs", "fn f() {} // See DESIGN.\n"),
        ]);
        let places: Vec<_> = found.iter().map(|line| &line[..7]).collect();
        assert_eq!(places, ["a.rs:1:", "b.rs:1:", "b.rs:3:"]);
    }
}
