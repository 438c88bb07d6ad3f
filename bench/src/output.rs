//! Lines, tables and JSON. A closed pipe is not an error.

use std::fmt::{Display, Write as _};
use std::io::Write as _;

/// Prints a line on standard output.
pub(crate) fn out(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints a line on standard error.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints rows in columns, to the right of which numbers are set: words to the left.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) {
    let head: Vec<String> = head.iter().map(|&name| name.to_owned()).collect();
    let all = || std::iter::once(&head).chain(rows);
    let width = |column: usize| {
        let widths = all().map(|row| row.get(column).map_or(0, String::len));
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let number = |column: usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(column));
        cells.all(|cell| cell.starts_with(|c: char| c.is_ascii_digit()))
    };
    for row in all() {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            // Writing to a string cannot fail.
            let _ = match number(column) {
                true => write!(line, "{gap}{cell:>width$}"),
                false => write!(line, "{gap}{cell:<width$}"),
            };
        }
        out(line.trim_end());
    }
}

/// A JSON object under construction. Names and texts here need no escapes but quotes.
pub(crate) struct Json(String);

impl Json {
    pub(crate) fn new() -> Self {
        Self(String::from("{"))
    }

    /// A member that is a number or a truth value.
    pub(crate) fn number(mut self, name: &str, value: impl Display) -> Self {
        let comma = if self.0.len() > 1 { "," } else { "" };
        let _ = write!(self.0, "{comma}\"{name}\":{value}");
        self
    }

    /// A member that is a text.
    pub(crate) fn text(self, name: &str, value: &str) -> Self {
        self.number(name, format_args!("{value:?}"))
    }

    pub(crate) fn end(self) -> String {
        self.0 + "}"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects() {
        let object = Json::new().number("a", 1.5).text("b", "x").end();
        assert_eq!(object, r#"{"a":1.5,"b":"x"}"#);
    }
}
