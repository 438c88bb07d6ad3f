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

/// Declares the records: for each its kind, its variant, and the keys with their types. The last
/// key takes the rest of the line.
macro_rules! records {
    ($($kind:literal $variant:ident { $($key:ident: $type:ty),* })*) => {
        /// One record.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) enum Record {
            $($variant { $($key: $type),* }),*
        }

        /// Reads the fields of a record of a kind; the error is the key that is missing or
        /// malformed, or nothing if there is no such kind.
        fn read(kind: &str, rest: &str) -> Result<Record, &'static str> {
            match kind {
                $($kind => {
                    let fields = split(rest, &[$(stringify!($key)),*]);
                    Ok(Record::$variant { $($key: field(&fields, stringify!($key))?),* })
                })*
                _ => Err(""),
            }
        }
    };
}

records! {
    "plan" Plan { cores: u32, cases: u32, skipped: u32, seed: u32 }
    "begin" Begin { case: String }
    "skip" Skip { case: String, needs: String }
    "note" Note { case: String, core: u32, what: String, value: String }
    "fail" Fail { case: String, core: u32, why: String }
    "end" End { case: String, ok: bool, instructions: Option<u64> }
    "trap" Trap { core: u32, cause: u64, pc: u64, value: u64, case: String, what: String }
    "panic" Panic { core: u32, case: String, at: String, what: String }
    "list" List { case: String, min: u32, max: u32 }
    "stack" Stack { used: u32, of: u32 }
    "done" Done { passed: u32, failed: u32, skipped: u32 }
}

impl Record {
    /// Reads a log line that begins with `@`.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let words = line.trim_start_matches('@');
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        read(kind, rest).map_err(|key| match key {
            "" => format!("unknown record: {line}"),
            key => format!("record without a proper `{key}`: {line}"),
        })
    }
}

/// What a field may hold.
trait Field: Sized {
    /// `None` if the text is none of these.
    fn of(text: Option<&str>) -> Option<Self>;
}

impl Field for String {
    fn of(text: Option<&str>) -> Option<Self> {
        text.map(str::to_owned)
    }
}

impl Field for bool {
    fn of(text: Option<&str>) -> Option<Self> {
        text?.parse().ok()
    }
}

impl Field for u32 {
    fn of(text: Option<&str>) -> Option<Self> {
        text?.parse().ok()
    }
}

/// In decimal or, after `0x`, in hexadecimal digits.
impl Field for u64 {
    fn of(text: Option<&str>) -> Option<Self> {
        match text?.strip_prefix("0x") {
            Some(digits) => Self::from_str_radix(digits, 16).ok(),
            None => text?.parse().ok(),
        }
    }
}

/// One that may be missing.
impl Field for Option<u64> {
    fn of(text: Option<&str>) -> Option<Self> {
        Some(u64::of(text))
    }
}

fn field<T: Field>(fields: &[(&str, &str)], key: &'static str) -> Result<T, &'static str> {
    let text = fields.iter().find(|(name, _)| *name == key);
    T::of(text.map(|(_, text)| *text)).ok_or(key)
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
    fn every_record_of_the_protocol() {
        for (line, expected) in [
            (
                "@plan cores=8 cases=12 skipped=1 seed=4294967295",
                "Plan { cores: 8, cases: 12, skipped: 1, seed: 4294967295 }",
            ),
            ("@begin case=put.signal", r#"Begin { case: "put.signal" }"#),
            (
                "@skip case=big needs=48..512",
                r#"Skip { case: "big", needs: "48..512" }"#,
            ),
            (
                "@end case=a ok=false instructions=123",
                r#"End { case: "a", ok: false, instructions: Some(123) }"#,
            ),
            (
                "@end case=a ok=true",
                r#"End { case: "a", ok: true, instructions: None }"#,
            ),
            (
                "@list case=a min=2 max=512",
                r#"List { case: "a", min: 2, max: 512 }"#,
            ),
            (
                "@stack used=88332 of=131072",
                "Stack { used: 88332, of: 131072 }",
            ),
            (
                "@done passed=1 failed=2 skipped=3",
                "Done { passed: 1, failed: 2, skipped: 3 }",
            ),
            // Texts may hold blanks and equal signs.
            (
                "@fail case=a core=3 why=word is 3, core=4 and case=b",
                r#"Fail { case: "a", core: 3, why: "word is 3, core=4 and case=b" }"#,
            ),
            (
                "@note case=a core=0 what=hops per core value=24",
                r#"Note { case: "a", core: 0, what: "hops per core", value: "24" }"#,
            ),
            (
                "@trap core=1 cause=5 pc=0x80001694 value=0x8 case=a what=load access fault",
                r#"Trap { core: 1, cause: 5, pc: 2147489428, value: 8, case: "a", what: "load access fault" }"#,
            ),
            (
                "@panic core=1 case= at=qemu/src/a.rs:7 what=left == right",
                r#"Panic { core: 1, case: "", at: "qemu/src/a.rs:7", what: "left == right" }"#,
            ),
        ] {
            let record = Record::parse(line).map(|record| format!("{record:?}"));
            assert_eq!(record.as_deref(), Ok(expected));
        }
    }

    #[test]
    fn malformed_records_are_refused() {
        for (line, word) in [
            ("@hello case=a", "unknown record"),
            ("@", "unknown record"),
            ("@begin", "`case`"),
            ("@end case=a ok=maybe", "`ok`"),
            ("@trap core=1 cause=5 pc=0xgg value=0x8", "`pc`"),
        ] {
            let why = Record::parse(line).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }
}
