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
//! # Source
//! [foMPI] 2.3 uses a dissemination barrier over such words.
//!
//! [foMPI]: crate#sources

use flagpost_hal::Machine;
use flagpost_link::{Rank, Refusal, Slot, site};

use crate::{Mapped, layout::SLOTS};

/// What a slot holds before the first signal: the second wraps around.
const FIRST: u32 = 0_u32.wrapping_sub(2);

impl<M: Machine> Mapped<M> {
    fn slot_offset(&self, slot: Slot) -> Result<u32, Refusal> {
        if slot.0 >= SLOTS {
            return Err(Refusal::NoSuchSlot(slot));
        }
        let words = u32::from(slot.0).saturating_mul(4);
        Ok(self.layout.slots.saturating_add(words))
    }

    /// Clears own slots, before any peer may signal one.
    pub(crate) fn clear_slots(&self) {
        for slot in 0..u32::from(SLOTS) {
            let offset = self.layout.slots.saturating_add(slot.saturating_mul(4));
            self.machine.store_u32(self.own(offset), FIRST);
        }
    }

    pub(crate) fn signal_slot(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal> {
        let at = self.region_of(to)?.at(self.slot_offset(slot)?);
        self.machine.store_u32(at, FIRST.wrapping_add(value));
        Ok(())
    }

    pub(crate) fn slot_reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal> {
        let at = self.own(self.slot_offset(slot)?);
        let reached = |now: u32| (now.wrapping_sub(FIRST.wrapping_add(value)) as i32) >= 0;
        // ACQUIRE: G1: what was announced must not be loaded earlier than the slot.
        let sites = [
            site!("mapped.slots.reached.poll<acquire"),
            site!("mapped.slots.reached.acquire"),
        ];
        Ok(reached(self.poll_for(at, reached, sites)))
    }
}
