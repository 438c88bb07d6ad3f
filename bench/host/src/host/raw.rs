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

/// Most ranks of a figure.
pub(crate) const RANKS: usize = 16;

/// Entries of a naive ring, and elements of an entry.
const ENTRIES: u64 = 64;
pub(crate) const ENTRY: usize = 8;

/// After so many looks, each with a pause, a naive ring yields at each look.
const LOOKS: u32 = 100;

/// A ring as one would write it first: two counters, and entries of a line.
#[derive(Debug)]
struct Ring {
    sent: Apart,
    taken: Apart,
    entries: [[AtomicU64; ENTRY]; ENTRIES as usize],
}

/// Memory that all threads reach.
#[derive(Debug)]
pub(crate) struct Raw {
    ball: Apart,
    flags: [Apart; 2],
    counters: [Apart; 2],
    data: [Parcel; 2],
    /// The one that each rank takes from.
    rings: [Ring; RANKS],
    /// What each rank's work took last, in nanoseconds.
    times: [Apart; RANKS],
}

impl Raw {
    pub(crate) fn new() -> Self {
        Self {
            ball: Apart::default(),
            flags: Default::default(),
            counters: Default::default(),
            data: [Parcel::new(), Parcel::new()],
            rings: std::array::from_fn(|_| Ring::new()),
            times: Default::default(),
        }
    }

    /// Starts anew; both threads must wait for each other behind it.
    pub(crate) fn reset(&self) {
        self.ball.0.store(0, SeqCst);
        for flag in &self.flags {
            flag.0.store(0, SeqCst);
        }
    }

    /// See [`flagpost_common::line`].
    pub(crate) fn line(&self, me: usize, rounds: u64) {
        flagpost_common::line(&self.ball.0, me, rounds);
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

    /// Sends an entry to rank `to` through its naive ring.
    pub(crate) fn send(&self, to: usize, entry: &[u64; ENTRY]) {
        self.rings[to].send(entry);
    }

    /// Takes an entry from rank `me`'s.
    pub(crate) fn take(&self, me: usize) -> [u64; ENTRY] {
        self.rings[me].take()
    }

    /// Notes what rank `me`'s work took; 0 if it had none.
    pub(crate) fn note(&self, me: usize, ns: u64) {
        self.times[me].0.store(ns, Relaxed);
    }

    /// The slowest rank's time over the fastest one's.
    pub(crate) fn spread(&self) -> f64 {
        let times = self.times.iter().map(|time| time.0.load(Relaxed));
        let times: Vec<u64> = times.filter(|time| *time > 0).collect();
        let slowest = times.iter().max().copied().unwrap_or_default();
        let fastest = times.iter().min().copied().unwrap_or_default();
        slowest as f64 / fastest as f64
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

impl Ring {
    fn new() -> Self {
        Self {
            sent: Apart::default(),
            taken: Apart::default(),
            entries: std::array::from_fn(|_| Default::default()),
        }
    }

    /// The entry of this number, once it is `ready`.
    fn entry(&self, number: u64, ready: impl Fn() -> bool) -> &[AtomicU64; ENTRY] {
        let mut looks = 0;
        while !ready() {
            looks += 1;
            if looks > LOOKS {
                std::thread::yield_now();
            } else {
                spin_loop();
            }
        }
        &self.entries[(number % ENTRIES) as usize]
    }

    fn send(&self, entry: &[u64; ENTRY]) {
        let sent = self.sent.0.load(Relaxed);
        let to = self.entry(sent, || sent - self.taken.0.load(Acquire) < ENTRIES);
        for (to, from) in to.iter().zip(entry) {
            to.store(*from, Relaxed);
        }
        self.sent.0.store(sent + 1, Release);
    }

    fn take(&self) -> [u64; ENTRY] {
        let taken = self.taken.0.load(Relaxed);
        let from = self.entry(taken, || self.sent.0.load(Acquire) > taken);
        let entry = std::array::from_fn(|index| from[index].load(Relaxed));
        self.taken.0.store(taken + 1, Release);
        entry
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
