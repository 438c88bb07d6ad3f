//! What a rank does while it waits: it spins, then yields, then sleeps.
//!
//! | phase | what | how long |
//! |---|---|---|
//! | look | looks at the words again and again | [`LOOKS`] looks, once per wait |
//! | pause | looks, and lets the core's other thread run between two looks | about 100 us |
//! | yield | gives the processor to whoever else can run | [`YIELDS`] times |
//! | sleep | [`SHORTEST`], twice as long each time, up to [`LONGEST`] | until something changes |
//!
//! A loop that looks at more than can be watched does so between two turns: each is one pause then, [`UNWATCHED`] times, before the
//! phases that yield and sleep.
//!
//! Where more ranks than processors wait for each other, a rank that spins keeps those from running that it waits for: it
//! looks a few times and then yields at once.
//!
//! The phases begin anew once the link says that a wait is over, and when the first word that is watched, or what was seen in
//! it, is another one.

use std::cell::Cell;
use std::time::Duration;

use flagpost_hal::Watch;

/// Looks without a pause.
const LOOKS: u32 = 2000;
/// The same where ranks share processors.
const CROWDED_LOOKS: u32 = 30;
/// Turns of the phase that pauses,
const PAUSES: u32 = 30;
/// and looks per turn.
const LOOKS_PER_PAUSE: u32 = 32;
/// Turns of one pause where there is nothing to watch.
const UNWATCHED: u32 = 1000;
/// The same where ranks share processors.
const CROWDED_UNWATCHED: u32 = 10;
/// Turns of the phase that yields.
const YIELDS: u32 = 300;
/// The first sleep,
const SHORTEST: Duration = Duration::from_micros(50);
/// and the longest: short beside any budget, and beside the death of a rank.
const LONGEST: Duration = Duration::from_micros(800);

/// How a rank waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    crowded: bool,
    /// Turns of this wait so far.
    turns: Cell<u32>,
    /// What it watches.
    watched: Cell<Option<Watch>>,
}

impl Waiter {
    /// For a rank that shares its processor with others, if `crowded`.
    pub(crate) fn new(crowded: bool) -> Self {
        Self {
            crowded,
            turns: Cell::new(0),
            watched: Cell::new(None),
        }
    }

    /// One turn of waiting. Ends early once `changed` says that a watched word is another one. True if the wait is a long one
    /// by now: it yields or sleeps.
    pub(crate) fn turn(&self, watched: &[Watch], changed: impl Fn() -> bool) -> bool {
        let first = watched.first().copied();
        let turn = if self.watched.replace(first) == first {
            self.turns.get()
        } else {
            0
        };
        self.turns.set(turn.saturating_add(1));
        let (looks, pauses, at_a_time) = match (first, self.crowded) {
            (Some(_), false) => (LOOKS, PAUSES, LOOKS_PER_PAUSE),
            (Some(_), true) => (CROWDED_LOOKS, 0, 0),
            (None, false) => (0, UNWATCHED, 1),
            (None, true) => (0, CROWDED_UNWATCHED, 1),
        };
        if turn == 0 && (0..looks).any(|_| changed()) {
            return false;
        }
        if turn < pauses {
            let paused = || {
                std::hint::spin_loop();
                changed()
            };
            let _ = (0..at_a_time).any(|_| paused());
            return false;
        }
        let turn = turn - pauses;
        if turn < YIELDS {
            rustix::thread::sched_yield();
        } else if !changed() {
            let doublings = (turn - YIELDS).min(4);
            std::thread::sleep((SHORTEST * (1 << doublings)).min(LONGEST));
        }
        true
    }

    /// The wait is over.
    #[inline]
    pub(crate) fn done(&self) {
        if self.turns.get() != 0 {
            self.watched.set(None);
            self.turns.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flagpost_hal::{CoreId, Region};
    use std::cell::Cell;

    fn watch(seen: u32) -> [Watch; 1] {
        let at = Region::memory(CoreId::new(0)).at(64);
        [Watch { at, seen }]
    }

    /// How many turns of a wait are short ones.
    fn short_turns(waiter: &Waiter, watched: &[Watch]) -> u32 {
        (0..).find(|_| waiter.turn(watched, || false)).unwrap_or(0)
    }

    #[test]
    fn waits_get_longer_and_begin_anew() {
        let waiter = Waiter::new(false);
        assert_eq!(short_turns(&waiter, &watch(1)), PAUSES);
        assert_eq!(short_turns(&waiter, &watch(1)), 0, "the same wait");
        assert_eq!(short_turns(&waiter, &watch(2)), PAUSES, "another value");
        waiter.done();
        assert_eq!(short_turns(&waiter, &watch(2)), PAUSES, "another wait");
        waiter.done();
        assert_eq!(short_turns(&waiter, &[]), UNWATCHED);
    }

    #[test]
    fn crowded_ranks_give_way_at_once() {
        let waiter = Waiter::new(true);
        assert_eq!(short_turns(&waiter, &watch(1)), 0);
        waiter.done();
        assert_eq!(short_turns(&waiter, &[]), CROWDED_UNWATCHED);
    }

    #[test]
    fn a_change_ends_a_turn() {
        let waiter = Waiter::new(false);
        let looks = Cell::new(0);
        let third = || {
            looks.set(looks.get() + 1);
            looks.get() == 3
        };
        assert!(!waiter.turn(&watch(1), third));
        assert_eq!(looks.get(), 3);
    }
}
