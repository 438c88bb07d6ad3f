//! A rank dies: each one of three, in each phase, under each launcher, while all others are there
//! and after one of them has ended well. Those that are left are told, and who died.
//!
//! A rank that dies first lets the others come past all that it takes part in, and one that is to
//! end before ends before: a file says so.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use flagpost::{Error, Rank, Tag, World};
use flagpost_linux::{HostLink, run};

use super::lost::die;
use super::{Launcher, job};

const RANKS: u16 = 3;

/// When it dies: the others wait for it in what it does not do any more.
const PHASES: [&str; 5] = ["barrier", "exposed", "started", "lock", "notification"];

pub(super) fn rank(part: &str) -> ExitCode {
    let words: Vec<&str> = part.split(' ').collect();
    let [phase, dies, ends, file] = words[..] else {
        panic!("{part}");
    };
    let number = |word: &str| word.parse::<u16>().ok();
    let (dies, ends) = (number(dies).expect("a rank"), number(ends));
    let file = Path::new(file);
    let mut me = 0;
    let code = run(|world| {
        me = world.rank().get();
        play(world, phase, dies, ends, file)
    });
    if ends == Some(me) {
        println!("rank {me} has ended well");
        std::fs::write(file, []).expect("a file");
    }
    code
}

/// Waits until `file` is there.
fn wait_for(file: &Path) {
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn play(
    world: &World<'_, HostLink>,
    phase: &str,
    dies: u16,
    ends: Option<u16>,
    file: &Path,
) -> Result<(), Error> {
    let (ready, told) = (Tag(1), Tag(2));
    let (me, dies) = (world.rank(), Rank::new(dies));
    let window = world.allocate::<u32>(1)?;
    let left = (0..RANKS).filter(|rank| *rank != dies.get() && Some(*rank) != ends);
    let left: Vec<Rank> = left.map(Rank::new).collect();
    let (others, only) = (world.group(&left)?, [dies]);
    let only = world.group(&only)?;
    if me == dies {
        let mut request = window.expect(0..1, ready)?.times(RANKS - 1)?;
        request.start()?;
        request.wait()?;
        if ends.is_some() {
            wait_for(file);
        }
        match phase {
            "exposed" => {
                let _exposure = window.post(&others)?;
                for rank in &left {
                    window.put_notify(*rank, 0, &[1], told)?;
                }
                die();
            }
            "started" => {
                let _access = window.start(&others)?;
                die();
            }
            "lock" => {
                let _lock = window.lock_exclusive(left[0])?;
                for rank in &left {
                    window.put_notify(*rank, 0, &[1], told)?;
                }
                die();
            }
            _ => die(),
        }
    }
    let mut notified = window.expect(0..0, told)?.from(dies)?;
    notified.start()?;
    window.put_notify(dies, 0, &[1], ready)?;
    if Some(me.get()) == ends {
        return Ok(());
    }
    let result = match phase {
        "barrier" => world.barrier(),
        // It has exposed its piece once, and does not do so again.
        "exposed" => {
            notified.wait()?;
            window.start(&only)?.complete()?;
            window.start(&only)?.complete()
        }
        "started" => {
            let exposure = window.post(&only)?;
            exposure.wait().map(|_| ())
        }
        "lock" => {
            notified.wait()?;
            let locked = window.lock_exclusive(left[0]);
            locked.map(|_| ())
        }
        _ => notified.wait().map(|_| ()),
    };
    println!(
        "rank {} was told {:?}",
        me.get(),
        result.expect_err("it is dead")
    );
    Ok(())
}

/// A file that no other job waits for.
fn file(name: &str) -> PathBuf {
    let name = format!("flagpost-ended-{name}-{}", std::process::id());
    std::env::temp_dir().join(name)
}

/// All ranks in all phases, under `launcher`.
fn die_under(launcher: Launcher) {
    for phase in PHASES {
        for dies in 0..RANKS {
            // A barrier is not for ranks that have ended.
            let ends = [None, Some((dies + 1) % RANKS), Some((dies + 2) % RANKS)];
            let ends = &ends[..if phase == "barrier" { 1 } else { 3 }];
            for ends in ends.iter().copied() {
                dies_in(launcher, phase, dies, ends);
            }
        }
    }
}

fn dies_in(launcher: Launcher, phase: &str, dies: u16, ends: Option<u16>) {
    let file = file(&format!("{launcher:?}-{phase}-{dies}"));
    let last = ends.map_or("none".to_owned(), |ends| ends.to_string());
    let part = format!("deaths {phase} {dies} {last} {}", file.display());
    let ended = job(launcher, RANKS, &part);
    let _ = std::fs::remove_file(file);
    let what = format!("{launcher:?}: {part}: {ended:?}");
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
    let lost = Error::PeerLost(Rank::new(dies));
    for rank in (0..RANKS).filter(|rank| *rank != dies) {
        let line = match ends == Some(rank) {
            true => format!("rank {rank} has ended well\n"),
            false => format!("rank {rank} was told {lost:?}\n"),
        };
        assert!(ended.out.contains(&line), "{what}");
    }
}

#[test]
fn each_rank_may_die_under_flagpost_run() {
    die_under(Launcher::Ours);
}

#[test]
fn each_rank_may_die_under_another_launcher() {
    die_under(Launcher::Other);
}
