//! Jobs under each launcher's environment: `flagpost-run`'s, and that of launchers that only say
//! rank and ranks, whose jobs meet in a named segment.
//!
//! The ranks are this program again: the test `rank`, with a part in `FLAGPOST_TEST_PART`. No test
//! asks how long something takes.

mod choices;
mod deaths;
mod forks;
#[path = "../limit/mod.rs"]
mod limit;
mod meeting;
mod memory;
mod processors;
#[path = "../shared/mod.rs"]
mod shared;
#[path = "../../../tests/host/survivor.rs"]
mod survivor;
#[path = "../limit/threads.rs"]
mod threads;
#[path = "../../../tests/host/waits.rs"]
mod waits;
mod worlds;

use std::process::Command;
use std::sync::{Mutex, MutexGuard};

use flagpost::Error;
use limit::Ended;
use shared::{PART, as_rank};

/// What a rank does in a job of a test. Not a test by itself.
#[test]
fn rank() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let (test, rest) = part.split_once(' ').unwrap_or((&part, ""));
    let code = match test {
        "asked" => flagpost_linux::run(shared::stands_still),
        "order" => flagpost_linux::run(|world| match world.rank().get() {
            0 => world.broadcast(flagpost::Rank::new(1), &mut [0_u32]),
            _ => world.barrier(),
        }),
        "fails" => flagpost_linux::run(shared::fails),
        "one" => flagpost_linux::run(shared::one_fails),
        "deaths" => deaths::rank(rest),
        "forks" => forks::rank(rest),
        "lost" => flagpost_linux::run(shared::two_die),
        "meeting" => meeting::rank(),
        "memory" => memory::rank(),
        "polls" => flagpost_linux::run(|world| {
            survivor::polls(world, || shared::die(), || (), u32::MAX)?;
            println!("rank {} has polled", world.rank());
            Ok::<(), Error>(())
        }),
        "processors" => processors::rank(),
        "stranger" => deaths::stranger(),
        "worlds" => worlds::rank(rest),
        _ => panic!("no such part: {part}"),
    };
    shared::end(code);
}

/// Which launcher a job has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Launcher {
    Ours,
    /// This test, in MPICH's words.
    Other,
}

/// The words of a rank, for shells.
fn words() -> String {
    let path = std::env::current_exe().expect("this program");
    format!("'{}' --exact rank --nocapture", path.display())
}

/// `flagpost-run` with `arguments`. Its ranks have the time to end by themselves.
fn ours(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    command.args(["--grace", "600"]).args(arguments);
    command
}

/// `flagpost-run` with the ranks of `part`.
fn job_of(ranks: u16, part: &str) -> Command {
    let mut command = ours(&["-n", &ranks.to_string(), "--mem", "1M"]);
    as_rank(&mut command, part);
    command
}

/// A rank of another launcher's job, behind the words of `between`.
fn other(between: &[&str], part: &str, rank: u16, ranks: u16) -> Command {
    let mut command = Command::new(between[0]);
    as_rank(command.args(&between[1..]), part);
    command.env("PMI_RANK", rank.to_string());
    command.env("PMI_SIZE", ranks.to_string());
    command.env("FLAGPOST_MEMORY", "1048576");
    command
}

/// The starter of the other launcher's jobs is this process, and names their memory: two at a
/// time would meet. So each job of [`other`] holds this.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poison| poison.into_inner())
}

/// Runs a job to its end.
fn job(launcher: Launcher, ranks: u16, part: &str) -> Ended {
    if launcher == Launcher::Ours {
        return limit::output(&mut job_of(ranks, part));
    }
    let _alone = alone();
    let start = |rank| limit::start(&mut other(&["env"], part, rank, ranks));
    let all: Vec<_> = (0..ranks).map(start).collect();
    let all: Vec<Ended> = all.into_iter().map(limit::Started::output).collect();
    Ended {
        codes: all.iter().flat_map(|ended| ended.codes.clone()).collect(),
        out: all.iter().map(|ended| &*ended.out).collect(),
        err: all.iter().map(|ended| &*ended.err).collect(),
    }
}

#[test]
fn ranks_say_what_they_wait_for() {
    shared::is_asked(&job_of(shared::RANKS, "asked"));
}

/// The last rank still has its time when the second one dies.
#[test]
fn all_lost_ranks_are_named() {
    // Where no launcher looks, the last rank itself has to.
    for launcher in [Launcher::Ours, Launcher::Other] {
        let ended = job(launcher, shared::LOSERS, "lost");
        shared::are_named(&ended.out);
        let lines = if launcher == Launcher::Ours { 2 } else { 0 };
        assert_eq!(ended.err.lines().count(), lines, "{ended:?}");
    }
}

/// The launcher sees it, or the survivor itself has to look.
#[test]
fn polls_tell_that_a_process_is_lost() {
    for launcher in [Launcher::Ours, Launcher::Other] {
        let ended = job(launcher, 2, "polls");
        assert!(ended.out.contains("rank 0 has polled\n"), "{ended:?}");
    }
}

/// Rank 0 waits for what rank 1 never sends. The first to find that out tells.
#[test]
fn other_collective_calls_are_told_apart() {
    let ended = job(Launcher::Ours, 2, "order");
    let told = |one, other| format!("rank {one}: rank {other} makes another collective call (call");
    let is_told = |line: &str| line.starts_with(&told(0, 1)) || line.starts_with(&told(1, 0));
    assert!(ended.err.lines().any(is_told), "{ended:?}");
    assert_eq!(ended.codes, [1], "{ended:?}");
}

#[test]
fn the_call_that_failed_is_named() {
    shared::is_told_where(&mut job_of(1, "fails"));
}

#[test]
fn the_cause_comes_first() {
    shared::the_cause_comes_first(&mut job_of(8, "one"));
}
