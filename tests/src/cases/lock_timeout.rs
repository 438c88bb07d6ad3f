//! Budgets that run out while a lock is waited for: it can go on, be cancelled, or be dropped, and
//! nobody hangs.

use flagpost::{Budget, Error, Link, Rank, Rma as _, Waiting, World, epoch::Locking};

use super::handles::{SHORT, unless_early};
use super::lock::How;
use super::steps::{FIRST, NO_ERROR, SECOND, THIRD, finds, refused};
use super::timeout::{await_go, go};
use crate::{Result, context::check};

type Waits<'e, 'w, L> = Locking<'e, 'w, u32, L>;

/// The handle of a lock that is waited for too long, which rank `holder` has exclusively.
fn late_of<'e, 'w, L: Link>(lock: Waits<'e, 'w, L>, holder: Rank) -> Result<Waits<'e, 'w, L>> {
    late_for(lock, SHORT, Waiting::Holder, Some(holder))
}

/// As [`late_of`], which others share: whose piece it is is named as `named`.
fn late<'e, 'w, L: Link>(lock: Waits<'e, 'w, L>, named: Option<Rank>) -> Result<Waits<'e, 'w, L>> {
    late_for(lock, SHORT, Waiting::Unlock, named)
}

/// As [`late`], of one that stands in the queue behind rank `before`.
fn late_behind<'e, 'w, L: Link>(lock: Waits<'e, 'w, L>, before: Rank) -> Result<Waits<'e, 'w, L>> {
    late_for(lock, SHORT, Waiting::Queue, Some(before))
}

fn late_for<'e, 'w, L: Link>(
    lock: Waits<'e, 'w, L>,
    budget: Budget,
    waiting: Waiting,
    named: Option<Rank>,
) -> Result<Waits<'e, 'w, L>> {
    // The owner is named until its words have told which rank has the lock, or is before this one:
    // where accesses take effect at once, within the first budget.
    let is_early = |late| {
        late == Waiting::Answer
            || !L::DIRECT && waiting != Waiting::Unlock && late == Waiting::Unlock
    };
    let late = unless_early(lock, budget, is_early).err().ok_or(NO_ERROR)?;
    match late.error {
        Error::Timeout(timeout) if timeout.waiting == waiting => {
            check("named", timeout.missing.ranks().eq(named), true)?;
            Ok(late.handle)
        }
        other => Err(other.into()),
    }
}

/// Rank 0 has the piece of rank 1 exclusively; rank 1 wants it in each way, gives up, and goes on.
pub(super) fn locked<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(2)?;
    let me = world.rank();
    for how in [How::Shared, How::Exclusive, How::Queued] {
        if me == FIRST {
            let lock = window.lock_exclusive(SECOND)?;
            lock.put(SECOND, 1, &[3])?;
            go(&window, SECOND)?;
            await_go(&window, SECOND)?;
            lock.unlock()?;
            await_go(&window, SECOND)?;
            // Nothing is left of what was cancelled.
            window.lock_exclusive(SECOND)?.unlock()?;
            window.lock_all()?.unlock()?;
            go(&window, SECOND)?;
        } else if me == SECOND {
            await_go(&window, FIRST)?;
            late_of(how.locking(&window, SECOND)?, FIRST)?.cancel()?;
            drop(late_of(how.locking(&window, SECOND)?, FIRST)?);
            let waiting = late_of(how.locking(&window, SECOND)?, FIRST)?;
            let waiting = late_of(waiting, FIRST)?;
            go(&window, FIRST)?;
            let lock = waiting.wait()?;
            finds("what was put", &lock, SECOND, 1, [3])?;
            lock.unlock()?;
            go(&window, FIRST)?;
            await_go(&window, FIRST)?;
        }
    }
    Ok(())
}

/// All pieces and one exclusively, each while the other is locked.
pub(super) fn locked_all<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(2)?;
    let me = world.rank();
    let pairs = [
        (How::All, How::Exclusive, Some(FIRST)),
        (How::All, How::Queued, Some(FIRST)),
        (How::Shared, How::Exclusive, Some(FIRST)),
        (How::Exclusive, How::All, None),
    ];
    for (has, wants, named) in pairs {
        if me == FIRST {
            let lock = has.lock(&window, FIRST)?;
            go(&window, SECOND)?;
            await_go(&window, SECOND)?;
            lock.unlock()?;
            await_go(&window, SECOND)?;
            for how in [How::Exclusive, How::All, How::Queued] {
                how.lock(&window, FIRST)?.unlock()?;
            }
            go(&window, SECOND)?;
        } else if me == SECOND {
            await_go(&window, FIRST)?;
            late(wants.locking(&window, FIRST)?, named)?.cancel()?;
            drop(late(wants.locking(&window, FIRST)?, named)?);
            let waiting = late(wants.locking(&window, FIRST)?, named)?;
            // One at a time.
            refused(
                "waits already",
                window.lock_shared(SECOND),
                Error::EpochOpen,
            )?;
            go(&window, FIRST)?;
            waiting.wait()?.unlock()?;
            go(&window, FIRST)?;
            await_go(&window, FIRST)?;
        }
    }
    Ok(())
}

/// Rank 1 waits to lock what rank 0 shares: rank 2 does not share it as well, unless it has another
/// lock, before rank 1 has given up or had its turn.
pub(super) fn turn<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(2)?;
    let other = world.allocate::<u32>(1)?;
    let pairs = [
        (How::Shared, How::Exclusive),
        (How::Shared, How::Queued),
        (How::All, How::Exclusive),
        (How::All, How::Queued),
    ];
    for (round, (reads, writes)) in (1..).zip(pairs) {
        let named = (reads == How::Shared).then_some(FIRST);
        let short = |how: How, named| late(how.locking(&window, FIRST)?, named);
        // Over a network the word that keeps readers out takes a while to come.
        let keeps_out = || {
            let waiting = short(writes, Some(FIRST))?;
            if L::DIRECT {
                return Ok(waiting);
            }
            late_for(
                waiting,
                Budget::microseconds(3000),
                Waiting::Unlock,
                Some(FIRST),
            )
        };
        match world.rank().get() {
            0 => {
                let lock = reads.lock(&window, FIRST)?;
                go(&window, SECOND)?;
                await_go(&window, THIRD)?;
                lock.unlock()?;
            }
            1 => {
                await_go(&window, FIRST)?;
                let waiting = keeps_out()?;
                go(&window, THIRD)?;
                await_go(&window, THIRD)?;
                waiting.cancel()?;
                go(&window, THIRD)?;
                await_go(&window, THIRD)?;
                let waiting = keeps_out()?;
                go(&window, THIRD)?;
                let lock = waiting.wait()?;
                lock.put(FIRST, 1, &[round])?;
                lock.unlock()?;
            }
            2 => {
                await_go(&window, SECOND)?;
                let waiting = short(reads, named)?;
                let again = late(waiting, named)?;
                go(&window, SECOND)?;
                await_go(&window, SECOND)?;
                again.wait()?.unlock()?;
                go(&window, SECOND)?;
                await_go(&window, SECOND)?;
                // Somebody may wait for a rank that has a lock: it waits for nobody that waits.
                let first = other.lock_shared(SECOND)?;
                reads.lock(&window, FIRST)?.unlock()?;
                first.unlock()?;
                // Nor does it where it had begun to wait before it got that one.
                let waiting = short(reads, named)?;
                let second = other.lock_shared(SECOND)?;
                waiting.wait()?.unlock()?;
                second.unlock()?;
                let waiting = short(reads, named)?;
                go(&window, FIRST)?;
                let lock = waiting.wait()?;
                finds("what the writer put", &lock, FIRST, 1, [round])?;
                lock.unlock()?;
            }
            _ => {}
        }
        world.barrier()?;
    }
    window.lock_all()?.unlock()?;
    Ok(())
}

/// Rank 1 leaves the queue between ranks 0 and 2, and comes again.
pub(super) fn queue<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(2)?;
    let increment = |lock: flagpost::epoch::Lock<'_, '_, u32, L>| -> Result {
        let mut word = [0];
        lock.get(FIRST, 0, &mut word)?;
        lock.put(FIRST, 0, &[word[0] + 1])?;
        Ok(lock.unlock()?)
    };
    for round in 1..=2_u32 {
        match world.rank().get() {
            0 => {
                let lock = window.lock_queued(FIRST)?;
                go(&window, SECOND)?;
                await_go(&window, THIRD)?;
                go(&window, SECOND)?;
                await_go(&window, SECOND)?;
                increment(lock)?;
                await_go(&window, SECOND)?;
                await_go(&window, THIRD)?;
                let lock = window.lock_queued(FIRST)?;
                finds("increments", &lock, FIRST, 0, [3 * round])?;
                lock.unlock()?;
                go(&window, SECOND)?;
                go(&window, THIRD)?;
            }
            1 => {
                await_go(&window, FIRST)?;
                let waiting = late_behind(window.locking_queued(FIRST)?, FIRST)?;
                let waiting = late_behind(waiting, FIRST)?;
                go(&window, THIRD)?;
                await_go(&window, FIRST)?;
                waiting.cancel()?;
                // Its turn was not passed over yet.
                late(window.locking_queued(FIRST)?, Some(FIRST))?.cancel()?;
                go(&window, FIRST)?;
                increment(window.lock_queued(FIRST)?)?;
                go(&window, FIRST)?;
                await_go(&window, FIRST)?;
            }
            2 => {
                await_go(&window, SECOND)?;
                let waiting = late_behind(window.locking_queued(FIRST)?, SECOND)?;
                go(&window, FIRST)?;
                increment(waiting.wait()?)?;
                go(&window, FIRST)?;
                await_go(&window, FIRST)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A lock that is dropped while it is held lets others in.
pub(super) fn dropped<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(2)?;
    match world.rank().get() {
        0 => {
            let lock = window.lock_exclusive(SECOND)?;
            go(&window, SECOND)?;
            await_go(&window, SECOND)?;
            lock.put(SECOND, 0, &[4])?;
            drop(lock);
        }
        1 => {
            await_go(&window, FIRST)?;
            let waiting = late_of(window.locking_exclusive(SECOND)?, FIRST)?;
            go(&window, FIRST)?;
            let lock = waiting.wait()?;
            finds("what was put", &lock, SECOND, 0, [4])?;
            lock.unlock()?;
        }
        _ => {}
    }
    Ok(())
}
