//! A rank dies: each one of three, in each call that another one waits in, under each launcher. All
//! others are there, or one of them has ended well. Those that are left are told, and the launcher
//! says which died.

use std::process::ExitCode;

use flagpost::{Error, Rank};
use flagpost_linux::{HostLink, run};

use super::lost::die;
use super::waits::{calls, told};
use super::{Launcher, job};

const RANKS: u16 = 3;

/// A part is the number of a call, the rank that dies, and whether another one ends before.
pub(super) fn rank(part: &str) -> ExitCode {
    let numbers = part.split(' ').map(|word| word.parse().expect("a number"));
    let [row, dies, ends] = numbers.collect::<Vec<u16>>()[..] else {
        panic!("{part}");
    };
    let (dies, ends) = (Rank::new(dies), ends == 1);
    run(|world| {
        let me = world.rank();
        match told(world, dies, ends, calls()[usize::from(row)], || ())? {
            Some(told) => println!("rank {me} was told {:?}", told.expect_err("it is dead")),
            None if me == dies => die(),
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
        dies_in(launcher, row, 1, false);
    }
    for dies in 0..RANKS {
        dies_in(launcher, last, dies, false);
        dies_in(launcher, last, dies, true);
    }
}

fn dies_in(launcher: Launcher, row: usize, dies: u16, ends: bool) {
    let part = format!("deaths {row} {dies} {}", u8::from(ends));
    let ended = job(launcher, RANKS, &part);
    let what = format!(
        "{launcher:?}: {}, {part}: {ended:?}",
        calls::<HostLink>()[row].0
    );
    match launcher {
        Launcher::Ours => {
            assert_eq!(ended.codes, [128 + 9], "{what}");
            let line = format!("flagpost-run: rank {dies} (process ");
            assert!(ended.err.starts_with(&line), "{what}");
            assert_eq!(ended.err.lines().count(), 1, "{what}");
        }
        Launcher::Other => {
            let code = |rank| if rank == dies { 128 + 9 } else { 0 };
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
}

#[test]
fn each_rank_may_die_under_another_launcher() {
    die_under(Launcher::Other);
}
