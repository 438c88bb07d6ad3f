//! Runs a program of `flagpost-apps`: on the simulated SCC, as processes of this machine, over
//! libfabric, or under QEMU. Each rank compares its part of the result with a serial run; a result
//! that differs is an error here.

#[path = "../../src/chip.rs"]
mod chip;
pub use chip::{BUFFER, scc};

use std::cell::Cell;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};
use flagpost::{Config as WorldConfig, Error, Session, World};
use flagpost_apps::{Job, Outcome, Program, Size, Variant, Wrong};
use flagpost_mapped::Mapped;
use flagpost_sim::{Latencies, Sim, SimCore};
use serde_json::Value;

/// The link of the simulated chip.
pub type SimLink = Mapped<SimCore>;

/// One run of a program.
#[derive(Copy, Clone, Debug)]
pub struct Task<'a> {
    /// The program's name.
    pub name: &'a str,
    /// How its ranks tell each other of data.
    pub variant: Variant,
    /// How many ranks.
    pub ranks: u16,
    /// How much it does.
    pub size: Size,
}

/// The program of that name.
///
/// # Errors
/// There is none.
pub fn program(name: &str) -> Result<Program<SimLink>> {
    let mut all = flagpost_apps::programs().into_iter();
    all.find(|program| program.name == name)
        .with_context(|| format!("there is no program {name}"))
}

/// Bytes of a simulated core's memory that suffice for windows of programs without large parts.
const MEMORY: usize = 1 << 20;

/// Runs it on a simulated SCC whose accesses take what `latencies` says, and whose floating-point
/// operations take [`CYCLES`]. Private memory, and all else that a core does, take no time. In
/// ticks of its cores, the same on any host.
///
/// # Errors
/// A core that failed, or found something else than the serial run.
pub fn simulator(task: Task<'_>, latencies: Latencies) -> Result<Outcome> {
    let program = program(task.name)?;
    let elements = program
        .memory(task.ranks, task.size)
        .map_err(|wrong| anyhow!("{}: {wrong}", task.name))?;
    // No program's windows are larger than the memory that it borrows, or they are small.
    let memory = MEMORY + (8 * elements).next_multiple_of(4096);
    let memory = u32::try_from(memory)
        .context("a simulated core has less than 4 GiB of memory: take a smaller size")?;
    let chip = chip::scc(task.ranks, memory, latencies);
    let (found, differs) = (Cell::new(None), Cell::new(None));
    let report = Sim::new(chip).run(|core: SimCore| {
        let compute = |operations| spend(&core, operations);
        let link = Mapped::start(core.clone(), Session::FIRST).map_err(Error::from)?;
        let mut arena = vec![0; WorldConfig::DEFAULT.words(task.ranks, 4)];
        let world = World::start(link, &mut arena, WorldConfig::DEFAULT)?;
        let job = Job {
            variant: task.variant,
            size: task.size,
            memory: &mut vec![0.0; elements],
            compute: &compute,
        };
        let outcome = program.run(&world, job);
        let wrong = outcome
            .err()
            .filter(|why| matches!(why, Wrong::Value { .. }));
        if let Some(value) = wrong {
            differs.set(Some((world.rank().get(), value)));
        }
        found.set(Some(outcome?));
        Ok::<(), Wrong>(())
    });
    // The account of the run would say how ranks waited for each other afterwards.
    if let Some((rank, value)) = differs.get() {
        bail!("{} {}: rank {rank}: {value}", task.name, task.variant);
    }
    if !report.is_done() {
        bail!("{} {}: {report}", task.name, task.variant);
    }
    found.get().context("no core has run")
}

/// Cycles of a simulated core for a floating-point operation: an addition or a multiplication of a
/// P54C gives its result after 3 cycles, and in these programs most take the last one's.
pub const CYCLES: u64 = 3;

/// Lets a core compute.
fn spend(core: &SimCore, operations: u64) {
    let mut left = operations * CYCLES;
    while left > 0 {
        let cycles = u32::try_from(left).unwrap_or(u32::MAX);
        core.spend(cycles);
        left -= u64::from(cycles);
    }
}

/// Runs it as processes of this machine, by `flagpost-run` and `examples/linux/app.rs`, which lie
/// beside this program.
///
/// # Errors
/// A rank that failed, or found something else than the serial run.
pub fn processes(task: Task<'_>, over_network: bool) -> Result<Outcome> {
    let own = std::env::current_exe()?;
    let beside = |name: &str| own.with_file_name(name);
    let mut command = Command::new(beside("flagpost-run"));
    if over_network {
        command.args(["--link", "fabric"]);
    }
    command.arg("-n").arg(task.ranks.to_string());
    command.arg(beside("examples/app"));
    command.args([task.name, task.variant.name()]);
    command.args([task.size.side.to_string(), task.size.steps.to_string()]);
    outcome(&printed(task, command)?)
}

/// Runs its conformance case on the board `virt` under QEMU. Ticks are instructions of all cores,
/// the same on any host.
///
/// # Errors
/// A rank that failed, or found something else than the serial run; a number of ranks that the case
/// does not take.
pub fn board(task: Task<'_>) -> Result<Outcome> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "xtask",
        "qemu",
        "--json",
        "--cores",
        &task.ranks.to_string(),
    ]);
    command.args(["--filter", &format!("apps.{}", task.name)]);
    command.args(["--arg", &format!("app.variant={}", task.variant)]);
    command.args(["--arg", &format!("app.size={}", task.size)]);
    let told = printed(task, command)?;
    if told["skipped"] == true {
        bail!(
            "{}: its case does not run on {} ranks",
            task.name,
            task.ranks
        );
    }
    outcome(&told["notes"])
}

/// The object that a command prints.
fn printed(task: Task<'_>, mut command: Command) -> Result<Value> {
    let ended = command.stderr(Stdio::inherit()).output();
    let ended = ended.with_context(|| format!("cannot start {:?}", command.get_program()))?;
    if !ended.status.success() {
        bail!("{} {}: {}", task.name, task.variant, ended.status);
    }
    serde_json::from_slice(&ended.stdout).context("no object was printed")
}

/// What rank 0 tells.
fn outcome(told: &Value) -> Result<Outcome> {
    let number = |name: &str| told[name].as_u64().with_context(|| format!("no {name}"));
    Ok(Outcome {
        ticks: number("ticks")?,
        per_second: number("per_second")?,
        work: number("work")?,
    })
}
