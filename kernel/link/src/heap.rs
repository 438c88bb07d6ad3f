//! Which parts of a rank's memory are in use. A [`Heap`] keeps a short table of pieces in private
//! memory. Links use it for shared memory.

use core::cell::Cell;

use crate::Place;

/// Pieces that are remembered at a time, unless its user names another number.
pub const PIECES: usize = 192;

/// A piece that is in use: `start..end`.
#[derive(Copy, Clone, Debug, Default)]
struct Piece {
    start: u32,
    end: u32,
}

/// Hands out pieces of `start..end`, first fit: [symmetric](Place::Symmetric) ones from the front,
/// a rank's [own](Place::Own) ones from the back, so that these do not disturb the symmetry of
/// those.
///
/// Its numbers have 32 bits, and count units: single bytes, words of an arena, lines of a memory
/// that may be larger than 32 bits can tell ([`Key::unit`](crate::Key::unit)). It only keeps the
/// books, in private memory: each rank hands out its own memory alone, so that no lock is needed.
#[derive(Debug)]
pub struct Heap<const PIECES: usize = { self::PIECES }> {
    /// How many of the caller's bytes or words a unit has: a power of two.
    unit: usize,
    start: u32,
    end: u32,
    /// A power of two that pieces begin at a multiple of.
    align: u32,
    /// The first `count` are in use, in ascending order, without overlaps.
    used: [Cell<Piece>; PIECES],
    count: Cell<usize>,
}

/// Why there is no piece. Nothing has changed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Full {
    /// No gap is large enough.
    Missing {
        /// How much more the largest one would have to hold: not units, but what they are of.
        more: usize,
    },
    /// As many pieces are in use as can be remembered.
    Pieces {
        /// How many that is.
        max: u32,
    },
}

impl<const PIECES: usize> Heap<PIECES> {
    /// All of `start..end` is free, in bytes or words, of which a unit has `unit`. Pieces begin at
    /// multiples of `align`. Both are powers of two. Beyond 2^32 - 1 units nothing is handed out.
    pub const fn new(unit: usize, start: usize, end: usize, align: usize) -> Self {
        let shift = unit.trailing_zeros();
        let align = align.wrapping_shr(shift);
        Self {
            unit,
            start: number(start.wrapping_add(unit.wrapping_sub(1)).wrapping_shr(shift)),
            end: number(end.wrapping_shr(shift)),
            align: if align == 0 { 1 } else { number(align) },
            used: [const { Cell::new(Piece { start: 0, end: 0 }) }; PIECES],
            count: Cell::new(0),
        }
    }

    /// Takes `count` bytes or words (0 counts as 1), and gives how many units come before them.
    /// They reach up to the next multiple of the alignment.
    ///
    /// # Errors
    /// [`Full`].
    pub fn take(&self, count: usize, place: Place) -> Result<u32, Full> {
        let whole = count.max(1).saturating_add(self.unit.wrapping_sub(1));
        let units = number(whole.wrapping_shr(self.unit.trailing_zeros()));
        let mut best = None;
        let mut largest = 0;
        for index in 0..=self.count.get() {
            let (from, to) = self.gap(index);
            largest = largest.max(to.saturating_sub(from));
            if to.saturating_sub(from) < units {
                continue;
            }
            best = Some(match place {
                Place::Symmetric => (index, from),
                // Not before `from`, which is aligned, too.
                Place::Own => (index, self.down(to.saturating_sub(units))),
            });
            if place == Place::Symmetric {
                break;
            }
        }
        let (index, start) = best.ok_or(Full::Missing {
            more: count.saturating_sub(self.bytes(largest)).max(1),
        })?;
        let count = self.count.get();
        if count >= PIECES {
            return Err(Full::Pieces { max: PIECES as u32 });
        }
        let end = start.saturating_add(units);
        let mut next = Piece { start, end };
        for place in self.used.iter().skip(index) {
            next = place.replace(next);
        }
        self.count.set(count.saturating_add(1));
        Ok(start)
    }

    /// How many bytes or words `units` units have.
    pub fn bytes(&self, units: u32) -> usize {
        (units as usize).saturating_mul(self.unit)
    }

    /// Gives back the piece that starts at unit `start`; false if there is none.
    pub fn give_back(&self, start: u32) -> bool {
        let mut pieces = self.used.iter().take(self.count.get());
        let Some(index) = pieces.position(|piece| piece.get().start == start) else {
            return false;
        };
        let mut next = Piece::default();
        for place in self.used.iter().skip(index).rev() {
            next = place.replace(next);
        }
        self.count.set(self.count.get().saturating_sub(1));
        true
    }

    /// How many pieces are in use.
    pub fn pieces(&self) -> usize {
        self.count.get()
    }

    /// The free units before piece `index`.
    fn gap(&self, index: usize) -> (u32, u32) {
        let piece = |index: usize| {
            let place = self.used.get(index).filter(|_| index < self.count.get());
            place.map(Cell::get)
        };
        let before = index.checked_sub(1).and_then(piece);
        let from = before.map_or(self.start, |piece| piece.end);
        let to = piece(index).map_or(self.end, |piece| piece.start);
        (self.up(from), to)
    }

    fn up(&self, at: u32) -> u32 {
        let mask = self.align.wrapping_sub(1);
        at.checked_add(mask).map_or(u32::MAX, |at| at & !mask)
    }

    fn down(&self, at: u32) -> u32 {
        at & !self.align.wrapping_sub(1)
    }
}

/// The largest number there is, if `units` are more.
const fn number(units: usize) -> u32 {
    if units > u32::MAX as usize {
        u32::MAX
    } else {
        units as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_from_both_ends_and_are_reused() {
        let heap = <Heap>::new(1, 40, 400, 32);
        let take = |heap: &Heap, units, place| heap.take(units, place);
        assert_eq!(take(&heap, 33, Place::Symmetric), Ok(64));
        assert_eq!(take(&heap, 32, Place::Symmetric), Ok(128));
        assert_eq!(take(&heap, 20, Place::Own), Ok(352));
        assert_eq!(take(&heap, 1, Place::Own), Ok(384));
        assert!(heap.give_back(64));
        assert!(!heap.give_back(64));
        assert_eq!(take(&heap, 64, Place::Symmetric), Ok(64));
        assert_eq!(take(&heap, 0, Place::Symmetric), Ok(160));
        assert_eq!(
            take(&heap, 161, Place::Symmetric),
            Err(Full::Missing { more: 1 })
        );
        assert_eq!(take(&heap, 128, Place::Own), Ok(224));
        assert_eq!(heap.pieces(), 6);
    }

    #[test]
    fn units_of_lines_reach_beyond_32_bits() {
        let lines = usize::MAX >> 7;
        let heap = <Heap>::new(64, 65, lines, 64);
        assert_eq!(heap.take(65, Place::Symmetric), Ok(2));
        assert_eq!(heap.take(1, Place::Symmetric), Ok(4));
        let last = u32::try_from(lines / 64).unwrap_or(u32::MAX) - 1;
        assert_eq!(heap.take(1, Place::Own), Ok(last));
        assert_eq!(heap.bytes(last), last as usize * 64);
        let rest = heap.bytes(last - 5);
        let more = usize::MAX - rest;
        let refused = heap.take(usize::MAX, Place::Symmetric);
        assert_eq!(refused, Err(Full::Missing { more }));
        assert_eq!(heap.take(rest, Place::Symmetric), Ok(5));
    }

    #[test]
    fn everything_comes_back() {
        let heap = <Heap>::new(1, 0, 1024, 8);
        for round in 0..1000_u32 {
            let place = [Place::Symmetric, Place::Own][(round % 2) as usize];
            let taken = [100, 7, 300].map(|units| heap.take(units, place).unwrap());
            for index in [1, (round % 2) as usize * 2, 2 - (round % 2) as usize * 2] {
                assert!(heap.give_back(taken[index]));
            }
        }
        assert_eq!(heap.take(1024, Place::Symmetric), Ok(0));
    }

    #[test]
    fn too_many_pieces_are_refused() {
        let heap = <Heap>::new(1, 0, u32::MAX as usize, 1);
        for _ in 0..PIECES {
            heap.take(1, Place::Symmetric).unwrap();
        }
        assert_eq!(
            heap.take(1, Place::Own),
            Err(Full::Pieces { max: PIECES as u32 })
        );
    }
}
