//! Post–start–complete–wait: targets expose their pieces to named origins for one epoch.
//!
//! # Guarantee
//! G1. What an origin `put` before `complete` is seen by the target after `wait`.
//! G2. What the target stored before `post` is seen by the origin's `get`, after `start`.
//! G3. No put or get reaches a target before its `post` or after the origin's `complete`.
//!
//! Nothing else is ordered: two puts within one epoch are not.
//!
//! # Who does what
//! ```text
//!   target                                   origin
//!   post(origins) → Exposure                 start(targets) → Access       trigger-only: tells nobody,
//!      │  own stores are refused                │                          waits for nobody
//!      │                                        ├─ put, get: the first to a target waits for its post
//!      ▼                                        ▼
//!   wait: until all origins have completed   complete: waits for the posts that no access waited for
//! ```
//! One rank may be origin and target at the same time, also of itself.
//!
//! # Steps (words: see `flagpost-mapped::match_vector`)
//! | call       | core   | in order                                                             |
//! |------------|--------|----------------------------------------------------------------------|
//! | `post`     | target | publish the piece; counter = origins; set own bit in each origin's   |
//! |            |        | vector                                                               |
//! | `start`    | origin | nothing                                                              |
//! | first access | origin | until the target's bit is set in the own vector: poll              |
//! | `complete` | origin | for each target: until its bit is set: poll; clear the bit (which    |
//! |            |        | orders the puts). Then count each target's counter down              |
//! | `wait`     | target | until the counter is 0: poll; refresh the piece                      |
//!
//! Remote accesses: `post` and `complete` about 4 per peer (lock, load, store, unlock); `start` and `wait`
//! none.
//!
//! # Invariants
//! I1. A bit is cleared before its target is told of the completion. The target may post again at once; a
//!     clearing that came later would lose that post.
//! I2. The counter is set before anybody is told of the post, and reaches 0 only through the origins.
//! I3. Between `post` and `wait` the target's cache holds no dirty line of the piece.
//!
//! # Bounds
//! All waits take the world's budget. A call that runs out of it returns its handle in [`Unfinished`]; the
//! handle knows whom it has told already, so going on tells only the rest. A handle that is dropped
//! before its epoch's end makes the window refuse further epochs ([`Error::EpochAbandoned`]).
//!
//! # Source
//! [PSCW-SCC] IV-B, Algorithms 1 and 2, trigger-only in its Table I. We differ: clearing the bit takes the
//! lock too, as eight ranks share a byte.
//!
//! # Evidence
//! Cases `pscw.*` of the conformance table.
//!
//! [PSCW-SCC]: crate#sources

use core::cell::Cell;

use bytemuck::Pod;
use flagpost_link::{MatchVector, Rank, order, point};

use crate::{
    Error, Group, Missing, Timeout, Unfinished, Waiting, Window, arena::mask, window::Core,
};

impl<T: Pod, L: MatchVector> Window<'_, T, L> {
    /// Opens an exposure epoch: the ranks of `origins` may access the own piece until they complete.
    ///
    /// Writes the piece's dirty lines back. Waits for nothing but the origins' locks. The epoch ends with
    /// [`Exposure::wait`].
    ///
    /// # Errors
    /// [`Error::EpochOpen`], [`Error::EpochAbandoned`]: no epoch was opened. [`Error::Timeout`] naming the
    /// origin whose lock stayed taken, with a [`Posting`] to go on with.
    pub fn post<'e>(
        &'e self,
        origins: &Group<'e>,
    ) -> Result<Exposure<'e, L>, Unfinished<Posting<'e, L>>> {
        let posting = Posting {
            core: &self.core,
            origins: *origins,
            told: 0,
            opened: false,
        };
        posting.go_on()
    }

    /// Opens an access epoch to the ranks of `targets`. Tells and waits for nobody.
    ///
    /// The epoch ends with [`Access::complete`].
    ///
    /// # Errors
    /// [`Error::EpochOpen`], [`Error::EpochAbandoned`].
    pub fn start<'e>(&'e self, targets: &Group<'e>) -> Result<Access<'e, T, L>, Error> {
        let core = &self.core;
        core.open(&core.access_open)?;
        Ok(Access {
            window: self,
            ending: Completing {
                core,
                targets: *targets,
                retired: 0,
                told: 0,
                done: false,
            },
        })
    }
}

impl<L: MatchVector> Core<'_, L> {
    /// Marks one side's epoch as open.
    fn open(&self, side: &Cell<bool>) -> Result<(), Error> {
        if self.abandoned.get() {
            return Err(Error::EpochAbandoned);
        }
        if side.replace(true) {
            return Err(Error::EpochOpen);
        }
        Ok(())
    }

    /// Waits until `target` has posted to this rank.
    fn await_post(&self, target: Rank) -> Result<(), Error> {
        if self.admitted.contains(target.get()) {
            return Ok(());
        }
        let link = self.world.link();
        self.world.wait(
            || {
                let word = link.posted(self.sync, target.get() >> 5);
                Ok((word & mask(target.get()) != 0).then_some(()))
            },
            || Timeout {
                waiting: Waiting::Post,
                missing: Missing::one(target),
            },
        )?;
        self.admitted.insert(target.get());
        Ok(())
    }
}

/// A post that is not finished: some origins have not been told.
#[derive(Debug)]
#[must_use = "dropping this abandons the exposure epoch"]
pub struct Posting<'e, L: MatchVector> {
    core: &'e Core<'e, L>,
    origins: Group<'e>,
    /// How many origins have been told.
    told: u16,
    /// The epoch is open; else nothing has happened yet.
    opened: bool,
}

impl<'e, L: MatchVector> Posting<'e, L> {
    /// Tells the origins that have not been told yet.
    ///
    /// # Errors
    /// As [`Window::post`].
    pub fn go_on(mut self) -> Result<Exposure<'e, L>, Unfinished<Self>> {
        match self.tell() {
            Ok(()) => {
                self.opened = false; // The exposure answers for the epoch from now on.
                Ok(Exposure {
                    core: self.core,
                    origins: self.origins,
                    done: false,
                })
            }
            Err(error) => Err(Unfinished {
                handle: self,
                error,
            }),
        }
    }

    fn tell(&mut self) -> Result<(), Error> {
        let core = self.core;
        let (world, link) = (core.world, core.world.link());
        order!(
            "pscw.post.open<tell",
            if !self.opened {
                core.open(&core.exposure_open)?;
                self.opened = true;
                // PUBLISH: I3, G2.
                point!("pscw.post.publish", core.publish(core.all())?);
                // I2: before the first post.
                point!(
                    "pscw.post.expect",
                    link.expect(core.sync, self.origins.count())
                );
            },
            for &origin in self.origins.rest(self.told) {
                world.retry(|| link.post(core.sync, origin))?;
                // BUDGET: going on tells the rest only.
                point!("pscw.post.told", self.told = self.told.saturating_add(1));
            }
        );
        Ok(())
    }
}

impl<L: MatchVector> Drop for Posting<'_, L> {
    fn drop(&mut self) {
        if self.opened {
            self.core.abandoned.set(true);
        }
    }
}

/// An open exposure epoch.
#[derive(Debug)]
#[must_use = "an exposure epoch ends with `wait`"]
pub struct Exposure<'e, L: MatchVector> {
    core: &'e Core<'e, L>,
    origins: Group<'e>,
    done: bool,
}

impl<L: MatchVector> Exposure<'_, L> {
    /// Waits until all origins have completed. Then their puts are seen by own loads.
    ///
    /// # Errors
    /// [`Error::Timeout`] with how many origins are missing (the counter does not record who: the listed
    /// ranks are the group's first), and the epoch to go on with.
    pub fn wait(mut self) -> Result<(), Unfinished<Self>> {
        match self.finish() {
            Ok(()) => Ok(()),
            Err(error) => Err(Unfinished {
                handle: self,
                error,
            }),
        }
    }

    /// Whether all origins have completed; if so the epoch has ended, as by [`Exposure::wait`].
    /// Does not wait.
    ///
    /// # Errors
    /// Gives the epoch back while origins are missing.
    pub fn test(mut self) -> Result<(), Self> {
        // An origin may be waiting for room in our ring before it completes.
        point!("pscw.test.progress", {
            self.core.world.progress();
        });
        if self.core.world.link().missing(self.core.sync) == 0 && self.finish().is_ok() {
            return Ok(());
        }
        Err(self)
    }

    fn finish(&mut self) -> Result<(), Error> {
        let core = self.core;
        let link = core.world.link();
        let left = Cell::new(0);
        order!(
            "pscw.wait.wait<refresh",
            point!(
                "pscw.wait.wait",
                core.world.wait(
                    || {
                        left.set(link.missing(core.sync));
                        Ok((left.get() == 0).then_some(()))
                    },
                    || Timeout {
                        waiting: Waiting::Completion,
                        missing: Missing::among(self.origins.ranks().iter().copied(), left.get()),
                    },
                )?
            ),
            // REFRESH: G1: after the counter was seen; a core may fetch lines ahead at any time before.
            point!("pscw.wait.refresh", core.refresh(core.all())?)
        );
        core.exposure_open.set(false);
        self.done = true;
        Ok(())
    }
}

impl<L: MatchVector> Drop for Exposure<'_, L> {
    fn drop(&mut self) {
        if !self.done {
            self.core.abandoned.set(true);
        }
    }
}

/// An open access epoch.
#[derive(Debug)]
#[must_use = "an access epoch ends with `complete`"]
pub struct Access<'e, T, L: MatchVector> {
    window: &'e Window<'e, T, L>,
    ending: Completing<'e, L>,
}

impl<'e, T: Pod, L: MatchVector> Access<'e, T, L> {
    /// Stores `data` at `index` of `to`'s piece. The first access to a target waits for its post.
    ///
    /// `data` may be reused at once; `to` sees it after its `wait`. Cost: the stores; the first time also
    /// polls of the own match vector.
    ///
    /// # Errors
    /// [`Error::NotInGroup`], [`Error::OutOfRange`]; [`Error::Timeout`] if `to` has not posted.
    pub fn put(&self, to: Rank, index: usize, data: &[T]) -> Result<(), Error> {
        let offset = self.window.offset(index, data.len())?;
        self.admit(to)?;
        let (core, bytes) = (&self.window.core, bytemuck::cast_slice(data));
        Ok(core.world.link().put(to, core.key, offset, bytes)?)
    }

    /// Loads elements from `index` of `from`'s piece into `into`, which is filled on return. The first
    /// access to a target waits for its post.
    ///
    /// # Errors
    /// As [`Access::put`].
    pub fn get(&self, from: Rank, index: usize, into: &mut [T]) -> Result<(), Error> {
        let offset = self.window.offset(index, into.len())?;
        self.admit(from)?;
        let (core, bytes) = (&self.window.core, bytemuck::cast_slice_mut(into));
        Ok(core.world.link().get(from, core.key, offset, bytes)?)
    }

    /// Ends the epoch: all puts are placed, and the targets told. Waits for targets that have not posted
    /// yet (their counters are not valid before). As published, none is told before all have posted: so a
    /// target's post must not depend on another target's `wait`.
    ///
    /// # Errors
    /// [`Error::Timeout`] naming the target that was waited for, with a [`Completing`] to go on with.
    pub fn complete(self) -> Result<(), Unfinished<Completing<'e, L>>> {
        self.ending.go_on()
    }

    /// Waits for `target`'s post, unless an access has before.
    fn admit(&self, target: Rank) -> Result<(), Error> {
        let core = &self.window.core;
        if core.admitted.contains(target.get()) {
            return Ok(());
        }
        if !self.ending.targets.ranks().contains(&target) {
            return Err(Error::NotInGroup(target));
        }
        // WAIT: G3.
        point!("pscw.access.await_post", core.await_post(target); else Ok(()))
    }
}

/// An access epoch that is ending: no further put or get, and some targets have not been told.
#[derive(Debug)]
#[must_use = "dropping this abandons the access epoch"]
pub struct Completing<'e, L: MatchVector> {
    core: &'e Core<'e, L>,
    targets: Group<'e>,
    /// Targets whose bits are cleared, and targets that have been told.
    retired: u16,
    told: u16,
    done: bool,
}

impl<L: MatchVector> Completing<'_, L> {
    /// Goes on where the last attempt stopped.
    ///
    /// # Errors
    /// As [`Access::complete`].
    pub fn go_on(mut self) -> Result<(), Unfinished<Self>> {
        match self.finish() {
            Ok(()) => Ok(()),
            Err(error) => Err(Unfinished {
                handle: self,
                error,
            }),
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        let core = self.core;
        let (world, link) = (core.world, core.world.link());
        // I1: all bits are cleared before any target is told.
        point!(
            "pscw.complete.retire<tell",
            {
                for &target in self.targets.rest(self.retired) {
                    // WAIT: the target's counter is valid behind its post.
                    point!("pscw.complete.await_post", core.await_post(target)?);
                    world.retry(|| link.retire(core.sync, target))?;
                    // ORDER: the next epoch waits for the next post.
                    point!("pscw.complete.forget", core.admitted.remove(target.get()));
                    // BUDGET: going on clears no bit of a newer post.
                    point!("pscw.complete.retired", self.retired = self.retired.saturating_add(1));
                }
                // G1: the puts are ordered before the counters that announce them: by `retire`, so that
                // no fence is needed here.
                for &target in self.targets.rest(self.told) {
                    world.retry(|| link.complete(core.sync, target))?;
                    // BUDGET: going on counts nobody down twice.
                    point!("pscw.complete.told", self.told = self.told.saturating_add(1));
                }
            };
            // For the proof only: told first, bits cleared behind it.
            else {
                for &target in self.targets.ranks() {
                    core.await_post(target)?;
                }
                for &target in self.targets.rest(self.told) {
                    world.retry(|| link.complete(core.sync, target))?;
                    self.told = self.told.saturating_add(1);
                }
                for &target in self.targets.rest(self.retired) {
                    world.retry(|| link.retire(core.sync, target))?;
                    core.admitted.remove(target.get());
                    self.retired = self.retired.saturating_add(1);
                }
            }
        );
        core.access_open.set(false);
        self.done = true;
        Ok(())
    }
}

impl<L: MatchVector> Drop for Completing<'_, L> {
    fn drop(&mut self) {
        if !self.done {
            self.core.abandoned.set(true);
        }
    }
}
