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

/// Makes of a table, with a row for each error, [`enum@Error`], its texts and its remedies.
macro_rules! errors {
    ($(#[$about:meta])* pub enum Error {$(
        $(#[$doc:meta])*
        $name:ident
            $({ $($(#[$field_doc:meta])* $field:ident: $type:ty),+ $(,)? })?
            $(($only:ident: $only_type:ty))?
            => $remedy:ident: $text:literal $(, $argument:expr)?;
    )+}) => {
        $(#[$about])*
        pub enum Error {$(
            $(#[$doc])*
            ///
            #[doc = concat!("Remedy: [`Remedy::", stringify!($remedy), "`].")]
            $name
                $({ $($(#[$field_doc])* $field: $type),+ })?
                $(($only_type))?,
        )+}

        impl Error {
            const fn usual_remedy(&self) -> Remedy {
                match self {
                    $(Self::$name { .. } => Remedy::$remedy,)+
                }
            }
        }

        impl fmt::Display for Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name $({ $($field),+ })? $(($only))? => {
                        write!(f, $text $(, $argument)?)
                    })+
                }
            }
        }
    };
}

errors! {
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
        /// handle if the call has one; a short form of such a call (`post`, `fence`, ...) has
        /// dropped it.
        Timeout(timeout: Timeout) => Continue: "{timeout}";
        /// The arena given to the world is too small.
        ArenaFull {
            /// How many more 4-byte words it needs.
            missing_words: u32,
        } => Room: "the world's arena needs {missing_words} more words";
        /// This rank's shared memory is used up. More of it: `--mem` of `flagpost-run` on Linux,
        /// `_flagpost_memory_size` of the linker script on the QEMU board, the machine's memory
        /// elsewhere. In a part's world the call gives [`Error::RoomFull`].
        MemoryFull {
            /// How many more bytes it needs; `usize::MAX` for more than there are addresses.
            missing_bytes: usize,
        } => Room: "{}", Shortage(missing_bytes);
        /// The [`Room`](crate::Room) of this part's world is used up: give it more of what is
        /// missing.
        RoomFull {
            /// How many more `bytes`.
            missing_bytes: usize,
            /// How many more `windows`.
            missing_windows: u16,
        } => Room:
            "the `Room` of this part needs {missing_bytes} more `bytes`, {missing_windows} more \
             `windows`";
        /// This rank's shared memory is in as many pieces as can be remembered: free a window
        /// first.
        TooManyPieces {
            /// How many that is.
            max: u32,
        } => Room: "more than {max} pieces of memory";
        /// Elements up to `end` were named, and the window has `len`.
        OutOfRange {
            /// Index after the last element that was named.
            end: u64,
            /// Elements in the window.
            len: u64,
        } => Call: "access up to element {end} of a window of {len}";
        /// The two sides of an access, or of an alltoall, are not about as many bytes.
        LengthsDiffer {
            /// Bytes at the target.
            target: u64,
            /// Bytes at the origin.
            origin: u64,
        } => Call: "{target} bytes at the target, {origin} at the origin";
        /// Fields of records are bytes: they can be put and got, not accumulated.
        FieldsAccumulated => Call: "fields of records cannot be accumulated";
        /// The rank does not answer any more. Once the link knows that, each wait whose answer is
        /// not there fails, whatever rank it is for, and so does each call that tests for something
        /// which has not come. All that has come is given first.
        ///
        /// Over a network a call that needs an answer waits for it, and so fails, too. Over memory,
        /// a call that gives a value cannot know which value a loop is about: one in 64 of them
        /// fails ([`Rma::get`](crate::Rma::get), [`Rma::fetch_and_op`](crate::Rma::fetch_and_op)
        /// and others, [`Events::query`](crate::Events::query),
        /// [`Window::notify_value`](crate::Window::notify_value)). It has done nothing then: a
        /// survivor that still wants the value calls again. Of several lost ranks one is named.
        PeerLost(rank: Rank) => Peer: "rank {rank} does not answer any more";
        /// The rank has ended its program in order, and without it what the call waits for cannot
        /// come. All that the rank did before has come. (Where the link knows that a rank has left:
        /// between processes and threads of Linux, and on the QEMU board.) As after
        /// [`Error::PeerLost`], the same call fails again. The rank may have left because another
        /// one had: in a collective call the first to leave need not be the one that is named.
        /// Calls that only test fail where the rank is named in the call; those for any rank's find
        /// nothing.
        PeerLeft(rank: Rank) => Peer: "rank {rank} has left: its program has ended";
        /// A rank has called [`Spare::survivors`](crate::Spare::survivors) of the larger world,
        /// since it was told of a loss there. This world, of a part, has ended: no wait of it can
        /// be sure to end. Call `survivors` of the same spare, as after [`Error::PeerLost`].
        Revoked => Peer:
            "a rank has called `survivors` of the larger world, after a loss: this part's world is \
             over, and this rank is to call it, too";
        /// The rank's image was built otherwise than this one: it has another version of Flagpost,
        /// line size, number of cores, kind of link, or tables or rings of other sizes. Both would
        /// look for each other's words in other places, so the world does not start. Build the
        /// images of all cores with the same ones. A rank that counts more cores than there are
        /// waits for those, and is told nothing.
        OtherBuild(rank: Rank) => Call:
            "rank {rank} has an image that was built otherwise: version, line size, cores, link, \
             rings or sizes of tables differ";
        /// There is no such rank.
        NoSuchRank {
            /// The rank.
            rank: Rank,
            /// Ranks in the world.
            size: u16,
        } => Call: "there is no rank {rank} in a world of {size}";
        /// The rank is named twice.
        DuplicateRank(rank: Rank) => Call: "rank {rank} is named twice";
        /// The access epoch was not started to this rank.
        NotInGroup(rank: Rank) => Call: "rank {rank} is not in the epoch's group";
        /// The ranks did not call alike. Of a call that makes something (a window, events, a part,
        /// counters): the rank asked for something else, or its own call failed. All ranks have
        /// failed, and nothing has changed. Of the start of a world: the rank has another
        /// [`Config`](crate::Config). All ranks have failed; the next start is of another session,
        /// or of another part.
        ///
        /// Of another collective call: the rank makes another one, or with another root, size of
        /// elements or length. No rank ends a call with such data; but
        /// [`allgather_with`](crate::World::allgather_with) may have given some to its closure
        /// before it fails. Frees and fences of different windows, which carry no data, are found
        /// in long waits alone. Not every rank finds out by itself: one
        /// that waits for another that has failed is told so if the wait is long, on machines where
        /// a rank that waits does not sleep. The collective calls of this world cannot continue
        /// then.
        Asymmetric {
            /// The rank.
            rank: Rank,
            /// The thing that it has otherwise.
            differs: Differs,
        } => Call: "rank {rank} {differs}";
        /// A window has one access epoch and one exposure epoch at a time, no other access epoch
        /// beside locks, and one call that waits for a lock: end the open one first.
        EpochOpen => Order:
            "the window has an open epoch or lock that admits no other beside it: end that first";
        /// This rank has locked the rank's piece, or waits for its lock: unlock it first.
        LockedTwice(rank: Rank) => Order:
            "rank {rank} is locked already by an open lock of this window: unlock that first";
        /// This rank has locked as many targets of the window as it can remember.
        TooManyLocks {
            /// How many that is.
            max: u8,
        } => Room: "more than {max} locked targets";
        /// An epoch or a lock of this window was dropped before its end: a drop is no unlock. Peers
        /// may still wait for it; the window can start no other.
        EpochAbandoned => Order:
            "an epoch or lock of the window was dropped before its end, which is no unlock";
        /// Peers may be writing these lines of this rank's piece: wait for the exposure epoch or
        /// the request that opened them. One that was dropped keeps them for ever: wait, or cancel,
        /// before.
        Exposed => Order:
            "peers may be writing these lines: an exposure epoch or a started request has them, \
             also after it was dropped";
        /// The request is started already.
        RequestActive => Order: "the request is started already";
        /// The request is not started.
        RequestInactive => Order: "the request is not started";
        /// A started request of the window, with a range, matches notifications that this one would
        /// match: one would take what the other waits for, and find old data. Complete or cancel
        /// that one first (dropped, it stays started), or tell them apart by tag or source; one
        /// request for several notifications: [`Request::times`](crate::Request::times).
        RequestsOverlap => Order:
            "another started request matches the same notifications: give each its own tag or \
             source, or wait for that one first; a dropped one stays started";
        /// The counter has reached the number in an earlier request, and was not changed since: the
        /// request would be complete with no notification more. Begin a new round by
        /// [`Window::reset_notify_value`](crate::Window::reset_notify_value), or wait for a larger
        /// number. A word that stays as it is for all is a [`Signal`](crate::notify::Signal).
        CounterNotReset {
            /// The counter.
            index: u32,
        } => Order:
            "counter {index} has reached this number before: reset_notify_value begins a new round";
        /// The window has as many started requests (with a range) as it can remember.
        TooManyRequests {
            /// How many that is.
            max: u8,
        } => Room: "more than {max} started requests";
        /// A matching list cannot have this many entries.
        BadList {
            /// How many were asked for: at least 1.
            entries: u16,
            /// The most.
            max: u16,
        } => Call: "a matching list has 1 to {max} entries, not {entries}";
        /// A dynamic window cannot have this many regions.
        BadRegions {
            /// How many were asked for: at least 1.
            regions: u16,
            /// The most.
            max: u16,
        } => Call: "a dynamic window has 1 to {max} regions, not {regions}";
        /// A grid has a place for each rank.
        BadGrid {
            /// Its places.
            places: u64,
            /// How many ranks there are.
            ranks: u16,
        } => Call: "a grid of {places} places for {ranks} ranks";
        /// A request for 0 notifications waits for nothing.
        CountZero => Call: "a request must expect at least 1 notification";
        /// The tag does not fit into an immediate beside the rank and the window.
        TagTooLarge {
            /// The largest tag of this world.
            max: u32,
        } => Call: "the largest tag is {max}";
        /// The rank has no such notification counter in this window, or no such event.
        NoSuchCounter {
            /// The rank.
            rank: Rank,
            /// The counter, or event.
            index: u32,
            /// How many the rank has.
            count: u32,
        } => Call:
            "no counter {index}: rank {rank} has {count} (made by set_num_notify, or by events)";
        /// The window has been told of accesses that no request has matched, and cannot be freed:
        /// match them, or call
        /// [`Window::discard_notifications`](crate::Window::discard_notifications).
        Unmatched {
            /// How many notifications.
            count: u32,
        } => Order: "{count} notifications of the window are not matched";
        /// The unexpected queue is full of notifications that this request does not match. Wait for
        /// one that does, or configure a longer queue.
        QueueFull {
            /// How many it holds.
            capacity: u16,
        } => Room: "{capacity} unexpected notifications fill the queue";
        /// The world has as many windows as an immediate can tell apart, or as the
        /// [`Room`](crate::Room) of its part says.
        TooManyWindows {
            /// How many that is.
            max: u16,
        } => Room: "more than {max} windows (in a part: `windows` of its `Room`)";
        /// The memory is in a window: reach it through that, or take it out first.
        MemoryInUse => Order: "the memory is in a window";
        /// A window's memory begins at a line.
        BadBase {
            /// The base must be a multiple of this many bytes.
            line: u32,
        } => Call: "the base is not a multiple of {line} bytes";
        /// A displacement unit of 0 bytes would make all elements one. One of 4 GiB or more is not
        /// told to other ranks.
        BadUnit {
            /// The unit, in bytes.
            unit: u64,
        } => Call: "a displacement unit has 1 to 4294967295 bytes, not {unit}";
        /// The element is changed as a whole only at a multiple of its size: make the window with
        /// such a displacement unit (in a dynamic one: take such a displacement), or put and get
        /// it.
        UnitUnaligned {
            /// The target's displacement unit; 1 in a dynamic window.
            unit: u32,
            /// The element's size.
            size: u32,
        } => Call: "accumulates of {size} bytes at a displacement unit of {unit}";
        /// There is no attached memory of this name: it was detached, or never attached to this
        /// window.
        NotAttached => Order: "no memory of this name is attached";
        /// The dynamic window has as many attached regions as it has room for.
        TooManyAttached {
            /// How many that is.
            max: u16,
        } => Room: "more than {max} attached regions";
        /// The epoch belongs to another window, or the events or the memory to another world.
        WrongWindow => Call:
            "the epoch belongs to another window, or the events or the memory to another world";
        /// Peers' memory cannot be reached by plain loads and stores here.
        NotDirect => Call: "peers' memory is not reached by loads and stores";
        /// A collective call ran out of its budget, or lost a peer, and another one (or the same
        /// with other arguments) was made: continue that one first. If its handle was dropped, the
        /// world can make no other any more.
        CollectiveUnfinished => Order:
            "another collective call is unfinished: repeat that one first";
        /// The slice does not give each rank as many elements.
        WrongLength {
            /// Its elements.
            len: u64,
            /// Ranks in the world.
            ranks: u16,
        } => Call: "a slice of {len} elements for {ranks} ranks";
        /// More bytes than a collective call can carry in one element.
        ElementTooLarge {
            /// The largest size in bytes.
            max: u32,
        } => Call: "elements above {max} bytes";
        /// The link refused for a reason that the kernel should have excluded.
        Link(refusal: Refusal) => Report: "the link refused: {refusal:?}";
    }
}

/// The thing that a rank has otherwise than others: of [`Error::Asymmetric`]. Of several the first
/// in this order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Differs {
    /// It makes another collective call.
    Call,
    /// The root.
    Root,
    /// The size of an element.
    Element,
    /// The length.
    Length,
    /// The [`Config`](crate::Config) of its world.
    Config,
    /// Something else of a call that makes something, or its own call has failed.
    Other,
}

impl Differs {
    pub(crate) const ALL: [Self; 6] = [
        Self::Call,
        Self::Root,
        Self::Element,
        Self::Length,
        Self::Config,
        Self::Other,
    ];
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Call => "makes another collective call",
            Self::Root => "names another root in its collective call",
            Self::Element => "has elements of another size (another type) in its collective call",
            Self::Length => "has another length in its collective call",
            Self::Config => "has started its world with another `Config`",
            Self::Other => "called differently, or failed, perhaps for want of memory",
        })
    }
}

/// The user's next step after an [`Error`]: [`Error::remedy`].
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
    /// The user's next step. Of [`Error::Link`] a bad ring or session is the call's mistake.
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
            Self::Link(Refusal::BadRing { .. } | Refusal::BadSession { .. }) => Remedy::Call,
            _ => self.usual_remedy(),
        }
    }
}

impl Error {
    /// That of a call whose handle is dropped.
    pub(crate) const fn dropped(self) -> Self {
        match self {
            Self::Timeout(late) => Self::Timeout(late.dropped()),
            other => other,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoMemory { missing } => Self::MemoryFull {
                missing_bytes: missing,
            },
            Refusal::NoRoom { bytes, windows } => Self::RoomFull {
                missing_bytes: bytes,
                missing_windows: windows,
            },
            Refusal::TooManyPieces { max } => Self::TooManyPieces { max },
            Refusal::PeerLost(rank) => Self::PeerLost(rank),
            Refusal::OtherBuild(rank) => Self::OtherBuild(rank),
            other => Self::Link(other),
        }
    }
}

/// The text of [`Error::MemoryFull`].
struct Shortage(usize);

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            usize::MAX => f.write_str(
                "more bytes than there are addresses: no rank's shared memory holds that",
            ),
            bytes => write!(
                f,
                "shared memory needs {bytes} more bytes per rank \
                 (flagpost-run: --mem; linker script of the QEMU board: _flagpost_memory_size)"
            ),
        }
    }
}

impl core::error::Error for Error {}
