//! Conjugate gradients on a lattice of four dimensions, as MILC's solver: each step takes the edges
//! of eight neighbours and two sums over all ranks.
//!
//! The equation is A x = b, where A is the lattice's Laplacian and a mass. A is symmetric and
//! positive, so x comes nearer with each step. The lattice is periodic.
//!
//! ```text
//!   (A x) at a site = (8 + mass) x - the x of its eight neighbours
//!
//!   exchange of edges    p              eight neighbours: see block
//!   allreduce(+)         p · A p        how far to go along p
//!   allreduce(+)         r · r          what is left: the residual, and with it the next p
//! ```
//! # Sums
//! A sum of floating-point numbers depends on the order, and the order on the ranks. Here products
//! are rounded to multiples of 2^-80 and added as integers, which do not care. So any number of
//! ranks finds the same bits as the serial run. That run also makes A x anew, and compares b - A x
//! with the residual.
//!
//! Work: 9 floating-point operations for A, and 10 for the vectors, for each site and step. Source:
//! [foMPI] 4.4.
//!
//! [foMPI]: flagpost#sources

use flagpost::{Link, World};

use crate::block::{Block, Cells, Ghosts as AllGhosts};
use crate::{Job, Outcome, Program, Size, Variant, Wrong, check, product, sum, take, timed};

type Ghosts<'a, 'w, L> = AllGhosts<'a, 'w, L, 4, 8, 1>;

const DIRECTIONS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Floating-point operations for a site: for A, and for the vectors of a step.
const MATRIX: u64 = 9;
const UPDATES: u64 = 10;

/// The vectors of the method: x, r, p, A p.
const VECTORS: usize = 4;

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "lattice",
        unit: "flop",
        variants: &Variant::USUAL,
        published: None,
        small: Size { side: 2, steps: 4 },
        memory: |ranks, size| {
            let side = size.side.max(1) as usize;
            let whole = product([side, side, side, side, ranks.into()]);
            let sites = sum([Block::<4>::padded_len(side), whole]);
            sum([Ghosts::<L>::memory(side), product([VECTORS, sites])])
        },
        run,
    }
}

/// Side: sites along each side of a rank's block.
fn run<L: Link>(world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
    let (Size { side, steps }, mut memory, compute) = (job.size, job.memory, job.compute);
    let side = side.max(1) as usize;
    let window = world.allocate(Ghosts::<L>::window_len(side))?;
    let mut ghosts = Ghosts::new(&window, job.variant, side, &mut memory)?;
    let block = ghosts.block();
    let whole = block.whole();
    let mut vectors = Vectors::new(Block::<4>::padded_len(side), &mut memory)?;
    vectors.begin(block.cells().zip(block.places()));
    let sites = side.pow(4) as u64;
    let outcome = timed(world, || {
        let sum_of_all = |own: i128| {
            let mut sum = [own];
            world.allreduce(&mut sum, |a: i128, b| a + b)?;
            Ok(sum[0])
        };
        let mut left = sum_of_all(dot(vectors.r, vectors.r, block.cells()))?;
        for _ in 0..steps {
            ghosts.exchange(vectors.p.as_chunks_mut().0)?;
            for cell in block.cells() {
                let near = DIRECTIONS.map(|direction| vectors.p[block.near(cell, direction)]);
                vectors.ap[cell] = laplace(vectors.p[cell], near);
            }
            compute(MATRIX * sites);
            left = vectors.step(left, || block.cells(), sum_of_all)?;
            compute(UPDATES * sites);
        }
        Ok(())
    })?;
    let expected = serial(whole, steps, &mut memory)?;
    for (cell, place) in block.cells().zip(block.places()) {
        check("site", vectors.x[cell], expected[place])?;
    }
    Ok(Outcome {
        work: (MATRIX + UPDATES) * whole.len() as u64 * u64::from(steps),
        ..outcome
    })
}

/// What A has on its diagonal beside the Laplacian.
const MASS: f64 = 1.0;

/// The largest eigenvalue of A by the least: how many times a step may lengthen the residual.
const CONDITION: f64 = (16.0 + MASS) / MASS;
/// By what r · r shrinks with each step: after n steps at most to 4 CONDITION SHRINKS^n of what it
/// was. That is the usual bound, ((√c - 1) / (√c + 1))^2n with c = CONDITION. A single step may
/// well lengthen the residual.
const SHRINKS: f64 = 0.3717;

/// A x at a site, from its x and those of its neighbours.
fn laplace(here: f64, near: [f64; 8]) -> f64 {
    (8.0 + MASS) * here - near.iter().sum::<f64>()
}

/// The right-hand side at a site: anything between 0 and 1.
fn source(place: usize) -> f64 {
    f64::from((place as u32).wrapping_mul(0x9E37_79B9)) / f64::from(u32::MAX)
}

/// Units of a sum in 1.
const PARTS: f64 = (1_u128 << 80) as f64;

/// The part of these cells in a · b, in units.
fn dot(a: &[f64], b: &[f64], cells: impl Iterator<Item = usize>) -> i128 {
    cells.map(|cell| (a[cell] * b[cell] * PARTS) as i128).sum()
}

/// The vectors of the method, by cell.
struct Vectors<'m> {
    /// The solution so far.
    x: &'m mut [f64],
    /// The residual b - A x.
    r: &'m mut [f64],
    /// The direction of the step.
    p: &'m mut [f64],
    /// A p.
    ap: &'m mut [f64],
}

impl<'m> Vectors<'m> {
    fn new(len: usize, memory: &mut &'m mut [f64]) -> Result<Self, Wrong> {
        Ok(Self {
            x: take(memory, len)?,
            r: take(memory, len)?,
            p: take(memory, len)?,
            ap: take(memory, len)?,
        })
    }

    /// From x = 0, for cells at these places.
    fn begin(&mut self, cells: impl Iterator<Item = (usize, usize)>) {
        for (cell, place) in cells {
            self.x[cell] = 0.0;
            self.r[cell] = source(place);
            self.p[cell] = source(place);
        }
    }

    /// A step along p, whose A p is known, with r · r = `left`. The next r · r.
    fn step<I: Iterator<Item = usize>>(
        &mut self,
        left: i128,
        cells: impl Fn() -> I,
        sum_of_all: impl Fn(i128) -> Result<i128, Wrong>,
    ) -> Result<i128, Wrong> {
        let along = sum_of_all(dot(self.p, self.ap, cells()))?;
        if left == 0 || along == 0 {
            return Ok(left); // the solution, as far as sums can tell
        }
        let distance = left as f64 / along as f64;
        for cell in cells() {
            self.x[cell] += distance * self.p[cell];
            self.r[cell] -= distance * self.ap[cell];
        }
        let next = sum_of_all(dot(self.r, self.r, cells()))?;
        let kept = next as f64 / left as f64;
        for cell in cells() {
            self.p[cell] = self.r[cell] + kept * self.p[cell];
        }
        Ok(next)
    }
}

/// The solution of the whole lattice after these steps, without any communication.
///
/// # Errors
/// [`Wrong::Value`] if the residual is not that of the solution, or larger than it may be.
fn serial<'a>(
    lattice: Cells<4>,
    steps: u32,
    memory: &mut &'a mut [f64],
) -> Result<&'a [f64], Wrong> {
    let sites = || 0..lattice.len();
    let mut vectors = Vectors::new(lattice.len(), memory)?;
    vectors.begin(sites().zip(sites()));
    let apply = |x: &[f64], site| {
        laplace(
            x[site],
            DIRECTIONS.map(|direction| x[lattice.near(site, direction)]),
        )
    };
    let mut left = dot(vectors.r, vectors.r, sites());
    let mut most = 4.0 * CONDITION * left as f64;
    for _ in 0..steps {
        for site in sites() {
            vectors.ap[site] = apply(vectors.p, site);
        }
        left = vectors.step(left, sites, Ok)?;
        most *= SHRINKS;
    }
    for site in sites() {
        let (found, expected) = (vectors.r[site], source(site) - apply(vectors.x, site));
        let is_near = (found - expected).abs() < 1e-12;
        if !is_near {
            return Err(Wrong::Value {
                what: "residual of a site",
                found,
                expected,
            });
        }
    }
    // Each site is rounded to a unit.
    let most = most + lattice.len() as f64;
    if left as f64 > most {
        return Err(Wrong::Value {
            what: "residual",
            found: left as f64 / PARTS,
            expected: most / PARTS,
        });
    }
    Ok(vectors.x)
}
