//! Events: words of the world, as coarray Fortran has them. A rank posts an event, and its owner
//! waits for a number of posts, and takes them.
//!
//! An [`Event`] is a value that names one: [`Events::event`] checks its number once. It is a notice
//! of any notified access, so that data and post go in one call, and a word that a request waits
//! for. An event needs no window, and no reset: its owner remembers how many posts it has taken.
//!
//! # Guarantee
//! G1. When [`Events::wait`] returns, all that the ranks did before the posts that it has taken is
//!     in memory: puts to any window, and cells' changes; not data that [travel
//!     inline](super#inline-data) with an earlier tag, which come in this rank's next call that
//!     takes notifications: the rank that posts flushes these first, or has them put in place
//!     ([`Window::set_inline`]). A request of a window also refreshes this rank's lines that the
//!     data lie in.
//! G2. No post is lost or taken twice: not if budgets run out, either.
//! G3. [`World::events`] succeeds on all ranks or on none.
//!
//! # Cells
//! At each rank one cell per event, under the same key everywhere. Peers add to it; its owner never
//! changes it, but remembers how many posts it has taken: the event's *count* is the difference. So
//! waiting takes no lock and no atomic operation, and a wait whose budget runs out has nothing to
//! take back. Both are as long as [every word](super::words#values), and wrap around. Both begin at
//! 4 below the wrap-around.
//!
//! # Programs that do not compile
//! A post of events that have been freed:
//! ```compile_fail
//! # use flagpost::*;
//! # fn f<L: Link>(
//! #     window: &Window<'_, u64, L>, to: Rank, events: Events<'_, L>,
//! # ) -> Result<(), Error> {
//! let put = window.to(to, 0).notify(events.event(0)?).put(&[7])?;
//! events.free()?;
//! put.wait()
//! # }
//! ```
//! ```
//! # use flagpost::*;
//! # fn f<L: Link>(
//! #     window: &Window<'_, u64, L>, to: Rank, events: Events<'_, L>,
//! # ) -> Result<(), Error> {
//! let put = window.to(to, 0).notify(events.event(0)?).put(&[7])?;
//! put.wait()?;
//! events.free()
//! # }
//! ```
//!
//! # Steps
//! * `post`, and a put with an event as its notice: as any [word](super::words#steps) that is told.
//! * `query`, `wait` and requests access no other rank: they read the cell, or watch it.
//!
//! [`Window::set_inline`]: crate::Window::set_inline
//!
//! # Memory per rank
//! Shared: 8 bytes per event, in whole lines. Private: 4 bytes per event, or 8. [`Events::free`]
//! gives all back.

#![allow(
    clippy::result_large_err,
    reason = "requests go back to their user, without a heap"
)]

use core::cell::Cell;

use flagpost_link::{Amo, Key, Link, Pending, Place, Rank, Word};

use super::{Compare, Event, WordRequest, notice::Kept};
#[cfg(doc)]
use crate::Window;
use crate::{
    Budget, Error, Freeing, Group, Making, Ranks, Unfinished, World,
    collective::Call,
    making::{Ways, offer},
    rma::telling::{Checked, Telling},
    window::counters::CELL,
    window::digest,
};

/// Events: the same number at each rank.
#[derive(Debug)]
pub struct Events<'w, L> {
    world: &'w World<'w, L>,
    key: Key,
    count: u32,
    /// Per event, one after the other: how many posts this rank has taken ([`Kept`]).
    taken: &'w [Cell<u32>],
}

/// The counts of posts and of posts taken when an event is made: 4 before the numbers wrap around,
/// so that every run passes that.
fn first<W: Word>() -> W {
    W::MAX.wrapping_sub(3.into())
}

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
            // Ranks that agree on both have the same cells.
            let same = digest([events.key.get(), events.count]);
            offer(0, events.count as usize, same)
        };
        let ways = Ways {
            clear: Events::clear,
            discard: Events::discard,
        };
        Making::same(self, prepare, offer, ways)
    }

    /// This rank's part. Takes nothing if it fails.
    fn prepare_events(&'w self, count: u32) -> Result<Events<'w, L>, Error> {
        let bytes = (count as usize)
            .checked_mul(CELL)
            .ok_or(Error::MemoryFull {
                missing_bytes: usize::MAX,
            })?;
        let each = Kept::words::<L::Word>();
        let taken = self.arena.take(each.saturating_mul(count as usize))?;
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
        for taken in taken.chunks(each) {
            Kept(taken).set(first::<L::Word>());
        }
        Ok(events)
    }
}

impl<'w, L: Link> Events<'w, L> {
    /// How many events each rank has.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Event `index`, as a notice of an access to any rank, or for a request of this rank's.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let (events, window) = (world.events(1)?, world.allocate::<u32>(1)?);
    /// let full = events.event(0)?;
    /// window.put_notify(world.rank().next(world.size()), 0, &[7], full)?; // data, then a post
    /// events.wait(0, 1)?;
    /// assert_eq!(window.peer(world.rank())?.get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    pub fn event(&self, index: u32) -> Result<Event<'_>, Error> {
        let place = self.place(self.world.rank(), index)?;
        Ok(Event::new(self.world, place, self.taken(index)?))
    }

    /// Posts event `index` of `to`. All that this rank did before is in memory when the post is
    /// seen.
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
        let (key, offset) = self.place(to, index)?;
        let amo = Amo::Add(1);
        let notice = Checked::Cell { key, offset, amo };
        Ok(EventPost {
            world: self.world,
            telling: Telling::new(to, notice, (key, offset), &[]),
            op: Pending::new(self.world.link()),
        })
    }

    /// How many posts of this rank's event `index` have not been taken. Waits for none of them.
    ///
    /// Takes notifications from the link, if there is room, so that a loop round this call keeps
    /// nobody waiting.
    ///
    /// # Errors
    /// Those of [`Window::notify_value`](crate::Window::notify_value).
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
    pub fn query(&self, index: u32) -> Result<L::Word, Error> {
        called!(self.world);
        let posted = self.world.value(self.place(self.world.rank(), index)?)?;
        Ok(posted.wrapping_sub(self.taken(index)?.get()))
    }

    /// Waits until there are `until` posts of this rank's event `index`, and takes them. See G1 of
    /// the [module](self) for what can be read then; this rank's lines are not refreshed.
    ///
    /// # Errors
    /// [`Error::NoSuchCounter`]; [`Error::Timeout`] with how many posts are missing, and no rank,
    /// as any may post: none was taken.
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
        let (place, event) = (self.place(self.world.rank(), index)?, self.event(index)?);
        let word = (event.into(), place);
        WordRequest::new(self.world, None, word, Compare::Ge, until.into())?.run()?;
        Ok(())
    }

    /// Waits until each of `ranks` has called this with this rank among its ranks, as often as this
    /// rank has named it: `sync images` of coarray Fortran. All that they did before is in memory
    /// then; this rank's lines are not refreshed.
    ///
    /// It posts event `r` of each of them, `r` being this rank's number, and takes a post of each
    /// of its own events of their numbers: use none of these events otherwise.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::DuplicateRank`]; [`Error::NoSuchCounter`] if there are fewer
    /// events than ranks: nothing was posted. [`Error::PeerLost`], [`Error::PeerLeft`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// let (events, window) = (world.events(world.size().into())?, world.allocate::<u32>(1)?);
    /// let (next, prev) = (world.rank().next(3), world.rank().prev(3));
    /// window.peer(next)?.set(0, 7)?;
    /// events.sync([next, prev])?; // not all ranks, if there are more
    /// assert_eq!(window.peer(world.rank())?.get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn sync<'g>(&self, ranks: impl Ranks<'g>) -> Result<(), Error> {
        called!(self.world);
        self.syncing(ranks)?.wait()
    }

    /// [`sync`](Self::sync), with a handle: for programs that do not wait for ever. Nothing happens
    /// before it is waited for.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::DuplicateRank`], [`Error::NoSuchCounter`].
    #[track_caller]
    pub fn syncing<'e, 'g>(&'e self, ranks: impl Ranks<'g>) -> Result<Syncing<'e, 'g, L>, Error> {
        called!(self.world);
        let group = ranks.group(self.world.size())?;
        for &rank in group.ranks().iter().chain([&self.world.rank()]) {
            self.place(rank, rank.get().into())?;
        }
        let (events, world, post) = (self, self.world, None);
        Ok(Syncing {
            events,
            world,
            group,
            post,
            told: 0,
            heard: 0,
        })
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
        let (world, call) = (self.world, Call::FreeEvents(self.key));
        point!(ORDER "the memory is not used again while a rank still posts":
            "events.free.barrier", world.attempt(call, || world.order_and_arrive()); else Ok(()))
    }

    /// Where an event lies.
    fn place(&self, rank: Rank, index: u32) -> Result<(Key, usize), Error> {
        self.world.check_rank(rank)?;
        let count = self.count;
        if index >= count {
            return Err(Error::NoSuchCounter { rank, index, count });
        }
        Ok((self.key, (index as usize).saturating_mul(CELL)))
    }

    /// How many posts of event `index` this rank has taken.
    fn taken(&self, index: u32) -> Result<Kept<'w>, Error> {
        let (rank, count) = (self.world.rank(), self.count);
        let mut all = self.taken.chunks(Kept::words::<L::Word>());
        let taken = all.nth(index as usize);
        taken
            .map(Kept)
            .ok_or(Error::NoSuchCounter { rank, index, count })
    }

    fn clear(&self) -> Result<(), Error> {
        let (bytes, first) = (
            (self.count as usize).saturating_mul(CELL),
            first::<L::Word>().into(),
        );
        point!(CLEAR "the cells hold what this memory was":
            "events.make.clear", self.world.set_cells(self.key, bytes, first); else Ok(()))
    }

    fn discard(&self) {
        self.world.link().withdraw(self.key);
        self.world.arena.give_back(self.taken);
    }
}

/// A [`sync`](Events::sync) that is not done.
///
/// Dropped after the first wait, it leaves open which ranks have heard of this one.
#[derive(Debug)]
#[must_use = "ranks hear of this one when the handle is waited for"]
pub struct Syncing<'e, 'g, L: Link> {
    events: &'e Events<'e, L>,
    world: &'e World<'e, L>,
    group: Group<'g>,
    /// To the next rank that is to hear of this one.
    post: Option<EventPost<'e, L>>,
    told: u16,
    heard: u16,
}

impl<L: Link> Syncing<'_, '_, L> {
    fn meet(&mut self) -> Result<(), Error> {
        let (events, own) = (self.events, self.world.rank().get().into());
        while let Some(&rank) = self.group.rest(self.told).first() {
            let post = match &mut self.post {
                Some(post) => post,
                none => none.insert(events.posting(rank, own)?),
            };
            post.tell()?;
            self.post = None;
            self.told = self.told.saturating_add(1);
        }
        while let Some(rank) = self.group.rest(self.heard).first() {
            events.wait(rank.get().into(), 1)?;
            self.heard = self.heard.saturating_add(1);
        }
        Ok(())
    }
}

ends! {
    impl['e, 'g, L: Link] Syncing<'e, 'g, L>,
    in world, by meet;
    /// Waits for all of the ranks.
    ///
    /// # Errors
    /// [`Error::PeerLost`], [`Error::PeerLeft`].
    wait -> ();
    /// # Errors
    /// Those of [`wait`](Self::wait), [`Error::Timeout`]: with the handle again.
    wait_within;
    /// Tells the ranks, and is done if all have called:
    test;
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
    fn tell(&mut self) -> Result<(), Error> {
        let Self { world, telling, op } = self;
        world.wait().retry(|| telling.attempt(world.link(), op))
    }
}

ends! {
    impl['e, L: Link] EventPost<'e, L>,
    in world, by tell;
    /// Waits until the event is posted.
    ///
    /// # Errors
    /// [`Error::PeerLost`].
    wait -> ();
    /// # Errors
    /// [`Error::Timeout`] while the target's lock is taken or a network does not answer,
    /// [`Error::PeerLost`]: with the handle again.
    wait_within;
    /// Posts the event as far as that takes no waiting:
    test;
}
