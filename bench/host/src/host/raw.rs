//! What bare memory takes: atomics and `memcpy`, without the library.

use std::cell::UnsafeCell;
use std::fmt;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// Most bytes that are copied.
pub(crate) const MOST: usize = 1 << 20;

/// A word that has its lines for itself: processors fetch two at a time.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Apart(AtomicU64);

/// Memory that both threads reach.
#[derive(Debug)]
pub(crate) struct Raw {
    ball: Apart,
    flags: [Apart; 2],
    counters: [Apart; 2],
    data: [Parcel; 2],
}

impl Raw {
    pub(crate) fn new() -> Self {
        Self {
            ball: Apart::default(),
            flags: Default::default(),
            counters: Default::default(),
            data: [Parcel::new(), Parcel::new()],
        }
    }

    /// Starts anew; both threads must wait for each other behind it.
    pub(crate) fn reset(&self) {
        self.ball.0.store(0, SeqCst);
        for flag in &self.flags {
            flag.0.store(0, SeqCst);
        }
    }

    /// One line there and back, `rounds` times: a load until it has the value, a store of the next.
    pub(crate) fn line(&self, me: usize, rounds: u64) {
        for round in 0..rounds {
            let mine = 2 * round + me as u64;
            while self.ball.0.load(Acquire) != mine {
                spin_loop();
            }
            self.ball.0.store(mine + 1, Release);
        }
    }

    /// `memcpy` of `from` to the other's memory, a flag in a line of its own, `memcpy` out of
    /// there; there and back.
    pub(crate) fn copies(&self, me: usize, rounds: u64, from: &[u64], into: &mut [u64]) {
        for round in 1..=rounds {
            for side in [0, 1] {
                let (data, flag) = (&self.data[side], &self.flags[side].0);
                if side == me {
                    // SAFETY: see `Parcel`: the other has read what was here before it set its
                    // flag, which this thread has seen, or nothing was here.
                    unsafe { data.fill(from) };
                    flag.store(round, Release);
                } else {
                    while flag.load(Acquire) != round {
                        spin_loop();
                    }
                    // SAFETY: see `Parcel`: the flag says that it is written, and the writer waits
                    // for the other flag.
                    unsafe { data.empty(into) };
                    black_box(&into);
                }
            }
        }
    }

    /// Additions to one word.
    pub(crate) fn add(&self, rounds: u64) {
        for _ in 0..rounds {
            black_box(self.counters[0].0.fetch_add(1, SeqCst));
        }
    }

    /// Successful compare-and-swaps of one word.
    pub(crate) fn compare_swap(&self, rounds: u64) {
        let mut old = self.counters[0].0.load(Relaxed);
        for _ in 0..rounds {
            let swapped = self.counters[0]
                .0
                .compare_exchange(old, old + 1, SeqCst, SeqCst);
            old = black_box(swapped.map_or_else(|found| found, |old| old + 1));
        }
    }

    /// As many atomic operations as an exclusive lock and its release take: two on each of two
    /// words.
    pub(crate) fn lock(&self, rounds: u64) {
        for _ in 0..rounds {
            for change in [1, u64::MAX] {
                for counter in &self.counters {
                    black_box(counter.0.fetch_add(change, SeqCst));
                }
            }
        }
    }
}

/// Words that one thread writes and the other reads, in turn.
struct Parcel(UnsafeCell<Box<[u64]>>);

// SAFETY: `Raw::copies` is the only one to look inside. There, thread `side` alone writes parcel
// `side`, then stores the round's number in that side's flag (release); the other reads the parcel
// once it has loaded that number (acquire), and then stores its own flag, for which the writer
// waits before it writes again. So no two accesses of which one writes are unordered.
unsafe impl Sync for Parcel {}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parcel")
    }
}

impl Parcel {
    fn new() -> Self {
        Self(UnsafeCell::new(vec![0; MOST / 8].into()))
    }

    /// Writes `from`.
    ///
    /// # Safety
    /// Nobody else uses the parcel meanwhile.
    unsafe fn fill(&self, from: &[u64]) {
        // SAFETY: the caller's promise.
        let words = unsafe { &mut *self.0.get() };
        words[..from.len()].copy_from_slice(from);
    }

    /// Reads as much as `into` has room for.
    ///
    /// # Safety
    /// Nobody writes the parcel meanwhile.
    unsafe fn empty(&self, into: &mut [u64]) {
        // SAFETY: the caller's promise.
        let words = unsafe { &*self.0.get() };
        into.copy_from_slice(&words[..into.len()]);
    }
}
