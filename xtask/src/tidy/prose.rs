//! Finding what people read: comments in Rust files, and prose in Markdown files.
//!
//! Each file becomes *lines*, for rules about lines, and *blocks*, for rules about text. A block is
//! a run of comment lines of one kind, the reason of a mutation point, or a whole Markdown
//! document. Its text has no comment marks, and its code blocks are empty lines, so that line
//! numbers still count.

use super::patterns::REASON;

/// What a line is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Table,
    Code,
}

/// A line that people read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: usize,
    /// Columns of the whole line, code before a comment included.
    pub(super) columns: usize,
    /// Without indentation and comment marks.
    pub(super) text: String,
    pub(super) kind: Kind,
}

/// Text that belongs together.
#[derive(Debug, Default)]
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
        let before = self.text.bytes().take(at);
        self.first + before.filter(|&byte| byte == b'\n').count()
    }
}

/// What people read in a file.
#[derive(Debug)]
pub(super) struct Prose {
    pub(super) lines: Vec<Line>,
    pub(super) blocks: Vec<Block>,
    pub(super) markdown: bool,
}

/// Is this a file with prose?
pub(super) fn readable(file: &str) -> bool {
    file.ends_with(".rs") || file.ends_with(".md")
}

impl Prose {
    /// Reads a file; `None` if its kind has no prose.
    pub(super) fn read(file: &str, text: &str) -> Option<Self> {
        let markdown = file.ends_with(".md");
        let mut prose = Self {
            lines: Vec::new(),
            blocks: Vec::new(),
            markdown,
        };
        if markdown {
            let lines = text.lines().enumerate();
            prose.add("", lines.map(|(at, line)| (at + 1, line, columns(line))));
        } else if file.ends_with(".rs") {
            let whole: Vec<_> = text.lines().map(columns).collect();
            let comments: Vec<_> = comments(text)
                .into_iter()
                .map(|(number, mark, text)| (mark, (number, text, whole[number - 1])))
                .collect();
            let together = |a: &(&str, (usize, &str, usize)), b: &(&str, (usize, &str, usize))| {
                a.0 == b.0 && a.1.0 + 1 == b.1.0
            };
            for run in comments.chunk_by(together) {
                prose.add(run[0].0, run.iter().map(|&(_, line)| line));
            }
            for reason in REASON.captures_iter(text).filter_map(|point| point.get(1)) {
                let number = text[..reason.start()].matches('\n').count() + 1;
                let line = (number, reason.as_str(), whole[number - 1]);
                prose.add("\"", std::iter::once(line));
            }
        } else {
            return None;
        }
        Some(prose)
    }

    /// Adds lines as a block: number, text, columns.
    fn add<'a>(
        &mut self,
        mark: &'static str,
        lines: impl Iterator<Item = (usize, &'a str, usize)>,
    ) {
        let mut block = Block {
            mark,
            ..Block::default()
        };
        // The backticks or tildes that end the code block we are in.
        let mut fence: Option<String> = None;
        for (number, text, columns) in lines {
            if block.first == 0 {
                block.first = number;
            }
            let kind = kind(text, &mut fence);
            if kind != Kind::Code {
                block.text.push_str(text);
            }
            block.text.push('\n');
            self.lines.push(Line {
                number,
                columns,
                text: text.trim().to_owned(),
                kind,
            });
        }
        block.masked = mask(&block.text);
        self.blocks.push(block);
    }
}

fn columns(line: &str) -> usize {
    line.chars().count()
}

fn kind(text: &str, fence: &mut Option<String>) -> Kind {
    let text = text.trim_start();
    match fence {
        Some(end) => {
            let closed = text.trim_end();
            if closed.starts_with(&**end) && closed.trim_start_matches(&end[..1]).is_empty() {
                *fence = None;
            }
            Kind::Code
        }
        None => {
            for mark in ['`', '~'] {
                let run: String = text.chars().take_while(|&c| c == mark).collect();
                if run.len() >= 3 {
                    *fence = Some(run);
                    return Kind::Code;
                }
            }
            if text.starts_with('|') {
                Kind::Table
            } else {
                Kind::Text
            }
        }
    }
}

/// Full stops in place of code spans. An unpaired backtick hides nothing.
fn mask(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for paragraph in text.split_inclusive("\n\n") {
        let parts: Vec<_> = paragraph.split('`').collect();
        for (at, part) in parts.iter().enumerate() {
            let span = at % 2 == 1 && at + 1 < parts.len();
            let hide = |c: char| if c == '\n' { '\n' } else { '.' };
            if span {
                // As many bytes as before, so that both texts have the same places.
                masked.extend(part.bytes().map(|byte| hide(char::from(byte))));
            } else {
                masked.push_str(part);
            }
            if at + 1 < parts.len() {
                masked.push('.');
            }
        }
    }
    masked
}

/// The comments of a Rust file: line, mark, text without mark and one blank.
fn comments(source: &str) -> Vec<(usize, &'static str, &str)> {
    let mut found = Vec::new();
    let (mut rest, mut number) = (source, 1);
    // Can the last character be part of a name? Then an `r` does not begin a raw string.
    let mut named = false;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            found.push(split(number, &rest[..end]));
            end
        } else if rest.starts_with("/*") {
            let end = block_comment(rest);
            let lines = rest[..end].lines().enumerate();
            found.extend(lines.map(|(at, line)| (number + at, "//", line)));
            end
        } else {
            literal(rest, named).unwrap_or(c.len_utf8())
        };
        let (token, after) = rest.split_at(length);
        number += token.matches('\n').count();
        named =
            token.ends_with(|c: char| c.is_alphanumeric() || c == '_') && !token.starts_with('/');
        rest = after;
    }
    found
}

fn split(number: usize, comment: &str) -> (usize, &'static str, &str) {
    let mark = if comment.starts_with("//!") {
        "//!"
    } else if comment.starts_with("///") && !comment.starts_with("////") {
        "///"
    } else {
        "//"
    };
    let text = &comment[mark.len()..];
    (number, mark, text.strip_prefix(' ').unwrap_or(text))
}

/// The length of a block comment, nested ones included.
fn block_comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if rest.starts_with(b"*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of the string or character at the beginning of `text`, if one is there.
fn literal(text: &str, named: bool) -> Option<usize> {
    if let Some(inside) = text.strip_prefix('"') {
        return Some(1 + quoted(inside, '"'));
    }
    if let Some(inside) = text.strip_prefix('\'') {
        let mut chars = inside.chars();
        let first = chars.next()?;
        // Anything else is a lifetime.
        return match (first, chars.next()) {
            ('\\', _) => Some(1 + quoted(inside, '\'')),
            (_, Some('\'')) => Some(2 + first.len_utf8()),
            _ => None,
        };
    }
    let prefixes = ["r", "br", "cr"];
    let raw = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
    let raw = raw.filter(|_| !named)?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let inside = raw[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let before = text.len() - inside.len();
    Some(
        inside
            .find(&end)
            .map_or(text.len(), |at| before + at + end.len()),
    )
}

/// The length up to and with the closing quote.
fn quoted(inside: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in inside.char_indices() {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    inside.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_told_from_strings_and_lifetimes() {
        let source = r###"//! a
/// b
fn f<'a>(s: &'a str) -> char { // c
    let _ = ("// no", 'x', '"', '\'', r#"// "no"#, br"// no", "\"// no");
    /* d /* e */ f */ let r = number"// no"; '/'
    //// g
    let url = "https://example.org
// no";
} //h"###;
        let found = comments(source);
        let expected = [
            (1, "//!", "a"),
            (2, "///", "b"),
            (3, "//", "c"),
            (5, "//", "/* d /* e */ f */"),
            (6, "//", "// g"),
            (9, "//", "h"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn blocks_keep_line_numbers_and_leave_code_out() {
        let source =
            "fn f() {}\n/// One `at once`\n/// ```text\n/// code\n/// ```\n/// end\n// other\n";
        let prose = Prose::read("a.rs", source).expect("a Rust file");
        assert_eq!(prose.blocks.len(), 2);
        let block = &prose.blocks[0];
        assert_eq!(block.text, "One `at once`\n\n\n\nend\n");
        assert_eq!(block.masked, "One .........\n\n\n\nend\n");
        assert_eq!(block.line(block.text.find("end").expect("is there")), 6);
        let kinds: Vec<_> = prose.lines.iter().map(|line| line.kind).collect();
        use Kind::{Code, Text};
        assert_eq!(kinds, [Text, Code, Code, Code, Text, Text]);
    }

    #[test]
    fn a_longer_fence_holds_a_shorter_one() {
        let text = "````md\n```\n````\n| a |\nb\n";
        let prose = Prose::read("a.md", text).expect("a Markdown file");
        let kinds: Vec<_> = prose.lines.iter().map(|line| line.kind).collect();
        use Kind::{Code, Table, Text};
        assert_eq!(kinds, [Code, Code, Code, Table, Text]);
    }
}
