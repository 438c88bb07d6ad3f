//! The barrier: a dissemination, by itself and as the end of other calls. A rank fences its puts
//! once, before its first signal. A world begins with an agreement, which ends with its first
//! barrier: a rank makes sure there that another one is up before that is told anything.

use core::cell::Cell;

use flagpost_link::{Link, Refusal};

use super::{Agreement, Call, Rows, Step};
use crate::{Budget, Differs, Error, Missing, Timeout, Unfinished, Waiting, World};

impl<L: Link> World<'_, L> {
    /// Waits until every rank has called this. Earlier puts of all ranks are in memory then.
    ///
    /// Orders memory; it does not touch caches. O(log p) remote writes.
    ///
    /// # Errors
    /// [`Error::Timeout`] naming the rank that was waited for; call again to continue.
    /// [`Error::CollectiveUnfinished`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::Rank;
    ///
    /// let window = world.allocate::<u32>(1)?;
    /// if world.rank() == Rank::new(0) {
    ///     window.peer(Rank::new(1))?.set(0, 7)?;
    /// }
    /// world.barrier()?; // what rank 0 has stored is in memory then
    /// assert_eq!(window.peer(Rank::new(1))?.get(0)?, 7);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn barrier(&self) -> Result<(), Error> {
        called!(self);
        self.attempt(Call::Barrier, || self.order_and_arrive())
    }

    /// [`barrier`](World::barrier), with a handle: for programs that do something else until all
    /// ranks have come. This rank enters when the handle is waited for or tested first.
    ///
    /// From then on until the barrier is over, other collective calls are refused.
    ///
    /// # Errors
    /// [`Error::CollectiveUnfinished`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::Error;
    ///
    /// let mut entering = world.entering()?;
    /// while let Err(rest) = entering.test() {
    ///     let Error::Timeout(_) = rest.error else { return Err(rest.error) };
    ///     entering = rest.handle; // something else is done here
    /// }
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn entering(&self) -> Result<Entering<'_, L>, Error> {
        called!(self);
        self.check_no_collective()?;
        Ok(Entering { world: self })
    }

    /// [`barrier`](World::barrier), as a part of another call.
    pub(crate) fn order_and_arrive(&self) -> Result<(), Error> {
        point!(ORDER "G1: once, before the first signal, is enough: later rounds add nothing":
            "collective.barrier.fence", self.wait().retry(|| self.link().fence())?);
        self.arrive()
    }

    /// The same, for who has ordered what it put.
    pub(crate) fn arrive(&self) -> Result<(), Error> {
        self.collectives.barrier.run(self, Rows::All, |_, _| Ok(()))
    }

    /// The first agreement and barrier: each rank must be up before it is told anything, or takes
    /// anything. All ranks hear that they offer the same, or all fail, for ever.
    pub(crate) fn meet(&self, agreement: &Agreement) -> Result<(), Error> {
        let state = &self.collectives;
        if let Some(error) = state.failed.get() {
            return Err(error);
        }
        // Peers leave notes after the barrier, which this rank has not entered yet.
        if !agreement.is_complete() {
            self.open()?;
        }
        let odd = point!(CHECK "all ranks hear that one has another `Config`":
            "collective.meet.alike", self.agree(agreement)?; else self.agree(agreement)?.and(None));
        if let Some((rank, _)) = odd {
            let differs = Differs::Config;
            let error = Error::Asymmetric { rank, differs };
            state.failed.set(Some(error));
            return Err(error);
        }
        Ok(())
    }

    /// From here on, nothing of an earlier session reaches this rank.
    fn open(&self) -> Result<(), Error> {
        let missing = Cell::new(self.rank());
        let late = || Timeout {
            waiting: Waiting::StartUp,
            missing: Missing::one(missing.get()),
        };
        point!(WAIT "what came before is of an earlier session": "collective.meet.open",
            self.wait().taking().until(|| match self.link().connect(self.rank()) {
                Err(Refusal::NotReady(rank)) => {
                    missing.set(rank);
                    Ok(None)
                }
                result => Ok(Some(result?)),
            }, late)?);
        point!(CLEAR "no note of an earlier session is taken for one of this":
            "collective.meet.notes", self.clear_notes()?);
        Ok(())
    }

    /// Before the first barrier, the rank that `step` tells must be up.
    pub(super) fn reach(&self, step: Step) -> Result<(), Error> {
        if !self.started.get() {
            point!(WAIT "a rank that starts clears the words that this one stores to":
                "collective.meet.connect", self.wait().retry(|| self.link().connect(step.to))?);
        }
        Ok(())
    }
}

/// A barrier that not all ranks have entered, or this one has not.
///
/// Dropped after the first wait or test, it leaves the barrier unfinished: other collective calls
/// are refused until [`World::barrier`] has ended it.
#[derive(Debug)]
#[must_use = "a rank enters when the handle is waited for"]
pub struct Entering<'w, L> {
    world: &'w World<'w, L>,
}

impl<L: Link> Entering<'_, L> {
    fn enter(&mut self) -> Result<(), Error> {
        self.world
            .attempt(Call::Barrier, || self.world.order_and_arrive())
    }
}

ends! {
    impl['w, L: Link] Entering<'w, L>,
    in world, by enter;
    /// Waits until every rank has entered.
    ///
    /// # Errors
    /// [`Error::CollectiveUnfinished`], [`Error::PeerLost`], [`Error::PeerLeft`].
    wait -> ();
    /// # Errors
    /// Those of [`wait`](Self::wait); [`Error::Timeout`] naming the rank that was waited for. All
    /// with the handle again.
    wait_within;
    /// Enters, and is done if every rank has entered:
    test;
}
