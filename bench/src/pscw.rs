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

use clap::{Args, ValueEnum};
use flagpost::epoch::Strategy as Signalling;
use flagpost::{EpochSlots, MatchVector, MatchingList, Rank, Rma as _, World};
use flagpost_hal::Clock;
use flagpost_sim::{Config, Controllers, Counters, Latencies, Mesh, Report, SimCore};

use crate::{BUFFER, Charged, Chip, Cycles, Failure, in_world, run, timed};
use flagpost_common::Sorted;

/// Epochs of the published experiment.
pub const EPOCHS: u32 = 1001;

/// Most targets that fit the SCC.
pub const TARGETS_MAX: u16 = 47;

/// Words of a target's piece.
pub const WORDS: u16 = 4;

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
#[derive(Args, Copy, Clone, Debug)]
pub struct Setup {
    /// How posts and completions are signalled.
    #[arg(skip = Strategy::MatchVector)]
    pub strategy: Strategy,
    /// When the origin waits for posts, and when its puts leave
    #[arg(long, value_enum, default_value = "trigger-only")]
    pub class: Class,
    /// How many targets: from 1, at most [`TARGETS_MAX`].
    #[arg(skip = 1_u16)]
    pub targets: u16,
    /// Cores of the chip, up to 1024, which all make the window [default: one more than targets]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1024), allow_negative_numbers = true)]
    pub cores: Option<u16>,
    /// Bytes of each core's message buffer: slots that do not fit lie in memory
    #[arg(long, value_name = "N", default_value = "8192", value_parser = buffer, allow_negative_numbers = true)]
    pub buffer: u32,
    /// Words of 8 bytes put to each target, up to 4; the published experiment has none
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u16).range(..=4), allow_negative_numbers = true)]
    pub words: u16,
    /// Core cycles that the origin computes before it puts to each target
    #[arg(long, value_name = "N", default_value = "0", value_parser = software, allow_negative_numbers = true)]
    pub work: u32,
    /// Core cycles by which each target posts later than the one before
    #[arg(long, value_name = "N", default_value = "0", value_parser = software, allow_negative_numbers = true)]
    pub skew: u32,
    /// Core cycles between two epochs of the origin, not measured, in which targets can post
    #[arg(long, value_name = "N", default_value = "0", value_parser = software, allow_negative_numbers = true)]
    pub lead: u32,
    /// Core cycles charged per target and loop, or per message, for code that the model does not
    /// execute
    #[arg(long, value_name = "N", default_value = "0", value_parser = software, allow_negative_numbers = true)]
    pub software_cycles: u32,
    /// Memory controllers, on both edges of the mesh [default: 4, as on the SCC]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4), allow_negative_numbers = true)]
    pub controllers: Option<u16>,
    /// What accesses cost: scc-eas, scc-barrelfish, cxl; et and tensix-bh are assumptions only
    #[arg(long, value_name = "NAME", default_value = "scc-eas")]
    pub latencies: Latencies,
    /// How often: [`EPOCHS`], unless in a hurry.
    #[arg(skip = EPOCHS)]
    pub epochs: u32,
}

fn software(text: &str) -> Result<u32, String> {
    const MAX: u32 = 1_000_000;
    let cycles = text.parse().ok().filter(|&cycles| cycles <= MAX);
    cycles.ok_or_else(|| format!("not a number of cycles from 0 to {MAX}"))
}

fn buffer(text: &str) -> Result<u32, String> {
    let bytes = text.parse().ok();
    let bytes = bytes.filter(|bytes: &u32| *bytes <= BUFFER && bytes.is_multiple_of(32));
    bytes.ok_or_else(|| format!("not a multiple of 32 from 0 to {BUFFER}"))
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

/// The calls that are timed.
#[derive(Copy, Clone)]
enum Call {
    Post,
    Start,
    Put,
    Complete,
    Wait,
}

/// Cycles of each call, of all epochs; on targets also of all cores.
#[derive(Default)]
struct Samples([RefCell<Vec<u64>>; 5]);

impl Samples {
    /// Makes a call, between two looks at the clock, the second one's cycles included.
    fn time<T>(&self, clock: &SimCore, call: Call, make: impl FnOnce() -> T) -> T {
        let begin = clock.cycles();
        let done = make();
        let cycles = clock.cycles() - begin;
        self.0[call as usize].borrow_mut().push(cycles);
        done
    }

    fn of(&self, call: Call) -> Sorted {
        let samples = self.0[call as usize].borrow();
        Sorted::new(samples.iter().map(|&cycles| cycles as f64))
    }
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
        ..timed()
    };
    let samples = Samples::default();
    let report = run(config, |core| program(core, setup, &samples))?;
    let hertz = setup.latencies.costs().hertz;
    let middle = |call| Cycles {
        count: samples.of(call).median() as u64,
        hertz,
    };
    let calls = [Call::Post, Call::Start, Call::Complete, Call::Wait];
    Ok(Measured {
        spread: calls.map(|call| spread(&samples.of(call))),
        post: middle(Call::Post),
        start: middle(Call::Start),
        put: middle(Call::Put),
        complete: middle(Call::Complete),
        wait: middle(Call::Wait),
        counters: report.counters,
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
fn program(core: SimCore, setup: &Setup, samples: &Samples) -> Result<(), Failure> {
    if setup.strategy == Strategy::Messages {
        messages::epochs(&core, setup, samples);
        return Ok(());
    }
    in_world(core, |world| match setup.strategy {
        Strategy::EpochSlots => epochs::<EpochSlots<'_>>(world, setup, samples, ()),
        Strategy::MatchingList => epochs::<MatchingList<'_>>(world, setup, samples, setup.targets),
        _ => epochs::<MatchVector<'_>>(world, setup, samples, ()),
    })
}

/// Computes for so many cycles.
fn spend(clock: &SimCore, cycles: u32) {
    if cycles > 0 {
        clock.spend(cycles);
    }
}

fn epochs<'w, S: Signalling<'w, Chip>>(
    world: &'w World<'w, Chip>,
    setup: &Setup,
    samples: &Samples,
    options: S::Options,
) -> Result<(), Failure> {
    let clock = world.link().machine();
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
    for _ in 0..setup.epochs {
        if world.rank() != origin[0] {
            spend(clock, setup.skew * u32::from(world.rank().get()));
            let exposure = samples.time(clock, Call::Post, || window.post(&origins))?;
            samples.time(clock, Call::Wait, || exposure.wait())?;
            continue;
        }
        spend(clock, setup.lead);
        let access = samples.time(clock, Call::Start, || {
            let access = window.start(&group)?;
            if setup.class == Class::Immediate {
                access.await_posts()?;
            }
            Ok::<_, Failure>(access)
        })?;
        let mut noted = Vec::new();
        if setup.words > 0 || setup.work > 0 {
            samples.time(clock, Call::Put, || {
                targets.iter().try_for_each(|&target| {
                    spend(clock, setup.work);
                    match setup.class {
                        Class::Deferred => noted.push(target),
                        _ => access.put(target, 0, data)?,
                    }
                    Ok::<(), Failure>(())
                })
            })?;
        }
        samples.time(clock, Call::Complete, || {
            for target in noted {
                access.put(target, 0, data)?;
            }
            Ok::<(), Failure>(access.complete()?)
        })?;
    }
    Ok(())
}
