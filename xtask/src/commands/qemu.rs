//! `cargo xtask qemu`: builds the image of the conformance cases, boots it, reports.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Error, Result, bail};
use clap::{Args, value_parser};

use crate::arguments::{self, Unusable};
use crate::board::Board;
use crate::boot::Setup;
use crate::console::{Console, out};
use crate::count::Count;
use crate::error::usage;
use crate::image;
use crate::report;
use crate::run::Run;
use crate::session::Session;

/// As many harts as QEMU's riscv64 `virt` board can have.
pub(crate) const CORES_MAX: u32 = Board::Virt.facts().cores[1];

/// Run the conformance cases on a board that QEMU emulates.
///
/// Finds or installs QEMU and what rustup has for the board, builds the image, boots it and prints
/// what fails, and last `N passed, N failed, N skipped`; with `--filter`, `--seeds` or `--verbose`
/// also a line per case, and what the cases measure. The boards: `virt` (riscv64, 1 to 512 cores,
/// each with a cache in software), `scc` (the SCC's own code on 2 to 48 Pentium cores), `an521`
/// (two Cortex-M33).
///
/// Exit status: 0 if all passed, 1 if a case failed, hung, trapped, panicked or fell silent, 2 if
/// nothing was run because the input is wrong or a tool is missing.
///
/// Runs are deterministic: the same image, cores, seed and arguments give the same instruction
/// counts. Another seed gives other interleavings.
///
/// Environment: FLAGPOST_NO_INSTALL=1 installs nothing; DEFMT_LOG sets the image's log level
/// (info).
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// What is emulated: virt, scc or an521
    #[arg(long, value_name = "NAME", default_value = "virt", value_parser = board)]
    board: Board,
    /// Number of cores, 1 to 512: 8, or the board's only number
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(CORES_MAX)), allow_negative_numbers = true)]
    cores: Option<u32>,
    /// Only cases whose name contains NAME
    #[arg(long, value_name = "NAME", value_parser = word)]
    filter: Option<String>,
    /// Print the names of the cases and run none
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    list: bool,
    /// Host seconds without a case that begins or ends, until a run counts as hung
    #[arg(long, value_name = "S", default_value = "120", value_parser = value_parser!(u64).range(1..=86_400), allow_negative_numbers = true)]
    timeout: u64,
    /// Vary the start of each core by this seed; 0 varies nothing
    #[arg(
        long,
        value_name = "S",
        default_value = "0",
        allow_negative_numbers = true
    )]
    seed: u32,
    /// Run once per seed: A..B (without B), or a count from 0
    #[arg(long, value_name = "A..B", value_parser = seeds, conflicts_with = "seed", allow_negative_numbers = true)]
    seeds: Option<Range<u32>>,
    /// A host thread per core: not deterministic, counts no instructions
    #[arg(long)]
    parallel: bool,
    /// One JSON object per case, a line each, on standard output, when the case ends
    #[arg(long)]
    json: bool,
    /// Print a line per case, and what the image logs
    #[arg(long)]
    verbose: bool,
    /// Build the image as a program is built of which counts of instructions are given: as one
    /// unit, which takes minutes
    #[arg(long)]
    measure: bool,
    /// Further boot argument for the cases; may be given several times
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = argument)]
    arguments: Vec<String>,
}

/// Runs the command; `false` if anything failed.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    let [fewest, most] = arguments.board.facts().cores;
    if !(fewest..=most).contains(&arguments.cores()) {
        bail!(usage(format!(
            "--cores {}: the board {} has {fewest} to {most}",
            arguments.cores(),
            arguments.board.facts().name
        )));
    }
    for word in &arguments.arguments {
        takes(word, arguments.board, arguments.cores())?;
    }
    let profile = match arguments.measure {
        true => image::PROFILE,
        false => image::CASES,
    };
    let session = Session::with(console, arguments.board, profile, false)?;
    if arguments.list {
        return list(console, &session, arguments);
    }
    let setup = arguments.setup();
    let runs = match &arguments.seeds {
        None => vec![session.run(console, &setup)?],
        Some(seeds) => {
            let seeds: Vec<u32> = seeds.clone().collect();
            session.seeds(console, &setup, &seeds)?
        }
    };
    if let (true, Some(filter)) = (runs[0].matched_nothing(), &arguments.filter) {
        return Err(none(console, &session, arguments.cores(), filter)?);
    }
    Ok(arguments.show(console, &runs))
}

/// Prints the names of the cases, one per line.
fn list(console: &Console, session: &Session, arguments: &Arguments) -> Result<bool> {
    let setup = Setup {
        list: true,
        ..arguments.setup()
    };
    let run = session.run(console, &setup)?;
    console.clear();
    if let (true, Some(filter)) = (run.ok() && run.listed.is_empty(), &arguments.filter) {
        return Err(none(console, session, arguments.cores(), filter)?);
    }
    console.release();
    if run.ok() && run.listed.is_empty() {
        bail!("the image lists no cases");
    }
    for case in &run.listed {
        let name = &case.case;
        out(&match arguments.json {
            true => {
                serde_json::json!({"case": name, "min": case.min, "max": case.max.min(CORES_MAX)})
                    .to_string()
            }
            false => name.clone(),
        });
    }
    report::errors(console, std::slice::from_ref(&run), &|run| {
        arguments.repeat(run)
    });
    Ok(run.ok())
}

/// What is said if no case has `filter` in its name.
fn none(console: &Console, session: &Session, cores: u32, filter: &str) -> Result<Error> {
    let setup = Setup {
        list: true,
        ..Setup::new(cores, 0)
    };
    let run = session.run(console, &setup)?;
    let known: Vec<_> = run.listed.iter().map(|case| &*case.case).collect();
    Ok(usage(format!(
        "--filter {filter}: no case has this in its name (broken.* run by full name only); cases: {}",
        known.join(", ")
    )))
}

impl Arguments {
    fn cores(&self) -> u32 {
        let [fewest, most] = self.board.facts().cores;
        self.cores.unwrap_or(8.clamp(fewest, most))
    }

    fn setup(&self) -> Setup {
        Setup {
            filter: self.filter.clone(),
            arguments: self.arguments.clone(),
            parallel: self.parallel,
            timeout: Duration::from_secs(self.timeout),
            json: self.json,
            verbose: true,
            ..Setup::new(self.cores(), self.seed)
        }
    }

    /// Prints the tables and errors of `runs`; `false` if anything failed, in a case or outside.
    fn show(&self, console: &Console, runs: &[Run]) -> bool {
        console.clear();
        console.release();
        if !self.json && (self.verbose || self.filter.is_some() || self.seeds.is_some()) {
            report::tables(runs);
        }
        report::errors(console, runs, &|run| self.repeat(run));
        if runs.iter().all(|run| run.ok() && run.begun() == 0) {
            console.say(&format!(
                "no case runs on {} cores: all were skipped",
                self.cores()
            ));
        }
        if !self.json {
            let mut count = Count::default();
            runs.iter().for_each(|run| count.add(run.count()));
            console.verdict(count);
        }
        runs.iter().all(Run::ok)
    }

    /// The command that repeats a run.
    fn repeat(&self, run: &Run) -> String {
        let mut words = vec![format!(
            "cargo xtask qemu --cores {} --seed {}",
            run.cores, run.seed
        )];
        let other =
            (self.board != Board::Virt).then(|| format!("--board {}", self.board.facts().name));
        words.extend(other);
        words.extend(self.filter.iter().map(|name| format!("--filter {name}")));
        words.extend(self.arguments.iter().map(|word| format!("--arg {word}")));
        words.extend(self.parallel.then(|| "--parallel".to_owned()));
        words.extend(self.measure.then(|| "--measure".to_owned()));
        words.join(" ")
    }
}

fn board(text: &str) -> Result<Board, String> {
    let mut boards = Board::ALL.into_iter();
    let named = boards.find(|board| board.facts().name == text);
    named.ok_or_else(|| {
        let names = Board::ALL.map(|board| board.facts().name);
        format!("there is no such board; there are {}", names.join(", "))
    })
}

fn seeds(text: &str) -> Result<Range<u32>, String> {
    let number = |text: &str| text.parse().map_err(|why| format!("{text:?}: {why}"));
    let range = match text.split_once("..") {
        Some((from, to)) => number(from)?..number(to)?,
        None => 0..number(text)?,
    };
    if range.is_empty() {
        return Err("these are no seeds at all; give A..B with A < B, or a count".to_owned());
    }
    Ok(range)
}

/// A word of the image's command line: blanks would make two of it.
fn word(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || !c.is_ascii()) {
        return Err("give a word without blanks; --list shows the names".to_owned());
    }
    Ok(text.to_owned())
}

fn argument(text: &str) -> Result<String, String> {
    let (name, _) = text
        .split_once('=')
        .ok_or("give it as NAME=VALUE, such as stencil.m=64")?;
    match name {
        "filter" | "seed" | "list" => Err(format!("use --{name} instead")),
        _ if name.is_empty() || text.contains(|c: char| c.is_whitespace() || !c.is_ascii()) => {
            Err("give it as NAME=VALUE without blanks".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

/// Whether the board or the cases take `word`, of the form `name=value`, on so many cores.
fn takes(word: &str, board: Board, cores: u32) -> Result<()> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let mut words = board.facts().words.iter();
    if let Some((_, values)) = words.find(|(known, _)| *known == name) {
        if values.contains(&value) {
            return Ok(());
        }
        let values = values.join(" or ");
        return Err(usage(format!("--arg {word}: {name} takes {values}")));
    }
    let names = || {
        arguments::ARGUMENTS
            .map(|argument| argument.name)
            .join(", ")
    };
    arguments::check(name, value, cores).map_err(|why| match why {
        Unusable::Unknown => usage(format!(
            "--arg {word}: no argument is called {name}; there are {}",
            names()
        )),
        Unusable::Value(takes) => usage(format!("--arg {word}: on {cores} cores, {takes}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All cases have passed, and QEMU has ended with a status of its own.
    #[test]
    fn trouble_outside_of_any_case_fails_the_command_and_is_told() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            arguments: Arguments,
        }
        let words = ["qemu", "--cores", "8", "--json", "--measure"];
        let Line { arguments } = clap::Parser::parse_from(words);
        let well = || Run::new(8, 0);
        let trouble = || Run {
            errors: vec!["QEMU exited with status 3".to_owned()],
            ..Run::new(8, 1)
        };
        for (runs, expected) in [
            (vec![well()], true),
            (vec![trouble()], false),
            (vec![well(), trouble()], false),
            (vec![trouble(), well()], false),
        ] {
            let console = Console::new();
            assert_eq!(arguments.show(&console, &runs), expected, "{runs:?}");
            let again = "cargo xtask qemu --cores 8 --seed 0 --measure";
            assert_eq!(arguments.repeat(&well()), again);
            let told = console.failed();
            assert_eq!(told.is_empty(), expected, "{told:?}");
            assert!(
                told.iter().all(|what| what.contains("status 3")),
                "{told:?}"
            );
        }
    }
}
