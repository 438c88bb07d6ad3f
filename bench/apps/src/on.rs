//! Where programs run.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use flagpost::{Config as WorldConfig, Error, Session, World};
use flagpost_apps::{Job, Outcome, Program, Wrong};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Latencies, Oracles, Schedule, Sim, SimCore};
use serde_json::Value;

use crate::Task;

/// The link of the simulated chip.
pub(crate) type SimLink = Mapped<SimCore>;

/// Bytes of each simulated core's memory: windows and the link's own.
const MEMORY: u32 = 1 << 20;

/// Runs it on a chip whose accesses take what `latencies` says, with message buffers of 8 KiB.
pub(crate) fn simulator(
    program: &Program<SimLink>,
    task: &Task<'_>,
    latencies: Latencies,
) -> Result<Outcome> {
    let chip = Config {
        cores: task.ranks,
        memory_size: MEMORY,
        buffer_size: 8 << 10,
        latencies,
        publish: 32,
        schedule: Schedule::Timed,
        oracles: Oracles::ALL,
        max_steps: u64::MAX,
        ..Config::default()
    };
    let found = std::cell::Cell::new(None);
    let report = Sim::new(chip).run(|core: SimCore| {
        let link = Mapped::start(core, Session::FIRST).map_err(Error::from)?;
        let mut arena = vec![0; WorldConfig::DEFAULT.words(task.ranks, 4)];
        let world = World::start(link, &mut arena, WorldConfig::DEFAULT)?;
        let mut memory = vec![0.0; task.memory];
        let job = Job {
            variant: task.variant,
            size: task.size,
            memory: &mut memory,
        };
        found.set(Some(program.run(&world, job)?));
        Ok::<(), Wrong>(())
    });
    if !report.is_done() {
        bail!("{} {}: {report}", task.name, task.variant);
    }
    found.get().context("no core has run")
}

/// Runs it as processes of this machine. `flagpost-run` and the ranks' program lie beside this one.
pub(crate) fn processes(task: &Task<'_>, over_network: bool) -> Result<Outcome> {
    let own = std::env::current_exe()?;
    let beside = |name: &str| own.with_file_name(name);
    let mut command = Command::new(beside("flagpost-run"));
    if over_network {
        command.args(["--link", "fabric"]);
    }
    command.arg("-n").arg(task.ranks.to_string());
    command.arg(beside("flagpost-app-rank"));
    command.args([task.name, task.variant.name()]);
    command.args([task.size.side.to_string(), task.size.steps.to_string()]);
    let ended = command
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start flagpost-run")?;
    if !ended.status.success() {
        bail!("{} {}: {}", task.name, task.variant, ended.status);
    }
    let told: Value = serde_json::from_slice(&ended.stdout).context("what rank 0 prints")?;
    let number = |name: &str| told[name].as_u64().with_context(|| format!("no {name}"));
    Ok(Outcome {
        ticks: number("ticks")?,
        per_second: number("per_second")?,
        work: number("work")?,
    })
}
