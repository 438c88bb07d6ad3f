//! Shared windows: a neighbour's memory as if it were one's own.

use bytemuck::Pod;
use flagpost_link::{Link, Rank};

use crate::{Error, Window, window::Core};

/// `rank`'s piece, element by element, past the caches: no epoch, no message.
///
/// One access of an element that is aligned and has up to 4 bytes is whole: others see all of it or
/// nothing. Nothing is ordered; a [`barrier`](crate::World::barrier) places what was set before it,
/// for gets after it. The piece's owner reaches it the same way; what it does through
/// [`Window::local`] is cached, and keeps the rules of epochs.
#[derive(Debug)]
pub struct Peer<'a, 'w, T, L> {
    core: &'a Core<'w, L>,
    rank: Rank,
    element: core::marker::PhantomData<T>,
}

impl<'w, T: Pod, L: Link, S> Window<'w, T, L, S> {
    /// True if [`Window::peer`] works here.
    pub const DIRECT: bool = L::DIRECT;

    /// Direct access to `rank`'s piece.
    ///
    /// # Errors
    /// [`Error::NotDirect`] where the link does not reach peers' memory by loads and stores;
    /// [`Error::NoSuchRank`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let window = world.allocate::<u32>(1)?;
    /// let next = world.rank().next(world.size());
    /// window.peer(next)?.set(0, 7)?; // one store into the memory of `next`
    /// world.barrier()?;
    /// assert_eq!(window.peer(world.rank())?.get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    pub fn peer(&self, rank: Rank) -> Result<Peer<'_, 'w, T, L>, Error> {
        if !L::DIRECT {
            return Err(Error::NotDirect);
        }
        self.core.world.check_rank(rank)?;
        Ok(Peer {
            core: &self.core,
            rank,
            element: core::marker::PhantomData,
        })
    }
}

impl<T: Pod, L: Link> Peer<'_, '_, T, L> {
    /// Element `index`: one load, if it has up to 4 bytes.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::PeerLost`] in one of 64 calls, if a rank is lost.
    #[track_caller]
    pub fn get(&self, index: usize) -> Result<T, Error> {
        called!(self.core.world);
        let (key, offset) = self.core.place::<T>(self.rank, index, 1)?;
        let world = self.core.world;
        world.note_poll()?;
        let mut value = T::zeroed();
        let into = bytemuck::bytes_of_mut(&mut value);
        world
            .wait()
            .ask(|op| world.link().get(self.rank, key, offset, into, op))?;
        Ok(value)
    }

    /// Sets element `index`: one store, if it has up to 4 bytes.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    #[track_caller]
    pub fn set(&self, index: usize, value: T) -> Result<(), Error> {
        called!(self.core.world);
        let (key, offset) = self.core.place::<T>(self.rank, index, 1)?;
        let (world, bytes) = (self.core.world, bytemuck::bytes_of(&value));
        world
            .wait()
            .retry(|| world.link().put(self.rank, key, offset, bytes))
    }
}
