//! A pipeline of ranks: the wavefront stencil of the Parallel Research Kernels (Synch_p2p).
//!
//! In a grid, `A(i,j) = A(i-1,j) + A(i,j-1) - A(i-1,j-1)`. Its columns are dealt out to ranks. So a
//! rank needs, row by row, the last value of the rank before it, and passes its own last value on.
//! After a sweep the corner of the grid goes from the last rank to the first, which begins the next
//! sweep with it. By then all have read their inboxes, which the next sweep fills again.
//!
//! ```text
//!   rank:      0       1       2
//!   columns:  side    side    side        value of the last column, row j
//!   row j    ─────► ─────► ─────►        → element j of the next rank's inbox
//!   corner   ◄────────────────────       → element `rows` of rank 0's inbox, once per sweep
//! ```
//! Only one row is kept, as the recurrence looks one row back. Work: two floating-point operations
//! for each inner element. A fence for each row would let one rank work at a time: there is none.
//!
//! Source: Van der Wijngaart and Mattson, The Parallel Research Kernels, HPEC 2014; with
//! notifications as in [NA] VI-A.
//!
//! [NA]: flagpost#sources

use flagpost::{Error, Link, Rank, Rma as _, Tag, Window, World};

use crate::messages::Mailboxes;
use crate::{Compute, Job, Outcome, Program, Size, Variant, Wrong, check, take, timed};

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "stencil",
        unit: "flop",
        variants: &[Variant::Messages, Variant::Pscw, Variant::Notified],
        published: Some((2.17, "[NA] Fig. 4b")),
        small: Size { side: 12, steps: 2 },
        memory: |_, size| columns(size) as usize,
        run,
    }
}

/// Lanes of messages for rows, used in turn. One more is for the corner.
const LANES: usize = 8;

/// How a value goes to the next rank, and comes from the one before.
struct Pipe<'a, 'w, L: Link> {
    inbox: &'a Window<'w, f64, L>,
    variant: Variant,
    compute: Compute<'a>,
    /// Rows of the grid.
    rows: usize,
}

impl<L: Link> Pipe<'_, '_, L> {
    /// Element `index` of the own inbox, when it has come from `from`.
    fn receive(&self, from: Rank, index: usize) -> Result<f64, Error> {
        match self.variant {
            Variant::Messages => {
                let mut value = [0.0];
                self.mailboxes()
                    .receive(from, self.lane(index), &mut value)?;
                return Ok(value[0]);
            }
            Variant::Pscw => self.inbox.post([from])?.wait()?,
            _ => {
                let mut value = self.inbox.expect(index..index + 1, Tag(0))?.from(from)?;
                value.start()?;
                value.wait()?;
            }
        }
        self.inbox.local().get(index)
    }

    /// Sends `value` to element `index` of `to`'s inbox, in sweep `sweep`.
    fn send(&self, to: Rank, index: usize, value: f64, sweep: u32) -> Result<(), Error> {
        match self.variant {
            Variant::Messages => {
                let is_first = sweep == 0 && (index < LANES || index == self.rows);
                self.mailboxes()
                    .send(to, self.lane(index), &[value], is_first)
            }
            Variant::Pscw => {
                let access = self.inbox.start([to])?;
                access.put(to, index, &[value])?;
                access.complete()
            }
            _ => self.inbox.put_notify(to, index, &[value], Tag(0)),
        }
    }

    const fn mailboxes(&self) -> Mailboxes<'_, '_, L> {
        Mailboxes::new(self.inbox, LANES as u32 + 1, 1)
    }

    /// The lane of a row, or of the corner.
    const fn lane(&self, index: usize) -> u32 {
        let lane = if index == self.rows {
            LANES
        } else {
            index % LANES
        };
        lane as u32
    }
}

/// Columns of a rank, and rows.
const fn columns(size: Size) -> u32 {
    if size.side < 2 { 2 } else { size.side }
}

/// Side: columns of a rank, and rows: at least two. Steps: sweeps.
fn run<L: Link>(world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
    let (side, sweeps) = (columns(job.size), job.size.steps);
    let mut memory = job.memory;
    let row = take(&mut memory, side as usize)?;
    let rows = side as usize;
    let inbox = world.allocate::<f64>(match job.variant {
        Variant::Messages => LANES + 1,
        _ => rows + 1,
    })?;
    let pipe = Pipe {
        inbox: &inbox,
        variant: job.variant,
        compute: job.compute,
        rows,
    };
    let mut corner = 0.0;
    let outcome = timed(world, || {
        for sweep in 0..sweeps {
            corner = self::sweep(world, &pipe, row, corner, sweep)?;
        }
        Ok(())
    })?;
    let columns = u64::from(side) * u64::from(world.size());
    if world.rank().get() == 0 {
        // A(m-1, n-1) = m + n - 2, and each sweep adds the corner of the last one.
        let expected = u64::from(sweeps) * (columns + u64::from(side) - 2);
        check("corner", corner, expected as f64)?;
    }
    let inner = (columns - 1) * (u64::from(side) - 1);
    Ok(Outcome {
        work: 2 * u64::from(sweeps) * inner,
        ..outcome
    })
}

/// One sweep, from the corner of the last one. The corner of this one, on rank 0.
fn sweep<L: Link>(
    world: &World<'_, L>,
    pipe: &Pipe<'_, '_, L>,
    row: &mut [f64],
    corner: f64,
    sweep: u32,
) -> Result<f64, Error> {
    let (me, last) = (world.rank(), Rank::new(world.size() - 1));
    let (first, width) = (Rank::new(0), row.len());
    // The row above the next one: A(i,0) = i, and the corner of the last sweep in A(0,0).
    for (value, column) in row.iter_mut().zip(me.index() * width..) {
        *value = column as f64;
    }
    if me == first {
        row[0] = -corner;
    }
    let mut diagonal = 0.0;
    for j in 0..pipe.rows {
        if me == first {
            if j > 0 {
                let above = core::mem::replace(&mut row[0], j as f64); // A(0,j) = j
                advance(&mut row[1..], j as f64, above);
                (pipe.compute)(2 * (width as u64 - 1));
            }
        } else {
            let left = pipe.receive(me.prev(world.size()), j)?;
            if j > 0 {
                advance(row, left, diagonal);
                (pipe.compute)(2 * width as u64);
            }
            diagonal = left;
        }
        if me != last {
            pipe.send(me.next(world.size()), j, row[width - 1], sweep)?;
        }
    }
    let corner = row[width - 1];
    if me == last && last != first {
        pipe.send(first, pipe.rows, corner, sweep)?;
    }
    match me == first && last != first {
        true => pipe.receive(last, pipe.rows),
        false => Ok(corner),
    }
}

/// Makes `row` the next one, given the value to its left, and the one above that.
fn advance(row: &mut [f64], mut left: f64, mut diagonal: f64) {
    for value in row {
        let above = *value;
        *value = left + above - diagonal;
        (left, diagonal) = (*value, above);
    }
}
