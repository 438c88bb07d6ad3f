//! Progress: a call waits only for what it is about.
//!
//! A rank whose queue of notifications is full goes on with all other calls, and so do its peers.
//! And a rank that polls by some call, whichever, makes progress for those that flush to it.

use flagpost::{
    EpochSlots, Link, Model, Rank, Rma as _, Tag, Window, World,
    epoch::{Assert, Lock},
    rma::Operation,
};

use super::steps::{finds, hear, neighbours};
use crate::{Result, context::check};

/// Elements of the window.
const WORDS: usize = 80;

/// Every rank notifies the next one more often than its queue has room for. Nobody takes any; all
/// other calls still return.
pub(super) fn full_queues<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, before) = neighbours(world);
    let many: u16 = if world.size() == 2 { 65 } else { 40 };
    let window = world.allocate::<u64>(WORDS)?;
    for number in 0..many {
        window.put_notify(next, number.into(), &[number.into()], Tag(1))?;
    }
    let mut all = [0; 3];
    let all = all.get_mut(..world.size().into()).unwrap_or_default();
    world.allgather(me.get(), all)?;
    check("gathered", all.iter().copied().eq(0..world.size()), true)?;
    let mut told = [u64::from(me.get()) + 7];
    world.broadcast(Rank::new(1), &mut told)?;
    check("broadcast", told[0], 8_u64)?;
    let other = world.allocate::<u32>(4)?;
    let lock = other.lock_exclusive(next)?;
    lock.put(next, 0, &[5])?;
    lock.flush(next)?;
    finds("got under the lock", &lock, next, 0, [5])?;
    lock.unlock()?;
    world.barrier()?;
    let epoch = other.fence(Assert::empty())?;
    epoch.put(next, 1, &[9])?;
    epoch.end()?;
    check("put in an epoch", other.local().get(1)?, 9_u32)?;
    hear(window.expect(0..WORDS, Tag(1))?.from(before)?.times(many)?)?;
    for number in 0..many {
        let found = window.local().get(number.into())?;
        check("what was put", found, u64::from(number))?;
    }
    Ok(world.barrier()?)
}

/// Where memory is accessed directly, a notified put for which there is no room has not moved a
/// byte of its data.
pub(super) fn refused<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(WORDS)?;
    window.set_inline(false);
    let me = world.rank();
    let lock = window.lock_all()?;
    if me == ZERO {
        let mut many = 0;
        loop {
            let data = [many + 1; 24];
            let mut put = window.to(ONE, 16).notify(Tag(1)).put(&data)?;
            let has_left = put.test()?;
            many += 1;
            if !has_left {
                let mut found = [many - 1];
                // Elsewhere what has begun may be on its way.
                if L::DIRECT {
                    lock.get(ONE, 16, &mut found)?;
                }
                check("untouched", found[0], many - 1)?;
                lock.fetch_and_op(ONE, 0, many, Operation::REPLACE)?;
                put.wait()?;
                break;
            }
        }
        lock.unlock()?;
    } else if me == ONE {
        let many = loop {
            match fetch(&lock, &window)? {
                0 => world.link().relax(),
                many => break many,
            }
        };
        let told = window.expect(0..WORDS, Tag(1))?.from(ZERO)?;
        hear(told.times(many as u16)?)?;
        check("the last one", window.local().get(16)?, many)?;
        lock.unlock()?;
    } else {
        lock.unlock()?;
    }
    Ok(world.barrier()?)
}

/// A flush meets the target that takes the notification: whoever of the two puts the data in their
/// place, both find them there.
pub(super) fn flushed_while_taken<L: Link>(world: &World<'_, L>) -> Result {
    const ROUNDS: u32 = 40;
    let window = world.allocate::<u32>(WORDS)?;
    let me = world.rank();
    if me == ZERO {
        let lock = window.lock_all()?;
        for round in 1..=ROUNDS {
            window.put_notify(ONE, 0, &[round], Tag(1))?;
            lock.flush(ONE)?;
            finds("what was flushed", &lock, ONE, 0, [round])?;
            hear(window.expect(0..0, Tag(1))?.from(ONE)?)?;
        }
        lock.unlock()?;
    } else if me == ONE {
        for round in 1..=ROUNDS {
            hear(window.expect(0..1, Tag(1))?.from(ZERO)?)?;
            check("what was put", window.local().get(0)?, round)?;
            window.notify(ZERO, Tag(1))?;
        }
    }
    Ok(world.barrier()?)
}

/// What a rank finds in a word of its own, by some call.
pub(super) type Poll<L> = fn(&Lock<'_, '_, u32, L>, &Window<'_, u32, L>) -> Result<u32>;

const ZERO: Rank = Rank::new(0);
const ONE: Rank = Rank::new(1);

/// Rank 1 polls for a word that rank 0 stores only after a flush of what it has sent inline.
pub(super) fn polled<L: Link>(world: &World<'_, L>, model: Model, poll: Poll<L>) -> Result {
    let window = world.allocate_with::<u32, EpochSlots<'_>>(WORDS, model)?;
    let me = world.rank();
    let lock = window.lock_all()?;
    if me == ZERO {
        window.put_notify(ONE, 16, &[4], Tag(1))?;
        lock.flush(ONE)?;
        lock.fetch_and_op(ONE, 0, 1, Operation::REPLACE)?;
    } else if me == ONE {
        while poll(&lock, &window)? == 0 {
            world.link().relax();
        }
    }
    lock.unlock()?;
    if me == ONE {
        hear(window.expect(16..17, Tag(1))?.from(ZERO)?)?;
        check("what was put", window.local().get(16)?, 4_u32)?;
    }
    Ok(world.barrier()?)
}

/// By a get.
pub(super) fn get<L: Link>(lock: &Lock<'_, '_, u32, L>, _: &Window<'_, u32, L>) -> Result<u32> {
    let mut word = [0];
    lock.get(ONE, 0, &mut word)?;
    let [word] = word;
    Ok(word)
}

/// By an atomic operation.
pub(super) fn fetch<L: Link>(lock: &Lock<'_, '_, u32, L>, _: &Window<'_, u32, L>) -> Result<u32> {
    Ok(lock.fetch_and_op(ONE, 0, 0, Operation::NO_OP)?)
}

/// By flushes, mostly.
pub(super) fn flush<L: Link>(
    lock: &Lock<'_, '_, u32, L>,
    window: &Window<'_, u32, L>,
) -> Result<u32> {
    for _ in 0..20 {
        lock.flush(ZERO)?;
    }
    get(lock, window)
}

/// By loads of own memory.
pub(super) fn local<L: Link>(_: &Lock<'_, '_, u32, L>, window: &Window<'_, u32, L>) -> Result<u32> {
    Ok(window.local().get(0)?)
}

/// By loads of a piece of memory that is used directly.
pub(super) fn peer<L: Link>(_: &Lock<'_, '_, u32, L>, window: &Window<'_, u32, L>) -> Result<u32> {
    Ok(window.peer(ONE)?.get(0)?)
}

/// A rank that waits for the notification of one rank lets the long data of another one through,
/// without which that notification does not come.
pub(super) fn through<L: Link>(world: &World<'_, L>) -> Result {
    const LONG: usize = 600;
    const TWO: Rank = Rank::new(2);
    static DATA: [u32; LONG] = [7; LONG];
    let window = world.allocate::<u32>(LONG)?;
    match world.rank() {
        ZERO => {
            let told = window.expect(0..0, Tag(1))?.from(ONE)?;
            for mut told in [told, window.expect(0..LONG, Tag(2))?] {
                told.start()?;
                told.wait()?;
            }
            let mut found = (0..LONG).map(|index| window.local().get(index));
            check("what came", found.all(|word| word == Ok(7)), true)?;
        }
        ONE => {
            hear(window.expect(0..0, Tag(1))?.from(TWO)?)?;
            window.notify(ZERO, Tag(1))?;
        }
        TWO => {
            window.put_notify(ZERO, 0, &DATA, Tag(2))?;
            window.notify(ONE, Tag(1))?;
        }
        _ => {}
    }
    Ok(world.barrier()?)
}
