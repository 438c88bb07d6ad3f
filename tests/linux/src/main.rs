//! The conformance cases on Linux: a process per rank, memory that all of them map, or a network.
//!
//! ```text
//!   flagpost-linux-cases --ranks 4 --platform emulated
//!     └─ starts itself four times, as ranks; each goes through the same plan:
//!          meet ─ garbage in own memory ─ meet ─ run ─ result ─ meet ─ …
//! ```
//! Rank 0 prints a line per case; a rank whose part fails prints why. The last line is
//! `N passed, N failed, N skipped`.
#![forbid(unsafe_code)]

mod arguments;
mod limit;
mod network;
mod platforms;
mod rank;

use std::ffi::OsString;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;
use flagpost_linux::{Bind, Hosts, Shape, fabric, launch};

use arguments::Arguments;
use platforms::mode_of;

/// Bytes of each rank's memory: as on the QEMU board.
const MEMORY: u64 = 64 << 10;

/// What starts a program in a network namespace, which stands for a host.
const NAMESPACE: &str = "ip netns exec";

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    if std::env::var_os("FLAGPOST_RANK").is_some() || arguments.list {
        return platforms::run(&arguments);
    }
    match start(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Starts the ranks and waits for them.
fn start(arguments: &Arguments) -> Result<bool, Box<dyn std::error::Error>> {
    let program = std::env::current_exe()?;
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let patience = Duration::from_secs(arguments.patience);
    // The ranks end with this process.
    std::thread::spawn(move || {
        std::thread::sleep(patience);
        eprintln!("error: no end in sight after {patience:?}");
        std::process::exit(1);
    });
    let mut command = |_| {
        let mut command = Command::new(&program);
        command.args(&words);
        command
    };
    let mut seen = |ended: &launch::Ended| {
        if ended.status.code().is_none() {
            eprintln!("error: {ended}");
        }
    };
    let (shape, bind) = (Shape::new(arguments.ranks, MEMORY)?, Bind::Auto);
    let grace = launch::GRACE;
    let ended = if arguments.platform == fabric::NAME {
        let hosts = arguments.hosts.as_deref();
        let hosts = hosts.map(|list| Hosts::new(list, shape.ranks(), NAMESPACE));
        let job = fabric::Job {
            shape,
            provider: arguments.provider.clone(),
            address: arguments.address,
            hosts: hosts.transpose()?,
            helper: None,
            bind,
            grace,
        };
        fabric::launch(&job, &mut command, &mut seen, None)?
    } else {
        let job = launch::Job {
            shape,
            mode: mode_of(&arguments.platform).to_owned(),
            bind,
            directory: None,
            grace,
        };
        launch::launch(&job, &mut command, &mut seen)?
    };
    Ok(ended.iter().all(launch::Ended::is_well))
}

fn refuse(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::DisplayHelp {
        print!("{}", error.render());
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("{line} (see --help)");
    ExitCode::from(2)
}
