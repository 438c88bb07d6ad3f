//! What the runner prints.

use core::fmt;

use flagpost_tests::Failure;

/// A line of the log. Its text begins with `@` and is as `cargo xtask qemu` reads it.
#[derive(Copy, Clone, Debug)]
pub enum Record<'a> {
    /// Once, before the first case.
    Plan {
        /// Cores of the machine.
        cores: u16,
        /// Cases that will run.
        cases: usize,
        /// Cases that will not.
        skipped: usize,
        /// How the cores' starts are varied.
        seed: u32,
    },
    /// In place of a run, with the argument `list=1`.
    List {
        /// Its name.
        case: &'a str,
        /// Fewest cores.
        min: u16,
        /// Most cores.
        max: u16,
    },
    /// A case does not run, since it takes another number of cores.
    Skip {
        /// Its name.
        case: &'a str,
        /// Fewest cores.
        min: u16,
        /// Most cores.
        max: u16,
    },
    /// A case does not run, since the platform lacks something.
    Lacks {
        /// Its name.
        case: &'a str,
        /// What the platform lacks.
        what: &'static str,
    },
    /// A case begins.
    Begin {
        /// Its name.
        case: &'a str,
    },
    /// A value that the case has measured.
    Note {
        /// Its name.
        case: &'a str,
        /// The core that says so.
        core: u16,
        /// What was measured.
        what: &'static str,
        /// The value.
        value: u64,
    },
    /// A case has failed on a core.
    Fail {
        /// Its name.
        case: &'a str,
        /// The core.
        core: u16,
        /// Why.
        why: Failure,
    },
    /// A case has ended on all cores.
    End {
        /// Its name.
        case: &'a str,
        /// No core has failed.
        ok: bool,
        /// Cycles of core 0, from the start of the case to its end on all cores.
        cycles: u64,
    },
    /// How much of its stack core 0 has used, of what [`Board::stack`](crate::Board::stack) names.
    Stack {
        /// Bytes used.
        used: usize,
        /// Bytes there are.
        of: usize,
    },
    /// Last.
    Done {
        /// Cases that passed.
        passed: u32,
        /// Cases that failed.
        failed: u32,
        /// Cases that did not run.
        skipped: u32,
    },
}

impl fmt::Display for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Plan {
                cores,
                cases,
                skipped,
                seed,
            } => write!(
                f,
                "@plan cores={cores} cases={cases} skipped={skipped} seed={seed}"
            ),
            Self::List { case, min, max } => write!(f, "@list case={case} min={min} max={max}"),
            Self::Skip { case, min, max } => write!(f, "@skip case={case} needs={min}..{max}"),
            Self::Lacks { case, what } => write!(f, "@skip case={case} needs={what}"),
            Self::Begin { case } => write!(f, "@begin case={case}"),
            Self::Note {
                case,
                core,
                what,
                value,
            } => write!(f, "@note case={case} core={core} what={what} value={value}"),
            Self::Fail { case, core, why } => {
                write!(f, "@fail case={case} core={core} why={why}")
            }
            Self::End { case, ok, cycles } => {
                write!(f, "@end case={case} ok={ok} instructions={cycles}")
            }
            Self::Stack { used, of } => write!(f, "@stack used={used} of={of}"),
            Self::Done {
                passed,
                failed,
                skipped,
            } => write!(f, "@done passed={passed} failed={failed} skipped={skipped}"),
        }
    }
}
