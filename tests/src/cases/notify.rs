//! Notified access.

use flagpost::{Error, Link, Rank, Request, Rma as _, Tag, TagFilter, World};

use super::steps::{NO_ERROR, hear, refused};
use crate::{Result, context::check};

/// A token goes round the ring; each rank adds 1.
pub(super) fn ring<L: Link>(world: &World<'_, L>) -> Result {
    const ROUNDS: u64 = 3;
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u64>(1)?;
    let mut token = window.expect(0..1, Tag(7))?.from(me.prev(size))?;
    let mut value = 0;
    for round in 0..ROUNDS {
        if me.get() != 0 || round != 0 {
            token.start()?;
            let status = token.wait()?;
            check("source", status.source.get(), me.prev(size).get())?;
            check("tag", status.tag.0, 7_u32)?;
            value = window.local().get(0)?;
            let expected = round * u64::from(size) + u64::from(me.get());
            check("token", value, expected)?;
        }
        window.put_notify(me.next(size), 0, &[value + 1], Tag(7))?;
    }
    if me.get() == 0 {
        token.start()?;
        token.wait()?;
        check(
            "last token",
            window.local().get(0)?,
            ROUNDS * u64::from(size),
        )?;
    }
    Ok(())
}

/// Payloads around the inline limit and across lines, at odd places; the bytes beside stay.
pub(super) fn sizes<L: Link>(world: &World<'_, L>) -> Result {
    const LEN: usize = 160;
    let (me, size) = (world.rank(), world.size());
    let prev = me.prev(size);
    let window = world.allocate::<u8>(LEN)?;
    for (round, len) in (1_u8..).zip([0_usize, 1, 15, 16, 17, 31, 32, 33, 64, 100]) {
        let start = usize::from(round) % 7;
        let mut before = [0_u8; LEN];
        window.local().copy_in(0, &[0x5A; LEN])?;
        let mut request = window.expect(0..LEN, Tag(1))?.from(prev)?;
        request.start()?;
        world.barrier()?; // all have opened their pieces
        let data = [round; LEN];
        window.put_notify(me.next(size), start, &data[..len], Tag(1))?;
        request.wait()?;
        window.local().copy_out(0, &mut before)?;
        for (index, byte) in before.into_iter().enumerate() {
            let inside = index >= start && index < start + len;
            let expected = if inside { round } else { 0x5A };
            check("byte", byte, expected)?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// Requests pick by tag, in another order than that of arrival.
pub(super) fn tags<L: Link>(world: &World<'_, L>) -> Result {
    // Each differs from the first in one bit.
    let tags = [0, 1, 2, 16, 128, 256, world.limits().tag / 2 + 1];
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(tags.len())?;
    for (index, tag) in tags.into_iter().enumerate() {
        window.put_notify(me.next(size), index, &[tag + 100], Tag(tag))?;
    }
    for (index, tag) in tags.into_iter().enumerate().rev() {
        let status = hear(window.expect(index..index + 1, Tag(tag))?)?;
        check("tag", status.tag.0, tag)?;
        check("data of the tag", window.local().get(index)?, tag + 100)?;
    }
    Ok(())
}

/// Rank 0 counts everybody's notifications with one request, then names the last source.
pub(super) fn any_source<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(usize::from(size))?;
    let first = Rank::new(0);
    for round in 1..=2_u32 {
        if me == first {
            let everything = 0..window.len();
            let status = hear(window.expect(everything, TagFilter::Any)?.times(size - 1)?)?;
            let source = u32::from(status.source.get());
            check("tag of the last", status.tag.0, source + round)?;
            for rank in 1..size {
                let index = usize::from(rank);
                check(
                    "slot of each",
                    window.local().get(index)?,
                    u32::from(rank) * round,
                )?;
            }
        } else {
            let number = u32::from(me.get());
            window.put_notify(first, me.index(), &[number * round], Tag(number + round))?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// Requests pick by source: rank 0 asks for the others' notifications in descending order of rank.
pub(super) fn sources<L: Link>(world: &World<'_, L>) -> Result {
    let (me, first) = (world.rank(), Rank::new(0));
    let last = (world.size() - 1).min(8);
    let window = world.allocate::<u32>(9)?;
    if me.get() > last {
        return Ok(());
    }
    if me != first {
        let value = u32::from(me.get()) + 50;
        return Ok(window.put_notify(first, me.index(), &[value], Tag(5))?);
    }
    for rank in (1..=last).rev() {
        let index = usize::from(rank);
        let mut request = window
            .expect(index..index + 1, Tag(5))?
            .from(Rank::new(rank))?;
        request.start()?;
        check("source asked for", request.wait()?.source.get(), rank)?;
        let value = window.local().get(index)?;
        check("its data", value, u32::from(rank) + 50)?;
    }
    Ok(())
}

/// Everybody sends its neighbour more than a ring holds before it takes anything: ranks that wait
/// for room make room themselves.
pub(super) fn mutual<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let many = u32::from(super::crowd(size));
    let window = world.allocate::<u32>(1)?;
    for number in 1..=many {
        window.put_notify(me.next(size), 0, &[number], Tag(number))?;
    }
    let mut any = window.expect(0..1, TagFilter::Any)?.from(me.prev(size))?;
    for number in 1..=many {
        any.start()?;
        check("in order", any.wait()?.tag.0, number)?;
    }
    check("the last one", window.local().get(0)?, many)
}

/// [`mutual`], by requests that are tested until they are done.
pub(super) fn mutual_tested<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let many = u32::from(super::crowd(size));
    let window = world.allocate::<u32>(1)?;
    for number in 1..=many {
        let data = [number];
        let mut put = window.to(me.next(size), 0).notify(Tag(1)).put(&data)?;
        while !put.test()? {
            world.link().relax();
        }
    }
    hear(
        window
            .expect(0..1, Tag(1))?
            .from(me.prev(size))?
            .times(super::crowd(size))?,
    )?;
    check("the last one", window.local().get(0)?, many)
}

/// Everybody sends rank 0 more than its ring holds. Nothing is lost, in order per source.
pub(super) fn flood<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let each = 1 + 150 / u32::from(size - 1);
    let window = world.allocate::<u32>(usize::from(size))?;
    let first = Rank::new(0);
    if me != first {
        for number in 1..=each {
            window.put_notify(first, me.index(), &[number], Tag(number))?;
        }
        return Ok(());
    }
    // The data are read only when nobody can be storing any more: behind the very last
    // notification.
    let mut any = window.expect(0..0, TagFilter::Any)?;
    let mut last = window.expect(0..window.len(), TagFilter::Any)?;
    let mut seen = [0_u16; 1024];
    let total = each * u32::from(size - 1);
    for number in 1..=total {
        let request = if number == total { &mut last } else { &mut any };
        request.start()?;
        let status = request.wait()?;
        if let Some(seen) = seen.get_mut(status.source.index()) {
            *seen += 1;
            check("in order of its source", status.tag.0, u32::from(*seen))?;
        }
    }
    for rank in 1..size {
        let last = window.local().get(usize::from(rank))?;
        check("last of each", last, each)?;
    }
    any.start()?;
    check("nothing is left", any.test()?.is_none(), true)
}

/// Notifications of one source arrive in the order in which they were sent, and later ones cover
/// earlier data, inline or not.
pub(super) fn order<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u64>(24)?;
    let prev = me.prev(size);
    let mut any = window.expect(0..0, TagFilter::Any)?.from(prev)?;
    let mut last = window.expect(0..24, Tag(9))?.from(prev)?;
    for round in 1..=3_u64 {
        window.put_notify(me.next(size), 0, &[round; 20], Tag(1))?; // too large to travel inline
        window.put_notify(me.next(size), 20, &[round], Tag(2))?; // inline
        window.put_notify(me.next(size), 0, &[], Tag(9))?; // only tells
        for tag in [1_u32, 2] {
            any.start()?;
            check("in order", any.wait()?.tag.0, tag)?;
        }
        last.start()?;
        last.wait()?;
        for index in [0, 7, 19, 20] {
            check("data of earlier puts", window.local().get(index)?, round)?;
        }
        check("no more than that", window.local().get(21)?, 0_u64)?;
        world.barrier()?;
    }
    Ok(())
}

/// The target's own word shares a line with the one that is put. `start` writes it back; it may not
/// be stored to until the request is complete.
pub(super) fn shared_line<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    // Words per line; the second line is the one that is put to, somewhere in the middle.
    let words = (L::LINE / 4).max(1);
    let (line, put, elsewhere) = (words, words + words / 2, 3 * words);
    // Where a line is one word there is none beside it: the one before.
    let beside = if words > 1 { line } else { line - 1 };
    let window = world.allocate::<u32>(4 * words)?;
    let local = window.local();
    let mut request = window.expect(put..put + 1, Tag(1))?.from(me.prev(size))?;
    for round in 1..=3_u32 {
        local.set(beside, round * 5)?;
        local.set(elsewhere, round)?;
        request.start()?;
        for (index, len) in [(put, 1), (line, 1), (2 * words - 1, 2), (0, 3 * words)] {
            let store = local.copy_in(index, &[0; 3 * 64][..len]);
            refused("store into the line", store, Error::Exposed)?;
        }
        local.set(line - 1, round * 5)?;
        local.set(2 * words, round)?;
        local.set(elsewhere, round * 3)?;
        world.barrier()?; // the neighbour has started, too
        window.put_notify(me.next(size), put, &[round * 7], Tag(1))?;
        request.wait()?;
        check("put", local.get(put)?, round * 7)?;
        check("own word beside it", local.get(beside)?, round * 5)?;
        check("own word elsewhere", local.get(elsewhere)?, round * 3)?;
        world.barrier()?;
    }
    Ok(())
}

/// A later put of the same origin is not overwritten by an earlier one, whatever their sizes.
pub(super) fn overlap<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u64>(20)?;
    window.put_notify(me.next(size), 0, &[1], Tag(1))?;
    window.put_notify(me.next(size), 0, &[2; 20], Tag(2))?;
    hear(window.expect(0..20, Tag(2))?.from(me.prev(size))?)?;
    check("the later put", window.local().get(0)?, 2_u64)?;
    check("elsewhere", window.local().get(19)?, 2_u64)
}

/// A barrier covers notified puts, matched or not: an epoch behind it neither misses nor loses to
/// them.
pub(super) fn barrier<L: Link>(world: &World<'_, L>) -> Result {
    let (me, target, origin) = (world.rank(), Rank::new(0), Rank::new(1));
    let (targets, origins) = ([target], [origin]);
    let window = world.allocate::<u64>(1)?;
    // Inline, it would be in place when it is matched or flushed, and no sooner.
    window.set_inline(false);
    if me == origin {
        window.put_notify(target, 0, &[1], Tag(1))?;
    }
    world.barrier()?;
    if me == origin {
        let access = window.start(targets)?;
        let mut seen = [9];
        access.get(target, 0, &mut seen)?;
        check("put before the barrier", seen[0], 1_u64)?;
        access.put(target, 0, &[2])?;
        access.complete()?;
    } else if me == target {
        window.post(origins)?.wait()?;
        hear(window.expect(0..1, Tag(1))?.from(origin)?)?;
        check("put behind the barrier", window.local().get(0)?, 2_u64)?;
    }
    Ok(())
}

/// A request for several tells of the last one, and takes no more than it asked for.
pub(super) fn count<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u64>(1)?;
    for tag in 1..=7 {
        window.put_notify(me.next(size), 0, &[], Tag(tag))?;
    }
    let mut three = window
        .expect(0..0, TagFilter::Any)?
        .from(me.prev(size))?
        .times(3)?;
    for last in [3_u32, 6] {
        three.start()?;
        check("the third of three", three.wait()?.tag.0, last)?;
    }
    let mut rest = window.expect(0..0, TagFilter::Any)?;
    rest.start()?;
    check("what is left", rest.wait()?.tag.0, 7_u32)
}

/// A request that is cancelled halfway: what was put can be read, and own stores beside it do not
/// undo it.
pub(super) fn cancel<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(8)?;
    let local = window.local();
    let mut two = window.expect(0..8, Tag(1))?.from(me.prev(size))?.times(2)?;
    for round in 1..=2_u32 {
        two.start()?;
        check("fetched before the put", local.get(2)? < round, true)?;
        world.barrier()?; // the neighbour has started, too
        window.put_notify(me.next(size), 2, &[round], Tag(1))?;
        world.barrier()?;
        if round == 1 {
            check("one of two", two.test()?.is_none(), true)?;
        }
        // It may not have been taken from the link.
        two.cancel()?;
        local.set(1, round * 5)?;
        check("put", local.get(2)?, round)?;
        world.barrier()?;
    }
    Ok(())
}

/// As many unexpected notifications as the queue keeps, and then the wanted one.
pub(super) fn queue_just_full<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u8>(1)?;
    match world.rank().get() {
        0 => {
            for _ in 0..64 {
                window.put_notify(Rank::new(1), 0, &[], Tag(1))?;
            }
            Ok(window.put_notify(Rank::new(1), 0, &[5], Tag(2))?)
        }
        1 => {
            hear(window.expect(0..1, Tag(2))?)?;
            check("behind a full queue", window.local().get(0)?, 5_u8)
        }
        _ => Ok(()),
    }
}

/// A queue full of what nobody asks for is an error, not a loss and not a hang.
pub(super) fn queue_full<L: Link>(world: &World<'_, L>) -> Result {
    const MANY: u16 = 70; // more than the queue's 64
    let window = world.allocate::<u8>(1)?;
    match world.rank().get() {
        0 => {
            for _ in 0..MANY {
                window.put_notify(Rank::new(1), 0, &[], Tag(1))?;
            }
            window.put_notify(Rank::new(1), 0, &[42], Tag(2))?;
        }
        1 => {
            let mut wanted = window.expect(0..1, Tag(2))?.from(Rank::new(0))?;
            wanted.start()?;
            let full = Error::QueueFull { capacity: 64 };
            refused("full queue", wanted.wait(), full)?;
            hear(window.expect(0..0, Tag(1))?.times(MANY)?)?;
            wanted.wait()?;
            check("data behind", window.local().get(0)?, 42_u8)?;
        }
        _ => {}
    }
    Ok(())
}

/// The same tag on two windows is two different things.
pub(super) fn windows<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let (one, two) = (world.allocate::<u32>(1)?, world.allocate::<u32>(1)?);
    one.put_notify(me.next(size), 0, &[1], Tag(3))?;
    two.put_notify(me.next(size), 0, &[2], Tag(3))?;
    let mut second = two.expect(0..1, Tag(3))?.from(me.prev(size))?;
    let mut first = one.expect(0..1, Tag(3))?;
    second.start()?;
    second.wait()?;
    check("second window", two.local().get(0)?, 2_u32)?;
    first.start()?;
    first.wait()?;
    check("first window", one.local().get(0)?, 1_u32)
}

/// Bad input and wrong order are error values.
pub(super) fn misuse<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u64>(16)?;
    let max = world.limits().tag;
    let big = Tag(max.saturating_add(1));
    let result = window.put_notify(me, 0, &[1], big);
    refused("tag", result, Error::TagTooLarge { max })?;
    let stranger = Rank::new(size);
    let unknown = Error::NoSuchRank {
        rank: stranger,
        size,
    };
    let result = window.put_notify(stranger, 0, &[1], Tag(0));
    refused("target", result, unknown)?;
    let beyond = Error::OutOfRange { end: 17, len: 16 };
    let result = window.put_notify(me, 16, &[1], Tag(0));
    refused("range", result, beyond)?;

    let request = || window.expect(0..1, Tag(0));
    refused("count", request()?.times(0), Error::CountZero)?;
    refused("range", window.expect(16..17, Tag(0)), beyond)?;
    refused("source", request()?.from(stranger), unknown)?;
    let result = window.expect(0..1, big);
    refused("tag", result, Error::TagTooLarge { max })?;
    let started = || {
        let mut request = window.expect(0..0, Tag(0))?;
        request.start().map(|()| request)
    };
    refused("count, late", started()?.times(2), Error::RequestActive)?;
    refused("source, late", started()?.from(me), Error::RequestActive)?;

    let mut request = window.expect(0..1, Tag(max))?.from(me)?;
    refused("test before start", request.test(), Error::RequestInactive)?;
    request.start()?;
    refused("start twice", request.start(), Error::RequestActive)?;
    check("nothing yet", request.test()?.is_none(), true)?;

    // The window remembers 32 started requests; one that is cancelled makes room.
    let mut more: [Option<Request<'_, L>>; 31] = [const { None }; 31];
    for (tag, place) in (1..).map(Tag).zip(&mut more) {
        let mut request = window.expect(0..1, tag)?.from(me)?;
        request.start()?;
        *place = Some(request);
    }
    let mut one_more = window.expect(0..1, Tag(32))?.from(me)?;
    refused(
        "one_more",
        one_more.start(),
        Error::TooManyRequests { max: 32 },
    )?;
    for request in more.iter_mut().flatten() {
        request.cancel()?;
        refused("cancelled", request.cancel(), Error::RequestInactive)?;
    }
    one_more.start()?;
    one_more.cancel()?;

    // An empty range closes no line; a reversed one is an error.
    let mut nowhere = window.expect(9..9, Tag(1))?.from(me)?;
    nowhere.start()?;
    window.local().set(9, 4)?;
    nowhere.cancel()?;
    let reversed = Error::OutOfRange { end: 5, len: 3 };
    #[expect(clippy::reversed_empty_ranges, reason = "that is the case")]
    let result = window
        .expect(5..3, Tag(1))
        .and_then(|request| request.from(me));
    refused("reversed range", result, reversed)?;
    {
        let mut dropped = window.expect(12..13, Tag(1))?.from(me)?;
        dropped.start()?;
    }
    refused("left open", window.local().set(12, 1), Error::Exposed)?;

    window.put_notify(me, 0, &[6], Tag(max))?; // to itself
    let Some(status) = request.test()? else {
        return Err(NO_ERROR);
    };
    check("from itself", status.source.get(), me.get())?;
    check("largest tag", status.tag.0, max)?;
    check("own put", window.local().get(0)?, 6_u64)?;
    window.local().set(0, 1)?; // allowed again
    refused("test after the end", request.test(), Error::RequestInactive)
}
