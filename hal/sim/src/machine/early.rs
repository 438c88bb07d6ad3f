//! Loads that are satisfied early: weak profiles only.
//!
//! An in-order description of an out-of-order load: it may return the value that a word had *before
//! its latest change*, if
//! * E1. another core made that change,
//! * E2. it arrived after this core's last `acquire`: the load may have run ahead, but not past
//!   that,
//! * E3. this core has not read the newer value yet (per-location coherence),
//! * E4. fewer than [`OLD_ANSWERS`] loads of it returned the old value already: polled words become
//!   visible in the end.
//!
//! One former value per word is enough: it always is the one that a missing `acquire` brings to
//! light.

/// How often a change may go unseen (E4); once where every alternative is tried.
pub(super) const OLD_ANSWERS: u8 = 3;

/// Changes that a core keeps track of; one more, and its loads catch up, like a full load queue.
const KNOWN: usize = 256;

/// What a core has read of a change (E3, E4).
#[derive(Clone)]
struct Known {
    word: u32,
    /// Ticket of the change.
    changed: u32,
    /// How many old answers it got; `NEW` once it read the new value.
    old: u8,
}

/// The new value was read.
pub(super) const NEW: u8 = u8::MAX;

/// A core's view of time.
#[derive(Clone)]
pub(super) struct Early {
    /// Ticket at the last acquire (E2).
    acquired: u32,
    /// Changes since then that this core's loads came across.
    known: Vec<Known>,
}

impl Early {
    pub(super) fn new() -> Self {
        Self {
            acquired: 0,
            known: Vec::new(),
        }
    }

    pub(super) fn reset(&mut self) {
        self.acquire(0);
    }

    /// All changes up to ticket `now` will be seen from here on.
    pub(super) fn acquire(&mut self, now: u32) {
        self.acquired = now;
        self.known.clear();
    }

    /// The ticket after which changes may go unseen.
    pub(super) fn since(&self) -> u32 {
        self.acquired
    }

    /// How often the change of `word` was answered with the old value.
    pub(super) fn answers(&self, word: u32, changed: u32) -> u8 {
        let mut known = self.known.iter();
        let known = known.find(|known| known.word == word && known.changed == changed);
        known.map_or(0, |known| known.old)
    }

    /// Whether it keeps track of as many changes as it can.
    pub(super) fn is_full(&self) -> bool {
        self.known.len() > KNOWN
    }

    /// A place for how often the change of `word` was answered with the old value.
    pub(super) fn entry(&mut self, word: u32, changed: u32) -> &mut u8 {
        let position = self.known.iter().position(|k| k.word == word);
        let slot = position.unwrap_or_else(|| {
            self.known.push(Known {
                word,
                changed,
                old: 0,
            });
            self.known.len() - 1
        });
        let known = &mut self.known[slot];
        if known.changed != changed {
            (known.changed, known.old) = (changed, 0);
        }
        &mut known.old
    }
}
