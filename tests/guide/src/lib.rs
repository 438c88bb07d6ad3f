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
    use std::path::Path;

    /// The lines of the page that name crates: each is the directory of a crate of that name.
    #[test]
    fn the_crates_that_the_guide_names_are_where_it_says() {
        let page = include_str!("../../../docs/guide/8-rules.md");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let lines = page
            .lines()
            .filter_map(|line| line.split_once(" = { path = \"flagpost/"));
        let mut crates = 0;
        for (name, rest) in lines {
            let (path, _) = rest.split_once('"').expect("a path has an end");
            let manifest = std::fs::read_to_string(root.join(path).join("Cargo.toml"));
            let manifest = manifest.unwrap_or_else(|why| panic!("{path}: {why}"));
            assert!(
                manifest.contains(&format!("name = \"{name}\"\n")),
                "{name} at {path}"
            );
            crates += 1;
        }
        assert_eq!(crates, 6);
    }
}
