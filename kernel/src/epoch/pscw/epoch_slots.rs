//! Posts and completions as numbers, each in a slot of its own writer. So there is no lock, and no
//! reset. A message is one store. This is the strategy that windows have by default.
//!
//! # How
//! Every rank has, per window, two slots for every peer. A target's n-th post to an origin sets the
//! target's *post slot* at the origin to n; when the origin completes that epoch, it sets its
//! *completion slot* at the target to n. Both count for themselves which n is next, and numbers are
//! only ever compared with "reached": so nothing is cleared, a post of the next epoch may come
//! early, and nobody reads another's memory.
//!
//! # Cost
//! `post`: 1 remote store per origin. `complete`: 1 per target, and one fence in all. Memory per
//! rank and window: shared `8 p` bytes, in the message buffer while that has room; up to 16 ranks
//! whose machine keeps its caches in step: a line per peer; private `2 p + ceil(p / 32)` arena
//! words.
//!
//! # Source
//! Ours; the idea that a word with a single writer needs no lock is that of flag arrays in RCCE and
//! in [foMPI]'s barrier.
//!
//! [foMPI]: crate#sources

use core::cell::Cell;

use flagpost_link::{Link, Rank, Refusal, Slot, Slots};

use super::Strategy;
use crate::{Error, Group, Missing, World, arena::RankSet, making::halves};

/// Our strategy, and the default: one slot per peer, with one writer.
#[derive(Debug)]
pub struct EpochSlots<'w> {
    /// Of the ranks that post to this one, then of those that complete at this one.
    slots: Slot,
    /// Per rank: how many of its posts were retired here.
    accessed: &'w [Cell<u32>],
    /// Per rank: how many posts it was told of.
    exposed: &'w [Cell<u32>],
    /// Targets whose posts were found.
    admitted: RankSet<'w>,
}

impl EpochSlots<'_> {
    /// Words of the arena that a window takes: two counts per rank, and a set of ranks.
    pub(crate) const fn words(ranks: u16) -> usize {
        let counts = (ranks as usize).saturating_mul(2);
        counts.saturating_add(RankSet::words(ranks))
    }

    /// The slot that `rank` sets here when it posts; at `rank`, the one that this rank sets has
    /// this rank's number.
    fn post_slot(&self, rank: Rank) -> Slot {
        self.slots.plus(rank.index())
    }

    /// The same, for completions.
    fn completion_slot(&self, rank: Rank) -> Slot {
        self.post_slot(rank).plus(self.accessed.len())
    }

    fn count(counts: &[Cell<u32>], rank: Rank) -> u32 {
        counts.get(rank.index()).map_or(0, Cell::get)
    }

    fn set(counts: &[Cell<u32>], rank: Rank, count: u32) {
        if let Some(place) = counts.get(rank.index()) {
            place.set(count);
        }
    }

    fn has_completed<L: Link>(&self, link: &L, origin: Rank) -> Result<bool, Refusal> {
        let number = Self::count(self.exposed, origin);
        link.reached(self.completion_slot(origin), number)
    }
}

impl<'w, L: Link> Strategy<'w, L> for EpochSlots<'w> {
    type Options = ();

    fn prepare(world: &'w World<'w, L>, (): ()) -> Result<Self, Error> {
        let (link, size) = (world.link(), usize::from(world.size()));
        let words = world.arena.take(Self::words(world.size()))?;
        let slots = match link.allocate_slots(Slots::OfPairs) {
            Ok(slots) => slots,
            Err(refusal) => {
                world.arena.give_back(words);
                return Err(refusal.into());
            }
        };
        let (accessed, rest) = words.split_at_checked(size).unwrap_or((words, &[]));
        let (exposed, admitted) = rest.split_at_checked(size).unwrap_or((rest, &[]));
        Ok(Self {
            slots,
            accessed,
            exposed,
            admitted: RankSet::new(admitted),
        })
    }

    fn clear(&self, _: &World<'w, L>) -> Result<(), Error> {
        Ok(())
    }

    fn discard(&self, world: &World<'w, L>) {
        world.link().withdraw(self.slots);
        world.arena.give_back(self.accessed);
    }

    fn offer(&self) -> u32 {
        let [low, high] = halves(self.slots.0 as u64);
        low ^ high
    }

    fn admitted(&self, target: Rank) -> bool {
        self.admitted.contains(target.get())
    }

    fn posted(&self, link: &L, target: Rank) -> Result<bool, Refusal> {
        let number = Self::count(self.accessed, target).wrapping_add(1);
        let posted = link.reached(self.post_slot(target), number)?;
        if posted {
            self.admitted.insert(target.get());
        }
        Ok(posted)
    }

    fn retire(&self, _: &L, target: Rank) -> Result<(), Refusal> {
        let number = Self::count(self.accessed, target).wrapping_add(1);
        Self::set(self.accessed, target, number);
        point!(ORDER "the next epoch waits for the next post":
            "pscw.epoch_slots.forget", self.admitted.remove(target.get()));
        Ok(())
    }

    fn order(&self, link: &L) -> Result<(), Refusal> {
        point!(ORDER "the puts are in memory before the slots that announce them":
            "pscw.epoch_slots.fence", link.fence()?);
        Ok(())
    }

    fn complete(&self, link: &L, target: Rank) -> Result<(), Refusal> {
        let number = Self::count(self.accessed, target);
        link.signal(target, self.completion_slot(link.rank()), number)
    }

    fn expect(&self, _: &L, _: &Group<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn post(&self, link: &L, origin: Rank, _: u16) -> Result<(), Refusal> {
        let number = Self::count(self.exposed, origin).wrapping_add(1);
        link.signal(origin, self.post_slot(link.rank()), number)?;
        Self::set(self.exposed, origin, number);
        Ok(())
    }

    fn completed(&self, link: &L, origins: &Group<'_>, done: &Cell<u16>) -> Result<bool, Refusal> {
        // One slot is looked at at a time: the others' writers need not wake this rank up.
        for &origin in origins.rest(done.get()) {
            if !self.has_completed(link, origin)? {
                return Ok(false);
            }
            done.set(done.get().wrapping_add(1));
        }
        Ok(true)
    }

    fn missing(&self, link: &L, origins: &Group<'_>, done: u16) -> Missing {
        let left = || {
            let rest = origins.rest(done).iter().copied();
            rest.filter(|&origin| self.has_completed(link, origin) != Ok(true))
        };
        Missing::among(left(), u32::try_from(left().count()).unwrap_or(u32::MAX))
    }
}
