//! The contract of a network with remote memory access.
//!
//! A core posts operations on the registered memory of others, and polls for events: one of its
//! operations is done or has failed, or a peer has sent an immediate. Nothing blocks. Nothing is
//! ordered, unless the fabric says that it orders puts. The contract of [`Fabric`] says the rest.

use core::{fmt, panic::Location};

use crate::{Amo, CoreId};

/// One core's end of a network with remote memory access.
///
/// # Contract
/// * F1. Nothing blocks, except [`relax`](Self::relax), which may.
/// * F2. Every operation that was posted is done, once, at any later time and in any order with
///   others, to the same target and to the same bytes too; or it fails, if its target is gone. An
///   [`Event`] says that it has happened.
/// * F3. An immediate arrives after the data of its operation.
/// * F4. Nothing is lost: an immediate for which its target's completion queue has no room waits.
/// * F5. Events come in the order in which they happened here.
/// * F6. Operations on one cell of 8 bytes do not overlap. Nothing is promised of a cell that other
///   accesses reach, too.
/// * F7. A core's memory shows, some time, what the network has stored in it, and its changes of
///   cells. Only events say when, and in which order.
/// * F8. The network works although the target computes: [`poll`](Self::poll) is needed for the
///   core's events only. A fabric of which that is not true says so; it works, at the least, while
///   the target polls, waits or accesses memory through this trait.
/// * F9. Where the fabric [orders puts](Self::orders_puts), a put with an immediate, or one that is
///   [confirmed](Work::Put::confirmed), takes effect after all puts that were posted before it to
///   the same target. A put that is not confirmed has no event; a later confirmed put tells of it.
///   Nothing else is ordered. A put that has no immediate and is not confirmed may overtake other
///   puts. Gets and changes of cells may overtake puts, and puts may overtake them.
pub trait Fabric {
    /// True if [`called`](Self::called) does anything.
    const LISTENS: bool = false;

    /// The core that this end belongs to.
    fn core(&self) -> CoreId;

    /// The number of cores.
    fn cores(&self) -> u16;

    /// Bytes of registered memory; the same on all cores.
    fn memory_size(&self) -> usize;

    /// True if puts wait for earlier ones to the same target (F9). The same on all cores, at all
    /// times.
    fn orders_puts(&self) -> bool {
        false
    }

    /// Loads from this core's registered memory.
    fn read(&self, at: usize, into: &mut [u8]);

    /// Stores to this core's registered memory, before anything that is posted later.
    fn write(&self, at: usize, from: &[u8]);

    /// Makes the `len` bytes at `at` of this core's registered memory zeros, if the fabric has a
    /// way that costs less than stores do. False if nothing has happened: the default has no way.
    fn zero(&self, at: usize, len: usize) -> bool {
        let _ = (at, len);
        false
    }

    /// Loads the bytes at `at` of the memory of `from`, another core, if the fabric can do that
    /// before it returns. If it cannot, a [`Work::Get`] does it. The default cannot.
    fn load(&self, from: CoreId, at: usize, into: &mut [u8]) -> bool {
        let _ = (from, at, into);
        false
    }

    /// Begins `work` at `to`, which is another core unless the work is on a cell. Its event, if it
    /// has one, will bear `id`. Places are offsets in registered memory, and inside of it; data are
    /// copied.
    ///
    /// # Errors
    /// [`SendQueueFull`]: again after the next event, or after [`relax`](Self::relax).
    fn post(&self, id: u32, to: CoreId, work: Work<'_>) -> Result<(), SendQueueFull>;

    /// The oldest event that was not taken yet.
    fn poll(&self) -> Option<Event>;

    /// The program has called Flagpost at `place`: for accounts of a run; the default ignores it.
    #[inline(always)]
    fn called(&self, place: &'static Location<'static>) {
        let _ = place;
    }

    /// A core that will not answer any more, if that is known other than by a failure. Waiting
    /// loops ask between two polls. The default is for fabrics that learn it from failures only.
    fn lost(&self) -> Option<CoreId> {
        None
    }

    /// True if `core` will not answer any more. Others may be lost after the one that
    /// [`lost`](Self::lost) names; the default does not know of them.
    fn is_lost(&self, core: CoreId) -> bool {
        self.lost() == Some(core)
    }

    /// True if `core` has ended its program in order (any core, if none is named). The events of
    /// what it has sent come before. Its memory may still be there. The default is for fabrics that
    /// do not learn of an end.
    fn has_left(&self, core: Option<CoreId>) -> bool {
        let _ = core;
        false
    }

    /// Says what this core waits for, and where: as [`Relax::waits`](crate::Relax::waits).
    #[inline(always)]
    fn waits(&self, what: fmt::Arguments<'_>) {
        let _ = what;
    }

    /// Gives time to others. Returns when there is an event, or when one of `watched` differs, or
    /// for no reason.
    fn relax(&self, watched: &[Watched]);

    /// Gives time to others, and returns.
    fn pause(&self);

    /// A clock, in ticks that never go back.
    fn now(&self) -> u64;

    /// Ticks of [`now`](Self::now) per second.
    fn ticks_per_second(&self) -> u64;
}

/// An operation at a peer.
#[derive(Copy, Clone, Debug)]
pub enum Work<'a> {
    /// Stores `data`, if any; then `immediate`, if any, arrives in the completion queue there.
    Put {
        /// The place at the target.
        at: usize,
        /// The bytes.
        data: &'a [u8],
        /// 32 bits for the target.
        immediate: Option<u32>,
        /// True if an event comes when this put is in place at the target, and, where puts are
        /// ordered, all that were posted before it to the same target. A put may be without an
        /// event only where puts are ordered.
        confirmed: bool,
    },
    /// Loads.
    Get {
        /// The place at the target.
        at: usize,
        /// The place in this core's memory.
        into: usize,
        /// The number of bytes.
        len: usize,
    },
    /// Changes a cell of 8 bytes; the event bears its former value.
    Amo {
        /// The place at the target: a multiple of 8.
        at: usize,
        /// The change.
        amo: Amo,
    },
}

/// An entry of a completion queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An operation of this core is done: its data are in place, there or here.
    Done {
        /// Its number.
        id: u32,
        /// The former value of a cell.
        value: u64,
    },
    /// An operation of this core has failed, because its target is gone. It may have had its
    /// effect, in part.
    Failed {
        /// Its number.
        id: u32,
    },
    /// A peer's immediate.
    Immediate {
        /// The peer.
        from: CoreId,
        /// Its 32 bits.
        immediate: u32,
    },
}

/// A word of this core's memory, and its value at the last poll.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The place: a multiple of 4.
    pub at: usize,
    /// The value.
    pub seen: u32,
}

/// As many operations are in flight as there can be.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SendQueueFull;
