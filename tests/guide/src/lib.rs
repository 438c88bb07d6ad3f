//! The programs of the README and of `docs/guide`. `cargo test --doc -p flagpost-guide` compiles
//! and runs them.
//!
//! Most end with a call of [`simulate`].
#![forbid(unsafe_code)]

use flagpost::{Config, Error, Session, World};
use flagpost_hal::{Coherence, Region, Relax, Topology, UncachedMemory, Watch};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config as Chip, Profile, Report, Sim, SimCore};

/// How many times [`simulate`] runs a program, each time with another seed.
const RUNS: u64 = 100;

/// Working memory of each world, in words: enough for a few windows among 8 ranks.
const WORDS: usize = 512;

/// Runs `program` on `cores` simulated cores, one rank per core, 100 times.
///
/// Each run has another seed: the cores take their steps in another order, and the chip evicts and
/// prefetches lines at other moments. The runs take turns among the four kinds of memory
/// ([`Profile::ALL`]).
///
/// ```
/// use flagpost::{Error, Link, World};
///
/// fn program<L: Link>(world: &World<'_, L>) -> Result<(), Error> {
///     world.barrier()
/// }
///
/// flagpost_guide::simulate(4, program);
/// ```
///
/// # Panics
/// If a run does not end well on every core: with the account of that run.
pub fn simulate(cores: u16, program: impl Fn(&World<'_, Mapped<SimCore>>) -> Result<(), Error>) {
    reports(cores, program).for_each(|report| report.assert_done());
}

/// Runs `program` as [`simulate`] does, until a run does not end well: gives the account of that
/// one.
///
/// # Panics
/// If all 100 runs end well.
pub fn goes_wrong(
    cores: u16,
    program: impl Fn(&World<'_, Mapped<SimCore>>) -> Result<(), Error>,
) -> Report {
    let failed = reports(cores, program).find(|report| !report.is_done());
    failed.expect("a run that goes wrong")
}

fn reports(
    cores: u16,
    program: impl Fn(&World<'_, Mapped<SimCore>>) -> Result<(), Error>,
) -> impl Iterator<Item = Report> {
    let runs = (0..RUNS).zip(Profile::ALL.into_iter().cycle());
    runs.map(move |(seed, profile)| {
        let chip = Chip {
            cores,
            seed,
            profile,
            memory_size: 16 << 10,
            ..Chip::default()
        };
        Sim::new(chip).run(|core| {
            let mut words = [0; WORDS];
            let link = Mapped::start(core, Session::FIRST)?;
            program(&World::start(link, &mut words, Config::default())?)
        })
    })
}

/// Waits until another core has set this core's flag, the first word of its memory, to 1.
pub fn wait_for_flag(core: &SimCore) {
    let at = Region::memory(core.core()).at(0);
    loop {
        match core.load_u32(at) {
            1 => return core.acquire(),
            seen => core.relax(&[Watch { at, seen }]),
        }
    }
}

#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/guide/1-caches.md")]
    struct Caches;

    #[doc = include_str!("../../../docs/guide/2-windows.md")]
    struct Windows;

    #[doc = include_str!("../../../docs/guide/3-notified-put.md")]
    struct NotifiedPut;

    #[doc = include_str!("../../../docs/guide/4-epochs.md")]
    struct Epochs;

    #[doc = include_str!("../../../docs/guide/5-locks.md")]
    struct Locks;

    #[doc = include_str!("../../../docs/guide/6-counters.md")]
    struct Counters;

    #[doc = include_str!("../../../docs/guide/7-running.md")]
    struct Running;

    #[doc = include_str!("../../../docs/guide/8-rules.md")]
    struct Rules;
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn text(path: PathBuf) -> String {
        std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    }

    /// The lines of the page that name crates: each is the directory of a crate of that name. And
    /// the programs of all pages use no others.
    #[test]
    fn the_crates_that_the_guide_names_are_those_that_its_programs_use() {
        let page = include_str!("../../../docs/guide/8-rules.md");
        let lines = page
            .lines()
            .filter_map(|line| line.split_once(" = { path = \"flagpost/"));
        let mut crates = Vec::new();
        for (name, rest) in lines {
            let (path, _) = rest.split_once('"').expect("a path has an end");
            let manifest = text(root().join(path).join("Cargo.toml"));
            let named = manifest.contains(&format!("name = \"{name}\"\n"));
            assert!(named, "{name} at {path}");
            crates.push(name);
        }
        assert_eq!(crates.len(), 7);
        let guide = std::fs::read_dir(root().join("docs/guide")).expect("the guide");
        for page in guide.map(|entry| entry.expect("a page").path()) {
            let page = text(page);
            for uses in page.split("\n```rust\n").skip(1) {
                let (program, _) = uses.split_once("\n```").expect("a program has an end");
                for used in program.split("flagpost_").skip(1) {
                    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
                    let used = used.split(|c| !is_part(c)).next().expect("a name");
                    let used = format!("flagpost-{}", used.replace('_', "-"));
                    assert!(crates.contains(&used.as_str()), "{used} is in no list");
                }
            }
        }
    }

    /// The calls of the page of wishes: each is a function, or something else that the kernel
    /// makes public.
    #[test]
    fn the_calls_of_the_guide_are_there() {
        fn read(directory: PathBuf, all: &mut String) {
            for entry in std::fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                match path.is_dir() {
                    true => read(path, all),
                    false => *all += &text(path),
                }
            }
        }
        let mut kernel = String::new();
        for directory in ["kernel/src", "kernel/link/src"] {
            read(root().join(directory), &mut kernel);
        }
        let page = include_str!("../../../docs/guide/calls.md");
        let rows = page.lines().filter(|line| line.starts_with("| "));
        let calls = rows.filter_map(|row| row.split('|').nth(2));
        let mut count = 0;
        for span in calls.flat_map(|calls| calls.split('`').skip(1).step_by(2)) {
            // A word before a bracket; types begin with a capital.
            for (at, _) in span.match_indices(['(', '<']) {
                let start = span[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let name = &span[start.map_or(0, |at| at + 1)..at];
                let is_call = name.starts_with(|c: char| c.is_ascii_lowercase());
                let is_there = kernel.contains(&format!("fn {name}"));
                assert!(!is_call || is_there, "{span}: {name}");
                count += 1;
            }
        }
        assert!(count > 60, "{count}");
    }
}
