//! Starts for real: by the launchers of others, and where descriptors are few.

use std::process::{Command, Output};

use flagpost::{Error, Link, Rank, Rma as _, Tag, World};

use super::shared::is_here;
use super::{as_rank, limit, lines};

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
            // Open MPI asks a superuser twice.
            for name in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
                command.env(name, "1");
            }
            command.env("FLAGPOST_LINK", "fabric");
            command.env("FLAGPOST_PROVIDER", provider);
            let output = limit::output(&mut command);
            assert!(output.status.success(), "{name} {provider} {output:?}");
            assert_eq!(
                lines(&output, "is round"),
                3,
                "{name} {provider} {output:?}"
            );
        }
    }
}

/// `flagpost-run` of ranks over `tcp` in a shell where `limit` is set. Without descriptors it would
/// hang.
fn limited(limit: &str, ranks: u16) -> Output {
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
    let output = limited("ulimit -Sn 32", 8);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(lines(&output, "is round"), 8);
    // Just enough.
    let output = limited("ulimit -n 80", 8);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn too_few_descriptors_are_told_before_ranks_meet() {
    for (limit, ranks, needed) in [(60, 8, 80), (200, 100, 337)] {
        let output = limited(&format!("ulimit -n {limit}"), ranks);
        let text = String::from_utf8_lossy(&output.stderr);
        let told = format!("needs {needed} descriptors, and may have {limit} (ulimit -Hn)");
        assert!(text.contains(&told), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert_eq!(output.status.code(), Some(2));
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
        let output = limit::output(&mut command);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (rank, needed) in [(0, 71), (1, 61)] {
        let few = needs(rank, needed - 1);
        assert!(
            few.contains(&format!("needs {needed} descriptors")),
            "{few}"
        );
        let enough = needs(rank, needed);
        assert!(enough.contains("PMI_FD=0 is no descriptor"), "{enough}");
    }
}

/// A rank of another launcher reads a variable as `flagpost-run` does.
#[test]
fn a_helper_that_rests_too_long_is_refused() {
    let mut command = Command::new("env");
    as_rank(&mut command, "all").env("FLAGPOST_LINK", "fabric");
    let output = limit::output(command.env("FLAGPOST_HELPER", "1000001"));
    let text = String::from_utf8_lossy(&output.stderr);
    let told = "FLAGPOST_HELPER: \"1000001\" is no number of microseconds up to 1000000\n";
    assert!(text.ends_with(told), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
}
