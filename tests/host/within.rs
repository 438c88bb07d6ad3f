//! `World::within`: whatever waits in there ends by its budget, and handles continue afterwards.

use flagpost::epoch::Assert;
use flagpost::{
    Budget, Config, DynamicOptions, Error, Events, MatchingList, Memory, Rank, Rma as _, Session,
    Tag, Waiting, Window, World,
};
use flagpost_link::{LocalMemory as _, Slots, Telling as _, Waiting as _};
use flagpost_mapped::Mapped;
use flagpost_sim::{Sim, SimCore};

type Link = Mapped<SimCore>;

const ONE: Rank = Rank::new(1);
const TWO: Rank = Rank::new(2);

/// What rank 0 has. Rank 1 has locked its own piece of `window`, rank 2 has filled rank 1's list of
/// posts in `list`, and both come to no call any more.
struct Stage<'w> {
    world: &'w World<'w, Link>,
    window: Window<'w, u32, Link>,
    list: Window<'w, u32, Link, MatchingList<'w>>,
    events: Events<'w, Link>,
    memory: &'w Memory<'w, Link>,
}

/// A call that waits for ever, and what for.
type Call = (
    &'static str,
    Waiting,
    for<'w> fn(Stage<'w>) -> Result<(), Error>,
);

const CALLS: &[Call] = &[
    ("barrier", Waiting::Collective, |stage| {
        stage.world.barrier()
    }),
    ("allocate", Waiting::Collective, |stage| {
        stage.world.allocate::<u32>(1).map(drop)
    }),
    ("create", Waiting::Collective, |stage| {
        let made = stage.world.create::<u32>(stage.memory, 0..32, 4);
        made.map(drop)
    }),
    ("dynamic", Waiting::Collective, |stage| {
        stage.world.dynamic(DynamicOptions::default()).map(drop)
    }),
    ("events", Waiting::Collective, |stage| {
        stage.world.events(1).map(drop)
    }),
    ("free", Waiting::Collective, |stage| stage.window.free()),
    ("Events::free", Waiting::Collective, |stage| {
        stage.events.free()
    }),
    ("fence", Waiting::Collective, |stage| {
        stage.window.fence(Assert::NO_PRECEDE).map(drop)
    }),
    ("post", Waiting::ListSpace, |stage| {
        stage.list.post([ONE]).map(drop)
    }),
    ("put", Waiting::Post, |stage| {
        stage.window.start([ONE])?.put(ONE, 0, &[1])
    }),
    ("complete", Waiting::Post, |stage| {
        stage.window.start([ONE])?.complete()
    }),
    ("wait", Waiting::Completion, |stage| {
        stage.window.post([ONE])?.wait()
    }),
    ("lock_shared", Waiting::Holder, |stage| {
        stage.window.lock_shared(ONE).map(drop)
    }),
    ("lock_exclusive", Waiting::Holder, |stage| {
        stage.window.lock_exclusive(ONE).map(drop)
    }),
    ("lock_queued", Waiting::Holder, |stage| {
        stage.window.lock_queued(ONE).map(drop)
    }),
    ("lock_all", Waiting::Unlock, |stage| {
        stage.window.lock_all().map(drop)
    }),
    ("put_notify", Waiting::RingSpace, |stage| {
        loop {
            stage.window.put_notify(ONE, 0, &[1], Tag(1))?;
        }
    }),
    // It is in many lines, of which some have left.
    ("put_notify of more", Waiting::RingSpace, |stage| {
        loop {
            stage.window.put_notify(ONE, 0, &[1; 40], Tag(1))?;
        }
    }),
    ("Request::wait", Waiting::Notification, |stage| {
        let mut never = stage.window.expect(0..0, Tag(1))?;
        never.start()?;
        never.wait().map(drop)
    }),
    ("Events::wait", Waiting::Notification, |stage| {
        stage.events.wait(0, 1)
    }),
    // A longer budget is no way out, nor is none.
    ("a handle", Waiting::Collective, |stage| {
        stage.window.fencing(Assert::NO_PRECEDE).wait().map(drop)
    }),
    ("a handle's budget", Waiting::Holder, |stage| {
        let locking = stage.window.locking_shared(ONE)?;
        let locked = locking.wait_within(Budget::UNLIMITED);
        locked.map(drop).map_err(|late| late.give_up())
    }),
    ("a scope inside", Waiting::Collective, |stage| {
        let world = stage.world;
        world.within(Budget::UNLIMITED, || world.barrier())
    }),
];

/// Runs `call` on rank 0 of three.
fn run(call: impl Fn(Stage<'_>) -> Result<(), Error>) {
    let chip = flagpost_sim::Config {
        cores: 3,
        memory_size: 16 << 10,
        // Once all wait, time jumps by more than any budget here: once, and not again.
        budgets_expire: 1,
        ..flagpost_sim::Config::default()
    };
    let report = Sim::new(chip).run(|core| {
        let mut words = [0; 512];
        let link = Mapped::start(core, Session::FIRST)?;
        let world = World::start(link, &mut words, Config::default())?;
        let me = world.rank();
        let memory = world.reserve(64)?;
        let over = world.link().allocate_slots(Slots::Count(1))?;
        let stage = Stage {
            world: &world,
            window: world.allocate(40)?,
            list: world.allocate_with(1, 1)?,
            events: world.events(1)?,
            memory: &memory,
        };
        if me.get() == 0 {
            world.barrier()?;
            call(stage)?;
            for other in [ONE, TWO] {
                world.link().signal(other, over, 1)?;
            }
            return Ok::<(), Error>(());
        }
        let lock = { me == ONE }.then(|| stage.window.lock_exclusive(ONE));
        let post = { me == TWO }.then(|| stage.list.post([ONE]));
        world.barrier()?;
        while !world.link().reached(over, 1)? {
            world.link().relax();
        }
        if let Some(lock) = lock {
            lock?.unlock()?;
        }
        post.transpose().map(drop)
    });
    report.assert_done();
}

#[test]
fn whatever_waits_within_a_budget_ends() {
    for (name, waiting, call) in CALLS {
        run(|stage| {
            let world = stage.world;
            match world.within(Budget::microseconds(20), || call(stage)) {
                Err(Error::Timeout(late)) => assert_eq!(late.waiting, *waiting, "{name}"),
                other => panic!("{name}: {other:?}"),
            }
            Ok(())
        });
    }
}

/// The text of a time-out.
fn text<T>(late: Result<T, Error>) -> String {
    let late = late.err().filter(|late| matches!(late, Error::Timeout(_)));
    late.expect("nobody comes").to_string()
}

/// A budget is one end for all that is in its scope: once it has passed, no call waits any more.
#[test]
fn a_budget_is_one_end_for_all_calls_in_it() {
    run(|stage| {
        let world = stage.world;
        world.within(Budget::seconds(1), || {
            for _ in 0..3 {
                assert!(!text(world.barrier()).contains("handle"));
            }
            // A short form says that its handle is gone.
            assert!(text(stage.window.lock_all()).contains("the handle of the call is gone"));
        });
        Ok(())
    });
}

/// A handle that its scope has stopped continues after it.
#[test]
fn a_handle_outlives_the_scope_that_stopped_it() {
    run(|stage| {
        let fencing = stage.window.fencing(Assert::NO_PRECEDE);
        let stopped = stage.world.within(Budget::ZERO, || fencing.test());
        let late = stopped.expect_err("nobody comes");
        let later = late.handle.wait_within(Budget::microseconds(20));
        let late = later.expect_err("nobody comes");
        assert!(!text(Err::<(), _>(late.error)).contains("handle"));
        Ok(())
    });
}
