//! Jobs from start to end: what the launcher and the ranks tell when a rank dies, and what is left
//! behind.
//!
//! The ranks are this program again: the test `rank`, with a part in `FLAGPOST_TEST_PART`.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use flagpost::{Error, Rank, World};
use flagpost_common::patience;
use flagpost_linux::HostLink;

mod limit;
#[path = "limit/lines.rs"]
mod lines;

use lines::{LIMIT, lines_of};

const PART: &str = "FLAGPOST_TEST_PART";

/// What a rank does in a job of a test. Not a test by itself.
#[test]
fn rank() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    if part == "stranger" && std::env::var("FLAGPOST_RANK").as_deref() == Ok("1") {
        std::process::exit(0);
    }
    if part == "twice" {
        // A rank that comes again at once is lost to those that have not ended yet.
        let _ = flagpost_linux::run(|world| play("ring", world));
    }
    let code = flagpost_linux::run(|world| play(&part, world));
    // Not by way of the harness, which has statuses of its own.
    let failed = format!("{code:?}") != format!("{:?}", std::process::ExitCode::SUCCESS);
    std::process::exit(failed.into());
}

fn play(part: &str, world: &World<'_, HostLink>) -> Result<(), Error> {
    let me = world.rank().get();
    if !["ring", "sleep", "stranger"].contains(&part) {
        all_are_there(world)?;
    }
    match (part, me) {
        ("two", _) => two_die(world)?,
        ("ring", _) => {
            let window = world.allocate::<u32>(1)?;
            let mut request = window.expect(0..1, flagpost::Tag(1))?;
            request.start()?;
            let right = world.rank().next(world.size());
            window.put_notify(right, 0, &[me.into()], flagpost::Tag(1))?;
            request.wait()?;
            let left = world.rank().prev(world.size());
            assert_eq!(window.local().get(0)?, u32::from(left.get()));
        }
        ("killed", 1) => kill(std::process::id()),
        ("failed", 1) => return Err(Error::CountZero),
        ("panicked", 1) => panic!("on purpose"),
        ("quit" | "stuck", 1) => std::process::exit(3),
        ("left", 1) => std::process::exit(0),
        ("stuck", 0) | ("sleep", _) => {
            println!("process {}", std::process::id());
            std::thread::sleep(Duration::from_secs(600));
        }
        _ => {
            let lost = world.barrier().expect_err("one does not come");
            println!("rank {me} was told {lost:?}");
        }
    }
    Ok(())
}

/// Rank 1 goes on once the others are past all that it takes part in: its death is theirs to find
/// in what comes next.
fn all_are_there(world: &World<'_, HostLink>) -> Result<(), Error> {
    let (dies, tag) = (Rank::new(1), flagpost::Tag(2));
    let window = world.allocate::<u32>(1)?;
    if world.rank() != dies {
        return window.put_notify(dies, 0, &[1], tag);
    }
    let mut request = window.expect(0..1, tag)?.times(world.size() - 1)?;
    request.start()?;
    request.wait()?;
    Ok(())
}

/// Rank 1 dies, and rank 2 as it hears of that. Rank 0 ends after both.
fn two_die(world: &World<'_, HostLink>) -> Result<(), Error> {
    let (me, pid) = (world.rank().get(), std::process::id());
    let window = world.allocate::<u32>(1)?;
    if me == 2 {
        window.put_notify(Rank::new(0), 0, &[pid], flagpost::Tag(3))?;
    }
    if me == 0 {
        let mut request = window.expect(0..1, flagpost::Tag(3))?;
        request.start()?;
        request.wait()?;
        window.put_notify(Rank::new(1), 0, &[0], flagpost::Tag(4))?;
    }
    if me == 1 {
        let mut request = window.expect(0..1, flagpost::Tag(4))?;
        request.start()?;
        request.wait()?;
        kill(pid);
    }
    let lost = world.barrier().expect_err("rank 1 does not come");
    if me == 2 {
        kill(pid);
    }
    // The launcher has seen its end then.
    let second = Path::new("/proc").join(window.local().get(0)?.to_string());
    while second.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(50));
    println!("rank 0 was told {lost:?}");
    Ok(())
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).expect("a number of a process");
    let pid = rustix::process::Pid::from_raw(pid).expect("not 0");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is mine");
}

fn rank_of(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "rank", "--nocapture"]);
    command.env(PART, part);
    command
}

fn job(ranks: u16, part: &str) -> Command {
    let rank = rank_of(part);
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    // Time enough to end by themselves, for all but those that never do.
    let grace = if part == "stuck" { "0" } else { "600" };
    command.args(["-n", &ranks.to_string(), "--mem", "1M", "--grace", grace]);
    command.arg(rank.get_program()).args(rank.get_args());
    command.env(PART, part);
    command
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn memory_can_be_a_file_of_a_directory() {
    let mut command = job(3, "ring");
    let program = command.get_program().to_owned();
    let rest: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = Command::new(program);
    command.arg("--mem-in").arg(std::env::temp_dir()).args(rest);
    let output = limit::output(command.env(PART, "ring"));
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
}

/// One of three dies in some way: the others are told, and so is who started the job.
#[test]
fn who_dies_is_told_to_all() {
    for (part, code, told) in [
        ("killed", 137, "was ended by signal 9 (SIGKILL)"),
        ("failed", 1, "ended with status 1"),
        ("panicked", 101, "ended with status 101"),
        ("quit", 3, "ended with status 3"),
        ("left", 1, "ended without leaving the job"),
    ] {
        let output = limit::output(&mut job(3, part));
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(code), "{part}: {out}{err}");
        assert!(
            err.contains("flagpost-run: rank 1 (process "),
            "{part}: {err}"
        );
        assert!(err.contains(told), "{part}: {err}");
        let lost = Error::PeerLost(Rank::new(1));
        for rank in [0, 2] {
            let line = format!("rank {rank} was told {lost:?}");
            assert!(out.contains(&line), "{part}: {out}");
        }
    }
}

/// The second one hears of the first one's death. The last one still has its time then.
#[test]
fn two_that_die_are_told_in_order() {
    let output = limit::output(&mut job(3, "two"));
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(137), "{out}{err}");
    let told = err.lines().map(|line| &line[..line.len().min(29)]);
    let first = "flagpost-run: rank 1 (process";
    let second = "flagpost-run: rank 2 (process";
    assert!(told.eq([first, second]), "{out}{err}");
    let lost = Error::PeerLost(Rank::new(1));
    assert!(out.contains(&format!("rank 0 was told {lost:?}")), "{out}");
}

/// The others are in the library; one ends in order without ever having been there.
#[test]
fn who_never_joins_is_told_too() {
    let output = limit::output(&mut job(2, "stranger"));
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("ended without having joined the job"), "{err}");
}

/// Links start on memory that is zeros: a job is one program's, and one call's of `run`.
#[test]
fn who_comes_again_is_refused_at_once() {
    let rank = rank_of("ring");
    let program = rank.get_program().to_str().expect("text");
    let words = format!("{program} --exact rank --nocapture");
    let mut script = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    script.args(["-n", "3", "--mem", "1M", "sh", "-c"]);
    script.arg(format!("{words}; {words}")).env(PART, "ring");
    for mut command in [job(3, "twice"), script] {
        let output = limit::output(&mut command);
        let (out, err) = texts(&output);
        assert!(
            !err.contains("timed out"),
            "nobody waits in vain: {out}{err}"
        );
        assert!(!output.status.success(), "{out}{err}");
        let told = |line: &str| {
            line.starts_with("error: rank ") && line.contains(" has been in this job before")
        };
        let lines = err.lines().filter(|line| told(line)).count();
        assert!((1..=3).contains(&lines), "{out}{err}");
    }
}

#[test]
fn what_does_not_end_is_ended() {
    let output = limit::output(&mut job(2, "stuck"));
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(3), "{out}{err}");
    assert!(
        err.contains("rank 0 ") && err.contains("by flagpost-run"),
        "{err}"
    );
}

#[test]
fn ranks_end_with_their_launcher() {
    let mut launcher = job(3, "sleep")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    end_with(&mut launcher, 3);
}

/// Kills the launcher of `ranks` ranks that have told their numbers: all of them end.
fn end_with(launcher: &mut Child, ranks: usize) {
    let lines = lines_of(launcher.stdout.take().expect("a pipe"));
    let told = std::iter::from_fn(|| lines.recv_timeout(patience(LIMIT)).ok());
    let processes: Vec<String> = told
        .filter_map(|line| Some(line.split_once("process ")?.1.to_owned()))
        .take(ranks)
        .collect();
    kill(launcher.id());
    launcher.wait().expect("it ends");
    assert_eq!(processes.len(), ranks);
    // The pipe closes once nobody is left to write to it.
    let end = lines.recv_timeout(patience(LIMIT));
    assert_eq!(end, Err(RecvTimeoutError::Disconnected));
    for process in processes {
        assert!(is_gone(&process), "process {process} is still there");
    }
}

/// A process whose pipe is closed is about to end, if it has not yet.
fn is_gone(process: &str) -> bool {
    let stat = Path::new("/proc").join(process).join("stat");
    for _ in 0..3000 {
        match std::fs::read_to_string(&stat) {
            Ok(stat) if !stat.contains(") Z ") => std::thread::sleep(Duration::from_millis(20)),
            _ => return true,
        }
    }
    false
}

/// Jobs that another launcher starts: here this test, in MPICH's words.
#[test]
fn other_launchers_jobs_meet() {
    let start = |part: &str, rank: u16, ranks: u16| {
        let program = rank_of(part);
        // What users put between; and ranks may differ in it.
        let between: &[&str] = match rank {
            0 => &["timeout", "600", "sh", "-c", "\"$@\"; exit $?", "sh"],
            1 => &["sh", "-c", "\"$@\"; exit $?", "sh"],
            _ => &["env"],
        };
        let mut command = Command::new(between[0]);
        command.args(&between[1..]).env(PART, part);
        command.arg(program.get_program()).args(program.get_args());
        command.env("PMI_RANK", rank.to_string());
        command.env("PMI_SIZE", ranks.to_string());
        command.env("FLAGPOST_MEMORY", "1048576");
        limit::start(&mut command)
    };
    let ranks: Vec<_> = (0..3).map(|rank| start("ring", rank, 3)).collect();
    for rank in ranks {
        let output = rank.output();
        assert!(output.status.success(), "{output:?}");
    }
    let left = std::fs::read_dir("/dev/shm").expect("it is there");
    let own = format!(
        "flagpost-{}-parent-{}",
        rustix::process::geteuid().as_raw(),
        std::process::id()
    );
    let left = left.filter_map(Result::ok);
    let names = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert_eq!(names.filter(|name| name.starts_with(&own)).count(), 0);
}

#[test]
fn wrong_arguments_are_one_line_that_says_what_to_change() {
    for (arguments, expected) in [
        (&["-n", "0", "true"][..], "ask for 1 to 1024"),
        (&["-n", "two", "true"], "invalid value 'two'"),
        (
            &["-n", "2", "--mem", "1X", "true"],
            "write 65536, 64K, 16M or 1G",
        ),
        (&["-n", "2", "--mem", "4K", "true"], "ask for 16K"),
        (
            &["-n", "2", "--bind", "x", "true"],
            "write none, auto, or 0,2,4-7",
        ),
        (
            &["-n", "2", "--bind", "1023", "true"],
            "cannot be used here",
        ),
        (&["-n", "2", "--mode", "fast", "true"], "software-coherent"),
        (
            &["-n", "2", "--mem-in", "/dev/null/none", "true"],
            "no memory in /dev/null/none",
        ),
        (
            &["-n", "2", "/dev/null/program"],
            "cannot start /dev/null/program",
        ),
        (
            &["-n", "2", "--provider", "shm", "true"],
            "are for --link fabric",
        ),
        (
            &["-n", "2", "--address", "127.0.0.1", "true"],
            "are for --link fabric",
        ),
        (
            &["-n", "2", "--helper", "50", "true"],
            "are for --link fabric",
        ),
        (
            &[
                "-n",
                "2",
                "--link",
                "fabric",
                "--address",
                "0.0.0.0",
                "true",
            ],
            "one address of this host",
        ),
        (
            &["-n", "2", "--link", "fabric", "--address", "::", "true"],
            "one address of this host",
        ),
        (&["-n", "2", "--rsh", "x", "true"], "--hosts <LIST>"),
        (&["-n", "2", "--hosts", "a:1", "true"], "are 1 ranks"),
        (&["-n", "2", "--hosts", "a,b", "true"], "takes --address"),
        (
            &["-n", "2", "--hosts", "a", "--link", "shm", "true"],
            "shared memory reaches one host",
        ),
        (
            &["-n", "2", "--hosts", "a", "--mode", "emulated", "true"],
            "takes --address",
        ),
        (
            &[
                "-n",
                "2",
                "--link",
                "fabric",
                "--address",
                "192.0.2.1",
                "true",
            ],
            "cannot listen at 192.0.2.1 (",
        ),
        (&["true"], "--ranks <N>"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
        let output = limit::output(command.args(arguments));
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {out}{err}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{arguments:?}: {err}");
    }
}

/// A job of two ranks of a shell's `words` on other hosts. Each is this one, in a session that the
/// launcher does not know: what ends there, the launcher has not killed.
fn job_elsewhere(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    command.args(["--rsh", "setsid --wait env", "--hosts", "HOST=a"]);
    command.args(["-n", "2", "--address", "127.0.0.1"]);
    command.args(["/bin/sh", "-c", words]);
    command
}

#[test]
fn the_end_of_a_rank_on_another_host_is_told() {
    for (words, code, told) in [
        ("true", 0, ""),
        (
            "exit $((3 * FLAGPOST_RANK))",
            3,
            "ended with status 3, on HOST=a",
        ),
        (
            "[ $FLAGPOST_RANK = 0 ] || kill -KILL $$",
            137,
            "ended with status 137, on HOST=a",
        ),
        // What it needs is there, and is in no command line.
        (
            "[ $HOST${#FLAGPOST_SECRET} = a64 ] && [ \"$(tr '\\0' + </proc/$PPID/cmdline)\" = /bin/sh+ ]",
            0,
            "",
        ),
    ] {
        let output = limit::output(&mut job_elsewhere(words));
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(code), "{words}: {out}{err}");
        assert!(err.contains(told), "{words}: {err}");
        assert_eq!(err.is_empty(), told.is_empty(), "{words}: {err}");
    }
}

/// The command that starts the rank reads nothing: the launcher does not wait for it.
#[test]
fn what_a_pipe_does_not_take_is_not_sent_to_other_hosts() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    command.args(["--rsh", "sleep 600", "--hosts", "a", "-n", "1"]);
    command.args(["--address", "127.0.0.1", "true", &"x".repeat(65_536)]);
    let output = limit::output(&mut command);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert!(err.contains("65536 are possible"), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
}

#[test]
fn ranks_on_other_hosts_end_with_their_launcher() {
    let mut launcher = job_elsewhere("echo process $$; sleep 600 & wait")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    end_with(&mut launcher, 2);
}

/// The owner stores, a barrier, and a peer gets: nothing has published the piece.
#[test]
fn a_get_of_what_its_owner_has_not_published_is_told() {
    use flagpost::{Link, Rank, Rma as _};
    use flagpost_linux::{Emulated, Setup, threads_with};
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

/// Ranks as threads: all modes, and what is told when one fails.
#[test]
fn threads_are_ranks() {
    use flagpost_linux::{Coherent, Emulated, Setup, SoftwareCoherent, threads, threads_with};
    fn sum<L: flagpost::Link>(world: &World<'_, L>) -> Result<u32, Error> {
        let mut sum = [u32::from(world.rank().get())];
        world.allreduce(&mut sum, |a, b| a + b)?;
        Ok(sum[0])
    }
    let (memory, setup) = (1 << 20, Setup::default());
    let all = [
        threads_with::<Coherent, _, _>(4, memory, setup, sum),
        threads_with::<SoftwareCoherent, _, _>(4, memory, setup, sum),
        threads_with::<Emulated, _, _>(4, memory, setup, sum),
    ];
    for sums in all {
        assert_eq!(sums.expect("it runs"), [6; 4]);
    }
    let failed = threads(3, |world| {
        if world.rank().get() == 2 {
            return Err(Error::CountZero);
        }
        world.barrier()
    });
    let error = failed.expect_err("one fails").to_string();
    assert_eq!(
        error,
        Error::CountZero.to_string(),
        "not that another was told"
    );
}
