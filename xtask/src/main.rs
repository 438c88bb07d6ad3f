//! Flagpost's developer commands, called as `cargo xtask <command>`.
//!
//! | file | concern |
//! |---|---|
//! | `commands/` | the commands, a file each |
//! | `arguments` | which `--arg` the cases take |
//! | `hosts` | network namespaces, as hosts of a job |
//! | `rules` | which crate may use which |
//! | `tidy` | the check of comments and documents |
//!
//! What the commands share with one another is in `tools/`: `programs`, `board`, `mutants`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

/// What the image's cases take, from their own source.
#[path = "../../tests/src/arguments.rs"]
#[allow(unreachable_pub)]
mod arguments;
mod commands;
mod hosts;
mod rules;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use flagpost_board::{board, boot, image, instructions, report, run, session, stack, toolchain};
use flagpost_mutants::{explorer, sweep as mutants};
use flagpost_programs::{children, compiling, console, count, error, paths, tools};

use crate::commands::handed::Words;
use crate::console::Console;
use crate::error::Usage;

#[derive(Parser, Debug)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Flagpost's developer commands"
)]
struct Cli {
    #[command(subcommand)]
    command: Commands,
}

/// The first four are those that a newcomer needs.
#[derive(Subcommand, Debug)]
enum Commands {
    /// Show which tools are here, which are missing, and how to get them
    Doctor,
    Qemu(commands::qemu::Arguments),
    Test(commands::test::Arguments),
    /// Run a program of the sources, such as stencil or cholesky, or all: on the simulator, on this
    /// machine, over libfabric, or under QEMU
    ///
    /// `cargo xtask app --help` tells the rest.
    App(Words),
    /// Run a benchmark: pscw, pingpong, tree, micro, model, ops (simulated time), host,
    /// instructions, stack (this machine), fabric (a real network, beside bare libfabric), explore
    /// (speed of the simulator); or compare the documented tables with what benchmarks print:
    /// results
    ///
    /// `cargo xtask bench pscw --help` tells the rest. With any of them, `--compare FILE` prints
    /// the ratios to a saved run (what the command printed with `--json`), and fails if a number is
    /// more than `--bound` times as slow [default: 1.1].
    Bench(Words),
    /// Draw docs/figures anew, all or some, from the simulator; or compare: --check
    ///
    /// `cargo xtask figures --help` tells the rest.
    Figures(Words),
    Explore(commands::explore::Arguments),
    /// Repeat the run of a trace that `cargo xtask explore` wrote, to the last step, and print its
    /// account
    ///
    /// Exit status: 0 if the run is done now; 1 if it fails, also if it "diverged" because the code
    /// has changed since; 2 if FILE is no trace.
    Replay(Words),
    Linux(commands::linux::Arguments),
    Fabric(commands::fabric::Arguments),
    Kills(commands::kills::Arguments),
    Mutants(mutants::Arguments),
    Sizes(commands::sizes::Arguments),
    /// Check comments and documents: line width, links, citations, words (docs/style.md)
    Tidy,
    /// Check that this program notices images that fail, hang, trap, panic or fall silent
    Selftest,
    /// Run everything that must hold before a change goes in
    Ci {
        /// Only the steps whose name contains this, such as `clippy`
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
    },
}

fn main() -> ExitCode {
    let console: &Console = Box::leak(Box::new(Console::new()));
    console.watch();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(console, &error),
    };
    if let Err(why) = children::watch() {
        console.error(&format!("cannot watch for signals: {why}"));
        return ExitCode::FAILURE;
    }
    let outcome = dispatch(console, &cli.command);
    console.clear();
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is::<Usage>() => {
            let what = error.to_string();
            if !what.is_empty() {
                console.error(&what);
            }
            ExitCode::from(2)
        }
        Err(error) => {
            console.release();
            console.error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(console: &Console, command: &Commands) -> Result<bool> {
    match command {
        Commands::Qemu(arguments) => commands::qemu::run(console, arguments),
        Commands::Doctor => Ok(commands::doctor::run(console)),
        Commands::Test(arguments) => Ok(commands::test::run(console, arguments)),
        Commands::Linux(arguments) => commands::linux::run(console, arguments),
        Commands::Fabric(arguments) => commands::fabric::run(console, arguments),
        Commands::Kills(arguments) => commands::kills::run(console, arguments),
        Commands::Mutants(arguments) => mutants::run(console, arguments),
        Commands::Explore(arguments) => commands::explore::run(console, arguments),
        Commands::Replay(arguments) => commands::handed::replay(console, arguments),
        Commands::Ci { only } => commands::ci::run(console, only.as_deref().unwrap_or("")),
        Commands::App(arguments) => commands::handed::app(console, arguments),
        Commands::Bench(arguments) => commands::handed::bench(console, arguments),
        Commands::Figures(arguments) => commands::handed::figures(console, arguments),
        Commands::Sizes(arguments) => commands::sizes::run(console, arguments),
        Commands::Tidy => Ok(console.verdict(commands::tidy::check(console)?)),
        Commands::Selftest => commands::selftest::run(console),
    }
}

/// Help goes out as it is; an error is put on one line.
fn refuse(console: &Console, error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        console::out(error.render().to_string().trim_end());
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        console.say(text.trim_end());
        return ExitCode::from(2);
    }
    // The first paragraph says what is wrong; usage and hints follow.
    let first = text.split("\n\n").next().unwrap_or_default();
    let line = first.split_whitespace().collect::<Vec<_>>().join(" ");
    console.say(&format!("{line} (see cargo xtask --help)"));
    ExitCode::from(2)
}
