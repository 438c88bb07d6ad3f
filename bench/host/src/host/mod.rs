//! Nanoseconds per call, each beside what bare memory takes in the same run.

mod figures;
mod pair;
mod raw;

use anyhow::{Result, anyhow, bail};
use clap::Args;

use figures::Figure;
use flagpost_common::{Json, Sorted, median, say, table};
use flagpost_linux::{Coherent, Emulated, Linked, MODES, Mode as _, SoftwareCoherent};
use pair::{Batch, measure};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Only figures whose name has this in it
    #[arg(long, value_name = "NAME", default_value = "")]
    figure: String,
    /// Batches per figure, of which the median counts
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(1..))]
    batches: u32,
    /// How memory is kept in step; limits are those of coherent memory
    #[arg(long, default_value = MODES[0], value_parser = clap::builder::PossibleValuesParser::new(MODES))]
    mode: String,
    /// One JSON object per figure, a line each
    #[arg(long)]
    json: bool,
}

/// A figure's medians.
struct Row {
    ns: f64,
    quartiles: [f64; 2],
    raw_ns: f64,
    line_ns: f64,
    ratio: f64,
    spread: f64,
    flushes: f64,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    match &*arguments.mode {
        SoftwareCoherent::NAME => run_in::<SoftwareCoherent>(arguments, |link| {
            link.machine().machine().mode().cache_instructions()
        }),
        Emulated::NAME => run_in::<Emulated>(arguments, |_| 0),
        _ => run_in::<Coherent>(arguments, |_| 0),
    }
}

fn run_in<M: Linked>(arguments: &Arguments, flushes: fn(&M::Link) -> u64) -> Result<bool> {
    let figures = Figure::<M::Link>::all();
    let is_coherent = M::NAME == Coherent::NAME;
    let chosen: Vec<&Figure<M::Link>> = figures
        .iter()
        .filter(|figure| figure.name.contains(&arguments.figure))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
        bail!(
            "no figure has {:?} in its name: {}",
            arguments.figure,
            names.join(", ")
        );
    }
    let processors = pair::processors();
    if processors.len() < 2 {
        say("one processor only: the figures are those of its scheduler");
    }
    let mut rows = Vec::new();
    for figure in chosen {
        let limit = figure.limit.filter(|_| is_coherent);
        let batches = measure::<M>(figure, &processors, arguments.batches, flushes)
            .map_err(|why| anyhow!("{}: {why}", figure.name))?;
        let row = medians(&batches);
        if arguments.json {
            let mut object = Json::new()
                .text("name", figure.name)
                .text("mode", M::NAME)
                .number("ranks", figure.ranks)
                .number("bytes", figure.bytes)
                .number("ns", format_args!("{:.1}", row.ns))
                .number("raw_ns", format_args!("{:.1}", row.raw_ns))
                .number("line_ns", format_args!("{:.1}", row.line_ns))
                .number("ratio", format_args!("{:.3}", row.ratio))
                .number("spread", format_args!("{:.2}", row.spread));
            object = match limit {
                Some(limit) => object.number("limit", limit),
                None => object.number("limit", "null"),
            };
            if M::NAME == SoftwareCoherent::NAME {
                object = object.number("flushes", format_args!("{:.1}", row.flushes));
            }
            object.print();
        }
        rows.push(vec![
            figure.name.to_owned(),
            figure.ranks.to_string(),
            figure.bytes.to_string(),
            format!("{:.1}", row.ns),
            row.quartiles.map(|ns| format!("{ns:.1}")).join("-"),
            format!("{:.1}", row.raw_ns),
            figure.raw.to_owned(),
            format!("{:.1}", row.line_ns),
            format!("{:.2}", row.ratio),
            limit.map_or(String::from("-"), |limit| limit.to_string()),
            match figure.ranks {
                0..=2 => String::from("-"),
                _ => format!("{:.2}", row.spread),
            },
            format!("{:.1}", row.flushes),
        ]);
    }
    if !arguments.json {
        let head = [
            "figure",
            "ranks",
            "bytes",
            "ns",
            "quartiles",
            "raw",
            "raw is",
            "line",
            "ratio",
            "limit",
            "spread",
            "flushes",
        ];
        table(&head, &rows);
    }
    Ok(true)
}

fn medians(batches: &[Batch]) -> Row {
    let median = |value: fn(&Batch) -> f64| median(batches.iter().map(value));
    Row {
        ns: median(|batch| batch.ns),
        quartiles: Sorted::new(batches.iter().map(|batch| batch.ns)).quartiles(),
        raw_ns: median(|batch| batch.raw_ns),
        line_ns: median(|batch| batch.line_ns),
        ratio: median(|batch| batch.ns / batch.raw_ns),
        spread: median(|batch| batch.spread),
        flushes: median(|batch| batch.flushes),
    }
}
