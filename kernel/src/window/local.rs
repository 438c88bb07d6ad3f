//! Access of a rank to its own piece of a window. Loads and stores go through the rank's cache, so
//! the kernel must know of each: a store to lines that peers may be putting to is refused. So there
//! are accessors, and no slice.

use bytemuck::Pod;
use flagpost_link::{Expected, Link};

use super::fast;
use crate::{Error, Model, Window};

/// This rank's piece of a window, read and written through the cache (past it, in a window of the
/// [unified](Model::Unified) model), element by element or in runs.
///
/// Peers may write it at any time, so there is no slice of it. Loads of elements that a peer may be
/// writing give old or new values, or a mixture of both, until an epoch or a request says
/// otherwise. The simulator tells of such a load between a request's start and its end.
#[derive(Debug)]
pub struct Local<'a, T, L, S> {
    window: &'a Window<'a, T, L, S>,
}

impl<'a, T: Pod, L: Link, S> Local<'a, T, L, S> {
    pub(crate) fn new(window: &'a Window<'a, T, L, S>) -> Self {
        Self { window }
    }

    /// Element `index`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]. In a window of the unified model [`Error::PeerLost`] in one of 64
    /// calls, if a rank is lost.
    #[inline]
    #[track_caller]
    pub fn get(&self, index: usize) -> Result<T, Error> {
        tries!(self.window.core.world, looks);
        if let Some(value) = fast::read(&self.window.core, index) {
            return Ok(value);
        }
        self.window.core.world.note_place();
        fast::declined(|| self.get_long(index))
    }

    #[inline(never)]
    fn get_long(&self, index: usize) -> Result<T, Error> {
        let mut value = [T::zeroed()];
        self.read(index, &mut value)?;
        let [value] = value;
        Ok(value)
    }

    /// Sets element `index`. Peers see it after the next `post` or started request that covers it
    /// (in the unified model perhaps earlier).
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::Exposed`] while peers may be writing the element's line.
    #[track_caller]
    pub fn set(&self, index: usize, value: T) -> Result<(), Error> {
        looks!(self.window.core.world);
        self.copy_in(index, &[value])
    }

    /// Copies elements from `index` on into `into`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]. In a window of the unified model [`Error::PeerLost`] in one of 64
    /// calls, if a rank is lost.
    #[track_caller]
    pub fn copy_out(&self, index: usize, into: &mut [T]) -> Result<(), Error> {
        looks!(self.window.core.world);
        self.read(index, into)
    }

    fn read(&self, index: usize, into: &mut [T]) -> Result<(), Error> {
        let offset = self.window.offset(index, into.len())?;
        let core = &self.window.core;
        let (world, bytes) = (core.world, bytemuck::cast_slice_mut(into));
        match core.model {
            Model::Separate => {
                world.link().read_local(core.own.key, offset, bytes)?;
                core.expected(offset, bytes.len(), Expected::Reads(bytes));
                Ok(())
            }
            Model::Unified => {
                let me = world.rank();
                world.note_poll()?;
                world
                    .wait()
                    .ask(|op| world.link().get(me, core.own.key, offset, bytes, op))
            }
        }
    }

    /// Copies `from` to the elements from `index` on.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::Exposed`] while peers may be writing one of the elements'
    /// lines.
    #[track_caller]
    pub fn copy_in(&self, index: usize, from: &[T]) -> Result<(), Error> {
        match self.window.core.model {
            Model::Separate => {
                looks!(self.window.core.world);
            }
            Model::Unified => {
                called!(self.window.core.world);
            }
        }
        let offset = self.window.offset(index, from.len())?;
        let core = &self.window.core;
        let (world, bytes): (_, &[u8]) = (core.world, bytemuck::cast_slice(from));
        if core.is_exposed(core.lines(offset, bytes.len())) {
            return Err(Error::Exposed);
        }
        match core.model {
            Model::Separate => Ok(world.link().write_local(core.own.key, offset, bytes)?),
            Model::Unified => world
                .wait()
                .retry(|| world.link().put(world.rank(), core.own.key, offset, bytes)),
        }
    }
}
