//! What an image tells the host: log records that begin with `@`.
//!
//! ```text
//! @plan cores=8 cases=12 skipped=1 seed=0       once, before the first case
//! @skip case=NAME needs=48..512                 needs another number of cores
//! @skip case=NAME needs=atomics                 needs what the machine does not have
//! @begin case=NAME                              by core 0
//! @note case=NAME core=C what=TEXT value=N      a measured value
//! @fail case=NAME core=C why=TEXT               any core, any number of times
//! @end case=NAME ok=true instructions=N
//! @trap core=C cause=N pc=0x.. value=0x.. case=NAME what=TEXT
//! @panic core=C case=NAME at=FILE:LINE what=TEXT
//! @list case=NAME min=2 max=512                 only if booted with list=1
//! @stack used=B of=B                            bytes of its stack that core 0 has used
//! @done passed=P failed=F skipped=S             last; without it the run has failed
//! ```
//!
//! A word `key=` begins a field if the record has that key and it has not been seen yet; all
//! other words belong to the field before. The last key of each record takes the rest of the line.

use std::str::FromStr;

/// The kinds of records, each with its keys. The last key takes the rest of the line.
const KINDS: [(&str, &[&str]); 11] = [
    ("plan", &["cores", "cases", "skipped", "seed"]),
    ("begin", &["case"]),
    ("skip", &["case", "needs"]),
    ("note", &["case", "core", "what", "value"]),
    ("fail", &["case", "core", "why"]),
    ("end", &["case", "ok", "instructions"]),
    ("trap", &["core", "cause", "pc", "value", "case", "what"]),
    ("panic", &["core", "case", "at", "what"]),
    ("list", &["case", "min", "max"]),
    ("stack", &["used", "of"]),
    ("done", &["passed", "failed", "skipped"]),
];

/// One record.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub(crate) kind: &'static str,
    line: &'a str,
    fields: Vec<(&'static str, &'a str)>,
}

impl<'a> Record<'a> {
    /// Reads a log line that begins with `@`.
    pub(crate) fn parse(line: &'a str) -> Result<Self, String> {
        let words = line.trim_start_matches('@');
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        let known = KINDS.iter().find(|(known, _)| *known == kind);
        let (kind, keys) = known.ok_or_else(|| format!("unknown record: {line}"))?;
        let fields = split(rest, keys);
        Ok(Self { kind, line, fields })
    }

    /// A field, if it is there and is what it should be; else what is wrong with the record.
    fn field<T>(&self, key: &str, read: impl Fn(&'a str) -> Option<T>) -> Result<T, String> {
        let text = self.fields.iter().find(|(name, _)| *name == key);
        text.and_then(|(_, text)| read(text))
            .ok_or_else(|| format!("record without a proper `{key}`: {}", self.line))
    }

    pub(crate) fn text(&self, key: &str) -> Result<String, String> {
        self.field(key, |text| Some(text.to_owned()))
    }

    /// A number, or a truth value.
    pub(crate) fn value<T: FromStr>(&self, key: &str) -> Result<T, String> {
        self.field(key, |text| text.parse().ok())
    }

    /// A word of the machine: in decimal or, after `0x`, in hexadecimal digits.
    pub(crate) fn word(&self, key: &str) -> Result<u64, String> {
        self.field(key, |text| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        })
    }
}

/// Splits `rest` into fields with the given keys.
fn split<'a>(rest: &'a str, keys: &[&'static str]) -> Vec<(&'static str, &'a str)> {
    let mut starts: Vec<(&'static str, usize)> = Vec::new();
    let mut at = 0;
    for word in rest.split(' ') {
        let key = word
            .split_once('=')
            .and_then(|(key, _)| keys.iter().find(|k| **k == key));
        if let Some(key) = key.filter(|key| starts.iter().all(|(seen, _)| seen != *key)) {
            starts.push((key, at));
            if Some(key) == keys.last() {
                break;
            }
        }
        at += word.len() + 1;
    }
    let ends = starts.iter().skip(1).map(|(_, at)| *at).chain([rest.len()]);
    let field = |((key, start), end): (&(&'static str, usize), usize)| {
        (*key, rest[*start + key.len() + 1..end].trim_end())
    };
    starts.iter().zip(ends).map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_may_hold_blanks_and_equal_signs() {
        // A bar after each field.
        for line in [
            "@plan cores=8| cases=12| skipped=1| seed=4294967295|",
            "@end case=a| ok=true|",
            "@fail case=a| core=3| why=word is 3, core=4 and case=b|",
            "@note case=a| core=0| what=hops per core| value=24|",
            "@panic core=1| case=| at=qemu/src/a.rs:7| what=left == right|",
        ] {
            let plain = line.replace('|', "");
            let record = Record::parse(&plain).unwrap();
            let field = |(key, text): &(&str, &str)| format!(" {key}={text}|");
            let fields: String = record.fields.iter().map(field).collect();
            assert_eq!(format!("@{}{fields}", record.kind), line);
        }
        let trap = Record::parse("@trap core=1 cause=5 pc=0x80001694 value=0x8 case=a").unwrap();
        assert_eq!(
            ["cause", "pc"].map(|key| trap.word(key)),
            [Ok(5), Ok(0x8000_1694)]
        );
    }

    #[test]
    fn malformed_records_are_refused() {
        for line in ["@hello case=a", "@"] {
            assert!(Record::parse(line).unwrap_err().contains("unknown record"));
        }
        let record = Record::parse("@trap core=one cause=5 pc=0xgg").unwrap();
        let proper = |key: &str| format!("record without a proper `{key}`: {}", record.line);
        assert_eq!(record.value::<u32>("core"), Err(proper("core")));
        assert_eq!(record.word("pc"), Err(proper("pc")));
        assert_eq!(record.text("case"), Err(proper("case")));
    }
}
