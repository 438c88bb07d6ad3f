//! Reproducible randomness: splitmix64, in independent streams of one seed.
//!
//! The schedule, the environment (evictions, drains, prefetches) and the initial contents of memory
//! each draw from a stream of their own, so that turning one knob does not reshuffle the others
//! more than the run itself does.

/// What a stream is used for.
#[derive(Copy, Clone)]
pub(crate) enum Stream {
    /// Who runs next.
    Schedule = 1,
    /// What the hardware does on its own account.
    Environment = 2,
    /// What is in memory and in the registers at the start.
    Garbage = 3,
    /// Who wakes for no reason.
    Wakes = 4,
}

/// The golden ratio in 64 bits: splitmix64's increment.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// splitmix64's output function: a bijection that spreads every input bit over all output bits.
#[inline]
pub(crate) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A stream of pseudo-random numbers.
pub(crate) struct Rng(u64);

impl Rng {
    /// The stream of `seed` for one purpose.
    pub(crate) const fn new(seed: u64, stream: Stream) -> Self {
        Self(mix(seed.wrapping_add(STEP)) ^ mix((stream as u64).wrapping_mul(STEP)))
    }

    /// The next 64 bits.
    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number in `0..bound`; 0 if `bound` is 0. The bias (below 2^-32 per value) does not matter
    /// here.
    #[inline]
    pub(crate) const fn below(&mut self, bound: usize) -> usize {
        (((self.next() >> 32) * bound as u64) >> 32) as usize
    }
}
