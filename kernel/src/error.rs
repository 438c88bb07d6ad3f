//! Errors, as values that say what to change. Every call that may fail gives an [`enum@Error`],
//! whose fields have the numbers that the user needs. A call that ran out of its budget gives a
//! [`Timeout`], which names ranks, and its handle in [`Unfinished`]. Nothing here allocates or
//! panics.

use core::fmt;

use flagpost_link::{Rank, Refusal};

/// Why a call did not do what it was asked to.
///
/// Unless a variant says otherwise, nothing has changed and the call may be repeated.
/// [`Error::remedy`] says which of a few things the user must do.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error {
    /// The budget ran out: of a handle's `wait_within`, or of
    /// [`World::within`](crate::World::within) around the call. Call again to continue, on the
    /// handle if the call has one; a short form of such a call (`post`, `fence`, ...) has dropped
    /// it.
    Timeout(Timeout),
    /// The arena given to the world is too small.
    ArenaFull {
        /// Words (of 4 bytes) that it should have more.
        missing_words: u32,
    },
    /// This rank's shared memory is used up. More of it: `--mem` of `flagpost-run` on Linux,
    /// `_flagpost_memory_size` of the linker script on the QEMU board, the machine's memory
    /// elsewhere.
    MemoryFull {
        /// Bytes that it should have more; `u32::MAX` for a piece of 4 GiB or more, which no rank's
        /// memory holds.
        missing_bytes: u32,
    },
    /// The world's arena, or this rank's shared memory, is in as many pieces as can be remembered:
    /// free a window first.
    TooManyPieces {
        /// How many that is.
        max: u32,
    },
    /// Elements up to `end` were named, and the window has `len`.
    OutOfRange {
        /// Index after the last element that was named.
        end: u64,
        /// Elements in the window.
        len: u64,
    },
    /// The two sides of an access, or of an alltoall, are not about as many bytes.
    LengthsDiffer {
        /// Bytes at the target.
        target: u64,
        /// Bytes at the origin.
        origin: u64,
    },
    /// Fields of records are bytes: they can be put and got, not accumulated.
    FieldsAccumulated,
    /// The rank does not answer any more. Once the link knows that, each wait whose answer is not
    /// there fails, whatever rank it is for, and so does each call that tests for something which
    /// has not come. All that has come is given first.
    ///
    /// Over a network a call that needs an answer waits for it, and so fails, too. Over memory, a
    /// call that gives a value cannot know which value a loop is about: one in 64 of them fails
    /// ([`Rma::get`](crate::Rma::get), [`Rma::fetch_and_op`](crate::Rma::fetch_and_op) and others,
    /// [`Events::query`](crate::Events::query),
    /// [`Window::notify_value`](crate::Window::notify_value)). It has done nothing then: a survivor
    /// that still wants the value calls again. Of several lost ranks one is named.
    PeerLost(Rank),
    /// The rank has ended its program in order, and without it what the call waits for cannot come.
    /// All that the rank did before has come. (Where the link knows that a rank has left: between
    /// processes and threads of Linux, and on the QEMU board.) As after [`Error::PeerLost`], the
    /// same call fails again. The rank may have left because another one had: in a collective call
    /// the first to leave need not be the one that is named. Calls that only test fail where the
    /// rank is named in the call; those for any rank's find nothing.
    PeerLeft(Rank),
    /// There is no such rank.
    NoSuchRank {
        /// The rank.
        rank: Rank,
        /// Ranks in the world.
        size: u16,
    },
    /// The rank is named twice.
    DuplicateRank(Rank),
    /// The access epoch was not started to this rank.
    NotInGroup(Rank),
    /// The ranks did not call alike: this one asked for another window, or its own call failed. Or
    /// it has made another collective call than this rank waits in, which is noticed if it has told
    /// this rank so, and the wait is long; collective calls of this world cannot continue then.
    Asymmetric(Rank),
    /// A window has one access epoch and one exposure epoch at a time (of passive targets one per
    /// target), and one call that waits for a lock: end the open one first.
    EpochOpen,
    /// This rank has locked as many targets of the window as it can remember.
    TooManyLocks {
        /// How many that is.
        max: u8,
    },
    /// An epoch or a lock of this window was dropped before its end: a drop is no unlock. Peers may
    /// still wait for it; the window can start no other.
    EpochAbandoned,
    /// Peers may be writing these lines of this rank's piece: wait for the exposure epoch or the
    /// request that opened them. One that was dropped keeps them for ever: wait, or cancel, before.
    Exposed,
    /// The request is started already.
    RequestActive,
    /// The request is not started.
    RequestInactive,
    /// The window has as many started requests (with a range) as it can remember.
    TooManyRequests {
        /// How many that is.
        max: u8,
    },
    /// A matching list cannot have this many entries.
    BadList {
        /// How many were asked for: at least 1.
        entries: u16,
        /// The most.
        max: u16,
    },
    /// A dynamic window cannot have this many regions.
    BadRegions {
        /// How many were asked for: at least 1.
        regions: u16,
        /// The most.
        max: u16,
    },
    /// A request for 0 notifications waits for nothing.
    CountZero,
    /// The tag does not fit into an immediate beside the rank and the window.
    TagTooLarge {
        /// The largest tag of this world.
        max: u32,
    },
    /// The rank has no such notification counter in this window, or no such event.
    NoSuchCounter {
        /// The rank.
        rank: Rank,
        /// The counter, or event.
        index: u32,
        /// How many the rank has.
        count: u32,
    },
    /// The window has been told of accesses that no request has matched, and cannot be freed: match
    /// them, or call [`Window::discard_notifications`](crate::Window::discard_notifications).
    Unmatched {
        /// How many notifications.
        count: u32,
    },
    /// The unexpected queue is full of notifications that this request does not match. Wait for one
    /// that does, or configure a longer queue.
    QueueFull {
        /// How many it holds.
        capacity: u16,
    },
    /// The world has as many windows as an immediate can tell apart.
    TooManyWindows {
        /// How many that is.
        max: u16,
    },
    /// The memory is in a window: reach it through that, or take it out first.
    MemoryInUse,
    /// A window's memory begins at a line.
    BadBase {
        /// The base must be a multiple of this many bytes.
        line: u32,
    },
    /// A displacement unit of 0 bytes would make all elements one.
    UnitZero,
    /// The element is changed as a whole only at a multiple of its size: make the window with such
    /// a displacement unit (in a dynamic one: take such a displacement), or put and get it.
    UnitUnaligned {
        /// The target's displacement unit; 1 in a dynamic window.
        unit: u32,
        /// The element's size.
        size: u32,
    },
    /// There is no attached memory of this name: it was detached, or never attached to this window.
    NotAttached,
    /// The dynamic window has as many attached regions as it has room for.
    TooManyAttached {
        /// How many that is.
        max: u16,
    },
    /// The epoch belongs to another window, or the events or the memory to another world.
    WrongWindow,
    /// Peers' memory cannot be reached by plain loads and stores here.
    NotDirect,
    /// A collective call ran out of its budget, or lost a peer, and another one (or the same with
    /// other arguments) was made: continue that one first. If its handle was dropped, the world can
    /// make no other any more.
    CollectiveUnfinished,
    /// The slice does not give each rank as many elements.
    WrongLength {
        /// Its elements.
        len: u64,
        /// Ranks in the world.
        ranks: u16,
    },
    /// More bytes than a collective call can carry in one element.
    ElementTooLarge {
        /// The largest size in bytes.
        max: u32,
    },
    /// The link refused for a reason that the kernel should have excluded.
    Link(Refusal),
}

/// The user's next step after an [`Error`]: [`Error::remedy`].
///
/// * [`Continue`](Self::Continue): `Timeout`.
/// * [`Call`](Self::Call): `OutOfRange`, `LengthsDiffer`, `FieldsAccumulated`, `NoSuchRank`,
///   `DuplicateRank`, `NotInGroup`, `Asymmetric`, `BadList`, `BadRegions`, `CountZero`,
///   `TagTooLarge`, `NoSuchCounter`, `BadBase`, `UnitZero`, `UnitUnaligned`, `WrongWindow`,
///   `NotDirect`, `WrongLength`, `ElementTooLarge`.
/// * [`Room`](Self::Room): `ArenaFull`, `MemoryFull`, `TooManyPieces`, `TooManyLocks`,
///   `TooManyRequests`, `QueueFull`, `TooManyWindows`, `TooManyAttached`.
/// * [`Order`](Self::Order): `EpochOpen`, `EpochAbandoned`, `Exposed`, `RequestActive`,
///   `RequestInactive`, `Unmatched`, `MemoryInUse`, `NotAttached`, `CollectiveUnfinished`.
/// * [`Peer`](Self::Peer): `PeerLost`, `PeerLeft`.
/// * [`Report`](Self::Report): `Link`, but for a bad ring or session, which are the call's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Remedy {
    /// Call again, on the handle if there is one: the budget ran out.
    Continue,
    /// Mend the call: an argument is wrong, or another rank's call is.
    Call,
    /// Make room: give the world more words, the machine more memory, or have less at a time.
    Room,
    /// Mend the order of calls: something else must be begun, or ended, before.
    Order,
    /// Do without the rank, or end: it is lost, or has left.
    Peer,
    /// Report it: the link broke its contract, which is a bug.
    Report,
}

impl Error {
    /// The user's next step.
    ///
    /// # Example
    /// ```
    /// use flagpost::{Error, Rank, Remedy};
    ///
    /// let error = Error::NoSuchRank { rank: Rank::new(9), size: 8 };
    /// assert_eq!(error.remedy(), Remedy::Call);
    /// assert_eq!(Error::PeerLost(Rank::new(1)).remedy(), Remedy::Peer);
    /// ```
    pub const fn remedy(&self) -> Remedy {
        match self {
            Self::Timeout(_) => Remedy::Continue,
            Self::OutOfRange { .. }
            | Self::LengthsDiffer { .. }
            | Self::FieldsAccumulated
            | Self::NoSuchRank { .. }
            | Self::DuplicateRank(_)
            | Self::NotInGroup(_)
            | Self::Asymmetric(_)
            | Self::BadList { .. }
            | Self::BadRegions { .. }
            | Self::CountZero
            | Self::TagTooLarge { .. }
            | Self::NoSuchCounter { .. }
            | Self::BadBase { .. }
            | Self::UnitZero
            | Self::UnitUnaligned { .. }
            | Self::WrongWindow
            | Self::NotDirect
            | Self::WrongLength { .. }
            | Self::ElementTooLarge { .. }
            | Self::Link(Refusal::BadRing { .. } | Refusal::BadSession { .. }) => Remedy::Call,
            Self::ArenaFull { .. }
            | Self::MemoryFull { .. }
            | Self::TooManyPieces { .. }
            | Self::TooManyLocks { .. }
            | Self::TooManyRequests { .. }
            | Self::QueueFull { .. }
            | Self::TooManyWindows { .. }
            | Self::TooManyAttached { .. } => Remedy::Room,
            Self::EpochOpen
            | Self::EpochAbandoned
            | Self::Exposed
            | Self::RequestActive
            | Self::RequestInactive
            | Self::Unmatched { .. }
            | Self::MemoryInUse
            | Self::NotAttached
            | Self::CollectiveUnfinished => Remedy::Order,
            Self::PeerLost(_) | Self::PeerLeft(_) => Remedy::Peer,
            Self::Link(_) => Remedy::Report,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoMemory { missing } => Self::MemoryFull {
                missing_bytes: missing,
            },
            Refusal::TooManyPieces { max } => Self::TooManyPieces { max },
            Refusal::PeerLost(rank) => Self::PeerLost(rank),
            other => Self::Link(other),
        }
    }
}

/// The wait of a call whose budget ran out: for which event, and from which ranks, as far as this
/// rank can know.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Timeout {
    /// The event that it waited for.
    pub waiting: Waiting,
    /// The ranks that have not done it.
    pub missing: Missing,
}

/// Kinds of waiting.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Waiting {
    /// For a peer to start up.
    StartUp,
    /// For a peer to enter the same collective call; or for a rank that this peer waits for, which
    /// nobody else knows.
    Collective,
    /// For a target to post.
    Post,
    /// For origins to complete.
    Completion,
    /// For the test-and-set register that the named rank owns; somebody holds it.
    Lock,
    /// For room in the named rank's ring of notifications; it makes no progress.
    RingSpace,
    /// For a free entry in the named rank's matching list; it holds as many posts as it has
    /// entries.
    ListSpace,
    /// For notifications that match a request.
    Notification,
    /// For the lock of the named target's piece, which others share; if none is named, for the
    /// exclusive locks of [`Missing::count`] ranks. Such locks do not record which ranks have them.
    Unlock,
    /// For the named rank, which has locked the piece exclusively.
    Holder,
    /// For the named rank in the queue of [`lock_queued`](crate::Window::lock_queued). A lock
    /// stands behind it: it has the lock, or waits for it too, or has given up after one that does.
    /// An unlock waits for the next one to say that it is next: that is the named rank, or, where
    /// several came together, one of those before it.
    Queue,
    /// For an answer from the named rank's memory, or for earlier operations to be placed there.
    Answer,
}

/// Ranks that a call waited for.
///
/// `count` of them are missing. The first few candidates are listed: exactly the missing ones where
/// the protocol can tell, else (a completion counter does not record who) ranks among which they
/// are.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Numbers of ranks, then [`NOBODY`].
    ranks: [u16; Missing::LISTED],
    count: u32,
    /// One of them alone may bring it.
    any: bool,
}

/// The number of no rank: worlds have up to 65,535.
const NOBODY: u16 = u16::MAX;

impl Missing {
    /// How many ranks are listed at most.
    pub const LISTED: usize = 8;

    pub(crate) fn one(rank: Rank) -> Self {
        Self::among(core::iter::once(rank), 1)
    }

    /// `count` of `candidates`.
    pub(crate) fn among(candidates: impl Iterator<Item = Rank>, count: u32) -> Self {
        let mut ranks = [NOBODY; Self::LISTED];
        for (place, rank) in ranks.iter_mut().zip(candidates) {
            *place = rank.get();
        }
        let any = false;
        Self { ranks, count, any }
    }

    /// The same, for a call that waits for one of them only, if `any`.
    pub(crate) fn of_any(self, any: bool) -> Self {
        Self { any, ..self }
    }

    /// A rank that has left, without which none of this can come.
    pub(crate) fn ended(&self, has_left: impl Fn(Rank) -> bool) -> Option<Rank> {
        let first = self.ranks().find(|rank| has_left(*rank))?;
        let listed = self.ranks().count();
        let all_left = listed < Self::LISTED && self.ranks().all(has_left);
        // No fewer are missing than are listed: each of those is.
        let each_is_missing = !self.any && listed as u32 <= self.count;
        (each_is_missing || all_left).then_some(first)
    }

    /// How many are missing.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The first [`Missing::LISTED`] candidates. None where any rank would do (requests from any
    /// source, counters, signals, events), and none where ranks are counted only
    /// ([`lock_all`](crate::Window::lock_all)).
    pub fn ranks(&self) -> impl Iterator<Item = Rank> + '_ {
        let listed = self.ranks.iter().filter(|number| **number != NOBODY);
        listed.copied().map(Rank::new)
    }
}

impl Missing {
    /// The numbers of the ranks that are listed.
    fn numbers(&self) -> &[u16] {
        let listed = self.ranks().count();
        self.ranks.get(..listed).unwrap_or_default()
    }
}

impl fmt::Debug for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Missing")
            .field("ranks", &self.numbers())
            .field("count", &self.count)
            .field("any", &self.any)
            .finish()
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Missing {
    fn format(&self, f: defmt::Formatter<'_>) {
        let (ranks, count, any) = (self.numbers(), self.count, self.any);
        defmt::write!(
            f,
            "Missing {{ ranks: {}, count: {}, any: {} }}",
            ranks,
            count,
            any
        );
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout(timeout) => timeout.fmt(f),
            Self::ArenaFull { missing_words } => {
                write!(f, "the world's arena needs {missing_words} more words")
            }
            Self::MemoryFull {
                missing_bytes: u32::MAX,
            } => f.write_str("4 GiB or more in one piece: no rank's shared memory holds that"),
            Self::MemoryFull { missing_bytes } => {
                write!(
                    f,
                    "shared memory needs {missing_bytes} more bytes per rank \
                     (flagpost-run: --mem; linker script of the QEMU board: _flagpost_memory_size)"
                )
            }
            Self::TooManyPieces { max } => write!(f, "more than {max} pieces of memory"),
            Self::PeerLost(rank) => write!(f, "rank {rank} does not answer any more"),
            Self::PeerLeft(rank) => write!(f, "rank {rank} has left: its program has ended"),
            Self::OutOfRange { end, len } => {
                write!(f, "access up to element {end} of a window of {len}")
            }
            Self::LengthsDiffer { target, origin } => {
                write!(f, "{target} bytes at the target, {origin} at the origin")
            }
            Self::FieldsAccumulated => f.write_str("fields of records cannot be accumulated"),
            Self::NoSuchRank { rank, size } => write!(f, "rank {rank} in a world of {size}"),
            Self::DuplicateRank(rank) => write!(f, "rank {rank} is named twice"),
            Self::NotInGroup(rank) => write!(f, "rank {rank} is not in the epoch's group"),
            Self::Asymmetric(rank) => write!(
                f,
                "rank {rank} called differently, or failed, perhaps for want of memory"
            ),
            Self::EpochOpen => f.write_str("the window has an open epoch of this kind"),
            Self::TooManyLocks { max } => write!(f, "more than {max} locked targets"),
            Self::EpochAbandoned => f.write_str(
                "an epoch or lock of the window was dropped before its end, which is no unlock",
            ),
            Self::Exposed => f.write_str(
                "peers may be writing these lines: an exposure epoch or a started request has them, \
                 also after it was dropped",
            ),
            Self::RequestActive => f.write_str("the request is started already"),
            Self::RequestInactive => f.write_str("the request is not started"),
            Self::TooManyRequests { max } => write!(f, "more than {max} started requests"),
            Self::BadList { entries, max } => {
                write!(f, "a matching list has 1 to {max} entries, not {entries}")
            }
            Self::BadRegions { regions, max } => {
                write!(f, "a dynamic window has 1 to {max} regions, not {regions}")
            }
            Self::CountZero => f.write_str("a request must expect at least 1 notification"),
            Self::TagTooLarge { max } => write!(f, "the largest tag is {max}"),
            Self::QueueFull { capacity } => {
                write!(f, "{capacity} unexpected notifications fill the queue")
            }
            Self::TooManyWindows { max } => write!(f, "more than {max} windows"),
            Self::MemoryInUse => f.write_str("the memory is in a window"),
            Self::BadBase { line } => write!(f, "the base is not a multiple of {line} bytes"),
            Self::UnitZero => f.write_str("a displacement unit of 0 bytes"),
            Self::UnitUnaligned { unit, size } => {
                write!(
                    f,
                    "accumulates of {size} bytes at a displacement unit of {unit}"
                )
            }
            Self::NotAttached => f.write_str("no memory of this name is attached"),
            Self::TooManyAttached { max } => write!(f, "more than {max} attached regions"),
            Self::WrongWindow => f.write_str(
                "the epoch belongs to another window, or the events or the memory to another world",
            ),
            Self::Unmatched { count } => {
                write!(f, "{count} notifications of the window are not matched")
            }
            Self::NoSuchCounter { rank, index, count } => {
                write!(f, "no counter {index}: rank {rank} has {count}")
            }
            Self::NotDirect => f.write_str("peers' memory is not reached by loads and stores"),
            Self::CollectiveUnfinished => {
                f.write_str("another collective call is unfinished: repeat that one first")
            }
            Self::WrongLength { len, ranks } => {
                write!(f, "a slice of {len} elements for {ranks} ranks")
            }
            Self::ElementTooLarge { max } => write!(f, "elements above {max} bytes"),
            Self::Link(refusal) => write!(f, "the link refused: {refusal:?}"),
        }
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timed out waiting for ")?;
        self.tell(f)
    }
}

impl Timeout {
    /// Says what is waited for.
    pub(crate) fn tell(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.waiting {
            Waiting::StartUp => "start-up by",
            Waiting::Collective => "a collective call by",
            Waiting::Post => "a post by",
            Waiting::Completion => "completion by",
            Waiting::Lock => "the lock owned by",
            Waiting::RingSpace => "room in the ring owned by",
            Waiting::ListSpace => "room in the matching list owned by",
            Waiting::Notification => "a notification by",
            Waiting::Unlock => "an unlock of the piece owned by",
            Waiting::Holder => "the exclusive lock that is held by",
            Waiting::Queue => "a turn in the queue before or behind, taken by",
            Waiting::Answer => "an answer by",
        };
        let (unlock, count) = (self.waiting == Waiting::Unlock, self.missing.count());
        let named = self.missing.ranks().next().is_some();
        match (unlock, named) {
            (true, false) => write!(f, "the exclusive locks of {count} ranks")?,
            (false, false) => write!(f, "{what} any rank")?,
            (_, true) => f.write_str(what)?,
        }
        for rank in self.missing.ranks() {
            write!(f, " {rank}")?;
        }
        match (unlock, named) {
            (true, _) => f.write_str(" (which ranks have locked is not recorded)"),
            (false, false) => write!(f, " ({count} missing; nothing says from which)"),
            // A rank is told by few others, and hears of the rest through them.
            (false, true) if self.waiting == Waiting::Collective => {
                f.write_str(", or by a rank that it waits for")
            }
            (false, true) if self.waiting == Waiting::Holder => Ok(()),
            (false, true) => write!(f, " ({count} missing)"),
        }
    }
}

impl core::error::Error for Error {}

/// A call that could not finish, with the handle to continue with.
///
/// `?` does not make it an [`enum@Error`]: that would drop the handle, which abandons an epoch. A
/// program that wants that says so, by [`give_up`](Self::give_up).
///
/// # Example
/// ```
/// # flagpost_guide::simulate(2, |world| {
/// use flagpost::{Budget, Error, Rank};
///
/// let (window, owner) = (world.allocate::<u32>(1)?, Rank::new(0));
/// let lock = match window.locking_exclusive(owner)?.wait_within(Budget::microseconds(20)) {
///     Ok(lock) => lock,
///     Err(late) => {
///         assert!(matches!(late.error, Error::Timeout(_)));
///         // Something else is done here.
///         late.handle.wait()? // until it is there
///     }
/// };
/// lock.unlock()?;
/// # Ok(())
/// # });
/// ```
///
/// It is an [`Error`](core::error::Error) of its own. A box of errors (`Box<dyn Error>`) takes no
/// borrows, and most handles borrow their window: there [`enum@Error`] goes into the box.
#[must_use = "dropping the handle abandons its epoch"]
pub struct Unfinished<H> {
    /// Wait for this again.
    pub handle: H,
    /// Why it could not finish.
    pub error: Error,
}

/// Handles have no text.
impl<H> fmt::Debug for Unfinished<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { handle: _, error } = self;
        f.debug_struct("Unfinished")
            .field("error", error)
            .finish_non_exhaustive()
    }
}

impl<H> fmt::Display for Unfinished<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.error;
        write!(
            f,
            "{error} (if there is a handle, the call continues with it)"
        )
    }
}

impl<H> core::error::Error for Unfinished<H> {}

impl<H> Unfinished<H> {
    /// For `map_err`: the call that had `error` continues with `handle`.
    pub(crate) fn with(handle: H) -> impl FnOnce(Error) -> Self {
        move |error| Self { handle, error }
    }

    /// Drops the handle: what that means is said there.
    pub fn give_up(self) -> Error {
        self.error
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString as _;

    /// A text says "rank" before the number of one, and once.
    #[test]
    fn texts_name_a_rank_once() {
        let rank = Rank::new(3);
        let (index, count, size) = (7, 5, 2);
        let errors = [
            Error::PeerLost(rank),
            Error::PeerLeft(rank),
            Error::NoSuchRank { rank, size },
            Error::DuplicateRank(rank),
            Error::NotInGroup(rank),
            Error::Asymmetric(rank),
            Error::NoSuchCounter { rank, index, count },
        ];
        for text in errors.map(|error| error.to_string()) {
            let found = ["rank 3", "rank", "3"].map(|word| text.matches(word).count());
            assert_eq!(found, [1; 3], "{text}");
        }
        // No text is missing above.
        let source = include_str!("error.rs");
        let texts = source.split_once("impl fmt::Display for Error {");
        let (texts, _) = texts
            .and_then(|(_, rest)| rest.split_once("\n}\n"))
            .expect("texts");
        assert_eq!(texts.matches("{rank}").count(), errors.len());
    }

    /// Fails if a variant is in no row of the table, or in a row that its remedy is not.
    #[test]
    fn the_list_of_remedies_has_each_error_once() {
        use std::collections::BTreeMap;
        use std::format;
        use std::string::String;

        let source = include_str!("error.rs");
        // Variants, and the names that an arm of the match has.
        let names = |text: &str, mark: &str| {
            let words = text.split(mark).skip(1);
            let name = |rest: &str| {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
                String::from(rest.get(..end.unwrap_or(rest.len())).unwrap_or_default())
            };
            words.map(name).collect::<std::vec::Vec<_>>()
        };
        let part = |from: &str, to: &str| {
            let rest = source.split_once(from).expect("it is there").1;
            rest.split_once(to).expect("it ends").0
        };
        let body = part("pub enum Error {", "\n}\n");
        let lines = body.lines().filter(|line| {
            let name = line.strip_prefix("    ").unwrap_or_default();
            name.starts_with(|c: char| c.is_ascii_uppercase())
        });
        let variants = lines.map(|line| names(&format!("@{}", line.trim()), "@").remove(0));
        let mut arms = BTreeMap::new();
        let matched = part(
            "match self {\n            Self::Timeout(_) => Remedy",
            "\n    }\n",
        );
        let matched = format!("Self::Timeout(_) => Remedy{matched}");
        let mut pending = String::new();
        for line in matched.lines() {
            pending.push_str(line);
            if let Some(remedy) = line.split("=> Remedy::").nth(1) {
                for name in names(&pending, "Self::") {
                    arms.insert(name, String::from(remedy.trim_end_matches(',')));
                }
                pending.clear();
            }
        }
        let mut items = BTreeMap::new();
        let list = part("an [`Error`]: [`Error::remedy`].", "#[derive");
        for item in list.split("/// * ").skip(1) {
            let remedy = names(item, "Self::").remove(0);
            for name in item.split('`').skip(3).step_by(2) {
                let again = items.insert(String::from(name), remedy.clone());
                assert_eq!(again, None, "{name} is in two items");
            }
        }
        for variant in variants {
            let item = items.remove(&variant);
            assert_eq!(item.as_ref(), arms.get(&variant), "{variant}");
            assert!(item.is_some(), "{variant} is in no item");
        }
        assert!(items.is_empty(), "no errors: {items:?}");
    }

    #[test]
    fn a_timeout_names_ranks_or_says_that_nothing_records_them() {
        let told = |waiting, ranks: &[u16], count, text: &str| {
            let named = ranks.iter().copied().map(Rank::new);
            let missing = Missing::among(named, count);
            let told = Timeout { waiting, missing }.to_string();
            assert_eq!(told.strip_prefix("timed out waiting for "), Some(text));
        };
        let unknown = "a notification by any rank (3 missing; nothing says from which)";
        told(Waiting::Notification, &[], 3, unknown);
        told(
            Waiting::Notification,
            &[3],
            19,
            "a notification by 3 (19 missing)",
        );
        told(
            Waiting::Completion,
            &[1, 4],
            2,
            "completion by 1 4 (2 missing)",
        );
        told(
            Waiting::Collective,
            &[2],
            1,
            "a collective call by 2, or by a rank that it waits for",
        );
        let counted = "the exclusive locks of 2 ranks (which ranks have locked is not recorded)";
        told(Waiting::Unlock, &[], 2, counted);
        let owner = "an unlock of the piece owned by 1 (which ranks have locked is not recorded)";
        told(Waiting::Unlock, &[1], 1, owner);
        let held = "the exclusive lock that is held by 3";
        told(Waiting::Holder, &[3], 1, held);
    }

    #[test]
    fn what_is_missing_is_printed_without_places_for_no_rank() {
        let missing = |ranks: &[u16]| {
            let ranks = ranks.iter().copied().map(Rank::new);
            std::format!("{:?}", Missing::among(ranks, 2))
        };
        assert_eq!(
            missing(&[3]),
            "Missing { ranks: [3], count: 2, any: false }"
        );
        assert_eq!(missing(&[]), "Missing { ranks: [], count: 2, any: false }");
        let full = "Missing { ranks: [1, 2, 3, 4, 5, 6, 7, 8], count: 2, any: false }";
        assert_eq!(missing(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), full);
    }

    /// A number that stands for more than it can say is not printed as one.
    #[test]
    fn bytes_that_are_missing_are_a_number_or_too_many() {
        let told = |missing_bytes| Error::MemoryFull { missing_bytes }.to_string();
        assert!(told(32).starts_with("shared memory needs 32 more bytes"));
        assert!(told(u32::MAX).starts_with("4 GiB or more in one piece"));
    }

    /// Of a call whose handle borrows nothing; and of one whose handle does, which a box that may
    /// borrow takes as it is.
    #[test]
    fn unfinished_calls_go_into_boxes() {
        use core::error::Error as StdError;
        use std::boxed::Box;

        fn unfinished<H>(handle: H) -> Result<(), Unfinished<H>> {
            let error = Error::CountZero;
            Err(Unfinished { handle, error })
        }
        fn owned() -> Result<(), Box<dyn StdError>> {
            unfinished(Some(7_u8))?;
            Ok(())
        }
        fn borrowed(handle: &u8) -> Result<(), Box<dyn StdError + '_>> {
            unfinished(handle)?;
            Ok(())
        }
        fn dropped(handle: &u8) -> Result<(), Box<dyn StdError + Send + Sync>> {
            Ok(unfinished(handle).map_err(Unfinished::give_up)?)
        }
        let text = Error::CountZero.to_string();
        let told = owned().expect_err("it is not finished").to_string();
        let rest = told.strip_prefix(&text);
        assert_eq!(
            rest,
            Some(" (if there is a handle, the call continues with it)")
        );
        assert_eq!(borrowed(&7).expect_err("nor is this").to_string(), told);
        assert_eq!(dropped(&7).expect_err("nor is this").to_string(), text);
    }

    /// A wait is over only where a rank that has left is surely one that it needs.
    #[test]
    fn a_wait_ends_with_a_rank_that_it_needs() {
        let r = Rank::new;
        let of = |ranks: &[u16], count| Missing::among(ranks.iter().copied().map(r), count);
        let left = |gone: &'static [u16]| move |rank: Rank| gone.contains(&rank.get());
        const EIGHT: [u16; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
        let table: [(Missing, &'static [u16], Option<u16>); 10] = [
            (of(&[2], 1), &[], None),
            (of(&[2], 1), &[2], Some(2)),
            (of(&[2], 5), &[2], Some(2)),
            (of(&[1, 2], 2), &[2], Some(2)),
            // Another one may be the one that is missing.
            (of(&[1, 2], 1), &[2], None),
            (of(&[1, 2], 1), &[2, 1], Some(1)),
            (of(&[1, 2], 2).of_any(true), &[2], None),
            (of(&[1, 2], 2).of_any(true), &[1, 2], Some(1)),
            // There may be more than are listed.
            (of(&EIGHT, 3), &EIGHT, None),
            (of(&EIGHT, 30), &[8], Some(8)),
        ];
        for (missing, gone, ended) in table {
            assert_eq!(
                missing.ended(left(gone)),
                ended.map(r),
                "{missing:?} {gone:?}"
            );
        }
    }
}
