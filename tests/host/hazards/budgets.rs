//! Hazard 21: budgets that run out at any step. Mostly through the kernel itself.

use flagpost::epoch::Strategy;
use flagpost::{
    Budget, Config, Error, MatchVector, MatchingList, Rank, Rma as _, Session, Tag, Window, World,
};
use flagpost_hal::{
    Address, Amo, Clock, Coherence, Machine, NativeAtomics, Relax, UncachedMemory, Watch,
};
use flagpost_mapped::{Mapped, Ring};
use flagpost_sim::{Profile, SimCore};

use crate::hazards::bench::*;

/// The handle of an epoch that is late is dropped, where so many budgets may run out.
const fn dropped(
    name: &'static str,
    profiles: &'static [Profile],
    expiries: u8,
    program: fn(&SimCore<8>, bool) -> Outcome,
) -> Hazard {
    Hazard {
        name,
        cores: 2,
        memory: 512,
        profiles,
        program,
        most: Acts {
            expiries,
            ..NOTHING
        },
        consequences: &["epoch abandoned"],
        shows: expiry,
        alarms: &[],
    }
}

pub const ALL: &[Hazard] = &[
    Hazard {
        name: "21a a call that begins anew tells a target twice",
        cores: 3,
        memory: 16,
        profiles: &[Profile::Scc],
        program: told_twice,
        most: Acts {
            expiries: 1,
            ..NOTHING
        },
        consequences: &[DEADLOCK, "put missing"],
        shows: expiry,
        alarms: &[],
    },
    dropped(
        "21b kernel: the handle of an epoch that is late is dropped",
        &[Profile::Scc],
        2,
        |core, remedy| late_slots(core, 2, remedy),
    ),
    dropped(
        "21b kernel: the handle of an epoch that is late is dropped",
        &[Profile::Weak],
        1,
        |core, remedy| late_slots(core, 1, remedy),
    ),
    Hazard {
        name: "21c kernel: a request that is late is cancelled",
        cores: 2,
        memory: 512,
        profiles: &[Profile::Scc],
        program: late_notifications,
        most: Acts {
            expiries: 2,
            ..NOTHING
        },
        consequences: &[DEADLOCK],
        shows: expiry,
        alarms: &[],
    },
    dropped(
        "21d kernel: the handle of an epoch that is late is dropped, match vectors",
        &[Profile::Scc],
        2,
        |core, remedy| late_vector(core, 2, remedy),
    ),
    dropped(
        "21d kernel: the handle of an epoch that is late is dropped, match vectors",
        &[Profile::Weak],
        1,
        |core, remedy| late_vector(core, 1, remedy),
    ),
    dropped(
        "21e kernel: the handle of an epoch that is late is dropped, matching list",
        &[Profile::Scc],
        2,
        |core, remedy| late_list(core, 2, remedy),
    ),
    dropped(
        "21e kernel: the handle of an epoch that is late is dropped, matching list",
        &[Profile::Weak],
        1,
        |core, remedy| late_list(core, 1, remedy),
    ),
];

/// Polls until the word is `value`, or the budget runs out.
fn wait_within(core: &Core, at: Address, value: u32) -> bool {
    let start = core.cycles();
    loop {
        let seen = core.load_u32(at);
        if seen == value {
            core.acquire();
            return true;
        }
        if core.cycles() > start {
            return false;
        }
        core.relax(&[Watch { at, seen }]);
    }
}

/// Core 0 completes at targets 1 and 2, once each has posted; core 2 puts to core 1 and completes
/// there too. Remedy: a completion that was late goes on where it stopped.
fn told_twice(core: &Core, remedy: bool) -> Outcome {
    let posted = |target| at(0, 4 * usize::from(target));
    let (data, counter) = (at(1, 0), |target| at(target, 8));
    let complete = |target| core.atomic_u32(counter(target), Amo::Add(u32::MAX));
    clear(core);
    core.store_u32(counter(me(core)), 2);
    core.drain();
    go(core);
    match me(core) {
        0 => {
            let mut told = 0;
            while told < 2 {
                for target in 1 + told..=2 {
                    if wait_within(core, posted(target), 1) {
                        complete(target);
                        told = target;
                    } else {
                        told = if remedy { told } else { 0 };
                        break;
                    }
                }
            }
            Ok(())
        }
        1 => {
            core.store_u32(posted(1), 1);
            wait(core, counter(1), 0);
            check(core.load_u32(data) == 7, "put missing")
        }
        _ => {
            core.store_u32(posted(2), 1);
            core.store_u32(data, 7);
            core.drain();
            complete(1);
            Ok(())
        }
    }
}

/// Joins the world, allocates a window, and ends the set-up.
pub fn in_world<M: Machine>(
    machine: M,
    go: impl FnOnce(),
    run: impl FnOnce(&World<'_, Mapped<M>>, &Window<'_, u32, Mapped<M>>) -> Outcome,
) -> Outcome {
    joined(machine, |world| {
        let window = world.allocate(2).map_err(|_| "no window")?;
        go();
        run(world, &window)
    })
}

/// Joins the world.
pub fn joined<M: Machine>(
    machine: M,
    run: impl for<'w> FnOnce(&'w World<'w, Mapped<M>>) -> Outcome,
) -> Outcome {
    let mut arena = [0; 64];
    let config = Config { unexpected: 4 };
    let link = Mapped::start_with_ring(machine, Session::FIRST, Some(Ring::Shared { entries: 2 }))
        .map_err(|_| "no link")?;
    let world = World::start(link, &mut arena, config).map_err(|_| "no world")?;
    run(&world)
}

/// The budget of calls that are late when the search says so.
pub const SECOND: Budget = Budget::seconds(1);

/// Repeats `call` while its budget runs out.
pub fn again<M: Machine, T>(
    world: &World<'_, Mapped<M>>,
    mut call: impl FnMut() -> Result<T, Error>,
) -> Result<T, &'static str> {
    loop {
        match world.within(SECOND, &mut call) {
            Ok(done) => return Ok(done),
            Err(Error::Timeout(_)) => {}
            Err(_) => return Err("a call failed"),
        }
    }
}

/// What a call that is done, or else only late, gives.
pub fn unless_late<T, H>(
    call: Result<T, flagpost::Unfinished<H>>,
) -> Result<Result<T, H>, &'static str> {
    match call {
        Ok(done) => Ok(Ok(done)),
        Err(late) => match late.error {
            Error::Timeout(_) => Ok(Err(late.handle)),
            Error::EpochAbandoned => Err("epoch abandoned"),
            _ => Err("a call failed"),
        },
    }
}

/// Epochs of origin 0 and target 1. Remedy: a call that was late is gone on with, on its handle;
/// else the handle is dropped and the call made again.
fn late_epochs<'w, M: Machine, S: Strategy<'w, Mapped<M>>>(
    world: &World<'_, Mapped<M>>,
    window: &Window<'w, u32, Mapped<M>, S>,
    epochs: u32,
    remedy: bool,
) -> Outcome {
    let [origin, target] = [0, 1].map(Rank::new);
    let (origins, targets) = ([origin], [target]);
    let group = |ranks| world.group(ranks).map_err(|_| "no group");
    let (origins, targets) = (group(&origins)?, group(&targets)?);
    let post = || window.posting(&origins).map_err(|_| "a call failed");
    for epoch in 1..=epochs {
        if world.rank() == target {
            let mut posting = post()?.wait_within(SECOND);
            let mut exposure = loop {
                match unless_late(posting)? {
                    Ok(exposure) => break exposure,
                    Err(handle) if remedy => posting = handle.wait_within(SECOND),
                    Err(handle) => {
                        drop(handle);
                        posting = post()?.wait_within(SECOND);
                    }
                }
            };
            while let Err(handle) = unless_late(exposure.wait_within(SECOND))? {
                if !remedy {
                    drop(handle);
                    // Whoever has no handle can only begin another epoch.
                    let _ = unless_late(post()?.wait_within(SECOND))?;
                    return Err("an abandoned window was used");
                }
                exposure = handle;
            }
            check(window.local().get(0) == Ok(epoch), "old data")?;
        } else {
            let access = window.start(&targets).map_err(|_| "epoch abandoned")?;
            again(world, || access.put(target, 0, &[epoch]))?;
            let mut completing = access.completing().wait_within(SECOND);
            while let Err(handle) = unless_late(completing)? {
                if !remedy {
                    drop(handle);
                    let _ = window.start(&targets).map_err(|_| "epoch abandoned")?;
                    return Err("an abandoned window was used");
                }
                completing = handle.wait_within(SECOND);
            }
        }
    }
    Ok(())
}

fn late_slots(core: &Core, epochs: u32, remedy: bool) -> Outcome {
    in_world(
        core.clone(),
        || go(core),
        |world, window| late_epochs(world, window, epochs, remedy),
    )
}

fn late_vector(core: &Core, epochs: u32, remedy: bool) -> Outcome {
    joined(core.clone(), |world| {
        let window = world.allocate_with::<_, MatchVector<'_>>(2, ());
        let window = window.map_err(|_| "no window")?;
        go(core);
        late_epochs(world, &window, epochs, remedy)
    })
}

fn late_list(core: &Core, epochs: u32, remedy: bool) -> Outcome {
    joined(core.clone(), |world| {
        let window = world.allocate_with::<_, MatchingList<'_>>(2, 1);
        let window = window.map_err(|_| "no window")?;
        go(core);
        late_epochs(world, &window, epochs, remedy)
    })
}

/// Core 0 notifies core 1 twice, and both meet. Remedy: who is late calls again; else the target
/// cancels its request and starts anew, which forgets what was matched.
fn late_notifications(core: &Core, remedy: bool) -> Outcome {
    let [origin, target] = [0, 1].map(Rank::new);
    in_world(
        core.clone(),
        || go(core),
        |world, window| {
            if world.rank() == origin {
                for number in 1..=2 {
                    let put = window.to(target, number - 1).notify(Tag(1)).put(&[7]);
                    let mut put = put.map_err(|_| "a call failed")?;
                    while let Err(rest) = unless_late(put.wait_within(SECOND))? {
                        put = rest;
                    }
                }
            } else {
                let mut request = window
                    .expect(0..2, Tag(1))
                    .and_then(|request| request.from(origin))
                    .and_then(|request| request.times(2))
                    .map_err(|_| "no request")?;
                request.start().map_err(|_| "not started")?;
                loop {
                    match request.wait_within(SECOND) {
                        Ok(_) => break,
                        Err(Error::Timeout(_)) if remedy => {}
                        Err(Error::Timeout(_)) => {
                            request.cancel().map_err(|_| "not cancelled")?;
                            request.start().map_err(|_| "not started")?;
                        }
                        Err(_) => return Err("a call failed"),
                    }
                }
                let right = window.local().get(0) == Ok(7) && window.local().get(1) == Ok(7);
                check(right, "old data")?;
            }
            again(world, || world.barrier())
        },
    )
}
