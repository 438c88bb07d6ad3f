//! Ranks of other launchers' jobs meet, whatever stands between; those that do not are told why.

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use flagpost::Budget;
use flagpost_linux::{Coherent, Setup, run_with};

use super::shared::{AS_ROOT, apart, is_here};
use super::{Ended, PART, alone, as_rank, limit, other, words};

/// `FLAGPOST_TEST_SECONDS`: how long a rank waits for the others.
const SECONDS: &str = "FLAGPOST_TEST_SECONDS";

pub(super) fn rank() -> ExitCode {
    let seconds = std::env::var(SECONDS).ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    let setup = Setup {
        meeting: seconds.map_or(Budget::UNLIMITED, Budget::seconds),
        ..Setup::default()
    };
    run_with::<Coherent, _>(setup, |world| {
        println!("rank {} of {}", world.rank().get(), world.size());
        world.barrier()
    })
}

/// How many segments are there whose names contain `job`.
fn segments(job: &str) -> usize {
    let there = std::fs::read_dir("/dev/shm").expect("it is there");
    let names = { there.flatten() }.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(job)).count()
}

/// Waits until `count` of them are there, if that comes; how many there are.
fn come(job: &str, count: usize) -> usize {
    let start = Instant::now();
    while segments(job) < count && start.elapsed().as_secs() < 30 {
        std::thread::sleep(Duration::from_millis(1));
    }
    segments(job)
}

/// All of `ranks` ranks, each once, say that they are in one job, which has ended well.
#[track_caller]
fn have_met(ranks: u16, ended: &Ended) {
    let once = |rank| {
        ended
            .out
            .matches(&format!("rank {rank} of {ranks}\n"))
            .count()
            == 1
    };
    assert!(ended.codes == [0] && (0..ranks).all(once), "{ended:?}");
}

/// A rank that others do not come to says which ones, where it has waited, and where another rank
/// waits.
#[test]
fn ranks_that_do_not_come_are_named() {
    // Started by a shell each, which has set their numbers: not one job.
    let shell = |rank: u16, seconds: &str| {
        let script = format!("export PMI_RANK={rank} PMI_SIZE=3; {}; exit $?", words());
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        command.env(PART, "meeting").env(SECONDS, seconds);
        limit::start(&mut command)
    };
    let name_of = |shell: &limit::Started| format!("-parent-{}-", shell.pid);
    // It waits for longer than the others, and ends with the test.
    let other = shell(1, "60");
    let other_name = name_of(&other);
    assert_eq!(come(&other_name, 1), 1);
    let shells = [0, 2].map(|rank| (rank, shell(rank, "1")));
    for (rank, shell) in shells {
        let name = name_of(&shell);
        let ended = shell.output();
        assert_eq!(ended.codes, [1], "{ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
        let missing = if rank == 0 { "1, 2" } else { "0, 1" };
        let told = format!(
            "rank {rank}: not all ranks have joined the job in time; missing of 3: {missing};"
        );
        assert!(ended.err.contains(&told), "{ended:?}");
        let (first, rest) = ended.err.split_once(": the others").expect("an advice");
        assert!(
            first.contains("ranks meet in /dev/shm/flagpost-"),
            "{ended:?}"
        );
        assert!(first.contains(&name), "{ended:?}");
        // On a busy machine more jobs meet there than are told.
        let is_known = rest.contains(&other_name) || rest.contains(", …");
        assert!(is_known, "{ended:?}");
    }
}

/// Users put programs between, and ranks may differ in them. No name is left.
#[test]
fn ranks_meet_behind_what_is_between() {
    let shell = ["sh", "-c", "\"$@\"; exit $?", "sh"];
    let ranks: [Vec<&str>; 3] = [
        [&["timeout", "600"][..], &shell].concat(),
        shell.to_vec(),
        vec!["env"],
    ];
    let start =
        |(rank, between): (u16, &Vec<&str>)| limit::start(&mut other(between, "meeting", rank, 3));
    let _alone = alone();
    let ranks: Vec<_> = (0..).zip(&ranks).map(start).collect();
    for rank in ranks {
        let ended = rank.output();
        assert_eq!(ended.codes, [0], "{ended:?}");
    }
    assert_eq!(segments(&format!("-parent-{}-", std::process::id())), 0);
}

/// Their launchers give them the same name, as in two containers that share `/dev/shm`.
#[test]
fn jobs_of_one_name_in_two_namespaces_do_not_meet() {
    const OPTIONS: [&str; 3] = ["-p", "-f", "--mount-proc"];
    let name = format!("twice-{}", std::process::id());
    let rank = |rank: u16| format!("OMPI_COMM_WORLD_RANK={rank} {}", words());
    let script = format!("{} & read -r go; {} && wait $!", rank(0), rank(1));
    let start = || {
        let mut command = apart(&OPTIONS, "true")?;
        command.args(["sh", "-c", &script]);
        command
            .env("OMPI_COMM_WORLD_SIZE", "2")
            .env("PMIX_NAMESPACE", &name);
        command.env("FLAGPOST_MEMORY", "64K").env(PART, "meeting");
        command.env(SECONDS, "20");
        Some(limit::start(command.stdin(Stdio::piped())))
    };
    let (Some(first), Some(second)) = (start(), start()) else {
        return;
    };
    // Both have a rank that waits for the other one.
    let both = come(&name, 2);
    for job in [first, second] {
        let ended = job.output();
        assert_eq!(both, 2, "{ended:?}");
        assert_eq!(ended.err, "", "{ended:?}");
        have_met(2, &ended);
    }
}

/// A job that is nobody else's, through MPICH's own launcher, if it is here.
#[test]
fn ranks_of_mpich_meet() {
    if !is_here("mpiexec.hydra", "HYDRA") {
        return;
    }
    let wrappers: [&[&str]; 5] = [
        &[],
        &["timeout", "600"],
        &["sh", "-c", "\"$@\"; exit $?", "sh"],
        &["env", "-u", "PMI_FD", "timeout", "600"],
        &["valgrind", "-q", "--tool=none"],
    ];
    for wrapper in wrappers {
        let found = wrapper.first().is_none_or(|name| {
            let found = Command::new(name).arg("--version").output();
            found.is_ok()
        });
        if !found {
            println!("skipped: no {}", wrapper[0]);
            continue;
        }
        let mut command = Command::new("mpiexec.hydra");
        as_rank(command.args(["-n", "3"]).args(wrapper), "meeting");
        command.env(SECONDS, "60");
        println!("{wrapper:?}");
        have_met(3, &limit::output(&mut command));
    }
}

/// The same through Open MPI's own launcher, if it is here: its ranks are told by PMIx which job
/// is theirs. Two jobs at a time do not meet each other.
#[test]
fn ranks_of_open_mpi_meet() {
    if !is_here("mpirun", "Open MPI") {
        return;
    }
    let start = |_| {
        let mut command = Command::new("mpirun");
        command.args(["--oversubscribe", "-n", "3"]).envs(AS_ROOT);
        as_rank(&mut command, "meeting");
        command.env(SECONDS, "60").env("FLAGPOST_MEMORY", "1M");
        limit::start(&mut command)
    };
    for job in [0, 1].map(start) {
        have_met(3, &job.output());
    }
}
