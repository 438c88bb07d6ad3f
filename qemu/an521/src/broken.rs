//! Cases that end the machine, each in its own way, to try the records of that. Selected by their
//! full name only. They act on core 1.

use core::hint::black_box;

use flagpost_hal::Topology as _;
use flagpost_tests::{Case, Context, Failure};

use crate::{TwoCores, devices};

pub(crate) const CASES: &[Case<TwoCores>] = &[
    case("broken.trap", |context| {
        on_core_1(context, devices::load_from_nowhere)
    }),
    case("broken.overflow", |context| on_core_1(context, overflow)),
    case("broken.panic", |context| {
        on_core_1(context, || panic!("broken on purpose"))
    }),
];

const fn case(
    name: &'static str,
    run: fn(&mut Context<'_, TwoCores>) -> Result<(), Failure>,
) -> Case<TwoCores> {
    Case {
        name,
        min_cores: 2,
        max_cores: 2,
        atomics: false,
        lacks: None,
        leftovers: false,
        epochs: 1,
        run,
    }
}

fn on_core_1(context: &Context<'_, TwoCores>, act: fn()) -> Result<(), Failure> {
    if context.machine.core().get() == 1 {
        act();
    }
    Ok(())
}

fn overflow() {
    black_box(dig(black_box(u32::MAX)));
}

/// Recurses `depth` times. What is done with the result keeps the compiler from making it a loop.
#[inline(never)]
fn dig(depth: u32) -> u32 {
    let frame = black_box([depth; 16]);
    match depth {
        0 => 0,
        _ => dig(depth - 1) + frame[black_box(0)],
    }
}
