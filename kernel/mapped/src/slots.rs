//! Slots: counters with a single writer each.
//!
//! # Guarantee
//! G1. A peer that finds a slot at a value finds everything that the writer fenced before.
//!
//! # Invariants
//! I1. Each word has one writer at a time, so an uncached store needs no lock and no reset.
//! I2. Values rise by one (wrapping), from just below the wrap-around of `u32`, so that every run passes it; "reached" compares their distance as a signed number, so that a
//!     writer may run ahead of the reader by up to 2^31.
//!
//! # Steps
//! | call      | core   | memory actions, in order                                     |
//! |-----------|--------|--------------------------------------------------------------|
//! | `signal`  | writer | 1 uncached store to the target's region                      |
//! | `reached` | owner  | 1 uncached load of its own region; `acquire` if reached      |
//!
//! # Memory layout
//! The first 32 lie at a fixed place of the region (see the crate documentation). Others are allocated: in the message
//! buffer as long as it has room, since a core polls its own buffer fastest; else in memory.
//!
//! # Source
//! [foMPI] 2.3 uses a dissemination barrier over such words.
//!
//! [foMPI]: crate#sources

use flagpost_hal::{Address, Machine, Region};
use flagpost_link::{Link as _, Place, Rank, Refusal, Slot, point, site};

use crate::{Atomics, Mapped, layout::SLOTS, link::take};

/// What a slot holds before the first signal: the second wraps around.
const FIRST: u32 = 0_u32.wrapping_sub(2);

/// In a slot's number: it lies in the message buffer.
const BUFFER: u32 = 1 << 31;

impl<M: Machine, A: Atomics<M>> Mapped<M, A> {
    /// Where `slot` lies in `owner`'s memory or message buffer.
    fn slot_at(&self, owner: Rank, slot: Slot) -> Result<Address, Refusal> {
        let Region { owner, .. } = self.region_of(owner)?;
        let none = Refusal::NoSuchSlot(slot);
        let words = (slot.0 & !BUFFER).checked_mul(4).ok_or(none)?;
        let (region, offset, size) = if slot.0 & BUFFER != 0 {
            let size = self.machine.message_buffer_size();
            (Region::message_buffer(owner), words, size)
        } else {
            let base = if slot.0 < SLOTS { self.layout.slots } else { 0 };
            let offset = base.saturating_add(words);
            (Region::memory(owner), offset, self.machine.memory_size())
        };
        match offset.checked_add(4) {
            Some(end) if end <= size => Ok(region.at(offset)),
            _ => Err(none),
        }
    }

    /// Takes slots of the message buffer, which is the nearest memory to poll; of memory, if that is full.
    pub(crate) fn take_slots(&self, count: u32) -> Result<Slot, Refusal> {
        let bytes = count.saturating_mul(4);
        let first = match take(&self.buffer, bytes, Place::Symmetric) {
            Ok(start) => start.wrapping_shr(2) | BUFFER,
            // Behind the first ones: their numbers are their places.
            Err(_) => take(&self.memory, bytes, Place::Symmetric)?.wrapping_shr(2),
        };
        for index in 0..count {
            let at = self.slot_at(self.rank(), Slot(first).plus(index))?;
            self.machine.store_u32(at, FIRST);
        }
        Ok(Slot(first))
    }

    /// The inverse of [`Mapped::take_slots`].
    pub(crate) fn give_back_slots(&self, first: Slot) {
        // DRAIN: own stores to them do not come over what this memory becomes.
        point!("mapped.slots.withdraw.drain", self.machine.drain());
        let start = (first.0 & !BUFFER).saturating_mul(4);
        let heap = if first.0 & BUFFER != 0 {
            &self.buffer
        } else {
            &self.memory
        };
        heap.give_back(start);
    }

    /// Clears own slots, before any peer may signal one.
    pub(crate) fn clear_slots(&self) {
        for slot in 0..SLOTS {
            let offset = self.layout.slots.saturating_add(slot.saturating_mul(4));
            self.machine.store_u32(self.own(offset), FIRST);
        }
    }

    pub(crate) fn signal_slot(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal> {
        let at = self.slot_at(to, slot)?;
        // PLACE, WAIT: G2 of `held`.
        point!("mapped.slots.signal.told", self.before_telling(Some(to))?);
        self.machine.store_u32(at, FIRST.wrapping_add(value));
        self.stored();
        Ok(())
    }

    pub(crate) fn slot_reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal> {
        let at = self.slot_at(self.rank(), slot)?;
        let reached = |now: u32| (now.wrapping_sub(FIRST.wrapping_add(value)) as i32) >= 0;
        // ACQUIRE: G1: what was announced must not be loaded earlier than the slot.
        let sites = [
            site!("mapped.slots.reached.poll<acquire"),
            site!("mapped.slots.reached.acquire"),
        ];
        Ok(reached(self.poll_for(at, reached, sites)))
    }
}
