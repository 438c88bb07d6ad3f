//! [`Telling`]: signals and immediates.

#[cfg(doc)]
use crate::{Access, Waiting};
use crate::{Key, Op, Rank, Refusal, Slot};

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
    /// [`put`](Access::put), and appends `immediate` to `to`'s queue. Who takes it from the queue
    /// finds the data, and all earlier puts of this rank to `to`, in memory, and may store to what
    /// this rank has got or read before.
    ///
    /// If `inline`, a link may send the data with the immediate, and leave it to `to`'s
    /// [`progress`](Self::progress) to put them in place, before it gives the immediate: until then
    /// later puts of the same bytes may come before them, and a [`flush`](Access::flush) waits. Long
    /// ones may be sent in parts: `op` is under way when some have left, and no rank is told before
    /// all have.
    ///
    /// # Errors
    /// [`Refusal::Busy`], [`Refusal::Full`] and [`Refusal::Locked`] (transient);
    /// [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn put_immediate(
        &self,
        to: Rank,
        place: (Key, u32),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal>;

    /// Sets `to`'s slot to `value`, one more (wrapping) than the last value this rank gave it; the
    /// first is 1. Each slot of each rank has one writer at a time. Ordered after this rank's
    /// earlier puts only by a [`fence`](Access::fence) in between.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient); [`Refusal::NoSuchSlot`], [`Refusal::NoSuchRank`],
    /// [`Refusal::PeerLost`].
    fn signal(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal>;

    /// Whether own `slot` has come to `value` or further. If so, what its writer fenced before the
    /// signal can be read.
    ///
    /// # Errors
    /// [`Refusal::NoSuchSlot`].
    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal>;

    /// The low half of the own cell at `offset`, if it is what was waited for: then what its
    /// writers fenced before can be read. For waiting loops: notes what was looked at.
    ///
    /// # Errors
    /// [`Refusal::Busy`] and [`Refusal::Locked`] (transient); [`Refusal::OutOfRange`],
    /// [`Refusal::BadCell`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn watch(
        &self,
        key: Key,
        offset: u32,
        arrived: impl Fn(u32) -> bool,
        op: &Op,
    ) -> Result<Option<u32>, Refusal>;

    /// Takes the oldest immediate from this rank's queue, with its data in place.
    fn progress(&self) -> Option<u32>;

    /// [`progress`](Self::progress) of a rank that waits for something else, turn by turn: it may
    /// leave out places where an immediate can be, if each has its turn, and if one that comes
    /// there ends the next [`relax`](Waiting::relax), too.
    fn progress_aside(&self) -> Option<u32>;

    /// Whose immediate [`progress`](Self::progress) gave last, where the link knows that without a
    /// look at it.
    fn sender(&self) -> Option<Rank> {
        None
    }

    /// No immediate is taken for now, for want of room. What those have begun that were taken comes
    /// to its end all the same, as where [`progress`](Self::progress) finds none: others may wait
    /// for it.
    fn catch_up(&self) {}
}
