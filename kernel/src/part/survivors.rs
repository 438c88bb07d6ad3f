//! A smaller world after a loss. A [`Spare`] is a part of all ranks that nobody uses yet: its
//! memory, its slots and its windows are set aside while all ranks are there. After a loss the
//! ranks that are left agree on a list of themselves, and the spare becomes their part. No wait of
//! its world needs a lost rank. If one more rank is lost, that world ends as the first one did, and
//! the next spare is taken.
//!
//! # Guarantee
//! G1. All ranks that live on get the same part. A rank that is lost while they agree is in it on
//!     all of them, or on none.
//! G2. Once a rank has called for it, waits in other parts of the larger world end on each rank,
//!     also on one that does not know of the loss yet.
//!
//! # Memory per rank
//! That of a part; for each rank of the larger world also a row of 32 bytes per 256 ranks. A row
//! has a bit per rank: set if the rank is in the part. All spares of a world share a slot per rank.
//!
//! # Steps
//! First each rank signals all others that it has called. Then the ranks speak one after the other,
//! in the order of their numbers. A rank that speaks writes a row into the memory of each other
//! rank, and signals again. The row is the last one that it has heard; if it has heard none, the
//! list of the ranks that it does not know to be gone. Each rank waits for the row of each earlier
//! rank, unless that rank is gone; then it speaks; then it waits for the later ones.
//!
//! The slot of a rank counts both signals, of all spares that are used one after the other.
//!
//! # Why G1 holds
//! Let i be the first rank that lives on. All others that do hear its row, and have the same from
//! then on. The rows that they hear later, of ranks that live on or die, say nothing else. No rank
//! waits for one that is done, since that one has spoken.
//!
//! # Source
//! Chandra, Toueg 1996: consensus by rotating coordinators, where no rank is lost by mistake.

use core::cell::Cell;

use flagpost_link::{Link, Op, Rank, Refusal, Slot, Slots};

use super::{Part, Room, SCRATCH};
use crate::{Error, Missing, Timeout, Waiting, World};

/// Bytes of a row are put in pieces of this size.
const PIECE: usize = 32;

/// A part for the ranks that are left after a loss: see [`World::spare`].
///
/// Dropping it keeps its memory and windows taken.
#[derive(Debug)]
pub struct Spare<'w, L> {
    part: Part<'w, L>,
    /// This rank has called.
    has_begun: Cell<bool>,
    /// How many ranks it has told that it has called, and then its row.
    told: Cell<u32>,
    /// The rank that speaks next.
    speaker: Cell<u16>,
    /// This rank has heard a row, or speaks.
    knows: Cell<bool>,
}

/// The slots and counts that the spares of a world share.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Spares {
    /// How many there are.
    pub(super) count: u16,
    /// A slot per rank, while there are any.
    pub(super) slots: Slot,
    /// How many have been used.
    pub(super) used: u32,
    /// How many of them before the slots were taken.
    pub(super) before: u32,
}

impl Spares {
    pub(crate) const NONE: Self = Self {
        count: 0,
        slots: Slot(0),
        used: 0,
        before: 0,
    };

    /// How often a rank has signalled when it calls for the spare that is used after `used` others.
    fn calls(&self, used: u32) -> u32 {
        let here = used.saturating_sub(self.before);
        here.wrapping_mul(2).wrapping_add(1)
    }
}

/// How many ranks have their bits in a piece.
const RANKS: u16 = 256;

/// How many bytes the row of each of `ranks` has.
fn row(ranks: u16) -> usize {
    usize::from(ranks.div_ceil(RANKS)).saturating_mul(PIECE)
}

impl<'w, L: Link> World<'w, L> {
    /// Sets memory, slots and windows aside for a world of the ranks that a loss leaves. Collective
    /// over all ranks. `room` as for [`World::split`].
    ///
    /// After a loss no collective call of this world can end, and no wait. Chapter 7 of the guide
    /// says what else is known.
    ///
    /// # Errors
    /// Those of [`World::split`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Config, Error, Link, Room, World};
    ///
    /// fn work<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    ///     let mut ranks = [1];
    ///     world.allreduce(&mut ranks, |a, b| a + b)?;
    ///     assert_eq!(ranks, [u32::from(world.size())]);
    ///     world.barrier() // none ends before all have done their work
    /// }
    ///
    /// let spare = world.spare(Room { bytes: 1024, windows: 1 })?;
    /// match work(world) {
    ///     Err(Error::PeerLost(_)) => {
    ///         let mut words = [0; 96];
    ///         match spare.survivors()?.link() {
    ///             Some(link) => World::run(link, &mut words, Config::default(), work),
    ///             None => Ok(()), // it was taken before
    ///         }
    ///     }
    ///     done => done, // the spare ends with its world
    /// }
    /// # });
    /// ```
    #[track_caller]
    pub fn spare(&'w self, room: Room) -> Result<Spare<'w, L>, Error> {
        called!(self);
        let part = self.make_part(Ok(Some([0, 0])), room, row, 0)?.wait()?;
        Ok(Spare {
            part,
            has_begun: Cell::new(false),
            told: Cell::new(0),
            speaker: Cell::new(0),
            knows: Cell::new(false),
        })
    }

    fn is_gone(&self, rank: Rank) -> bool {
        self.link().is_lost(rank) || self.link().gone(Some(rank)).is_some()
    }

    /// One more spare: with the first one the slots of all.
    pub(super) fn add_spare(&self) -> Result<(), Refusal> {
        let mut spares = self.spares.get();
        if spares.count == 0 {
            let slots = Slots::Count(self.size().into());
            spares.slots = self.link().allocate_slots(slots)?;
            spares.before = spares.used;
        }
        spares.count = spares.count.saturating_add(1);
        self.spares.set(spares);
        Ok(())
    }

    pub(super) fn remove_spare(&self) {
        let mut spares = self.spares.get();
        spares.count = spares.count.saturating_sub(1);
        if spares.count == 0 {
            self.link().withdraw(spares.slots);
        }
        self.spares.set(spares);
    }
}

impl<L: Link> Part<'_, L> {
    /// True if a rank has called for a spare that is used later: see G2.
    pub(super) fn is_revoked(&self) -> bool {
        let (world, before) = (self.world, self.before.get());
        let spares = world.spares.get();
        let has_called = |rank| {
            let slot = spares.slots.plus(usize::from(rank));
            world.link().reached(slot, spares.calls(before)) == Ok(true)
        };
        spares.count > 0 && (spares.used > before || (0..world.size()).any(has_called))
    }
}

impl<'w, L: Link> Spare<'w, L> {
    /// The part of the ranks that are left, in the order of their numbers. Collective over these:
    /// each of them was told of a loss, by [`Error::PeerLost`] or [`Error::Revoked`]. All get the
    /// same part, once. From the first call on, waits in all other parts of the larger world end,
    /// by `Revoked`.
    ///
    /// A rank that is lost meanwhile may be in the part. Then a wait of the part's world says so.
    ///
    /// # Errors
    /// [`Error::PeerLost`] naming this rank: the others take it for lost. [`Error::Timeout`] naming
    /// a rank that has not called: call again to continue. [`Error::Revoked`] if the larger world
    /// is a part's itself, and a rank has called `survivors` of the world around that.
    #[track_caller]
    pub fn survivors(&self) -> Result<&Part<'w, L>, Error> {
        let world = self.part.world;
        called!(world);
        if !self.has_begun.replace(true) {
            let spares = world.spares.get();
            let used = spares.used.saturating_add(1);
            world.spares.set(Spares { used, ..spares });
            self.part.before.set(used);
        }
        world.surviving.set(true);
        let agreed = self.all_speak();
        world.surviving.set(false);
        agreed?;
        let me = world.rank();
        match self.mark(me).map(Cell::get) {
            None | Some(0) => Err(Error::PeerLost(me)),
            Some(_) => Ok(&self.part),
        }
    }

    /// Gives it back, if no rank is lost. Collective over all ranks, as [`Part::free`].
    ///
    /// # Errors
    /// Those of [`Part::free`].
    #[track_caller]
    pub fn free(self) -> Result<(), Error> {
        called!(self.part.world);
        self.part.freeing().wait()
    }

    /// All ranks speak, from where the last call stopped.
    fn all_speak(&self) -> Result<(), Error> {
        let world = self.part.world;
        self.tell_all(0, |rank| self.signal(rank, self.calls()))?;
        let ranks = || (0..world.size()).map(Rank::new);
        while self.speaker.get() < world.size() {
            let speaker = Rank::new(self.speaker.get());
            if speaker != world.rank() {
                self.hear(speaker)?;
            } else {
                if !self.knows.replace(true) {
                    for rank in ranks() {
                        self.set(rank, !world.is_gone(rank));
                    }
                }
                self.tell_all(world.size(), |rank| self.tell(rank))?;
            }
            self.speaker.set(self.speaker.get().saturating_add(1));
        }
        Ok(())
    }

    /// Tells each other rank something, of which `before` ranks were told other things. Nobody is
    /// told twice.
    fn tell_all(&self, before: u16, tell: impl Fn(Rank) -> Result<(), Error>) -> Result<(), Error> {
        let world = self.part.world;
        let done = self.told.get().saturating_sub(before.into());
        for rank in (0..world.size()).map(Rank::new).skip(done as usize) {
            if rank != world.rank() {
                tell(rank)?;
            }
            self.told.set(self.told.get().saturating_add(1));
        }
        Ok(())
    }

    /// How often a rank that has called has signalled.
    fn calls(&self) -> u32 {
        let used = self.part.before.get().saturating_sub(1);
        self.part.world.spares.get().calls(used)
    }

    fn signal(&self, to: Rank, count: u32) -> Result<(), Error> {
        let (link, slot) = (self.part.world.link(), self.slot(self.part.world.rank()));
        self.ask(to, || link.signal(to, slot, count).map(Some))?;
        Ok(())
    }

    /// Tells `to` this rank's row, unless that is gone. The row again, if a budget ran out.
    fn tell(&self, to: Rank) -> Result<(), Error> {
        let (link, me) = (self.part.world.link(), self.part.world.rank());
        let pieces = || {
            for (at, ranks) in self.pieces(me) {
                let mut bits = [0; PIECE];
                for (rank, (byte, bit)) in ranks {
                    if let Some(byte) = bits.get_mut(byte)
                        && self.mark(rank).is_some_and(|mark| mark.get() != 0)
                    {
                        *byte |= bit;
                    }
                }
                self.ask(to, || link.put(to, self.part.share, at, &bits).map(Some))?;
            }
            point!(ORDER "G1: the row is in memory before the signal for it":
                "part.survivors.fence", self.ask(to, || link.fence().map(Some))?; else None);
            Ok::<(), Error>(())
        };
        order!("G1: a rank that is signalled reads the row": "part.survivors.row<signal",
            pieces()?,
            self.signal(to, self.calls().wrapping_add(1))?);
        Ok(())
    }

    /// Waits for the row of `from`, unless that is gone.
    fn hear(&self, from: Rank) -> Result<(), Error> {
        let (world, link) = (self.part.world, self.part.world.link());
        let spoken = self.calls().wrapping_add(1);
        let signalled = || Ok(link.reached(self.slot(from), spoken)?.then_some(()));
        let heard = point!(WAIT "G1: the rank has spoken":
            "part.survivors.wait", self.ask(from, signalled)?; else Some(()));
        if heard.is_none() {
            return Ok(());
        }
        for (at, ranks) in self.pieces(from) {
            let mut bits = [0_u8; PIECE];
            link.get(world.rank(), self.part.share, at, &mut bits, &Op::new())?;
            for (rank, (byte, bit)) in ranks {
                self.set(rank, bits.get(byte).is_some_and(|byte| byte & bit != 0));
            }
        }
        self.knows.set(true);
        Ok(())
    }

    /// Repeats `operation`, which is about `rank`, until it gives something. None if the rank is
    /// gone before.
    fn ask<T>(
        &self,
        rank: Rank,
        mut operation: impl FnMut() -> Result<Option<T>, Refusal>,
    ) -> Result<Option<T>, Error> {
        let world = self.part.world;
        let late = || Timeout {
            waiting: Waiting::Collective,
            missing: Missing::one(rank),
        };
        world.wait().until(
            || {
                // Looked for before the poll: all that it has done before it was gone is there.
                let is_gone = world.is_gone(rank);
                match operation() {
                    Ok(Some(done)) => Ok(Some(Some(done))),
                    // Of another rank's loss the link tells once.
                    Ok(None) | Err(Refusal::PeerLost(_)) => Ok(is_gone.then_some(None)),
                    Err(refusal) if refusal.is_transient() => Ok(is_gone.then_some(None)),
                    Err(refusal) => Err(refusal.into()),
                }
            },
            late,
        )
    }

    /// The pieces of the row of `rank`: where it lies, and the ranks that it has bits of, each with
    /// its byte and its bit.
    fn pieces(
        &self,
        rank: Rank,
    ) -> impl Iterator<Item = (usize, impl Iterator<Item = (Rank, (usize, u8))>)> {
        let size = self.part.world.size();
        let before = row(size).saturating_mul(rank.index());
        let start = usize::from(size)
            .saturating_mul(SCRATCH)
            .saturating_add(before);
        (0..size.div_ceil(RANKS)).map(move |piece| {
            let first = piece.saturating_mul(RANKS);
            let all = first..size.min(first.saturating_add(RANKS));
            let bits = (0..PIECE).flat_map(|byte| (0..u8::BITS).map(move |bit| (byte, 1 << bit)));
            let at = start.saturating_add(usize::from(piece).saturating_mul(PIECE));
            (at, all.map(Rank::new).zip(bits))
        })
    }

    fn slot(&self, of: Rank) -> Slot {
        self.part.world.spares.get().slots.plus(of.index())
    }

    fn mark(&self, rank: Rank) -> Option<&Cell<u32>> {
        self.part.halves().1.get(rank.index())
    }

    fn set(&self, rank: Rank, is_in: bool) {
        if let Some(mark) = self.mark(rank) {
            mark.set(is_in.into());
        }
    }
}
