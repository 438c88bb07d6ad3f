//! Mutation tests: one cache action, lock or ordering step is broken at a time; a case must notice.
//!
//! | file | concern |
//! |---|---|
//! | `points` | what is wrong with the mutation points, and what may stand outside of one |
//! | `files` | the runs that killed last time, and the points argued to be equivalent |
//! | `explorer` | the program that runs the cases on the simulator, built and called |
//! | `sweep` | all points, one by one: on the simulator, or on the board |
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![allow(
    missing_docs,
    reason = "names that say it need no sentence here: only xtask uses them"
)]

pub mod explorer;
mod files;
mod points;
pub mod sweep;

use flagpost_board::{board, boot, image, run, session};
use flagpost_programs::{children, compiling, console, count, error, parallel, paths, tools};
