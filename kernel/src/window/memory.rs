//! Shared memory of a rank, for windows that are created over it or that it is attached to. A rank
//! reserves such memory alone; nobody else knows of it yet. It is in one window at a time, and a
//! mark in private memory says so. Memory that is dropped stays taken.

use core::cell::Cell;

use bytemuck::Pod;
use flagpost_link::{Key, Link, Place};

use super::Piece;
use crate::{Error, Unfinished, World};

/// A block of this rank's shared memory. No other rank knows of it until it is in a window.
///
/// It is in one window at a time, and only reached through that meanwhile.
#[derive(Debug)]
pub struct Memory<'w, L> {
    world: &'w World<'w, L>,
    key: Key,
    bytes: usize,
    /// It is in a window.
    claimed: Cell<bool>,
}

impl<'w, L: Link> World<'w, L> {
    /// Takes `bytes` zero bytes of this rank's shared memory, in whole lines, until
    /// [`Memory::release`]. Tells nobody.
    ///
    /// # Errors
    /// [`Error::MemoryFull`] with how much is missing, [`Error::TooManyPieces`]. Nothing was taken
    /// then.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let memory = world.reserve(64)?;
    /// memory.write(32, &[7_u32, 8])?; // from byte 32 on
    /// let mut read = [0_u32];
    /// memory.read(36, &mut read)?;
    /// assert_eq!((memory.len(), read), (64, [8]));
    /// memory.release().expect("it is in no window");
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn reserve(&'w self, bytes: usize) -> Result<Memory<'w, L>, Error> {
        called!(self);
        let key = self.link().allocate(bytes, Place::Own)?;
        if let Err(error) = self.zero(key, bytes) {
            self.link().withdraw(key);
            return Err(error);
        }
        Ok(Memory {
            world: self,
            key,
            bytes,
            claimed: Cell::new(false),
        })
    }
}

impl<'w, L: Link> Memory<'w, L> {
    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Reads elements from byte `offset` on, through the cache.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] (in bytes), [`Error::MemoryInUse`].
    #[track_caller]
    pub fn read<T: Pod>(&self, offset: usize, into: &mut [T]) -> Result<(), Error> {
        called!(self.world);
        let start = self.free_part::<T>(offset, into.len())?;
        let bytes = bytemuck::cast_slice_mut(into);
        Ok(self.world.link().read_local(self.key, start, bytes)?)
    }

    /// Writes elements from byte `offset` on, through the cache.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] (in bytes), [`Error::MemoryInUse`].
    #[track_caller]
    pub fn write<T: Pod>(&self, offset: usize, from: &[T]) -> Result<(), Error> {
        called!(self.world);
        let start = self.free_part::<T>(offset, from.len())?;
        let bytes = bytemuck::cast_slice(from);
        Ok(self.world.link().write_local(self.key, start, bytes)?)
    }

    /// Gives the memory back.
    ///
    /// Dropping it instead keeps it taken.
    ///
    /// # Errors
    /// [`Error::MemoryInUse`] while it is in a window; with the memory.
    #[track_caller]
    pub fn release(self) -> Result<(), Unfinished<Self>> {
        called!(self.world);
        match self.clean() {
            Ok(()) => {
                self.world.link().withdraw(self.key);
                Ok(())
            }
            Err(error) => Err(Unfinished::with(self)(error)),
        }
    }

    fn clean(&self) -> Result<(), Error> {
        self.free_part::<u8>(0, 0)?;
        point!(PUBLISH "no dirty line travels over what this memory becomes":
            "window.memory.release.publish", self.world.link().publish(self.key, 0, self.bytes)?);
        Ok(())
    }

    fn free_part<T>(&self, offset: usize, count: usize) -> Result<usize, Error> {
        if self.claimed.get() {
            return Err(Error::MemoryInUse);
        }
        self.whole().inside::<T>(offset, count)
    }

    /// For windows of `world`: the mark that one has it, and all of it as a piece.
    ///
    /// # Errors
    /// [`Error::WrongWindow`], if it is another world's.
    pub(super) fn part(&self, world: &World<'_, L>) -> Result<(&Cell<bool>, Piece), Error> {
        if core::ptr::eq(self.world, world) {
            Ok((&self.claimed, self.whole()))
        } else {
            Err(Error::WrongWindow)
        }
    }

    fn whole(&self) -> Piece {
        Piece {
            key: self.key,
            base: 0,
            bytes: self.bytes,
            unit: 1,
        }
    }
}
