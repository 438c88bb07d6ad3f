//! Remembering what a waiting loop looks at.
//!
//! Whatever a network does for a rank ends in an event; so a rank that has looked at something may
//! sleep until an event comes, or until one of a few of its own words changes. Neither tells of
//! other bytes, its own or a peer's: a rank that has looked at these must not sleep.

use core::cell::Cell;

use flagpost_hal::fabric::{Fabric, Watched};

/// Words that are remembered. A loop that looks at more only gives time to others.
const WORDS: usize = 4;

/// The looks since the last [`Looks::relax`].
#[derive(Debug)]
pub(crate) struct Looks {
    any: Cell<bool>,
    /// An event was handled since then: what was looked at before may be different.
    handled: Cell<bool>,
    words: [Cell<Watched>; WORDS],
    /// How many words are remembered.
    count: Cell<usize>,
    /// Something was looked at that cannot be watched, or there were too many words.
    unwatched: Cell<bool>,
}

impl Looks {
    pub(crate) const fn new() -> Self {
        Self {
            any: Cell::new(false),
            handled: Cell::new(false),
            words: [const { Cell::new(Watched { at: 0, seen: 0 }) }; WORDS],
            count: Cell::new(0),
            unwatched: Cell::new(false),
        }
    }

    /// Something is looked at: events that are handled from now on may change it.
    pub(crate) fn mark(&self) {
        if !self.any.replace(true) {
            self.handled.set(false);
        }
    }

    /// An event was handled.
    pub(crate) fn handled(&self) {
        self.handled.set(true);
    }

    /// Something was looked at that no event tells of.
    pub(crate) fn unwatched(&self) {
        self.unwatched.set(true);
    }

    /// Remembers that this rank's word `at` held `seen`.
    pub(crate) fn note(&self, at: usize, seen: u32) {
        let count = self.count.get();
        let mut remembered = self.words.iter().take(count);
        let known = remembered.position(|word| word.get().at == at);
        let Some(word) = self.words.get(known.unwrap_or(count)) else {
            return self.unwatched();
        };
        word.set(Watched { at, seen });
        if known.is_none() {
            self.count.set(count.saturating_add(1));
        }
    }

    /// A wait begins: what was looked at before is not what it waits for.
    pub(crate) fn clear(&self) {
        self.count.set(0);
        self.any.set(false);
        self.unwatched.set(false);
    }

    /// Relaxes until an event comes or a word changes, and forgets all.
    pub(crate) fn relax(&self, fabric: &impl Fabric) {
        let watched = self.words.each_ref().map(Cell::get);
        let count = self.count.take();
        let (any, unwatched) = (self.any.take(), self.unwatched.take());
        let handled = point!(POLL "an event since the last poll may be the one that was waited for":
            "network.relax.handled", self.handled.take(); else false);
        // Where nothing was looked at, there is nothing to wait for.
        if handled || unwatched || !any && count == 0 {
            return fabric.pause();
        }
        fabric.relax(watched.get(..count).unwrap_or(&[]));
    }
}
