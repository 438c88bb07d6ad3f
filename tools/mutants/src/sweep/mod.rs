//! All points: breaks one cache action, lock or ordering step at a time; a case must
//! notice.

mod board;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::board::Board;
use crate::console::{Console, out};
use crate::count::Count;
use crate::error::usage;
use crate::explorer::Explorer;
use crate::files::{self, DOCUMENT, Killer, Killers};
use crate::{children, points};

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
    /// Break each point in all cases that reach it, for N seeds of each setting, and print the
    /// points that each case kills, and kills alone
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "search", "record", "replay"])]
    matrix: Option<u64>,
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

impl On {
    /// Where its killers are kept, and what writes them.
    fn file(self) -> (String, String) {
        let name = match self {
            Self::Sim => "sim",
            Self::Qemu => "qemu",
            Self::Scc => "scc",
        };
        let advice = format!("run `cargo xtask mutants --on {name} --record`");
        (format!("tests/killers/{name}.tsv"), advice)
    }

    fn killers(self) -> Result<Killers> {
        files::killers(&self.file().0)
    }
}

/// Runs the command; `false` if a point survives that should not, or the other way round.
pub fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    console.release();
    match (&arguments.replay, arguments.matrix) {
        (None, None) => Ok(sweep(console, arguments)?.failed == 0),
        (Some(which), _) => shown(console, arguments, false, ["--replay", which]),
        (_, Some(seeds)) => shown(console, arguments, true, ["--matrix", &seeds.to_string()]),
    }
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

/// Has the explorer print one run, or the matrix; `false` if that fails, as a run does in which the
/// point is killed.
fn shown(console: &Console, arguments: &Arguments, search: bool, what: [&str; 2]) -> Result<bool> {
    let [option, value] = what;
    if arguments.on != On::Sim {
        return Err(usage(format!(
            "{option} is for the simulator; on a board, --point alone prints the run"
        )));
    }
    let explorer = Explorer::mutants(console, search)?;
    console.clear();
    let point = arguments.point.as_deref().unwrap_or("");
    let mut command = explorer.command();
    command.args(["mutants", "--break", point, option, value]);
    let status = children::status(&mut command).context("cannot run the explorer")?;
    match status.code() {
        Some(2) => Err(usage(format!(
            "{option} {value}: give CASE/CORES/PROFILE:SEED as a row has it, and the whole name of \
             a point"
        ))),
        code => Ok(code == Some(0)),
    }
}

/// What is done with which points.
struct Plan<'a> {
    /// Those to break, in alphabetical order.
    points: Vec<&'a str>,
    /// Their recorded runs, as far as these are to be tried.
    killers: BTreeMap<&'a str, &'a Killer>,
    /// Points that may survive, and must.
    equivalent: &'a [String],
    arguments: &'a Arguments,
}

/// Breaks the points that are asked for, prints what comes of it, and counts it.
fn sweep(console: &Console, arguments: &Arguments) -> Result<Count> {
    let (on, (file, advice)) = (arguments.on, arguments.on.file());
    let mut killers = on.killers()?;
    let (equivalent, mut errors) = files::equivalent()?;
    errors.extend(points::scan()?);
    // A board stands for those that its file has lines for; the simulator for all but those that
    // the port's own machine code must show.
    let mut names: Vec<String> = killers.keys().cloned().collect();
    if on == On::Sim {
        names = listed(console, arguments.search, &mut errors)?;
        let all = |list: &mut dyn Iterator<Item = &String>, file: &str, advice: &str| {
            let gone = list.filter(|name| !names.contains(name));
            gone.map(|name| format!("{file}: {name}: there is no such point; {advice}"))
                .collect::<Vec<_>>()
        };
        errors.extend(all(&mut equivalent.iter(), DOCUMENT, "remove it"));
        for other in [On::Sim, On::Qemu, On::Scc] {
            if other == on && arguments.record {
                killers.retain(|name, _| names.contains(name));
                continue;
            }
            let (file, advice) = other.file();
            errors.extend(all(&mut other.killers()?.keys(), &file, &advice));
        }
        let on_scc = On::Scc.killers()?;
        names.retain(|name| !on_scc.contains_key(name));
    }
    errors.iter().for_each(|error| console.error(error));
    if !errors.is_empty() {
        return Ok(Count {
            failed: errors.len(),
            ..Count::default()
        });
    }
    let pattern = arguments.point.as_deref().unwrap_or("");
    let chosen = { names.iter() }.filter(|name| name.contains(pattern));
    // What is argued to survive takes the longest of all searches.
    let asked = arguments.search || arguments.point.is_some();
    let (argued, points): (Vec<&str>, Vec<&str>) = { chosen.map(String::as_str) }
        .partition(|&name| !asked && equivalent.iter().any(|argued| argued == name));
    if points.is_empty() {
        let names = names.join(", ");
        return Err(usage(format!(
            "--point {pattern}: no point of {file} has this in its name; points: {names}"
        )));
    }
    let recorded = { killers.iter() }.filter(|_| !arguments.search);
    let recorded = recorded.map(|(name, killer)| (name.as_str(), killer));
    let plan = Plan {
        killers: recorded.filter(|(name, _)| points.contains(name)).collect(),
        points,
        equivalent: &equivalent,
        arguments,
    };
    let sweep = match on {
        On::Sim => simulator(console, &plan)?,
        On::Qemu => board::sweep(console, Board::Virt, &killers, &plan)?,
        On::Scc => board::sweep(console, Board::Scc, &killers, &plan)?,
    };
    if !argued.is_empty() {
        console.say(&format!(
            "not searched for, since they are argued to be equivalent (--search does): {}",
            argued.join(", ")
        ));
    }
    if !arguments.search {
        let advice = if arguments.record { "" } else { &advice };
        let news = sweep.news(&plan, advice);
        news.iter().for_each(|line| console.say(line));
    }
    let count = sweep.count(console, &plan);
    if arguments.record && sweep.ended_well {
        let found = sweep.rows.iter().filter_map(Row::killer);
        killers.extend(found);
        files::write(&file, &killers)?;
        console.say(&format!("{file}: {} lines", killers.len()));
    }
    Ok(count)
}

/// The names of all points, in alphabetical order. Adds what is wrong with them.
fn listed(console: &Console, search: bool, errors: &mut Vec<String>) -> Result<Vec<String>> {
    let explorer = Explorer::mutants(console, search)?;
    let mut points = Vec::new();
    explorer.lines(["mutants", "--list"].map(str::to_owned), |point| {
        points.push(point);
        Ok(())
    })?;
    errors.extend(points::judge(&points));
    let names = points.iter().filter_map(|point| point["point"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// What came of one point: the object that `--json` prints.
struct Row(Value);

impl Row {
    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    fn point(&self) -> &str {
        self.text("point")
    }

    fn is_killed(&self) -> bool {
        self.0["killed"] == true
    }

    /// Its point, and the run that killed that.
    fn killer(&self) -> Option<(String, Killer)> {
        let [point, replay, how] =
            ["point", "replay", "how"].map(|name| self.text(name).to_owned());
        self.is_killed().then_some((point, Killer { replay, how }))
    }

    /// What must not be: it survived without being listed, or was killed and is.
    fn trouble(&self, plan: &Plan<'_>) -> Option<String> {
        let point = self.point();
        match (self.is_killed(), plan.is_equivalent(point)) {
            (false, false) => Some(format!(
                "{point}: nothing notices when this is broken: a case is missing, or the step is \
                 not needed"
            )),
            (true, true) => Some(format!(
                "{point}: {DOCUMENT} says that nothing can notice, but a case does"
            )),
            _ => None,
        }
    }
}

impl Plan<'_> {
    fn is_equivalent(&self, point: &str) -> bool {
        self.equivalent.iter().any(|name| name == point)
    }

    /// Prints the head of the table.
    fn head(&self) {
        if !self.arguments.json && !self.arguments.is_quiet {
            self.line("point", "how", "schedules", "killed by");
        }
    }

    /// Prints a line of the table.
    fn line(&self, point: &str, how: &str, schedules: &str, by: &str) {
        let width = self.points.iter().map(|name| name.len()).max().unwrap_or(0);
        out(&format!("{point:<width$}  {how:<12}  {schedules:>9}  {by}"));
    }

    /// Prints what came of a point.
    fn show(&self, row: &Row) {
        if self.arguments.json {
            let mut object = row.0.clone();
            object["equivalent"] = json!(self.is_equivalent(row.point()));
            return out(&object.to_string());
        }
        if self.arguments.is_quiet && row.trouble(self).is_none() {
            return;
        }
        let (how, by) = match (row.is_killed(), row.trouble(self)) {
            (true, None) => (row.text("how"), row.text("replay")),
            (true, Some(_)) => (row.text("how"), "BUT IS LISTED AS EQUIVALENT"),
            (false, None) => ("equivalent", "-"),
            (false, Some(_)) => ("SURVIVES", "-"),
        };
        self.line(row.point(), how, &row.0["schedules"].to_string(), by);
    }
}

/// What came of all.
#[derive(Default)]
struct Sweep {
    rows: Vec<Row>,
    /// Recorded runs that do not kill their points, and why.
    lapsed: BTreeMap<String, String>,
    /// The program ended as it should.
    ended_well: bool,
}

impl Sweep {
    /// Calls the explorer with `options` about points, if there are any, and prints the rows.
    fn explore(
        &mut self,
        console: &Console,
        plan: &Plan<'_>,
        search: bool,
        options: Vec<[String; 2]>,
    ) -> Result<()> {
        if options.is_empty() {
            return Ok(());
        }
        let explorer = Explorer::mutants(console, search)?;
        console.step("breaking points");
        let mut words = ["mutants", "--schedules"].map(str::to_owned).to_vec();
        words.push(plan.arguments.schedules.to_string());
        words.extend(options.into_iter().flatten());
        let total = plan.points.len() as u64;
        self.ended_well &= explorer.lines(words, |object| {
            if let Some(row) = self.hear(console, object)? {
                plan.show(row);
            }
            console.progress(self.rows.len() as u64, total, "points");
            Ok(())
        })?;
        Ok(())
    }

    /// Takes a line of the explorer. A row is the caller's to print.
    fn hear(&mut self, console: &Console, mut line: Value) -> Result<Option<&Row>> {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        match line["is"].as_str() {
            Some("lapsed") => {
                self.lapsed.insert(text("point"), text("why"));
            }
            Some("unbroken") => console.say(&format!(
                "no point broken: {} runs of {} settings pass and reach all points",
                line["runs"], line["settings"],
            )),
            Some("error") => console.error(&text("error")),
            Some("result") => {
                line.as_object_mut().and_then(|line| line.remove("is"));
                self.rows.push(Row(line));
                return Ok(self.rows.last());
            }
            _ => bail!("unexpected: {line}"),
        }
        Ok(None)
    }

    /// Runs that killed, and are not those that are recorded; recorded runs that do not kill.
    fn news(&self, plan: &Plan<'_>, advice: &str) -> Vec<String> {
        let told = |killer: Option<&Killer>| match killer {
            Some(killer) => format!("{} ({})", killer.replay, killer.how),
            None => "none".to_owned(),
        };
        let of = |row: &Row| {
            let point = row.point();
            let now = row.killer().map(|(_, killer)| killer);
            let then = plan.killers.get(point).copied();
            let why = self.lapsed.get(point).map_or("", |why| why);
            (then != now.as_ref()).then(|| {
                let (then, now) = (told(then), told(now.as_ref()));
                let mut parts = vec![format!("killer of {point}: recorded {then}, found {now}")];
                let more = [why, advice].into_iter().filter(|more| !more.is_empty());
                parts.extend(more.map(str::to_owned));
                parts.join("; ")
            })
        };
        self.rows.iter().filter_map(of).collect()
    }

    /// Prints what is wrong, and the last line. Counts the points: those that are wrong have
    /// failed, and at least one if the sweep did not end well.
    fn count(&self, console: &Console, plan: &Plan<'_>) -> Count {
        console.clear();
        let troubles: Vec<String> = self
            .rows
            .iter()
            .filter_map(|row| row.trouble(plan))
            .collect();
        troubles.iter().for_each(|trouble| console.error(trouble));
        let (of, killed) = (
            self.rows.len(),
            self.rows.iter().filter(|row| row.is_killed()),
        );
        let (killed, points) = (killed.count(), self.rows.iter().map(Row::point));
        let equivalent = points.filter(|point| plan.is_equivalent(point)).count();
        if plan.arguments.json {
            out(&json!({"mutants": of, "killed": killed, "equivalent": equivalent}).to_string());
        } else {
            if equivalent > 0 {
                out(&format!(
                    "{equivalent} argued to be equivalent in {DOCUMENT}"
                ));
            }
            out(&format!("mutants: {killed} of {of} killed"));
        }
        let failed = troubles.len().max(usize::from(!self.ended_well || of == 0));
        Count {
            passed: plan.points.len().saturating_sub(failed),
            failed,
            skipped: 0,
        }
    }
}

/// Sweeps over the points on the simulator: tries the recorded runs, then searches for the points
/// that are left.
fn simulator(console: &Console, plan: &Plan<'_>) -> Result<Sweep> {
    let mut sweep = Sweep {
        ended_well: true,
        ..Sweep::default()
    };
    plan.head();
    let option = |name: &str, value| [format!("--{name}"), value];
    let recorded = plan.killers.iter();
    let recorded =
        recorded.map(|(name, killer)| option("killer", format!("{name}={}", killer.replay)));
    sweep.explore(console, plan, false, recorded.collect())?;
    let left =
        { plan.points.iter() }.filter(|name| sweep.rows.iter().all(|row| row.point() != **name));
    let left: Vec<_> = left
        .map(|name| option("break", (*name).to_owned()))
        .collect();
    if !plan.killers.is_empty() && !left.is_empty() {
        console.say(&format!("searching for what kills {} points", left.len()));
    }
    sweep.explore(console, plan, true, left)?;
    sweep.rows.sort_by(|a, b| a.point().cmp(b.point()));
    Ok(sweep)
}
