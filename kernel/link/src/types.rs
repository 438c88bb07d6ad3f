//! The words that a link and its user share. Ranks, keys and slots name things; an [`Amo`] is an
//! operation on a cell, and an [`Op`] keeps apart operations that are answered later. A [`Refusal`]
//! says why a call has done nothing.

use core::{cell::Cell, fmt, num::NonZeroU32, ops::Deref};

#[cfg(doc)]
use crate::Link;
use crate::{Access, Word};
#[cfg(doc)]
use flagpost_hal::Amo;

/// Tells what a link stores in its memory from what an earlier one has left there.
///
/// All ranks of a world take the same session, and each new world in the same memory one that no
/// world there had before: count up. It is never 0, which memory that was cleared holds.
///
/// **A core may be reset alone**, for instance by its watchdog, in any state and with any lock
/// held. Then all ranks go to the next session, and what a rank has stored before it begins that
/// session is not in it. Boards with watchdogs follow a recipe:
///
/// 1. After a reset, and after a wait in vain, a rank begins `LoadStore::next_session`. Nothing
///    needs to be kept for that: the ranks' memory tells which sessions have begun.
/// 2. It starts its world with a budget (`World::starting`). Each time the budget is spent, it
///    looks whether a rank has begun a newer session (`LoadStore::newest_session`). If so, it goes
///    to 1.
/// 3. All that it waits for in the session has a budget (`World::within`), and when one is spent
///    it goes to 1. The timeout may name the core that was reset, another one that waits for it,
///    or none.
///
/// Without a budget a peer waits on for a core that does not come. `World::starting` has the recipe
/// as an example.
///
/// # Example
/// ```
/// use flagpost_link::Session;
///
/// // Memory that is cleared at power-up, as on most boards.
/// let mut session = Session::FIRST;
/// // A second world in that memory.
/// session = session.next();
/// assert_eq!(Some(session), Session::new(2));
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Session(NonZeroU32);

impl Session {
    /// The first one in memory that is cleared before.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// Session `number`, for memory that may hold anything: a number that no earlier run there had,
    /// such as a count of boots. None for 0.
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// The session after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        match self.0.checked_add(1) {
            Some(next) => Self(next),
            None => Self::FIRST,
        }
    }
}

/// Number of a process (here: of a core) in the world, `0..size`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rank(u16);

impl Rank {
    /// Rank `number`. Each use checks that the world has it.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The number, as an index into per-rank tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The next rank round a ring of `size`.
    #[inline]
    pub const fn next(self, size: u16) -> Self {
        let next = self.0.wrapping_add(1);
        if next == size {
            Self(0)
        } else if next < size {
            Self(next)
        } else {
            self.ahead(1, size)
        }
    }

    /// The previous rank round a ring of `size`.
    pub const fn prev(self, size: u16) -> Self {
        self.ahead(size.saturating_sub(1), size)
    }

    /// The rank `distance` further on round a ring of `size`.
    pub const fn ahead(self, distance: u16, size: u16) -> Self {
        // u32 holds the sum of two u16; a remainder by a u16 fits a u16 again.
        match (self.0 as u32)
            .wrapping_add(distance as u32)
            .checked_rem(size as u32)
        {
            Some(rank) => Self(rank as u16),
            None => self,
        }
    }
}

/// The number alone: the text around it says "rank".
impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names a piece of memory that a rank exposes through its link. Opaque: only the link that made
/// it, or a link it was sent to, can tell what it means. It has 32 bits on every machine, so that
/// it fits in a word: where memory is larger, links count lines.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Key(u32);

impl Key {
    /// Bytes that a key counts on a link with lines of `line` bytes, a power of two: those of a
    /// line, where memory may be larger than 32 bits can tell.
    pub const fn unit(line: usize) -> usize {
        if usize::BITS > u32::BITS { line } else { 1 }
    }

    /// The key of memory after `bytes` bytes, whole [units](Self::unit).
    pub const fn at(bytes: usize, line: usize) -> Self {
        Self(bytes.wrapping_shr(Self::unit(line).trailing_zeros()) as u32)
    }

    /// Bytes before the memory that the key names, if it counts [units](Self::unit).
    #[inline(always)]
    pub const fn start(self, line: usize) -> usize {
        (self.0 as usize).wrapping_mul(Self::unit(line))
    }

    /// For links: a key with this meaning.
    pub const fn new(raw: u32) -> Self {
        Self(raw)
    }

    /// For links, and to send a key to a peer.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// Number of a signal counter: one of the first [`Link::SLOTS`](crate::Link::SLOTS), which are
/// always there, or of those that
/// [`LocalMemory::allocate_slots`](crate::LocalMemory::allocate_slots) gave.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Slot(pub usize);

impl Slot {
    /// The slot `index` places after this one.
    pub const fn plus(self, index: usize) -> Self {
        Self(self.0.saturating_add(index))
    }
}

/// Which slots a rank asks for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Slots {
    /// This many.
    Count(u32),
    /// Two for every rank: `rank` signals the one that is `rank` after the first, and the one that
    /// is [`size`](Link::size) after that. A link may place what two ranks signal to each other in
    /// one line.
    OfPairs,
}

impl Slots {
    /// How many these are in a world of `size` ranks.
    pub const fn count(self, size: u16) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::OfPairs => (size as u32).saturating_mul(2),
        }
    }
}

/// A resource that a link gave to its rank, and takes back.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// The memory of this key.
    Memory(Key),
    /// The slots of which this is the first.
    Slots(Slot),
}

impl From<Key> for Given {
    fn from(key: Key) -> Self {
        Self::Memory(key)
    }
}

impl From<Slot> for Given {
    fn from(first: Slot) -> Self {
        Self::Slots(first)
    }
}

/// Where a piece of a rank's memory is to lie.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Place {
    /// Under the same key on every rank, if all ranks have asked for the same such pieces in the
    /// same order.
    Symmetric,
    /// Anywhere: peers are told its key.
    Own,
}

/// How much of a cell an [`Amo`] is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Width {
    /// The low 4 bytes; the others are 0 and stay so.
    Half,
    /// All 8 bytes.
    Whole,
}

impl Width {
    /// As much as a `W` has.
    pub const fn of<W: Word>() -> Self {
        if W::WIDE { Self::Whole } else { Self::Half }
    }
}

/// An operation that may need several calls: the first begins it, the others, with the same
/// arguments, ask for its answer. Until then it is the link's; a new operation takes a new one, or
/// one that was answered.
///
/// Dropping one that has begun leaves the operation on its way: it will have its effect, and its
/// answer is lost. A link may keep that for ever, unless the operation is
/// [abandoned](Access::abandon) before: as a [`Pending`] one is.
#[derive(Debug, Default)]
pub struct Op {
    /// For links: what was begun; 0 is nothing.
    pub begun: Cell<usize>,
    /// For links: what they remember of it.
    pub seen: Cell<u64>,
}

impl Op {
    /// An operation that has not begun.
    pub const fn new() -> Self {
        Self {
            begun: Cell::new(0),
            seen: Cell::new(0),
        }
    }

    /// True if it has begun and was not answered: it may have had its effect.
    pub fn is_under_way(&self) -> bool {
        self.begun.get() != 0
    }
}

/// An [`Op`] of a link, which is [abandoned](Access::abandon) when it is dropped in flight.
#[derive(Debug)]
pub struct Pending<'l, L: Access> {
    link: &'l L,
    op: Op,
}

impl<'l, L: Access> Pending<'l, L> {
    /// An operation of `link` that has not begun.
    pub const fn new(link: &'l L) -> Self {
        let op = Op::new();
        Self { link, op }
    }
}

impl<L: Access> Deref for Pending<'_, L> {
    type Target = Op;

    fn deref(&self) -> &Op {
        &self.op
    }
}

impl<L: Access> Drop for Pending<'_, L> {
    fn drop(&mut self) {
        if self.op.is_under_way() {
            self.link.abandon(&self.op);
        }
    }
}

/// Why a link did not do what it was asked to.
///
/// If the same call may succeed later, its [`Op`] knows what has been done so far: parts of a put
/// may have left. Otherwise nothing has changed, but for what [`PeerLost`](Self::PeerLost) says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Refusal {
    /// The rank has not started up yet. Try again.
    NotReady(Rank),
    /// The rank's queue of immediates is full. Try again: it drains as the rank makes progress.
    Full(Rank),
    /// The rank's test-and-set register is held by somebody. Try again.
    Locked(Rank),
    /// An earlier operation of this rank must end first, here or at the named rank. Try again.
    Busy(Rank),
    /// The rank does not answer any more; nothing that was on its way to it can be relied on.
    PeerLost(Rank),
    /// Bytes up to `end` were named, and there are fewer.
    OutOfRange {
        /// Offset after the last byte that was named.
        end: usize,
    },
    /// The rank's shared memory is used up.
    NoMemory {
        /// How many bytes more it would take.
        missing: usize,
    },
    /// The room of a part's world is used up.
    NoRoom {
        /// How many bytes more it would take.
        bytes: usize,
        /// For slots: of how many windows more.
        windows: u16,
    },
    /// The rank's memory is in as many pieces as can be remembered.
    TooManyPieces {
        /// How many that is.
        max: u32,
    },
    /// A cell must lie at a multiple of its 8 bytes, an update within as many bytes as the link can
    /// update.
    BadCell {
        /// Where it was to lie.
        offset: usize,
    },
    /// A ring cannot have this number of entries: ask for a power of two, up to 32,768, for one per
    /// pair only up to 64 ranks, or as many as the link remembers, and with bells only up to 128
    /// entries.
    BadRing {
        /// How many were asked for.
        entries: u32,
    },
    /// The session is that of the last link in this rank's memory, which may still be in use: start
    /// all ranks with [another](Session::next).
    BadSession {
        /// The one that was asked for.
        session: Session,
    },
    /// The rank's image was built otherwise than this one.
    OtherBuild(Rank),
    /// There is no such rank.
    NoSuchRank(Rank),
    /// There is no such slot.
    NoSuchSlot(Slot),
}

/// Its name and numbers: for programs over a link alone. The kernel's errors have sentences.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl Refusal {
    /// True if the same call may succeed later.
    pub const fn is_transient(self) -> bool {
        matches!(
            self,
            Self::NotReady(_) | Self::Full(_) | Self::Locked(_) | Self::Busy(_)
        )
    }
}
