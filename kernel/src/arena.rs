//! Memory that the user lends to a world. The kernel has no heap: queues, tables and windows take
//! their words from a slice that the program gives to [`World::start`](crate::World::start). An
//! [`Arena`] hands them out and takes them back. It says how many words are missing when there are
//! too few.

use core::cell::Cell;

use flagpost_link::{Full, Heap, Place};

use crate::Error;

/// The user's words, and which of them are in use.
#[derive(Debug)]
pub(crate) struct Arena<'a> {
    words: &'a [Cell<u32>],
    heap: Heap,
}

impl<'a> Arena<'a> {
    pub(crate) fn new(words: &'a mut [u32]) -> Self {
        let count = words.len();
        Self {
            words: Cell::from_mut(words).as_slice_of_cells(),
            heap: Heap::new(1, 0, count, 1),
        }
    }

    /// Takes `count` words, set to 0.
    pub(crate) fn take(&self, count: usize) -> Result<&'a [Cell<u32>], Error> {
        let start = match self.heap.take(count, Place::Symmetric) {
            Ok(start) => start as usize,
            Err(Full::Missing { more }) => {
                return Err(Error::ArenaFull {
                    missing_words: u32::try_from(more).unwrap_or(u32::MAX),
                });
            }
            Err(Full::Pieces { max }) => return Err(Error::TooManyPieces { max }),
        };
        let end = start.saturating_add(count);
        let taken = self.words.get(start..end).unwrap_or(&[]);
        for word in taken {
            word.set(0);
        }
        Ok(taken)
    }

    /// Gives back what [`Arena::take`] gave.
    pub(crate) fn give_back(&self, taken: &[Cell<u32>]) {
        let start = taken.as_ptr().addr();
        let bytes = start.wrapping_sub(self.words.as_ptr().addr());
        // Words have 4 bytes.
        self.heap.give_back(bytes.wrapping_shr(2) as u32);
    }
}

/// One bit per rank, in arena words.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RankSet<'a>(&'a [Cell<u32>]);

impl<'a> RankSet<'a> {
    /// Words that a set of `ranks` ranks takes.
    pub(crate) const fn words(ranks: u16) -> usize {
        (ranks as usize).div_ceil(32)
    }

    pub(crate) fn new(words: &'a [Cell<u32>]) -> Self {
        Self(words)
    }

    /// The words it was made of.
    pub(crate) fn into_words(self) -> &'a [Cell<u32>] {
        self.0
    }

    pub(crate) fn contains(self, rank: u16) -> bool {
        self.0
            .get(usize::from(rank >> 5))
            .is_some_and(|word| word.get() & mask(rank) != 0)
    }

    pub(crate) fn insert(self, rank: u16) {
        if let Some(word) = self.0.get(usize::from(rank >> 5)) {
            word.set(word.get() | mask(rank));
        }
    }

    pub(crate) fn remove(self, rank: u16) {
        if let Some(word) = self.0.get(usize::from(rank >> 5)) {
            word.set(word.get() & !mask(rank));
        }
    }
}

/// The bit of `rank` in its word.
pub(crate) const fn mask(rank: u16) -> u32 {
    1_u32.wrapping_shl((rank & 31) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_arena_says_how_much_is_missing_and_keeps_the_rest() {
        let mut words = [7_u32; 4];
        let arena = Arena::new(&mut words);
        assert_eq!(arena.take(3).unwrap().len(), 3);
        let full = arena.take(3).unwrap_err();
        assert_eq!(full, Error::ArenaFull { missing_words: 2 });
        let last = arena.take(1).unwrap();
        assert_eq!(last[0].get(), 0);
        arena.give_back(last);
        assert_eq!(arena.take(1).unwrap().as_ptr(), last.as_ptr());
    }

    #[test]
    fn sets_hold_what_was_inserted() {
        let mut words = [0_u32; 3];
        let set = RankSet::new(Cell::from_mut(&mut words[..]).as_slice_of_cells());
        set.insert(0);
        set.insert(63);
        set.insert(1000); // beyond the set: nothing
        set.remove(0);
        assert!(!set.contains(0) && set.contains(63) && !set.contains(1000));
    }
}
