//! Remembering what a waiting loop looks at.
//!
//! A loop that waits polls some words and then relaxes. [`Relax::relax`](flagpost_hal::Relax) wants
//! to know those words, to sleep until one changes. Instead of passing them through every layer,
//! each poll notes its word here, and relaxing hands over what was noted since the last time.
//!
//! A loop that gets bytes, or reads memory, polls what is no word. That is noted too, and so is
//! the end of a wait: relaxing then looks once too often rather than sleep on a word that nobody
//! changes any more.

use core::cell::Cell;

use flagpost_hal::{Address, CoreId, Region, Relax, UncachedMemory, Watch};
/// How many words a loop waits for, those of the bells of 64 ranks among them. One that polls more
/// only yields.
const WORDS: usize = 24;

/// The words polled since the last [`Polled::relax`].
#[derive(Debug)]
pub struct Polled {
    words: [Cell<Watch>; WORDS],
    /// How many of them are remembered.
    count: Cell<usize>,
    /// Something was polled that is not a word (a lock), or there were too many words.
    unknown: Cell<bool>,
    /// Bytes were looked at by other means than polling, or a wait of the kernel has ended.
    looked: Cell<bool>,
}

const NOTHING: Watch = Watch {
    at: Region::memory(CoreId::new(0)).at(0),
    seen: 0,
};

impl Polled {
    pub(crate) const fn new() -> Self {
        Self {
            words: [const { Cell::new(NOTHING) }; WORDS],
            count: Cell::new(0),
            unknown: Cell::new(false),
            looked: Cell::new(false),
        }
    }

    /// Notes that the word `at` held `seen`, which is what was waited for: it matters only if an
    /// older value is remembered.
    #[inline]
    pub fn note_arrived(&self, at: Address, seen: u32) {
        if self.count.get() > 0 && !self.taken(at) {
            self.note(at, seen);
        }
    }

    /// Notes that the word `at` held `seen`.
    pub fn note(&self, at: Address, seen: u32) {
        let count = self.count.get();
        let (noted, free) = self.words.split_at_checked(count).unwrap_or_default();
        let watch = Watch { at, seen };
        // The newest look at a word counts: an older value would end the next wait immediately.
        if let Some(word) = noted.iter().find(|word| word.get().at == at) {
            word.set(watch);
        } else if let Some(word) = free.first() {
            word.set(watch);
            self.count.set(count.saturating_add(1));
        } else {
            self.unknown.set(true);
        }
    }

    /// Nobody waits for the word `at` any more, if it was noted last. True if it was.
    fn taken(&self, at: Address) -> bool {
        let before = self.count.get().wrapping_sub(1);
        let is_last = |word: &Cell<Watch>| word.get().at == at;
        let taken = self.words.get(before).is_some_and(is_last);
        if taken {
            self.count.set(before);
        }
        taken
    }

    /// Looks at the word that was noted last, until it is another one, or as often as the machine's
    /// loops do: not at all where ranks share processors.
    #[inline]
    pub fn look<M: UncachedMemory + Relax>(&self, machine: &M) {
        if machine.is_crowded() {
            return;
        }
        let last = self.count.get().wrapping_sub(1);
        let Some(Watch { at, seen }) = self.words.get(last).map(Cell::get) else {
            return;
        };
        for _ in 0..M::LOOKS {
            if machine.load_u32(at) != seen {
                return;
            }
            core::hint::spin_loop();
        }
    }

    /// Notes that something was polled that cannot be watched.
    pub fn note_unknown(&self) {
        self.unknown.set(true);
    }

    /// Notes that a loop may wait for more than what it polls.
    #[inline]
    pub fn looked(&self) {
        self.looked.set(true);
    }

    /// A loop begins that polls all it waits for: earlier notes do not matter.
    pub fn begin(&self) {
        self.count.set(0);
        self.looked.set(false);
    }

    /// Relaxes until one of the noted words changes, or one of `others`, and forgets them.
    pub fn relax(&self, machine: &impl Relax, others: impl ExactSizeIterator<Item = Watch>) {
        let noted = self.count.take();
        let count = noted.saturating_add(others.len());
        if self.unknown.take() | self.looked.take() | (count > WORDS) {
            return machine.relax(&[]);
        }
        let mut watched = [NOTHING; WORDS];
        let (first, rest) = watched.split_at_mut_checked(noted).unwrap_or_default();
        for (to, word) in first.iter_mut().zip(&self.words) {
            *to = word.get();
        }
        for (to, other) in rest.iter_mut().zip(others) {
            *to = other;
        }
        machine.relax(watched.get(..count).unwrap_or(&[]));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    /// The words that a machine was to watch.
    #[derive(Default)]
    struct Watched(Cell<Vec<Watch>>);

    impl Relax for Watched {
        fn relax(&self, watched: &[Watch]) {
            self.0.set(watched.to_vec());
        }
    }

    fn watch(word: usize, seen: u32) -> Watch {
        let at = Region::memory(CoreId::new(0)).at(word.saturating_mul(8));
        Watch { at, seen }
    }

    /// As many words are watched as there is room for, bells among them, as they were seen last.
    /// One more, or something that is no word, and none is: nobody sleeps. That is forgotten then.
    #[test]
    fn as_many_words_are_watched_as_there_is_room_for() {
        let (polled, machine) = (Polled::new(), Watched::default());
        let relaxed = |words: usize, bells: usize| {
            for seen in [1, 2] {
                (0..words).for_each(|word| polled.note(watch(word, seen).at, seen));
            }
            polled.relax(&machine, (0..bells).map(|bell| watch(100 + bell, 7)));
            machine.0.take()
        };
        for bells in [0, 1, 16] {
            for words in (0..=WORDS + 2).chain([3, 0, WORDS]) {
                let noted = (0..words).map(|word| watch(word, 2));
                let all = noted.chain((0..bells).map(|bell| watch(100 + bell, 7)));
                let mut expected: Vec<_> = all.collect();
                if words + bells > WORDS {
                    expected.clear();
                }
                assert_eq!(relaxed(words, bells), expected, "{words} {bells}");
            }
            polled.note_unknown();
            assert!(relaxed(3, bells).is_empty());
            polled.looked();
            assert!(relaxed(3, bells).is_empty());
            polled.looked();
            polled.begin();
            assert_eq!(relaxed(3, bells).len(), 3 + bells);
            polled.note(watch(9, 1).at, 1);
            polled.begin();
            assert_eq!(relaxed(0, bells).len(), bells);
        }
    }

    /// A word that is another one in the look of this number, and the looks at it.
    struct Word {
        crowded: bool,
        changes: u32,
        looks: Cell<u32>,
    }

    impl UncachedMemory for Word {
        fn load_u8(&self, _: Address) -> u8 {
            0
        }

        fn store_u8(&self, _: Address, _: u8) {}

        fn load_u32(&self, at: Address) -> u32 {
            assert_eq!(at, watch(2, 0).at, "the word that was noted last");
            let looks = self.looks.get().saturating_add(1);
            self.looks.set(looks);
            u32::from(looks == self.changes)
        }

        fn store_u32(&self, _: Address, _: u32) {}

        fn store_bytes(&self, _: Address, _: &[u8]) {}
    }

    impl Relax for Word {
        const LOOKS: u32 = 9;

        fn is_crowded(&self) -> bool {
            self.crowded
        }

        fn relax(&self, _: &[Watch]) {}
    }

    /// As often as the machine says, until the word is another one; not at all where ranks share
    /// processors, or nothing was noted.
    #[test]
    fn a_loop_looks_as_often_as_its_machine_says() {
        let polled = Polled::new();
        let looks = |crowded, changes| {
            let looks = Cell::new(0);
            let word = Word {
                crowded,
                changes,
                looks,
            };
            polled.look(&word);
            word.looks.get()
        };
        assert_eq!(looks(false, 0), 0, "there is no word");
        for number in [1, 2] {
            polled.note(watch(number, 0).at, 0);
        }
        assert_eq!(
            [0, 1, 4, 9, 10].map(|last| looks(false, last)),
            [9, 1, 4, 9, 9]
        );
        assert_eq!([0, 1, 4].map(|last| looks(true, last)), [0; 3]);
    }
}
