//! The origin's side: start and complete. `start` tells nobody and waits for nobody; the first
//! access to a target waits for its post. `complete` orders the puts, and then tells each target.
//! [`Access`] has a drawing of an epoch's life.

#[cfg(mutants)]
mod wrong;

use core::{cell::Cell, marker::PhantomData};

use bytemuck::Pod;
use flagpost_link::{Gone, Link, Rank, Refusal};

use super::{Side, Strategy, no_post};
use crate::{
    Budget, Error, Group, Ranks, Unfinished, Waiting, Window,
    rma::{Rma, Silent},
    window::{Core, reach::Reach},
};

impl<'w, T: Pod, L: Link, S: Strategy<'w, L>> Window<'w, T, L, S> {
    /// Opens an access epoch to the ranks of `targets`. Tells and waits for nobody.
    ///
    /// The epoch ends with [`Access::complete`].
    ///
    /// # Errors
    /// [`Error::EpochOpen`], [`Error::EpochAbandoned`], [`Error::NoSuchRank`],
    /// [`Error::DuplicateRank`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Error, Rma as _};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let peer = world.rank().next(world.size());
    /// let exposure = window.post([peer])?;
    /// let access = window.start([peer])?;
    /// access.put(peer, 0, &[7])?;
    /// // Only ranks of the group may be accessed.
    /// assert_eq!(access.put(world.rank(), 0, &[7]), Err(Error::NotInGroup(world.rank())));
    /// access.complete()?;
    /// exposure.wait()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn start<'e>(&'e self, targets: impl Ranks<'e>) -> Result<Access<'e, 'w, T, L, S>, Error> {
        let world = self.core.world;
        tries!(world);
        let targets = world.noted(targets.group(world.size()))?;
        world.noted(self.core.open(&self.core.access_open))?;
        Ok(Access {
            element: PhantomData,
            ending: Completing {
                side: Side::of(self),
                targets,
                retired: 0,
                told: 0,
                ended: 0,
                lost: Lost::NOBODY,
            },
        })
    }
}

/// An open access epoch. Its puts and gets: [`Rma`]; the first to a target waits for its post.
///
/// # Life
/// ```text
///   Window
///      │ start
///      ▼
///   ┌────────┐──┐ put, get, has_posted,
///   │ Access │  │ await_posts
///   └────────┘◄─┘
///      │ completing                              complete: both steps
///      ▼
///   ┌────────────┐──┐ the budget ran out
///   │ Completing │◄─┘
///   └────────────┘
///      │ wait, wait_within, test
///      ▼
///   the epoch has ended: all targets are told
/// ```
/// A `Completing` remembers which posts it has retired, and which targets it has told. An `Access`
/// or a `Completing` that is dropped abandons the epoch: the window starts no other
/// ([`Error::EpochAbandoned`]).
#[derive(Debug)]
#[must_use = "an access epoch ends with `complete`"]
pub struct Access<'e, 'w, T, L: Link, S: Strategy<'w, L>> {
    element: PhantomData<T>,
    ending: Completing<'e, 'w, L, S>,
}

impl<'w, T: Pod, L: Link, S: Strategy<'w, L>> Reach<'w, L> for Access<'_, 'w, T, L, S> {
    type Told = Silent;

    fn core(&self) -> &Core<'w, L> {
        self.ending.side.core
    }

    #[inline]
    fn admits(&self, target: Rank) -> bool {
        self.ending.side.sync.admitted(target)
    }

    fn admit(&self, target: Rank) -> Result<(), Error> {
        if self.admits(target) {
            return Ok(());
        }
        let Completing { side, targets, .. } = &self.ending;
        if !targets.ranks().contains(&target) {
            return Err(Error::NotInGroup(target));
        }
        point!(WAIT "G3: the target has posted":
            "pscw.access.await_post", side.await_post(target); else Ok(()))
    }
}

impl<'w, T: Pod, L: Link, S: Strategy<'w, L>> Rma<'w, T, L> for Access<'_, 'w, T, L, S> {}

impl<'e, 'w, T: Pod, L: Link, S: Strategy<'w, L>> Access<'e, 'w, T, L, S> {
    /// True if `target` has posted, so that an access to it would not wait. Does not wait.
    ///
    /// If it has not, takes notifications from the link, if there is room, so that a loop round
    /// this call keeps nobody waiting.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::NotInGroup`]; [`Error::PeerLost`] or [`Error::PeerLeft`], if
    /// it has not.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// # use flagpost::Rma as _;
    /// # let window = world.allocate::<u32>(1)?;
    /// # let peer = world.rank().next(world.size());
    /// let exposure = window.post([peer])?;
    /// world.barrier()?; // so the peer has posted, too
    /// let access = window.start([peer])?;
    /// assert!(access.has_posted(peer)?);
    /// access.complete()?;
    /// exposure.wait()?;
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn has_posted(&self, target: Rank) -> Result<bool, Error> {
        called!(self.ending.side.core.world);
        let Completing { side, targets, .. } = &self.ending;
        let world = side.core.world;
        world.check_rank(target)?;
        if !targets.ranks().contains(&target) {
            return Err(Error::NotInGroup(target));
        }
        let posted = |side: &mut Side<'_, 'w, L, S>| Ok(side.has_posted(target)?.then_some(()));
        let late = |_: &Side<'_, 'w, L, S>| no_post(target);
        if side.sync.admitted(target) || world.wait().once(&mut { *side }, posted, late)?.is_some()
        {
            return Ok(true);
        }
        point!(PROGRESS "the target may wait for room here before it posts":
            "pscw.has_posted.progress", _ = world.progress());
        Ok(false)
    }

    /// Waits until all targets have posted: right after [`Window::start`], that makes the epoch
    /// *immediate* in the sense of [PSCW-SCC]'s Table I. No access needs it, and as a rule it only
    /// costs overlap: without it, `start` is *trigger-only*, and each access waits for its own
    /// target. Tells nobody.
    ///
    /// # Errors
    /// [`Error::PeerLost`], [`Error::PeerLeft`]; [`Error::Timeout`] naming the target that was
    /// waited for. Call again to continue.
    ///
    /// [PSCW-SCC]: crate#sources
    #[track_caller]
    pub fn await_posts(&self) -> Result<(), Error> {
        called!(self.ending.side.core.world);
        for &target in self.ending.targets.ranks() {
            point!(WAIT "each target has posted":
                "pscw.await_posts.wait", self.ending.side.await_post(target)?);
        }
        Ok(())
    }

    /// Ends the epoch: all puts are placed, and the targets told. Waits for targets that have not
    /// posted yet (their counters are not valid before). As published, none is told before all have
    /// posted: so a target's post must not depend on another target's `wait`.
    ///
    /// # Errors
    /// [`Error::PeerLost`] naming a target that is lost, or another rank at which puts failed: as a
    /// rule all others have been told, and the epoch has ended. Puts at the lost one are nowhere;
    /// of several, the first is named. [`Error::PeerLeft`]. Only where a target could not be waited
    /// for, since the link ends all waits once it knows a rank to be lost, is the epoch abandoned.
    /// A survivor that still wants it takes [`completing`](Self::completing).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::Rma as _;
    ///
    /// let window = world.allocate::<u32>(2)?;
    /// let peer = world.rank().next(world.size());
    /// let exposure = window.post([peer])?;
    /// let access = window.start([peer])?;
    /// access.put(peer, 0, &[7])?;
    /// access.put(peer, 1, &[8])?;
    /// access.complete()?; // both are in memory; the peer is told
    /// exposure.wait()?;
    /// assert_eq!((window.local().get(0)?, window.local().get(1)?), (7, 8));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn complete(self) -> Result<(), Error> {
        tries!(self.ending.side.core.world);
        self.ending.wait()
    }

    /// [`complete`](Self::complete), with a handle: for programs that do not wait for ever, or
    /// outlive a rank that is lost.
    #[track_caller]
    pub fn completing(self) -> Completing<'e, 'w, L, S> {
        tries!(self.ending.side.core.world);
        self.ending
    }
}

/// An access epoch that is ending: no further put or get, and some targets have not been told.
#[derive(Debug)]
#[must_use = "dropping this abandons the access epoch"]
pub struct Completing<'e, 'w, L: Link, S: Strategy<'w, L>> {
    side: Side<'e, 'w, L, S>,
    targets: Group<'e>,
    /// Targets whose posts are retired, and targets that have been told.
    retired: u16,
    told: u16,
    /// 1 when the epoch has ended. (No `bool`: what `start` returns would have a tag in it.)
    ended: u16,
    lost: Lost,
}

impl<'w, L: Link, S: Strategy<'w, L>> Completing<'_, 'w, L, S> {
    fn finish(&mut self) -> Result<(), Error> {
        if self.ended == 0 {
            self.tell_all()?;
            self.side.core.access_open.set(false);
            self.ended = 1;
        }
        self.lost.report(self.side.core.world.link())
    }

    fn tell_all(&mut self) -> Result<(), Error> {
        point!(ORDER "I1: all posts are retired before a target hears of the end":
            "pscw.complete.retire<tell", self.retired_before_told()?;
            else self.told_before_retired()?);
        Ok(())
    }

    fn retired_before_told(&mut self) -> Result<(), Error> {
        let Side { core, sync } = self.side;
        let (world, link) = (core.world, core.world.link());
        for &target in self.targets.rest(self.retired) {
            let posted = point!(WAIT "the target expects this rank after its post":
                "pscw.complete.await_post", self.side.await_post(target); else Ok(()));
            self.lost.note(target, posted)?;
            world.wait().retry(|| sync.retire(link, target))?;
            point!(ONCE "a call that continues retires no newer post":
                "pscw.complete.retired", self.retired = self.retired.wrapping_add(1));
        }
        // Where a rank is lost, the puts to all others have reached their places.
        let order = || match sync.order(link) {
            Err(Refusal::PeerLost(rank)) => {
                self.lost.keep(rank);
                Ok(())
            }
            other => other,
        };
        point!(ORDER "G1: the puts come before what announces them":
            "pscw.complete.order", world.wait().retry(order)?);
        for &target in self.targets.rest(self.told) {
            let complete = || sync.complete(link, target);
            self.side
                .tell(target, &mut self.lost, Waiting::RingSpace, complete)?;
            point!(ONCE "a call that continues notifies nobody twice":
                "pscw.complete.told", self.told = self.told.wrapping_add(1));
        }
        Ok(())
    }
}

/// The first peer that was found lost while all are told, or a number that no rank has. (No
/// `Option`: see [`Completing::ended`].)
#[derive(Copy, Clone, Debug)]
pub(super) struct Lost(u16);

impl Lost {
    pub(super) const NOBODY: Self = Self(u16::MAX);

    fn keep(&mut self, peer: Rank) {
        if self.0 == Self::NOBODY.0 {
            self.0 = peer.get();
        }
    }

    /// Keeps that `peer` is lost or has left, if that is what came of a call for it: the others are
    /// told all the same.
    #[inline(always)]
    fn note(&mut self, peer: Rank, came: Result<(), Error>) -> Result<(), Error> {
        match came {
            Ok(()) => Ok(()),
            Err(error) => self.note_error(peer, error),
        }
    }

    #[cold]
    fn note_error(&mut self, peer: Rank, error: Error) -> Result<(), Error> {
        if error != Error::PeerLost(peer) && error != Error::PeerLeft(peer) {
            return Err(error);
        }
        self.keep(peer);
        Ok(())
    }

    /// Called after the last target. Returns the first loss that was recorded, once.
    #[inline(always)]
    pub(super) fn report(&mut self, link: &impl Link) -> Result<(), Error> {
        if self.0 == Self::NOBODY.0 {
            return Ok(());
        }
        let Self(rank) = core::mem::replace(self, Self::NOBODY);
        let rank = Rank::new(rank);
        Err(if link.gone(Some(rank)) == Some(Gone::Left) {
            Error::PeerLeft(rank)
        } else {
            Error::PeerLost(rank)
        })
    }
}

impl<'w, L: Link, S: Strategy<'w, L>> Side<'_, 'w, L, S> {
    /// Tells `peer` by `step`, or keeps that it is lost.
    #[inline(always)]
    pub(super) fn tell(
        self,
        peer: Rank,
        lost: &mut Lost,
        full: Waiting,
        step: impl Fn() -> Result<(), Refusal>,
    ) -> Result<(), Error> {
        let busy = Cell::new(false);
        let note = |refusal: &Refusal| busy.set(matches!(refusal, Refusal::Busy(_)));
        let told = self
            .core
            .world
            .wait()
            .for_room(full)
            .retry(|| step().inspect_err(note));
        if told.is_ok() || busy.get() {
            // The answer that is in flight would be taken for the next one's: the next attempt
            // waits for it, or for its failure.
            return told;
        }
        lost.note(peer, told)
    }
}

ends! {
    impl['e, 'w, L: Link, S: Strategy<'w, L>] Completing<'e, 'w, L, S>,
    in side.core.world, by finish;
    /// Waits for the targets' posts, and tells the targets that have not been told yet.
    ///
    /// # Errors
    /// [`Error::PeerLost`], [`Error::PeerLeft`]: [`Access::complete`] says what has been done then.
    wait -> ();
    /// # Errors
    /// [`Error::Timeout`] naming the target that was waited for, [`Error::PeerLost`],
    /// [`Error::PeerLeft`]: with the handle again, which looks once more for the post of a target
    /// that could not be waited for. Where the epoch has ended, nothing is left to do, and dropping
    /// the handle abandons nothing.
    wait_within;
    /// Ends the epoch as far as that takes no waiting:
    test;
}

impl<'w, L: Link, S: Strategy<'w, L>> Drop for Completing<'_, 'w, L, S> {
    fn drop(&mut self) {
        if self.ended == 0 {
            self.side.core.abandoned.set(true);
        }
    }
}
