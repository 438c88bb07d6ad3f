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
use flagpost_linux::{Bind, Choice, DEFAULT_MEMORY, Ended, Hosts, MODES, Shape, fabric, launch};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

/// A day.
const MOST_GRACE: u64 = 24 * 60 * 60;

/// Start PROGRAM once per rank, with memory that all ranks share, or over a network
///
/// When a rank dies, the others' waits end with `PeerLost`, and what has not ended some seconds
/// later (--grace) is killed. The exit status is that of the rank that died first, 128 + N if it
/// was signal N.
#[derive(Parser, Debug)]
#[command(name = "flagpost-run", version)]
struct Arguments {
    /// Ranks
    #[arg(short = 'n', long = "ranks", value_name = "N")]
    ranks: u32,
    /// Memory per rank that others can reach: 16K to 2G
    #[arg(long = "mem", value_name = "SIZE", value_parser = size, default_value_t = DEFAULT_MEMORY)]
    memory: u64,
    /// A directory whose file system the memory is to be of, such as one on DAX; else it is the
    /// host's memory
    #[arg(long = "mem-in", value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
    /// Where ranks run: none, auto (one processor per rank, if the job needs all), or a list such as
    /// 0,2,4-7
    #[arg(long, value_name = "WHERE", default_value_t = Bind::Auto)]
    bind: Bind,
    /// How memory is kept in step
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(MODES), default_value = MODES[0])]
    mode: String,
    /// What connects the ranks: memory that they share (shm), or a network by libfabric, over which
    /// each has memory of its own (fabric); auto is shm if all ranks are on one host
    /// [default: FLAGPOST_LINK, or auto]
    #[arg(long, value_name = "LINK")]
    link: Option<Choice>,
    /// The network: tcp, shm, or another provider's name as libfabric has it [default: tcp]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The address of this host at which the ranks of a network meet [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// Hosts on which the ranks of a network run: a,b divides the ranks evenly, in blocks; a:2,b:3
    /// says how many each has. Takes --address [default: this host]
    #[arg(long, value_name = "LIST")]
    hosts: Option<String>,
    /// What starts a program on another host: it is run as COMMAND HOST /bin/sh, and reads what to
    /// do from standard input [default: ssh]
    #[arg(long, value_name = "COMMAND", requires = "hosts")]
    rsh: Option<String>,
    /// A thread of each rank keeps the network going while the rank computes, and rests this long
    /// between two looks; 0 for no such thread [default: 0]
    #[arg(long, value_name = "MICROSECONDS", value_parser = clap::value_parser!(u64).range(..=MOST_PAUSE))]
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

/// A second, in microseconds.
const MOST_PAUSE: u64 = 1_000_000;

/// Reads `64M`.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => Some(0),
        "K" | "k" | "KiB" => Some(10),
        "M" | "m" | "MiB" => Some(20),
        "G" | "g" | "GiB" => Some(30),
        _ => None,
    };
    let bytes = unit.and_then(|shift| digits.parse::<u64>().ok()?.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("{text:?} is no size: write 65536, 64K, 16M or 1G"))
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let shape = match Shape::new(arguments.ranks, arguments.memory) {
        Ok(shape) => shape,
        Err(bad) => return wrong(&bad.to_string()),
    };
    let grace = Duration::from_secs(arguments.grace);
    let choice = match arguments.link.map_or_else(Choice::of_environment, Ok) {
        Ok(choice) => choice,
        Err(why) => return wrong(&why),
    };
    let rsh = arguments.rsh.as_deref().unwrap_or("ssh");
    let hosts = { arguments.hosts.as_deref() }.map(|list| Hosts::new(list, shape.ranks(), rsh));
    let hosts = match hosts.transpose() {
        Ok(hosts) => hosts.filter(|hosts| !hosts.are_here()),
        Err(why) => return wrong(&format!("--hosts: {why}")),
    };
    let is_network = choice.is_network(hosts.is_none());
    if hosts.is_some() {
        if !is_network {
            return wrong(
                "shared memory reaches one host: take --hosts with --link fabric or auto",
            );
        }
        if arguments.address.is_none() {
            return wrong("--hosts takes --address: this host's address, as the others reach it");
        }
        if matches!(arguments.bind, Bind::List(_)) {
            return wrong("--bind takes no list of processors where ranks are on other hosts");
        }
        if arguments.provider.as_deref() == Some("shm") {
            return wrong("--provider shm reaches one host: take another with --hosts");
        }
    }
    if is_network && (arguments.mode != MODES[0] || arguments.directory.is_some()) {
        return wrong("--mode and --mem-in are for --link shm");
    }
    let network = arguments.provider.is_some() || arguments.helper.is_some();
    if !is_network && (network || arguments.address.is_some()) {
        return wrong("--provider, --address and --helper are for --link fabric");
    }
    if arguments
        .address
        .is_some_and(|address| address.is_unspecified())
    {
        return wrong("--address takes one address of this host, at which the ranks reach it");
    }
    let Some((program, rest)) = arguments.program.split_first() else {
        return wrong("no program is named");
    };
    // Without them what is typed at the terminal ends the launcher, and the ranks with it.
    let signals = signals().ok();
    let mut first: Option<Ended> = None;
    let mut command = |_| {
        let mut command = Command::new(program);
        command.args(rest);
        command
    };
    let mut seen = |ended: &Ended| {
        if ended.is_well() {
            return;
        }
        let by_us = if ended.killed {
            ", by flagpost-run"
        } else {
            ""
        };
        let asked = match ended.starved {
            true => format!(
                ": the job has {} ranks with {} bytes of memory each (--mem)",
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
        let pause = Duration::from_micros(arguments.helper.unwrap_or(0));
        let job = fabric::Job {
            shape,
            provider: arguments
                .provider
                .unwrap_or_else(|| fabric::DEFAULT_PROVIDER.to_owned()),
            address: arguments.address.unwrap_or(Ipv4Addr::LOCALHOST.into()),
            hosts: hosts.clone(),
            helper: (!pause.is_zero()).then_some(pause),
            bind: arguments.bind,
            grace,
        };
        fabric::launch(&job, &mut command, &mut seen, signals)
    } else {
        let job = launch::Job {
            shape,
            mode: arguments.mode,
            bind: arguments.bind,
            directory: arguments.directory,
            grace,
        };
        launch::launch_with(&job, &mut command, &mut seen, signals)
    };
    match (launched, first) {
        (Ok(_), None) => ExitCode::SUCCESS,
        (Ok(_), Some(ended)) => ExitCode::from(ended.code()),
        (Err(why), _) => wrong(&format!("cannot start {}: {why}", program.display())),
    }
}

/// Where the numbers of signals that come to this process can be read from now on: all that a
/// person or a batch system sends, but those that this process was started to ignore.
fn signals() -> std::io::Result<UnixStream> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let ignored = ignored(&status);
    let all = [
        SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT,
    ];
    let wanted = { all.iter() }.filter(|signal| ignored >> (**signal - 1) & 1 == 0);
    let mut signals = Signals::new(wanted)?;
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

/// The signals that are ignored, in the `status` of a process: bit n - 1 for signal n.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read() {
        let status = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000001003\nSigCgt:\tff\n";
        assert_eq!(
            ignored(status),
            1 << 12 | 1 << (SIGINT - 1) | 1 << (SIGHUP - 1)
        );
        assert_eq!(ignored(""), 0);
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("65536"), Ok(65_536));
        assert_eq!(size("64K"), Ok(65_536));
        assert_eq!(size("2GiB"), Ok(2 << 30));
        for bad in ["", "M", "12Q", "-1", "1.5M", "99999999999999999999G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
