//! Locks, where budgets are shorter than the way of an answer.

use core::cell::Cell;

use flagpost::{Budget, Error, Rank, Rma as _, Tag, World, epoch::Lock};
use flagpost_explore::Mock;
use flagpost_link::Waiting as _;
use flagpost_sim::Wire;

use crate::network::{NONE, REFUSES, by_steps, peers, runs};

/// A lock whose release runs out of its budget at each step is given back once: another exclusive
/// one still keeps everybody from locking all.
#[test]
fn an_unlock_goes_on_where_its_budget_ran_out() {
    const ONE: Rank = Rank::new(1);
    const TWO: Rank = Rank::new(2);
    runs(300, Wire::default(), |world| {
        let window = world.allocate::<u32>(1)?;
        if world.rank().get() == 0 {
            let first = window.lock_exclusive(ONE)?;
            let second = window.lock_exclusive(TWO)?;
            let (mut late, mut rest) = (0, first.unlocking().wait_within(NONE));
            while let Err(unfinished) = rest {
                assert!(matches!(unfinished.error, Error::Timeout(_)));
                late += 1;
                world.link().relax();
                rest = unfinished.handle.wait_within(NONE);
            }
            assert!(late >= 1);
            world.barrier()?;
            second.put(TWO, 0, &[5])?;
            second.unlock()?;
        } else {
            world.barrier()?;
            let all = window.lock_all()?;
            let mut found = [0];
            all.get(TWO, 0, &mut found)?;
            // Whoever comes before the release finds nothing yet.
            assert_eq!(found, [5]);
            all.unlock()?;
        }
        world.barrier()
    });
}

/// The first exclusive lock goes while a second one is on its way, which counted on it: that one
/// keeps everybody from locking all.
#[test]
fn a_lock_on_its_way_is_one_of_the_ranks() {
    const ONE: Rank = Rank::new(1);
    const TWO: Rank = Rank::new(2);
    runs(300, Wire::default(), |world| {
        let window = world.allocate::<u32>(1)?;
        if world.rank().get() == 0 {
            let first = window.lock_exclusive(ONE)?;
            let second = window.locking_exclusive(TWO)?.wait_within(NONE);
            assert!(second.is_err());
            first.unlock()?;
            let second = second.or_else(|late| late.handle.wait())?;
            world.barrier()?;
            second.put(TWO, 0, &[5])?;
            second.unlock()?;
        } else {
            world.barrier()?;
            let all = window.lock_all()?;
            let mut found = [0];
            all.get(TWO, 0, &mut found)?;
            assert_eq!(found, [5]);
            all.unlock()?;
        }
        world.barrier()
    });
}

/// Fails if a queued lock that is cancelled where its budget ran out leaves the rank's turn behind:
/// the next one would wait for ever.
#[test]
fn who_cancelled_a_queued_lock_can_lock_again() {
    const BUSY: Rank = Rank::new(2);
    // What is under way takes about as long as the budget: as there is a rank that never sleeps, it
    // does not arrive sooner.
    let slow = Wire {
        deliveries: 2,
        ..Wire::default()
    };
    runs(60, slow, |world| {
        let window = world.allocate::<u32>(1)?;
        if world.rank() == BUSY {
            let peers = peers(world);
            let expect = |peer| window.expect(0..0, Tag(1))?.from(peer);
            for mut request in [expect(peers[0])?, expect(peers[1])?] {
                request.start()?;
                while request.test()?.is_none() {}
            }
            return world.barrier();
        }
        for _ in 0..4 {
            let lock = window
                .locking_queued(BUSY)?
                .wait_within(Budget::microseconds(1));
            match lock {
                Ok(lock) => lock.unlock()?,
                Err(late) => late.handle.cancel()?,
            }
            let lock = window.lock_queued(BUSY)?;
            lock.unlock()?;
        }
        window.notify(BUSY, Tag(1))?;
        world.barrier()
    });
}

/// How the ranks of [`locks_by_steps`] lock the piece of the last one.
#[derive(Copy, Clone, Debug)]
enum How {
    Queued,
    Exclusive,
    Shared,
    All,
}

/// Rank 1 has the lock, rank 2 gives up waiting for it, rank 0 waits until it has it.
fn locks_by_steps(world: &World<'_, Mock>, how: How) -> Result<(), Error> {
    const TWO: Rank = Rank::new(2);
    const TURNS: u32 = 300;
    let window = world.allocate::<u32>(1)?;
    let ask = || match how {
        How::Queued => window.locking_queued(TWO),
        How::Exclusive => window.locking_exclusive(TWO),
        How::Shared => window.locking_shared(TWO),
        How::All => Ok(window.locking_all()),
    };
    let has = || match how {
        How::Queued => window.locking_queued(TWO),
        _ => window.locking_exclusive(TWO),
    };
    match world.rank().get() {
        0 => {
            world.barrier()?;
            world.barrier()?;
            let lock = by_steps(world, ask()?, |rest| rest.wait_within(NONE))?;
            by_steps(world, lock.unlocking(), |rest| rest.wait_within(NONE))?;
        }
        1 => {
            let lock = by_steps(world, has()?, |rest| rest.wait_within(NONE))?;
            world.barrier()?;
            world.barrier()?;
            (0..TURNS).for_each(|_| world.link().relax());
            by_steps(world, lock.unlocking(), |rest| rest.wait_within(NONE))?;
        }
        _ => {
            world.barrier()?;
            let mut asked = ask()?.test();
            for _ in 0..TURNS {
                asked = asked.or_else(|late| {
                    world.link().relax();
                    late.handle.wait_within(NONE)
                });
            }
            let late = asked.expect_err("it is rank 1's");
            late.handle.cancel()?;
            world.barrier()?;
        }
    }
    assert_eq!(world.link().unanswered(), 0);
    world.barrier()
}

/// A budget that is shorter than the way of an answer: locks are got, and given back, all the same.
/// Fails if a call asks again for what the one before had asked for.
#[test]
fn locks_go_on_where_their_budget_ran_out() {
    for how in [How::Queued, How::Exclusive, How::Shared, How::All] {
        runs(60, Wire::default(), move |world| locks_by_steps(world, how));
    }
}

/// All add to the same element under exclusive locks, and look at it under locks of all pieces; now
/// and then another access takes the only place that the network has, so that a step of a lock is
/// refused before it has begun. Fails if such a step is left out, or if an unlock that goes on does
/// not place what was put.
#[test]
fn no_step_of_a_lock_is_left_out_where_it_was_refused() {
    const TWO: Rank = Rank::new(2);
    const ROUNDS: u32 = 3;
    for wire in [REFUSES, Wire::default()] {
        runs(60, wire, |world| {
            let (window, other) = (world.allocate::<u32>(1)?, world.allocate::<u32>(1)?);
            let others = other.lock_all()?;
            let turn = Cell::new(0_u32);
            let disturb = || {
                turn.set(turn.get() + 1);
                if turn.get().is_multiple_of(3) {
                    let put = || others.put(peers(world)[0], 0, &[turn.get()]);
                    let _ = world.within(NONE, put);
                }
            };
            let get = |lock: &Lock<'_, '_, u32, Mock>| {
                let mut found = [0];
                lock.get(TWO, 0, &mut found).map(|()| found[0])
            };
            for _ in 0..ROUNDS {
                let begin = window.locking_exclusive(TWO)?;
                let one = by_steps(world, begin, |rest| {
                    disturb();
                    rest.wait_within(NONE)
                })?;
                one.put(TWO, 0, &[get(&one)? + 1])?;
                let begin = one.unlocking();
                by_steps(world, begin, |rest| {
                    disturb();
                    rest.wait_within(NONE)
                })?;
                let begin = window.locking_all();
                let all = by_steps(world, begin, |rest| {
                    disturb();
                    rest.wait_within(NONE)
                })?;
                assert_eq!(get(&all)?, get(&all)?);
                let begin = all.unlocking();
                by_steps(world, begin, |rest| {
                    disturb();
                    rest.wait_within(NONE)
                })?;
            }
            world.barrier()?;
            let all = window.lock_all()?;
            assert_eq!(get(&all)?, 3 * ROUNDS);
            all.unlock()?;
            others.unlock()?;
            world.barrier()
        });
    }
}
