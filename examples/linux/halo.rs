//! A cellular automaton (rule 90) on a ring of cells, dealt out to ranks: in each step, neighbours
//! exchange the cells at their edges, in epochs.
//!
//! ```sh
//! cargo build --release -p flagpost-linux --bins --examples
//! target/release/flagpost-run -n 4 target/release/examples/halo
//! ```
use std::process::ExitCode;

use flagpost::{Grid, prelude::*};

/// Cells per rank.
const CELLS: usize = 1000;
const STEPS: usize = 500;

fn halo<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    let ring = Grid::new(size, [size], [true])?;
    let (left, right) = (me.prev(size), me.next(size));
    // Two elements: the left neighbour's last cell, the right one's first.
    let window = world.allocate::<u64>(2)?;
    let neighbours = ring.neighbours(me);
    let mut cells = first(me.index());
    for _ in 0..STEPS {
        let exposure = window.post(&*neighbours)?;
        let access = window.start(&*neighbours)?;
        access.put(left, 1, &cells[..1])?;
        access.put(right, 0, &cells[CELLS - 1..])?;
        access.complete()?;
        exposure.wait()?;
        let edges = [window.local().get(0)?, window.local().get(1)?];
        cells = step(&cells, edges);
    }
    // Every rank looks after itself: the whole ring, without any communication.
    let mut all: Vec<u64> = (0..usize::from(size)).flat_map(first).collect();
    for _ in 0..STEPS {
        all = step(&all, [all[all.len() - 1], all[0]]);
    }
    assert_eq!(cells, all[me.index() * CELLS..][..CELLS]);
    world.barrier()?;
    if me.get() == 0 {
        println!(
            "{STEPS} steps of {} cells on {size} ranks: as expected",
            all.len()
        );
    }
    Ok(())
}

/// What a rank's cells hold in the beginning.
fn first(rank: usize) -> Vec<u64> {
    (0..CELLS as u64)
        .map(|cell| (cell + 1 + 1000 * rank as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .collect()
}

/// Each cell becomes the exclusive or of its neighbours.
fn step(cells: &[u64], [before, behind]: [u64; 2]) -> Vec<u64> {
    let left = std::iter::once(&before).chain(cells);
    let right = cells[1..].iter().chain(std::iter::once(&behind));
    left.zip(right).map(|(left, right)| left ^ right).collect()
}

fn main() -> ExitCode {
    flagpost_linux::run_in_mode!(halo)
}
