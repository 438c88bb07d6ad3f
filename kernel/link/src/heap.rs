//! Which parts of a rank's memory are in use. A [`Heap`] keeps a short table of pieces in private
//! memory. A link uses it for shared memory, and the kernel for the arena that a program lends it.

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
/// Units are the caller's: bytes of shared memory, words of an arena. It only keeps the books, in
/// private memory: each rank hands out its own memory alone, so that no lock is needed.
#[derive(Debug)]
pub struct Heap<const PIECES: usize = { self::PIECES }> {
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
        /// How much more the largest one would have to hold.
        units: u32,
    },
    /// As many pieces are in use as can be remembered.
    Pieces {
        /// How many that is.
        max: u32,
    },
}

impl<const PIECES: usize> Heap<PIECES> {
    /// All of `start..end` is free. Pieces begin at multiples of `align`, a power of two.
    pub const fn new(start: u32, end: u32, align: u32) -> Self {
        Self {
            start,
            end,
            align,
            used: [const { Cell::new(Piece { start: 0, end: 0 }) }; PIECES],
            count: Cell::new(0),
        }
    }

    /// Takes `units` units (0 counts as 1) and gives where they start. They reach up to the next
    /// multiple of the alignment.
    ///
    /// # Errors
    /// [`Full`].
    pub fn take(&self, units: u32, place: Place) -> Result<u32, Full> {
        let units = units.max(1);
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
                Place::Own => (index, self.down(to.saturating_sub(units))),
            });
            if place == Place::Symmetric {
                break;
            }
        }
        let (index, start) = best
            .filter(|(index, start)| *start >= self.gap(*index).0)
            .ok_or(Full::Missing {
                units: units.saturating_sub(largest).max(1),
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

    /// Gives back the piece that starts at `start`; false if there is none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_from_both_ends_and_are_reused() {
        let heap = <Heap>::new(40, 400, 32);
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
            Err(Full::Missing { units: 1 })
        );
        assert_eq!(take(&heap, 128, Place::Own), Ok(224));
        assert_eq!(heap.pieces(), 6);
    }

    #[test]
    fn everything_comes_back() {
        let heap = <Heap>::new(0, 1024, 8);
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
        let heap = <Heap>::new(0, u32::MAX, 1);
        for _ in 0..PIECES {
            heap.take(1, Place::Symmetric).unwrap();
        }
        assert_eq!(
            heap.take(1, Place::Own),
            Err(Full::Pieces { max: PIECES as u32 })
        );
    }
}
