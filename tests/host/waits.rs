//! Calls that wait for a rank which does not do its part, as one table: what each waits for.
//!
//! They are tried with budgets (`within`), and with a rank that has left or is lost: over simulated
//! memory (`leaving`), over a simulated network (`network/lost`), as threads (`survivors`), as
//! processes of two launchers (`jobs/deaths`), and over libfabric (`fabric/losses`).

use std::mem::forget;

use flagpost::epoch::Assert;
use flagpost::{
    Budget, DynamicOptions, Error, Events, Link, MatchingList, Memory, Rank, Rma as _, Tag,
    Unfinished, Waiting, Window, World,
};

/// What the rank that calls has. Rank `gone` has locked its own piece of `window`, and a third rank
/// has filled its list of posts in `list`. Both come to no call any more.
pub(crate) struct Stage<'w, L: Link> {
    pub(crate) world: &'w World<'w, L>,
    pub(crate) gone: Rank,
    pub(crate) window: Window<'w, u32, L>,
    list: Window<'w, u32, L, MatchingList<'w>>,
    pub(crate) events: Events<'w, L>,
    memory: &'w Memory<'w, L>,
}

/// A call, what it waits for, and how it is made.
pub(crate) type Call<L> = (
    &'static str,
    Waiting,
    for<'w> fn(Stage<'w, L>) -> Result<(), Error>,
);

/// Calls that wait for rank `gone`, by its name. The first ones are collective.
pub(crate) fn calls<L: Link>() -> [Call<L>; 21] {
    [
        ("barrier", Waiting::Collective, |on| on.world.barrier()),
        ("allocate", Waiting::Collective, |on| {
            on.world.allocate::<u32>(1).map(drop)
        }),
        ("create", Waiting::Collective, |on| {
            on.world.create::<u32>(on.memory, 0..32, 4).map(drop)
        }),
        ("dynamic", Waiting::Collective, |on| {
            on.world.dynamic(DynamicOptions::default()).map(drop)
        }),
        ("events", Waiting::Collective, |on| {
            on.world.events(1).map(drop)
        }),
        ("free", Waiting::Collective, |on| on.window.free()),
        ("Events::free", Waiting::Collective, |on| on.events.free()),
        ("fence", Waiting::Collective, |on| {
            on.window.fence(Assert::NO_PRECEDE).map(drop)
        }),
        // A longer budget is no way out, nor is none.
        ("a handle", Waiting::Collective, |on| {
            on.window.fencing(Assert::NO_PRECEDE).wait().map(drop)
        }),
        ("a scope inside", Waiting::Collective, |on| {
            on.world.within(Budget::UNLIMITED, || on.world.barrier())
        }),
        ("post", Waiting::ListSpace, |on| {
            on.list.post([on.gone]).map(drop)
        }),
        ("put", Waiting::Post, |on| {
            on.window.start([on.gone])?.put(on.gone, 0, &[1])
        }),
        ("complete", Waiting::Post, |on| {
            on.window.start([on.gone])?.complete()
        }),
        ("wait", Waiting::Completion, |on| {
            on.window.post([on.gone])?.wait()
        }),
        ("lock_shared", Waiting::Holder, |on| {
            on.window.lock_shared(on.gone).map(drop)
        }),
        ("lock_exclusive", Waiting::Holder, |on| {
            on.window.lock_exclusive(on.gone).map(drop)
        }),
        ("lock_queued", Waiting::Holder, |on| {
            on.window.lock_queued(on.gone).map(drop)
        }),
        ("a handle's budget", Waiting::Holder, |on| {
            let locking = on.window.locking_shared(on.gone)?;
            let locked = locking.wait_within(Budget::UNLIMITED);
            locked.map(drop).map_err(Unfinished::give_up)
        }),
        ("put_notify", Waiting::RingSpace, |on| {
            loop {
                on.window.put_notify(on.gone, 0, &[1], Tag(1))?;
            }
        }),
        // It is in many lines, of which some have left.
        ("put_notify of more", Waiting::RingSpace, |on| {
            loop {
                on.window.put_notify(on.gone, 0, &[1; 40], Tag(1))?;
            }
        }),
        ("Request::wait", Waiting::Notification, |on| {
            let mut never = on.window.expect(0..0, Tag(1))?.from(on.gone)?;
            never.start()?;
            never.wait().map(drop)
        }),
    ]
}

/// Of three ranks the one after `gone` makes `call`; `others` is what the other two do meanwhile.
///
/// # Errors
/// What went wrong before.
pub(crate) fn staged<L: Link, T>(
    world: &World<'_, L>,
    gone: Rank,
    call: impl FnOnce(Stage<'_, L>) -> Result<T, Error>,
    others: impl FnOnce() -> Result<(), Error>,
) -> Result<Option<T>, Error> {
    let (me, third) = (world.rank(), gone.prev(3));
    let memory = world.reserve(64)?;
    let stage = Stage {
        world,
        gone,
        window: world.allocate(40)?,
        list: world.allocate_with(1, 1)?,
        events: world.events(1)?,
        memory: &memory,
    };
    if me == gone {
        forget(stage.window.lock_exclusive(gone)?);
    } else if me == third {
        forget(stage.list.post([gone])?);
    }
    world.barrier()?;
    if me == gone || me == third {
        return others().map(|()| None);
    }
    call(stage).map(Some)
}

/// What `call` is told on the rank after `gone`, which goes when this returns. The third rank ends
/// before it if it `leaves`, else when the call has ended. The rank that calls waits in `knows`
/// until it may know.
///
/// # Errors
/// What went wrong before.
#[allow(dead_code, reason = "not all programs have a rank that goes")]
pub(crate) fn told<L: Link>(
    world: &World<'_, L>,
    gone: Rank,
    leaves: bool,
    (_, _, call): Call<L>,
    knows: impl FnOnce(),
) -> Result<Option<Result<(), Error>>, Error> {
    let (me, caller, third) = (world.rank(), gone.next(3), gone.prev(3));
    let other = world.allocate::<u32>(1)?;
    let hear = |from| {
        let mut heard = other.expect(0..0, Tag(1))?.from(from)?;
        heard.start()?;
        heard.wait().map(drop)
    };
    let makes_it = |stage: Stage<'_, L>| {
        // The others are past all that they take part in.
        match hear(third) {
            Err(Error::PeerLeft(rank)) if leaves && rank == third => {}
            heard => heard?,
        }
        other.notify(gone, Tag(1))?;
        knows();
        let told = call(stage);
        // Of a network, calls may tell of what was lost before; and the third may have ended. If it
        // is there and is not told, this does not end.
        let _ = leaves || (0..100).any(|_| other.notify(third, Tag(1)).is_ok());
        Ok(told)
    };
    staged(world, gone, makes_it, || {
        if me == gone {
            return hear(caller);
        } else if leaves {
            return Ok(());
        }
        other.notify(caller, Tag(1))?;
        // It may be told of the other one.
        match hear(caller) {
            Err(Error::PeerLost(rank)) if rank == gone => Ok(()),
            heard => heard,
        }
    })
}
