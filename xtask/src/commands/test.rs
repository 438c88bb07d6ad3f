//! `cargo xtask test`: the parts of the tests, and how much each of them tries.
//!
//! The quick run takes minutes; CI makes it. The deep run makes the same parts, with all seeds,
//! schedules and searches, and some parts of its own.

use std::io::{BufRead, BufReader, pipe};
use std::panic::resume_unwind;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use flagpost_programs::parallel;
use serde_json::Value;

use super::{explore, fabric, handed, linux};
use crate::board::Board;
use crate::boot::Setup;
use crate::children::Running;
use crate::compiling;
use crate::console::{Console, left_out, out};
use crate::count::Count;
use crate::report;
use crate::run::Run;
use crate::session::Session;
use crate::tools;
use crate::{children, mutants, paths};

/// QEMU runs of the same cases: cores, seeds, and what the names of the cases contain.
type Runs = (u32, &'static [u32], &'static str);

/// Those of a deep run: small and odd shapes, the SCC's 48, the board's most. The longest first:
/// they run beside each other.
const RUNS: [Runs; 5] = [
    (512, &[0], ""),
    (48, &[0], ""),
    (16, &[0], ""),
    (8, &[0, 1, 2, 3], ""),
    (2, &[0], ""),
];

/// Those of a quick run. At 512 cores all cases take three times as long as at all other sizes: a
/// quick run has the rings, one of nearly each protocol.
const QUICK_RUNS: [Runs; 4] = [
    (512, &[0], "ring"),
    (48, &[0], ""),
    (8, &[0], ""),
    (2, &[0], ""),
];

/// How windows are mapped in further runs of 8 cores; all others map them normal, which leaves most
/// to be forgotten.
const MAPPINGS: [&str; 2] = ["mapping=mpbt", "mapping=mpbt-wt"];

/// Schedules per mutation point that is searched for.
const SCHEDULES: u64 = 20_000;

/// Run the tests: of the host, the cases on Linux processes, jobs over libfabric where it is here
/// or can be installed, an exploration, mutants, the cases under QEMU
///
/// The quick run tries a part of the seeds and schedules that the deep run tries. Each part
/// prints how long it took, and a deep one before that how long it will take.
///
/// Exit status: 0 if nothing failed; else 1; 2 for bad input. The last line is `N passed, N failed,
/// N skipped, N left out: WHY`. Skipped are cases for other numbers of ranks or other machines;
/// left out are tests of what this machine lacks.
#[derive(Args, Debug, Default)]
pub(crate) struct Arguments {
    /// All seeds, schedules and searches, and those parts that only a deep run has
    #[arg(long)]
    deep: bool,
    /// Only this part; may be given several times
    #[arg(long = "part", value_name = "NAME", value_parser = PossibleValuesParser::new(PARTS.map(|part| part.name)))]
    parts: Vec<String>,
    /// Print what passes and what is skipped, too
    #[arg(long)]
    verbose: bool,
}

/// Programs of tests that run at the same time, at most.
const SIDE_BY_SIDE: usize = 4;

/// A part of the tests.
struct Part {
    name: &'static str,
    what: &'static str,
    /// Minutes that the deep run takes on two idle cores, what is built for it included.
    minutes: u64,
    /// The quick run has it, too.
    quick: bool,
    run: Tests,
}

/// Runs the tests of a part, deep or quick.
type Tests = fn(&Console, bool) -> Result<Count>;

/// A part of both runs.
const fn both(name: &'static str, what: &'static str, minutes: u64, run: Tests) -> Part {
    Part {
        name,
        what,
        minutes,
        quick: true,
        run,
    }
}

/// A part that only a deep run has.
const fn deep(name: &'static str, what: &'static str, minutes: u64, run: Tests) -> Part {
    Part {
        quick: false,
        ..both(name, what, minutes, run)
    }
}

/// The part that is left out where there is no libfabric, unless it is asked for.
const FABRIC: &str = "fabric";

const PARTS: [Part; 9] = [
    both("host", "cargo test", 20, host),
    both("linux", "the cases on Linux processes", 1, |console, _| {
        linux::cases(console)
    }),
    both(FABRIC, "jobs over libfabric", 2, fabric::of_tests),
    both(
        "exploration",
        "the cases under many schedules, small ones under all within bounds",
        6,
        explore::of_tests,
    ),
    both(
        "mutants",
        "each mutation point broken: by its recorded run; deep, by a search",
        6,
        |console, deep| mutants::all(console, SCHEDULES, deep),
    ),
    both("qemu", "the cases under QEMU at several sizes", 3, qemu),
    deep(
        "seeds",
        "the cases under QEMU with 100 seeds",
        2,
        |console, _| seeds(console, 100),
    ),
    deep(
        "board-mutants",
        "mutation points that must be killed under QEMU, too",
        2,
        |console, _| mutants::on_board(console),
    ),
    deep(
        "results",
        "the tables of the documents, as their commands print them",
        10,
        |console, _| handed::results(console),
    ),
];

/// Runs the command; `false` if anything failed.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> bool {
    if arguments.verbose {
        console.be_verbose();
    }
    console.verdict(parts(console, arguments))
}

/// Parts that wait more than they compute: the quick run makes them beside the others, one after
/// the other.
const BESIDE: [&str; 3] = ["qemu", "linux", FABRIC];

/// The quick run of these parts, without the summary.
pub(crate) fn only(console: &Console, names: &[&str]) -> Count {
    let arguments = Arguments {
        parts: names.iter().copied().map(str::to_owned).collect(),
        ..Arguments::default()
    };
    parts(console, &arguments)
}

fn parts(console: &Console, arguments: &Arguments) -> Count {
    console.release();
    let chosen = |part: &&Part| match &arguments.parts[..] {
        [] => arguments.deep || part.quick,
        names => names.iter().any(|name| name == part.name),
    };
    let mut parts: Vec<&Part> = PARTS.iter().filter(chosen).collect();
    if arguments.parts.is_empty() && !fabric::is_possible() {
        parts.retain(|part| part.name != FABRIC);
        console.left_out("fabric, no libfabric here (see `cargo xtask doctor`)");
    }
    if arguments.deep {
        let total: u64 = parts.iter().map(|part| part.minutes).sum();
        let names: Vec<_> = parts.iter().map(|part| part.name).collect();
        out(&format!(
            "about {total} minutes on two idle cores: {}",
            names.join(", ")
        ));
    }
    if arguments.parts.is_empty() {
        match compiling::reference(console) {
            Ok(time) => out(&format!(
                "this machine compiles {} from nothing in {:.1} s",
                compiling::PIECE,
                time.as_secs_f64()
            )),
            Err(why) => console.error(&format!("{why:#}")),
        }
    }
    let is_whole = arguments.parts.is_empty() && !arguments.deep;
    let (beside, here): (Vec<_>, Vec<_>) =
        { parts.into_iter() }.partition(|part| is_whole && BESIDE.contains(&part.name));
    let run = |part: &&Part| {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["test", "--part", part.name]);
        command.args(arguments.verbose.then_some("--verbose"));
        children::output(&mut command)
    };
    thread::scope(|scope| {
        let others = scope.spawn(|| beside.iter().map(run).collect::<Vec<_>>());
        let mut count = sum(console, &here, arguments.deep);
        console.step("the parts beside the others");
        let outputs = others.join().unwrap_or_else(|panic| resume_unwind(panic));
        for (part, output) in beside.iter().zip(outputs) {
            console.clear();
            count.add(match output {
                Ok(output) => told(console, &output),
                Err(why) => {
                    console.error(&format!("{}: {why}", part.name));
                    Count::one(false)
                }
            });
        }
        count
    })
}

/// Prints what a call of this program has said, but for its last lines: those of this call have
/// what failed there and what was left out. Gives its count.
pub(super) fn told(console: &Console, output: &Output) -> Count {
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.trim_end();
    let (said, last) = text.rsplit_once('\n').unwrap_or(("", text));
    let well = output.status.success();
    let count = numbers(last).filter(|count| well == (count.failed == 0));
    let (said, failed) = said.rsplit_once("\nfailed:\n").unwrap_or((said, ""));
    out(if count.is_some() { said } else { text });
    out(String::from_utf8_lossy(&output.stderr).trim_end());
    let failed = failed.lines().map(str::trim_start);
    failed.for_each(|what| console.failure(what));
    left_out::read(last).for_each(|what| console.left_out(what));
    count.unwrap_or(Count::one(well))
}

/// Runs these parts and counts their tests: a part that cannot run, or tests nothing, has failed.
fn sum(console: &Console, parts: &[&Part], deep: bool) -> Count {
    let total = parts.iter().map(|part| part.minutes).sum();
    let (mut count, mut done) = (Count::default(), 0);
    for part in parts {
        let (started, compiled) = (Instant::now(), compiling::spent());
        out(&format!("\n== {}: {}", part.name, part.what));
        let quick = part.quick && !deep;
        if !quick {
            out(&format!("about {} minutes", part.minutes));
            console.progress(done, total, "minutes' worth of tests");
        }
        let ran = (part.run)(console, !quick).unwrap_or_else(|why| {
            console.clear();
            console.error(&format!("{why:#}"));
            Count::one(false)
        });
        console.clear();
        let ran = if ran.is_some() {
            ran
        } else {
            console.error(&format!("{}: nothing was tested", part.name));
            Count::one(false)
        };
        out(&format!(
            "{}: {}, {:.0} s, {:.0} of them to compile",
            part.name,
            ran.line(),
            started.elapsed().as_secs_f64(),
            (compiling::spent() - compiled).as_secs_f64()
        ));
        count.add(ran);
        done += part.minutes;
    }
    count
}

/// What `cargo test` runs, programs side by side: many of them wait more than they compute.
fn host(console: &Console, deep: bool) -> Result<Count> {
    let words = ["test", "--no-run", "--locked", "--message-format"];
    let mut build = Command::new(paths::cargo());
    build.args(words).arg("json-render-diagnostics");
    build.current_dir(paths::root());
    let built = compiling::shown(console, "the tests", &mut build)?;
    let mut commands: Vec<Command> = built.lines().filter_map(test_program).collect();
    // The examples in the documentation, and the program that takes longest, come first.
    commands.sort_by_key(|command| !command.get_program().to_string_lossy().contains("/host-"));
    let mut examples = Command::new(paths::cargo());
    examples.current_dir(paths::root());
    examples.args(["test", "--locked", "--doc", "--no-fail-fast", "--"]);
    commands.insert(0, examples);
    if deep {
        // Some of them need it.
        tools::libfabric_headers(console)?;
    }
    let commands: Vec<_> = { commands.into_iter() }
        .map(|mut command| {
            command.arg("--show-output");
            if deep {
                command.env("FLAGPOST_DEEP", "1").arg("--include-ignored");
            }
            Mutex::new(command)
        })
        .collect();
    let run = |command: &Mutex<Command>| {
        let mut command = command
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        programs(console, &mut command)
    };
    let mut count = Count::default();
    for ran in parallel::each(&commands, SIDE_BY_SIDE, run, |_, _| {})? {
        count.add(ran);
    }
    Ok(count)
}

/// Reads which program of tests cargo has built, and runs it as cargo would.
fn test_program(line: &str) -> Option<Command> {
    let message: Value = serde_json::from_str(line).ok()?;
    let program = message["executable"].as_str()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let package = Path::new(message["manifest_path"].as_str()?).parent()?;
    let mut command = Command::new(program);
    command
        .current_dir(package)
        .env("CARGO_MANIFEST_DIR", package);
    Some(command)
}

/// Runs a `cargo test` that shows what its tests print, and counts. It prints what a program says
/// in which a test fails, or that ends without a result.
pub(super) fn programs(console: &Console, command: &mut Command) -> Result<Count> {
    let (said, pipe) = pipe().context("no pipe for cargo test")?;
    let also = pipe.try_clone().context("no pipe for cargo test")?;
    command.stdin(Stdio::null());
    command.stdout(pipe).stderr(also);
    let started = Running::start(command);
    // The ends that the command holds would keep the pipe open.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut cargo = started.context("cannot run cargo test")?;
    let (mut count, mut lines) = (Count::default(), Vec::new());
    for line in BufReader::new(said).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        if let Some(why) = line.strip_prefix("skipped: ") {
            console.left_out(why);
        }
        if let Some(test) = failed_test(&line) {
            console.failure(test);
        }
        let result = result(&line);
        lines.push(line);
        match result {
            None => console.step(step(command, &lines)),
            Some(part) => {
                if part.failed > 0 || console.is_verbose() {
                    lines.iter().for_each(|line| out(line));
                }
                lines.clear();
                count.add(part);
            }
        }
    }
    console.clear();
    // A failure to build prints no result.
    if !cargo.wait()?.success() && count.failed == 0 {
        lines.iter().for_each(|line| out(line));
        console.failure(&format!("{command:?}: see above"));
        count.failed = 1;
    }
    Ok(count)
}

/// The program that runs, or the package whose documentation is tested.
fn step(command: &Command, lines: &[String]) -> String {
    let of = |line: &String| {
        line.trim_start()
            .strip_prefix("Doc-tests ")
            .map(str::to_owned)
    };
    let own = Path::new(command.get_program()).file_name();
    let own = own.unwrap_or_default().to_string_lossy();
    format!(
        "testing {}",
        lines.iter().rev().find_map(of).unwrap_or(own.into())
    )
}

/// Reads `test fence::opens ... FAILED`.
fn failed_test(line: &str) -> Option<&str> {
    line.strip_suffix(" ... FAILED")?.strip_prefix("test ")
}

/// Reads `test result: ok. 3 passed; 0 failed; ...`.
fn result(line: &str) -> Option<Count> {
    numbers(line.strip_prefix("test result: ")?)
}

/// Reads `3 passed, 0 failed, 1 skipped`.
fn numbers(line: &str) -> Option<Count> {
    let words: Vec<&str> = line.split([' ', ',', ';']).collect();
    let before = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words[at.checked_sub(1)?].parse().ok()
    };
    Some(Count {
        passed: before("passed")?,
        failed: before("failed")?,
        skipped: before("skipped").unwrap_or(0),
    })
}

fn qemu(console: &Console, deep: bool) -> Result<Count> {
    let (runs, mappings) = match deep {
        true => (&RUNS[..], &MAPPINGS[..]),
        false => (&QUICK_RUNS[..], &MAPPINGS[..1]),
    };
    let session = Session::of(console, Board::Virt)?;
    let sizes = runs.iter().map(|&(cores, seeds, filter)| {
        let setup = |&seed| Setup {
            filter: Some(filter.to_owned()).filter(|filter| !filter.is_empty()),
            ..Setup::new(cores, seed)
        };
        seeds.iter().map(setup).collect()
    });
    let mappings = mappings.iter().map(|&mapping| {
        vec![Setup {
            arguments: vec![mapping.to_owned()],
            ..Setup::new(8, 0)
        }]
    });
    let groups: Vec<Vec<Setup>> = sizes.chain(mappings).collect();
    console.step("booting");
    let mut runs = session.all(console, &groups.concat())?.into_iter();
    let mut count = Count::default();
    for group in groups {
        let runs: Vec<_> = runs.by_ref().take(group.len()).collect();
        let of_group = show(console, &runs);
        if let Some(Setup {
            cores, arguments, ..
        }) = group.first()
        {
            let words = [&[format!("qemu, {cores} cores")], &arguments[..]].concat();
            out(&format!("{}: {}", words.join(", "), of_group.line()));
        }
        count.add(of_group);
    }
    Ok(count)
}

/// The cases on 8 cores with this many seeds.
fn seeds(console: &Console, seeds: u32) -> Result<Count> {
    let session = Session::of(console, Board::Virt)?;
    let seeds: Vec<u32> = (0..seeds).collect();
    let runs = session.seeds(console, &Setup::new(8, 0), &seeds)?;
    Ok(show(console, &runs))
}

/// Prints the errors of some runs, and the table if asked, and counts them.
pub(crate) fn show(console: &Console, runs: &[Run]) -> Count {
    console.clear();
    if console.is_verbose() {
        report::tables(runs);
    }
    report::errors(console, runs, &|run| {
        format!("cargo xtask qemu --cores {} --seed {}", run.cores, run.seed)
    });
    let mut count = Count::default();
    runs.iter().for_each(|run| count.add(run.count()));
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `sh` says, as a call of this program.
    fn said(script: &str) -> (Console, Count) {
        let console = Console::new();
        let output = Command::new("sh").args(["-c", script]).output().unwrap();
        let count = told(&console, &output);
        (console, count)
    }

    #[test]
    fn numbers_failures_and_reasons_of_a_call_beside_are_told_by_this_one() {
        let last = "echo '3 passed, 1 failed, 2 skipped, 1 left out: no b'";
        let (console, count) = said(&format!(
            "echo a; echo; echo failed:; echo '  x'; {last}; exit 1"
        ));
        let all = "3 passed, 1 failed, 2 skipped, 1 left out: no b";
        assert_eq!(console.last(count), all);
        assert_eq!(console.failed(), ["x"]);
    }

    /// Whatever its last line says.
    #[test]
    fn a_call_beside_that_ends_badly_has_failed() {
        for script in [
            "echo 3 passed, 0 failed; exit 1",
            "exit 2",
            "echo a; kill $$",
        ] {
            assert_eq!(said(script).1, Count::one(false), "{script}");
        }
        assert_eq!(said("echo 3 passed, 0 failed").1.passed, 3);
    }
}
