//! Persistent requests for notifications.

use core::{cell::Cell, ops::Range};

use bytemuck::Pod;
use flagpost_link::{Link, Rank, order, point};

use super::{Notification, Tag};
use crate::{
    Error, Missing, Timeout, Waiting, Window,
    window::{Core, Lines, REQUESTS},
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

/// The last notification that a request matched.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Status {
    /// Who sent it.
    pub source: Rank,
    /// Its tag.
    pub tag: Tag,
}

/// No tag has all bits set: tags have at most 25.
const ANY_TAG: u32 = u32::MAX;

/// No rank has this number: a world has at most 65,535 ranks.
const ANY_SOURCE: u16 = u16::MAX;

/// Not started: no place among the window's started requests.
const INACTIVE: u8 = u8::MAX;

/// A persistent request: completes when `count` notifications have matched it. 32 bytes.
#[derive(Debug)]
#[must_use = "a request does nothing until it is started"]
pub struct Request<'r, L> {
    core: &'r Core<'r, L>,
    start: u32,
    end: u32,
    tag: u32,
    /// The last match.
    last: u32,
    source: u16,
    expected: u16,
    matched: u16,
    /// Its place among the window's started requests.
    place: u8,
}

// [NA] IV-B: the request is one of the two lines that matching must touch.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Request<'_, ()>>() == 32);

impl<T: Pod, L: Link, S> Window<'_, T, L, S> {
    /// A request for `count` notifications of this window from `source` with `tag`, whose data arrive in
    /// the elements `range` of the own piece (an empty range: no data, or data that are never cached).
    ///
    /// Costs nothing but the 32 bytes; [`Request::start`] begins to wait.
    ///
    /// # Errors
    /// [`Error::CountZero`], [`Error::OutOfRange`], [`Error::NoSuchRank`], [`Error::TagTooLarge`].
    pub fn expect(
        &self,
        range: Range<usize>,
        source: impl Into<Source>,
        tag: impl Into<TagFilter>,
        count: u16,
    ) -> Result<Request<'_, L>, Error> {
        let world = self.core.world;
        if count == 0 {
            return Err(Error::CountZero);
        }
        let source = match source.into() {
            Source::Any => ANY_SOURCE,
            Source::Rank(rank) => {
                world.check_rank(rank)?;
                rank.get()
            }
        };
        let max = world.limits().tag;
        let tag = match tag.into() {
            TagFilter::Any => ANY_TAG,
            TagFilter::Tag(tag) if tag.0 <= max => tag.0,
            TagFilter::Tag(_) => return Err(Error::TagTooLarge { max }),
        };
        let lines = self.lines(range)?;
        Ok(Request {
            core: &self.core,
            start: lines.start,
            end: lines.end,
            tag,
            last: 0,
            source,
            expected: count,
            matched: 0,
            place: INACTIVE,
        })
    }
}

impl<L: Link> Request<'_, L> {
    /// Starts to wait for `count` notifications anew. Writes the own dirty lines of the request's range
    /// back; until it completes, own stores there are refused.
    ///
    /// Notifications that arrived before count.
    ///
    /// # Errors
    /// [`Error::RequestActive`], [`Error::TooManyRequests`].
    pub fn start(&mut self) -> Result<(), Error> {
        if self.place != INACTIVE {
            return Err(Error::RequestActive);
        }
        let max = REQUESTS as u8;
        let free = (0..max)
            .zip(&self.core.requested)
            .find(|(_, open)| open.get().is_none());
        let Some((place, open)) = free else {
            return Err(Error::TooManyRequests { max });
        };
        // PUBLISH: no dirty line is left to be evicted over what arrives.
        point!("notify.start.publish", self.core.publish(self.lines())?);
        open.set(Some(self.lines()));
        self.place = place;
        self.matched = 0;
        Ok(())
    }

    /// Whether the request is complete: the last notification it matched if so. Does not wait.
    ///
    /// A complete request is not started any more.
    ///
    /// # Errors
    /// [`Error::RequestInactive`]; [`Error::QueueFull`] if the queue holds only what others must match
    /// first (the request stays started).
    pub fn test(&mut self) -> Result<Option<Status>, Error> {
        if self.place == INACTIVE {
            return Err(Error::RequestInactive);
        }
        let world = self.core.world;
        order!(
            "notify.test.match<refresh",
            {
                // ORDER: G2: what has arrived before comes first.
                point!(
                    "notify.test.queue",
                    world.queue.take_if(|immediate| self.takes(immediate))
                );
                while self.matched < self.expected {
                    // ROOM: what is taken from the link must be kept.
                    if point!("notify.test.room", world.queue.has_no_spare(); else false) {
                        let capacity = world.queue.capacity();
                        return Err(Error::QueueFull { capacity });
                    }
                    let Some(immediate) = world.link().progress() else {
                        return Ok(None);
                    };
                    if !self.takes(immediate) {
                        world.queue.push(immediate);
                    }
                }
            },
            // REFRESH: G1: after the notification was taken; a core may fetch lines ahead before.
            point!("notify.test.refresh", self.core.refresh(self.lines())?)
        );
        self.close();
        let Notification { source, tag, .. } = world.limits().unpack(self.last);
        Ok(Some(Status { source, tag }))
    }

    /// Waits until the request is complete.
    ///
    /// # Errors
    /// As [`Request::test`]; [`Error::Timeout`] with how many notifications are missing, and from whom
    /// unless from anybody. The request stays started.
    pub fn wait(&mut self) -> Result<Status, Error> {
        let (world, source, expected) = (self.core.world, self.source, self.expected);
        let matched = Cell::new(0);
        world.wait(
            || {
                let answer = self.test();
                matched.set(self.matched);
                answer
            },
            || {
                let sources = (source != ANY_SOURCE).then_some(Rank::new(source));
                let left = expected.saturating_sub(matched.get());
                Timeout {
                    waiting: Waiting::Notification,
                    missing: Missing::among(sources.into_iter(), u32::from(left)),
                }
            },
        )
    }

    /// Ends a started request without waiting: own stores to its lines are allowed again. Only for a
    /// program that knows that no peer will put there any more. What has matched is gone.
    ///
    /// A started request that is dropped instead keeps its lines closed, and its place taken.
    ///
    /// # Errors
    /// [`Error::RequestInactive`].
    pub fn cancel(&mut self) -> Result<(), Error> {
        if self.place == INACTIVE {
            return Err(Error::RequestInactive);
        }
        // REFRESH: peers may have put there; own stores must not merge into old lines.
        point!("notify.cancel.refresh", self.core.refresh(self.lines())?);
        self.close();
        Ok(())
    }

    /// Counts a notification if it matches and is still wanted.
    fn takes(&mut self, immediate: u32) -> bool {
        let arrived = self.core.world.limits().unpack(immediate);
        let matches = self.matched < self.expected
            && arrived.window == self.core.id
            && (self.source == ANY_SOURCE || self.source == arrived.source.get())
            && (self.tag == ANY_TAG || self.tag == arrived.tag.0);
        if matches {
            self.matched = self.matched.saturating_add(1);
            self.last = immediate;
        }
        matches
    }

    fn lines(&self) -> Lines {
        Lines {
            start: self.start,
            end: self.end,
        }
    }

    /// Own stores to the lines are allowed again.
    fn close(&mut self) {
        if let Some(open) = self.core.requested.get(usize::from(self.place)) {
            open.set(None);
        }
        self.place = INACTIVE;
    }
}
