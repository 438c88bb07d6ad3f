//! `flagpost-app`: runs programs of `flagpost-apps`, and says how long they took. `cargo xtask app`
//! builds it.

use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use flagpost_apps::{Outcome, Program, Size, Variant};
use flagpost_bench_apps::{CYCLES, SimLink, Task, processes, simulator};
use flagpost_common::{Json, Sorted, line, out, table};
use flagpost_sim::Latencies;

/// Runs programs of the sources, each in its variants, and checks what they find
///
/// A program's result is compared with that of a serial run, on each rank. One that differs ends
/// the command with status 1. Times are those of the slowest rank: core cycles on the simulator,
/// the same on any host; microseconds elsewhere, medians of the runs and their quartiles.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask app", bin_name = "cargo xtask app")]
struct Arguments {
    /// A program, or `all`
    name: String,
    /// Where it runs
    #[arg(long, value_enum, default_value = "sim")]
    on: On,
    /// How many ranks: one number or more, with commas
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "4", value_parser = clap::value_parser!(u16).range(1..=1024))]
    ranks: Vec<u16>,
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

    /// What a time is counted in.
    const fn unit(self) -> &'static str {
        match self {
            Self::Sim => "cycles",
            Self::Linux | Self::Fabric => "us",
        }
    }
}

/// What one program took in one variant.
struct Row<'a> {
    task: Task<'a>,
    program: &'a Program<SimLink>,
    /// The median is the time.
    times: Sorted,
    work: u64,
    /// The time by messages over this one.
    ratio: Option<f64>,
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
    let programs = flagpost_apps::programs::<SimLink>();
    let chosen = |name| arguments.name == "all" || arguments.name == name;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut lines = Vec::new();
    for program in programs.iter().filter(|program| chosen(program.name)) {
        for &ranks in &arguments.ranks {
            let mut by_messages = None;
            let wanted =
                |variant: &&Variant| arguments.variant.is_none_or(|only| only == **variant);
            for &variant in program.variants.iter().filter(wanted) {
                let task = Task {
                    name: program.name,
                    variant,
                    ranks,
                    size: arguments.size.unwrap_or(program.small),
                };
                if arguments.on != On::Sim {
                    lines.push(line_ns());
                }
                let outcomes = outcomes(arguments, task)?;
                let times = Sorted::new(outcomes.iter().map(|outcome| time(arguments.on, outcome)));
                if variant == Variant::Messages {
                    by_messages = Some(times.median());
                }
                let row = Row {
                    task,
                    program,
                    work: outcomes.first().map_or(0, |outcome| outcome.work),
                    ratio: by_messages.map(|messages| messages / times.median()),
                    times,
                };
                if arguments.json {
                    row.object(arguments.on).print();
                }
                rows.push(row.cells(arguments.on));
            }
        }
    }
    if rows.is_empty() {
        let names = programs.map(|program| program.name).join(", ");
        bail!("no such program or variant; programs: {names}, all");
    }
    if !arguments.json {
        head(arguments.on, lines);
        let unit = arguments.on.unit();
        let mut names = vec!["program", "variant", "ranks", "size", unit];
        if arguments.on != On::Sim {
            names.push("quartiles");
        }
        names.extend(["speed-up", "published", "work", "of"]);
        table(&names, &rows);
    }
    Ok(())
}

/// What stands over a table.
fn head(on: On, lines: Vec<f64>) {
    out(&format!(
        "on {}, each result as that of a serial run",
        on.name()
    ));
    out("speed-up: time by messages over this one; published: the same, of notified access");
    if on == On::Sim {
        out(&format!(
            "a floating-point operation takes {CYCLES} cycles, as on a P54C"
        ));
    } else {
        let lines = Sorted::new(lines);
        let (least, most) = (lines.least(), lines.most());
        out(&format!(
            "a line between two processors took {least:.0} to {most:.0} ns"
        ));
    }
}

/// A time of an outcome, in [`On::unit`].
fn time(on: On, outcome: &Outcome) -> f64 {
    match on {
        On::Sim => outcome.ticks as f64,
        On::Linux | On::Fabric => outcome.ticks as f64 * 1e6 / outcome.per_second as f64,
    }
}

fn outcomes(arguments: &Arguments, task: Task<'_>) -> Result<Vec<Outcome>> {
    match arguments.on {
        On::Sim => Ok(vec![simulator(task, arguments.latencies)?]),
        on => (0..arguments.runs)
            .map(|_| processes(task, on == On::Fabric))
            .collect(),
    }
}

/// How long a line takes from one processor to another, half of there and back: the least of some
/// batches, which nothing has interrupted. On a busy machine there are few of them: a thread whose
/// peer does not run spins.
fn line_ns() -> f64 {
    const ROUNDS: u64 = 50;
    const LONG: Duration = Duration::from_millis(20);
    let begin = Instant::now();
    let batch = |_| {
        let ball = AtomicU64::new(0);
        let start = Barrier::new(2);
        let (ball, start) = (&ball, &start);
        let one = move |me| {
            start.wait();
            let start = Instant::now();
            line(ball, me, ROUNDS);
            start.elapsed()
        };
        let times = std::thread::scope(|scope| {
            let other = scope.spawn(move || one(1));
            let time = one(0);
            other.join().map_or(time, |other| time.min(other))
        });
        times.as_nanos() as f64 / (2 * ROUNDS) as f64
    };
    let batches = (0..100).take_while(|&nth| nth == 0 || begin.elapsed() < LONG);
    Sorted::new(batches.map(batch)).least()
}

impl Row<'_> {
    fn size(&self) -> String {
        let Size { side, steps } = self.task.size;
        format!("{side}x{steps}")
    }

    /// What a source found, if this is about the same.
    fn published(&self) -> Option<(f64, &'static str)> {
        let is_notified = self.task.variant == Variant::Notified;
        let published = self.program.published;
        published.filter(|_| is_notified && self.ratio.is_some())
    }

    fn object(&self, on: On) -> Json {
        let [lower, upper] = self.times.quartiles();
        let mut object = Json::new()
            .text("app", self.task.name)
            .text("variant", self.task.variant.name())
            .text("on", on.name())
            .number("ranks", self.task.ranks)
            .text("size", &self.size())
            .number("time", format_args!("{:.1}", self.times.median()))
            .text("unit", on.unit())
            .number("verified", true)
            .number("lower", format_args!("{lower:.1}"))
            .number("upper", format_args!("{upper:.1}"))
            .number("work", self.work);
        if let Some(ratio) = self.ratio {
            object = object.number("speed_up", format_args!("{ratio:.3}"));
        }
        if let Some((ratio, source)) = self.published() {
            object = object.number("published", ratio).text("source", source);
        }
        object
    }

    fn cells(&self, on: On) -> Vec<String> {
        let mut cells = vec![
            self.task.name.to_owned(),
            self.task.variant.name().to_owned(),
            self.task.ranks.to_string(),
            self.size(),
        ];
        match on {
            On::Sim => cells.push(format!("{:.0}", self.times.median())),
            On::Linux | On::Fabric => {
                cells.push(format!("{:.1}", self.times.median()));
                cells.push(
                    self.times
                        .quartiles()
                        .map(|us| format!("{us:.1}"))
                        .join("-"),
                );
            }
        }
        let none = || String::from("-");
        cells.push(self.ratio.map_or_else(none, |ratio| format!("{ratio:.2}")));
        let published = self.published();
        cells.push(published.map_or_else(none, |(ratio, source)| format!("{ratio}, {source}")));
        cells.push(self.work.to_string());
        cells.push(self.program.unit.to_owned());
        cells
    }
}
