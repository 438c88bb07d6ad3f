//! Where things are in each rank's region: see the crate documentation.

use crate::mail::{
    records::{has_facing, line_of},
    ring::{Ring, half},
};

/// Words of the slots.
pub(crate) const SLOTS: u32 = 32;

/// Most entries of a ring.
pub(crate) const MOST_ENTRIES: u32 = 1 << 15;

/// Scratch bytes per rank.
pub(crate) const SCRATCH_PER_RANK: u32 = 32;

/// Bytes that the slots of two windows take for each rank.
const SLOTS_OF_WINDOWS: u32 = 16;

/// Most peers of which something is remembered: most ranks with a ring per pair.
pub(crate) const PAIRS: usize = 64;

/// Offsets of the fixed part.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) ready: u32,
    pub(crate) arrived: u32,
    pub(crate) slots: u32,
    pub(crate) scratch: u32,
    /// The first byte of memory behind the fixed part: a multiple of the line.
    pub(crate) end: u32,
    /// The first byte of the message buffer behind the fixed part: a multiple of the line.
    pub(crate) buffer_end: u32,
    pub(crate) ring: Ring,
    /// Whether the rings' parts, which follow, lie in the message buffer.
    pub(crate) in_buffer: bool,
    pub(crate) tail: u32,
    pub(crate) heads: u32,
    /// Where the ring has any.
    pub(crate) bells: u32,
    pub(crate) entries: u32,
    /// Where [facing](crate::mail::records) entries are, and whether there are any.
    pub(crate) facing: u32,
    pub(crate) faces: bool,
    /// For rings of pairs: how many of a ring are behind its first, and the places from a ticket's
    /// bit that tells laps apart to the top one.
    pub(crate) mask: u32,
    pub(crate) to_top: u32,
}

impl Layout {
    /// The layout for lines of `line` bytes (a power of two, at most 256: so sums cannot overflow
    /// but where they saturate), such rings with entries of `entry` bytes, a power of two, and a
    /// message buffer of `buffer` bytes; where entries are `records`, or not.
    pub(crate) const fn new(
        (line, records): (u32, bool),
        entry: u32,
        ranks: u16,
        ring: Ring,
        buffer: u32,
    ) -> Self {
        let slots = round_up(8, line);
        let scratch = round_up(slots.saturating_add(SLOTS.saturating_mul(4)), line);
        let scratch_bytes = SCRATCH_PER_RANK.saturating_mul(ranks as u32);
        let fixed = round_up(scratch.saturating_add(scratch_bytes), line);

        let rings = ring.rings(ranks);
        let lines = rings.saturating_mul(ring.entries());
        let heads = round_up(rings.saturating_mul(4), line);
        let bells = match ring {
            Ring::Bells { .. } => round_up(rings, line),
            _ => 0,
        };
        let before = line.saturating_add(heads).saturating_add(bells);
        let bytes_of_entries = lines.saturating_mul(entry);
        let faces = has_facing(records, ring, ranks);
        let facing = if faces {
            line_of(entry, line).saturating_mul(ranks as u32)
        } else {
            0
        };
        let bytes = before
            .saturating_add(bytes_of_entries)
            .saturating_add(facing);
        // Many ranks' slots of windows need the room more than a ring that all share.
        let others = if ring.of_pairs() {
            0
        } else {
            SLOTS_OF_WINDOWS.saturating_mul(ranks as u32)
        };
        let in_buffer = bytes_of_entries <= half(buffer) && bytes.saturating_add(others) <= buffer;
        let tail = if in_buffer { 0 } else { fixed };
        let entries = tail.saturating_add(before);
        let rings_end = tail.saturating_add(bytes);
        Self {
            ready: 0,
            arrived: 4,
            slots,
            scratch,
            end: if in_buffer { fixed } else { rings_end },
            buffer_end: if in_buffer { rings_end } else { 0 },
            ring,
            in_buffer,
            tail,
            heads: tail.saturating_add(line),
            bells: tail.saturating_add(line).saturating_add(heads),
            entries,
            facing: rings_end.saturating_sub(facing),
            faces,
            mask: ring.entries().wrapping_sub(1),
            to_top: 31_u32.wrapping_sub(ring.entries().trailing_zeros()),
        }
    }
}

/// Size of a ring entry: a line, but at least 32 bytes, so that nobody stores to a line whose
/// stores another core may not have let go of. Where caches are kept in step, 32 bytes: fewer lines
/// are on their way between two cores.
pub(crate) const fn entry_size(line: u32, coherent: bool) -> u32 {
    if line < 32 || coherent { 32 } else { line }
}

/// `value` rounded up to a multiple of `line`, a power of two; saturates at the last multiple.
pub(crate) const fn round_up(value: u32, line: u32) -> u32 {
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
        for (line, entry, coherent) in [
            (4, 32, false),
            (16, 32, false),
            (32, 32, false),
            (32, 32, true),
            (64, 64, false),
            (64, 32, true),
            (128, 32, true),
            (256, 256, false),
        ] {
            for (ranks, buffer) in [
                (2, 0),
                (8, 8 << 10),
                (8, 64 << 10),
                (2, 8 << 10),
                (48, 8 << 10),
                (1024, 0),
            ] {
                let ring = Ring::for_ranks(ranks, buffer, entry, coherent);
                let l = Layout::new((line, coherent), entry, ranks, ring, buffer);
                assert!(l.ready + 4 <= l.arrived && l.arrived + 4 <= l.slots);
                assert!(l.slots + 4 * SLOTS <= l.scratch);
                let scratch_end = l.scratch + SCRATCH_PER_RANK * u32::from(ranks);
                let end = if l.in_buffer { l.buffer_end } else { l.end };
                assert!(l.in_buffer || scratch_end <= l.tail);
                assert!(l.in_buffer || l.buffer_end == 0);
                assert!(scratch_end <= l.end);
                let rings = l.ring.rings(ranks);
                assert!(l.tail + 4 <= l.heads && l.heads + 4 * rings <= l.bells);
                let bells = if let Ring::Bells { .. } = ring {
                    rings
                } else {
                    0
                };
                assert!(l.bells + bells <= l.entries);
                assert_eq!(l.facing - l.entries, rings * l.ring.entries() * entry);
                let has_facing = coherent && ranks <= 4;
                let lines = if has_facing { u32::from(ranks) } else { 0 };
                assert_eq!(end - l.facing, lines * line.max(2 * entry));
                assert!(l.buffer_end <= buffer);
                for part in [
                    l.slots, l.scratch, l.tail, l.heads, l.bells, l.entries, l.facing, l.end,
                ] {
                    assert_eq!(part % line, 0);
                }
            }
        }
        let in_buffer = |ranks, buffer| {
            let ring = Ring::for_ranks(ranks, buffer, 32, false);
            Layout::new((32, false), 32, ranks, ring, buffer).in_buffer
        };
        assert!(in_buffer(2, 8 << 10) && in_buffer(4, 4 << 10));
        assert!(in_buffer(5, 8 << 10) && in_buffer(64, 8 << 10) && in_buffer(8, 1 << 10));
        assert!(in_buffer(65, 8 << 10) && in_buffer(379, 8 << 10));
        assert!(!in_buffer(4, 2 << 10) && !in_buffer(381, 8 << 10) && !in_buffer(1, 0));
    }

    #[test]
    fn rounding_saturates() {
        assert_eq!(round_up(1, 32), 32);
        assert_eq!(round_up(32, 32), 32);
        assert_eq!(round_up(u32::MAX, 32), !31);
    }
}
