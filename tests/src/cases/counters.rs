//! Notification counters.

use flagpost::{
    Budget, Compare, Counter, EpochSlots, Error, Link, Model, Rank, Signal, Source, Tag, TagFilter,
    Unfinished, Waiting, Window, World, notify::wait_any_count, rma::Operation,
};

use super::{
    timeout::{SHORT, await_go, go, timed_out},
    world::{NO_ERROR, refused},
};
use crate::{Failure, context::check};

const FIRST: Rank = Rank::new(0);
const SECOND: Rank = Rank::new(1);

/// How many counters a rank has where numbers differ: 0 on some.
fn number(rank: Rank) -> u32 {
    (u32::from(rank.get()) + 1) % 3
}

/// An error without its handle.
fn plain<T, H>(result: Result<T, Unfinished<H>>) -> Result<T, Error> {
    result.map_err(Error::from)
}

/// A token goes round, told by a counter; all that tells, one after the other.
pub(super) fn ring<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (me, size) = (world.rank(), world.size());
    let (next, prev) = (me.next(size), me.prev(size));
    let mut window = world.allocate::<u64>(4)?;
    window.set_num_notify(2)?;
    let of = |rank: Rank, round: u64| 100 * u64::from(rank.get()) + round;
    let mut arrived = window.expect_count(0..4, 1, 4)?;
    for round in 1..=3_u64 {
        arrived.start()?;
        world.barrier()?; // the neighbour has started, too
        window.put_notify(next, 0, &[of(me, round)], Counter(1))?;
        window.accumulate_notify(next, 1, &[of(me, round)], Operation::REPLACE, Counter(1))?;
        window
            .rput_notify(next, 2, &[of(me, round)], Counter(1))?
            .wait()?;
        window.notify(next, Counter(1))?;
        check("counted", arrived.wait()?, 4_u32)?;
        for index in 0..3 {
            check("data", window.local().get(index)?, of(prev, round))?;
        }
        check("taken", window.reset_notify_value(1)?, 4_u32)?;
        check("reset", window.notify_value(1)?, 0_u32)?;
        check("the other one", window.notify_value(0)?, 0_u32)?;
    }
    Ok(())
}

/// Everybody counts at everybody; each finds all, and all data.
pub(super) fn everybody<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    const ROUNDS: u32 = 2;
    let (me, size) = (world.rank(), world.size());
    let ranks = u32::from(size);
    let mut window = world.allocate::<u32>(usize::from(size))?;
    window.set_num_notify(1)?;
    let mut all = window.expect_count(0..window.len(), 0, ranks)?;
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
        check("counted", window.reset_notify_value(0)?, ranks)?;
    }
    Ok(())
}

/// The owner takes what has been counted while others go on counting: nothing is lost or taken twice.
pub(super) fn swaps<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    const EACH: u32 = 6;
    let others = u32::from(world.size()) - 1;
    let mut window = world.allocate::<u32>(1)?;
    window.set_num_notify(2)?;
    if world.rank() != FIRST {
        for _ in 0..EACH {
            window.notify(FIRST, Counter(1))?;
        }
        return Ok(());
    }
    let mut sum = 0;
    while sum < EACH * others {
        window.signal_wait_until(0..0, 1, Compare::Ne, 0)?;
        sum += window.reset_notify_value(1)?;
    }
    check("all", sum, EACH * others)
}

/// Numbers differ, and are 0 on some ranks: an access is checked against its target's, before any byte moves.
pub(super) fn differing<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (me, size) = (world.rank(), world.size());
    let mut window = world.allocate::<u64>(2)?;
    for rank in (0..size).map(Rank::new) {
        check("before", window.num_notify(rank)?, 0_u32)?;
    }
    let none = |rank, index, count| Error::NoSuchCounter { rank, index, count };
    refused("none yet", window.notify_value(0), none(me, 0, 0))?;
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
            refused("put", plain(put), beyond)?;
            let put = window.rput_notify(to, 0, &[7, 7], Signal::set(index, 1));
            refused("request", put.map(|_| ()), beyond)?;
            let mut into = [3];
            let get = window.get_notify(to, 0, &mut into, Counter(index));
            refused("get", plain(get), beyond)?;
            check("not read", into[0], 3_u64)?;
            let sum = window.accumulate_notify(to, 0, &[7], Operation::SUM, Counter(index));
            refused("accumulate", plain(sum), beyond)?;
            refused("notify", plain(window.notify(to, Counter(index))), beyond)?;
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
        check("counted", window.notify_value(index)?, expected)?;
    }
    world.barrier()?;
    Ok(())
}

/// New counters take the place of the former ones, and are 0 whatever their memory was.
pub(super) fn again<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (me, size) = (world.rank(), world.size());
    let next = me.next(size);
    let mut window = world.allocate::<u64>(1)?;
    for round in 0..5_u32 {
        let count = 1 + (round + u32::from(me.get())) % 9;
        window.set_num_notify(count)?;
        for index in 0..count {
            check("new", window.notify_value(index)?, 0_u32)?;
        }
        world.barrier()?;
        for index in 0..window.num_notify(next)? {
            window.notify(next, Signal::set(index, 70 + round))?;
        }
        world.barrier()?;
        check("old", window.notify_value(count - 1)?, 70 + round)?;
    }
    window.set_num_notify(0)?;
    check("none", window.num_notify(next)?, 0_u32)?;
    let gone = Error::NoSuchCounter {
        rank: next,
        index: 0,
        count: 0,
    };
    refused("gone", plain(window.notify(next, Counter(0))), gone)
}

/// One rank cannot have what it asks for: nobody gets anything, and all keep what they had.
pub(super) fn together<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (me, size) = (world.rank(), world.size());
    let next = me.next(size);
    let mut window = world.allocate::<u64>(1)?;
    window.set_num_notify(2)?;
    window.set_notify_value(1, 30)?;
    world.barrier()?;
    window.notify(next, Counter(1))?;
    for bad in [Rank::new(0), Rank::new(size - 1)] {
        for number in [u32::MAX, u32::MAX / 8, 1 << 24] {
            let asked = if me == bad { number } else { 5 };
            match window.set_num_notify(asked) {
                Err(Error::MemoryFull { .. }) if me == bad => {}
                Err(Error::Asymmetric(rank)) if me != bad => check("named", rank.get(), bad.get())?,
                Err(other) => return Err(other.into()),
                Ok(()) => return Err(NO_ERROR),
            }
        }
    }
    check("number", window.num_notify(next)?, 2_u32)?;
    check("other value", window.notify_value(0)?, 0_u32)?;
    let mut one_more = window.expect_count(0..0, 1, 31)?;
    one_more.start()?;
    check("value", one_more.wait()?, 31_u32)?;
    world.barrier()?;
    window.notify(next, Counter(0))?;
    window.signal_wait_until(0..0, 0, Compare::Eq, 1)?;
    window.set_num_notify(1)?;
    check("afterwards", window.notify_value(0)?, 0_u32)
}

/// Windows have counters of their own, of each kind; a window that is freed gives them back, and the others stay.
pub(super) fn windows<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (me, size) = (world.rank(), world.size());
    let next = me.next(size);
    let memory = world.reserve(64)?;
    let mut kept = world.allocate_with::<u64, EpochSlots<'_>>(1, Model::Unified)?;
    kept.set_num_notify(1)?;
    for round in 1..=4_u32 {
        let mut created = world.create::<u64>(&memory, 0..64, 8)?;
        created.set_num_notify(2)?;
        created.put_notify(next, 3, &[u64::from(round)], Counter(0))?;
        kept.notify(next, Counter(0))?;
        let mut arrived = created.expect_count(3..4, 0, 1)?;
        arrived.start()?;
        arrived.wait()?;
        check("put", created.local().get(3)?, u64::from(round))?;
        check("not this one", created.notify_value(1)?, 0_u32)?;
        created.free()?;
    }
    let mut all = kept.expect_count(0..0, 0, 4)?;
    all.start()?;
    check("of the other window", all.wait()?, 4_u32)?;
    let mut dynamic = world.dynamic(flagpost::DynamicOptions::default())?;
    dynamic.set_num_notify(1)?;
    dynamic.window().notify(next, Signal::add(0, 3))?;
    let seen = dynamic
        .window()
        .signal_wait_until(0..0, 0, Compare::Ge, 3)?;
    check("of the dynamic window", seen, 3_u32)?;
    dynamic.free()?;
    Ok(memory.release()?)
}

/// A window is not freed while a request of it waits; nor is it freed under its peers' notifications.
pub(super) fn freed<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (me, size) = (world.rank(), world.size());
    let next = me.next(size);
    let mut window = world.allocate::<u32>(2)?;
    window.set_num_notify(1)?;
    let mut request = window.expect_count(0..2, 0, 1)?;
    request.start()?;
    let Err(Unfinished {
        handle: window,
        error,
    }) = window.free()
    else {
        return Err(NO_ERROR);
    };
    check("started", error == Error::Exposed, true)?;
    // It is as it was.
    window.notify(next, Counter(0))?;
    window.signal_wait_until(0..0, 0, Compare::Eq, 1)?;
    for round in 1..=3_u32 {
        let mut other = world.allocate::<u32>(2)?;
        other.set_num_notify(1)?;
        check("new", other.notify_value(0)?, 0_u32)?;
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

/// What a window with counters takes is given back.
pub(super) fn churn<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    for round in 0..12 {
        let mut window = world.allocate::<u32>(1)?;
        window.set_num_notify(40)?;
        window.set_num_notify(round % 5)?;
        window.free()?;
    }
    Ok(())
}

/// The own word beside the one that is put, in the request's lines: written back when the request starts, refused until it is
/// complete.
pub(super) fn shared_line<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let (me, size) = (world.rank(), world.size());
    let next = me.next(size);
    // Two words of a line, and one of another.
    let words = (L::LINE / 4).max(2) as usize;
    let mut window = world.allocate::<u32>(2 * words)?;
    window.set_num_notify(1)?;
    let local = window.local();
    let mut request = window.expect_count(0..2 * words, 0, 1)?;
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
        window.set_notify_value(0, 0)?;
        world.barrier()?;
        // Given up halfway: what was put can be read, and own stores beside it do not undo it.
        let mut two = window.expect_count(0..words, 0, 2)?;
        two.start()?;
        check("fetched before the put", local.get(0)?, round * 7)?;
        world.barrier()?;
        window.put_notify(next, 0, &[round * 8], Counter(0))?;
        world.barrier()?;
        check("one of two", two.test()?.is_none(), true)?;
        two.cancel()?;
        local.set(1, round * 9)?;
        check("put before", local.get(0)?, round * 8)?;
        check("taken", window.reset_notify_value(0)?, 1_u32)?;
        world.barrier()?;
    }
    Ok(())
}

/// Several requests; each tells once, and those that are not complete stay.
pub(super) fn any<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let next = world.rank().next(world.size());
    let mut window = world.allocate::<u64>(8)?;
    window.set_num_notify(3)?;
    let events = world.events(1)?;
    {
        let mut requests = [
            window.expect_count(0..1, 0, 2)?,
            window.expect_count(1..2, 2, 1)?,
            window.expect_event(2..3, &events, 0, 2)?,
        ];
        check(
            "none is started",
            wait_any_count(&mut requests)?.is_none(),
            true,
        )?;
        for request in &mut requests {
            request.start()?;
        }
        world.barrier()?;
        for _ in 0..2 {
            window.put_event(next, 2, &[5], &events, 0)?;
        }
        let of = |answer: Option<(usize, u32)>| answer.unwrap_or((9, 9));
        check("event", of(wait_any_count(&mut requests)?) == (2, 0), true)?;
        check("its data", window.local().get(2)?, 5_u64)?;
        world.barrier()?;
        window.put_notify(next, 1, &[6], Counter(2))?;
        check(
            "counter",
            of(wait_any_count(&mut requests)?) == (1, 1),
            true,
        )?;
        check("its data", window.local().get(1)?, 6_u64)?;
        window.put_notify(next, 0, &[7], Counter(0))?;
        check("one of two", requests[0].test()?.is_none(), true)?;
        world.barrier()?;
        window.put_notify(next, 0, &[8], Counter(0))?;
        check("last", of(wait_any_count(&mut requests)?) == (0, 2), true)?;
        check("its data", window.local().get(0)?, 8_u64)?;
        check(
            "none is left",
            wait_any_count(&mut requests)?.is_none(),
            true,
        )?;
    }
    Ok(events.free()?)
}

/// Bad input is an error value, and nothing changes.
pub(super) fn misuse<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let me = world.rank();
    let mut window = world.allocate::<u32>(8)?;
    window.set_num_notify(2)?;
    let none = Error::NoSuchCounter {
        rank: me,
        index: 2,
        count: 2,
    };
    refused("value", window.notify_value(2), none)?;
    refused("fetch", window.signal_fetch(2), none)?;
    refused("reset", window.reset_notify_value(2), none)?;
    refused("set", window.set_notify_value(2, 1), none)?;
    let wait = window.signal_wait_until(0..0, 2, Compare::Eq, 0);
    refused("wait", wait, none)?;
    refused("request", window.expect_count(0..0, 2, 1).map(|_| ()), none)?;
    let zero = window.expect_count(0..0, 1, 0).map(|_| ());
    refused("nothing", zero, Error::CountZero)?;
    let beyond = Error::OutOfRange { end: 9, len: 8 };
    refused("range", window.expect_count(3..9, 1, 1).map(|_| ()), beyond)?;
    let wait = window.signal_wait_until(3..9, 1, Compare::Eq, 0);
    refused("range", wait, beyond)?;
    let mut request = window.expect_count(0..1, 0, 3)?;
    refused("not started", request.test(), Error::RequestInactive)?;
    refused("not started", request.wait(), Error::RequestInactive)?;
    refused("not started", request.cancel(), Error::RequestInactive)?;
    window.expect_count(0..1, 0, 3)?.free()?;
    let mut given_back = window.expect_count(0..1, 0, 3)?;
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
        window.expect_count(0..1, 0, 1)?,
        window.expect_count(0..1, 1, 1)?,
    ];
    for one in &mut pair {
        one.start()?;
    }
    for (index, one) in (0..).zip(&mut pair) {
        refused("closed", window.local().set(0, 2), Error::Exposed)?;
        window.set_notify_value(index, 1)?;
        one.wait()?;
        window.set_notify_value(index, 0)?;
    }
    window.local().set(0, 2)?;
    request.start()?;
    check("started", request.is_started(), true)?;
    refused("started", request.start(), Error::RequestActive)?;
    let mut others = [(); 8].map(|()| window.expect_count(0..1, 1, 1));
    for (index, other) in (1..).zip(&mut others) {
        let other = other.as_mut().map_err(|error| *error)?;
        match (index, other.start()) {
            (8, result) => refused("one too many", result, Error::TooManyRequests { max: 8 })?,
            (_, result) => result?,
        }
    }
    let mut empty = window.expect_count(0..0, 1, 1)?;
    empty.start()?;
    empty.cancel()?;
    check("not yet", request.test()?.is_none(), true)?;
    window.set_notify_value(0, u32::MAX)?;
    check("exceeded", request.wait()?, u32::MAX)?;
    check("complete", request.is_started(), false)?;
    // It wraps around.
    window.notify(me, Signal::add(0, 3))?;
    check("wrapped", window.notify_value(0)?, 2_u32)?;
    request.start()?;
    check("2 of 3", request.test()?.is_none(), true)?;
    window.notify(me, Counter(0))?;
    check("3 of 3", request.wait()?, 3_u32)
}

/// Ranks that only ever ask keep nobody waiting who must get something into their rings first.
pub(super) fn progress<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    const MANY: u32 = 66; // more than the ring holds, less than ring and unexpected queue
    let mut window = world.allocate::<u64>(1)?;
    window.set_num_notify(2)?;
    let events = world.events(1)?;
    for round in 0..3_u32 {
        if world.rank() == SECOND {
            for number in 1..=MANY {
                window.put_notify(FIRST, 0, &[u64::from(number)], Tag(number))?;
            }
            match round {
                2 => events.post(FIRST, 0)?,
                _ => window.notify(FIRST, Counter(round))?,
            }
        } else if world.rank() == FIRST {
            let mut counted = window.expect_count(0..0, 0, 1)?;
            match round {
                0 => {
                    counted.start()?;
                    while counted.test()?.is_none() {
                        world.link().relax();
                    }
                }
                1 => {
                    while window.notify_value(1)? == 0 {
                        world.link().relax();
                    }
                }
                _ => {
                    while events.query(0)? == 0 {
                        world.link().relax();
                    }
                }
            }
            let mut all = window.expect(0..1, SECOND, TagFilter::Any, MANY as u16)?;
            all.start()?;
            check("in order", all.wait()?.tag.0, MANY)?;
        }
        world.barrier()?;
    }
    let mut rest = window.expect(0..0, Source::Any, TagFilter::Any, 1)?;
    rest.start()?;
    check("nothing is left", rest.test()?.is_none(), true)
}

/// Budgets that run out lose nothing: calls are repeated, requests stay started.
pub(super) fn late<L: Link>(world: &World<'_, L>) -> Result<(), Failure> {
    let mut window = world.allocate::<u64>(2)?;
    world.set_budget(Budget::UNLIMITED);
    match world.rank().get() {
        0 => {
            world.set_budget(SHORT);
            let Err(error) = window.set_num_notify(2) else {
                return Err(NO_ERROR);
            };
            let Error::Timeout(timeout) = error else {
                return Err(error.into());
            };
            check("named", timeout.missing.count(), 1_u32)?;
            check("not yet", window.num_notify(SECOND)?, 0_u32)?;
            world.set_budget(Budget::UNLIMITED);
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
            let mut three = window.expect_count(1..2, 0, 3)?;
            three.start()?;
            await_go(&window, SECOND)?;
            world.set_budget(SHORT);
            let Err(error) = three.wait() else {
                return Err(NO_ERROR);
            };
            timed_out(error, Waiting::Notification, 2, &[])?;
            let Err(error) = wait_any_count(core::slice::from_mut(&mut three)) else {
                return Err(NO_ERROR);
            };
            timed_out(error, Waiting::Notification, 2, &[])?;
            let ge = Compare::Ge;
            let Err(error) = window.signal_wait_until(1..2, 0, ge, 3) else {
                return Err(NO_ERROR);
            };
            timed_out(error, Waiting::Notification, 1, &[])?;
            world.set_budget(Budget::UNLIMITED);
            go(&window, SECOND)?;
            check("three", three.wait()?, 3_u32)?;
            check("data", window.local().get(1)?, 9_u64)?;
            check("three", window.signal_wait_until(1..2, 0, ge, 3)?, 3_u32)
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

/// Tried in every schedule.
pub(super) mod small {
    use super::*;

    type Words<'w, L> = Window<'w, u32, L>;

    /// Others put to rank 0, into one line, and count; the own word beside them is dirty when the request starts.
    pub(crate) fn count<L: Link>(
        world: &World<'_, L>,
        window: &Words<'_, L>,
    ) -> Result<(), Failure> {
        let me = world.rank();
        if me != FIRST {
            let index = usize::from(me.get() - 1) & 1;
            return Ok(window.put_notify(FIRST, index, &[7], Counter(0))?);
        }
        let others = u32::from(world.size()) - 1;
        let mut all = window.expect_count(0..2, 0, others)?;
        all.start()?;
        check("counted", all.wait()?, others)?;
        for index in 0..others as usize {
            check("put", window.local().get(index & 1)?, 7_u32)?;
        }
        Ok(())
    }

    /// Rank 0 takes what has been counted, while another counts.
    pub(crate) fn reset<L: Link>(
        world: &World<'_, L>,
        window: &Words<'_, L>,
    ) -> Result<(), Failure> {
        if world.rank() != FIRST {
            return Ok(window.notify(FIRST, Counter(0))?);
        }
        let others = u32::from(world.size()) - 1;
        let early = window.reset_notify_value(0)?;
        check("not too many", early <= others, true)?;
        if early < others {
            let left = others - early;
            let seen = window.signal_wait_until(0..0, 0, Compare::Ge, left)?;
            check("the rest", seen, left)?;
        }
        check("all", window.notify_value(0)? + early, others)
    }

    /// New counters, in memory that was the former ones'.
    pub(crate) fn set<L: Link>(
        world: &World<'_, L>,
        mut window: Words<'_, L>,
    ) -> Result<(), Failure> {
        let (me, size) = (world.rank(), world.size());
        window.set_num_notify(1 + u32::from(me.get()))?;
        window.notify(me.next(size), Counter(0))?;
        window.signal_wait_until(0..0, 0, Compare::Eq, 1)?;
        Ok(())
    }
}
