//! [`Access`]: access to the memory of all ranks.

#[cfg(doc)]
use crate::Telling;
use crate::{Amo, Key, Op, Rank, Refusal, Width};

/// Access to the memory of all ranks, this rank's included: put, get, atomic operations, and what
/// orders and completes them.
///
/// # Contract
/// 1. A call never waits. What cannot be done now is refused and changes nothing; the kernel
///    repeats the call.
/// 2. A call that takes an [`Op`] may begin its operation and be refused with [`Refusal::Busy`].
///    A call with the same `Op` and the same arguments continues it, and never begins it again.
/// 3. Data that are given as a slice are copied, or have left, when the call returns.
/// 4. All accesses go past the caches. Accesses to own memory are done when the call returns.
/// 5. Two puts arrive in any order. `fence` orders; `flush` completes.
/// 6. `amo` and `update` of the same bytes take effect one after the other, from whatever ranks.
///    An `amo` has its effect before the call that gives its answer returns.
///
/// # Refusals
/// [`Refusal::Busy`] and [`Refusal::Locked`] pass; the others stay. [`Refusal::PeerLost`]: nothing
/// that was on its way to the rank can be relied on.
pub trait Access {
    /// Whether `to` has started up and may be accessed. Needed once per peer that is accessed
    /// before the first barrier; who has passed a barrier knows that everybody is up.
    ///
    /// # Errors
    /// [`Refusal::NotReady`] until then.
    fn connect(&self, to: Rank) -> Result<(), Refusal>;

    /// Stores `data` in `to`'s memory. Arrives in any order with other puts, before what follows a
    /// [`fence`](Self::fence). To own memory: past the cache, at once.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient); [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`],
    /// [`Refusal::PeerLost`].
    fn put(&self, to: Rank, key: Key, offset: u32, data: &[u8]) -> Result<(), Refusal>;

    /// Loads from `from`'s memory; `into` is filled once the answer is `Ok`. From own memory: past
    /// the cache, at once.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient); [`Refusal::OutOfRange`], [`Refusal::NoSuchRank`],
    /// [`Refusal::PeerLost`].
    fn get(
        &self,
        from: Rank,
        key: Key,
        offset: u32,
        into: &mut [u8],
        op: &Op,
    ) -> Result<(), Refusal>;

    /// Does `amo` to the cell of 8 bytes at `offset`, at once as far as other `amo`s and
    /// [`update`](Self::update)s can see, and gives its former value. Cells that peers change are
    /// only read by this and by [`watch`](Telling::watch), their owner's included. What is begun after
    /// the answer comes behind it; it orders nothing else. For waiting loops: one that reads
    /// [half](Width::Half) a cell notes what it looked at.
    ///
    /// # Errors
    /// [`Refusal::Busy`] and [`Refusal::Locked`] (transient); [`Refusal::OutOfRange`],
    /// [`Refusal::BadCell`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn amo(
        &self,
        to: Rank,
        key: Key,
        offset: u32,
        amo: Amo,
        width: Width,
        op: &Op,
    ) -> Result<u64, Refusal>;

    /// Loads `len` bytes, lets `change` change them, and stores them, at once as far as others'
    /// [`amo`](Self::amo)s and `update`s of these bytes can see. `change` may be called several
    /// times; the last call counts.
    ///
    /// # Errors
    /// [`Refusal::Busy`] and [`Refusal::Locked`] (transient); [`Refusal::OutOfRange`],
    /// [`Refusal::BadCell`], [`Refusal::NoSuchRank`], [`Refusal::PeerLost`].
    fn update(
        &self,
        to: Rank,
        key: Key,
        offset: u32,
        len: usize,
        change: &mut dyn FnMut(&mut [u8]),
        op: &Op,
    ) -> Result<(), Refusal>;

    /// Nobody asks for `op`'s answer any more: what was begun has its effect all the same (of a
    /// [`put_immediate`](Telling::put_immediate) that left in part, perhaps that part), and `op` is as
    /// a new one.
    #[inline]
    fn abandon(&self, op: &Op) {
        op.begun.set(0);
        op.seen.set(0);
    }

    /// Orders this rank's earlier puts and cells' changes before its later signals, immediates,
    /// puts and cells' changes, to all ranks.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient), [`Refusal::PeerLost`]: once for each rank at which something
    /// came to nothing.
    fn fence(&self) -> Result<(), Refusal>;

    /// Whether all that this rank has begun at `to` (at all ranks, if none is named) is done there:
    /// whoever looks now finds it. What this rank gets afterwards is not older than what it got
    /// before. Waits for `to`'s [`progress`](Telling::progress) if data of a
    /// [`put_immediate`](Telling::put_immediate) are inline.
    ///
    /// # Errors
    /// [`Refusal::Busy`] (transient) until then; [`Refusal::NoSuchRank`]; [`Refusal::PeerLost`] as
    /// a fence, and once if the rank is named, whatever fences have told.
    fn flush(&self, to: Option<Rank>) -> Result<(), Refusal>;
}
