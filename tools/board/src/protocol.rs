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
//! @done passed=P failed=F skipped=S             last; without it the run has failed
//! ```
//!
//! A word `key=` begins a field if the record has that key and it has not been seen yet; all
//! other words belong to the field before. The last key of each record takes the rest of the line.

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    Plan {
        cores: u32,
        cases: u32,
        skipped: u32,
        seed: u32,
    },
    Begin {
        case: String,
    },
    Skip {
        case: String,
        needs: String,
    },
    Note {
        case: String,
        core: u32,
        what: String,
        value: String,
    },
    Fail {
        case: String,
        core: u32,
        why: String,
    },
    End {
        case: String,
        ok: bool,
        instructions: Option<u64>,
    },
    Trap {
        core: u32,
        cause: u64,
        pc: u64,
        value: u64,
        case: String,
        what: String,
    },
    Panic {
        core: u32,
        case: String,
        at: String,
        what: String,
    },
    List {
        case: String,
        min: u32,
        max: u32,
    },
    Done {
        passed: u32,
        failed: u32,
        skipped: u32,
    },
}

/// The keys of each record; the last one takes the rest of the line.
const SHAPES: [(&str, &[&str]); 10] = [
    ("plan", &["cores", "cases", "skipped", "seed"]),
    ("begin", &["case"]),
    ("skip", &["case", "needs"]),
    ("note", &["case", "core", "what", "value"]),
    ("fail", &["case", "core", "why"]),
    ("end", &["case", "ok", "instructions"]),
    ("trap", &["core", "cause", "pc", "value", "case", "what"]),
    ("panic", &["core", "case", "at", "what"]),
    ("list", &["case", "min", "max"]),
    ("done", &["passed", "failed", "skipped"]),
];

impl Record {
    /// Reads a log line that begins with `@`.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let words = line.trim_start_matches('@');
        let (kind, rest) = words.split_once(' ').unwrap_or((words, ""));
        let (_, keys) = SHAPES
            .iter()
            .find(|(name, _)| *name == kind)
            .ok_or_else(|| format!("unknown record: {line}"))?;
        let fields = Fields(split(rest, keys));
        fields
            .record(kind)
            .map_err(|key| format!("record without a proper `{key}`: {line}"))
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

struct Fields<'a>(Vec<(&'static str, &'a str)>);

impl Fields<'_> {
    /// Builds the record; the error is the key that is missing or malformed.
    fn record(&self, kind: &str) -> Result<Record, &'static str> {
        Ok(match kind {
            "plan" => Record::Plan {
                cores: self.number("cores")?,
                cases: self.number("cases")?,
                skipped: self.number("skipped")?,
                seed: self.number("seed")?,
            },
            "begin" => Record::Begin {
                case: self.text("case")?,
            },
            "skip" => Record::Skip {
                case: self.text("case")?,
                needs: self.text("needs")?,
            },
            "note" => Record::Note {
                case: self.text("case")?,
                core: self.number("core")?,
                what: self.text("what")?,
                value: self.text("value")?,
            },
            "fail" => Record::Fail {
                case: self.text("case")?,
                core: self.number("core")?,
                why: self.text("why")?,
            },
            "end" => Record::End {
                case: self.text("case")?,
                ok: self.number("ok")?,
                instructions: self.number("instructions").ok(),
            },
            "trap" => Record::Trap {
                core: self.number("core")?,
                cause: self.number("cause")?,
                pc: self.hex("pc")?,
                value: self.hex("value")?,
                case: self.text("case")?,
                what: self.text("what")?,
            },
            "panic" => Record::Panic {
                core: self.number("core")?,
                case: self.text("case")?,
                at: self.text("at")?,
                what: self.text("what")?,
            },
            "list" => Record::List {
                case: self.text("case")?,
                min: self.number("min")?,
                max: self.number("max")?,
            },
            _ => Record::Done {
                passed: self.number("passed")?,
                failed: self.number("failed")?,
                skipped: self.number("skipped")?,
            },
        })
    }

    fn text(&self, key: &'static str) -> Result<String, &'static str> {
        let field = self.0.iter().find(|(name, _)| *name == key);
        field.map(|(_, value)| (*value).to_owned()).ok_or(key)
    }

    /// Anything with a textual form: numbers, and `true` or `false`.
    fn number<T: std::str::FromStr>(&self, key: &'static str) -> Result<T, &'static str> {
        self.text(key)?.parse().map_err(|_| key)
    }

    fn hex(&self, key: &'static str) -> Result<u64, &'static str> {
        let text = self.text(key)?;
        u64::from_str_radix(text.trim_start_matches("0x"), 16).map_err(|_| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Record {
        Record::parse(line).unwrap()
    }

    #[test]
    fn every_record_of_the_protocol() {
        assert_eq!(
            parse("@plan cores=8 cases=12 skipped=1 seed=4294967295"),
            Record::Plan {
                cores: 8,
                cases: 12,
                skipped: 1,
                seed: u32::MAX
            }
        );
        assert_eq!(
            parse("@begin case=put.signal"),
            Record::Begin {
                case: "put.signal".into()
            }
        );
        assert_eq!(
            parse("@skip case=big needs=48..512"),
            Record::Skip {
                case: "big".into(),
                needs: "48..512".into()
            }
        );
        assert_eq!(
            parse("@end case=a ok=false instructions=123"),
            Record::End {
                case: "a".into(),
                ok: false,
                instructions: Some(123)
            }
        );
        assert_eq!(
            parse("@list case=a min=2 max=512"),
            Record::List {
                case: "a".into(),
                min: 2,
                max: 512
            }
        );
        assert_eq!(
            parse("@done passed=1 failed=2 skipped=3"),
            Record::Done {
                passed: 1,
                failed: 2,
                skipped: 3
            }
        );
    }

    #[test]
    fn texts_may_hold_blanks_and_equal_signs() {
        assert_eq!(
            parse("@fail case=a core=3 why=word is 3, core=4 and case=b"),
            Record::Fail {
                case: "a".into(),
                core: 3,
                why: "word is 3, core=4 and case=b".into()
            }
        );
        assert_eq!(
            parse("@note case=a core=0 what=hops per core value=24"),
            Record::Note {
                case: "a".into(),
                core: 0,
                what: "hops per core".into(),
                value: "24".into()
            }
        );
        assert_eq!(
            parse("@trap core=1 cause=5 pc=0x80001694 value=0x8 case=a what=load access fault"),
            Record::Trap {
                core: 1,
                cause: 5,
                pc: 0x8000_1694,
                value: 8,
                case: "a".into(),
                what: "load access fault".into()
            }
        );
        assert_eq!(
            parse("@panic core=1 case= at=qemu/src/a.rs:7 what=left == right"),
            Record::Panic {
                core: 1,
                case: String::new(),
                at: "qemu/src/a.rs:7".into(),
                what: "left == right".into()
            }
        );
    }

    #[test]
    fn malformed_records_are_refused() {
        assert!(
            Record::parse("@hello case=a")
                .unwrap_err()
                .contains("unknown record")
        );
        assert!(Record::parse("@begin").unwrap_err().contains("`case`"));
        assert!(
            Record::parse("@end case=a ok=maybe")
                .unwrap_err()
                .contains("`ok`")
        );
        assert!(Record::parse("@").is_err());
    }
}
