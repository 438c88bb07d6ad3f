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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Case;

    /// A run whose cases ended so, with trouble of its own or none.
    fn run(outcomes: Vec<Outcome>, errors: &[&str]) -> Run {
        let case = |outcome| Case {
            name: "a".to_owned(),
            outcome,
            instructions: None,
            over: true,
        };
        Run {
            cases: outcomes.into_iter().map(case).collect(),
            errors: errors.iter().map(|&error| error.to_owned()).collect(),
            ..Run::new(8, 0)
        }
    }

    #[test]
    fn trouble_outside_of_any_case_is_one_failure() {
        let failed = || Outcome::Failed("HUNG", "no".to_owned());
        let skipped = || Outcome::Skipped("2..4".to_owned());
        for (outcomes, errors, passed, failed) in [
            (vec![Outcome::Passed, skipped()], &[][..], 1, 0),
            (vec![Outcome::Passed], &["QEMU exited with 3"], 1, 1),
            (vec![], &["fell silent"], 0, 1),
            (vec![failed(), Outcome::Running], &["a", "b"], 0, 2),
        ] {
            let count = Count::of(&run(outcomes, errors));
            assert_eq!(count, Count { passed, failed }, "{errors:?}");
        }
    }

    #[test]
    fn sums_keep_both_numbers() {
        let mut sum = Count::one(true);
        sum.add(Count::one(false));
        sum.add(Count::of(&run(vec![Outcome::Passed], &["no"])));
        assert_eq!(sum.line(), "2 passed, 2 failed");
    }
}
