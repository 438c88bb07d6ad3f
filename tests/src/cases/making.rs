//! Windows and events that are made with a budget of nothing.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost::{Budget, DynamicOptions, Error, Link, Made, Rma as _, Unfinished, Window, World};

use crate::{Failure, context::check};

/// Each is made by going on until it is there. Peers use it at once: nothing of it is prepared a second time.
pub(super) fn late<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let memory = world.reserve(64)?;
    for round in 1..=2 {
        memory.write(0, &[0_u32; 16])?;
        let window = made(world, || world.allocate::<u32>(4))?;
        used_at_once(window, round)?;
        let window = made(world, || world.create::<u32>(&memory, 0..64, 4))?;
        used_at_once(window, round)?;
        let options = DynamicOptions {
            regions: 2,
            kept: 2,
            ..DynamicOptions::default()
        };
        made(world, || world.dynamic(options))?.free()?;
        let events = made(world, || world.events(2))?;
        events.post(world.rank().next(world.size()), 1)?;
        events.wait(1, 1)?;
        check("no other", events.query(1)?, 0_u32)?;
        events.free()?;
    }
    Ok(memory.release()?)
}

/// Goes on with a budget of nothing, then has what it takes.
fn made<'w, L: Link + 'w, M>(
    world: &World<'_, L>,
    make: impl FnOnce() -> Made<'w, L, M>,
) -> Result<M, Failure> {
    world.set_budget(Budget::microseconds(0));
    let mut call = make();
    loop {
        call = match call {
            Ok(made) => {
                world.set_budget(Budget::UNLIMITED);
                return Ok(made);
            }
            Err(Unfinished {
                handle: Some(making),
                error: Error::Timeout(_),
            }) => {
                world.link().relax();
                making.go_on()
            }
            Err(failed) => return Err(failed.error.into()),
        };
    }
}

fn used_at_once<L: Link>(window: Window<'_, u32, L>, round: u32) -> Result<(), Failure> {
    let world = window.world();
    let (me, size) = (world.rank(), world.size());
    let all = window.lock_all()?;
    all.put(me.next(size), 1, &[round])?;
    all.unlock()?;
    world.barrier()?;
    let own = window.lock_shared(me)?;
    let mut found = [0; 4];
    own.get(me, 0, &mut found)?;
    own.unlock()?;
    check("what was put", found == [0, round, 0, 0], true)?;
    Ok(window.free()?)
}
