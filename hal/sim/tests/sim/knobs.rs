//! Knobs of the chip: each one makes a difference, and a program that keeps the HAL's contract does
//! not see it.

use crate::common::*;
use flagpost_hal::{CachedMemory, Coherence, TestAndSet, Topology, UncachedMemory};
use flagpost_sim::{
    Bounds, Caching, Config, End, Explored, Method, Profile, Sim, SimCore, Stores, sweep,
};

const PLAIN: Caching = Caching {
    invalidate_saves: false,
    write_back_drops: false,
    invalidate_all: false,
    write_back_all: false,
    stores: Stores::Allocate,
    half: false,
};

const SAVES: Caching = Caching {
    invalidate_saves: true,
    ..PLAIN
};

const DROPS: Caching = Caching {
    write_back_drops: true,
    ..PLAIN
};

const INVALIDATES_ALL: Caching = Caching {
    invalidate_all: true,
    ..PLAIN
};

const WRITES_BACK_ALL: Caching = Caching {
    write_back_all: true,
    ..PLAIN
};

/// One core, no evictions: what a program of its own shows is the knob's doing.
fn alone(caching: Caching) -> Config {
    Config {
        cores: 1,
        evictions: 0,
        caching,
        ..blind(Profile::Scc)
    }
}

/// What a program on one core returns.
fn ask<T: Copy + Default>(caching: Caching, program: impl Fn(&SimCore) -> T) -> T {
    let answer = std::cell::Cell::new(T::default());
    let report = run(alone(caching), |core| {
        answer.set(program(&core));
        Ok(())
    });
    report.assert_done();
    answer.get()
}

/// A line with zeros in memory, not cached.
fn zeros(core: &SimCore, offset: usize) -> flagpost_hal::Address {
    let data = at(0, offset);
    core.store_bytes(data, &[0; 32]);
    core.drain();
    data
}

fn cached(core: &SimCore, at: flagpost_hal::Address) -> u8 {
    let mut byte = [0];
    core.read(at, &mut byte);
    byte[0]
}

#[test]
fn saves_keeps_what_is_dirty() {
    let program = |core: &SimCore| {
        let data = zeros(core, 64);
        core.write(data, &[7]);
        core.invalidate(&line(data));
        core.load_u8(data)
    };
    assert_eq!((ask(PLAIN, program), ask(SAVES, program)), (0, 7));
}

#[test]
fn drops_forgets_what_was_written_back() {
    for dirty in [false, true] {
        let program = |core: &SimCore| {
            let data = zeros(core, 64);
            assert_eq!(cached(core, data), 0);
            if dirty {
                core.write(data.plus(1), &[1]);
            }
            core.write_back(&line(data));
            core.drain();
            core.store_u8(data, 7); // as a peer might
            cached(core, data)
        };
        assert_eq!((ask(PLAIN, program), ask(DROPS, program)), (0, 7));
    }
}

#[test]
fn invalidates_all_drops_other_lines_and_saves_them() {
    let stale = |core: &SimCore| {
        let (data, other) = (zeros(core, 64), zeros(core, 128));
        assert_eq!((cached(core, data), cached(core, other)), (0, 0));
        core.store_u8(other, 7);
        core.invalidate(&line(data));
        cached(core, other)
    };
    assert_eq!((ask(PLAIN, stale), ask(INVALIDATES_ALL, stale)), (0, 7));
    // S6, whether lines that are named are saved or lost.
    let dirty = |core: &SimCore| {
        let (data, other) = (zeros(core, 64), zeros(core, 128));
        core.write(data, &[5]);
        core.write(other, &[7]);
        core.invalidate(&line(data));
        [core.load_u8(data), core.load_u8(other)]
    };
    assert_eq!(ask(PLAIN, dirty), [0, 0]);
    assert_eq!(ask(INVALIDATES_ALL, dirty), [0, 7]);
    let both = Caching {
        invalidate_saves: true,
        ..INVALIDATES_ALL
    };
    assert_eq!(ask(both, dirty), [5, 7]);
}

#[test]
fn writes_back_all_cleans_other_lines() {
    let program = |core: &SimCore| {
        let (data, other) = (zeros(core, 64), zeros(core, 128));
        core.write(other, &[7]);
        core.write_back(&line(data));
        core.drain();
        core.load_u8(other)
    };
    let [plain, all] = [PLAIN, WRITES_BACK_ALL].map(|caching| ask(caching, program));
    assert_eq!((plain, all), (0, 7));
}

#[test]
fn stores_pass_the_cache() {
    let program = |hit: bool| {
        move |core: &SimCore| {
            let data = zeros(core, 64);
            if hit {
                cached(core, data);
            }
            core.write(data, &[7]);
            let passed = core.load_u8(data) == 7;
            assert_eq!(cached(core, data), 7);
            core.store_u8(data, 8); // as a peer might
            (passed, cached(core, data) == 7)
        }
    };
    // On a miss and on a hit: whether it is in memory, and whether a copy is in the cache
    // afterwards.
    let found = |stores| {
        let caching = Caching { stores, ..PLAIN };
        (ask(caching, program(false)), ask(caching, program(true)))
    };
    assert_eq!(found(Stores::Allocate), ((false, true), (false, true)));
    assert_eq!(found(Stores::Around), ((true, true), (false, true)));
    assert_eq!(found(Stores::Through), ((true, true), (true, true)));
    assert_eq!(found(Stores::Uncached), ((true, false), (true, false)));
}

/// Core 0 sends a record of 16 bytes, its flag inside, in one bulk store.
fn record(core: &SimCore) -> Outcome {
    let flag = at(1, 64 + 12);
    if core.core().get() == 1 {
        core.store_u32(flag, 0);
        core.drain();
        core.store_u32(at(0, 0), 1);
        wait_and_acquire(core, flag, 0x0707_0707);
        return check("payload", core.load_u32(at(1, 64)), 0x0707_0707);
    }
    wait_and_acquire(core, at(0, 0), 1);
    core.store_bytes(at(1, 64), &[7; 16]);
    core.drain();
    Ok(())
}

#[test]
fn a_unit_of_publishing_is_never_torn() {
    for profile in [Profile::Scc, Profile::Weak] {
        let chip = |publish| Config {
            publish,
            ..blind(profile)
        };
        for torn in [4, 8] {
            some_seed_fails(chip(torn), |core| record(&core));
        }
        every_seed_passes(chip(16), |core| record(&core));
        every_seed_passes(chip(32), |core| record(&core));
    }
}

/// Core 0's bulk store is all there is; core 1 waits for it.
fn undrained(core: SimCore) -> Outcome {
    if core.core().get() == 0 {
        core.store_bytes(at(1, 64), &[7; 4]);
        for _ in 0..100 {
            core.mark("time passes");
        }
    } else {
        wait_for(&core, at(1, 64), 0x0707_0707);
    }
    Ok(())
}

#[test]
fn bulk_bytes_may_leave_without_need() {
    for profile in [Profile::Scc, Profile::Weak] {
        let chip = |leaves| Config {
            leaves,
            seed: 1,
            ..blind(profile)
        };
        assert_eq!(run(chip(0), undrained).end, End::Deadlock);
        run(chip(256), undrained).assert_done();
    }
}

#[test]
fn a_chip_without_registers_refuses_their_use() {
    let chip = |registers| Config {
        registers,
        ..blind(Profile::Scc)
    };
    type Use = fn(&SimCore);
    let uses: [Use; 2] = [
        |core| core.release_at_start(core.core()),
        |core| drop(core.try_lock(core.core())),
    ];
    for program in uses {
        let program = |core: SimCore| -> Outcome {
            program(&core);
            Ok(())
        };
        run(chip(true), program).assert_done();
        let report = run(chip(false), program);
        assert_eq!(report.end, End::Panicked);
        assert!(report.failures[0].message.contains("no test-and-set"));
    }
}

/// Owner and peer in turn: the owner's cached stores go to the peer, the peer's bulk stores come
/// back. The lines are shared with other data of the owner, in the way that the contract allows.
///
/// `lapse`: 1 no write-back, 2 no invalidate, 3 stores to the line while the peer may.
fn turns<const ROUNDS: u8>(core: &SimCore, lapse: u8) -> Outcome {
    let (data, other) = (at(1, 64), at(1, 128));
    let (go, done) = (at(0, 0), at(1, 0));
    if core.core().get() == 1 {
        // Whoever waits for a word must not find it cleared later than it was set.
        core.store_u32(go, 0);
        core.store_u32(done, 0);
        core.drain();
    }
    core.mark("go");
    if core.core().get() == 0 {
        for round in 1..=ROUNDS {
            wait_and_acquire(core, go, round.into());
            check("owner's", core.load_u8(data), round)?;
            core.store_bytes(data.plus(4), &[round; 4]);
            core.drain();
            core.store_u32(done, round.into());
        }
        return Ok(());
    }
    for round in 1..=ROUNDS {
        core.write(data, &[round; 8]);
        core.write(other, &[round]);
        if lapse != 1 {
            core.write_back(&line(data));
        }
        core.drain();
        core.store_u32(go, round.into());
        if lapse == 3 {
            core.write(data.plus(12), &[round]);
        }
        wait_and_acquire(core, done, round.into());
        if lapse != 2 {
            core.invalidate(&line(data));
        }
        let mut bytes = [0; 8];
        core.read(data, &mut bytes);
        check("peer's", &bytes[4..], &[round; 4])?;
        check("own", &bytes[..4], &[round; 4])?;
        check("others", cached(core, other), round)?;
    }
    Ok(())
}

#[test]
fn who_keeps_the_contract_sees_no_difference() {
    let mut runs = sweep(0..25);
    for profile in Profile::ALL {
        for caching in Caching::all() {
            let config = Config {
                caching,
                leaves: 64,
                publish: 8,
                ..watched(profile)
            };
            let name = format!("{profile}/{caching:?}");
            runs = runs.case(name, config, |core| turns::<3>(&core, 0));
        }
    }
    let swept = runs.run();
    swept.assert_done();
    assert_eq!(swept.runs, 25 * 50 * 4);
}

fn explore(caching: Caching, profile: Profile, method: Method, lapse: u8) -> Explored {
    let config = Config {
        memory_size: 192,
        buffer_size: 0,
        caching,
        // Several units at a time: what `leaves` lists must be units, too.
        publish: 16,
        ..watched(profile)
    };
    let bounds = Bounds {
        evictions: 1,
        fills: 1,
        leaves: 1,
        ..Bounds::default()
    };
    Sim::new(config).explore(&bounds, method, true, |core: SimCore| {
        turns::<1>(&core, lapse)
    })
}

/// Schedules up to which each is run, to compare.
const SCHEDULES: f64 = 20_000.0;

/// The same exhaustively; and two searches agree about every combination, right program or wrong.
#[test]
fn searches_agree_about_every_cache() {
    let mut compared = 0;
    for caching in Caching::all() {
        for profile in [Profile::SccFill, Profile::WeakFill] {
            for lapse in 0..=3 {
                let states = explore(caching, profile, Method::States, lapse);
                let what = format!("{caching:?} {lapse}: {states}");
                assert!(states.complete, "{what}");
                match (lapse, caching.stores) {
                    (0, _) => states.assert_done(),
                    (_, Stores::Uncached) | (1 | 3, Stores::Through) => states.assert_done(),
                    _ if caching == Caching::default() => assert!(states.failure.is_some()),
                    _ => {}
                }
                let schedules: f64 = states.schedules.to_string().parse().unwrap();
                if profile == Profile::SccFill && schedules <= SCHEDULES {
                    let all = explore(caching, profile, Method::Unreduced, lapse);
                    compared += 1;
                    assert!(all.complete, "{what}");
                    assert_eq!(states.schedules, all.runs.into(), "{what}");
                    assert_eq!(states.verdicts, all.verdicts, "{what}");
                    assert_eq!(states.outcomes, all.outcomes, "{what}");
                }
            }
        }
    }
    assert!(compared >= 188, "compared {compared} of 200");
}
