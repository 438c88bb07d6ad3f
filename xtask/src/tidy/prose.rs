//! Finding what people read: comments in Rust files, and prose in Markdown files.
//!
//! Each file becomes *lines*, for rules about lines, and *blocks*, for rules about text. A block is
//! a run of comment lines of one kind, the reason of a mutation point, or a whole Markdown
//! document. Its text has no comment marks, and its code blocks are empty lines, so that line
//! numbers still count.

use regex::{Captures, Regex};

use super::patterns::{CODE, REASON, TOKEN};

/// What a line is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Table,
    Code,
}

/// A line that people read.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: usize,
    /// Columns of the whole line, code before a comment included.
    pub(super) columns: usize,
    /// Without indentation and comment marks.
    pub(super) text: String,
    pub(super) kind: Kind,
}

/// Text that belongs together.
#[derive(Debug)]
pub(super) struct Block {
    /// The number of the first line.
    first: usize,
    /// `//`, `///` or `//!`; a quote for a reason; empty in Markdown.
    pub(super) mark: &'static str,
    pub(super) text: String,
    /// `text` with full stops in place of code spans.
    pub(super) masked: String,
}

impl Block {
    /// The number of the line in which the byte `at` of the text is.
    pub(super) fn line(&self, at: usize) -> usize {
        self.first + self.text[..at].matches('\n').count()
    }
}

/// What people read in a file.
#[derive(Debug)]
pub(super) struct Prose {
    pub(super) lines: Vec<Line>,
    pub(super) blocks: Vec<Block>,
    pub(super) markdown: bool,
}

/// A comment's line: its number, mark, and text without mark and one blank.
type Comment<'a> = (usize, &'static str, &'a str);

impl Prose {
    /// Reads a file; `None` if its kind has no prose.
    pub(super) fn read(file: &str, text: &str) -> Option<Self> {
        let markdown = file.ends_with(".md");
        let mut prose = Self {
            lines: Vec::new(),
            blocks: Vec::new(),
            markdown,
        };
        let whole: Vec<_> = text.lines().collect();
        if markdown {
            let lines = whole.iter().enumerate();
            let lines: Vec<_> = lines.map(|(at, line)| (at + 1, "", *line)).collect();
            prose.add(&lines, &whole);
        } else if file.ends_with(".rs") {
            let together = |a: &Comment<'_>, b: &Comment<'_>| a.1 == b.1 && a.0 + 1 == b.0;
            let comments = comments(text);
            comments
                .chunk_by(together)
                .for_each(|run| prose.add(run, &whole));
            for reason in REASON.captures_iter(text).filter_map(|point| point.get(1)) {
                let number = text[..reason.start()].matches('\n').count() + 1;
                prose.add(&[(number, "\"", reason.as_str())], &whole);
            }
        } else {
            return None;
        }
        Some(prose)
    }

    /// Where a pattern is in the text without code spans: lines and captures.
    pub(super) fn masked<'a>(
        &'a self,
        pattern: &'a Regex,
    ) -> impl Iterator<Item = (usize, Captures<'a>)> {
        self.find(pattern, |block| &block.masked)
    }

    /// Where a pattern is in the text.
    pub(super) fn all<'a>(
        &'a self,
        pattern: &'a Regex,
    ) -> impl Iterator<Item = (usize, Captures<'a>)> {
        self.find(pattern, |block| &block.text)
    }

    fn find<'a>(
        &'a self,
        pattern: &'a Regex,
        text: impl Fn(&'a Block) -> &'a String,
    ) -> impl Iterator<Item = (usize, Captures<'a>)> {
        self.blocks.iter().flat_map(move |block| {
            let hits = pattern.captures_iter(text(block));
            hits.map(|hit| (block.line(hit.get_match().start()), hit))
        })
    }

    /// Adds lines as a block.
    fn add(&mut self, lines: &[Comment<'_>], whole: &[&str]) {
        let Some(&(first, mark, _)) = lines.first() else {
            return;
        };
        // The backticks that end the code block we are in.
        let (mut fence, mut block) = (0, String::new());
        for &(number, _, text) in lines {
            let text_only = text.trim();
            let rest = text_only.trim_start_matches('`');
            let ticks = text_only.len() - rest.len();
            let kind = match fence {
                0 if ticks >= 3 => {
                    fence = ticks;
                    Kind::Code
                }
                0 if text_only.starts_with('|') => Kind::Table,
                0 => Kind::Text,
                _ => {
                    fence *= usize::from(ticks < fence || !rest.is_empty());
                    Kind::Code
                }
            };
            if kind != Kind::Code {
                block.push_str(text);
            }
            block.push('\n');
            self.lines.push(Line {
                number,
                columns: whole[number - 1].chars().count(),
                text: text_only.to_owned(),
                kind,
            });
        }
        // As many bytes as before, so that both texts have the same places.
        let dots = |span: &Captures<'_>| -> String {
            let bytes = span[0].bytes();
            bytes.map(|b| if b == b'\n' { '\n' } else { '.' }).collect()
        };
        let masked = CODE.replace_all(&block, dots).into_owned();
        let text = block;
        self.blocks.push(Block {
            first,
            mark,
            text,
            masked,
        });
    }
}

/// The comments of a Rust file.
fn comments(source: &str) -> Vec<Comment<'_>> {
    let (mut found, mut number, mut end) = (Vec::new(), 1, 0);
    for comment in TOKEN.captures_iter(source).filter_map(|token| token.get(1)) {
        number += source[end..comment.start()].matches('\n').count();
        end = comment.start();
        for (at, line) in comment.as_str().lines().enumerate() {
            let marks = [("////", "//"), ("///", "///"), ("//!", "//!"), ("//", "//")];
            let mark = marks.iter().find(|(prefix, _)| line.starts_with(prefix));
            let mark = mark.map_or("", |(_, mark)| mark);
            let text = line.strip_prefix(mark).unwrap_or(line);
            found.push((number + at, mark, text.strip_prefix(' ').unwrap_or(text)));
        }
    }
    found
}
