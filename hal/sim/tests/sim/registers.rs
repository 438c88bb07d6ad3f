//! Test-and-set registers, and what they do not order.

use crate::common::*;
use flagpost_hal::{Coherence, CoreId, Relax, TestAndSet, Topology, UncachedMemory};
use flagpost_sim::{Config, Profile, SimCore};

const ROUNDS: u32 = 8;

/// Both cores add to one word: load, add, store.
#[derive(Copy, Clone)]
struct Adder {
    lock: bool,
    drain: bool,
    acquire: bool,
}

impl Adder {
    const RIGHT: Self = Self {
        lock: true,
        drain: true,
        acquire: true,
    };

    fn run(self, core: &SimCore) -> Outcome {
        let (owner, sum, ready, done) = (CoreId::new(0), at(0, 64), at(0, 0), at(0, 4));
        if core.core() == owner {
            core.release_at_start(owner);
            core.store_u32(sum, 0);
            core.drain();
            core.store_u32(ready, 1);
        } else {
            wait_and_acquire(core, ready, 1);
        }
        for _ in 0..ROUNDS {
            self.add_one(core, owner);
        }
        core.drain();
        if core.core() != owner {
            core.store_u32(done, 1);
            return Ok(());
        }
        wait_and_acquire(core, done, 1);
        check("sum", core.load_u32(sum), 2 * ROUNDS)
    }

    fn add_one(self, core: &SimCore, owner: CoreId) {
        let sum = at(owner.get(), 64);
        let held = loop {
            match self.lock.then(|| core.try_lock(owner)) {
                None => break None,
                Some(Some(held)) => break Some(held),
                Some(None) => core.relax(&[]),
            }
        };
        if self.acquire {
            core.acquire();
        }
        core.store_u32(sum, core.load_u32(sum) + 1);
        if self.drain {
            core.drain();
        }
        drop(held);
    }
}

#[test]
fn without_the_lock_additions_are_lost() {
    for profile in Profile::ALL {
        let adder = Adder {
            lock: false,
            ..Adder::RIGHT
        };
        some_seed_fails(blind(profile), move |core| adder.run(&core));
        every_seed_passes(blind(profile), |core| Adder::RIGHT.run(&core));
    }
}

#[test]
fn the_register_orders_nothing() {
    for adder in [
        Adder {
            drain: false,
            ..Adder::RIGHT
        },
        Adder {
            acquire: false,
            ..Adder::RIGHT
        },
    ] {
        some_seed_fails(blind(Profile::Weak), move |core| adder.run(&core));
        // On the SCC words are in order anyhow.
        every_seed_passes(blind(Profile::Scc), move |core| adder.run(&core));
    }
}

#[test]
fn a_register_is_held_by_one_core_and_not_re_entrant() {
    every_seed_passes(blind(Profile::Scc), |core| {
        let own = core.core();
        core.release_at_start(own);
        let held = core.try_lock(own);
        check("first", held.is_some(), true)?;
        check("again", core.try_lock(own).is_some(), false)?;
        drop(held);
        check("after release", core.try_lock(own).is_some(), true)
    });
}

#[test]
fn an_unreleased_register_stays_as_it_was_at_reset() {
    // T5: without `release_at_start` some chips start with the register held.
    some_seed_fails(blind(Profile::Scc), |core| {
        check("free", core.try_lock(core.core()).is_some(), true)
    });
}

#[test]
fn locks_are_counted() {
    let config = Config {
        cores: 1,
        ..Config::default()
    };
    let report = run(config, |core| {
        core.release_at_start(core.core());
        let _held = core.try_lock(core.core());
        check("again", core.try_lock(core.core()).is_some(), false)
    });
    let counters = report.total();
    assert_eq!((counters.locks, counters.locks_refused), (1, 1));
}
