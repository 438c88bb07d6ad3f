//! Notification counters.

use flagpost::{
    Budget, Compare, Counter, EpochSlots, Error, Link, Model, Rank, Signal, Unfinished, Window,
    World, rma::Operation,
};

use flagpost_link::Word as _;

use super::steps::{FIRST, NO_ERROR, neighbours, refused, too_much};
use crate::{Result, context::check};

/// How many counters a rank has where numbers differ: 0 on some.
fn number(rank: Rank) -> u32 {
    (u32::from(rank.get()) + 1) % 3
}

/// A token goes round, told by a counter; all that tells, one after the other.
pub(super) fn ring<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let mut window = world.allocate::<u64>(4)?;
    window.set_num_notify(2)?;
    let of = |rank: Rank, round: u64| 100 * u64::from(rank.get()) + round;
    let mut arrived = window.expect_count(0..4, Counter(1), 4)?;
    for round in 1..=3_u64 {
        arrived.start()?;
        world.barrier()?; // the neighbour has started, too
        let at = |index| window.to(next, index).notify(Counter(1));
        window.put_notify(next, 0, &[of(me, round)], Counter(1))?;
        at(1)
            .accumulate(&[of(me, round)], Operation::REPLACE)?
            .wait()?;
        at(2).put(&[of(me, round)])?.wait()?;
        window.notify(next, Counter(1))?;
        check("counted", arrived.wait()?, 4_u32)?;
        for index in 0..3 {
            check("data", window.local().get(index)?, of(prev, round))?;
        }
        check("taken", window.reset_notify_value(Counter(1))?, 4_u32)?;
        check("reset", window.notify_value(Counter(1))?, 0_u32)?;
        check("the other one", window.notify_value(Counter(0))?, 0_u32)?;
    }
    Ok(())
}

/// Everybody counts at everybody; each finds all, and all data.
pub(super) fn everybody<L: Link>(world: &World<'_, L>) -> Result {
    const ROUNDS: u32 = 2;
    let (me, size) = (world.rank(), world.size());
    let ranks = u32::from(size);
    let mut window = world.allocate::<u32>(usize::from(size))?;
    window.set_num_notify(1)?;
    let mut all = window.expect_count(0..window.len(), Counter(0), ranks)?;
    for round in 1..=ROUNDS {
        all.start()?;
        world.barrier()?;
        for distance in 0..size {
            let to = me.ahead(distance, size);
            let value = round * (u32::from(me.get()) + 1);
            window.put_notify(to, me.index(), &[value], Counter(0))?;
        }
        check("all have counted", all.wait()?, ranks)?;
        for rank in 0..size {
            let found = window.local().get(usize::from(rank))?;
            check("put of each", found, round * (u32::from(rank) + 1))?;
        }
        check("counted", window.reset_notify_value(Counter(0))?, ranks)?;
    }
    Ok(())
}

/// Numbers differ, and are 0 on some ranks: an access is checked against its target's, before any
/// byte moves.
pub(super) fn differing<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let mut window = world.allocate::<u64>(2)?;
    for rank in (0..size).map(Rank::new) {
        check("before", window.num_notify(rank)?, 0_u32)?;
    }
    let none = |rank, index, count| Error::NoSuchCounter { rank, index, count };
    refused("none yet", window.notify_value(Counter(0)), none(me, 0, 0))?;
    window.set_num_notify(number(me))?;
    for rank in (0..size).map(Rank::new) {
        check("number", window.num_notify(rank)?, number(rank))?;
    }
    let stranger = Rank::new(size);
    let unknown = Error::NoSuchRank {
        rank: stranger,
        size,
    };
    refused("stranger", window.num_notify(stranger), unknown)?;
    for distance in 0..size.min(4) {
        let to = me.ahead(distance, size);
        let count = number(to);
        for index in [count, count + 1, u32::MAX] {
            let beyond = none(to, index, count);
            let put = window.put_notify(to, 0, &[7, 7], Counter(index));
            refused("put", put, beyond)?;
            let put = window
                .to(to, 0)
                .notify(Signal(index).set(1.into()))
                .put(&[7, 7]);
            refused("request", put.map(|_| ()), beyond)?;
            let mut into = [3];
            let get = window.get_notify(to, 0, &mut into, Counter(index));
            refused("get", get, beyond)?;
            check("not read", into[0], 3_u64)?;
            let sum = window
                .to(to, 0)
                .notify(Counter(index))
                .accumulate(&[7], Operation::SUM)
                .and_then(flagpost::rma::Request::wait);
            refused("accumulate", sum, beyond)?;
            refused("notify", window.notify(to, Counter(index)), beyond)?;
        }
        if count > 0 {
            window.notify(to, Counter(count - 1))?;
        }
    }
    world.barrier()?;
    window.sync()?;
    check("no byte has moved", window.local().get(0)?, 0_u64)?;
    check("no byte has moved", window.local().get(1)?, 0_u64)?;
    for index in 0..number(me) {
        let last = index + 1 == number(me);
        let expected = if last { u32::from(size.min(4)) } else { 0 };
        check("counted", window.notify_value(Counter(index))?, expected)?;
    }
    Ok(world.barrier()?)
}

/// New counters take the place of the former ones, and are 0 whatever their memory was.
pub(super) fn again<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, _) = neighbours(world);
    let mut window = world.allocate::<u64>(1)?;
    for round in 0..5_u32 {
        let count = 1 + (round + u32::from(me.get())) % 9;
        window.set_num_notify(count)?;
        for index in 0..count {
            check("new", window.notify_value(Counter(index))?, 0_u32)?;
        }
        world.barrier()?;
        for index in 0..window.num_notify(next)? {
            window.notify(next, Signal(index).set((70 + round).into()))?;
        }
        world.barrier()?;
        check("old", window.notify_value(Counter(count - 1))?, 70 + round)?;
    }
    window.set_num_notify(0)?;
    check("none", window.num_notify(next)?, 0_u32)?;
    let gone = Error::NoSuchCounter {
        rank: next,
        index: 0,
        count: 0,
    };
    refused("gone", window.notify(next, Counter(0)), gone)
}

/// One rank cannot have what it asks for: nobody gets anything, and all keep what they had.
pub(super) fn together<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, _) = neighbours(world);
    let mut window = world.allocate::<u64>(1)?;
    window.set_num_notify(2)?;
    window.set_notify_value(Counter(1), 30.into())?;
    world.barrier()?;
    window.notify(next, Counter(1))?;
    for bad in [Rank::new(0), Rank::new(world.size() - 1)] {
        for number in [u32::MAX, u32::MAX / 8, 1 << 24] {
            let asked = if me == bad { number } else { 5 };
            too_much(window.set_num_notify(asked), me, bad)?;
        }
    }
    check("number", window.num_notify(next)?, 2_u32)?;
    check("other value", window.notify_value(Counter(0))?, 0_u32)?;
    let mut one_more = window.expect_count(0..0, Counter(1), 31)?;
    one_more.start()?;
    check("value", one_more.wait()?, 31_u32)?;
    world.barrier()?;
    window.notify(next, Counter(0))?;
    window.wait_until(0..0, Signal(0), Compare::Eq, 1.into())?;
    window.set_num_notify(1)?;
    check("afterwards", window.notify_value(Counter(0))?, 0_u32)
}

/// Windows have counters of their own, of each kind; a window that is freed gives them back, and
/// the others stay.
pub(super) fn windows<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, _) = neighbours(world);
    let memory = world.reserve(64)?;
    let mut kept = world.allocate_with::<u64, EpochSlots<'_>>(1, Model::Unified)?;
    kept.set_num_notify(1)?;
    for round in 1..=4_u32 {
        let mut created = world.create::<u64>(&memory, 0..64, 8)?;
        created.set_num_notify(2)?;
        created.put_notify(next, 3, &[u64::from(round)], Counter(0))?;
        kept.notify(next, Counter(0))?;
        let mut arrived = created.expect_count(3..4, Counter(0), 1)?;
        arrived.start()?;
        arrived.wait()?;
        check("put", created.local().get(3)?, u64::from(round))?;
        check("not this one", created.notify_value(Counter(1))?, 0_u32)?;
        created.free()?;
    }
    let mut all = kept.expect_count(0..0, Counter(0), 4)?;
    all.start()?;
    check("of the other window", all.wait()?, 4_u32)?;
    let mut dynamic = world.dynamic(flagpost::DynamicOptions::default())?;
    dynamic.set_num_notify(1)?;
    dynamic.window().notify(next, Signal(0).add(3.into()))?;
    let seen = dynamic
        .window()
        .wait_until(0..0, Signal(0), Compare::Ge, 3.into())?;
    check("of the dynamic window", seen, 3_u32)?;
    dynamic.free()?;
    Ok(memory.release()?)
}

/// A window is not freed while a request of it waits; nor is it freed under its peers'
/// notifications.
pub(super) fn freed<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, _) = neighbours(world);
    let mut window = world.allocate::<u32>(2)?;
    window.set_num_notify(1)?;
    let mut request = window.expect_count(0..2, Counter(0), 1)?;
    request.start()?;
    let Err(Unfinished { handle, error }) = window.freeing().wait_within(Budget::UNLIMITED) else {
        return Err(NO_ERROR);
    };
    let window = handle.keep();
    check("started", error == Error::Exposed, true)?;
    // It is as it was.
    window.notify(next, Counter(0))?;
    window.wait_until(0..0, Signal(0), Compare::Eq, 1.into())?;
    for round in 1..=3_u32 {
        let mut other = world.allocate::<u32>(2)?;
        other.set_num_notify(1)?;
        check("new", other.notify_value(Counter(0))?, 0_u32)?;
        world.barrier()?;
        if me == FIRST {
            other.put_notify(next, 0, &[round], Counter(0))?;
        }
        // Counted or not: freeing waits for who counts.
        other.free()?;
        let memory = world.reserve(128)?;
        world.barrier()?;
        let mut words = [1_u32; 32];
        memory.read(0, &mut words)?;
        check("nobody stores there", words.iter().sum::<u32>(), 0_u32)?;
        memory.release()?;
    }
    Ok(())
}

/// Tried in every schedule.
pub(super) mod small {
    use super::*;

    type Words<'w, L> = Window<'w, u32, L>;

    /// A window of so many words, and a counter.
    pub(crate) fn counted<'w, L: Link>(
        world: &'w World<'w, L>,
        words: usize,
    ) -> Result<Words<'w, L>> {
        let mut window = world.allocate(words)?;
        window.set_num_notify(1)?;
        Ok(window)
    }

    /// Others put to rank 0, into one line, and count; the own word beside them is dirty when the
    /// request starts.
    pub(crate) fn count<L: Link>(window: &Words<'_, L>) -> Result {
        let world = window.world();
        let me = world.rank();
        if me != FIRST {
            let index = usize::from(me.get() - 1) & 1;
            return Ok(window.put_notify(FIRST, index, &[7], Counter(0))?);
        }
        let others = u32::from(world.size()) - 1;
        let mut all = window.expect_count(0..2, Counter(0), others)?;
        all.start()?;
        check("counted", all.wait()?, others)?;
        for index in 0..others as usize {
            check("put", window.local().get(index & 1)?, 7_u32)?;
        }
        Ok(())
    }

    /// Rank 0 takes what has been counted, while another counts.
    pub(crate) fn reset<L: Link>(window: &Words<'_, L>) -> Result {
        let world = window.world();
        if world.rank() != FIRST {
            return Ok(window.notify(FIRST, Counter(0))?);
        }
        let others = u32::from(world.size()) - 1;
        let early = window.reset_notify_value(Counter(0))?;
        check("not too many", early <= others.into(), true)?;
        let left = L::Word::from(others).wrapping_sub(early);
        if left > 0.into() {
            let seen = window.wait_until(0..0, Signal(0), Compare::Ge, left)?;
            check("the rest", seen, left)?;
        }
        check("all", window.notify_value(Counter(0))?, left)
    }

    /// New counters, in memory that was the former ones'.
    pub(crate) fn set<L: Link>(mut window: Words<'_, L>) -> Result {
        let world = window.world();
        let (me, size) = (world.rank(), world.size());
        window.set_num_notify(1 + u32::from(me.get()))?;
        window.notify(me.next(size), Counter(0))?;
        window.wait_until(0..0, Signal(0), Compare::Eq, 1.into())?;
        Ok(())
    }
}
