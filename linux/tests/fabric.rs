//! Jobs over libfabric's `tcp` and `shm`, started by `flagpost-run`.
//!
//! The ranks are this program again: the test `rank`, with a part in `FLAGPOST_TEST_PART`. The
//! other tests need libfabric: `cargo xtask fabric --headers` runs them.

#[path = "large/program.rs"]
mod large;
#[path = "fabric/losses.rs"]
mod losses;
#[path = "fabric/starts.rs"]
mod starts;

use std::io::{BufRead as _, BufReader};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use flagpost::{Error, Link, Rank, Rma as _, Tag, World};
use flagpost_linux::{Setup, fabric};

mod limit;
#[path = "shared/mpiexec.rs"]
mod mpiexec;
mod shared;
#[path = "../../tests/host/survivor.rs"]
mod survivor;
#[path = "../../tests/host/waits.rs"]
mod waits;

use limit::Ended;
use mpiexec::serve;
use shared::{PART, apart, as_rank};

/// What a rank does in a job of a test. Not a test by itself.
#[test]
fn rank() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    println!(
        "ends {}",
        std::env::var("FLAGPOST_ENDS").unwrap_or_default()
    );
    let code = fabric::run(Setup::default(), |world| match &*part {
        "ring" => ring(world),
        "asked" => shared::stands_still(world),
        "fails" => shared::fails(world),
        "one" => shared::one_fails(world),
        "beside" => beside(world),
        "blocks" => blocks(world),
        "gets" => gets(world),
        "all" => starts::all(world),
        "large" => large::large(world),
        "lost" => shared::two_die(world),
        "forks" => forks(world),
        _ => losses::rank(world, &part),
    });
    shared::end(code);
}

/// [`shared::ring`], and says so.
fn ring<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    shared::ring(world, 0)?;
    println!("rank {} is round", world.rank());
    Ok(())
}

/// Each rank puts large blocks to the next rank, and gets them back from there. Within a host the
/// system copies them, unless it is set up not to.
fn blocks(world: &World<'_, fabric::FabricLink>) -> Result<(), Error> {
    const LEN: usize = 100_001;
    let (me, size) = (world.rank(), world.size());
    let abilities = world.link().fabric().abilities();
    let others = if abilities.provider == "shm" { 2 } else { 0 };
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let others = match scope.as_deref().map(str::trim) {
        Ok("0") | Err(_) => others,
        Ok(_) => 0,
    };
    assert_eq!(abilities.attached, others, "{abilities}");
    let block = |rank: Rank, round: u32| -> Vec<u32> {
        let first = u32::from(rank.get()) << 24 | round << 20;
        (first..).take(LEN).collect()
    };
    let window = world.allocate::<u32>(LEN)?;
    let (next, prev) = (me.next(size), me.prev(size));
    let mut found = vec![0; LEN];
    for round in 0..4 {
        // By libfabric, since it notifies.
        let mut arrived = window.expect(0..LEN, Tag(0))?;
        arrived.start()?;
        world.barrier()?;
        window.put_notify(next, 0, &block(me, round), Tag(0))?;
        arrived.wait()?;
        window.local().copy_out(0, &mut found)?;
        assert!(found == block(prev, round));
        world.barrier()?;
        // By the system.
        let lock = window.lock_shared(next)?;
        lock.put(next, 0, &block(me, round + 8))?;
        lock.flush(next)?;
        lock.get(next, 0, &mut found)?;
        lock.unlock()?;
        assert!(found == block(me, round + 8));
        world.barrier()?;
        window.local().copy_out(0, &mut found)?;
        assert!(found == block(prev, round + 8));
    }
    let copies = world.link().fabric().copies();
    assert_eq!(copies > 0, others > 0, "{copies} copies");
    println!("rank {me} is round");
    Ok(())
}

/// Rank 0 gets a word of rank 1 until it is there. Before, rank 1 needs what only a call of rank 0
/// brings about.
fn gets<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let [first, second] = [0, 1].map(Rank::new);
    let window = world.allocate::<u32>(2)?;
    window.local().set(0, 0)?;
    world.barrier()?;
    let (me, mut found) = (world.rank(), [0]);
    if me == first {
        let lock = window.lock_shared(second)?;
        world.barrier()?;
        while found == [0] {
            lock.get(second, 0, &mut found)?;
        }
        lock.unlock()?;
    } else {
        world.barrier()?;
        if me == second {
            // Rank 0 does nothing but gets then.
            std::thread::sleep(Duration::from_millis(50));
            let lock = window.lock_shared(first)?;
            window.local().set(0, 1)?;
            lock.unlock()?;
        }
    }
    world.barrier()?;
    println!("rank {} is round", world.rank());
    Ok(())
}

/// The child of a rank ends the program first: that is no end of the rank.
fn forks<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    // SAFETY: the child calls nothing that needs another thread of this process.
    let child = unsafe { libc::fork() };
    if child == 0 {
        return Ok(());
    }
    let mut status = 0;
    // SAFETY: `status` is there for the call to store to.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((waited, status), (child, 0));
    ring(world)
}

/// A job of three ranks. What does not end is killed after 20 seconds.
fn job(provider: &str, part: &str) -> Ended {
    job_with(&["--link", "fabric", "--provider", provider], part)
}

fn job_with(arguments: &[&str], part: &str) -> Ended {
    limit::output(&mut command_of(3, arguments, part))
}

fn command_of(ranks: u16, arguments: &[&str], part: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    command.args(arguments).args(["-n", &ranks.to_string()]);
    as_rank(command.args(["--grace", "20"]), part).stdin(Stdio::null());
    command
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn ranks_say_what_they_wait_for() {
    for provider in ["tcp", "shm"] {
        let arguments = ["--link", "fabric", "--provider", provider];
        shared::is_asked(&command_of(shared::RANKS, &arguments, "asked"));
    }
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn the_cause_comes_first() {
    shared::the_cause_comes_first(&mut command_of(8, &["--link", "fabric"], "one"));
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn the_call_that_failed_is_named() {
    shared::is_told_where(&mut command_of(1, &["--link", "fabric"], "fails"));
}

fn lines(ended: &Ended, what: &str) -> usize {
    let lines = ended.out.lines().filter(|line| line.contains(what));
    lines.count()
}

/// All has ended well, and that many ranks say that they are round.
#[track_caller]
fn are_round(ended: &Ended, ranks: usize) {
    assert!(ended.codes == [0], "{ended:?}");
    assert_eq!(lines(ended, "is round"), ranks, "{ended:?}");
}

/// What is left of a job's files of libfabric's `shm`.
fn left_in_shared_memory(ended: &Ended) -> Vec<String> {
    let (_, rest) = ended.out.split_once("ends ").expect(&ended.out);
    let ends = rest.lines().next().expect("a name");
    assert!(ends.starts_with("flagpost-net-"), "{ended:?}");
    let entries = std::fs::read_dir("/dev/shm").unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(ends)).collect()
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn ranks_exchange_data() {
    for provider in ["tcp", "shm"] {
        for part in ["ring", "blocks", "gets", "forks"] {
            are_round(&job(provider, part), 3);
        }
    }
}

/// What stands for another host is this one: `env HOST=… /bin/sh`.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn ranks_run_on_other_hosts() {
    // Which sets what `srun` would.
    let srun = "env SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1";
    let hosts = ["--hosts", "A=a:1,localhost:1,A=b:1", "--rsh", srun];
    let arguments = [&hosts[..], &["--address", "127.0.0.1"]].concat();
    are_round(&job_with(&arguments, "ring"), 3);
    losses::one_dies(&arguments);
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn ranks_of_mpiexec_meet_by_pmi() {
    let (mut words, all) = (Mutex::default(), Barrier::new(3));
    let start = |rank: u16| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        // The rank inherits it.
        rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty()).unwrap();
        let mut command = Command::new("env");
        as_rank(&mut command, "forks").env("PMI_SIZE", "3");
        command.env("PMI_RANK", rank.to_string());
        command.env("PMI_FD", theirs.as_raw_fd().to_string());
        (ours, limit::start(command.stdin(Stdio::null())))
    };
    std::thread::scope(|scope| {
        let ranks = [0, 1, 2].map(start).map(|(ours, rank)| {
            scope.spawn(|| serve(ours, &words, &all, |_, answer| answer));
            rank
        });
        for rank in ranks {
            are_round(&rank.output(), 1);
        }
    });
    let word = &words.get_mut().unwrap()["flagpost"];
    let (address, secret) = word.split_once(',').unwrap();
    assert!(address.starts_with("127.0.0.1:") && secret.len() == 64);
}

/// The processes of two jobs have the same numbers, as in two containers that share `/dev/shm`.
/// Each is in the middle of its program while the other one begins and ends.
fn beside<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    world.barrier()?;
    if world.rank() == Rank::new(0) {
        println!("rank 0 is process {}", std::process::id());
        let _ = std::io::stdin().read_line(&mut String::new());
    }
    world.barrier()?;
    ring(world)
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn jobs_of_equal_process_numbers_do_not_meet() {
    // Limits a hang.
    let launcher = ["timeout", "60", env!("CARGO_BIN_EXE_flagpost-run")];
    let start = || {
        let mut command = apart(&["-p", "-f", "--mount-proc"], "true")?;
        command.args(launcher);
        command.args(["--link", "fabric", "--provider", "shm", "-n", "3"]);
        as_rank(&mut command, "beside");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut job = command.spawn().unwrap();
        let mut out = BufReader::new(job.stdout.take().unwrap());
        let (mut line, mut found) = (String::new(), None);
        while found.is_none() && out.read_line(&mut line).unwrap() > 0 {
            found = { line.split_once("is process ") }.map(|(_, number)| number.to_owned());
            line.clear();
        }
        Some((job, out, found.expect("rank 0 has begun")))
    };
    let (Some(first), Some(second)) = (start(), start()) else {
        return;
    };
    let jobs = [first, second];
    assert_eq!(jobs[0].2, jobs[1].2, "the same number");
    for (mut job, mut out, _) in jobs {
        drop(job.stdin.take());
        let mut text = String::new();
        std::io::Read::read_to_string(&mut out, &mut text).unwrap();
        assert!(job.wait().unwrap().success(), "{text}");
        assert_eq!(text.matches("is round").count(), 3, "{text}");
    }
}

/// A job within a rank is a job of its own. A program that is only started there is told why not.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn jobs_within_ranks_are_their_own() {
    let launcher = env!("CARGO_BIN_EXE_flagpost-run");
    let inner = "\"$0\" --link fabric -n 3 \"$@\"";
    let again = "\"$@\" && ! \"$@\"";
    for (link, ranks, words, round) in [
        ("shm", "1", inner, 3),
        ("fabric", "1", inner, 3),
        ("fabric", "1", again, 1),
    ] {
        let mut command = Command::new(launcher);
        command.args(["--link", link, "-n", ranks, "sh", "-c", words, launcher]);
        as_rank(&mut command, "ring");
        // Of a launcher around all, as of a batch system.
        command
            .env("SLURM_PROCID", "0")
            .env("SLURM_STEP_NUM_TASKS", "5");
        let ended = limit::output(&mut command);
        are_round(&ended, round);
        let told = ended.err.matches("rank 0 has been in this job before");
        let is_told = told.count() == usize::from(words == again);
        assert!(is_told, "{link} {words}: {ended:?}");
    }
}

/// The launcher's child is a shell, which ends well: the rank is killed behind it.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn nothing_is_left_of_a_rank_behind_a_shell() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    command.args(["--link", "fabric", "--provider", "shm", "-n", "3"]);
    command.args(["--grace", "20", "sh", "-c", "\"$@\"; true", "sh"]);
    let ended = limit::output(as_rank(&mut command, "dies 0"));
    assert_eq!(ended.codes, [1], "{ended:?}");
    assert_eq!(lines(&ended, " was told"), 1, "{ended:?}");
    assert_eq!(left_in_shared_memory(&ended), [""; 0]);
}

/// Each example checks its own result.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn the_examples_run_unchanged() {
    let own = std::env::current_exe().unwrap();
    let examples = own.ancestors().nth(2).unwrap().join("examples");
    for words in [
        &["hello-linux"][..],
        &["pingpong"],
        &["app", "halo", "pscw"],
        &["app", "hashtable", "fence"],
        &["app", "stencil", "notified"],
        &["app", "stencil", "pscw"],
        &["workqueue"],
        &["going-on"],
    ] {
        for provider in ["tcp", "shm"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
            command.args(["--link", "fabric", "--provider", provider, "-n", "2"]);
            let ended = limit::output(command.arg(examples.join(words[0])).args(&words[1..]));
            let is_well = ended.codes == [0] && !ended.out.is_empty();
            assert!(is_well, "{words:?} {provider} {ended:?}");
        }
    }
}

#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn what_is_missing_is_said_in_one_line_per_rank() {
    let ended = job("carrier-pigeon", "ring");
    for told in ["error: libfabric", "no provider \"carrier-pigeon\""] {
        assert!(ended.err.contains(told), "{ended:?}");
    }
    assert_eq!(ended.codes, [2]);
}

/// More than 4 GiB per rank.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn large_memory_is_reached_to_its_end() {
    let memory = large::MEMORY.to_string();
    let arguments = ["--link", "fabric", "--provider", "tcp", "--mem", &memory];
    let ended = limit::output(&mut command_of(2, &arguments, "large"));
    assert_eq!(ended.codes, [0], "{ended:?}");
}

/// In a namespace of mounts of its own, where `/dev/shm` is small.
#[test]
#[ignore = "needs libfabric: cargo xtask fabric --headers"]
fn a_small_dev_shm_is_told() {
    const MOUNT: &str = "mount -t tmpfs -o size=4M tmpfs /dev/shm";
    let Some(mut command) = apart(&["-rm"], MOUNT) else {
        return;
    };
    command.args(["sh", "-c", &format!("{MOUNT} && exec \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_flagpost-run"));
    command.args(["--link", "fabric", "--provider", "shm", "-n", "1"]);
    let ended = limit::output(as_rank(&mut command, "ring"));
    assert_eq!(ended.codes, [2], "{ended:?}");
    for told in ["MiB in /dev/shm, 16 for each", "4 are free"] {
        assert!(ended.err.contains(told), "{ended:?}");
    }
}
