//! Where the chip's own decisions come from: a seed, or a list.
//!
//! Inside one access the chip may have a choice: which of its buffered bytes leaves first, whether
//! a load is satisfied early. With a seed these are drawn. An exhaustive search must try them all,
//! so it *lists* them: the first decisions are given, and each later one takes alternative 0 and is
//! written down, with how many there were.

use crate::rng::{Rng, Stream};

/// A decision inside an access: what was chosen, of how many.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) chosen: u32,
    pub(crate) of: u32,
}

pub(crate) enum Chance {
    Seeded(Rng),
    Listed(List),
}

/// Given decisions, then zeros; and what was decided.
#[derive(Default)]
pub(crate) struct List {
    given: Vec<u32>,
    pub(crate) made: Vec<Pick>,
}

impl List {
    /// Starts the next access, whose first decisions are `given`.
    pub(crate) fn give(&mut self, given: impl IntoIterator<Item = u32>) {
        self.given.clear();
        self.given.extend(given);
        self.made.clear();
    }
}

impl Chance {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::Seeded(Rng::new(seed, Stream::Environment))
    }

    /// Whether decisions are listed, so that every alternative counts.
    #[inline]
    pub(crate) const fn listed(&self) -> bool {
        matches!(self, Self::Listed(_))
    }

    /// 64 random bits; zeros if decisions are listed.
    #[inline]
    pub(crate) const fn bits(&mut self) -> u64 {
        match self {
            Self::Seeded(rng) => rng.next(),
            Self::Listed(_) => 0,
        }
    }

    /// One of `of` alternatives.
    #[inline]
    pub(crate) fn below(&mut self, of: usize) -> usize {
        match self {
            Self::Seeded(rng) => rng.below(of),
            Self::Listed(list) => list.below(of),
        }
    }

    /// Yes or no.
    #[inline]
    pub(crate) fn coin(&mut self) -> bool {
        match self {
            Self::Seeded(rng) => rng.next() & 1 == 1,
            Self::Listed(list) => list.below(2) == 1,
        }
    }
}

impl List {
    fn below(&mut self, of: usize) -> usize {
        if of < 2 {
            return 0;
        }
        let given = self.given.get(self.made.len()).copied().unwrap_or(0);
        let chosen = given.min(of as u32 - 1);
        self.made.push(Pick {
            chosen,
            of: of as u32,
        });
        chosen as usize
    }
}
