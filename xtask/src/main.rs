//! Flagpost's developer commands, called as `cargo xtask <command>`.
//!
//! | file | concern |
//! |---|---|
//! | `commands/` | the commands, a file each |
//! | `arguments` | which `--arg` the cases take |
//! | `hosts` | network namespaces, as hosts of a job |
//! | `rules` | which crate may use which, and under which licences |
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

#[derive(Subcommand, Debug)]
enum Commands {
    Qemu(commands::qemu::Arguments),
    /// Show which tools are here, which are missing, and how to get them
    Doctor,
    Test(commands::test::Arguments),
    Linux(commands::linux::Arguments),
    Fabric(commands::fabric::Arguments),
    Kills(commands::kills::Arguments),
    Mutants(mutants::Arguments),
    Explore(commands::explore::Arguments),
    Replay(commands::replay::Arguments),
    /// Run everything that must hold before a change goes in
    Ci {
        /// Only the steps whose name contains this, such as `clippy`
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
    },
    App(commands::app::Arguments),
    Bench(commands::bench::Arguments),
    Figures(commands::figures::Arguments),
    Sizes(commands::sizes::Arguments),
    /// Check that this program notices images that fail, hang, trap, panic or fall silent
    Selftest,
    /// Check comments and documents: line width, links, citations, words (docs/style.md)
    Tidy,
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
        Commands::Replay(arguments) => commands::replay::run(console, arguments),
        Commands::Ci { only } => commands::ci::run(console, only.as_deref().unwrap_or("")),
        Commands::App(arguments) => commands::app::run(console, arguments),
        Commands::Bench(arguments) => commands::bench::run(console, arguments),
        Commands::Figures(arguments) => commands::figures::run(console, arguments),
        Commands::Sizes(arguments) => commands::sizes::run(console, arguments),
        Commands::Tidy => commands::tidy::run(),
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
