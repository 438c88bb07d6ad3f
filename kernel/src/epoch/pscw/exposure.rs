//! The target's side: post and wait. `post` writes the owner's dirty lines back, expects the
//! origins, and tells each of them. `wait` ends when all have completed, and drops lines of the
//! cache that they have put to. [`Exposure`] has a drawing of an epoch's life.

#![allow(
    clippy::result_large_err,
    reason = "an epoch goes back to its user, without a heap"
)]

use core::{cell::Cell, ops::Range};

use bytemuck::Pod;
use flagpost_link::{Link, Refusal};

use super::{Side, Strategy, access::Lost, transient};
use crate::{Budget, Error, Group, Ranks, Timeout, Unfinished, Waiting, Window, window::Lines};

impl<'w, T: Pod, L: Link, S: Strategy<'w, L>> Window<'w, T, L, S> {
    /// Opens an exposure epoch: the ranks of `origins` may access this rank's piece until they
    /// complete.
    ///
    /// Writes the piece's dirty lines back, if they are cached. Waits for nothing but the origins'
    /// locks, if the strategy has any. The epoch ends with [`Exposure::wait`].
    ///
    /// # Errors
    /// [`Error::EpochOpen`], [`Error::EpochAbandoned`], [`Error::NoSuchRank`],
    /// [`Error::DuplicateRank`]: no epoch was opened. [`Error::PeerLost`] naming an origin that is
    /// lost: the epoch is abandoned. A survivor that still wants it takes
    /// [`posting`](Window::posting).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rank, Rma as _};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let (origin, target) = (Rank::new(0), Rank::new(1));
    /// if world.rank() == target {
    ///     let exposure = window.post([origin])?; // rank 0 may access my piece
    ///     exposure.wait()?; // until rank 0 has completed
    ///     assert_eq!(window.local().get(0)?, 7);
    /// } else {
    ///     let access = window.start([target])?;
    ///     access.put(target, 0, &[7])?; // waits for the post
    ///     access.complete()?;
    /// }
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn post<'e>(&'e self, origins: impl Ranks<'e>) -> Result<Exposure<'e, 'w, L, S>, Error> {
        tries!(self.core.world);
        let origins = self
            .core
            .world
            .noted(origins.group(self.core.world.size()))?;
        self.new_post(self.core.all(), origins).wait()
    }

    /// [`post`](Window::post), with a handle: for programs that do not wait for ever, or outlive a
    /// rank that is lost. Nothing happens before the handle is waited for.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::DuplicateRank`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Budget;
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let peer = [world.rank().next(world.size())];
    /// let exposure = match window.posting(&peer)?.wait_within(Budget::microseconds(20)) {
    ///     Ok(exposure) => exposure,
    ///     Err(late) => late.handle.wait()?, // tells the origins that have not been told yet
    /// };
    /// window.start(&peer)?.complete()?;
    /// exposure.wait()
    /// # });
    /// ```
    #[track_caller]
    pub fn posting<'e>(&'e self, origins: impl Ranks<'e>) -> Result<Posting<'e, 'w, L, S>, Error> {
        called!(self.core.world);
        let origins = origins.group(self.core.world.size())?;
        Ok(self.new_post(self.core.all(), origins))
    }

    /// [`post`](Window::post), for origins that access the elements `range` only: no other line is
    /// written back, invalidated at [`Exposure::wait`], or closed to this rank's stores. The
    /// program promises that they keep to it: accesses to other lines are not refused, and may be
    /// lost there.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::EpochOpen`], [`Error::EpochAbandoned`],
    /// [`Error::NoSuchRank`], [`Error::DuplicateRank`]: no epoch was opened. [`Error::PeerLost`]:
    /// as of [`Window::post`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// # use flagpost::Rma as _;
    /// let window = world.allocate::<u32>(64)?;
    /// let peer = world.rank().next(world.size());
    /// let exposure = window.post_range(0..8, [peer])?; // one line of 32 bytes
    /// window.local().set(8, 9)?; // the other lines stay the owner's
    /// let access = window.start([peer])?;
    /// access.put(peer, 0, &[7])?;
    /// access.complete()?;
    /// exposure.wait()?;
    /// assert_eq!((window.local().get(0)?, window.local().get(8)?), (7, 9));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn post_range<'e>(
        &'e self,
        range: Range<usize>,
        origins: impl Ranks<'e>,
    ) -> Result<Exposure<'e, 'w, L, S>, Error> {
        called!(self.core.world);
        self.posting_range(range, origins)?.wait()
    }

    /// [`post_range`](Window::post_range), with a handle, as [`posting`](Window::posting).
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::NoSuchRank`], [`Error::DuplicateRank`].
    #[track_caller]
    pub fn posting_range<'e>(
        &'e self,
        range: Range<usize>,
        origins: impl Ranks<'e>,
    ) -> Result<Posting<'e, 'w, L, S>, Error> {
        called!(self.core.world);
        let origins = origins.group(self.core.world.size())?;
        Ok(self.new_post(self.lines(range)?, origins))
    }

    fn new_post<'e>(&'e self, lines: Lines, origins: Group<'e>) -> Posting<'e, 'w, L, S> {
        Posting {
            side: Side::of(self),
            lines,
            origins,
            told: 0,
            lost: Lost::NOBODY,
            phase: Phase::New,
        }
    }
}

/// The result of a post with a budget.
pub type Posted<'e, 'w, L, S> = Result<Exposure<'e, 'w, L, S>, Unfinished<Posting<'e, 'w, L, S>>>;

/// The next step of a post.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The first one, which opens the epoch.
    New,
    Publish,
    Expect,
    Tell,
    /// The exposure answers for the epoch.
    Done,
}

/// A post that is not finished: some origins have not been told.
#[derive(Debug)]
#[must_use = "dropping this abandons the exposure epoch"]
pub struct Posting<'e, 'w, L: Link, S: Strategy<'w, L>> {
    side: Side<'e, 'w, L, S>,
    /// The lines that are exposed.
    lines: Lines,
    origins: Group<'e>,
    /// How many origins have been told.
    told: u16,
    lost: Lost,
    phase: Phase,
}

impl<'e, 'w, L: Link, S: Strategy<'w, L>> Posting<'e, 'w, L, S> {
    fn open(&mut self) -> Result<Exposure<'e, 'w, L, S>, Error> {
        self.tell()?;
        self.phase = Phase::Done;
        Ok(Exposure {
            side: self.side,
            origins: self.origins,
            completed: Cell::new(0),
            done: false,
        })
    }

    fn tell(&mut self) -> Result<(), Error> {
        let Side { core, sync } = self.side;
        let link = core.world.link();
        order!("an origin that hears of the post accesses the piece": "pscw.post.open<tell",
            self.expose()?,
            for &origin in self.origins.rest(self.told) {
                let nth = self.told;
                let post = move || sync.post(link, origin, nth);
                self.side.tell(origin, &mut self.lost, S::FULL, post)?;
                point!(ONCE "a further call notifies the rest only":
                    "pscw.post.told", self.told = self.told.wrapping_add(1));
            }
        );
        self.lost.report(link)
    }

    fn expose(&mut self) -> Result<(), Error> {
        let Side { core, sync } = self.side;
        if self.phase == Phase::New {
            core.open(&core.exposure_open)?;
            core.exposed.set(self.lines);
            self.phase = Phase::Publish;
        }
        if self.phase == Phase::Publish {
            point!(PUBLISH "I3, G2: no dirty line travels over later puts":
                "pscw.post.publish", core.publish(core.exposed.get())?);
            self.phase = Phase::Expect;
        }
        if self.phase == Phase::Expect {
            point!(ORDER "I2: completions are expected before the first post":
                "pscw.post.expect", sync.expect(core.world.link(), &self.origins)?);
            self.phase = Phase::Tell;
        }
        Ok(())
    }
}

ends! {
    impl['e, 'w, L: Link, S: Strategy<'w, L>] Posting<'e, 'w, L, S>,
    in side.core.world, by open;
    /// Opens the epoch, and tells the origins that have not been told yet.
    ///
    /// # Errors
    /// [`Error::EpochOpen`], [`Error::EpochAbandoned`]: no epoch was opened. [`Error::PeerLost`]
    /// naming an origin that is lost: the epoch is abandoned. If all others have been told before,
    /// there is none: the epoch is open.
    wait -> Exposure<'e, 'w, L, S>;
    /// # Errors
    /// Those of [`wait`](Self::wait); [`Error::Timeout`] naming the origin that could not be told:
    /// with the handle again. After [`Error::PeerLost`] all other origins have been told (of
    /// several that are lost, the first is named): the epoch is open, and the next call gives it
    /// immediately. [`Exposure::wait`] may wait for the lost one in vain.
    wait_within;
    /// The epoch, if no origin must be waited for:
    test;
}

impl<'w, L: Link, S: Strategy<'w, L>> Drop for Posting<'_, 'w, L, S> {
    fn drop(&mut self) {
        if !matches!(self.phase, Phase::New | Phase::Done) {
            self.side.core.abandoned.set(true);
        }
    }
}

/// An open exposure epoch.
///
/// # Life
/// ```text
///   Window ──── post, post_range ───────────────────────┐
///      │ posting, posting_range                         │
///      ▼                                                ▼
///   ┌─────────┐ wait, wait_within, test             ┌──────────┐ test: false;
///   │ Posting │────────────────────────────────────►│ Exposure │──┐ the budget ran out
///   └─────────┘──┐ the budget ran out               └──────────┘◄─┘
///         ▲──────┘                                      │ wait, wait_within, test: true
///                                                       ▼
///                                                   the epoch has ended
/// ```
/// A `Posting` remembers which origins it has told, and tells each once. One that has begun and is
/// dropped, and an `Exposure` that is dropped before its end, abandon the epoch: the window starts
/// no other ([`Error::EpochAbandoned`]).
#[derive(Debug)]
#[must_use = "an exposure epoch ends with `wait`"]
pub struct Exposure<'e, 'w, L: Link, S: Strategy<'w, L>> {
    side: Side<'e, 'w, L, S>,
    origins: Group<'e>,
    /// How many origins have been found to have completed.
    completed: Cell<u16>,
    done: bool,
}

impl<'w, L: Link, S: Strategy<'w, L>> Exposure<'_, 'w, L, S> {
    /// True if all origins have completed; if so the epoch has ended, as by [`Exposure::wait`], and
    /// only needs to be dropped. Does not wait. A loop of tests keeps the processor: where ranks
    /// share one, give [`wait_within`](Self::wait_within) a short budget.
    ///
    /// # Errors
    /// [`Error::PeerLost`], while origins are missing.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// # use flagpost::Rma as _;
    /// # let window = world.allocate::<u32>(1)?;
    /// # let peer = world.rank().next(world.size());
    /// let mut exposure = window.post([peer])?;
    /// let access = window.start([peer])?;
    /// access.put(peer, 0, &[7])?;
    /// access.complete()?;
    /// while !exposure.test()? {
    ///     // Something else is done here.
    /// }
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn test(&mut self) -> Result<bool, Error> {
        called!(self.side.core.world);
        let world = self.side.core.world;
        point!(PROGRESS "an origin may wait for room here before it completes":
            "pscw.test.progress", _ = world.progress());
        let completed = |this: &mut Self| Ok(transient(this.completed())?.then_some(()));
        if !self.done
            && world
                .wait()
                .once(self, completed, |this| this.late())?
                .is_some()
        {
            self.end()?;
        }
        Ok(self.done)
    }

    fn completed(&self) -> Result<bool, Refusal> {
        let Side { core, sync } = self.side;
        sync.completed(core.world.link(), &self.origins, &self.completed)
    }

    /// The ranks that the epoch waits for.
    fn late(&self) -> Timeout {
        let Side { core, sync } = self.side;
        Timeout {
            waiting: Waiting::Completion,
            missing: sync.missing(core.world.link(), &self.origins, self.completed.get()),
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        if self.done {
            return Ok(());
        }
        order!("a core may fetch lines ahead before the completions": "pscw.wait.wait<refresh",
            point!(WAIT "all origins have completed": "pscw.wait.wait", self.await_all()?),
            self.end()?);
        Ok(())
    }

    #[inline]
    fn await_all(&self) -> Result<(), Error> {
        // As a rule they have, and where a look costs next to nothing there is no more to do.
        if L::LOOKS > 0 && self.completed() == Ok(true) {
            return Ok(());
        }
        let all = || Ok(transient(self.completed())?.then_some(()));
        self.side.core.world.wait().until(all, || self.late())
    }

    /// Called after the last completion.
    fn end(&mut self) -> Result<(), Error> {
        let core = self.side.core;
        point!(REFRESH "G1: after the completions were seen":
            "pscw.wait.refresh", core.refresh(core.exposed.get())?);
        core.exposure_open.set(false);
        self.done = true;
        Ok(())
    }
}

ends! {
    impl['e, 'w, L: Link, S: Strategy<'w, L>] Exposure<'e, 'w, L, S>,
    in side.core.world, by finish;
    /// Waits until all origins have completed. Then their puts are seen by this rank's loads.
    ///
    /// # Errors
    /// [`Error::PeerLost`], [`Error::PeerLeft`]: the epoch is abandoned. A survivor that still
    /// wants it takes [`wait_within`](Self::wait_within).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// # use flagpost::Rma as _;
    /// # let window = world.allocate::<u32>(1)?;
    /// # let peer = world.rank().next(world.size());
    /// let exposure = window.post([peer])?;
    /// let access = window.start([peer])?;
    /// access.put(peer, 0, &[7])?;
    /// access.complete()?;
    /// exposure.wait()?; // until the peer has completed, too
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    wait -> ();
    /// # Errors
    /// [`Error::Timeout`] with how many origins are missing (`MatchVector`'s counter does not
    /// record who: the listed ranks are the group's first then), [`Error::PeerLost`],
    /// [`Error::PeerLeft`]: with the epoch, to continue with.
    wait_within;
}

impl<'w, L: Link, S: Strategy<'w, L>> Drop for Exposure<'_, 'w, L, S> {
    fn drop(&mut self) {
        if !self.done {
            self.side.core.abandoned.set(true);
        }
    }
}
