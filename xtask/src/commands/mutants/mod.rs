//! `cargo xtask mutants`: breaks one cache action, lock or ordering step at a time; a case must notice.

mod board;

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::test::Count;
use crate::console::{Console, out};
use crate::error::usage;
use crate::explorer::Explorer;
use crate::{children, equivalent, points};

/// Break one cache action, lock or ordering step at a time; a case must notice
///
/// Every such step in the kernel and its links stands in a named mutation point. This checks the sources
/// (nothing of the kind outside of a point), builds all mutants into one program, runs all cases with none
/// broken, and then breaks one point after the other under exploration, until a case fails: by a wrong
/// value, an oracle, a deadlock, a livelock or a panic.
///
/// Exit status: 0 if every point was killed, or survived and is argued to be equivalent in
/// docs/equivalent-mutants.md; else 1; 2 for bad input. The last line is `mutants: K of N killed`.
///
/// A row ends with what repeats it: `--point NAME --replay CASE/CORES/PROFILE:SEED` prints that run.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The machine that must notice: qemu stands for a stated subset of the points
    #[arg(long, value_enum, default_value = "sim")]
    on: On,
    /// Only points whose name contains PATTERN
    #[arg(long, value_name = "PATTERN")]
    point: Option<String>,
    /// Schedules per point, at most
    #[arg(long, value_name = "N", default_value = "100000", value_parser = clap::value_parser!(u64).range(1..))]
    schedules: u64,
    /// One JSON object per point, a line each
    #[arg(long)]
    json: bool,
    /// Run one schedule with the point broken and print its account
    #[arg(
        long,
        value_name = "WHICH",
        requires = "point",
        conflicts_with = "json"
    )]
    replay: Option<String>,
}

/// Which machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum On {
    Sim,
    Qemu,
}

/// Runs the command; `false` if a point survives that should not, or the other way round.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    console.release();
    let sources = Sources::read(console)?;
    if sources.errors > 0 {
        return Ok(false);
    }
    let pattern = arguments.point.as_deref().unwrap_or("");
    if let Some(which) = &arguments.replay {
        if arguments.on == On::Qemu {
            return Err(usage(
                "--replay is for the simulator; on the board, --point alone prints the run",
            ));
        }
        return replay(console, &sources, pattern, which);
    }
    let names: Vec<&str> = match arguments.on {
        On::Sim => sources.names.iter().map(String::as_str).collect(),
        On::Qemu => board::names().collect(),
    };
    let chosen: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| name.contains(pattern))
        .collect();
    if chosen.is_empty() {
        let names = names.join(", ");
        return Err(usage(format!(
            "--point {pattern}: no point has this in its name; points: {names}"
        )));
    }
    let table = Table::new(&chosen, arguments.json);
    let sweep = match arguments.on {
        On::Sim => simulator(console, &sources, pattern, arguments.schedules, &table)?,
        On::Qemu => board::sweep(console, &sources, pattern, &table)?,
    };
    Ok(sweep.verdict(console, &sources, arguments.json))
}

/// All points, for `cargo xtask test`: each counts as a check.
pub(crate) fn all(console: &Console, schedules: u64) -> Result<Count> {
    let sources = Sources::read(console)?;
    if sources.errors > 0 {
        return Ok(Count {
            passed: 0,
            failed: sources.errors,
        });
    }
    let chosen: Vec<&str> = sources.names.iter().map(String::as_str).collect();
    let table = Table::new(&chosen, false);
    let sweep = simulator(console, &sources, "", schedules, &table)?;
    let ok = sweep.verdict(console, &sources, false);
    let failed = sweep.wrong(&sources).max(usize::from(!ok));
    Ok(Count {
        passed: sources.names.len().saturating_sub(failed),
        failed,
    })
}

/// The board's subset, for `cargo xtask ci`.
pub(crate) fn on_board(console: &Console) -> Result<Count> {
    let sources = Sources::read(console)?;
    let names: Vec<&str> = board::names().collect();
    let table = Table::new(&names, false);
    let sweep = board::sweep(console, &sources, "", &table)?;
    let ok = sweep.verdict(console, &sources, false) && sources.errors == 0;
    let killed = sweep
        .results
        .iter()
        .filter(|verdict| verdict.killed)
        .count();
    let failed = (names.len() - killed).max(usize::from(!ok));
    Ok(Count {
        passed: names.len() - failed,
        failed,
    })
}

/// The source check alone.
pub(crate) fn check(console: &Console) -> Result<Count> {
    let sources = Sources::read(console)?;
    out(&format!(
        "{} mutation points, {} errors",
        sources.names.len(),
        sources.errors
    ));
    Ok(Count::one(sources.errors == 0))
}

/// What the sources and the document say.
struct Sources {
    /// All points, in alphabetical order.
    names: Vec<String>,
    equivalent: BTreeSet<String>,
    /// How many errors were reported.
    errors: usize,
}

impl Sources {
    /// Reads them, and reports what is wrong.
    fn read(console: &Console) -> Result<Self> {
        let found = points::scan()?;
        let (equivalent, mut errors) = equivalent::listed()?;
        errors.extend(found.errors);
        let names: Vec<String> = found.points.into_iter().map(|point| point.name).collect();
        for name in &equivalent {
            if !names.contains(name) {
                errors.push(format!(
                    "docs/equivalent-mutants.md: {name}: there is no such point"
                ));
            }
        }
        for name in board::names() {
            if !names.iter().any(|known| known == name) {
                errors.push(format!(
                    "{name}: the board's list names this, but the sources do not"
                ));
            }
        }
        errors.iter().for_each(|error| console.error(error));
        Ok(Self {
            names,
            equivalent: equivalent.into_iter().collect(),
            errors: errors.len(),
        })
    }
}

/// Prints rows as they come.
struct Table {
    json: bool,
    name: usize,
}

impl Table {
    /// For these points. Prints the head.
    fn new(names: &[&str], json: bool) -> Self {
        let name = names.iter().map(|name| name.len()).max().unwrap_or(0);
        let table = Self { json, name };
        if !json {
            table.line("point", "how", "schedules", "killed by");
        }
        table
    }

    fn line(&self, point: &str, how: &str, schedules: &str, by: &str) {
        let width = self.name;
        let line = format!("{point:<width$}  {how:<12}  {schedules:>9}  {by}");
        out(line.trim_end());
    }

    fn row(&self, result: &Verdict, equivalent: bool) {
        if self.json {
            let mut object = result.object.clone();
            if let Some(map) = object.as_object_mut() {
                map.remove("is");
                map.insert("equivalent".to_owned(), json!(equivalent));
            }
            return out(&object.to_string());
        }
        let text = |name: &str| result.object[name].as_str().unwrap_or("").to_owned();
        let (how, by) = match (result.killed, equivalent) {
            (true, false) => (text("how"), text("replay")),
            (true, true) => (
                text("how"),
                format!("{} BUT IS LISTED AS EQUIVALENT", text("replay")),
            ),
            (false, true) => ("equivalent".to_owned(), "-".to_owned()),
            (false, false) => ("SURVIVES".to_owned(), "-".to_owned()),
        };
        let schedules = result.object["schedules"].to_string();
        self.line(&result.point, &how, &schedules, &by);
    }
}

/// What came of one point.
struct Verdict {
    point: String,
    killed: bool,
    object: Value,
}

/// What came of all.
#[derive(Default)]
struct Sweep {
    results: Vec<Verdict>,
    /// The program ended as it should.
    ended_well: bool,
}

impl Sweep {
    /// Points that survived without being listed, or are listed and were killed.
    fn wrong(&self, sources: &Sources) -> usize {
        let wrong = |result: &&Verdict| result.killed == sources.equivalent.contains(&result.point);
        self.results.iter().filter(wrong).count()
    }

    /// Prints what is wrong, and the last line.
    fn verdict(&self, console: &Console, sources: &Sources, json: bool) -> bool {
        console.clear();
        for result in &self.results {
            let name = &result.point;
            match (result.killed, sources.equivalent.contains(name)) {
                (false, false) => console.error(&format!(
                    "{name}: nothing notices when this is broken: a case is missing, or the step is not needed"
                )),
                (true, true) => console.error(&format!(
                    "{name}: docs/equivalent-mutants.md says that nothing can notice, but a case does"
                )),
                _ => {}
            }
        }
        let (killed, of) = (
            self.results.iter().filter(|r| r.killed).count(),
            self.results.len(),
        );
        let equivalent = self
            .results
            .iter()
            .filter(|r| sources.equivalent.contains(&r.point))
            .count();
        if json {
            out(&json!({"mutants": of, "killed": killed, "equivalent": equivalent}).to_string());
        } else {
            if equivalent > 0 {
                out(&format!(
                    "{equivalent} argued to be equivalent in docs/equivalent-mutants.md"
                ));
            }
            out(&format!("mutants: {killed} of {of} killed"));
        }
        self.ended_well && of > 0 && self.wrong(sources) == 0
    }
}

/// Sweeps over the points on the simulator.
fn simulator(
    console: &Console,
    sources: &Sources,
    pattern: &str,
    schedules: u64,
    table: &Table,
) -> Result<Sweep> {
    let explorer = Explorer::mutants(console)?;
    console.step("all cases with no point broken");
    let mut arguments = vec![
        "mutants".to_owned(),
        "--only".to_owned(),
        pattern.to_owned(),
    ];
    arguments.extend(["--schedules".to_owned(), schedules.to_string()]);
    for name in &sources.names {
        arguments.extend(["--point".to_owned(), name.clone()]);
    }
    let mut sweep = Sweep::default();
    let mut total = 0;
    let ended_well = explorer.lines(arguments, |object| {
        match object["is"].as_str() {
            Some("unbroken") if !table.json => {
                console.say(&format!(
                    "no point broken: {} runs of {} settings pass and reach all {} points",
                    object["runs"],
                    object["settings"],
                    sources.names.len()
                ));
            }
            Some("unbroken") => {}
            Some("begun") => total = object["points"].as_u64().unwrap_or(0),
            Some("error") => {
                let error = object["error"].as_str().unwrap_or_default();
                console.error(error);
            }
            Some("result") => {
                let point = object["point"]
                    .as_str()
                    .context("a result without a point")?
                    .to_owned();
                let killed = object["killed"] == true;
                let result = Verdict {
                    point,
                    killed,
                    object,
                };
                table.row(&result, sources.equivalent.contains(&result.point));
                sweep.results.push(result);
            }
            _ => bail!("unexpected: {object}"),
        }
        if total > 0 {
            console.progress(sweep.results.len() as u64, total, "points");
        }
        Ok(())
    })?;
    sweep.ended_well = ended_well;
    Ok(sweep)
}

/// Prints the account of one run; `false` if that fails, as it does when the point is killed there.
fn replay(console: &Console, sources: &Sources, point: &str, which: &str) -> Result<bool> {
    if !sources.names.iter().any(|name| name == point) {
        return Err(usage(format!(
            "--point {point}: with --replay, give the whole name of a point"
        )));
    }
    let explorer = Explorer::mutants(console)?;
    console.clear();
    let mut command = explorer.command();
    command.args(["mutants", "--only", point, "--replay", which]);
    let status = children::status(&mut command).context("cannot run the explorer")?;
    match status.code() {
        Some(2) => Err(usage(format!(
            "--replay {which}: give CASE/CORES/PROFILE:SEED as a row has it"
        ))),
        code => Ok(code == Some(0)),
    }
}
