//! `cargo xtask explore`: the cases under many schedules, or small ones under all within bounds.

use std::fs;
use std::iter;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};

use self::options::Options;
use crate::console::{Console, out};
use crate::count::Count;
use crate::error::usage;
use crate::explorer::Explorer;
use crate::paths;

/// Parsed to refuse what is wrong before anything is built, and for the help.
#[path = "../../../tests/explore/src/options.rs"]
#[allow(dead_code, reason = "the explorer reads them")]
mod options;

/// Run the conformance cases on the simulator under many schedules, or small ones under
/// all schedules within bounds
///
/// Seeded: every case, at several sizes and on every profile (or on the one preset), gets its share
/// of the schedules. Exhaustive: every schedule of the small cases, with a bounded number of
/// evictions and other acts of the chip; larger cases too with --preemptions. On all processors of
/// the host; the outcome does not depend on how many.
///
/// A failing run is printed with its last accesses and the line that repeats it, then searched for
/// anew with as few cores, evictions and preemptions as possible; both are written as traces for
/// `cargo xtask replay`.
///
/// Exit status: 0 if nothing failed (and, if exhaustive, everything was tried); else 1; 2 for bad
/// input.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: Options,
    /// One JSON object per setting, a line each
    #[arg(long)]
    json: bool,
}

/// The words of the command line as the explorer takes them: it parses the same options.
fn words() -> Vec<String> {
    let words = std::env::args().skip(1);
    words.filter(|word| word != "--json").collect()
}

/// What `cargo xtask test --deep` explores: everything by seeds, then small cases in every
/// schedule.
const DEEP: [&str; 7] = [
    "--schedules 200000",
    "--strategy exhaustive --case small. --cores 2 --profile scc --evictions 1 --states 500000",
    "--strategy exhaustive --case small.shared.notify_twice --cores 2 --evictions 1 --fills 1",
    "--strategy exhaustive --case small.fan_out --cores 2 --profile weak",
    "--strategy exhaustive --case small.switch --cores 3 --profile scc+fill --evictions 1 --fills 1",
    "--strategy exhaustive --case small.switch --cores 3 --profile weak",
    "--strategy exhaustive --case small.fan_out --cores 4 --profile scc",
];

/// What `cargo xtask test` explores: each setting by one seed at least. `small.start` alone would
/// take three quarters of the time, two others four fifths of what is left, and those with bells
/// nine tenths of the rest.
const QUICK: [&str; 7] = [
    "--schedules 6000",
    "--strategy exhaustive --case small. --cores 2 --profile scc --preemptions 1 --skip small.start,small.bells.,small.ping_pong,small.notify_twice",
    "--strategy exhaustive --case small.bells. --cores 2 --profile scc --preemptions 0",
    "--strategy exhaustive --case small.ping_pong --cores 2 --profile scc --preemptions 0",
    "--strategy exhaustive --case small.notify_twice --cores 2 --profile scc --preemptions 0",
    "--strategy exhaustive --case small.fan_out --cores 2 --profile weak",
    "--strategy exhaustive --case small.switch --cores 3 --profile scc",
];

/// What is printed of an exploration.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Show {
    Rows,
    Json,
    Total,
}

/// Runs the command; `false` if anything failed.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    console.release();
    let explorer = Explorer::plain(console)?;
    let show = if arguments.json {
        Show::Json
    } else {
        Show::Rows
    };
    let (totals, ended) = explore(console, &explorer, words(), show)?;
    Ok(ended && totals.good())
}

/// The exploration of the tests: each setting counts as a check. The quick one takes the program
/// that the tests have built; the deep one pays for the build of a faster one.
pub(crate) fn of_tests(console: &Console, deep: bool) -> Result<Count> {
    let (explorer, settings) = if deep {
        (Explorer::plain(console)?, &DEEP[..])
    } else {
        (Explorer::of_tests(console)?, &QUICK[..])
    };
    let mut count = Count::default();
    for words in settings {
        out(&format!("cargo xtask explore {words}"));
        let words = words.split_whitespace().map(str::to_owned);
        let words = iter::once("explore".to_owned()).chain(words).collect();
        let (totals, ended) = explore(console, &explorer, words, Show::Total)?;
        count.passed += totals.settings as usize;
        count.failed += usize::from(!ended || !totals.good());
    }
    Ok(count)
}

/// Calls the explorer and prints what it says.
fn explore(
    console: &Console,
    explorer: &Explorer,
    words: Vec<String>,
    show: Show,
) -> Result<(Totals, bool)> {
    let named = ["exhaustive", "--strategy=exhaustive"];
    let exhaustive = words.iter().any(|word| named.contains(&&**word));
    let what = if exhaustive { "settings" } else { "schedules" };
    let json = show == Show::Json;
    let mut totals = Totals::default();
    console.step("exploring");
    let ended = explorer.lines(words, |object| {
        match object["is"].as_str() {
            Some("progress") => {
                let number = |name: &str| object[name].as_u64().unwrap_or(0);
                console.progress(number("done"), number("total"), what);
            }
            Some("result") => {
                totals.add(&object);
                match show {
                    Show::Rows => row(&object, exhaustive),
                    Show::Json => out(&object.to_string()),
                    Show::Total => {}
                }
            }
            Some("failure") => {
                totals.failed = true;
                console.clear();
                account(console, &object, "", json)?;
                console.step("searching for a simpler one");
            }
            Some("shrunk") => {
                console.clear();
                let (choices, switches) = (&object["choices"], &object["switches"]);
                if !json {
                    let bounds = object["bounds"].as_str().unwrap_or_default();
                    out(&format!(
                        "\nthe simplest like it that was found: {choices} choices, {switches} switches, {bounds}"
                    ));
                }
                account(console, &object, "-small", json)?;
            }
            Some("unshrunk") if !json => {
                console.clear();
                out("\nno simpler run that fails like it was found");
            }
            Some("unusable") => {
                return Err(usage(object["why"].as_str().unwrap_or_default()));
            }
            Some("time") => totals.seconds = object["seconds"].as_f64().unwrap_or(0.0),
            _ => {}
        }
        Ok(())
    })?;
    console.clear();
    if totals.settings > 0 || totals.failed {
        totals.show(json, exhaustive);
    }
    Ok((totals, ended))
}

/// What all settings together took.
#[derive(Default)]
struct Totals {
    settings: u64,
    schedules: u64,
    steps: u64,
    seconds: f64,
    incomplete: u64,
    failed: bool,
}

impl Totals {
    /// Something was tried, and nothing of it failed.
    fn good(&self) -> bool {
        self.settings > 0 && !self.failed
    }

    fn add(&mut self, object: &Value) {
        self.settings += 1;
        self.steps += object["steps"].as_u64().unwrap_or(0);
        // Exhaustive searches count schedules beyond 64 bits, and give them as text.
        let runs = object["runs"].as_u64().or(object["schedules"].as_u64());
        self.schedules += runs.unwrap_or(0);
        self.incomplete += u64::from(object["complete"] == false);
    }

    fn show(&self, json: bool, exhaustive: bool) {
        let rate = |count: u64| count as f64 / self.seconds.max(1e-9);
        if json {
            return out(&json!({
                "settings": self.settings, "runs": self.schedules, "steps": self.steps,
                "seconds": self.seconds, "incomplete": self.incomplete, "failed": self.failed,
            })
            .to_string());
        }
        let what = if exhaustive { "runs" } else { "schedules" };
        out(&format!(
            "{} settings, {} {what}, {} steps in {:.1} s: {:.0} {what}/s, {:.1} million steps/s",
            self.settings,
            self.schedules,
            self.steps,
            self.seconds,
            rate(self.schedules),
            rate(self.steps) / 1e6
        ));
        if self.incomplete > 0 {
            out(&format!(
                "{} settings were NOT tried in every schedule: raise --states",
                self.incomplete
            ));
        }
        out(if self.failed {
            "FAILED"
        } else {
            "nothing failed"
        });
    }
}

/// One setting's row.
fn row(object: &Value, exhaustive: bool) {
    let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
    let seconds = object["seconds"].as_f64().unwrap_or(0.0);
    let setting = text("setting");
    if exhaustive {
        let complete = if object["complete"] == true {
            "all"
        } else {
            "NOT all"
        };
        out(&format!(
            "{setting:<36} {complete:>7}  {:>1} epochs {:>9} states {:>9} runs {seconds:>7.1} s  {}  {} schedules",
            object["epochs"].to_string(),
            object["states"].to_string(),
            object["runs"].to_string(),
            text("bounds"),
            text("schedules"),
        ));
    } else {
        let schedules = object["schedules"].as_u64().unwrap_or(0);
        let steps = object["steps"].as_u64().unwrap_or(0);
        let each = steps.checked_div(schedules).unwrap_or(0);
        out(&format!(
            "{setting:<40} {schedules:>9} schedules of {each:>7} steps  {seconds:>7.1} s"
        ));
    }
}

/// A failing run: its account, and its trace as a file.
fn account(console: &Console, object: &Value, suffix: &str, json: bool) -> Result<()> {
    let name = object["setting"]
        .as_str()
        .unwrap_or("run")
        .replace('/', "-");
    let file = paths::target()
        .join("traces")
        .join(format!("{name}{suffix}.json"));
    fs::create_dir_all(paths::target().join("traces")).context("cannot make a place for traces")?;
    let trace = serde_json::to_string_pretty(&object["trace"])?;
    console.failure(&format!("exploration: {name}"));
    fs::write(&file, trace + "\n").with_context(|| format!("cannot write {}", file.display()))?;
    if json {
        out(&object.to_string());
    } else {
        out(object["account"].as_str().unwrap_or_default());
    }
    console.say(&format!(
        "repeat it with: cargo xtask replay {}",
        paths::shorten(&file.display().to_string())
    ));
    Ok(())
}
