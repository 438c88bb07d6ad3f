//! Words beside the regions: which ranks are there, locks.
//!
//! They are for what one host knows of its processes; ranks of several hosts have them once per
//! host.
//!
//! | word | who changes it | what |
//! |---|---|---|
//! | `lost` | the launcher, or who finds a process gone | 0, or 1 + the first rank that is lost |
//! | `left` | each rank, at its end | 0, or 1: a rank has left in order |
//! | `asked` | the launcher | how often it has asked what ranks wait for |
//! | `arrived` | each rank, once | how many have mapped the memory |
//! | `barrier` | all | arrivals and turn of the harness's barrier |
//! | `state`, `pid` of a rank | the rank; the launcher | see [`State`] |
//! | `answered` of a rank | the rank | the question that it has answered last |
//! | `gone` of a rank | who changes `lost` | 0, or 1: it is lost |
//! | `lock` of a rank | who holds it | 0 free, 1 held |

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::segment::Segment;

const LOST: usize = 0;
const LEFT: usize = 4;
const ASKED: usize = 8;
const ARRIVED: usize = 128;
const BARRIER: usize = 256;
const TURN: usize = 256 + 4;

const LOCK: usize = 0;
const STATE: usize = 128;
const PID: usize = 128 + 4;
const ANSWERED: usize = 128 + 8;
const GONE: usize = 128 + 12;

/// What is known of a rank.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not mapped the memory yet.
    Expected,
    /// It has.
    Here,
    /// It has ended its program in order.
    Done,
}

impl State {
    fn of(word: u32) -> Self {
        match word {
            0 => Self::Expected,
            1 => Self::Here,
            _ => Self::Done,
        }
    }
}

impl Segment {
    fn of_rank(&self, rank: u16, word: usize) -> &AtomicU32 {
        let rank = rank.min(self.shape().ranks().saturating_sub(1));
        self.control(self.shape().control_of(rank) + word)
    }

    /// The test-and-set register of `rank`.
    pub(crate) fn lock_of(&self, rank: u16) -> &AtomicU32 {
        self.of_rank(rank, LOCK)
    }

    /// `rank` has mapped the memory. Returns how many have; none, with nothing changed, if `rank`
    /// was not expected any more: links start on memory that is zeros, once.
    pub fn arrive(&self, rank: u16) -> Option<u32> {
        let state = self.of_rank(rank, STATE);
        state.compare_exchange(0, 1, AcqRel, Acquire).ok()?;
        // Who looks before this is there finds no process, and looks again.
        self.of_rank(rank, PID).store(std::process::id(), Release);
        let arrived = self.control(ARRIVED).fetch_add(1, AcqRel);
        Some(arrived.wrapping_add(1))
    }

    /// `rank` has ended in order.
    pub fn leave(&self, rank: u16) {
        self.of_rank(rank, STATE).store(2, Release);
        self.control(LEFT).store(1, Release);
    }

    /// Whether `rank` has ended in order; whether any has, if none is named.
    pub(crate) fn has_left(&self, rank: Option<u16>) -> bool {
        match rank {
            None => self.control(LEFT).load(Relaxed) != 0,
            Some(rank) => rank < self.shape().ranks() && self.state_of(rank) == State::Done,
        }
    }

    /// What `rank` says of itself.
    pub fn state_of(&self, rank: u16) -> State {
        State::of(self.of_rank(rank, STATE).load(Acquire))
    }

    /// The process of `rank`; none before it has arrived.
    pub(crate) fn pid_of(&self, rank: u16) -> Option<i32> {
        let pid = self.of_rank(rank, PID).load(Acquire);
        i32::try_from(pid).ok().filter(|pid| *pid > 0)
    }

    /// Tells all that `rank` is lost, if it has not ended in order. [`lost`](Self::lost) stays the
    /// first one.
    pub fn mark_lost(&self, rank: u16) {
        if self.has_left(Some(rank)) {
            return;
        }
        self.of_rank(rank, GONE).store(1, Release);
        let word = u32::from(rank) + 1;
        let _ = self
            .control(LOST)
            .compare_exchange(0, word, AcqRel, Relaxed);
    }

    /// Asks each rank what it waits for. A rank that waits writes it to its standard error.
    pub fn ask(&self) {
        self.control(ASKED).fetch_add(1, Release);
    }

    /// Whether `rank` is to say what it waits for.
    #[inline]
    pub(crate) fn is_asked(&self, rank: u16) -> bool {
        let asked = self.control(ASKED).load(Relaxed);
        asked != 0 && asked != self.of_rank(rank, ANSWERED).load(Relaxed)
    }

    /// `rank` has said what it waits for.
    pub(crate) fn answer(&self, rank: u16) {
        let asked = self.control(ASKED).load(Acquire);
        self.of_rank(rank, ANSWERED).store(asked, Release);
    }

    /// Whether `rank` has answered the last question.
    pub fn has_answered(&self, rank: u16) -> bool {
        self.of_rank(rank, ANSWERED).load(Acquire) == self.control(ASKED).load(Acquire)
    }

    /// The word that says whether a rank is lost.
    pub(crate) fn lost_word(&self) -> &AtomicU32 {
        self.control(LOST)
    }

    /// The first rank that is lost, if any. A number that no rank has is a peer's mistake, and is
    /// nobody's.
    pub fn lost(&self) -> Option<u16> {
        let word = self.lost_word().load(Acquire);
        let rank = u16::try_from(word.checked_sub(1)?).ok()?;
        (rank < self.shape().ranks()).then_some(rank)
    }

    /// Whether `rank` is lost.
    pub(crate) fn is_lost(&self, rank: u16) -> bool {
        rank < self.shape().ranks() && self.of_rank(rank, GONE).load(Acquire) != 0
    }

    /// Waits until all ranks are here, or one is lost: for harnesses, beside all links. False if
    /// one is.
    pub(crate) fn barrier(&self) -> bool {
        let (count, turn) = (self.control(BARRIER), self.control(TURN));
        let now = turn.load(Acquire);
        if count.fetch_add(1, AcqRel) + 1 == u32::from(self.shape().ranks()) {
            count.store(0, Relaxed);
            turn.store(now.wrapping_add(1), Release);
            return true;
        }
        let mut turns = 0_u32;
        while turn.load(Acquire) == now {
            if self.lost().is_some() {
                return false;
            }
            turns = turns.saturating_add(1);
            if turns < 200 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Shape;

    /// Whatever is in the words, what is made of them names ranks and processes that can be.
    #[test]
    fn evil_words_name_nobody() {
        let shape = Shape::new(3, 1 << 16).expect("it makes sense");
        let segment = Segment::of_threads(shape).expect("memory");
        for word in [4, 5, 65_536, 65_537, 0x8000_0000, u32::MAX] {
            segment.lost_word().store(word, Relaxed);
            assert_eq!(segment.lost(), None, "{word}");
            segment.of_rank(1, STATE).store(word, Relaxed);
            assert_eq!(segment.state_of(1), State::Done);
        }
        for word in [0, 0x8000_0000, u32::MAX] {
            segment.of_rank(1, PID).store(word, Relaxed);
            assert_eq!(segment.pid_of(1), None, "{word}");
        }
        segment.lost_word().store(3, Relaxed);
        assert_eq!(segment.lost(), Some(2));
    }

    #[test]
    fn a_rank_arrives_once() {
        let shape = Shape::new(3, 1 << 16).expect("it makes sense");
        let segment = Segment::of_threads(shape).expect("memory");
        assert_eq!(segment.arrive(1), Some(1));
        assert_eq!(segment.arrive(1), None, "while it is here");
        assert_eq!(
            segment.arrive(2),
            Some(2),
            "the others are not counted twice"
        );
        let left = [None, Some(1), Some(2), Some(3)];
        assert_eq!(left.map(|rank| segment.has_left(rank)), [false; 4]);
        segment.leave(1);
        segment.mark_lost(1);
        assert_eq!(segment.lost(), None, "what has left is not lost");
        assert_eq!(segment.arrive(1), None, "after it has left");
        assert_eq!(segment.state_of(1), State::Done);
        let found = left.map(|rank| segment.has_left(rank));
        assert_eq!(found, [true, true, false, false], "there is no rank 3");
    }

    #[test]
    fn each_question_is_answered_once() {
        let shape = Shape::new(2, 1 << 16).expect("it makes sense");
        let segment = Segment::of_threads(shape).expect("memory");
        assert!(!segment.is_asked(0) && !segment.is_asked(1));
        for _ in 0..2 {
            segment.ask();
            assert!(segment.is_asked(0) && segment.is_asked(1));
            segment.answer(1);
            assert!(segment.is_asked(0) && !segment.is_asked(1));
            let answered = [0, 1].map(|rank| segment.has_answered(rank));
            assert_eq!(answered, [false, true]);
        }
    }

    #[test]
    fn all_lost_ranks_are_known_and_the_first_one_stays() {
        let shape = Shape::new(3, 1 << 16).expect("it makes sense");
        let segment = Segment::of_threads(shape).expect("memory");
        segment.mark_lost(2);
        segment.mark_lost(1);
        assert_eq!(segment.lost(), Some(2));
        let lost = [0, 1, 2, 3].map(|rank| segment.is_lost(rank));
        assert_eq!(lost, [false, true, true, false], "there is no rank 3");
    }
}
