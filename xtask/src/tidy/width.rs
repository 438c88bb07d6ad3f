//! Comments and prose have at most 100 columns.
//!
//! Lines without a blank at which they could be wrapped may be longer, such as addresses and link
//! definitions. In Markdown so may code blocks, and rows of tables, which cannot be wrapped. A row
//! in a comment has to be shorter, or its table becomes a list: sources are read as they are.

use super::prose::{Kind, Line, Prose};

const COLUMNS: usize = 100;

pub(super) fn check(prose: &Prose) -> Vec<(usize, String)> {
    let what = if prose.markdown {
        "columns of text"
    } else {
        "columns with a comment"
    };
    let long = prose.lines.iter().filter(|line| {
        let may_be_long = prose.markdown && line.kind != Kind::Text;
        line.columns > COLUMNS && !may_be_long && breakable(line)
    });
    long.map(|line| {
        let columns = line.columns;
        let remedy = match line.kind {
            Kind::Table => "shorten the cells, or make a list",
            Kind::Text | Kind::Code => "wrap the line",
        };
        let what = format!("{columns} {what}, at most {COLUMNS}: {remedy}");
        (line.number, what)
    })
    .collect()
}

/// Is there a blank at which the line could be wrapped, link definitions apart?
fn breakable(line: &Line) -> bool {
    let text = line.text.trim_start_matches(['*', '-', ' ']);
    // Of a link definition only the key may have blanks.
    let target = text.split_once("]: ").filter(|_| text.starts_with('['));
    target.map_or(text, |(_, target)| target).contains(' ')
}

#[cfg(test)]
mod tests {
    use crate::tidy::Tree;

    #[test]
    fn a_long_comment_line_is_found() {
        let words = "word ".repeat(25);
        let words = words.trim_end();
        let source = format!("fn f() {{\n    // {words}\n    let x = 1; /// {words}\n}}\n");
        assert_eq!(
            Tree::findings(&[("a.rs", &source)]),
            [
                "a.rs:2: 131 columns with a comment, at most 100: wrap the line",
                "a.rs:3: 143 columns with a comment, at most 100: wrap the line",
            ]
        );
    }

    #[test]
    fn what_cannot_be_wrapped_may_be_longer() {
        let (long, words) = ("x".repeat(120), "word ".repeat(25));
        let address = format!("//! https://{long}\n//! [key]: https://{long}\n");
        let code = format!("let x = \"{words}\";\n");
        let source = format!("{address}{code}");
        assert_eq!(Tree::findings(&[("a.rs", &source)]), [""; 0]);
        let fenced = format!("```text\n{words}\n```\n| {words} |\n* <https://{long}>\n");
        assert_eq!(Tree::findings(&[("a.md", &fenced)]), [""; 0]);
        // A row and a picture in a comment can be made narrower.
        let row = format!("//! | {words} |\n");
        assert_eq!(
            Tree::findings(&[("a.rs", &row)]),
            ["a.rs:1: 133 columns with a comment, at most 100: shorten the cells, or make a list"]
        );
        let picture = format!("//! ```text\n//! {words}\n//! ```\n");
        assert_eq!(Tree::findings(&[("a.rs", &picture)]).len(), 1);
    }

    #[test]
    fn columns_are_characters() {
        let line = format!("// {} é", "é".repeat(95));
        assert_eq!(line.chars().count(), 100);
        assert_eq!(Tree::findings(&[("a.rs", &line)]), [""; 0]);
    }
}
