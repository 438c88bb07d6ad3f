//! Answers that the link keeps, since somebody may ask for them.

use flagpost::{Counter, Displacement, DynamicOptions, Error, Rma as _, World, rma::Operation};
use flagpost_explore::Mock;
use flagpost_link::{Access as _, Waiting as _};
use flagpost_sim::Wire;

use crate::network::{NONE, peers, runs};

/// Calls that run out of their budget before the answer has come, again and again. Fails if each of
/// them leaves its answer with the link, which would keep it for ever.
#[test]
fn answers_that_nobody_asks_for_are_not_kept() {
    runs(20, Wire::default(), |world| {
        let window = world.allocate::<u32>(1)?;
        let dynamic = world.dynamic(DynamicOptions::default())?;
        let memory = world.reserve(32)?;
        let (here, mut there) = (dynamic.attach(&memory)?, [0; 3]);
        world.allgather_with(here.get(), |rank, raw| there[rank.index()] = raw)?;
        let (all, lock) = (dynamic.window().lock_all()?, window.lock_all()?);
        let [peer, _] = peers(world);
        let at = Displacement::new(there[peer.index()]);
        for _ in 0..50 {
            let fetch = || lock.fetch_and_op(peer, 0, 1, Operation::SUM);
            let value = world.within(NONE, fetch);
            assert!(matches!(value, Err(Error::Timeout(_))));
            let got = || dynamic.at(&all, at).get(peer, 0, &mut [0_u8]);
            let got = world.within(NONE, got);
            assert!(matches!(got, Err(Error::Timeout(_))));
        }
        assert_eq!(world.link().unanswered(), 0);
        all.unlock()?;
        lock.unlock()?;
        world.barrier()?;
        dynamic.detach(&memory)?;
        dynamic.free()?;
        world.barrier()
    });
}

/// Waits until nothing is under way.
fn settle(world: &World<'_, Mock>) {
    while world.link().flush(None).is_err() {
        world.link().relax();
    }
}

/// Once `begin` gives something whose answer the link keeps, or is to keep, that is dropped: then
/// the link does not any more.
fn drops<T>(world: &World<'_, Mock>, mut begin: impl FnMut() -> T) {
    let held = loop {
        settle(world);
        let held = begin();
        if world.link().unanswered() > 0 {
            break held;
        }
    };
    drop(held);
    assert_eq!(world.link().unanswered(), 0);
}

/// Fails if an access, a request, or an event's post that is dropped leaves its answer with the
/// link.
#[test]
fn handles_that_are_dropped_leave_no_answer() {
    runs(20, Wire::default(), |world| {
        let mut window = world.allocate::<u32>(2)?;
        window.set_num_notify(2)?;
        window.set_notify_value(Counter(1), 1)?;
        let events = world.events(1)?;
        let all = window.lock_all()?;
        let [peer, _] = peers(world);
        let (data, mut into) = ([1], [0; 2]);
        let sum = Operation::SUM;
        for _ in 0..2 {
            drops(world, || all.to(peer, 0).fetch_and_op(1, sum));
            drops(world, || all.to(peer, 0).compare_and_swap(1, 2));
            drops(world, || {
                all.to(peer, 0)
                    .accumulate(&data, sum)
                    .map(|add| add.wait_within(NONE).err())
            });
            drops(world, || all.to(peer, 0).accumulate(&data, sum));
            drops(world, || window.to(peer, 0).notify(Counter(0)).put(&[]));
            drops(world, || {
                events.posting(peer, 0).map(|post| post.test().err())
            });
            drops(world, || {
                let mut request = window.expect_count(0..0, Counter(1), 1)?;
                request.start()?;
                while world.link().unanswered() == 0 {
                    assert_eq!(request.test()?, None);
                    world.link().relax();
                }
                Ok::<_, Error>(request)
            });
        }
        // Wherever it stands: loading, or telling.
        for looks in 0.. {
            settle(world);
            let mut get = window.to(peer, 0).notify(Counter(0)).get(&mut into)?;
            let mut done = false;
            for _ in 0..looks {
                world.link().relax();
                done = get.test()?;
            }
            drop(get);
            assert_eq!(world.link().unanswered(), 0);
            if done {
                break;
            }
        }
        while world.within(NONE, || all.get(peer, 0, &mut into)).is_ok() {}
        assert_eq!(world.link().unanswered(), 0);
        all.unlock()?;
        world.barrier()
    });
}

/// Fails if a change of an own counter, or an attach, that ran out of its budget outlives its
/// window, or its counters, as an answer; or a step of a lock that is dropped.
#[test]
fn what_is_given_back_leaves_no_answer() {
    runs(20, Wire::default(), |world| {
        let mut window = world.allocate::<u32>(1)?;
        window.set_num_notify(1)?;
        let dynamic = world.dynamic(DynamicOptions::default())?;
        let memory = world.reserve(32)?;
        let late = |call: &dyn Fn() -> bool| {
            assert!(world.within(NONE, call));
            assert_ne!(world.link().unanswered(), 0);
        };
        late(&|| dynamic.attach(&memory).is_err());
        dynamic.free()?;
        assert_eq!(world.link().unanswered(), 0);
        late(&|| window.reset_notify_value(Counter(0)).is_err());
        window.set_num_notify(2)?;
        assert_eq!(world.link().unanswered(), 0);
        late(&|| window.reset_notify_value(Counter(1)).is_err());
        window.free()?;
        assert_eq!(world.link().unanswered(), 0);
        let window = world.allocate::<u32>(1)?;
        let lock = || { window.locking_exclusive(world.rank()) }.map(|lock| lock.test().err());
        world.within(NONE, || drops(world, lock));
        world.barrier()
    });
}
