//! Errors, as values that say what to change. Every call that may fail gives an [`enum@Error`],
//! whose fields have the numbers that the user needs. A call that ran out of its budget gives a
//! [`Timeout`], which names ranks, and its handle in [`Unfinished`]. Nothing here allocates or
//! panics.

mod timeout;
mod unfinished;

#[cfg(test)]
mod tests;

use core::fmt;

use flagpost_link::{Rank, Refusal};

pub use timeout::{Missing, Timeout, Waiting};
pub use unfinished::Unfinished;

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
        /// How many more 4-byte words it needs.
        missing_words: u32,
    },
    /// This rank's shared memory is used up. More of it: `--mem` of `flagpost-run` on Linux,
    /// `_flagpost_memory_size` of the linker script on the QEMU board, the machine's memory
    /// elsewhere.
    MemoryFull {
        /// How many more bytes it needs; `u32::MAX` for a piece of 4 GiB or more, which no rank's
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

impl core::error::Error for Error {}
