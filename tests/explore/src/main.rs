//! `flagpost-explore`: commands that run the conformance cases on the simulator. `cargo xtask` builds and
//! calls it.

mod explore;
mod list;
#[cfg(mutants)]
mod mutants;
mod options;
mod replay;
mod shrink;
mod trace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser, Debug)]
#[command(about = "Flagpost's conformance cases on the simulator")]
struct Cli {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Subcommand, Debug)]
enum Commands {
    /// Print the settings that are explored: case/cores/profile
    List,
    Explore(explore::Arguments),
    Replay(replay::Arguments),
    #[cfg(mutants)]
    Mutants(mutants::Arguments),
}

/// How many processors the host has: so many threads, unless asked for otherwise.
fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Commands::List => list::run(),
        Commands::Explore(arguments) => explore::run(&arguments),
        Commands::Replay(arguments) => replay::run(&arguments),
        #[cfg(mutants)]
        Commands::Mutants(arguments) => mutants::run(&arguments),
    };
    if done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
