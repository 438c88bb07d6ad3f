//! A core is reset alone, at any of its accesses: all ranks reach the next session.
//!
//! The ranks follow the recipe of [`Session`](flagpost::Session), for ever, as a device does. Rank
//! 0 is reset once: at its start, in an epoch, with a lock or a register held. It loses what it has
//! on its stack; the rest of the machine stays as it was. Then it runs its program to the end, for
//! which it needs all others in its session.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

use flagpost::{Budget, Config as WorldConfig, Error, Rma as _, Tag, World, rma::Operation};
use flagpost_hal::Topology as _;
use flagpost_mapped::Mapped;
use flagpost_sim::{Config, Profile, Sim};

use crate::groups;
use crate::hazards::bench::Core;
use crate::hazards::mortal::{Mortal, NEVER, Stopped};

type Link = Mapped<Mortal>;

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
    let post = window.post([me.prev(size)])?;
    let access = window.start([me.next(size)])?;
    access.put(me.next(size), 1, &[7])?;
    access.complete()?;
    post.wait()?;
    let lock = window.lock_exclusive(me.next(size))?;
    lock.accumulate(me.next(size), 2, &[1], Operation::SUM)?;
    lock.unlock()?;
    world.barrier()?;
    let (lock, mut sum) = (window.lock_exclusive(me)?, [0]);
    lock.get(me, 2, &mut sum)?;
    assert_eq!(sum, [1]);
    lock.unlock()
}

/// One session: the recipe. All give up when `ended`.
fn session(machine: &Mortal, ended: &Cell<bool>) -> Result<(), Error> {
    let session = Link::next_session(machine);
    let link = Link::start(machine.clone(), session)?;
    let mut words = [0; WorldConfig::DEFAULT.words(3, 1)];
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
            held: Rc::default(),
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
