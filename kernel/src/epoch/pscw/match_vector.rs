//! Posts as bits, completions as a counter, under test-and-set registers: as published. Only links
//! that have such words ([`VectorLink`]) offer this strategy. The words and their rules are in
//! `flagpost-loadstore::words::match_vector`.
//!
//! # Cost
//! `post`, per origin: 4 remote accesses (lock, load, store, unlock). `complete`, per target: 4 at
//! this rank's registers and vector, 4 at the target. Memory per rank and window: shared `4 ceil(p
//! / 32) + 4` bytes, in whole lines; private `ceil(p / 32)` arena words.
//!
//! # Source
//! [PSCW-SCC] IV-B, Algorithms 1 and 2. We differ: clearing the bit takes the lock too, as eight
//! ranks share a byte.
//!
//! [PSCW-SCC]: crate#sources

use core::cell::Cell;

use flagpost_link::{Key, Place, Rank, Refusal, VectorLink};

use super::Strategy;
use crate::{
    Error, Group, Missing, World,
    arena::{RankSet, mask},
};

/// The published strategy: match vectors and completion counters.
#[derive(Debug)]
pub struct MatchVector<'w> {
    /// Match vector and completion counter.
    words: Key,
    /// Targets that have posted: [PSCW-SCC]'s cacheable copy.
    admitted: RankSet<'w>,
}

impl<'w, L: VectorLink> Strategy<'w, L> for MatchVector<'w> {
    type Options = ();

    fn prepare(world: &'w World<'w, L>, (): ()) -> Result<Self, Error> {
        let link = world.link();
        let words = link.allocate(link.sync_bytes(), Place::Symmetric)?;
        let prepare = || {
            point!(CLEAR "the words hold what this memory was":
                "pscw.match_vector.reset", link.reset(words)?);
            world.arena.take(RankSet::words(world.size()))
        };
        match prepare() {
            Ok(admitted) => Ok(Self {
                words,
                admitted: RankSet::new(admitted),
            }),
            Err(error) => {
                link.withdraw(words);
                Err(error)
            }
        }
    }

    fn clear(&self, _: &World<'w, L>) -> Result<(), Error> {
        Ok(())
    }

    fn discard(&self, world: &World<'w, L>) {
        world.link().withdraw(self.words);
        world.arena.give_back(self.admitted.into_words());
    }

    fn offer(&self) -> u32 {
        self.words.get()
    }

    fn admitted(&self, target: Rank) -> bool {
        self.admitted.contains(target.get())
    }

    fn posted(&self, link: &L, target: Rank) -> Result<bool, Refusal> {
        let word = link.posted(self.words, target.get() >> 5);
        let posted = word & mask(target.get()) != 0;
        if posted {
            self.admitted.insert(target.get());
        }
        Ok(posted)
    }

    fn retire(&self, link: &L, target: Rank) -> Result<(), Refusal> {
        link.retire(self.words, target)?;
        point!(ORDER "the next epoch waits for the next post":
            "pscw.match_vector.forget", self.admitted.remove(target.get()));
        Ok(())
    }

    fn order(&self, _: &L) -> Result<(), Refusal> {
        // `retire` has ordered the puts, so that no fence is needed here.
        Ok(())
    }

    fn complete(&self, link: &L, target: Rank) -> Result<(), Refusal> {
        link.complete(self.words, target)
    }

    fn expect(&self, link: &L, origins: &Group<'_>) -> Result<(), Refusal> {
        point!(ORDER "completions are counted down from here":
            "pscw.match_vector.expect", link.expect(self.words, origins.count()));
        Ok(())
    }

    fn post(&self, link: &L, origin: Rank, _: u16) -> Result<(), Refusal> {
        link.post(self.words, origin)
    }

    fn completed(&self, link: &L, _: &Group<'_>, _: &Cell<u16>) -> Result<bool, Refusal> {
        Ok(link.missing(self.words) == 0)
    }

    fn missing(&self, link: &L, origins: &Group<'_>, _: u16) -> Missing {
        // The counter does not record who.
        let left = link.missing(self.words);
        Missing::among(origins.ranks().iter().copied(), left)
    }
}
