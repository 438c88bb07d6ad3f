//! Tools, benchmarks and tests share these: random numbers, medians, tables, lines of JSON,
//! programs that heed signals, limits for hangs. Nothing here knows Flagpost, and nothing depends
//! on another crate: so the tests of each crate may use it.
#![forbid(unsafe_code)]

mod dice;
mod figures;
mod heeding;
mod lines;
mod output;
mod patience;

pub use dice::{Dice, mix};
pub use figures::{Sorted, median};
pub use heeding::heeding;
pub use lines::line;
pub use output::{Json, columns, out, say, table};
pub use patience::patience;
