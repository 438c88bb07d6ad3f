//! Loads of words that a loop waits for. Each is noted in [`poll`](super::poll), so that a loop
//! which has found nothing can sleep until one of its words changes. A number of 8 bytes is noted
//! as two words.

use flagpost_hal::{Address, Amo, Machine, Word};
use flagpost_points::Site;

use crate::{Atomics, Base};

impl<M: Machine, A: Atomics<M>> Base<M, A> {
    /// Loads a word that a waiting loop looks at.
    pub fn poll(&self, at: Address) -> u32 {
        let value = self.machine.load_u32(at);
        self.polled.note(at, value);
        value
    }

    /// The same of the aligned 8 bytes at `at`, if the machine loads them as a whole.
    pub(crate) fn poll_long(&self, at: Address) -> Option<u64> {
        let value = A::atomic_long(&self.machine, at, Amo::Read)?;
        self.note(at, value);
        Some(value)
    }

    /// Loads the number at `at`.
    pub(crate) fn load<V: Word>(&self, at: Address) -> V {
        const {
            assert!(
                !V::WIDE || A::WIDE,
                "the machine loads this number as a whole"
            )
        };
        if V::WIDE {
            V::low(A::atomic_long(&self.machine, at, Amo::Read).unwrap_or_default())
        } else {
            self.machine.load_u32(at).into()
        }
    }

    /// Notes that the number at `at` was `seen`. Its low word comes last: a loop looks at that.
    pub(super) fn note<V: Word>(&self, at: Address, seen: V) {
        let (low, high) = halves(seen);
        if V::WIDE {
            self.polled.note(at.plus(4), high);
        }
        self.polled.note(at, low);
    }

    /// Notes that the number at `at` was `seen`, which is what was waited for.
    fn note_arrived<V: Word>(&self, at: Address, seen: V) {
        let (low, high) = halves(seen);
        self.polled.note_arrived(at, low);
        if V::WIDE {
            self.polled.note_arrived(at.plus(4), high);
        }
    }

    /// A waiting loop may look at bytes that are not polled word by word: it must not sleep on
    /// other words.
    #[inline]
    pub fn looked(&self) {
        point!(POLL "it does not sleep while other bytes change":
            "loadstore.poll.looked", self.polled.looked());
    }

    /// [`poll`](Self::poll), and acquires if what was waited for has `arrived`: what the word
    /// announces is not loaded earlier than the word.
    pub fn poll_for(
        &self,
        at: Address,
        arrived: impl FnOnce(u32) -> bool,
        sites: [Site; 2],
    ) -> u32 {
        self.poll_with(|| self.machine.load_u32(at), at, arrived, sites)
    }

    /// [`poll_for`](Self::poll_for) of the number at `at`, which `load` loads.
    pub fn poll_with<V: Word>(
        &self,
        load: impl FnOnce() -> V,
        at: Address,
        arrived: impl FnOnce(V) -> bool,
        [order, acquire]: [Site; 2],
    ) -> V {
        point!(order, {
            let value = load();
            let arrived = arrived(value);
            if arrived {
                self.note_arrived(at, value);
                point!(acquire, self.machine.acquire());
            } else {
                self.note(at, value);
            }
            value
        }; else self.acquired_before_load(load, at))
    }
}

/// The low word of a number, and the high one.
fn halves(value: impl Word) -> (u32, u32) {
    let value: u64 = value.into();
    (value as u32, value.wrapping_shr(u32::BITS) as u32)
}
