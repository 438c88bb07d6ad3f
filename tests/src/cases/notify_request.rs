//! Several requests at a time, probing, and windows that are freed while something is not matched.

use flagpost::{
    Budget, Error, Link, Rank, Request, Source, Tag, TagFilter, Unfinished, Waiting, Window, World,
    test_any, wait_all, wait_any,
};

use super::handles::{short, timed_out};
use super::steps::{NO_ERROR, neighbours, refused};
use crate::{Result, context::check};

/// Requests that are complete in the order in which they are asked for, one at a time and together.
pub(super) fn several<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, prev) = neighbours(world);
    let window = world.allocate::<u32>(4)?;
    let mut all = [
        window.expect(0..1, Tag(1))?.from(prev)?,
        window.expect(1..3, Tag(2))?.times(2)?,
        window.expect(0..0, Tag(3))?.from(prev)?,
    ];
    check("none to test", test_any(&mut all)?.is_none(), true)?;
    check("none to wait for", wait_any(&mut all)?.is_none(), true)?;
    wait_all(&mut all)?;
    for round in 1..=3_u32 {
        for request in &mut all {
            request.start()?;
            check("nothing yet", request.status().is_none(), true)?;
        }
        check("none yet", test_any(&mut all)?.is_none(), true)?;
        world.barrier()?; // all have started
        window.notify(next, Tag(3))?;
        window.put_notify(next, 1, &[round + 10], Tag(2))?;
        window.put_notify(next, 2, &[round + 20], Tag(2))?;
        window.put_notify(next, 0, &[round], Tag(1))?;
        if round == 2 {
            wait_all(&mut all)?;
        } else {
            let mut complete = [false; 3];
            while let Some(index) = wait_any(&mut all)? {
                let status = all[index].status().ok_or(NO_ERROR)?;
                check("tag", status.tag.0, index as u32 + 1)?;
                check("source", status.source.get(), prev.get())?;
                check("once", set(&mut complete, index), false)?;
            }
            check("each", complete == [true; 3], true)?;
        }
        for (tag, request) in (1..).zip(&all) {
            let status = request.status().ok_or(NO_ERROR)?;
            check("last match", status.tag.0, tag as u32)?;
            check("its source", status.source.get(), prev.get())?;
            check("complete", request.is_started(), false)?;
        }
        check("put", window.local().get(0)?, round)?;
        check("first of two", window.local().get(1)?, round + 10)?;
        check("second of two", window.local().get(2)?, round + 20)?;
        world.barrier()?;
    }
    let [mut first, second, third] = all;
    first.start()?;
    refused("its line", window.local().set(0, 1), Error::Exposed)?;
    // What a later one took from the link is not lost to an earlier one.
    let mut two = [second, third];
    two.iter_mut().try_for_each(Request::start)?;
    world.barrier()?;
    window.notify(next, Tag(2))?;
    window.notify(next, Tag(2))?;
    check("the first", wait_any(&mut two)? == Some(0), true)?;
    let [second, third] = two;
    world.barrier()?;
    first.free()?;
    window.local().set(0, 1)?;
    second.free()?;
    Ok(third.free()?)
}

/// Sets a flag, and tells what it was.
fn set<const N: usize>(flags: &mut [bool; N], index: usize) -> bool {
    let flag = flags.get_mut(index);
    flag.is_some_and(|flag| core::mem::replace(flag, true))
}

/// Waits for a notification without matching it.
fn found<L: Link>(
    window: &Window<'_, u32, L>,
    source: impl Into<Source>,
    tag: impl Into<TagFilter>,
) -> Result<(Rank, u32)> {
    let (source, tag) = (source.into(), tag.into());
    loop {
        if let Some(status) = window.probe(source, tag)? {
            return Ok((status.source, status.tag.0));
        }
        window.world().link().relax();
    }
}

/// What was probed for is still there, and matched in the order of arrival.
pub(super) fn probe<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let (next, prev) = (me.next(size), me.prev(size));
    let (window, other) = (world.allocate::<u32>(1)?, world.allocate::<u32>(1)?);
    check("nothing", window.probe(prev, Tag(1))?.is_none(), true)?;
    world.barrier()?; // all have seen nothing
    other.notify(next, Tag(5))?;
    for tag in [5, 6, 5, 7] {
        window.put_notify(next, 0, &[tag], Tag(tag))?;
    }
    for _ in 0..2 {
        let any = (Source::Any, TagFilter::Any);
        check("oldest", found(&window, any.0, any.1)?.1, 5_u32)?;
        let (source, tag) = found(&window, prev, Tag(7))?;
        check("youngest", tag, 7_u32)?;
        check("source", source.get(), prev.get())?;
    }
    let stranger = Rank::new(if size > 1 { next.get() } else { 0 });
    if stranger != prev {
        check(
            "of another",
            window.probe(stranger, TagFilter::Any)?.is_none(),
            true,
        )?;
    }
    let mut one = window.expect(0..1, TagFilter::Any)?;
    for tag in [5_u32, 6, 5, 7] {
        let (source, seen) = found(&window, Source::Any, TagFilter::Any)?;
        check("next", seen, tag)?;
        check("next of", source.get(), prev.get())?;
        one.start()?;
        check("matched", one.wait()?.tag.0, tag)?;
    }
    check("all matched", window.probe(prev, Tag(7))?.is_none(), true)?;
    check("the other window's", other.discard_notifications()?, 1_u32)?;
    check("and no more", other.discard_notifications()?, 0_u32)?;
    let (max, beyond) = (world.limits().tag, Rank::new(size));
    let result = window.probe(me, Tag(max + 1));
    refused("tag", result, Error::TagTooLarge { max })?;
    let unknown = Error::NoSuchRank { rank: beyond, size };
    refused("rank", window.probe(beyond, Tag(1)), unknown)?;
    world.barrier()?;
    other.free()?;
    Ok(window.free()?)
}

/// A request that could take what a started one with a range waits for is refused, be it by equal
/// sources and tags or by any. Those that no notification matches both of stand started together.
pub(super) fn overlap<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, prev) = neighbours(world);
    let (window, other) = (world.allocate::<u32>(4)?, world.allocate::<u32>(1)?);
    let ask = |place: usize, tag| window.expect(place..place + 1, tag);
    let mut first = ask(0, Tag(1))?.from(prev)?;
    let mut apart = [ask(1, Tag(2))?.from(prev)?, other.expect(0..1, Tag(1))?];
    first.start()?;
    apart.iter_mut().try_for_each(Request::start)?;
    world.barrier()?;
    for _ in 0..2 {
        let mut alike = [
            ask(2, Tag(1))?.from(prev)?,
            ask(2, Tag(1))?,
            window.expect(2..3, TagFilter::Any)?.from(prev)?,
            window.expect(2..3, TagFilter::Any)?,
            window.expect(0..0, Tag(1))?,
        ];
        for (nth, request) in (0_u32..).zip(&mut alike) {
            refused("alike", request.start(), Error::RequestsOverlap)?;
            check("is not started", request.is_started(), false)?;
            // Of another source there is nothing to take.
            if world.size() > 1 && nth == 0 {
                let mut others = ask(2, Tag(1))?.from(prev.prev(world.size()))?;
                others.start()?;
                others.cancel()?;
            }
        }
        window.put_notify(next, 0, &[7], Tag(1))?;
        check("the first's", first.wait()?.source.get(), prev.get())?;
        check("data", window.local().get(0)?, 7_u32)?;
        // Now each may, but for those that take what is left started.
        for (nth, request) in (0_u32..).zip(&mut alike) {
            if nth == 2 || nth == 3 {
                refused("any tag", request.start(), Error::RequestsOverlap)?;
                continue;
            }
            request.start()?;
            let again = first.start().err();
            // One without a range has no place to be known by.
            check("alike", again == Some(Error::RequestsOverlap), nth < 4)?;
            if again.is_none() {
                first.cancel()?;
            }
            request.cancel()?;
        }
        first.start()?;
        world.barrier()?;
    }
    first.cancel()?;
    apart.iter_mut().try_for_each(Request::cancel)?;
    other.free()?;
    Ok(window.free()?)
}

/// A queue full of what the first of several requests does not match, and the second does.
pub(super) fn full<L: Link>(world: &World<'_, L>) -> Result {
    const MANY: u16 = 70; // more than the queue's 64
    let window = world.allocate::<u32>(1)?;
    let (sender, target) = (Rank::new(0), Rank::new(1));
    if world.rank() == sender {
        for _ in 0..2 {
            for _ in 0..MANY {
                window.notify(target, Tag(1))?;
            }
            window.put_notify(target, 0, &[42], Tag(2))?;
        }
    } else if world.rank() == target {
        let mut both = [
            window.expect(0..1, Tag(2))?.from(sender)?,
            window.expect(0..0, Tag(1))?.from(sender)?.times(MANY)?,
        ];
        let full = Error::QueueFull { capacity: 64 };
        let probed = loop {
            match window.probe(sender, Tag(2)) {
                Ok(None) => world.link().relax(),
                Ok(Some(_)) => return Err(NO_ERROR),
                Err(error) => break error,
            }
        };
        check("no room to look on", probed == full, true)?;
        let [behind, _] = &mut both;
        behind.start()?;
        let alone = wait_any(core::slice::from_mut(behind)).map(|_| ());
        refused("no room", alone, full)?;
        let [_, before] = &mut both;
        before.start()?;
        wait_all(&mut both)?;
        check("data behind", window.local().get(0)?, 42_u32)?;
        check("found", found(&window, sender, TagFilter::Any)?.1, 1_u32)?;
        both.iter_mut().try_for_each(Request::start)?;
        while wait_any(&mut both)?.is_some() {}
    }
    Ok(window.free()?)
}

/// How many notifications are missing to several requests, and whose.
pub(super) fn timeout<L: Link>(world: &World<'_, L>) -> Result {
    let (sender, target) = (Rank::new(0), Rank::new(1));
    let window = world.allocate::<u32>(1)?;
    if world.rank() == target {
        let mut both = [
            window.expect(0..1, Tag(1))?.from(sender)?.times(2)?,
            window.expect(0..0, Tag(2))?.from(sender)?,
        ];
        both.iter_mut().try_for_each(Request::start)?;
        timed_out(
            short(world, || wait_any(&mut both)),
            Waiting::Notification,
            3,
            &[sender, sender],
        )?;
        timed_out(
            short(world, || wait_all(&mut both)),
            Waiting::Notification,
            3,
            &[sender, sender],
        )?;
        let mut any = [window.expect(0..0, Tag(3))?];
        any.iter_mut().try_for_each(Request::start)?;
        timed_out(
            short(world, || wait_any(&mut any)),
            Waiting::Notification,
            1,
            &[],
        )?;
        any.iter_mut().try_for_each(Request::cancel)?;
        world.barrier()?;
        wait_all(&mut both)?;
        check("put", window.local().get(0)?, 3_u32)?;
    } else {
        world.barrier()?;
    }
    if world.rank() == sender {
        window.notify(target, Tag(1))?;
        window.notify(target, Tag(2))?;
        window.put_notify(target, 0, &[3], Tag(1))?;
    }
    Ok(window.free()?)
}

/// Frees a window of which so many notifications are not matched: that is an error, and so on until
/// they are dropped.
pub(super) fn free_unmatched<'w, T: bytemuck::Pod, L: Link>(
    window: Window<'w, T, L>,
    unmatched: u32,
) -> Result {
    let mut window = window;
    for _ in 0..2 {
        let Err(Unfinished { handle, error }) = window.freeing().wait_within(Budget::UNLIMITED)
        else {
            return Err(NO_ERROR);
        };
        let expected = Error::Unmatched { count: unmatched };
        if error != expected {
            return Err(error.into());
        }
        window = handle.keep();
    }
    check("dropped", window.discard_notifications()?, unmatched)?;
    Ok(window.free()?)
}

/// More of one window's notifications than the queue holds, when it is freed.
pub(super) fn flooded<L: Link>(world: &World<'_, L>) -> Result {
    let sent = u32::from(super::crowd(world.size()));
    let next = world.rank().next(world.size());
    let (window, other) = (world.allocate::<u32>(1)?, world.allocate::<u32>(1)?);
    for number in 0..sent {
        window.notify(next, Tag(number))?;
    }
    other.notify(next, Tag(1))?;
    let Err(Unfinished { handle, error }) = window.freeing().wait_within(Budget::UNLIMITED) else {
        return Err(NO_ERROR);
    };
    match error {
        Error::Unmatched { count } => check("that many", (64..=sent).contains(&count), true)?,
        error => return Err(error.into()),
    }
    // It can still be matched, in order.
    let window = handle.keep();
    let mut first = window.expect(0..0, TagFilter::Any)?.times(2)?;
    first.start()?;
    check("second", first.wait()?.tag.0, 1_u32)?;
    first.free()?;
    check("dropped", window.discard_notifications()?, sent - 2)?;
    window.free()?;
    free_unmatched(other, 1)
}

/// Ranks but 0 put to rank 0, which waits for any of them, twice.
pub(super) fn small_any<L: Link>(window: &Window<'_, u32, L>) -> Result {
    let world = window.world();
    let first = Rank::new(0);
    let me = u32::from(world.rank().get());
    if world.rank() != first {
        let index = usize::from(world.rank().get() - 1);
        return Ok(window.put_notify(first, index, &[me + 70], Tag(me))?);
    }
    let last = Rank::new(world.size() - 1);
    let mut both = [
        window.expect(0..0, Tag(1))?.from(Rank::new(1))?,
        window.expect(0..2, TagFilter::Any)?.from(last)?,
    ];
    let [one, other] = &mut both;
    one.start()?;
    if last != Rank::new(1) {
        other.start()?;
    }
    let mut tags = 0;
    while let Some(index) = wait_any(&mut both)? {
        tags += both[index].status().ok_or(NO_ERROR)?.tag.0;
    }
    check("tags", tags, if last.get() == 1 { 1_u32 } else { 3 })?;
    if last != Rank::new(1) {
        check("put", window.local().get(1)?, 72_u32)?;
    }
    Ok(())
}
