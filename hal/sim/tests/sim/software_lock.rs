//! The lock made of words: all schedules of two and three cores; and what each of its steps is for.

use crate::common::*;
use flagpost_hal::{
    Address, Coherence, CoreId, Lines, Region, Relax, TestAndSet, Topology, UncachedMemory,
    WithSoftwareLock,
};
use flagpost_sim::{Bounds, Config, End, Explored, Method, Profile, Sim, SimCore};

/// What the lock lacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Lack {
    Nothing,
    Drain,
    Acquire,
    /// It does not look at the flags of lower cores.
    LowerHalf,
    /// It does not look at the flags of higher cores.
    HigherHalf,
    /// Its set-up does not write back what the cache holds of the flags.
    WriteBack,
}

/// A machine under the lock that leaves something out.
struct Lacking {
    core: SimCore,
    lack: Lack,
}

impl UncachedMemory for Lacking {
    fn load_u8(&self, at: Address) -> u8 {
        self.core.load_u8(at)
    }

    fn store_u8(&self, at: Address, value: u8) {
        self.core.store_u8(at, value);
    }

    fn load_u32(&self, at: Address) -> u32 {
        let (owner, own) = (at.region.owner, self.core.core());
        match self.lack {
            Lack::LowerHalf if owner < own => 0,
            Lack::HigherHalf if owner > own => 0,
            _ => self.core.load_u32(at),
        }
    }

    fn store_u32(&self, at: Address, value: u32) {
        self.core.store_u32(at, value);
    }

    fn store_bytes(&self, at: Address, from: &[u8]) {
        self.core.store_bytes(at, from);
    }
}

// SAFETY: none of the promises is kept; the simulated memory is nobody's memory.
unsafe impl Coherence for Lacking {
    const LINE: usize = SimCore::<32>::LINE;

    fn write_back(&self, spans: &[Lines]) {
        if self.lack != Lack::WriteBack {
            self.core.write_back(spans);
        }
    }

    fn invalidate(&self, spans: &[Lines]) {
        self.core.invalidate(spans);
    }

    fn drain(&self) {
        if self.lack != Lack::Drain {
            self.core.drain();
        }
    }

    fn acquire(&self) {
        if self.lack != Lack::Acquire {
            self.core.acquire();
        }
    }
}

impl Topology for Lacking {
    fn cores(&self) -> u16 {
        self.core.cores()
    }

    fn core(&self) -> CoreId {
        self.core.core()
    }

    fn memory_size(&self) -> usize {
        self.core.memory_size()
    }
}

/// The lock that a case uses, ready for use.
fn lock<const PATIENCE: u32>(core: &SimCore, lack: Lack) -> WithSoftwareLock<Lacking, PATIENCE> {
    let core = core.clone();
    let lock = WithSoftwareLock::new(Lacking { core, lack });
    let lock = lock.expect("the flags fit");
    lock.release_at_start(lock.core());
    lock
}

/// Every core tries so many times; whoever gets in must be alone.
fn contend(core: &SimCore, lack: Lack, attempts: u32) -> Outcome {
    let lock = lock::<1>(core, lack);
    let (owner, inside) = (CoreId::new(0), at(0, 0));
    if core.core() == owner {
        core.store_u32(inside, 0);
    }
    core.drain();
    core.mark("go");
    for _ in 0..attempts {
        if let Some(held) = lock.try_lock(owner) {
            core.acquire();
            check("inside", core.load_u32(inside), 0)?;
            core.store_u32(inside, 1);
            core.store_u32(inside, 0);
            core.drain();
            drop(held);
        }
    }
    Ok(())
}

fn explore(cores: u16, profile: Profile, lack: Lack, attempts: u32) -> Explored {
    let config = Config {
        cores,
        memory_size: 64,
        buffer_size: 0,
        registers: false,
        ..watched(profile)
    };
    let bounds = Bounds::default();
    let method = Method::States;
    Sim::new(config).explore(&bounds, method, false, |core: SimCore| {
        contend(&core, lack, attempts)
    })
}

/// In all schedules.
fn one_core_holds_it(cores: u16, attempts: u32, profile: Profile) {
    let all = explore(cores, profile, Lack::Nothing, attempts);
    all.assert_done();
    println!("{attempts} attempts, {all}");
}

#[test]
fn one_core_holds_it_in_all_schedules() {
    one_core_holds_it(2, 1, Profile::Scc);
    one_core_holds_it(2, 2, Profile::Scc);
    one_core_holds_it(3, 1, Profile::Scc);
    one_core_holds_it(2, 1, Profile::Weak);
}

#[test]
#[ignore = "takes long: cargo xtask test --deep"]
fn one_core_holds_it_in_all_schedules_of_a_weak_chip() {
    one_core_holds_it(2, 2, Profile::Weak);
    one_core_holds_it(3, 1, Profile::Weak);
}

#[test]
fn every_step_is_needed() {
    for (lack, profile) in [
        (Lack::Drain, Profile::Weak),
        (Lack::Acquire, Profile::Weak),
        (Lack::LowerHalf, Profile::Scc),
        (Lack::HigherHalf, Profile::Scc),
    ] {
        let found = explore(2, profile, lack, 1);
        let end = found.failure.as_ref().map(|report| &report.end);
        assert_eq!(end, Some(&End::Failed), "{lack:?}: {found}");
    }
}

/// As in the kernel: again and again, until every core was in. All counts arrive.
fn count(core: &SimCore, lack: Lack) -> Outcome {
    const TIMES: u32 = 3;
    let flags = Region::memory(core.core()).at(core.memory_size() - 32);
    // An earlier program's line, which is evicted some time.
    flagpost_hal::CachedMemory::write(core, flags, &[1]);
    let lock = lock::<4>(core, lack);
    let (owner, word, ready) = (CoreId::new(0), at(0, 0), at(0, 4));
    if core.core() == owner {
        core.store_u32(word, 0);
        core.drain();
        core.store_u32(ready, 1);
    }
    wait_and_acquire(core, ready, 1);
    for _ in 0..TIMES {
        let held = loop {
            match lock.try_lock(owner) {
                Some(held) => break held,
                None => core.relax(&[]),
            }
        };
        core.acquire();
        check("not re-entrant", lock.try_lock(owner).is_none(), true)?;
        let old = core.load_u32(word);
        core.store_u32(word, old + 1);
        core.drain();
        drop(held);
    }
    if core.core() == owner {
        wait_for(core, word, TIMES * u32::from(core.cores()));
    }
    Ok(())
}

#[test]
fn nobody_is_locked_out_by_what_was_there_before() {
    for profile in Profile::ALL {
        for cores in [1, 2, 5] {
            let chip = Config {
                cores,
                registers: false,
                max_steps: 200_000,
                ..blind(profile)
            };
            every_seed_passes(chip, |core| count(&core, Lack::Nothing));
        }
        let report = some_seed_fails(
            Config {
                max_steps: 200_000,
                ..blind(profile)
            },
            |core| count(&core, Lack::WriteBack),
        );
        let stuck = matches!(report.end, End::Livelock | End::StepBound);
        assert!(stuck || report.end == End::Failed, "{report}");
    }
}

/// A region that is too small is refused; one that is not shrinks by whole lines.
#[test]
fn flags_take_whole_lines_at_the_end() {
    for (memory_size, left) in [(32, Some(0)), (64, Some(32)), (0, None)] {
        let config = Config {
            cores: 3,
            memory_size,
            registers: false,
            ..Config::default()
        };
        let report = run(config, |core| {
            let lock = WithSoftwareLock::<SimCore>::new(core);
            check("size", lock.map(|lock| lock.memory_size()), left)
        });
        report.assert_done();
    }
}

/// Who is refused because somebody is in has stored nothing: it keeps nobody waiting.
#[test]
fn a_held_lock_is_refused_without_a_store() {
    let config = Config {
        registers: false,
        ..blind(Profile::Weak)
    };
    let owner = CoreId::new(0);
    let taken = at(1, 0);
    for holder in [0, 1] {
        let report = run(config.clone(), |core| {
            let lock = lock::<4>(&core, Lack::Nothing);
            core.store_u32(at(core.core().get(), 4), 1);
            core.drain();
            wait_and_acquire(&core, at(0, 4), 1);
            wait_and_acquire(&core, at(1, 4), 1);
            if core.core().get() == holder {
                std::mem::forget(lock.try_lock(owner).ok_or("refused")?);
                core.store_u32(taken, 7);
                return Ok(());
            }
            wait_and_acquire(&core, taken, 7);
            (0..9).try_for_each(|_| check("refused", lock.try_lock(owner).is_none(), true))
        });
        report.assert_done();
        // Two flags and a word at the start.
        let refused = &report.counters[1 - usize::from(holder)];
        assert_eq!(refused.stores_local + refused.stores_remote, 3);
    }
}
