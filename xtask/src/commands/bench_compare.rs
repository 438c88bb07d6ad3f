//! `cargo xtask bench .. --compare FILE`: a run beside a saved one.
//!
//! A saved run is what `--json` prints: an object per line. Objects belong together if their texts
//! and parameters are the same; all other numbers are measured. A time is slower if it is larger,
//! a rate if it is smaller.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Parser;
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

/// What is taken out of the arguments of a benchmark.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Options {
    /// A saved run: what the same command printed with --json
    #[arg(long, value_name = "FILE")]
    compare: String,
    /// How many times slower a number may be
    #[arg(long, value_name = "RATIO", default_value = "1.1", value_parser = bound)]
    bound: f64,
    /// The benchmark and its arguments
    #[arg(skip)]
    rest: Vec<String>,
}

fn bound(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio| (1.0..1e6).contains(ratio));
    ratio.ok_or_else(|| String::from("a number from 1, such as 1.1"))
}

/// Takes `--compare` and `--bound` out of the arguments, if the first is there.
fn options(arguments: &[String]) -> Option<Options> {
    let mut own = vec![String::from("bench")];
    let mut rest = Vec::new();
    let mut words = arguments.iter().cloned();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or_default();
        if !matches!(name, "--compare" | "--bound") {
            rest.push(word);
            continue;
        }
        let has_value = word.contains('=');
        own.push(word);
        if !has_value {
            own.extend(words.next());
        }
    }
    if own.len() == 1 {
        return None;
    }
    let options = Options::parse_from(own);
    Some(Options { rest, ..options })
}

/// Compares, if the arguments ask for it; `false` if a number is beyond the bound.
pub(crate) fn run(console: &Console, arguments: &[String]) -> Result<Option<bool>> {
    let Some(options) = options(arguments) else {
        return Ok(None);
    };
    let saved = std::fs::read_to_string(Path::new(&options.compare))
        .with_context(|| format!("cannot read {}", options.compare))?;
    let saved = objects(&saved)?;
    if saved.is_empty() {
        bail!(
            "{} holds nothing: save a run of --json there",
            options.compare
        );
    }
    if options.rest.is_empty() {
        bail!(usage(
            "--compare needs the benchmark that was saved: cargo xtask bench NAME --compare FILE"
        ));
    }
    console.clear();
    let program = std::env::current_exe().context("this program has no path")?;
    let output = Command::new(program)
        .arg("bench")
        .args(&options.rest)
        .args((!options.rest.iter().any(|word| word == "--json")).then_some("--json"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run the benchmark")?;
    if !output.status.success() {
        bail!("the benchmark failed: {}", output.status);
    }
    let now = objects(&String::from_utf8(output.stdout)?)?;
    let compared = compare(&saved, &now, options.bound);
    table(
        &["what", "number", "saved", "now", "ratio", ""],
        &compared.rows,
    );
    let Compared { beyond, alone, .. } = compared;
    out(&format!(
        "{} numbers, {beyond} slower than {} times, {alone} of the saved objects without a match",
        compared.rows.len(),
        options.bound
    ));
    Ok(Some(beyond == 0 && alone == 0 && !compared.rows.is_empty()))
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

struct Compared {
    rows: Vec<Vec<String>>,
    /// Numbers that are slower than the bound allows.
    beyond: usize,
    /// Saved objects that the run has not.
    alone: usize,
}

fn compare(saved: &Objects, now: &Objects, bound: f64) -> Compared {
    let mut compared = Compared {
        rows: Vec::new(),
        beyond: 0,
        alone: 0,
    };
    for (key, old) in saved {
        let Some(new) = now.get(key) else {
            out(&format!("only in the saved run: {key}"));
            compared.alone += 1;
            continue;
        };
        for (name, old) in old {
            let values = (old.as_f64(), new.get(name).and_then(Value::as_f64));
            let (Some(old), Some(new)) = values else {
                out(&format!("only in the saved run: {name} of {key}"));
                compared.alone += 1;
                continue;
            };
            let is_rate = RATES.iter().any(|rate| {
                name.ends_with(rate)
                    || name == "value" && key.split(", ").any(|text| text.ends_with(rate))
            });
            // How many times slower. Below 0, as a fitted base may be, by how much of the number.
            let (from, to) = if is_rate { (new, old) } else { (old, new) };
            let ratio = if old == new {
                1.0
            } else {
                1.0 + (to - from) / from.abs()
            };
            let is_beyond = ratio.is_nan() || ratio > bound;
            compared.beyond += usize::from(is_beyond);
            compared.rows.push(vec![
                key.clone(),
                name.clone(),
                old.to_string(),
                new.to_string(),
                format!("{ratio:.3}"),
                String::from(if is_beyond { "beyond" } else { "" }),
            ]);
        }
    }
    compared
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAVED: &str = r#"{"variant":"put","bytes":8,"cycles":100}
{"variant":"put","unit":"MB/s","bytes":64,"value":50}
"#;

    fn beyond(now: &str) -> (usize, usize) {
        let compared = compare(&objects(SAVED).unwrap(), &objects(now).unwrap(), 1.1);
        (compared.beyond, compared.alone)
    }

    #[test]
    fn a_changed_number_is_found() {
        assert_eq!(beyond(SAVED), (0, 0));
        assert_eq!(beyond(&SAVED.replace("100", "109")), (0, 0));
        assert_eq!(beyond(&SAVED.replace("100", "111")), (1, 0));
        // Less of a time is better, of a rate worse.
        assert_eq!(beyond(&SAVED.replace("100", "10")), (0, 0));
        assert_eq!(beyond(&SAVED.replace(":50", ":40")), (1, 0));
        assert_eq!(beyond(&SAVED.replace(":64", ":32")), (0, 1));
        let fitted = |base: &str| objects(&SAVED.replace(":100", base)).unwrap();
        for (now, slower) in [
            (":-100", 0),
            (":-105", 0),
            (":-60", 1),
            (":-400", 0),
            (":40", 1),
        ] {
            let compared = compare(&fitted(":-100"), &fitted(now), 1.1);
            assert_eq!(compared.beyond, slower, "{now}");
        }
    }

    #[test]
    fn bounds_that_bound_nothing_are_refused() {
        assert_eq!(bound("1.5"), Ok(1.5));
        for text in ["nan", "inf", "0", "-2", "0.9", "x"] {
            assert!(bound(text).is_err(), "{text}");
        }
    }

    #[test]
    fn options_are_taken_out() {
        let words = ["micro", "--compare", "a", "fence", "--bound=2"].map(String::from);
        let found = options(&words).unwrap();
        assert_eq!((&*found.compare, found.bound), ("a", 2.0));
        assert_eq!(found.rest, ["micro", "fence"]);
        assert!(options(&words[..1]).is_none());
    }
}
