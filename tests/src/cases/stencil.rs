//! The pipelined wavefront stencil of the Parallel Research Kernels (Synch_p2p).
//!
//! A grid of m columns and n rows, `A(i,0) = i`, `A(0,j) = j`, else
//! `A(i,j) = A(i-1,j) + A(i,j-1) - A(i-1,j-1)`. The columns are split over the ranks, so that row
//! after row a rank needs its left neighbour's last value, and the ranks work in a pipeline. After
//! each sweep the corner, negated, becomes `A(0,0)` of the next; hence after k sweeps
//! `A(m-1,n-1) = k (m + n - 2)`.
//!
//! ```text
//!   rank:      0       1       2
//!   columns:  0…3     4…7     8…11       value of the last column, row j
//!   row j    ─────► ─────► ─────►        → element j of the right neighbour's inbox
//!   corner   ◄────────────────────       → element n of rank 0's inbox, once per sweep
//! ```
//! An inbox element is written again only in the next sweep, which begins when the corner has gone
//! back: by then every rank has read all of it.
//!
//! By default each core has 4 columns; there are 12 rows and 2 sweeps. Only one row is kept (the
//! recurrence looks one row back), so that a core's stack suffices. Arguments: `stencil.m`,
//! `stencil.n`, `stencil.iterations`.
//!
//! Source: Van der Wijngaart and Mattson, The Parallel Research Kernels, HPEC 2014; the notified
//! version as in [NA] VI-A.

use flagpost::{Link, Rank, Rma as _, Tag, Window, World};

use super::join;
use super::steps::hear;
use crate::arguments::{STENCIL_COLUMNS, STENCIL_ITERATIONS, STENCIL_M, STENCIL_N};
use crate::{Args, Context, Platform, Result, context::check};

struct Grid {
    m: u32,
    n: u32,
    iterations: u32,
}

impl Grid {
    fn from_args(args: Args<'_>, size: u16) -> Result<Self> {
        Ok(Self {
            m: args.of(&STENCIL_M, size, 4 * u32::from(size))?,
            n: args.of(&STENCIL_N, size, 12)?,
            iterations: args.of(&STENCIL_ITERATIONS, size, 2)?,
        })
    }

    /// Ranks that have columns: each at least one.
    fn ranks(&self, size: u16) -> u16 {
        self.m.min(u32::from(size)) as u16
    }

    /// First column of `rank`, of `ranks`.
    fn first_column(&self, rank: u16, ranks: u16) -> u32 {
        (u64::from(self.m) * u64::from(rank) / u64::from(ranks)) as u32
    }
}

/// How a rank's left and right neighbours hand over values.
trait Exchange {
    /// Element `index` of the own inbox, once `from` has sent it.
    fn receive(&mut self, from: Rank, index: usize) -> Result<f64>;
    /// Sends `value` to element `index` of `to`'s inbox.
    fn send(&mut self, to: Rank, index: usize, value: f64) -> Result;
}

/// With notified puts: one message per value.
struct Notified<'w, L> {
    inbox: Window<'w, f64, L>,
}

impl<L: Link> Exchange for Notified<'_, L> {
    fn receive(&mut self, from: Rank, index: usize) -> Result<f64> {
        hear(self.inbox.expect(index..index + 1, Tag(0))?.from(from)?)?;
        Ok(self.inbox.local().get(index)?)
    }

    fn send(&mut self, to: Rank, index: usize, value: f64) -> Result {
        Ok(self.inbox.put_notify(to, index, &[value], Tag(0))?)
    }
}

/// With an epoch per value.
struct Pscw<'w, L> {
    inbox: Window<'w, f64, L>,
}

impl<L: Link> Exchange for Pscw<'_, L> {
    fn receive(&mut self, from: Rank, index: usize) -> Result<f64> {
        let origins = [from];
        let origins = self.inbox.world().group(&origins)?;
        self.inbox.post(&origins)?.wait()?;
        Ok(self.inbox.local().get(index)?)
    }

    fn send(&mut self, to: Rank, index: usize, value: f64) -> Result {
        let targets = [to];
        let targets = self.inbox.world().group(&targets)?;
        let access = self.inbox.start(&targets)?;
        access.put(to, index, &[value])?;
        Ok(access.complete()?)
    }
}

pub(super) fn notified<P: Platform>(context: &mut Context<'_, P>) -> Result {
    let args = context.args;
    let corner = {
        let world = join(context)?;
        let grid = Grid::from_args(args, world.size())?;
        let inbox = world.allocate(grid.n as usize + 1)?;
        sweep(&grid, &world, &mut Notified { inbox })?
    };
    report(context, corner)
}

pub(super) fn pscw<P: Platform>(context: &mut Context<'_, P>) -> Result {
    let args = context.args;
    let corner = {
        let world = join(context)?;
        let grid = Grid::from_args(args, world.size())?;
        let inbox = world.allocate(grid.n as usize + 1)?;
        sweep(&grid, &world, &mut Pscw { inbox })?
    };
    report(context, corner)
}

fn report<P: Platform>(context: &mut Context<'_, P>, corner: Option<f64>) -> Result {
    if let Some(corner) = corner {
        (context.report)("corner value", corner as u64);
    }
    Ok(())
}

/// All iterations. Rank 0 gets, checks and returns the corner's value.
fn sweep<L: Link>(
    grid: &Grid,
    world: &World<'_, L>,
    exchange: &mut impl Exchange,
) -> Result<Option<f64>> {
    let (me, ranks) = (world.rank().get(), grid.ranks(world.size()));
    if me >= ranks {
        return Ok(None);
    }
    let (first, end) = (
        grid.first_column(me, ranks),
        grid.first_column(me + 1, ranks),
    );
    let mut columns = [0.0_f64; STENCIL_COLUMNS as usize];
    let row = &mut columns[..(end - first) as usize];
    let mut corner = 0.0;
    for _ in 0..grid.iterations {
        for (value, column) in row.iter_mut().zip(first..end) {
            *value = f64::from(column);
        }
        if me == 0 {
            row[0] = -corner;
        }
        let mut above_left = 0.0;
        for j in 0..grid.n {
            let index = j as usize;
            if me == 0 {
                let above = row[0];
                if j > 0 {
                    row[0] = f64::from(j);
                    advance(&mut row[1..], f64::from(j), above);
                }
            } else {
                let left = exchange.receive(Rank::new(me - 1), index)?;
                if j > 0 {
                    advance(row, left, above_left);
                }
                above_left = left;
            }
            if me + 1 < ranks {
                exchange.send(Rank::new(me + 1), index, row[row.len() - 1])?;
            }
        }
        // The corner goes back to rank 0, behind the rows of its inbox.
        let (last, behind) = (ranks - 1, grid.n as usize);
        corner = row[row.len() - 1];
        if me == last && last != 0 {
            exchange.send(Rank::new(0), behind, corner)?;
        } else if me == 0 && last != 0 {
            corner = exchange.receive(Rank::new(last), behind)?;
        }
    }
    if me != 0 {
        return Ok(None);
    }
    let expected = f64::from(grid.iterations) * f64::from(grid.m + grid.n - 2);
    check("corner value", corner as u64, expected as u64)?;
    Ok(Some(corner))
}

/// Makes `row` the next one, given its left neighbour and that one's value in the row before.
fn advance(row: &mut [f64], mut left: f64, mut diagonal: f64) {
    for value in row {
        let above = *value;
        *value = left + above - diagonal;
        (diagonal, left) = (above, *value);
    }
}
