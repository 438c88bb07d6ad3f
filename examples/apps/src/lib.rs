//! The programs by which the sources argue for one-sided communication.
//!
//! Each runs over any link, on as many ranks as there are. It has variants, which differ in how
//! ranks tell each other of data, and in nothing else. Each rank checks its part of the result
//! against a serial run of its own. In [`stencil`] and [`tree`] the result is one number: rank 0
//! alone has it and checks it. A program takes no heap: the caller lends it memory.
//!
//! | program | pattern | source |
//! |---|---|---|
//! | [`stencil`] | a pipeline: a value per row goes to the next rank | [NA] VI-A |
//! | [`halo`] | the edges of a plane go to four neighbours, step by step | [CAF-NA] |
//! | [`hydro`] | a gas: edges of four fields, and the fastest wave of all ranks | [CAF-NA] |
//! | [`lattice`] | a solver: edges to eight neighbours, and sums of all ranks | [foMPI] 4.4 |
//! | [`cholesky`] | tiles of a matrix go to the ranks that read them, in any order | [NA] VI-C |
//! | [`fft`] | each rank sends a part of its planes to each, as they get ready | [foMPI] 4.3 |
//! | [`tree`] | a number per rank goes up a tree of 16 children each | [NA] VI-B |
//! | [`consumer`] | a rank fetches from its previous one's buffers, and so frees them | [NA] VI-B |
//! | [`hashtable`] | keys go to random ranks, which need not take part | [foMPI] 4.1 |
//! | [`sparse`] | each rank knows whom it sends to, and not who sends to it | [foMPI] 4.2 |
//!
//! | variant | a rank that gets data knows of them by |
//! |---|---|
//! | `messages` | a receive, which copies them out of a mailbox: [`messages`] |
//! | `fence` | a fence of all ranks |
//! | `pscw` | an epoch with its neighbours |
//! | `notified` | the notification that came with them |
//! | `accumulate`, `alltoall`, `reduce_scatter` | a count of what will come: [`sparse`] |
//!
//! In simulated time only accesses take time by themselves. So each program says how many
//! floating-point operations it has done: [`Job::compute`] lets them take time, too. A hash table
//! and a sparse exchange do none.
//!
//! `cargo xtask app NAME --on sim --ranks 48` runs one and says how long it took.
//!
//! [NA]: flagpost#sources
//! [CAF-NA]: flagpost#sources
//! [foMPI]: flagpost#sources
#![no_std]
#![forbid(unsafe_code)]

pub mod block;
pub mod cholesky;
pub mod consumer;
pub mod edges;
pub mod fft;
pub mod halo;
pub mod hashtable;
pub mod hydro;
pub mod lattice;
pub mod messages;
pub mod radix2;
pub mod sparse;
pub mod stencil;
pub mod tile;
pub mod tree;

use core::fmt;

use flagpost::{Error, Link, World};

/// How the ranks of a program tell each other of data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Send and receive.
    Messages,
    /// Fences of all ranks.
    Fence,
    /// Epochs with the ranks that it takes.
    Pscw,
    /// Notified access.
    Notified,
    /// Counts that each rank adds to.
    Accumulate,
    /// A table of counts that all ranks exchange.
    Alltoall,
    /// Counts that a reduction adds up.
    ReduceScatter,
}

impl Variant {
    /// All, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Messages,
        Self::Fence,
        Self::Pscw,
        Self::Notified,
        Self::Accumulate,
        Self::Alltoall,
        Self::ReduceScatter,
    ];

    /// Those of most programs.
    pub const USUAL: [Self; 4] = [Self::Messages, Self::Fence, Self::Pscw, Self::Notified];

    /// Its name in commands.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Fence => "fence",
            Self::Pscw => "pscw",
            Self::Notified => "notified",
            Self::Accumulate => "accumulate",
            Self::Alltoall => "alltoall",
            Self::ReduceScatter => "reduce_scatter",
        }
    }

    /// The one that is called so.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.name() == name)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How much a program does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Elements of a rank's part along each side.
    pub side: u32,
    /// Steps, sweeps or rounds.
    pub steps: u32,
}

impl Size {
    /// Reads SIDExSTEPS. Neither is 0.
    pub fn of(text: &str) -> Option<Self> {
        let (side, steps) = text.split_once('x')?;
        let size = Self {
            side: side.parse().ok()?,
            steps: steps.parse().ok()?,
        };
        (size.side > 0 && size.steps > 0).then_some(size)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.side, self.steps)
    }
}

/// Called with how many operations a rank has just done, of its work or beside it. On a machine
/// with a clock of its own this does nothing; in simulated time it charges for them.
pub type Compute<'a> = &'a dyn Fn(u64);

/// What a program is told.
pub struct Job<'a> {
    /// How ranks tell each other of data.
    pub variant: Variant,
    /// How much there is to do.
    pub size: Size,
    /// Memory of this rank alone: at least as much as [`Program::memory`] says.
    pub memory: &'a mut [f64],
    /// Is told of floating-point operations.
    pub compute: Compute<'a>,
}

/// What a program has to tell when all ranks have found their parts right.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Ticks of the link's clock, from a barrier until the last rank was done.
    pub ticks: u64,
    /// Ticks in a second.
    pub per_second: u64,
    /// Operations that all ranks have done together, of the program's unit.
    pub work: u64,
}

/// Why a program has no result.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Wrong {
    /// A call of Flagpost.
    Flagpost(Error),
    /// A value differs from that of the serial run.
    Value {
        /// Which.
        what: &'static str,
        /// What the ranks have.
        found: f64,
        /// What the serial run has.
        expected: f64,
    },
    /// The lent memory is too small.
    Memory {
        /// How many elements more it takes.
        missing: usize,
    },
    /// There cannot be as much memory as this size takes.
    Size(Size),
    /// A table of fixed size has no room for more.
    Full(&'static str),
    /// The program has no such variant.
    Variant(Variant),
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::Flagpost(error)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flagpost(error) => error.fmt(f),
            Self::Value {
                what,
                found,
                expected,
            } => write!(f, "{what}: {found}, and {expected} in the serial run"),
            Self::Memory { missing } => write!(f, "lend {missing} more elements of memory"),
            Self::Size(Size { side, steps }) => write!(
                f,
                "size {side}x{steps} takes more memory than there can be: a smaller side, or fewer steps"
            ),
            Self::Full(what) => write!(f, "{what} is full"),
            Self::Variant(variant) => write!(f, "there is no variant {variant} of it"),
        }
    }
}

/// A program of the table.
#[derive(Debug)]
pub struct Program<L: Link> {
    /// Its name in commands.
    pub name: &'static str,
    /// What its work is counted in.
    pub unit: &'static str,
    /// The variants that it has.
    pub variants: &'static [Variant],
    /// The time by messages over that of notified access in a source, and where it says so.
    pub published: Option<(f64, &'static str)>,
    /// A size for a test.
    pub small: Size,
    /// Elements of memory that a rank lends it; more than there can be if they are too many to
    /// count.
    pub(crate) memory: fn(ranks: u16, size: Size) -> usize,
    /// What [`Program::run`] runs: all ranks at the same time, with the same variant and size.
    pub(crate) run: fn(&World<'_, L>, Job<'_>) -> Result<Outcome, Wrong>,
}

impl<L: Link> Program<L> {
    /// Elements of memory that a rank lends it.
    ///
    /// # Errors
    /// [`Wrong::Size`].
    pub fn memory(&self, ranks: u16, size: Size) -> Result<usize, Wrong> {
        let elements = (self.memory)(ranks, size);
        // No slice is longer.
        let is_possible = elements <= isize::MAX as usize / size_of::<f64>();
        is_possible.then_some(elements).ok_or(Wrong::Size(size))
    }

    /// Runs it, if it has this variant.
    ///
    /// # Errors
    /// Those of [`Wrong`].
    pub fn run(&self, world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
        self.memory(world.size(), job.size)?;
        match self.variants.contains(&job.variant) {
            true => (self.run)(world, job),
            false => Err(Wrong::Variant(job.variant)),
        }
    }
}

/// All programs.
pub fn programs<L: Link>() -> [Program<L>; 10] {
    [
        stencil::program(),
        halo::program(),
        hydro::program(),
        lattice::program(),
        tree::program(),
        consumer::program(),
        cholesky::program(),
        hashtable::program(),
        sparse::program(),
        fft::program(),
    ]
}

/// The sum of these numbers of elements, or [`usize::MAX`] if it is larger.
pub(crate) fn sum<const N: usize>(parts: [usize; N]) -> usize {
    parts.into_iter().fold(0, usize::saturating_add)
}

/// Their product, or [`usize::MAX`] if it is larger.
pub(crate) fn product<const N: usize>(factors: [usize; N]) -> usize {
    factors.into_iter().fold(1, usize::saturating_mul)
}

/// Takes `len` elements from the front of `memory`.
///
/// # Errors
/// [`Wrong::Memory`].
pub(crate) fn take<'a>(memory: &mut &'a mut [f64], len: usize) -> Result<&'a mut [f64], Wrong> {
    let missing = len.saturating_sub(memory.len());
    let all = core::mem::take(memory);
    let (front, rest) = all
        .split_at_mut_checked(len)
        .ok_or(Wrong::Memory { missing })?;
    *memory = rest;
    Ok(front)
}

/// `Ok` if the ranks have what the serial run has, to the last bit.
///
/// # Errors
/// [`Wrong::Value`].
pub(crate) fn check(what: &'static str, found: f64, expected: f64) -> Result<(), Wrong> {
    match found.to_bits() == expected.to_bits() {
        true => Ok(()),
        false => Err(Wrong::Value {
            what,
            found,
            expected,
        }),
    }
}

/// Any number of 52 bits, and not 0: another one for each `n` below 2^52 - 1.
pub(crate) fn random(n: u64) -> u64 {
    const MASK: u64 = (1 << 52) - 1;
    let mut number = n.wrapping_add(1) & MASK;
    for _ in 0..3 {
        number ^= number >> 26;
        number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) & MASK;
    }
    number ^ number >> 26
}

/// How long `program` takes, from a barrier until the last rank is done. The ticks of all ranks are
/// of the same length.
pub(crate) fn timed<L: Link>(
    world: &World<'_, L>,
    program: impl FnOnce() -> Result<(), Wrong>,
) -> Result<Outcome, Wrong> {
    world.barrier()?;
    let start = world.link().now();
    program()?;
    let mut ticks = [world.link().now().ticks.wrapping_sub(start.ticks)];
    world.allreduce(&mut ticks, |a: u64, b| a.max(b))?;
    Ok(Outcome {
        ticks: ticks[0],
        per_second: start.per_second,
        work: 0,
    })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::cell::RefCell;
    use std::vec::Vec;

    use flagpost::{Config, Session};
    use flagpost_link::Waiting as _;
    use flagpost_mapped::Mapped;
    use flagpost_sim::{Sim, SimCore};

    use super::*;

    #[test]
    fn a_program_lasts_until_its_last_rank_is_done() {
        let times = RefCell::new(Vec::new());
        let report = Sim::new(flagpost_sim::Config::default()).run(|core: SimCore| {
            let link = Mapped::start(core, Session::FIRST).map_err(Error::from)?;
            let mut arena = [0; Config::DEFAULT.words(32, 2)];
            let world = World::start(link, &mut arena, Config::DEFAULT)?;
            let mut own = 0;
            let outcome = timed(&world, || {
                let now = || world.link().now().ticks;
                let start = now();
                // Each look at the clock takes time.
                for _ in 0..100 * world.rank().get() {
                    now();
                }
                own = now() - start;
                Ok(())
            })?;
            times.borrow_mut().push((own, outcome.ticks));
            Ok::<(), Wrong>(())
        });
        report.assert_done();
        let times = times.into_inner();
        let longest = times.iter().map(|(own, _)| *own).max().unwrap();
        assert!(times.iter().any(|(own, _)| 2 * own < longest), "{times:?}");
        assert!(times.iter().all(|(_, all)| *all >= longest), "{times:?}");
    }
}
