//! Requests for counters: waiting for several, giving up, own stores beside what is put, budgets
//! that run out.

use flagpost::{
    Compare, Counter, Error, Link, Signal, Tag, TagFilter, Unfinished, Waiting, World, test_any,
    wait_all, wait_any,
};

use flagpost_link::Word as _;

use super::handles::{SHORT, short, timed_out};
use super::steps::{FIRST, NO_ERROR, SECOND, neighbours, refused};
use super::timeout::{await_go, go};
use crate::{Result, context::check};

/// The own word beside the one that is put, in the request's lines: written back when the request
/// starts, refused until it is complete.
pub(super) fn shared_line<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, _) = neighbours(world);
    // Two words of a line, and one of another.
    let words = (L::LINE / 4).max(2);
    let mut window = world.allocate::<u32>(2 * words)?;
    window.set_num_notify(1)?;
    let local = window.local();
    let mut request = window.expect_count(0..2 * words, Counter(0), 1)?;
    for round in 1..=3_u32 {
        local.set(1, round * 5)?;
        local.set(words, round * 6)?;
        request.start()?;
        refused("store into the line", local.set(1, 0), Error::Exposed)?;
        world.barrier()?; // the neighbour has started, too
        window.put_notify(next, 0, &[round * 7], Counter(0))?;
        request.wait()?;
        check("put", local.get(0)?, round * 7)?;
        check("own word beside it", local.get(1)?, round * 5)?;
        check("own word elsewhere", local.get(words)?, round * 6)?;
        window.set_notify_value(Counter(0), 0.into())?;
        world.barrier()?;
        // Given up halfway: what was put can be read, and own stores beside it do not undo it.
        let mut two = window.expect_count(0..words, Counter(0), 2)?;
        two.start()?;
        check("fetched before the put", local.get(0)?, round * 7)?;
        world.barrier()?;
        window.put_notify(next, 0, &[round * 8], Counter(0))?;
        world.barrier()?;
        check("one of two", two.test()?.is_none(), true)?;
        two.cancel()?;
        local.set(1, round * 9)?;
        check("put before", local.get(0)?, round * 8)?;
        check("taken", window.reset_notify_value(Counter(0))?, 1_u32)?;
        world.barrier()?;
    }
    Ok(())
}

/// A counter that was not changed begins no second round: not by the request that it has brought to
/// its end, nor by another one. A larger number may be waited for, and a signal is as it is.
pub(super) fn rounds<L: Link>(world: &World<'_, L>) -> Result {
    let next = world.rank().next(world.size());
    let mut window = world.allocate::<u32>(1)?;
    let stands = Error::CounterNotReset { index: 1 };
    for round in 1..=3_u32 {
        if round != 2 {
            window.set_num_notify(2)?; // new ones
        }
        let mut two = window.expect_count(0..1, Counter(1), 2)?;
        let mut three = window.expect_count(0..1, Counter(1), 3)?;
        two.start()?;
        world.barrier()?;
        for _ in 0..2 {
            window.put_notify(next, 0, &[round], Counter(1))?;
        }
        check("two", two.wait()?, 2_u32)?;
        refused("again", two.start(), stands)?;
        check("is not started", two.is_started(), false)?;
        let standing = [
            (Compare::Ge, 1),
            (Compare::Ge, 2),
            (Compare::Eq, 2),
            (Compare::Gt, 1),
            (Compare::Ne, 0),
        ];
        for (compare, value) in standing {
            let again = window.wait_until(0..1, Counter(1), compare, value.into());
            refused("another", again, stands)?;
        }
        window.local().set(0, 0)?; // no line is left closed
        let all = window.wait_until(0..0, Signal(1), Compare::Ge, 2.into())?;
        check("a signal stays", all, 2_u32)?;
        let none = window.wait_until(0..0, Counter(1), Compare::Ge, 0.into())?;
        check("0 is always there", none, 2_u32)?;
        three.start()?;
        world.barrier()?;
        window.put_notify(next, 0, &[round], Counter(1))?;
        window.notify(next, Counter(0))?;
        check("one more", three.wait()?, 3_u32)?;
        window.wait_until(0..0, Counter(0), Compare::Ge, 1.into())?;
        world.barrier()?;
        match round {
            1 => check("reset", window.reset_notify_value(Counter(1))?, 3_u32)?,
            2 => window.set_notify_value(Counter(1), 0.into())?,
            _ => refused("still", two.start(), stands)?,
        }
        if round < 3 {
            let zero = window.wait_until(0..0, Counter(0), Compare::Ge, 1.into());
            refused("the other one", zero, Error::CounterNotReset { index: 0 })?;
            window.reset_notify_value(Counter(0))?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// Several requests; each tells once, and those that are not complete stay.
pub(super) fn any<L: Link>(world: &World<'_, L>) -> Result {
    let next = world.rank().next(world.size());
    let mut window = world.allocate::<u64>(8)?;
    window.set_num_notify(3)?;
    let events = world.events(1)?;
    {
        let mut requests = [
            window.expect_count(0..1, Counter(0), 2)?,
            window.expect_count(1..2, Counter(2), 1)?,
            window.expect_word(2..3, events.event(0)?, Compare::Ge, 2.into())?,
        ];
        check("none is started", wait_any(&mut requests)?.is_none(), true)?;
        for request in &mut requests {
            request.start()?;
        }
        world.barrier()?;
        for _ in 0..2 {
            window.put_notify(next, 2, &[5], events.event(0)?)?;
        }
        check("event", wait_any(&mut requests)? == Some(2), true)?;
        check("posts left", events.query(0)?, 0_u32)?;
        check("its data", window.local().get(2)?, 5_u64)?;
        world.barrier()?;
        window.put_notify(next, 1, &[6], Counter(2))?;
        check("counter", wait_any(&mut requests)? == Some(1), true)?;
        check("its data", window.local().get(1)?, 6_u64)?;
        window.put_notify(next, 0, &[7], Counter(0))?;
        check("one of two", requests[0].test()?.is_none(), true)?;
        world.barrier()?;
        window.put_notify(next, 0, &[8], Counter(0))?;
        check("last", wait_any(&mut requests)? == Some(0), true)?;
        check("its data", window.local().get(0)?, 8_u64)?;
        check("none is left", wait_any(&mut requests)?.is_none(), true)?;
    }
    Ok(events.free()?)
}

/// All of several requests, and one after the other without waiting.
pub(super) fn all<L: Link>(world: &World<'_, L>) -> Result {
    let next = world.rank().next(world.size());
    let mut window = world.allocate::<u64>(8)?;
    window.set_num_notify(2)?;
    let events = world.events(1)?;
    {
        let mut requests = [
            window.expect_count(0..1, Counter(0), 1)?,
            window.expect_word(1..2, events.event(0)?, Compare::Ge, 1.into())?,
            window.expect_count(2..3, Counter(1), 2)?,
        ];
        check("none", test_any(&mut requests)?.is_none(), true)?;
        wait_all(&mut requests)?;
        for request in &mut requests {
            request.start()?;
        }
        check("none yet", test_any(&mut requests)?.is_none(), true)?;
        world.barrier()?;
        window.put_notify(next, 2, &[1], Counter(1))?;
        window.put_notify(next, 1, &[2], events.event(0)?)?;
        window.put_notify(next, 0, &[3], Counter(0))?;
        window.put_notify(next, 2, &[4], Counter(1))?;
        wait_all(&mut requests)?;
        let active = requests.iter().filter(|request| request.is_started());
        check("still started", active.count() == 0, true)?;
        for (index, value) in [3_u64, 2, 4].into_iter().enumerate() {
            check("its data", window.local().get(index)?, value)?;
        }
        check("counter 1", window.reset_notify_value(Counter(1))?, 2_u32)?;
        check("posts left", events.query(0)?, 0_u32)?;
        requests[1].start()?;
        requests[2].start()?;
        world.barrier()?;
        window.put_notify(next, 1, &[5], events.event(0)?)?;
        let found = loop {
            match test_any(&mut requests)? {
                Some(found) => break found,
                None => world.link().relax(),
            }
        };
        check("the event", found == 1, true)?;
        check("its data", window.local().get(1)?, 5_u64)?;
        check("the other", requests[2].is_started(), true)?;
        requests[2].cancel()?;
    }
    world.barrier()?;
    Ok(events.free()?)
}

/// Bad input is an error value, and nothing changes.
pub(super) fn misuse<L: Link>(world: &World<'_, L>) -> Result {
    let me = world.rank();
    let mut window = world.allocate::<u32>(8)?;
    window.set_num_notify(2)?;
    let none = Error::NoSuchCounter {
        rank: me,
        index: 2,
        count: 2,
    };
    refused("value", window.notify_value(Counter(2)), none)?;
    refused("fetch", window.signal_fetch(Signal(2)), none)?;
    refused("reset", window.reset_notify_value(Counter(2)), none)?;
    refused("set", window.set_notify_value(Counter(2), 1.into()), none)?;
    let wait = window.wait_until(0..0, Signal(2), Compare::Eq, 0.into());
    refused("wait", wait, none)?;
    refused(
        "request",
        window.expect_count(0..0, Counter(2), 1).map(|_| ()),
        none,
    )?;
    let mut nothing = window.expect_count(0..0, Counter(1), 0)?;
    nothing.start()?;
    nothing.wait()?; // for no rank
    let beyond = Error::OutOfRange { end: 9, len: 8 };
    refused(
        "range",
        window.expect_count(3..9, Counter(1), 1).map(|_| ()),
        beyond,
    )?;
    let wait = window.wait_until(3..9, Signal(1), Compare::Eq, 0.into());
    refused("range", wait, beyond)?;
    let mut request = window.expect_count(0..1, Counter(0), 3)?;
    refused("not started", request.test(), Error::RequestInactive)?;
    refused("not started", request.wait(), Error::RequestInactive)?;
    refused("not started", request.cancel(), Error::RequestInactive)?;
    window.expect_count(0..1, Counter(0), 3)?.free()?;
    let mut given_back = window.expect_count(0..1, Counter(0), 3)?;
    given_back.start()?;
    let Err(Unfinished { error, mut handle }) = given_back.free() else {
        return Err(NO_ERROR);
    };
    check("started", error == Error::RequestActive, true)?;
    handle.cancel()?;
    handle.free()?;
    window.local().set(0, 1)?;
    // Two for the same lines: they are the owner's again when both are complete.
    let mut pair = [
        window.expect_count(0..1, Counter(0), 1)?,
        window.expect_count(0..1, Counter(1), 1)?,
    ];
    for one in &mut pair {
        one.start()?;
    }
    for (index, one) in (0..).zip(&mut pair) {
        refused("closed", window.local().set(0, 2), Error::Exposed)?;
        window.set_notify_value(Counter(index), 1.into())?;
        one.wait()?;
        window.set_notify_value(Counter(index), 0.into())?;
    }
    window.local().set(0, 2)?;
    request.start()?;
    check("started", request.is_started(), true)?;
    refused("started", request.start(), Error::RequestActive)?;
    let mut others = [(); 32].map(|()| window.expect_count(0..1, Counter(1), 1));
    for (index, other) in (1..).zip(&mut others) {
        let other = other.as_mut().map_err(|error| *error)?;
        match (index, other.start()) {
            (32, result) => refused("one too many", result, Error::TooManyRequests { max: 32 })?,
            (_, result) => result?,
        }
    }
    let mut empty = window.expect_count(0..0, Counter(1), 1)?;
    empty.start()?;
    empty.cancel()?;
    check("not yet", request.test()?.is_none(), true)?;
    window.set_notify_value(Counter(0), L::Word::MAX)?;
    check("exceeded", request.wait()?, L::Word::MAX)?;
    check("complete", request.is_started(), false)?;
    // It wraps around.
    window.notify(me, Signal(0).add(3.into()))?;
    check("wrapped", window.notify_value(Counter(0))?, 2_u32)?;
    window.set_notify_value(Counter(0), 2.into())?; // a new round
    request.start()?;
    check("2 of 3", request.test()?.is_none(), true)?;
    window.notify(me, Counter(0))?;
    check("3 of 3", request.wait()?, 3_u32)
}

/// Ranks that only ever ask keep nobody waiting who must get something into their rings first.
pub(super) fn progress<L: Link>(world: &World<'_, L>) -> Result {
    const MANY: u32 = 66; // more than the ring holds, less than ring and unexpected queue
    let mut window = world.allocate::<u64>(1)?;
    window.set_num_notify(3)?;
    let events = world.events(1)?;
    for round in 0..4_u32 {
        if world.rank() == SECOND {
            for number in 1..=MANY {
                window.put_notify(FIRST, 0, &[u64::from(number)], Tag(number))?;
            }
            match round {
                3 => events.post(FIRST, 0)?,
                _ => window.notify(FIRST, Counter(round))?,
            }
        } else if world.rank() == FIRST {
            let mut counted = window.expect_count(0..0, Counter(0), 1)?;
            match round {
                0 => {
                    counted.start()?;
                    while counted.test()?.is_none() {
                        world.link().relax();
                    }
                }
                1 => {
                    while window.notify_value(Counter(1))? == 0.into() {
                        world.link().relax();
                    }
                }
                2 => {
                    let mut any = [window.expect_count(0..0, Counter(2), 1)?];
                    any[0].start()?;
                    while test_any(&mut any)?.is_none() {
                        world.link().relax();
                    }
                }
                _ => {
                    while events.query(0)? == 0.into() {
                        world.link().relax();
                    }
                }
            }
            let mut all = window
                .expect(0..1, TagFilter::Any)?
                .from(SECOND)?
                .times(MANY as u16)?;
            all.start()?;
            check("in order", all.wait()?.tag.0, MANY)?;
        }
        world.barrier()?;
    }
    let mut rest = window.expect(0..0, TagFilter::Any)?;
    rest.start()?;
    check("nothing is left", rest.test()?.is_none(), true)
}

/// Budgets that run out lose nothing: calls are repeated, requests stay started.
pub(super) fn late<L: Link>(world: &World<'_, L>) -> Result {
    let mut window = world.allocate::<u64>(2)?;
    match world.rank().get() {
        0 => {
            let Err(error) = short(world, || window.set_num_notify(2)) else {
                return Err(NO_ERROR);
            };
            let Error::Timeout(timeout) = error else {
                return Err(error.into());
            };
            check("named", timeout.missing.count(), 1_u32)?;
            check("not yet", window.num_notify(SECOND)?, 0_u32)?;
            go(&window, SECOND)?;
            // The number of the first call counts.
            window.set_num_notify(7)?;
        }
        1 => {
            await_go(&window, FIRST)?;
            window.set_num_notify(2)?;
        }
        _ => window.set_num_notify(2)?,
    }
    check("number", window.num_notify(FIRST)?, 2_u32)?;
    match world.rank().get() {
        0 => {
            let mut three = window.expect_count(1..2, Counter(0), 3)?;
            three.start()?;
            await_go(&window, SECOND)?;
            timed_out(three.wait_within(SHORT), Waiting::Notification, 2, &[])?;
            let one = core::slice::from_mut(&mut three);
            timed_out(
                short(world, || wait_any(one)),
                Waiting::Notification,
                2,
                &[],
            )?;
            let one = core::slice::from_mut(&mut three);
            timed_out(
                short(world, || wait_all(one)),
                Waiting::Notification,
                2,
                &[],
            )?;
            let ge = Compare::Ge;
            let signal = || window.wait_until(1..2, Signal(0), ge, 3.into());
            timed_out(short(world, signal), Waiting::Notification, 1, &[])?;
            go(&window, SECOND)?;
            check("three", three.wait()?, 3_u32)?;
            check("data", window.local().get(1)?, 9_u64)?;
            check(
                "three",
                window.wait_until(1..2, Signal(0), ge, 3.into())?,
                3_u32,
            )
        }
        1 => {
            window.notify(FIRST, Counter(0))?;
            go(&window, FIRST)?;
            await_go(&window, FIRST)?;
            window.notify(FIRST, Counter(0))?;
            Ok(window.put_notify(FIRST, 1, &[9], Counter(0))?)
        }
        _ => Ok(()),
    }
}
