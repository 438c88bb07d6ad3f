//! Making windows, and giving them back. Each rank takes memory of the same size in the same order,
//! so that a piece has the same key on all ranks. [`making`](crate::making) lets the ranks agree on
//! that before any peer may use it. A window is freed in the same way: no rank gives memory back
//! before all have left.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use bytemuck::Pod;
use flagpost_link::{Key, Link, Place};

use super::{Core, Options, Piece, Pieces, Window, cell};
use crate::{
    Error, Freeing, Making, Model, World,
    collective::Call,
    epoch::{EpochSlots, Strategy},
    making::Ways,
    making::offer,
};

impl<'w, L: Link> World<'w, L> {
    /// Makes a window of `len` zero elements on each rank. Collective: all ranks call it with the
    /// same element size and length, in the same order as other collectives.
    ///
    /// Takes `len` elements in whole lines of every rank's shared memory, and what its epochs need
    /// (64 bytes; two slots per rank, see [`EpochSlots`]), until [`Window::free`]. Waits for all
    /// ranks: O(log p).
    ///
    /// # Errors
    /// On all ranks together: [`Error::MemoryFull`], [`Error::ArenaFull`],
    /// [`Error::TooManyPieces`], [`Error::TooManyWindows`] where the cause is,
    /// [`Error::Asymmetric`] naming the first such rank elsewhere. [`Error::PeerLost`].
    /// [`Error::CollectiveUnfinished`]: nothing was taken.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let window = world.allocate::<u64>(4)?; // on each rank
    /// assert_eq!((window.len(), window.local().get(3)?), (4, 0));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn allocate<T: Pod>(&'w self, len: usize) -> Result<Window<'w, T, L>, Error> {
        called!(self);
        self.allocate_with::<T, EpochSlots<'w>>(len, ())
    }

    /// [`World::allocate`], with epochs signalled as `S` does, in the model of memory that
    /// `options` names: pass the strategy's options, a [`Model`] (if the strategy has none), or
    /// [`Options`] with both.
    ///
    /// # Errors
    /// On all ranks together: [`Error::MemoryFull`], [`Error::ArenaFull`],
    /// [`Error::TooManyPieces`], [`Error::TooManyWindows`] where the cause is,
    /// [`Error::Asymmetric`] naming the first such rank elsewhere. [`Error::PeerLost`].
    /// [`Error::CollectiveUnfinished`]: nothing was taken.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{EpochSlots, Model};
    ///
    /// // The owner does not cache its piece: what it sets is in memory immediately.
    /// let window = world.allocate_with::<u32, EpochSlots>(1, Model::Unified)?;
    /// window.local().set(0, 7)?;
    /// world.barrier()?;
    /// let next = world.rank().next(world.size());
    /// assert_eq!(window.peer(next)?.get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    // The stack that it takes is free again when the program runs.
    #[inline(never)]
    #[track_caller]
    pub fn allocate_with<T: Pod, S: Strategy<'w, L>>(
        &'w self,
        len: usize,
        options: impl Into<Options<S::Options>>,
    ) -> Result<Window<'w, T, L, S>, Error> {
        called!(self);
        Making::made(&mut self.allocating::<T, S>(len, options))
    }

    /// [`World::allocate_with`], with a handle: for programs that do not wait for ever. This rank's
    /// part is taken; other ranks hear of it when the handle is waited for.
    ///
    /// The strategy is named, as in the example: it has no default. [`World::allocate`] takes
    /// [`EpochSlots`].
    ///
    /// # Errors
    /// [`Error::CollectiveUnfinished`]: nothing was taken. All others come when the handle is
    /// waited for, on all ranks together.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Budget, EpochSlots, Unfinished};
    ///
    /// let making = world.allocating::<u32, EpochSlots>(4, ())?;
    /// let window = match making.wait_within(Budget::microseconds(20)) {
    ///     Ok(window) => window,
    ///     Err(Unfinished { handle: Some(making), .. }) => making.wait()?,
    ///     Err(failed) => return Err(failed.give_up()), // on all ranks together
    /// };
    /// assert_eq!(window.len(), 4);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn allocating<T: Pod, S: Strategy<'w, L>>(
        &'w self,
        len: usize,
        options: impl Into<Options<S::Options>>,
    ) -> Result<Making<'w, L, Window<'w, T, L, S>>, Error> {
        called!(self);
        let Options { strategy, model } = options.into();
        let prepare = || self.prepare::<T, S>(len, size_of::<T>(), strategy, model);
        let offer =
            |window: &Window<'w, T, L, S>| window.offer(size_of::<T>(), window.core.own.bytes);
        Making::same(self, prepare, offer, Window::WAYS)
    }

    /// This rank's part of making a window. Takes nothing if it fails.
    #[inline(never)]
    pub(super) fn prepare<T: Pod, S: Strategy<'w, L>>(
        &'w self,
        len: usize,
        size: usize,
        options: S::Options,
        model: Model,
    ) -> Result<Window<'w, T, L, S>, Error> {
        let id = self.unused_window()?;
        let bytes = len.checked_mul(size).ok_or(Error::MemoryFull {
            missing_bytes: usize::MAX,
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
        let piece = Piece {
            key,
            base: 0,
            bytes,
            unit: u32::try_from(size.max(1)).unwrap_or(u32::MAX),
        };
        let core = Core::new(self, id, piece, Pieces::Same, cells, model);
        let window = Window::new(core, sync);
        if let Err(error) = self.zero(key, bytes) {
            window.discard();
            return Err(error);
        }
        self.windows.set(self.windows.get() | bit(id));
        Ok(window)
    }

    /// Clears new cells, `bytes` bytes of them, past the cache, where they are from now on.
    pub(crate) fn clear_cells(&self, cells: Key, bytes: usize) -> Result<(), Error> {
        self.set_cells(cells, bytes, 0)
    }

    /// The same, with a first value.
    pub(crate) fn set_cells(&self, cells: Key, bytes: usize, value: u64) -> Result<(), Error> {
        let values = [value.to_le_bytes(); 8];
        let values = values.as_flattened();
        let mut offset = 0;
        while offset < bytes {
            let step = bytes.saturating_sub(offset).min(values.len());
            let values = values.get(..step).unwrap_or(&[]);
            self.wait()
                .retry(|| self.link().put(self.rank(), cells, offset, values))?;
            offset = offset.saturating_add(step);
        }
        Ok(())
    }

    /// The number of a window that there is not.
    pub(super) fn unused_window(&self) -> Result<u16, Error> {
        let max = self.limits.windows;
        let id = self.windows.get().trailing_ones() as u16;
        if id < max {
            Ok(id)
        } else {
            Err(Error::TooManyWindows { max })
        }
    }

    /// Gives back what a window took.
    pub(super) fn discard<S: Strategy<'w, L>>(&self, core: &Core<'w, L>, sync: &S) {
        sync.discard(self);
        self.discard_counters(&core.counters);
        self.link().withdraw(core.cells);
        match core.pieces {
            Pieces::Same => self.link().withdraw(core.own.key),
            Pieces::Table { words, claimed } => {
                self.arena.give_back(words);
                claimed.set(false);
            }
            Pieces::Attached { words, .. } => {
                self.arena.give_back(words);
                self.link().withdraw(core.own.key);
            }
        }
        self.windows.set(self.windows.get() & !bit(core.id));
    }

    /// Clears a new piece, through the cache: what it holds of these bytes is then right as well.
    pub(super) fn zero(&self, key: Key, bytes: usize) -> Result<(), Error> {
        const ZEROS: [u8; 64] = [0; 64];
        // Of zeros that the link has made only the order is left.
        let stored = if self.link().zero(key, 0, bytes)? {
            0
        } else {
            bytes
        };
        point!(REFRESH "the cache may hold lines of what this memory was":
            "window.zero.refresh", self.link().refresh(key, 0, stored)?);
        let mut offset = 0;
        while offset < stored {
            let step = stored.saturating_sub(offset).min(ZEROS.len());
            let zeros = ZEROS.get(..step).unwrap_or(&[]);
            self.link().write_local(key, offset, zeros)?;
            offset = offset.saturating_add(step);
        }
        point!(PUBLISH "peers read zeros, and no dirty line travels over puts":
            "window.zero.publish", self.link().publish(key, 0, stored)?);
        Ok(())
    }
}

impl<'w, T: Pod, L: Link, S: Strategy<'w, L>> Window<'w, T, L, S> {
    /// A number that must be the same on all ranks, from the bytes of an element and of the piece:
    /// ranks that agree on it have the same keys.
    pub(super) fn offer(&self, element: usize, bytes: usize) -> u64 {
        let Self { core, sync, .. } = self;
        let size = u32::try_from(element).unwrap_or(u32::MAX);
        let same = digest([
            size,
            bytes as u32,
            (bytes as u64).wrapping_shr(u32::BITS) as u32,
            core.own.key.get(),
            core.cells.get(),
            sync.offer(),
            core.model as u32,
        ]);
        offer(element, bytes, same)
    }

    pub(super) const WAYS: Ways<Self> = Ways {
        clear: Self::clear,
        discard: Self::discard,
    };

    /// Clears what it has taken but its elements.
    pub(super) fn clear(&self) -> Result<(), Error> {
        let Self { core, sync, .. } = self;
        core.world.clear_cells(core.cells, cell::BYTES)?;
        sync.clear(core.world)
    }

    /// Gives back what it took.
    pub(super) fn discard(&self) {
        self.core.world.discard(&self.core, &self.sync);
    }

    /// Gives the window back. Collective, and a barrier: all ranks' accesses to it have ended.
    ///
    /// Memory that it was created over is its owner's again, with
    /// all that peers have put there.
    ///
    /// Dropping a window instead keeps its memory, and its place among the world's windows, taken.
    ///
    /// # Errors
    /// [`Error::Exposed`] while a request of the window with a range is started, or if one was
    /// dropped while it was; [`Error::EpochOpen`] while this
    /// rank holds a lock of it; [`Error::EpochAbandoned`]; [`Error::PeerLost`].
    /// [`Error::Unmatched`] if notifications of it have reached this rank that no request has
    /// matched (all that were sent before the barrier are seen): match them with requests of this
    /// window, or [discard](Window::discard_notifications) them; other ranks' windows are free
    /// then, and until this one is, the ranks cannot make another ([`Error::Asymmetric`]).
    /// [`Error::QueueFull`] if the notifications that have arrived cannot be looked through, since
    /// other windows' notifications fill the queue.
    ///
    /// The window is dropped then. [`freeing`](Self::freeing) keeps it, to try again.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// // A world has room for a few windows at a time.
    /// for _ in 0..100 {
    ///     let window = world.allocate::<u64>(4)?;
    ///     window.free()?;
    /// }
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn free(self) -> Result<(), Error> {
        called!(self.core.world);
        self.freeing().wait()
    }

    /// [`free`](Self::free), with a handle that keeps the window until it is free.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Budget, Error, Tag};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// window.put_notify(world.rank().next(world.size()), 0, &[7], Tag(3))?;
    /// if let Err(late) = window.freeing().wait_within(Budget::seconds(1)) {
    ///     assert_eq!(late.error, Error::Unmatched { count: 1 });
    ///     let window = late.handle.keep();
    ///     window.discard_notifications()?;
    ///     window.free()?;
    /// }
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn freeing(self) -> Freeing<'w, L, Self> {
        called!(self.core.world);
        Freeing {
            world: self.core.world,
            made: self,
            leave: Self::leave,
            discard: Self::discard,
        }
    }

    /// Waits until nobody uses the window any more.
    pub(super) fn leave(&self) -> Result<(), Error> {
        let core = &self.core;
        if core.requested.all().any(|open| !open.lines().is_empty()) {
            return Err(Error::Exposed);
        }
        if core.passive.any() {
            return Err(Error::EpochOpen);
        }
        if core.abandoned.get() && !core.left.get() {
            return Err(Error::EpochAbandoned);
        }
        point!(PUBLISH "no dirty line travels over what this memory becomes":
            "window.free.publish", core.publish(core.all())?);
        if !core.left.get() {
            let (world, call) = (core.world, Call::FreeWindow(core.id));
            point!(WAIT "memory that a rank still accesses is not used again":
                "window.free.barrier", world.attempt(call, || world.order_and_arrive())?);
            core.left.set(true);
            core.abandoned.set(true);
        }
        point!(CHECK "the next window of this number does not get this one's notifications":
            "window.free.unmatched", self.all_matched()?);
        if let Pieces::Table { .. } = core.pieces {
            let link = core.world.link();
            point!(REFRESH "its owner reads what peers have put":
                "window.free.refresh", link.refresh(core.own.key, core.own.base, core.own.bytes)?);
        }
        Ok(())
    }

    /// `Ok` if all notifications of this window that have arrived are matched.
    fn all_matched(&self) -> Result<(), Error> {
        let (core, mut count) = (&self.core, 0_u32);
        let looked = core.world.sift(core.id, || {
            count = count.saturating_add(1);
            false
        });
        if count > 0 {
            return Err(Error::Unmatched { count });
        }
        looked
    }
}

/// The bit of window `id`.
pub(crate) const fn bit(id: u16) -> u64 {
    1_u64.wrapping_shl(id as u32)
}

/// 48 bits that differ if one of the words does, as far as that is possible (FNV-1a).
pub(crate) fn digest<const N: usize>(words: [u32; N]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in words.into_iter().flat_map(u32::to_le_bytes) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash.wrapping_shr(16)
}
