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
//! # Steps
//! | call       | core   | in order                                                             |
//! |------------|--------|----------------------------------------------------------------------|
//! | `post`     | target | publish the lines; expect the origins; tell each origin              |
//! | `start`    | origin | nothing                                                              |
//! | first access | origin | until the target has told: poll own words                          |
//! | `complete` | origin | for each target: until it has told: poll; retire its post. Order the |
//! |            |        | puts. Then tell each target                                          |
//! | `wait`     | target | until all origins have told: poll own words; refresh the lines       |
//!
//! How a rank tells another is the window's [`Strategy`]:
//!
//! | strategy | `post`, per origin | `complete`, per target | memory per rank | needs |
//! |---|---|---|---|---|
//! | [`EpochSlots`], the default | 1 remote store | 1 remote store | 8 p bytes | nothing |
//! | [`MatchVector`], as published | 4 remote accesses | 4 remote accesses, 4 own | p / 8 + 4 bytes | remote words under locks |
//!
//! # Invariants
//! I1. A post is retired before its target is told of the completion. The target may post again at once; a
//!     retirement that came later would lose that post.
//! I2. The target expects its origins before any of them is told of the post.
//! I3. Between `post` and `wait` the target's cache holds no dirty line of what it has exposed: the piece, or the range given to
//!     `post_range`.
//!
//! # Bounds
//! All waits take the world's budget. A call that runs out of it returns its handle in [`Unfinished`]; the
//! handle knows whom it has told already, so going on tells only the rest. A handle that is dropped
//! before its epoch's end makes the window refuse further epochs ([`Error::EpochAbandoned`]).
//!
//! # Source
//! [PSCW-SCC] IV-B, Algorithms 1 and 2, trigger-only in its Table I.
//!
//! # Evidence
//! Cases `pscw.*` of the conformance table.
//!
//! [PSCW-SCC]: crate#sources

mod epoch_slots;
mod match_vector;
mod strategy;

use core::{cell::Cell, marker::PhantomData, ops::Range};

use bytemuck::Pod;
use flagpost_link::{Link, Rank, Refusal, order, point};

use crate::{
    Error, Group, Missing, Timeout, Unfinished, Waiting, Window,
    rma::{Reach, Rma},
    window::{Core, Lines},
};

pub use epoch_slots::EpochSlots;
pub use match_vector::MatchVector;
pub use strategy::Strategy;

impl<'w, T: Pod, L: Link, S: Strategy<'w, L>> Window<'w, T, L, S> {
    /// Opens an exposure epoch: the ranks of `origins` may access the own piece until they complete.
    ///
    /// Writes the piece's dirty lines back, if they are cached. Waits for nothing but the origins' locks, if the strategy has any. The epoch
    /// ends with [`Exposure::wait`].
    ///
    /// # Errors
    /// [`Error::EpochOpen`], [`Error::EpochAbandoned`]: no epoch was opened. [`Error::Timeout`] naming the
    /// origin that could not be told, with a [`Posting`] to go on with.
    pub fn post<'e>(
        &'e self,
        origins: &Group<'e>,
    ) -> Result<Exposure<'e, 'w, L, S>, Unfinished<Posting<'e, 'w, L, S>>> {
        self.post_lines(Ok(self.core.all()), origins)
    }

    /// [`post`](Window::post), for origins that access the elements `range` only: no other line is written back, invalidated
    /// at [`Exposure::wait`], or closed to own stores. That they keep to it is the program's promise: accesses to other lines
    /// are not refused, and may be lost there.
    ///
    /// # Errors
    /// As there; [`Error::OutOfRange`].
    pub fn post_range<'e>(
        &'e self,
        range: Range<usize>,
        origins: &Group<'e>,
    ) -> Result<Exposure<'e, 'w, L, S>, Unfinished<Posting<'e, 'w, L, S>>> {
        self.post_lines(self.lines(range), origins)
    }

    fn post_lines<'e>(
        &'e self,
        lines: Result<Lines, Error>,
        origins: &Group<'e>,
    ) -> Result<Exposure<'e, 'w, L, S>, Unfinished<Posting<'e, 'w, L, S>>> {
        let posting = Posting {
            side: Side::of(self),
            lines,
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
    pub fn start<'e>(&'e self, targets: &Group<'e>) -> Result<Access<'e, 'w, T, L, S>, Error> {
        self.core.open(&self.core.access_open)?;
        Ok(Access {
            element: PhantomData,
            ending: Completing {
                side: Side::of(self),
                targets: *targets,
                retired: 0,
                told: 0,
                done: false,
            },
        })
    }
}

/// One window, as its epochs see it.
#[derive(Debug)]
struct Side<'e, 'w, L, S> {
    core: &'e Core<'w, L>,
    sync: &'e S,
}

impl<L, S> Copy for Side<'_, '_, L, S> {}

impl<L, S> Clone for Side<'_, '_, L, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'e, 'w, L: Link, S: Strategy<'w, L>> Side<'e, 'w, L, S> {
    fn of<T>(window: &'e Window<'w, T, L, S>) -> Self {
        Self {
            core: &window.core,
            sync: &window.sync,
        }
    }

    /// Waits until `target` has posted to this rank.
    fn await_post(&self, target: Rank) -> Result<(), Error> {
        if self.sync.admitted(target) {
            return Ok(());
        }
        let world = self.core.world;
        world.wait(
            || Ok(transient(self.sync.posted(world.link(), target))?.then_some(())),
            || Timeout {
                waiting: Waiting::Post,
                missing: Missing::one(target),
            },
        )
    }
}

/// Not yet, if the link cannot tell yet.
fn transient(answer: Result<bool, Refusal>) -> Result<bool, Error> {
    match answer {
        Err(refusal) if refusal.is_transient() => Ok(false),
        other => Ok(other?),
    }
}

/// A post that is not finished: some origins have not been told.
#[derive(Debug)]
#[must_use = "dropping this abandons the exposure epoch"]
pub struct Posting<'e, 'w, L: Link, S: Strategy<'w, L>> {
    side: Side<'e, 'w, L, S>,
    /// What is exposed, if there is such a thing.
    lines: Result<Lines, Error>,
    origins: Group<'e>,
    /// How many origins have been told.
    told: u16,
    /// The epoch is open; else nothing has happened yet.
    opened: bool,
}

impl<'e, 'w, L: Link, S: Strategy<'w, L>> Posting<'e, 'w, L, S> {
    /// Tells the origins that have not been told yet.
    ///
    /// # Errors
    /// As [`Window::post`].
    pub fn go_on(mut self) -> Result<Exposure<'e, 'w, L, S>, Unfinished<Self>> {
        match self.tell() {
            Ok(()) => {
                self.opened = false; // The exposure answers for the epoch from now on.
                Ok(Exposure {
                    side: self.side,
                    origins: self.origins,
                    completed: Cell::new(0),
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
        let Side { core, sync } = self.side;
        let (world, link) = (core.world, core.world.link());
        order!(
            "pscw.post.open<tell",
            if !self.opened {
                let lines = self.lines?;
                core.open(&core.exposure_open)?;
                core.exposed.set(lines);
                self.opened = true;
                // PUBLISH: I3, G2.
                point!("pscw.post.publish", core.publish(lines)?);
                // I2: before the first post.
                point!("pscw.post.expect", sync.expect(link, &self.origins)?);
            },
            for &origin in self.origins.rest(self.told) {
                world.retry(|| sync.post(link, origin))?;
                // BUDGET: going on tells the rest only.
                point!("pscw.post.told", self.told = self.told.saturating_add(1));
            }
        );
        Ok(())
    }
}

impl<'w, L: Link, S: Strategy<'w, L>> Drop for Posting<'_, 'w, L, S> {
    fn drop(&mut self) {
        if self.opened {
            self.side.core.abandoned.set(true);
        }
    }
}

/// An open exposure epoch.
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
    /// Waits until all origins have completed. Then their puts are seen by own loads.
    ///
    /// # Errors
    /// [`Error::Timeout`] with how many origins are missing (`MatchVector`'s counter does not record who: the listed
    /// ranks are the group's first then), and the epoch to go on with.
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
            self.side.core.world.progress();
        });
        match transient(self.completed()) {
            Ok(true) if self.finish().is_ok() => Ok(()),
            _ => Err(self),
        }
    }

    fn completed(&self) -> Result<bool, Refusal> {
        let Side { core, sync } = self.side;
        sync.completed(core.world.link(), &self.origins, &self.completed)
    }

    fn finish(&mut self) -> Result<(), Error> {
        let Side { core, sync } = self.side;
        order!(
            "pscw.wait.wait<refresh",
            point!(
                "pscw.wait.wait",
                core.world.wait(
                    || Ok(transient(self.completed())?.then_some(())),
                    || Timeout {
                        waiting: Waiting::Completion,
                        missing: sync.missing(
                            core.world.link(),
                            &self.origins,
                            self.completed.get()
                        ),
                    },
                )?
            ),
            // REFRESH: G1: after the completions were seen; a core may fetch lines ahead at any time before.
            point!("pscw.wait.refresh", core.refresh(core.exposed.get())?)
        );
        core.exposure_open.set(false);
        self.done = true;
        Ok(())
    }
}

impl<'w, L: Link, S: Strategy<'w, L>> Drop for Exposure<'_, 'w, L, S> {
    fn drop(&mut self) {
        if !self.done {
            self.side.core.abandoned.set(true);
        }
    }
}

/// An open access epoch. Its puts and gets: [`Rma`]; the first to a target waits for its post.
#[derive(Debug)]
#[must_use = "an access epoch ends with `complete`"]
pub struct Access<'e, 'w, T, L: Link, S: Strategy<'w, L>> {
    element: PhantomData<T>,
    ending: Completing<'e, 'w, L, S>,
}

impl<'w, T: Pod, L: Link, S: Strategy<'w, L>> Reach<'w, L> for Access<'_, 'w, T, L, S> {
    fn core(&self) -> &Core<'w, L> {
        self.ending.side.core
    }

    fn admit(&self, target: Rank) -> Result<(), Error> {
        let Completing { side, targets, .. } = &self.ending;
        if side.sync.admitted(target) {
            return Ok(());
        }
        if !targets.ranks().contains(&target) {
            return Err(Error::NotInGroup(target));
        }
        // WAIT: G3.
        point!("pscw.access.await_post", side.await_post(target); else Ok(()))
    }
}

impl<'w, T: Pod, L: Link, S: Strategy<'w, L>> Rma<'w, T, L> for Access<'_, 'w, T, L, S> {}

impl<'e, 'w, T: Pod, L: Link, S: Strategy<'w, L>> Access<'e, 'w, T, L, S> {
    /// Ends the epoch: all puts are placed, and the targets told. Waits for targets that have not posted
    /// yet (their counters are not valid before). As published, none is told before all have posted: so a
    /// target's post must not depend on another target's `wait`.
    ///
    /// # Errors
    /// [`Error::Timeout`] naming the target that was waited for, with a [`Completing`] to go on with.
    pub fn complete(self) -> Result<(), Unfinished<Completing<'e, 'w, L, S>>> {
        self.ending.go_on()
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
    done: bool,
}

impl<'w, L: Link, S: Strategy<'w, L>> Completing<'_, 'w, L, S> {
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
        let Side { core, sync } = self.side;
        let (world, link) = (core.world, core.world.link());
        // I1: all posts are retired before any target is told.
        point!(
            "pscw.complete.retire<tell",
            {
                for &target in self.targets.rest(self.retired) {
                    // WAIT: the target expects this rank behind its post.
                    point!("pscw.complete.await_post", self.side.await_post(target)?);
                    world.retry(|| sync.retire(link, target))?;
                    // BUDGET: going on retires no newer post.
                    point!("pscw.complete.retired", self.retired = self.retired.saturating_add(1));
                }
                // ORDER: G1: the puts before what announces them.
                point!("pscw.complete.order", world.retry(|| sync.order(link))?);
                for &target in self.targets.rest(self.told) {
                    world.retry(|| sync.complete(link, target))?;
                    // BUDGET: going on tells nobody twice.
                    point!("pscw.complete.told", self.told = self.told.saturating_add(1));
                }
            };
            // For the proof only: told first, posts retired behind it.
            else {
                for &target in self.targets.ranks() {
                    self.side.await_post(target)?;
                }
                for &target in self.targets.rest(self.told) {
                    world.retry(|| sync.complete(link, target))?;
                    self.told = self.told.saturating_add(1);
                }
                for &target in self.targets.rest(self.retired) {
                    world.retry(|| sync.retire(link, target))?;
                    self.retired = self.retired.saturating_add(1);
                }
            }
        );
        core.access_open.set(false);
        self.done = true;
        Ok(())
    }
}

impl<'w, L: Link, S: Strategy<'w, L>> Drop for Completing<'_, 'w, L, S> {
    fn drop(&mut self) {
        if !self.done {
            self.side.core.abandoned.set(true);
        }
    }
}
