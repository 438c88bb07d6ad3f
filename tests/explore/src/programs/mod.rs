//! Random one-sided programs, and what they must come to.
//!
//! A [`Program`] is made of a seed: a few ranks, a few windows, and *phases*: exposure and access
//! epochs, fences, locks, notified puts, stores to own memory. It is valid by MPI-3's rules for the
//! separate memory model, in which two accesses of one epoch to the same element conflict unless
//! both only read, or both accumulate with the same operation, or one of them with `NO_OP`. So
//! there is one right outcome, and the generator knows it: it keeps what every element must hold
//! behind every phase. Where the order would count it leaves no choice: one rank only replaces an
//! element in an epoch; floats are whole numbers, so few and small that none is rounded in whatever
//! order, and no zero has a sign. [`run`] lets each rank carry out its part on a link and compares
//! all that it sees.
//!
//! ```text
//!   seed ──► generate ──► Program { phases, each with what every rank does and what it must see }
//!                            │
//!            a chip's seed ──┴──► run, on every core of the simulator
//! ```
//!
//! Some programs run in a part of a larger world, beside another one: see [`Split`].
//!
//! What is generated: see [`Phase`]. What is not: conflicting accesses, since MPI leaves their
//! outcome open; ranks that stop; budgets that expire (cases `timeout.*`), but for those of
//! notified accesses.

mod element;
mod generate;
mod model;
mod part;
mod pieces;
mod run;
mod scalar;
mod split;
mod wrong;

use std::fmt;
use std::ops::Range;

use flagpost::{Model, Validation};
pub use generate::generate;
pub use run::{run, run_without_vectors};
pub use scalar::{Operation, Scalar};
pub use split::Split;
pub use wrong::Wrong;

/// How the epochs of the program's windows are signalled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Signalling {
    /// `EpochSlots`.
    Slots,
    /// `MatchVector`: where the link has it.
    Vector,
    /// `MatchingList`, as long as there are ranks.
    List,
}

/// A program for all ranks.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it was made of.
    pub seed: u64,
    /// Ranks.
    pub ranks: u16,
    /// Its elements.
    pub scalar: Scalar,
    /// Its epochs.
    pub signalling: Signalling,
    /// Its windows.
    pub windows: Vec<Made>,
    /// One after the other; ranks that have no part in one go on to the next.
    pub phases: Vec<Phase>,
}

/// How a window is made.
#[derive(Copy, Clone, Debug)]
pub struct Made {
    /// Elements of each piece.
    pub len: usize,
    /// Where they lie.
    pub pieces: Pieces,
    /// Its model of memory, if it is not dynamic.
    pub model: Model,
}

/// Where the pieces of a window lie.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// In memory that comes with the window.
    Allocated,
    /// In each rank's own memory, from another line on at each.
    Created,
    /// The same, attached to a dynamic window.
    Attached {
        /// How descriptors are known to be up to date.
        validation: Validation,
        /// How many are kept.
        kept: u16,
    },
}

/// Something that ranks do together on one window.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Which window.
    pub window: usize,
    /// What they do.
    pub kind: Kind,
    /// What the window holds behind it: per rank, per element.
    pub after: Vec<Vec<u64>>,
}

/// What ranks do in a phase.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Each rank stores to its own piece.
    Local(Vec<Vec<Store>>),
    /// Post, start, complete, wait.
    Pscw {
        /// Who accesses whom: `(origin, target)`, each pair once.
        edges: Vec<(u16, u16)>,
        /// Per rank.
        accesses: Vec<Vec<Access>>,
        /// Per rank: which elements it exposes, if not all. No other is accessed.
        exposed: Vec<Option<Range<usize>>>,
    },
    /// Fences, one behind the other.
    Fences(Vec<Between>),
    /// Locks, each opened and closed by itself. All ranks meet before and behind.
    Locks(Vec<Vec<Locked>>),
    /// Notified accesses. Targets have started their requests before.
    Notify {
        /// All, in the order of each rank.
        all: Vec<Notified>,
        /// Ranks wait for any of their requests, again and again; else for all at once.
        any: bool,
        /// So many waits have a budget of nothing.
        late: u32,
    },
    /// All ranks meet.
    Barrier,
    /// These ranks detach their memory and attach it again; accesses to the old place are refused.
    Attach(Vec<bool>),
    /// All ranks combine what they have, element by element: what each has, and what it comes to,
    /// at the root or, if there is none, everywhere.
    Reduce {
        /// How.
        operation: Operation,
        /// Who gets it.
        root: Option<u16>,
        /// Per rank.
        values: Vec<Vec<u64>>,
        /// What they come to.
        result: Vec<u64>,
    },
    /// All ranks get what the root has.
    Broadcast {
        /// Whose.
        root: u16,
        /// Its values.
        values: Vec<u64>,
    },
    /// Each rank gives each a block: those of each rank, one behind the other.
    Exchange(Vec<Vec<u64>>),
}

/// A store to own memory.
#[derive(Clone, Debug)]
pub struct Store {
    /// First element.
    pub index: usize,
    /// What it and the next ones hold then.
    pub values: Vec<u64>,
}

/// An access to a peer's piece.
#[derive(Clone, Debug)]
pub struct Access {
    /// Whose.
    pub target: u16,
    /// First element.
    pub index: usize,
    /// What is done.
    pub what: What,
    /// Whether by a request, which is waited for behind all others: none that swaps or adds.
    pub request: bool,
    /// Elements that lie together in the target's piece lie apart at the origin, and the other way.
    pub turned: bool,
}

/// What an access does.
#[derive(Clone, Debug)]
pub enum What {
    /// Puts these.
    Put(Vec<u64>),
    /// Gets these.
    Get(Vec<u64>),
    /// Gets every other element of these; the others stay 0.
    Sieve(Vec<u64>),
    /// Accumulates these.
    Accumulate(Operation, Vec<u64>),
    /// Accumulates these, and fetches what was there: for each element one of these values. They
    /// are what it held, with what this rank has accumulated to it in the epoch before, and with
    /// what any of the others have, in any order. None, if these are too many to tell.
    Fetch(Operation, Vec<u64>, Vec<Vec<u64>>),
    /// Gets, and puts the sum: alone, under an exclusive lock.
    Add(Vec<u64>),
    /// Puts every other element of these.
    Stripes(Vec<u64>),
    /// Puts every other element of these as well: in blocks, from the last one to the first.
    Scattered(Vec<u64>),
    /// Puts the second, if the first is there; finds the third.
    Swap(u64, u64, u64),
}

/// What is done between two fences.
#[derive(Clone, Debug)]
pub struct Between {
    /// Per rank.
    pub accesses: Vec<Vec<Access>>,
    /// What the window holds behind them.
    pub after: Vec<Vec<u64>>,
    /// Which ranks say that nobody puts to their pieces: it is so.
    pub no_put: Vec<bool>,
    /// All ranks say that nobody accesses any piece: it is so.
    pub closed: bool,
    /// Per rank: what it stores to its own piece, if it has said so.
    pub stores: Vec<Vec<Store>>,
}

/// Which lock is held.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The target's, shared.
    Shared,
    /// The target's, exclusive.
    Exclusive,
    /// The same, in turn.
    Queued,
    /// All, shared.
    All,
}

/// What is done under a lock.
#[derive(Clone, Debug)]
pub struct Locked {
    /// Whose piece is locked.
    pub target: u16,
    /// How.
    pub hold: Hold,
    /// What is done.
    pub accesses: Vec<Access>,
    /// Whether it is flushed before the lock is given back.
    pub flush: bool,
}

/// A notified access.
#[derive(Clone, Debug)]
pub struct Notified {
    /// Who accesses.
    pub origin: u16,
    /// What.
    pub access: Access,
    /// Its tag, or which word.
    pub number: u32,
    /// What kind of notice.
    pub notice: Told,
}

/// How a target is told.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// By a tag, of whichever source.
    Tag,
    /// By a tag, and its request names the source.
    Named,
    /// By a counter of the window.
    Count,
    /// By a signal of the window.
    Set,
    /// By an event.
    Event,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "program {}: {} ranks, {:?}, {:?}, windows of {:?}",
            self.seed, self.ranks, self.scalar, self.signalling, self.windows
        )?;
        for (number, phase) in self.phases.iter().enumerate() {
            writeln!(f, "  {number}: window {} {:?}", phase.window, phase.kind)?;
        }
        Ok(())
    }
}
