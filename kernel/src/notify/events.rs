//! Events: counters of their own, as coarray Fortran has them. A rank posts, another waits for so
//! many posts.
//!
//! # Guarantee
//! G1. When [`Events::wait`] returns, what the ranks whose posts it has taken did before them is in
//!     memory: puts to any window, and cells' changes; not data that
//!     [travel inline](super#inline-data) with an earlier tag, which come in this rank's next call
//!     that takes notifications: who posts flushes these first, or has them put in place
//!     ([`Window::set_inline`](crate::Window::set_inline)). [`Bound::wait`] and a request also
//!     refresh the own lines that the data lie in.
//! G2. No post is lost or taken twice: not if budgets run out, either.
//! G3. [`World::events`] succeeds on all ranks or on none.
//!
//! # Cells
//! At each rank one cell per event, under the same key everywhere. Peers add to it; its owner never
//! changes it, but remembers how many posts it has taken: the event's *count* is the difference. So
//! waiting takes no lock and no atomic operation, and a wait whose budget runs out has nothing to
//! take back. Both are 32 bits, modulo 2^32 ([why](super::counters#values)): up to 2^32 - 1 posts
//! may be waiting. Both begin 4 below the wrap-around.
//!
//! # Steps
//! | call | core | in order | remote accesses |
//! |---|---|---|---|
//! | `post` | origin | fence; add 1 to the target's cell | 1 atomic |
//! | [`Window::put_event`], [`Bound::put`] | origin | put; fence; add 1 | the data, 1 atomic |
//! | `query` | target | read the own cell; less what was taken | none |
//! | `wait` | target | watch the own cell until enough posts are there; take them | none |
//! | [`Bound::wait`] | target | publish the lines; as `wait`; refresh the lines | none |
//! | a request's `start` | target | publish the lines | none |
//! | a request's `test` | target | watch the cell; take; refresh the lines | none |
//!
//! [`Bound::expect`] and [`Window::expect_event`] make a request.
//!
//! An atomic operation over `mapped` is 4 remote accesses (lock, load, store, unlock of the
//! target's register), or 1 with native ones.
//!
//! | Fortran 2018, [CAF-NA] | here |
//! |---|---|
//! | `type(event_type) :: ev(n)[*]` | [`world.events(n)`](World::events) |
//! | `event post (ev(i)[p])` | [`events.post(p, i)`](Events::post) |
//! | `event wait (ev(i), until_count=k)` | [`events.wait(i, k)`](Events::wait) |
//! | `call event_query (ev(i), c)` | [`events.query(i)`](Events::query) |
//! | a coarray with an event of its own, assigned to | [`Events::bind`], [`Bound::put`] |
//!
//! # Memory per rank
//! Shared: 8 bytes per event, in whole lines. Private: a word per event. [`Events::free`] gives all
//! back.
//!
//! # Evidence
//! Cases `events.*` and `small.event*`; counts in `tests/host/costs`.
//!
//! [CAF-NA]: crate#sources

#![allow(
    clippy::result_large_err,
    reason = "requests go back to their user, without a heap"
)]

use core::{cell::Cell, ops::Range};

use bytemuck::Pod;
use flagpost_link::{Amo, Key, Link, Pending, Place, Rank};

use super::{awaited::Awaited, threshold::CountRequest};
use crate::{
    Budget, Error, Freeing, Making, Unfinished, Window, World,
    collective::Call,
    making::Ways,
    rma::{
        Request, Silent, Target,
        telling::{Checked, Telling},
    },
    window::{Lines, counters::CELL},
};

/// So many events at each rank.
#[derive(Debug)]
pub struct Events<'w, L> {
    world: &'w World<'w, L>,
    key: Key,
    count: u32,
    /// Per event: how many posts this rank has taken.
    taken: &'w [Cell<u32>],
}

/// What is posted and taken when an event is made: 4 before the numbers wrap around, so that every
/// run passes that.
const FIRST: u32 = 0_u32.wrapping_sub(4);

impl<'w, L: Link> World<'w, L> {
    /// Makes `count` events at each rank, with no posts. Collective: the same number on all ranks,
    /// in the same order as other collectives.
    ///
    /// Takes 8 bytes per event of every rank's shared memory, and a word of the arena, until
    /// [`Events::free`]. Waits for all ranks: O(log p).
    ///
    /// # Errors
    /// On all ranks together: [`Error::MemoryFull`], [`Error::ArenaFull`], [`Error::TooManyPieces`]
    /// where the cause is, [`Error::Asymmetric`] naming such a rank elsewhere. [`Error::PeerLost`].
    /// [`Error::CollectiveUnfinished`]: nothing was taken.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let events = world.events(2)?; // events 0 and 1, on each rank
    /// assert_eq!((events.len(), events.query(1)?), (2, 0));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn events(&'w self, count: u32) -> Result<Events<'w, L>, Error> {
        called!(self);
        self.making_events(count)?.wait()
    }

    /// [`World::events`], with a handle, as [`World::allocating`].
    ///
    /// # Errors
    /// [`Error::CollectiveUnfinished`]: nothing was taken.
    #[track_caller]
    pub fn making_events(&'w self, count: u32) -> Result<Making<'w, L, Events<'w, L>>, Error> {
        called!(self);
        let prepare = || self.prepare_events(count);
        let offer = |events: &Events<'w, L>| {
            // Ranks that agree on both have the same cells: 32 bits of the key, 16 that tell of the
            // number.
            let count = events.count ^ events.count.wrapping_shr(u16::BITS);
            u64::from(events.key.get()).wrapping_shl(u16::BITS) | u64::from(count as u16)
        };
        let ways = Ways {
            clear: Events::clear,
            discard: Events::discard,
        };
        Making::same(self, prepare, offer, ways)
    }

    /// This rank's part. Takes nothing if it fails.
    fn prepare_events(&'w self, count: u32) -> Result<Events<'w, L>, Error> {
        let bytes = count.checked_mul(CELL).ok_or(Error::MemoryFull {
            missing_bytes: u32::MAX,
        })?;
        let taken = self.arena.take(count as usize)?;
        let key = match self.link().allocate(bytes, Place::Symmetric) {
            Ok(key) => key,
            Err(refusal) => {
                self.arena.give_back(taken);
                return Err(refusal.into());
            }
        };
        let events = Events {
            world: self,
            key,
            count,
            taken,
        };
        taken.iter().for_each(|taken| taken.set(FIRST));
        Ok(events)
    }
}

impl<'w, L: Link> Events<'w, L> {
    /// How many events each rank has.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Posts event `index` of `to`. What this rank did before is in memory when the post is seen.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NoSuchCounter`], [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let events = world.events(1)?;
    /// let peer = world.rank().next(world.size());
    /// events.post(peer, 0)?;
    /// events.wait(0, 1)?; // the peer has posted mine
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn post(&self, to: Rank, index: u32) -> Result<(), Error> {
        called!(self.world);
        self.posting(to, index)?.wait()
    }

    /// [`post`](Self::post), with a handle: for programs that do not wait for ever. Nothing happens
    /// before it is waited for.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NoSuchCounter`].
    #[track_caller]
    pub fn posting(&self, to: Rank, index: u32) -> Result<EventPost<'_, L>, Error> {
        called!(self.world);
        let place = self.place(to, index)?;
        Ok(EventPost {
            world: self.world,
            telling: Telling::new(to, post(place), place, &[]),
            op: Pending::new(self.world.link()),
        })
    }

    /// How many posts of own event `index` have not been taken. Waits for none of them.
    ///
    /// Takes notifications from the link, if there is room, so that a loop round this call keeps
    /// nobody waiting.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`]; [`Error::Timeout`] where a network does not answer for own memory;
    /// [`Error::PeerLost`] in one of 64 calls, if a rank is lost.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let events = world.events(1)?;
    /// let peer = world.rank().next(world.size());
    /// events.post(peer, 0)?;
    /// events.post(peer, 0)?;
    /// world.barrier()?;
    /// assert_eq!(events.query(0)?, 2);
    /// events.wait(0, 1)?; // takes one
    /// assert_eq!(events.query(0)?, 1);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn query(&self, index: u32) -> Result<u32, Error> {
        called!(self.world);
        let posted = self.world.value(self.place(self.world.rank(), index)?)?;
        Ok(posted.wrapping_sub(self.taken(index)?.get()))
    }

    /// Waits until there are `until` posts of own event `index`, and takes so many. See G1 of the
    /// [module](self) for what can be read then; own lines are not refreshed.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`]; [`Error::CountZero`]; [`Error::Timeout`] with how many posts are
    /// missing, and no rank, as any may post: none was taken.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let (events, window) = (world.events(1)?, world.allocate::<u32>(1)?);
    /// let peer = world.rank().next(world.size());
    /// window.peer(peer)?.set(0, 7)?;
    /// events.post(peer, 0)?; // what came before is in memory when the post is seen
    /// events.wait(0, 1)?;
    /// assert_eq!(window.peer(world.rank())?.get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn wait(&self, index: u32, until: u32) -> Result<(), Error> {
        called!(self.world);
        let (cell, taken) = self.own(index)?;
        if until == 0 {
            return Err(Error::CountZero);
        }
        let count = |posted: u32| posted.wrapping_sub(taken.get());
        cell.wait(
            |posted| count(posted) >= until,
            |posted| until.saturating_sub(count(posted)),
        )?;
        take(taken, until);
        Ok(())
    }

    /// Gives the events back. Collective, and a barrier: nobody posts any more. Posts that nobody
    /// took are gone.
    ///
    /// Dropping them instead keeps their memory taken.
    ///
    /// # Errors
    /// [`Error::PeerLost`], [`Error::CollectiveUnfinished`]. The events are dropped then.
    #[track_caller]
    pub fn free(self) -> Result<(), Error> {
        called!(self.world);
        self.freeing().wait()
    }

    /// [`free`](Self::free), with a handle that keeps the events until they are free.
    #[track_caller]
    pub fn freeing(self) -> Freeing<'w, L, Self> {
        called!(self.world);
        Freeing {
            world: self.world,
            made: self,
            leave: Self::leave,
            discard: Self::discard,
        }
    }

    /// Waits until no rank posts any more.
    fn leave(&self) -> Result<(), Error> {
        // ORDER: nobody reuses memory that somebody still posts to.
        let (world, call) = (self.world, Call::FreeEvents(self.key));
        point!(
            "events.free.barrier",
            world.attempt(call, || world.order_and_gather());
            else Ok(())
        )
    }

    /// Where an event lies.
    fn place(&self, rank: Rank, index: u32) -> Result<(Key, u32), Error> {
        self.world.check_rank(rank)?;
        let count = self.count;
        if index >= count {
            return Err(Error::NoSuchCounter { rank, index, count });
        }
        Ok((self.key, index.saturating_mul(CELL)))
    }

    fn taken(&self, index: u32) -> Result<&'w Cell<u32>, Error> {
        let (rank, count) = (self.world.rank(), self.count);
        let taken = self.taken.get(index as usize);
        taken.ok_or(Error::NoSuchCounter { rank, index, count })
    }

    /// An own event.
    fn own(&self, index: u32) -> Result<(Awaited<'w, L>, &'w Cell<u32>), Error> {
        let place = self.place(self.world.rank(), index)?;
        Ok((Awaited::new(self.world, place), self.taken(index)?))
    }

    fn clear(&self) -> Result<(), Error> {
        // CLEAR: what this memory was.
        let bytes = self.count.saturating_mul(CELL);
        point!("events.make.clear", self.world.set_cells(self.key, bytes, FIRST.into()); else Ok(()))
    }

    fn discard(&self) {
        self.world.link().withdraw(self.key);
        self.world.arena.give_back(self.taken);
    }
}

/// What tells of an event.
const fn post((key, offset): (Key, u32)) -> Checked {
    let amo = Amo::Add(1);
    Checked::Cell { key, offset, amo }
}

/// `until` posts are taken.
fn take(taken: &Cell<u32>, until: u32) {
    taken.set(taken.get().wrapping_add(until));
}

/// A post of an event that is not done.
///
/// Dropped after the first wait, it leaves open whether the event is posted.
#[derive(Debug)]
#[must_use = "an event is posted when its handle is waited for"]
pub struct EventPost<'e, L: Link> {
    world: &'e World<'e, L>,
    telling: Telling<'e>,
    op: Pending<'e, L>,
}

impl<L: Link> EventPost<'_, L> {
    /// Waits until the event is posted.
    ///
    /// # Errors
    /// [`Error::PeerLost`].
    #[track_caller]
    pub fn wait(mut self) -> Result<(), Error> {
        called!(self.world);
        self.tell()
    }

    /// [`wait`](Self::wait), as long as `budget` says.
    ///
    /// # Errors
    /// [`Error::Timeout`] while the target's lock is taken or a network does not answer,
    /// [`Error::PeerLost`]: with the handle again.
    #[track_caller]
    pub fn wait_within(mut self, budget: Budget) -> Result<(), Unfinished<Self>> {
        called!(self.world);
        let world = self.world;
        match world.within(budget, || self.tell()) {
            Ok(()) => Ok(()),
            Err(error) => Err(Unfinished {
                handle: self,
                error,
            }),
        }
    }

    /// Whether the event is posted, without waiting: [`wait_within`](Self::wait_within) with a
    /// budget of 0.
    ///
    /// # Errors
    /// Those of [`wait_within`](Self::wait_within).
    #[track_caller]
    pub fn test(self) -> Result<(), Unfinished<Self>> {
        self.wait_within(Budget::ZERO)
    }

    fn tell(&mut self) -> Result<(), Error> {
        let Self { world, telling, op } = self;
        world.wait().retry(|| telling.attempt(world.link(), op))
    }
}

impl<'w, T: Pod, L: Link, S> Window<'w, T, L, S> {
    /// Puts `data` at `index` of `to`'s piece and posts its event `event`, in one call: who has
    /// waited for the event finds the data. No epoch. `to` must not store to these lines meanwhile,
    /// as with [`Window::put_notify`].
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::NoSuchCounter`],
    /// [`Error::WrongWindow`] (the events are another world's): nothing has happened.
    /// [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let (events, window) = (world.events(1)?, world.allocate::<u32>(1)?);
    /// let next = world.rank().next(world.size());
    /// let mut arrived = window.expect_event(0..1, &events, 0, 1)?;
    /// arrived.start()?;
    /// window.put_event(next, 0, &[7], &events, 0)?;
    /// arrived.wait()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn put_event<'r>(
        &'r self,
        to: Rank,
        index: usize,
        data: &'r [T],
        events: &'r Events<'_, L>,
        event: u32,
    ) -> Result<(), Error> {
        called!(self.core.world);
        self.prepare_event(to, index, data, events, event)?.wait()
    }

    /// Begins a [`put_event`](Self::put_event). Does not block. The data have left, and the event
    /// is posted, when the request is done.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::NoSuchCounter`],
    /// [`Error::WrongWindow`], [`Error::PeerLost`].
    #[track_caller]
    pub fn rput_event<'r>(
        &'r self,
        to: Rank,
        index: usize,
        data: &'r [T],
        events: &'r Events<'_, L>,
        event: u32,
    ) -> Result<Request<'r, 'w, L>, Error> {
        called!(self.core.world);
        self.prepare_event(to, index, data, events, event)?.begin()
    }

    fn prepare_event<'r>(
        &'r self,
        to: Rank,
        index: usize,
        data: &'r [T],
        events: &'r Events<'_, L>,
        event: u32,
    ) -> Result<Request<'r, 'w, L>, Error> {
        let place = self
            .same_world(events)
            .and_then(|()| events.place(to, event));
        let notice = post(place?);
        let put = Target::new(self, to, index, Silent).prepare_put::<T>(data.into())?;
        Ok(put.telling(Some(notice)))
    }

    /// A request that completes when there are `until` posts of own event `event`, and takes them:
    /// then the data that came with them can be read in the elements `range` of the own piece.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`], [`Error::OutOfRange`], [`Error::CountZero`],
    /// [`Error::WrongWindow`] (the events are another world's).
    #[track_caller]
    pub fn expect_event<'r>(
        &'r self,
        range: Range<usize>,
        events: &'r Events<'w, L>,
        event: u32,
        until: u32,
    ) -> Result<CountRequest<'r, 'w, L>, Error> {
        called!(self.core.world);
        self.same_world(events)?;
        let (cell, taken) = events.own(event)?;
        let lines = self.lines(range)?;
        CountRequest::new(&self.core, cell, lines, until, Some(taken))
    }

    fn same_world(&self, events: &Events<'_, L>) -> Result<(), Error> {
        if core::ptr::eq(self.core.world, events.world) {
            Ok(())
        } else {
            Err(Error::WrongWindow)
        }
    }
}

/// A range of a window's elements and the event that tells of them.
#[derive(Debug)]
pub struct Bound<'b, 'w, T, L, S> {
    window: &'b Window<'w, T, L, S>,
    events: &'b Events<'w, L>,
    range: Range<usize>,
    lines: Lines,
    event: u32,
}

impl<'w, L: Link> Events<'w, L> {
    /// Binds event `event` to the elements `range` of `window`: who puts there by [`Bound::put`]
    /// posts it. Tells nobody; each rank binds for itself, all alike if they are to understand each
    /// other.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`], [`Error::OutOfRange`], [`Error::WrongWindow`] (the events are
    /// another world's).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let (events, window) = (world.events(1)?, world.allocate::<u32>(8)?);
    /// let full = events.bind(&window, 0..8, 0)?;
    /// full.put(world.rank().next(world.size()), 0, &[7; 8])?; // the data, then a post
    /// full.wait(1)?;
    /// assert_eq!(window.local().get(7)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    pub fn bind<'b, T: Pod, S>(
        &'b self,
        window: &'b Window<'w, T, L, S>,
        range: Range<usize>,
        event: u32,
    ) -> Result<Bound<'b, 'w, T, L, S>, Error> {
        window.same_world(self)?;
        self.place(self.world.rank(), event)?;
        let lines = window.lines(range.clone())?;
        Ok(Bound {
            window,
            events: self,
            range,
            lines,
            event,
        })
    }
}

impl<'b, 'w, T: Pod, L: Link, S> Bound<'b, 'w, T, L, S> {
    /// Puts `data` to `to`, at the `at`-th element of the range, and posts the event.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`] (of the range, or of `to`'s piece; elements
    /// count from the first one of the range): nothing has happened. [`Error::PeerLost`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let (events, window) = (world.events(1)?, world.allocate::<u32>(8)?);
    /// let full = events.bind(&window, 0..8, 0)?;
    /// let next = world.rank().next(world.size());
    /// full.put(next, 0, &[7; 4])?; // the first half,
    /// full.put(next, 4, &[8; 4])?; // and the second: a post each
    /// full.wait(2)?;
    /// assert_eq!((window.local().get(0)?, window.local().get(7)?), (7, 8));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn put(&self, to: Rank, at: usize, data: &[T]) -> Result<(), Error> {
        called!(self.window.core.world);
        let index = self.index(at, data.len())?;
        self.window
            .put_event(to, index, data, self.events, self.event)
            .map_err(|error| self.in_range(error))
    }

    /// Begins a [`put`](Self::put). Does not block. The data have left, and the event is posted,
    /// when the request is done.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::PeerLost`].
    #[track_caller]
    pub fn rput<'r>(
        &'r self,
        to: Rank,
        at: usize,
        data: &'r [T],
    ) -> Result<Request<'r, 'w, L>, Error> {
        called!(self.window.core.world);
        let index = self.index(at, data.len())?;
        self.window
            .rput_event(to, index, data, self.events, self.event)
            .map_err(|error| self.in_range(error))
    }

    /// Where `count` elements from the `at`-th one of the range on lie in the window.
    fn index(&self, at: usize, count: usize) -> Result<usize, Error> {
        let len = self.range.end.saturating_sub(self.range.start);
        let end = at.saturating_add(count);
        if end > len {
            return Err(Error::OutOfRange {
                end: end as u64,
                len: len as u64,
            });
        }
        Ok(self.range.start.saturating_add(at))
    }

    /// An error of the window, with elements counted from the first one of the range.
    fn in_range(&self, error: Error) -> Error {
        let start = self.range.start as u64;
        match error {
            Error::OutOfRange { end, len } => Error::OutOfRange {
                end: end.saturating_sub(start),
                len: len.saturating_sub(start),
            },
            other => other,
        }
    }

    /// Waits for `until` posts and takes them: then the data that came with them can be read in the
    /// range.
    ///
    /// Own stores to its lines are written back first. Peers put there only if none is left that is
    /// not: as with a [request](super#rule-for-cached-lines).
    ///
    /// # Errors
    /// [`Error::CountZero`]; [`Error::Timeout`] with how many posts are missing: none was taken.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let (events, window) = (world.events(1)?, world.allocate::<u32>(8)?);
    /// let full = events.bind(&window, 0..8, 0)?;
    /// full.put(world.rank().next(world.size()), 0, &[7; 8])?;
    /// full.wait(1)?; // takes the post; the data can be read then
    /// assert_eq!((window.local().get(0)?, full.query()?), (7, 0));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn wait(&self, until: u32) -> Result<(), Error> {
        called!(self.window.core.world);
        let (cell, taken) = self.events.own(self.event)?;
        if until == 0 {
            return Err(Error::CountZero);
        }
        let count = |posted: u32| posted.wrapping_sub(taken.get());
        self.window.core.await_cell(
            self.lines,
            &cell,
            |posted| count(posted) >= until,
            |posted| until.saturating_sub(count(posted)),
        )?;
        take(taken, until);
        Ok(())
    }

    /// A request for `until` posts and the range: [`Window::expect_event`].
    ///
    /// # Errors
    /// [`Error::CountZero`].
    #[track_caller]
    pub fn expect(&self, until: u32) -> Result<CountRequest<'b, 'w, L>, Error> {
        called!(self.window.core.world);
        self.window
            .expect_event(self.range.clone(), self.events, self.event, until)
    }

    /// [`Events::query`] of the event.
    ///
    /// # Errors
    /// [`Error::Timeout`] where a network does not answer for own memory; [`Error::PeerLost`] in
    /// one of 64 calls, if a rank is lost.
    #[track_caller]
    pub fn query(&self) -> Result<u32, Error> {
        called!(self.window.core.world);
        self.events.query(self.event)
    }
}
