//! What came of a run, for programs and for people.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::panic::Location;

use flagpost_hal::{Address, CoreId};
use serde_json::json;

use crate::config::Config;

/// The environment variable that makes sweeps replay one run: the line that a report ends with.
pub(crate) const REPLAY: &str = "FLAGPOST_SIM_REPLAY";

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every core returned `Ok`.
    Done,
    /// A core returned `Err`; nobody panicked. See [`Report::failures`].
    Failed,
    /// A core panicked. See [`Report::failures`].
    Panicked,
    /// Nobody could go on, and no budget was left to expire. See [`Report::waiting`].
    Deadlock,
    /// Everybody who was not waiting kept polling, and nobody stored anything.
    Livelock,
    /// The run had not ended after [`Config::max_steps`].
    StepBound,
    /// Nor had it ended then, and this core had got nowhere for more than half of the run, while
    /// others went on. See [`Report::waiting`].
    Starvation(CoreId),
    /// An oracle saw a hazard.
    Oracle(Alarm),
    /// [`Config::choices`] says something that could not happen: the program is not the one it was
    /// made with.
    Diverged,
}

/// Which rule an access broke.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Oracle {
    /// O1: bytes in memory changed while another core held their line dirty: its write-back will
    /// put the old bytes over the new ones. (Or the same core held it: an uncached store to a line
    /// that is dirty in one's own cache.)
    PendingClobber,
    /// O2: a cached load returned bytes that memory has newer: an invalidate or acquire is missing.
    StaleRead,
    /// O3: a cached store into a line whose other bytes memory has newer: the write-back of the
    /// line will put the old ones over them.
    StaleMerge,
    /// O4: `invalidate` of a line with unsaved stores: chips differ in whether they survive.
    LostStore,
    /// O5: a load past the cache, or through another one, returned bytes that a cache has newer: a
    /// write-back is missing.
    HiddenStore,
    /// O6: a program read bytes after it had started a request for them and before that was
    /// complete; a peer has put them meanwhile.
    EarlyRead,
}

/// What an oracle saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Which oracle.
    pub oracle: Oracle,
    /// The core whose access it was, or whose store arrived.
    pub core: CoreId,
    /// The core that holds the line dirty (O1, O5), or that stored to the line last (O2, O3).
    pub other: Option<CoreId>,
    /// The first byte concerned.
    pub at: Address,
    /// How many bytes of the line are concerned.
    pub bytes: u32,
    /// The line of the program that made the access; none if no line of it did.
    pub place: Option<&'static Location<'static>>,
    /// The line of the program by which `other` (in O5 without one, `core`) stored to the line
    /// last, if that is still known. In O6 the line that started the request.
    pub other_place: Option<&'static Location<'static>>,
}

/// A core that did not return `Ok`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The core.
    pub core: CoreId,
    /// Whether it panicked; else it returned an error.
    pub panicked: bool,
    /// The error's text, or the panic's message and place.
    pub message: String,
    /// The line by which the program has called the kernel last, if it has.
    pub called: Option<&'static Location<'static>>,
}

/// A core that was waiting when the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The core.
    pub core: CoreId,
    /// The words it waits for.
    pub words: Vec<Word>,
    /// The core whose register it waits for.
    pub register: Option<CoreId>,
    /// Whether it waits for its bell.
    pub bell: bool,
    /// What it waits for, in the kernel's words; if it is one that says so.
    pub what: Option<String>,
    /// The line of the program that waits: one that calls the kernel, or the machine.
    pub place: &'static Location<'static>,
}

/// A word that a core waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Where it is.
    pub at: Address,
    /// The value that is not enough.
    pub seen: u32,
    /// What the core would read now.
    pub now: u32,
}

/// A [mark](crate::SimCore::mark) that a core made in timed mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    /// The core.
    pub core: CoreId,
    /// What it said.
    pub label: &'static str,
    /// What its clock showed.
    pub cycles: u64,
    /// What it had done so far.
    pub counters: Counters,
}

/// What a core did, in numbers. Word accesses count once each, cached ones once per line touched.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Uncached loads from its own regions.
    pub loads_local: u64,
    /// Uncached loads from other cores' regions.
    pub loads_remote: u64,
    /// Uncached word stores to its own regions.
    pub stores_local: u64,
    /// Uncached word stores to other cores' regions.
    pub stores_remote: u64,
    /// Bytes of bulk stores.
    pub bulk_bytes: u64,
    /// Times that bulk stores left the combining buffer for its own regions; in timed mode a line
    /// at a time.
    pub lines_local: u64,
    /// The same, for other cores' regions.
    pub lines_remote: u64,
    /// Atomic operations.
    pub atomics: u64,
    /// Cached loads.
    pub reads: u64,
    /// Cached stores.
    pub writes: u64,
    /// Lines fetched by cached loads and stores.
    pub misses: u64,
    /// Dirty lines written back on demand.
    pub write_backs: u64,
    /// Lines dropped on demand.
    pub invalidations: u64,
    /// Lines that left the cache on the chip's account.
    pub evictions: u64,
    /// Lines that came into the cache on the chip's account.
    pub prefetches: u64,
    /// Loads and fetched words that returned a word's former value.
    pub early_loads: u64,
    /// Drains.
    pub drains: u64,
    /// Acquires.
    pub acquires: u64,
    /// Registers taken.
    pub locks: u64,
    /// Attempts to take a register that was held.
    pub locks_refused: u64,
    /// Turns of polling loops.
    pub relaxes: u64,
    /// Bells rung.
    pub rings: u64,
}

/// The account of a run. Prints as text for people, the line that replays it included.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it ended.
    pub end: End,
    /// Cores that failed, in the order in which they did.
    pub failures: Vec<Failure>,
    /// Cores that were waiting at the end.
    pub waiting: Vec<Waiting>,
    /// Steps it took.
    pub steps: u64,
    /// What each core's clock showed at the end, in cycles; empty unless timed.
    pub cycles: Vec<u64>,
    /// Marks that cores made, in order; empty unless timed.
    pub marks: Vec<Marked>,
    /// Hash of all accesses and their results, in order: equal hashes, equal runs.
    pub hash: u64,
    /// What each core did.
    pub counters: Vec<Counters>,
    /// The last accesses of the cores concerned; empty if the run is [`End::Done`].
    pub timeline: String,
    /// What was run: replays it.
    pub config: Config,
    /// Name of the case, where the run belongs to a [`Sweep`](crate::Sweep).
    pub case: String,
}

impl Report {
    /// Whether every core returned `Ok`.
    pub fn is_done(&self) -> bool {
        self.end == End::Done
    }

    /// Sum of all cores' counters.
    pub fn total(&self) -> Counters {
        self.counters.iter().copied().sum()
    }

    /// Panics with the whole account unless every core returned `Ok`.
    ///
    /// # Panics
    /// See above.
    #[track_caller]
    pub fn assert_done(&self) {
        assert!(self.is_done(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.case.is_empty() {
            write!(f, "case {}: ", self.case)?;
        }
        writeln!(
            f,
            "{} after {} steps (trace {:016x})",
            self.end, self.steps, self.hash
        )?;
        for failure in &self.failures {
            writeln!(f, "  {failure}")?;
        }
        for waiting in &self.waiting {
            writeln!(f, "  {waiting}")?;
        }
        f.write_str(&self.timeline)?;
        let (case, config) = (&self.case, &self.config);
        match case.as_str() {
            "" => write!(f, "replay: '{config}'.parse::<Config>()"),
            _ => {
                let line = json!({"case": case, "config": config});
                write!(f, "replay: {REPLAY}='{line}'")
            }
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Failed => f.write_str("FAILED"),
            Self::Panicked => f.write_str("PANICKED"),
            Self::Deadlock => f.write_str("DEADLOCK"),
            Self::Livelock => f.write_str("LIVELOCK"),
            Self::StepBound => f.write_str("CUT OFF"),
            Self::Starvation(core) => write!(f, "STARVATION of {core}"),
            Self::Diverged => f.write_str("DIVERGED from the given choices"),
            Self::Oracle(alarm) => write!(f, "{alarm}"),
        }
    }
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.what(f)?;
        if let Some(place) = self.place {
            write!(f, "\n  {}, by {}:{}", self.core, place.file(), place.line())?;
        }
        if let Some(place) = self.other_place {
            let other = self.other.unwrap_or(self.core);
            let by = match self.oracle {
                Oracle::EarlyRead => "which started the request by",
                _ => "by",
            };
            write!(f, "\n  {other}, {by} {}:{}", place.file(), place.line())?;
        }
        Ok(())
    }
}

impl Alarm {
    fn what(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            core, at, bytes, ..
        } = self;
        let other = |role: &str, or: &str| match self.other {
            Some(other) => format!("{role} {other}"),
            None => or.to_string(),
        };
        match self.oracle {
            Oracle::PendingClobber => write!(
                f,
                "ORACLE O1: {core} changed {bytes} bytes from {at} while {} holds the line dirty: the \
                 write-back will destroy them",
                other("", "its own cache").trim_start()
            ),
            Oracle::StaleRead => write!(
                f,
                "ORACLE O2: {core} read {bytes} old bytes from {at} in its cache; memory has newer ones{}",
                other(", stored by", ", stored by itself")
            ),
            Oracle::StaleMerge => write!(
                f,
                "ORACLE O3: {core} stored into its cached line, in which {bytes} other bytes from {at} \
                 are old{}: the write-back will destroy the newer ones",
                other("; newer ones by", "; newer ones by itself")
            ),
            Oracle::LostStore => write!(
                f,
                "ORACLE O4: {core} invalidated {bytes} bytes from {at} that it had stored and not \
                 written back"
            ),
            Oracle::HiddenStore => write!(
                f,
                "ORACLE O5: {core} read {bytes} old bytes from {at}; newer ones are in {} and were not \
                 written back",
                other("the cache of", "its own cache")
            ),
            Oracle::EarlyRead => write!(
                f,
                "ORACLE O6: {core} read {bytes} bytes from {at} before the wait: a peer has put bytes \
                 there since the request was started"
            ),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.panicked {
            "panicked"
        } else {
            "returned an error"
        };
        write!(f, "{} {verb}: {}", self.core, self.message)?;
        match self.called {
            Some(place) => write!(f, " (last call at {place})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Some(what) => write!(f, "{} {what}; it polls", self.core)?,
            None => write!(f, "{} waits", self.core)?,
        }
        match self.register {
            Some(of) => write!(f, " for the register of {of}")?,
            None if self.bell => write!(f, " for its bell")?,
            None => {}
        }
        for Word { at, seen, now } in &self.words {
            write!(f, " for {at} (seen {seen:#x}, now {now:#x})")?;
        }
        write!(f, ", at {}", self.place)
    }
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            loads_local: self.loads_local + other.loads_local,
            loads_remote: self.loads_remote + other.loads_remote,
            stores_local: self.stores_local + other.stores_local,
            stores_remote: self.stores_remote + other.stores_remote,
            bulk_bytes: self.bulk_bytes + other.bulk_bytes,
            lines_local: self.lines_local + other.lines_local,
            lines_remote: self.lines_remote + other.lines_remote,
            atomics: self.atomics + other.atomics,
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            misses: self.misses + other.misses,
            write_backs: self.write_backs + other.write_backs,
            invalidations: self.invalidations + other.invalidations,
            evictions: self.evictions + other.evictions,
            prefetches: self.prefetches + other.prefetches,
            early_loads: self.early_loads + other.early_loads,
            drains: self.drains + other.drains,
            acquires: self.acquires + other.acquires,
            locks: self.locks + other.locks,
            locks_refused: self.locks_refused + other.locks_refused,
            relaxes: self.relaxes + other.relaxes,
            rings: self.rings + other.rings,
        }
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Counters {
    fn sum<I: Iterator<Item = Self>>(counters: I) -> Self {
        counters.fold(Self::default(), Add::add)
    }
}
