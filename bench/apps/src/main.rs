//! `flagpost-app`: runs programs of `flagpost-apps`, and says how long they took. `cargo xtask app`
//! builds it.

mod on;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use flagpost_apps::{Outcome, Size, Variant};
use flagpost_common::{Json, median, out, table};
use flagpost_sim::Latencies;

/// Runs programs of the sources, each in its variants, and checks what they find
///
/// A program's result is compared with that of a serial run, on each rank. One that differs ends
/// the command with status 1. Times are those of the slowest rank: core cycles on the simulator,
/// the same on any host; microseconds elsewhere, medians of the runs.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask app", bin_name = "cargo xtask app")]
struct Arguments {
    /// A program, or `all`
    name: String,
    /// Where it runs
    #[arg(long, value_enum, default_value = "sim")]
    on: On,
    /// How many ranks
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=1024))]
    ranks: u16,
    /// Only this variant
    #[arg(long, value_name = "NAME", value_parser = variant)]
    variant: Option<Variant>,
    /// Elements of a rank's part along each side, and steps: SIDExSTEPS [default: a small one]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<Size>,
    /// Runs of each on a machine whose clock is real
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// What accesses cost on the simulator
    #[arg(long, value_name = "NAME", default_value = "scc-eas")]
    latencies: Latencies,
    /// One JSON object per program and variant, a line each
    #[arg(long)]
    json: bool,
}

/// Where a program runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum On {
    /// The simulated SCC
    Sim,
    /// Processes of this machine, over shared memory
    Linux,
    /// Processes of this machine, over libfabric
    Fabric,
}

impl On {
    const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Linux => "linux",
            Self::Fabric => "fabric",
        }
    }
}

/// One program in one variant, at one size.
struct Task<'a> {
    name: &'a str,
    variant: Variant,
    ranks: u16,
    size: Size,
    memory: usize,
}

fn variant(name: &str) -> Result<Variant, String> {
    let names = || Variant::ALL.map(Variant::name).join(", ");
    Variant::of(name).ok_or_else(|| format!("one of {}", names()))
}

fn size(text: &str) -> Result<Size, String> {
    let parsed = text.split_once('x').and_then(|(side, steps)| {
        Some(Size {
            side: side.parse().ok().filter(|&side| side > 0)?,
            steps: steps.parse().ok().filter(|&steps| steps > 0)?,
        })
    });
    parsed.ok_or_else(|| "SIDExSTEPS, such as 64x10".to_owned())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let programs = flagpost_apps::programs::<on::SimLink>();
    let chosen = |name| arguments.name == "all" || arguments.name == name;
    let mut rows = Vec::new();
    for program in programs.iter().filter(|program| chosen(program.name)) {
        let size = arguments.size.unwrap_or(program.small);
        let wanted = |variant: &&Variant| arguments.variant.is_none_or(|only| only == **variant);
        for &variant in program.variants.iter().filter(wanted) {
            let task = Task {
                name: program.name,
                variant,
                ranks: arguments.ranks,
                size,
                memory: (program.memory)(arguments.ranks, size),
            };
            let outcomes = outcomes(arguments, program, &task)?;
            rows.push(tell(arguments, program.unit, &task, &outcomes));
        }
    }
    if rows.is_empty() {
        let names = programs.map(|program| program.name).join(", ");
        bail!("no such program or variant; programs: {names}, all");
    }
    if !arguments.json {
        out(&format!(
            "{} ranks on {}, each result as that of a serial run",
            arguments.ranks,
            arguments.on.name()
        ));
        let unit = unit(arguments.on);
        table(&["program", "variant", "size", unit, "work", "of"], &rows);
    }
    Ok(())
}

/// What a time is counted in.
const fn unit(on: On) -> &'static str {
    match on {
        On::Sim => "cycles",
        On::Linux | On::Fabric => "us",
    }
}

fn outcomes(
    arguments: &Arguments,
    program: &flagpost_apps::Program<on::SimLink>,
    task: &Task<'_>,
) -> Result<Vec<Outcome>> {
    match arguments.on {
        On::Sim => Ok(vec![on::simulator(program, task, arguments.latencies)?]),
        On::Linux | On::Fabric => (0..arguments.runs)
            .map(|_| on::processes(task, arguments.on == On::Fabric))
            .collect(),
    }
}

/// A row of the table, or its object.
fn tell(
    arguments: &Arguments,
    unit_of_work: &str,
    task: &Task<'_>,
    outcomes: &[Outcome],
) -> Vec<String> {
    let time = |outcome: &Outcome| match arguments.on {
        On::Sim => outcome.ticks as f64,
        _ => outcome.ticks as f64 * 1e6 / outcome.per_second as f64,
    };
    let time = median(outcomes.iter().map(time));
    let work = outcomes.first().map_or(0, |outcome| outcome.work);
    let size = format!("{}x{}", task.size.side, task.size.steps);
    if arguments.json {
        Json::new()
            .text("app", task.name)
            .text("variant", task.variant.name())
            .text("on", arguments.on.name())
            .number("ranks", task.ranks)
            .text("size", &size)
            .number("time", format_args!("{time:.1}"))
            .text("unit", unit(arguments.on))
            .number("work", work)
            .number("verified", true)
            .print();
    }
    vec![
        task.name.to_owned(),
        task.variant.name().to_owned(),
        size,
        format!("{time:.1}"),
        work.to_string(),
        unit_of_work.to_owned(),
    ]
}
