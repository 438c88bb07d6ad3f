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

use super::{Plan, Row, Sweep};
use crate::board::Board;
use crate::boot::Setup;
use crate::console::Console;
use crate::files::{Killer, Killers};
use crate::image;
use crate::parallel;
use crate::run::{Outcome, Run};
use crate::session::Session;

/// Seeds that a search tries, one after the other.
const SEEDS: u32 = 3;

/// Host time after which a run hangs: a hundred times what one takes.
const HANGS: Duration = Duration::from_secs(10);

/// A run: case, cores, profile and seed.
type Parts<'a> = (&'a str, u32, &'a str, u32);

/// Boots for each point with it broken, and then the runs that killed with no point broken.
pub(super) fn sweep(
    console: &Console,
    board: Board,
    killers: &Killers,
    plan: &Plan<'_>,
) -> Result<Sweep> {
    let session = Session::with(console, board, image::CASES, true)?;
    let lines = killers
        .iter()
        .map(|(point, killer)| (point.as_str(), killer));
    let mut order: Vec<(&str, &Killer)> = { lines }
        .filter(|(point, _)| plan.points.contains(point))
        .collect();
    // What lasts until a limit begins first.
    order.sort_by_key(|(_, killer)| !matches!(&*killer.how, "hang" | "silence"));
    let work = |&(point, killer): &(&str, &Killer)| {
        let line = killer.parts().context("a malformed line")?;
        let first = plan.killers.get(point).map(|_| line.3);
        let others = (0..SEEDS).filter(|&seed| Some(seed) != first);
        hunt(
            console,
            &session,
            point,
            line,
            first.into_iter().chain(others),
        )
    };
    let total = order.len();
    let mut done = parallel::each(&order, total, work, |done, _| {
        console.progress(done as u64, total as u64, "points on the board");
    })?;
    done.sort_by(|(a, _), (b, _)| a.point().cmp(b.point()));
    let (rows, accounts): (Vec<Row>, Vec<_>) = done.into_iter().unzip();
    let mut sweep = Sweep {
        ended_well: unbroken(console, &session, &rows)?,
        ..Sweep::default()
    };
    plan.head();
    for row in &rows {
        plan.show(row);
        if let Some(then) = plan.killers.get(row.point())
            && row.text("replay") != then.replay
        {
            let why = format!("{} passes", then.replay);
            sweep.lapsed.insert(row.point().to_owned(), why);
        }
    }
    if let [account] = &accounts[..] {
        account.iter().for_each(|line| console.say(line));
    }
    Ok(Sweep { rows, ..sweep })
}

/// Runs once more, with no point broken, what killed. Whether all pass.
fn unbroken(console: &Console, session: &Session, rows: &[Row]) -> Result<bool> {
    // Many points share a run.
    let killers: Vec<_> = rows.iter().filter_map(Row::killer).collect();
    let runs: BTreeSet<Parts<'_>> = killers
        .iter()
        .filter_map(|(_, killer)| killer.parts())
        .collect();
    let setups: Vec<Setup> = runs.iter().map(|run| setup(*run, None)).collect();
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

/// Boots with the point broken until a seed kills it, the case and the cores being those of the
/// line. Also what the run that killed said.
fn hunt(
    console: &Console,
    session: &Session,
    point: &str,
    (case, cores, profile, _): Parts<'_>,
    seeds: impl Iterator<Item = u32>,
) -> Result<(Row, Vec<String>)> {
    let mut runs = 0;
    for seed in seeds {
        let run = session.run(console, &setup((case, cores, profile, seed), Some(point)))?;
        runs += 1;
        if !run.ok() {
            let row = json!({
                "point": point,
                "killed": true,
                "how": how(&run),
                "schedules": runs,
                "replay": format!("{case}/{cores}/{profile}:{seed}"),
            });
            return Ok((Row(row), run.errors));
        }
    }
    let row = json!({"point": point, "killed": false, "schedules": runs});
    Ok((Row(row), Vec::new()))
}

fn setup((case, cores, profile, seed): Parts<'_>, point: Option<&str>) -> Setup {
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
