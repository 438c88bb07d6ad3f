//! `cargo xtask bench fabric`: the library over libfabric's providers, beside bare libfabric in the
//! same run. Builds both programs of `bench/fabric`, and starts them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::console::Console;
use crate::count::Count;
use crate::error::usage;
use crate::{children, compiling, image, paths, tools};

/// The providers, as `flagpost-run` and as libfabric names them.
const PROVIDERS: [(&str, &str); 2] = [("tcp", "tcp;ofi_rxm"), ("shm", "shm")];

/// Registered memory of a rank.
const MEMORY: &str = "16M";

/// The library over a real network, beside bare libfabric in the same run
///
/// Each figure is measured in short batches, most of which nothing interrupts: one of the C program
/// `bench/fabric/raw.c`, one of Flagpost, in turn, on the same two processors. Medians; the ratio
/// is the median over pairs of batches. Times (us) have an upper limit of the ratio, all else a
/// lower one. The exit status does not say whether limits were kept: hosts are noisy.
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

/// Runs the command; `false` if the programs fail.
pub(crate) fn run(console: &Console, arguments: &[std::ffi::OsString]) -> Result<bool> {
    measure(console, image::PROFILE, &Arguments::parse_from(arguments))
}

/// A short run in CI, of programs that are built quickly: everything works, whatever it takes.
pub(super) fn smoke(console: &Console) -> Result<Count> {
    let words = "fabric --provider tcp --batches 1 --batch 1";
    let arguments = Arguments::parse_from(words.split(' '));
    Ok(Count::one(measure(console, "dev", &arguments)?))
}

/// Has the program measure and print all figures, over one provider after the other.
fn measure(console: &Console, profile: &str, arguments: &Arguments) -> Result<bool> {
    let directory = build(console, profile)?;
    let raw = directory.join("flagpost-bench-raw");
    compile(&paths::root().join("bench/fabric/raw.c"), &raw)?;
    let chosen = arguments.provider.as_deref();
    let providers = PROVIDERS.into_iter();
    let mut well = true;
    for (provider, full_name) in providers.filter(|(name, _)| chosen.is_none_or(|is| is == *name)) {
        console.clear();
        let mut job = Command::new(directory.join("flagpost-run"));
        job.args(["-n", "2", "--mem", MEMORY, "--link", "fabric"]);
        job.args(["--provider", provider]).stdin(Stdio::null());
        job.arg(directory.join("flagpost-bench-fabric"));
        job.arg("--raw").arg(&raw);
        job.args(["--provider", full_name, "--figure", &arguments.figure]);
        job.args(["--batches", &arguments.batches.to_string()]);
        job.args(["--batch", &arguments.batch.to_string()]);
        job.args(arguments.json.then_some("--json"));
        let status = children::status(&mut job).context("cannot run flagpost-run")?;
        well &= status.success();
    }
    Ok(well)
}

/// Builds the program and the launcher. Gives their directory.
fn build(console: &Console, profile: &str) -> Result<PathBuf> {
    tools::libfabric_headers(console)?;
    let words = "--package flagpost-bench-fabric --package flagpost-linux \
                 --bin flagpost-bench-fabric --bin flagpost-run";
    let words = words.split_whitespace();
    let words = ["build", "--profile", profile].into_iter().chain(words);
    compiling::cargo(console, "flagpost-bench-fabric", words)?;
    let directory = if profile == "dev" { "debug" } else { profile };
    Ok(paths::target().join(directory))
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
