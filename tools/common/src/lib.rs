//! Tools, benchmarks and tests share these: random numbers, medians, tables and lines of JSON.
//! Nothing here knows Flagpost, and nothing depends on another crate: so the tests of each crate
//! may use it.
#![forbid(unsafe_code)]

mod dice;
mod figures;
mod lines;
mod output;

pub use dice::{Dice, mix};
pub use figures::{Sorted, median};
pub use lines::line;
pub use output::{Json, columns, out, say, table};
