//! What a rank does while it waits: it spins, then yields, then sleeps.
//!
//! | phase | what | how long |
//! |---|---|---|
//! | look | looks at the words again and again | [`LOOKS`] looks, once per wait |
//! | pause | looks; between two looks the core's other thread may run | about 1 ms |
//! | yield | gives the processor to another process that can run | [`YIELDS`] times |
//! | sleep | sleeps, longer each few times | until something changes |
//!
//! Where the processor can watch a line ([`Monitor`]), the rank watches it in its pauses. The first
//! [`ALIKE`] sleeps take [`SHORTEST`] each. Each [`ALIKE`] sleeps later the time doubles, up to
//! 0.8 ms.
//!
//! Copies of 1 MiB take up to half a millisecond where processors are far from each other: such a
//! wait must not end in a sleep. And no sleep is longer than about a tenth of what was waited.
//!
//! A loop that looks at more than can be watched does so between two turns: each is one pause then,
//! [`UNWATCHED`] times, before the phases that yield and sleep.
//!
//! Where ranks share processors (they are *crowded*), a rank that spins keeps those from running
//! that it waits for. One rule holds there: a rank looks for about as long as a message takes whose
//! sender runs, [`CROWDED_LOOKS`] times, then yields. A shorter look yields beside a peer that is
//! about to answer, and a longer one costs each message that needs the scheduler. Two ranks that
//! find each other in these looks would keep their processors: after [`IN_A_ROW`] such waits a rank
//! yields first. `cargo xtask bench host --figure crowded` prints what messages take there.
//!
//! No sleep is ended by a store: the storer would have to look whether somebody sleeps
//! (docs/log/decisions.md 58).
//!
//! The phases begin anew once the link says that a wait is over, and when the first word that is
//! watched, or what was seen in it, is another one.

use std::cell::Cell;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use flagpost_hal::Watch;

use crate::cache::Monitor;

/// Looks without a pause.
const LOOKS: u32 = 2000;
/// Looks where ranks share processors, each with a pause: about half a microsecond, where that was
/// measured.
const CROWDED_LOOKS: u32 = 20;
/// How many waits in a row such looks may end.
const IN_A_ROW: u32 = 128;
/// Turns of the phase that pauses,
const PAUSES: u32 = 300;
/// and looks per turn.
const LOOKS_PER_PAUSE: u32 = 32;
/// Ticks of the counter that such a turn takes where a line is watched. Linux allows 100,000.
const TICKS: u64 = 8192;
/// Turns of one pause where there is nothing to watch.
const UNWATCHED: u32 = 10_000;
/// Turns of the phase that yields.
const YIELDS: u32 = 300;
/// How many sleeps are as long as each other.
const ALIKE: u32 = 8;
/// The first sleep,
const SHORTEST: Duration = Duration::from_micros(50);
/// and how often that time doubles, to 0.8 ms: short beside any budget, and beside the death of a
/// rank.
const DOUBLINGS: u32 = 4;

/// How a rank waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    crowded: Cell<bool>,
    /// How many waits in a row began with looks, where ranks share processors.
    in_a_row: Cell<u32>,
    /// If the processor has one.
    monitor: Option<Monitor>,
    /// Turns of this wait so far.
    turns: Cell<u32>,
    /// What it watches.
    watched: Cell<Option<Watch>>,
    sleep: fn(Duration),
}

impl Waiter {
    /// For a rank that shares its processor with others, if `crowded`.
    pub(crate) fn new(crowded: bool) -> Self {
        Self {
            crowded: Cell::new(crowded),
            in_a_row: Cell::new(0),
            monitor: Monitor::detect(),
            turns: Cell::new(0),
            watched: Cell::new(None),
            sleep: std::thread::sleep,
        }
    }

    /// Whether the rank shares its processor is another answer from now on.
    pub(crate) fn set_crowded(&self, crowded: bool) {
        self.crowded.set(crowded);
    }

    /// Whether the rank shares its processor.
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded.get()
    }

    /// One turn of waiting. Ends early once `changed` says that a watched word is another one.
    /// `line` is the first one, if stores of peers to it reach the processor. True if the wait is a
    /// long one by now: it yields or sleeps.
    pub(crate) fn turn(
        &self,
        watched: &[Watch],
        line: Option<&AtomicU32>,
        changed: impl Fn() -> bool,
    ) -> bool {
        let first = watched.first().copied();
        let turn = if self.watched.replace(first) == first {
            self.turns.get()
        } else {
            0
        };
        self.turns.set(turn.saturating_add(1));
        let (looks, pauses, at_a_time) = match (first, self.crowded.get()) {
            (Some(_), false) => (LOOKS, PAUSES, LOOKS_PER_PAUSE),
            (Some(_), true) => {
                if turn == 0 && self.looks_first() && looked(CROWDED_LOOKS, &changed) {
                    return false;
                }
                (0, 0, 0)
            }
            (None, false) => (0, UNWATCHED, 1),
            // A program that calls without a budget, and relaxes in between, begins anew with each
            // call: it would never yield.
            (None, true) => (0, 0, 0),
        };
        if turn == 0 && (0..looks).any(|_| changed()) {
            return false;
        }
        if turn < pauses {
            if let (Some(monitor), Some(line)) = (self.monitor, line) {
                pause(monitor, line, watched.len(), changed);
                return false;
            }
            looked(at_a_time, changed);
            return false;
        }
        let turn = turn - pauses;
        if turn < YIELDS {
            rustix::thread::sched_yield();
            self.in_a_row.set(0);
        } else if !changed() {
            let doublings = ((turn - YIELDS) / ALIKE).min(DOUBLINGS);
            (self.sleep)(SHORTEST * (1 << doublings));
        }
        true
    }

    /// Whether a rank that shares its processor may look before it yields.
    fn looks_first(&self) -> bool {
        let before = self.in_a_row.replace(self.in_a_row.get().saturating_add(1));
        before < IN_A_ROW
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

/// Looks `looks` times, each after a pause, until `changed` says so; whether it has.
fn looked(looks: u32, changed: impl Fn() -> bool) -> bool {
    (0..looks).any(|_| {
        std::hint::spin_loop();
        changed()
    })
}

/// Waits until `changed` says so, or the time of a turn is over. Looks each time that `line` was
/// stored to, and now and then as well if it is not the only one of the `watched` words.
fn pause(monitor: Monitor, line: &AtomicU32, watched: usize, changed: impl Fn() -> bool) {
    let looks = if watched > 1 { LOOKS_PER_PAUSE } else { 1 };
    for _ in 0..looks {
        monitor.watch(line);
        // Behind the start: a store that came before it ends no wait.
        if changed() {
            return;
        }
        monitor.wait(TICKS / u64::from(looks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flagpost_hal::{CoreId, Region};
    use std::cell::{Cell, RefCell};

    fn watch(seen: u32) -> [Watch; 1] {
        let at = Region::memory(CoreId::new(0)).at(64);
        [Watch { at, seen }]
    }

    /// How many turns of a wait are short ones.
    fn short_turns(waiter: &Waiter, watched: &[Watch]) -> u32 {
        (0..)
            .find(|_| waiter.turn(watched, None, || false))
            .unwrap_or(0)
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

    thread_local! {
        /// How long this thread's rank would have slept, each time.
        static SLEPT: RefCell<Vec<Duration>> = const { RefCell::new(Vec::new()) };
    }

    /// No sleep is longer than 50 us and an eighth of what was slept before, nor than 0.8 ms: so a
    /// rank wakes late by no more than that. Nor are there many short ones. Waits begin anew.
    #[test]
    fn sleeps_are_short_beside_what_was_waited() {
        let sleep = |length| SLEPT.with_borrow_mut(|slept| slept.push(length));
        for crowded in [false, true] {
            let waiter = Waiter {
                sleep,
                ..Waiter::new(crowded)
            };
            for _ in 0..2 {
                for _ in 0..2000 {
                    waiter.turn(&watch(1), None, || false);
                }
                waiter.done();
                let (slept, mut before) = (SLEPT.take(), Duration::ZERO);
                for (number, length) in slept.iter().enumerate() {
                    let most =
                        (Duration::from_micros(50) + before / 8).min(Duration::from_micros(800));
                    assert!(
                        *length <= most,
                        "sleep {number}: {length:?} after {before:?}"
                    );
                    before += *length;
                }
                assert!(before > Duration::from_micros(700) * slept.len() as u32);
                // What yields before does not sleep.
                let yields = if crowded { YIELDS } else { PAUSES + YIELDS };
                assert_eq!(slept.len() as u32, 2000 - yields);
            }
        }
    }

    #[test]
    fn crowded_ranks_give_way_at_once() {
        let waiter = Waiter::new(true);
        assert_eq!(short_turns(&waiter, &watch(1)), 0);
        waiter.done();
        assert_eq!(short_turns(&waiter, &[]), 0);
    }

    #[test]
    fn crowded_ranks_look_as_long_as_a_message_takes() {
        let (waiter, looks) = (Waiter::new(true), Cell::new(0));
        let seen_at = |last: u32| {
            looks.set(0);
            let changed = || {
                looks.set(looks.get() + 1);
                looks.get() == last
            };
            let long = waiter.turn(&watch(1), None, changed);
            waiter.done();
            (long, looks.get())
        };
        assert_eq!(seen_at(0), (true, CROWDED_LOOKS), "then it yields");
        // Counted from a yield: a rank that is always answered gives way, too.
        for _ in 0..2 {
            for _ in 0..IN_A_ROW {
                assert_eq!(seen_at(CROWDED_LOOKS), (false, CROWDED_LOOKS));
            }
            assert_eq!(seen_at(1), (true, 0), "it yields first");
        }
    }

    #[test]
    fn a_change_ends_a_turn() {
        let waiter = Waiter::new(false);
        let looks = Cell::new(0);
        let third = || {
            looks.set(looks.get() + 1);
            looks.get() == 3
        };
        assert!(!waiter.turn(&watch(1), None, third));
        assert_eq!(looks.get(), 3);
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn monitors_are_there_where_the_system_says_so() {
        let processors = std::fs::read_to_string("/proc/cpuinfo").expect("it can be read");
        let told = processors.split_whitespace().any(|flag| flag == "waitpkg");
        assert_eq!(Monitor::detect().is_some(), told);
    }

    /// Where the processor does not have them, the instructions are noted and passed over.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn monitors_watch_then_look_then_wait() {
        use crate::cache::executed::executed;
        use std::sync::atomic::Ordering::Relaxed;

        let (word, monitor) = (AtomicU32::new(0), Monitor::assumed());
        let waiter = Waiter {
            monitor: Some(monitor),
            ..Waiter::new(false)
        };
        waiter.turn(&watch(0), None, || false);
        let turn = |watched: &[Watch]| {
            executed(|| waiter.turn(watched, Some(&word), || word.load(Relaxed) != 0))
        };
        assert_eq!(turn(&watch(0)), (vec!["umonitor", "umwait"], false));
        let both = [watch(0), watch(0)].concat();
        let looks = LOOKS_PER_PAUSE as usize;
        assert_eq!(turn(&both), (["umonitor", "umwait"].repeat(looks), false));
        word.store(1, Relaxed);
        assert_eq!(turn(&watch(0)), (vec!["umonitor"], false));
    }
}
