//! Notified accesses: one call moves the data and tells the target. None needs an epoch.
//!
//! # What there is
//! | | blocks | request |
//! |---|---|---|
//! | nothing but a notification | [`notify`](Window::notify) | `rput_notify` of no elements |
//! | store | [`put_notify`](Window::put_notify) | [`rput_notify`](Window::rput_notify) |
//! | load | [`get_notify`](Window::get_notify) | [`rget_notify`](Window::rget_notify) |
//! | combine | [`accumulate_notify`] | [`raccumulate_notify`] |
//! | combine, and load the old values | [`get_accumulate_notify`] | [`rget_accumulate_notify`] |
//! | the same, one element | [`fetch_and_op_notify`] | [`rfetch_and_op_notify`] |
//! | store one if it is as expected | [`compare_and_swap_notify`] | [`rcompare_and_swap_notify`] |
//!
//! [`accumulate_notify`]: Window::accumulate_notify
//! [`raccumulate_notify`]: Window::raccumulate_notify
//! [`get_accumulate_notify`]: Window::get_accumulate_notify
//! [`rget_accumulate_notify`]: Window::rget_accumulate_notify
//! [`fetch_and_op_notify`]: Window::fetch_and_op_notify
//! [`rfetch_and_op_notify`]: Window::rfetch_and_op_notify
//! [`compare_and_swap_notify`]: Window::compare_and_swap_notify
//! [`rcompare_and_swap_notify`]: Window::rcompare_and_swap_notify
//!
//! # What a notice tells
//! | of | the target that finds it |
//! |---|---|
//! | a put, an accumulate | finds the elements changed |
//! | a get | may reuse the memory: it has been read |
//!
//! And so for all that the same rank did to the same target before; by a counter, a signal or an
//! event the target is not told of data that [travel inline](super#inline-data) with an earlier
//! tag. As everywhere, nothing orders a put before accumulates and gets of the same elements but a
//! flush, or an answer: an accumulate that comes behind a put without may be lost, or fetch what
//! was before it. Where the target caches its piece, it names the elements by a request's range
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

#![allow(
    clippy::result_large_err,
    reason = "requests go back to their user, without a heap"
)]

use bytemuck::Pod;
use flagpost_link::{Link, Pending, Rank};

use super::{Tag, fast, notice::Notice};
use crate::{
    Error, Window,
    rma::{Element, Fetch, Integer, Operation, Request, all, atomic::Change, prepare},
};

impl<'w, T: Pod, L: Link, S> Window<'w, T, L, S> {
    /// Tells `to`, and moves nothing. Behind all that this rank did to `to` before, as the
    /// [module](self) says.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::TagTooLarge`], [`Error::NoSuchCounter`]: nothing was sent.
    /// [`Error::PeerLost`].
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
    pub fn notify(&self, to: Rank, notice: impl Into<Notice>) -> Result<(), Error> {
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
    /// [`Error::NoSuchCounter`]: nothing was sent. [`Error::PeerLost`]. Within a budget
    /// [`Error::Timeout`] if there was no room: nothing is told, but data may be there in part.
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
    pub fn put_notify(
        &self,
        to: Rank,
        index: usize,
        data: &[T],
        notice: impl Into<Notice>,
    ) -> Result<(), Error> {
        tries!(self.core.world);
        let (core, notice) = (&self.core, notice.into());
        if let Notice::Tag(tag) = notice {
            if !L::COHERENT {
                core.world.note_place();
                return self.put_tagged(to, index, data, tag);
            }
            if fast::put_notify(core, to, index, data, tag) {
                return Ok(());
            }
            core.world.note_place();
            return fast::put_notify_declined(self, to, index, data, tag);
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
        let (inline, op) = (core.inline.get(), Pending::new(link));
        world
            .wait()
            .retry(|| link.put_immediate(to, place, bytes, immediate, inline, &op))
    }

    /// [`put_notify`](Self::put_notify) with a counter or a signal.
    #[inline(never)]
    fn put_counted(&self, to: Rank, index: usize, data: &[T], notice: Notice) -> Result<(), Error> {
        let notice = self.core.check_notice(to, notice)?;
        prepare::put::<T, T, L>(&self.core, to, index, all(data), data.into())?
            .telling(notice)
            .wait()
    }

    /// Begins a [`put_notify`](Self::put_notify). Does not block. The data have left when the
    /// request is done: the slice may be changed, and the target is told.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::PeerLost`].
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
    /// let request = window.rput_notify(peer, 0, &[7], Tag(3))?;
    /// request.wait()?; // the slice may be changed, and the peer is told
    /// arrived.wait()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn rput_notify<'r>(
        &'r self,
        to: Rank,
        index: usize,
        data: &'r [T],
        notice: impl Into<Notice>,
    ) -> Result<Request<'r, 'w, L>, Error> {
        called!(self.core.world);
        let notice = self.core.check_notice(to, notice.into())?;
        prepare::put::<T, T, L>(&self.core, to, index, all(data), data.into())?
            .carrying(notice)
            .begin()
    }

    /// Loads elements from `index` of `from`'s piece into `into`, and tells `from` that they have
    /// been read: it may store to them again. What it stored is seen if it was visible to peers
    /// before (a started request, an epoch, a window of the [unified](crate::Model::Unified)
    /// model).
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`]: nothing has happened. [`Error::PeerLost`].
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
    pub fn get_notify(
        &self,
        from: Rank,
        index: usize,
        into: &mut [T],
        notice: impl Into<Notice>,
    ) -> Result<(), Error> {
        called!(self.core.world);
        self.prepare_get(from, index, into, notice.into())?.wait()
    }

    /// Begins a [`get_notify`](Self::get_notify). Does not block. The slice is filled, and `from`
    /// is told, when the request is done.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::PeerLost`].
    #[track_caller]
    pub fn rget_notify<'r>(
        &'r self,
        from: Rank,
        index: usize,
        into: &'r mut [T],
        notice: impl Into<Notice>,
    ) -> Result<Request<'r, 'w, L>, Error> {
        called!(self.core.world);
        self.prepare_get(from, index, into, notice.into())?.begin()
    }

    fn prepare_get<'r>(
        &'r self,
        from: Rank,
        index: usize,
        into: &'r mut [T],
        notice: Notice,
    ) -> Result<Request<'r, 'w, L>, Error> {
        let notice = self.core.check_notice(from, notice)?;
        let layout = all(into);
        let request = prepare::get::<T, T, L>(&self.core, from, index, layout, into.into())?;
        Ok(request.telling(notice))
    }

    /// Combines the elements from `index` of `to`'s piece with `data`, and tells `to`.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::UnitUnaligned`]: nothing has happened.
    /// [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Rank, Tag, rma::Operation};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let mut all = window.expect(0..1, Tag(3))?.times(3)?;
    /// all.start()?;
    /// for rank in [0, 1, 2].map(Rank::new) {
    ///     window.accumulate_notify(rank, 0, &[5], Operation::SUM, Tag(3))?;
    /// }
    /// all.wait()?;
    /// assert_eq!(window.local().get(0)?, 15);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn accumulate_notify(
        &self,
        to: Rank,
        index: usize,
        data: &[T],
        operation: Operation<T>,
        notice: impl Into<Notice>,
    ) -> Result<(), Error>
    where
        T: Element,
    {
        called!(self.core.world);
        self.prepare_accumulate((to, index), data, operation, None, notice.into())?
            .wait()
    }

    /// Begins an [`accumulate_notify`](Self::accumulate_notify). Does not block. The elements are
    /// changed, and the target is told, when the request is done.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::PeerLost`], [`Error::UnitUnaligned`].
    #[track_caller]
    pub fn raccumulate_notify<'r>(
        &'r self,
        to: Rank,
        index: usize,
        data: &'r [T],
        operation: Operation<T>,
        notice: impl Into<Notice>,
    ) -> Result<Request<'r, 'w, L>, Error>
    where
        T: Element,
    {
        called!(self.core.world);
        self.prepare_accumulate((to, index), data, operation, None, notice.into())?
            .begin()
    }

    /// [`accumulate_notify`](Self::accumulate_notify) to an element of a rank, and what the
    /// elements held before goes to `fetched`.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::UnitUnaligned`], [`Error::LengthsDiffer`]: nothing has
    /// happened. [`Error::PeerLost`].
    #[track_caller]
    pub fn get_accumulate_notify(
        &self,
        at: (Rank, usize),
        data: &[T],
        operation: Operation<T>,
        fetched: &mut [T],
        notice: impl Into<Notice>,
    ) -> Result<(), Error>
    where
        T: Element,
    {
        called!(self.core.world);
        self.prepare_accumulate(at, data, operation, Some(fetched), notice.into())?
            .wait()
    }

    /// Begins a [`get_accumulate_notify`](Self::get_accumulate_notify). Does not block. The
    /// elements are changed, the slice is filled, and the target is told, when the request is done.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::PeerLost`],
    /// [`Error::UnitUnaligned`], [`Error::LengthsDiffer`].
    #[track_caller]
    pub fn rget_accumulate_notify<'r>(
        &'r self,
        at: (Rank, usize),
        data: &'r [T],
        operation: Operation<T>,
        fetched: &'r mut [T],
        notice: impl Into<Notice>,
    ) -> Result<Request<'r, 'w, L>, Error>
    where
        T: Element,
    {
        called!(self.core.world);
        self.prepare_accumulate(at, data, operation, Some(fetched), notice.into())?
            .begin()
    }

    fn prepare_accumulate<'r>(
        &'r self,
        at: (Rank, usize),
        data: &'r [T],
        operation: Operation<T>,
        fetched: Option<&'r mut [T]>,
        notice: Notice,
    ) -> Result<Request<'r, 'w, L>, Error>
    where
        T: Element,
    {
        let notice = self.core.check_notice(at.0, notice)?;
        let layout = fetched.as_deref().map_or(all(data), all);
        let fetched = fetched.map(Into::into);
        let (core, data) = (&self.core, data.into());
        let request = prepare::accumulate(core, at, layout, data, operation, fetched)?;
        Ok(request.telling(notice))
    }

    /// Combines element `index` of `to`'s piece with `operand`, tells `to`, and gives what the
    /// element held before.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::UnitUnaligned`]: nothing has happened.
    /// [`Error::PeerLost`].
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
    /// let before = window.fetch_and_op_notify(peer, 0, 7, Operation::SUM, Tag(3))?;
    /// told.wait()?;
    /// assert_eq!((before, window.local().get(0)?), (0, 7));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn fetch_and_op_notify(
        &self,
        to: Rank,
        index: usize,
        operand: T,
        operation: Operation<T>,
        notice: impl Into<Notice>,
    ) -> Result<T, Error>
    where
        T: Element,
    {
        called!(self.core.world);
        self.prepare_fetch(to, index, Change::new(operand, operation), notice.into())?
            .wait()
    }

    /// Begins a [`fetch_and_op_notify`](Self::fetch_and_op_notify). Does not block. The element is
    /// changed, and `to` is told, when the request is done.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::PeerLost`], [`Error::UnitUnaligned`].
    #[track_caller]
    pub fn rfetch_and_op_notify(
        &self,
        to: Rank,
        index: usize,
        operand: T,
        operation: Operation<T>,
        notice: impl Into<Notice>,
    ) -> Result<Fetch<'_, 'w, T, L>, Error>
    where
        T: Element,
    {
        called!(self.core.world);
        self.prepare_fetch(to, index, Change::new(operand, operation), notice.into())?
            .begin()
    }

    /// Stores `new` in element `index` of `to`'s piece if it holds `expected`, tells `to` either
    /// way, and gives what it held before.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::UnitUnaligned`]: nothing has happened.
    /// [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Tag;
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// let mut told = window.expect(0..1, Tag(3))?;
    /// told.start()?;
    /// let before = window.compare_and_swap_notify(peer, 0, 0, 7, Tag(3))?;
    /// told.wait()?;
    /// assert_eq!((before, window.local().get(0)?), (0, 7));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn compare_and_swap_notify(
        &self,
        to: Rank,
        index: usize,
        expected: T,
        new: T,
        notice: impl Into<Notice>,
    ) -> Result<T, Error>
    where
        T: Integer,
    {
        called!(self.core.world);
        let change = Change::CompareSwap { expected, new };
        self.prepare_fetch(to, index, change, notice.into())?.wait()
    }

    /// Begins a [`compare_and_swap_notify`](Self::compare_and_swap_notify). Does not block. The
    /// element is compared, and `to` is told, when the request is done.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`],
    /// [`Error::NoSuchCounter`], [`Error::PeerLost`], [`Error::UnitUnaligned`].
    #[track_caller]
    pub fn rcompare_and_swap_notify(
        &self,
        to: Rank,
        index: usize,
        expected: T,
        new: T,
        notice: impl Into<Notice>,
    ) -> Result<Fetch<'_, 'w, T, L>, Error>
    where
        T: Integer,
    {
        called!(self.core.world);
        let change = Change::CompareSwap { expected, new };
        self.prepare_fetch(to, index, change, notice.into())?
            .begin()
    }

    fn prepare_fetch(
        &self,
        to: Rank,
        index: usize,
        change: Change<T>,
        notice: Notice,
    ) -> Result<Fetch<'_, 'w, T, L>, Error>
    where
        T: Element,
    {
        let notice = self.core.check_notice(to, notice)?;
        Ok(prepare::fetch(&self.core, to, index, change)?.telling(notice))
    }
}
