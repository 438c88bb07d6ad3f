//! How many checks of a command have passed, and failed.

/// Checks passed, failed, and skipped since they are made for another machine or size.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Count {
    pub fn one(ok: bool) -> Self {
        Self {
            passed: usize::from(ok),
            failed: usize::from(!ok),
            skipped: 0,
        }
    }

    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Something was tried.
    pub fn is_some(self) -> bool {
        self.passed + self.failed > 0
    }

    /// The last line of a command.
    pub fn line(self) -> String {
        let skipped = match self.skipped {
            0 => String::new(),
            skipped => format!(", {skipped} skipped"),
        };
        format!("{} passed, {} failed{skipped}", self.passed, self.failed)
    }
}
