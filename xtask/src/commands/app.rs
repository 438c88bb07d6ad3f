//! `cargo xtask app`: builds the programs of `examples/apps` with what runs them, optimized, and
//! hands everything over.

use std::ffi::OsString;

use anyhow::Result;
use clap::Args;

use super::bench::hand_over;
use crate::console::Console;

/// Run a program of the sources, such as stencil or cholesky, or all: on the simulator, on this
/// machine, over libfabric, or under QEMU
///
/// `cargo xtask app --help` tells the rest.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

/// Runs the command; `false` if a program failed.
pub(crate) fn run(console: &Console, arguments: &Arguments) -> Result<bool> {
    let packages = ["flagpost-bench-apps", "flagpost-linux"];
    let programs = ["flagpost-app", "flagpost-run", "examples/app"];
    let arguments = &arguments.arguments;
    hand_over(console, "explore", &packages, &programs, arguments)
}
