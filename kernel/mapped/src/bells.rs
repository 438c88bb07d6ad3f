//! Bells: which of many rings has something in it.
//!
//! A rank with a ring per peer would have to look at a word of each. With `Ring::Bells` it looks at
//! one byte per peer instead, 32 of them in a line: the rank that stores an entry stores its *bell*
//! after it, the lower 8 bits of the ticket after that entry. A ring whose bell differs from what
//! was taken of it is looked at. A rank that waits for the entry of one rank looks at the ring of
//! this one, and at the bells in one look of 33. Of a message of many parts the first and the last
//! ring; between them its ring is *open*, and looked at without a bell.
//!
//! # Guarantee
//! G1. A ring in which there is an entry whose producer has told this rank anything since is found.
//!
//! # Invariants
//! I1. A bell has one writer, the producer of its ring.
//! I2. A ring has at most 128 entries, so that a bell that differs is ahead. It may be so early
//!     that the entry has not come: then the entry's words are what the owner waits for, and the
//!     bell stays ahead until they have been taken.
//! I3. Of two bells in a row that 256 lines or more are between, the second is that of an open
//!     ring. (So no bell that matters is the same as the one before it.)
//!
//! # Cost
//! The producer: one byte stored, in the drain that its entry has anyway. The owner, while there is
//! nothing to take: a line per 32 ranks (words, where a line cannot be loaded in one step); a line
//! per turn while it waits for something else; and one of a ring while it waits for this ring's.
//! Entries of several producers that have rung are taken without another look.
//!
//! [NA] IV-C polls one queue; bells stand for it where the machine has no atomic operation to share
//! one by.
//!
//! [NA]: crate#sources

use core::cell::Cell;

use flagpost_hal::{Address, Machine, Region, Watch};
use flagpost_link::{Rank, Wants};
use flagpost_loadstore::{
    Atomics, Base,
    phase::WORDS,
    ring::{FIRST, PAIRS},
};

use crate::{LineMail, peer::Peer};

/// Bells in a word.
const BELLS: u16 = 4;

/// In which of the looks for the entry of one rank the bells have their turn.
const TURN: u8 = 32;

/// The bells as a rank knows them, in words of four bytes, the first rank's the lowest.
#[derive(Debug)]
pub(crate) struct Bells {
    /// Their values when they were looked at last.
    heard: [Cell<u32>; PAIRS / BELLS as usize],
    /// The bells that were answered.
    answered: [Cell<u32>; PAIRS / BELLS as usize],
    /// Where the two differ: a bit per rank, the first rank's the lowest. But not of a ring whose
    /// entry was taken before its bell, until that is heard.
    rung: Cell<u64>,
    /// Which line is looked at next, where they take turns.
    turn: Cell<u16>,
    /// Rings of which a message was read in part, or an entry was read and not taken: a bit each.
    /// They are looked at without a bell.
    open: Cell<u64>,
    /// How many looks for the entry of one rank come before the bells have their turn.
    left: Cell<u8>,
    /// A loop that waits has looked at them, or would in its turn: it waits for what they were
    /// heard as, not for what they were in its look. A peer with another value has told this rank
    /// something that it does not know.
    polled: Cell<bool>,
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

/// The bit of `rank`.
pub(crate) const fn bit(rank: Rank) -> u64 {
    1_u64.wrapping_shl(rank.get() as u32)
}

/// The bits of `size` ranks.
const fn bits(size: u16) -> u64 {
    u64::MAX.wrapping_shr(64_u32.saturating_sub(size as u32))
}

/// The first of `rung` from `from` on, round the ranks.
pub(crate) fn first(rung: u64, from: Rank) -> Option<Rank> {
    let ahead = rung & bit(from).wrapping_neg();
    let some = if ahead == 0 { rung } else { ahead };
    (some != 0).then(|| Rank::new(some.trailing_zeros() as u16))
}

impl Bells {
    /// All rings are empty.
    pub(crate) const fn new() -> Self {
        const EMPTY: u32 = u32::from_le_bytes([bell(FIRST); BELLS as usize]);
        Self {
            heard: [const { Cell::new(EMPTY) }; PAIRS / BELLS as usize],
            answered: [const { Cell::new(EMPTY) }; PAIRS / BELLS as usize],
            rung: Cell::new(0),
            turn: Cell::new(0),
            open: Cell::new(0),
            left: Cell::new(TURN),
            polled: Cell::new(false),
        }
    }

    /// Word `number` is `bells` now.
    fn hear(&self, number: usize, bells: u32) {
        let Some((heard, answered)) = self.heard.get(number).zip(self.answered.get(number)) else {
            return;
        };
        if heard.replace(bells) == bells {
            return;
        }
        let differ = bells ^ answered.get();
        let mut ring = bit(Rank::new(BELLS.wrapping_mul(number as u16)));
        let mut rung = self.rung.get();
        for differs in differ.to_le_bytes() {
            rung = if differs == 0 {
                rung & !ring
            } else {
                rung | ring
            };
            ring = ring.wrapping_shl(1);
        }
        self.rung.set(rung);
    }

    /// The ring of `of` was taken as far as `ticket`.
    pub(crate) fn answer(&self, of: Rank, ticket: u32) {
        set(&self.answered, of, bell(ticket));
        // The entries that are left of those it has rung for: none, if more was taken. (Of at most
        // 128, one was taken.)
        let left = get(&self.heard, of).wrapping_sub(bell(ticket));
        let rung = self.rung.get() & !bit(of);
        let rings = (1..128).contains(&left);
        self.rung.set(if rings { rung | bit(of) } else { rung });
    }
}

impl Bells {
    /// Tells the owner of `rings` that the entry before ticket `behind` was stored.
    pub(crate) fn ring<M: Machine, A: Atomics<M>>(base: &Base<M, A>, rings: Region, behind: u32) {
        let at = base.layout.bell(rings, base.rank().get().into());
        point!(NOTIFY "G1: the owner polls the bells only":
            "mapped.bells.ring", base.machine.store_u8(at, bell(behind)));
    }

    /// Makes all of this rank's bells those of empty rings.
    pub(crate) fn clear<M: Machine, A: Atomics<M>>(base: &Base<M, A>) {
        for of in 0..base.size() {
            let at = base.layout.bell(base.own_rings(), of.into());
            base.machine.store_u8(at, bell(FIRST));
        }
    }

    /// Looks at all bells, or those of a line, if this is done `aside`; a rank that waits waits for
    /// all.
    pub(crate) fn listen<M: Machine, A: Atomics<M>>(&self, base: &Base<M, A>, aside: bool) {
        let words = base.size().div_ceil(BELLS);
        let lines = words.div_ceil(WORDS as u16);
        let turn = self.turn.get();
        let looks = if aside {
            let next = turn.wrapping_add(1);
            self.turn.set(if next < lines { next } else { 0 });
            turn..next
        } else {
            0..lines
        };
        for line in looks {
            let from = line.wrapping_mul(WORDS as u16);
            let behind = from.saturating_add(WORDS as u16).min(words);
            let mut line = [[0; 4]; WORDS];
            let at = word_at(base, from);
            let count = usize::from(behind.saturating_sub(from));
            // A whole line takes no longer than a word, where lines are loaded in one step.
            let whole = base.machine.loads_lines(at.region);
            let loaded = if whole { WORDS } else { count };
            let bells = line.get_mut(..loaded).unwrap_or_default();
            base.machine.load_bytes(at, bells.as_flattened_mut());
            point!(POLL "G1: a bell says that an entry was stored": "mapped.bells.listen",
            for (word, bells) in (from..behind).zip(bells) {
                self.hear(word.into(), u32::from_le_bytes(*bells));
            });
        }
        self.polled.set(true);
    }

    /// The rings of `size` ranks that have rung, or are open: a bit each.
    pub(crate) fn rung(&self, size: u16) -> u64 {
        (self.rung.get() | self.open.get()) & bits(size)
    }

    /// True if the bell of `of` says more than that all before `ticket` was read.
    pub(crate) fn is_ahead(&self, of: Rank, ticket: u32) -> bool {
        (1..=128).contains(&get(&self.heard, of).wrapping_sub(bell(ticket)))
    }

    /// Something more of the ring of `of` comes without a bell, or nothing does.
    pub(crate) fn keep(&self, of: Rank, open: bool) {
        let others = self.open.get() & !bit(of);
        point!(POLL "G1: parts of a message after its first ring no bell": "mapped.bells.open",
            self.open.set(if open { others | bit(of) } else { others }));
    }

    /// True if a rank that looks for the entry of one rank looks at the bells now.
    pub(crate) fn have_turn(&self) -> bool {
        self.polled.set(true);
        let left = self.left.get().checked_sub(1);
        self.left.set(left.unwrap_or(TURN));
        point!(POLL "G1: others may tell this rank something that it has to do":
            "mapped.bells.turn", left.is_none(); else false)
    }

    /// This rank's bells as words to wait for, if the loop that waits has looked at them.
    pub(crate) fn watched<M: Machine, A: Atomics<M>>(
        &self,
        base: &Base<M, A>,
    ) -> impl ExactSizeIterator<Item = Watch> {
        let first = word_at(base, 0);
        let words = if self.polled.take() {
            base.size().div_ceil(BELLS)
        } else {
            0
        };
        (0..words)
            .zip(&self.heard)
            .map(move |(number, heard)| Watch {
                at: first.plus(usize::from(number).wrapping_mul(4)),
                seen: heard.get(),
            })
    }
}

/// The place of word `number` of this rank's bells.
fn word_at<M: Machine, A: Atomics<M>>(base: &Base<M, A>, number: u16) -> Address {
    let bell = u32::from(BELLS.wrapping_mul(number));
    base.layout.bell(base.own_rings(), bell)
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize> LineMail<M, A, PEERS> {
    /// Takes the next entry of a ring that has one, as its bell says, or of the one that is wanted.
    /// Rings take turns; and lines of bells do, if nobody's is wanted.
    pub(crate) fn take_rung(&self, rings: Region, wants: Wants) -> Option<u32> {
        if let Wants::Of(source) = wants
            && !self.bells.have_turn()
        {
            let wanted = self.take_from(rings, source);
            // Those that were heard before cost no look at the others.
            return wanted.or_else(|| self.take_heard(rings));
        }
        if let Some(immediate) = self.take_heard(rings) {
            return Some(immediate);
        }
        self.bells.listen(&self.base, wants == Wants::Other);
        self.take_heard(rings)
    }

    /// Takes the next entry of a ring whose bell was heard.
    fn take_heard(&self, rings: Region) -> Option<u32> {
        let mut rung = self.bells.rung(self.base.size());
        while let Some(source) = first(rung, self.turn.get()) {
            if let Some(immediate) = self.take_from(rings, source) {
                return Some(immediate);
            }
            rung &= !bit(source);
        }
        None
    }

    /// Takes the next entry of `source`, if there is one.
    fn take_from(&self, rings: Region, source: Rank) -> Option<u32> {
        let Peer { out, inbox } = self.peers.get(source.index())?;
        let before = inbox.next();
        let immediate = self.take_lines(rings, source, inbox);
        // Parts may have been taken, and no notification.
        if inbox.next() != before {
            self.bells.answer(source, inbox.next());
        }
        self.bells.keep(source, inbox.is_open());
        if immediate.is_some() {
            self.took(source, out, source.next(self.base.size()));
        }
        immediate
    }

    /// Reads all entries whose bells have rung, taken or not.
    pub(crate) fn read_rung(&self, rings: Region) {
        self.bells.listen(&self.base, false);
        let ranks = (0..self.base.size()).map(Rank::new);
        for (source, Peer { inbox, .. }) in ranks.zip(&self.peers) {
            let (seen, _) = inbox.reading();
            if self.bells.is_ahead(source, seen) || inbox.is_open() {
                self.read_ring(rings, source.get().into(), inbox);
                self.bells.keep(source, inbox.is_open());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_rung_is_found_in_turn() {
        let sizes = [1_u16, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 48, 63, 64];
        for size in sizes {
            for some in [0, 1, 2, 3, 5, 7] {
                let bells = Bells::new();
                let has = |rank: u16| some != 0 && rank.is_multiple_of(some);
                for word in 0..size.div_ceil(BELLS) {
                    // The bytes after the last rank's bell may be anything.
                    let of = |place| BELLS * word + place;
                    let rung = [0, 1, 2, 3].map(|place| has(of(place)) || of(place) >= size);
                    let bells_now = rung.map(|rung| bell(FIRST) ^ if rung { 0x80 } else { 0 });
                    bells.hear(word.into(), u32::from_le_bytes(bells_now));
                }
                for from in 0..size {
                    let mut rung = bells.rung.get() & bits(size);
                    for expected in (from..size).chain(0..from).filter(|rank| has(*rank)) {
                        let found = first(rung, Rank::new(from));
                        assert_eq!(found, Some(Rank::new(expected)), "{size} {some} {from}");
                        rung &= !bit(Rank::new(expected));
                    }
                    assert_eq!(first(rung, Rank::new(from)), None);
                }
                for rank in (0..size).filter(|rank| has(*rank)) {
                    bells.answer(Rank::new(rank), FIRST ^ 0x80);
                }
                assert_eq!(bells.rung.get() & bits(size), 0);
            }
        }
    }

    #[test]
    fn a_ring_that_is_full_is_taken_whole() {
        let (bells, of) = (Bells::new(), Rank::new(0));
        let behind = FIRST.wrapping_add(128);
        let heard = u32::from_le_bytes([bell(FIRST); 4]);
        bells.hear(0, with(heard, of, bell(behind)));
        for count in 1..128 {
            bells.answer(of, FIRST.wrapping_add(count));
            assert_eq!(bells.rung.get(), bit(of), "{count}");
        }
        bells.answer(of, behind);
        assert_eq!(bells.rung.get(), 0);
    }

    #[test]
    fn a_ring_that_was_taken_before_its_bell_does_not_ring() {
        let (bells, of) = (Bells::new(), Rank::new(5));
        let next = |count: u32| FIRST.wrapping_add(count);
        let empty = u32::from_le_bytes([bell(FIRST); 4]);
        let hear = |count| bells.hear(1, with(empty, of, bell(next(count))));
        bells.answer(of, next(2));
        assert_eq!(
            bells.rung.get(),
            0,
            "or the bells of others would have to wait"
        );
        hear(2);
        assert_eq!(bells.rung.get(), 0);
        hear(4);
        assert_eq!(bells.rung.get(), bit(of));
        bells.answer(of, next(3));
        assert_eq!(bells.rung.get(), bit(of), "one more");
        bells.answer(of, next(5));
        assert_eq!(bells.rung.get(), 0, "one more than was heard of");
    }
}
