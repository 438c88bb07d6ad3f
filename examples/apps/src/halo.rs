//! A plane of cells, dealt out to ranks: in each step a cell becomes the mean of its neighbours, and
//! the edges of each rank's block go to four neighbours.
//!
//! ```text
//!          ▲ 2                 block of side x side cells; the plane is periodic
//!          │                   direction  0 west, 1 east, 2 north, 3 south
//!   0 ◄── block ──► 1
//!          │
//!          ▼ 3
//! ```
//! Work: four floating-point operations for each cell and step. The serial run has all blocks in one
//! plane, and finds the same bits.

use flagpost::{Grid, Link, World};

use crate::edges::Edges;
use crate::{Job, Outcome, Program, Size, Variant, Wrong, check, take, timed};

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "halo",
        unit: "flop",
        variants: &Variant::ALL,
        small: Size { side: 6, steps: 5 },
        memory: |ranks, size| {
            let side = size.side as usize;
            // Two blocks, eight edges, two planes.
            2 * side * side + 8 * side + 2 * side * side * usize::from(ranks)
        },
        run,
    }
}

const DIRECTIONS: usize = 4;

/// Side: cells along each side of a rank's block.
fn run<L: Link>(world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
    let Job {
        variant,
        size,
        mut memory,
    } = job;
    let side = size.side as usize;
    let grid = Grid::new(world.size(), [0, 0], [true; 2])?;
    let me = world.rank();
    let to = [(1, -1), (1, 1), (0, -1), (0, 1)];
    let to = to.map(|(dimension, distance)| grid.ahead(me, dimension, distance));
    let window = world.allocate::<f64>(Edges::<L, DIRECTIONS>::window_len(side))?;
    let mut edges = Edges::new(&window, variant, to, side);
    let mut now = take(&mut memory, side * side)?;
    let mut next = take(&mut memory, side * side)?;
    let sent = take(&mut memory, DIRECTIONS * side)?;
    let got = take(&mut memory, DIRECTIONS * side)?;
    let [row, column] = grid.coordinates(me).unwrap_or_default();
    let [rows, columns] = grid.sides();
    let width = usize::from(columns) * side;
    let origin = (usize::from(row) * side, usize::from(column) * side);
    for (cell, value) in now.iter_mut().enumerate() {
        *value = first((origin.0 + cell / side) * width + origin.1 + cell % side);
    }
    let outcome = timed(world, || {
        for _ in 0..size.steps {
            step(&mut edges, side, now, next, sent, got)?;
            core::mem::swap(&mut now, &mut next);
        }
        Ok(())
    })?;
    let plane = (usize::from(rows) * side, width);
    let found = serial(plane, size.steps, &mut memory)?;
    for (cell, &value) in now.iter().enumerate() {
        let at = (origin.0 + cell / side) * width + origin.1 + cell % side;
        check("cell", value, found[at])?;
    }
    let cells = (plane.0 * plane.1) as u64;
    Ok(Outcome {
        work: 4 * cells * u64::from(size.steps),
        ..outcome
    })
}

/// What a cell holds in the beginning: anything.
fn first(cell: usize) -> f64 {
    f64::from((cell as u32).wrapping_mul(0x9E37_79B9) >> 16)
}

/// The mean, added up in the order that all runs add in.
fn mean([west, east, north, south]: [f64; 4]) -> f64 {
    (west + east + north + south) * 0.25
}

fn step<L: Link>(
    edges: &mut Edges<'_, '_, L, DIRECTIONS>,
    side: usize,
    now: &[f64],
    next: &mut [f64],
    sent: &mut [f64],
    got: &mut [f64],
) -> Result<(), Wrong> {
    for (line, value) in sent.chunks_exact_mut(side).zip(0..) {
        for (index, value_at) in line.iter_mut().enumerate() {
            *value_at = now[match value {
                0 => index * side,
                1 => index * side + side - 1,
                2 => index,
                _ => (side - 1) * side + index,
            }];
        }
    }
    let part = |direction: usize| direction * side..(direction + 1) * side;
    {
        let (west, rest) = got.split_at_mut(side);
        let (east, rest) = rest.split_at_mut(side);
        let (north, south) = rest.split_at_mut(side);
        let sent = [0, 1, 2, 3].map(|direction| &sent[part(direction)]);
        edges.exchange(sent, [west, east, north, south])?;
    }
    // What travels west is the eastern neighbour's western edge.
    let [from_east, from_west, from_south, from_north] =
        [0, 1, 2, 3].map(|direction| &got[part(direction)]);
    for row in 0..side {
        for column in 0..side {
            let at = row * side + column;
            next[at] = mean([
                if column > 0 {
                    now[at - 1]
                } else {
                    from_west[row]
                },
                if column + 1 < side {
                    now[at + 1]
                } else {
                    from_east[row]
                },
                if row > 0 {
                    now[at - side]
                } else {
                    from_north[column]
                },
                if row + 1 < side {
                    now[at + side]
                } else {
                    from_south[column]
                },
            ]);
        }
    }
    Ok(())
}

/// The whole plane after these steps, without any communication.
fn serial<'a>(
    (rows, columns): (usize, usize),
    steps: u32,
    memory: &mut &'a mut [f64],
) -> Result<&'a [f64], Wrong> {
    let mut now = take(memory, rows * columns)?;
    let mut next = take(memory, rows * columns)?;
    for (cell, value) in now.iter_mut().enumerate() {
        *value = first(cell);
    }
    for _ in 0..steps {
        for row in 0..rows {
            for column in 0..columns {
                let cell =
                    |row: usize, column: usize| now[(row % rows) * columns + column % columns];
                next[row * columns + column] = mean([
                    cell(row, column + columns - 1),
                    cell(row, column + 1),
                    cell(row + rows - 1, column),
                    cell(row + 1, column),
                ]);
            }
        }
        core::mem::swap(&mut now, &mut next);
    }
    Ok(now)
}
