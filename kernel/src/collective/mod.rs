//! Collective calls: barrier, allgather and agreement, by dissemination.
//!
//! # Guarantee
//! G1. No rank leaves a barrier before every rank has entered it; what any rank put (and, past the caches,
//!     stored) before it entered is in memory then.
//! G2. An allgather gives every rank the element of every rank.
//! G3. An agreement tells every rank whether all ranks offered the same.
//!
//! # Steps
//! In round r = 0, 1, … while 2^r < p, rank i tells rank i + 2^r (mod p) and waits for rank i - 2^r.
//! After round r it has heard, directly or through others, from the 2^(r+1) ranks i, i-1, …; after the last
//! from all. An allgather sends the elements heard so far along with each signal, an agreement what they
//! come to.
//!
//! | call        | remote writes per rank               | waits |
//! |-------------|--------------------------------------|-------|
//! | `barrier`   | ceil(log2 p) words                   | ceil(log2 p) |
//! | `allgather` | p - 1 elements, 2 ceil(log2 p) words | 2 ceil(log2 p) |
//! | `agree`     | ceil(log2 p) times 24 bytes, 2 ceil(log2 p) words | 2 ceil(log2 p) |
//!
//! # Invariants
//! I1. Slot r (and 16 + r) of rank i has one writer, rank i - 2^r; values count the calls.
//! I2. Each place in a rank's scratch memory is written by one rank per call, and not again before every
//!     rank has read all of it: hence the barrier at the end of what uses it.
//!
//! # Bounds
//! A call whose budget runs out can be repeated with the same arguments: it goes on in the round where it
//! stopped, and signals nobody twice.
//!
//! # Source
//! [foMPI] 2.3 (barrier in O(log p)); Hensgen, Finkel, Manber 1988 for the dissemination barrier.
//!
//! [foMPI]: crate#sources

mod agree;
mod allgather;

use core::cell::Cell;

use flagpost_link::{Link, Rank, Refusal, Slot, order, point};

use crate::{Error, Missing, Timeout, Waiting, World};

/// First slot of barriers, and of allgathers.
const BARRIER: u32 = 0;
const GATHER: u32 = 16;

/// Where a rank stands in its collective calls.
#[derive(Debug)]
pub(crate) struct Collectives {
    barrier: Rounds,
    gather: Rounds,
    /// All elements of an allgather have arrived here; what is left is its barrier.
    arrived: Cell<bool>,
}

impl Collectives {
    pub(crate) fn new() -> Self {
        Self {
            barrier: Rounds::new(BARRIER),
            gather: Rounds::new(GATHER),
            arrived: Cell::new(false),
        }
    }
}

/// One round.
#[derive(Copy, Clone, Debug)]
struct Step {
    round: u8,
    /// 2^round.
    distance: u16,
    /// The rank that is told.
    to: Rank,
}

/// The rounds of one kind of call.
#[derive(Debug)]
struct Rounds {
    first_slot: u32,
    /// Calls finished; the value of the slots.
    finished: Cell<u32>,
    round: Cell<u8>,
    /// How much of this round's data has been put, as `send` counts it.
    placed: Cell<u32>,
    /// This round's signal has been sent.
    signalled: Cell<bool>,
}

impl Rounds {
    fn new(first_slot: u32) -> Self {
        Self {
            first_slot,
            finished: Cell::new(0),
            round: Cell::new(0),
            placed: Cell::new(0),
            signalled: Cell::new(false),
        }
    }

    /// Goes through the rounds from where the last attempt stopped. `send` comes before each signal; again, if its
    /// budget ran out, to go on from what it has noted in `placed`. `receive` comes after each signal that was waited
    /// for, once.
    fn run<L: Link>(
        &self,
        world: &World<'_, L>,
        mut send: impl FnMut(Step) -> Result<(), Error>,
        mut receive: impl FnMut(Step) -> Result<(), Refusal>,
    ) -> Result<(), Error> {
        let (link, size) = (world.link(), world.size());
        let number = self.finished.get().wrapping_add(1);
        loop {
            let round = self.round.get();
            let distance = 1_u32.wrapping_shl(u32::from(round));
            if distance >= u32::from(size) {
                break;
            }
            let distance = distance as u16; // below size, a u16
            let step = Step {
                round,
                distance,
                to: link.rank().ahead(distance, size),
            };
            let slot = Slot(self.first_slot).plus(u32::from(round));
            let from = link.rank().ahead(size.saturating_sub(distance), size);
            if !self.signalled.get() {
                order!(
                    "collective.round.send<signal",
                    send(step)?,
                    world.retry(|| link.signal(step.to, slot, number))?
                );
                self.signalled.set(true);
            }
            order!(
                "collective.round.wait<receive",
                point!(
                    "collective.round.wait",
                    world.wait(
                        || Ok(link.reached(slot, number)?.then_some(())),
                        || Timeout {
                            waiting: Waiting::Collective,
                            missing: Missing::one(from),
                        },
                    )?
                ),
                receive(step)?
            );
            self.signalled.set(false);
            self.placed.set(0);
            self.round.set(round.saturating_add(1));
        }
        self.round.set(0);
        self.finished.set(number);
        Ok(())
    }
}

impl<L: Link> World<'_, L> {
    /// Waits until every rank has called this. Earlier puts of all ranks are in memory then.
    ///
    /// Orders memory; it does not touch caches. O(log p) remote writes.
    ///
    /// # Errors
    /// [`Error::Timeout`] naming the rank that was waited for; call again to go on.
    pub fn barrier(&self) -> Result<(), Error> {
        // ORDER: G1: once, before the first signal, is enough: later rounds add nothing. A rank that is alone sends
        // no signal, and has its puts in memory all the same.
        point!(
            "collective.barrier.fence",
            self.retry(|| self.link().fence())?
        );
        self.gather()
    }

    /// [`barrier`](World::barrier), for who has ordered what it put.
    pub(crate) fn gather(&self) -> Result<(), Error> {
        self.collectives.barrier.run(self, |_| Ok(()), |_| Ok(()))
    }

    /// The first barrier: each peer must be up before it is told anything.
    pub(crate) fn meet(&self) -> Result<(), Error> {
        let connect = |step: Step| {
            // ORDER: who starts up clears the words that we are about to store to.
            point!(
                "collective.meet.connect",
                self.retry(|| self.link().connect(step.to))?
            );
            Ok(())
        };
        self.collectives.barrier.run(self, connect, |_| Ok(()))
    }
}
