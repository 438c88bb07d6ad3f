//! Signals: counters that peers set and add to, and that are compared.

use flagpost::{Compare, Counter, Error, Link, Rank, Signal, Waiting, Window, World};

use flagpost_link::Word as _;

use super::handles::{NONE, timed_out};
use super::steps::{FIRST, NO_ERROR, neighbours};
use crate::{Result, context::check};

/// Each comparison waits for the value that makes it true, and finds the data.
pub(super) fn compared<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, _) = neighbours(world);
    let mut window = world.allocate::<u32>(40)?;
    window.set_num_notify(3)?;
    let rounds = [
        (Compare::Eq, 7, Signal(1).set(7.into()), 7_u32),
        (Compare::Ne, 7, Signal(1).set(3.into()), 3),
        (Compare::Gt, 8, Signal(1).add(6.into()), 9),
        (Compare::Ge, 11, Signal(1).add(2.into()), 11),
        (Compare::Lt, 11, Signal(1).add(L::Word::MAX), 10),
        (Compare::Le, 9, Signal(1).set(0.into()), 0),
    ];
    for (round, (compare, value, signal, expected)) in (1_u32..).zip(rounds) {
        // An own store in the range's lines, at the other end of it.
        window.local().set(39, round)?;
        world.barrier()?;
        let before = window.signal_fetch(Signal(1))?;
        check("not yet", compare.holds(before, value.into()), false)?;
        world.barrier()?; // all have looked
        window.put_notify(next, 0, &[round * 10; 9], signal)?;
        let found = window.wait_until(0..40, Signal(1), compare, value.into())?;
        check("value", found, expected)?;
        check("first word", window.local().get(0)?, round * 10)?;
        check("last word", window.local().get(8)?, round * 10)?;
        check("own word", window.local().get(39)?, round)?;
        check("fetched", window.signal_fetch(Signal(1))?, expected)?;
        check("the other ones", window.signal_fetch(Signal(0))?, 0_u32)?;
    }
    // True already: nobody is waited for.
    let found = window.wait_until(0..0, Signal(1), Compare::Eq, 0.into())?;
    check("at once", found, 0_u32)
}

/// Values of all bits that a word has go round the ring, so that ranks wait for each: some differ
/// in the high half only, and one sum is carried into that.
pub(super) fn wide<L: Link>(world: &World<'_, L>) -> Result {
    let me = world.rank();
    let next = me.next(world.size());
    let mut window = world.allocate::<u32>(0)?;
    window.set_num_notify(1)?;
    let set = [1 << 32, 1 << 40, 1 << 63, (1 << 63) + 7, u32::MAX.into()];
    let set = set.map(|value| (Signal(0).set(L::Word::low(value)), L::Word::low(value)));
    let carried = (Signal(0).add(1.into()), L::Word::low(1 << 32));
    for (signal, value) in set.into_iter().chain([carried]) {
        if me == FIRST {
            window.notify(next, signal)?;
        }
        window.wait_until(0..0, Signal(0), Compare::Eq, value)?;
        if me != FIRST {
            window.notify(next, signal)?;
        }
        world.barrier()?;
        check("value", window.signal_fetch(Signal(0))?, value)?;
        check("value", window.notify_value(Counter(0))?, value)?;
        world.barrier()?; // all have looked
    }
    check("swapped", window.reset_notify_value(Counter(0))?, carried.1)
}

/// Tried in every schedule.
pub(super) mod small {
    use super::*;

    type Words<'w, L> = Window<'w, u32, L>;

    /// A word comes with a signal; the own word of the other line stays.
    pub(crate) fn put<L: Link>(window: &Words<'_, L>) -> Result {
        if window.world().rank() != FIRST {
            return Ok(window.put_notify(FIRST, 0, &[7], Signal(0).set(5.into()))?);
        }
        let own = window.len() - 1;
        window.local().set(own, 3)?;
        let found = window.wait_until(0..own + 1, Signal(0), Compare::Ne, 0.into())?;
        check("signal", found, 5_u32)?;
        check("put", window.local().get(0)?, 7_u32)?;
        check("own word", window.local().get(own)?, 3_u32)
    }

    /// One sets, the other adds: the sum says in which order.
    pub(crate) fn set_and_add<L: Link>(window: &Words<'_, L>) -> Result {
        let world = window.world();
        match world.rank().get() {
            0 => window.set_notify_value(Counter(0), 16.into())?,
            _ => window.notify(FIRST, Counter(0))?,
        }
        world.barrier()?;
        if world.rank() == FIRST {
            let found = window.signal_fetch(Signal(0))?;
            check(
                "set, then added, or the other way",
                found == 16.into() || found == 17.into(),
                true,
            )?;
        }
        Ok(())
    }
}

/// Calls about own words get through, repeated with a budget of nothing, whatever way an answer
/// has.
pub(super) fn looks<L: Link>(world: &World<'_, L>) -> Result {
    /// More calls than locks that others hold take, or a slow wire.
    const MOST: usize = 1000;
    fn repeated<T>(call: impl FnMut() -> Result<T, Error>) -> Result<T> {
        let mut results = core::iter::repeat_with(call).take(MOST);
        let late = |result: &Result<T, Error>| !matches!(result, Err(Error::Timeout(_)));
        Ok(results.find(late).ok_or(NO_ERROR)??)
    }
    let (me, size) = (world.rank(), world.size());
    let events = world.events(1)?;
    let mut window = world.allocate::<u32>(1)?;
    window.set_num_notify(1)?;
    window.notify(me.next(size), Signal(0).set(7.into()))?;
    events.post(me.next(size), 0)?;
    world.barrier()?; // all is there
    let now = |call: &mut dyn FnMut() -> Result<L::Word, Error>| {
        repeated(|| world.within(NONE, &mut *call))
    };
    let seven = now(&mut || window.wait_until(0..1, Signal(0), Compare::Eq, 7.into()))?;
    check("waited for", seven, 7_u32)?;
    check(
        "signal",
        now(&mut || window.signal_fetch(Signal(0)))?,
        7_u32,
    )?;
    check("posts", now(&mut || events.query(0))?, 1_u32)?;
    repeated(|| world.within(NONE, || events.wait(0, 1)))?;
    check("taken", now(&mut || events.query(0))?, 0_u32)?;
    // A value that is not there ends the wait as it should.
    let never = || window.wait_until(0..1, Signal(0), Compare::Eq, 8.into());
    timed_out(world.within(NONE, never), Waiting::Notification, 1, &[])?;
    window.local().set(0, 1)?; // no line is left closed
    Ok(world.barrier()?)
}

/// A rank without counters is no target of signals.
pub(super) fn refused<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let mut window = world.allocate::<u32>(1)?;
    window.set_num_notify(u32::from(me == FIRST))?;
    let last = Rank::new(size - 1);
    if last != FIRST {
        let none = Error::NoSuchCounter {
            rank: last,
            index: 0,
            count: 0,
        };
        let put = window.put_notify(last, 0, &[5], Signal(0).set(1.into()));
        super::steps::refused("put", put, none)?;
    }
    world.barrier()?;
    window.sync()?;
    check("no byte has moved", window.local().get(0)?, 0_u32)
}
