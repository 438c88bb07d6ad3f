//! How large a job's memory is, and where in it things are.
//!
//! # Memory layout (n ranks)
//! ```text
//!   0            4096                                  control            control + size
//!   ┌────────────┬────────┬─ ─ ─┬──────────┬───────┬─ ─┬──────────────────┬─ ─
//!   │ header     │ rank 0 │     │ rank n-1 │ lines │   │ region of rank 0 │ region of rank 1 …
//!   └────────────┴────────┴─ ─ ─┴──────────┴───────┴─ ─┴──────────────────┴─ ─
//!     one page     RANK_LINES each          HIDDEN each  pages
//! ```
//! *lines*: the dirty lines of each rank's cache in software, in mode `emulated` (`hidden`). Pages
//! that no rank touches cost nothing.
//!
//! A rank computes this from numbers that it was started with, compares it with the size of the
//! file, and never reads a size or an offset from the memory itself.

use std::ops::Range;

/// Bytes of a page: what files are mapped by, and what regions are rounded up to.
pub(crate) const PAGE: usize = 4096;

/// Bytes of the control words of one rank: two pairs of lines, so that neighbours never share
/// one, fetched ahead or not.
pub(crate) const RANK_LINES: usize = 2 * 128;

/// Bytes of what a rank notes of its cache in software: see `hidden`.
pub(crate) const HIDDEN: usize = 16 << 10;

/// Most ranks of a job.
pub const MAX_RANKS: u16 = 1024;

/// Most bytes of a rank's memory: all regions of a job fit the addresses of a process.
pub const MAX_MEMORY: u64 = 64 << 30;

/// Least bytes of a rank's memory.
pub const MIN_MEMORY: u64 = 16 << 10;

/// How many ranks, and how much memory each has. Only made of numbers that make sense.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    ranks: u16,
    memory: usize,
}

/// Why there is no such [`Shape`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadShape {
    /// A job has 1 to [`MAX_RANKS`] ranks.
    #[error("{0} ranks: ask for 1 to {MAX_RANKS}")]
    Ranks(u32),
    /// A rank has [`MIN_MEMORY`] to [`MAX_MEMORY`] bytes.
    #[error(
        "{0} bytes of memory per rank: ask for {least}K to {most}M",
        least = MIN_MEMORY >> 10,
        most = MAX_MEMORY >> 20
    )]
    Memory(u64),
}

impl Shape {
    /// `ranks` ranks with at least `memory` bytes each: rounded up to whole pages.
    ///
    /// # Errors
    /// [`BadShape`].
    pub fn new(ranks: u32, memory: u64) -> Result<Self, BadShape> {
        let fits = (MIN_MEMORY..=MAX_MEMORY).contains(&memory);
        let bytes = usize::try_from(memory).ok().filter(|_| fits);
        let bytes = bytes.ok_or(BadShape::Memory(memory))?;
        let number = u16::try_from(ranks).ok();
        let number = number.filter(|number| (1..=MAX_RANKS).contains(number));
        Ok(Self {
            ranks: number.ok_or(BadShape::Ranks(ranks))?,
            memory: bytes.next_multiple_of(PAGE),
        })
    }

    /// How many ranks.
    pub const fn ranks(self) -> u16 {
        self.ranks
    }

    /// Bytes per rank.
    pub const fn memory(self) -> usize {
        self.memory
    }

    /// Where a rank's control words begin.
    pub(crate) const fn control_of(self, rank: u16) -> usize {
        PAGE + RANK_LINES * rank as usize
    }

    /// Where it is noted what a rank's cache in software has.
    pub(crate) const fn hidden_of(self, rank: u16) -> usize {
        self.control_of(self.ranks) + HIDDEN * rank as usize
    }

    /// Where the regions begin.
    pub const fn control(self) -> usize {
        self.hidden_of(self.ranks).next_multiple_of(PAGE)
    }

    /// The bytes of a rank's region.
    pub const fn region_of(self, rank: u16) -> Range<u64> {
        let start = self.control() as u64 + self.memory as u64 * rank as u64;
        start..start + self.memory as u64
    }

    /// Bytes in all.
    pub const fn total(self) -> usize {
        self.control() + self.memory * self.ranks as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap() {
        for (ranks, memory) in [(1, 16 << 10), (3, 20_001), (1024, 64 << 30)] {
            let shape = Shape::new(ranks, memory).expect("it makes sense");
            assert!(shape.control_of(shape.ranks()) <= shape.hidden_of(0));
            assert!(shape.hidden_of(shape.ranks()) <= shape.control());
            assert_eq!(shape.control() % PAGE, 0);
            assert_eq!(shape.memory() % PAGE, 0);
            assert!(shape.memory() as u64 >= memory);
            let end = shape.control() + ranks as usize * shape.memory();
            assert_eq!(shape.total(), end);
            let last = shape.region_of(shape.ranks() - 1);
            assert_eq!(last.end, end as u64);
            assert_eq!(last.end - last.start, shape.memory() as u64);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(Shape::new(0, 1 << 20), Err(BadShape::Ranks(0)));
        assert_eq!(Shape::new(1025, 1 << 20), Err(BadShape::Ranks(1025)));
        assert_eq!(Shape::new(65_537, 1 << 20), Err(BadShape::Ranks(65_537)));
        assert_eq!(Shape::new(2, 100), Err(BadShape::Memory(100)));
        let most = MAX_MEMORY;
        assert_eq!(Shape::new(2, most + 1), Err(BadShape::Memory(most + 1)));
    }
}
