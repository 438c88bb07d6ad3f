//! What `docs/style.md` asks of comments and documents, as far as a program can tell.
//!
//! | file | concern |
//! |---|---|
//! | `patterns` | the regular expressions of these |
//! | `prose` | finding comments in Rust, and prose in Markdown |
//! | `words` | lines of at most 100 columns, words to avoid, headers, `# Errors` sections |
//! | `citations` | documents, Rust files, keys and labels that must exist |
//! | `numbers` | numbers beside a checked table that are not in it |
//! | `commands` | commands, and their flags, that must exist |
//! | `shown` | files, cases and tests of `docs/sources.md` that must exist |
//! | `circles` | no more than two files of a crate need each other in a circle |
//!
//! The last one is about the code, not about language. Only files that git tracks are read.

mod circles;
mod citations;
mod commands;
mod numbers;
mod patterns;
mod prose;
mod shown;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use prose::Prose;

/// Notebooks and generated data may be wide, and name files of their time. There are no other
/// exemptions.
const LOG: &str = "docs/log/";

/// One thing that is wrong: its file and line, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding(String, usize, String);

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(file, line, what) = self;
        write!(f, "{file}:{line}: {what}")
    }
}

/// What is wrong in a file: line, and what to do.
type Found = Vec<(usize, String)>;

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
            if !path.exists() {
                continue;
            }
            let text = match name.ends_with(".rs") || name.ends_with(".md") {
                true => std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?,
                false => String::new(),
            };
            files.insert(name.to_owned(), text);
        }
        Ok(Self { files })
    }

    /// The names of the Markdown files.
    pub(crate) fn documents(&self) -> impl Iterator<Item = &String> {
        self.files.keys().filter(|file| file.ends_with(".md"))
    }

    /// Checks all files; the findings are in order of files and lines. And the largest circle of
    /// files.
    pub(crate) fn check(&self) -> (Vec<Finding>, Vec<String>) {
        let hardware = citations::Hardware::of(self);
        let known = commands::Known::of(self);
        let (mut all, circle) = circles::check(self);
        for (file, text) in &self.files {
            let Some(prose) = Prose::read(file, text) else {
                continue;
            };
            let mut found = Found::new();
            words::check(file, &prose, &mut found);
            words::header(file, text.lines().count(), &prose, &mut found);
            citations::check(self, &hardware, file, &prose, &mut found);
            if !file.starts_with(LOG) {
                words::width(&prose, &mut found);
                citations::sources(self, &prose, &mut found);
                commands::check(&known, &prose, &mut found);
            }
            if file == shown::FILE {
                shown::check(self, &prose, &mut found);
            }
            if prose.markdown {
                numbers::check(&prose, &mut found);
            }
            let found = found.into_iter();
            all.extend(found.map(|(line, what)| Finding(file.clone(), line, what)));
        }
        all.sort();
        all.dedup();
        (all, circle)
    }

    /// Is this a file, or a directory with files?
    fn has(&self, path: &str) -> bool {
        let inside = format!("{}/", path.trim_end_matches('/'));
        self.files.contains_key(path) || self.files.keys().any(|file| file.starts_with(&inside))
    }

    /// The texts of the files of this path; directories at its front may be left out.
    fn ending(&self, path: &str) -> impl Iterator<Item = &str> {
        let files = self.files.iter().filter(move |(file, _)| is_at(file, path));
        files.map(|(_, text)| text.as_str())
    }
}

/// Is `path` the file's, or the end of the file's, with whole names?
fn is_at(file: &str, path: &str) -> bool {
    let front = file.strip_suffix(path);
    front.is_some_and(|front| front.is_empty() || front.ends_with('/'))
}
