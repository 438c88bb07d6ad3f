//! Which locks of a window a rank has. This is the private memory of
//! [`epoch::lock`](crate::epoch::lock): the targets that are locked, and what this rank has stored
//! in the words that all ranks share. It lies below the epochs, since windows ask it before they
//! are freed. Also here: how a word names the rank that has locked it.

use core::cell::Cell;

use flagpost_link::Rank;

use crate::Error;

/// How many targets of a window a rank may have locked at a time.
const LOCKS: usize = 8;

/// Local word: a rank has locked the piece exclusively.
pub(crate) const WRITER: u32 = 1 << 30;
/// Local word, these bits of the high half: 1 + the rank that has locked it exclusively; 0 if that
/// does not fit.
const HOLDER: u32 = 0x3fff;

/// The value that `rank` gives to a local word that is free.
const fn locked_by(rank: Rank) -> u32 {
    // u32 holds the sum.
    let number = (rank.get() as u32).wrapping_add(1);
    let holder = if number <= HOLDER { number } else { 0 };
    WRITER | holder.wrapping_shl(u16::BITS)
}

/// The rank that has locked the piece of a local `word` exclusively, if it says so.
pub(crate) fn holder(word: u32) -> Option<Rank> {
    let number = word.wrapping_shr(u16::BITS) & HOLDER;
    // At most 14 bits.
    number.checked_sub(1).map(|rank| Rank::new(rank as u16))
}

/// Where a reader stands that found a writer waiting.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Aside {
    /// It found none.
    No,
    /// It is counted in, and asks how many turns writers had.
    Asks,
    /// It is counted in, and leaves: the number of turns that there were.
    Leaves(u32),
    /// It has left, until there were more.
    Until(u32),
    /// It gave way once, and does not again.
    Been,
}

/// Where a writer stands that found readers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    No,
    /// There are readers, and no writer waits.
    Due,
    /// The bit in the word is another's.
    Others,
    /// The bit is this rank's.
    Mine,
    /// The bit is taken back; those that stand aside are to be told.
    Ended,
}

/// A rank's locks of one window.
#[derive(Debug)]
pub(crate) struct Passive {
    /// Targets that are locked, or waited for.
    targets: [Cell<Option<Rank>>; LOCKS],
    /// How many these are.
    count: Cell<u8>,
    /// How many of them are locked exclusively. If any, this rank is counted in the global word,
    /// once.
    exclusive: Cell<u32>,
    /// One lock at most is waited for.
    waiting: Cell<bool>,
    /// One of them is a queued one.
    queued: Cell<bool>,
    /// An attempt to get that has read the clock in this call.
    pub(crate) is_timed: Cell<bool>,
    /// The number that the next pause of an attempt is drawn from.
    drawn: Cell<u16>,
    /// The value that this rank gives to the word of a piece that it locks exclusively.
    pub(crate) mark: u32,
    /// As a reader, where it stands.
    pub(crate) aside: Cell<Aside>,
    /// As a writer, whether it keeps new readers out: of the piece, and of all.
    pub(crate) wants: [Cell<Want>; 2],
}

impl Passive {
    pub(crate) fn new(rank: Rank) -> Self {
        Self {
            mark: locked_by(rank),
            targets: [const { Cell::new(None) }; LOCKS],
            count: Cell::new(0),
            exclusive: Cell::new(0),
            waiting: Cell::new(false),
            queued: Cell::new(false),
            is_timed: Cell::new(false),
            drawn: Cell::new(rank.get()),
            aside: Cell::new(Aside::No),
            wants: [const { Cell::new(Want::No) }; 2],
        }
    }

    /// A number of 8 bits, another one each time.
    pub(crate) fn draw(&self) -> u16 {
        let drawn = self.drawn.get().wrapping_mul(25_173).wrapping_add(13_849);
        self.drawn.set(drawn);
        drawn.wrapping_shr(8)
    }

    /// True if any target is locked or waited for.
    pub(crate) fn any(&self) -> bool {
        self.count.get() > 0
    }

    /// True if none is locked or waited for: none exclusively, then.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        !self.any() & !self.waiting.get()
    }

    /// [`add`](Self::add), while that is so.
    #[inline(always)]
    pub(crate) fn insert_first(&self, target: Rank) {
        if let Some(place) = self.targets.first() {
            place.set(Some(target));
            self.count.set(1);
            self.waiting.set(true);
        }
    }

    /// True if `target` is the only one, locked exclusively, with the first place, and none is
    /// waited for.
    #[inline(always)]
    pub(crate) fn is_only(&self, target: Rank) -> bool {
        let is_first = self
            .targets
            .first()
            .is_some_and(|place| place.get() == Some(target));
        is_first & (self.count.get() == 1) & (self.exclusive.get() == 1) & !self.waiting.get()
    }

    /// It is not locked any more.
    #[inline(always)]
    pub(crate) fn remove_first(&self) {
        if let Some(place) = self.targets.first() {
            place.set(None);
        }
        self.count.set(0);
        self.exclusive.set(0);
    }

    /// A lock of `target` is waited for.
    #[inline]
    pub(crate) fn add(&self, target: Rank, queued: bool) -> Result<(), Error> {
        match self.targets.first() {
            Some(place) if !self.any() && !self.waiting.get() => {
                self.insert(place, target, queued);
                Ok(())
            }
            _ => self.add_beside(target, queued),
        }
    }

    /// [`add`](Self::add), beside others.
    #[inline(never)]
    fn add_beside(&self, target: Rank, queued: bool) -> Result<(), Error> {
        let mut targets = self.targets.iter();
        let twice = targets.any(|place| place.get() == Some(target));
        if twice {
            return Err(Error::LockedTwice(target));
        }
        if self.waiting.get() || queued && self.queued.get() {
            return Err(Error::EpochOpen);
        }
        let max = LOCKS as u8;
        let free = self.targets.iter().find(|place| place.get().is_none());
        let place = free.ok_or(Error::TooManyLocks { max })?;
        self.insert(place, target, queued);
        Ok(())
    }

    #[inline]
    fn insert(&self, place: &Cell<Option<Rank>>, target: Rank, queued: bool) {
        place.set(Some(target));
        self.count.set(self.count.get().saturating_add(1));
        self.waiting.set(true);
        self.queued.set(queued || self.queued.get());
    }

    pub(crate) fn wait_for(&self) {
        self.waiting.set(true);
    }

    /// The lock that was waited for is there, or is not wanted any more.
    pub(crate) fn got(&self) {
        self.waiting.set(false);
    }

    pub(crate) fn remove(&self, target: Rank, queued: bool) {
        let mut targets = self.targets.iter();
        if let Some(place) = targets.find(|place| place.get() == Some(target)) {
            place.set(None);
            self.count.set(self.count.get().saturating_sub(1));
        }
        self.queued.set(self.queued.get() && !queued);
    }

    /// True if this rank is counted in the global word.
    pub(crate) fn is_registered(&self) -> bool {
        self.exclusive.get() > 0
    }

    pub(crate) fn add_exclusive(&self) {
        self.exclusive.set(self.exclusive.get().saturating_add(1));
    }

    /// True if it was the last.
    pub(crate) fn remove_exclusive(&self) -> bool {
        self.exclusive.set(self.exclusive.get().saturating_sub(1));
        self.exclusive.get() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers count in and out beside the holder, as many as a world has ranks.
    #[test]
    fn a_local_word_names_its_holder() {
        for rank in [0, 1, 77, 16_381, 16_382] {
            let word = locked_by(Rank::new(rank));
            for readers in [0, 1, u32::from(u16::MAX)] {
                assert_eq!(holder(word + readers), Some(Rank::new(rank)));
                assert!(word + readers >= WRITER);
            }
        }
        for rank in [16_383, 32_767, u16::MAX - 1] {
            assert_eq!(
                locked_by(Rank::new(rank)),
                WRITER,
                "its number does not fit"
            );
        }
        for unlocked in [0, 1, u32::from(u16::MAX), WRITER] {
            assert_eq!(holder(unlocked), None);
        }
    }
}
