//! Calls that take several steps, with budgets shorter than any answer: each step is refused at
//! first, and gone on with by the next call. Each test fails if a step is left out, or done twice.
//! Epochs, collective calls, accumulates, attaches and detaches are cases (`timeout.*`).

#![allow(
    clippy::result_large_err,
    reason = "requests go back to their user, without a heap"
)]

use flagpost::{
    Compare, Counter, EpochSlots, Error, MatchingList, Model, Options, Rank, Rma as _, Signal,
    World, epoch::Assert, rma::Operation,
};
use flagpost_explore::Mock;
use flagpost_link::Waiting as _;
use flagpost_sim::Wire;

use crate::network::{NONE, REFUSES, by_steps, in_the_end, peers, runs};

const SEEDS: u64 = 60;
const ROUNDS: u32 = 3;

/// Runs `program` on three ranks: with room for one operation, which orders them; and for many, of
/// which the last may be the first.
fn refused(program: impl Fn(&World<'_, Mock>) -> Result<(), Error> + Send + Sync) {
    for wire in [REFUSES, Wire::default()] {
        runs(SEEDS, wire, &program);
    }
}

/// [`in_the_end`], however often it is late.
fn late<T>(world: &World<'_, Mock>, call: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    in_the_end(world, &mut 0, call)
}

/// A post waits for own puts, to another window: it goes on with what it had not done, and counts
/// on its origins. Completions are looked for one step at a time, too.
#[test]
fn a_post_behind_own_puts_awaits_its_origins() {
    runs(SEEDS, Wire::default(), |world| {
        let options = Options {
            strategy: 2,
            model: Model::Unified,
        };
        let window = world.allocate_with::<u32, MatchingList<'_>>(1, options)?;
        let other = world.allocate::<u32>(1)?;
        let (next, prev) = ([world.rank().next(3)], [world.rank().prev(3)]);
        let (targets, origins) = (world.group(&next)?, world.group(&prev)?);
        for round in 1..=2 * ROUNDS {
            let lock = other.lock_shared(next[0])?;
            lock.put(next[0], 0, &[round])?;
            let mut exposure = by_steps(world, window.posting(&origins)?, |rest| {
                rest.wait_within(NONE)
            })?;
            let access = window.start(&targets)?;
            access.put(next[0], 0, &[round])?;
            access.complete()?;
            if round % 2 == 0 {
                while !exposure.test()? {
                    world.link().relax();
                }
            }
            exposure.wait()?;
            assert_eq!(window.local().get(0)?, round);
            lock.unlock()?;
        }
        world.barrier()
    });
}

#[test]
fn a_fence_meets_all() {
    refused(|world| {
        let window = world.allocate::<u32>(3)?;
        let (me, peers) = (world.rank(), peers(world));
        let nothing = Assert::empty();
        for round in 1..=ROUNDS {
            let puts = by_steps(world, window.fencing(nothing), |rest| {
                rest.wait_within(NONE)
            })?;
            for peer in peers {
                late(world, || puts.put(peer, me.index(), &[round]))?;
            }
            let looks = by_steps(world, puts.fencing(nothing), |rest| rest.wait_within(NONE))?;
            for peer in peers {
                assert_eq!(window.local().get(peer.index())?, round);
            }
            by_steps(world, looks.ending(), |rest| rest.wait_within(NONE))?;
        }
        world.barrier()
    });
}

#[test]
fn notified_accesses_are_done_and_told_once() {
    const SUM: usize = 3;
    refused(|world| {
        let mut window = world.allocate_with::<u32, EpochSlots<'_>>(4, Model::Unified)?;
        late(world, || window.set_num_notify(1))?;
        let events = world.events(1)?;
        let (me, peers) = (world.rank().index(), peers(world));
        let (sum, one) = (Operation::SUM, [1]);
        for round in 1..=ROUNDS {
            let (data, mut into) = ([round], [0]);
            for peer in peers {
                let add = window
                    .to(peer, SUM)
                    .notify(Counter(0))
                    .accumulate(&one, sum)?;
                by_steps(world, add, |rest| rest.wait_within(NONE))?;
                let add = window
                    .to(peer, SUM)
                    .notify(Counter(0))
                    .fetch_and_op(1, sum)?;
                by_steps(world, add, |rest| rest.wait_within(NONE))?;
                let post = events.posting(peer, 0)?;
                by_steps(world, post, |rest| rest.wait_within(NONE))?;
                let put = window.to(peer, me).notify(Counter(0)).put(&data)?;
                by_steps(world, put, |rest| rest.wait_within(NONE))?;
            }
            // By two peers.
            let mut count = window.expect_count(0..4, Counter(0), 6)?;
            count.start()?;
            assert_eq!(late(world, || count.wait())?, 6);
            assert_eq!(window.local().get(SUM)?, 4 * round);
            for peer in peers {
                assert_eq!(window.local().get(peer.index())?, round);
            }
            late(world, || world.barrier())?;
            for peer in peers {
                let get = window.to(peer, me).notify(Counter(0)).get(&mut into)?;
                by_steps(world, get, |rest| rest.wait_within(NONE))?;
                assert_eq!(into, data);
            }
            late(world, || world.barrier())?;
            assert_eq!(late(world, || window.reset_notify_value(Counter(0)))?, 8);
            events.wait(0, 2)?;
            assert_eq!(events.query(0)?, 0);
            late(world, || world.barrier())?;
        }
        by_steps(world, window.freeing(), |rest| rest.wait_within(NONE))?;
        by_steps(world, events.freeing(), |rest| rest.wait_within(NONE))
    });
}

#[test]
fn a_notice_comes_behind_all_that_was_put() {
    const PUTS: usize = 8;
    runs(SEEDS, Wire::default(), |world| {
        let mut window = world.allocate_with::<u32, EpochSlots<'_>>(3 * PUTS, Model::Unified)?;
        window.set_num_notify(3)?;
        let all = window.lock_all()?;
        let (me, peers) = (world.rank(), peers(world));
        let places = |rank: Rank| PUTS * rank.index()..PUTS * (rank.index() + 1);
        for round in 1..=ROUNDS {
            for peer in peers {
                for place in places(me) {
                    late(world, || all.put(peer, place, &[round]))?;
                }
                let notice = Signal(me.get().into()).set(u64::from(round));
                let tell = window.to(peer, 0).notify(notice).put(&[])?;
                by_steps(world, tell, |rest| rest.wait_within(NONE))?;
            }
            for peer in peers {
                window.wait_until(0..0, Signal(peer.get().into()), Compare::Eq, round.into())?;
                for place in places(peer) {
                    assert_eq!(window.local().get(place)?, round);
                }
            }
            world.barrier()?;
        }
        all.unlock()?;
        world.barrier()
    });
}

/// Fails if a change of another counter is taken for the one that had begun, or if one that was
/// given up comes over new counters.
#[test]
fn a_change_of_a_counter_is_left_for_another() {
    refused(|world| {
        let mut window = world.allocate::<u32>(1)?;
        window.set_num_notify(2)?;
        for round in 1..=ROUNDS {
            window.set_notify_value(Counter(0), round.into())?;
            assert!(
                world
                    .within(NONE, || window.reset_notify_value(Counter(0)))
                    .is_err()
            );
            late(world, || window.set_notify_value(Counter(1), round.into()))?;
            assert_eq!(
                [
                    window.notify_value(Counter(0))?,
                    window.notify_value(Counter(1))?
                ],
                [0, round.into()]
            );
            let reset = || window.reset_notify_value(Counter(0));
            assert!(world.within(NONE, reset).is_err());
            late(world, || window.set_num_notify(2))?;
            window.notify(world.rank(), Counter(0))?;
            late(world, || window.set_notify_value(Counter(1), round.into()))?;
            assert_eq!(window.notify_value(Counter(0))?, 1);
        }
        world.barrier()
    });
}
