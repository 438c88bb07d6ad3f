//! `flagpost-bench`: runs a benchmark and prints it. `cargo xtask bench` builds and calls it.
//!
//! Results go to standard output, as a table or as JSON lines; what is wrong with the arguments is
//! one line on standard error, and exit status 2.

mod commands;

use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use flagpost_bench::pscw::{Class, Setup, Strategy};
use flagpost_bench::{BUFFER, explore, ops, pscw, ring};
use flagpost_common::{Json, out, say, table};
use flagpost_sim::{Latencies, Oracles, Report, Schedule};

#[derive(Parser, Debug)]
#[command(
    name = "cargo xtask bench",
    bin_name = "cargo xtask bench",
    about = "Flagpost's benchmarks"
)]
struct Cli {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand, Debug)]
enum Commands {
    Pscw(Pscw),
    Pingpong(commands::Pingpong),
    Tree(commands::Tree),
    Cross(commands::Cross),
    Micro(commands::Micro),
    Model(commands::Models),
    Ops(Ops),
    Explore(Explore),
    Results(commands::Results),
}

/// Algorithm 3 of [PSCW-SCC]: one origin synchronizes with k targets, in simulated time.
///
/// Prints medians over 1001 epochs in microseconds; total is start + complete, the origin's share.
/// The same arguments give the same digits on any host.
#[derive(Args, Debug)]
struct Pscw {
    /// Numbers of targets: K, or A..B with both ends, within 1..47: one or more, with commas
    #[arg(long, value_name = "A..B", value_delimiter = ',', default_value = "1..31", value_parser = targets, allow_negative_numbers = true)]
    targets: Vec<RangeInclusive<u16>>,
    /// How posts and completions are signalled: one or more, with commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "match-vector"
    )]
    strategy: Vec<Strategy>,
    #[command(flatten)]
    setup: Setup,
    /// The sums of origin and target, and by how many percent the quartiles of each call differ
    /// from its median
    #[arg(long)]
    quartiles: bool,
    /// One JSON object per number of targets, a line each
    #[arg(long)]
    json: bool,
}

impl Pscw {
    /// `Ok` if these arguments go together.
    fn check(&self) -> Result<(), String> {
        let ends = self.targets.iter().map(|range| *range.end());
        let most = ends.max().unwrap_or_default();
        if let Some(cores) = self.setup.cores.filter(|&cores| cores <= most) {
            return Err(format!(
                "--cores {cores} has no room for an origin and {most} targets"
            ));
        }
        if self.strategy.contains(&Strategy::Messages) && !self.is_plain() {
            return Err(
                "--strategy messages has no puts, no other class, and needs the whole buffer"
                    .into(),
            );
        }
        Ok(())
    }

    /// Whether it is the published experiment, without what windows are needed for.
    fn is_plain(&self) -> bool {
        let Setup {
            buffer,
            words,
            work,
            class,
            ..
        } = self.setup;
        buffer == BUFFER && words == 0 && work == 0 && class == Class::TriggerOnly
    }
}

/// What every call costs at the rank that makes it: remote reads and writes, locks, atomics,
/// misses, cycles.
///
/// Two ranks on neighbouring tiles, in simulated time; the third of three equal calls. The same on
/// any host.
#[derive(Args, Debug)]
struct Ops {
    /// Only calls whose name contains this
    #[arg(long, value_name = "NAME", default_value = "")]
    call: String,
    /// One JSON object per call and size, a line each
    #[arg(long)]
    json: bool,
}

/// How fast the simulator is: exploration by seeds, and virtual time.
///
/// Processor time of one thread. Exploration runs the case pscw.ring with 2, 8, 48 and 1024 cores;
/// timed mode runs 1,000 epochs of a ring.
#[derive(Args, Debug)]
struct Explore {
    /// Only exploration with so many cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true)]
    cores: Option<u16>,
    /// One JSON object per row, a line each
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let checked = match &cli.command {
        Commands::Pscw(arguments) => arguments.check(),
        Commands::Micro(arguments) => arguments.check(),
        _ => Ok(()),
    };
    if let Err(why) = checked {
        say(&format!("error: {why} (see cargo xtask bench --help)"));
        return ExitCode::from(2);
    }
    let result = match cli.command {
        Commands::Pscw(arguments) => run_pscw(&arguments),
        Commands::Pingpong(arguments) => arguments.run(),
        Commands::Tree(arguments) => arguments.run(),
        Commands::Cross(arguments) => arguments.run(),
        Commands::Micro(arguments) => arguments.run(),
        Commands::Model(arguments) => arguments.run(),
        Commands::Ops(arguments) => run_ops(&arguments),
        Commands::Explore(arguments) => run_explore(&arguments),
        Commands::Results(arguments) => return arguments.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(report) => {
            say(&report.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Help goes out as it is; an error is put on one line.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if !error.use_stderr() {
        out(text.trim_end());
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        say(text.trim_end());
    } else {
        // The first paragraph says what is wrong; usage and hints follow.
        let first = text.split("\n\n").next().unwrap_or_default();
        let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
        say(&format!("{line} (see cargo xtask bench --help)"));
    }
    ExitCode::from(2)
}

fn targets(text: &str) -> Result<RangeInclusive<u16>, String> {
    let max = pscw::TARGETS_MAX;
    let number = |text: &str| text.parse::<u16>().ok().filter(|n| (1..=max).contains(n));
    let range = match text.split_once("..") {
        None => number(text).map(|n| n..=n),
        Some((from, to)) => {
            let to = to.strip_prefix('=').unwrap_or(to);
            number(from).zip(number(to)).map(|(from, to)| from..=to)
        }
    };
    let range = range.filter(|range| !range.is_empty());
    range.ok_or_else(|| format!("not K or A..B with 1 <= A <= B <= {max}"))
}

fn run_pscw(arguments: &Pscw) -> Result<(), Box<Report>> {
    let setup = &arguments.setup;
    let mut rows = Vec::new();
    let class = name(&setup.class);
    let puts = setup.words > 0 || setup.work > 0;
    for targets in arguments.targets.iter().cloned().flatten() {
        for &strategy in &arguments.strategy {
            let measured = pscw::measure(&Setup {
                strategy,
                targets,
                ..*setup
            })?;
            let strategy = name(&strategy);
            let mut times = vec![
                ("post_us", measured.post),
                ("start_us", measured.start),
                ("complete_us", measured.complete),
                ("wait_us", measured.wait),
                ("total_us", measured.origin()),
            ];
            if puts {
                times.insert(2, ("put_us", measured.put));
            }
            if arguments.json {
                let object = Json::new()
                    .number("targets", targets)
                    .text("strategy", &strategy)
                    .text("class", &class)
                    .number("cores", setup.cores.unwrap_or(targets + 1))
                    .number("software_cycles", setup.software_cycles);
                let object = times
                    .iter()
                    .fold(object, |o, (name, time)| o.number(name, time));
                object.print();
            }
            let mut row = vec![targets.to_string(), strategy];
            if arguments.quartiles {
                row.extend([measured.origin(), measured.target()].map(|sum| sum.to_string()));
                row.extend(measured.spread.map(|percent| format!("{percent:.1}")));
            } else {
                row.extend(times.iter().map(|(_, time)| time.to_string()));
            }
            rows.push(row);
        }
    }
    if !arguments.json {
        let assumed = match setup.latencies.assumed() {
            true => " (assumptions, not published)",
            false => "",
        };
        out(&format!(
            "{}{assumed}, {} software cycles per target and loop, {class}, medians of {} epochs in us",
            setup.latencies,
            setup.software_cycles,
            pscw::EPOCHS
        ));
        let mut head = vec![
            "targets", "strategy", "post", "start", "complete", "wait", "total",
        ];
        if puts {
            head.insert(4, "put");
        }
        if arguments.quartiles {
            head = vec![
                "targets",
                "strategy",
                "origin",
                "target",
                "post %",
                "start %",
                "complete %",
                "wait %",
            ];
        }
        table(&head, &rows);
    }
    Ok(())
}

/// The name of a value on the command line.
fn name(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().into())
}

fn run_ops(arguments: &Ops) -> Result<(), Box<Report>> {
    let mut rows = Vec::new();
    for (call, bytes) in ops::all().filter(|(call, _)| call.contains(&arguments.call)) {
        let figures = ops::measure(&call, bytes)?;
        if arguments.json {
            let mut object = Json::new().text("call", &call).number("bytes", bytes);
            for &(name, figure) in &figures {
                object = object.number(name, figure);
            }
            object.print();
        }
        let mut row = vec![call, bytes.to_string()];
        row.extend(figures.iter().map(|(_, figure)| figure.to_string()));
        rows.push(row);
    }
    if !arguments.json {
        let head = [
            "call", "bytes", "reads", "writes", "local", "locks", "atomics", "misses", "cycles",
        ];
        table(&head, &rows);
    }
    Ok(())
}

fn run_explore(arguments: &Explore) -> Result<(), Box<Report>> {
    /// Processor time per row, at least.
    const TIME: Duration = Duration::from_millis(500);
    let mut rows = Vec::new();
    let sizes = arguments
        .cores
        .map_or(vec![2, 8, 48, 1024], |cores| vec![cores]);
    for cores in sizes {
        for schedule in [Schedule::Random, Schedule::Pct { depth: 3 }] {
            for oracles in [true, false] {
                let setup = explore::Setup {
                    cores,
                    schedule,
                    oracles,
                };
                let measured = explore::measure(&setup, TIME)?;
                let (schedules, steps) =
                    (measured.schedules_per_second(), measured.steps_per_second());
                if arguments.json {
                    let object = Json::new()
                        .text("case", explore::CASE)
                        .number("cores", cores)
                        .text("schedule", &schedule.to_string())
                        .number("oracles", oracles)
                        .number("schedules", measured.schedules)
                        .number("steps", measured.steps)
                        .number("schedules_per_s", format_args!("{schedules:.1}"))
                        .number("steps_per_s", format_args!("{steps:.0}"))
                        .text("hash", &format!("{:016x}", measured.hash));
                    object.print();
                }
                rows.push(vec![
                    explore::CASE.to_owned(),
                    cores.to_string(),
                    schedule.to_string(),
                    if oracles { "all" } else { "none" }.to_owned(),
                    format!("{schedules:.0}"),
                    format!("{:.1}", steps / 1e6),
                ]);
            }
        }
    }
    for cores in arguments.cores.map_or(vec![48, 1024], |_| vec![]) {
        let measured = ring::measure(cores, ring::EPOCHS, Latencies::SccEas, Oracles::NONE)?;
        let seconds = measured.time.as_secs_f64();
        let steps = measured.report.steps as f64 / seconds;
        if arguments.json {
            let object = Json::new()
                .text("case", "ring, 1000 epochs")
                .number("cores", cores)
                .text("schedule", "timed")
                .number("oracles", false)
                .number("schedules", 1)
                .number("steps", measured.report.steps)
                .number("schedules_per_s", format_args!("{:.3}", 1.0 / seconds))
                .number("steps_per_s", format_args!("{steps:.0}"));
            object.print();
        }
        rows.push(vec![
            "ring, 1000 epochs".to_owned(),
            cores.to_string(),
            "timed".to_owned(),
            "none".to_owned(),
            format!("{:.2}", 1.0 / seconds),
            format!("{:.1}", steps / 1e6),
        ]);
    }
    if !arguments.json {
        let head = [
            "case",
            "cores",
            "schedule",
            "oracles",
            "schedules/s",
            "M steps/s",
        ];
        table(&head, &rows);
    }
    Ok(())
}
