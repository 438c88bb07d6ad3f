//! Nanoseconds per call, each beside what bare memory takes in the same run.

mod figures;
mod pair;
mod raw;

use anyhow::{Result, anyhow, bail};
use clap::Args;

use crate::output::{Json, out, say, table};
use figures::{FIGURES, Figure};
use pair::{Batch, measure};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Only figures whose name has this in it
    #[arg(long, value_name = "NAME", default_value = "")]
    figure: String,
    /// Batches per figure, of which the median counts
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(1..))]
    batches: u32,
    /// One JSON object per figure, a line each
    #[arg(long)]
    json: bool,
}

/// A figure's medians.
struct Row {
    ns: f64,
    raw_ns: f64,
    line_ns: f64,
    ratio: f64,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let chosen: Vec<&Figure> = FIGURES
        .iter()
        .filter(|figure| figure.name.contains(&arguments.figure))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
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
        let batches = measure(figure, &processors, arguments.batches)
            .map_err(|why| anyhow!("{}: {why}", figure.name))?;
        let row = medians(&batches);
        if arguments.json {
            let mut object = Json::new()
                .text("name", figure.name)
                .number("ranks", figure.ranks)
                .number("bytes", figure.bytes)
                .number("ns", format_args!("{:.1}", row.ns))
                .number("raw_ns", format_args!("{:.1}", row.raw_ns))
                .number("line_ns", format_args!("{:.1}", row.line_ns))
                .number("ratio", format_args!("{:.3}", row.ratio));
            object = match figure.limit {
                Some(limit) => object.number("limit", limit),
                None => object.number("limit", "null"),
            };
            out(&object.end());
        }
        rows.push(vec![
            figure.name.to_owned(),
            figure.ranks.to_string(),
            figure.bytes.to_string(),
            format!("{:.1}", row.ns),
            format!("{:.1}", row.raw_ns),
            figure.raw.to_owned(),
            format!("{:.1}", row.line_ns),
            format!("{:.2}", row.ratio),
            figure
                .limit
                .map_or(String::from("-"), |limit| limit.to_string()),
        ]);
    }
    if !arguments.json {
        let head = [
            "figure", "ranks", "bytes", "ns", "raw", "raw is", "line", "ratio", "limit",
        ];
        table(&head, &rows);
    }
    Ok(true)
}

fn medians(batches: &[Batch]) -> Row {
    let median = |value: fn(&Batch) -> f64| {
        let mut all: Vec<f64> = batches.iter().map(value).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    Row {
        ns: median(|batch| batch.ns),
        raw_ns: median(|batch| batch.raw_ns),
        line_ns: median(|batch| batch.line_ns),
        ratio: median(|batch| batch.ns / batch.raw_ns),
    }
}
