//! Two worlds in one process: the second one works, or is refused in one line, and never reaches
//! the first one's memory.

use std::process::ExitCode;

use flagpost::{Error, Link, Rank, Rma as _, World};
use flagpost_linux::{Emulated, Setup, run, threads, threads_with};

use super::shared::ring;
use super::threads::within;
use super::{Launcher, PART, job, limit, ours, words};

pub(super) fn rank(part: &str) -> ExitCode {
    let (mut inner, mut rank) = (ExitCode::SUCCESS, 0);
    let outer = run(|world| {
        rank = world.rank().get();
        if part == "inside" {
            ring(world, 1000)?;
            inner = run(|world| ring(world, 2000));
        }
        ring(world, 3000)
    });
    if part == "after" {
        inner = run(|world| ring(world, 2000));
    }
    let is = |code| match code {
        ExitCode::SUCCESS => "well",
        code if code == ExitCode::from(2) => "refused",
        _ => "failed",
    };
    println!("rank {rank}: {}, second {}", is(outer), is(inner));
    inner
}

#[test]
fn a_second_world_works_or_is_refused() {
    for part in ["after", "inside"] {
        for (launcher, second, codes) in [
            (Launcher::Ours, "refused", vec![2]),
            (Launcher::Other, "well", vec![0; 3]),
        ] {
            let ended = job(launcher, 3, &format!("worlds {part}"));
            for rank in 0..3 {
                let line = format!("rank {rank}: well, second {second}\n");
                assert!(ended.out.contains(&line), "{launcher:?} {part}: {ended:?}");
            }
            assert_eq!(ended.codes, codes, "{launcher:?} {part}: {ended:?}");
            let told = |line: &&str| line.contains(" has been in this job before");
            let lines = ended.err.lines().filter(told).count();
            let refused = if launcher == Launcher::Ours { 3 } else { 0 };
            assert_eq!(lines, refused, "{launcher:?} {part}: {ended:?}");
        }
    }
}

/// Links start on memory that is zeros: a job of `flagpost-run` is one process's per rank.
#[test]
fn a_process_that_comes_again_is_refused_at_once() {
    let twice = format!("{0}; {0}", words());
    let mut command = ours(&["-n", "3", "--mem", "1M", "sh", "-c", &twice]);
    let ended = limit::output(command.env(PART, "meeting"));
    assert!(!ended.err.contains("timed out"), "in vain: {ended:?}");
    assert_ne!(ended.codes, [0], "{ended:?}");
    let told = |line: &&str| line.contains(" has been in this job before");
    let lines = ended.err.lines().filter(told).count();
    assert!((1..=3).contains(&lines), "{ended:?}");
}

/// The first error is told, and not that another rank was told of it.
#[test]
fn the_error_of_threads_is_that_of_the_first_that_failed() {
    let failed = threads(3, |world| match world.rank().get() {
        2 => Err(Error::CountZero),
        _ => world.barrier(),
    });
    let error = failed.expect_err("one fails").to_string();
    assert_eq!(error, Error::CountZero.to_string());
}

/// The owner stores, a barrier, and a peer gets: nothing has published the piece.
#[test]
fn a_get_of_what_its_owner_has_not_published_is_told() {
    const AT: (&str, u32) = (file!(), line!());
    fn share<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
        let (owner, window) = (Rank::new(0), world.allocate::<u64>(1)?);
        if world.rank() == owner {
            window.local().set(0, 5)?;
        }
        world.barrier()?;
        if world.rank() != owner {
            let lock = window.lock_shared(owner)?;
            lock.get(owner, 0, &mut [0])?;
            lock.unlock()?;
        }
        world.barrier()
    }
    let ran = || threads_with::<Emulated, _, _>(2, 1 << 20, Setup::default(), share);
    let panic = std::panic::catch_unwind(ran).expect_err("it is told");
    let why = panic.downcast::<String>().expect("a text");
    let (file, line) = AT;
    let named = |what: &str, lines| format!("{what} by {file}:{}", line + lines);
    for place in [named("stored", 4), named("loaded", 9)] {
        assert!(why.contains(&place), "{place}: {why}");
    }
}

#[test]
fn threads_are_worlds_of_their_own() {
    let well = |base| threads(3, |world| ring(world, base)).is_ok();
    let after = within(|| well(1000) && well(2000));
    assert!(after, "one after the other");
    let inside = || {
        threads(2, |world| {
            ring(world, 1000)?;
            let inner = well(2000);
            ring(world, 3000)?;
            Ok::<bool, Error>(inner)
        })
    };
    let inside = within(inside);
    assert_eq!(inside.expect("it runs"), [true, true]);
}
