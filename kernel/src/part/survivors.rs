//! A smaller world after a loss. A [`Spare`] is a part of all ranks that nobody uses yet: its
//! memory, its slots and its windows are set aside while all ranks are there. After a loss the
//! ranks that are left agree on a list of themselves, and the spare becomes their part. No wait of
//! its world needs a lost rank. If one more rank is lost, that world ends as the first one did, and
//! the next spare is taken.
//!
//! # Guarantee
//! G1. All ranks that live on get the same part. A rank that is lost while they agree is in it on
//!     all of them, or on none.
//!
//! # Memory per rank
//! That of a part; for each rank of the larger world also a row of 32 bytes per 256 ranks, and a
//! slot. A row has a bit per rank: set if the rank is in the part.
//!
//! # Steps
//! The ranks speak one after the other, in the order of their numbers. A rank that speaks writes a
//! row into the memory of each other rank, and signals. The row is the last one that it has heard;
//! if it has heard none, the list of the ranks that it does not know to be gone. Each rank waits
//! for the row of each earlier rank, unless that rank is gone; then it speaks; then it waits for
//! the later ones.
//!
//! # Why G1 holds
//! Let i be the first rank that lives on. All others that do hear its row, and have the same from
//! then on. The rows that they hear later, of ranks that live on or die, say nothing else. No rank
//! waits for one that is done, since that one has spoken.
//!
//! # Source
//! Chandra, Toueg 1996: consensus by rotating coordinators, where no rank is lost by mistake.

use core::cell::Cell;

use flagpost_link::{Link, Op, Rank, Refusal, Slot};

use super::{Part, Room, SCRATCH, slots};
use crate::{Error, Missing, Timeout, Waiting, World};

/// Bytes of a row are put in pieces of this size.
const PIECE: usize = 32;

/// A part for the ranks that are left after a loss: see [`World::spare`].
///
/// Dropping it keeps its memory and windows taken.
#[derive(Debug)]
pub struct Spare<'w, L> {
    part: Part<'w, L>,
    /// The rank that speaks next.
    speaker: Cell<u16>,
    /// This rank has heard a row, or speaks.
    knows: Cell<bool>,
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
        let part = self.make_part(Ok(Some([0, 0])), room, row)?.wait()?;
        Ok(Spare {
            part,
            speaker: Cell::new(0),
            knows: Cell::new(false),
        })
    }

    fn is_gone(&self, rank: Rank) -> bool {
        self.link().is_lost(rank) || self.link().gone(Some(rank)).is_some()
    }
}

impl<'w, L: Link> Spare<'w, L> {
    /// The part of the ranks that are left, in the order of their numbers. Collective over these:
    /// each of them was told of a loss, by [`Error::PeerLost`]. All get the same part, once.
    ///
    /// A rank that is lost meanwhile may be in the part. Then a wait of the part's world says so.
    ///
    /// # Errors
    /// [`Error::PeerLost`] naming this rank: the others take it for lost. [`Error::Timeout`] naming
    /// a rank that has not called: call again to continue.
    #[track_caller]
    pub fn survivors(&self) -> Result<&Part<'w, L>, Error> {
        let world = self.part.world;
        called!(world);
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
                ranks()
                    .filter(|rank| *rank != speaker)
                    .try_for_each(|rank| self.tell(rank))?;
            }
            self.speaker.set(self.speaker.get().saturating_add(1));
        }
        Ok(())
    }

    /// Tells `to` this rank's row, unless that is gone. All of it again, if a budget ran out.
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
            self.ask(to, || link.signal(to, self.slot(me), 1).map(Some))?);
        Ok(())
    }

    /// Waits for the row of `from`, unless that is gone.
    fn hear(&self, from: Rank) -> Result<(), Error> {
        let (world, link) = (self.part.world, self.part.world.link());
        let signalled = || Ok(link.reached(self.slot(from), 1)?.then_some(()));
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
        let Part { world, windows, .. } = self.part;
        let first = slots(world.size().into(), windows);
        let slot = first.saturating_add(of.get().into());
        self.part.slots.plus(slot as usize)
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
