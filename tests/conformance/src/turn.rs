//! The run: case after case, on all cores together.

use flagpost_hal::{Clock as _, CoreId, Topology as _};
use flagpost_tests::{Args, Case, Context, Failure, Platform, Session};
use heapless::Vec;

use crate::board::{Board, Status};
use crate::record::Record;
use crate::stack::Stack;

type Machine<B> = <<B as Board>::Platform as Platform>::Machine;

/// Runs the cases that `args` select of a table, on every core. True if there was one, and all have
/// passed on all cores. All cores get the same answer.
///
/// # Arguments (words `name=value`)
/// | word | meaning |
/// |---|---|
/// | `filter=TEXT` | only cases whose name contains TEXT; a `broken` one only by its full name |
/// | `seed=S` | delays each core's start by a pseudo-random time; 0, the default: no delay |
/// | `list=1` | logs the cases and runs none |
///
/// All words, these included, reach the cases as their `args`.
pub fn run<B: Board>(
    board: B,
    cases: impl Iterator<Item = &'static Case<B::Platform>> + Clone,
    args: Args<'_>,
) -> bool {
    let machine = board.machine();
    let (core, cores) = (machine.core(), machine.cores());
    let seed = args.number("seed", 0).expect("seed=S takes a number");
    let filter = args.text("filter").unwrap_or("");
    // All cores select the same. A case that is broken on purpose is asked for by its whole name.
    let asked = |name: &str| match name.starts_with("broken.") {
        true => name == filter,
        false => name.contains(filter),
    };
    let selected = cases.filter(|case| asked(case.name));
    let first = core.get() == 0;
    let log = |record: Record<'_>| {
        if first {
            board.log(&record);
        }
    };
    let range = |case: &'static Case<B::Platform>| (case.name, case.min_cores, case.max_cores);
    if args.text("list") == Some("1") {
        for (case, min, max) in selected.clone().map(range) {
            log(Record::List { case, min, max });
        }
        return true;
    }
    let all = selected.clone().count();
    let cases = selected.clone().filter(|case| case.admits(cores)).count();
    log(Record::Plan {
        cores,
        cases,
        skipped: all.saturating_sub(cases),
        seed,
    });
    let runner = Runner {
        board,
        core,
        cores,
        seed,
        args,
        stack: Stack::paint(board.stack()),
    };
    let (mut passed, mut failed, mut skipped) = (0_u32, 0_u32, 0_u32);
    for case in selected {
        let (name, min, max) = range(case);
        if !case.admits(cores) {
            skipped = skipped.saturating_add(1);
            log(match case.lacks {
                Some(what) => Record::Lacks { case: name, what },
                None => Record::Skip {
                    case: name,
                    min,
                    max,
                },
            });
        } else if runner.case(case, passed.saturating_add(failed)) {
            passed = passed.saturating_add(1);
        } else {
            failed = failed.saturating_add(1);
        }
    }
    if runner.stack.size() > 0 {
        log(Record::Stack {
            used: runner.stack.used(),
            of: runner.stack.size(),
        });
    }
    log(Record::Done {
        passed,
        failed,
        skipped,
    });
    failed == 0 && all > 0
}

/// One core, between two cases.
struct Runner<'a, B> {
    board: B,
    core: CoreId,
    cores: u16,
    seed: u32,
    args: Args<'a>,
    stack: Stack,
}

impl<B: Board> Runner<'_, B> {
    /// Runs one case, the `index`th of this run. The result is the same on all cores.
    fn case(&self, case: &'static Case<B::Platform>, index: u32) -> bool {
        // A board of few cores has a small stack.
        match self.cores {
            0..=8 => self.case_with::<{ arena_words(8) }>(case, index),
            9..=64 => self.case_with::<{ arena_words(64) }>(case, index),
            _ => self.case_with::<{ arena_words(512) }>(case, index),
        }
    }

    #[inline(never)]
    fn case_with<const WORDS: usize>(&self, case: &'static Case<B::Platform>, index: u32) -> bool {
        let number = index.saturating_add(1);
        let name = case.name;
        let first = self.core.get() == 0;
        if first {
            self.board.log(&Record::Begin { case: name });
            self.board.enters(name);
        }
        self.barrier(true);
        let garbage = mix([number, self.core.get().into(), !0]);
        self.board.reset(garbage);
        let machine = self.board.machine();
        self.barrier(true);

        let mut arena = [garbage; WORDS];
        let mut notes = Notes::default();
        let start = machine.cycles();
        self.board.status(self.core, Status::Runs(index));
        self.delay(&machine, number);
        let result = (case.run)(&mut Context {
            machine: machine.clone(),
            session: Session::new(number).unwrap_or(Session::FIRST),
            args: self.args,
            arena: &mut arena,
            report: &mut |what, value| notes.add(what, value),
        });
        let result = result.and(self.has_stack());
        if let Err(why) = result {
            let core = self.core.get();
            self.board.log(&Record::Fail {
                case: name,
                core,
                why,
            });
        }
        let ok = self.barrier(result.is_ok());

        if first {
            self.board.enters("-");
            let cycles = machine.cycles().wrapping_sub(start);
            for (what, value) in notes.all() {
                self.board.log(&Record::Note {
                    case: name,
                    core: 0,
                    what,
                    value,
                });
            }
            self.board.log(&Record::End {
                case: name,
                ok,
                cycles,
            });
        }
        ok
    }

    fn barrier(&self, well: bool) -> bool {
        self.board.status(self.core, Status::Waiting);
        self.board.barrier(well)
    }

    fn has_stack(&self) -> Result<(), Failure> {
        match self.stack.was_whole() {
            true => Ok(()),
            false => Err(Failure::Wrong {
                what: "the lowest words of the stack are free",
                expected: 1,
                found: 0,
            }),
        }
    }

    /// Gives this core its own late start: some ten thousand cycles, which is a few turns of all
    /// cores.
    fn delay(&self, machine: &Machine<B>, session: u32) {
        if self.seed == 0 {
            return;
        }
        let span = 20_000 + 100 * u32::from(self.cores);
        let cycles = mix([self.seed, session, self.core.get().into()]) % span;
        let start = machine.cycles();
        while machine.cycles().wrapping_sub(start) < cycles.into() {
            self.board.give_way();
        }
    }
}

const fn arena_words(cores: u16) -> usize {
    // The same for all platforms.
    512 + 8 * cores as usize
}

/// What a case reports on this core. Kept until the case has ended, since printing takes time.
#[derive(Default)]
struct Notes {
    kept: Vec<(&'static str, u64), 64>,
    lost: u64,
}

impl Notes {
    fn add(&mut self, what: &'static str, value: u64) {
        if self.kept.push((what, value)).is_err() {
            self.lost = self.lost.saturating_add(1);
        }
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let lost = (self.lost > 0).then_some(("notes.lost", self.lost));
        self.kept.iter().copied().chain(lost)
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
