//! The points that the QEMU board must kill: those whose breach its private images, its lock bits or plain program
//! order bring to light in a single, deterministic run.
//!
//! A kill is a case that fails, traps or hangs.
//!
//! Not among them: drains and acquires (the board's memory is coherent and strong below images and combining
//! buffers; a drain that nothing else makes up for would show), and races whose
//! window a hart only leaves when QEMU happens to end its turn there.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::json;

use super::{Sources, Sweep, Table, Verdict};
use crate::boot::Setup;
use crate::console::Console;
use crate::run::{Outcome, Run};
use crate::session::Session;

/// Point, and the case that notices. All cases whose names contain it run.
const SUBSET: [(&str, &str); 30] = [
    // These two hang, after a core has noticed; so they begin first.
    (
        "mapped.match_vector.complete.lock",
        "timeout.vector.rest_of_complete",
    ),
    (
        "mapped.match_vector.post.lock",
        "timeout.vector.rest_of_post",
    ),
    ("collective.agree.barrier", "pscw.windows"),
    ("collective.allgather.barrier", "world.allgather"),
    ("collective.meet.connect", "pscw.ring"),
    ("collective.round.send<signal", "pscw.ring"),
    ("collective.round.wait", "pscw.ring"),
    ("collective.round.wait<receive", "pscw.ring"),
    ("mapped.publish.write_back", "pscw.ring"),
    ("mapped.refresh.invalidate", "pscw.ring"),
    ("mapped.ring.claim.lock", "timeout.lock"),
    ("mapped.ring.claim.room", "notify.shared.flood"),
    ("mapped.start.release", "pscw.vector.ring"),
    ("notify.cancel.refresh", "notify.shared.cancel"),
    ("notify.start.publish", "notify.shared_line"),
    ("notify.test.queue", "pscw.full_ring"),
    ("notify.test.refresh", "notify.shared.shared_line"),
    ("notify.test.room", "notify.queue_full"),
    ("pscw.access.await_post", "pscw.get"),
    ("pscw.epoch_slots.forget", "pscw.ring"),
    ("pscw.post.expect", "pscw.vector.ring"),
    ("pscw.post.publish", "pscw.ring"),
    ("pscw.wait.refresh", "pscw.ring"),
    ("pscw.wait.wait", "pscw.ring"),
    ("making.agree", "pscw.ring"),
    ("pscw.match_vector.reset", "pscw.vector.ring"),
    ("window.zero.publish", "window.zero_again"),
    ("world.progress.room", "pscw.full_ring"),
    ("world.start.meet", "pscw.ring"),
    ("world.wait.progress", "pscw.full_ring"),
];

const CORES: u32 = 8;

/// Seeds that are tried, one after the other.
const SEEDS: u32 = 3;

/// Host time after which a run hangs: a hundred times what one takes.
const HANGS: Duration = Duration::from_secs(10);

/// Virtual microseconds that a call may wait: a thousand times what a case takes. A deadlock then is an error,
/// not a hang.
const BUDGET: &str = "budget=20000";

/// The points of the subset.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SUBSET.iter().map(|(name, _)| *name)
}

/// Boots the image without a broken point, then with each of those whose name contains `pattern`.
pub(super) fn sweep(
    console: &Console,
    sources: &Sources,
    pattern: &str,
    table: &Table,
) -> Result<Sweep> {
    let mut sweep = Sweep::default();
    if sources.errors > 0 {
        return Ok(sweep);
    }
    let session = Session::mutants(console)?;
    let chosen: Vec<(&str, &str)> = SUBSET
        .into_iter()
        .filter(|(name, _)| name.contains(pattern))
        .collect();
    let cases: BTreeSet<&str> = chosen.iter().map(|(_, case)| *case).collect();
    let seeds: Vec<u32> = (0..SEEDS).collect();
    for case in cases {
        for run in session.seeds(console, &setup(case, None), &seeds)? {
            if !run.ok() || run.begun() == 0 {
                console.clear();
                console.error(&format!(
                    "{case} fails on the board with no point broken (seed {}): {}",
                    run.seed,
                    run.errors.join("; ")
                ));
                return Ok(sweep);
            }
        }
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        loop {
            // ORDERING: Relaxed: only that each number is drawn once counts.
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((point, case)) = chosen.get(number) else {
                return Ok(());
            };
            let verdict = hunt(console, &session, point, case)?;
            let mut done = lock(&done);
            done.push((number, verdict));
            console.progress(
                done.len() as u64,
                chosen.len() as u64,
                "points on the board",
            );
        }
    };
    std::thread::scope(|scope| {
        let host = std::thread::available_parallelism().map_or(1, |n| n.get());
        let workers: Vec<_> = (0..host.min(chosen.len()))
            .map(|_| scope.spawn(work))
            .collect();
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err(anyhow!("a worker panicked")))
            })
            .collect::<Vec<_>>()
            .into_iter()
            .collect::<Result<()>>()
    })?;
    console.clear();
    let mut done = std::mem::take(&mut *lock(&done));
    done.sort_by_key(|(number, _)| *number);
    for (_, (verdict, account)) in done {
        table.row(&verdict, false);
        if chosen.len() == 1 {
            account.iter().for_each(|line| console.say(line));
        }
        sweep.results.push(verdict);
    }
    sweep.ended_well = true;
    Ok(sweep)
}

/// A panic elsewhere is reported where it is joined.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Boots with the point broken until a seed kills it: the verdict, and what that run said.
fn hunt(
    console: &Console,
    session: &Session,
    point: &str,
    case: &str,
) -> Result<(Verdict, Vec<String>)> {
    for seed in 0..SEEDS {
        let setup = Setup {
            seed,
            ..setup(case, Some(point))
        };
        let run = session.run(console, &setup)?;
        if run.ok() {
            continue;
        }
        let object = json!({
            "point": point,
            "killed": true,
            "case": case,
            "cores": CORES,
            "profile": "qemu",
            "how": how(&run),
            "schedules": seed + 1,
            "seed": seed,
            "replay": format!("{case}/{CORES}/qemu:{seed}"),
        });
        let verdict = Verdict {
            point: point.to_owned(),
            killed: true,
            object,
        };
        return Ok((verdict, run.errors));
    }
    let object = json!({"point": point, "killed": false, "schedules": SEEDS});
    Ok((
        Verdict {
            point: point.to_owned(),
            killed: false,
            object,
        },
        Vec::new(),
    ))
}

fn setup(case: &str, point: Option<&str>) -> Setup {
    let mut arguments = vec![BUDGET.to_owned()];
    arguments.extend(point.map(|point| format!("mutant={point}")));
    let usual = Setup::new(CORES, 0);
    Setup {
        filter: Some(case.to_owned()),
        arguments,
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
