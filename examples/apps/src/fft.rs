//! A three-dimensional Fourier transform of a cube, dealt out to ranks in slabs.
//!
//! A rank has some planes z = const of the cube. It transforms each along x and y. Then each rank
//! gets a slab of rows y = const of all planes, and transforms along z. A plane's part for another
//! rank is one piece of memory at both ends. It can leave as soon as its plane is ready: then it
//! travels while the next plane is transformed.
//!
//! ```text
//!       plane z of rank 1              slab of rank 2: for each plane z its rows
//!     y ┌──────────────┐
//!       │ rows, rank 0 │ ──► rank 0     z = 0   1   2   3   4   5
//!       │ rows, rank 1 │               ┌───┬───┬───┬───┬───┬───┐
//!       │ rows, rank 2 │ ────────────► │   │   │ ● │   │   │   │  then along z
//!       └──────────────┘ x             └───┴───┴───┴───┴───┴───┘
//! ```
//! | variant | a plane's pieces leave | the slab is complete |
//! |---|---|---|
//! | `messages` | when all planes are ready, one packed message per rank | after all receives |
//! | `fence` | when all planes are ready | after a fence |
//! | `pscw` | when the plane is ready | when all ranks have completed their accesses |
//! | `notified` | when the plane is ready | after as many notifications as there are planes |
//!
//! Slabs need not be of the same height: if there are more ranks than planes, some have none, and
//! send and get nothing. Work: 5 n log n floating-point operations for n numbers, as is usual.
//!
//! Of several rounds the last one is compared. The serial run transforms the whole cube, and finds
//! the same bits. That run takes the same table and the same steps, so it is checked itself: each
//! rank makes a few of its numbers anew, as the sums that define them.
//!
//! Source: [foMPI] 4.3.
//!
//! [foMPI]: flagpost#sources

use core::f64::consts::TAU;
use core::ops::Range;

use flagpost::{Error, Link, Rank, Rma, Tag, Window, World, epoch::Assert};

use crate::messages::Mailboxes;
use crate::radix2::{along, turns};
use crate::{
    Compute, Job, Outcome, Program, Size, Variant, Wrong, check, product, random, sum, take, timed,
};

/// Ranks of an epoch, at most.
const MOST: usize = 1024;

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "fft",
        unit: "flop",
        variants: &Variant::USUAL,
        published: None,
        small: Size { side: 8, steps: 2 },
        memory: |ranks, size| {
            let cube = Cube::new(ranks, size);
            // Slabs and cube; a message, a line, the table for lines.
            let slab = cube.slab(cube.most());
            let lines = product([3, cube.side]);
            sum([slab, slab, cube.slab(cube.side), cube.message(), lines])
        },
        run,
    }
}

/// How the cube is dealt out.
#[derive(Copy, Clone)]
struct Cube {
    side: usize,
    ranks: u16,
}

impl Cube {
    fn new(ranks: u16, size: Size) -> Self {
        let side = (size.side as usize).checked_next_power_of_two();
        let side = side.unwrap_or(usize::MAX);
        Self { side, ranks }
    }

    /// Elements of some planes, or of as many rows of all planes.
    fn slab(&self, planes: usize) -> usize {
        product([2, planes, self.side, self.side])
    }

    /// The planes of the rank that has most.
    const fn most(&self) -> usize {
        self.side.div_ceil(self.ranks as usize)
    }

    /// Elements of the rows of a plane that one rank gets, at most.
    fn piece(&self) -> usize {
        product([2, self.most(), self.side])
    }

    /// Elements of a message: such pieces of all planes of a rank.
    fn message(&self) -> usize {
        product([self.most(), self.piece()])
    }

    /// The planes of a rank: the numbers of its rows, too.
    fn part(&self, rank: Rank) -> Range<usize> {
        let start = |rank: usize| rank * self.side / usize::from(self.ranks);
        start(rank.index())..start(rank.index() + 1)
    }

    /// Elements of a plane that a rank gets.
    fn rows(&self, rank: Rank) -> Range<usize> {
        let Range { start, end } = self.part(rank);
        2 * start * self.side..2 * end * self.side
    }

    /// The ranks that have planes, and get rows of all.
    fn owners(self) -> impl Iterator<Item = Rank> {
        let all = (0..self.ranks).map(Rank::new);
        all.filter(move |&rank| !self.part(rank).is_empty())
    }
}

/// A rank's part of the transform.
struct Slab<'a, 'w, L: Link> {
    cube: Cube,
    me: Rank,
    window: &'a Window<'w, f64, L>,
    /// First planes, then rows of all planes.
    numbers: &'a mut [f64],
    line: &'a mut [f64],
    turns: &'a [f64],
    /// A message that is packed.
    packed: &'a mut [f64],
    /// The rows that messages have brought: planes are still to be sent meanwhile.
    received: &'a mut [f64],
    compute: Compute<'a>,
}

/// Side: numbers along each side of the cube, rounded up to a power of two. Steps: transforms.
fn run<L: Link>(world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
    let (variant, size, mut memory, compute) = (job.variant, job.size, job.memory, job.compute);
    let cube = Cube::new(world.size(), size);
    let (side, me) = (cube.side, world.rank());
    let window = world.allocate::<f64>(match variant {
        Variant::Messages => usize::from(cube.ranks) * cube.message(),
        _ => side * cube.piece(),
    })?;
    // Pieces are long: stored in their places, they cost the target no copy out of its ring.
    window.set_inline(false);
    let table = take(&mut memory, side)?;
    turns(table);
    let mut slab = Slab {
        cube,
        me,
        window: &window,
        numbers: take(&mut memory, cube.slab(cube.part(me).len()))?,
        line: take(&mut memory, 2 * side)?,
        turns: table,
        packed: take(&mut memory, cube.message())?,
        received: take(&mut memory, cube.slab(cube.part(me).len()))?,
        compute,
    };
    let outcome = timed(world, || {
        for round in 0..size.steps {
            fill(slab.numbers, cube.slab(cube.part(me).start), round);
            slab.transpose(variant)?;
            slab.transform_rows();
            // The next round begins when this one has ended.
            world.barrier()?;
        }
        Ok(())
    })?;
    if let Some(last) = size.steps.checked_sub(1) {
        let whole = take(&mut memory, cube.slab(side))?;
        fill(whole, 0, last);
        serial(whole, side, slab.line, slab.turns);
        slab.compare(whole)?;
        defined(whole, side, last, me, slab.line)?;
    }
    let numbers = (side * side * side) as u64;
    let stages = 3 * u64::from(side.trailing_zeros());
    Ok(Outcome {
        work: 5 * numbers * stages * u64::from(size.steps),
        ..outcome
    })
}

/// Fills elements of the cube, from `start` on.
fn fill(elements: &mut [f64], start: usize, round: u32) {
    for (element, at) in elements.iter_mut().zip(start..) {
        *element = first(at, round);
    }
}

/// What an element of the cube is before a round: anything.
fn first(at: usize, round: u32) -> f64 {
    let any = (at as u32).wrapping_add(round).wrapping_mul(0x9E37_79B9) >> 16;
    f64::from(any) / f64::from(1 << 16)
}

impl<'w, L: Link + 'w> Slab<'_, 'w, L> {
    /// How many planes this rank has; and rows, when they have come.
    fn height(&self) -> usize {
        self.cube.part(self.me).len()
    }

    /// Transforms a plane of this rank, along x and y.
    fn transform_plane(&mut self, nth: usize) {
        let side = self.cube.side;
        let plane = &mut self.numbers[self.cube.slab(nth)..self.cube.slab(nth + 1)];
        for row in 0..side {
            along(plane, row * side, 1, self.line, self.turns);
        }
        for column in 0..side {
            along(plane, column, side, self.line, self.turns);
        }
        (self.compute)(2 * side as u64 * self.of_line());
    }

    /// Transforms this rank's rows of all planes, along z.
    fn transform_rows(&mut self) {
        let stride = self.height() * self.cube.side;
        for start in 0..stride {
            along(self.numbers, start, stride, self.line, self.turns);
        }
        (self.compute)(stride as u64 * self.of_line());
    }

    /// Floating-point operations for a line.
    const fn of_line(&self) -> u64 {
        let side = self.cube.side as u64;
        5 * side * side.trailing_zeros() as u64
    }

    /// Transforms the planes, and makes rows of all planes of them.
    fn transpose(&mut self, variant: Variant) -> Result<(), Wrong> {
        let (cube, window) = (self.cube, self.window);
        if self.height() == 0 && variant != Variant::Fence {
            return Ok(());
        }
        match variant {
            Variant::Messages => self.by_messages()?,
            Variant::Fence => {
                (0..self.height()).for_each(|nth| self.transform_plane(nth));
                let fence = window.fence(Assert::empty())?;
                for nth in 0..self.height() {
                    self.each_piece(nth, |to, at, piece| fence.put(to, at, piece))?;
                }
                fence.end()?;
                self.take()?;
            }
            Variant::Pscw => {
                let mut group = [Rank::new(0); MOST];
                let group = group.get_mut(..cube.owners().count());
                let group = group.ok_or(Wrong::Variant(variant))?;
                group
                    .iter_mut()
                    .zip(cube.owners())
                    .for_each(|(to, rank)| *to = rank);
                let exposure = window.post(&*group)?;
                let access = window.start(&*group)?;
                for nth in 0..self.height() {
                    self.transform_plane(nth);
                    self.each_piece(nth, |to, at, piece| access.put(to, at, piece))?;
                }
                access.complete()?;
                exposure.wait()?;
                self.take()?;
            }
            _ => {
                let mut planes = window.expect(0..window.len(), Tag(0))?;
                planes = planes.times(cube.side as u16)?;
                planes.start()?;
                for nth in 0..self.height() {
                    // What has come is taken: no other rank waits for room here.
                    planes.test()?;
                    self.transform_plane(nth);
                    self.each_piece(nth, |to, at, piece| {
                        window.put_notify(to, at, piece, Tag(0))
                    })?;
                }
                planes.wait()?;
                self.take()?;
            }
        }
        Ok(())
    }

    /// Puts the pieces of a plane to their places on all ranks that get rows: to this one itself
    /// last.
    fn each_piece(
        &self,
        nth: usize,
        mut put: impl FnMut(Rank, usize, &[f64]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let cube = self.cube;
        let plane = &self.numbers[cube.slab(nth)..cube.slab(nth + 1)];
        let at = (cube.part(self.me).start + nth) * cube.piece();
        for distance in 1..=cube.ranks {
            let to = self.me.ahead(distance, cube.ranks);
            let rows = cube.rows(to);
            if !rows.is_empty() {
                put(to, at, &plane[rows])?;
            }
        }
        Ok(())
    }

    /// Copies the pieces that have come out of the window.
    fn take(&mut self) -> Result<(), Error> {
        let len = self.cube.rows(self.me).len();
        for plane in 0..self.cube.side {
            let rows = &mut self.numbers[plane * len..(plane + 1) * len];
            self.window
                .local()
                .copy_out(plane * self.cube.piece(), rows)?;
        }
        Ok(())
    }

    /// One message from each rank to each: in each step each sends one and receives one.
    fn by_messages(&mut self) -> Result<(), Wrong> {
        let (cube, me) = (self.cube, self.me);
        (0..self.height()).for_each(|nth| self.transform_plane(nth));
        let mailboxes = Mailboxes::new(self.window, cube.ranks.into(), cube.message());
        let len = cube.rows(me).len();
        for distance in 0..cube.ranks {
            let to = me.ahead(distance, cube.ranks);
            let from = me.ahead(cube.ranks - distance, cube.ranks);
            let sends = self.pack(to);
            if sends > 0 {
                mailboxes.send(to, me.get().into(), &self.packed[..sends], true)?;
            }
            let Range { start, end } = cube.part(from);
            if start < end && len > 0 {
                let planes = &mut self.received[start * len..end * len];
                mailboxes.receive(from, from.get().into(), planes)?;
            }
            if sends > 0 {
                mailboxes.await_free(to, me.get().into())?;
            }
        }
        self.numbers.copy_from_slice(self.received);
        Ok(())
    }

    /// Packs the pieces of all planes for a rank, and tells how many elements they are.
    fn pack(&mut self, to: Rank) -> usize {
        let rows = self.cube.rows(to);
        if rows.is_empty() {
            return 0;
        }
        let planes = self.numbers.chunks_exact(self.cube.slab(1));
        let pieces = self.packed.chunks_exact_mut(rows.len());
        for (piece, plane) in pieces.zip(planes) {
            piece.copy_from_slice(&plane[rows.clone()]);
        }
        rows.len() * self.height()
    }

    /// This rank's rows are those of the serial run.
    fn compare(&self, whole: &[f64]) -> Result<(), Wrong> {
        let rows = self.cube.rows(self.me);
        let planes = whole.chunks_exact(self.cube.slab(1));
        let expected = planes.flat_map(|plane| &plane[rows.clone()]);
        for (&found, &expected) in self.numbers.iter().zip(expected) {
            check("part of a number", found, expected)?;
        }
        Ok(())
    }
}

/// The transform of the whole cube, without communication.
fn serial(cube: &mut [f64], side: usize, line: &mut [f64], turns: &[f64]) {
    for stride in [1, side, side * side] {
        for start in (0..side * side * side).filter(|start| start / stride % side == 0) {
            along(cube, start, stride, line, turns);
        }
    }
}

/// Numbers of the serial run that each rank makes anew.
const SAMPLES: u64 = 4;

/// `Ok` if some numbers of the serial run are the sums that define them, but for rounding. `line`
/// has room for a line.
fn defined(
    whole: &[f64],
    side: usize,
    round: u32,
    rank: Rank,
    line: &mut [f64],
) -> Result<(), Wrong> {
    let (turns, _) = line.as_chunks_mut::<2>();
    for (turn, nth) in turns.iter_mut().zip(0..) {
        *turn = turned(nth, side);
    }
    let numbers = side * side * side;
    let at = |number: usize| [number / (side * side), number / side % side, number % side];
    for sample in 0..SAMPLES {
        let sample = random(u64::from(rank.get()) * SAMPLES + sample) as usize % numbers;
        let [k, l, m] = at(sample);
        let mut sum = [0.0, 0.0];
        for number in 0..numbers {
            let [z, y, x] = at(number);
            let [cosine, sine] = turns[(k * z + l * y + m * x) % side];
            let [real, imaginary] = [2 * number, 2 * number + 1].map(|at| first(at, round));
            sum[0] += real * cosine - imaginary * sine;
            sum[1] += real * sine + imaginary * cosine;
        }
        for (&found, expected) in whole[2 * sample..].iter().zip(sum) {
            let is_near = (found - expected).abs() < 1e-12 * numbers as f64;
            if !is_near {
                return Err(Wrong::Value {
                    what: "part of a number by its definition",
                    found,
                    expected,
                });
            }
        }
    }
    Ok(())
}

/// exp(-2 π i nth / side), by its power series.
fn turned(nth: usize, side: usize) -> [f64; 2] {
    let angle = -TAU * nth as f64 / side as f64;
    let (mut sum, mut term) = ([1.0, 0.0], [1.0, 0.0]);
    for divisor in 1..40 {
        let factor = angle / f64::from(divisor);
        term = [-term[1] * factor, term[0] * factor];
        sum = [sum[0] + term[0], sum[1] + term[1]];
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_run_with_a_wrong_table_is_found() {
        const SIDE: usize = 8;
        let (mut cube, mut line) = ([0.0; 2 * SIDE * SIDE * SIDE], [0.0; 2 * SIDE]);
        let mut table = [0.0; SIDE];
        turns(&mut table);
        for wrong in [None, Some(2), Some(5)] {
            if let Some(element) = wrong {
                table[element] += 1e-6;
            }
            fill(&mut cube, 0, 3);
            serial(&mut cube, SIDE, &mut line, &table);
            let found = defined(&cube, SIDE, 3, Rank::new(0), &mut line);
            assert_eq!(found.is_ok(), wrong.is_none(), "{wrong:?}: {found:?}");
        }
    }
}
