//! Memory that the user lends to a world. The kernel has no heap: queues, tables and windows take
//! their words from a slice that the program gives to [`World::start`](crate::World::start). An
//! [`Arena`] hands them out and takes them back. It says how many words are missing when there are
//! too few. Its books are in these words, too: so a world is small, and hands out as many pieces as
//! there is room for.
//!
//! # Memory layout
//! ```text
//!   │ length, used │ words … │ length, used │ words … │     blocks, without gaps
//! ```

use core::cell::Cell;

use crate::Error;

/// The word before a piece: how many words the piece has, and whether it is in use.
#[derive(Copy, Clone)]
struct Head {
    len: usize,
    used: bool,
}

impl Head {
    /// Words that it takes.
    const WORDS: usize = 1;

    const fn of(word: u32) -> Self {
        Self {
            len: word.wrapping_shr(1) as usize,
            used: word & 1 != 0,
        }
    }

    const fn word(self) -> u32 {
        (self.len as u32).wrapping_shl(1) | self.used as u32
    }
}

/// The user's words, in blocks of a [`Head`] and its piece.
#[derive(Debug)]
pub(crate) struct Arena<'a> {
    words: &'a [Cell<u32>],
}

impl<'a> Arena<'a> {
    /// Words of the arena that a piece of `count` takes.
    pub(crate) const fn words(count: usize) -> usize {
        count.saturating_add(Head::WORDS)
    }

    pub(crate) fn new(words: &'a mut [u32]) -> Self {
        let words = Cell::from_mut(words).as_slice_of_cells();
        // No head can tell more.
        let words = words.get(..1 << 31).unwrap_or(words);
        let arena = Self { words };
        if let Some(len) = words.len().checked_sub(Head::WORDS) {
            arena.set(0, len, false);
        }
        arena
    }

    /// The head at `at`, unless the words end there.
    fn head(&self, at: usize) -> Option<Head> {
        Some(Head::of(self.words.get(at)?.get()))
    }

    fn set(&self, at: usize, len: usize, used: bool) {
        if let Some(word) = self.words.get(at) {
            word.set(Head { len, used }.word());
        }
    }

    /// Takes `count` words, set to 0: of the first gap that has as many.
    pub(crate) fn take(&self, count: usize) -> Result<&'a [Cell<u32>], Error> {
        let wanted = Self::words(count);
        let (mut at, mut largest) = (0, 0);
        while let Some(head) = self.head(at) {
            let mut block = Self::words(head.len);
            if !head.used {
                // Pieces side by side that were given back are one gap.
                while let Some(next) = self.head(at.saturating_add(block))
                    && !next.used
                {
                    block = block.saturating_add(Self::words(next.len));
                }
                if let Some(rest) = block.checked_sub(wanted) {
                    if let Some(len) = rest.checked_sub(Head::WORDS) {
                        self.set(at.saturating_add(wanted), len, false);
                    }
                    self.set(at, count, true);
                    let words = self.words.get(at.saturating_add(Head::WORDS)..);
                    let taken = words.and_then(|words| words.get(..count)).unwrap_or(&[]);
                    for word in taken {
                        word.set(0);
                    }
                    return Ok(taken);
                }
                largest = largest.max(block);
                self.set(at, block.saturating_sub(Head::WORDS), false);
            }
            at = at.saturating_add(block);
        }
        let missing = wanted.saturating_sub(largest);
        Err(Error::ArenaFull {
            missing_words: u32::try_from(missing).unwrap_or(u32::MAX),
        })
    }

    /// Gives back the piece of [`Arena::take`] that begins with these words.
    pub(crate) fn give_back(&self, taken: &[Cell<u32>]) {
        let start = taken.as_ptr().addr();
        let bytes = start.wrapping_sub(self.words.as_ptr().addr());
        // Words have 4 bytes.
        let at = bytes.wrapping_shr(2).wrapping_sub(Head::WORDS);
        if let Some(head) = self.head(at) {
            self.set(at, head.len, false);
        }
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
    extern crate std;

    use super::*;

    #[test]
    fn a_full_arena_says_how_much_is_missing_and_keeps_the_rest() {
        let mut words = [7_u32; 6];
        let arena = Arena::new(&mut words);
        assert_eq!(arena.take(3).unwrap().len(), 3);
        let full = arena.take(3).unwrap_err();
        assert_eq!(full, Error::ArenaFull { missing_words: 2 });
        let last = arena.take(1).unwrap();
        assert_eq!(last[0].get(), 0);
        arena.give_back(last);
        assert_eq!(arena.take(1).unwrap().as_ptr(), last.as_ptr());
        let none = Arena::new(&mut []).take(3).unwrap_err();
        assert_eq!(none, Error::ArenaFull { missing_words: 4 });
    }

    /// Pieces of all lengths up to 8, none of which is another one's, are taken and given back in
    /// changing orders; then all is one gap again.
    #[test]
    fn pieces_do_not_overlap_and_gaps_become_one() {
        let mut words = [7_u32; 64];
        let arena = Arena::new(&mut words);
        let mut kept = std::vec::Vec::<&[Cell<u32>]>::new();
        let mut number = 1_u32;
        for _ in 0..10_000 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let count = (number >> 16) as usize % 9;
            match arena.take(count) {
                Ok(piece) if number >> 30 != 0 => {
                    assert!(piece.len() == count && piece.iter().all(|word| word.get() == 0));
                    piece.iter().for_each(|word| word.set(!0));
                    kept.push(piece);
                }
                Ok(piece) => arena.give_back(piece),
                Err(_) => {
                    let piece = kept.swap_remove(number as usize % kept.len());
                    assert!(piece.iter().all(|word| word.get() == !0));
                    arena.give_back(&piece[..piece.len() / 2]);
                }
            }
        }
        kept.into_iter().for_each(|piece| arena.give_back(piece));
        assert_eq!(arena.take(63).unwrap().len(), 63);
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
