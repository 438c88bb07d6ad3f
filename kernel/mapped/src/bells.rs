//! Bells: which of many rings has something in it.
//!
//! A rank with a ring per peer would have to look at a word of each. With [`Ring::Bells`] it looks at one byte
//! per peer instead, 32 of them in a line: whoever stores an entry stores its *bell* behind it, the lower 8 bits of the ticket behind that
//! entry. A ring whose bell differs from what was taken of it is looked at. So is the one that was taken from last, whose next entry comes
//! before its bell; behind the bells, if that has just found something: no producer keeps another one waiting.
//!
//! # Guarantee
//! G1. A ring in which there is an entry whose producer has told this rank anything since is found.
//!
//! # Invariants
//! I1. A bell has one writer, the producer of its ring.
//! I2. A ring has at most 128 entries, so that a bell that differs is ahead. It may be so early that the entry has not come: then the entry's
//!     words are what the owner waits for, and the bell stays ahead until they have been taken.
//!
//! # Cost
//! The producer: one byte stored, in the drain that its entry has anyway. The owner, while there is nothing to take: a line per 32 ranks (words,
//! where lines cannot be loaded at once), and for up to 16 looks one of the ring that was taken from last; or one line per turn while it waits
//! for something else. What several producers have rung for is taken without another look.
//!
//! [NA] IV-C polls one queue; bells stand for it where the machine has no atomic operation to share one by.
//!
//! [NA]: crate#sources

use core::cell::Cell;

use flagpost_hal::{Address, Machine, Region};
use flagpost_link::{Link as _, Rank, point};

use crate::{Atomics, Mapped, Ring, entry::WORDS, layout::PAIRS, ring::FIRST};

/// Bells in a word.
const BELLS: u16 = 4;

/// In how many looks the next entry of who told something last may come.
const WARM: u8 = 16;

/// What a rank knows of its bells, in words of four bytes, the first rank's the lowest.
#[derive(Debug)]
pub(crate) struct Bells {
    /// What they were when they were looked at last. Behind `answered` while the bell of an entry that was taken early is under way: then
    /// a look at its ring finds nothing.
    heard: [Cell<u32>; PAIRS / BELLS as usize],
    /// What was taken.
    answered: [Cell<u32>; PAIRS / BELLS as usize],
    /// Which line is looked at next, where they take turns.
    turn: Cell<u16>,
    /// How many looks more the ring that was taken from last is worth, before its bell.
    warm: Cell<u8>,
    /// What was taken last was taken before its bell was heard: bells come next, or one producer could keep all others waiting.
    early: Cell<bool>,
}

/// The bell of a ring of which the ticket before `ticket` was stored.
const fn bell(ticket: u32) -> u8 {
    let [low, ..] = ticket.to_le_bytes();
    low
}

/// The word with `bell` in the place of `rank`'s.
const fn with(word: u32, rank: Rank, bell: u8) -> u32 {
    let shift = (rank.get() % BELLS).wrapping_mul(8) as u32;
    let mask = 0xff_u32.wrapping_shl(shift);
    (word & !mask) | (bell as u32).wrapping_shl(shift)
}

fn set(words: &[Cell<u32>], rank: Rank, bell: u8) {
    if let Some(word) = words.get(usize::from(rank.get() / BELLS)) {
        word.set(with(word.get(), rank, bell));
    }
}

fn get(words: &[Cell<u32>], rank: Rank) -> u8 {
    let word = words.get(usize::from(rank.get() / BELLS));
    let bells = word.map_or([0; BELLS as usize], |word| word.get().to_le_bytes());
    let bell = bells.get(usize::from(rank.get() % BELLS));
    bell.copied().unwrap_or_default()
}

impl Bells {
    /// All rings are empty.
    pub(crate) const fn new() -> Self {
        const EMPTY: u32 = u32::from_le_bytes([bell(FIRST); BELLS as usize]);
        Self {
            heard: [const { Cell::new(EMPTY) }; PAIRS / BELLS as usize],
            answered: [const { Cell::new(EMPTY) }; PAIRS / BELLS as usize],
            turn: Cell::new(0),
            warm: Cell::new(0),
            early: Cell::new(false),
        }
    }

    /// The ring of `of` was taken as far as `ticket`. Where that is further than its bell was heard, bells come next.
    fn answer(&self, of: Rank, ticket: u32) {
        let answered = bell(ticket);
        set(&self.answered, of, answered);
        // Ahead by 127 at most.
        let is_early = get(&self.heard, of).wrapping_sub(answered) > 127;
        if is_early {
            set(&self.heard, of, answered);
        }
        self.early.set(is_early);
        self.warm.set(WARM);
    }

    /// The first of `left` ranks from `from` on, round a world of `size`, that has rung, and how many of them are behind it.
    fn next(&self, mut from: Rank, mut left: u16, size: u16) -> Option<(Rank, u16)> {
        while left > 0 {
            let word = usize::from(from.get() / BELLS);
            let place = from.get() % BELLS;
            let (heard, answered) = (self.heard.get(word)?, self.answered.get(word)?);
            let differ = (heard.get() ^ answered.get()).wrapping_shr(u32::from(place) * 8);
            // Bells to the next one that differs, or to the end of the word or of the ranks.
            let quiet = (differ.trailing_zeros() / 8) as u16;
            let here = BELLS
                .wrapping_sub(place)
                .min(size.saturating_sub(from.get()));
            let skipped = quiet.min(here).min(left);
            from = from.ahead(skipped, size);
            left = left.wrapping_sub(skipped);
            if quiet < here && left > 0 {
                return Some((from, left.wrapping_sub(1)));
            }
        }
        None
    }
}

impl<M: Machine, A: Atomics<M>> Mapped<M, A> {
    /// Where the bell of `of` is among those of `rings`.
    fn bell_of(&self, rings: Region, of: Rank) -> Address {
        rings.at(self.layout.bells.wrapping_add(of.get().into()))
    }

    /// Tells the owner of `rings` that the entry before ticket `behind` was stored.
    pub(crate) fn ring_bell(&self, rings: Region, behind: u32) {
        if let Ring::Bells { .. } = self.layout.ring {
            let at = self.bell_of(rings, self.rank());
            // BELL: G1.
            point!("mapped.bells.ring", self.machine.store_u8(at, bell(behind)));
        }
    }

    /// Makes all own bells those of empty rings.
    pub(crate) fn clear_bells(&self, rings: Region) {
        if let Ring::Bells { .. } = self.layout.ring {
            for of in (0..self.size()).map(Rank::new) {
                self.machine.store_u8(self.bell_of(rings, of), bell(FIRST));
            }
        }
    }

    /// Takes the next entry of a ring that has one, as its bell says. Rings take turns; and lines of bells do, if this is done `aside`.
    pub(crate) fn take_rung(&self, rings: Region, aside: bool) -> Option<u32> {
        // Those that were heard before come first: that costs no look at the others.
        if let Some(immediate) = self.take_heard(rings) {
            return Some(immediate);
        }
        let bells_first = aside || self.bells.early.get();
        if !bells_first && let Some(immediate) = self.take_early(rings) {
            return Some(immediate);
        }
        self.listen(rings, aside);
        if let Some(immediate) = self.take_heard(rings) {
            return Some(immediate);
        }
        if !aside && bells_first {
            self.bells.early.set(false);
            return self.take_early(rings);
        }
        None
    }

    /// Takes the next entry of who told something last, and may go on: it comes before its bell.
    fn take_early(&self, rings: Region) -> Option<u32> {
        let left = self.bells.warm.get().checked_sub(1)?;
        self.bells.warm.set(left);
        self.take_from(rings, self.sender.get())
    }

    /// Takes the next entry of a ring whose bell was heard.
    fn take_heard(&self, rings: Region) -> Option<u32> {
        let size = self.size();
        let mut at = (self.turn.get(), size);
        while let Some((source, left)) = self.bells.next(at.0, at.1, size) {
            if let Some(immediate) = self.take_from(rings, source) {
                return Some(immediate);
            }
            at = (source.next(size), left);
        }
        None
    }

    /// Takes the next entry of `source`, if there is one.
    fn take_from(&self, rings: Region, source: Rank) -> Option<u32> {
        let peer = self.peer(source)?;
        let immediate = self.take_of(rings, source.get().into(), &peer.taken)?;
        self.bells.answer(source, peer.taken.get());
        self.took(source, peer, source.next(self.size()));
        Some(immediate)
    }

    /// Looks at all bells, or those of a line; a rank that waits waits for all.
    fn listen(&self, rings: Region, aside: bool) {
        let words = usize::from(self.size().div_ceil(BELLS));
        let lines = self.bells.heard.get(..words).unwrap_or(&[]).chunks(WORDS);
        let turn = self.bells.turn.get();
        if aside {
            let next = turn.wrapping_add(1);
            let is_one = usize::from(next) < lines.len();
            self.bells.turn.set(if is_one { next } else { 0 });
        }
        for (line, heard) in (0..).zip(lines) {
            let looks = !aside || line == turn;
            let first = Rank::new(BELLS.wrapping_mul(WORDS as u16).wrapping_mul(line));
            let words = self.words(self.bell_of(rings, first));
            for (number, heard) in (0..).zip(heard) {
                let load = || match number {
                    0 => self.load_first(&words),
                    _ => self.load(&words, number),
                };
                let bells = if looks {
                    // LISTEN: G1.
                    point!("mapped.bells.listen", load(); else heard.get())
                } else {
                    heard.get()
                };
                self.polled.note(words.of(number), bells);
                heard.set(bells);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_rung_is_found_in_turn() {
        let sizes = [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 48, 63, 64];
        for size in sizes {
            for some in [0, 1, 2, 3, 5, 7] {
                let bells = Bells::new();
                let has = |rank: u16| some != 0 && rank.is_multiple_of(some);
                for rank in (0..size).filter(|rank| has(*rank)) {
                    set(&bells.heard, Rank::new(rank), bell(FIRST) ^ 0x80);
                }
                for from in 0..size {
                    let mut at = (Rank::new(from), size);
                    for expected in (from..size).chain(0..from).filter(|rank| has(*rank)) {
                        let Some((rank, left)) = bells.next(at.0, at.1, size) else {
                            panic!("{expected} of {size}: not found");
                        };
                        assert_eq!(rank.get(), expected, "{size} {some} {from}");
                        at = (rank.next(size), left);
                    }
                    assert_eq!(bells.next(at.0, at.1, size), None);
                }
                for rank in 0..size {
                    let ticket = if has(rank) { FIRST ^ 0x80 } else { FIRST };
                    bells.answer(Rank::new(rank), ticket);
                }
                assert_eq!(bells.next(Rank::new(0), size, size), None);
            }
        }
    }
}
