//! The programs of `examples/apps`, each in all its variants, one after the other in one world.
//!
//! A size is the smallest at which two ranks exchange data in each variant, and nearly all write
//! again into what a neighbour has read. The programs compare their results with serial runs.
//! `app.variant` chooses one variant, whose ticks and work are reported, and `app.size` another
//! size, for `cargo xtask app --on qemu`.

use core::slice;

use flagpost::{Config, World};
use flagpost_apps::{Job, Program, Size, Variant, Wrong};

use crate::arguments::{APP_SIZE, APP_VARIANT};
use crate::{Context, Failure, Platform, Result};

/// Ranks at most: each makes a serial run for all.
pub(super) const MOST: u16 = 48;

/// Elements of memory that suffice at the sizes of the cases, on [`MOST`] ranks.
const FEW: usize = 544;

/// For other sizes: a third of a stack of the QEMU board.
const MANY: usize = 5 << 10;

/// Runs the program with so many elements along each side, and steps.
pub(super) fn run<P: Platform>(
    context: &mut Context<'_, P>,
    program: Program<P::Link>,
    side: u32,
    steps: u32,
) -> Result {
    match context.args.text(APP_SIZE.name) {
        None => with_memory::<P, FEW>(context, &program, Size { side, steps }),
        Some(size) => {
            let size = Size::of(size).ok_or(Failure::Argument(APP_SIZE.takes))?;
            with_memory::<P, MANY>(context, &program, size)
        }
    }
}

#[inline(never)]
fn with_memory<P: Platform, const LEN: usize>(
    context: &mut Context<'_, P>,
    program: &Program<P::Link>,
    size: Size,
) -> Result {
    let chosen = match context.args.text(APP_VARIANT.name) {
        None => None,
        Some(name) => Some(Variant::of(name).ok_or(Failure::Argument(APP_VARIANT.takes))?),
    };
    let variants = chosen.as_ref().map_or(program.variants, slice::from_ref);
    let link = P::link(&context.machine, context.session, None)?;
    let world = World::start(link, context.arena, Config::default())?;
    P::go(&context.machine);
    let mut memory = [0.0; LEN];
    for &variant in variants {
        let job = Job {
            variant,
            size,
            memory: &mut memory,
            compute: &|_| {},
        };
        let outcome = program.run(&world, job)?;
        if chosen.is_some() {
            (context.report)("ticks", outcome.ticks);
            (context.report)("per_second", outcome.per_second);
            (context.report)("work", outcome.work);
        }
    }
    Ok(())
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        let of = |what, expected: u64, found| Self::Wrong {
            what,
            expected,
            found,
        };
        match wrong {
            Wrong::Flagpost(error) => Self::Library(error),
            // The bits: that is what must be equal.
            Wrong::Value {
                what,
                found,
                expected,
            } => of(what, expected.to_bits(), found.to_bits()),
            Wrong::Memory { missing } => of("elements of memory missing", 0, missing as u64),
            Wrong::Size(_) => Self::Argument(APP_SIZE.takes),
            Wrong::Full(what) => of(what, 0, 1),
            Wrong::Variant(_) => Self::Argument("the program has no such variant"),
        }
    }
}
