//! Notified accesses: one call moves the data and tells the target. None needs an epoch. The short
//! forms here wait until the data have left; [`Window::to`] begins any other access, with a
//! request.
//!
//! # The calls
//! | | |
//! |---|---|
//! | nothing but a notification | [`Window::notify`] |
//! | store | [`Window::put_notify`] |
//! | load | [`Window::get_notify`] |
//! | any access, in any layout, by a request | [`Window::to`], then [`Target::notify`] |
//!
//! In an epoch, and on attached memory: `to`, then [`Target::notify`].
//!
//! # The meaning of a notice
//! | of | the target that finds it |
//! |---|---|
//! | a put, an accumulate | finds the elements changed |
//! | a get | may reuse the memory: it has been read |
//!
//! And so for all that the same rank did to the same target before; by a counter, a signal or an
//! event the target is not told of data that [travel inline](super#inline-data) with an earlier
//! tag. As everywhere, nothing orders a put before accumulates and gets of the same elements but a
//! flush, or an answer: an accumulate that comes after a put without may be lost, or fetch what was
//! before it. Where the target caches its piece, it names the elements by a request's range
//! ([`Window::expect`]).
//!
//! # Steps
//! The access as of [`Rma`](crate::Rma), at its cost; then what the [notice](super::notice) takes.
//! A put with a tag is one message.
//!
//! # Budgets
//! With a budget an access is made by its request: one that runs out of it continues where it
//! stopped, and neither accesses nor tells twice ([`Request::wait_within`],
//! [`Fetch::wait_within`]).
//!
//! [`Request::wait_within`]: crate::rma::Request::wait_within
//! [`Fetch::wait_within`]: crate::rma::Fetch::wait_within

use bytemuck::Pod;
use flagpost_link::{Link, Pending, Rank};

use super::{Tag, notice::Notice};
use crate::{
    Error, Window,
    rma::{Target, Unsaid},
    window::{Core, fast::place_alike},
};

impl<'w, T: Pod, L: Link, S> Window<'w, T, L, S> {
    /// The elements of `to`'s piece from `index` on, for a notified access in full: any access, in
    /// any layout, by a request. Does nothing yet.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Tag, rma::Operation};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// let mut told = window.expect(0..1, Tag(3))?;
    /// told.start()?;
    /// let target = window.to(peer, 0).notify(Tag(3));
    /// let before = target.fetch_and_op(7, Operation::SUM)?.wait()?;
    /// told.wait()?;
    /// assert_eq!((before, window.local().get(0)?), (0, 7));
    /// # Ok(())
    /// # });
    /// ```
    pub fn to(&self, to: Rank, index: usize) -> Target<'_, 'w, T, L, Self, Unsaid> {
        Target::new(self, to, index, Unsaid)
    }

    /// Tells `to`, and moves nothing. Comes after all that this rank did to `to` before, as the
    /// [module](self) says.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::TagTooLarge`], [`Error::NoSuchCounter`],
    /// [`Error::WrongWindow`] (an event of another world): nothing was sent. [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Tag;
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// let mut told = window.expect(0..0, Tag(3))?;
    /// told.start()?;
    /// window.notify(peer, Tag(3))?;
    /// assert_eq!(told.wait()?.source, peer);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn notify<'n>(
        &self,
        to: Rank,
        notice: impl Into<Notice<'n, L::Word>>,
    ) -> Result<(), Error> {
        called!(self.core.world);
        self.put_notify(to, 0, &[], notice)
    }

    /// Puts `data` at `index` of `to`'s piece and tells `to`: with a tag one message. No epoch.
    ///
    /// With a tag: waits for room in `to`'s ring. A request of `to` that matches finds the data,
    /// and this rank's earlier puts to `to` in the request's range, when it completes. `to` must
    /// not store to these lines meanwhile: it says so by starting a request for them, or leaves
    /// them alone altogether. Zero elements only notify.
    ///
    /// Cost: see the link. Over `mapped`, in a ring per pair: 1 line, in which up to 16 bytes of
    /// data travel, and 1 byte where the ring has a bell. Where rings lie in message buffers: a
    /// line per 31 bytes more, as far as they have room ([`set_inline`](Self::set_inline)). With a
    /// counter or a signal: beside the data 1 atomic operation on a cell.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::WrongWindow`]: nothing was sent. [`Error::PeerLost`].
    /// Within a budget [`Error::Timeout`] if there was no room: nothing is told, but data may be
    /// there in part.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Tag;
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// let mut arrived = window.expect(0..1, Tag(3))?;
    /// arrived.start()?;
    /// window.put_notify(peer, 0, &[7], Tag(3))?; // the peer puts into my piece, too
    /// arrived.wait()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn put_notify<'n>(
        &self,
        to: Rank,
        index: usize,
        data: &[T],
        notice: impl Into<Notice<'n, L::Word>>,
    ) -> Result<(), Error> {
        tries!(self.core.world);
        let (core, notice) = (&self.core, notice.into());
        if let Notice::Tag(tag) = notice {
            if !L::FAST {
                core.world.note_place();
                return self.put_tagged(to, index, data, tag);
            }
            if fast_put_notify(core, to, index, data, tag) {
                return Ok(());
            }
            core.world.note_place();
            return put_notify_declined(self, to, index, data, tag);
        }
        core.world.note_place();
        self.put_counted(to, index, data, notice)
    }

    /// [`put_notify`](Self::put_notify) with a tag: one message.
    pub(crate) fn put_tagged(
        &self,
        to: Rank,
        index: usize,
        data: &[T],
        tag: Tag,
    ) -> Result<(), Error> {
        let (core, world) = (&self.core, self.core.world);
        let piece = core.piece(to)?;
        let immediate = core.check_tag(tag)?;
        let place = (piece.key, piece.inside::<T>(index, data.len())?);
        let (link, bytes) = (world.link(), bytemuck::cast_slice(data));
        let (inline, op) = (core.inline(), Pending::new(link));
        world
            .wait()
            .retry(|| link.put_immediate(to, place, bytes, immediate, inline, &op))
    }

    /// [`put_notify`](Self::put_notify) with a word.
    #[inline(never)]
    fn put_counted(
        &self,
        to: Rank,
        index: usize,
        data: &[T],
        notice: Notice<'_, L::Word>,
    ) -> Result<(), Error> {
        let target = self.to(to, index).notify(notice);
        target.prepare_put::<T>(data.into())?.wait()
    }

    /// Loads elements from `index` of `from`'s piece into `into`, and tells `from` that they have
    /// been read: it may store to them again. Its stores are seen if they were visible to peers
    /// before (a started request, an epoch, a window of the [unified](crate::Model::Unified)
    /// model).
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::WrongWindow`]: nothing has happened. [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Tag;
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.local().set(0, 7)?;
    /// let mut read = window.expect(0..1, Tag(3))?;
    /// read.start()?; // peers see what was set before
    /// world.barrier()?;
    /// let mut got = [0];
    /// window.get_notify(peer, 0, &mut got, Tag(3))?;
    /// read.wait()?; // the peer has read my element: it may change again
    /// window.local().set(0, 8)?;
    /// assert_eq!(got, [7]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn get_notify<'n>(
        &self,
        from: Rank,
        index: usize,
        into: &mut [T],
        notice: impl Into<Notice<'n, L::Word>>,
    ) -> Result<(), Error> {
        called!(self.core.world);
        let notice: Notice<'_, _> = notice.into();
        self.to(from, index)
            .notify(notice)
            .prepare_get::<T>(into.into())?
            .wait()
    }
}

// ---- The fast path of a notified put: see [`window::fast`](crate::window::fast) ----

/// [`declined`](crate::window::fast::declined) for a notified put, whose arguments stay in
/// registers.
#[cold]
#[inline(never)]
fn put_notify_declined<T: Pod, L: Link, S>(
    window: &Window<'_, T, L, S>,
    to: Rank,
    index: usize,
    data: &[T],
    tag: Tag,
) -> Result<(), Error> {
    window.put_tagged(to, index, data, tag)
}

/// Puts `data`, and tells `to` by `tag`; false if it declines.
#[inline(always)]
fn fast_put_notify<T: Pod, L: Link>(
    core: &Core<'_, L>,
    to: Rank,
    index: usize,
    data: &[T],
    tag: Tag,
) -> bool {
    if !core.inline_alike() {
        return false;
    }
    let Some(place) = place_alike::<T, L>(core, to, index, data.len()) else {
        return false;
    };
    let (link, bytes) = (core.world.link(), bytemuck::cast_slice(data));
    tag.0 <= core.world.limits.tag && link.fast_put(to, place, bytes, core.immediate | tag.0)
}
