//! Making windows, and giving them back.

use core::marker::PhantomData;

use bytemuck::Pod;
use flagpost_link::{Key, Link, Place, order, point};

use super::{Core, Options, Window, cell};
use crate::{
    Error, Model, Unfinished, World,
    epoch::{EpochSlots, Strategy},
};

impl<'w, L: Link> World<'w, L> {
    /// Makes a window of `len` zero elements on each rank. Collective: all ranks call it with the same
    /// element size and length, in the same order as other collectives.
    ///
    /// Takes `len` elements in whole lines of every rank's shared memory, and what its epochs need (64 bytes; two slots per
    /// rank, see [`EpochSlots`]), until [`Window::free`]. Waits for all ranks: O(log p).
    ///
    /// # Errors
    /// On all ranks together: [`Error::MemoryFull`], [`Error::ArenaFull`], [`Error::TooManyPieces`],
    /// [`Error::TooManyWindows`] where the cause is, [`Error::Asymmetric`] naming the first such rank elsewhere.
    /// [`Error::Timeout`] if a rank does not come: then no rank may use the world any more.
    pub fn allocate<T: Pod>(&'w self, len: usize) -> Result<Window<'w, T, L>, Error> {
        self.allocate_with::<T, EpochSlots<'w>>(len, ())
    }

    /// [`World::allocate`], with epochs signalled as `S` does, in the model of memory that `options` names: pass the strategy's
    /// options, a [`Model`] (if the strategy has none), or [`Options`] with both.
    ///
    /// # Errors
    /// As there.
    pub fn allocate_with<T: Pod, S: Strategy<'w, L>>(
        &'w self,
        len: usize,
        options: impl Into<Options<S::Options>>,
    ) -> Result<Window<'w, T, L, S>, Error> {
        let Options { strategy, model } = options.into();
        let prepared = self.prepare::<S>(len, size_of::<T>(), strategy, model);
        // Ranks that agree on this have the same keys.
        let offer = |(core, sync): &(Core<'w, L>, S)| {
            let element = u32::try_from(size_of::<T>()).unwrap_or(u32::MAX);
            digest([
                element,
                core.bytes,
                core.key.get(),
                core.cells.get(),
                sync.offer(),
                model as u32,
            ])
        };
        // ORDER: no peer accesses the new memory before all have prepared theirs.
        let differs = point!(
            "window.allocate.agree",
            self.agree(prepared.as_ref().ok().map(offer))?;
            else None
        );
        match (prepared, differs) {
            (Ok((core, sync)), None) => Ok(Window {
                core,
                sync,
                element: PhantomData,
            }),
            (Ok((core, sync)), Some(rank)) => {
                self.discard(&core, &sync);
                Err(Error::Asymmetric(rank))
            }
            (Err(error), _) => Err(error),
        }
    }

    /// This rank's part of making a window. Takes nothing if it fails.
    fn prepare<S: Strategy<'w, L>>(
        &'w self,
        len: usize,
        size: usize,
        options: S::Options,
        model: Model,
    ) -> Result<(Core<'w, L>, S), Error> {
        let used = self.windows.get();
        let max = self.limits().windows;
        let id = used.trailing_ones() as u16;
        if id >= max {
            return Err(Error::TooManyWindows { max });
        }
        let bytes = u32::try_from(len.saturating_mul(size)).map_err(|_| Error::MemoryFull {
            missing_bytes: u32::MAX,
        })?;
        let link = self.link();
        let key = link.allocate(bytes, Place::Symmetric)?;
        let cells = match link.allocate(cell::BYTES, Place::Symmetric) {
            Ok(cells) => cells,
            Err(refusal) => {
                link.withdraw(key);
                return Err(refusal.into());
            }
        };
        let sync = match S::prepare(self, options) {
            Ok(sync) => sync,
            Err(error) => {
                link.withdraw(cells);
                link.withdraw(key);
                return Err(error);
            }
        };
        let core = Core::new(self, id, key, bytes, cells, model);
        let cleared = self.zero(key, bytes).and_then(|()| {
            // Past the cache, where they are from now on.
            let zeros = [0; cell::BYTES as usize];
            self.retry(|| link.put(self.rank(), cells, 0, &zeros))
        });
        if let Err(error) = cleared {
            self.discard(&core, &sync);
            return Err(error);
        }
        self.windows.set(used | bit(id));
        Ok((core, sync))
    }

    /// Gives back what [`World::prepare`] took.
    fn discard<S: Strategy<'w, L>>(&self, core: &Core<'w, L>, sync: &S) {
        sync.discard(self);
        self.link().withdraw(core.cells);
        self.link().withdraw(core.key);
        self.windows.set(self.windows.get() & !bit(core.id));
    }

    /// Clears a new piece, through the cache: what it holds of these bytes is then right as well.
    fn zero(&self, key: Key, bytes: u32) -> Result<(), Error> {
        const ZEROS: [u8; 64] = [0; 64];
        let mut offset = 0_u32;
        while offset < bytes {
            let step = bytes.saturating_sub(offset).min(ZEROS.len() as u32);
            let zeros = ZEROS.get(..step as usize).unwrap_or(&[]);
            self.link().write_local(key, offset, zeros)?;
            offset = offset.saturating_add(step);
        }
        // PUBLISH: peers read zeros, and no dirty line is left to travel over their puts.
        point!("window.zero.publish", self.link().publish(key, 0, bytes)?);
        Ok(())
    }
}

impl<'w, T: Pod, L: Link, S: Strategy<'w, L>> Window<'w, T, L, S> {
    /// Gives the window back. Collective, and a barrier: all ranks' accesses to it have ended.
    ///
    /// Dropping a window instead keeps its memory, and its place among the world's windows, taken.
    ///
    /// # Errors
    /// [`Error::Exposed`] while a request of the window is started; [`Error::Timeout`] naming a rank that has not come.
    /// Both with the window, to try again.
    #[allow(
        clippy::result_large_err,
        reason = "the window goes back to its user, without a heap"
    )]
    pub fn free(self) -> Result<(), Unfinished<Self>> {
        let core = &self.core;
        let finish = || {
            if core.requested.iter().any(|open| open.get().is_some()) {
                return Err(Error::Exposed);
            }
            order!(
                "window.free.publish<barrier",
                // PUBLISH: no dirty line is left to be evicted over what this memory becomes.
                point!("window.free.publish", core.publish(core.all())?),
                // ORDER: nobody reuses memory that somebody still accesses.
                point!("window.free.barrier", core.world.barrier()?)
            );
            Ok(())
        };
        match finish() {
            Ok(()) => {
                core.world.discard(core, &self.sync);
                Ok(())
            }
            Err(error) => Err(Unfinished {
                handle: self,
                error,
            }),
        }
    }
}

/// The bit of window `id`.
const fn bit(id: u16) -> u64 {
    1_u64.wrapping_shl(id as u32)
}

/// 48 bits that differ if one of the words does, as far as that is possible (FNV-1a).
fn digest<const N: usize>(words: [u32; N]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in words.into_iter().flat_map(u32::to_le_bytes) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash.wrapping_shr(16)
}
