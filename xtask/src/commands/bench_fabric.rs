//! `cargo xtask bench fabric`: the library over libfabric's providers, beside bare libfabric in the
//! same run. Builds both programs of `bench/fabric`, starts them, and shows what they print.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Parser;
use flagpost_common::{Sorted, table};
use serde_json::{Value, json};

use crate::console::{Console, out};
use crate::count::Count;
use crate::error::usage;
use crate::{children, compiling, image, paths, tools};

/// The providers, as `flagpost-run` and as libfabric names them.
const PROVIDERS: [(&str, &str); 2] = [("tcp", "tcp;ofi_rxm"), ("shm", "shm")];

/// Ranks of the stencil, its size, and how often each of its variants runs.
const STENCIL: [u16; 2] = [2, 4];
const STENCIL_SIZE: [&str; 2] = ["250", "8"];
const STENCIL_RUNS: usize = 5;

/// Registered memory of a rank.
const MEMORY: &str = "16M";

/// The library over a real network, beside bare libfabric in the same run
///
/// Each figure is measured in short batches, most of which nothing interrupts: one of the C program
/// `bench/fabric/raw.c`, one of Flagpost, in turn, on the same two processors. Medians; the ratio
/// is the median over pairs of batches. The stencil is that of `cargo xtask app`: its variant with
/// epochs stands in place of bare libfabric. Times (us, ms) have an upper limit of the ratio, all
/// else a lower one. The exit status does not say whether limits were kept: hosts are noisy.
#[derive(Parser, Debug)]
#[command(
    name = "cargo xtask bench fabric",
    bin_name = "cargo xtask bench fabric"
)]
struct Arguments {
    /// tcp or shm [default: both]
    #[arg(long, value_name = "NAME", value_parser = PROVIDERS.map(|(name, _)| name))]
    provider: Option<String>,
    /// Only figures whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    figure: String,
    /// Batches per figure
    #[arg(long, value_name = "N", default_value = "101", value_parser = clap::value_parser!(u32).range(1..=1000))]
    batches: u32,
    /// How long a batch of bare libfabric takes, in microseconds
    #[arg(long, value_name = "TIME", default_value = "300", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    batch: u64,
    /// One JSON object per figure, a line each
    #[arg(long)]
    json: bool,
}

/// The programs, built.
struct Programs {
    directory: PathBuf,
    raw: PathBuf,
}

/// Runs the command.
pub(crate) fn run(console: &Console, arguments: &[std::ffi::OsString]) -> Result<bool> {
    let parsed = Arguments::parse_from(arguments);
    let programs = Programs::build(console, image::PROFILE)?;
    let chosen = parsed.provider.as_deref();
    let mut rows = Vec::new();
    for provider in PROVIDERS {
        if chosen.is_none_or(|name| name == provider.0) {
            console.step(format!("measuring over {}", provider.0));
            rows.extend(programs.measure(provider, &parsed)?);
            for ranks in STENCIL {
                let name = format!("stencil on {ranks} ranks, notified beside PSCW");
                if name.contains(&parsed.figure) {
                    console.step(format!("{name}, over {}", provider.0));
                    rows.push(programs.stencil(name, provider.0, ranks)?);
                }
            }
        }
    }
    console.clear();
    if parsed.json {
        rows.iter().for_each(|row| out(&row.to_string()));
    } else {
        show(&rows);
    }
    Ok(true)
}

/// A short run in CI, of programs that are built quickly: everything works, whatever it takes.
pub(super) fn smoke(console: &Console) -> Result<Count> {
    let programs = Programs::build(console, "dev")?;
    let arguments = Arguments::parse_from(["fabric", "--batches", "1", "--batch", "1"]);
    let provider = PROVIDERS[0];
    console.step(format!("bench fabric, {}", provider.0));
    let rows = programs.measure(provider, &arguments)?;
    Ok(Count::one(!rows.is_empty()))
}

impl Programs {
    fn build(console: &Console, profile: &str) -> Result<Self> {
        tools::libfabric_headers(console)?;
        let directory = match profile {
            "dev" => "debug",
            other => other,
        };
        let directory = paths::target().join(directory);
        let words = "--package flagpost-bench-fabric --package flagpost-linux \
                     --bin flagpost-bench-fabric --bin flagpost-run --example app";
        let words = ["build", "--profile", profile]
            .into_iter()
            .chain(words.split_whitespace());
        compiling::cargo(console, "flagpost-bench-fabric", words)?;
        let raw = directory.join("flagpost-bench-raw");
        compile(&paths::root().join("bench/fabric/raw.c"), &raw)?;
        console.clear();
        Ok(Self { directory, raw })
    }

    /// All figures over a provider, as the program prints them, with the provider's name.
    fn measure(
        &self,
        (provider, full_name): (&str, &str),
        arguments: &Arguments,
    ) -> Result<Vec<Value>> {
        let mut command = self.job(provider, 2);
        command
            .arg(self.directory.join("flagpost-bench-fabric"))
            .arg("--raw")
            .arg(&self.raw)
            .args(["--provider", full_name])
            .args(["--figure", &arguments.figure])
            .args(["--batches", &arguments.batches.to_string()])
            .args(["--batch", &arguments.batch.to_string()]);
        let text = answer(&mut command, provider)?;
        let read = |line| {
            let mut row: Value = serde_json::from_str(line).context("no JSON")?;
            row["provider"] = provider.into();
            Ok(row)
        };
        text.lines().map(read).collect()
    }

    /// The program's variants, in turn: with notified puts, beside with epochs.
    fn stencil(&self, name: String, provider: &str, ranks: u16) -> Result<Value> {
        let time = |variant| {
            let mut command = self.job(provider, ranks);
            command
                .arg(self.directory.join("examples/app"))
                .args(["stencil", variant])
                .args(STENCIL_SIZE);
            let text = answer(&mut command, provider)?;
            let told: Value = serde_json::from_str(&text).context("no JSON")?;
            let number = |name: &str| told[name].as_f64();
            let time = number("ticks").zip(number("per_second"));
            time.map(|(ticks, per_second)| ticks / per_second * 1e3)
                .with_context(|| format!("the stencil said {text:?}"))
        };
        let mut pairs = Vec::new();
        for _ in 0..STENCIL_RUNS {
            pairs.push((time("notified")?, time("pscw")?));
        }
        let sorted = |value: fn(&(f64, f64)) -> f64| Sorted::new(pairs.iter().map(value));
        let (ours, raw) = (sorted(|pair| pair.0), sorted(|pair| pair.1));
        Ok(json!({
            "name": name, "provider": provider, "bytes": 8, "unit": "ms", "limit": 1.0,
            "value": ours.median(), "best": ours.least(),
            "raw": raw.median(), "raw_best": raw.least(),
            "ratio": sorted(|pair| pair.0 / pair.1).median(),
        }))
    }

    /// A job of `ranks` ranks, without its program.
    fn job(&self, provider: &str, ranks: u16) -> Command {
        let mut command = Command::new(self.directory.join("flagpost-run"));
        command
            .args(["-n", &ranks.to_string(), "--mem", MEMORY])
            .args(["--link", "fabric", "--provider", provider])
            .stdin(Stdio::null());
        command
    }
}

/// What a job prints.
fn answer(job: &mut Command, provider: &str) -> Result<String> {
    let output = children::output(job).context("cannot run flagpost-run")?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        bail!("over {provider}: {}", told.trim_end());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Compiles the C program.
fn compile(source: &Path, program: &Path) -> Result<()> {
    let mut command = Command::new("cc");
    command
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([program, source])
        .arg("-lfabric");
    let status = children::status(&mut command).map_err(|why| {
        let line = tools::line("gcc");
        usage(format!("no C compiler, cc ({why}); type: {line}"))
    })?;
    if !status.success() {
        bail!("{} does not compile", source.display());
    }
    Ok(())
}

/// Whether less is better.
fn is_time(row: &Value) -> bool {
    row["unit"] == "us" || row["unit"] == "ms"
}

/// Whether the ratio is within its limit, if there is one.
fn is_kept(row: &Value) -> bool {
    match (row["ratio"].as_f64(), row["limit"].as_f64()) {
        (Some(ratio), Some(limit)) if is_time(row) => ratio <= limit,
        (Some(ratio), Some(limit)) => ratio >= limit,
        _ => row["limit"].is_null(),
    }
}

fn show(rows: &[Value]) {
    let head = [
        "figure", "provider", "bytes", "unit", "value", "best", "raw", "best", "ratio", "limit", "",
    ];
    let line = |row: &Value| {
        let sign = if is_time(row) { "<=" } else { ">=" };
        let limit = row["limit"].as_f64().map(|limit| format!("{sign} {limit}"));
        let kept = match (&limit, is_kept(row)) {
            (None, _) => "",
            (_, true) => "kept",
            (_, false) => "missed",
        };
        let cell = |name: &&str| match (*name, &row[name]) {
            (_, Value::String(text)) => text.clone(),
            ("bytes", bytes) => bytes.to_string(),
            (_, number) => number.as_f64().map_or(String::from("-"), short),
        };
        let names = [
            "name", "provider", "bytes", "unit", "value", "best", "raw", "raw_best",
        ];
        let mut cells: Vec<_> = names.iter().chain(&["ratio"]).map(cell).collect();
        cells.extend([limit.unwrap_or(String::from("-")), kept.to_owned()]);
        cells
    };
    table(&head, &rows.iter().map(line).collect::<Vec<_>>());
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
        let row = |unit: &str, ratio: f64, limit: Option<f64>| json!({ "unit": unit, "ratio": ratio, "limit": limit });
        for (unit, ratio, limit, kept) in [
            ("us", 1.1, Some(1.15), true),
            ("us", 1.2, Some(1.15), false),
            ("M/s", 0.9, Some(0.85), true),
            ("M/s", 0.8, Some(0.85), false),
            ("us", 99.0, None, true),
        ] {
            assert_eq!(is_kept(&row(unit, ratio, limit)), kept, "{unit} {ratio}");
        }
    }
}
