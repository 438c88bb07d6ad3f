//! Trying everything: exhaustive search of small programs.
//!
//! # Two searches on one code path
//! * *States* (the reference): depth first; a state that was seen before is not entered again. The
//!   key of a state is a 128-bit digest of the chip, of the bounds that are left, and, per core, of
//!   all replies it ever got: programs are deterministic, so equal replies mean equal stacks. The
//!   graph has no cycles (every step adds a reply or spends a bound), so the number of paths
//!   through it, that is of schedules without any reduction, is known exactly at the end.
//! * *Sleep sets* (the second opinion): no memory of states; instead, of two orders of commuting
//!   transitions only one is tried (Godefroid, LNCS 1032, 1996). Depends on what [`footprint`] says
//!   commutes, and on nothing else that the first search depends on. A test compares the two for
//!   ever.
//!
//! Coroutines cannot be copied, so a search goes back by running again from the start; behind the
//! set-up with a copy of the chip (`engine/set_up.rs`).
//!
//! # What "exhaustive" claims
//! All schedules, all decisions of the chip, and all its spontaneous acts *within the bounds*:
//! numbers of evictions, prefetches and so on, of cores and epochs. More is not shown. [`Explored`]
//! prints them.

pub(crate) mod choice;
mod count;
pub(crate) mod digest;
pub(crate) mod footprint;
pub(crate) mod search;

use std::collections::BTreeSet;
use std::fmt;

pub use choice::Choices;
pub use count::Count;
pub(crate) use search::explore;

use crate::config::Profile;
use crate::report::Report;

/// How much may happen at most in each schedule, and how long a search may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Lines that leave a cache on the chip's account.
    pub evictions: u8,
    /// Lines that are prefetched, in the profiles that do.
    pub fills: u8,
    /// Words that leave a combining buffer without need.
    pub leaves: u8,
    /// Time budgets that run out while their core is blocked.
    pub expiries: u8,
    /// Attempts on a register that is held; other attempts wait for it.
    pub refusals: u8,
    /// Switches away from a core that could go on; none: any number.
    pub preemptions: Option<u8>,
    /// Whether all that precedes `mark("go")` is set-up, which happens in one way only.
    pub set_up: bool,
    /// States after which a search gives up.
    pub max_states: u64,
    /// Runs after which a search gives up.
    pub max_runs: u64,
}

impl Bounds {
    /// All that can be, and no set-up: for lists of choices that no search has made.
    pub const ANY: Self = Self {
        evictions: u8::MAX,
        fills: u8::MAX,
        leaves: u8::MAX,
        expiries: u8::MAX,
        refusals: u8::MAX,
        preemptions: None,
        set_up: false,
        max_states: u64::MAX,
        max_runs: u64::MAX,
    };
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            evictions: 0,
            fills: 0,
            leaves: 0,
            expiries: 0,
            refusals: 0,
            preemptions: None,
            set_up: true,
            max_states: 10_000_000,
            max_runs: u64::MAX,
        }
    }
}

/// How to search.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// Remembers states.
    States,
    /// Remembers what commutes.
    SleepSets,
    /// Remembers nothing: one run for each schedule. To check the others against.
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

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "evictions={} fills={} leaves={} expiries={} refusals={}",
            self.evictions, self.fills, self.leaves, self.expiries, self.refusals
        )?;
        match self.preemptions {
            Some(preemptions) => write!(f, " preemptions={preemptions}"),
            None => Ok(()),
        }
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
