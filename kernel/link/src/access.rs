//! [`Access`]: access to the memory of all ranks. A link puts and gets bytes, changes cells in one
//! step, and orders and places what was put. No call waits: a call that cannot be done now is
//! refused, and the kernel repeats it.

#[cfg(doc)]
use crate::Telling;
use crate::{Amo, Key, Op, Rank, Refusal, Width};

/// Access to the memory of all ranks, this rank's included: put, get, atomic operations, and what
/// orders and completes them.
///
/// # Contract
/// 1. A call never waits. A call that cannot be done now is refused and changes nothing; the kernel
///    repeats the call.
/// 2. A call that takes an [`Op`] may begin its operation and be refused with [`Refusal::Busy`].
///    A call with the same `Op` and the same arguments continues it, and never begins it again.
/// 3. Data that are given as a slice are copied, or have left, when the call returns.
/// 4. All accesses go past the caches. Accesses to this rank's memory are done when the call
///    returns.
/// 5. Two puts arrive in any order. `fence` orders; `flush` completes.
/// 6. `amo` and `update` of the same bytes take effect one after the other, from whatever ranks.
///    An `amo` has its effect before the call that gives its answer returns.
///
/// # Refusals
/// [`Refusal::Busy`] and [`Refusal::Locked`] pass; the others stay. [`Refusal::PeerLost`]: nothing
/// that was on its way to the rank can be relied on.
pub trait Access {
    /// `Ok` if `to` has started up and may be accessed. The kernel asks for this rank first: until
    /// that is `Ok`, it uses nothing else of the link that peers reach. Then it asks once for each
    /// peer that it accesses before the first barrier; after a barrier all ranks are up.
    ///
    /// # Errors
    /// [`Refusal::NotReady`] until then, with a rank that has not started.
    fn connect(&self, to: Rank) -> Result<(), Refusal>;

    /// Stores `data` in `to`'s memory. The data arrive in any order with other puts, before what
    /// follows a [`fence`](Self::fence).
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient); [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`],
    /// [`Refusal::PeerLost`].
    fn put(&self, to: Rank, key: Key, offset: usize, data: &[u8]) -> Result<(), Refusal>;

    /// Loads from `from`'s memory; `into` is filled once the answer is `Ok`.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient); [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`],
    /// [`Refusal::PeerLost`].
    fn get(
        &self,
        from: Rank,
        key: Key,
        offset: usize,
        into: &mut [u8],
        op: &Op,
    ) -> Result<(), Refusal>;

    /// Does `amo` to the cell of 8 bytes at `offset`, and gives the cell's former value. All ranks,
    /// the owner included, read cells that peers change by this call and by [`Telling::watch`]
    /// only.
    ///
    /// Calls that the rank begins after the answer come after the operation. The operation orders
    /// nothing else. A call that reads [half](Width::Half) a cell, or the link's
    /// [`Word`](crate::Link::Word), notes what it polled, for loops that wait.
    ///
    /// # Errors
    /// [`Refusal::Busy`] and [`Refusal::Locked`] (transient); [`Refusal::OutOfRange`],
    /// [`Refusal::BadCell`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn amo(
        &self,
        to: Rank,
        key: Key,
        offset: usize,
        amo: Amo,
        width: Width,
        op: &Op,
    ) -> Result<u64, Refusal>;

    /// Loads `len` bytes, lets `change` change them, and stores them: in one step, as far as
    /// [`amo`](Self::amo) and `update` of these bytes by any rank can see. A link may call `change`
    /// several times; the last call counts.
    ///
    /// # Errors
    /// [`Refusal::Busy`] and [`Refusal::Locked`] (transient); [`Refusal::OutOfRange`],
    /// [`Refusal::BadCell`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn update(
        &self,
        to: Rank,
        key: Key,
        offset: usize,
        len: usize,
        change: &mut dyn FnMut(&mut [u8]),
        op: &Op,
    ) -> Result<(), Refusal>;

    /// The kernel does not ask for `op`'s answer any more. The operation has its effect all the
    /// same; of a [`Telling::put_immediate`] that left in part, perhaps only that part. Afterwards
    /// `op` is as a new one. The default is for links that keep no answers.
    #[inline]
    fn abandon(&self, op: &Op) {
        op.begun.set(0);
        op.seen.set(0);
    }

    /// Orders this rank's earlier puts and changes of cells before its later signals, immediates,
    /// puts and changes of cells, to all ranks.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient), [`Refusal::PeerLost`]: once for each rank at which an
    /// operation was lost.
    fn fence(&self) -> Result<(), Refusal>;

    /// `Ok` if all that this rank has begun at `to` (at all ranks, if none is named) is done there:
    /// a rank that looks now finds it. Data that this rank gets afterwards are not older than what
    /// it got before. Of inline data of a [`Telling::put_immediate`] it is refused until they are
    /// in place: on a link that is not passive until the next [`Telling::progress`] or
    /// [`Telling::attend`] of `to`.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient) until then; [`Refusal::NoSuchRank`]; [`Refusal::PeerLost`] as
    /// from `fence`, and once if the rank is named, whatever fences have said.
    fn flush(&self, to: Option<Rank>) -> Result<(), Refusal>;
}
