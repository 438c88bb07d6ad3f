//! Random numbers that a seed repeats: splitmix64.

/// A generator. The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The generator of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number in `0..bound`; 0 if `bound` is 0. As even as tests need it.
    pub const fn below(&mut self, bound: usize) -> usize {
        let bound = if bound == 0 { 1 } else { bound };
        (self.roll() % bound as u64) as usize
    }

    /// True once in `bound` times.
    pub const fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

/// Spreads each bit of a number over all bits of another: splitmix64's output function.
#[inline]
pub const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the published generator, for the seed 1234567.
    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        let mut dice = Dice::new(1_234_567);
        let first = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!([(); 3].map(|()| dice.roll()), first);
        assert_eq!([0, 1].map(|bound| dice.below(bound)), [0, 0]);
        assert!((0..100).all(|_| dice.below(7) < 7));
    }
}
