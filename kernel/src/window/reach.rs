//! The services of an epoch to its accesses.

use flagpost_link::{Link, Rank};

use super::{Core, Piece, Window};
use crate::Error;

/// In an epoch: nobody is told of an access, unless [`Target::notify`](crate::rma::Target::notify)
/// is called.
#[derive(Copy, Clone, Debug, Default)]
pub struct Silent;

/// Without an epoch: there is no access before
/// [`Target::notify`](crate::rma::Target::notify) is called.
#[derive(Copy, Clone, Debug, Default)]
pub struct Unsaid;

/// An access epoch of a window, or the window without one; or attached memory in either.
pub trait Reach<'w, L: Link + 'w> {
    /// [`Silent`] or [`Unsaid`].
    type Told: Default;

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
impl<'w, T, L: Link, S> Reach<'w, L> for Window<'w, T, L, S> {
    type Told = Unsaid;

    fn core(&self) -> &Core<'w, L> {
        &self.core
    }

    fn admits(&self, _: Rank) -> bool {
        true
    }

    fn admit(&self, _: Rank) -> Result<(), Error> {
        Ok(())
    }
}
