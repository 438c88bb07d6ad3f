//! How many checks of a command have passed, and failed.

use crate::run::{Outcome, Run};

/// Checks passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Count {
    pub(crate) fn one(ok: bool) -> Self {
        Self {
            passed: usize::from(ok),
            failed: usize::from(!ok),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// The cases of a run that ran; what went wrong outside any case counts as one more failure.
    pub(crate) fn of(run: &Run) -> Self {
        let mut count = Self::default();
        for case in &run.cases {
            match case.outcome {
                Outcome::Passed => count.passed += 1,
                Outcome::Skipped(_) => {}
                Outcome::Failed(..) | Outcome::Running => count.failed += 1,
            }
        }
        if count.failed == 0 && !run.ok() {
            count.failed = 1;
        }
        count
    }

    /// The last line of a command.
    pub(crate) fn line(self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed)
    }
}
