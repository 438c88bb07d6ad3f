//! How many checks of a command have passed, and failed.

/// Checks passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub passed: usize,
    pub failed: usize,
}

impl Count {
    pub fn one(ok: bool) -> Self {
        Self {
            passed: usize::from(ok),
            failed: usize::from(!ok),
        }
    }

    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// The last line of a command.
    pub fn line(self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_both_numbers() {
        let mut sum = Count::one(true);
        sum.add(Count::one(false));
        sum.add(Count::one(true));
        assert_eq!(sum.line(), "2 passed, 1 failed");
    }
}
