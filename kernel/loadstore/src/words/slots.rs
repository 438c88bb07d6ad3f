//! Slots: counters with a single writer each. A rank signals a peer by one store of the next
//! number, and the peer compares the number that it finds with the one that it waits for.
//! Collective calls, and epochs by default, tell each other by slots.
//!
//! # Guarantee
//! G1. A peer that finds a slot at a value finds everything that the writer fenced before.
//!
//! # Invariants
//! I1. Each word has one writer at a time, so an uncached store needs no lock and no reset.
//! I2. Values rise by one (wrapping), from just below the wrap-around of `u32`, so that every run
//!     passes it; "reached" compares their distance as a signed number, so that a writer may run
//!     ahead of the reader by up to 2^31.
//!
//! # Steps
//! | call      | core   | memory actions, in order                                     |
//! |-----------|--------|--------------------------------------------------------------|
//! | `signal`  | writer | 1 uncached store to the target's region                      |
//! | `reached` | owner  | 1 uncached load of its own region; `acquire` if reached      |
//!
//! # Memory layout
//! The first 32 lie at a fixed place of the region (see the crate documentation). Others are
//! allocated: in the message buffer as long as it has room, since a core polls its own buffer
//! fastest; else in memory.
//!
//! *Slots of pairs* of a mail with fast paths, for up to 16 ranks: a line per peer
//! in the region of the lower rank of each two, with all four words that they signal to each other.
//! Why: an answer that goes back through the line it answers takes one transfer between caches.
//! ```text
//!   0              4              8              12             16
//!   ┌──────────────┬──────────────┬──────────────┬──────────────┐
//!   │ first of the │ first of the │ second of    │ second of    │   by who signals it
//!   │ lower rank   │ higher rank  │ the lower    │ the higher   │
//!   └──────────────┴──────────────┴──────────────┴──────────────┘
//! ```
//!
//! # Source
//! [foMPI] 2.3 uses a dissemination barrier over such words.
//!
//! [foMPI]: crate#sources

use flagpost_hal::{
    Address, Coherence as _, CoreId, MessageBuffer as _, Region, Topology as _, UncachedMemory as _,
};
use flagpost_link::{Key, Link as _, Place, Rank, Refusal, Slot};

use crate::{LoadStore, Mail, layout::SLOTS, link::take};

/// The value of a slot before the first signal: the second wraps around.
const FIRST: u32 = 0_u32.wrapping_sub(2);

/// In a slot's number: it lies in the message buffer.
const BUFFER: usize = 1 << (usize::BITS - 1);

/// In a slot's number: it is one of [`PAIRED`] of pairs, which are in the lowest bits; the line
/// that they begin at is above.
const OF_PAIRS: usize = 1 << (usize::BITS - 2);
const PAIRED: usize = 32;

impl<W: Mail, const PIECES: usize> LoadStore<W, PIECES> {
    /// True if two ranks that answer each other do so in one line.
    const PAIRS: bool = W::FAST;

    /// True if `slot` is one of pairs.
    fn is_of_pairs(slot: Slot) -> bool {
        Self::PAIRS && slot.0 & OF_PAIRS != 0
    }

    /// Where `slot` lies in `owner`'s memory or message buffer.
    fn slot_at(&self, owner: Rank, slot: Slot) -> Result<Address, Refusal> {
        if owner.get() >= self.size() {
            return Err(Refusal::NoSuchRank(owner));
        }
        let found = if Self::is_of_pairs(slot) {
            self.slot_of_pair(owner, slot)
        } else {
            self.slot_of_rank(CoreId::new(owner.get()), slot)
        };
        found.ok_or(Refusal::NoSuchSlot(slot))
    }

    /// Where a slot lies that is not of pairs.
    #[inline]
    fn slot_of_rank(&self, owner: CoreId, slot: Slot) -> Option<Address> {
        let words = (slot.0 & !BUFFER).checked_mul(4)?;
        let (region, offset, size) = if slot.0 & BUFFER != 0 {
            let size = self.machine().message_buffer_size();
            (Region::message_buffer(owner), words, size)
        } else {
            let base = if slot.0 < SLOTS as usize {
                self.base().layout.slots as usize
            } else {
                0
            };
            let offset = base.saturating_add(words);
            (Region::memory(owner), offset, self.machine().memory_size())
        };
        let end = offset.checked_add(4)?;
        (end <= size).then(|| region.at(offset))
    }

    /// Where a slot of pairs lies that is `owner`'s to look at.
    #[inline]
    fn slot_of_pair(&self, owner: Rank, slot: Slot) -> Option<Address> {
        let (number, size) = (slot.0 % PAIRED, usize::from(self.size()));
        let line = (slot.0 & !(OF_PAIRS | BUFFER)).wrapping_shr(PAIRED.trailing_zeros());
        let is_second = number >= size;
        let writer = if is_second {
            number.wrapping_sub(size)
        } else {
            number
        };
        let owner = owner.index();
        if writer >= size {
            return None;
        }
        let (low, high) = (owner.min(writer), owner.max(writer));
        let word = usize::from(is_second)
            .wrapping_mul(8)
            .wrapping_add(usize::from(writer == high).wrapping_mul(4));
        let offset = line
            .wrapping_add(high)
            .wrapping_mul(Self::LINE)
            .wrapping_add(word);
        let end = offset.checked_add(4)?;
        (end <= self.machine().memory_size())
            .then(|| Region::memory(CoreId::new(low as u16)).at(offset))
    }

    /// Takes slots of pairs.
    pub(crate) fn take_slots_of_pairs(&self) -> Result<Slot, Refusal> {
        let (size, line) = (usize::from(self.size()), Self::LINE);
        let count = size.saturating_mul(2);
        if !Self::PAIRS || count > PAIRED {
            return self.take_slots(count);
        }
        let bytes = size.saturating_mul(line);
        let piece = take(&self.memory, bytes, Place::Symmetric)?;
        let start = self.memory.bytes(piece);
        let number = start
            .wrapping_shr(line.trailing_zeros())
            .checked_mul(PAIRED);
        let Some(number) = number.filter(|&number| number < OF_PAIRS) else {
            // Too far up to be told.
            self.memory.give_back(piece);
            return self.take_slots(count);
        };
        for step in 0..bytes / 4 {
            let at = self.base().own(start.wrapping_add(step.wrapping_mul(4)));
            self.machine().store_u32(at, FIRST);
        }
        Ok(Slot(number | OF_PAIRS))
    }

    /// Takes slots of the message buffer, which is the nearest memory to poll; of memory, if that
    /// is full.
    pub(crate) fn take_slots(&self, count: usize) -> Result<Slot, Refusal> {
        let bytes = count.saturating_mul(4);
        let first = match take(&self.buffer, bytes, Place::Symmetric) {
            Ok(start) => (start as usize).wrapping_shr(2) | BUFFER,
            // After the first ones: their numbers are their places.
            Err(_) => {
                let piece = take(&self.memory, bytes, Place::Symmetric)?;
                self.memory.bytes(piece).wrapping_shr(2)
            }
        };
        self.renew(Slot(first), count as u32)?;
        Ok(Slot(first))
    }

    /// Stores that this rank's slots have not been signalled.
    pub(crate) fn renew(&self, first: Slot, count: u32) -> Result<(), Refusal> {
        for index in 0..count {
            let at = self.slot_at(self.rank(), first.plus(index as usize))?;
            self.machine().store_u32(at, FIRST);
        }
        Ok(())
    }

    /// The inverse of `take_slots`.
    pub(crate) fn give_back_slots(&self, first: Slot) {
        point!(DRAIN "this rank's stores do not come over what this memory becomes":
            "loadstore.slots.withdraw.drain", self.machine().drain());
        let words = (first.0 & !BUFFER).saturating_mul(4);
        let start = if Self::is_of_pairs(first) {
            let line = (first.0 & !OF_PAIRS).wrapping_shr(PAIRED.trailing_zeros());
            line.saturating_mul(Self::LINE)
        } else {
            words
        };
        if !Self::is_of_pairs(first) && first.0 & BUFFER != 0 {
            self.buffer.give_back(words as u32);
        } else {
            self.memory.give_back(Key::at(start, Self::LINE).get());
        }
    }

    /// Clears this rank's slots, before any peer may signal one.
    pub(crate) fn clear_slots(&self) {
        // All of them are there.
        let _ = self.renew(Slot(0), SLOTS);
    }

    pub(crate) fn signal_slot(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal> {
        let at = self.slot_at(to, slot)?;
        point!(PLACE "D2 of `deferred`: the owner waits for its slot":
            "loadstore.slots.signal.told", self.mail.before_telling(Some(to))?);
        self.machine().store_u32(at, FIRST.wrapping_add(value));
        self.mail.stored();
        self.base().told(to);
        Ok(())
    }

    pub(crate) fn slot_reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal> {
        let at = self.slot_at(self.rank(), slot)?;
        let reached = |now: u32| (now.wrapping_sub(FIRST.wrapping_add(value)) as i32) >= 0;
        let sites = [
            site!(ORDER "loaded before the acquire": "loadstore.slots.reached.poll<acquire"),
            site!(ACQUIRE "G1: what it announces comes after it":
                "loadstore.slots.reached.acquire"),
        ];
        Ok(reached(self.base().poll_for(at, reached, sites)))
    }
}
