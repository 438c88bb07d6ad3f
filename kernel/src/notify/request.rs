//! Persistent requests for notifications. A request names the notifications that it matches, how
//! many, and the lines that their data are for. It is one line of memory, which its user owns, so
//! matching is fast and there is no list of requests. [`Request`] has a drawing of its life.
//!
//! # Cost
//! From cold, with one request started: [`test`](Request::test) touches the request's line, the
//! line of the unexpected queue's head (`queue`), the line of the ring, and lines of the queue
//! after the second notification that waits there. When it completes, a request with a range also
//! touches 3 lines of its window, to invalidate and to allow stores there. Measured:
//! `tests/host/lines.rs`.

use core::cell::Cell;

use flagpost_link::{Expected, Link, Rank, Wants};

use super::Tag;
use crate::{
    Budget, Error, Missing, Timeout, Waiting, World,
    caller::Caller,
    complete::{Complete, Sealed},
    immediate::{Notification, unpack, wildcards},
    window::{Closed, Core, Lines, fast::declined},
};

/// The last notification that a request matched.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Status {
    /// The rank that sent it.
    pub source: Rank,
    /// Its tag.
    pub tag: Tag,
}

impl From<Notification> for Status {
    fn from(Notification { source, tag, .. }: Notification) -> Self {
        Self { source, tag }
    }
}

const STARTED: u32 = Closed::STARTED;
pub(super) const ANY_SOURCE: u32 = Closed::ANY_SOURCE;
pub(super) const ANY_TAG: u32 = Closed::ANY_TAG;

/// A persistent request: completes when `count` notifications have matched it. 32 bytes, one line.
///
/// # Life
/// ```text
///   Window ─── expect ───┐
///                        ▼
///                    ┌───────┐ from, times, status
///        ┌── free ───│ made  │──┐
///        │           └───────┘◄─┘
///        │       start │   ▲ test: complete; wait, wait_within;
///        ▼             │   │ test_any, wait_any, wait_all; cancel
///      gone            ▼   │
///        ▲           ┌─────────┐ test: None; status;
///        └── free ───│ started │──┐ the budget ran out
///                    └─────────┘◄─┘
/// ```
/// While it is started this rank does not store to its lines. One that is dropped then keeps them
/// closed.
#[derive(Debug)]
#[repr(align(32))]
#[must_use = "a request does nothing until it is started"]
pub struct Request<'r, L> {
    core: &'r Core<'r, L>,
    /// Beside the core, lest matching touch that.
    pub(super) world: &'r World<'r, L>,
    /// The immediate that matches; where its source or tag does not matter, that of the last match.
    pub(super) wanted: u32,
    pub(super) start: u32,
    end: u32,
    pub(super) expected: u16,
    /// How many are missing.
    pub(super) left: u16,
}

// [NA] IV-B: the request is one of the two lines that matching must touch.
const _: () = assert!(size_of::<Request<'_, ()>>() == 32 && align_of::<Request<'_, ()>>() == 32);

impl<L: Link> World<'_, L> {
    pub(super) fn status(&self, immediate: u32) -> Status {
        // Bits from the queue's head, which matching has touched anyway.
        unpack(self.queue.tag_bits(), immediate).into()
    }
}

impl<'r, L: Link> Request<'r, L> {
    /// For one notification with `tag`, from any rank.
    pub(super) fn new(core: &'r Core<'r, L>, lines: Lines, tag: Tag, any_tag: u32) -> Self {
        let Lines { start, end } = match lines {
            lines if lines.is_empty() => Lines::NONE,
            lines => lines,
        };
        let wanted = Notification {
            source: Rank::new(0),
            window: core.id,
            tag,
        };
        Self {
            core,
            world: core.world,
            wanted: core.world.limits.pack(wanted),
            start: start.min(Closed::LAST) | ANY_SOURCE | any_tag,
            end,
            expected: 1,
            left: 1,
        }
    }

    /// Starts to wait for `count` notifications anew. Writes this rank's dirty lines of the
    /// request's range back; until it completes, this rank's stores there are refused.
    ///
    /// Notifications that arrived before count.
    ///
    /// # Errors
    /// [`Error::RequestActive`]; [`Error::RequestsOverlap`] if a notification could match this
    /// request and another started one of this window, whose range is not empty;
    /// [`Error::TooManyRequests`], unless this one's range is empty.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Error, Tag};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// let mut arrived = window.expect(0..1, Tag(3))?; // made once,
    /// for round in 0..2 {
    ///     arrived.start()?; // started for each use
    ///     assert_eq!(window.local().set(0, 9), Err(Error::Exposed)); // the peer may put
    ///     window.put_notify(peer, 0, &[round], Tag(3))?;
    ///     arrived.wait()?;
    ///     assert_eq!(window.local().get(0)?, round);
    ///     world.barrier()?;
    /// }
    /// # Ok(())
    /// # });
    /// ```
    #[inline]
    #[track_caller]
    pub fn start(&mut self) -> Result<(), Error> {
        tries!(self.world, looks);
        if let Some(place) = fast_room(self) {
            return self.open(Some(place));
        }
        self.world.note_place();
        declined(move || self.start_beside())
    }

    /// [`start`](Self::start), beside any others.
    #[inline(never)]
    fn start_beside(&mut self) -> Result<(), Error> {
        if self.is_started() {
            return Err(Error::RequestActive);
        }
        let (tag_bits, mut request) = (self.world.queue.tag_bits(), self.closed());
        request.wanted |= STARTED;
        self.open(self.core.requested.room_for(request, tag_bits)?)
    }

    #[inline(always)]
    fn open(&mut self, place: Option<&Cell<Closed>>) -> Result<(), Error> {
        self.expected(Expected::Starts);
        point!(PUBLISH "no dirty line travels over what arrives":
            "notify.start.publish", self.core.publish(self.lines())?);
        self.wanted |= STARTED;
        if let Some(open) = place {
            open.set(self.closed());
        }
        self.left = self.expected;
        Ok(())
    }

    /// True if it is started and not complete.
    pub fn is_started(&self) -> bool {
        self.wanted & STARTED != 0
    }

    /// The last notification that it matched since it was started, complete or not.
    pub fn status(&self) -> Option<Status> {
        (self.left < self.expected).then(|| self.world.status(self.wanted & !STARTED))
    }

    /// The last notification that it matched, if the request is complete. Does not wait.
    ///
    /// A complete request is not started any more. A loop of tests keeps the processor: where ranks
    /// share one, wait within a short budget, by [`wait_within`](Self::wait_within).
    ///
    /// # Errors
    /// [`Error::RequestInactive`]; [`Error::QueueFull`] if the queue holds only what others must
    /// match first; [`Error::PeerLost`] if it is not complete and a rank is lost,
    /// [`Error::PeerLeft`] if its source has left. (The request stays started.)
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
    /// window.put_notify(peer, 0, &[7], Tag(3))?;
    /// while arrived.test()?.is_none() {
    ///     // Something else is done here.
    /// }
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[inline(always)]
    #[track_caller]
    pub fn test(&mut self) -> Result<Option<Status>, Error> {
        tries!(self.world, looks);
        if L::FAST
            && let Some(status) = fast_test(self, 1)
        {
            return Ok(Some(status));
        }
        self.test_long(Caller::place())
    }

    /// [`test`](Self::test).
    #[inline(never)]
    fn test_long(&mut self, place: Caller) -> Result<Option<Status>, Error> {
        let world = self.world;
        // A hit touches nothing of the world but the queue's head.
        let missing = |this: &Self| {
            world.place.set(place);
            this.missing(this.left())
        };
        let found = world.wait().once(self, Self::test_all, missing);
        if found.is_err() {
            world.place.set(place);
        }
        found
    }

    pub(super) fn missing(&self, left: u32) -> Timeout {
        Timeout {
            waiting: Waiting::Notification,
            missing: Missing::among(self.source().into_iter(), left),
        }
    }

    /// Takes notifications until the request is complete, or there are none.
    #[inline(never)]
    fn test_all(&mut self) -> Result<Option<Status>, Error> {
        if !self.is_started() {
            return Err(Error::RequestInactive);
        }
        let (world, wants) = (self.world, self.asks_for());
        order!("G1: a core may fetch lines ahead before the match": "notify.test.match<refresh",
            {
                point!(ORDER "G2: what has arrived earlier comes first":
                    "notify.test.queue", self.take_queued());
                while self.left > 0 {
                    if point!(ROOM "what is taken from the link must be kept":
                        "notify.test.room", world.queue.has_no_spare(); else false) {
                        let capacity = world.queue.capacity();
                        return Err(Error::QueueFull { capacity });
                    }
                    let Some(immediate) = world.next_notification(Some(self.wanted), wants) else {
                        return Ok(None);
                    };
                    if !self.takes(immediate) {
                        world.queue.push(immediate);
                    }
                }
            },
            point!(REFRESH "G1: this rank finds what has arrived":
                "notify.test.refresh", self.refresh()?));
        self.ends();
        self.close();
        Ok(self.status())
    }

    /// Waits until the request is complete.
    ///
    /// # Errors
    /// [`Error::RequestInactive`]; [`Error::QueueFull`] if the queue holds only what others must
    /// match first; [`Error::PeerLost`], [`Error::PeerLeft`]. The request stays started.
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
    /// window.put_notify(peer, 0, &[7], Tag(3))?;
    /// let status = arrived.wait()?;
    /// assert_eq!((status.source, window.local().get(0)?), (peer, 7));
    /// # Ok(())
    /// # });
    /// ```
    #[inline]
    #[track_caller]
    pub fn wait(&mut self) -> Result<Status, Error> {
        tries!(self.world, looks);
        if L::FAST
            && let Some(status) = fast_test(self, L::LOOKS)
        {
            return Ok(status);
        }
        self.wait_long(Caller::place())
    }

    /// [`wait`](Self::wait), as long as `budget` says.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait); [`Error::Timeout`] with how many notifications are missing,
    /// and from which rank, unless any rank's would do. The request stays started.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Budget, Error, Rank, Tag};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let mut never = window.expect(0..0, Tag(1))?.from(Rank::new(1))?;
    /// never.start()?;
    /// let late = never.wait_within(Budget::microseconds(0)); // polls once
    /// let Err(Error::Timeout(late)) = late else { panic!("no rank sends this") };
    /// assert!(late.missing.ranks().eq([Rank::new(1)])); // it is named
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn wait_within(&mut self, budget: Budget) -> Result<Status, Error> {
        tries!(self.world, looks);
        let place = Caller::place();
        self.world.within(budget, || self.wait_long(place))
    }

    #[inline(never)]
    fn wait_long(&mut self, place: Caller) -> Result<Status, Error> {
        let (world, source, left) = (self.world, self.source(), &Cell::new(0));
        world.place.set(place);
        world.wait().taking().until(
            || {
                if L::FAST
                    && let Some(status) = fast_test(self, 1)
                {
                    return Ok(Some(status));
                }
                let answer = self.test_all();
                left.set(self.left());
                answer
            },
            move || Timeout {
                waiting: Waiting::Notification,
                missing: Missing::among(source.into_iter(), left.get()),
            },
        )
    }

    /// The first place for closed lines, if it is free.
    #[inline(always)]
    fn first_room(&self) -> Option<&'r Cell<Closed>> {
        self.core.requested.first_room()
    }

    /// True if it is started and one notification is missing.
    #[inline(always)]
    fn lacks_one(&self) -> bool {
        self.is_started() && self.left == 1
    }

    /// True if it has the first place for closed lines, or needs none.
    #[inline(always)]
    fn may_complete(&self) -> bool {
        self.end == 0 || self.core.requested.has_first(self.wanted)
    }

    /// The notification that it waits for, if it waits for just one.
    #[inline(always)]
    fn next(&self) -> u32 {
        self.wanted & !STARTED
    }

    /// The last notification was the [next](Self::next) one: ends the request, which
    /// [may complete](Self::may_complete).
    #[inline(always)]
    fn complete_first(&mut self) -> Status {
        self.left = 0;
        if self.end != 0 {
            self.core.requested.close_first();
        }
        self.wanted &= !STARTED;
        self.world.status(self.wanted)
    }

    /// How many notifications are missing.
    fn left(&self) -> u32 {
        u32::from(self.left)
    }

    /// Whose they are; none if anybody's.
    fn source(&self) -> Option<Rank> {
        (self.start & ANY_SOURCE == 0).then(|| self.world.status(self.wanted & !STARTED).source)
    }

    /// Whose it asks the link for.
    #[inline]
    pub(super) fn asks_for(&self) -> Wants {
        self.source().map_or(Wants::Any, Wants::Of)
    }

    /// Gives the request back, [cancelled](Self::cancel) if it is started.
    ///
    /// # Errors
    /// None but those of the link's own.
    #[track_caller]
    pub fn free(mut self) -> Result<(), Error> {
        looks!(self.world);
        if self.is_started() {
            self.cancel()?;
        }
        Ok(())
    }

    /// Ends a started request without waiting: this rank's stores to its lines are allowed again.
    /// Only for a program that knows that no peer will put there any more. All that has matched is
    /// gone. Takes what has arrived from the link, as far as the unexpected queue has room: data
    /// that travel with notifications beyond that come later.
    ///
    /// A started request that is dropped instead keeps its lines closed, and its place taken.
    ///
    /// # Errors
    /// [`Error::RequestInactive`].
    #[track_caller]
    pub fn cancel(&mut self) -> Result<(), Error> {
        looks!(self.world);
        if !self.is_started() {
            return Err(Error::RequestInactive);
        }
        point!(PROGRESS "data that have arrived do not come over later stores":
            "notify.cancel.take", _ = self.world.progress());
        point!(REFRESH "peers may have put: stores do not merge into old lines":
            "notify.cancel.refresh", self.refresh()?);
        self.expected(Expected::Ends(None));
        self.close();
        Ok(())
    }

    /// Takes what it matches from the unexpected queue.
    fn take_queued(&mut self) {
        if !self.world.queue.is_empty() {
            self.take_some();
        }
    }

    #[inline(never)]
    fn take_some(&mut self) {
        let world = self.world;
        world.queue.take_if(|immediate| self.takes(immediate));
    }

    /// True if a notification is for this request: as a rule it is just the one.
    pub(super) fn matches(&self, immediate: u32) -> bool {
        (immediate ^ self.wanted) & !STARTED == 0
            || self.start & (ANY_SOURCE | ANY_TAG) != 0 && self.matches_any(immediate)
    }

    /// The same for a request whose source or tag does not matter.
    fn matches_any(&self, immediate: u32) -> bool {
        let any = |bit| self.start & bit != 0;
        let tag_bits = self.world.queue.tag_bits();
        let open = wildcards(tag_bits, any(ANY_SOURCE), any(ANY_TAG));
        (immediate ^ self.wanted) & !(open | STARTED) == 0
    }

    /// Counts a notification if it matches and is still wanted.
    #[inline]
    fn takes(&mut self, immediate: u32) -> bool {
        let takes = self.left > 0 && self.matches(immediate);
        if takes {
            self.left = self.left.saturating_sub(1);
            self.wanted = immediate | STARTED;
        }
        takes
    }

    pub(crate) fn lines(&self) -> Lines {
        self.closed().lines()
    }

    /// Its words that the window keeps while it is started.
    #[inline(always)]
    fn closed(&self) -> Closed {
        Closed {
            wanted: self.wanted,
            start: self.start,
            end: self.end,
        }
    }

    /// Peers' puts there are seen from now on.
    fn refresh(&self) -> Result<(), Error> {
        self.core.refresh(self.lines())
    }

    /// Tells a link that listens about its bytes.
    #[inline(always)]
    fn expected(&self, what: Expected<'_>) {
        self.core.expected_in(self.lines(), what);
    }

    /// Lets a link that listens find reads before this end.
    #[inline(always)]
    fn ends(&self) {
        if !Core::<L>::WATCHED {
            return; // and touches no line of the window
        }
        let (link, key) = (self.world.link(), self.core.own.key);
        let start = (self.lines().start as usize).wrapping_mul(L::LINE);
        let now = |distance: usize, into: &mut [u8]| {
            let _ = link.read_local(key, start.wrapping_add(distance), into);
        };
        self.expected(Expected::Ends(Some(&now)));
    }

    /// It is not started any more.
    #[inline]
    fn close(&mut self) {
        let tag_bits = self.world.queue.tag_bits();
        self.core.requested.close(self.closed(), tag_bits);
        self.wanted &= !STARTED;
    }
}

impl<L> Sealed for Request<'_, L> {}

impl<'s, 'r: 's, L: Link> Complete<'s, L> for Request<'r, L> {
    fn world(&self) -> &'s World<'s, L> {
        self.world
    }

    fn is_open(&self) -> bool {
        self.is_started()
    }

    fn poll(&mut self) -> Result<bool, Error> {
        point!(ORDER "G2: what has arrived earlier comes first":
            "notify.several.queue", self.take_queued());
        if self.left > 0 {
            return Ok(false);
        }
        point!(REFRESH "G1: after the notification was taken":
            "notify.several.refresh", self.refresh()?);
        self.ends();
        self.close();
        Ok(true)
    }

    fn late(&self) -> Timeout {
        self.missing(self.left())
    }

    fn wants(&self) -> Option<Wants> {
        Some(self.asks_for())
    }

    fn offer(&mut self, immediate: u32) -> bool {
        self.takes(immediate)
    }
}

// ---- Fast paths: see [`window::fast`](crate::window::fast) ----

/// The first place for the closed lines of a request, if it may take that.
#[inline(always)]
fn fast_room<'r, L: Link>(request: &Request<'r, L>) -> Option<&'r Cell<Closed>> {
    let usual = !request.is_started() && !request.lines().is_empty();
    request.first_room().filter(|_| usual)
}

/// Completes a request whose last notification is the next one that arrives, within this many
/// `looks`.
#[inline(always)]
fn fast_test<L: Link>(request: &mut Request<'_, L>, looks: u32) -> Option<Status> {
    if request.lacks_one()
        && request.may_complete()
        && request.world.queue.is_empty()
        && request.world.link().fast_take(request.next(), looks)
    {
        return Some(request.complete_first());
    }
    None
}
