//! `World::within`: whatever waits in there ends by its budget, and handles continue afterwards.

use flagpost::epoch::Assert;
use flagpost::{Budget, Config, Error, Rank, Session, Waiting, World};
use flagpost_link::{LocalMemory as _, Slots, Telling as _, Waiting as _};
use flagpost_mapped::Mapped;
use flagpost_sim::{Sim, SimCore};

use crate::waits::{Call, Stage, calls, staged};

type Link = Mapped<SimCore>;

const GONE: Rank = Rank::new(2);

/// Calls that any rank can end.
const OTHERS: [Call<Link>; 2] = [
    ("lock_all", Waiting::Unlock, |on| {
        on.window.lock_all().map(drop)
    }),
    ("Events::wait", Waiting::Notification, |on| {
        on.events.wait(0, 1)
    }),
];

/// Runs `call` on rank 0 of three.
fn run(call: impl Fn(Stage<'_, Link>) -> Result<(), Error>) {
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
        let link = world.link();
        let over = link.allocate_slots(Slots::Count(1))?;
        // The others take no notifications.
        let rests = || {
            while !link.reached(over, 1)? {
                link.relax();
            }
            Ok(())
        };
        if staged(&world, GONE, &call, rests)?.is_some() {
            for other in [Rank::new(1), GONE] {
                link.signal(other, over, 1)?;
            }
        }
        Ok::<(), Error>(())
    });
    report.assert_done();
}

#[test]
fn whatever_waits_within_a_budget_ends() {
    for (name, waiting, call) in calls().into_iter().chain(OTHERS) {
        run(|stage| {
            let world = stage.world;
            match world.within(Budget::microseconds(20), || call(stage)) {
                Err(Error::Timeout(late)) => assert_eq!(late.waiting, waiting, "{name}"),
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
