//! The queue before an exclusive lock: a rank that waits looks at its own memory. Each rank swaps
//! itself into one word at the target, and tells the rank that was there before. So a lock that
//! many want costs few remote accesses, and ranks come in order.
//!
//! # Steps
//! * Lock, at the origin: its turn changes from idle to waiting, its next becomes none. It swaps
//!   itself into the target's tail. If a rank was there, the origin tells that rank which one is
//!   next, and watches its own turn until that has come. Then it takes the words.
//! * Unlock: the origin gives the words back, and passes the turn on.
//! * Pass on: if no rank is next, the tail changes from this rank to none. Otherwise, or if the
//!   tail is another rank: this rank's turn becomes idle, the next rank's turn changes from
//!   `WAITING` to `COME`. A next rank that has given up is passed over: the origin does the same
//!   for that rank's turn.
//! * Give up: this rank's turn changes from waiting to gone. If the turn has come meanwhile, pass
//!   it on.
//!
//! # Invariants
//! I1. A rank is in one queue of a window at a time: it has one `next` and one turn. One that gave
//!     up is in it until it was passed over.
//! I2. Only the first of a queue takes the words.
//!
//! # Ranks that are named
//! A rank knows its neighbours in the queue, not the ranks further away: a lock that runs out of
//! its budget names the rank it stands behind, which has the lock, or waits for it too (and names
//! the one before it), or has given up. An unlock that does, names the last one that had come when
//! the rank after it should have told. It is that one, if only one had come.
//!
//! # Source
//! Mellor-Crummey and Scott 1991; leaving it early as in Scott and Scherer 2001.

use flagpost_link::{Amo, Link, Rank};

use super::words::{Step as WordStep, Words, swap_if};
use crate::{Error, Missing, Timeout, Waiting, window::cell};

/// A rank's turn.
const IDLE: u32 = 0;
const WAITING: u32 = 1;
const COME: u32 = 2;
const GONE: u32 = 3;

/// Where a rank stands in a queue.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Not in it.
    #[default]
    Out,
    /// Its turn is waiting, its next perhaps not cleared.
    Ready,
    /// It can join the queue.
    Clear,
    /// It has come, and this rank, which was last, has not been told.
    Behind(Rank),
    /// It waits for this rank.
    Waiting(Rank),
    /// It is first.
    First,
    /// It is first, and passes on the turn of this rank, which is its own or has given up.
    Passing(Rank),
    /// As above; a rank has come after it and has not told. The last of those that had come then.
    Awaiting(Rank, Rank),
    /// As above; it was found out who is next.
    Next(Rank, Rank),
    /// This rank's turn is over; the next one is to be told.
    Telling(Rank),
}

#[derive(Debug, Default)]
pub(super) struct Queue(Place);

/// A step of the queue.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Step {
    Ready,
    Clear,
    Come,
    Tell,
    GiveUp,
    Close,
    End,
    Pass,
}

impl Queue {
    /// True if this rank is not in it.
    pub(super) fn is_out(&self) -> bool {
        self.0 == Place::Out
    }

    /// `step` was done, and found `old`.
    pub(super) fn done(&mut self, step: Step, old: u32) {
        self.0 = match (step, self.0) {
            (Step::Ready, _) if old == IDLE => Place::Ready,
            (Step::Clear, _) => Place::Clear,
            (Step::Come, _) => match rank_of(old) {
                None => Place::First,
                Some(last) => Place::Behind(last),
            },
            (Step::Tell, Place::Behind(before)) => Place::Waiting(before),
            (Step::GiveUp, _) if old == WAITING => Place::Out,
            (Step::GiveUp, _) => Place::First,
            // Nobody had come after `rank`: its turn ends, and nobody is told.
            (Step::Close, Place::Passing(rank)) if rank_of(old) == Some(rank) => {
                Place::Next(rank, rank)
            }
            (Step::Close, Place::Passing(rank)) => {
                Place::Awaiting(rank, rank_of(old).unwrap_or(rank))
            }
            (Step::End, Place::Next(rank, next)) if rank == next => Place::Out,
            (Step::End, Place::Next(_, next)) => Place::Telling(next),
            (Step::Pass, Place::Telling(_)) if old == WAITING => Place::Out,
            (Step::Pass, Place::Telling(next)) => Place::Passing(next),
            (_, place) => place,
        };
    }
}

/// A rank in a cell where 0 is none.
const fn cell_of(rank: Rank) -> u64 {
    (rank.get() as u64).saturating_add(1)
}

const fn rank_of(cell: u32) -> Option<Rank> {
    match cell.checked_sub(1) {
        Some(rank) => Some(Rank::new(rank as u16)),
        None => None,
    }
}

/// A wait that `rank` must end, as far as is known.
fn in_line(rank: Rank) -> Timeout {
    Timeout {
        waiting: Waiting::Queue,
        missing: Missing::one(rank),
    }
}

impl<L: Link> Words<'_, '_, L> {
    fn queue_step(&mut self, rank: Rank, cell: u32, amo: Amo, step: Step) -> Result<u32, Error> {
        self.step(rank, cell, amo, WordStep::Queue(step))
    }

    /// Waits until this rank's turn is as it should be. Else: it `waits` for that.
    fn watch(&mut self, waits: Timeout, arrived: impl Fn(u32) -> bool) -> Result<u32, Error> {
        let cell = cell::TURN;
        let (world, key) = (self.core.world, self.core.cells);
        self.look_at(world.rank(), cell);
        let value = world.wait().until(
            || match world.link().watch(key, cell as usize, &arrived, &self.op) {
                Err(refusal) if refusal.is_transient() => Ok(None),
                other => Ok(other?),
            },
            || waits,
        );
        self.looked(value)
    }

    /// Joins the queue, and waits until it is first.
    pub(super) fn line_up(&mut self) -> Result<(), Error> {
        let me = self.core.world.rank();
        loop {
            match self.queue.0 {
                Place::Out => {
                    let ready = swap_if(IDLE, WAITING);
                    // I1 is kept by the swap: while a turn that was given up has not been passed
                    // over, it fails. Looking before saves locks, and nothing else.
                    self.watch(self.taken_by_others(cell::TURN, 0), |turn| turn == IDLE)?;
                    self.queue_step(me, cell::TURN, ready, Step::Ready)?;
                }
                Place::Ready => {
                    let none = Amo::Swap(0);
                    point!(CLEAR "the rank that was next the last time is forgotten":
                        "lock.queue.clear", _ = self.queue_step(me, cell::NEXT, none, Step::Clear)?;
                        else self.queue.done(Step::Clear, 0));
                }
                Place::Clear => {
                    let last = Amo::Swap(cell_of(me));
                    self.queue_step(self.target(), cell::TAIL, last, Step::Come)?;
                }
                Place::Behind(before) => {
                    let next = Amo::Swap(cell_of(me));
                    self.queue_step(before, cell::NEXT, next, Step::Tell)?;
                }
                Place::Waiting(before) => {
                    point!(WAIT "I2: the rank before this one has left":
                        "lock.queue.wait", _ = self.watch(in_line(before), |turn| turn == COME)?);
                    self.queue.0 = Place::First;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Leaves the queue, if it is in it; the turn, if it has come, goes to the next one that wants
    /// it.
    #[inline]
    pub(super) fn leave_queue(&mut self) -> Result<(), Error> {
        // Where caches are kept in step no look is in flight.
        if L::FAST && matches!(self.queue.0, Place::Out) {
            return Ok(());
        }
        self.leave_queue_long()
    }

    #[inline(never)]
    fn leave_queue_long(&mut self) -> Result<(), Error> {
        let (me, size) = (self.core.world.rank(), self.core.world.size());
        // Ranks that were passed over: they had given up. More than there are come again and again,
        // or words are not what ranks of this world store: each call ends.
        let mut passed = 0_u16;
        loop {
            match self.queue.0 {
                Place::Out => {
                    self.drop_look();
                    return Ok(());
                }
                Place::Ready | Place::Clear => self.queue.0 = Place::Next(me, me),
                Place::Behind(before) => {
                    let next = Amo::Swap(cell_of(me));
                    self.queue_step(before, cell::NEXT, next, Step::Tell)?;
                }
                Place::Waiting(_) => {
                    let gone = swap_if(WAITING, GONE);
                    self.queue_step(me, cell::TURN, gone, Step::GiveUp)?;
                }
                Place::First => self.queue.0 = Place::Passing(me),
                Place::Passing(rank) => self.find_next(rank)?,
                Place::Awaiting(rank, last) => self.await_next(rank, last)?,
                Place::Next(rank, _) => {
                    // END: I1.
                    self.queue_step(rank, cell::TURN, Amo::Swap(IDLE.into()), Step::End)?;
                }
                Place::Telling(next) => {
                    let come = swap_if(WAITING, COME);
                    self.queue_step(next, cell::TURN, come, Step::Pass)?;
                    if matches!(self.queue.0, Place::Passing(_)) {
                        passed = passed.saturating_add(1);
                        if passed > size {
                            return Err(Error::Timeout(in_line(next)));
                        }
                    }
                }
            }
        }
    }

    /// Finds the rank that comes after `rank`, or closes the queue.
    fn find_next(&mut self, rank: Rank) -> Result<(), Error> {
        if let Some(next) = self.next_of(rank)? {
            self.queue.0 = Place::Next(rank, next);
            return Ok(());
        }
        let none = Amo::CompareSwap {
            expected: cell_of(rank),
            new: 0,
        };
        self.queue_step(self.target(), cell::TAIL, none, Step::Close)?;
        Ok(())
    }

    /// Waits until the rank that has come after `rank` has told so. That is `last`, unless others
    /// had come before it: they are not known before they tell.
    fn await_next(&mut self, rank: Rank, last: Rank) -> Result<(), Error> {
        let next = self
            .core
            .world
            .wait()
            .until(|| self.next_of(rank), || in_line(last))?;
        self.queue.0 = Place::Next(rank, next);
        Ok(())
    }

    /// The rank that is known to come after `rank`.
    fn next_of(&mut self, rank: Rank) -> Result<Option<Rank>, Error> {
        let (world, key) = (self.core.world, self.core.cells);
        self.look_at(rank, cell::NEXT);
        let (link, op) = (world.link(), &self.op);
        let next = if rank == world.rank() {
            let next = world
                .wait()
                .retry(|| link.watch(key, cell::NEXT as usize, |next| next != 0, op));
            next.map(|next| next.and_then(rank_of))
        } else {
            let half = flagpost_link::Width::Half;
            let next = world
                .wait()
                .retry(|| link.amo(rank, key, cell::NEXT as usize, Amo::Read, half, op));
            next.map(|next| rank_of(next as u32))
        };
        self.looked(next)
    }
}
