//! Remembering what a waiting loop looks at.
//!
//! A loop that waits polls some words and then relaxes. [`Relax::relax`](flagpost_hal::Relax) wants to know
//! those words, to sleep until one changes. Instead of passing them through every layer, each poll
//! notes its word here, and relaxing hands over what was noted since the last time.
//!
//! Whoever gets bytes in a loop, or reads memory, polls what is no word. That is noted too, and so is the end of a wait:
//! relaxing then looks once too often rather than sleep on a word that nobody changes any more.

use core::cell::Cell;

use flagpost_hal::{Address, Relax, Watch};

/// How many words are remembered. A loop that polls more only yields.
const WORDS: usize = 12;

/// The words polled since the last [`Polled::relax`].
#[derive(Debug)]
pub(crate) struct Polled {
    words: [Cell<Option<Watch>>; WORDS],
    /// Something was polled that is not a word (a lock), or there were too many words.
    unknown: Cell<bool>,
    /// Bytes were looked at by other means than polling, or a wait of the kernel has ended.
    looked: Cell<bool>,
}

impl Polled {
    pub(crate) const fn new() -> Self {
        Self {
            words: [const { Cell::new(None) }; WORDS],
            unknown: Cell::new(false),
            looked: Cell::new(false),
        }
    }

    /// Notes that the word `at` held `seen`.
    pub(crate) fn note(&self, at: Address, seen: u32) {
        for word in &self.words {
            // The newest look at a word counts: an older value would end the next wait at once.
            if word.get().is_none_or(|watch| watch.at == at) {
                word.set(Some(Watch { at, seen }));
                return;
            }
        }
        self.unknown.set(true);
    }

    /// Notes that something was polled that cannot be watched.
    pub(crate) fn note_unknown(&self) {
        self.unknown.set(true);
    }

    /// Notes that a loop may wait for more than what it polls.
    pub(crate) fn looked(&self) {
        self.looked.set(true);
    }

    /// A loop begins that polls all it waits for.
    pub(crate) fn begin(&self) {
        self.looked.set(false);
    }

    /// Relaxes until one of the noted words changes, and forgets them.
    pub(crate) fn relax(&self, machine: &impl Relax) {
        let nothing = Watch {
            at: flagpost_hal::Region::memory(flagpost_hal::CoreId::new(0)).at(0),
            seen: 0,
        };
        let mut watched = [nothing; WORDS];
        let mut count = 0_usize;
        for (place, word) in watched.iter_mut().zip(&self.words) {
            if let Some(watch) = word.take() {
                *place = watch;
                count = count.saturating_add(1);
            }
        }
        if self.unknown.take() | self.looked.take() {
            count = 0;
        }
        machine.relax(watched.get(..count).unwrap_or(&[]));
    }
}
