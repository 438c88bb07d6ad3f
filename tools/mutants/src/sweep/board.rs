//! The points that a board under QEMU must kill: those whose breach comes to light in a single,
//! deterministic run. They are those that the board's file of killers has lines for. All cases run
//! whose names contain the line's case. A kill is a case that fails, traps or hangs, in a run that
//! passes with no point broken.
//!
//! | board | points |
//! |---|---|
//! | `virt` | of the kernel: by its private images, its lock bits or plain program order |
//! | `scc` | of the SCC's port: CL1INVMB, drains, masked interrupts |
//!
//! Not among those of `virt`: drains and acquires (its memory is coherent and strong below images
//! and combining buffers; a drain that nothing else makes up for would show), and races whose
//! window a hart only leaves when QEMU happens to end its turn there.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::{Plan, Sweep, Table, Verdict};
use crate::board::Board;
use crate::boot::Setup;
use crate::console::Console;
use crate::killers::{Killer, Killers};
use crate::parallel;
use crate::run::{Outcome, Run};
use crate::session::Session;

/// Seeds that a search tries, one after the other.
const SEEDS: u32 = 3;

/// Host time after which a run hangs: a hundred times what one takes.
const HANGS: Duration = Duration::from_secs(10);

/// Boots for each point with it broken, and then the runs that killed with no point broken.
pub(super) fn sweep(
    console: &Console,
    board: Board,
    killers: &Killers,
    plan: &Plan<'_>,
    table: &Table,
) -> Result<Sweep> {
    let session = Session::mutants(console, board)?;
    let mut order: Vec<(&str, &Killer)> = Vec::new();
    for point in &plan.points {
        let killer = killers.0.get(*point);
        order.push((point, killer.context("a point without a line")?));
    }
    // What lasts until a limit begins first.
    order.sort_by_key(|(_, killer)| !matches!(&*killer.how, "hang" | "silence"));
    let work = |&(point, killer): &(&str, &Killer)| {
        let is_recorded = plan.killers.contains_key(point);
        let first = is_recorded.then_some(killer.seed);
        let others = (0..SEEDS).filter(|&seed| Some(seed) != first);
        hunt(
            console,
            &session,
            point,
            killer,
            first.into_iter().chain(others),
        )
    };
    let total = order.len();
    let mut done = parallel::each(&order, total, work, |done, _| {
        console.progress(done as u64, total as u64, "points on the board");
    })?;
    done.sort_by(|a, b| a.verdict.point.cmp(&b.verdict.point));
    let mut sweep = Sweep {
        ended_well: unbroken(console, &session, &done)?,
        ..Sweep::default()
    };
    for hunted in done {
        table.row(&hunted.verdict, false);
        if plan.points.len() == 1 {
            hunted.account.iter().for_each(|line| console.say(line));
        }
        let point = &hunted.verdict.point;
        if let Some(killer) = plan.killers.get(&**point)
            && hunted.killer.is_none_or(|found| found.seed != killer.seed)
        {
            let why = format!("{} passes", killer.replay());
            sweep.lapsed.insert(point.clone(), why);
        }
        sweep.results.push(hunted.verdict);
    }
    Ok(sweep)
}

/// Runs once more, with no point broken, what killed. Whether all pass.
fn unbroken(console: &Console, session: &Session, done: &[Hunted]) -> Result<bool> {
    // Many points share a run.
    let of = |killer: &Killer| {
        let Killer {
            case,
            profile,
            cores,
            seed,
            ..
        } = killer.clone();
        (case, profile, cores, seed)
    };
    let killers = done.iter().filter_map(|hunted| hunted.killer.as_ref());
    let runs: BTreeSet<(String, String, u32, u32)> = killers.map(of).collect();
    let setups: Vec<Setup> = runs
        .iter()
        .map(|(case, profile, cores, seed)| setup(case, profile, *cores, *seed, None))
        .collect();
    let mut good = true;
    let ended = session.all(console, &setups)?;
    console.clear();
    for (run, (case, ..)) in ended.iter().zip(&runs) {
        if !run.ok() || run.begun() == 0 {
            good = false;
            console.error(&format!(
                "{case} fails on the board with no point broken (seed {}): {}",
                run.seed,
                run.errors.join("; ")
            ));
        }
    }
    Ok(good)
}

/// What came of a point.
struct Hunted {
    verdict: Verdict,
    /// The run that killed it.
    killer: Option<Killer>,
    /// What that run said.
    account: Vec<String>,
}

/// Boots with the point broken until a seed kills it, the case and the cores being those of the
/// line.
fn hunt(
    console: &Console,
    session: &Session,
    point: &str,
    line: &Killer,
    seeds: impl Iterator<Item = u32>,
) -> Result<Hunted> {
    let mut runs = 0;
    for seed in seeds {
        let run = session.run(
            console,
            &setup(&line.case, &line.profile, line.cores, seed, Some(point)),
        )?;
        runs += 1;
        if run.ok() {
            continue;
        }
        let killer = Killer {
            seed,
            how: how(&run).to_owned(),
            ..line.clone()
        };
        let object = json!({
            "point": point,
            "killed": true,
            "case": killer.case,
            "cores": killer.cores,
            "profile": killer.profile,
            "how": killer.how,
            "schedules": runs,
            "seed": seed,
            "replay": killer.replay(),
        });
        return Ok(Hunted {
            verdict: Verdict {
                point: point.to_owned(),
                killed: true,
                object,
            },
            killer: Some(killer),
            account: run.errors,
        });
    }
    Ok(Hunted {
        verdict: Verdict {
            point: point.to_owned(),
            killed: false,
            object: json!({"point": point, "killed": false, "schedules": runs}),
        },
        killer: None,
        account: Vec::new(),
    })
}

fn setup(case: &str, profile: &str, cores: u32, seed: u32, point: Option<&str>) -> Setup {
    let usual = Setup::new(cores, seed);
    let mutant = point.map(|point| format!("mutant={point}"));
    let mapping = (profile != "qemu").then(|| format!("mapping={profile}"));
    Setup {
        filter: Some(case.to_owned()),
        arguments: { mutant.into_iter() }.chain(mapping).collect(),
        // What must not fail gets as long as any run: the host may be busy.
        timeout: point.map_or(usual.timeout, |_| HANGS),
        ..usual
    }
}

/// How the first case that failed did, in the words of the simulator's table.
fn how(run: &Run) -> &'static str {
    let failed = |case: &crate::run::Case| match case.outcome {
        Outcome::Failed("FAIL", _) => Some("failed check"),
        Outcome::Failed("HUNG", _) => Some("hang"),
        Outcome::Failed("TRAP", _) => Some("trap"),
        Outcome::Failed("PANIC", _) => Some("panic"),
        Outcome::Failed(..) | Outcome::Running => Some("silence"),
        Outcome::Passed | Outcome::Skipped(_) => None,
    };
    run.cases.iter().find_map(failed).unwrap_or("silence")
}
