//! Blocks of a periodic box of cells: each rank has one, with a layer of ghosts round it.
//!
//! A ghost is a copy of a neighbour's cell. So a step over the block reads all neighbours of its
//! cells in one slice, and an exchange before it fills the ghosts. All blocks have the same sides.
//!
//! ```text
//!   ·  g g g  ·      side 3 in two dimensions:
//!   g  # # #  g      # a cell of this rank
//!   g  # # #  g      g a ghost
//!   g  # # #  g      · never used
//!   ·  g g g  ·
//! ```
//! Direction `2 d` goes back along dimension `d`, direction `2 d + 1` ahead. The last dimension is
//! contiguous.

use core::array::from_fn;

use flagpost::{Grid, Link, Rank, Window};

use crate::edges::Edges;
use crate::{Variant, Wrong, take};

/// True if it goes back along its dimension, false if ahead.
const fn is_back(direction: usize) -> bool {
    direction.is_multiple_of(2)
}

/// A box of cells, numbered row by row.
#[derive(Copy, Clone, Debug)]
pub struct Cells<const N: usize> {
    sides: [usize; N],
}

impl<const N: usize> Cells<N> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.sides.iter().product()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many along each side.
    pub const fn sides(&self) -> [usize; N] {
        self.sides
    }

    /// The number of the cell at these coordinates.
    pub fn number(&self, at: [usize; N]) -> usize {
        let sides = self.sides.into_iter();
        at.into_iter()
            .zip(sides)
            .fold(0, |number, (at, side)| number * side + at)
    }

    /// Where a cell is.
    pub fn at(&self, mut number: usize) -> [usize; N] {
        let mut at = self.sides;
        for coordinate in at.iter_mut().rev() {
            let side = *coordinate;
            *coordinate = number % side;
            number /= side;
        }
        at
    }

    /// The cell next to `number` in this direction: the box is periodic.
    pub fn near(&self, number: usize, direction: usize) -> usize {
        let mut at = self.at(number);
        let (along, side) = (&mut at[direction / 2], self.sides[direction / 2]);
        *along = (*along + if is_back(direction) { side - 1 } else { 1 }) % side;
        self.number(at)
    }
}

/// A rank's block.
#[derive(Copy, Clone, Debug)]
pub struct Block<const N: usize> {
    side: usize,
    /// The block with its ghosts.
    padded: Cells<N>,
    /// From a cell to the next one along each dimension.
    strides: [usize; N],
    whole: Cells<N>,
    /// Where the block's first cell is in the whole box.
    first: [usize; N],
}

impl<const N: usize> Block<N> {
    /// The block of `rank`, with `side` cells along each dimension.
    fn new(grid: &Grid<N>, rank: Rank, side: usize) -> Self {
        let padded = Cells {
            sides: [side + 2; N],
        };
        Self {
            side,
            padded,
            strides: from_fn(|dimension| padded.number(from_fn(|n| (n == dimension).into()))),
            whole: Cells {
                sides: grid.sides().map(|blocks| usize::from(blocks) * side),
            },
            first: grid
                .coordinates(rank)
                .unwrap_or([0; N])
                .map(|block| usize::from(block) * side),
        }
    }

    /// Cells of a block, with its ghosts.
    pub const fn padded_len(side: usize) -> usize {
        side.saturating_add(2).saturating_pow(N as u32)
    }

    /// All blocks together.
    pub const fn whole(&self) -> Cells<N> {
        self.whole
    }

    /// This rank's cells, in rows.
    pub fn cells(&self) -> impl Iterator<Item = usize> + use<N> {
        let side = self.side;
        self.layer(N - 1, 1).flat_map(move |row| row..row + side)
    }

    /// The numbers of [`cells`](Self::cells) in the whole box.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        self.cells().map(|cell| {
            let at = self.padded.at(cell);
            self.whole.number(from_fn(|n| self.first[n] + at[n] - 1))
        })
    }

    /// The cell or ghost next to one of this rank's cells.
    #[inline]
    pub const fn near(&self, cell: usize, direction: usize) -> usize {
        let stride = self.strides[direction / 2];
        match is_back(direction) {
            true => cell - stride,
            false => cell + stride,
        }
    }

    /// Those that are at `coordinate` along `dimension`, of the cells and of the ghosts there.
    fn layer(&self, dimension: usize, coordinate: usize) -> impl Iterator<Item = usize> + use<N> {
        let (padded, side) = (self.padded, self.side);
        let face = Cells {
            sides: from_fn(|n| if n == dimension { 1 } else { side }),
        };
        (0..face.len()).map(move |number| {
            let mut at = face.at(number).map(|coordinate| coordinate + 1);
            at[dimension] = coordinate;
            padded.number(at)
        })
    }

    /// The outermost cells in this direction.
    fn edge(&self, direction: usize) -> impl Iterator<Item = usize> + use<N> {
        let coordinate = if is_back(direction) { 1 } else { self.side };
        self.layer(direction / 2, coordinate)
    }

    /// The ghosts that copy what travels in this direction: they lie at the side it comes from.
    fn ghosts(&self, direction: usize) -> impl Iterator<Item = usize> + use<N> {
        let coordinate = if is_back(direction) { self.side + 1 } else { 0 };
        self.layer(direction / 2, coordinate)
    }
}

/// The ghosts of a rank's block: `N` dimensions, `D = 2 N` directions, `F` values for each cell.
#[derive(Debug)]
pub struct Ghosts<'a, 'w, L: Link, const N: usize, const D: usize, const F: usize> {
    block: Block<N>,
    edges: Edges<'a, 'w, L, D>,
    /// Values of an edge.
    len: usize,
    sent: &'a mut [f64],
    got: &'a mut [f64],
}

impl<'a, 'w, L: Link, const N: usize, const D: usize, const F: usize> Ghosts<'a, 'w, L, N, D, F> {
    /// Values of an edge.
    const fn edge_len(side: usize) -> usize {
        side.saturating_pow(N as u32 - 1).saturating_mul(F)
    }

    /// Elements that the window must have on each rank.
    pub const fn window_len(side: usize) -> usize {
        Edges::<L, D>::window_len(Self::edge_len(side))
    }

    /// Elements of memory that it takes.
    pub const fn memory(side: usize) -> usize {
        Self::edge_len(side).saturating_mul(2 * D)
    }

    /// Ghosts of this rank's block, which has `side` cells along each dimension.
    ///
    /// # Errors
    /// [`Wrong::Memory`].
    pub fn new(
        window: &'a Window<'w, f64, L>,
        variant: Variant,
        side: usize,
        memory: &mut &'a mut [f64],
    ) -> Result<Self, Wrong> {
        const { assert!(D == 2 * N, "two directions for each dimension") };
        let (me, ranks) = (window.world().rank(), window.world().size());
        let grid = Grid::new(ranks, [0; N], [true; N])?;
        let to = from_fn(|direction| {
            let distance = if is_back(direction) { -1 } else { 1 };
            grid.ahead(me, direction / 2, distance)
        });
        let len = Self::edge_len(side);
        // Among many ranks a ring has few lines for each: an edge would wait for room there.
        window.set_inline(false);
        Ok(Self {
            block: Block::new(&grid, me, side),
            edges: Edges::new(window, variant, to, len)?,
            len,
            sent: take(memory, D * len)?,
            got: take(memory, D * len)?,
        })
    }

    /// This rank's block.
    pub const fn block(&self) -> Block<N> {
        self.block
    }

    /// Sends the outermost cells to the neighbours, and fills the ghosts with what they send.
    ///
    /// # Errors
    /// Any of Flagpost.
    pub fn exchange(&mut self, cells: &mut [[f64; F]]) -> Result<(), Wrong> {
        for (direction, edge) in self.sent.chunks_exact_mut(self.len).enumerate() {
            let (values, _) = edge.as_chunks_mut::<F>();
            for (value, cell) in values.iter_mut().zip(self.block.edge(direction)) {
                *value = cells[cell];
            }
        }
        let sent = from_fn(|direction| &self.sent[direction * self.len..][..self.len]);
        let mut parts = self.got.chunks_exact_mut(self.len);
        let got = from_fn(|_| parts.next().unwrap_or_default());
        self.edges.exchange(sent, got)?;
        for (direction, edge) in self.got.chunks_exact(self.len).enumerate() {
            let (values, _) = edge.as_chunks::<F>();
            for (value, ghost) in values.iter().zip(self.block.ghosts(direction)) {
                cells[ghost] = *value;
            }
        }
        Ok(())
    }
}
