//! Attach and detach, where budgets are shorter than the way of an answer.

use flagpost::{Displacement, DynamicOptions, DynamicWindow, Error, Rma as _, Validation, World};
use flagpost_explore::Mock;
use flagpost_sim::Wire;

use crate::network::{NONE, in_the_end, peers, runs};

/// A budget of nothing runs out at each step that takes an answer; repeated calls go on there, and
/// do nothing twice.
fn attaches_by_steps(world: &World<'_, Mock>, validation: Validation) -> Result<(), Error> {
    let options = DynamicOptions {
        validation,
        ..Default::default()
    };
    let window = world.dynamic(options)?;
    let memory = world.reserve(32)?;
    memory.write(0, &[7_u8])?;
    let mut late = 0;
    let here = in_the_end(world, &mut late, || window.attach(&memory))?;
    // Its key, its name.
    assert!(late >= 2);
    let mut there = [0; 3];
    world.allgather_with(here.get(), |rank, raw| there[rank.index()] = raw)?;
    reads(&window, &there, Ok(7))?;
    world.barrier()?;
    late = 0;
    in_the_end(world, &mut late, || window.detach(&memory))?;
    let steps = match validation {
        // The name, the count.
        Validation::Counter => 2,
        // The name, the block of readers, each reader.
        Validation::Invalidation => 4,
    };
    assert!(late >= steps);
    world.barrier()?;
    reads(&window, &there, Err(Error::NotAttached))?;
    window.free()
}

/// Each reads a byte of both peers', `there`, and finds what is wanted.
fn reads(
    window: &DynamicWindow<'_, Mock>,
    there: &[u64; 3],
    wanted: Result<u8, Error>,
) -> Result<(), Error> {
    let world = window.window().world();
    let peers = peers(world);
    let group = world.group(&peers)?;
    let exposure = window.window().post(&group)?;
    let access = window.window().start(&group)?;
    for peer in peers {
        let (at, mut byte) = (Displacement::new(there[peer.index()]), [0]);
        let found = window.at(&access, at).get(peer, 0, &mut byte);
        assert_eq!(found.map(|()| byte[0]), wanted);
    }
    access.complete()?;
    exposure.wait()
}

/// Fails if a step is done again or left out, or a reader is forgotten that was not told.
#[test]
fn attach_and_detach_go_on_where_their_budget_ran_out() {
    for validation in [Validation::Counter, Validation::Invalidation] {
        runs(60, Wire::default(), move |world| {
            attaches_by_steps(world, validation)
        });
    }
}

/// An attach that ran out of its budget after so many calls, and a detach, are left for those of
/// other memory, which are done first.
fn leaves_for_another(
    world: &World<'_, Mock>,
    validation: Validation,
    calls: u32,
) -> Result<(), Error> {
    let options = DynamicOptions {
        validation,
        ..Default::default()
    };
    let window = world.dynamic(options)?;
    let memories = [world.reserve(32)?, world.reserve(32)?];
    let [first, second] = &memories;
    first.write(0, &[10_u8])?;
    second.write(0, &[20_u8])?;
    let mut late = 0;
    for _ in 0..calls {
        let late = world.within(NONE, || window.attach(first));
        assert!(matches!(late, Err(Error::Timeout(_))));
    }
    let here = [second, first].map(|memory| {
        in_the_end(world, &mut late, || window.attach(memory)).map(Displacement::get)
    });
    let mut there = [[0; 3]; 2];
    for (here, there) in here.into_iter().zip(&mut there) {
        world.allgather_with(here?, |rank, raw| there[rank.index()] = raw)?;
    }
    reads(&window, &there[0], Ok(20))?;
    reads(&window, &there[1], Ok(10))?;
    world.barrier()?;
    for _ in 0..calls {
        let late = world.within(NONE, || window.detach(first));
        assert!(matches!(late, Err(Error::Timeout(_))));
    }
    in_the_end(world, &mut late, || window.detach(second))?;
    in_the_end(world, &mut late, || window.detach(first))?;
    world.barrier()?;
    for there in there {
        reads(&window, &there, Err(Error::NotAttached))?;
    }
    window.free()
}

/// Fails if a step that one of them had begun, or had done, is taken for the other's.
#[test]
fn attach_and_detach_are_left_for_others() {
    for validation in [Validation::Counter, Validation::Invalidation] {
        for calls in 1..=2 {
            runs(60, Wire::default(), move |world| {
                leaves_for_another(world, validation, calls)
            });
        }
    }
}
