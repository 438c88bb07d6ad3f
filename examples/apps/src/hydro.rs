//! A gas in a plane, as in CloverLeaf: each step takes all ranks' largest wave speed, and the edges
//! of all fields.
//!
//! An ideal gas obeys the Euler equations. A cell has four conserved fields. What flows through a
//! face between two cells follows from both (Rusanov's flux), so a step looks one cell far. The
//! fastest wave of the whole plane may pass a quarter of a cell in a step.
//!
//! ```text
//!   allreduce(max)      length of the step     all ranks
//!   exchange of edges   4 fields a cell        four neighbours: see block
//!   step                cell ± what flows through its four faces
//! ```
//! The plane is periodic: nothing gets lost. The serial run has the whole plane, and finds the same
//! bits, as a largest value does not depend on an order. It keeps mass and energy, too. Work: one
//! step of one cell. Source: [CAF-NA] 1; V. V. Rusanov, 1961.
//!
//! [CAF-NA]: flagpost#sources

use core::array::from_fn;
use core::mem::swap;

use flagpost::{Link, World};

use crate::block::{Block, Cells, Ghosts as AllGhosts};
use crate::tile::root;
use crate::{Job, Outcome, Program, Size, Variant, Wrong, check, product, sum, take, timed};

/// Density, momentum along both dimensions, energy: in a cell's volume.
type Gas = [f64; FIELDS];
const FIELDS: usize = 4;

type Ghosts<'a, 'w, L> = AllGhosts<'a, 'w, L, 2, 4, FIELDS>;

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "hydro",
        unit: "cell",
        variants: &Variant::USUAL,
        published: None,
        small: Size { side: 5, steps: 4 },
        memory: |ranks, size| {
            let side = size.side.max(1) as usize;
            let plane = product([side, side, ranks.into()]);
            let cells = product([2 * FIELDS, sum([Block::<2>::padded_len(side), plane])]);
            sum([Ghosts::<L>::memory(side), cells])
        },
        run,
    }
}

/// Side: cells along each side of a rank's block.
fn run<L: Link>(world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
    let (Size { side, steps }, mut memory, compute) = (job.size, job.memory, job.compute);
    let side = side.max(1) as usize;
    let window = world.allocate(Ghosts::<L>::window_len(side))?;
    let mut ghosts = Ghosts::new(&window, job.variant, side, &mut memory)?;
    let block = ghosts.block();
    let plane = block.whole();
    let mut now = gas(Block::<2>::padded_len(side), &mut memory)?;
    let mut next = gas(Block::<2>::padded_len(side), &mut memory)?;
    for (cell, place) in block.cells().zip(block.places()) {
        now[cell] = first(plane, place);
    }
    let cells = (side * side) as u64;
    let outcome = timed(world, || {
        for _ in 0..steps {
            let mut speed = [fastest(block.cells().map(|cell| &now[cell]))];
            compute(FASTEST * cells);
            world.allreduce(&mut speed, f64::max)?;
            ghosts.exchange(now)?;
            for cell in block.cells() {
                let near = |direction| &now[block.near(cell, direction)];
                next[cell] = step(&now[cell], [0, 1, 2, 3].map(near), speed[0]);
            }
            compute(STEP * cells);
            swap(&mut now, &mut next);
        }
        Ok(())
    })?;
    let expected = serial(plane, steps, &mut memory)?;
    for (cell, place) in block.cells().zip(block.places()) {
        for (&found, &expected) in now[cell].iter().zip(&expected[place]) {
            check("field of a cell", found, expected)?;
        }
    }
    Ok(Outcome {
        work: plane.len() as u64 * u64::from(steps),
        ..outcome
    })
}

/// Memory for `cells` cells.
fn gas<'a>(cells: usize, memory: &mut &'a mut [f64]) -> Result<&'a mut [Gas], Wrong> {
    Ok(take(memory, FIELDS * cells)?.as_chunks_mut().0)
}

/// Gas at rest, as CloverLeaf begins: dense and hot in a corner. The density differs a little from
/// cell to cell, so that something flows everywhere.
fn first(plane: Cells<2>, place: usize) -> Gas {
    let ([row, column], [rows, columns]) = (plane.at(place), plane.sides());
    let is_hot = 5 * row < rows && 2 * column < columns;
    let (density, heat) = if is_hot { (1.0, 2.5) } else { (0.2, 1.0) };
    let uneven = f64::from((place as u32).wrapping_mul(0x9E37_79B9) >> 16) / 1e6;
    [density + uneven, 0.0, 0.0, (density + uneven) * heat]
}

/// Floating-point operations for a cell's fastest waves, and for its step: 26 for a speed, 15 for a
/// flux, so 107 for each of four faces.
const FASTEST: u64 = 54;
const STEP: u64 = 449;

/// Ratio of specific heats.
const GAMMA: f64 = 1.4;

fn pressure([density, down, right, energy]: &Gas) -> f64 {
    (GAMMA - 1.0) * (energy - 0.5 * (down * down + right * right) / density)
}

/// How fast the fastest wave is, along a dimension.
fn speed(gas: &Gas, dimension: usize) -> f64 {
    let [density, ..] = gas;
    (gas[1 + dimension] / density).abs() + root(GAMMA * pressure(gas) / density)
}

/// The fastest wave of these cells.
fn fastest<'g>(cells: impl Iterator<Item = &'g Gas>) -> f64 {
    cells.fold(0.0, |most, gas| most.max(speed(gas, 0)).max(speed(gas, 1)))
}

/// What flows along a dimension where the gas is so.
fn flux(gas: &Gas, dimension: usize) -> Gas {
    let ([density, _, _, energy], pressure) = (gas, pressure(gas));
    let velocity = gas[1 + dimension] / density;
    let mut flux = gas.map(|field| field * velocity);
    flux[1 + dimension] += pressure;
    flux[3] = (energy + pressure) * velocity;
    flux
}

/// What flows through the face between two cells along a dimension.
fn through(before: &Gas, after: &Gas, dimension: usize) -> Gas {
    let speed = speed(before, dimension).max(speed(after, dimension));
    let (left, right) = (flux(before, dimension), flux(after, dimension));
    from_fn(|field| 0.5 * (left[field] + right[field] - speed * (after[field] - before[field])))
}

/// A cell after a step, from its neighbours and the fastest wave of all.
fn step(gas: &Gas, [north, south, west, east]: [&Gas; 4], fastest: f64) -> Gas {
    let part = 0.25 / fastest;
    let (above, below) = (through(north, gas, 0), through(gas, south, 0));
    let (left, right) = (through(west, gas, 1), through(gas, east, 1));
    from_fn(|field| gas[field] + part * (above[field] - below[field] + left[field] - right[field]))
}

/// The whole plane after these steps, without any communication.
///
/// # Errors
/// [`Wrong::Value`] if mass or energy has got lost.
fn serial<'a>(plane: Cells<2>, steps: u32, memory: &mut &'a mut [f64]) -> Result<&'a [Gas], Wrong> {
    let mut now = gas(plane.len(), memory)?;
    let mut next = gas(plane.len(), memory)?;
    for (place, gas) in now.iter_mut().enumerate() {
        *gas = first(plane, place);
    }
    let total = |cells: &[Gas], field: usize| cells.iter().map(|gas| gas[field]).sum::<f64>();
    let before = [0, 3].map(|field| total(now, field));
    for _ in 0..steps {
        let fastest = fastest(now.iter());
        for (place, gas) in next.iter_mut().enumerate() {
            let near = |direction| &now[plane.near(place, direction)];
            *gas = step(&now[place], [0, 1, 2, 3].map(near), fastest);
        }
        swap(&mut now, &mut next);
    }
    for (what, field, before) in [("mass", 0, before[0]), ("energy", 3, before[1])] {
        let (found, expected) = (total(now, field), before);
        let is_kept = (found - expected).abs() < 1e-12 * f64::from(steps) * expected;
        if steps > 0 && !is_kept {
            return Err(Wrong::Value {
                what,
                found,
                expected,
            });
        }
    }
    Ok(now)
}
