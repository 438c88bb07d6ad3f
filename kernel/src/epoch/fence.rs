//! Fence: all ranks together end one epoch and begin the next. In between everybody may access
//! everybody's piece. A fence places this rank's puts, waits until all ranks have done so, and lets
//! this rank's loads see what came. Assertions leave out steps that a program knows to be needless.
//!
//! # Guarantee
//! G1. A put of any rank before a fence is seen by its target after the fence, in memory and
//!     through the cache.
//! G2. A store of a rank to its own piece before a fence is seen by peers' gets after it.
//! G3. No put or get of a later epoch reaches a piece before its owner has reached the fence.
//!
//! # Steps
//! | step | does | is left out if |
//! |---|---|---|
//! | publish | writes this rank's dirty lines back | [`Assert::NO_STORE`] |
//! | flush | places this rank's puts | [`Assert::NO_PRECEDE`] |
//! | meet | a barrier, `ceil(log2 p)` words | [`Assert::NO_PRECEDE`] and [`Assert::NO_SUCCEED`] |
//! | refresh | invalidates this rank's lines | [`Assert::NO_PRECEDE`], or see below |
//!
//! Refresh is also left out if the fence before had [`Assert::NO_PUT`].
//!
//! In windows of the unified [model](crate::Model) publishing orders the rank's stores, and
//! refreshing is nothing.
//!
//! # Rules
//! * Collective: all ranks of the world, in the same order as other collectives. `NO_PRECEDE` and
//!   `NO_SUCCEED` are given by all ranks or by none; the others each rank gives for itself. A wrong
//!   assertion is not noticed: data are old, or lost.
//! * A rank's stores to its own piece between two fences are refused ([`Error::Exposed`]), as in an
//!   exposure epoch; unless the first fence had `NO_PUT`: then nobody puts there, and the lines
//!   stay the owner's. In either case after [`Fence::end`].
//! * A fence epoch is the window's only access and exposure epoch while it is open.
//!
//! # Bounds
//! A [`Fencing`] that was given a budget and runs out of it comes back to continue with, and
//! repeats no step that was done. One that is dropped, as a [`Fence`] that is not ended, makes the
//! window refuse further epochs.
//!
//! # Source
//! [foMPI] 2.3: complete everything, then a barrier. MPI-3 11.5.1 and 11.5.5 for the assertions.
//!
//! [foMPI]: crate#sources

use core::marker::PhantomData;

use bitflags::bitflags;
use bytemuck::Pod;
use flagpost_link::{Link, Rank};

use crate::{
    Budget, Error, Unfinished, Window,
    collective::Call,
    rma::{Rma, Silent},
    window::{Core, Lines, reach::Reach},
};

bitflags! {
    /// The program's knowledge of the epochs before and after a fence. Empty: nothing.
    #[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
    pub struct Assert: u8 {
        /// This rank has not stored to its own piece since the last fence.
        const NO_STORE = 1;
        /// No rank puts to this rank's piece until the next fence.
        const NO_PUT = 2;
        /// No rank has accessed any piece since the last fence; before the first one: under locks,
        /// since all ranks' [`Window::sync`]. All ranks say so, or none.
        const NO_PRECEDE = 4;
        /// No rank accesses any piece until the next fence. All ranks say so, or none.
        const NO_SUCCEED = 8;
    }
}

impl<'w, T: Pod, L: Link, S> Window<'w, T, L, S> {
    /// Opens an epoch in which all ranks may access all pieces. Collective; waits for all ranks.
    ///
    /// # Errors
    /// [`Error::EpochOpen`], [`Error::EpochAbandoned`], [`Error::CollectiveUnfinished`]: no epoch
    /// was opened. [`Error::PeerLost`], [`Error::PeerLeft`]: the epoch is abandoned.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, epoch::Assert};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let epoch = window.fence(Assert::NO_PRECEDE)?; // no rank has accessed it yet
    /// epoch.put(world.rank().next(world.size()), 0, &[7])?;
    /// epoch.end()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn fence(&self, assert: Assert) -> Result<Fence<'_, 'w, T, L>, Error> {
        called!(self.core.world);
        self.fencing(assert).wait()
    }

    /// [`fence`](Window::fence), with a handle: for programs that do not wait for ever. Nothing
    /// happens before it is waited for.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Budget, Rma as _, epoch::Assert};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let epoch = match window.fencing(Assert::NO_PRECEDE).wait_within(Budget::microseconds(20)) {
    ///     Ok(epoch) => epoch,
    ///     Err(late) => late.handle.wait()?,
    /// };
    /// epoch.put(world.rank().next(world.size()), 0, &[7])?;
    /// epoch.end()?;
    /// assert_eq!(window.local().get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn fencing(&self, assert: Assert) -> Fencing<'_, 'w, T, L> {
        called!(self.core.world);
        Fencing {
            turn: Turn {
                core: &self.core,
                assert,
                // Peers may have put under locks.
                before: Assert::empty(),
                phase: Phase::New,
                open: false,
            },
            element: PhantomData,
        }
    }
}

/// The result of a fence with a budget: the epoch after it.
pub type Fenced<'e, 'w, T, L> = Result<Fence<'e, 'w, T, L>, Unfinished<Fencing<'e, 'w, T, L>>>;

/// The next step of a fence.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The first one, which opens the window.
    New,
    Publish,
    Flush,
    Meet,
    Refresh,
    /// After it.
    Done,
}

/// A fence, from the epoch before it to the one after it.
#[derive(Debug)]
struct Turn<'e, 'w, L: Link> {
    core: &'e Core<'w, L>,
    assert: Assert,
    /// Of the fence before.
    before: Assert,
    phase: Phase,
    /// The window's epochs are this one's.
    open: bool,
}

impl<L: Link> Turn<'_, '_, L> {
    fn has(&self, assert: Assert) -> bool {
        self.assert.intersects(assert)
    }

    /// Goes through the steps that are left.
    fn cross(&mut self) -> Result<(), Error> {
        let core = self.core;
        let (world, call) = (core.world, Call::Fence(core.id));
        if self.phase == Phase::New {
            world.check_collective(call)?;
            self.open()?;
            self.phase = Phase::Publish;
        }
        // This rank's stores are refused from here on: they would not be published.
        core.exposed.set(core.all());
        if self.phase == Phase::Publish {
            if !self.has(Assert::NO_STORE) {
                // With NO_SUCCEED, too: the refresh would lose it, and the next fence may say that
                // nothing was stored since this one.
                point!(PUBLISH "G2; and no dirty line travels over later puts":
                    "fence.publish", core.publish(core.all())?);
            }
            self.phase = Phase::Flush;
        }
        order!("G1: accesses are complete before peers hear so": "fence.flush<meet",
            if self.phase == Phase::Flush {
                if !self.has(Assert::NO_PRECEDE) {
                    point!(FLUSH "G1: this rank's accesses are complete":
                        "fence.flush", world.wait().retry(|| world.link().flush(None))?);
                }
                self.phase = Phase::Meet;
            },
            if self.phase == Phase::Meet {
                if !self
                    .assert
                    .contains(Assert::NO_PRECEDE | Assert::NO_SUCCEED)
                {
                    point!(WAIT "G1, G3: all ranks have come":
                        "fence.meet", world.attempt(call, || world.arrive())?);
                }
                self.phase = Phase::Refresh;
            }
        );
        if self.phase == Phase::Refresh {
            if !self.has(Assert::NO_PRECEDE) && !self.before.contains(Assert::NO_PUT) {
                point!(REFRESH "G1: after the barrier old copies are dropped":
                    "fence.refresh", core.refresh(core.all())?);
            }
            self.phase = Phase::Done;
        }
        // Lines that peers may put to until the next fence.
        let nothing = Lines { start: 0, end: 0 };
        let closed = self.has(Assert::NO_PUT | Assert::NO_SUCCEED);
        core.exposed.set(if closed { nothing } else { core.all() });
        Ok(())
    }

    /// Begins: the window's epochs are the fence's.
    fn open(&mut self) -> Result<(), Error> {
        let core = self.core;
        core.open(&core.access_open)?;
        if let Err(error) = core.open(&core.exposure_open) {
            core.access_open.set(false);
            return Err(error);
        }
        self.open = true;
        Ok(())
    }

    fn close(&mut self) {
        if self.open {
            self.core.access_open.set(false);
            self.core.exposure_open.set(false);
            self.open = false;
        }
    }
}

impl<L: Link> Drop for Turn<'_, '_, L> {
    fn drop(&mut self) {
        if self.open {
            self.core.abandoned.set(true);
        }
    }
}

/// A fence that is not finished.
#[derive(Debug)]
#[must_use = "dropping this abandons the epoch"]
pub struct Fencing<'e, 'w, T, L: Link> {
    turn: Turn<'e, 'w, L>,
    element: PhantomData<T>,
}

impl<'e, 'w, T: Pod, L: Link> Fencing<'e, 'w, T, L> {
    fn crossed(self) -> Fence<'e, 'w, T, L> {
        let Self { turn, element } = self;
        Fence { turn, element }
    }
}

ends! {
    impl['e, 'w, T: Pod, L: Link] Fencing<'e, 'w, T, L>,
    in turn.core.world, by turn.cross then crossed;
    /// Waits for all ranks. Earlier steps are not repeated.
    ///
    /// # Errors
    /// [`Error::EpochOpen`], [`Error::EpochAbandoned`], [`Error::CollectiveUnfinished`],
    /// [`Error::PeerLost`], [`Error::PeerLeft`].
    wait -> Fence<'e, 'w, T, L>;
    /// # Errors
    /// Those of [`wait`](Self::wait); [`Error::Timeout`] naming the rank that was waited for. All
    /// with the handle again.
    wait_within;
    /// The epoch, if no rank must be waited for:
    test;
}

/// An epoch between two fences. Its accesses: [`Rma`], to any rank.
#[derive(Debug)]
#[must_use = "a fence epoch ends with `fence` or `end`"]
pub struct Fence<'e, 'w, T, L: Link> {
    turn: Turn<'e, 'w, L>,
    element: PhantomData<T>,
}

impl<'w, T: Pod, L: Link> Reach<'w, L> for Fence<'_, 'w, T, L> {
    type Told = Silent;

    fn core(&self) -> &Core<'w, L> {
        self.turn.core
    }

    #[inline]
    fn admits(&self, _: Rank) -> bool {
        !self.turn.has(Assert::NO_SUCCEED)
    }

    fn admit(&self, target: Rank) -> Result<(), Error> {
        if !self.admits(target) {
            return Err(Error::NotInGroup(target));
        }
        Ok(())
    }
}

impl<'w, T: Pod, L: Link> Rma<'w, T, L> for Fence<'_, 'w, T, L> {}

impl<'e, 'w, T: Pod, L: Link> Fence<'e, 'w, T, L> {
    /// Ends this epoch and opens the next. Collective; waits for all ranks.
    ///
    /// # Errors
    /// [`Error::PeerLost`], [`Error::PeerLeft`], and [`Error::CollectiveUnfinished`] (this rank has
    /// begun another collective call, and not ended it): the epoch is abandoned.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, epoch::Assert};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let next = world.rank().next(world.size());
    /// let first = window.fence(Assert::NO_PRECEDE)?;
    /// first.put(next, 0, &[7])?;
    /// let second = first.fence(Assert::empty())?;
    /// let mut got = [0];
    /// second.get(next, 0, &mut got)?;
    /// second.end()?;
    /// assert_eq!(got, [7]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn fence(self, assert: Assert) -> Result<Fence<'e, 'w, T, L>, Error> {
        called!(self.turn.core.world);
        self.fencing(assert).wait()
    }

    /// [`fence`](Fence::fence), with a handle: for programs that do not wait for ever.
    #[track_caller]
    pub fn fencing(self, assert: Assert) -> Fencing<'e, 'w, T, L> {
        called!(self.turn.core.world);
        let Self { mut turn, element } = self;
        turn.before = turn.assert;
        turn.assert = assert;
        turn.phase = Phase::Publish;
        Fencing { turn, element }
    }

    /// Ends this epoch, and opens none: a fence with [`Assert::NO_SUCCEED`], by all ranks.
    ///
    /// # Errors
    /// Those of [`fence`](Fence::fence).
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Rma as _, epoch::Assert};
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// let epoch = window.fence(Assert::NO_PRECEDE)?;
    /// epoch.put(world.rank().next(world.size()), 0, &[7])?;
    /// epoch.end()?;
    /// window.local().set(0, window.local().get(0)? + 1)?; // the piece is the owner's again
    /// assert_eq!(window.local().get(0)?, 8);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn end(self) -> Result<(), Error> {
        called!(self.turn.core.world);
        self.ending().wait()
    }

    /// [`end`](Fence::end), with a handle: for programs that do not wait for ever.
    #[track_caller]
    pub fn ending(self) -> Ending<'e, 'w, T, L> {
        called!(self.turn.core.world);
        Ending {
            fencing: self.fencing(Assert::NO_SUCCEED),
        }
    }
}

/// The last fence, which is not finished.
#[derive(Debug)]
#[must_use = "dropping this abandons the epoch"]
pub struct Ending<'e, 'w, T, L: Link> {
    fencing: Fencing<'e, 'w, T, L>,
}

impl<T: Pod, L: Link> Ending<'_, '_, T, L> {
    fn end(&mut self) -> Result<(), Error> {
        self.fencing.turn.cross()?;
        self.fencing.turn.close();
        Ok(())
    }
}

ends! {
    impl['e, 'w, T: Pod, L: Link] Ending<'e, 'w, T, L>,
    in fencing.turn.core.world, by end;
    /// Waits for all ranks. Earlier steps are not repeated.
    ///
    /// # Errors
    /// Those of [`Fence::fence`].
    wait -> ();
    /// # Errors
    /// Those of [`Fence::fence`], [`Error::Timeout`]: with the handle again.
    wait_within;
    /// Ends the epoch if all ranks have reached the fence:
    test;
}
