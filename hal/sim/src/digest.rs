//! 128-bit digests of states.
//!
//! Two states with equal digests are taken for one state. With n states the chance that any two
//! differing ones collide is about n^2 / 2^129: for a hundred million states less than 10^-22.

/// An ordered digest of numbers.
#[derive(Copy, Clone)]
pub(crate) struct Digest(u64, u64);

/// Odd, with about as many ones as zeros.
const A: u64 = 0xa076_1d64_78bd_642f;
const B: u64 = 0xe703_7ed1_a0b4_28db;

/// Both halves of a 128-bit product, folded: every input bit reaches every output bit.
#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

impl Digest {
    /// An empty digest, for one kind of thing.
    #[inline]
    pub(crate) const fn new(kind: u64) -> Self {
        Self(A ^ kind, B.wrapping_add(kind))
    }

    #[inline]
    pub(crate) const fn add(&mut self, number: u64) {
        self.0 = fold(self.0 ^ number, A).wrapping_add(B);
        self.1 = fold(self.1.rotate_left(23) ^ number, B).wrapping_add(A);
    }

    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    #[inline]
    pub(crate) fn long(&mut self, number: u128) {
        self.add(number as u64);
        self.add((number >> 64) as u64);
    }

    /// The digest. Unordered collections xor those of their members.
    #[inline]
    pub(crate) const fn value(self) -> u128 {
        let (a, b) = (fold(self.0, B), fold(self.1, A));
        (a as u128) << 64 | b as u128
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn digest(numbers: &[u64]) -> u128 {
        let mut digest = Digest::new(0);
        numbers.iter().for_each(|&number| digest.add(number));
        digest.value()
    }

    #[test]
    fn order_length_and_every_bit_count() {
        let mut seen = HashSet::new();
        for numbers in [&[][..], &[0], &[0, 0], &[1, 2], &[2, 1], &[1, 2, 0]] {
            assert!(seen.insert(digest(numbers)));
        }
        for bit in 0..64 {
            assert!(seen.insert(digest(&[7, 1 << bit, 9])) || bit == 64);
        }
        assert_ne!(Digest::new(1).value(), Digest::new(2).value());
    }
}
