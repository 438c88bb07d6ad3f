//! Requests for notifications that have not come, and calls that look at those that have come. A
//! program makes a request before it needs it, and starts it for each use. Notifications that no
//! request has matched wait in the unexpected queue: a program may look at them there, or discard
//! them.

use core::ops::Range;

use bytemuck::Pod;
use flagpost_link::{Link, Rank};

use super::{
    Tag,
    request::{ANY_SOURCE, ANY_TAG, Request, Status},
};
use crate::{
    DynamicWindow, Error, Window, epoch::Strategy, immediate::Notification, window::Lines,
};

/// Whose notifications a request matches.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Source {
    /// Any rank's.
    Any,
    /// This rank's.
    Rank(Rank),
}

/// Which tags a request matches.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TagFilter {
    /// Any tag.
    Any,
    /// This tag.
    Tag(Tag),
}

impl From<Rank> for Source {
    fn from(rank: Rank) -> Self {
        Self::Rank(rank)
    }
}

impl From<Tag> for TagFilter {
    fn from(tag: Tag) -> Self {
        Self::Tag(tag)
    }
}

impl<T: Pod, L: Link, S> Window<'_, T, L, S> {
    /// A request for one notification of this window with `tag`, from any rank. Its data arrive in
    /// the elements `range` of this rank's piece. An empty range: there are no data, or data that
    /// are never cached. [`Request::from`] and [`Request::times`] ask for one source, or for more
    /// notifications.
    ///
    /// Costs nothing but the 32 bytes; [`Request::start`] begins to wait.
    ///
    /// After a match with an empty range the cache may hold any of the window's lines, old or new,
    /// though this rank has never read them: since the window was made, or because a chip fetches
    /// ahead, or a link has brought data through it. A program that reads data by
    /// [`Local`](crate::Local) all the same calls [`sync`](Self::sync) first.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::TagTooLarge`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Tag;
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let next = world.rank().next(world.size());
    /// let mut arrived = window.expect(0..1, Tag(1))?;
    /// arrived.start()?;
    /// window.put_notify(next, 0, &[7], Tag(1))?;
    /// arrived.wait()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn expect(
        &self,
        range: Range<usize>,
        tag: impl Into<TagFilter>,
    ) -> Result<Request<'_, L>, Error> {
        called!(self.core.world);
        self.request(self.lines(range)?, tag.into())
    }

    fn request(&self, lines: Lines, tag: TagFilter) -> Result<Request<'_, L>, Error> {
        let max = self.core.world.limits.tag;
        let (tag, any_tag) = match tag {
            TagFilter::Any => (Tag(0), ANY_TAG),
            TagFilter::Tag(tag) if tag.0 <= max => (tag, 0),
            TagFilter::Tag(_) => return Err(Error::TagTooLarge { max }),
        };
        Ok(Request::new(&self.core, lines, tag, any_tag))
    }

    /// The oldest notification of this window from `source` with `tag` that no request has matched
    /// yet, if one has arrived. It stays where it is: a request started for exactly this source and
    /// tag matches it. Does not wait.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::TagTooLarge`]; [`Error::QueueFull`] if the queue holds only
    /// others: match these first; [`Error::PeerLost`] if none has arrived and a rank is lost,
    /// [`Error::PeerLeft`] if the source has left.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Source, Tag, TagFilter};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.put_notify(peer, 0, &[7], Tag(3))?;
    /// let found = loop {
    ///     if let Some(found) = window.probe(Source::Any, TagFilter::Any)? {
    ///         break found;
    ///     }
    /// };
    /// let mut arrived = window.expect(0..1, found.tag)?.from(found.source)?;
    /// arrived.start()?;
    /// assert_eq!(arrived.test()?, Some(found)); // it has arrived: nothing to wait for
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn probe(
        &self,
        source: impl Into<Source>,
        tag: impl Into<TagFilter>,
    ) -> Result<Option<Status>, Error> {
        called!(self.core.world);
        let mut request = self.request(Lines::NONE, tag.into())?.from(source)?;
        let find = |request: &mut Request<'_, L>| request.find();
        request
            .world
            .wait()
            .once(&mut request, find, |request| request.missing(1))
    }

    /// Drops the notifications of this window that have arrived and that no request has matched,
    /// and tells how many.
    ///
    /// For a window that is to be freed although it was told more than anybody wants to know
    /// ([`Error::Unmatched`]).
    ///
    /// # Errors
    /// [`Error::QueueFull`] if others fill the queue: there may be more to drop once these are
    /// matched.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Budget, Error, Tag};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.notify(peer, Tag(3))?;
    /// world.barrier()?;
    /// let freed = window.freeing().wait_within(Budget::UNLIMITED);
    /// let Err(late) = freed else { panic!("no request has matched the notification") };
    /// assert_eq!(late.error, Error::Unmatched { count: 1 });
    /// let window = late.handle.keep();
    /// assert_eq!(window.discard_notifications()?, 1);
    /// window.free()?;
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn discard_notifications(&self) -> Result<u32, Error> {
        called!(self.core.world);
        let mut count = 0_u32;
        self.core.world.sift(self.core.id, || {
            count = count.saturating_add(1);
            true
        })?;
        Ok(count)
    }
}

impl<'w, L: Link, S: Strategy<'w, L>> DynamicWindow<'w, L, S> {
    /// A request for one notification with `tag`, as [`Window::expect`]. Its data arrive in
    /// attached memory: all that is attached is published when it starts, and refreshed when it is
    /// complete.
    ///
    /// # Errors
    /// [`Error::TagTooLarge`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Displacement, DynamicOptions, Tag};
    ///
    /// let window = world.dynamic(DynamicOptions::default())?;
    /// let memory = world.reserve(64)?;
    /// let mine = window.attach(&memory)?;
    /// let mut all = [0; 2];
    /// world.allgather(mine.get(), &mut all)?; // peers must be told the displacement
    /// let mut arrived = window.expect(Tag(3))?;
    /// arrived.start()?;
    /// let next = world.rank().next(world.size());
    /// let its = window.at(window.window(), Displacement::new(all[next.index()])); // no epoch
    /// its.to(next, 1).notify(Tag(3)).put(&[7_u32])?.wait()?;
    /// arrived.wait()?;
    /// let mut got = [0_u32; 2];
    /// window.read(mine, &mut got)?;
    /// assert_eq!(got, [0, 7]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn expect(&self, tag: impl Into<TagFilter>) -> Result<Request<'_, L>, Error> {
        let window = self.window();
        called!(window.core.world);
        window.request(window.core.all(), tag.into())
    }
}

impl<L: Link> Request<'_, L> {
    /// The same request for notifications from `source` only. Before it is started.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`]. [`Error::RequestActive`]: it was started, and is
    /// [cancelled](Self::cancel).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rank, Tag};
    ///
    /// let window = world.allocate::<u32>(0)?;
    /// let mut first = window.expect(0..0, Tag(1))?.from(Rank::new(0))?;
    /// first.start()?;
    /// for to in [0, 1].map(Rank::new) {
    ///     window.notify(to, Tag(1))?;
    /// }
    /// assert_eq!(first.wait()?.source, Rank::new(0)); // in whatever order they have arrived
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn from(mut self, source: impl Into<Source>) -> Result<Self, Error> {
        if self.is_started() {
            called!(self.world);
            return Err(self.end_for(Error::RequestActive));
        }
        self.left = self.expected;
        match source.into() {
            Source::Any => self.start |= ANY_SOURCE,
            Source::Rank(source) => {
                let (world, limits) = (self.world, self.world.limits);
                world.check_rank(source)?;
                self.wanted = limits.pack(Notification {
                    source,
                    ..limits.unpack(self.wanted)
                });
                self.start &= !ANY_SOURCE;
            }
        }
        Ok(self)
    }

    /// The same request for `count` notifications: it is complete after the last one. Before it is
    /// started.
    ///
    /// # Errors
    /// [`Error::CountZero`]. [`Error::RequestActive`]: it was started, and is
    /// [cancelled](Self::cancel).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Tag, TagFilter};
    ///
    /// let window = world.allocate::<u32>(4)?;
    /// let next = world.rank().next(world.size());
    /// let mut two = window.expect(0..4, TagFilter::Any)?.times(2)?;
    /// two.start()?;
    /// window.put_notify(next, 0, &[7], Tag(1))?;
    /// window.put_notify(next, 3, &[8], Tag(2))?;
    /// assert_eq!(two.wait()?.tag, Tag(2)); // of the last one
    /// assert_eq!((window.local().get(0)?, window.local().get(3)?), (7, 8));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn times(mut self, count: u16) -> Result<Self, Error> {
        if self.is_started() {
            called!(self.world);
            return Err(self.end_for(Error::RequestActive));
        }
        if count == 0 {
            return Err(Error::CountZero);
        }
        (self.expected, self.left) = (count, count);
        Ok(self)
    }

    /// Ends a started request that nobody would have any more, and gives `error`.
    #[track_caller]
    fn end_for(&mut self, error: Error) -> Error {
        self.cancel().err().unwrap_or(error)
    }

    /// The oldest notification that it would match, which stays where it is.
    fn find(&self) -> Result<Option<Status>, Error> {
        let world = self.world;
        if let Some(immediate) = world.queue.find(|immediate| self.matches(immediate)) {
            return Ok(Some(world.status(immediate)));
        }
        while point!(ROOM "what is taken from the link must be kept":
            "notify.probe.room", !world.queue.has_no_spare(); else true)
        {
            let Some(immediate) = world.next_notification(Some(self.wanted), self.asks_for())
            else {
                return Ok(None);
            };
            world.queue.push(immediate);
            if self.matches(immediate) {
                return Ok(Some(world.status(immediate)));
            }
        }
        let capacity = world.queue.capacity();
        Err(Error::QueueFull { capacity })
    }
}
