//! `cargo xtask bench .. --compare FILE`: a run beside a saved one.
//!
//! A saved run is what `--json` prints: an object per line. Objects belong together if their texts
//! and parameters are the same; all other numbers are measured. A time is slower if it is larger,
//! a rate if it is smaller.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use flagpost_common::table;
use serde_json::{Map, Value};

use crate::console::{Console, out};
use crate::error::usage;

/// Numbers that say what was measured.
const PARAMETERS: [&str; 14] = [
    "at",
    "batches",
    "bytes",
    "cores",
    "hops",
    "limit",
    "neighbours",
    "pairs",
    "ranks",
    "seed",
    "size",
    "software_cycles",
    "targets",
    "window",
];

/// Units, and ends of names, of what is better if it is larger.
const RATES: [&str; 5] = ["/s", "_per_s", "%", "right", "r2"];

/// Takes a flag and its value out of the arguments.
fn take(words: &mut Vec<OsString>, name: &str) -> Option<OsString> {
    let at = words.iter().position(|word| {
        let rest = word.to_str().and_then(|word| word.strip_prefix(name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    let word = words.remove(at);
    match word.to_str().and_then(|word| word.split_once('=')) {
        Some((_, value)) => Some(value.into()),
        None => (at < words.len()).then(|| words.remove(at)),
    }
}

fn bound(text: &OsStr) -> Option<f64> {
    let ratio = text.to_str()?.parse().ok();
    ratio.filter(|ratio| (1.0..1e6).contains(ratio))
}

/// Compares, if the arguments ask for it; `false` if a number is beyond the bound.
pub(crate) fn run(console: &Console, arguments: &[OsString]) -> Result<Option<bool>> {
    let mut words = arguments.to_vec();
    let Some(file) = take(&mut words, "--compare") else {
        return Ok(None);
    };
    let most = take(&mut words, "--bound").unwrap_or("1.1".into());
    let most = bound(&most).ok_or_else(|| usage("--bound takes a number from 1, such as 1.1"))?;
    let file = Path::new(&file).display();
    let saved = std::fs::read_to_string(file.to_string());
    let saved = objects(&saved.with_context(|| format!("cannot read {file}"))?)?;
    if saved.is_empty() {
        bail!("{file} holds nothing: save a run of --json there");
    }
    if words.is_empty() {
        bail!(usage(
            "--compare needs the benchmark that was saved: cargo xtask bench NAME --compare FILE"
        ));
    }
    if !words.iter().any(|word| word == "--json") {
        words.push("--json".into());
    }
    console.clear();
    let program = std::env::current_exe().context("this program has no path")?;
    let mut command = Command::new(program);
    command.arg("bench").args(&words);
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().context("cannot run the benchmark")?;
    if !output.status.success() {
        bail!("the benchmark failed: {}", output.status);
    }
    let now = objects(&String::from_utf8(output.stdout)?)?;
    let Compared {
        rows,
        beyond,
        alone,
    } = compare(&saved, &now, most);
    for what in &alone {
        out(&format!("only in the saved run: {what}"));
    }
    table(&["what", "number", "saved", "now", "ratio", ""], &rows);
    out(&format!(
        "{} numbers, {beyond} slower than {most} times, {} of the saved objects without a match",
        rows.len(),
        alone.len()
    ));
    Ok(Some(beyond == 0 && alone.is_empty() && !rows.is_empty()))
}

/// Measured numbers by what was measured.
type Objects = BTreeMap<String, Map<String, Value>>;

fn objects(text: &str) -> Result<Objects> {
    let mut found = Objects::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let object: Map<String, Value> =
            serde_json::from_str(line).with_context(|| format!("no JSON object: {line}"))?;
        let (measured, key): (Vec<_>, Vec<_>) = object
            .into_iter()
            .partition(|(name, value)| value.is_number() && !PARAMETERS.contains(&&**name));
        let key = key.iter().map(|(name, value)| match value.as_str() {
            Some(text) => text.to_owned(),
            None => format!("{name} {value}"),
        });
        let key = key.collect::<Vec<_>>().join(", ");
        if found.contains_key(&key) {
            bail!("two objects are {key}");
        }
        found.insert(key, measured.into_iter().collect());
    }
    Ok(found)
}

#[derive(Default)]
struct Compared {
    rows: Vec<Vec<String>>,
    /// Numbers that are slower than the bound allows.
    beyond: usize,
    /// What is saved, and not in the run.
    alone: Vec<String>,
}

fn compare(saved: &Objects, now: &Objects, bound: f64) -> Compared {
    let mut compared = Compared::default();
    for (key, old) in saved {
        let Some(new) = now.get(key) else {
            compared.alone.push(key.clone());
            continue;
        };
        for (name, old) in old {
            let values = (old.as_f64(), new.get(name).and_then(Value::as_f64));
            let (Some(old), Some(new)) = values else {
                compared.alone.push(format!("{name} of {key}"));
                continue;
            };
            let is_rate = RATES.iter().any(|rate| {
                name.ends_with(rate)
                    || name == "value" && key.split(", ").any(|text| text.ends_with(rate))
            });
            // How many times slower. Below 0, as a fitted base may be, by how much of the number.
            let (from, to) = if is_rate { (new, old) } else { (old, new) };
            let ratio = match old == new {
                true => 1.0,
                false => 1.0 + (to - from) / from.abs(),
            };
            let beyond = ratio.is_nan() || ratio > bound;
            compared.beyond += usize::from(beyond);
            let (old, new, ratio) = (old.to_string(), new.to_string(), format!("{ratio:.3}"));
            let beyond = if beyond { "beyond" } else { "" }.to_owned();
            compared
                .rows
                .push(vec![key.clone(), name.clone(), old, new, ratio, beyond]);
        }
    }
    compared
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Less of a time is better, of a rate worse; a fitted base may be below 0.
    #[test]
    fn slower_is_more_of_a_time_and_less_of_a_rate() {
        let saved = r#"{"variant":"put","cycles":100}
{"variant":"put","unit":"MB/s","bytes":64,"value":50}
{"variant":"get","base":-100}
"#;
        for (old, new, beyond, alone) in [
            ("", "", 0, 0),
            ("s\":100", "s\":109", 0, 0),
            ("s\":100", "s\":111", 1, 0),
            ("s\":100", "s\":10", 0, 0),
            (":50", ":40", 1, 0),
            (":64", ":32", 0, 1),
            (":-100", ":-105", 0, 0),
            (":-100", ":-60", 1, 0),
            (":-100", ":-400", 0, 0),
            (":-100", ":40", 1, 0),
        ] {
            let now = objects(&saved.replace(old, new)).unwrap();
            let found = compare(&objects(saved).unwrap(), &now, 1.1);
            assert_eq!((found.beyond, found.alone.len()), (beyond, alone), "{new}");
        }
    }

    #[test]
    fn flags_are_taken_out_and_bounds_bound() {
        let mut words = ["micro", "--compare", "a", "fence", "--bound=2"]
            .map(OsString::from)
            .to_vec();
        assert_eq!(take(&mut words, "--compare"), Some("a".into()));
        assert_eq!(take(&mut words, "--bound"), Some("2".into()));
        assert_eq!(take(&mut words, "--bound"), None);
        assert_eq!(words, ["micro", "fence"]);
        assert_eq!(bound(OsStr::new("1.5")), Some(1.5));
        for text in ["nan", "inf", "0", "-2", "0.9", "x"] {
            assert_eq!(bound(OsStr::new(text)), None, "{text}");
        }
    }
}
