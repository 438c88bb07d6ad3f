//! The memory that all cores reach: their regions, and a line per core for the port itself.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bytes of a line of every Cortex-M that has a data cache.
pub(crate) const LINE: usize = 32;

/// Regions of `WORDS` words for each of `CORES` cores, and what the port keeps beside them.
///
/// A `static` of the image, or of each image: see the crate's documentation for where. What it
/// holds at start does not matter, if each core calls [`CortexM::start`](crate::CortexM::start)
/// before another counts on it.
#[repr(C, align(32))]
#[derive(Debug)]
pub struct Shared<const CORES: usize, const WORDS: usize> {
    pub(crate) regions: [[AtomicU32; WORDS]; CORES],
    pub(crate) cores: [PerCore; CORES],
}

impl<const CORES: usize, const WORDS: usize> Shared<CORES, WORDS> {
    /// All zero.
    #[expect(clippy::new_without_default, reason = "for a `static`")]
    pub const fn new() -> Self {
        const {
            assert!(
                WORDS.is_multiple_of(LINE / 4),
                "a region is whole lines of 32 bytes"
            );
            assert!(CORES >= 1 && CORES <= 32, "1 to 32 cores");
        }
        Self {
            regions: [const { [const { AtomicU32::new(0) }; WORDS] }; CORES],
            cores: [const { PerCore::new() }; CORES],
        }
    }
}

impl<const CORES: usize, const WORDS: usize> Shared<CORES, WORDS> {
    /// Makes all zero, as before the first start. For one core, before it starts the others: where
    /// nothing else clears the memory.
    pub fn clear(&self) {
        let own = |core: &PerCore| {
            let words = [&core.lock, &core.rung, &core.held];
            words.into_iter().chain(&core.clock).for_each(zero);
        };
        self.regions.as_flattened().iter().for_each(zero);
        self.cores.iter().for_each(own);
    }
}

fn zero(word: &AtomicU32) {
    word.store(0, Relaxed);
}

/// What the port keeps for a core. Only the core itself stores to `held` and `clock`.
#[repr(C, align(32))]
#[derive(Debug)]
pub(crate) struct PerCore {
    /// Guards words of this core, on chips whose locks are words.
    pub(crate) lock: AtomicU32,
    /// 1: this core's bell was rung.
    pub(crate) rung: AtomicU32,
    /// Bit `n`: this core holds the lock of core `n`.
    pub(crate) held: AtomicU32,
    /// The counter when it was last read, and the cycles until then: low half, high half.
    pub(crate) clock: [AtomicU32; 3],
}

impl PerCore {
    const fn new() -> Self {
        Self {
            lock: AtomicU32::new(0),
            rung: AtomicU32::new(0),
            held: AtomicU32::new(0),
            clock: [const { AtomicU32::new(0) }; 3],
        }
    }
}
