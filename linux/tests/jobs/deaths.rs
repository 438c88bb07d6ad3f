//! A rank dies: each one of three, in each call that another one waits in, under each launcher. All
//! others are there, or one of them has ended well. Those that are left are told, and the launcher
//! says which died, and how.

use std::process::{ExitCode, exit};

use flagpost::{Error, Rank};
use flagpost_linux::{HostLink, run};

use super::shared::die;
use super::waits::{calls, told};
use super::{Launcher, job};

const RANKS: u16 = 3;

/// How a rank ends, the status of its job, and the launcher's words for it.
const WAYS: [(&str, i32, &str); 5] = [
    ("killed", 128 + 9, "was ended by signal 9 (SIGKILL)"),
    ("failed", 1, "ended with status 1"),
    ("panicked", 101, "ended with status 101"),
    ("quit", 3, "ended with status 3"),
    ("left", 1, "ended without leaving the job"),
];
const KILLED: usize = 0;

/// A part is the number of a call, the rank that dies, whether another one ends before, and the way
/// to die.
pub(super) fn rank(part: &str) -> ExitCode {
    let numbers = part.split(' ').map(|word| word.parse().expect("a number"));
    let [row, dies, ends, way] = numbers.collect::<Vec<u16>>()[..] else {
        panic!("{part}");
    };
    let (dies, ends) = (Rank::new(dies), ends == 1);
    run(|world| {
        let me = world.rank();
        match told(world, dies, ends, calls()[usize::from(row)], || ())? {
            Some(told) => println!("rank {me} was told {:?}", told.expect_err("it is dead")),
            None if me == dies => match WAYS[usize::from(way)].0 {
                "killed" => die(),
                "failed" => return Err(Error::CountZero),
                "panicked" => panic!("on purpose"),
                "quit" => exit(3),
                _ => exit(0),
            },
            None if ends => println!("rank {me} has ended well"),
            None => {}
        }
        Ok::<(), Error>(())
    })
}

/// All calls, and one of them with each rank; under `launcher`.
fn die_under(launcher: Launcher) {
    let last = calls::<HostLink>().len() - 1;
    for row in 0..last {
        dies_in(launcher, row, 1, false, KILLED);
    }
    for dies in 0..RANKS {
        dies_in(launcher, last, dies, false, KILLED);
        dies_in(launcher, last, dies, true, KILLED);
    }
}

fn dies_in(launcher: Launcher, row: usize, dies: u16, ends: bool, way: usize) {
    let part = format!("deaths {row} {dies} {} {way}", u8::from(ends));
    let ended = job(launcher, RANKS, &part);
    let (how, code, told) = WAYS[way];
    let call = calls::<HostLink>()[row].0;
    let what = format!("{launcher:?}: {call}, {how}, {part}: {ended:?}");
    match launcher {
        Launcher::Ours => {
            assert_eq!(ended.codes, [code], "{what}");
            let line = format!("flagpost-run: rank {dies} (process ");
            let lines = { ended.err.lines() }.filter(|line| line.starts_with("flagpost-run: "));
            let lines: Vec<&str> = lines.collect();
            let [only] = lines[..] else { panic!("{what}") };
            assert!(only.starts_with(&line) && only.ends_with(told), "{what}");
            let is_silent = ended.err.lines().count() == 1;
            assert!(
                is_silent || !["killed", "quit", "left"].contains(&how),
                "{what}"
            );
        }
        Launcher::Other => {
            let code = |rank| if rank == dies { code } else { 0 };
            let codes: Vec<i32> = (0..RANKS).map(code).collect();
            assert_eq!(ended.codes, codes, "{what}");
            assert_eq!(ended.err, "", "{what}");
        }
    }
    let (caller, third) = ((dies + 1) % RANKS, (dies + 2) % RANKS);
    let lost = Error::PeerLost(Rank::new(dies));
    let line = format!("rank {caller} was told {lost:?}\n");
    assert!(ended.out.contains(&line), "{what}");
    let well = format!("rank {third} has ended well\n");
    assert_eq!(ended.out.contains(&well), ends, "{what}");
}

#[test]
fn each_rank_may_die_under_flagpost_run() {
    die_under(Launcher::Ours);
    for way in KILLED + 1..WAYS.len() {
        dies_in(Launcher::Ours, 0, 1, false, way);
    }
}

#[test]
fn each_rank_may_die_under_another_launcher() {
    die_under(Launcher::Other);
}

/// Rank 1 ends in order without ever having been there; the other one is in the library.
pub(super) fn stranger() -> ExitCode {
    if std::env::var("FLAGPOST_RANK").as_deref() == Ok("1") {
        return ExitCode::SUCCESS;
    }
    run(|world| world.barrier())
}

#[test]
fn who_never_joins_is_told_too() {
    let ended = job(Launcher::Ours, 2, "stranger");
    assert_eq!(ended.codes, [1], "{ended:?}");
    let told = "ended without having joined the job";
    assert!(ended.err.contains(told), "{ended:?}");
}
