//! Why a rank's part did not come out as it must.

use core::fmt;

use flagpost::{Error, Rank, Unfinished};

/// Why a rank's part did not come out as it must.
#[derive(Debug)]
pub enum Wrong {
    /// A call failed that must not.
    Call(Error),
    /// An element was not what it must be.
    Element {
        /// In which phase.
        phase: usize,
        /// Which one.
        index: usize,
        /// What it was.
        found: u64,
        /// What it must be.
        expected: u64,
    },
    /// A notification came from somebody else.
    Source(Rank),
    /// An access by the displacement of memory that this rank has detached did not end as it must.
    Reached(Rank, Result<(), Error>),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => write!(f, "{error}"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::Call(error)
    }
}

impl<H> From<Unfinished<H>> for Wrong {
    fn from(unfinished: Unfinished<H>) -> Self {
        Self::Call(unfinished.error)
    }
}
