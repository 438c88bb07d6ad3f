//! Random one-sided programs on the simulator, against the sequential model. `FLAGPOST_PROGRAMS=n`
//! changes how many, and `FLAGPOST_FIRST=n` the first seed.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use flagpost_explore::Network;
use flagpost_explore::programs::{Split, Wrong, generate, run, run_without_vectors};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Preset, Profile, Schedule, Sim, SimCore};
use flagpost_tests::{Platform, Session};

use crate::groups;

/// Programs of a deep run.
const PROGRAMS: u64 = 2_000;

/// Runs the program of `seed` on all profiles and on the network, with that seed for the chip as
/// well; gives the steps. One in four are in parts of a larger world.
fn check(seed: u64) -> u64 {
    let on = |profile| {
        let config = Config {
            profile,
            memory_size: 8 * 1024,
            // In small ones there is no room for rings, and long payload goes to its place at once.
            buffer_size: if seed.is_multiple_of(2) {
                8 << 10
            } else {
                Config::default().buffer_size
            },
            ..Config::default()
        };
        let link = |core| Mapped::start(core, Session::FIRST);
        if is_split(seed) {
            let split = Split::generate(seed);
            on_chip(seed, config, &split, split.ranks(), |core| {
                split.run(link(core).map_err(flagpost::Error::from)?)
            })
        } else {
            let program = generate(seed);
            on_chip(seed, config, &program, program.ranks, |core| {
                run(&program, link(core).map_err(flagpost::Error::from)?)
            })
        }
    };
    Profile::ALL.into_iter().map(on).sum::<u64>() + on_network(seed)
}

fn is_split(seed: u64) -> bool {
    seed % 4 == 3
}

fn on_network(seed: u64) -> u64 {
    let config = Config {
        memory_size: 16 * 1024,
        ..Preset::Network.config()
    };
    let link = |core: &_| Network::link(core, Session::FIRST, None);
    if is_split(seed) {
        let split = Split::generate(seed);
        on_chip(seed, config, &split, split.ranks(), |core| {
            split.run(link(&core).map_err(flagpost::Error::from)?)
        })
    } else {
        let program = generate(seed);
        on_chip(seed, config, &program, program.ranks, |core| {
            run_without_vectors(&program, link(&core).map_err(flagpost::Error::from)?)
        })
    }
}

fn on_chip(
    seed: u64,
    config: Config,
    what: &dyn fmt::Display,
    cores: u16,
    run: impl Fn(SimCore) -> Result<(), Wrong> + Sync,
) -> u64 {
    let config = Config {
        cores,
        schedule: Schedule::Mixed,
        ..config
    };
    let run = |core| run(core).map_err(|wrong| format!("{wrong:?}"));
    let report = Sim::new(config).reseed(seed).run(run);
    assert!(report.is_done(), "seed {seed}: {what}{report}");
    report.steps
}

#[test]
fn programs_come_to_what_the_model_says() {
    let count = groups::programs(PROGRAMS);
    let first = groups::first_program();
    let (next, steps) = (AtomicU64::new(first), AtomicU64::new(0));
    // ORDERING: Relaxed: the numbers stand for nothing else.
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= first + count {
            return;
        }
        steps.fetch_add(check(seed), Ordering::Relaxed);
    };
    thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let (runs, steps) = (count * (Profile::ALL.len() as u64 + 1), steps.into_inner());
    println!("{count} programs, {runs} runs, {steps} steps");
}

/// Each kind of phase, access and signalling occurs: what is not generated is not tested.
#[test]
fn programs_are_of_all_kinds() {
    let text: String = (0..300).map(|seed| generate(seed).to_string()).collect();
    for word in [
        "Slots",
        "Vector",
        "List",
        "U8",
        "U16",
        "U32",
        "U64",
        "I32",
        "I64",
        "F32",
        "F64",
        "Local",
        "Pscw",
        "Fences",
        "Locks",
        "Notify",
        "Barrier",
        "Shared",
        "Exclusive",
        "Queued",
        "hold: All",
        "Put",
        "Get",
        "Accumulate",
        "Fetch",
        "Add",
        "Stripes",
        "Scattered",
        "Swap",
        "request: true",
        "exposed: [Some",
        "Reduce",
        "Broadcast",
        "Exchange",
        "Sieve",
        "Sum",
        "Prod",
        "Min",
        "Max",
        "And",
        "Or",
        "Xor",
        "Accumulate(Replace",
        "Fetch(Replace",
        "Fetch(NoOp",
        "Allocated",
        "Created",
        "Counter",
        "Invalidation",
        "notice: Tag",
        "notice: Named",
        "notice: Count",
        "notice: Set",
        "notice: Event",
        "turned: true",
        "any: true",
        "late: 2",
        "Attach([",
        "Separate",
        "Unified",
    ] {
        assert!(text.contains(word), "no {word} in 300 programs");
    }
}
