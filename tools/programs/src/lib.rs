//! Programs on this machine: they are found, installed, built and run, and what they do is shown.
//! The tools, `xtask` and the explorer of the cases share this.
//!
//! | file | concern |
//! |---|---|
//! | `tools` | finding programs and libraries, installing them by apt, their output as logs |
//! | `children` | the programs that this one starts: none outlives it |
//! | `compiling` | building by cargo, and how long that has taken |
//! | `parallel` | work on several processors |
//! | `console`, `count`, `error`, `paths` | output, passed and failed, exit status 2, places |
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![allow(
    missing_docs,
    reason = "names that say it need no sentence here: only xtask uses them"
)]

pub mod children;
pub mod compiling;
pub mod console;
pub mod count;
pub mod error;
pub mod parallel;
pub mod paths;
pub mod tools;
