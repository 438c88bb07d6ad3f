//! [`Telling`]: signals and immediates. A signal is a counter with one writer. An immediate is a
//! number in a queue, with the data of its put. [`Wants`] says whose number a rank waits for: a
//! link looks there first.

#[cfg(doc)]
use crate::{Access, Waiting};
use crate::{Key, Op, Rank, Refusal, Slot, Word};

/// How ranks tell each other something: signals, cells that are watched, immediates.
///
/// # Contract
/// 1. A signal orders nothing. An [`Access::fence`] before it does.
/// 2. An immediate comes after all earlier puts of the same rank to the same target: the rank that
///    takes it finds them in memory.
/// 3. A queue of immediates is bounded. A full one refuses the sender, with [`Refusal::Full`].
/// 4. Each call of `reached`, `watch` and `progress` notes what it has polled, for the next
///    [`Waiting::relax`].
/// 5. Immediates of one rank are taken in the order in which they were sent.
/// 6. Nothing is trusted that comes from a peer: its offsets are checked, and the kernel checks
///    what an immediate says.
///
/// # Refusals
/// [`Refusal::Busy`], [`Refusal::Full`] and [`Refusal::Locked`] pass; the others stay.
pub trait Telling {
    /// [`Access::put`], and appends `immediate` to `to`'s queue. The rank that takes the immediate
    /// finds the data, and all earlier puts of this rank to it, in memory. It may store to what
    /// this rank has got or read before.
    ///
    /// If `inline`, the link may send the data with the immediate, and `to`'s
    /// [`progress`](Self::progress) puts them in place before it gives the immediate. Until then
    /// they may overwrite later puts of the same bytes, and [`Access::flush`] is refused. The link
    /// may send long data in parts: `op` has begun when some parts have left, and no rank is told
    /// before all have.
    ///
    /// # Errors
    /// [`Refusal::Busy`], [`Refusal::Full`] and [`Refusal::Locked`] (transient);
    /// [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn put_immediate(
        &self,
        to: Rank,
        place: (Key, usize),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal>;

    /// Sets `to`'s slot to `value`, one more (wrapping) than the last value this rank gave it; the
    /// first is 1. Each slot of each rank has one writer at a time. Only an [`Access::fence`] in
    /// between orders this rank's earlier puts before a signal.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient); [`Refusal::NoSuchSlot`], [`Refusal::NoSuchRank`],
    /// [`Refusal::PeerLost`].
    fn signal(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal>;

    /// True if this rank's `slot` has reached `value`. If so, all that its writer fenced before the
    /// signal can be read.
    ///
    /// # Errors
    /// [`Refusal::NoSuchSlot`].
    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal>;

    /// This rank's cell at `offset`, as much of it as a `W` has, if `arrived` says that it is what
    /// the caller waits for: then what the writers of the cell fenced before can be read. None
    /// else. `W` is `u32`, or the link's [`Word`](crate::Link::Word).
    ///
    /// # Errors
    /// [`Refusal::Busy`] and [`Refusal::Locked`] (transient); [`Refusal::OutOfRange`],
    /// [`Refusal::BadCell`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn watch<W: Word>(
        &self,
        key: Key,
        offset: usize,
        arrived: impl Fn(W) -> bool,
        op: &Op,
    ) -> Result<Option<W>, Refusal>;

    /// Takes the oldest immediate from this rank's queue. Reads of this rank find its data.
    ///
    /// `wants` says whose it waits for. Unless [anybody's](Wants::Any) would do, the link may leave
    /// out places where an immediate can be, if each place has its turn, and if an immediate that
    /// arrives there ends the next [`relax`](Waiting::relax), too.
    fn progress(&self, wants: Wants) -> Option<Arrival>;

    /// Makes progress for others without taking an immediate: what has come is brought to its place
    /// although it cannot be taken, or nobody asks for it. A [passive](crate::Link::PASSIVE) link
    /// has nothing to do. The kernel calls it when it has no room for an immediate, and in one of
    /// 16 calls of a program that look for none.
    fn attend(&self) {}
}

/// Whose immediate a rank waits for, while it asks its link for the next one, turn by turn.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Wants {
    /// Anybody's.
    Any,
    /// This rank's. Those of others are taken, too.
    Of(Rank),
    /// Nobody's: it waits for something else.
    Other,
}

/// An immediate that was taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The number that was sent.
    pub immediate: u32,
    /// The rank that sent it, if the link knows that without a look at the immediate.
    pub sender: Option<Rank>,
}
