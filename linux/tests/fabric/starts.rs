//! Starts for real: by the launchers of others, and where descriptors are few.

use std::process::Command;

use flagpost::{Error, Link, Rank, Rma as _, Tag, World};

use super::limit::{self, Ended};
use super::shared::{AS_ROOT, is_here};
use super::{are_round, as_rank};

/// Each rank puts to each other one, and changes a word there.
pub(super) fn all<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u64>(usize::from(size) + 1)?;
    let mut arrived = window.expect(0..usize::from(size), Tag(0))?.times(size)?;
    arrived.start()?;
    world.barrier()?;
    for other in (0..size).map(Rank::new) {
        window.put_notify(other, me.index(), &[7], Tag(0))?;
        let lock = window.lock_shared(other)?;
        lock.fetch_and_op(other, usize::from(size), 1, flagpost::rma::Operation::SUM)?;
        lock.unlock()?;
    }
    arrived.wait()?;
    world.barrier()?;
    println!("rank {me} is round");
    Ok(())
}

/// Jobs that the launchers of Open MPI (by PMIx) and of MPICH start, where they are here.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn ranks_of_other_launchers_meet_for_real() {
    for (launcher, name, options) in [
        ("mpirun", "Open MPI", &["--oversubscribe"][..]),
        ("mpiexec.hydra", "HYDRA", &[]),
    ] {
        if !is_here(launcher, name) {
            continue;
        }
        for provider in ["tcp", "shm"] {
            let mut command = Command::new(launcher);
            as_rank(command.args(options).args(["-n", "3"]), "ring");
            command.envs(AS_ROOT);
            command.env("FLAGPOST_LINK", "fabric");
            command.env("FLAGPOST_PROVIDER", provider);
            are_round(&limit::output(&mut command), 3);
        }
    }
}

/// `flagpost-run` of ranks over `tcp` in a shell where `limit` is set. Without descriptors it would
/// hang.
fn limited(limit: &str, ranks: u16) -> Ended {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{limit}; exec \"$@\""), "bash"]);
    command.arg(env!("CARGO_BIN_EXE_flagpost-run"));
    command.args(["--link", "fabric", "-n", &ranks.to_string()]);
    let command = command.args(["--grace", "20", "--mem", "1M"]);
    limit::output(as_rank(command, "all"))
}

/// Below the limit that they are started with, ranks raise it.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn ranks_have_descriptors_for_all_peers() {
    are_round(&limited("ulimit -Sn 32", 8), 8);
    // Just enough.
    are_round(&limited("ulimit -n 80", 8), 8);
}

#[test]
fn too_few_descriptors_are_told_before_ranks_meet() {
    for (limit, ranks, needed) in [(60, 8, 80), (200, 100, 337)] {
        let ended = limited(&format!("ulimit -n {limit}"), ranks);
        let told = format!("needs {needed} descriptors, and may have {limit} (ulimit -Hn)");
        assert!(ended.err.contains(&told), "{ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
        assert_eq!(ended.codes, [2]);
    }
}

/// Rank 0 of another launcher's job also has the connections of all ranks to the place where they
/// meet.
#[test]
fn the_rank_where_others_meet_needs_descriptors_for_them() {
    let needs = |rank: u16, limit: u16| {
        let words = format!("ulimit -n {limit}; exec \"$@\"");
        let mut command = Command::new("bash");
        as_rank(command.args(["-c", &words, "bash"]), "all");
        // Where a descriptor is none, a rank with enough of them gets as far as to say so.
        command.env("PMI_RANK", rank.to_string()).env("PMI_FD", "0");
        command.env("FLAGPOST_LINK", "fabric").env("PMI_SIZE", "8");
        let ended = limit::output(&mut command);
        assert_eq!(ended.codes, [2], "{ended:?}");
        ended.err
    };
    for (rank, needed) in [(0, 71), (1, 61)] {
        let few = needs(rank, needed - 1);
        let told = format!("needs {needed} descriptors");
        assert!(few.contains(&told), "{few}");
        let enough = needs(rank, needed);
        assert!(enough.contains("PMI_FD=0 is no descriptor"), "{enough}");
    }
}

/// A rank of another launcher reads a variable as `flagpost-run` does.
#[test]
fn a_helper_that_rests_too_long_is_refused() {
    let mut command = Command::new("env");
    as_rank(&mut command, "all").env("FLAGPOST_LINK", "fabric");
    let ended = limit::output(command.env("FLAGPOST_HELPER", "1000001"));
    let told = "FLAGPOST_HELPER: \"1000001\" is no number of microseconds up to 1000000\n";
    assert!(ended.err.ends_with(told), "{ended:?}");
    assert_eq!(ended.codes, [2]);
}
