//! The launcher and what is around its ranks: processes that they start, signals, limits,
//! left-overs, pipes that nobody reads.
//!
//! Most ranks are shells here, which never join. Where one is to, it is this program again: the
//! test `rank`.
//!
//! No test asks how long something takes: what should happen is waited for, for [`GUARD`] at the
//! most, and what is started stays for [`LONG`] seconds unless it is ended.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use flagpost::{Error, Link, World};
use flagpost_common::{heeding, patience};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

mod limit;

const PART: &str = "FLAGPOST_TEST_SLEEPS";

/// After this a test has failed, on a machine at rest: see [`patience`].
const GUARD: Duration = Duration::from_secs(10);
/// Seconds: what lasts so long was ended by nobody while a test waited for it.
const LONG: u64 = 600;

/// A rank that has joined, and stays. Not a test by itself.
#[test]
fn rank() {
    if std::env::var_os(PART).is_none() {
        return;
    }
    let code = flagpost_linux::run_in_mode!(stays);
    assert_eq!(code, std::process::ExitCode::SUCCESS);
}

fn stays<L: Link>(_: &World<'_, L>) -> Result<(), Error> {
    println!("process {}", std::process::id());
    std::thread::sleep(Duration::from_secs(LONG));
    Ok(())
}

fn run(ranks: u16, script: &str) -> Command {
    run_with(LONG, ranks, script)
}

/// Ranks that have `grace` seconds to end after another one, or after a signal.
fn run_with(grace: u64, ranks: u16, script: &str) -> Command {
    launch(
        heeding(env!("CARGO_BIN_EXE_flagpost-run")),
        grace,
        ranks,
        script,
    )
}

/// Ranks of a launcher that inherits what `env` makes of its option `how`.
fn run_under(how: &str, ranks: u16, script: &str) -> Command {
    let mut command = heeding("env");
    command.arg(how).arg(env!("CARGO_BIN_EXE_flagpost-run"));
    launch(command, LONG, ranks, script)
}

fn launch(mut command: Command, grace: u64, ranks: u16, script: &str) -> Command {
    command.args(["-n", &ranks.to_string(), "--mem", "64K"]);
    command.args(["--grace", &grace.to_string(), "sh", "-c", script]);
    command
}

/// Sends a signal to `process`, which is the launcher.
fn send(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).expect("it is mine");
}

/// The number in a line `process N`, wherever the test harness has put it.
fn number(line: &str) -> Option<String> {
    Some(line.split_once("process ")?.1.to_owned())
}

/// Waits until `happened` says so. False if it never does.
fn comes(mut happened: impl FnMut() -> bool) -> bool {
    let (start, guard) = (Instant::now(), patience(GUARD));
    loop {
        if happened() {
            return true;
        }
        if start.elapsed() > guard {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until all `processes` have ended.
fn are_gone(processes: &[String]) {
    for process in processes {
        let stat = Path::new("/proc").join(process).join("stat");
        let has_ended = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z "));
        let is_gone = comes(|| !stat.exists() || has_ended());
        assert!(is_gone, "process {process} is still there");
    }
}

/// The first `count` of what `find` finds in lines of `launcher`, which come before long.
fn lines_of(
    launcher: &mut Child,
    find: impl FnMut(String) -> Option<String>,
    count: usize,
) -> Vec<String> {
    let (sender, lines) = channel();
    let out = BufReader::new(launcher.stdout.take().expect("a pipe"));
    std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            // All is read, whether or not it is asked for.
            let _ = sender.send(line);
        }
    });
    let lines = std::iter::from_fn(|| lines.recv_timeout(patience(GUARD)).ok());
    lines.filter_map(find).take(count).collect()
}

/// Waits until `launcher` has ended.
fn status_of(launcher: &mut Child) -> ExitStatus {
    let mut status = None;
    let ended = comes(|| {
        status = launcher.try_wait().expect("it is mine");
        status.is_some()
    });
    if !ended {
        let _ = launcher.kill();
    }
    status.expect("the launcher ends")
}

/// Starts it, and waits for `count` lines of the kind that [`number`] reads.
fn start(command: &mut Command, count: usize) -> (Child, Vec<String>) {
    let mut launcher = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let processes = lines_of(&mut launcher, |line| number(&line), count);
    if processes.len() < count {
        let _ = launcher.kill();
    }
    assert_eq!(processes.len(), count);
    (launcher, processes)
}

/// Of a launcher that ends after `signal`, `count` processes that say their numbers end, too. Its
/// status.
fn ends_with_launcher(command: &mut Command, count: usize, signal: Signal) -> Option<i32> {
    let (mut launcher, processes) = start(command, count);
    send(&launcher, signal);
    let status = status_of(&mut launcher);
    are_gone(&processes);
    status.code()
}

/// A shell's children, one of them in a group of its own.
const FAMILY: &str =
    "sleep 600 & echo process $!; timeout 600 sleep 600 & echo process $!; wait; true";

#[test]
fn what_ranks_have_started_ends_with_the_launcher() {
    ends_with_launcher(&mut run(2, FAMILY), 4, Signal::KILL);
}

/// Files that are named as libfabric's `shm` names its own; and those of strangers whose names
/// begin alike, which stay. The launcher ends by itself, or is killed.
#[test]
fn files_of_ranks_in_shared_memory_end_with_the_job_and_no_others() {
    let script = "rank=/dev/shm/$FLAGPOST_ENDS-$FLAGPOST_RANK:0:x; touch $rank; \
                  echo process $FLAGPOST_ENDS; [ $FLAGPOST_RANK = 0 ] || sleep 600; read -r go; exit 3";
    for killed in [false, true] {
        let mut command = run_with(0, 2, script);
        command.env("FLAGPOST_LINK", "fabric").stdin(Stdio::piped());
        let (mut launcher, names) = start(&mut command, 2);
        let [ends, other] = &names[..] else {
            panic!("{names:?}")
        };
        assert_eq!(ends, other, "one name for all");
        let path = |name: String| Path::new("/dev/shm").join(name);
        let own = [0, 1].map(|rank| path(format!("{ends}-{rank}:0:x")));
        let shorter = &ends[..ends.len() - 1];
        let [own_number, launcher_number] = [std::process::id(), launcher.id()];
        let strangers = [
            ends.clone(),
            format!("{ends}0-0:0:x"),
            format!("{ends}.0:0:x"),
            format!("{shorter}-0:0:x"),
            format!("{launcher_number}:0:{own_number}"),
        ];
        let strangers = strangers.map(path);
        for file in &strangers {
            std::fs::write(file, []).expect("a file");
        }
        assert!(own.iter().all(|file| file.exists()), "{own:?}");
        if killed {
            send(&launcher, Signal::KILL);
        } else {
            drop(launcher.stdin.take());
        }
        let status = status_of(&mut launcher);
        assert_eq!(status.code(), (!killed).then_some(3));
        for file in own {
            let name = file.display();
            assert!(comes(|| !file.exists()), "{name} is still there");
        }
        for file in strangers {
            let stays = std::fs::remove_file(&file);
            assert!(stays.is_ok(), "{} was a stranger's", file.display());
        }
    }
}

/// A shell's job in the background of its terminal, and one in the foreground.
#[test]
fn what_is_typed_is_for_what_is_in_the_foreground() {
    let launcher = env!("CARGO_BIN_EXE_flagpost-run");
    let rank = "read -r line; echo rank has ${line:-nothing}";
    for (jobs, ampersand, told) in [
        (
            "set -m;",
            "& wait $!",
            "rank has nothing\nshell has first\n",
        ),
        ("", "", "rank has first\nshell has second\n"),
    ] {
        let (terminal, mut typed) = terminal();
        let script = format!(
            "{jobs} '{launcher}' -n 2 --mem 64K sh -c '[ $FLAGPOST_RANK = 1 ] || {{ {rank}; }}' \
             {ampersand}\nread -r line; echo shell has $line"
        );
        typed.write_all(b"first\nsecond\n").expect("it is typed");
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", "bash", "-c", &script]);
        let ended = limit::start(command.stdin(terminal)).output();
        assert_eq!(ended.out, told, "{ampersand}: {ended:?}");
    }
}

/// A terminal, and where its user types.
fn terminal() -> (File, File) {
    let (mut user, mut own) = (0, 0);
    let none = std::ptr::null_mut::<libc::c_char>();
    // SAFETY: two descriptors are stored; no name, settings or size are given.
    let opened = unsafe {
        let (settings, size) = (std::ptr::null_mut(), std::ptr::null_mut());
        libc::openpty(&mut user, &mut own, none, settings, size)
    };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: both are open, and nobody else's.
    let files = [own, user].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    let [own, user] = files.map(File::from);
    (own, user)
}

#[test]
fn what_ranks_have_started_ends_with_another_rank() {
    let script = format!("[ $FLAGPOST_RANK = 1 ] || {{ read -r go; exit 3; }}; {FAMILY}");
    let mut command = run_with(0, 2, &script);
    let (mut launcher, processes) = start(command.stdin(Stdio::piped()), 2);
    drop(launcher.stdin.take());
    assert_eq!(status_of(&mut launcher).code(), Some(3));
    are_gone(&processes);
}

#[test]
fn what_does_not_end_is_ended() {
    let script = "[ $FLAGPOST_RANK = 0 ] || exit 3; sleep 600; true";
    let ended = limit::output(&mut run_with(0, 2, script));
    assert_eq!(ended.codes, [3], "{ended:?}");
    let told = "rank 0 had to be ended, by flagpost-run";
    assert!(ended.err.contains(told), "{ended:?}");
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
    // What it needs is there, and is in no command line.
    const SECRET: &str = "[ $HOST${#FLAGPOST_SECRET} = a64 ] \
                          && [ \"$(tr '\\0' + </proc/$PPID/cmdline)\" = /bin/sh+ ]";
    let dies = "[ $FLAGPOST_RANK = 0 ] || kill -KILL $$";
    for (words, code, told) in [
        ("true", 0, ""),
        (SECRET, 0, ""),
        (
            "exit $((3 * FLAGPOST_RANK))",
            3,
            "ended with status 3, on HOST=a",
        ),
        (dies, 137, "ended with status 137, on HOST=a"),
    ] {
        let ended = limit::output(&mut job_elsewhere(words));
        assert_eq!(ended.codes, [code], "{words}: {ended:?}");
        let is_told = ended.err.contains(told) && ended.err.is_empty() == told.is_empty();
        assert!(is_told, "{words}: {ended:?}");
    }
}

/// The command that starts the rank reads nothing: the launcher does not wait for it.
#[test]
fn what_a_pipe_does_not_take_is_not_sent_to_other_hosts() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    command.args(["--rsh", "sleep 600", "--hosts", "a", "-n", "1"]);
    command.args(["--address", "127.0.0.1", "true", &"x".repeat(65_536)]);
    let ended = limit::output(&mut command);
    assert_eq!(ended.codes, [2], "{ended:?}");
    assert!(ended.err.contains("65536 are possible"), "{ended:?}");
    assert_eq!(ended.err.lines().count(), 1, "{ended:?}");
}

#[test]
fn ranks_on_other_hosts_end_with_their_launcher() {
    let mut command = job_elsewhere("echo process $$; sleep 600 & wait");
    ends_with_launcher(&mut command, 2, Signal::KILL);
}

#[test]
fn what_a_rank_has_started_ends_with_it() {
    let (mut launcher, processes) = start(&mut run(1, "sleep 600 & echo process $!"), 1);
    assert!(status_of(&mut launcher).success());
    are_gone(&processes);
}

/// A rank that is no child of the launcher, nor in a session of its ranks, is still one of the job.
#[test]
fn who_has_joined_ends_with_its_parent() {
    let own = std::env::current_exe().expect("this program");
    let script = format!("setsid {} --exact rank --nocapture; true", own.display());
    let mut command = run(1, &script);
    command.env(PART, "1");
    ends_with_launcher(&mut command, 1, Signal::KILL);
}

/// The signals in a line of the status of a process: bit n - 1 for signal n.
fn signals(line: &str) -> u64 {
    let mask = line.split_once(":\t").expect("name and mask").1;
    u64::from_str_radix(mask, 16).expect("a number")
}

fn has(signals: u64, signal: Signal) -> bool {
    signals >> (signal.as_raw() - 1) & 1 == 1
}

/// Ranks are in sessions of their own: what a terminal sends comes to the launcher alone.
#[test]
fn signals_are_passed_on() {
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::INT, "INT")] {
        let trap = format!("trap 'exit 5' {name}; echo process $$; while :; do sleep 0.05; done");
        let code = ends_with_launcher(&mut run(2, &trap), 2, signal);
        assert_eq!(code, Some(5), "{name}: the ranks were told");
    }
    let mut command = run(2, "echo process $$; sleep 600; true");
    let code = ends_with_launcher(&mut command, 2, Signal::TERM);
    assert_eq!(code, Some(143), "as without a launcher");
}

const DEAF: &str = "trap '' TERM; echo process $$; while :; do sleep 0.05; done";

#[test]
fn who_does_not_care_for_signals_is_killed() {
    const GRACE: u64 = 1;
    let (mut launcher, processes) = start(&mut run_with(GRACE, 2, DEAF), 2);
    let told = Instant::now();
    send(&launcher, Signal::TERM);
    assert_eq!(status_of(&mut launcher).code(), Some(137));
    assert!(told.elapsed() >= Duration::from_secs(GRACE), "not before");
    are_gone(&processes);
}

/// However long their own time is.
#[test]
fn who_does_not_care_is_killed_when_told_again() {
    let (mut launcher, processes) = start(&mut run(2, DEAF), 2);
    // Two that come before either was seen are one.
    let mut status = None;
    let ended = comes(|| {
        send(&launcher, Signal::TERM);
        status = launcher.try_wait().expect("it is mine");
        status.is_some()
    });
    let _ = launcher.kill();
    assert!(ended, "the launcher waits on");
    assert_eq!(status.and_then(|status| status.code()), Some(137));
    are_gone(&processes);
}

/// `nohup` and a shell's background jobs ignore signals: so do the launcher and its ranks then.
#[test]
fn signals_that_are_ignored_stay_so() {
    let script = "echo process $$; read -r go; exit 4";
    let mut command = run_under("--ignore-signal=HUP,INT", 1, script);
    let (mut launcher, ranks) = start(command.stdin(Stdio::piped()), 1);
    for process in [launcher.id().to_string(), ranks[0].clone()] {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.expect("it is there");
        let ignored = { status.lines() }.find(|line| line.starts_with("SigIgn:"));
        let ignored = signals(ignored.expect("a mask"));
        assert!(has(ignored, Signal::HUP) && has(ignored, Signal::INT));
    }
    send(&launcher, Signal::HUP);
    send(&launcher, Signal::INT);
    drop(launcher.stdin.take());
    assert_eq!(status_of(&mut launcher).code(), Some(4));
}

/// Without SIGCHLD the system forgets how a process has ended. Ranks start programs, too.
#[test]
fn how_ranks_end_is_heard_where_the_system_was_to_forget_it() {
    let script = "grep SigIgn: /proc/self/status; exit $((3 + FLAGPOST_RANK))";
    let ended = limit::output(&mut run_under("--ignore-signal=CHLD,USR2", 2, script));
    assert!([3, 4].contains(&ended.codes[0]), "{ended:?}");
    for line in ["ended with status 3", "ended with status 4"] {
        assert!(ended.err.contains(line), "{ended:?}");
    }
    let of_ranks: Vec<u64> = ended.out.lines().map(signals).collect();
    assert!(of_ranks.iter().all(|ignored| has(*ignored, Signal::USR2)));
    assert!(!of_ranks.iter().any(|ignored| has(*ignored, Signal::CHILD)));
    assert_eq!(of_ranks.len(), 2);
}

/// The program that has started the launcher may block signals, to wait for its own in a thread.
#[test]
fn signals_that_are_blocked_come_through() {
    let script = "grep SigBlk: /proc/self/status; echo process $$; sleep 600; true";
    let mut command = run_under("--block-signal", 2, script);
    let mut launcher = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let lines = lines_of(&mut launcher, Some, 4);
    send(&launcher, Signal::TERM);
    assert_eq!(status_of(&mut launcher).code(), Some(143), "{lines:?}");
    let blocked = lines.iter().filter(|line| line.starts_with("SigBlk:"));
    let blocked: Vec<u64> = blocked.map(|line| signals(line)).collect();
    assert_eq!(blocked, [0, 0], "{lines:?}");
}

/// Ranks open each other's files.
#[test]
fn a_mask_that_forbids_own_files_is_named() {
    let own = std::env::current_exe().expect("this program");
    let launcher = env!("CARGO_BIN_EXE_flagpost-run");
    let script = format!(
        "umask 277; exec '{launcher}' -n 1 \"$@\" '{}' --exact rank --nocapture",
        own.display()
    );
    let mut command = Command::new("sh");
    command
        .args(["-c", &script, "sh", "--link", "fabric"])
        .env(PART, "1");
    let ended = limit::output(&mut command);
    let told = "error: umask 277 forbids this user's own files to him: write umask 077";
    assert!(ended.err.contains(told), "{ended:?}");
}

/// More ranks than there may be descriptors, and as many more as the soft limit can be raised for.
#[test]
fn ranks_may_be_more_than_descriptors() {
    for limit in ["-n", "-Sn"] {
        let mut command = Command::new("sh");
        let script = format!("ulimit {limit} 64; exec \"$@\"");
        command.args(["-c", &script, "sh"]);
        let inner = run(100, "[ $(ulimit -Sn) = 64 ]");
        command.arg(inner.get_program()).args(inner.get_args());
        let ended = limit::output(&mut command);
        assert_eq!(ended.codes, [0], "ulimit {limit}: {ended:?}");
    }
}

/// A segment that a killed job has left: nobody has it locked.
fn left_over(name: &str) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let name = format!("flagpost-{user}-left-{}-{name}", std::process::id());
    let path = Path::new("/dev/shm").join(name);
    std::fs::write(&path, [0; 64]).expect("a file");
    path
}

/// Whether a sweeper has removed `path`, or is about to: other tests' launchers sweep too.
fn is_swept(path: &Path) -> bool {
    let mut left = false;
    let gone = comes(|| match std::fs::File::open(path) {
        Ok(file) => {
            left = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
            left
        }
        Err(_) => true,
    });
    gone && !left
}

#[test]
fn every_start_sweeps() {
    let path = left_over("launcher");
    assert_eq!(limit::output(&mut run(1, "true")).codes, [0]);
    assert!(is_swept(&path), "flagpost-run has left it there");
    let path = left_over("alone");
    let mut alone = Command::new(std::env::current_exe().expect("this program"));
    alone
        .args(["--exact", "rank", "--nocapture"])
        .env(PART, "1");
    let (mut alone, _) = start(&mut alone, 1);
    assert!(is_swept(&path), "a job of one has left it there");
    alone.kill().expect("it is mine");
    alone.wait().expect("it ends");
}

#[test]
fn nobody_has_to_read_what_is_told() {
    let unread = || std::io::pipe().expect("a pipe").1;
    let mut help = Command::new(env!("CARGO_BIN_EXE_flagpost-run"));
    help.arg("--help").stdout(unread()).stderr(Stdio::piped());
    let output = help.output().expect("it runs");
    let is_well = output.status.success() && output.stderr.is_empty();
    assert!(is_well, "{output:?}");
    let status = run(2, "exit 3").stderr(unread()).status();
    assert_eq!(status.expect("it runs").code(), Some(3));
}
