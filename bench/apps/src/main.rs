//! `flagpost-app`: runs programs of `flagpost-apps`, and says how long they took. `cargo xtask app`
//! builds it.

use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};
use flagpost_apps::{Outcome, Program, Size, Variant};
use flagpost_bench_apps::{CYCLES, SimLink, Task, board, processes, simulator};
use flagpost_common::{Json, Sorted, line, out, table};
use flagpost_programs::console::Console;
use flagpost_sim::Latencies;

/// Runs programs of the sources, each in its variants, and checks what they find
///
/// A program's result is compared with that of a serial run, on each rank. One that differs ends
/// the command with status 1. Times are those of the slowest rank: core cycles on the simulator
/// and instructions under QEMU, the same on any host; microseconds elsewhere, medians of the runs
/// and their quartiles.
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
    /// The board `virt` under QEMU: 2 to 48 ranks
    Qemu,
}

impl On {
    const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Linux => "linux",
            Self::Fabric => "fabric",
            Self::Qemu => "qemu",
        }
    }

    /// Whether each run takes as long as the last one.
    const fn repeats(self) -> bool {
        matches!(self, Self::Sim | Self::Qemu)
    }

    /// What work is counted over.
    const fn rate(self) -> &'static str {
        match self {
            Self::Sim => "per 1000 cycles",
            Self::Linux | Self::Fabric => "M/s",
            Self::Qemu => "per 1000 instructions",
        }
    }

    /// What a time is counted in.
    const fn unit(self) -> &'static str {
        match self {
            Self::Sim => "cycles",
            Self::Linux | Self::Fabric => "us",
            Self::Qemu => "instructions",
        }
    }
}

/// What one program took in one variant.
struct Row<'a> {
    task: Task<'a>,
    program: &'a Program<SimLink>,
    /// The median is the time.
    times: Sorted,
    /// What a line took on this machine just before, where the clock is real.
    line_ns: Option<f64>,
    work: u64,
    /// The time by messages over this one.
    ratio: Option<f64>,
}

fn variant(name: &str) -> Result<Variant, String> {
    let names = || Variant::ALL.map(Variant::name).join(", ");
    Variant::of(name).ok_or_else(|| format!("one of {}", names()))
}

fn size(text: &str) -> Result<Size, String> {
    Size::of(text).ok_or_else(|| "SIDExSTEPS, such as 64x10".to_owned())
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

/// The runs that the arguments ask for, in order.
fn tasks<'a>(arguments: &Arguments, programs: &'a [Program<SimLink>]) -> Result<Vec<Task<'a>>> {
    let named =
        |program: &&Program<SimLink>| arguments.name == "all" || arguments.name == program.name;
    let chosen: Vec<_> = programs.iter().filter(named).collect();
    if chosen.is_empty() {
        let names: Vec<_> = programs.iter().map(|program| program.name).collect();
        bail!("no such program: take one of {}, all", names.join(", "));
    }
    let mut tasks = Vec::new();
    for program in &chosen {
        for &ranks in &arguments.ranks {
            let of = |&variant| Task {
                name: program.name,
                variant,
                ranks,
                size: arguments.size.unwrap_or(program.small),
            };
            let wanted =
                |variant: &&Variant| arguments.variant.is_none_or(|only| only == **variant);
            tasks.extend(program.variants.iter().filter(wanted).map(of));
        }
    }
    if let ([program], []) = (&chosen[..], &tasks[..]) {
        let names: Vec<_> = program
            .variants
            .iter()
            .map(|variant| variant.name())
            .collect();
        bail!(
            "{} has no such variant: take one of {}",
            program.name,
            names.join(", ")
        );
    }
    Ok(tasks)
}

fn run(arguments: &Arguments) -> Result<()> {
    let programs = flagpost_apps::programs::<SimLink>();
    let tasks = tasks(arguments, &programs)?;
    let console = Console::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut by_messages = None;
    for (done, &task) in (0..).zip(&tasks) {
        console.progress(done, tasks.len() as u64, "runs");
        let line_ns = (!arguments.on.repeats()).then(line_ns).flatten();
        let outcomes = outcomes(arguments, task).inspect_err(|_| {
            console.clear();
            if arguments.json {
                what(task, arguments.on).number("verified", false).print();
            }
        })?;
        let times = Sorted::new(outcomes.iter().map(|outcome| time(arguments.on, outcome)));
        let of = (task.name, task.ranks);
        if task.variant == Variant::Messages {
            by_messages = Some((of, times.median()));
        }
        let messages = by_messages.filter(|&(known, _)| known == of);
        let row = Row {
            task,
            program: programs
                .iter()
                .find(|program| program.name == task.name)
                .context("a task is of a program")?,
            work: outcomes.first().map_or(0, |outcome| outcome.work),
            ratio: messages.map(|(_, messages)| messages / times.median()),
            times,
            line_ns,
        };
        if arguments.json {
            console.clear();
            row.object(arguments.on).print();
        }
        rows.push(row.cells(arguments.on));
    }
    console.clear();
    if !arguments.json {
        head(arguments.on);
        let unit = arguments.on.unit();
        let mut names = vec!["program", "variant", "ranks", "size", unit];
        if !arguments.on.repeats() {
            names.extend(["quartiles", "line ns"]);
        }
        names.extend(["speed-up", "published", "work", "of", arguments.on.rate()]);
        table(&names, &rows);
    }
    Ok(())
}

/// What was run, in an object.
fn what(task: Task<'_>, on: On) -> Json {
    Json::new()
        .text("app", task.name)
        .text("variant", task.variant.name())
        .text("on", on.name())
        .number("ranks", task.ranks)
        .text("size", &task.size.to_string())
}

/// What stands over a table.
fn head(on: On) {
    out(&format!(
        "on {}, each result as that of a serial run",
        on.name()
    ));
    out("speed-up: time by messages over this one; published: the same, of notified access");
    let of_sim = format!("a floating-point operation takes {CYCLES} cycles, as on a P54C");
    out(match on {
        On::Sim => &of_sim,
        On::Qemu => {
            "instructions are those of all cores together: QEMU runs one core after the other"
        }
        On::Linux | On::Fabric => {
            "line ns: from one processor to another before the runs; near cores about 25, far 60"
        }
    });
}

/// A time of an outcome, in [`On::unit`].
fn time(on: On, outcome: &Outcome) -> f64 {
    match on {
        On::Sim | On::Qemu => outcome.ticks as f64,
        On::Linux | On::Fabric => outcome.ticks as f64 * 1e6 / outcome.per_second as f64,
    }
}

fn outcomes(arguments: &Arguments, task: Task<'_>) -> Result<Vec<Outcome>> {
    match arguments.on {
        On::Sim => Ok(vec![simulator(task, arguments.latencies)?]),
        On::Qemu => Ok(vec![board(task)?]),
        on => (0..arguments.runs)
            .map(|_| processes(task, on == On::Fabric))
            .collect(),
    }
}

/// How long a line takes from one processor to another, half of there and back: the least of ten
/// batches that nothing has interrupted, or of those in 200 ms. None if there are none: both
/// threads have shared a processor.
fn line_ns() -> Option<f64> {
    const ROUNDS: u64 = 50;
    const ENOUGH: usize = 10;
    const LONG: Duration = Duration::from_millis(200);
    /// Longer than a line takes between any two processors.
    const INTERRUPTED: f64 = 1000.0;
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
    let batches = (0..).take_while(|_| begin.elapsed() < LONG).map(batch);
    let whole = batches.filter(|&ns| ns < INTERRUPTED).take(ENOUGH);
    whole.min_by(f64::total_cmp)
}

impl Row<'_> {
    /// What a source found, if this is about the same.
    fn published(&self) -> Option<(f64, &'static str)> {
        let is_notified = self.task.variant == Variant::Notified;
        let published = self.program.published;
        published.filter(|_| is_notified && self.ratio.is_some())
    }

    /// Work in [`On::rate`].
    fn rate(&self, on: On) -> f64 {
        let times = if on.repeats() { 1000.0 } else { 1.0 };
        self.work as f64 / self.times.median() * times
    }

    fn object(&self, on: On) -> Json {
        let [lower, upper] = self.times.quartiles();
        let mut object = what(self.task, on)
            .number("time", format_args!("{:.1}", self.times.median()))
            .text("unit", on.unit())
            .number("verified", true)
            .number("lower", format_args!("{lower:.1}"))
            .number("upper", format_args!("{upper:.1}"))
            .number("work", self.work)
            .number("rate", format_args!("{:.3}", self.rate(on)));
        if let Some(ns) = self.line_ns {
            object = object.number("line_ns", format_args!("{ns:.0}"));
        }
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
            self.task.size.to_string(),
        ];
        let none = || String::from("-");
        match on {
            On::Sim | On::Qemu => cells.push(format!("{:.0}", self.times.median())),
            On::Linux | On::Fabric => {
                cells.push(format!("{:.1}", self.times.median()));
                cells.push(
                    self.times
                        .quartiles()
                        .map(|us| format!("{us:.1}"))
                        .join("-"),
                );
                cells.push(self.line_ns.map_or_else(none, |ns| format!("{ns:.0}")));
            }
        }
        cells.push(self.ratio.map_or_else(none, |ratio| format!("{ratio:.2}")));
        let published = self.published();
        cells.push(published.map_or_else(none, |(ratio, source)| format!("{ratio}, {source}")));
        cells.push(self.work.to_string());
        cells.push(self.program.unit.to_owned());
        cells.push(format!("{:.2}", self.rate(on)));
        cells
    }
}
