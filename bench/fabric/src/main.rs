//! `flagpost-bench-fabric`: two ranks over a real network, beside bare libfabric. `cargo xtask
//! bench fabric` builds it, compiles `raw.c`, and starts it by `flagpost-run --link fabric -n 2`.
//!
//! Each rank starts the C program as its child: so both pairs of processes run on the same two
//! processors. One pair measures while the other sleeps, in turn. A figure is the median of its
//! batches, a ratio the median over pairs of batches that follow each other.
//!
//! Rank 0 prints a table of the figures, or a JSON object per figure, a line each.

mod figures;
mod raw;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use flagpost::World;
use flagpost_common::{Sorted, out, table};
use flagpost_fabric::Network;
use flagpost_linux::{Setup, fabric};

use figures::{Figure, Stage};
use raw::Raw;
use serde_json::json;

#[derive(Parser, Debug)]
#[command(name = "flagpost-bench-fabric")]
struct Arguments {
    /// The C program
    #[arg(long, value_name = "FILE")]
    raw: PathBuf,
    /// The provider, as libfabric names it
    #[arg(long, value_name = "NAME")]
    provider: String,
    /// Only figures whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    figure: String,
    /// Batches per figure
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batches: u32,
    /// How long a batch of bare libfabric takes
    #[arg(long, value_name = "MICROSECONDS")]
    batch: u64,
    /// JSON in place of a table
    #[arg(long)]
    json: bool,
}

/// What both pairs took for the same, one after the other.
#[derive(Copy, Clone, Debug)]
struct Batch {
    ours: Duration,
    raw: Duration,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    fabric::run(Setup::default(), |world| run(world, &arguments))
}

fn run(world: &World<'_, fabric::FabricLink>, arguments: &Arguments) -> Result<()> {
    if world.size() != 2 {
        bail!("it takes two ranks");
    }
    let (me, network) = (world.rank().index(), world.link().fabric());
    let mut raw = Raw::start(&arguments.raw, &arguments.provider)?;
    let cards = network.gather(raw.card().as_bytes())?;
    raw.connect(me, &String::from_utf8_lossy(&cards[1 - me]))?;
    let mut rows = Vec::new();
    let chosen = |figure: &Figure<_>| figure.name.contains(&arguments.figure);
    for figure in Figure::all().into_iter().filter(chosen) {
        let batches = measure(world, network, &mut raw, &figure, arguments);
        let batches = batches.with_context(|| figure.name.to_owned())?;
        let row = row(arguments, &figure, &batches.0, batches.1);
        match me {
            0 if arguments.json => out(&row.json(&figure)),
            0 => rows.push(row.cells(&figure)),
            _ => {}
        }
    }
    if !rows.is_empty() {
        table(&HEAD, &rows);
    }
    Ok(())
}

/// The batches of a figure, and how many rounds each has.
fn measure(
    world: &World<'_, fabric::FabricLink>,
    network: &Network,
    raw: &mut Raw,
    figure: &Figure<fabric::FabricLink>,
    arguments: &Arguments,
) -> Result<(Vec<Batch>, u64)> {
    let stage = Stage::new(world, figure)?;
    let first = figure.first_rounds();
    raw.run(figure, first)?;
    let took = raw.run(figure, first)?.as_nanos() as u64;
    let fit = (arguments.batch * 1000 * first / took.max(1)).clamp(1, figures::MOST_ROUNDS);
    // As many as rank 0 says.
    let said = network.gather(&fit.to_le_bytes())?;
    let rounds = u64::from_le_bytes(said[0].as_slice().try_into()?);
    let mut all = Vec::new();
    for batch in 0..=arguments.batches {
        // Each rank has returned from its last call: nobody needs the other's network now.
        network.meet()?;
        let raw = raw.run(figure, rounds)?;
        network.meet()?;
        let ours = (figure.call)(&stage, rounds)?;
        world.barrier()?;
        // The first one warms up.
        if batch > 0 {
            all.push(Batch { ours, raw });
        }
    }
    Ok((all, rounds))
}

const HEAD: [&str; 11] = [
    "figure", "provider", "bytes", "unit", "value", "best", "raw", "best", "ratio", "limit", "",
];

/// What is told of a figure.
struct Row {
    provider: String,
    value: f64,
    best: f64,
    raw: f64,
    raw_best: f64,
    ratio: f64,
}

fn row(
    arguments: &Arguments,
    figure: &Figure<fabric::FabricLink>,
    batches: &[Batch],
    rounds: u64,
) -> Row {
    let sorted = |value: &dyn Fn(&Batch) -> f64| Sorted::new(batches.iter().map(value));
    let ours = sorted(&|batch| figure.value(batch.ours, rounds));
    let raw = sorted(&|batch| figure.value(batch.raw, rounds));
    let ratio = sorted(&|batch| figure.value(batch.ours, rounds) / figure.value(batch.raw, rounds));
    let best = match figure.kind.is_time() {
        true => Sorted::least,
        false => Sorted::most,
    };
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    let provider = arguments.provider.split(';').next();
    Row {
        provider: provider.unwrap_or_default().to_owned(),
        value: rounded(ours.median()),
        best: rounded(best(&ours)),
        raw: rounded(raw.median()),
        raw_best: rounded(best(&raw)),
        ratio: rounded(ratio.median()),
    }
}

impl Row {
    fn json(&self, figure: &Figure<fabric::FabricLink>) -> String {
        json!({
            "name": figure.name, "provider": self.provider, "bytes": figure.bytes,
            "unit": figure.kind.unit(), "value": self.value, "best": self.best,
            "raw": self.raw, "raw_best": self.raw_best,
            "ratio": self.ratio, "limit": figure.limit,
        })
        .to_string()
    }

    fn cells(&self, figure: &Figure<fabric::FabricLink>) -> Vec<String> {
        let names = [figure.name, &self.provider];
        let what = [figure.bytes.to_string(), figure.kind.unit().to_owned()];
        let numbers = [self.value, self.best, self.raw, self.raw_best, self.ratio].map(short);
        let limit = match figure.limit {
            None => ["-".to_owned(), String::new()],
            Some(limit) => told(figure.kind.is_time(), self.ratio, limit),
        };
        let cells = names.into_iter().map(str::to_owned).chain(what);
        cells.chain(numbers).chain(limit).collect()
    }
}

/// A limit, and whether a ratio is within it: an upper one of a time, a lower one of all else.
fn told(is_time: bool, ratio: f64, limit: f64) -> [String; 2] {
    let (sign, kept) = match is_time {
        true => ("<=", ratio <= limit),
        false => (">=", ratio >= limit),
    };
    let kept = if kept { "kept" } else { "missed" };
    [format!("{sign} {limit}"), kept.to_owned()]
}

/// Three digits that count.
fn short(value: f64) -> String {
    let digits = match value {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_upper_ones_of_times_and_lower_ones_of_all_else() {
        for (is_time, ratio, limit, kept) in [
            (true, 1.1, 1.15, "kept"),
            (true, 1.2, 1.15, "missed"),
            (false, 0.9, 0.85, "kept"),
            (false, 0.8, 0.85, "missed"),
        ] {
            assert_eq!(told(is_time, ratio, limit)[1], kept, "{ratio}");
        }
    }
}
