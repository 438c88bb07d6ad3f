//! `flagpost-bench-host`: the library on this machine. `cargo xtask bench host` and
//! `cargo xtask bench instructions` build and call it.
//!
//! Results go to standard output, as a table or as JSON lines. The exit status of `instructions` is
//! 1 if a figure is above its limit: these figures are the same on every run.

mod callgrind;
mod host;
mod instructions;
mod subjects;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use flagpost_common::say;

#[derive(Parser, Debug)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Nanoseconds per call between threads as ranks, each beside what the hardware needs
    ///
    /// Both are measured in turn, in the same run, on the same two processors; medians. *line* is
    /// half a round trip of one cache line between bare atomics; *raw*, what a figure is compared
    /// with; *ratio*, the figure over raw; *spread*, the slowest rank's time over the fastest
    /// one's. Nanoseconds differ from machine to machine and from hour to hour: nothing fails here.
    Host(host::Arguments),
    /// Instructions per call, counted by callgrind; fails if one has more than its limit
    Instructions(instructions::Arguments),
    /// What `instructions` counts: runs under callgrind
    #[command(hide = true)]
    Subjects(Nothing),
}

#[derive(Args, Debug)]
struct Nothing {}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Host(arguments) => host::run(&arguments),
        Command::Instructions(arguments) => instructions::run(&arguments),
        Command::Subjects(_) => subjects::run(),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            say(&format!("error: {why:#}"));
            ExitCode::from(2)
        }
    }
}
