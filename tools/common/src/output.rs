//! Lines, tables and JSON. A closed pipe is not an error.

use std::fmt::{Display, Write as _};
use std::io::Write as _;

/// Prints a line on standard output.
pub fn out(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Prints a line on standard error.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints rows below their head, in [`columns`].
pub fn table(head: &[&str], rows: &[Vec<String>]) {
    columns(head, rows).iter().for_each(|line| out(line));
}

/// Sets rows in columns two blanks apart, below their head if there is one: words to the left, and
/// to the right where all cells of a column are numbers, or `-`, or nothing.
pub fn columns(head: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let head: Vec<String> = head.iter().map(|&name| name.to_owned()).collect();
    let all = || { Some(&head).filter(|head| !head.is_empty()).into_iter() }.chain(rows);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let number =
        |cell: &String| cell.starts_with(|c: char| c.is_ascii_digit()) && !cell.contains(' ');
    let set = |column: usize| {
        let widths = all()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        let none = |cell: &String| cell.is_empty() || cell == "-";
        let right =
            cells(column).any(number) && cells(column).all(|cell| number(cell) || none(cell));
        (widths.max().unwrap_or(0), right)
    };
    let count = all().map(Vec::len).max().unwrap_or(0);
    let columns: Vec<(usize, bool)> = (0..count).map(set).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (column, (cell, &(width, right))) in row.iter().zip(&columns).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            line += &match right {
                true => format!("{gap}{cell:>width$}"),
                false => format!("{gap}{cell:<width$}"),
            };
        }
        line.trim_end().to_owned()
    };
    all().map(line).collect()
}

/// A JSON object under construction. Names need no escapes.
#[derive(Clone, Debug)]
pub struct Json(String);

impl Json {
    /// The object without members.
    #[expect(
        clippy::new_without_default,
        reason = "the empty object is no usual one"
    )]
    pub fn new() -> Self {
        Self(String::from("{"))
    }

    /// A member that is a number or a truth value.
    pub fn number(mut self, name: &str, value: impl Display) -> Self {
        let comma = if self.0.len() > 1 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{comma}\"{name}\":{value}");
        self
    }

    /// A member that is a text.
    pub fn text(self, name: &str, value: &str) -> Self {
        let mut quoted = String::from("\"");
        for c in value.chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                '\0'..' ' => quoted += &format!("\\u{:04x}", c as u32),
                _ => quoted.push(c),
            }
        }
        self.number(name, quoted + "\"")
    }

    /// Prints it, on a line.
    pub fn print(self) {
        out(&self.end());
    }

    /// Its text.
    pub fn end(self) -> String {
        self.0 + "}"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [&str; 4]) -> Vec<String> {
        cells.map(str::to_owned).to_vec()
    }

    #[test]
    fn numbers_stand_to_the_right_and_no_line_ends_in_blanks() {
        let rows = [
            row(["put.signal", "8", "-", "2 ok"]),
            row(["put", "16", "1.5", ""]),
        ];
        let lines = columns(&["case", "cores", "time", "result"], &rows);
        let expected = [
            "case        cores  time  result",
            "put.signal      8     -  2 ok",
            "put            16   1.5",
        ];
        assert_eq!(lines, expected);
        assert_eq!(columns(&[], &rows)[1], "put         16  1.5");
        assert!(columns(&[], &[]).is_empty());
    }

    #[test]
    fn objects_are_json() {
        let object = Json::new().number("a", 1.5).text("b", "x\"\\\n").end();
        assert_eq!(object, r#"{"a":1.5,"b":"x\"\\\u000a"}"#);
        assert_eq!(Json::new().end(), "{}");
    }
}
