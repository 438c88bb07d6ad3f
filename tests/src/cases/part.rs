//! Worlds of a part of the ranks. What they do is kept short: it is compiled for their link, too.

use flagpost::epoch::Assert;
use flagpost::{
    Config, Differs, Error, Link, Part, Rank, Rma as _, Room, Tag, World, rma::Operation,
};

use super::steps::{FIRST, SECOND, differs, neighbours, refused};
use crate::{Result, context::check};

const ROOM: Room = Room {
    bytes: 1024,
    windows: 1,
};
const CONFIG: Config = Config { unexpected: 4 };

/// Runs `program` in the part's world, if this rank is in it.
fn within<L: Link>(
    part: &Part<'_, L>,
    program: impl FnOnce(&World<'_, flagpost::PartLink<'_, L>>) -> Result,
) -> Result {
    let mut words = [0; 128];
    match part.link() {
        Some(link) => World::run(link, &mut words, CONFIG, program),
        None => Ok(()),
    }
}

/// Two parts, numbered from the last rank down, and a rank in none. Each has epochs, notifications,
/// fences, a lock, a sum and an event, and all of it again in what it has given back.
pub(super) fn split<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank().get(), world.size());
    let color = (me < 2 || me + 1 < size).then_some(u32::from(me % 2));
    let part = world.split(color, u32::from(size - me), ROOM)?;
    within(&part, |mine| {
        let others =
            (0..size).filter(|other| other % 2 == me % 2 && (*other < 2 || other + 1 < size));
        check("size", mine.size(), others.clone().count() as u64)?;
        let number = others.filter(|other| *other > me).count();
        check("rank", mine.rank().get(), number as u64)?;
        works(mine)
    })?;
    check("its link is given once", part.link().is_none(), true)?;
    part.free()?;
    let odd = Room {
        bytes: 64 * usize::from(me + 1),
        windows: 1,
    };
    let named = if me == 0 { SECOND } else { FIRST };
    let part = world.split(color, 0, odd);
    refused(
        "rooms differ",
        part.map(drop),
        differs(named, Differs::Length),
    )?;
    let list = if me == 0 {
        [FIRST, SECOND]
    } else {
        [SECOND, FIRST]
    };
    let part = world.part(&list, ROOM).map(drop);
    refused("lists differ", part, differs(named, Differs::Other))?;
    let part = world.part(&[Rank::new(size)], ROOM).map(drop);
    refused(
        "no rank",
        part,
        Error::NoSuchRank {
            rank: Rank::new(size),
            size,
        },
    )
}

/// A part inside counts as one window more than it has, and its bytes; what is missing is named.
pub(super) fn rooms<L: Link>(world: &World<'_, L>) -> Result {
    let each = (56 * usize::from(world.size())).next_multiple_of(128);
    let room = |bytes, windows| Room { bytes, windows };
    let part = world.split(Some(0), 0, room(2 * each, 2))?;
    within(&part, |mine| {
        let full = Error::RoomFull {
            missing_bytes: 0,
            missing_windows: 1,
        };
        let fits = mine.split(Some(0), 0, room(0, 1))?;
        let inner = mine.split(Some(0), 0, room(0, 0)).map(drop);
        refused("no slots", inner, full)?;
        let memory = mine.reserve(3 * each).err();
        let missing = matches!(
            memory,
            Some(Error::RoomFull {
                missing_windows: 0,
                ..
            })
        );
        check("no bytes", missing, true)?;
        let windows = mine.split(Some(0), 0, room(0, 2)).map(drop);
        refused("no windows", windows, Error::TooManyWindows { max: 2 })?;
        fits.free()?;
        Ok(mine.split(Some(0), 0, room(each, 1))?.free()?)
    })?;
    Ok(part.free()?)
}

/// Ranks that lose nobody go on with all; and what was set aside comes back, used or not.
pub(super) fn spare<L: Link>(world: &World<'_, L>) -> Result {
    for is_used in [true, false] {
        let spare = world.spare(ROOM)?;
        if is_used {
            let part = spare.survivors()?;
            within(part, |mine| {
                check("size", mine.size(), world.size())?;
                check("rank", mine.rank().get(), world.rank().get())?;
                works(mine)
            })?;
            let link = spare.survivors()?.link();
            check("its link is given once", link.is_none(), true)?;
        }
        spare.free()?;
    }
    Ok(())
}

fn works<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, prev) = neighbours(world);
    for round in 1..=2_u32 {
        let window = world.allocate::<u32>(32)?;
        let events = world.events(1)?;
        refused(
            "no more windows",
            world.allocate::<u32>(1).map(drop),
            Error::TooManyWindows { max: 1 },
        )?;
        let local = window.local();
        for epoch in 0..2 {
            let exposure = window.post([prev])?;
            let access = window.start([next])?;
            access.put(next, 1, &[round + epoch])?;
            access.complete()?;
            exposure.wait()?;
            check("epoch", local.get(1)?, round + epoch)?;
        }
        let mut request = window.expect(2..3, Tag(round))?;
        request.start()?;
        world.barrier()?;
        window.put_notify(next, 2, &[round], Tag(round))?;
        check("source", request.wait()?.source.get(), prev.get())?;
        check("notified", local.get(2)?, round)?;
        let fence = window.fence(Assert::empty())?;
        fence.put(next, 3, &[round])?;
        fence.end()?;
        check("fence", local.get(3)?, round)?;
        let lock = window.lock_exclusive(FIRST)?;
        lock.accumulate(FIRST, 31, &[1], Operation::SUM)?;
        lock.unlock()?;
        events.post(next, 0)?;
        events.wait(0, 1)?;
        let mut sum = [1_u32];
        world.allreduce(&mut sum, u32::wrapping_add)?;
        check("sum", sum[0], world.size())?;
        let lock = window.lock_exclusive(FIRST)?;
        lock.get(FIRST, 31, &mut sum)?;
        lock.unlock()?;
        check("locked", sum[0], world.size())?;
        events.free()?;
        window.free()?;
    }
    Ok(())
}

/// Both worlds' notifications come while the other one waits. What a part leaves undone does not
/// come over what its memory and its window become.
pub(super) fn apart<L: Link>(world: &World<'_, L>) -> Result {
    const LEN: usize = 64;
    let me = world.rank();
    let window = world.allocate::<u32>(2)?;
    let two = Room { windows: 2, ..ROOM };
    let part = world.part(&[SECOND, FIRST], two)?;
    let mut requests = [window.expect(0..1, Tag(5))?, window.expect(1..2, Tag(6))?];
    for request in &mut requests {
        request.start()?;
    }
    world.barrier()?;
    within(&part, |mine| {
        let inner = mine.allocate::<u32>(LEN)?;
        let other = mine.allocate::<u32>(1)?;
        for (index, tag) in [(0, Tag(5)), (1, Tag(6))] {
            let mut request = inner.expect(index..index + 1, tag)?;
            request.start()?;
            mine.barrier()?;
            if me == SECOND {
                // One after the other, and the other way round.
                if index == 0 {
                    window.put_notify(FIRST, index, &[tag.0], tag)?;
                }
                inner.put_notify(SECOND, index, &[10 + tag.0], tag)?;
                if index == 1 {
                    window.put_notify(FIRST, index, &[tag.0], tag)?;
                }
            } else {
                if index == 1 {
                    check("source", requests[index].wait()?.source.get(), 1_u16)?;
                }
                check("inner source", request.wait()?.source.get(), 0_u16)?;
                check("inner", inner.local().get(index)?, 10 + tag.0)?;
                if index == 0 {
                    check("source", requests[index].wait()?.source.get(), 1_u16)?;
                }
                check("outer", window.local().get(index)?, tag.0)?;
            }
            mine.barrier()?;
        }
        // What nobody waits for.
        for index in 16..LEN {
            inner.local().set(index, 0xbad)?;
        }
        if me == SECOND {
            inner.put_notify(SECOND, 2, &[0xbad], Tag(7))?;
            other.put_notify(SECOND, 0, &[0xbad], Tag(7))?;
            let lock = inner.lock_exclusive(SECOND)?;
            lock.put(SECOND, 3, &[0xbad])?;
            lock.unlock()?;
        }
        Ok(())
    })?;
    part.free()?;
    let events = world.events(ROOM.bytes as u32 / 8)?;
    let last = events.len() - 1;
    for index in [0, last / 4, last / 2, last] {
        events.post(FIRST, index)?;
        if me == FIRST {
            events.wait(index, world.size().into())?;
        }
    }
    world.barrier()?;
    for index in 0..events.len() {
        check("posts", events.query(index)?, 0_u32)?;
    }
    for window in [world.allocate::<u32>(1)?, world.allocate(1)?] {
        let mut request = window.expect(0..1, Tag(7))?;
        request.start()?;
        check("nothing has come", request.test()?.is_none(), true)?;
    }
    Ok(())
}
