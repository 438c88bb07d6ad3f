//! How runs end, that they repeat, and that nothing outlives them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::common::*;
use flagpost_hal::{CachedMemory, CoreId, Relax, TestAndSet, Topology, UncachedMemory, Watch};
use flagpost_sim::{Config, End, Profile, Schedule, Sim, SimCore, sweep};

/// Something of everything.
fn medley(core: SimCore) -> Outcome {
    use flagpost_hal::Coherence;
    let (me, cores) = (core.core().get(), core.cores());
    core.release_at_start(core.core());
    for round in 0..20 {
        let next = at((me + 1) % cores, 64);
        core.store_bytes(next, &[round; 40]);
        core.write(at(me, 160), &[round; 10]);
        core.write_back(&line(at(me, 160)));
        core.drain();
        core.load_u32(at(me, 64));
        if core.try_lock(CoreId::new(0)).is_none() {
            core.relax(&[]);
        }
    }
    Ok(())
}

#[test]
fn same_seed_same_run_and_other_seeds_differ() {
    for profile in Profile::ALL {
        for schedule in [Schedule::RoundRobin, Schedule::Random, Schedule::Mixed] {
            let mut hashes = Vec::new();
            for seed in 0..6 {
                let config = Config {
                    cores: 5,
                    profile,
                    schedule,
                    seed,
                    ..Config::default()
                };
                let first = run(config.clone(), medley);
                // Once on a new chip, once on a used one: nothing may remain of the run before.
                let mut used = Sim::new(config);
                used.reseed(99).run(medley).assert_done();
                let second = used.reseed(seed).run(medley);
                first.assert_done();
                assert_eq!(first.hash, second.hash);
                assert_eq!(first.steps, second.steps);
                assert_eq!(first.counters, second.counters);
                hashes.push(first.hash);
            }
            hashes.sort_unstable();
            hashes.dedup();
            assert_eq!(hashes.len(), 6);
        }
    }
}

#[test]
fn an_error_is_reported_and_others_go_on() {
    let finished = Cell::new(0);
    let report = run(Config::default(), |core| {
        if core.core().get() == 0 {
            return Err("no luck".into());
        }
        (0..100).for_each(|n| core.store_u32(at(1, 0), n));
        finished.set(finished.get() + 1);
        Ok(())
    });
    assert_eq!((report.end.clone(), finished.get()), (End::Failed, 1));
    assert_eq!(report.failures.len(), 1);
    assert_eq!(report.failures[0].core.get(), 0);
    assert!(
        report
            .to_string()
            .contains("core 0 returned an error: no luck")
    );
}

#[test]
fn a_panic_is_reported_with_its_place() {
    let report = run(Config::default(), |core| {
        core.load_u32(at(0, 0));
        assert!(
            core.core().get() == 1,
            "core {} gives up",
            core.core().get()
        );
        Err("and so does the other".into())
    });
    assert_eq!(report.end, End::Panicked);
    assert_eq!(report.failures.len(), 2);
    let text = report.to_string();
    assert!(
        text.contains("core 0 panicked: core 0 gives up, at "),
        "{text}"
    );
    assert!(text.contains("outcomes.rs:"));
    assert!(text.contains("core 1 returned an error"));
}

#[test]
fn a_core_that_panics_keeps_its_locks() {
    let report = run(Config::default(), |core| {
        let word = at(1, 0);
        if core.core().get() == 0 {
            core.release_at_start(core.core());
            let _held = core.try_lock(core.core());
            core.store_u32(word, 1);
            panic!("with the lock held");
        }
        wait_for(&core, word, 1);
        check("held", core.try_lock(CoreId::new(0)).is_none(), true)
    });
    assert_eq!((report.end, report.failures.len()), (End::Panicked, 1));
}

#[test]
fn many_cores_may_panic_at_once() {
    let config = Config {
        cores: 64,
        ..Config::default()
    };
    let report = run(config, |core| {
        let _held = core.try_lock(core.core());
        core.store_u32(at(0, 0), 1);
        panic!("all together");
    });
    assert_eq!((report.end, report.failures.len()), (End::Panicked, 64));
}

#[test]
fn wrong_addresses_panic_in_the_core_that_made_them() {
    for (access, message) in [
        (
            (|core: SimCore| _ = core.load_u32(at(0, 4096))) as fn(SimCore),
            "outside of the region (U1)",
        ),
        (|core| _ = core.load_u32(at(0, 2)), "not aligned (U1)"),
        (|core| core.store_bytes(at(1, 4090), &[0; 7]), "outside"),
        (|core| core.read(at(2, 0), &mut [0; 1]), "outside"),
        (|core| _ = core.test_and_set(CoreId::new(2)), "no core 2"),
    ] {
        let report = run(Config::default(), move |core| {
            access(core);
            Ok(())
        });
        assert_eq!(report.end, End::Panicked);
        let text = &report.failures[0].message;
        assert!(text.contains(message), "{text}");
        // Not the library's place, but the caller's.
        assert!(text.contains("outcomes.rs"), "{text}");
    }
}

/// Counts how many of them are alive.
struct Counted<'a>(&'a Cell<i32>);

impl<'a> Counted<'a> {
    fn new(alive: &'a Cell<i32>) -> Self {
        alive.set(alive.get() + 1);
        Self(alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[test]
fn abandoned_cores_are_unwound() {
    let alive = Cell::new(0);
    for _ in 0..50 {
        let report = run(Config::default(), |core| {
            let _counted = Counted::new(&alive);
            // A lock's destructor accesses the chip; on a dying stack that must not suspend.
            core.release_at_start(core.core());
            let _held = core.try_lock(core.core());
            wait_for(&core, at(0, 0), 0);
            Ok(())
        });
        assert_eq!(report.end, End::Deadlock);
        assert_eq!(alive.get(), 0);
    }
}

/// Waits when it is dropped.
struct Waits<'a> {
    core: &'a SimCore,
    /// It gives up when it is told that a core is lost.
    gives_up: bool,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        while self.core.load_u32(at(0, 0)) != 1 {
            if self.gives_up && self.core.lost().is_some() {
                return;
            }
            self.core.relax(&[0, 4].map(|offset| Watch {
                at: at(0, offset),
                seen: 0,
            }));
        }
    }
}

#[test]
fn destructors_that_wait_are_told_when_the_run_is_over() {
    let report = run(Config::default(), |core| {
        let waits = Waits {
            core: &core,
            gives_up: true,
        };
        check("lost during a run", core.lost(), None)?;
        core.store_u32(at(0, 0), 0);
        wait_for(&core, at(0, 0), 2);
        drop(waits);
        Ok(())
    });
    assert_eq!(report.end, End::Deadlock);
}

/// Such a destructor cannot be left, and an endless test tells nobody why.
#[test]
fn destructors_that_never_end_end_the_process_with_their_line() {
    const CHILD: &str = "FLAGPOST_TEST_ENDLESS";
    if std::env::var_os(CHILD).is_some() {
        let _ = run(Config::default(), |core| {
            let _waits = Waits {
                core: &core,
                gives_up: false,
            };
            core.store_u32(at(0, 0), 0);
            wait_for(&core, at(0, 0), 2);
            Ok(())
        });
        return;
    }
    let own = std::env::current_exe().expect("this test has a file");
    let name = "outcomes::destructors_that_never_end_end_the_process_with_their_line";
    let child = std::process::Command::new(own)
        .args(["--exact", name])
        .env(CHILD, "1")
        .output()
        .expect("this test can be started");
    assert!(!child.status.success());
    let text = String::from_utf8_lossy(&child.stderr);
    assert!(
        text.contains("polls on without end, at hal/sim/tests/sim/outcomes.rs"),
        "{text}"
    );
}

#[test]
fn a_handle_is_good_for_its_own_core_and_run_only() {
    let stolen: Rc<RefCell<Option<SimCore>>> = Rc::default();
    let report = run(Config::default(), |core| {
        core.mark("both are running");
        match stolen.take() {
            None => {
                stolen.replace(Some(core.clone()));
                core.mark("one goes on");
            }
            Some(other) => other.store_u32(at(0, 0), 1),
        }
        Ok(())
    });
    assert_eq!(report.end, End::Panicked);
    assert!(
        report.failures[0]
            .message
            .contains("used outside of that core")
    );

    let kept: Rc<RefCell<Option<SimCore>>> = Rc::default();
    run(Config::default(), |core| {
        kept.replace(Some(core));
        Ok(())
    })
    .assert_done();
    let core = kept.take().expect("a core ran");
    let after = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| core.mark("too late")));
    assert!(after.is_err());
}

#[test]
fn five_hundred_and_twelve_cores_run() {
    // A ring: each core passes a token on.
    let config = Config {
        cores: 512,
        profile: Profile::Weak,
        ..Config::default()
    };
    let report = run(config, |core| {
        let (me, cores) = (core.core().get(), core.cores());
        for round in 1..=3 {
            if me > 0 || round > 1 {
                let token = if me == 0 { round - 1 } else { round };
                wait_for(&core, at(me, 0), token);
            }
            core.store_u32(at((me + 1) % cores, 0), round);
        }
        Ok(())
    });
    report.assert_done();
    assert_eq!(report.total().stores_remote, 3 * 512);
}

#[test]
fn counters_tell_local_from_remote() {
    let config = Config {
        evictions: 0,
        ..Config::default()
    };
    let report = run(config, |core| {
        if core.core().get() == 0 {
            core.store_u32(at(0, 0), 1);
            core.store_u8(at(1, 0), 1);
            core.load_u32(at(1, 0));
            core.read(at(0, 0), &mut [0; 64]);
            core.read(at(0, 32), &mut [0; 1]);
        }
        Ok(())
    });
    let counters = report.counters[0];
    assert_eq!((counters.stores_local, counters.stores_remote), (1, 1));
    assert_eq!((counters.loads_local, counters.loads_remote), (0, 1));
    assert_eq!((counters.reads, counters.misses), (3, 2));
    assert_eq!(report.counters[1], flagpost_sim::Counters::default());
}

#[test]
fn the_replay_line_replays() {
    let program = |core: SimCore| {
        let mine = at(core.core().get(), 0);
        let lucky = !core.load_u32(mine).is_multiple_of(50);
        check("luck", lucky, true)
    };
    let base = Config {
        schedule: Schedule::Mixed,
        ..Config::default()
    };
    let swept = sweep(0..2000).case("a", base, program).run();
    let report = swept.failure.expect("one in fifty fails");
    let text = report.to_string();
    let (_, line) = text.rsplit_once("replay: ").expect("a replay line");
    let line = line.split('\'').nth(1).expect("it is quoted");
    let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(line["case"], "a");
    let config = line["config"].to_string();
    let again = run(config.parse().expect("it reads back"), program);
    assert_eq!((again.hash, again.end), (report.hash, report.end));
}

#[test]
fn a_sweep_returns_the_lowest_failing_seed_on_any_number_of_threads() {
    let program = |core: SimCore| {
        let unlucky = core.load_u32(at(0, 0)).is_multiple_of(100);
        check("unlucky", unlucky, false)
    };
    let mut found = Vec::new();
    for threads in [1, 2, 3] {
        let swept = sweep(10..5000)
            .threads(threads)
            .case("never", Config::default(), |_| Ok::<(), &str>(()))
            .case("sometimes", Config::default(), program)
            .run();
        let report = swept.failure.expect("one in a hundred fails");
        assert_eq!(report.case, "sometimes");
        found.push((report.config.seed, report.hash));
    }
    assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
}

#[test]
fn a_failure_does_not_hide_one_of_a_lower_seed_that_comes_later() {
    // Garbage tells the program its seed. Thread 0 runs seed 0, which takes long, and then seed 2,
    // which fails; meanwhile thread 1 has long failed with seed 3.
    let word = |seed| {
        let word = Cell::new(0);
        let config = Config {
            seed,
            ..Config::default()
        };
        run(config, |core| {
            word.set(core.load_u32(at(0, 0)));
            Ok(())
        })
        .assert_done();
        word.get()
    };
    let words = [0, 1, 2, 3].map(word);
    let swept = sweep(0..4)
        .case("", Config::default(), |core: SimCore| {
            let now = core.load_u32(at(0, 0));
            if now == words[0] {
                (0..200_000).for_each(|_| core.mark("slow"));
            }
            check("seed", now == words[2] || now == words[3], false)
        })
        .run();
    assert_eq!(swept.failure.map(|report| report.config.seed), Some(2));
}
