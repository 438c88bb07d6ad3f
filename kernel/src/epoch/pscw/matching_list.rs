//! Posts in a list of k entries, completions in a counter. So the memory that a window takes grows
//! with the number of neighbours, and not of ranks. A post claims a free entry at the origin by one
//! atomic operation.
//!
//! # How
//! Every rank has, per window, a *matching list* of k cells and a *completion counter*. A target
//! that posts looks for a free entry of the origin's list and claims it with its own number by a
//! compare-and-swap: the claim is the post. The origin finds the number in its list, and frees the
//! entry before it completes. A completion adds 1 to the target's counter, which is never reset:
//! the target counts how many it has expected so far, and waits until the counter has come so far
//! (compared as a signed distance, so that both may wrap around).
//!
//! Where the search begins: where this rank's last post to the same place of a group was; at first,
//! at a place that follows from its number. Once each of an origin's neighbours has an entry of its
//! own, a post takes one attempt.
//!
//! # Choosing k
//! At least as many as posts can be in flight to a rank at the same time: those that it has not
//! retired, of this epoch and early ones of the next. A post beyond that waits for an entry, within
//! its budget; an origin that waits for just that post waits as long.
//!
//! # Cost
//! `post`, per origin: 1 atomic operation, and 1 for each entry that was found taken, at most k
//! before it waits. `complete`, per target: 1 there, 1 at this rank's list, and one fence in all.
//! An origin polls the entries of its own list in turn, and each that holds a post once. Memory per
//! rank and window: shared `8 (k + 1)` bytes, in whole lines; private `2 k` arena words.
//!
//! # Invariants
//! I1. An entry holds 0 or the number of a rank, plus 1. It leaves 0 by a claim, and comes back to
//!     it by its owner alone, when the post is retired.
//! I2. A rank is in a list at most once: it posts again only after a completion, which follows the
//!     retirement.
//!
//! # Source
//! [foMPI] 2.3, Fig. 2c. There, free entries form a list of their own that is popped by
//! compare-and-swap, and the match is a second step; here the claimed entry is the match. The
//! completion counter is the same.
//!
//! [foMPI]: crate#sources

use core::cell::Cell;

use flagpost_link::{Amo, Key, Link, Op, Place, Rank, Refusal, Width};

use super::Strategy;
use crate::{Error, Group, Missing, Waiting, World};

/// Most entries of a list: it is searched from end to end.
pub(super) const MOST: u16 = 4096;

/// In what was found in an entry: [`Strategy::posted`] was asked for it, and has said so.
const ADMITTED: u32 = 1 << 31;

/// Bytes of a cell.
const CELL: usize = 8;

/// The value of the completion counter before the first completion: the second wraps around.
const FIRST: u32 = 0_u32.wrapping_sub(2);

/// The strategy for few neighbours among many ranks. Its option is k, the number of entries: see
/// the [module](super#strategies).
#[derive(Debug)]
pub struct MatchingList<'w> {
    /// The list, then the completion counter.
    cells: Key,
    /// Per entry of this rank: the number that was found there and not retired, or 0. Posts of
    /// other targets than those that are waited for are found, too: they are only admitted when an
    /// epoch asks for them.
    found: &'w [Cell<u32>],
    /// Per place in a group of origins: where this rank's last post went. A hint.
    places: &'w [Cell<u32>],
    /// The entry of this rank to look at next.
    next: Cell<u16>,
    /// How many entries the present post has found taken.
    taken: Cell<u16>,
    /// The completion counter's value when all is completed, and its value at the last look.
    expected: Cell<u32>,
    seen: Cell<u32>,
    /// Operations that may be in flight. A window has one epoch of each kind at a time, and its
    /// calls continue where they stopped.
    claiming: Op,
    looking: Op,
    freeing: Op,
    completing: Op,
    counting: Op,
}

/// The number that `rank` writes into an entry.
const fn number(rank: Rank) -> u32 {
    // u32 holds the sum.
    (rank.get() as u32).wrapping_add(1)
}

/// Byte offset of an entry.
const fn offset(entry: u16) -> usize {
    CELL.wrapping_mul(entry as usize)
}

impl MatchingList<'_> {
    /// Entries of a list.
    fn entries(&self) -> u16 {
        u16::try_from(self.found.len()).unwrap_or(MOST)
    }

    fn counter(&self) -> usize {
        offset(self.entries())
    }

    /// The entry of this rank that holds `target`'s post, of those admitted.
    fn entry_of(&self, target: Rank) -> Option<u16> {
        let number = number(target) | ADMITTED;
        let place = self.found.iter().position(|found| found.get() == number);
        place.and_then(|place| u16::try_from(place).ok())
    }

    /// The entry `distance` after `first`, going round.
    fn place(&self, first: u16, distance: u16) -> u16 {
        let sum = u32::from(first).wrapping_add(u32::from(distance));
        let entry = sum.checked_rem(u32::from(self.entries()));
        // A remainder by a u16.
        entry.unwrap_or(0) as u16
    }

    fn found_at(&self, entry: u16) -> u32 {
        self.found.get(usize::from(entry)).map_or(0, Cell::get)
    }

    fn set_found(&self, entry: u16, number: u32) {
        if let Some(found) = self.found.get(usize::from(entry)) {
            found.set(number);
        }
    }

    /// Where to look first for room in the list of a group's `nth` origin.
    fn first_place(&self, rank: Rank, nth: u16) -> u16 {
        let hint = self.places.get(usize::from(nth)).map_or(0, Cell::get);
        let entry = match hint.checked_sub(1) {
            Some(entry) => u16::try_from(entry).ok(),
            None => rank.get().checked_rem(self.entries()),
        };
        entry.unwrap_or(0)
    }
}

impl<'w, L: Link> Strategy<'w, L> for MatchingList<'w> {
    /// How many entries.
    type Options = u16;

    const FULL: Waiting = Waiting::ListSpace;

    fn prepare(world: &'w World<'w, L>, entries: u16) -> Result<Self, Error> {
        if entries == 0 || entries > MOST {
            return Err(Error::BadList { entries, max: MOST });
        }
        let link = world.link();
        let words = world.arena.take(usize::from(entries).saturating_mul(2))?;
        let bytes = offset(entries.saturating_add(1));
        let cells = match link.allocate(bytes, Place::Symmetric) {
            Ok(cells) => cells,
            Err(refusal) => {
                world.arena.give_back(words);
                return Err(refusal.into());
            }
        };
        let (found, places) = words
            .split_at_checked(usize::from(entries))
            .unwrap_or((words, &[]));
        Ok(Self {
            cells,
            found,
            places,
            next: Cell::new(0),
            taken: Cell::new(0),
            expected: Cell::new(FIRST),
            seen: Cell::new(FIRST),
            claiming: Op::new(),
            looking: Op::new(),
            freeing: Op::new(),
            completing: Op::new(),
            counting: Op::new(),
        })
    }

    fn clear(&self, world: &World<'w, L>) -> Result<(), Error> {
        let link = world.link();
        let put = |at, value: u64| {
            // Data that this rank has heard of may have to come first.
            world
                .wait()
                .retry(|| link.put(link.rank(), self.cells, at, &value.to_le_bytes()))
        };
        let clear = || {
            for entry in 0..self.entries() {
                put(offset(entry), 0)?;
            }
            put(self.counter(), FIRST.into())
        };
        point!(CLEAR "nobody claims an entry before all agree on the window":
            "pscw.matching_list.clear", clear(); else Ok(()))
    }

    fn discard(&self, world: &World<'w, L>) {
        world.link().withdraw(self.cells);
        world.arena.give_back(self.found);
    }

    fn offer(&self) -> u32 {
        self.cells.get().rotate_left(16) ^ u32::from(self.entries())
    }

    fn admitted(&self, target: Rank) -> bool {
        self.entry_of(target).is_some()
    }

    fn posted(&self, link: &L, target: Rank) -> Result<bool, Refusal> {
        // Once round, from where the last look ended: one that waits for its answer is gone on
        // with.
        for _ in 0..self.entries() {
            let entry = self.next.get();
            if self.found_at(entry) == 0 {
                let any = |number| number != 0;
                let found = link.watch(self.cells, offset(entry), any, &self.looking)?;
                self.set_found(entry, found.unwrap_or(0));
            }
            self.next.set(self.place(entry, 1));
            if self.found_at(entry) & !ADMITTED == number(target) {
                self.set_found(entry, number(target) | ADMITTED);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn retire(&self, link: &L, target: Rank) -> Result<(), Refusal> {
        let Some(entry) = self.entry_of(target) else {
            return Ok(());
        };
        let free = || {
            let (amo, width) = (Amo::Swap(0), Width::Half);
            link.amo(
                link.rank(),
                self.cells,
                offset(entry),
                amo,
                width,
                &self.freeing,
            )
        };
        point!(CLEAR "I1; and this post is not found a second time":
            "pscw.matching_list.free", _ = free()?);
        point!(ORDER "the next epoch waits for the next post":
            "pscw.matching_list.forget", self.set_found(entry, 0));
        Ok(())
    }

    fn order(&self, link: &L) -> Result<(), Refusal> {
        point!(ORDER "the puts are in memory before the counters for them":
            "pscw.matching_list.fence", link.fence()?);
        Ok(())
    }

    fn complete(&self, link: &L, target: Rank) -> Result<(), Refusal> {
        let (amo, width) = (Amo::Add(1), Width::Half);
        link.amo(
            target,
            self.cells,
            self.counter(),
            amo,
            width,
            &self.completing,
        )?;
        Ok(())
    }

    fn expect(&self, _: &L, origins: &Group<'_>) -> Result<(), Refusal> {
        let expected = self.expected.get();
        self.expected
            .set(expected.wrapping_add(u32::from(origins.count())));
        Ok(())
    }

    fn post(&self, link: &L, origin: Rank, nth: u16) -> Result<(), Refusal> {
        let own = u64::from(number(link.rank()));
        let claim = Amo::CompareSwap {
            expected: 0,
            new: own,
        };
        let first = self.first_place(link.rank(), nth);
        while self.taken.get() < self.entries() {
            let entry = self.place(first, self.taken.get());
            let at = offset(entry);
            let former = link.amo(origin, self.cells, at, claim, Width::Half, &self.claiming)?;
            if former == 0 {
                self.taken.set(0);
                if let Some(place) = self.places.get(usize::from(nth)) {
                    place.set(u32::from(entry).wrapping_add(1));
                }
                return Ok(());
            }
            self.taken.set(self.taken.get().saturating_add(1));
        }
        self.taken.set(0);
        Err(Refusal::Full(origin))
    }

    fn completed(&self, link: &L, _: &Group<'_>, _: &Cell<u16>) -> Result<bool, Refusal> {
        let arrived = |count: u32| {
            self.seen.set(count);
            count.wrapping_sub(self.expected.get()) as i32 >= 0
        };
        let found = link.watch(self.cells, self.counter(), arrived, &self.counting)?;
        Ok(found.is_some())
    }

    fn missing(&self, _: &L, origins: &Group<'_>, _: u16) -> Missing {
        // The counter does not record who.
        let left = self.expected.get().wrapping_sub(self.seen.get());
        Missing::among(origins.ranks().iter().copied(), left)
    }
}
