//! A core is reset alone, at any of its accesses: all ranks reach the next session.
//!
//! The ranks follow the recipe of [`Session`](flagpost::Session), for ever, as a device does. Rank
//! 0 is reset once: at its start, in an epoch, with a lock or a register held. It loses what it has
//! on its stack; the rest of the machine stays as it was. Then it runs its program to the end, for
//! which it needs all others in its session.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::thread::panicking;

use flagpost::epoch::{Assert, Strategy};
use flagpost::{
    Budget, Config as WorldConfig, EpochSlots, Error, MatchVector, MatchingList, Rank, Rma as _,
    Tag, World, rma::Operation,
};
use flagpost_explore::forward;
use flagpost_hal::{
    Address, Coherence, CoreId, Lines, Relax, TestAndSet, Topology as _, UncachedMemory, Watch,
};
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Profile, Sim};

use crate::groups;
use crate::hazards::bench::Core;

type Link = Mapped<Mortal>;

/// A core that stops for good at its `left`-th access from now.
#[derive(Clone)]
struct Mortal {
    core: Core,
    left: Rc<Cell<u32>>,
}

/// What unwinds a core that stops.
struct Stopped;

/// It does not stop.
const NEVER: u32 = u32::MAX;

impl Mortal {
    /// Counts an access. False: it must not happen, the core has stopped.
    fn lives(&self) -> bool {
        match self.left.get() {
            NEVER => return true,
            0 if panicking() => return false,
            0 => resume_unwind(Box::new(Stopped)),
            left => self.left.set(left - 1),
        }
        true
    }
}

// SAFETY: `SimCore` keeps the promises; each call here is one of its own, or none because the core
// has stopped.
#[expect(unsafe_code, reason = "the trait is unsafe to implement")]
unsafe impl Coherence for Mortal {
    const LINE: usize = Core::LINE;

    forward!(in Coherence => core [lives]:
        write_back(spans: &[Lines]); invalidate(spans: &[Lines]); drain());
    forward!(in Coherence => core: acquire());
}

impl TestAndSet for Mortal {
    forward!(in TestAndSet => core [lives]: test_and_set(of: CoreId) -> bool);

    fn clear(&self, of: CoreId) {
        // On the way out of a core that has stopped, locks stay taken.
        if self.lives() {
            self.core.clear(of);
        }
    }
}

impl UncachedMemory for Mortal {
    // Bulk loads by the default: it may stop at each word.
    forward!(in UncachedMemory => core [lives]:
        load_u8(at: Address) -> u8;
        store_u8(at: Address, value: u8);
        load_u32(at: Address) -> u32;
        store_u32(at: Address, value: u32);
        store_bytes(at: Address, from: &[u8]));
}

forward!(CachedMemory for Mortal => core [lives]);
forward!(MessageBuffer, Clock for Mortal => core);

forward!(Topology for Mortal => core {
    fn lost(&self) -> Option<CoreId> {
        self.core.lost()
    }
});

impl Relax for Mortal {
    forward!(in Relax => core: relax(watched: &[Watch]));
}

const BUDGET: Budget = Budget::seconds(1);

/// What a device does in each session, with its peers.
fn work(world: &World<'_, Link>) -> Result<(), Error> {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(4)?;
    let mut told = window.expect(0..1, Tag(1))?;
    told.start()?;
    world.barrier()?;
    window.put_notify(me.next(size), 0, &[me.get().into()], Tag(1))?;
    told.wait()?;
    assert_eq!(window.local().get(0)?, u32::from(me.prev(size).get()));
    epoch::<EpochSlots<'_>>(world, ())?;
    epoch::<MatchVector<'_>>(world, ())?;
    epoch::<MatchingList<'_>>(world, 1)?;
    let next = me.next(size);
    for queued in [false, true] {
        let lock = if queued {
            window.lock_queued(next)?
        } else {
            window.lock_exclusive(next)?
        };
        lock.accumulate(next, 2, &[1], Operation::SUM)?;
        lock.unlock()?;
    }
    window.fence(Assert::empty())?.end()?;
    let (lock, mut sum) = (window.lock_all()?, [0]);
    lock.get(me, 2, &mut sum)?;
    lock.unlock()?;
    world.allreduce(&mut sum, |a, b| a + b)?;
    assert_eq!(sum, [2 * u32::from(size)]);
    world.broadcast(Rank::new(size - 1), &mut sum)
}

/// A put to the next rank, in an epoch that this strategy signals.
fn epoch<'w, S: Strategy<'w, Link>>(
    world: &'w World<'w, Link>,
    options: S::Options,
) -> Result<(), Error> {
    let (next, prev) = (
        world.rank().next(world.size()),
        world.rank().prev(world.size()),
    );
    let window = world.allocate_with::<u32, S>(1, options)?;
    let post = window.post([prev])?;
    let access = window.start([next])?;
    access.put(next, 0, &[7])?;
    access.complete()?;
    post.wait()?;
    assert_eq!(window.local().get(0)?, 7);
    window.free()
}

/// One session: the recipe. All give up when `ended`.
fn session(machine: &Mortal, ended: &Cell<bool>) -> Result<(), Error> {
    let session = Link::next_session(machine);
    let link = Link::start(machine.clone(), session)?;
    let mut words = [0; WorldConfig::DEFAULT.words(3, 4)];
    let starting = World::starting(link, &mut words, WorldConfig::DEFAULT)?;
    while let Err(error) = starting.meet_within(BUDGET) {
        let is_over = ended.get() || Link::newest_session(machine) != Some(session);
        if is_over || !matches!(error, Error::Timeout(_)) {
            return Err(error);
        }
    }
    let world = starting.wait()?;
    world.within(BUDGET, || work(&world))
}

/// Session after session: rank 0 until one has ended well, the others until rank 0 has `ended`.
fn device(machine: &Mortal, ended: &Cell<bool>) -> Result<(), Error> {
    while !ended.get() {
        match session(machine, ended) {
            Ok(()) => ended.set(ended.get() || machine.core().get() == 0),
            Err(Error::Timeout(_)) => (),
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

/// Rank 0 stops at its access `stop` and begins anew. False if it has ended before.
fn reset_at(stop: u32, chip: &Config) -> bool {
    let (was_reset, ended) = (Cell::new(false), Cell::new(false));
    let report = Sim::new(chip.clone()).run_with_lines(|core: Core| {
        let left = if core.core().get() == 0 { stop } else { NEVER };
        let machine = Mortal {
            core,
            left: Rc::new(Cell::new(left)),
        };
        catch_unwind(AssertUnwindSafe(|| device(&machine, &ended))).unwrap_or_else(|reason| {
            if !reason.is::<Stopped>() {
                resume_unwind(reason);
            }
            was_reset.set(true);
            machine.left.set(NEVER);
            device(&machine, &ended)
        })
    });
    report.assert_done();
    was_reset.get()
}

/// At each of its accesses; in a quick run, at one in `quick` of them.
fn resets(cores: u16, quick: usize) {
    for profile in Profile::ALL {
        let chip = |seed| Config {
            cores,
            profile,
            seed,
            line: 8,
            memory_size: 4096,
            buffer_size: 0,
            budgets_expire: 64,
            ..Config::default()
        };
        let stops = (0_u32..).step_by(groups::step(quick));
        let tried = stops.take_while(|&stop| reset_at(stop, &chip(stop.into())));
        let tried = tried.count();
        assert!(tried > 10, "stopped at {tried} accesses only");
    }
}

#[test]
fn of_two_cores_one_is_reset_alone() {
    resets(2, 3);
}

#[test]
fn of_three_cores_one_is_reset_alone() {
    resets(3, 7);
}
