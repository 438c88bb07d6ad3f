//! Runs as tables and as JSON.

use std::collections::BTreeMap;

use crate::console::{Console, out};
use crate::run::{Case, Note, Outcome, Run};
use flagpost_common::{columns, table};
use serde_json::json;

/// Errors printed for a command that boots many times.
const ERRORS_SHOWN: usize = 20;

/// Prints the table of one run, or of one run per seed, and the notes of the first.
pub fn tables(runs: &[Run]) {
    let one = |run: &Run, case: &Case| {
        let count = case.instructions.map_or("-".to_owned(), |n| n.to_string());
        let (name, cores) = (case.name.clone(), run.cores.to_string());
        vec![name, cores, result(case), count]
    };
    let rows: Vec<_> = match runs {
        [run] => run.cases.iter().map(|case| one(run, case)).collect(),
        _ => names(runs)
            .iter()
            .map(|name| over_seeds(name, runs))
            .collect(),
    };
    table(&["case", "cores", "result", "guest instructions"], &rows);
    if let Some(run) = runs.first() {
        notes(&run.notes).iter().for_each(|line| out(line));
        if let Some((used, of)) = run.stack {
            out(&format!(
                "\nstack of core 0: {used} of {of} bytes were used"
            ));
        }
    }
}

/// Prints the errors on standard error, each with the command that repeats it.
pub fn errors(console: &Console, runs: &[Run], repeat: &dyn Fn(&Run) -> String) {
    let mut shown = 0;
    for run in runs.iter().filter(|run| !run.ok()) {
        if shown >= ERRORS_SHOWN {
            let left = runs.iter().filter(|run| !run.ok()).count();
            console.error(&format!("{left} runs failed in all; the rest is not shown"));
            return;
        }
        for error in &run.errors {
            console.error(error);
            shown += 1;
        }
        console.say(&format!("       to repeat: {}", repeat(run)));
    }
}

/// The object of a case, on a line: `case`, `cores`, `seed`, `ok`, `instructions`. Skipped cases
/// have `"skipped":true`, failed ones `error`, and those that measure `notes`.
pub fn object(case: &Case, notes: &[Note], cores: u32, seed: u32) -> String {
    let mut object = json!({
        "case": case.name, "cores": cores, "seed": seed, "ok": case.ok(),
        "instructions": case.instructions,
    });
    match &case.outcome {
        Outcome::Skipped(_) => object["skipped"] = true.into(),
        Outcome::Failed(_, how) => object["error"] = how.as_str().into(),
        Outcome::Running => object["error"] = "did not end".into(),
        Outcome::Passed => {}
    }
    for note in notes.iter().filter(|note| note.case == case.name) {
        let value = serde_json::from_str(&note.value);
        object["notes"][&note.what] = value.unwrap_or_else(|_| note.value.as_str().into());
    }
    object.to_string()
}

fn result(case: &Case) -> String {
    match &case.outcome {
        Outcome::Passed => "ok".to_owned(),
        Outcome::Failed(word, _) => (*word).to_owned(),
        Outcome::Running => "UNENDED".to_owned(),
        Outcome::Skipped(what) => format!("skipped, needs {}", needs(what)),
    }
}

/// `48..512` for people, or a word.
fn needs(what: &str) -> String {
    match what.split_once("..") {
        Some((min, max)) if min == max => format!("{min} cores"),
        // More than any board has.
        Some((min, max)) if max.parse::<u32>().is_ok_and(|max| max >= 512) => {
            format!("{min} cores or more")
        }
        Some((min, max)) => format!("{min} to {max} cores"),
        None => what.to_owned(),
    }
}

/// The cases of all runs, in the order of the first run that has them.
fn names(runs: &[Run]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for case in runs.iter().flat_map(|run| &run.cases) {
        if !names.contains(&case.name) {
            names.push(case.name.clone());
        }
    }
    names
}

/// The row of a case over all seeds.
fn over_seeds(name: &str, runs: &[Run]) -> Vec<String> {
    let cases: Vec<&Case> = runs
        .iter()
        .flat_map(|run| &run.cases)
        .filter(|case| case.name == name)
        .collect();
    let mut results: BTreeMap<String, usize> = BTreeMap::new();
    for case in &cases {
        *results.entry(result(case)).or_default() += 1;
    }
    let results: Vec<String> = results
        .iter()
        .rev()
        .map(|(word, n)| format!("{n} {word}"))
        .collect();
    let counts = || cases.iter().filter_map(|case| case.instructions);
    let range = counts().min().zip(counts().max());
    let range = range.map_or("-".to_owned(), |(min, max)| format!("{min}..{max}"));
    let cores = runs.first().map_or(0, |run| run.cores);
    let (name, cores) = (name.to_owned(), cores.to_string());
    vec![name, cores, results.join(", "), range]
}

/// Notes as lines; those of several cores for one quantity are drawn together.
fn notes(notes: &[Note]) -> Vec<String> {
    let mut groups: Vec<((&str, &str), Vec<&Note>)> = Vec::new();
    for note in notes {
        let key = (&*note.case, &*note.what);
        match groups.iter_mut().find(|(k, _)| *k == key) {
            Some((_, group)) => group.push(note),
            None => groups.push((key, vec![note])),
        }
    }
    let mut rows = Vec::new();
    for ((case, what), group) in groups {
        let numbers: Option<Vec<u64>> = group.iter().map(|note| note.value.parse().ok()).collect();
        let (value, by) = match (&group[..], numbers) {
            ([note], _) => (note.value.clone(), format!("core {}", note.core)),
            (_, Some(n)) => {
                let (min, max) = (n.iter().min(), n.iter().max());
                let range = min
                    .zip(max)
                    .map_or(String::new(), |(min, max)| format!("{min}..{max}"));
                (range, format!("{} values", n.len()))
            }
            (all, None) => (
                all[0].value.clone(),
                format!("core {}, first of {}", all[0].core, all.len()),
            ),
        };
        rows.push(vec![format!("  {case}"), what.to_owned(), value, by]);
    }
    let lines = columns(&[], &rows);
    if lines.is_empty() {
        lines
    } else {
        [vec![String::new(), "notes:".to_owned()], lines].concat()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn case(outcome: Outcome) -> Case {
        Case {
            name: "put \"x\"".to_owned(),
            outcome,
            instructions: Some(7),
            over: true,
        }
    }

    #[test]
    fn objects_are_json() {
        let note = |case: &str, value: u32| Note {
            case: case.to_owned(),
            core: 0,
            what: "hops per core".to_owned(),
            value: value.to_string(),
        };
        let notes = [note("put \"x\"", 24), note("get", 7)];
        let failed = Outcome::Failed("HUNG", "a\nb".to_owned());
        let skipped = Outcome::Skipped("2..4".to_owned());
        for (outcome, notes, ok, member, value) in [
            (
                Outcome::Passed,
                &notes[..],
                true,
                "notes",
                json!({"hops per core": 24}),
            ),
            (failed, &[], false, "error", json!("a\nb")),
            (skipped, &[], true, "skipped", json!(true)),
        ] {
            let mut expected = json!({
                "case": "put \"x\"", "cores": 8, "seed": 3, "ok": ok, "instructions": 7,
            });
            expected[member] = value;
            let object: Value = serde_json::from_str(&object(&case(outcome), notes, 8, 3)).unwrap();
            assert_eq!(object, expected);
        }
    }

    #[test]
    fn needs_are_readable() {
        assert_eq!(needs("48..65535"), "48 cores or more");
        assert_eq!(needs("2..2"), "2 cores");
        assert_eq!(needs("2..16"), "2 to 16 cores");
        assert_eq!(needs("atomics"), "atomics");
    }

    #[test]
    fn notes_of_many_cores_are_drawn_together() {
        let note = |core, value: &str| Note {
            case: "a".to_owned(),
            core,
            what: "hops".to_owned(),
            value: value.to_owned(),
        };
        assert_eq!(
            notes(&[note(0, "3"), note(1, "9")])[2],
            "  a  hops  3..9  2 values"
        );
        assert_eq!(notes(&[note(5, "3")])[2], "  a  hops  3  core 5");
        assert!(notes(&[]).is_empty());
    }
}
