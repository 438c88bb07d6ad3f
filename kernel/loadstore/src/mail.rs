//! [`Mail`]: how notifications and their data travel from one rank to another.
//!
//! Every rank has rings of lines in memory that others store to. A *producer* takes a free line of
//! a ring, and stores an *entry* there: an immediate (the notification), the place of its data, and
//! short data themselves. The *owner* of the ring polls it, and takes the entries one by one. It
//! tells each producer how many lines it has taken, by a word beside the ring (`head`): these are
//! free again.
//!
//! [`LoadStore`](crate::LoadStore) is a link over any mail. It asks its mail before each access
//! that others may notice, since a mail may keep data that it has taken, and place them later. A
//! mail that keeps nothing need not answer: most verbs do nothing by default.
//!
//! # Which access waits for what
//! Nothing waits. A full ring refuses the producer ([`Refusal::Full`]), and the kernel asks again.

use flagpost_hal::{Lines, Machine};
use flagpost_link::{Arrival, Key, Op, Rank, Refusal, Wants};

use crate::{
    Atomics, Base, Ring,
    layout::{Layout, Parts},
};

/// The rings of a world: what a mail has chosen.
#[derive(Copy, Clone, Debug)]
pub struct Plan {
    /// Which rings.
    pub ring: Ring,
    /// The memory that they take.
    pub parts: Parts,
    /// Bytes of the message buffers that they may lie in.
    pub buffer: usize,
}

impl Plan {
    /// The layout for lines of `line` bytes and these `ranks`. With `native` atomic operations,
    /// which are for words of memory, a shared ring lies there.
    pub(crate) const fn layout(&self, line: usize, ranks: u16, native: bool) -> Layout {
        let for_rings = match self.ring {
            Ring::Shared { .. } if native => 0,
            _ => self.buffer,
        };
        Layout::new(line, ranks, self.ring, self.parts, for_rings)
    }

    /// Bytes of each rank's memory before the windows, for the same.
    pub const fn fixed_bytes(&self, line: usize, ranks: u16, native: bool) -> usize {
        self.layout(line, ranks, native).end as usize
    }
}

/// How notifications and their data travel: what [`LoadStore`](crate::LoadStore) is generic over.
///
/// # Contract
/// 1. The rank that takes a notification finds its data, by [`read_own`](Self::read_own); and the
///    earlier puts of its producer to this rank in memory.
/// 2. Notifications of one producer are taken in program order. None is lost: where there is no
///    room, the producer is refused, and has changed nothing, or its [`Op`] knows how much has
///    left.
/// 3. Data that are kept are placed before anybody is told anything, but by their producer.
/// 4. No verb waits.
pub trait Mail: Sized {
    /// The machine.
    type Machine: Machine;

    /// How words are changed that many ranks change.
    type Atomics: Atomics<Self::Machine>;

    /// True if the mail relies on caches that the hardware keeps in step, or on there being none.
    /// Then a flush needs no call of the target.
    const COHERENT: bool = false;

    /// [`Fast::FAST`](flagpost_link::Fast::FAST). Words by which two ranks answer each other lie
    /// in one line then.
    const FAST: bool = false;

    /// Of how many peers something is remembered: from 1 to 64.
    const PEERS: usize;

    // ---- Start-up ----

    /// The rings of a world over this machine: those `asked` for, or the default.
    fn plan(machine: &Self::Machine, asked: Option<Ring>) -> Plan;

    /// Nothing was sent.
    fn new(base: Base<Self::Machine, Self::Atomics>) -> Self;

    /// The machine, and where things are.
    fn base(&self) -> &Base<Self::Machine, Self::Atomics>;

    /// Empties this rank's rings, before any peer may use them.
    fn clear_rings(&self);

    // ---- Notifications ----

    /// Sends `immediate` to `to`, after `data` for a place in its memory. If `inline`, the data may
    /// reach their place later than the immediate is taken.
    ///
    /// # Errors
    /// [`Refusal::Full`], [`Refusal::Busy`], [`Refusal::Locked`], [`Refusal::NoSuchRank`].
    fn send(
        &self,
        to: Rank,
        data: (usize, &[u8]),
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal>;

    /// Takes the next notification, for a caller that waits for one such.
    fn take(&self, wants: Wants) -> Option<Arrival>;

    /// [`Fast::fast_put`](flagpost_link::Fast::fast_put).
    #[inline(always)]
    fn fast_send(&self, to: Rank, place: (Key, usize), data: &[u8], immediate: u32) -> bool {
        let _ = (to, place, data, immediate);
        false
    }

    /// [`Fast::fast_take`](flagpost_link::Fast::fast_take).
    #[inline(always)]
    fn fast_take(&self, wanted: u32, looks: u32) -> bool {
        let _ = (wanted, looks);
        false
    }

    /// Reads what has come without taking it, and places its data.
    #[inline(always)]
    fn attend(&self) {}

    /// Relaxes until something changes that the loop has polled.
    #[inline]
    fn relax(&self) {
        let base = self.base();
        base.polled.relax(&base.machine, core::iter::empty());
    }

    // ---- Order ----

    /// Something was stored at a peer, or loaded that others may store to once they are told.
    #[inline(always)]
    fn stored(&self) {}

    /// All that was stored is drained.
    #[inline(always)]
    fn drained(&self) {}

    /// True if a drain must come before an entry that announces what was stored before.
    fn must_drain(&self) -> bool;

    /// Drains what this rank has stored; false if inline data are in flight. `before_amo`: an
    /// atomic operation of the machine follows.
    fn has_settled(&self, before_amo: bool) -> bool;

    /// `Ok` if all data that this rank has sent in entries to `to` (to all, if none is named) are
    /// in their place.
    ///
    /// # Errors
    /// [`Refusal::Busy`] if not.
    fn placed(&self, to: Option<Rank>) -> Result<(), Refusal>;

    // ---- Kept data ----

    /// Before this rank tells `to` something, or, if nobody is named, changes bytes that others may
    /// look at.
    ///
    /// # Errors
    /// [`Refusal::Busy`] if a peer must place data first.
    #[inline(always)]
    fn before_telling(&self, to: Option<Rank>) -> Result<(), Refusal> {
        let _ = to;
        Ok(())
    }

    /// Before this rank accesses `owner`'s memory directly.
    ///
    /// # Errors
    /// [`Refusal::Busy`] if a peer must place data first.
    #[inline(always)]
    fn before_access(&self, owner: Rank) -> Result<(), Refusal> {
        let _ = owner;
        Ok(())
    }

    /// Before this rank's writes of these bytes.
    #[inline(always)]
    fn before_writing(&self, start: usize, len: usize) {
        let _ = (start, len);
    }

    /// Before a piece of this rank's memory becomes something else.
    #[inline(always)]
    fn before_withdrawing(&self) {}

    /// Reads this rank's bytes.
    fn read_own(&self, start: usize, into: &mut [u8]);

    /// Calls `act` with the lines of these bytes of this rank's memory, but for those that are kept
    /// in the cache.
    #[inline(always)]
    fn beside_kept(&self, start: usize, bytes: usize, mut act: impl FnMut(&[Lines])) {
        act(&[self.base().lines(start, bytes)]);
    }
}
