//! Loads of words that a loop waits for: each is noted in [`poll`](super::poll).

use flagpost_hal::{Address, Machine};
use flagpost_points::Site;

use crate::{Atomics, Base};

impl<M: Machine, A: Atomics<M>> Base<M, A> {
    /// Loads a word that a waiting loop looks at.
    pub fn poll(&self, at: Address) -> u32 {
        let value = self.machine().load_u32(at);
        self.polled().note(at, value);
        value
    }

    /// A waiting loop may look at bytes that are not polled word by word: it must not sleep on
    /// other words.
    #[inline]
    pub fn looked(&self) {
        point!(POLL "it does not sleep while other bytes change":
            "mapped.poll.looked", self.polled().looked());
    }

    /// [`poll`](Self::poll), and acquires if what was waited for has `arrived`: what the word
    /// announces is not loaded earlier than the word.
    pub fn poll_for(
        &self,
        at: Address,
        arrived: impl FnOnce(u32) -> bool,
        sites: [Site; 2],
    ) -> u32 {
        self.poll_with(|| self.machine().load_u32(at), at, arrived, sites)
    }

    /// [`poll_for`](Self::poll_for) of the word `at`, which `load` loads.
    pub fn poll_with(
        &self,
        load: impl FnOnce() -> u32,
        at: Address,
        arrived: impl FnOnce(u32) -> bool,
        [order, acquire]: [Site; 2],
    ) -> u32 {
        point!(order, {
            let value = load();
            let arrived = arrived(value);
            if arrived {
                self.polled().note_arrived(at, value);
                point!(acquire, self.machine().acquire());
            } else {
                self.polled().note(at, value);
            }
            value
        }; else self.acquired_before_load(load, at))
    }
}
