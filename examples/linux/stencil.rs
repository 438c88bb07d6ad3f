//! A pipeline of ranks: the wavefront stencil of the Parallel Research Kernels (Synch_p2p), with
//! notified puts, or with an epoch for each value.
//!
//! In a grid, `A(i,j) = A(i-1,j) + A(i,j-1) - A(i-1,j-1)`. Its columns are dealt out to ranks. So a
//! rank needs, row by row, the last value of its left neighbour, and passes its own last value to
//! the right. The last rank passes the corner of the grid to the first one, which begins the next
//! sweep with it. By then all have read their inboxes, which the next sweep may fill again.
//!
//! ```sh
//! cargo build --release -p flagpost-linux --bins --examples
//! target/release/flagpost-run -n 4 target/release/examples/stencil [notified | pscw]
//! ```
use std::process::ExitCode;
use std::time::Instant;

use flagpost::epoch::pscw::{EpochSlots, Exposure};
use flagpost::prelude::*;

/// Columns per rank.
const COLUMNS: usize = 250;
const ROWS: usize = 500;
const SWEEPS: usize = 4;

/// How values come from the rank before, and go to the next one. The ranks are a ring.
trait Exchange {
    /// Element `index` of this rank's inbox, when it has come.
    fn receive(&mut self, index: usize) -> Result<f64, Error>;
    /// Sends `value` to element `index` of the next rank's inbox.
    fn send(&mut self, index: usize, value: f64) -> Result<(), Error>;
}

/// A notified put for each value: the message is all there is.
struct Notified<'a, 'w, L: Link> {
    inbox: &'a Window<'w, f64, L>,
    before: Rank,
    next: Rank,
}

impl<L: Link> Exchange for Notified<'_, '_, L> {
    fn receive(&mut self, index: usize) -> Result<f64, Error> {
        let mut value = self.inbox.expect(index..index + 1, Tag(0))?;
        value = value.from(self.before)?;
        value.start()?;
        value.wait()?;
        self.inbox.local().get(index)
    }

    fn send(&mut self, index: usize, value: f64) -> Result<(), Error> {
        self.inbox.put_notify(self.next, index, &[value], Tag(0))
    }
}

/// An epoch for each value: the inbox is exposed, and the sender waits for that.
struct Epochs<'a, 'w, L: Link> {
    inbox: &'a Window<'w, f64, L>,
    before: Rank,
    next: Rank,
    /// The epoch of the next value, which is posted early: the sender finds it.
    exposure: Option<Exposure<'a, 'w, L, EpochSlots<'w>>>,
    /// Values that are still to come.
    left: usize,
}

impl<L: Link> Exchange for Epochs<'_, '_, L> {
    fn receive(&mut self, index: usize) -> Result<f64, Error> {
        if let Some(exposure) = self.exposure.take() {
            exposure.wait()?;
        }
        let value = self.inbox.local().get(index)?;
        self.left -= 1;
        if self.left > 0 {
            self.exposure = Some(self.inbox.post([self.before])?);
        }
        Ok(value)
    }

    fn send(&mut self, index: usize, value: f64) -> Result<(), Error> {
        let access = self.inbox.start([self.next])?;
        access.put(self.next, index, &[value])?;
        access.complete()
    }
}

/// All sweeps. Rank 0 checks the corner, and says how long they took.
fn sweeps<L: Link>(
    world: &World<'_, L>,
    name: &str,
    exchange: &mut impl Exchange,
) -> Result<(), Error> {
    let (me, size) = (world.rank().index(), usize::from(world.size()));
    let (is_first, is_last) = (me == 0, me == size - 1);
    let mut corner = 0.0;
    world.barrier()?;
    let start = Instant::now();
    for _ in 0..SWEEPS {
        // The row above the next one: A(i,0) = i, and the corner of the last sweep in A(0,0).
        let first = me * COLUMNS;
        let mut row: Vec<f64> = (first..first + COLUMNS).map(|i| i as f64).collect();
        if is_first {
            row[0] = -corner;
        }
        let mut diagonal = 0.0;
        for j in 0..ROWS {
            if !is_first {
                let left = exchange.receive(j)?;
                if j > 0 {
                    advance(&mut row, left, diagonal);
                }
                diagonal = left;
            } else if j > 0 {
                let above = row[0];
                row[0] = j as f64; // A(0,j) = j
                advance(&mut row[1..], j as f64, above);
            }
            if !is_last {
                exchange.send(j, row[COLUMNS - 1])?;
            }
        }
        // The next of the last rank is the first; the corner has an element after those of rows.
        if is_last {
            exchange.send(ROWS, row[COLUMNS - 1])?;
        }
        if is_first {
            corner = exchange.receive(ROWS)?;
        }
    }
    if is_first {
        let (time, columns) = (start.elapsed().as_secs_f64(), size * COLUMNS);
        assert_eq!(corner, (SWEEPS * (columns + ROWS - 2)) as f64);
        let flops = (2 * SWEEPS * (columns - 1) * (ROWS - 1)) as f64;
        println!(
            "{name}: {SWEEPS} sweeps of {columns} columns on {size} ranks in {:.3} ms, {:.0} MFlop/s",
            time * 1e3,
            flops / time / 1e6
        );
    }
    world.barrier()
}

/// Makes `row` the next one, given the value to its left, and that one's predecessor.
fn advance(row: &mut [f64], mut left: f64, mut diagonal: f64) {
    for value in row {
        let above = *value;
        *value = left + above - diagonal;
        (left, diagonal) = (*value, above);
    }
}

fn notified<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let inbox = world.allocate(ROWS + 1)?;
    let mut exchange = Notified {
        inbox: &inbox,
        before: world.rank().prev(world.size()),
        next: world.rank().next(world.size()),
    };
    sweeps(world, "notified", &mut exchange)
}

fn epochs<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    let inbox = world.allocate(ROWS + 1)?;
    let before = world.rank().prev(world.size());
    let is_first = world.rank().get() == 0;
    let mut exchange = Epochs {
        inbox: &inbox,
        before,
        next: world.rank().next(world.size()),
        exposure: Some(inbox.post([before])?),
        left: if is_first { SWEEPS } else { SWEEPS * ROWS },
    };
    sweeps(world, "pscw", &mut exchange)
}

fn stencil<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("notified") => notified(world),
        Some("pscw") => epochs(world),
        _ => notified(world).and_then(|()| epochs(world)),
    }
}

fn main() -> ExitCode {
    flagpost_linux::run_in_mode!(stencil)
}
