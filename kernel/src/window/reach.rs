//! The services of an epoch to its accesses.

use flagpost_link::{Link, Rank};

use super::{Core, Piece};
use crate::Error;

/// An access epoch of a window, or what of it begins at a displacement.
pub trait Reach<'w, L: Link + 'w> {
    /// The window.
    fn core(&self) -> &Core<'w, L>;

    /// The piece in which indices of `target` are counted.
    fn piece(&self, target: Rank) -> Result<Piece, Error> {
        self.core().piece(target)
    }

    /// True if `target` may be accessed immediately; false if that takes more to say.
    fn admits(&self, target: Rank) -> bool;

    /// Waits until `target` may be accessed.
    fn admit(&self, target: Rank) -> Result<(), Error>;
}

/// Notified accesses need no epoch.
impl<'w, L: Link> Reach<'w, L> for Core<'w, L> {
    fn core(&self) -> &Core<'w, L> {
        self
    }

    fn admits(&self, _: Rank) -> bool {
        true
    }

    fn admit(&self, _: Rank) -> Result<(), Error> {
        Ok(())
    }
}
