//! Images for boards: each is built, booted under QEMU, and judged by what it says.
//!
//! | file | concern |
//! |---|---|
//! | `board` | the boards: targets, programs, QEMU's command line |
//! | `image`, `toolchain` | building an image, and what of rustup that takes |
//! | `session` | an image of the cases, built, and the QEMU to boot it in |
//! | `boot`, `log`, `protocol`, `run` | QEMU from start to verdict: bytes, records, outcome |
//! | `report` | the tables and JSON of runs |
//! | `hang`, `monitor`, `symbols` | what a hung image was doing |
//! | `instructions` | what an image of the SCC is made of |
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![allow(
    missing_docs,
    reason = "names that say it need no sentence here: only xtask uses them"
)]

pub mod board;
pub mod boot;
mod hang;
pub mod image;
pub mod instructions;
mod log;
mod monitor;
mod protocol;
pub mod report;
pub mod run;
pub mod session;
pub mod stack;
mod symbols;
pub mod toolchain;

use flagpost_programs::{children, compiling, console, error, parallel, paths, tools};
