//! `cargo xtask figures`: builds what draws them, optimized, and hands everything over.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;

use super::bench::hand_over;
use crate::console::Console;

/// Draw docs/figures anew, all or some, from the simulator; or compare: --check
///
/// `cargo xtask figures --help` tells the rest.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Names of figures, and other arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

/// Runs the command; `false` if a figure differs.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    const NAME: [&str; 1] = ["flagpost-figures"];
    hand_over(console, "explore", &NAME, &NAME, &arguments.arguments)
}
