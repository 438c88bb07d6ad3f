//! Memory that the user lends to a world, carved from the front and never given back.

use core::cell::Cell;

use crate::Error;

/// The user's words, and how many of them are carved already.
#[derive(Debug)]
pub(crate) struct Arena<'a> {
    words: &'a [Cell<u32>],
    used: Cell<usize>,
}

impl<'a> Arena<'a> {
    pub(crate) fn new(words: &'a mut [u32]) -> Self {
        Self {
            words: Cell::from_mut(words).as_slice_of_cells(),
            used: Cell::new(0),
        }
    }

    /// Takes `count` words, set to 0.
    pub(crate) fn take(&self, count: usize) -> Result<&'a [Cell<u32>], Error> {
        let start = self.used.get();
        let end = start.saturating_add(count);
        let Some(taken) = self.words.get(start..end) else {
            let missing = end.saturating_sub(self.words.len());
            return Err(Error::ArenaFull {
                missing_words: u32::try_from(missing).unwrap_or(u32::MAX),
            });
        };
        self.used.set(end);
        for word in taken {
            word.set(0);
        }
        Ok(taken)
    }

    /// How much is used now, to go back to by [`Arena::restore`].
    pub(crate) fn save(&self) -> usize {
        self.used.get()
    }

    /// Gives back what was taken since `saved`. Only for the one who took it and kept none of it.
    pub(crate) fn restore(&self, saved: usize) {
        self.used.set(saved);
    }
}

/// One bit per rank, in arena words.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RankSet<'a>(&'a [Cell<u32>]);

impl<'a> RankSet<'a> {
    /// Words that a set of `ranks` ranks takes.
    pub(crate) fn words(ranks: u16) -> usize {
        usize::from(ranks).div_ceil(32)
    }

    pub(crate) fn new(words: &'a [Cell<u32>]) -> Self {
        Self(words)
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
        assert_eq!(arena.take(1).unwrap()[0].get(), 0);
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
