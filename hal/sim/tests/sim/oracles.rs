//! Each oracle sees its hazard without the unlucky event that makes it bite, can be switched off,
//! and does not object to correct programs.

use crate::common::*;
use flagpost_hal::{
    Amo, CachedMemory, Coherence, Expected, NativeAtomics as _, Topology, UncachedMemory,
};
use flagpost_sim::{Alarm, Config, End, Oracle, Oracles, Profile, Report, SimCore};

/// Nothing happens by itself: only an oracle can object.
fn calm(oracles: Oracles) -> Config {
    Config {
        evictions: 0,
        oracles,
        ..Config::default()
    }
}

fn alarm(report: &Report) -> &Alarm {
    match &report.end {
        End::Oracle(alarm) => alarm,
        _ => panic!("no alarm: {report}"),
    }
}

/// Checks that `program` sets off `oracle`, and nothing if that one is off.
fn only(oracle: Oracle, off: Oracles, program: impl Fn(SimCore) -> Outcome) -> Alarm {
    let report = run(calm(Oracles::ALL), &program);
    assert_eq!(alarm(&report).oracle, oracle, "{report}");
    run(calm(off), program).assert_done();
    alarm(&report).clone()
}

/// Core 0 stores to core 1's line in the middle of core 1's doings.
fn with_a_peer(
    core: &SimCore,
    before: impl Fn(&SimCore) -> Outcome,
    after: impl Fn(&SimCore) -> Outcome,
) -> Outcome {
    let (ready, flag) = (at(1, 0), at(1, 4));
    if core.core().get() == 0 {
        wait_and_acquire(core, ready, 1);
        core.store_u32(at(1, 64), 7);
        core.drain();
        core.store_u32(flag, 1);
        return Ok(());
    }
    before(core)?;
    core.store_u32(ready, 1);
    wait_and_acquire(core, flag, 1);
    after(core)
}

fn touch(core: &SimCore) -> Outcome {
    core.read(at(1, 64), &mut [0; 4]);
    Ok(())
}

fn dirty(core: &SimCore) -> Outcome {
    core.write(at(1, 80), &[1]);
    Ok(())
}

fn nothing(_: &SimCore) -> Outcome {
    Ok(())
}

#[test]
fn o1_a_store_into_a_line_that_is_dirty_elsewhere() {
    let off = Oracles {
        pending_clobber: false,
        ..Oracles::ALL
    };
    let alarm = only(Oracle::PendingClobber, off, |core| {
        with_a_peer(&core, dirty, nothing)
    });
    assert_eq!(alarm.core.get(), 0);
    assert_eq!(alarm.other.map(|core| core.get()), Some(1));
    assert_eq!((alarm.at, alarm.bytes), (at(1, 64), 4));
}

#[test]
fn o1_a_store_into_ones_own_dirty_line() {
    let off = Oracles {
        pending_clobber: false,
        ..Oracles::ALL
    };
    let alarm = only(Oracle::PendingClobber, off, |core| {
        let mine = at(core.core().get(), 64);
        core.write(mine, &[1]);
        core.store_u32(mine.plus(4), 1);
        Ok(())
    });
    assert_eq!(alarm.other, None);
}

#[test]
fn o2_a_read_of_bytes_that_memory_has_newer() {
    let off = Oracles {
        stale_read: false,
        ..Oracles::ALL
    };
    let alarm = only(Oracle::StaleRead, off, |core| {
        with_a_peer(&core, touch, touch)
    });
    assert_eq!(alarm.core.get(), 1);
    assert_eq!(alarm.other.map(|core| core.get()), Some(0));
    assert_eq!((alarm.at, alarm.bytes), (at(1, 64), 4));
}

#[test]
fn o3_a_store_into_a_line_with_old_bytes() {
    let off = Oracles {
        stale_merge: false,
        ..Oracles::ALL
    };
    let alarm = only(Oracle::StaleMerge, off, |core| {
        with_a_peer(&core, touch, dirty)
    });
    assert_eq!(alarm.core.get(), 1);
    assert_eq!((alarm.at, alarm.bytes), (at(1, 64), 4));
}

#[test]
fn o4_an_invalidate_of_unsaved_stores() {
    let off = Oracles {
        lost_store: false,
        ..Oracles::ALL
    };
    let alarm = only(Oracle::LostStore, off, |core| {
        let mine = at(core.core().get(), 64);
        core.write(mine.plus(3), &[1, 2]);
        core.invalidate(&line(mine));
        Ok(())
    });
    assert_eq!((alarm.at.offset, alarm.bytes), (67, 2));
}

/// Core 0 finds bytes by `load` that are in the cache of core 1, or in its own.
fn hidden(owner: u16, load: fn(&SimCore)) -> Alarm {
    let off = Oracles {
        hidden_store: false,
        ..Oracles::ALL
    };
    only(Oracle::HiddenStore, off, |core| {
        if core.core().get() == owner {
            core.write(at(owner, 64), &[1, 2, 3]);
            core.store_u32(at(1, 0), 1);
        }
        if core.core().get() == 0 {
            wait_and_acquire(&core, at(1, 0), 1);
            core.load_u32(at(owner, 68)); // its owner has not stored there
            load(&core);
        }
        Ok(())
    })
}

#[test]
fn o5_a_load_of_bytes_that_were_not_written_back() {
    let bulk = |core: &SimCore| core.load_bytes(at(1, 62), &mut [0; 3]);
    let through = |core: &SimCore| core.read(at(1, 62), &mut [0; 3]);
    for load in [bulk, through] {
        let alarm = hidden(1, load);
        assert_eq!(alarm.core.get(), 0);
        assert_eq!(alarm.other.map(|core| core.get()), Some(1));
        assert_eq!((alarm.at, alarm.bytes), (at(1, 64), 1));
    }
    let atomic = |core: &SimCore| {
        core.atomic_u32(at(1, 64), Amo::Read);
    };
    assert_eq!(hidden(1, atomic).bytes, 3);
    let own = hidden(0, |core| core.load_bytes(at(0, 65), &mut [0; 2]));
    assert_eq!((own.other, own.bytes), (None, 1));
}

/// Core 1 reads bytes before or after core 0 stores to them, and then its request ends.
fn early(reads_before: bool, meanwhile: fn(&SimCore)) -> impl Fn(SimCore) -> Outcome {
    let here = at(1, 64);
    let read = move |core: &SimCore| {
        let mut bytes = [0; 6];
        core.read(here, &mut bytes);
        core.expected(here, 6, Expected::Reads(&bytes));
    };
    move |core| {
        let start = |core: &SimCore| {
            core.acquire(); // a step: before the first one there is no time
            core.expected(here, 32, Expected::Starts);
            if reads_before {
                read(core);
                core.invalidate(&line(here));
            }
            Ok(())
        };
        with_a_peer(&core, start, |core| {
            if !reads_before {
                read(core);
            }
            meanwhile(core);
            let now = |distance, into: &mut [u8]| core.read(here.plus(distance), into);
            core.expected(here, 32, Expected::Ends(Some(&now)));
            Ok(())
        })
    }
}

#[test]
fn o6_a_read_before_the_wait() {
    let off = Oracles {
        early_read: false,
        ..Oracles::ALL
    };
    for reads_before in [true, false] {
        let alarm = only(Oracle::EarlyRead, off, early(reads_before, |_| ()));
        assert_eq!((alarm.core.get(), alarm.other), (1, None));
        assert_eq!((alarm.at, alarm.bytes), (at(1, 64), 6));
    }
    // It has told others something since.
    let tells = early(true, |core| core.called(std::panic::Location::caller()));
    run(calm(Oracles::ALL), tells).assert_done();
    // It finds what was there at a refresh, when it read.
    let refreshes = early(false, |core| {
        core.called(std::panic::Location::caller());
        core.invalidate(&line(at(1, 64)));
        let mut bytes = [0; 4];
        core.read(at(1, 64), &mut bytes);
        core.expected(at(1, 64), 4, Expected::Reads(&bytes));
    });
    run(calm(Oracles::ALL), refreshes).assert_done();
    let cancels = early(true, |core| {
        core.expected(at(1, 64), 32, Expected::Ends(None))
    });
    run(calm(Oracles::ALL), cancels).assert_done();
}

#[test]
fn o1_a_write_back_that_is_still_under_way() {
    // Weak: core 1 hands its line out before its write-back has arrived.
    let config = Config {
        evictions: 0,
        ..watched(Profile::Weak)
    };
    let report = some_seed_fails(config, |core| {
        with_a_peer(
            &core,
            |core| {
                dirty(core)?;
                core.write_back(&line(at(1, 80)));
                Ok(())
            },
            nothing,
        )
    });
    assert_eq!(alarm(&report).oracle, Oracle::PendingClobber);
}

#[test]
fn stale_lines_may_be_held_and_evicted_and_read_where_they_are_not_stale() {
    let config = Config {
        evictions: 100,
        ..watched(Profile::Scc)
    };
    every_seed_passes(config, |core| {
        with_a_peer(&core, touch, |core| {
            core.read(at(1, 80), &mut [0; 4]);
            Ok(())
        })
    });
}

#[test]
fn old_bytes_may_be_overwritten() {
    run(calm(Oracles::ALL), |core| {
        with_a_peer(&core, touch, |core| {
            core.write(at(1, 64), &[1; 4]);
            core.read(at(1, 64), &mut [0; 32]);
            Ok(())
        })
    })
    .assert_done();
}

#[test]
fn a_write_back_makes_own_bytes_fresh_and_no_others() {
    let oracles = Oracles {
        stale_merge: false,
        ..Oracles::ALL
    };
    let report = run(calm(oracles), |core| {
        with_a_peer(&core, touch, |core| {
            core.write(at(1, 80), &[1]);
            core.write_back(&line(at(1, 80)));
            core.read(at(1, 80), &mut [0; 16]);
            core.mark("so far, so good");
            // These were stored by the peer; our write-back has destroyed them.
            core.read(at(1, 64), &mut [0; 4]);
            Ok(())
        })
    });
    assert_eq!(alarm(&report).oracle, Oracle::StaleRead);
    assert!(report.timeline.contains("so far, so good"), "{report}");
}

#[test]
fn own_write_backs_may_overlap_own_stores() {
    let config = Config {
        evictions: 0,
        ..watched(Profile::Weak)
    };
    every_seed_passes(config, |core| {
        let mine = at(core.core().get(), 64);
        for n in 0..20 {
            core.write(mine, &[n]);
            core.write_back(&line(mine));
        }
        core.write(mine.plus(1), &[1]);
        core.drain();
        core.read(mine, &mut [0; 2]);
        Ok(())
    });
}

/// The correct owner: several epochs, in which a peer alternately stores words and bulk bytes to a
/// window that its owner reads and writes through its cache.
fn epochs(core: &SimCore) -> Outcome {
    const EPOCHS: u32 = 6;
    let (window, post, complete) = (at(1, 64), at(0, 0), at(1, 0));
    let lines = [flagpost_hal::Lines::covering::<SimCore>(window, 64)];
    for epoch in 1..=EPOCHS {
        let fill = epoch as u8;
        if core.core().get() == 0 {
            wait_and_acquire(core, post, epoch);
            core.store_u32(window.plus(4), epoch);
            core.store_bytes(window.plus(8), &[fill; 40]);
            core.drain();
            core.store_u32(complete, epoch);
            continue;
        }
        // Own stores of the epoch, at both ends of what the peer will store.
        core.write(window, &[fill; 4]);
        core.write(window.plus(60), &[fill; 4]);
        core.write_back(&lines);
        core.drain();
        core.store_u32(post, epoch);
        wait_and_acquire(core, complete, epoch);
        core.invalidate(&lines);
        let mut bytes = [0; 64];
        core.read(window, &mut bytes);
        check("own head", bytes[0], fill)?;
        check("word", bytes[4], fill)?;
        check("bulk", &bytes[8..48], &[fill; 40][..])?;
        check("own tail", bytes[63], fill)?;
    }
    Ok(())
}

#[test]
fn no_false_alarm_on_a_correct_owner() {
    for profile in Profile::ALL {
        let config = Config {
            evictions: 64,
            prefetches: 128,
            ..watched(profile)
        };
        every_seed_passes(config, |core| epochs(&core));
    }
}

#[test]
fn oracles_do_not_change_the_run() {
    for (profile, seed) in Profile::ALL.into_iter().zip(0..) {
        let config = |oracles| Config {
            seed,
            oracles,
            ..watched(profile)
        };
        let with = run(config(Oracles::ALL), |core| epochs(&core));
        let without = run(config(Oracles::NONE), |core| epochs(&core));
        assert_eq!((with.hash, with.steps), (without.hash, without.steps));
    }
}
