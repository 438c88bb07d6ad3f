//! Persistent requests for counters and events.
//!
//! Steps and guarantees are those of [`counters`](super::counters) and [`events`](super::events).
//! The rule for lines is that of [tag requests](super#rule-for-cached-lines).

use core::{cell::Cell, ops::Range};

use bytemuck::Pod;
use flagpost_link::Link;

use super::{
    Counter,
    awaited::{Awaited, late},
};
use crate::{
    Budget, Error, Timeout, Unfinished, Window, World,
    complete::{Complete, Sealed},
    window::{Core, Lines},
};

/// A persistent request: completes when a counter has come to a threshold, or when so many events
/// were posted.
#[derive(Debug)]
#[must_use = "a request does nothing until it is started"]
pub struct CountRequest<'r, 'w, L: Link> {
    core: &'r Core<'w, L>,
    cell: Awaited<'w, L>,
    lines: Lines,
    threshold: u32,
    /// Of an event: how many posts have been taken already.
    taken: Option<&'r Cell<u32>>,
    started: bool,
}

impl<'w, T: Pod, L: Link, S> Window<'w, T, L, S> {
    /// A request that completes when this rank's `counter` reaches or exceeds `threshold`: then the
    /// data that its notifications brought to the elements `range` of the own piece can be read (an
    /// empty range: no data, or data that are never cached). The counter keeps its value;
    /// [reset](Window::reset_notify_value) it before the next use.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`], [`Error::OutOfRange`]; [`Error::CountZero`] for a threshold of 0.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Counter, Rank};
    ///
    /// let mut window = world.allocate::<u32>(3)?;
    /// window.set_num_notify(1)?;
    /// let mut all = window.expect_count(0..3, Counter(0), 3)?; // when counter 0 has come to 3
    /// all.start()?;
    /// for to in [0, 1, 2].map(Rank::new) {
    ///     window.put_notify(to, world.rank().index(), &[7], Counter(0))?;
    /// }
    /// all.wait()?;
    /// assert!((0..3).all(|rank| window.local().get(rank) == Ok(7)));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn expect_count(
        &self,
        range: Range<usize>,
        counter: Counter,
        threshold: u32,
    ) -> Result<CountRequest<'_, 'w, L>, Error> {
        called!(self.core.world);
        let cell = self.core.own_counter(counter.0)?;
        let cell = Awaited::new(self.core.world, cell);
        let lines = self.lines(range)?;
        CountRequest::new(&self.core, cell, lines, threshold, None)
    }
}

impl<'r, 'w, L: Link> CountRequest<'r, 'w, L> {
    pub(super) fn new(
        core: &'r Core<'w, L>,
        cell: Awaited<'w, L>,
        lines: Lines,
        threshold: u32,
        taken: Option<&'r Cell<u32>>,
    ) -> Result<Self, Error> {
        if threshold == 0 {
            return Err(Error::CountZero);
        }
        Ok(Self {
            core,
            cell,
            lines,
            threshold,
            taken,
            started: false,
        })
    }

    /// Starts to wait anew. Writes the own dirty lines of the request's range back; until it
    /// completes, own stores there are refused. What was counted before counts.
    ///
    /// # Errors
    /// [`Error::RequestActive`]; [`Error::TooManyRequests`], unless its range is empty.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Counter, Error};
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.set_num_notify(1)?;
    /// let mut arrived = window.expect_count(0..1, Counter(0), 1)?;
    /// arrived.start()?;
    /// assert_eq!(window.local().set(0, 9), Err(Error::Exposed)); // the peer may be putting there
    /// window.put_notify(peer, 0, &[7], Counter(0))?;
    /// arrived.wait()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn start(&mut self) -> Result<(), Error> {
        called!(self.core.world);
        if self.is_started() {
            return Err(Error::RequestActive);
        }
        let place = self.core.requested.room_for(self.lines)?;
        // PUBLISH: no dirty line is left to be evicted over what arrives.
        point!("counters.start.publish", self.core.publish(self.lines)?);
        if let Some(open) = place {
            open.set(self.lines);
        }
        self.started = true;
        Ok(())
    }

    /// Whether the request is complete: if so, the counter's value (of an event: how many posts are
    /// left). Does not wait.
    ///
    /// A complete request is not started any more. Takes notifications from the link, if there is
    /// room.
    ///
    /// # Errors
    /// [`Error::RequestInactive`]; [`Error::PeerLost`] if it is not complete and a rank is lost (it
    /// stays started).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Counter;
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.set_num_notify(1)?;
    /// let mut arrived = window.expect_count(0..1, Counter(0), 1)?;
    /// arrived.start()?;
    /// window.put_notify(peer, 0, &[7], Counter(0))?;
    /// while arrived.test()?.is_none() {
    ///     // Something else is done here.
    /// }
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn test(&mut self) -> Result<Option<u32>, Error> {
        called!(self.core.world);
        let world = self.cell.world;
        // PROGRESS: who waits for room in the own ring may be the one that is to count.
        point!("counters.test.progress", world.progress(); else false);
        world
            .wait()
            .once(self, Self::attempt, |this| late(this.left()))
    }

    fn attempt(&mut self) -> Result<Option<u32>, Error> {
        if !self.is_started() {
            return Err(Error::RequestInactive);
        }
        let (before, threshold) = (self.taken.map_or(0, Cell::get), self.threshold);
        let value = order!(
            "counters.test.watch<refresh",
            {
                let arrived = |value: u32| value.wrapping_sub(before) >= threshold;
                match self.cell.look(arrived)? {
                    Some(value) => value,
                    None => return Ok(None),
                }
            },
            // REFRESH: after the counter was read; a core may fetch lines ahead before.
            point!("counters.test.refresh", self.core.refresh(self.lines)?)
        );
        self.close();
        let Some(taken) = self.taken else {
            return Ok(Some(value));
        };
        taken.set(before.wrapping_add(threshold));
        Ok(Some(value.wrapping_sub(taken.get())))
    }

    /// Waits until the request is complete.
    ///
    /// # Errors
    /// [`Error::RequestInactive`], [`Error::PeerLost`], [`Error::PeerLeft`]. The request stays
    /// started.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Counter;
    ///
    /// let mut window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// window.set_num_notify(1)?;
    /// let mut arrived = window.expect_count(0..1, Counter(0), 3)?;
    /// arrived.start()?;
    /// for value in [5, 6, 7] {
    ///     window.put_notify(peer, 0, &[value], Counter(0))?;
    /// }
    /// assert_eq!(arrived.wait()?, 3);
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn wait(&mut self) -> Result<u32, Error> {
        called!(self.core.world);
        self.complete()
    }

    /// [`wait`](Self::wait), as long as `budget` says.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait); [`Error::Timeout`] with how many notifications are missing,
    /// and no rank, as any may tell the cell. The request stays started.
    #[track_caller]
    pub fn wait_within(&mut self, budget: Budget) -> Result<u32, Error> {
        called!(self.core.world);
        self.core.world.within(budget, || self.complete())
    }

    fn complete(&mut self) -> Result<u32, Error> {
        let world = self.core.world;
        let left = Cell::new(0);
        world.wait().until(
            || {
                let answer = self.attempt();
                left.set(self.left());
                answer
            },
            || late(left.get()),
        )
    }

    /// Ends a started request without waiting: own stores to its lines are allowed again. Only for
    /// a program that knows that no peer will put there any more. The counter keeps its value.
    ///
    /// A started request that is dropped instead keeps its lines closed, and its place taken.
    ///
    /// # Errors
    /// [`Error::RequestInactive`].
    #[track_caller]
    pub fn cancel(&mut self) -> Result<(), Error> {
        called!(self.core.world);
        if !self.is_started() {
            return Err(Error::RequestInactive);
        }
        // REFRESH: peers may have put there; own stores must not merge into old lines.
        point!("counters.cancel.refresh", self.core.refresh(self.lines)?);
        self.close();
        Ok(())
    }

    /// Gives the request back. (One that is not started may as well be dropped.)
    ///
    /// # Errors
    /// [`Error::RequestActive`] with the request: wait for it, or [cancel](Self::cancel) it.
    #[track_caller]
    pub fn free(self) -> Result<(), Unfinished<Self>> {
        called!(self.core.world);
        if self.is_started() {
            return Err(Unfinished {
                handle: self,
                error: Error::RequestActive,
            });
        }
        Ok(())
    }

    /// Whether it waits.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// How many notifications were missing when the cell was last looked at.
    fn left(&self) -> u32 {
        let counted = self
            .cell
            .seen()
            .wrapping_sub(self.taken.map_or(0, Cell::get));
        self.threshold.saturating_sub(counted)
    }

    /// Own stores to the lines are allowed again.
    fn close(&mut self) {
        self.core.requested.close(self.lines);
        self.started = false;
    }
}

impl<L: Link> Sealed for CountRequest<'_, '_, L> {}

impl<'s, 'w: 's, L: Link> Complete<'s, L> for CountRequest<'_, 'w, L> {
    fn world(&self) -> &'s World<'s, L> {
        self.core.world
    }

    fn is_open(&self) -> bool {
        self.started
    }

    fn poll(&mut self) -> Result<bool, Error> {
        Ok(self.attempt()?.is_some())
    }

    fn late(&self) -> Timeout {
        late(self.left())
    }
}
