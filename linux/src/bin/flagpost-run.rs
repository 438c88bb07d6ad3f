//! Starts a program as the ranks of a job.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;
use flagpost_linux::choice::{ADDRESS, HELPER, MEMORY, MODE, PROVIDER, job_variable, pause, size};
use flagpost_linux::inherited::{is_ignored, unblock_signals};
use flagpost_linux::{Bind, Choice, DEFAULT_MEMORY, Ended, Hosts, MODES, Shape, fabric, launch};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

/// A day.
const MOST_GRACE: u64 = 24 * 60 * 60;

/// Start PROGRAM once per rank, with memory that all ranks share, or over a network
///
/// When a rank dies, the others' waits end with `PeerLost`, and what has not ended some seconds
/// later (--grace) is killed. The exit status is that of the rank that died first, 128 + N if it
/// was signal N. SIGUSR1, and Ctrl-C, ask the ranks what they wait for, and where.
#[derive(Parser, Debug)]
#[command(name = "flagpost-run", version)]
struct Arguments {
    /// Ranks
    #[arg(short = 'n', long = "ranks", value_name = "N")]
    ranks: u32,
    /// Memory per rank that others can reach: 16K to 64G [default: FLAGPOST_MEMORY, or 16M]
    #[arg(long = "mem", value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// A directory whose file system the memory is to be of, such as one on DAX; else it is the
    /// host's memory
    #[arg(long = "mem-in", value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Where ranks run: none, auto (one processor per rank, if the job needs all), or a list such
    /// as 0,2,4-7
    #[arg(long, value_name = "WHERE", default_value_t = Bind::Auto)]
    bind: Bind,
    /// How memory is kept in step [default: FLAGPOST_MODE, or coherent]
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(MODES))]
    mode: Option<String>,
    /// What connects the ranks: memory that they share (shm), or a network by libfabric, over which
    /// each has memory of its own (fabric); auto is shm if all ranks are on one host
    /// [default: FLAGPOST_LINK, or auto]
    #[arg(long, value_name = "LINK")]
    link: Option<Choice>,
    /// The network: tcp, shm, or another provider's name as libfabric has it [default:
    /// FLAGPOST_PROVIDER, or tcp]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The address of this host at which the ranks of a network meet [default: FLAGPOST_ADDRESS, or
    /// 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// Hosts on which the ranks of a network run: a,b divides the ranks evenly, in blocks; a:2,b:3
    /// says how many each has; an IPv6 address is written `[::1]:2` then. Takes --address, unless
    /// all are this host [default: this host]
    #[arg(long, value_name = "LIST")]
    hosts: Option<String>,
    /// What starts a program on another host: it is run as COMMAND HOST /bin/sh, and reads what to
    /// do from standard input [default: ssh]
    #[arg(long, value_name = "COMMAND", requires = "hosts")]
    rsh: Option<String>,
    /// A thread of each rank keeps the network going while the rank computes, and rests this long
    /// between two looks; 0 for no such thread [default: FLAGPOST_HELPER, or 0]
    #[arg(long, value_name = "MICROSECONDS", value_parser = pause)]
    helper: Option<u64>,
    /// How long ranks may take to end after one of them died, or after a signal
    #[arg(long, value_name = "SECONDS", default_value_t = launch::GRACE.as_secs(), value_parser = clap::value_parser!(u64).range(..=MOST_GRACE))]
    grace: u64,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM"
    )]
    program: Vec<OsString>,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    match start(arguments) {
        Ok(code) => code,
        Err(why) => wrong(&why),
    }
}

/// The value of an option, or of the variable `name` where it is not given, which `read` reads.
fn or_variable<T>(
    option: Option<T>,
    (name, value): (&str, Option<OsString>),
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    let Some(word) = value.filter(|_| option.is_none()) else {
        return Ok(option);
    };
    let read = read(&word.to_string_lossy());
    read.map(Some).map_err(|why| format!("{name}: {why}"))
}

/// Refused: a line that says what to change.
fn start(arguments: Arguments) -> Result<ExitCode, String> {
    let memory = or_variable(arguments.memory, job_variable(MEMORY), size)?;
    let shape = Shape::new(arguments.ranks, memory.unwrap_or(DEFAULT_MEMORY));
    let shape = shape.map_err(|bad| bad.to_string())?;
    let grace = Duration::from_secs(arguments.grace);
    let choice = arguments.link.map_or_else(Choice::of_environment, Ok)?;
    let rsh = arguments.rsh.as_deref().unwrap_or("ssh");
    let hosts = { arguments.hosts.as_deref() }.map(|list| Hosts::new(list, shape.ranks(), rsh));
    let hosts = hosts.transpose().map_err(|why| format!("--hosts: {why}"))?;
    let hosts = hosts.filter(|hosts| !hosts.are_here());
    let is_network = choice.is_network(hosts.is_none());
    let of_a_network =
        arguments.provider.is_some() || arguments.address.is_some() || arguments.helper.is_some();
    // One line may serve for a list of hosts and for this host.
    let may_be = hosts.is_some() || arguments.hosts.is_some() && choice == Choice::Auto;
    if of_a_network && !is_network && !may_be {
        return Err("--provider, --address and --helper are for --link fabric".to_owned());
    }
    // What the job has no use for may be in the environment all the same.
    let of_network = |name: &'static str| (name, job_variable(name).1.filter(|_| is_network));
    let provider = or_variable(arguments.provider, of_network(PROVIDER), |word| {
        Ok(word.to_owned())
    })?;
    let helper = or_variable(arguments.helper, of_network(HELPER), pause)?;
    let address = std::env::var_os(ADDRESS).filter(|_| is_network);
    let address = or_variable(arguments.address, (ADDRESS, address), |word| {
        let why = |_| format!("{word:?} is no address");
        word.parse().map_err(why)
    })?;
    let of_memory = (MODE, job_variable(MODE).1.filter(|_| !is_network));
    let mode = or_variable(arguments.mode, of_memory, |word| {
        let known = { MODES.iter() }.find(|mode| **mode == word);
        let why = || format!("{word:?} is no mode: write {}", MODES.join(", "));
        known.map(|mode| (*mode).to_owned()).ok_or_else(why)
    })?;
    let mode = mode.unwrap_or_else(|| MODES[0].to_owned());
    let (is_elsewhere, has_address) = (hosts.is_some(), address.is_some());
    let of_shm = mode != MODES[0] || arguments.directory.is_some();
    let wrong = [
        (
            is_elsewhere && !is_network,
            "shared memory reaches one host: take --hosts with --link (FLAGPOST_LINK) fabric or auto",
        ),
        (
            is_elsewhere && !has_address,
            "--hosts takes --address (FLAGPOST_ADDRESS): this host's address, as the others reach it",
        ),
        (
            is_elsewhere && matches!(arguments.bind, Bind::List(_)),
            "--bind takes no list of processors where ranks are on other hosts",
        ),
        (
            is_elsewhere && provider.as_deref() == Some("shm"),
            "--provider (FLAGPOST_PROVIDER) shm reaches one host: take another with --hosts",
        ),
        (
            is_network && of_shm,
            "--mode and --mem-in are for --link shm",
        ),
        (
            address.is_some_and(|address| address.is_unspecified()),
            "--address (FLAGPOST_ADDRESS) takes one address of this host, at which the ranks reach it",
        ),
    ];
    if let Some((_, why)) = wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
        return Err(why.to_owned());
    }
    let program = arguments.program.split_first();
    let (program, rest) = program.ok_or("no program is named")?;
    // Without them what is typed at the terminal ends the launcher, and the ranks with it.
    let signals = signals().ok();
    let (mut first, mut followers): (Option<Ended>, _) = (None, launch::Followers::default());
    let mut command = |_| {
        let mut command = Command::new(program);
        command.args(rest);
        command
    };
    let mut seen = |ended: &Ended| {
        if ended.is_well() || first.is_some() && followers.keep(ended) {
            return;
        }
        let by_us = if ended.killed {
            ", by flagpost-run"
        } else {
            ""
        };
        let asked = match ended.starved {
            true => format!(
                ": the job has {} ranks with {} bytes of memory each (--mem, FLAGPOST_MEMORY)",
                shape.ranks(),
                shape.memory()
            ),
            false => String::new(),
        };
        let host = hosts.as_ref().and_then(|hosts| hosts.other(ended.rank));
        let on = host.map_or(String::new(), |host| format!(", on {host}"));
        say(&format!("flagpost-run: {ended}{on}{by_us}{asked}\n"));
        first.get_or_insert(*ended);
    };
    let signals = signals.as_ref().map(UnixStream::as_fd);
    let launched = if is_network {
        let pause = Duration::from_micros(helper.unwrap_or(0));
        let job = fabric::Job {
            shape,
            provider: provider.unwrap_or_else(|| fabric::DEFAULT_PROVIDER.to_owned()),
            address: address.unwrap_or(Ipv4Addr::LOCALHOST.into()),
            hosts: hosts.clone(),
            helper: (!pause.is_zero()).then_some(pause),
            bind: arguments.bind,
            grace,
        };
        fabric::launch(&job, &mut command, &mut seen, signals)
    } else {
        let job = launch::Job {
            shape,
            mode,
            bind: arguments.bind,
            directory: arguments.directory,
            grace,
        };
        launch::launch_with(&job, &mut command, &mut seen, signals)
    };
    for line in followers.lines() {
        say(&format!("flagpost-run: {line}\n"));
    }
    match (launched, first) {
        (Ok(_), None) => Ok(ExitCode::SUCCESS),
        (Ok(_), Some(ended)) => Ok(ExitCode::from(ended.code())),
        (Err(why), _) => Err(why.to_string()),
    }
}

/// Where the numbers of signals that come to this process can be read from now on: all that a
/// person or a batch system sends, but those that this process was started to ignore. None stays
/// blocked.
fn signals() -> std::io::Result<UnixStream> {
    let all = [
        SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT,
    ];
    let wanted = { all.iter() }.filter(|signal| !is_ignored(**signal));
    let mut signals = Signals::new(wanted)?;
    unblock_signals();
    let (ours, mut theirs) = UnixStream::pair()?;
    std::thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            let number = u8::try_from(signal).unwrap_or_default();
            if theirs.write_all(&[number]).is_err() {
                break;
            }
        }
    })?;
    Ok(ours)
}

/// Tells it on standard error. That nobody reads it is no failure.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn wrong(what: &str) -> ExitCode {
    say(&format!("flagpost-run: {what}\n"));
    ExitCode::from(2)
}

/// Help goes out as it is; an error is put on one line.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let text = error.render().to_string();
        let mut out = std::io::stdout();
        // Who reads the first lines only is content.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        say(&error.render().to_string());
        return ExitCode::from(2);
    }
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    wrong(&format!("{line} (see flagpost-run --help)"))
}
