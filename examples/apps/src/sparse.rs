//! A sparse exchange that changes from round to round: each rank sends a number to six random
//! ranks, perhaps to itself. It knows whom it sends to. It does not know which ranks send to it,
//! nor how many.
//!
//! The numbers go by notified puts into inboxes, one for each source, so a rank that has got one
//! knows where it comes from. The variants differ in how a rank knows that it has got all:
//!
//! | variant | a rank has got all when | before the numbers |
//! |---|---|---|
//! | `accumulate` | as many have come as its counter says | each adds 1 to six counters; a fence |
//! | `alltoall` | the same | each tells all ranks how many it sends them: 0 or 1 |
//! | `reduce_scatter` | the same | these are added up, and each rank gets its sum |
//! | `notified` | a barrier is over, entered by ranks whose numbers have arrived | nothing |
//!
//! `alltoall` and `reduce_scatter` take the same puts here: either call sends each number to its
//! rank, which alone adds up.
//!
//! There are inboxes for odd and even rounds: a rank may begin the next round while another one
//! still takes what has come. It cannot be two rounds ahead, as each has a step of all ranks.
//! Work: messages. The serial run knows whom all ranks send to.
//!
//! Source: [foMPI] 4.2, and Hoefler, Siebert and Lumsdaine, Scalable communication protocols for
//! dynamic sparse data exchange, PPoPP 2010.
//!
//! [foMPI]: flagpost#sources

use flagpost::{
    Budget, Error, Link, Rank, Request, Rma as _, Tag, Window, World, epoch::Assert, rma::Operation,
};

use crate::{Job, Outcome, Program, Size, Variant, Wrong, check, random, take, timed};

/// Ranks that each rank sends to, if there are as many.
const TARGETS: usize = 6;

/// How long a rank waits in a barrier before it takes what has come: the world keeps as much as
/// comes here in a round, as a rule.
const LONG: Budget = Budget::microseconds(1_000);

/// Its row of the table.
pub fn program<L: Link>() -> Program<L> {
    Program {
        name: "sparse",
        unit: "message",
        variants: &[
            Variant::Accumulate,
            Variant::Alltoall,
            Variant::ReduceScatter,
            Variant::Notified,
        ],
        published: None,
        small: Size { side: 1, steps: 5 },
        // What has come in each round; and counts, sent and got.
        memory: |ranks, size| (size.steps as usize + 2) * usize::from(ranks),
        run,
    }
}

/// The ranks that `rank` sends to in `round`, each once.
fn targets(rank: Rank, round: u32, ranks: u16) -> impl Iterator<Item = Rank> {
    let mut targets = [None; TARGETS];
    let mut number = random(u64::from(round) * u64::from(ranks) + u64::from(rank.get()));
    for nth in 0..TARGETS.min(ranks.into()) {
        while targets[nth].is_none() {
            number = random(number);
            let target = Some(Rank::new((number % u64::from(ranks)) as u16));
            if !targets.contains(&target) {
                targets[nth] = target;
            }
        }
    }
    targets.into_iter().flatten()
}

/// What it sends to one of them: not 0, which stands for nothing.
fn number(from: Rank, to: Rank, round: u32) -> f64 {
    let pair = u64::from(from.get()) << 16 | u64::from(to.get());
    random(u64::from(round) << 32 | pair) as f64
}

/// Steps: rounds.
fn run<L: Link>(world: &World<'_, L>, job: Job<'_>) -> Result<Outcome, Wrong> {
    let (size, mut memory) = (job.size, job.memory);
    let (me, ranks) = (world.rank(), world.size());
    let counters = world.allocate(1)?;
    let mut counts = Counts {
        counters: &counters,
        variant: job.variant,
        before: 0,
        sent: take(&mut memory, ranks.into())?,
        got: take(&mut memory, ranks.into())?,
    };
    let inboxes = world.allocate(2 * usize::from(ranks))?;
    let all = take(&mut memory, size.steps as usize * usize::from(ranks))?;
    all.fill(0.0);
    let outcome = timed(world, || {
        for (got, round) in all.chunks_exact_mut(ranks.into()).zip(0..) {
            let exchange = Exchange {
                inboxes: &inboxes,
                round,
            };
            let targets = || targets(me, round, ranks);
            match job.variant {
                Variant::Notified => {
                    exchange.send(targets())?;
                    exchange.until_barrier(got)?;
                }
                _ => {
                    let count = counts.incoming(targets())?;
                    exchange.send(targets())?;
                    exchange.until_count(count, got)?;
                }
            }
        }
        Ok(())
    })?;
    for (got, round) in all.chunks_exact(ranks.into()).zip(0..) {
        for (&found, from) in got.iter().zip((0..ranks).map(Rank::new)) {
            let expected = match targets(from, round, ranks).any(|to| to == me) {
                true => number(from, me, round),
                false => 0.0,
            };
            check("number", found, expected)?;
        }
    }
    let messages = TARGETS.min(ranks.into()) as u64 * u64::from(ranks);
    Ok(Outcome {
        work: messages * u64::from(size.steps),
        ..outcome
    })
}

/// How a rank knows how many numbers it will get.
struct Counts<'a, 'w, L: Link> {
    /// One of each rank: all that it was ever sent.
    counters: &'a Window<'w, u32, L>,
    variant: Variant,
    /// What its own counter was in the last round.
    before: u32,
    /// An element for each rank,
    sent: &'a mut [f64],
    /// and from each.
    got: &'a mut [f64],
}

impl<L: Link> Counts<'_, '_, L> {
    /// How many numbers will come here, given the ranks that this rank sends to.
    fn incoming(&mut self, targets: impl Iterator<Item = Rank>) -> Result<usize, Error> {
        if self.variant == Variant::Accumulate {
            let epoch = self.counters.fence(Assert::empty())?;
            for to in targets {
                epoch.accumulate(to, 0, &[1], Operation::SUM)?;
            }
            epoch.end()?;
            let now = self.counters.local().get(0)?;
            return Ok((now - core::mem::replace(&mut self.before, now)) as usize);
        }
        self.sent.fill(0.0);
        for to in targets {
            self.sent[to.index()] = 1.0;
        }
        let world = self.counters.world();
        let count = match self.variant {
            Variant::Alltoall => {
                world.alltoall(self.sent, self.got)?;
                self.got.iter().sum()
            }
            _ => {
                let mut sum = [0.0];
                world.reduce_scatter(self.sent, &mut sum, |a: f64, b| a + b)?;
                sum[0]
            }
        };
        Ok(count as usize)
    }
}

/// How the numbers of a round go to inboxes, and out of them.
struct Exchange<'a, 'w, L: Link> {
    /// Of each rank in odd rounds, and in even ones.
    inboxes: &'a Window<'w, f64, L>,
    round: u32,
}

impl<L: Link> Exchange<'_, '_, L> {
    /// Sends to all targets.
    fn send(&self, targets: impl Iterator<Item = Rank>) -> Result<(), Error> {
        let me = self.inboxes.world().rank();
        for to in targets {
            let number = [number(me, to, self.round)];
            self.inboxes
                .put_notify(to, self.inbox(me), &number, self.tag())?;
        }
        Ok(())
    }

    /// Takes as many numbers as will come.
    fn until_count(&self, count: usize, got: &mut [f64]) -> Result<(), Error> {
        let mut next = self.next()?;
        for _ in 0..count {
            next.start()?;
            let from = next.wait()?.source;
            got[from.index()] = self.inboxes.local().get(self.inbox(from))?;
        }
        Ok(())
    }

    /// Takes numbers until all ranks have entered a barrier, each when its own had arrived.
    fn until_barrier(&self, got: &mut [f64]) -> Result<(), Error> {
        let mut next = self.next()?;
        next.start()?;
        self.inboxes.flush_all()?;
        let mut barrier = Some(self.inboxes.world().entering()?);
        while let Some(entering) = barrier {
            // Not a test: a rank that waits lets others run that share its processor.
            barrier = match entering.wait_within(LONG) {
                Ok(()) => None,
                Err(rest) if matches!(rest.error, Error::Timeout(_)) => Some(rest.handle),
                Err(rest) => return Err(rest.error),
            };
            while let Some(number) = next.test()? {
                let from = number.source;
                got[from.index()] = self.inboxes.local().get(self.inbox(from))?;
                next.start()?;
            }
        }
        next.free()
    }

    /// A request for the next number of this round.
    fn next(&self) -> Result<Request<'_, L>, Error> {
        let first = self.inbox(Rank::new(0));
        let ranks = usize::from(self.inboxes.world().size());
        self.inboxes.expect(first..first + ranks, self.tag())
    }

    /// Where the inbox for this source is.
    fn inbox(&self, from: Rank) -> usize {
        let ranks = usize::from(self.inboxes.world().size());
        (self.round % 2) as usize * ranks + from.index()
    }

    const fn tag(&self) -> Tag {
        Tag(self.round % 2)
    }
}
