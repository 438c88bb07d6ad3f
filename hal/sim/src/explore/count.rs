//! How many schedules there are: numbers beyond any machine word.

use std::fmt;
use std::ops::AddAssign;

/// A natural number below 2^256; sums beyond stay there and print as "at least".
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Count([u64; 4]);

impl Count {
    /// One.
    pub const ONE: Self = Self([1, 0, 0, 0]);
    const MAX: Self = Self([u64::MAX; 4]);
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        let mut carry = false;
        for (digit, other) in self.0.iter_mut().zip(other.0) {
            let (sum, first) = digit.overflowing_add(other);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*digit, carry) = (sum, first || second);
        }
        if carry {
            *self = Self::MAX;
        }
    }
}

impl From<u64> for Count {
    fn from(number: u64) -> Self {
        Self([number, 0, 0, 0])
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::MAX {
            f.write_str("at least ")?;
        }
        // Repeated division by ten, the most significant digit of the quotient first.
        let (mut rest, mut text) = (self.0, Vec::new());
        while rest != [0; 4] || text.is_empty() {
            let mut remainder = 0;
            for digit in rest.iter_mut().rev() {
                let value = u128::from(remainder) << 64 | u128::from(*digit);
                (*digit, remainder) = ((value / 10) as u64, (value % 10) as u64);
            }
            text.push(b'0' + remainder as u8);
        }
        text.reverse();
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_and_print_beyond_64_bits() {
        let mut count = Count::from(u64::MAX);
        count += Count::ONE;
        assert_eq!(count.to_string(), "18446744073709551616");
        for _ in 0..64 {
            count += count;
        }
        assert_eq!(count.to_string(), "340282366920938463463374607431768211456");
        assert_eq!(Count::default().to_string(), "0");
    }

    #[test]
    fn counts_saturate() {
        let mut count = Count::ONE;
        for _ in 0..300 {
            count += count;
        }
        assert!(count.to_string().starts_with("at least 1157920892"));
    }
}
