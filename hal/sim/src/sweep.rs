//! Many seeds of several cases, on several host threads.

use std::fmt::{self, Display};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, thread};

use serde::Deserialize;

use crate::config::{Config, Schedule};
use crate::handle::SimCore;
use crate::report::{REPLAY, Report};
use crate::sim::Sim;

/// A program, with its error type erased.
type Program<'a> = Box<dyn Fn(&mut Sim) -> Report + Send + Sync + 'a>;

struct Case<'a> {
    name: String,
    config: Config,
    program: Program<'a>,
}

/// Runs cases with many seeds: `sweep(0..1000).case(...).case(...).run()`.
///
/// Every case gets every seed. Seeds are striped over the threads. The outcome does not depend on
/// the threads: of several failures the one of the lowest seed is returned, and among its cases the
/// first.
pub struct Sweep<'a> {
    cases: Vec<Case<'a>>,
    seeds: Range<u64>,
    threads: usize,
}

/// A sweep over `seeds`, on as many threads as the host has processors.
pub fn sweep<'a>(seeds: Range<u64>) -> Sweep<'a> {
    Sweep {
        cases: Vec::new(),
        seeds,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// What came of a sweep.
#[derive(Debug)]
#[must_use = "a failure is only in here"]
pub struct Swept {
    /// Runs that were made.
    pub runs: u64,
    /// Steps of all of them.
    pub steps: u64,
    /// The first run that was not done.
    pub failure: Option<Report>,
}

impl<'a> Sweep<'a> {
    /// Uses this many host threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Adds a case. The configuration's seed does not matter.
    pub fn case<E: Display>(
        self,
        name: impl Into<String>,
        config: Config,
        program: impl Fn(SimCore) -> Result<(), E> + Send + Sync + 'a,
    ) -> Self {
        self.case_with_lines(name, config, program)
    }

    /// [`case`](Self::case), for a chip with lines of `LINE` bytes.
    pub fn case_with_lines<const LINE: usize, E: Display>(
        mut self,
        name: impl Into<String>,
        config: Config,
        program: impl Fn(SimCore<LINE>) -> Result<(), E> + Send + Sync + 'a,
    ) -> Self {
        self.cases.push(Case {
            name: name.into(),
            config,
            program: Box::new(move |sim| sim.run_with_lines(&program)),
        });
        self
    }

    /// Runs until all is done or something fails.
    ///
    /// With `FLAGPOST_SIM_REPLAY` set to the last line of a report, runs only that: here if it
    /// names one of these cases, else nothing.
    ///
    /// # Panics
    /// If that variable cannot be understood.
    pub fn run(mut self) -> Swept {
        if let Ok(line) = env::var(REPLAY) {
            return self.replay(&line);
        }
        self.measure();
        // Runs are numbered seed by seed; `limit` is the number of the first known failure.
        let limit = AtomicU64::new(u64::MAX);
        let all = thread::scope(|scope| {
            let stripe = |first| {
                let (cases, seeds, limit) = (&self.cases, &self.seeds, &limit);
                let stride = self.threads as u64;
                scope.spawn(move || run_stripe(cases, seeds, first, stride, limit))
            };
            let threads: Vec<_> = (0..self.threads as u64).map(stripe).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, Stripe>| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect::<Vec<_>>()
        });
        let failures = all.iter().filter_map(|stripe| stripe.failure.as_ref());
        let first = failures.min_by_key(|(number, _)| *number);
        Swept {
            runs: all.iter().map(|stripe| stripe.runs).sum(),
            steps: all.iter().map(|stripe| stripe.steps).sum(),
            failure: first.map(|(_, report)| report.clone()),
        }
    }

    /// Tells cases whose schedule needs it how long their runs are: as long as a random one is.
    fn measure(&mut self) {
        for case in &mut self.cases {
            let pct = matches!(case.config.schedule, Schedule::Pct { .. } | Schedule::Mixed);
            if pct && case.config.pct_length == 0 {
                let mut sim = Sim::new(Config {
                    schedule: Schedule::Random,
                    seed: self.seeds.start,
                    ..case.config.clone()
                });
                case.config.pct_length = (case.program)(&mut sim).steps.max(1);
            }
        }
    }

    fn replay(self, line: &str) -> Swept {
        let Replay { case, config } = match serde_json::from_str(line) {
            Ok(replay) => replay,
            Err(error) => panic!("{REPLAY}: {error}"),
        };
        let mut swept = Swept {
            runs: 0,
            steps: 0,
            failure: None,
        };
        if let Some(case) = self.cases.iter().find(|known| known.name == case) {
            let mut report = (case.program)(&mut Sim::new(config));
            report.case.clone_from(&case.name);
            (swept.runs, swept.steps) = (1, report.steps);
            eprintln!("{report}");
            swept.failure = (!report.is_done()).then_some(report);
        }
        swept
    }
}

/// The last line of a report: a run of one of the cases.
#[derive(Deserialize)]
struct Replay {
    case: String,
    config: Config,
}

/// What one thread did.
struct Stripe {
    runs: u64,
    steps: u64,
    /// The run's number, and its account.
    failure: Option<(u64, Report)>,
}

/// Every `stride`-th seed from the `first` on, all cases of it.
fn run_stripe(
    cases: &[Case<'_>],
    seeds: &Range<u64>,
    first: u64,
    stride: u64,
    limit: &AtomicU64,
) -> Stripe {
    let mut stripe = Stripe {
        runs: 0,
        steps: 0,
        failure: None,
    };
    let chip = |case: &Case<'_>| Sim::new(case.config.clone());
    let mut sims: Vec<Sim> = cases.iter().map(chip).collect();
    let mut turn = first;
    while let Some(seed) = seeds.start.checked_add(turn).filter(|s| *s < seeds.end) {
        for (index, (case, sim)) in cases.iter().zip(&mut sims).enumerate() {
            let number = turn * cases.len() as u64 + index as u64;
            // ORDERING: Relaxed: the limit only ever falls, and a late look at it costs a run that
            // was not needed. Reports travel through `join`.
            if number >= limit.load(Ordering::Relaxed) {
                return stripe;
            }
            let mut report = (case.program)(sim.reseed(seed));
            stripe.runs += 1;
            stripe.steps += report.steps;
            if !report.is_done() {
                limit.fetch_min(number, Ordering::Relaxed);
                report.case.clone_from(&case.name);
                stripe.failure = Some((number, report));
                return stripe;
            }
        }
        turn += stride;
    }
    stripe
}

impl Swept {
    /// Panics with the account of the first failure, if there is one.
    ///
    /// # Panics
    /// See above.
    #[track_caller]
    pub fn assert_done(&self) {
        assert!(self.failure.is_none(), "{self}");
    }
}

impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs, {} steps", self.runs, self.steps)?;
        match &self.failure {
            None => f.write_str(", all done"),
            Some(report) => write!(f, ", then\n{report}"),
        }
    }
}
