//! Random one-sided programs on the simulator, against the sequential model. `FLAGPOST_PROGRAMS=n`
//! changes how many.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use flagpost_explore::Network;
use flagpost_explore::programs::{generate, run, run_without_vectors};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Preset, Profile, Schedule, Sim};
use flagpost_tests::{Platform, Session};

use crate::groups;

/// Programs of a deep run.
const PROGRAMS: u64 = 2_000;

/// Runs the program of `seed` on all profiles and on the network, with that seed for the chip as
/// well; gives the steps.
fn check(seed: u64) -> u64 {
    let program = generate(seed);
    let on = |profile| {
        let config = Config {
            cores: program.ranks,
            profile,
            schedule: Schedule::Mixed,
            memory_size: 8 * 1024,
            // In small ones there is no room for rings, and long payload goes to its place at once.
            buffer_size: if seed.is_multiple_of(2) {
                8 << 10
            } else {
                Config::default().buffer_size
            },
            ..Config::default()
        };
        let report = Sim::new(config).reseed(seed).run(|core| {
            let link = Mapped::start(core, Session::FIRST).map_err(flagpost::Error::from)?;
            run(&program, link)
        });
        assert!(report.is_done(), "{program}on {profile}: {report}");
        report.steps
    };
    Profile::ALL.into_iter().map(on).sum::<u64>() + on_network(seed)
}

fn on_network(seed: u64) -> u64 {
    let program = generate(seed);
    let config = Config {
        cores: program.ranks,
        schedule: Schedule::Mixed,
        memory_size: 16 * 1024,
        ..Preset::Network.config()
    };
    let report = Sim::new(config).reseed(seed).run(|core| {
        let link = Network::link(&core, Session::FIRST, None).map_err(flagpost::Error::from)?;
        run_without_vectors(&program, link)
    });
    assert!(report.is_done(), "{program}on the network: {report}");
    report.steps
}

#[test]
fn programs_come_to_what_the_model_says() {
    let count = groups::programs(PROGRAMS);
    let (next, steps) = (AtomicU64::new(0), AtomicU64::new(0));
    // ORDERING: Relaxed: the numbers stand for nothing else.
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= count {
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
        "Attach([",
        "Separate",
        "Unified",
    ] {
        assert!(text.contains(word), "no {word} in 300 programs");
    }
}
