//! Waiting, deadlock, livelock, expiring budgets, bells.

use crate::common::*;
use flagpost_hal::{Clock, CoreId, Relax, TestAndSet, Topology, UncachedMemory, Watch};
use flagpost_sim::{Config, End, Schedule, SimCore};

/// Each core waits for a word that nobody stores.
fn stuck(core: SimCore) -> Outcome {
    let mine = at(core.core().get(), 8);
    core.store_u32(mine, 5);
    wait_for(&core, mine, 6);
    Ok(())
}

#[test]
fn a_deadlock_names_cores_and_words_and_what_they_did() {
    let report = run(Config::default(), stuck);
    assert_eq!(report.end, End::Deadlock);
    assert_eq!(report.waiting.len(), 2);
    for (number, waiting) in (0..).zip(&report.waiting) {
        assert_eq!(waiting.core.get(), number);
        let [word] = waiting.words[..] else {
            panic!("{report}")
        };
        assert_eq!((word.at, word.seen, word.now), (at(number, 8), 5, 5));
        assert!(waiting.place.file().ends_with("waiting.rs"));
    }
    let text = report.to_string();
    assert!(text.contains("DEADLOCK"), "{text}");
    assert!(text.contains("core 1 waits for memory[1]+0x8 (seen 0x5, now 0x5), at "));
    assert!(text.contains("store          memory[1]+0x8     0x00000005"));
    assert!(text.contains("waiting.rs:"));
    assert!(text.contains(r#""seed":0"#));
}

/// Waits for a word with a budget of a millisecond.
fn with_budget(core: SimCore) -> Outcome {
    let word = at(core.core().get(), 0);
    core.store_u32(word, 0);
    let start = core.cycles();
    while core.cycles() - start < core.hertz() / 1000 {
        let seen = core.load_u32(word);
        core.relax(&[Watch { at: word, seen }]);
    }
    Ok(())
}

#[test]
fn budgets_expire_as_often_as_configured() {
    assert_eq!(run(Config::default(), with_budget).end, End::Deadlock);
    let config = Config {
        budgets_expire: 1,
        ..Config::default()
    };
    let report = run(config.clone(), with_budget);
    report.assert_done();
    assert!(report.steps < 100);
    // One expiry wakes everybody once; who waits twice is stuck again.
    let twice = |core: SimCore| with_budget(core.clone()).and_then(|()| with_budget(core));
    assert_eq!(run(config, twice).end, End::Deadlock);
}

#[test]
fn a_change_between_poll_and_relax_is_not_lost() {
    // The peer's store may come between any two accesses; `relax` must not sleep through it.
    every_seed_passes(Config::default(), |core| {
        let word = at(1, 0);
        if core.core().get() == 0 {
            core.store_u32(word, 1);
        } else {
            wait_for(&core, word, 1);
        }
        Ok(())
    });
}

#[test]
fn any_of_several_words_wakes() {
    for changed in 0..3 {
        let report = run(Config::default(), |core| {
            let words = [at(1, 0), at(1, 4), at(0, 64)];
            if core.core().get() == 0 {
                words.iter().for_each(|&word| core.store_u32(word, 0));
                core.store_u32(at(1, 96), 1);
                wait_for(&core, at(1, 96), 2);
                core.store_u32(words[changed], 9);
                return Ok(());
            }
            wait_for(&core, at(1, 96), 1);
            core.store_u32(at(1, 96), 2);
            while words.map(|word| core.load_u32(word)) == [0; 3] {
                core.relax(&words.map(|at| Watch { at, seen: 0 }));
            }
            Ok(())
        });
        report.assert_done();
    }
}

#[test]
fn a_register_that_is_never_freed_is_a_livelock() {
    let program = |core: SimCore| {
        core.release_at_start(core.core());
        std::mem::forget(core.try_lock(core.core()));
        while core.try_lock(core.core()).is_none() {
            core.relax(&[]);
        }
        Ok(())
    };
    for schedule in [Schedule::RoundRobin, Schedule::Random, Schedule::Mixed] {
        let config = Config {
            schedule,
            quiet_turns: 1000,
            ..Config::default()
        };
        assert_eq!(run(config, program).end, End::Livelock);
    }
}

#[test]
fn endless_progress_is_cut_off() {
    let config = Config {
        max_steps: 1000,
        ..Config::default()
    };
    let report = run(config, |core| {
        loop {
            core.store_u32(at(core.core().get(), 0), 1);
        }
    });
    assert_eq!((report.end, report.steps), (End::StepBound, 1000));
}

#[test]
fn who_gets_nowhere_while_others_go_on_starves() {
    // Core 1 wants a register that core 0 never frees, or a word that it never stores.
    for lock in [true, false] {
        let program = |core: SimCore| {
            let owner = CoreId::new(0);
            if core.core() == owner {
                core.store_u32(at(0, 0), 0);
                loop {
                    core.store_u32(at(0, 64), 1);
                }
            }
            if lock {
                core.release_at_start(owner);
                std::mem::forget(core.try_lock(owner));
            }
            loop {
                match core.load_u32(at(0, 0)) {
                    1 => return Ok(()),
                    _ if lock && core.try_lock(owner).is_some() => return Ok(()),
                    _ if lock => core.relax(&[]),
                    seen => core.relax(&[Watch { at: at(0, 0), seen }]),
                }
            }
        };
        let config = Config {
            max_steps: 10_000,
            ..Config::default()
        };
        let report = run(config, program);
        assert_eq!(report.end, End::Starvation(CoreId::new(1)), "{report}");
        assert_eq!(report.waiting.len(), 1, "{report}");
    }
}

#[test]
fn a_polling_core_does_not_starve_the_holder() {
    // Under PCT the poller may have the higher priority: it must yield it.
    let config = Config {
        schedule: Schedule::Pct { depth: 1 },
        ..Config::default()
    };
    every_seed_passes(config, |core| {
        let flag = at(0, 0);
        if core.core().get() == 0 {
            (0..30).for_each(|n| core.store_u32(flag, n));
            core.store_u32(flag, 1000);
        } else {
            while core.load_u32(flag) != 1000 {
                core.relax(&[]);
            }
        }
        Ok(())
    });
}

/// One core waits for its bell until told to end; the other rings.
fn bells(core: &SimCore, ring: bool) -> Outcome {
    let word = at(1, 0);
    if core.core().get() == 0 {
        core.store_u32(word, 1);
        if ring {
            core.ring(flagpost_hal::CoreId::new(1));
        }
        return Ok(());
    }
    while core.load_u32(word) != 1 {
        core.wait_for_ring();
    }
    Ok(())
}

#[test]
fn a_bell_wakes_and_remembers() {
    every_seed_passes(Config::default(), |core| bells(&core, true));
    let report = some_seed_fails(Config::default(), |core| bells(&core, false));
    assert_eq!(report.end, End::Deadlock);
    assert!(report.to_string().contains("core 1 waits for its bell"));
}

#[test]
fn waits_may_end_for_no_reason() {
    // Whoever does not look again after `relax` or a bell is wrong (R3); the knob shows it.
    let program = |core: SimCore, bell: bool| {
        let word = at(1, 0);
        if core.core().get() == 0 {
            (0..50).for_each(|_| core.mark("busy"));
            core.store_u32(word, 1);
            core.ring(flagpost_hal::CoreId::new(1));
            return Ok(());
        }
        let seen = core.load_u32(word);
        if bell {
            core.wait_for_ring();
        } else if seen != 1 {
            core.relax(&[Watch { at: word, seen }]);
        }
        check("word", core.load_u32(word), 1)
    };
    let sleepless = Config {
        wakes: 200,
        ..Config::default()
    };
    for bell in [false, true] {
        some_seed_fails(sleepless.clone(), move |core| program(core, bell));
        every_seed_passes(Config::default(), move |core| program(core, bell));
    }
}
