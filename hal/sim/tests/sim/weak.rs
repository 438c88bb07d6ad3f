//! Hazards of late stores and early loads: there on `weak`, absent on `scc`, and mended by `drain`
//! and `acquire`.

use crate::common::*;
use flagpost_hal::{Amo, CachedMemory, Coherence, NativeAtomics, Relax, Topology, UncachedMemory};
use flagpost_sim::{Config, End, Profile, SimCore};

/// Word payload, word flag: the two-line message-passing test.
fn message(core: &SimCore, drain: bool, acquire: bool) -> Outcome {
    let (data, flag) = (at(1, 64), at(1, 0));
    if core.core().get() == 0 {
        core.store_u32(data, 7);
        if drain {
            core.drain();
        }
        core.store_u32(flag, 1);
        return Ok(());
    }
    wait_for(core, flag, 1);
    if acquire {
        core.acquire();
    }
    check("data", core.load_u32(data), 7)
}

#[test]
fn stores_need_a_drain_and_loads_an_acquire() {
    some_seed_fails(blind(Profile::Weak), |core| message(&core, false, true));
    some_seed_fails(blind(Profile::Weak), |core| message(&core, true, false));
    every_seed_passes(blind(Profile::Weak), |core| message(&core, true, true));
    // On the SCC word accesses are in order: neither is needed there.
    every_seed_passes(blind(Profile::Scc), |core| message(&core, false, false));
}

#[test]
fn a_bulk_load_needs_the_acquire_too() {
    let program = |core: SimCore, acquire: bool| {
        let (data, flag) = (at(1, 64), at(1, 0));
        if core.core().get() == 0 {
            core.store_bytes(data, &[5; 16]);
            core.drain();
            core.store_u32(flag, 1);
            return Ok(());
        }
        wait_for(&core, flag, 1);
        if acquire {
            core.acquire();
        }
        let mut bytes = [0; 16];
        core.load_bytes(data, &mut bytes);
        check("data", bytes, [5; 16])
    };
    some_seed_fails(blind(Profile::Weak), move |core| program(core, false));
    every_seed_passes(blind(Profile::Weak), move |core| program(core, true));
}

#[test]
fn a_line_fetched_before_the_acquire_may_be_old() {
    let program = |core: SimCore, acquire: bool| {
        let (data, flag) = (at(1, 64), at(1, 0));
        if core.core().get() == 0 {
            core.store_u32(data, 7);
            core.drain();
            core.store_u32(flag, 1);
            return Ok(());
        }
        wait_for(&core, flag, 1);
        if acquire {
            core.acquire();
        }
        core.invalidate(&line(data));
        let mut bytes = [0; 4];
        core.read(data, &mut bytes);
        check("data", u32::from_le_bytes(bytes), 7)
    };
    some_seed_fails(blind(Profile::Weak), move |core| program(core, false));
    every_seed_passes(watched(Profile::WeakFill), move |core| program(core, true));
    // The oracle sees the old line too.
    let report = some_seed_fails(watched(Profile::Weak), move |core| program(core, false));
    assert!(matches!(report.end, End::Oracle(_)));
}

#[test]
fn a_write_back_needs_the_drain() {
    let program = |core: SimCore, drain: bool| {
        let (data, flag) = (at(0, 64), at(1, 0));
        if core.core().get() == 0 {
            core.write(data, &7_u32.to_le_bytes());
            core.write_back(&line(data));
            if drain {
                core.drain();
            }
            core.store_u32(flag, 1);
            return Ok(());
        }
        wait_and_acquire(&core, flag, 1);
        check("data", core.load_u32(data), 7)
    };
    some_seed_fails(blind(Profile::Weak), move |core| program(core, false));
    every_seed_passes(blind(Profile::Weak), move |core| program(core, true));
    every_seed_passes(blind(Profile::Scc), move |core| program(core, false));
}

#[test]
fn one_word_is_coherent() {
    // A reader that polls without any acquire never sees the counter run backwards, and sees its
    // end.
    every_seed_passes(blind(Profile::Weak), |core| {
        let (counter, ready) = (at(1, 64), at(1, 0));
        if core.core().get() == 0 {
            core.store_u32(counter, 0);
            core.drain();
            core.store_u32(ready, 1);
            (1..=30).for_each(|n| core.store_u32(counter, n));
            return Ok(());
        }
        wait_and_acquire(&core, ready, 1);
        let mut last = 0;
        while last != 30 {
            let now = core.load_u32(counter);
            if now < last {
                return Err(format!("{now} after {last}"));
            }
            last = now;
            core.relax(&[]);
        }
        Ok(())
    });
}

#[test]
fn a_core_sees_its_own_late_stores() {
    every_seed_passes(blind(Profile::Weak), |core| {
        let mine = at(1, 64 * core.core().index());
        for n in 0..40 {
            core.store_u32(mine, n);
            check("own store", core.load_u32(mine), n)?;
            let bytes = n.to_le_bytes();
            core.write(mine.plus(32), &bytes);
            core.write_back(&line(mine.plus(32)));
            core.invalidate(&line(mine.plus(32)));
            let mut back = [0; 4];
            core.read(mine.plus(32), &mut back);
            check("own write-back", back, bytes)?;
        }
        Ok(())
    });
}

#[test]
fn late_stores_arrive_before_a_deadlock_is_declared() {
    // Even if the store buffer never drains by itself.
    let config = Config {
        drains: 0,
        ..blind(Profile::Weak)
    };
    every_seed_passes(config, |core| {
        let flag = at(1, 0);
        if core.core().get() == 0 {
            core.store_u32(flag, 1);
            return Ok(());
        }
        wait_for(&core, flag, 1);
        Ok(())
    });
}

#[test]
fn atomics_are_indivisible_and_come_after_own_stores() {
    for profile in Profile::ALL {
        every_seed_passes(blind(profile), |core| {
            let (ready, sum) = (at(0, 0), at(0, 64));
            if core.core().get() == 0 {
                core.store_u32(sum, 100);
                check("own store", core.atomic_u32(sum, Amo::Add(0)), 100)?;
                core.store_u32(ready, 1);
            } else {
                wait_and_acquire(&core, ready, 1);
            }
            (0..10).for_each(|_| {
                core.atomic_u32(sum, Amo::Add(1));
            });
            if core.core().get() == 1 {
                core.store_u32(at(0, 4), 1);
                return Ok(());
            }
            wait_and_acquire(&core, at(0, 4), 1);
            check("sum", core.load_u32(sum), 120)?;
            let swap = Amo::CompareSwap {
                expected: 120,
                new: 7,
            };
            check("swapped", core.atomic_u32(sum, swap), 120)?;
            check("not swapped", core.atomic_u32(sum, swap), 7)?;
            check("or", core.atomic_u32(sum, Amo::Or(8)), 7)?;
            check("swap", core.atomic_u32(sum, Amo::Swap(1)), 15)
        });
    }
}
