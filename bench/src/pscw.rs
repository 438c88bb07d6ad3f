//! Algorithm 3 of [PSCW-SCC]: what synchronization alone costs.
//!
//! Rank 0 is the origin, ranks 1 to k are the targets, on cores 0 to k of a 6 x 4 mesh, two cores
//! to a tile. Nobody puts anything. Each call is measured by the core's own cycle counter, read
//! before and after it; there is no barrier between epochs. Medians: of the origin's 1001 epochs,
//! and of the targets' k times 1001.
//!
//! ```text
//!   for i in 0..=1000:   rank 0: start(1..=k), complete        others: post(0), wait
//! ```
//!
//! [PSCW-SCC]: flagpost#sources

mod messages;

use std::cell::RefCell;

use clap::ValueEnum;
use flagpost::epoch::Strategy as Signalling;
use flagpost::{
    Config as WorldConfig, EpochSlots, MatchVector, MatchingList, Rank, Rma as _, Session, World,
};
use flagpost_hal::{Clock, Topology};
use flagpost_mapped::Mapped;
use flagpost_sim::{
    Config, Controllers, Counters, Latencies, Mesh, Oracles, Report, Schedule, Sim, SimCore,
};

use crate::{Charged, Cycles, Failure};
use flagpost_common::Sorted;

/// Epochs of the published experiment.
pub const EPOCHS: u32 = 1001;

/// Most targets that fit the SCC.
pub const TARGETS_MAX: u16 = 47;

/// Words of a target's piece.
pub const WORDS: u16 = 4;

/// A core's half of a tile's 16 KiB.
pub const BUFFER: u32 = 8 << 10;

/// Most cores of a chip.
pub const CORES_MAX: u16 = 1024;

/// The mesh of the SCC.
pub(crate) const MESH: Mesh = Mesh {
    columns: 6,
    rows: 4,
    cores_per_tile: 2,
};

/// How post and complete find each other.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Strategy {
    /// As published: one bit per peer, a counter, under locks
    MatchVector,
    /// One slot per peer, with one writer
    EpochSlots,
    /// A list of as many entries as there are targets
    MatchingList,
    /// No windows, puts or work: empty messages over the message buffers
    Messages,
}

/// When the origin waits for posts, and when its puts leave: [PSCW-SCC]'s Table I.
///
/// [PSCW-SCC]: flagpost#sources
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Class {
    /// The first put to a target waits for its post: what Flagpost does
    TriggerOnly,
    /// The start waits for all posts
    Immediate,
    /// Puts are noted, and made by complete
    Deferred,
}

/// What to measure.
#[derive(Copy, Clone, Debug)]
pub struct Setup {
    /// How posts and completions are signalled.
    pub strategy: Strategy,
    /// When things happen.
    pub class: Class,
    /// How many targets: from 1, at most [`TARGETS_MAX`].
    pub targets: u16,
    /// How many cores the chip has, all of which make the window: more than targets. None: one
    /// more.
    pub cores: Option<u16>,
    /// Bytes of a core's message buffer, which slots lie in if they fit: [`BUFFER`] on the SCC.
    pub buffer: u32,
    /// Core cycles charged per target and loop for code that the model does not execute.
    pub software_cycles: u32,
    /// Words of 8 bytes that are put to each target, up to [`WORDS`]. The published experiment has
    /// none.
    pub words: u16,
    /// Core cycles that the origin computes before it puts to each target.
    pub work: u32,
    /// Core cycles by which each target posts later than the one before.
    pub skew: u32,
    /// Core cycles between two epochs of the origin, in which targets can post. Not measured.
    pub lead: u32,
    /// How many memory controllers there are. None: 4, as on the SCC.
    pub controllers: Option<u16>,
    /// What accesses cost.
    pub latencies: Latencies,
    /// How often: [`EPOCHS`], unless in a hurry.
    pub epochs: u32,
}

impl Setup {
    /// The published experiment with so many targets, by the formulas only.
    pub const fn new(targets: u16) -> Self {
        Self {
            strategy: Strategy::MatchVector,
            class: Class::TriggerOnly,
            targets,
            cores: None,
            buffer: BUFFER,
            software_cycles: 0,
            words: 0,
            work: 0,
            skew: 0,
            lead: 0,
            controllers: None,
            latencies: Latencies::SccEas,
            epochs: EPOCHS,
        }
    }
}

/// Medians, and what it took.
#[derive(Clone, Debug)]
pub struct Measured {
    /// A target's `post`.
    pub post: Cycles,
    /// The origin's `start`.
    pub start: Cycles,
    /// The origin's work and puts.
    pub put: Cycles,
    /// The origin's `complete`.
    pub complete: Cycles,
    /// A target's `wait`.
    pub wait: Cycles,
    /// By how many percent of the median the first or the third quartile differs from it, whichever
    /// differs more: of `post`, `start`, `complete` and `wait`.
    pub spread: [f64; 4],
    /// What each core did, start-up included.
    pub counters: Vec<Counters>,
    /// What each core's clock showed at the end.
    pub cycles: Vec<u64>,
}

impl Measured {
    /// The origin's `start` and `complete`, what the paper's Fig. 5 shows; with puts, if there are
    /// any.
    pub fn origin(&self) -> Cycles {
        Cycles {
            count: self.start.count + self.put.count + self.complete.count,
            hertz: self.start.hertz,
        }
    }

    /// A target's `post` and `wait`, which Fig. 5 shows beside that.
    pub fn target(&self) -> Cycles {
        Cycles {
            count: self.post.count + self.wait.count,
            hertz: self.post.hertz,
        }
    }
}

/// Cycles of each call, of all epochs; on targets also of all cores.
#[derive(Default)]
struct Samples {
    post: Vec<u64>,
    start: Vec<u64>,
    put: Vec<u64>,
    complete: Vec<u64>,
    wait: Vec<u64>,
}

/// Runs the experiment.
///
/// # Errors
/// The account of the run if it did not come to its end.
///
/// # Panics
/// If a number is out of its bounds.
pub fn measure(setup: &Setup) -> Result<Measured, Box<Report>> {
    let cores = setup.cores.unwrap_or(setup.targets + 1);
    assert!((1..=TARGETS_MAX).contains(&setup.targets));
    assert!((setup.targets + 1..=CORES_MAX).contains(&cores) && setup.words <= WORDS);
    let config = Config {
        cores,
        buffer_size: setup.buffer,
        memory_size: (8 << 10) + 64 * u32::from(cores.saturating_sub(48)),
        // Larger chips have the same proportions.
        mesh: (cores <= 48).then_some(MESH),
        controllers: setup.controllers.map(Controllers::Edges),
        latencies: setup.latencies,
        // Messages rely on lines that arrive whole, which is all that this changes.
        publish: if setup.strategy == Strategy::Messages {
            32
        } else {
            4
        },
        schedule: Schedule::Timed,
        oracles: Oracles::ALL,
        max_steps: u64::MAX,
        ..Config::default()
    };
    let samples = RefCell::new(Samples::default());
    let report = Sim::new(config).run(|core| program(core, setup, &samples));
    if !report.is_done() {
        return Err(Box::new(report));
    }
    let samples = samples.into_inner();
    let hertz = setup.latencies.costs().hertz;
    let sorted = |samples: &[u64]| Sorted::new(samples.iter().map(|&cycles| cycles as f64));
    let middle = |samples: &[u64]| Cycles {
        count: sorted(samples).median() as u64,
        hertz,
    };
    let calls = [
        &samples.post,
        &samples.start,
        &samples.complete,
        &samples.wait,
    ];
    Ok(Measured {
        spread: calls.map(|samples| spread(&sorted(samples))),
        post: middle(&samples.post),
        start: middle(&samples.start),
        put: middle(&samples.put),
        complete: middle(&samples.complete),
        wait: middle(&samples.wait),
        counters: report.counters,
        cycles: report.cycles,
    })
}

/// See [`Measured::spread`].
fn spread(samples: &Sorted) -> f64 {
    let median = samples.median();
    let off = samples
        .quartiles()
        .map(|quartile| (quartile - median).abs());
    100.0 * off[0].max(off[1]) / median
}

/// What each core runs.
fn program(core: SimCore, setup: &Setup, samples: &RefCell<Samples>) -> Result<(), Failure> {
    if setup.strategy == Strategy::Messages {
        messages::epochs(&core, setup, samples);
        return Ok(());
    }
    let mut arena = vec![0; 256 + 4 * usize::from(core.cores())];
    let link = Mapped::start(core, Session::FIRST)?;
    let world = World::start(link, &mut arena, WorldConfig::default())?;
    let run = Run { setup, samples };
    match setup.strategy {
        Strategy::MatchVector => run.epochs::<MatchVector<'_>>(&world, ()),
        Strategy::EpochSlots => run.epochs::<EpochSlots<'_>>(&world, ()),
        Strategy::MatchingList => run.epochs::<MatchingList<'_>>(&world, setup.targets),
        Strategy::Messages => Ok(()),
    }
}

/// Cycles between two looks at the clock, the second one's included.
struct Span<'c>(&'c SimCore, u64);

impl<'c> Span<'c> {
    fn begin(clock: &'c SimCore) -> Self {
        Self(clock, clock.cycles())
    }

    fn end(self) -> u64 {
        self.0.cycles() - self.1
    }
}

/// An experiment under way.
struct Run<'s> {
    setup: &'s Setup,
    samples: &'s RefCell<Samples>,
}

impl Run<'_> {
    fn epochs<'w, S: Signalling<'w, Mapped<SimCore>>>(
        &self,
        world: &'w World<'w, Mapped<SimCore>>,
        options: S::Options,
    ) -> Result<(), Failure> {
        let (setup, clock) = (self.setup, world.link().machine());
        // A line, so that post and wait have one to keep coherent.
        let options = (setup.software_cycles, options);
        let window = world.allocate_with::<u64, Charged<S>>(WORDS.into(), options)?;
        let origin = [Rank::new(0)];
        let targets: Vec<Rank> = (1..=setup.targets).map(Rank::new).collect();
        let (origins, group) = (world.group(&origin)?, world.group(&targets)?);
        if world.rank().get() > setup.targets {
            return Ok(());
        }
        let data = [7; WORDS as usize];
        let data = &data[..setup.words.into()];
        let puts = setup.words > 0 || setup.work > 0;
        let spend = |cycles| {
            if cycles > 0 {
                clock.spend(cycles);
            }
        };
        for _ in 0..setup.epochs {
            if world.rank() == origin[0] {
                spend(setup.lead);
                let span = Span::begin(clock);
                let access = window.start(&group)?;
                if setup.class == Class::Immediate {
                    access.await_posts()?;
                }
                let cycles = span.end();
                self.samples.borrow_mut().start.push(cycles);
                let mut noted = Vec::new();
                if puts {
                    let span = Span::begin(clock);
                    for &target in &targets {
                        spend(setup.work);
                        match setup.class {
                            Class::Deferred => noted.push(target),
                            _ => access.put(target, 0, data)?,
                        }
                    }
                    let cycles = span.end();
                    self.samples.borrow_mut().put.push(cycles);
                }
                let span = Span::begin(clock);
                for target in noted {
                    access.put(target, 0, data)?;
                }
                access.complete()?;
                let cycles = span.end();
                self.samples.borrow_mut().complete.push(cycles);
            } else {
                spend(setup.skew * u32::from(world.rank().get()));
                let span = Span::begin(clock);
                let exposure = window.post(&origins)?;
                let cycles = span.end();
                self.samples.borrow_mut().post.push(cycles);
                let span = Span::begin(clock);
                exposure.wait()?;
                let cycles = span.end();
                self.samples.borrow_mut().wait.push(cycles);
            }
        }
        Ok(())
    }
}
