//! `flagpost-explore`: commands that run the conformance cases on the simulator. `cargo xtask` builds and
//! calls it.

mod list;

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
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Commands::List => list::run(),
    };
    if done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
