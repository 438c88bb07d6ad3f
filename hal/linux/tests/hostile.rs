//! A hostile peer: one rank stores whatever it likes, wherever it can reach, while the others go on.
//!
//! What it may do to them: wrong data, errors, budgets that run out. What it must not be able to do: make them touch anything outside of
//! the memory that all share, stop them, or keep them in a call for longer than its budget. Every address that the kernel computes goes
//! through one check (`bytes` in this crate), which panics; so a panic here is a hole above it, and a death by a signal one in it.
//!
//! `FLAGPOST_SEEDS=n` changes how many seeds are tried.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use flagpost::rma::Operation;
use flagpost::{
    Budget, Compare, Config, Counter, DynamicOptions, DynamicWindow, EpochSlots, Error,
    MatchVector, MatchingList, Rank, Request, Rma as _, Source, Tag, Validation, VectorLink,
    Window, World,
};
use flagpost_hal::{CoreId, Region, Topology as _, UncachedMemory};
use flagpost_linux::{Coherent, Emulated, Linked, Linux, Mode, RunError, machines_with};

const RANKS: u16 = 3;
const HOSTILE: u16 = 2;
const MEMORY: u64 = 32 << 10;
const SEEDS: u32 = 500;
/// Operations of a victim per seed.
const OPERATIONS: u32 = 50;
const BUDGET: Budget = Budget::microseconds(50);

/// Numbers that look random (xorshift).
struct Chance(u32);

impl Chance {
    fn new(seed: u32, rank: u16) -> Self {
        Self((seed.wrapping_mul(0x9E37_79B9) ^ u32::from(rank).wrapping_mul(0x85EB_CA6B)) | 1)
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    fn below(&mut self, end: u32) -> u32 {
        self.next() % end
    }

    /// A value that protocols may stumble over: near 0, near the end, near what is there, any.
    fn evil(&mut self, there: u32) -> u32 {
        let small = self.below(70);
        match self.below(6) {
            0 => small,
            1 => u32::MAX - small,
            2 => there.wrapping_add(small).wrapping_sub(35),
            3 => there ^ (1 << (small % 32)),
            4 => 0x8000_0000 + small,
            _ => self.next(),
        }
    }
}

/// Stores evil values until both victims have ended; where they poll, mostly.
fn attack<M: Mode>(machine: &Linux<M>, seed: u32, victims: &AtomicU32)
where
    Linux<M>: UncachedMemory,
{
    let mut chance = Chance::new(seed, HOSTILE);
    while victims.load(SeqCst) != 0 {
        let owner = CoreId::new(chance.below(RANKS.into()) as u16);
        let words = match chance.below(4) {
            0 => machine.memory_size() / 4,
            // Slots, rings, and the first windows.
            1 => 2048,
            _ => 64,
        };
        let at = Region::memory(owner).at(4 * chance.below(words));
        let there = machine.load_u32(at);
        machine.store_u32(at, chance.evil(there));
        if chance.below(50) == 0 {
            std::thread::yield_now();
        }
    }
}

/// What a victim has.
struct Stage<'w, L: VectorLink> {
    world: &'w World<'w, L>,
    slots: Window<'w, u32, L, EpochSlots<'w>>,
    vector: Window<'w, u32, L, MatchVector<'w>>,
    list: Window<'w, u64, L, MatchingList<'w>>,
    counted: Window<'w, u64, L>,
    dynamic: DynamicWindow<'w, L>,
}

/// One operation, whatever comes of it.
fn operate<L: VectorLink>(
    stage: &Stage<'_, L>,
    request: &mut Request<'_, L>,
    chance: &mut Chance,
) -> Result<(), Error> {
    let peer = Rank::new(chance.below(RANKS.into()) as u16);
    let index = chance.below(20) as usize;
    let (slots, counted) = (&stage.slots, &stage.counted);
    let group = [peer];
    let group = stage.world.group(&group)?;
    match chance.below(20) {
        0 => slots.put_notify(peer, index, &[1; 4], Tag(1))?,
        1 => {
            request.start()?;
        }
        2 => {
            request.test()?;
        }
        3 => {
            request.wait()?;
        }
        4 => {
            let lock = slots.lock_exclusive(peer)?;
            lock.put(peer, index, &[1, 2])?;
            lock.unlock()?;
        }
        5 => {
            let lock = slots.lock_queued(peer)?;
            lock.fetch_and_op(peer, index, 3, Operation::SUM)?;
            lock.unlock()?;
        }
        6 => {
            let lock = slots.lock_all()?;
            lock.compare_and_swap(peer, index, 0, 1)?;
            lock.accumulate(peer, index, &[1; 9], Operation::MAX)?;
            lock.flush(peer)?;
            lock.unlock()?;
        }
        7 => {
            let epoch = slots.start(&group)?;
            epoch.put(peer, index, &[1])?;
            epoch.complete()?;
        }
        8 => slots.post(&group)?.wait()?,
        9 => {
            let epoch = stage.vector.start(&group)?;
            epoch.put(peer, index, &[1])?;
            epoch.complete()?;
        }
        10 => stage.vector.post(&group)?.wait()?,
        11 => {
            let epoch = stage.list.start(&group)?;
            epoch.get(peer, index, &mut [0; 3])?;
            epoch.complete()?;
        }
        12 => stage.list.post(&group)?.wait()?,
        13 => stage.world.barrier()?,
        14 => {
            let mut data = [index as u64; 5];
            stage.world.allreduce(&mut data, u64::wrapping_add)?;
            stage.world.broadcast(peer, &mut data)?;
        }
        15 => counted.put_notify(peer, index, &[1], Counter(0))?,
        16 => {
            counted.signal_wait_until(0..1, 0, Compare::Ge, 1)?;
        }
        17 => {
            counted.reset_notify_value(0)?;
            counted.probe(Source::Any, flagpost::TagFilter::Any)?;
        }
        18 => {
            let lock = stage.dynamic.window().lock_shared(peer)?;
            let at = flagpost::Displacement::new(chance.next().into());
            stage.dynamic.at(&lock, at).get(peer, 0, &mut [0_u64; 2])?;
            lock.unlock()?;
        }
        _ => {
            let _ = slots.local().get(index)?;
            slots.local().set(index, 1)?;
        }
    }
    Ok(())
}

/// A rank: sets up with the others in peace, then operates, or attacks.
fn rank<M: Linked<Link: VectorLink>>(
    machine: &Linux<M>,
    seed: u32,
    victims: &AtomicU32,
) -> Result<(), Error>
where
    Linux<M>: UncachedMemory,
{
    let mut arena = vec![0; 4096];
    let link = M::link(machine.clone(), 1)?;
    let world = World::start(link, &mut arena, Config::default())?;
    let mut counted = world.allocate(20)?;
    counted.set_num_notify(2)?;
    let stage = Stage {
        world: &world,
        slots: world.allocate(20)?,
        vector: world.allocate_with(20, ())?,
        list: world.allocate_with(20, 4)?,
        counted,
        dynamic: world.dynamic(DynamicOptions {
            regions: 2,
            validation: Validation::Counter,
            ..DynamicOptions::default()
        })?,
    };
    assert!(machine.meet());
    if machine.core().get() == HOSTILE {
        attack(machine, seed, victims);
        return Ok(());
    }
    world.set_budget(BUDGET);
    let mut chance = Chance::new(seed, machine.core().get());
    let mut request = stage.slots.expect(0..4, Source::Any, Tag(1), 1)?;
    for _ in 0..OPERATIONS {
        // Wrong data and errors are the attacker's to cause.
        let _ = operate(&stage, &mut request, &mut chance);
    }
    Ok(())
}

fn seeds() -> u32 {
    let given = std::env::var("FLAGPOST_SEEDS").ok();
    given.and_then(|n| n.parse().ok()).unwrap_or(SEEDS)
}

/// Ends the program if a seed does not end: nothing else could.
fn watch(seed: &'static AtomicU32) {
    std::thread::spawn(move || {
        loop {
            let before = seed.load(SeqCst);
            std::thread::sleep(Duration::from_secs(60));
            if seed.load(SeqCst) == before && before != u32::MAX {
                eprintln!("seed {before}: a victim does not come back");
                std::process::abort();
            }
        }
    });
}

fn all_seeds<M: Linked<Link: VectorLink>>(current: &'static AtomicU32)
where
    Linux<M>: UncachedMemory,
{
    watch(current);
    for seed in 0..seeds() {
        current.store(seed, SeqCst);
        let victims = AtomicU32::new(u32::from(RANKS) - 1);
        let ended = machines_with::<M, (), Error>(RANKS, MEMORY, |machine| {
            let victim = machine.core().get() != HOSTILE;
            let ran = catch_unwind(AssertUnwindSafe(|| rank(&machine, seed, &victims)));
            if victim {
                victims.fetch_sub(1, SeqCst);
            }
            match ran {
                Ok(ran) => ran.map_err(RunError::Program),
                Err(_) => panic!("seed {seed}: {} has panicked", machine.core()),
            }
        });
        ended.expect("setting up is left in peace");
    }
    current.store(u32::MAX, SeqCst);
}

#[test]
fn coherent() {
    static SEED: AtomicU32 = AtomicU32::new(0);
    all_seeds::<Coherent>(&SEED);
}

#[test]
fn emulated() {
    static SEED: AtomicU32 = AtomicU32::new(0);
    all_seeds::<Emulated>(&SEED);
}
