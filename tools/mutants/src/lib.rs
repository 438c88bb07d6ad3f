//! Mutation tests: one cache action, lock or ordering step is broken at a time; a case must notice.
//!
//! | file | concern |
//! |---|---|
//! | `points` | the mutation points of the sources, and what may stand outside of one |
//! | `equivalent` | the points that are argued to be equivalent |
//! | `killers` | for each point, the run that killed it last time |
//! | `explorer` | the program that runs the cases on the simulator, built and called |
//! | `sweep` | all points, one by one: on the simulator, or on the board |
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![allow(
    missing_docs,
    reason = "names that say it need no sentence here: only xtask uses them"
)]

mod equivalent;
pub mod explorer;
mod killers;
mod points;
pub mod sweep;

use flagpost_board::{board, boot, run, session};
use flagpost_programs::{children, compiling, console, count, error, parallel, paths};
