//! The image of conformance cases: runs the table of `flagpost-tests` on all harts of the board.
//!
//! # Arguments (QEMU's `-append`, words `name=value`)
//! | word | meaning |
//! |---|---|
//! | `filter=TEXT` | only cases whose name contains TEXT; a `broken` one only by its full name |
//! | `seed=S` | delays each core's start by a pseudo-random time; 0, the default: no delay |
//! | `mapping=M` | how windows are mapped: `normal`, the default, `mpbt`, `mpbt-wt` |
//! | `list=1` | prints the cases and runs none |
//! | `mutant=NAME` | in a build with `--cfg mutants`: breaks this mutation point |
//!
//! All words, these included, reach the cases as their `args`.
//!
//! # One case
//! ```text
//!   core 0:      @begin                                               @note @fail @end
//!   all:   barrier ─ reset own memory ─ barrier ─ delay ─ run ─ record ─ barrier ─ …
//!                                          └──────── instructions ────────┘
//! ```
//! Under `-icount shift=0,sleep=off` everything here is a function of the image, the number of
//! harts and the arguments: the same run gives the same records, instruction counts included.
//!
//! # Records
//! Those that begin with `@` are for `cargo xtask qemu`, one per line after decoding: `@plan`,
//! `@skip`, `@begin`, `@note`, `@fail`, `@end`, `@done`, `@list`; from the board `@trap`, `@panic`.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

mod broken;
mod plan;
mod record;

use flagpost_qemu::{Exit, Hart, Scc, barrier, set_case, set_status};
use flagpost_tests::{
    Args, Bell, Case, Context, MachinePlatform, Mapped, Platform, Refusal, Ring, Session, mapped,
};

use plan::Plan;
use record::Tally;

flagpost_qemu::entry!(run);

/// Other hosts only type-check this image.
#[cfg(not(target_os = "none"))]
fn main() {}

/// The board, as the cases see it.
pub(crate) struct Qemu;

impl Platform for Qemu {
    type Machine = Scc<Hart>;
    type Link = Mapped<Scc<Hart>>;

    fn link(
        machine: &Scc<Hart>,
        session: Session,
        ring: Option<Ring>,
    ) -> Result<Self::Link, Refusal> {
        mapped(machine, session, ring)
    }
}

impl MachinePlatform for Qemu {
    const BELL: Option<Bell<Self::Machine>> = Some((Scc::ring, Scc::wait_for_ring));
}

/// Runs the selected cases on every hart. All harts compute the same plan and go through it
/// together.
fn run(hart: Hart) -> Exit {
    let args = Args::new(flagpost_qemu::boot_args());
    #[cfg(mutants)]
    flagpost_points::break_point(args.text("mutant"));
    let plan = Plan::new(args, hart.cores());
    let reports = hart.core().get() == 0;
    if args.text("list") == Some("1") {
        if reports {
            plan.cases().for_each(record::list);
        }
        return Exit::Pass;
    }
    if reports {
        record::plan(&plan, hart);
    }
    let mut tally = Tally::default();
    for case in plan.cases() {
        if !plan.admits(case) {
            tally.skipped += 1;
            if reports {
                record::skip(case);
            }
        } else if run_case(hart, &plan, case, tally.run()) {
            tally.passed += 1;
        } else {
            tally.failed += 1;
        }
    }
    if reports {
        record::done(&tally);
    }
    tally.exit()
}

/// Runs one case, the `index`th of this run. The result is the same on all harts.
fn run_case(hart: Hart, plan: &Plan<'_>, case: &Case<Qemu>, index: u32) -> bool {
    let number = index + 1;
    let session = Session::new(number).unwrap_or(Session::FIRST);
    let core = hart.core();
    if core.get() == 0 {
        record::begin(case);
        set_case(case.name);
    }
    barrier(hart);
    let garbage = mix([number, core.get().into(), !0]);
    hart.reset(garbage);
    let machine = hart.scc(plan.mapping);
    let mut arena = [garbage; Context::<Qemu>::arena_words(512)];
    let mut notes = record::Notes::default();

    barrier(hart);
    let start = hart.cycles();
    set_status(hart, 2 + index);
    delay(hart, plan, number);
    let result = (case.run)(&mut Context {
        machine,
        session,
        args: plan.args,
        arena: &mut arena,
        report: &mut |what, value| notes.add(what, value),
    });
    record::set_result(core, number, result);
    barrier(hart);

    if core.get() == 0 {
        set_case("-");
        record::end(case, hart, &notes, hart.cycles().wrapping_sub(start));
    }
    record::all_passed(number)
}

/// Gives this core its own late start: some ten thousand cycles, which is a few turns of all harts.
fn delay(hart: Hart, plan: &Plan<'_>, session: u32) {
    if plan.seed == 0 {
        return;
    }
    let span = 20_000 + 100 * u32::from(hart.cores());
    let cycles = mix([plan.seed, session, hart.core().get().into()]) % span;
    let start = hart.cycles();
    while hart.cycles().wrapping_sub(start) < cycles.into() {
        hart.give_way();
    }
}

/// Mixes three numbers into one in which every bit depends on all of theirs (the finalizer of
/// MurmurHash3, once per number).
fn mix(numbers: [u32; 3]) -> u32 {
    numbers.iter().fold(0x9e37_79b9, |hash, number| {
        let mut hash: u32 = hash ^ number;
        hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
        hash ^ hash >> 16
    })
}
