//! The SCC's own code, under emulation: the step "SCC image" of `cargo xtask ci`.
//!
//! 1. Every instruction of the images is one that the chip's cores have.
//! 2. The image of `examples/scc` runs on all 48 cores, unchanged.
//! 3. The cases run, and the same run says the same again.
//! 4. With a fault of the emulated chip, the case that is there for it fails.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::board::Board;
use crate::boot::Setup;
use crate::console::{Console, out};
use crate::count::Count;
use crate::image::{self, Source};
use crate::run::{Outcome, Run};
use crate::session::Session;
use crate::{instructions, paths};

/// The image that knows nothing of an emulator.
const RING: [&str; 3] = ["flagpost-scc-image", "silicon", ""];

/// Cores, a part of the names of the cases that run, and words for the monitor. The last two runs
/// are the same, and must say the same. Without lines the cases take half the time.
const CASES: [(u32, &str, &[&str]); 4] = [
    (2, "", &[]),
    (8, "", &["lines=0"]),
    (48, "world.", &[]),
    (48, "world.", &[]),
];

/// Faults, each with the case that finds it, and what becomes of that.
const FAULTS: [(&str, &str, &str); 5] = [
    ("fault=page", "hal.own_stores", "FAIL"),
    ("fault=register", "hal.lock", "HUNG"),
    ("fault=lock", "hal.lock", "FAIL"),
    ("fault=cl1invmb", "hal.invalidate", "FAIL"),
    ("fault=drain", "hal.write_back", "FAIL"),
];

/// A case that waits for ever is found, too.
const PATIENCE: Duration = Duration::from_secs(5);

/// The step.
pub(crate) fn ci(console: &Console) -> Result<Count> {
    let session = Session::of(console, Board::Scc)?;
    let ring = image::build(
        console,
        &Source {
            dir: &paths::root(),
            bin: Some(RING),
            board: Board::Scc,
            profile: image::CASES,
            mutants: false,
        },
    )?;
    console.clear();
    for elf in [&*ring, session.elf()] {
        let read = instructions::of_image(elf)?;
        let name = elf.file_name().unwrap_or_default().display();
        out(&format!(
            "{name}: {read} instructions, all of which the chip's cores have"
        ));
    }
    let mut count = Count::one(true);
    let all = Setup {
        plain: true,
        arguments: vec!["until=heard".to_owned()],
        ..Setup::new(48, 0)
    };
    let run = session.run_other(console, &ring, &all)?;
    tell(console, &run, "examples/scc on 48 cores", &mut count);

    let setups = CASES.map(|(cores, filter, words)| Setup {
        filter: (!filter.is_empty()).then(|| filter.to_owned()),
        arguments: words.iter().map(|&word| word.to_owned()).collect(),
        ..Setup::new(cores, 0)
    });
    let runs = session.all(console, &setups)?;
    for (run, (cores, filter, words)) in runs.iter().zip(CASES) {
        let skipped = run.cases.len() - run.begun();
        let passed = run.count().passed;
        let words = [&[filter], words].concat().join(" ");
        let name = format!("{cores} cores {words}: {passed} passed, {skipped} skipped");
        tell(console, run, &name, &mut count);
    }
    let [.., first, again] = &runs[..] else {
        bail!("no two runs");
    };
    let same = first.cases == again.cases && first.notes == again.notes;
    if !same {
        console.error("two runs of the same did not say the same");
    }
    count.add(Count::one(same));
    count.add(faults(console, &session)?);
    Ok(count)
}

/// Notes what came of a run that must pass.
fn tell(console: &Console, run: &Run, name: &str, count: &mut Count) {
    console.clear();
    let ok = run.ok();
    out(&format!("{} {name}", if ok { "ok    " } else { "FAILED" }));
    for error in &run.errors {
        console.error(&format!("{name}: {error}"));
    }
    count.add(Count::one(ok));
}

/// Runs each fault's case, which must fail.
fn faults(console: &Console, session: &Session) -> Result<Count> {
    let setups = FAULTS.map(|(fault, case, _)| Setup {
        filter: Some(case.to_owned()),
        arguments: vec![fault.to_owned()],
        timeout: PATIENCE,
        ..Setup::new(2, 0)
    });
    let runs = session.all(console, &setups)?;
    console.clear();
    let mut count = Count::default();
    for (run, (fault, case, expected)) in runs.iter().zip(FAULTS) {
        let how = match run.cases.iter().find(|found| found.name == case) {
            Some(found) => match &found.outcome {
                Outcome::Failed(how, _) => *how,
                _ => "not found",
            },
            None => "not run",
        };
        let found = how == expected;
        out(&format!(
            "{} {fault}: {case} {how}",
            if found { "ok    " } else { "FAILED" }
        ));
        if !found {
            console.error(&format!("{fault}: {case} {how}: {}", run.errors.join("; ")));
        }
        count.add(Count::one(found));
    }
    Ok(count)
}
