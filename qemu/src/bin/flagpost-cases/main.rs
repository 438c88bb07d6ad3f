//! The image of conformance cases: runs the table of `flagpost-tests` on all harts of the board, by
//! the runner of `flagpost-conformance`.
//!
//! # Arguments (QEMU's `-append`, words `name=value`)
//! Those of [`run`], and:
//!
//! | word | meaning |
//! |---|---|
//! | `mapping=M` | how windows are mapped: `normal`, the default, `mpbt`, `mpbt-wt` |
//! | `mutant=NAME` | in a build with `--cfg mutants`: breaks this mutation point |
//!
//! Under `-icount shift=0,sleep=off` everything here is a function of the image, the number of
//! harts and the arguments: the same run gives the same records, instruction counts included.
//! Records that begin with `@` are the runner's, and from the board `@trap`, `@panic`.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

mod broken;

use flagpost_conformance::{Args, Bell, Board, Has, Plain, Record, cases, run};
use flagpost_qemu::{Exit, Hart, Mapping, Scc, set_case};

flagpost_qemu::entry!(main_of_hart);

/// Other hosts only type-check this image.
#[cfg(not(target_os = "none"))]
fn main() {}

/// The platform, as the cases see it.
pub(crate) type Qemu = Plain<Scc<Hart>, Bells>;

/// A hart can ring another.
pub(crate) struct Bells;

impl Has<Scc<Hart>> for Bells {
    const BELL: Option<Bell<Scc<Hart>>> = Some((Scc::ring, Scc::wait_for_ring));
    const PROGRAMS: bool = true;
}

/// A hart, as the runner sees it.
#[derive(Copy, Clone)]
struct Image {
    hart: Hart,
    mapping: Mapping,
}

impl Board for Image {
    type Platform = Qemu;

    fn machine(&self) -> Scc<Hart> {
        self.hart.machine(self.mapping)
    }

    fn barrier(&self, well: bool) -> bool {
        flagpost_qemu::agree(self.hart, well)
    }

    fn reset(&self, garbage: u32) {
        self.hart.reset(garbage);
    }

    fn log(&self, record: &Record<'_>) {
        defmt::println!("{}", defmt::Display2Format(record));
    }

    fn enters(&self, case: &'static str) {
        set_case(case);
    }

    fn give_way(&self) {
        self.hart.give_way();
    }
}

/// Runs the selected cases on every hart.
fn main_of_hart(hart: Hart) -> Exit {
    let args = Args::new(flagpost_qemu::boot_args());
    #[cfg(mutants)]
    flagpost_points::break_point(args.text("mutant"));
    let mapping = match args.text("mapping") {
        // Dirty lines: a write-back that is missing must show.
        None | Some("normal") => Mapping::Normal,
        Some("mpbt") => Mapping::Mpbt,
        Some("mpbt-wt") => Mapping::MpbtWriteThrough,
        Some(other) => panic!("{other} is no mapping"),
    };
    let cases = cases().chain(broken::CASES);
    match run(Image { hart, mapping }, cases, args) {
        true => Exit::Pass,
        false => Exit::Fail,
    }
}
