//! Events.

use core::ops::Range;

use flagpost::{
    Compare, Counter, Differs, EpochSlots, Error, Event, Events, Link, Model, Rank, Rma as _,
    Waiting, Window, World,
};

use super::handles::{SHORT, at_lock, is_late, short, timed_out, unless_early};
use super::steps::{FIRST, SECOND, fails, neighbours, refused, too_much};
use super::{
    join,
    timeout::{await_go, go, take},
};
use crate::{Context, MachinePlatform, Result, context::check};

/// Waits for `until` posts of an own event, and takes them; then data can be read in `range`.
fn await_posts<'w, L: Link>(
    window: &Window<'w, u32, L>,
    range: Range<usize>,
    event: Event<'_>,
    until: u32,
) -> Result<(), Error> {
    let mut request = window.expect_word(range, event, Compare::Ge, until.into())?;
    request.start()?;
    request.wait().map(drop)
}

/// Data and event in one call: a token goes round, and its reader says that
/// it has read.
pub(super) fn ring<L: Link>(world: &World<'_, L>) -> Result {
    const ROUNDS: u32 = 3;
    let (me, next, prev) = neighbours(world);
    let window = world.allocate::<u32>(24)?;
    let events = world.events(2)?;
    check("events", events.len(), 2_u32)?;
    let full = events.event(1)?;
    let last = ROUNDS * u32::from(world.size());
    for round in 0..ROUNDS {
        let number = round * u32::from(world.size()) + u32::from(me.get());
        if number > 0 {
            await_posts(&window, 4..24, full, 1)?;
            for index in [4, 10, 23] {
                check("token", window.local().get(index)?, number)?;
            }
            events.post(prev, 0)?;
        }
        if round > 0 {
            // The next rank has read the last one.
            events.wait(0, 1)?;
        }
        window.put_notify(next, 4, &[number + 1; 20], full)?;
    }
    if me == FIRST {
        await_posts(&window, 4..24, full, 1)?;
        check("last", window.local().get(23)?, last)?;
        check("none is left", events.query(1)?, 0_u32)?;
    }
    Ok(())
}

/// Posts of all ranks to all events of all ranks, taken in portions of different sizes.
pub(super) fn counts<L: Link>(world: &World<'_, L>) -> Result {
    const EACH: u32 = 4;
    let (me, size) = (world.rank(), world.size());
    let events = world.events(3)?;
    for _ in 0..2 {
        for distance in 0..size {
            for _ in 0..EACH {
                for index in 0..3 {
                    events.post(me.ahead(distance, size), index)?;
                }
            }
        }
        let all = EACH * u32::from(size);
        events.wait(2, all)?;
        check("all taken", events.query(2)?, 0_u32)?;
        // Only a wait for a number takes posts.
        let window = world.allocate::<u32>(0)?;
        let mut some = window.expect_word(0..0, events.event(1)?, Compare::Gt, (all - 1).into())?;
        some.start()?;
        check("posts", some.wait()?, all)?;
        check("none is taken", events.query(1)?, all)?;
        for _ in 0..all {
            events.wait(0, 1)?;
        }
        for _ in 0..all / 2 {
            events.wait(1, 2)?;
        }
        for index in [0, 1] {
            check("none is left", events.query(index)?, 0_u32)?;
        }
        world.barrier()?;
    }
    Ok(events.free()?)
}

/// An event tells of all that its poster did before: puts of epochs to other windows, too.
pub(super) fn orders<L: Link>(world: &World<'_, L>) -> Result {
    let me = world.rank();
    let window = world.allocate_with::<u64, EpochSlots<'_>>(20, Model::Unified)?;
    let events = world.events(1)?;
    for round in 1..=4_u64 {
        if me == FIRST {
            let lock = window.lock_shared(SECOND)?;
            lock.put(SECOND, 0, &[round; 20])?;
            // Not flushed.
            events.post(SECOND, 0)?;
            events.wait(0, 1)?;
            lock.unlock()?;
        } else if me == SECOND {
            events.wait(0, 1)?;
            for index in [0, 7, 19] {
                check("put before", window.local().get(index)?, round)?;
            }
            events.post(FIRST, 0)?;
        }
    }
    Ok(())
}

/// The own word beside what is put: a request writes it back when it starts; what was counted
/// before counts.
pub(super) fn requests<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, _) = neighbours(world);
    let window = world.allocate::<u32>(40)?;
    let events = world.events(1)?;
    let local = window.local();
    let post = events.event(0)?;
    let mut two = window.expect_word(0..40, post, Compare::Ge, 2.into())?;
    for round in 1..=3_u32 {
        local.set(1, round * 5)?;
        local.set(39, round * 6)?;
        two.start()?;
        refused("store", local.set(1, 0), Error::Exposed)?;
        world.barrier()?;
        window.put_notify(next, 0, &[round], post)?;
        window
            .to(next, 2)
            .notify(post)
            .put(&[round, round])?
            .wait()?;
        window.notify(next, post)?;
        check("one is left", two.wait()? <= 1.into(), true)?;
        check("first put", local.get(0)?, round)?;
        check("own word beside it", local.get(1)?, round * 5)?;
        check("second put", local.get(3)?, round)?;
        check("own word elsewhere", local.get(39)?, round * 6)?;
        // Own stores at the far end of the range, before the wait.
        local.set(39, round * 7)?;
        await_posts(&window, 0..40, post, 1)?;
        check("own word elsewhere", local.get(39)?, round * 7)?;
        check("none is left", events.query(0)?, 0_u32)?;
        world.barrier()?;
    }
    Ok(())
}

/// Each rank meets its neighbours, and finds what they put before: no other rank is waited for.
pub(super) fn meets<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate_with::<u32, EpochSlots<'_>>(2, Model::Unified)?;
    let events = world.events(size.into())?;
    let (next, prev) = (me.next(size), me.prev(size));
    let lock = window.lock_all()?;
    for round in 1..=3 {
        lock.put(next, 0, &[round])?;
        lock.put(prev, 1, &[round])?;
        match size {
            1 | 2 => events.sync([next])?,
            _ if round == 2 => {
                let syncing = events.syncing([next, prev])?;
                unless_early(syncing, SHORT, |_| true).map_err(|late| late.error)?;
            }
            _ => events.sync(&[next, prev][..])?,
        }
        check("of the one", window.local().get(0)?, round)?;
        check("of the other", window.local().get(1)?, round)?;
        match size {
            1 | 2 => events.sync([next])?,
            _ => events.sync([prev, next])?,
        }
    }
    Ok(lock.unlock()?)
}

/// Bad input is an error value, and nothing changes.
pub(super) fn misuse<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let next = me.next(size);
    let window = world.allocate::<u32>(8)?;
    let events = world.events(2)?;
    check("not empty", events.is_empty(), false)?;
    let stranger = Rank::new(size);
    let unknown = Error::NoSuchRank {
        rank: stranger,
        size,
    };
    let none = |rank| Error::NoSuchCounter {
        rank,
        index: 2,
        count: 2,
    };
    refused("stranger", events.post(stranger, 0), unknown)?;
    refused("post", events.post(next, 2), none(next))?;
    refused("query", events.query(2), none(me))?;
    refused("wait", events.wait(2, 1), none(me))?;
    events.wait(0, 0)?; // no rank is waited for
    let event = events.event(0)?;
    let put = |to, index| window.put_notify(to, index, &[9, 9], event);
    let beyond = Error::OutOfRange { end: 9, len: 8 };
    refused("put to a stranger", put(stranger, 0), unknown)?;
    refused("put beyond", put(next, 7), beyond)?;
    let request = |range, until: u32| window.expect_word(range, event, Compare::Ge, until.into());
    refused("request", request(3..9, 1).map(|_| ()), beyond)?;
    for index in [2, u32::MAX] {
        let beyond = Error::NoSuchCounter {
            rank: me,
            index,
            count: 2,
        };
        refused("no event", events.event(index).map(|_| ()), beyond)?;
    }
    world.barrier()?;
    for index in [0, 1] {
        check("nobody has posted", events.query(index)?, 0_u32)?;
    }
    window.sync()?;
    for index in 0..8 {
        check("no byte has moved", window.local().get(index)?, 0_u32)?;
    }
    let nothing = world.events(0)?;
    check("empty", nothing.is_empty(), true)?;
    nothing.free()?;
    Ok(events.free()?)
}

/// One rank wants others, or more than there can be: nobody gets any. What is freed can be had
/// again, with no posts.
pub(super) fn together<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, _) = neighbours(world);
    let last = Rank::new(world.size() - 1);
    for number in [u32::MAX, u32::MAX / 8, 1 << 24] {
        let asked = if me == last { number } else { 3 };
        too_much(world.events(asked), me, last)?;
    }
    if world.size() > 1 {
        let asked = 3 + u32::from(me == last);
        fails(world.events(asked), |error| {
            matches!(
                error,
                Error::Asymmetric {
                    differs: Differs::Length,
                    ..
                }
            )
        })?;
    }
    for round in 0..12 {
        let events = world.events(5)?;
        check("new", events.query(4)?, 0_u32)?;
        world.barrier()?;
        events.post(next, round % 5)?;
        events.post(next, 4)?;
        events.free()?;
        if round % 2 == 0 {
            continue; // the next events take the same place
        }
        // Posted or not: freeing waits for who posts.
        let memory = world.allocate::<u32>(10)?;
        world.barrier()?;
        let mut words = [1; 10];
        memory.local().copy_out(0, &mut words)?;
        check("nobody posts there", words.iter().sum::<u32>(), 0_u32)?;
        memory.free()?;
    }
    Ok(())
}

/// Budgets that run out take nothing, and lose nothing.
pub(super) fn late<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u64>(2)?;
    let events = world.events(1)?;
    match world.rank().get() {
        0 => {
            let request =
                |until: u32| window.expect_word(1..2, events.event(0)?, Compare::Ge, until.into());
            await_go(&window, SECOND)?;
            for _ in 0..2 {
                timed_out(
                    short(world, || events.wait(0, 3)),
                    Waiting::Notification,
                    2,
                    &[],
                )?;
                let mut four = request(4)?;
                four.start()?;
                timed_out(short(world, || four.wait()), Waiting::Notification, 3, &[])?;
                four.cancel()?;
            }
            let mut three = request(3)?;
            three.start()?;
            timed_out(three.wait_within(SHORT), Waiting::Notification, 2, &[])?;
            check("still there", events.query(0)?, 1_u32)?;
            go(&window, SECOND)?;
            three.wait()?;
            check("data", window.local().get(1)?, 9_u64)?;
            let mut last = request(1)?;
            last.start()?;
            last.wait()?;
            check("all taken", events.query(0)?, 0_u32)?;
        }
        1 => {
            events.post(FIRST, 0)?;
            go(&window, FIRST)?;
            await_go(&window, FIRST)?;
            events.post(FIRST, 0)?;
            window.put_notify(FIRST, 1, &[9], events.event(0)?)?;
            events.post(FIRST, 0)?;
        }
        _ => {}
    }
    // Rank 0 has to wait for the others: it can try again.
    let freeing = events.freeing();
    if world.rank() == FIRST {
        return Ok(unless_early(freeing, SHORT, |_| true)?);
    }
    Ok(freeing.wait()?)
}

/// A lock that is not freed: each call that tells names its owner, and tells once when it goes on.
pub(super) fn locked<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let world = join(context)?;
    let mut window = world.allocate::<u32>(4)?;
    window.set_num_notify(1)?;
    let events = world.events(1)?;
    if world.rank() == FIRST {
        let held = take(&machine, SECOND);
        at_lock(held, events.posting(SECOND, 0)?)?;
        let held = take(&machine, SECOND);
        let target = window.to(SECOND, 0).notify(events.event(0)?);
        at_lock(held, target.put(&[7])?)?;
        let held = take(&machine, SECOND);
        at_lock(held, window.to(SECOND, 0).notify(Counter(0)).put(&[])?)?;
        // The own lock: the same call again goes on.
        let held = take(&machine, FIRST);
        is_late(&world, Waiting::Lock, FIRST, || {
            window.set_notify_value(Counter(0), 5.into())
        })?;
        is_late(&world, Waiting::Lock, FIRST, || {
            window.reset_notify_value(Counter(0))
        })?;
        check("nothing was done", window.notify_value(Counter(0))?, 0_u32)?;
        drop(held);
        window.set_notify_value(Counter(0), 5.into())?;
        check(
            "swapped once",
            window.reset_notify_value(Counter(0))?,
            5_u32,
        )?;
    }
    world.barrier()?;
    if world.rank() == SECOND {
        check("posts", events.query(0)?, 2_u32)?;
        await_posts(&window, 0..1, events.event(0)?, 2)?;
        check("data", window.local().get(0)?, 7_u32)?;
        check("counted", window.notify_value(Counter(0))?, 1_u32)?;
    }
    Ok(world.barrier()?)
}

/// Tried in every schedule.
pub(super) mod small {
    use super::*;

    /// Others post to rank 0, which takes them one by one.
    pub(crate) fn post<'w, L: Link>(world: &World<'w, L>, events: &Events<'w, L>) -> Result {
        if world.rank() != FIRST {
            return Ok(events.post(FIRST, 0)?);
        }
        for _ in 1..world.size() {
            events.wait(0, 1)?;
        }
        check("none is left", events.query(0)?, 0_u32)
    }

    /// A word goes to rank 1 and comes back, with events.
    pub(crate) fn ping_pong<'w, L: Link>(
        window: &Window<'w, u32, L>,
        events: &Events<'w, L>,
    ) -> Result {
        let (world, event) = (window.world(), events.event(0)?);
        let next = world.rank().next(world.size());
        if world.rank() == FIRST {
            window.put_notify(next, 0, &[5], event)?;
        }
        await_posts(window, 0..1, event, 1)?;
        check("word", window.local().get(0)?, 5_u32)?;
        if world.rank() != FIRST {
            window.put_notify(next, 0, &[5], event)?;
        }
        Ok(())
    }

    /// Events are made, posted to and freed, and their memory is used for something else.
    pub(crate) fn made<L: Link>(world: &World<'_, L>) -> Result {
        let next = world.rank().next(world.size());
        let events = world.events(1)?;
        events.post(next, 0)?;
        events.wait(0, 1)?;
        Ok(events.free()?)
    }
}
