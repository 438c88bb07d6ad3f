//! `flagpost-app-rank`: a rank of a program of `flagpost-apps`, for `flagpost-run`. Rank 0 prints
//! what it took as a JSON object: ticks, ticks in a second, and the work of all ranks.

use std::fmt;
use std::process::ExitCode;

use flagpost::{Link, World};
use flagpost_apps::{Job, Size, Variant, Wrong, programs};
use flagpost_common::Json;

/// Why a rank has nothing to print.
enum Failure {
    Arguments,
    Wrong(Wrong),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments => f.write_str("flagpost-app-rank PROGRAM VARIANT SIDE STEPS"),
            Self::Wrong(wrong) => wrong.fmt(f),
        }
    }
}

/// The program, the variant and the size of the command line.
fn arguments() -> Option<(String, Variant, Size)> {
    let mut words = std::env::args().skip(1);
    let (name, variant) = (words.next()?, Variant::of(&words.next()?)?);
    let mut number = || words.next()?.parse().ok();
    let size = Size {
        side: number()?,
        steps: number()?,
    };
    Some((name, variant, size))
}

fn rank<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (name, variant, size) = arguments().ok_or(Failure::Arguments)?;
    let mut all = programs::<L>().into_iter();
    let program = all.find(|program| program.name == name);
    let program = program.ok_or(Failure::Arguments)?;
    let elements = program.memory(world.size(), size).map_err(Failure::Wrong)?;
    let mut memory = vec![0.0; elements];
    let job = Job {
        variant,
        size,
        memory: &mut memory,
        compute: &|_| {},
    };
    let outcome = program.run(world, job).map_err(Failure::Wrong)?;
    if world.rank().get() == 0 {
        Json::new()
            .number("ticks", outcome.ticks)
            .number("per_second", outcome.per_second)
            .number("work", outcome.work)
            .print();
    }
    Ok(())
}

fn main() -> ExitCode {
    flagpost_linux::run_in_mode!(rank)
}
