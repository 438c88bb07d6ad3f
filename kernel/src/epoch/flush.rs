//! Flush and sync: effects become visible before an epoch ends. An origin flushes to know that its
//! puts are in the target's memory. An owner syncs to let its cache and its memory agree, while it
//! keeps its piece in use. Neither tells any other rank.
//!
//! * [`Lock::flush`]: the puts of this rank at the target are in its memory. Data that this rank
//!   gets are not older than data that it got before. Cost: the link's. Over `mapped` that is a
//!   drain and an acquire. While data that travel with notifications are on their way to the
//!   target, also 1 load of the ring's head until the target has taken them.
//! * [`Lock::flush_all`]: the same at all targets. Cost: the same, once for each such target.
//! * [`Window::flush`], [`Window::flush_all`]: the same without a lock, for notified accesses.
//! * [`Window::sync`]: the owner's view of its own piece and what peers see agree. Cost: the lines
//!   of the piece that the owner's cache has.
//!
//! Buffers of calls may be used again as soon as these have returned, without a flush
//! (`MPI_Win_flush_local` has nothing to do here).
//!
//! A flush and a sync tell nobody: a rank that is to look must be told, after it (a notification, a
//! barrier, a word that is put and that it looks at).
//!
//! # Source
//! MPI-3 11.5.4; [foMPI] 2.3.
//!
//! [foMPI]: crate#sources

use bytemuck::Pod;
use flagpost_link::{Link, Rank};

use super::lock::Lock;
use crate::{
    Error, Window, World,
    window::{fast::declined, reach::Reach},
};

impl<T: Pod, L: Link> Lock<'_, '_, T, L> {
    /// Waits until all that this rank has put at `target` in this epoch is in its memory. Data got
    /// after it are not older than data got before: a rank may wait for a word of anybody's by
    /// gets, each with a flush, and then get what came before that. Such a loop takes no
    /// notifications: a rank that needs room in this rank's ring before it stores that word waits
    /// for a call that does ([`Window::probe`](crate::Window::probe), any wait).
    ///
    /// On chips without coherence it may wait for a target that computes: data that travelled
    /// inside of a notified put are placed by the target, in its next call that waits or tests.
    /// After [`Window::set_inline(false)`](crate::Window::set_inline) it waits for no call of the
    /// target.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`]; [`Error::Timeout`] naming the target.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Rma as _;
    ///
    /// let window = world.allocate::<u32>(2)?;
    /// let (me, next) = (world.rank(), world.rank().next(world.size()));
    /// let lock = window.lock_all()?;
    /// lock.put(next, 0, &[7])?;
    /// lock.flush(next)?; // the data are in memory before the flag
    /// lock.put(next, 1, &[1])?;
    /// lock.flush(next)?;
    /// let (mut data, mut flag) = ([0], [0]);
    /// while flag == [0] {
    ///     lock.get(me, 1, &mut flag)?;
    ///     lock.flush(me)?;
    /// }
    /// lock.get(me, 0, &mut data)?;
    /// assert_eq!(data, [7]);
    /// lock.unlock()?;
    /// # Ok(())
    /// # });
    /// ```
    #[inline]
    #[track_caller]
    pub fn flush(&self, target: Rank) -> Result<(), Error> {
        tries!(self.core().world);
        point!(FLUSH "accesses to the target are complete": "flush.place", {
            if self.is_of(target) && self.core().world.link().fast_flush(false) {
                return Ok(());
            }
            self.core().world.note_place();
            declined(move || self.flush_one(target))
        }; else Ok(()))
    }

    /// [`flush`](Lock::flush).
    #[inline(never)]
    fn flush_one(&self, target: Rank) -> Result<(), Error> {
        self.core().world.check_rank(target)?;
        self.admit(target)?;
        self.core().world.place_all(Some(target))
    }

    /// [`flush`](Lock::flush), for all targets of the epoch. It may wait for a target that
    /// computes, as that does.
    ///
    /// # Errors
    /// [`Error::Timeout`] naming one of them.
    #[track_caller]
    pub fn flush_all(&self) -> Result<(), Error> {
        called!(self.core().world);
        self.core().world.place_all(None)
    }
}

impl<L: Link> World<'_, L> {
    /// Waits until all that this rank has put at `target`, or at all ranks, is in memory.
    fn place_all(&self, target: Option<Rank>) -> Result<(), Error> {
        point!(FLUSH "accesses to the target, or to all, are complete":
            "flush.place.wait", self.wait().retry(|| self.link().flush(target))?);
        Ok(())
    }
}

impl<T: Pod, L: Link, S> Window<'_, T, L, S> {
    /// Waits until all that this rank has put at `target` is in its memory: the accesses without an
    /// epoch, which are notified ones, and those of [`peer`](Window::peer). The target has nothing
    /// to do, but for data that travel inline: see [`Lock::flush`].
    ///
    /// # Errors
    /// [`Error::NoSuchRank`]; [`Error::Timeout`] naming the target; [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Tag;
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let next = world.rank().next(world.size());
    /// window.put_notify(next, 0, &[7], Tag(1))?;
    /// window.flush(next)?; // the target has not asked for it yet
    /// assert_eq!(window.peer(next)?.get(0)?, 7);
    /// world.barrier()?; // while it waits here, this rank places what comes inline
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn flush(&self, target: Rank) -> Result<(), Error> {
        called!(self.core.world);
        self.core.world.check_rank(target)?;
        self.core.world.place_all(Some(target))
    }

    /// [`flush`](Window::flush), for all targets.
    ///
    /// # Errors
    /// [`Error::Timeout`] naming one of them; [`Error::PeerLost`].
    #[track_caller]
    pub fn flush_all(&self) -> Result<(), Error> {
        called!(self.core.world);
        self.core.world.place_all(None)
    }

    /// Makes this rank's stores to its own piece visible to peers, and peers' puts there that this
    /// rank was told of visible to its loads. For pieces that are accessed under locks: see
    /// [there](crate::epoch::lock#this-ranks-own-piece).
    ///
    /// No peer puts to lines meanwhile to which this rank has stored.
    ///
    /// # Errors
    /// [`Error::Exposed`] while an exposure epoch or request has lines of the piece;
    /// [`Error::Timeout`] in windows of the unified model.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let window = world.allocate::<u32>(1)?;
    /// window.local().set(0, 7)?; // perhaps in the own cache only
    /// window.sync()?;
    /// world.barrier()?;
    /// let next = world.rank().next(world.size());
    /// assert_eq!(window.peer(next)?.get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn sync(&self) -> Result<(), Error> {
        called!(self.core.world);
        let core = &self.core;
        if core.is_exposed(core.all()) {
            return Err(Error::Exposed);
        }
        order!("dirty lines are not dropped": "flush.sync.publish<refresh",
            point!(PUBLISH "peers find what this rank has stored":
                "flush.sync.publish", core.publish(core.all())?),
            point!(REFRESH "this rank finds what peers have put":
                "flush.sync.refresh", core.refresh(core.all())?));
        Ok(())
    }
}
