//! Trying everything: exhaustive search of small programs.
//!
//! # Two searches on one code path
//! * *States* (the reference): depth first; a state that was seen before is not entered again. The
//!   key of a state is a 128-bit digest of the chip, of the bounds that are left, and, per core, of
//!   all replies it ever got: programs are deterministic, so equal replies mean equal stacks. The
//!   graph has no cycles (every step adds a reply or spends a bound), so the number of paths
//!   through it, that is of schedules without any reduction, is known exactly at the end.
//! * *Unreduced* (the second opinion): no memory of states, so one run for each schedule. It
//!   depends on nothing that the first search depends on: tests compare the two wherever it ends.
//!
//! Coroutines cannot be copied, so a search goes back by running again from the start; behind the
//! set-up with a copy of the chip (`engine/set_up.rs`).
//!
//! # What "exhaustive" claims
//! All schedules, all decisions of the chip, and all its spontaneous acts *within the bounds*:
//! numbers of evictions, prefetches and so on, of cores and epochs. More is not shown. [`Explored`]
//! prints them.

pub(crate) mod count;
pub(crate) mod search;

use std::collections::BTreeSet;
use std::fmt;

use count::Count;

use crate::choices::Bounds;
use crate::config::Profile;
use crate::report::Report;

/// How to search.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// Remembers states.
    States,
    /// Remembers nothing: one run for each schedule. To check the other against.
    Unreduced,
}

/// What a search found.
#[derive(Clone, Debug)]
#[must_use = "a failure is only in here"]
pub struct Explored {
    /// How it searched.
    pub method: Method,
    /// Number of cores.
    pub cores: u16,
    /// How memory behaved.
    pub profile: Profile,
    /// Within which bounds.
    pub bounds: Bounds,
    /// Whether everything within the bounds was tried.
    pub complete: bool,
    /// Different states with a choice in them; 0 if they were not remembered.
    pub states: u64,
    /// Runs it took.
    pub runs: u64,
    /// Their steps.
    pub steps: u64,
    /// How many schedules there are, if no two were taken for one; 0 if that is not known.
    pub schedules: Count,
    /// All ways in which runs ended, in words.
    pub verdicts: BTreeSet<String>,
    /// Digests of all that cores heard in runs that ended well.
    pub outcomes: BTreeSet<u128>,
    /// The first failure; it replays.
    pub failure: Option<Report>,
}

impl Explored {
    /// Panics with the account of the first failure, or if not everything was tried.
    ///
    /// # Panics
    /// See above.
    #[track_caller]
    pub fn assert_done(&self) {
        if let Some(report) = &self.failure {
            panic!("{self}\n{report}");
        }
        assert!(self.complete, "{self}");
    }
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cores,
            profile,
            bounds,
            ..
        } = self;
        let whole = if self.complete {
            "all of it"
        } else {
            "NOT all of it"
        };
        write!(
            f,
            "cores={cores} profile={profile} {bounds}: {whole}, {} runs",
            self.runs
        )?;
        if self.method == Method::States {
            write!(f, ", {} states, {} schedules", self.states, self.schedules)?;
        }
        Ok(())
    }
}
