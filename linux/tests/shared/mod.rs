//! Jobs of several harnesses: one that stands still, and is asked what its ranks wait for; and some
//! that fail.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use flagpost::{Error, Link, Rank, Tag, World};
use flagpost_common::{heeding, patience};
use rustix::process::{Pid, Signal, kill_process};

use super::limit;

/// What a rank is to do.
pub(crate) const PART: &str = "FLAGPOST_TEST_PART";

/// `command` with this program behind it: as a rank of `part`, which its test `rank` is.
pub(crate) fn as_rank<'c>(command: &'c mut Command, part: &str) -> &'c mut Command {
    command.arg(std::env::current_exe().expect("this program"));
    let command = command.args(["--exact", "rank", "--nocapture"]);
    command.env(PART, part)
}

/// The status of a rank's program is that of its process: not by way of the harness, which has
/// statuses of its own.
pub(crate) fn end(code: ExitCode) -> ! {
    let known = [0, 1, 2].into_iter();
    let code = { known }.find(|known| ExitCode::from(*known) == code);
    std::process::exit(code.map_or(99, i32::from))
}

/// Open MPI asks a superuser twice.
pub(crate) const AS_ROOT: [(&str, &str); 2] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
];

/// Whether `launcher` is here, and one of these.
pub(crate) fn is_here(launcher: &str, name: &str) -> bool {
    let version = Command::new(launcher).arg("--version").output();
    let is_here =
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(name));
    if !is_here {
        println!("skipped: {launcher} of {name} is not here");
    }
    is_here
}

/// What begins a command in namespaces of its own, by the `options` of `unshare`; none where
/// `words`, for a shell, do not work there.
pub(crate) fn apart(options: &[&str], words: &str) -> Option<Command> {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(options);
        command
    };
    let tried = limit::output(unshare().args(["sh", "-c", words]));
    let can = tried.codes == [0];
    if !can {
        println!("skipped: no namespace can be made here: {options:?}, {words}: {tried:?}");
    }
    can.then(unshare)
}

/// Ranks pass numbers that begin with `base` to the next, in as many rounds.
pub(crate) fn ring<L: Link>(world: &World<'_, L>, base: u32) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(1)?;
    for round in 0..100 {
        let mut arrived = window.expect(0..1, Tag(1))?.from(me.prev(size))?;
        arrived.start()?;
        world.barrier()?;
        let number = base + round + u32::from(me.get());
        window.put_notify(me.next(size), 0, &[number], Tag(1))?;
        arrived.wait()?;
        let expected = base + round + u32::from(me.prev(size).get());
        assert_eq!(window.local().get(0)?, expected);
    }
    world.barrier()
}

/// How many ranks a job that stands still has.
pub(crate) const RANKS: u16 = 4;

/// What happens at the latest after this long, on a machine at rest: see [`patience`].
const LIMIT: Duration = Duration::from_secs(15);

/// The lines at which ranks 0 and 1 wait below.
const REQUEST: u32 = line!() + 14;
const BROADCAST: u32 = REQUEST + 2;

/// A rank says so when all have come.
const STANDS: &str = "all are there";

/// Ranks 0 and 1 wait for ever, 2 makes no call, and 3 ends.
pub(crate) fn stands_still<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let window = world.allocate::<u32>(1)?;
    let mut never = window.expect(0..1, Tag(1))?.from(Rank::new(2))?;
    never.start()?;
    world.barrier()?;
    println!("{STANDS}");
    match world.rank().get() {
        0 => never.wait().map(drop),
        // Rank 0 makes no such call.
        1 => world.broadcast(Rank::new(0), &mut [7_u32; 2]),
        2 => loop {
            std::thread::sleep(Duration::from_secs(600));
        },
        _ => Ok(()),
    }
}

/// The line of the call that fails below.
const WRONG: u32 = line!() + 5;

/// A call fails that names a rank which there is not; and others have succeeded before.
pub(crate) fn fails<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let window = world.allocate::<u32>(1)?;
    window.put_notify(Rank::new(9), 0, &[1], Tag(1))?;
    world.barrier()
}

/// Runs the job of one that [fails].
pub(crate) fn is_told_where(launcher: &mut Command) {
    let ended = limit::output(launcher);
    let place = format!("(call at {}:{WRONG}:", file!());
    let mut lines = { ended.err.lines() }.filter(|line| line.starts_with("rank 0: "));
    assert!(
        lines.any(|line| line.contains(&place)),
        "{place} in {ended:?}"
    );
    assert_eq!(ended.codes, [1], "{ended:?}");
}

/// One rank fails after the others have begun to wait, and they fail for want of it.
pub(crate) fn one_fails<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let me = world.rank();
    let failing = Rank::new(3);
    let window = world.allocate::<u32>(1)?;
    let mut all = window.expect(0..1, Tag(1))?.times(world.size() - 1)?;
    if me == failing {
        all.start()?;
    }
    world.barrier()?;
    if me != failing {
        window.put_notify(failing, 0, &[1], Tag(1))?;
        return world.barrier();
    }
    all.wait()?;
    Err(Error::CountZero)
}

/// Runs the job of eight of which [one fails](one_fails): three lines say so.
pub(crate) fn the_cause_comes_first(launcher: &mut Command) {
    let ended = limit::output(launcher);
    let lines: Vec<&str> = ended.err.lines().collect();
    let [why, cause, after] = lines[..] else {
        panic!("{ended:?}")
    };
    for (line, start, end) in [
        (why, &*format!("rank 3: {} (call at ", Error::CountZero), ""),
        (
            cause,
            "flagpost-run: rank 3 (process ",
            ") ended with status 1",
        ),
        (
            after,
            "flagpost-run: after that 7 ranks ended with status 1: 0-2, 4-7",
            "",
        ),
    ] {
        assert!(line.starts_with(start) && line.ends_with(end), "{line}");
    }
    assert_eq!(ended.codes, [1], "{ended:?}");
}

/// What is told of a job that [stands still](stands_still).
fn expected() -> [String; 4] {
    let file = file!();
    [
        format!("rank 0 waits for a notification by 2 (1 missing) (call at {file}:{REQUEST}:"),
        format!(
            "rank 1 waits for a collective call by 0, or by a rank that it waits for, in a broadcast of 8 \
             bytes from 0 (call at {file}:{BROADCAST}:"
        ),
        "flagpost-run: rank 2 does not answer: it is in no call that waits".to_owned(),
        "flagpost-run: rank 3 has ended its program".to_owned(),
    ]
}

/// Asks a job that [stands still](stands_still), which `command` starts, by SIGUSR1, and then ends
/// it by SIGINT, which asks, too.
pub(crate) fn is_asked(command: &Command) {
    let mut launcher = heeding(command.get_program());
    launcher.args(command.get_args());
    for (name, value) in command.get_envs() {
        launcher.env(name, value.unwrap_or_default());
    }
    let mut launcher = { launcher.stdout(Stdio::piped()).stderr(Stdio::piped()) }
        .spawn()
        .expect("it runs");
    let (sender, lines) = mpsc::channel();
    send_lines(launcher.stdout.take(), sender.clone());
    send_lines(launcher.stderr.take(), sender);
    let mut stands = false;
    while let (false, Ok(line)) = (stands, lines.recv_timeout(patience(LIMIT))) {
        stands = line.ends_with(STANDS);
    }
    if !stands {
        let _ = launcher.kill();
        panic!("the ranks do not come");
    }
    let mut heard = Vec::new();
    let end = Instant::now() + patience(LIMIT);
    let mut questions = 0;
    // Ranks may still be on their way to where they stand.
    loop {
        questions += 1;
        send(&launcher, Signal::USR1);
        let until = Instant::now() + Duration::from_millis(500);
        while let Some(rest) = until.checked_duration_since(Instant::now())
            && missing(&heard).is_some()
        {
            heard.extend(lines.recv_timeout(rest));
        }
        let Some(line) = missing(&heard) else { break };
        if Instant::now() > end {
            let _ = launcher.kill();
            panic!("not told: {line}\n{heard:#?}");
        }
    }
    let answers = heard.iter().filter(|line| line.starts_with("rank 0 waits"));
    assert!(answers.count() <= questions, "one answer each: {heard:#?}");
    heard = Vec::new();
    send(&launcher, Signal::INT);
    loop {
        match lines.recv_timeout(patience(LIMIT)) {
            Ok(line) => heard.push(line),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let _ = launcher.kill();
                panic!("it does not end: {heard:#?}");
            }
        }
    }
    let status = launcher.wait().expect("it is mine");
    assert!(!status.success(), "{heard:#?}");
    assert_eq!(missing(&heard), None, "{heard:#?}");
}

/// Sends the lines of `output` on, in a thread of its own.
fn send_lines(output: Option<impl Read + Send + 'static>, to: mpsc::Sender<String>) {
    let output = BufReader::new(output.expect("it is piped"));
    std::thread::spawn(move || {
        let mut all = output.lines().map_while(Result::ok);
        all.try_for_each(|line| to.send(line))
    });
}

/// The first line that is expected and was not heard.
fn missing(heard: &[String]) -> Option<String> {
    let is_missing = |line: &String| !heard.iter().any(|heard| heard.starts_with(line));
    expected().into_iter().find(is_missing)
}

fn send(launcher: &Child, signal: Signal) {
    kill_process(Pid::from_child(launcher), signal).expect("it is mine");
}

/// How many ranks a job of [`two_die`] has.
pub(crate) const LOSERS: u16 = 4;

/// Ends this process, as by a mistake in it: without a chance to tell anybody.
pub(crate) fn die() -> ! {
    let own = rustix::process::getpid();
    let _ = rustix::process::kill_process(own, rustix::process::Signal::KILL);
    std::process::abort();
}

/// Rank 2 ends well. Then ranks 1 and 3 die, and rank 0 says which ranks are lost.
pub(crate) fn two_die<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let [survivor, one, well, other] = [0, 1, 2, 3].map(Rank::new);
    let window = world.allocate::<u32>(1)?;
    let mut told = window.expect(0..0, Tag(1))?.from(survivor)?;
    told.start()?;
    world.barrier()?;
    match world.rank() {
        rank if rank == well => return Ok(()),
        rank if rank != survivor => {
            // Until it is told, or the other one is dead.
            let _ = told.wait();
            die();
        }
        _ => {}
    }
    let mut never = window.expect(0..0, Tag(2))?.from(well)?;
    never.start()?;
    assert_eq!(never.wait().err(), Some(Error::PeerLeft(well)));
    assert_eq!(world.lost().next(), None);
    for dies in [other, one] {
        let _ = window.notify(dies, Tag(1));
    }
    let end = Instant::now() + patience(LIMIT);
    while world.lost().count() < 2 && Instant::now() < end {
        std::thread::yield_now();
    }
    let lost: Vec<u16> = world.lost().map(Rank::get).collect();
    println!("lost: {lost:?}");
    let told = never.wait().err();
    assert!(told == Some(Error::PeerLost(one)) || told == Some(Error::PeerLost(other)));
    Ok(())
}

/// Whether the output is that of the job above.
pub(crate) fn are_named(out: &str) {
    assert!(out.contains("lost: [1, 3]\n"), "{out}");
}
