//! What callgrind counted, from the file that it writes.
//!
//! The format (Valgrind's manual, "Callgrind Format Specification"): `fn=(2) name` begins the lines
//! of a function; a name is given where its number appears first. `calls=N …` is followed by a line
//! with what those calls took, inclusively. Other lines that begin with a position have the
//! function's own cost last.

use std::collections::HashMap;

/// Calls of a function, and the instructions of all of them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) calls: u64,
    pub(crate) instructions: u64,
}

/// What is known of each function, by name.
pub(crate) fn functions(file: &str) -> HashMap<String, Counted> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut all: HashMap<&str, Counted> = HashMap::new();
    // `(2) name`, or only `(2)` where the name is known.
    let mut number = |text| -> Option<&str> {
        let (number, name) = str::split_once(text, ')')?;
        if !name.is_empty() {
            names.insert(number, name.trim_start());
        }
        Some(number)
    };
    let (mut here, mut called) = (None, None);
    let mut calls: Option<u64> = None;
    for line in file.lines() {
        if let Some(text) = line.strip_prefix("fn=") {
            here = number(text);
        } else if let Some(text) = line.strip_prefix("cfn=") {
            called = number(text);
        } else if let Some(text) = line.strip_prefix("calls=") {
            calls = text.split_whitespace().next().and_then(|n| n.parse().ok());
        } else if line.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '*')) {
            let cost: u64 = line
                .split_whitespace()
                .nth(1)
                .and_then(|cost| cost.parse().ok())
                .unwrap_or(0);
            if let (Some(calls), Some(called)) = (calls.take(), called) {
                all.entry(called).or_default().calls += calls;
            }
            if let Some(here) = here {
                all.entry(here).or_default().instructions += cost;
            }
        }
    }
    let named = all.into_iter().filter_map(|(number, counted)| {
        let name = names.get(number)?;
        Some(((*name).to_owned(), counted))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_instructions_and_those_of_callees_are_counted() {
        let file = "events: Ir\n\
            fl=(1) a.rs\n\
            fn=(1) main\n\
            10 5\n\
            cfn=(2) put\n\
            calls=3 20\n\
            +1 36\n\
            fn=(2)\n\
            20 12\n\
            cfn=(3) copy\n\
            calls=6 30\n\
            * 24\n\
            fn=(3)\n\
            30 24\n\
            totals: 77\n";
        let found = functions(file);
        let counted = |calls, instructions| Counted {
            calls,
            instructions,
        };
        assert_eq!(found["main"], counted(0, 41));
        assert_eq!(found["put"], counted(3, 36));
        assert_eq!(found["copy"], counted(6, 24));
    }
}
