//! Grids: the ranks of a world as the places of a grid, in rows. A program with a halo asks the
//! grid which ranks are its neighbours, and where it is itself. A side may be periodic: beyond its
//! last place is its first. A grid is numbers alone: it costs no memory of the world and no access.

use flagpost_link::Rank;

use crate::Error;

/// The ranks of a world in a grid of `N` dimensions. The last coordinate counts fastest: in two
/// dimensions the first is the row, and ranks go along the rows.
///
/// # Source
/// Cartesian topologies of MPI-3, 7.5.
///
/// # Example
/// Six ranks in two rows of three; the columns are periodic.
/// ```
/// use flagpost::{Grid, Rank};
///
/// let grid = Grid::new(6, [2, 0], [true, false])?; // 0: as many as are left
/// let me = Rank::new(4);
/// assert_eq!(grid.coordinates(me), Some([1, 1]));
/// assert_eq!(grid.ahead(me, 0, 1), Some(Rank::new(1))); // the row after the last is the first
/// assert_eq!(grid.ahead(me, 1, 1), Some(Rank::new(5)));
/// assert_eq!(grid.ahead(me, 1, 2), None); // beyond the edge
/// assert_eq!(&*grid.neighbours(me), &[1, 3, 5].map(Rank::new));
/// # Ok::<(), flagpost::Error>(())
/// ```
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Grid<const N: usize> {
    sides: [u16; N],
    periodic: [bool; N],
}

/// The most dimensions of a grid.
const DIMENSIONS: usize = 4;

impl<const N: usize> Grid<N> {
    /// All `ranks` in a grid with these sides, of which some are periodic. Sides of 0 are chosen:
    /// as equal as the number of ranks admits, the longest first.
    ///
    /// Up to 4 dimensions; more do not compile.
    ///
    /// # Errors
    /// [`Error::BadGrid`]: the grid has more or fewer places than there are ranks.
    pub fn new(ranks: u16, mut sides: [u16; N], periodic: [bool; N]) -> Result<Self, Error> {
        const { assert!(N <= DIMENSIONS, "a grid has up to 4 dimensions") };
        let mut fixed = sides.iter().filter(|&&side| side > 0);
        let fixed = fixed.try_fold(1_u16, |all, &side| all.checked_mul(side));
        let mut left = fixed
            .and_then(|fixed| ranks.checked_div(fixed))
            .unwrap_or(0);
        let mut open = sides.iter().filter(|&&side| side == 0).count() as u32;
        for side in sides.iter_mut().filter(|side| **side == 0) {
            // The smallest side that leaves a root for each of the others.
            let fits = |side: u16| {
                let is_large = side.checked_pow(open).is_none_or(|all| all >= left);
                left.is_multiple_of(side) && is_large
            };
            *side = (1..=left).find(|&side| fits(side)).unwrap_or(0);
            left = left.checked_div(*side).unwrap_or(0);
            open = open.saturating_sub(1);
        }
        let places = sides.iter().map(|&side| u64::from(side)).product();
        if places != u64::from(ranks) {
            return Err(Error::BadGrid { places, ranks });
        }
        Ok(Self { sides, periodic })
    }

    /// How many places each side has.
    pub fn sides(&self) -> [u16; N] {
        self.sides
    }

    /// Where `rank` is. None if the grid has no such rank.
    pub fn coordinates(&self, rank: Rank) -> Option<[u16; N]> {
        let mut left = rank.get();
        let mut at = [0; N];
        for (at, side) in at.iter_mut().zip(self.sides).rev() {
            *at = left.checked_rem(side)?;
            left = left.checked_div(side)?;
        }
        (left == 0).then_some(at)
    }

    /// The rank at these coordinates: on a periodic side any number, counted round. None beyond an
    /// edge.
    pub fn rank(&self, at: [i32; N]) -> Option<Rank> {
        let mut rank = 0_i32;
        for ((at, side), periodic) in at.into_iter().zip(self.sides).zip(self.periodic) {
            let side = i32::from(side);
            let at = if periodic {
                at.checked_rem_euclid(side)?
            } else {
                at
            };
            if !(0..side).contains(&at) {
                return None;
            }
            rank = rank.checked_mul(side)?.checked_add(at)?;
        }
        u16::try_from(rank).ok().map(Rank::new)
    }

    /// The rank `distance` places further along dimension `dimension`; before it, if `distance` is
    /// below 0. None beyond an edge, and if there is no such rank or dimension.
    pub fn ahead(&self, rank: Rank, dimension: usize, distance: i32) -> Option<Rank> {
        let mut at = self.coordinates(rank)?.map(i32::from);
        let along = at.get_mut(dimension)?;
        *along = along.checked_add(distance)?;
        self.rank(at)
    }

    /// The ranks one place away, each once: the ranks of an epoch of halos. Along each dimension
    /// first the one before, then the one after. On a periodic side of one place that is `rank`.
    pub fn neighbours(&self, rank: Rank) -> Neighbours {
        let mut all = Neighbours {
            ranks: [Rank::new(0); 2 * DIMENSIONS],
            count: 0,
        };
        for dimension in 0..N {
            for distance in [-1, 1] {
                if let Some(other) = self.ahead(rank, dimension, distance) {
                    all.add(other);
                }
            }
        }
        all
    }
}

/// The neighbours of a rank in a grid: a list of ranks.
#[derive(Copy, Clone, Debug)]
pub struct Neighbours {
    ranks: [Rank; 2 * DIMENSIONS],
    count: usize,
}

impl Neighbours {
    /// Adds `other`, unless it is in the list.
    fn add(&mut self, other: Rank) {
        if !self.contains(&other)
            && let Some(place) = self.ranks.get_mut(self.count)
        {
            *place = other;
            self.count = self.count.saturating_add(1);
        }
    }
}

impl core::ops::Deref for Neighbours {
    type Target = [Rank];

    fn deref(&self) -> &[Rank] {
        self.ranks.get(..self.count).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_chosen() {
        let sides = |ranks, sides: [u16; 3]| Grid::new(ranks, sides, [false; 3]).map(|g| g.sides);
        assert_eq!(sides(48, [0; 3]), Ok([4, 4, 3]));
        assert_eq!(sides(7, [0; 3]), Ok([7, 1, 1]));
        assert_eq!(sides(12, [0, 3, 0]), Ok([2, 3, 2]));
        let bad = |places, ranks| Err(Error::BadGrid { places, ranks });
        assert_eq!(sides(12, [5, 0, 0]), bad(10, 12));
        assert_eq!(
            sides(u16::MAX, [u16::MAX; 3]),
            bad(u64::from(u16::MAX).pow(3), u16::MAX)
        );
        assert_eq!(sides(0, [0; 3]), Ok([0; 3]));
    }

    #[test]
    fn ranks_and_coordinates_are_each_others() {
        for periodic in [[false; 2], [true; 2], [true, false]] {
            let grid = Grid::new(12, [3, 4], periodic).unwrap();
            for rank in (0..12).map(Rank::new) {
                let at = grid.coordinates(rank).unwrap();
                assert_eq!(grid.rank(at.map(i32::from)), Some(rank));
                for other in grid.neighbours(rank).iter() {
                    assert!(grid.neighbours(*other).contains(&rank));
                }
            }
            assert_eq!(grid.coordinates(Rank::new(12)), None);
            assert_eq!(grid.ahead(Rank::new(0), 2, 1), None);
            let far = periodic[0].then_some(Rank::new(4));
            assert_eq!(grid.ahead(Rank::new(0), 0, -5), far);
        }
        // Two places on a periodic side: one neighbour, both ways.
        let grid = Grid::new(2, [2, 1], [true, false]).unwrap();
        assert_eq!(&*grid.neighbours(Rank::new(0)), &[Rank::new(1)]);
        let alone = Grid::new(1, [1], [true]).unwrap();
        assert_eq!(&*alone.neighbours(Rank::new(0)), &[Rank::new(0)]);
    }
}
