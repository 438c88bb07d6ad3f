//! Hazard 21 again: budgets that run out at any step of locks, fences, collectives and accumulates.
//! Two ranks, through the kernel. With the remedy every call that was late goes on: everything
//! comes out right, and nothing is done twice.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost::epoch::{Assert, Fence, Lock};
use flagpost::rma::Operation;
use flagpost::{
    Displacement, DynamicOptions, EpochSlots, Error, Making, Rank, Rma as _, Unfinished, Window,
    World,
};
use flagpost_mapped::Mapped;
use flagpost_sim::{Profile, SimCore};

use super::budgets::{SECOND, again, joined, unless_late};
use crate::hazards::bench::*;

type Shared<'w> = Window<'w, u32, Mapped<SimCore<8>>>;
type Living<'w> = World<'w, Mapped<SimCore<8>>>;

const ZERO: Rank = Rank::new(0);
const ONE: Rank = Rank::new(1);

const fn late(
    name: &'static str,
    most: Acts,
    shows: Needs,
    program: fn(&SimCore<8>, bool) -> Outcome,
    consequences: &'static [&'static str],
) -> Hazard {
    Hazard {
        name,
        cores: 2,
        memory: 1024,
        profiles: &[Profile::Scc],
        program,
        most,
        consequences,
        shows,
        alarms: &[],
    }
}

/// So many budgets run out.
const fn expiries(expiries: u8) -> Acts {
    Acts {
        expiries,
        ..NOTHING
    }
}

/// And a register is tried in vain: of what takes no longer than that, none runs out else.
const REFUSED: Acts = Acts {
    refusals: 1,
    ..expiries(1)
};

fn refused(_: Profile, acts: Acts) -> bool {
    acts.refusals > 0 && acts.expiries > 0
}

pub const ALL: &[Hazard] = &[
    late(
        "21g kernel: a fence that is late is dropped",
        expiries(2),
        expiry,
        fences,
        &["epoch abandoned"],
    ),
    late(
        "21h kernel: a reduction that is late is taken for done",
        expiries(1),
        expiry,
        |core, remedy| {
            twice(
                core,
                remedy,
                |world, _, words| world.allreduce(&mut words[..1], |one, other| one + other),
                |round, me| [20 * round + 2, brought(round, me)[1]],
            )
        },
        &["wrong words"],
    ),
    late(
        "21h kernel: a broadcast that is late is taken for done",
        expiries(1),
        expiry,
        |core, remedy| {
            twice(
                core,
                remedy,
                |world, _, words| world.broadcast(ONE, words),
                |round, _| brought(round, 1),
            )
        },
        &["deadlock", "wrong words"],
    ),
    late(
        "21h kernel: an allgather that is late is taken for done",
        expiries(1),
        expiry,
        |core, remedy| {
            twice(
                core,
                remedy,
                |world, round, words| {
                    let [mine, _] = brought(round, world.rank().get().into());
                    world.allgather(mine, words)
                },
                |round, _| [brought(round, 0)[0], brought(round, 1)[0]],
            )
        },
        &["wrong words"],
    ),
    late(
        "21j kernel: a window that is late is made anew",
        expiries(1),
        expiry,
        |core, remedy| {
            makes(core, |world| {
                made(remedy, || world.allocating::<u32, EpochSlots<'_>>(2, ())).map(drop)
            })
        },
        &["a call failed"],
    ),
    late(
        "21j kernel: events that are late are made anew",
        expiries(1),
        expiry,
        |core, remedy| {
            makes(core, |world| {
                made(remedy, || world.making_events(2)).map(drop)
            })
        },
        &["a call failed"],
    ),
    late(
        "21j kernel: a dynamic window that is late is made anew",
        expiries(1),
        expiry,
        |core, remedy| {
            let options = DynamicOptions {
                regions: 1,
                kept: 1,
                ..DynamicOptions::default()
            };
            makes(core, |world| {
                made(remedy, || {
                    world.making_dynamic::<EpochSlots<'_>>(options, ())
                })
                .map(drop)
            })
        },
        &["a call failed"],
    ),
    late(
        "21j kernel: a created window that is late is made anew",
        expiries(1),
        expiry,
        |core, remedy| {
            joined(core.clone(), |world| {
                let memory = world.reserve(8).map_err(|_| "no memory")?;
                go(core);
                let windows: Shared<'_> = made(remedy, || world.creating(&memory, 0..8, 4, ()))?;
                check(windows.len() == 2, "wrong length")
            })
        },
        &["a call failed"],
    ),
    late(
        "21k kernel: a detach that is late is taken for done",
        REFUSED,
        refused,
        detaches,
        &["detached memory was reached"],
    ),
];

/// What takes too long to be tried each time.
pub const LONG: &[Hazard] = &[
    late(
        "21f kernel: a lock that is late is dropped",
        expiries(1),
        expiry,
        |core, remedy| {
            locks(core, [remedy, true], |window| {
                window.locking_exclusive(ZERO)
            })
        },
        &["an addition is missing"],
    ),
    late(
        "21h kernel: an alltoall that is late is taken for done",
        expiries(1),
        expiry,
        |core, remedy| {
            twice(
                core,
                remedy,
                |world, round, words| {
                    let from = brought(round, world.rank().get().into());
                    world.alltoall(&from, words)
                },
                |round, me| [0, 1].map(|rank| brought(round, rank)[me as usize]),
            )
        },
        &["wrong words"],
    ),
    late(
        "21f kernel: a lock that is late is dropped, in the queue",
        expiries(1),
        expiry,
        |core, remedy| locks(core, [remedy, true], |window| window.locking_queued(ZERO)),
        &["an addition is missing"],
    ),
    late(
        "21f kernel: an unlock that is late is dropped",
        REFUSED,
        refused,
        |core, remedy| {
            locks(core, [true, remedy], |window| {
                window.locking_exclusive(ZERO)
            })
        },
        &["epoch abandoned"],
    ),
    late(
        "21f kernel: an unlock that is late is dropped, in the queue",
        expiries(1),
        expiry,
        |core, remedy| locks(core, [true, remedy], |window| window.locking_queued(ZERO)),
        &["epoch abandoned"],
    ),
    late(
        "21i kernel: an accumulate that is late begins anew",
        REFUSED,
        refused,
        accumulates,
        &["added twice"],
    ),
];

/// What a call gives in the end: it goes on with its handle, or, without the remedy, drops it.
fn finish<T, H>(
    mut call: Result<T, Unfinished<H>>,
    remedy: bool,
    go_on: impl Fn(H) -> Result<T, Unfinished<H>>,
) -> Result<Option<T>, &'static str> {
    loop {
        match unless_late(call)? {
            Ok(done) => return Ok(Some(done)),
            Err(handle) if remedy => call = go_on(handle),
            Err(_) => return Ok(None),
        }
    }
}

/// A world of two with a window of so many words, where budgets run out when the search says so.
fn in_window(
    core: &SimCore<8>,
    words: usize,
    run: impl FnOnce(&Living<'_>, &Shared<'_>) -> Outcome,
) -> Outcome {
    joined(core.clone(), |world| {
        let window = world.allocate(words).map_err(|_| "no window")?;
        go(core);
        run(world, &window)
    })
}

type Held<'e, 'w> = Lock<'e, 'w, u32, Mapped<SimCore<8>>>;

/// Locks of rank 0's piece.
type Ask =
    for<'e, 'w> fn(
        &'e Shared<'w>,
    ) -> Result<flagpost::epoch::Locking<'e, 'w, u32, Mapped<SimCore<8>>>, Error>;

/// Both ranks add 1 to a word, by a get and a put. The remedy at the lock, and at its unlock.
fn locks(core: &SimCore<8>, [remedy, at_unlock]: [bool; 2], ask: Ask) -> Outcome {
    in_window(core, 1, |world, window| {
        let locked = |change: &dyn Fn(&Held<'_, '_>) -> Outcome| {
            let locking = ask(window).map_err(|_| "no lock")?;
            let Some(lock) = finish(locking.wait_within(SECOND), remedy, |late| {
                late.wait_within(SECOND)
            })?
            else {
                return Ok(());
            };
            change(&lock)?;
            finish(lock.unlocking().wait_within(SECOND), at_unlock, |late| {
                late.wait_within(SECOND)
            })?;
            Ok(())
        };
        let got = |lock: &Held<'_, '_>| {
            let mut word = [0];
            lock.get(ZERO, 0, &mut word).map_err(|_| "no get")?;
            Ok::<_, &str>(word[0])
        };
        locked(&|lock| {
            let sum = got(lock)? + 1;
            lock.put(ZERO, 0, &[sum]).map_err(|_| "no put")
        })?;
        again(world, || world.barrier())?;
        if world.rank() == ONE {
            locked(&|lock| check(got(lock)? == 2, "an addition is missing"))?;
        }
        Ok(())
    })
}

/// Rank 0 puts between two fences.
fn fences(core: &SimCore<8>, remedy: bool) -> Outcome {
    in_window(core, 1, |world, window| {
        let none = Assert::empty();
        let begun = finish(window.fencing(none).wait_within(SECOND), remedy, |late| {
            late.wait_within(SECOND)
        })?;
        let epoch: Fence<'_, '_, u32, _> = match begun {
            Some(epoch) => epoch,
            // Whoever has no handle can only begin anew.
            None => finish(window.fencing(none).wait_within(SECOND), remedy, |late| {
                late.wait_within(SECOND)
            })?
            .ok_or("twice late")?,
        };
        if world.rank() == ZERO {
            epoch.put(ONE, 0, &[7]).map_err(|_| "no put")?;
        }
        if finish(epoch.ending().wait_within(SECOND), remedy, |late| {
            late.wait_within(SECOND)
        })?
        .is_none()
        {
            finish(window.fencing(none).wait_within(SECOND), remedy, |late| {
                late.wait_within(SECOND)
            })?;
            return Ok(());
        }
        if world.rank() == ONE {
            check(window.local().get(0) == Ok(7), "old data")?;
        }
        Ok(())
    })
}

/// What all ranks make, and what they do together behind it.
fn makes(core: &SimCore<8>, make: impl FnOnce(&Living<'_>) -> Outcome) -> Outcome {
    joined(core.clone(), |world| {
        go(core);
        make(world)?;
        again(world, || world.barrier())
    })
}

fn made<'w, M>(
    remedy: bool,
    make: impl Fn() -> Result<Making<'w, Mapped<SimCore<8>>, M>, Error>,
) -> Result<M, &'static str> {
    let begin = || make().map_err(|_| "a call failed");
    let mut making = begin()?;
    loop {
        match unless_late(making.wait_within(SECOND))? {
            Ok(made) => return Ok(made),
            Err(Some(rest)) if remedy => making = rest,
            Err(_) => making = begin()?,
        }
    }
}

/// Rank 1 detaches memory while rank 0 looks where it lies; behind that rank 0 does not reach it.
fn detaches(core: &SimCore<8>, remedy: bool) -> Outcome {
    joined(core.clone(), |world| {
        let options = DynamicOptions {
            regions: 1,
            kept: 1,
            ..DynamicOptions::default()
        };
        let window = world.dynamic(options).map_err(|_| "no window")?;
        let memory = world.reserve(8).map_err(|_| "no memory")?;
        let here = window.attach(&memory).map_err(|_| "not attached")?;
        let mut there = [here.get()];
        world
            .broadcast(ONE, &mut there)
            .map_err(|_| "not broadcast")?;
        let lock = match world.rank() {
            ZERO => Some(window.window().lock_all().map_err(|_| "no lock")?),
            _ => None,
        };
        let reached = |lock: &Lock<'_, '_, u8, Mapped<SimCore<8>>>| {
            let words = window.at::<u32, _>(lock, Displacement::new(there[0]));
            again(world, || match words.get(ONE, 0, &mut [0]) {
                Ok(()) => Ok(true),
                Err(Error::NotAttached) => Ok(false),
                Err(other) => Err(other),
            })
        };
        go(core);
        if let Some(lock) = &lock {
            reached(lock)?;
        } else if remedy {
            again(world, || window.detach(&memory))?;
        } else {
            // As if it had come to an end.
            let _ = world.within(SECOND, || window.detach(&memory));
        }
        again(world, || world.barrier())?;
        if let Some(lock) = lock {
            check(!reached(&lock)?, "detached memory was reached")?;
            finish(lock.unlocking().wait_within(SECOND), true, |late| {
                late.wait_within(SECOND)
            })?;
        }
        Ok(())
    })
}

/// A collective call of round `.1`, which leaves `.2` as [`Expected`] says.
type Collective = fn(&Living<'_>, u32, &mut [u32; 2]) -> Result<(), Error>;

/// What rank `.1` has in the end.
type Expected = fn(u32, u32) -> [u32; 2];

/// What rank `rank` brings.
const fn brought(round: u32, rank: u32) -> [u32; 2] {
    [10 * round + 2 * rank, 10 * round + 2 * rank + 1]
}

/// Twice the same call, one behind the other.
fn twice(core: &SimCore<8>, remedy: bool, call: Collective, expected: Expected) -> Outcome {
    joined(core.clone(), |world| {
        go(core);
        let me = world.rank().get().into();
        for round in 1..=2 {
            let mut words = brought(round, me);
            let call = || call(world, round, &mut words);
            if remedy {
                again(world, call)?;
            } else {
                // As if it had come to an end.
                let _ = world.within(SECOND, call);
            }
            check(words == expected(round, me), "wrong words")?;
        }
        Ok(())
    })
}

/// Both ranks add to two pieces of rank 0's elements.
fn accumulates(core: &SimCore<8>, remedy: bool) -> Outcome {
    const WORDS: usize = 9;
    in_window(core, WORDS, |world, window| {
        let all = window.locking_all().wait_within(SECOND);
        let all = finish(all, true, |late| late.wait_within(SECOND))?.ok_or("no lock")?;
        let ones = [1; WORDS];
        let begin = || {
            let adding = all.to(ZERO, 0).accumulate(&ones, Operation::SUM);
            adding.map_err(|_| "a call failed")
        };
        let mut adding = begin()?;
        while let Err(rest) = unless_late(adding.wait_within(SECOND))? {
            adding = if remedy { rest } else { begin()? };
        }
        finish(all.unlocking().wait_within(SECOND), true, |late| {
            late.wait_within(SECOND)
        })?;
        again(world, || world.barrier())?;
        if world.rank() == ONE {
            let locking = window.locking_shared(ZERO).map_err(|_| "no lock")?;
            let lock = finish(locking.wait_within(SECOND), true, |late| {
                late.wait_within(SECOND)
            })?;
            let lock = lock.ok_or("no lock")?;
            let mut found = [0; WORDS];
            lock.get(ZERO, 0, &mut found).map_err(|_| "no get")?;
            finish(lock.unlocking().wait_within(SECOND), true, |late| {
                late.wait_within(SECOND)
            })?;
            check(found == [2; WORDS], "added twice")?;
        }
        Ok(())
    })
}
