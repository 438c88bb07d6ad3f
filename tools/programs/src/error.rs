//! The two kinds of failure a command can end with.
//!
//! *Usage*: the caller asked for something that cannot be done; nothing was tested. One line on
//! standard error that says what to change, exit status 2. *Everything else* is an ordinary
//! [`anyhow::Error`]: exit status 1.

use std::fmt;

/// Bad input, or a missing tool that this command may not install itself.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, whatever went into it.
        f.write_str(&self.0.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl std::error::Error for Usage {}

/// A [`Usage`] that a program we called has told already: nothing is printed.
pub fn refused() -> anyhow::Error {
    usage("")
}

/// An error that ends the program with status 2.
pub fn usage(what: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(what.into()))
}
