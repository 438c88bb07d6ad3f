//! Where things are in each rank's region: see the crate documentation. All ranks compute the same
//! offsets from the machine's sizes, and from the rings that the mail wants. So a rank finds a
//! peer's words without asking.

use flagpost_hal::{Address, CoreId, Region};

use crate::{
    build::BUILD,
    ring::{Ring, three_quarters},
};

/// Words of the slots.
pub(crate) const SLOTS: u32 = 32;

/// Scratch bytes per rank.
pub(crate) const SCRATCH_PER_RANK: u32 = 56;

/// Bytes that one update may change: one hold of the lock, one line on most machines.
pub(crate) const UPDATE: usize = 32;

/// Bytes that the slots of a window take for each rank.
const SLOTS_OF_WINDOW: u32 = 8;

/// The memory that a mail's rings take.
#[derive(Copy, Clone, Debug)]
pub struct Parts {
    /// Bytes of an entry, a power of two.
    pub entry: u32,
    /// Bytes before the first ring's entries, for bells.
    pub bells: u32,
    /// Bytes after the last ring's.
    pub behind: u32,
}

/// Where each rank stores the session that it has begun, whatever the layout.
pub(crate) const ARRIVED: usize = 4;

/// Offsets of the fixed part: of 32 bits on every machine, since it is small.
#[derive(Copy, Clone, Debug)]
pub struct Layout {
    pub(crate) ready: u32,
    pub(crate) slots: u32,
    pub(crate) scratch: u32,
    /// The first byte of memory after the fixed part: a multiple of the line.
    pub(crate) end: u32,
    /// The first byte of the message buffer after the fixed part: a multiple of the line.
    pub(crate) buffer_end: u32,
    /// Which rings there are.
    pub ring: Ring,
    /// True if the rings' parts, which follow, lie in message buffers.
    pub in_buffer: bool,
    pub(crate) tail: u32,
    pub(crate) heads: u32,
    bells: u32,
    entries: u32,
    behind: u32,
}

impl Layout {
    /// The layout for lines of `line` bytes (a power of two, at most 256: so sums cannot overflow
    /// but where they saturate), such rings, and a message buffer of `buffer` bytes.
    pub const fn new(line: usize, ranks: u16, ring: Ring, parts: Parts, buffer: usize) -> Self {
        let (line, buffer) = (line as u32, buffer as u32);
        let slots = round_up((BUILD as u32).saturating_add(4), line);
        let scratch = round_up(slots.saturating_add(SLOTS.saturating_mul(4)), line);
        let scratch_bytes = SCRATCH_PER_RANK.saturating_mul(ranks as u32);
        let fixed = round_up(scratch.saturating_add(scratch_bytes), line);

        let rings = ring.rings(ranks);
        let lines = rings.saturating_mul(ring.entries());
        let heads = round_up(rings.saturating_mul(4), line);
        let bells = round_up(parts.bells, line);
        let before = line.saturating_add(heads).saturating_add(bells);
        let bytes_of_entries = lines.saturating_mul(parts.entry);
        let bytes = before
            .saturating_add(bytes_of_entries)
            .saturating_add(parts.behind);
        // Many ranks' slots of windows need the room more than a ring that all share.
        let others = if ring.of_pairs() {
            0
        } else {
            SLOTS_OF_WINDOW.saturating_mul(ranks as u32)
        };
        let in_buffer =
            bytes_of_entries <= three_quarters(buffer) && bytes.saturating_add(others) <= buffer;
        let tail = if in_buffer { 0 } else { fixed };
        let rings_end = tail.saturating_add(bytes);
        Self {
            ready: 0,
            slots,
            scratch,
            end: if in_buffer { fixed } else { rings_end },
            buffer_end: if in_buffer { rings_end } else { 0 },
            ring,
            in_buffer,
            tail,
            heads: tail.saturating_add(line),
            bells: tail.saturating_add(line).saturating_add(heads),
            entries: tail.saturating_add(before),
            behind: rings_end.saturating_sub(parts.behind),
        }
    }

    // ---- Rings ----

    /// The region of `core` that its rings are in.
    #[inline]
    pub const fn rings_in(&self, core: CoreId) -> Region {
        if self.in_buffer {
            Region::message_buffer(core)
        } else {
            Region::memory(core)
        }
    }

    /// The entry of `ticket`, of `bytes` each, in ring `number`.
    #[inline]
    pub const fn entry(&self, rings: Region, number: u32, ticket: u32, bytes: u32) -> Address {
        let entries = self.ring.entries();
        let index = ticket & entries.wrapping_sub(1);
        // Nothing wraps: all entries lie in a region.
        let index = number.wrapping_mul(entries).wrapping_add(index);
        rings.at(self.entries.wrapping_add(index.wrapping_mul(bytes)) as usize)
    }

    /// The word in which the owner tells how far ring `number` was taken.
    #[inline]
    pub const fn head(&self, rings: Region, number: u32) -> Address {
        rings.at(self.heads.wrapping_add(number.wrapping_mul(4)) as usize)
    }

    /// The byte `number` of the bells.
    #[inline]
    pub const fn bell(&self, rings: Region, number: u32) -> Address {
        rings.at(self.bells.wrapping_add(number) as usize)
    }

    /// Byte `number` after the last ring, from the start of the region.
    #[inline]
    pub const fn behind(&self, number: u32) -> u32 {
        self.behind.saturating_add(number)
    }

    /// True if a ring has no room for `ticket`, as far as `credit` tells. A ticket that was loaded
    /// too early may be before it: there is room for the next one.
    #[inline]
    pub const fn is_full(&self, ticket: u32, credit: u32) -> bool {
        ticket.wrapping_sub(credit) as i32 >= self.ring.entries() as i32
    }

    /// The [phase](crate::phase) of the lap of a ring that `ticket` is in.
    #[inline]
    pub const fn phase(&self, ticket: u32) -> u32 {
        // A power of two: so the lap is the ticket without its low bits.
        let lap = ticket.wrapping_shr(self.ring.entries().trailing_zeros());
        lap.wrapping_shl(31)
    }
}

/// `value` rounded up to a multiple of `line`, a power of two; saturates at the last multiple.
pub const fn round_up(value: u32, line: u32) -> u32 {
    let mask = line.wrapping_sub(1);
    match value.checked_add(mask) {
        Some(sum) => sum & !mask,
        None => !mask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_aligned_and_do_not_overlap() {
        let rings = [
            Ring::Shared { entries: 64 },
            Ring::Pairs { entries: 16 },
            Ring::Bells { entries: 2 },
        ];
        for (line, entry) in [(4, 32), (16, 32), (32, 32), (64, 64), (64, 32), (256, 256)] {
            for (ranks, buffer) in [
                (2, 0),
                (8, 64 << 10),
                (2, 8 << 10),
                (48, 8 << 10),
                (1024, 0),
            ] {
                for (ring, bells, behind) in rings
                    .into_iter()
                    .flat_map(|ring| [(ring, 0, 0), (ring, ranks.into(), 512)])
                {
                    let parts = Parts {
                        entry,
                        bells,
                        behind,
                    };
                    let l = Layout::new(line, ranks, ring, parts, buffer);
                    assert!(l.ready as usize + 4 <= ARRIVED && ARRIVED + 4 <= BUILD);
                    assert!(BUILD + 4 <= l.slots as usize);
                    assert!(l.slots + 4 * SLOTS <= l.scratch);
                    let scratch_end = l.scratch + SCRATCH_PER_RANK * u32::from(ranks);
                    let end = if l.in_buffer { l.buffer_end } else { l.end };
                    assert!(l.in_buffer || scratch_end <= l.tail);
                    assert!(l.in_buffer || l.buffer_end == 0);
                    assert!(scratch_end <= l.end && l.buffer_end as usize <= buffer);
                    let rings = l.ring.rings(ranks);
                    assert!(l.tail + 4 <= l.heads && l.heads + 4 * rings <= l.bells);
                    assert!(l.bells + bells <= l.entries);
                    assert_eq!(l.behind - l.entries, rings * l.ring.entries() * entry);
                    assert_eq!(end - l.behind, behind);
                    for part in [
                        l.slots, l.scratch, l.tail, l.heads, l.bells, l.entries, l.behind, l.end,
                    ] {
                        assert_eq!(part as usize % line, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn rounding_saturates() {
        assert_eq!(round_up(1, 32), 32);
        assert_eq!(round_up(32, 32), 32);
        assert_eq!(round_up(u32::MAX, 32), !31);
    }
}
