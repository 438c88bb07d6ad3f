//! A rank of a program of `flagpost-apps`, in one of its variants. Each rank compares its part of
//! the result with a serial run. Rank 0 prints as a JSON object what the program took: ticks, ticks
//! in a second, and the work of all ranks. `cargo xtask app` starts ranks this way.
//!
//! ```sh
//! cargo build --release -p flagpost-linux --bins --examples
//! target/release/flagpost-run -n 4 target/release/examples/app halo pscw 64 100
//! ```
use std::fmt;
use std::process::ExitCode;

use flagpost::{Link, World};
use flagpost_apps::{Job, Program, Size, Variant, Wrong, programs};
use flagpost_common::Json;

/// Why a rank has nothing to print.
enum Failure {
    Arguments,
    Wrong(Wrong),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments => f.write_str("app PROGRAM VARIANT [SIDE STEPS]"),
            Self::Wrong(wrong) => wrong.fmt(f),
        }
    }
}

/// The program, the variant and the size of the command line: if it names none, that of a test.
fn arguments<L: Link>() -> Option<(Program<L>, Variant, Size)> {
    let mut words = std::env::args().skip(1);
    let (name, variant) = (words.next()?, Variant::of(&words.next()?)?);
    let program = { programs().into_iter() }.find(|program| program.name == name)?;
    let mut size = program.small;
    if let Some(side) = words.next() {
        size = Size {
            side: side.parse().ok()?,
            steps: words.next()?.parse().ok()?,
        };
    }
    Some((program, variant, size))
}

fn app<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (program, variant, size) = arguments().ok_or(Failure::Arguments)?;
    let elements = program.memory(world.size(), size);
    let elements = elements.map_err(Failure::Wrong)?;
    let mut memory = Vec::new();
    let room = memory.try_reserve_exact(elements);
    room.map_err(|_| Failure::Wrong(Wrong::Size(size)))?;
    memory.resize(elements, 0.0);
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
    flagpost_linux::run_in_mode!(app)
}
