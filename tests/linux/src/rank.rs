//! One rank's way through the plan.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use flagpost_hal::{Coherence, Region, Topology as _, UncachedMemory};
use flagpost_linux::{Linux, Mode};
use flagpost_tests::{Args, Case, Context, Failure, Platform, Session};

use crate::arguments::Arguments;
use crate::limit::Limit;

/// What is to be run.
pub(crate) struct Plan<'a> {
    pub(crate) filter: &'a str,
    pub(crate) ranks: u16,
    pub(crate) list: bool,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(arguments: &'a Arguments) -> Self {
        Self {
            filter: &arguments.filter,
            ranks: u16::try_from(arguments.ranks).unwrap_or(u16::MAX),
            list: arguments.list,
        }
    }
}

/// How many cases ended how.
#[derive(Default)]
pub(crate) struct Tally {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Tally {
    pub(crate) fn new(skipped: usize) -> Self {
        Self {
            skipped: skipped as u32,
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, passed: bool) {
        match passed {
            true => self.passed += 1,
            false => self.failed += 1,
        }
    }

    /// A run that selected nothing has shown nothing.
    pub(crate) fn is_well(&self) -> bool {
        self.failed == 0 && self.passed + self.skipped > 0
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// The cases that the plan runs, and those that it skips. None if it only lists them, as it has
/// done then.
#[allow(clippy::type_complexity, reason = "two lists of cases")]
pub(crate) fn select<P: Platform>(
    plan: &Plan<'_>,
    mut cases: Vec<&'static Case<P>>,
) -> Option<(Vec<&'static Case<P>>, Vec<&'static Case<P>>)> {
    cases.retain(|case| case.name.contains(plan.filter));
    let (admitted, skipped): (Vec<&Case<P>>, Vec<&Case<P>>) =
        cases.into_iter().partition(|case| case.admits(plan.ranks));
    if plan.list {
        admitted.iter().for_each(|case| println!("{}", case.name));
        skipped.iter().for_each(|case| skip(case));
        return None;
    }
    Some((admitted, skipped))
}

/// Goes through `cases`. `machine` makes the cases' machine of the rank's, `reset` what a reset
/// does to it.
pub(crate) fn go<P: Platform, M: Mode>(
    plan: &Plan<'_>,
    cases: Vec<&'static Case<P>>,
    machine: impl Fn(&Linux<M>) -> P::Machine,
    reset: impl Fn(&Linux<M>),
) -> ExitCode
where
    Linux<M>: UncachedMemory + Coherence,
{
    let Some((admitted, skipped)) = select(plan, cases) else {
        return ExitCode::SUCCESS;
    };
    let ran = flagpost_linux::join(|linux: Linux<M>| {
        let mut tally = Tally::new(skipped.len());
        let limit = Limit::start(linux.core().get());
        let reports = linux.core().get() == 0;
        if reports {
            skipped.iter().for_each(|case| skip(case));
        }
        let mut session = Session::FIRST;
        for case in &admitted {
            limit.begin(case.name);
            tally.add(one(&linux, case, session, &machine, &reset, &limit)?);
            session = session.next();
        }
        if reports {
            println!("{tally}");
        }
        tally.is_well().then_some(()).ok_or("not all have passed")
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

pub(crate) fn skip<P: Platform>(case: &Case<P>) {
    let (name, least) = (case.name, case.min_cores);
    let needs = match (case.lacks, case.max_cores) {
        (Some(what), _) => what.to_owned(),
        (None, u16::MAX) => format!("{least} to any ranks"),
        (None, most) => format!("{least} to {most} ranks"),
    };
    println!("skipped {name}: needs {needs}");
}

/// Runs one case. True on all ranks, if it passed on all.
fn one<P: Platform, M: Mode>(
    linux: &Linux<M>,
    case: &Case<P>,
    session: Session,
    machine: impl Fn(&Linux<M>) -> P::Machine,
    reset: impl Fn(&Linux<M>),
    limit: &Limit,
) -> Result<bool, &'static str>
where
    Linux<M>: UncachedMemory + Coherence,
{
    let meet = || linux.meet().then_some(()).ok_or("a rank is lost");
    let rank = linux.core();
    let garbage = mix([session.get(), rank.get().into(), !0]);
    meet()?;
    reset(linux);
    let line: Vec<u8> = (0..32)
        .map(|at| garbage.rotate_left(at) as u8 | 1)
        .collect();
    let bytes = line.repeat(linux.memory_size() / line.len());
    linux.store_bytes(Region::memory(rank).at(0), &bytes);
    linux.settle();
    let mut arena = vec![garbage; Context::<P>::arena_words(linux.cores())];
    let mut notes = Vec::new();
    meet()?;
    if case.leftovers {
        linux.mode().set_oracle(false);
    }
    let start = Instant::now();
    let result = (case.run)(&mut Context {
        machine: machine(linux),
        session,
        args: Args::default(),
        arena: &mut arena,
        report: &mut |what, value| notes.push((what, value)),
    });
    if let Err(why) = &result {
        tell(case, rank.get(), why);
    }
    limit.end(case.name, result.is_ok());
    if case.leftovers {
        linux.mode().set_oracle(true);
    }
    linux.settle();
    meet()?;
    let took = start.elapsed();
    // The results are told by the first words of the regions, which no case needs any more.
    let failed = |rank| Region::memory(flagpost_hal::CoreId::new(rank)).at(0);
    linux.store_u32(failed(rank.get()), u32::from(result.is_err()));
    linux.settle();
    meet()?;
    linux.settle();
    let passed = (0..linux.cores()).all(|rank| linux.load_u32(failed(rank)) == 0);
    if rank.get() == 0 {
        verdict(case, passed, took);
    }
    meet()?;
    Ok(passed)
}

/// Prints how a case has ended.
pub(crate) fn verdict<P: Platform>(case: &Case<P>, passed: bool, took: Duration) {
    let verdict = if passed { "ok" } else { "FAILED" };
    let (milliseconds, name) = (took.as_secs_f64() * 1e3, case.name);
    println!("{verdict:7} {milliseconds:8.1} ms {name}");
}

pub(crate) fn tell<P: Platform>(case: &Case<P>, rank: u16, why: &Failure) {
    println!("        {}: rank {rank}: {why:?}", case.name);
}

/// Mixes three numbers into one in which every bit depends on all of theirs (the finalizer of
/// MurmurHash3, once per number).
pub(crate) fn mix(numbers: [u32; 3]) -> u32 {
    numbers.iter().fold(0x9e37_79b9, |hash, number| {
        let mut hash: u32 = hash ^ number;
        hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
        hash ^ hash >> 16
    })
}
