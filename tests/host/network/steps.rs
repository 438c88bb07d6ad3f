//! Calls that take several steps, with budgets shorter than any answer: each step is refused at
//! first, and gone on with by the next call. Each test fails if a step is left out, or done twice.

#![allow(
    clippy::result_large_err,
    reason = "requests go back to their user, without a heap"
)]

use flagpost::{
    Compare, Counter, EpochSlots, Error, MatchingList, Model, Options, Rank, Rma as _, Signal,
    Window, World,
    epoch::{Assert, Strategy},
    rma::{Layout, Operation, Scatter},
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

/// Each puts to both peers, epoch after epoch.
fn exchanges<'w, S: Strategy<'w, Mock>>(
    world: &World<'w, Mock>,
    window: &Window<'w, u32, Mock, S>,
) -> Result<(), Error> {
    let (me, peers) = (world.rank(), peers(world));
    let group = world.group(&peers)?;
    for round in 1..=ROUNDS {
        let exposure = by_steps(world, window.posting(&group)?, |rest| {
            rest.wait_within(NONE)
        })?;
        let access = window.start(&group)?;
        for peer in peers {
            late(world, || access.put(peer, me.index(), &[round]))?;
        }
        by_steps(world, access.completing(), |rest| rest.wait_within(NONE))?;
        by_steps(world, exposure, |rest| rest.wait_within(NONE))?;
        for peer in peers {
            assert_eq!(window.local().get(peer.index())?, round);
        }
    }
    world.barrier()
}

#[test]
fn a_post_and_a_completion_tell_each_rank_once() {
    refused(|world| exchanges(world, &world.allocate::<u32>(3)?));
}

#[test]
fn a_post_and_a_completion_in_a_matching_list_tell_each_rank_once() {
    refused(|world| {
        let window = world.allocate_with::<u32, MatchingList<'_>>(3, 2)?;
        exchanges(world, &window)
    });
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

/// Longer than what is passed on at a time.
#[test]
fn collectives_hear_from_each_rank_once() {
    refused(|world| {
        const LEN: usize = 70;
        let me = u32::from(world.rank().get());
        for round in 0..ROUNDS {
            let mine = [me + 10 * round; 8];
            let mut all = [[0; 8]; 3];
            late(world, || world.allgather(mine, &mut all))?;
            assert_eq!(all, [0, 1, 2].map(|rank| [rank + 10 * round; 8]));
            let from: [u32; 3 * LEN] = core::array::from_fn(|i| i as u32 + 1000 * me + round);
            let mut into = [0; 3 * LEN];
            late(world, || world.alltoall(&from, &mut into))?;
            for (at, found) in into.iter().enumerate() {
                let (rank, at) = (at / LEN, at % LEN + LEN * me as usize);
                assert_eq!(*found, at as u32 + 1000 * rank as u32 + round);
            }
            for root in [0, 1, 2].map(Rank::new) {
                let mut data = [if world.rank() == root { round + 1 } else { 0 }; LEN];
                late(world, || world.broadcast(root, &mut data))?;
                assert_eq!(data, [round + 1; LEN]);
                let mut data = [1 << (8 * me); LEN];
                late(world, || world.reduce(root, &mut data, |a, b| a + b))?;
                if world.rank() == root {
                    assert_eq!(data, [0x01_0101; LEN]);
                }
            }
            let mut data = [(round + 1) << (8 * me); LEN];
            late(world, || world.allreduce(&mut data, |a, b| a + b))?;
            assert_eq!(data, [(round + 1) * 0x01_0101; LEN]);
            late(world, || world.barrier())?;
        }
        Ok(())
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

/// Longer than what the link, or an atomic operation, moves at a time.
#[test]
fn each_piece_of_an_access_is_done_once() {
    const LEN: usize = 70;
    refused(|world| {
        let window = world.allocate::<u32>(LEN)?;
        let [peer, _] = peers(world);
        let every_other = Layout::Vector {
            blocks: LEN / 2,
            block_len: 1,
            stride: 2,
        };
        let (data, mut into, mut old) = ([1; LEN], [0; LEN], [0; LEN]);
        let all = window.lock_all()?;
        for round in 1..=ROUNDS {
            let add = all.to(peer, 0).accumulate(&data, Operation::SUM)?;
            by_steps(world, add, |rest| rest.wait_within(NONE))?;
            let get = all.to(peer, 0).get(&mut into)?;
            by_steps(world, get, |rest| rest.wait_within(NONE))?;
            assert_eq!(into, [2 * round - 1; LEN]);
            let add = all
                .to(peer, 0)
                .get_accumulate(&data, Operation::SUM, &mut old)?;
            by_steps(world, add, |rest| rest.wait_within(NONE))?;
            assert_eq!(old, into);
            // Packed: an element of the origin's at a time.
            let scatter = Scatter::new(&mut old, every_other);
            all.to(peer, 0)
                .layout(Layout::Contiguous { count: LEN / 2 })
                .get(scatter)?
                .wait()?;
            assert_eq!(
                old,
                core::array::from_fn(|i| 2 * round - u32::from(i % 2 == 1))
            );
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
