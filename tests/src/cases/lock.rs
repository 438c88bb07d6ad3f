//! Passive target: pieces that are locked, and what their owners and others see.

use flagpost::{
    Budget, Error, Link, Rank, Rma as _, Tag, Window, World,
    epoch::{Lock, Locked, Locking},
};
use flagpost_link::Slots;

use super::insist;
use super::steps::{
    FIRST, NO_ERROR, finds, finds_locked, hear, holds, neighbours, refused as refuses,
};
use crate::{Result, context::check};

type Words<'w, L> = Window<'w, u32, L>;

/// Names a call, whatever the link.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum How {
    Shared,
    Exclusive,
    Queued,
    All,
}

pub(super) const SHARED: How = How::Shared;
pub(super) const ALL: How = How::All;
pub(super) const EXCLUSIVE: How = How::Exclusive;
pub(super) const QUEUED: How = How::Queued;

impl How {
    pub(super) fn lock<'e, 'w, L: Link>(
        self,
        window: &'e Words<'w, L>,
        target: Rank,
    ) -> Result<Lock<'e, 'w, u32, L>, Error> {
        match self {
            Self::Shared => window.lock_shared(target),
            Self::Exclusive => window.lock_exclusive(target),
            Self::Queued => window.lock_queued(target),
            Self::All => window.lock_all(),
        }
    }

    pub(super) fn locking<'e, 'w, L: Link>(
        self,
        window: &'e Words<'w, L>,
        target: Rank,
    ) -> Result<Locking<'e, 'w, u32, L>, Error> {
        match self {
            Self::Shared => window.locking_shared(target),
            Self::Exclusive => window.locking_exclusive(target),
            Self::Queued => window.locking_queued(target),
            Self::All => Ok(window.locking_all()),
        }
    }
}

/// For calls that are refused: with a budget they give their handle back.
const ANY: Budget = Budget::UNLIMITED;

/// A word far from the first: in a line of its own.
const FAR: usize = 64;

/// Adds 1 to two words of `target`, which must be equal.
fn increment<L: Link>(window: &Words<'_, L>, target: Rank, how: How) -> Result<u32> {
    let lock = how.lock(window, target)?;
    let count = both(&lock, target)?;
    lock.put(target, FAR, &[count + 1])?;
    lock.put(target, 0, &[count + 1])?;
    lock.unlock()?;
    Ok(count + 1)
}

/// The word that `target` has twice.
fn both<'w, L: Link>(lock: &flagpost::epoch::Lock<'_, 'w, u32, L>, target: Rank) -> Result<u32> {
    let (mut near, mut far) = ([0], [0]);
    lock.get(target, 0, &mut near)?;
    lock.get(target, FAR, &mut far)?;
    check("both words", near[0], far[0])?;
    Ok(near[0])
}

/// All ranks count at rank 0.
pub(super) fn counter<L: Link>(world: &World<'_, L>, how: How) -> Result {
    let rounds = if world.size() > 8 { 1 } else { 3 };
    let window = world.allocate::<u32>(FAR + 1)?;
    for _ in 0..rounds {
        increment(&window, FIRST, how)?;
    }
    world.barrier()?;
    let lock = window.lock_shared(FIRST)?;
    let count = both(&lock, FIRST)?;
    lock.unlock()?;
    check("increments", count, rounds * u32::from(world.size()))
}

/// Writers of both kinds, and readers of both kinds, of one piece.
pub(super) fn mixed<L: Link>(world: &World<'_, L>) -> Result {
    let size = world.size();
    let (rounds, target) = (if size > 8 { 1 } else { 3 }, Rank::new(size - 1));
    let window = world.allocate::<u32>(FAR + 1)?;
    let mut seen = 0;
    let me = u32::from(world.rank().get());
    for round in 0..4 * rounds {
        match (me + round) % 4 {
            0 => seen = increment(&window, target, How::Exclusive)?,
            1 => seen = increment(&window, target, How::Queued)?,
            how => {
                let how = if how == 2 { How::Shared } else { How::All };
                let lock = how.lock(&window, target)?;
                let now = both(&lock, target)?;
                lock.unlock()?;
                check("counts up", now >= seen, true)?;
                seen = now;
            }
        }
    }
    world.barrier()?;
    let lock = window.lock_all()?;
    let count = both(&lock, target)?;
    lock.unlock()?;
    check("increments", count, 2 * rounds * u32::from(size))
}

/// A word that two ranks have is the same at both, for who locks all.
pub(super) fn all<L: Link>(world: &World<'_, L>) -> Result {
    let targets = [FIRST, Rank::new(1)];
    let window = world.allocate::<u32>(1)?;
    let mut last = 0;
    for round in 1..=3 {
        if world.rank() == targets[1] {
            let [first, second] = targets.map(|target| window.lock_exclusive(target));
            let (first, second) = (first?, second?);
            first.put(targets[0], 0, &[round])?;
            second.put(targets[1], 0, &[round])?;
            first.unlock()?;
            second.unlock()?;
        } else {
            let lock = window.lock_all()?;
            let mut seen = [[0], [0]];
            for (target, word) in targets.into_iter().zip(&mut seen) {
                lock.get(target, 0, word)?;
            }
            lock.unlock()?;
            check("the same", seen[0][0], seen[1][0])?;
            check("counts up", seen[0][0] >= last, true)?;
            last = seen[0][0];
        }
    }
    world.barrier()?;
    finds_locked("last round", &window, FIRST, 0, [3])
}

/// A piece's owner counts through its cache, under its own lock; the others past theirs.
pub(super) fn own<L: Link>(world: &World<'_, L>) -> Result {
    let rounds = if world.size() > 8 { 1 } else { 3 };
    // Not the one that has the global word.
    let owner = Rank::new(world.size() - 1);
    let window = world.allocate::<u32>(FAR + 1)?;
    for _ in 0..rounds {
        if world.rank() == owner {
            let lock = window.lock_exclusive(owner)?;
            let count = window.local().get(0)?;
            check("both words", window.local().get(FAR)?, count)?;
            window.local().set(0, count + 1)?;
            window.local().set(FAR, count + 1)?;
            lock.unlock()?;
        } else {
            increment(&window, owner, How::Exclusive)?;
        }
    }
    world.barrier()?;
    if world.rank() == owner {
        // Among all: locked as well.
        let lock = window.lock_all()?;
        let count = window.local().get(0)?;
        check("increments", count, rounds * u32::from(world.size()))?;
        window.local().set(0, 7)?;
        lock.unlock()?;
    }
    world.barrier()?;
    let lock = window.lock_shared(owner)?;
    finds("own store", &lock, owner, 0, [7])?;
    Ok(lock.unlock()?)
}

/// What the owner stored before it locked its piece is not lost.
pub(super) fn own_before<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(1)?;
    if world.rank() == FIRST {
        window.local().set(0, 5)?;
        let lock = window.lock_exclusive(FIRST)?;
        check("own store", window.local().get(0)?, 5_u32)?;
        lock.unlock()?;
    }
    world.barrier()?;
    let lock = window.lock_shared(FIRST)?;
    finds("own store, from afar", &lock, FIRST, 0, [5])?;
    Ok(lock.unlock()?)
}

/// An owner that locks nothing, but synchronizes around the others' epochs.
pub(super) fn sync<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(2)?;
    let (_, next, _) = neighbours(world);
    for round in 1..=3_u32 {
        window.local().set(0, round)?;
        window.sync()?;
        world.barrier()?;
        let lock = window.lock_exclusive(next)?;
        let mut word = [0];
        lock.get(next, 0, &mut word)?;
        lock.put(next, 1, &[10 * round])?;
        lock.unlock()?;
        check("peer's store", word[0], round)?;
        world.barrier()?;
        window.sync()?;
        check("peer's put", window.local().get(1)?, 10 * round)?;
        check("own store", window.local().get(0)?, round)?;
    }
    Ok(())
}

/// What was flushed is there before a word that was put later, for who reads them in this order.
pub(super) fn flush<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(FAR + 1)?;
    let (me, second) = (world.rank(), Rank::new(1));
    for round in 1..=3_u32 {
        if me == FIRST {
            let lock = window.lock_shared(second)?;
            lock.put(second, 0, &[round])?;
            if round == 2 {
                lock.flush_all()?;
            } else {
                lock.flush(second)?;
            }
            lock.put(second, FAR, &[round])?;
            // Not unlocked before it was seen.
            hear(window.expect(0..0, Tag(3))?.from(second)?)?;
            lock.unlock()?;
        } else if me == second {
            let word = |index| -> Result<u32> {
                let lock = window.lock_shared(second)?;
                let mut word = [0];
                lock.get(second, index, &mut word)?;
                lock.unlock()?;
                Ok(word[0])
            };
            while word(FAR)? != round {
                world.link().relax();
            }
            check("flushed before", word(0)?, round)?;
            window.put_notify(FIRST, 0, &[], Tag(3))?;
        }
    }
    Ok(())
}

/// A rank has several locks, and gives them back in another order.
pub(super) fn nested<L: Link>(world: &World<'_, L>) -> Result {
    let size = world.size();
    let last = Rank::new(size - 1);
    let window = world.allocate::<u32>(FAR + 1)?;
    let first = window.lock_exclusive(FIRST)?;
    if last != FIRST {
        let second = window.lock_queued(last)?;
        let count = both(&second, last)?;
        second.put(last, 0, &[count + 1])?;
        second.put(last, FAR, &[count + 1])?;
        first.unlock()?;
        second.unlock()?;
    } else {
        first.unlock()?;
    }
    // The rank is not counted as an exclusive one any more.
    world.barrier()?;
    let all = window.lock_all()?;
    let expected = if size > 1 { u32::from(size) } else { 0 };
    check("increments", both(&all, last)?, expected)?;
    Ok(all.unlock()?)
}

/// Locks of one window are none of another.
pub(super) fn windows<L: Link>(world: &World<'_, L>) -> Result {
    let windows = [world.allocate::<u32>(1)?, world.allocate::<u32>(1)?];
    let [one, other] = &windows;
    if world.rank() == FIRST {
        let outer = one.lock_exclusive(FIRST)?;
        world.barrier()?;
        // The others are past this one's lock.
        world.barrier()?;
        let inner = other.lock_all()?;
        inner.unlock()?;
        outer.put(FIRST, 0, &[1])?;
        outer.unlock()?;
    } else {
        world.barrier()?;
        let lock = other.lock_exclusive(FIRST)?;
        lock.unlock()?;
        world.barrier()?;
    }
    Ok(())
}

/// Bad calls are error values, and change nothing.
pub(super) fn misuse<L: Link>(world: &World<'_, L>) -> Result {
    fn fails<L: Link>(locked: Locked<'_, '_, u32, L>, error: Error) -> Result {
        let Err(late) = locked else {
            return Err(NO_ERROR);
        };
        check("error", late.error == error, true)?;
        Ok(late.handle.cancel()?)
    }
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(1)?;
    let nobody = Rank::new(size);
    let unknown = Error::NoSuchRank { rank: nobody, size };
    for how in [How::Shared, How::Exclusive, How::Queued] {
        refuses("nobody", how.locking(&window, nobody).map(drop), unknown)?;
        let lock = how.lock(&window, me)?;
        for again in [How::Shared, How::Exclusive, How::Queued] {
            let locking = again.locking(&window, me)?;
            fails(locking.wait_within(ANY), Error::LockedTwice(me))?;
        }
        fails(window.locking_all().wait_within(ANY), Error::EpochOpen)?;
        let group = [me];
        refuses("start", window.start(group).map(drop), Error::EpochOpen)?;
        let mut word = [0];
        let end = Error::OutOfRange { end: 2, len: 1 };
        refuses("range", lock.get(me, 1, &mut word), end)?;
        if size > 1 {
            let other = me.next(size);
            let stranger = Error::NotInGroup(other);
            refuses("another target", lock.put(other, 0, &[1]), stranger)?;
            refuses("another target", lock.flush(other), stranger)?;
        }
        lock.unlock()?;
    }
    let all = window.lock_all()?;
    let other = me.next(size);
    fails(window.locking_all().wait_within(ANY), Error::EpochOpen)?;
    fails(
        window.locking_shared(me)?.wait_within(ANY),
        Error::EpochOpen,
    )?;
    fails(
        window.locking_exclusive(other)?.wait_within(ANY),
        Error::EpochOpen,
    )?;
    refuses("nobody", all.put(nobody, 0, &[1]), unknown)?;
    refuses("nobody", all.flush(nobody), unknown)?;
    let last = Rank::new(u16::MAX);
    let unknown = Error::NoSuchRank { rank: last, size };
    refuses("the last number", all.flush(last), unknown)?;
    refuses("the last number", all.put(last, 0, &[1]), unknown)?;
    all.unlock()?;
    let group = [me];
    let exposure = window.post(group)?;
    refuses("sync", window.sync(), Error::Exposed)?;
    let access = window.start(group)?;
    fails(
        window.locking_shared(me)?.wait_within(ANY),
        Error::EpochOpen,
    )?;
    fails(
        window.locking_exclusive(other)?.wait_within(ANY),
        Error::EpochOpen,
    )?;
    fails(window.locking_all().wait_within(ANY), Error::EpochOpen)?;
    access.complete()?;
    exposure.wait()?;
    // Posted and locked at the same time.
    let exposure = window.post(group)?;
    let lock = window.lock_exclusive(me)?;
    refuses("own store", window.local().set(0, 9), Error::Exposed)?;
    lock.unlock()?;
    let access = window.start(group)?;
    access.put(me, 0, &[4])?;
    access.complete()?;
    exposure.wait()?;
    check("what was put", window.local().get(0)?, 4_u32)?;
    window.lock_exclusive(me)?.unlock()?;
    // Dropped while it is held: nobody else hangs, but this rank has made a mistake.
    let broken = world.allocate::<u32>(1)?;
    drop(broken.lock_exclusive(FIRST)?);
    fails(broken.locking_all().wait_within(ANY), Error::EpochAbandoned)
}

/// As many locks as a rank can have: one more is an error, and changes nothing.
pub(super) fn too_many<L: Link>(world: &World<'_, L>) -> Result {
    const MAX: usize = 8;
    let window = world.allocate::<u32>(1)?;
    let ninth = Rank::new(MAX as u16);
    if world.rank() == FIRST {
        let mut locks = [const { None }; MAX];
        for (target, lock) in (0..).map(Rank::new).zip(&mut locks) {
            *lock = Some(window.lock_shared(target)?);
        }
        for how in [How::Shared, How::Exclusive, How::Queued] {
            let Err(late) = how.locking(&window, ninth)?.wait_within(ANY) else {
                return Err(NO_ERROR);
            };
            let full = Error::TooManyLocks { max: MAX as u8 };
            check("ninth", late.error == full, true)?;
            let Err(again) = late.handle.wait_within(ANY) else {
                return Err(NO_ERROR);
            };
            check("again", again.error == full, true)?;
            again.handle.cancel()?;
        }
        // Others are not kept out of the one that was refused, and those that are held are held.
        world.barrier()?;
        world.barrier()?;
        if let Some(lock) = locks[3].take() {
            lock.put(Rank::new(3), 0, &[5])?;
            lock.unlock()?;
        }
        window.lock_queued(ninth)?.unlock()?;
        for lock in locks.into_iter().flatten() {
            lock.unlock()?;
        }
    } else {
        world.barrier()?;
        if world.rank() == ninth {
            window.lock_exclusive(ninth)?.unlock()?;
        }
        world.barrier()?;
    }
    world.barrier()?;
    let lock = window.lock_exclusive(Rank::new(3))?;
    finds("put", &lock, Rank::new(3), 0, [5])?;
    Ok(lock.unlock()?)
}

/// Small cases, to be tried in every schedule.
pub(super) mod small {
    use flagpost::{Link, Rma as _};

    use super::{FIRST, How, Words};
    use crate::{Result, context::check};

    /// Reads two words that only change together.
    fn look<L: Link>(window: &Words<'_, L>, how: How) -> Result<u32> {
        let lock = how.lock(window, FIRST)?;
        let mut seen = [0; 2];
        lock.get(FIRST, 0, &mut seen)?;
        lock.unlock()?;
        check("both words", seen[0], seen[1])?;
        Ok(seen[0])
    }

    /// Counts; who comes last finds all others' counts.
    pub(in crate::cases) fn change<L: Link>(window: &Words<'_, L>, how: How) -> Result {
        let lock = how.lock(window, FIRST)?;
        let mut seen = [0; 2];
        lock.get(FIRST, 0, &mut seen)?;
        check("both words", seen[0], seen[1])?;
        lock.put(FIRST, 0, &[seen[0] + 1; 2])?;
        Ok(lock.unlock()?)
    }

    /// Rank 1 writes; the others read, and lock as `how` says.
    pub(in crate::cases) fn looks<L: Link>(window: &Words<'_, L>, how: How) -> Result {
        match window.world().rank().get() {
            1 => change(window, How::Exclusive),
            _ => look(window, how).map(drop),
        }
    }

    /// The piece's owner counts through its cache.
    pub(in crate::cases) fn own<L: Link>(window: &Words<'_, L>) -> Result {
        if window.world().rank() != FIRST {
            return change(window, How::Exclusive);
        }
        let lock = window.lock_exclusive(FIRST)?;
        let local = window.local();
        let count = local.get(0)?;
        check("both words", local.get(1)?, count)?;
        local.copy_in(0, &[count + 1; 2])?;
        Ok(lock.unlock()?)
    }
}

/// What was flushed is there for whoever is told by any means: here by a slot, which is ordered
/// behind nothing.
pub(super) fn flush_tells<L: Link>(world: &World<'_, L>) -> Result {
    const LEN: usize = 12;
    let (link, second) = (world.link(), Rank::new(1));
    let window = world.allocate::<u32>(LEN)?;
    let told = link.allocate_slots(Slots::Count(1))?;
    world.barrier()?;
    for round in 1..=4_u32 {
        match world.rank().get() {
            0 => {
                let lock = window.lock_all()?;
                lock.put(second, 0, &[round; LEN])?;
                match round % 2 {
                    0 => lock.flush_all()?,
                    _ => lock.flush(second)?,
                }
                insist(link, || link.signal(second, told, round))?;
                lock.unlock()?;
            }
            1 => {
                while !link.reached(told, round)? {
                    link.relax();
                }
                window.sync()?;
                holds("what was flushed", &window.local(), 0, [round; LEN])?;
            }
            _ => {}
        }
        world.barrier()?;
    }
    link.withdraw(told);
    Ok(())
}
