//! `list`: the settings.

use std::io::{self, Write};

/// Prints a setting per line. A closed pipe ends it.
pub(crate) fn run() -> bool {
    let mut out = io::stdout().lock();
    flagpost_explore::settings().all(|setting| writeln!(out, "{setting}").is_ok());
    true
}
