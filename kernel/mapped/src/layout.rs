//! Where things are in each rank's region: see the crate documentation.

/// Words of the slots.
pub(crate) const SLOTS: u32 = 32;

/// Entries of the ring, unless asked for otherwise.
pub(crate) const ENTRIES: u32 = 64;

/// Most entries of a ring.
pub(crate) const MOST_ENTRIES: u32 = 1 << 15;

/// Scratch bytes per rank.
pub(crate) const SCRATCH_PER_RANK: u32 = 32;

/// Offsets of the fixed part for a machine with lines of `line` bytes and a ring of `ring` entries.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) ready: u32,
    pub(crate) slots: u32,
    pub(crate) tail: u32,
    pub(crate) head: u32,
    pub(crate) entries: u32,
    pub(crate) scratch: u32,
    /// Entries of the ring: a power of two, so that tickets may wrap around.
    pub(crate) ring: u32,
}

impl Layout {
    /// The layout for lines of `line` bytes (a power of two, at most 256: so sums cannot overflow) and a ring
    /// of `ring` entries.
    pub(crate) const fn new(line: u32, ring: u32) -> Self {
        let slots = line;
        let tail = round_up(slots.saturating_add(SLOTS.saturating_mul(4)), line);
        let head = tail.saturating_add(line);
        let entries = head.saturating_add(line);
        let scratch = entries.saturating_add(ring.saturating_mul(entry_size(line)));
        Self {
            ready: 0,
            slots,
            tail,
            head,
            entries,
            scratch,
            ring,
        }
    }

    /// The first byte behind the fixed part, with `ranks` ranks: a multiple of `line`.
    pub(crate) const fn end(&self, ranks: u16, line: u32) -> u32 {
        let scratch = SCRATCH_PER_RANK.saturating_mul(ranks as u32);
        round_up(self.scratch.saturating_add(scratch), line)
    }
}

/// Size of a ring entry: a line, but at least 32 bytes.
pub(crate) const fn entry_size(line: u32) -> u32 {
    if line < 32 { 32 } else { line }
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
        for line in [4, 16, 32, 64, 128, 256] {
            let l = Layout::new(line, ENTRIES);
            assert!(l.ready + 4 <= l.slots);
            assert!(l.slots + 4 * SLOTS <= l.tail);
            assert!(l.tail + 4 <= l.head && l.head + 4 <= l.entries);
            assert_eq!(l.scratch - l.entries, ENTRIES * entry_size(line));
            assert_eq!(l.end(48, line) % line, 0);
            assert!(l.end(48, line) >= l.scratch + 48 * SCRATCH_PER_RANK);
            for part in [l.slots, l.tail, l.head, l.entries, l.scratch] {
                assert_eq!(part % line, 0);
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
