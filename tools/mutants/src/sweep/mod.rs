//! All points: breaks one cache action, lock or ordering step at a time; a case must
//! notice.

mod board;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::board::Board;
use crate::console::{Console, out};
use crate::count::Count;
use crate::error::usage;
use crate::explorer::Explorer;
use crate::killers::{Killer, Killers};
use crate::{children, equivalent, points};

/// Break one cache action, lock or ordering step at a time; a case must notice
///
/// Every such step in the kernel and its links stands in a named mutation point. This checks the
/// sources (nothing of the kind outside of a point), builds all mutants into one program, and tries
/// for each point the run that killed it last time (tests/killers/): that must pass with no point
/// broken, and fail with the point broken, by a wrong value, an oracle, a deadlock, a livelock or a
/// panic.
///
/// Only for points that no recorded run kills, or for all with --search, it runs all cases with no
/// point broken, which must pass and reach every point, and then breaks the points under
/// exploration until a case fails. Then it says so, and --record writes down what was found.
///
/// Exit status: 0 if every point was killed, or survived and is argued to be equivalent in
/// docs/equivalent-mutants.md; else 1; 2 for bad input. The last line is `mutants: K of N killed`.
///
/// A row ends with what repeats it: `--point NAME --replay CASE/CORES/PROFILE:SEED` prints that
/// run.
#[derive(Args, Debug, Default)]
pub struct Arguments {
    /// The machine that must notice: the boards, qemu and scc, stand for a stated subset of the
    /// points
    #[arg(long, value_enum, default_value = "sim")]
    on: On,
    /// Only points whose name contains PATTERN
    #[arg(long, value_name = "PATTERN")]
    point: Option<String>,
    /// Ignore the recorded runs: search for each point
    #[arg(long)]
    search: bool,
    /// Write the runs that killed to tests/killers/, and drop lines of points that are gone
    #[arg(long)]
    record: bool,
    /// Schedules per point that is searched for, at most
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
        conflicts_with_all = ["json", "search", "record"]
    )]
    replay: Option<String>,
    /// No row per point that is killed
    #[arg(skip)]
    is_quiet: bool,
}

/// Which machine.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, ValueEnum)]
enum On {
    #[default]
    Sim,
    Qemu,
    Scc,
}

impl Arguments {
    /// Those of `names` that are asked for.
    fn points<'a>(&self, names: &[&'a str]) -> Result<Vec<&'a str>> {
        let pattern = self.point.as_deref().unwrap_or("");
        let chosen = names.iter().copied().filter(|name| name.contains(pattern));
        let chosen: Vec<&str> = chosen.collect();
        if chosen.is_empty() {
            let (file, names) = (self.on.file(), names.join(", "));
            return Err(usage(format!(
                "--point {pattern}: no point of {file} has this in its name; points: {names}"
            )));
        }
        Ok(chosen)
    }
}

impl On {
    /// Where its killers are kept.
    fn file(self) -> &'static str {
        match self {
            Self::Sim => "tests/killers/sim.tsv",
            Self::Qemu => "tests/killers/qemu.tsv",
            Self::Scc => "tests/killers/scc.tsv",
        }
    }

    /// What to do about a file that is out of date.
    fn advice(self) -> &'static str {
        match self {
            Self::Sim => "run `cargo xtask mutants --record`",
            Self::Qemu => "run `cargo xtask mutants --on qemu --record`",
            Self::Scc => "run `cargo xtask mutants --on scc --record`",
        }
    }
}

/// Runs the command; `false` if a point survives that should not, or the other way round.
pub fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    console.release();
    if let Some(which) = &arguments.replay {
        return replay(console, arguments, which);
    }
    Ok(sweep(console, arguments)?.failed == 0)
}

/// All points on the simulator, for `cargo xtask test`: by their recorded runs, or by a search for
/// each.
pub fn all(console: &Console, schedules: u64, search: bool) -> Result<Count> {
    let arguments = Arguments {
        schedules,
        search,
        is_quiet: !console.is_verbose(),
        ..Arguments::default()
    };
    sweep(console, &arguments)
}

/// The boards' points.
pub fn on_board(console: &Console) -> Result<Count> {
    let mut count = Count::default();
    for on in [On::Qemu, On::Scc] {
        let arguments = Arguments {
            on,
            ..Arguments::default()
        };
        count.add(sweep(console, &arguments)?);
    }
    Ok(count)
}

/// What is done with which points.
struct Plan<'a> {
    /// Those to break, in alphabetical order.
    points: Vec<&'a str>,
    /// Their recorded runs, as far as these are to be tried.
    killers: BTreeMap<&'a str, &'a Killer>,
    schedules: u64,
}

/// Breaks the points that are asked for, prints what comes of it, and counts it.
fn sweep(console: &Console, arguments: &Arguments) -> Result<Count> {
    let sources = Sources::read(console)?;
    if sources.errors > 0 {
        return Ok(Count {
            failed: sources.errors,
            ..Count::default()
        });
    }
    let file = arguments.on.file();
    let mut killers = Killers::read(file)?;
    for name in sources.gone(&killers) {
        let advice = arguments.on.advice();
        console.say(&format!(
            "{file}: {name}: there is no such point any more; {advice}"
        ));
    }
    let on_scc = Killers::read(On::Scc.file())?;
    // The simulator stands for all points but those that the port's own machine code must show.
    let stands_for = |name: &&str| match arguments.on {
        On::Sim => !on_scc.0.contains_key(*name),
        On::Qemu | On::Scc => killers.0.contains_key(*name),
    };
    let names: Vec<&str> = sources
        .names
        .iter()
        .map(String::as_str)
        .filter(stands_for)
        .collect();
    let points = arguments.points(&names)?;
    let tried = |name: &&str| killers.0.get_key_value(*name).filter(|_| !arguments.search);
    let known: BTreeMap<&str, &Killer> = points
        .iter()
        .filter_map(tried)
        .map(|(name, killer)| (&**name, killer))
        .collect();
    // What is argued to survive takes the longest of all searches.
    let asked = arguments.search || arguments.point.is_some();
    let (argued, points): (Vec<&str>, Vec<&str>) = points.into_iter().partition(|name| {
        !asked && sources.equivalent.contains(*name) && !known.contains_key(name)
    });
    let plan = Plan {
        points,
        killers: known,
        schedules: arguments.schedules,
    };
    let table = Table::new(&plan.points, arguments);
    let sweep = match arguments.on {
        On::Sim => simulator(console, &sources, &plan, &table)?,
        On::Qemu => board::sweep(console, Board::Virt, &killers, &plan, &table)?,
        On::Scc => board::sweep(console, Board::Scc, &killers, &plan, &table)?,
    };
    if !argued.is_empty() {
        console.say(&format!(
            "not searched for, since they are argued to be equivalent (--search does): {}",
            argued.join(", ")
        ));
    }
    if !arguments.search {
        let advice = match arguments.record {
            true => String::new(),
            false => format!("; {}", arguments.on.advice()),
        };
        let news = sweep.news(&plan, &advice);
        news.iter().for_each(|line| console.say(line));
    }
    let count = sweep.count(console, &sources, plan.points.len(), arguments.json);
    if arguments.record && sweep.ended_well {
        let gone: Vec<String> = sources.gone(&killers).map(str::to_owned).collect();
        let changed = killers.update(&gone, sweep.killers());
        killers.write(file)?;
        console.say(&format!(
            "{file}: {} lines, {changed} of them new, changed or dropped",
            killers.0.len()
        ));
    }
    Ok(count)
}

/// The check of the sources and of the recorded runs' names alone.
pub fn check(console: &Console) -> Result<Count> {
    let sources = Sources::read(console)?;
    let mut errors = sources.errors;
    for on in [On::Sim, On::Qemu, On::Scc] {
        for name in sources.gone(&Killers::read(on.file())?) {
            let (file, advice) = (on.file(), on.advice());
            console.error(&format!("{file}: {name}: there is no such point; {advice}"));
            errors += 1;
        }
    }
    out(&format!(
        "{} mutation points, {errors} errors",
        sources.names.len()
    ));
    Ok(Count::one(errors == 0))
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
        errors.iter().for_each(|error| console.error(error));
        Ok(Self {
            names,
            equivalent: equivalent.into_iter().collect(),
            errors: errors.len(),
        })
    }

    /// The points of the file that are none.
    fn gone<'a>(&self, killers: &'a Killers) -> impl Iterator<Item = &'a str> {
        let names = killers.0.keys().map(String::as_str);
        names.filter(|name| !self.names.iter().any(|known| known == name))
    }
}

/// Prints rows as they come.
struct Table {
    json: bool,
    quiet: bool,
    name: usize,
}

impl Table {
    /// For these points. Prints the head.
    fn new(names: &[&str], arguments: &Arguments) -> Self {
        let name = names.iter().map(|name| name.len()).max().unwrap_or(0);
        let (json, quiet) = (arguments.json, arguments.is_quiet);
        let table = Self { json, quiet, name };
        if !json && !quiet {
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
        if self.quiet && result.killed != equivalent {
            return;
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

impl Verdict {
    /// The run that killed.
    fn killer(&self) -> Option<Killer> {
        let text = |name: &str| self.object[name].as_str();
        Killer::parse(text("replay")?, text("how")?)
    }
}

/// What came of all.
#[derive(Default)]
struct Sweep {
    results: Vec<Verdict>,
    /// Recorded runs that do not kill their points, and why.
    lapsed: BTreeMap<String, String>,
    /// The program ended as it should.
    ended_well: bool,
}

impl Sweep {
    /// Points that survived without being listed, or are listed and were killed.
    fn wrong(&self, sources: &Sources) -> usize {
        let wrong = |result: &&Verdict| result.killed == sources.equivalent.contains(&result.point);
        self.results.iter().filter(wrong).count()
    }

    fn has(&self, point: &str) -> bool {
        self.results.iter().any(|result| result.point == point)
    }

    /// Calls the explorer with `options` about points, if there are any, and prints the rows.
    fn explore(
        &mut self,
        console: &Console,
        sources: &Sources,
        plan: &Plan<'_>,
        table: &Table,
        search: bool,
        options: Vec<(&str, String)>,
    ) -> Result<()> {
        if options.is_empty() {
            return Ok(());
        }
        let explorer = Explorer::mutants(console, search)?;
        console.step("breaking points");
        let points = sources.names.iter().map(|name| ("point", name.clone()));
        let schedules = ("schedules", plan.schedules.to_string());
        let options = points.chain([schedules]).chain(options);
        let options = options.flat_map(|(name, value)| [format!("--{name}"), value]);
        let arguments = std::iter::once("mutants".to_owned()).chain(options);
        let total = plan.points.len() as u64;
        self.ended_well &= explorer.lines(arguments, |object| {
            let rows = self.results.len();
            self.hear(console, object)?;
            for result in &self.results[rows..] {
                table.row(result, sources.equivalent.contains(&result.point));
            }
            console.progress(self.results.len() as u64, total, "points");
            Ok(())
        })?;
        Ok(())
    }

    /// Takes a line of the explorer. A row is the caller's to print.
    fn hear(&mut self, console: &Console, object: Value) -> Result<()> {
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        match object["is"].as_str() {
            Some("lapsed") => {
                self.lapsed.insert(text("point"), text("why"));
            }
            Some("unbroken") => console.say(&format!(
                "no point broken: {} runs of {} settings pass and reach all points",
                object["runs"], object["settings"],
            )),
            Some("error") => console.error(&text("error")),
            Some("result") => self.results.push(Verdict {
                point: text("point"),
                killed: object["killed"] == true,
                object,
            }),
            _ => bail!("unexpected: {object}"),
        }
        Ok(())
    }

    /// The runs that killed.
    fn killers(&self) -> impl Iterator<Item = (&str, Killer)> {
        let killed = self.results.iter().filter(|result| result.killed);
        killed.filter_map(|result| Some((&*result.point, result.killer()?)))
    }

    /// What a search had to do because the recorded runs did not, and what these did in another
    /// way.
    fn news(&self, plan: &Plan<'_>, advice: &str) -> Vec<String> {
        let of = |result: &Verdict| {
            let (point, now) = (&result.point, result.killer());
            let found = match &now {
                Some(now) => format!("found another, {}{advice}", now.replay()),
                None => "found no other".to_owned(),
            };
            match (self.lapsed.get(point), plan.killers.get(&**point), now) {
                (Some(why), ..) => Some(format!(
                    "killer of {point} no longer kills ({why}): {found}"
                )),
                (None, None, now) => {
                    let found = now.map_or("found none".to_owned(), |now| {
                        format!("found {}{advice}", now.replay())
                    });
                    Some(format!("no killer of {point} is recorded: {found}"))
                }
                (None, Some(then), Some(now)) if now.how != then.how => Some(format!(
                    "killer of {point} kills by {} now, not by {}{advice}",
                    now.how, then.how
                )),
                (None, Some(_), _) => None,
            }
        };
        self.results.iter().filter_map(of).collect()
    }

    /// Prints the verdict, and counts `points` points: those that are wrong have failed, and at
    /// least one if the sweep did not end well.
    fn count(&self, console: &Console, sources: &Sources, points: usize, json: bool) -> Count {
        let ok = self.verdict(console, sources, json);
        let failed = self.wrong(sources).max(usize::from(!ok));
        Count {
            passed: points.saturating_sub(failed),
            failed,
            skipped: 0,
        }
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

/// Sweeps over the points on the simulator: tries the recorded runs, then searches for the points
/// that are left.
fn simulator(
    console: &Console,
    sources: &Sources,
    plan: &Plan<'_>,
    table: &Table,
) -> Result<Sweep> {
    let mut sweep = Sweep {
        ended_well: true,
        ..Sweep::default()
    };
    let recorded = plan.killers.iter();
    let recorded = recorded.map(|(name, killer)| ("killer", format!("{name}={}", killer.replay())));
    sweep.explore(console, sources, plan, table, false, recorded.collect())?;
    let left = plan.points.iter().filter(|name| !sweep.has(name));
    let left: Vec<_> = left.map(|name| ("break", (*name).to_owned())).collect();
    if !plan.killers.is_empty() && !left.is_empty() {
        console.say(&format!("searching for what kills {} points", left.len()));
    }
    sweep.explore(console, sources, plan, table, true, left)?;
    sweep.results.sort_by(|a, b| a.point.cmp(&b.point));
    Ok(sweep)
}

/// Prints the account of one run; `false` if that fails, as it does when the point is killed there.
fn replay(console: &Console, arguments: &Arguments, which: &str) -> Result<bool> {
    if arguments.on == On::Qemu {
        return Err(usage(
            "--replay is for the simulator; on the board, --point alone prints the run",
        ));
    }
    let sources = Sources::read(console)?;
    let point = arguments.point.as_deref().unwrap_or("");
    if !sources.names.iter().any(|name| name == point) {
        return Err(usage(format!(
            "--point {point}: with --replay, give the whole name of a point"
        )));
    }
    let explorer = Explorer::mutants(console, false)?;
    console.clear();
    let mut command = explorer.command();
    command.args(["mutants", "--break", point, "--replay", which]);
    let status = children::status(&mut command).context("cannot run the explorer")?;
    match status.code() {
        Some(2) => Err(usage(format!(
            "--replay {which}: give CASE/CORES/PROFILE:SEED as a row has it"
        ))),
        code => Ok(code == Some(0)),
    }
}
