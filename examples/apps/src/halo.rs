//! A plane of cells, dealt out to ranks: in each step a cell becomes the mean of its neighbours.
//!
//! ```text
//!          ▲ 0                 block of side x side cells; the plane is periodic
//!          │                   direction  0 north, 1 south, 2 west, 3 east
//!   2 ◄── block ──► 3
//!          │
//!          ▼ 1
//! ```
//! The edges of each rank's block go to four neighbours: [`block`](crate::block). Work: four
//! floating-point operations for each cell and step. The serial run has all blocks in one plane,
//! and finds the same bits.

use core::mem::swap;

use flagpost::{Link, World};

use crate::block::{Block, Cells, Ghosts as AllGhosts};
use crate::{Job, Outcome, Program, Size, Variant, Wrong, check, product, sum, take, timed};

type Ghosts<'a, 'w, L> = AllGhosts<'a, 'w, L, 2, 4, 1>;

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "halo",
        unit: "flop",
        variants: &Variant::USUAL,
        published: None,
        small: Size { side: 6, steps: 5 },
        memory: |ranks, size| {
            let side = size.side.max(1) as usize;
            let planes = product([2, side, side, ranks.into()]);
            let block = product([2, Block::<2>::padded_len(side)]);
            sum([Ghosts::<L>::memory(side), block, planes])
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
    let mut cells = || take(&mut memory, Block::<2>::padded_len(side));
    let (mut now, _) = cells()?.as_chunks_mut();
    let (mut next, _) = cells()?.as_chunks_mut();
    for (cell, place) in block.cells().zip(block.places()) {
        now[cell] = [first(place)];
    }
    let outcome = timed(world, || {
        for _ in 0..steps {
            ghosts.exchange(now)?;
            for cell in block.cells() {
                let near = |direction| now[block.near(cell, direction)][0];
                next[cell] = [mean([0, 1, 2, 3].map(near))];
            }
            compute(4 * (side * side) as u64);
            swap(&mut now, &mut next);
        }
        Ok(())
    })?;
    let plane = block.whole();
    let expected = serial(plane, steps, &mut memory)?;
    for (cell, place) in block.cells().zip(block.places()) {
        check("cell", now[cell][0], expected[place])?;
    }
    Ok(Outcome {
        work: 4 * plane.len() as u64 * u64::from(steps),
        ..outcome
    })
}

/// What a cell holds in the beginning: anything.
fn first(place: usize) -> f64 {
    f64::from((place as u32).wrapping_mul(0x9E37_79B9) >> 16)
}

/// The mean, added up in the order that all runs add in.
fn mean([north, south, west, east]: [f64; 4]) -> f64 {
    (west + east + north + south) * 0.25
}

/// The whole plane after these steps, without any communication.
fn serial<'a>(plane: Cells<2>, steps: u32, memory: &mut &'a mut [f64]) -> Result<&'a [f64], Wrong> {
    let mut now = take(memory, plane.len())?;
    let mut next = take(memory, plane.len())?;
    for (place, value) in now.iter_mut().enumerate() {
        *value = first(place);
    }
    for _ in 0..steps {
        for (place, value) in next.iter_mut().enumerate() {
            *value = mean([0, 1, 2, 3].map(|direction| now[plane.near(place, direction)]));
        }
        swap(&mut now, &mut next);
    }
    Ok(now)
}
