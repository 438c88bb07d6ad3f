//! What is told of samples.

/// Samples in their order, the least one first.
#[derive(Clone, Debug)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// Sorts them.
    pub fn new(samples: impl IntoIterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = samples.into_iter().collect();
        all.sort_by(f64::total_cmp);
        Self(all)
    }

    /// The least one; not a number if there is none.
    pub fn least(&self) -> f64 {
        self.at(0)
    }

    /// The middle one, the lower one of two; not a number if there is none.
    pub fn median(&self) -> f64 {
        self.at(self.0.len().saturating_sub(1) / 2)
    }

    /// The middle ones of the lower and of the upper half; not numbers if there is none.
    pub fn quartiles(&self) -> [f64; 2] {
        [1, 3].map(|quarters| self.at(self.0.len().saturating_sub(1) * quarters / 4))
    }

    /// The greatest one; not a number if there is none.
    pub fn most(&self) -> f64 {
        self.at(self.0.len().saturating_sub(1))
    }

    fn at(&self, index: usize) -> f64 {
        self.0.get(index).copied().unwrap_or(f64::NAN)
    }
}

/// [`Sorted::median`].
pub fn median(samples: impl IntoIterator<Item = f64>) -> f64 {
    Sorted::new(samples).median()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_even_number_the_lower_middle_one_counts() {
        for (samples, expected) in [
            (&[5.0, 1.0, 9.0][..], [1.0, 5.0, 9.0]),
            (&[4.0, 1.0, 9.0, 5.0], [1.0, 4.0, 9.0]),
            (&[7.0], [7.0, 7.0, 7.0]),
        ] {
            let sorted = Sorted::new(samples.iter().copied());
            assert_eq!([sorted.least(), sorted.median(), sorted.most()], expected);
        }
        let five = Sorted::new([5.0, 3.0, 1.0, 4.0, 2.0]);
        assert_eq!(five.quartiles(), [2.0, 4.0]);
        let four = Sorted::new([3.0, 1.0, 4.0, 2.0]);
        assert_eq!(four.quartiles(), [1.0, 3.0]);
        assert!(median([]).is_nan());
    }
}
