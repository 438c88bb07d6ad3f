//! What the image prints, and the results it is made of.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flagpost_hal::CoreId;
use flagpost_qemu::{Exit, Hart, MAX_HARTS};
use flagpost_tests::{Case, Failure};
use heapless::Vec;
use spin::Mutex;

use crate::Qemu;
use crate::plan::Plan;

/// The session of the last case that failed on any core.
static FAILED: AtomicU32 = AtomicU32::new(0);

/// Each core's failure in the case at hand. The locks are never contended, which matters, since a
/// spinning hart does not give its turn away: only the core itself stores, and only core 0 looks, a
/// barrier later.
static FAILURES: [Mutex<Option<Failure>>; MAX_HARTS] = [const { Mutex::new(None) }; MAX_HARTS];

/// How many cases ended how.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    pub(crate) skipped: u32,
}

impl Tally {
    /// Cases that have run.
    pub(crate) fn run(&self) -> u32 {
        self.passed + self.failed
    }

    /// A run that selected nothing has shown nothing: it fails.
    pub(crate) fn exit(&self) -> Exit {
        match (self.failed, self.run() + self.skipped) {
            (1.., _) | (0, 0) => Exit::Fail,
            _ => Exit::Pass,
        }
    }
}

/// What a case reports on this core. Kept until the case has ended, since printing takes
/// instructions.
#[derive(Default)]
pub(crate) struct Notes {
    kept: Vec<(&'static str, u64), 64>,
    lost: u64,
}

impl Notes {
    pub(crate) fn add(&mut self, what: &'static str, value: u64) {
        if self.kept.push((what, value)).is_err() {
            self.lost += 1;
        }
    }
}

/// Keeps what the case of this session returned on `core`.
pub(crate) fn set_result(core: CoreId, session: u32, result: Result<(), Failure>) {
    if result.is_err() {
        FAILED.store(session, Relaxed); // ORDERING: the barrier behind this hands it on.
    }
    *FAILURES[core.index()].lock() = result.err();
}

/// Whether the case of this session passed on all cores.
pub(crate) fn all_passed(session: u32) -> bool {
    FAILED.load(Relaxed) != session
}

/// For core 0 only.
fn failures(hart: Hart) -> impl Iterator<Item = (u16, Failure)> {
    (0..hart.cores()).filter_map(|core| Some((core, (*FAILURES[usize::from(core)].lock())?)))
}

pub(crate) fn plan(plan: &Plan<'_>, hart: Hart) {
    let selected = plan.cases().count();
    let cases = plan.cases().filter(|case| plan.admits(case)).count();
    defmt::println!(
        "@plan cores={=u16} cases={=usize} skipped={=usize} seed={=u32}",
        hart.cores(),
        cases,
        selected - cases,
        plan.seed
    );
}

pub(crate) fn list(case: &Case<Qemu>) {
    defmt::println!(
        "@list case={=str} min={=u16} max={=u16}",
        case.name,
        case.min_cores,
        case.max_cores
    );
}

pub(crate) fn begin(case: &Case<Qemu>) {
    defmt::println!("@begin case={=str}", case.name);
}

pub(crate) fn skip(case: &Case<Qemu>) {
    if case.atomics {
        defmt::println!("@skip case={=str} needs=atomics", case.name);
    } else {
        defmt::println!(
            "@skip case={=str} needs={=u16}..{=u16}",
            case.name,
            case.min_cores,
            case.max_cores
        );
    }
}

/// The results of one case: its notes, its failures, its end.
pub(crate) fn end(case: &Case<Qemu>, hart: Hart, notes: &Notes, instructions: u64) {
    let lost = (notes.lost > 0).then_some(("notes.lost", notes.lost));
    for (what, value) in notes.kept.iter().copied().chain(lost) {
        defmt::println!(
            "@note case={=str} core={=u16} what={=str} value={=u64}",
            case.name,
            hart.core().get(),
            what,
            value
        );
    }
    let mut ok = true;
    for (core, failure) in failures(hart) {
        ok = false;
        defmt::println!(
            "@fail case={=str} core={=u16} why={}",
            case.name,
            core,
            failure
        );
    }
    defmt::println!(
        "@end case={=str} ok={=bool} instructions={=u64}",
        case.name,
        ok,
        instructions
    );
}

pub(crate) fn done(tally: &Tally) {
    defmt::println!(
        "@done passed={=u32} failed={=u32} skipped={=u32}",
        tally.passed,
        tally.failed,
        tally.skipped
    );
}
