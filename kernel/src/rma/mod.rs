//! Accesses to peers' pieces of a window, within an epoch.
//!
//! Every kind of access epoch offers the same operations, by the trait [`Rma`]. What differs is which ranks an epoch
//! admits, and when its accesses are done.

use bytemuck::Pod;
use flagpost_link::{Link, Op, Rank};

use crate::Error;

pub(crate) use reach::Reach;

/// What an epoch gives to its operations.
mod reach {
    use flagpost_link::Rank;

    use crate::{Error, window::Core};

    /// An access epoch of a window.
    pub trait Reach<'w, L> {
        /// The window.
        fn core(&self) -> &Core<'w, L>;

        /// Waits until `target` may be accessed.
        fn admit(&self, target: Rank) -> Result<(), Error>;
    }
}

/// The operations of an access epoch on elements `T`.
///
/// Unless a call says otherwise, it blocks only until the epoch admits the target, bad arguments change nothing, and
/// what it puts is seen by others when its epoch says so.
pub trait Rma<'w, T: Pod, L: Link + 'w>: Reach<'w, L> {
    /// Stores `data` at `index` of `to`'s piece.
    ///
    /// `data` may be reused at once. Cost: the stores.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`], [`Error::OutOfRange`]; [`Error::Timeout`] if the epoch does not come to
    /// admit `to`.
    fn put(&self, to: Rank, index: usize, data: &[T]) -> Result<(), Error> {
        let core = self.core();
        let (key, offset) = core.place::<T>(to, index, data.len())?;
        self.admit(to)?;
        let (world, bytes) = (core.world, bytemuck::cast_slice(data));
        world.retry(|| world.link().put(to, key, offset, bytes))
    }

    /// Loads elements from `index` of `from`'s piece into `into`, which is filled on return.
    ///
    /// # Errors
    /// As [`Rma::put`].
    fn get(&self, from: Rank, index: usize, into: &mut [T]) -> Result<(), Error> {
        let core = self.core();
        let (key, offset) = core.place::<T>(from, index, into.len())?;
        self.admit(from)?;
        let (world, bytes, op) = (core.world, bytemuck::cast_slice_mut(into), Op::new());
        world.retry(|| world.link().get(from, key, offset, bytes, &op))
    }
}
