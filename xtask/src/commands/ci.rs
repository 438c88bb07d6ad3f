//! `cargo xtask ci`: everything that must hold before a change goes in. `.ci/run` only calls this.
//!
//! A step that fails does not stop the others: a person who broke two things learns of both. Each
//! step's time is shown, since a slow one is sooner or later left out.

use std::io;
use std::process::{Command, Output};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::{bench, doctor, fabric, features, panics, scc, selftest, sizes, test, tidy};
use crate::board::Board;
use crate::boot::{self, Setup};
use crate::console::{Console, out};
use crate::count::Count;
use crate::error::usage;
use crate::image::{self, Image, Source};
use crate::run::Run;
use crate::session::Session;
use crate::toolchain::{self, Part};
use crate::{children, mutants, paths, rules, tools};
use flagpost_common::table;

/// The board crate's binary links only for its own target; its library is checked on the host.
const HOST: [&str; 3] = ["--workspace", "--exclude", "flagpost-qemu"];
const BOARD: [&str; 3] = ["--package", "flagpost-qemu", "--lib"];
/// A deep run has 100.
const SEEDS: u32 = 6;
/// Seeds that run twice.
const AGAIN: [u32; 2] = [0, 1];
/// Cases that a board runs twice.
const TWICE: &str = "notify.";
/// The other processor that `flagpost-hal-linux` has code for.
const OTHER_LINUX: Part = Part::Target("aarch64-unknown-linux-gnu");
const EXAMPLE: &str = "examples/bare-metal-rust";
/// Examples for chips that nothing emulates, each a workspace of its own, and their targets.
const CORTEX_M: [(&str, &str); 2] = [
    ("examples/rp2350", "thumbv8m.main-none-eabihf"),
    ("examples/stm32h745", "thumbv7em-none-eabihf"),
];

type Step = (&'static str, fn(&Console) -> Result<Count>);

const STEPS: &[Step] = &[
    ("tidy", |_| tidy::check()),
    ("tools", |console| Ok(Count::one(doctor::run(console)))),
    ("format", |_| cargo(&["fmt", "--all", "--check"])),
    ("clippy", |_| cargo(&clippy(&HOST, &["--all-targets"]))),
    ("clippy, board", |_| cargo(&clippy(&BOARD, &[]))),
    ("clippy, mutants", |_| clippy_mutants()),
    ("check, aarch64", other_linux),
    ("features", features::check),
    ("documentation", |_| documentation()),
    ("dependencies", dependencies),
    ("mutation points", mutants::check),
    ("tests", |console| Ok(test::quick(console))),
    ("no panic", |_| panics::check()),
    ("fabric", fabric::ci),
    ("instructions", bench::instructions),
    ("seeds", seeds),
    ("broken images", selftest::all),
    ("example", example),
    ("SCC image", scc::ci),
    ("board an521", |console| board(console, Board::An521)),
    ("Cortex-M examples", cortex_m),
    ("sizes", |console| sizes::check(console, "", false)),
    ("exploration", |console| {
        Ok(test::only(console, "exploration"))
    }),
    ("mutants killed", |console| {
        Ok(test::only(console, "mutants"))
    }),
];

/// Steps that run beside the others, one after the other, when all steps run. The first share no
/// build directory with the others, but for the image of the cases; the last come when the tests
/// are compiled.
const BESIDE: [&str; 11] = [
    "no panic",
    "instructions",
    "SCC image",
    "seeds",
    "board an521",
    "broken images",
    "example",
    "Cortex-M examples",
    "sizes",
    "exploration",
    "mutants killed",
];
/// They begin with the first of the others that compiles.
const BEGIN: &str = "clippy";

/// Steps that run in processes of their own.
struct Beside(JoinHandle<Vec<io::Result<Output>>>);

impl Beside {
    fn start() -> Result<Self> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let step = move |name| Command::new(&own).args(["ci", "--only", name]).output();
        let all = move || BESIDE.into_iter().map(step).collect();
        Ok(Self(std::thread::spawn(all)))
    }

    /// Waits for all, and says what each has said.
    fn end(self) -> Result<Count> {
        let all = self.0.join();
        let all = all.map_err(|_| anyhow!("a step beside the others was lost"))?;
        let mut count = Count::default();
        for output in all {
            let output = output.context("cannot run this program again")?;
            for text in [&output.stdout, &output.stderr] {
                out(String::from_utf8_lossy(text).trim_end());
            }
            count.add(Count::one(output.status.success()));
        }
        Ok(count)
    }
}

/// Runs the steps whose name contains `only`; `false` if any failed.
pub(crate) fn run(console: &Console, only: &str) -> Result<bool> {
    let steps: Vec<_> = STEPS
        .iter()
        .filter(|(name, _)| name.contains(only))
        .collect();
    if steps.is_empty() {
        let names: Vec<_> = STEPS.iter().map(|(name, _)| *name).collect();
        bail!(usage(format!(
            "no step is called {only:?}; there are {}",
            names.join(", ")
        )));
    }
    console.release();
    let mut rows = Vec::new();
    let mut total = Count::default();
    let mut beside = None;
    for &&(name, step) in &steps {
        let is_beside = only.is_empty() && BESIDE.contains(&name);
        if is_beside && beside.is_none() {
            continue;
        }
        out(&format!("\n== {name}"));
        let started = Instant::now();
        if only.is_empty() && name == BEGIN {
            beside = Some(Beside::start()?);
        }
        let count = match beside.take_if(|_| is_beside) {
            Some(beside) => beside.end(),
            None => step(console),
        };
        let count = count.unwrap_or_else(|why| {
            console.clear();
            console.error(&format!("{why:#}"));
            Count::one(false)
        });
        console.clear();
        let result = if count.failed == 0 { "ok" } else { "FAILED" };
        let seconds = format!("{:.1}", started.elapsed().as_secs_f64());
        let (passed, failed) = (count.passed.to_string(), count.failed.to_string());
        rows.push(vec![
            name.to_owned(),
            result.to_owned(),
            passed,
            failed,
            seconds,
        ]);
        total.add(count);
    }
    out("\n== summary");
    table(&["step", "result", "passed", "failed", "seconds"], &rows);
    console.failures();
    out(&total.line());
    Ok(total.failed == 0)
}

fn clippy<'a>(packages: &[&'a str], targets: &[&'a str]) -> Vec<&'a str> {
    [
        &["clippy", "--locked"],
        packages,
        targets,
        &["--", "-D", "warnings"],
    ]
    .concat()
}

/// The code that ordinary builds leave out, in the sweep's own target directory.
fn clippy_mutants() -> Result<Count> {
    let mut command = Command::new(paths::cargo());
    command
        .args([
            "clippy",
            "--locked",
            "--package",
            "flagpost-explore",
            "--profile",
            "mutants",
            "--target-dir",
        ])
        .arg(paths::target().join("mutants"))
        .args(["--", "-D", "warnings"])
        .env("CARGO_ENCODED_RUSTFLAGS", "--cfg\u{1f}mutants");
    run_cargo(&mut command)
}

/// A cargo command, its output passed on.
fn cargo(arguments: &[&str]) -> Result<Count> {
    run_cargo(Command::new(paths::cargo()).args(arguments))
}

fn run_cargo(command: &mut Command) -> Result<Count> {
    let status =
        children::status(command.current_dir(paths::root())).context("cannot run cargo")?;
    Ok(Count::one(status.success()))
}

/// Cache instructions and clocks of the processor that this host does not have. There is nothing to
/// run them on.
fn other_linux(console: &Console) -> Result<Count> {
    if !toolchain::has(console, OTHER_LINUX) {
        console.clear();
        out(&format!(
            "left out: the toolchain has no {}, and rustup cannot add it here",
            OTHER_LINUX.name()
        ));
        return Ok(Count::default());
    }
    let package = ["--package", "flagpost-linux"];
    let target = ["--target", OTHER_LINUX.name()];
    cargo(&[&["check", "--locked"], &package[..], &target].concat())
}

fn documentation() -> Result<Count> {
    let mut count = Count::default();
    for packages in [HOST, BOARD] {
        let mut command = Command::new(paths::cargo());
        command
            .args(["doc", "--no-deps", "--locked"])
            .args(packages);
        count.add(run_cargo(command.env("RUSTDOCFLAGS", "-D warnings"))?);
    }
    Ok(count)
}

fn dependencies(console: &Console) -> Result<Count> {
    let findings = rules::check()?;
    findings.bad.iter().for_each(|what| console.error(what));
    out(&format!(
        "{} packages are in order, {} are not",
        findings.good,
        findings.bad.len()
    ));
    Ok(Count::one(findings.bad.is_empty()))
}

/// The cases on 8 cores with several seeds. Two runs of the same give the same instruction counts,
/// with and without a seed; another seed gives others.
fn seeds(console: &Console) -> Result<Count> {
    let session = Session::open(console)?;
    let all: Vec<u32> = (0..SEEDS).chain(AGAIN).collect();
    let runs = session.seeds(console, &Setup::new(8, 0), &all)?;
    let mut count = test::show(console, &runs);
    let mut sums = Vec::new();
    for (seed, second) in AGAIN.into_iter().zip(&runs[SEEDS as usize..]) {
        let first = &runs[seed as usize];
        let same = counts(first) == counts(second);
        let sum: u64 = counts(first).iter().filter_map(|(_, count)| *count).sum();
        let verdict = if same {
            "the same twice"
        } else {
            "NOT the same twice"
        };
        out(&format!("seed {seed}: {sum} instructions, {verdict}"));
        let both = counts(first).into_iter().zip(counts(second));
        for ((case, first), (_, second)) in both.filter(|(first, second)| first != second) {
            console.error(&format!(
                "case {case}: {first:?} instructions, then {second:?}"
            ));
        }
        count.add(Count::one(same && sum > 0));
        sums.push(sum);
    }
    // They differ in their seed only.
    let differ = sums.windows(2).all(|two| two[0] != two[1]);
    if !differ {
        console.error("another seed gave the same run: --seed has no effect");
    }
    count.add(Count::one(differ));
    Ok(count)
}

fn counts(run: &Run) -> Vec<(&str, Option<u64>)> {
    run.cases
        .iter()
        .map(|case| (&*case.name, case.instructions))
        .collect()
}

/// Builds and boots the example, whose directory is a workspace of its own.
fn example(console: &Console) -> Result<Count> {
    let dir = paths::root().join(EXAMPLE);
    if !dir.join("Cargo.toml").exists() {
        bail!("{EXAMPLE} is missing");
    }
    let qemu = tools::qemu(console, tools::RISCV)?;
    let image = Image::open(&image::build(
        console,
        &Source {
            dir: &dir,
            bin: None,
            board: Board::Virt,
            profile: "release",
            mutants: false,
        },
    )?)?;
    let setup = Setup {
        plain: true,
        verbose: true,
        timeout: Duration::from_secs(60),
        ..Setup::new(8, 0)
    };
    let run = boot::boot(console, &qemu, &image, &setup)?;
    run.errors.iter().for_each(|error| console.error(error));
    Ok(Count::one(run.ok()))
}

/// All cases of a board, and some of them twice: both runs say the same.
fn board(console: &Console, board: Board) -> Result<Count> {
    let session = Session::of(console, board)?;
    let [fewest, _] = board.cores();
    let all = Setup::new(fewest, 0);
    let some = Setup {
        filter: Some(TWICE.to_owned()),
        ..all.clone()
    };
    let runs = session.all(console, &[all, some.clone(), some])?;
    console.clear();
    let mut count = Count::default();
    for run in &runs {
        run.errors.iter().for_each(|error| console.error(error));
        count.add(run.count());
    }
    let same = counts(&runs[1]) == counts(&runs[2]);
    if !same {
        console.error("two runs of the same are not the same");
    }
    count.add(Count::one(same));
    Ok(count)
}

/// Links the examples for chips that nothing emulates.
fn cortex_m(console: &Console) -> Result<Count> {
    let mut count = Count::default();
    for (dir, target) in CORTEX_M {
        toolchain::need(console, Part::Target(target))?;
        console.step(format!("building {dir}"));
        let mut command = toolchain::build(target, "release");
        command
            .arg("--target-dir")
            .arg(paths::target().join("cortex-m"))
            .env("CARGO_ENCODED_RUSTFLAGS", "");
        let status = children::status(command.current_dir(paths::root().join(dir)));
        count.add(Count::one(status.context("cannot run cargo")?.success()));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `_flagpost_stack_size = 128K`, in KiB, of a linker script.
    fn stack_size(script: &str) -> u32 {
        let text = std::fs::read_to_string(paths::root().join(script)).expect("a script");
        let lines = text.lines().filter(|line| !line.starts_with(" *"));
        let sizes = lines.filter_map(|line| line.split_once("_flagpost_stack_size = "));
        let mut sizes = sizes.filter_map(|(_, size)| size.split_once('K')?.0.parse().ok());
        sizes.next().expect("a size")
    }

    #[test]
    fn the_stacks_that_the_example_calls_larger_are_larger() {
        let example = stack_size("examples/bare-metal-rust/memory.x");
        assert!(example > stack_size("linker/flagpost-riscv64-virt.x"));
    }
}
