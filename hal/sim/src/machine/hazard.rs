//! What an oracle saw.

use crate::report::Oracle;

/// What an oracle saw, in the machine's terms.
pub(crate) struct Hazard {
    pub(crate) oracle: Oracle,
    /// Whose access or arrival it was.
    pub(crate) core: u16,
    /// The other core concerned, if there is one.
    pub(crate) other: Option<u16>,
    /// First byte concerned.
    pub(crate) at: u32,
    /// How many bytes of the line are concerned.
    pub(crate) bytes: u32,
}
