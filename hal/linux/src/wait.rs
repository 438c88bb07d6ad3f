//! What a rank does while it waits: it spins, then yields, then sleeps.
//!
//! | phase | what | how long |
//! |---|---|---|
//! | look | looks at the words again and again | [`LOOKS`] looks, once per wait |
//! | pause | looks, and lets the core's other thread run between two looks | about 100 us |
//! | yield | gives the processor to whoever else can run | [`YIELDS`] times |
//! | sleep | [`SHORTEST`], twice as long each time, up to [`LONGEST`] | until something changes |
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
        // Words that nobody watches cannot be looked at.
        let looks = |looks: u32| (0..if first.is_some() { looks } else { 1 }).any(|_| changed());
        let (first_looks, pauses) = match self.crowded {
            true => (CROWDED_LOOKS, 0),
            false => (LOOKS, PAUSES),
        };
        if turn == 0 && looks(first_looks) {
            return false;
        }
        if turn < pauses {
            for _ in 0..LOOKS_PER_PAUSE {
                std::hint::spin_loop();
                if changed() {
                    break;
                }
            }
            return false;
        }
        if turn - pauses < YIELDS {
            rustix::thread::sched_yield();
        } else if !changed() {
            let doublings = (turn - pauses - YIELDS).min(4);
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
