//! What the ranks do of which one stops.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost::epoch::{Assert, Strategy};
use flagpost::rma::Operation;
use flagpost::{
    Budget, Displacement, DynamicOptions, Error, MatchVector, MatchingList, Rank, Rma as _, Tag,
    Unfinished, Validation, Window, World,
};
use flagpost_mapped::Mapped;

use crate::hazards::mortal::Mortal;

type Living<'w> = World<'w, Mapped<Mortal>>;
type Shared<'w> = Window<'w, u32, Mapped<Mortal>>;

/// What each rank does; errors end it.
#[derive(Copy, Clone)]
pub(super) enum Program {
    /// An epoch, signalled by slots, by match vectors, or in a list of as many entries as there are
    /// others.
    Slots,
    Vector,
    List,
    /// Notifications.
    Notified,
    /// Everybody locks rank 0's piece, in these ways: rank 0, the others.
    Lock(How, How),
    /// An epoch between two fences.
    Fence,
    /// A collective call that is made of others.
    Collective,
    Broadcast,
    Allgather,
    /// Everybody changes words of rank 0's piece.
    Accumulate,
    /// Attached memory that is put to, and detached.
    Dynamic(Validation),
    /// Memory that is attached while other memory is put to.
    Attach(Validation),
}

/// How a piece is locked.
#[derive(Copy, Clone)]
pub(super) enum How {
    Shared,
    Exclusive,
    Queued,
    All,
}

impl Program {
    /// Runs it as rank `me`; `ready` is called where a rank may stop from.
    pub(super) fn run<'w>(
        self,
        world: &'w Living<'w>,
        me: u16,
        budget: Budget,
        ready: impl FnOnce(),
    ) -> Result<(), Error> {
        let window = || world.allocate(2);
        match self {
            Self::Slots => {
                let window = window()?;
                ready();
                epoch(world, &window, budget)
            }
            Self::Vector => {
                let window = world.allocate_with::<_, MatchVector<'_>>(2, ())?;
                ready();
                epoch(world, &window, budget)
            }
            Self::List => {
                let entries = world.size() - 1;
                let window = world.allocate_with::<_, MatchingList<'_>>(2, entries)?;
                ready();
                epoch(world, &window, budget)
            }
            Self::Notified => {
                let window = window()?;
                ready();
                notified(world, &window, budget)
            }
            Self::Lock(first, others) => {
                let window = window()?;
                ready();
                locked(&window, if me == 0 { first } else { others }, budget)
            }
            Self::Fence => {
                let window = window()?;
                ready();
                fenced(world, &window, budget)
            }
            Self::Collective => {
                ready();
                together(world)
            }
            Self::Broadcast => {
                ready();
                broadcast(world)
            }
            Self::Allgather => {
                ready();
                allgather(world)
            }
            Self::Accumulate => {
                let window = window()?;
                ready();
                accumulated(&window, budget)
            }
            Self::Dynamic(validation) => dynamic(world, validation, budget, ready),
            Self::Attach(validation) => attach(world, validation, budget, ready),
        }
    }
}

/// What a call gives that does not continue.
fn ends<T, H>(call: Result<T, Unfinished<H>>) -> Result<T, Error> {
    call.map_err(Unfinished::give_up)
}

/// Rank 0 puts to all others, in one epoch.
fn epoch<'w, S: Strategy<'w, Mapped<Mortal>>>(
    world: &Living<'_>,
    window: &Window<'w, u32, Mapped<Mortal>, S>,
    budget: Budget,
) -> Result<(), Error> {
    let ranks = [0, 1, 2].map(Rank::new);
    let (origin, targets) = ranks[..usize::from(world.size())].split_at(1);
    let (origins, targets) = (world.group(origin)?, world.group(targets)?);
    if origin.contains(&world.rank()) {
        let access = window.start(&targets)?;
        for &target in targets.ranks() {
            access.put(target, 0, &[7])?;
        }
        ends(access.completing().wait_within(budget))?;
    } else {
        ends(ends(window.posting(&origins)?.wait_within(budget))?.wait_within(budget))?;
    }
    Ok(())
}

/// Rank 0 notifies rank 1; and both meet.
fn notified(world: &Living<'_>, window: &Shared<'_>, budget: Budget) -> Result<(), Error> {
    if world.rank().get() == 0 {
        let put = window.to(Rank::new(1), 0).notify(Tag(1)).put(&[7])?;
        ends(put.wait_within(budget))?;
    } else {
        let mut request = window.expect(0..1, Tag(1))?.from(Rank::new(0))?;
        request.start()?;
        request.wait()?;
    }
    world.barrier()
}

/// Rank 0's piece is locked, and changed.
fn locked(window: &Shared<'_>, how: How, budget: Budget) -> Result<(), Error> {
    let target = Rank::new(0);
    let lock = match how {
        How::Shared => ends(window.locking_shared(target)?.wait_within(budget))?,
        How::Exclusive => ends(window.locking_exclusive(target)?.wait_within(budget))?,
        How::Queued => ends(window.locking_queued(target)?.wait_within(budget))?,
        How::All => ends(window.locking_all().wait_within(budget))?,
    };
    lock.put(target, 0, &[7])?;
    ends(lock.unlocking().wait_within(budget))
}

/// Rank 0 puts to rank 1 between two fences.
fn fenced(world: &Living<'_>, window: &Shared<'_>, budget: Budget) -> Result<(), Error> {
    let epoch = ends(window.fencing(Assert::NO_PRECEDE).wait_within(budget))?;
    if world.rank().get() == 0 {
        epoch.put(Rank::new(1), 0, &[7])?;
    }
    ends(epoch.ending().wait_within(budget))
}

/// A reduction, a broadcast and a barrier.
fn together(world: &Living<'_>) -> Result<(), Error> {
    world.allreduce(&mut [1_u32], |one, other| one + other)
}

/// The last rank tells all others.
fn broadcast(world: &Living<'_>) -> Result<(), Error> {
    let root = Rank::new(world.size() - 1);
    let mut words = [if world.rank() == root { 7 } else { 0_u32 }];
    world.broadcast(root, &mut words)?;
    assert_eq!(words, [7]);
    Ok(())
}

/// Everybody tells everybody.
fn allgather(world: &Living<'_>) -> Result<(), Error> {
    let (mut all, ranks) = ([0; 3], usize::from(world.size()));
    world.allgather(world.rank().get() + 7, &mut all[..ranks])?;
    assert_eq!(all[..ranks], [7, 8, 9][..ranks]);
    Ok(())
}

fn accumulated(window: &Shared<'_>, budget: Budget) -> Result<(), Error> {
    let (target, lock) = (
        Rank::new(0),
        ends(window.locking_all().wait_within(budget))?,
    );
    let add = lock.to(target, 0).accumulate(&[7], Operation::SUM)?;
    ends(add.wait_within(budget))?;
    let fetch = lock.to(target, 1).fetch_and_op(1, Operation::SUM)?;
    ends(fetch.wait_within(budget))?;
    ends(lock.unlocking().wait_within(budget))
}

/// Rank 1 has attached memory and told rank 0 so, which puts to it, and meets it; then it is
/// detached.
fn dynamic<'w>(
    world: &'w Living<'w>,
    validation: Validation,
    budget: Budget,
    ready: impl FnOnce(),
) -> Result<(), Error> {
    let (owner, memory) = (Rank::new(1), world.reserve(4)?);
    let window = world.dynamic(DynamicOptions {
        regions: 1,
        kept: 1,
        validation,
    })?;
    let mut name = [window.attach(&memory)?.get()];
    world.broadcast(owner, &mut name)?;
    ready();
    if world.rank() != owner {
        let lock = ends(window.window().locking_shared(owner)?.wait_within(budget))?;
        window
            .at(&lock, Displacement::new(name[0]))
            .put(owner, 0, &[7_u32])?;
        ends(lock.unlocking().wait_within(budget))?;
        return world.barrier();
    }
    world.barrier()?;
    window.detach(&memory)
}

/// Rank 1 has attached memory and told rank 0 so, which puts to it; meanwhile rank 1 attaches more,
/// tells, and is put to there.
fn attach<'w>(
    world: &'w Living<'w>,
    validation: Validation,
    budget: Budget,
    ready: impl FnOnce(),
) -> Result<(), Error> {
    let owner = Rank::new(1);
    let (first, second) = (world.reserve(4)?, world.reserve(4)?);
    let window = world.dynamic(DynamicOptions {
        regions: 2,
        kept: 2,
        validation,
    })?;
    let mut name = [window.attach(&first)?.get()];
    world.broadcast(owner, &mut name)?;
    ready();
    if world.rank() == owner {
        name = [window.attach(&second)?.get()];
        world.broadcast(owner, &mut name)?;
        return world.barrier();
    }
    let lock = ends(window.window().locking_shared(owner)?.wait_within(budget))?;
    window
        .at(&lock, Displacement::new(name[0]))
        .put(owner, 0, &[7_u32])?;
    world.broadcast(owner, &mut name)?;
    window
        .at(&lock, Displacement::new(name[0]))
        .put(owner, 0, &[8_u32])?;
    ends(lock.unlocking().wait_within(budget))?;
    world.barrier()
}
