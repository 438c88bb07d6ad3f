//! `flagpost-explore`: commands that run the conformance cases on the simulator. `cargo xtask`
//! builds and calls it.

#[cfg(not(mutants))]
mod explore;
#[cfg(not(mutants))]
mod list;
#[cfg(mutants)]
mod mutants;
#[cfg(not(mutants))]
mod options;
#[cfg(not(mutants))]
mod replay;
#[cfg(not(mutants))]
mod shrink;
#[cfg(not(mutants))]
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
    #[cfg(not(mutants))]
    List,
    #[cfg(not(mutants))]
    Explore(explore::Arguments),
    #[cfg(not(mutants))]
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
        #[cfg(not(mutants))]
        Commands::List => list::run(),
        #[cfg(not(mutants))]
        Commands::Explore(arguments) => explore::run(&arguments),
        #[cfg(not(mutants))]
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
