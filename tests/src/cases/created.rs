//! Windows over their ranks' own memory; giving windows and memory back; neighbours' memory by
//! loads and stores.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use flagpost::{
    Budget, Differs, EpochSlots, Error, Kind, Link, Memory, Model, Options, Rank, Rma as _, Tag,
    TagFilter, Unfinished, World, rma::Operation,
};
use flagpost_link::{Op, Place};

use super::steps::{
    NO_ERROR, Signals, differs, finds, hear, holds, neighbours, refused as refuses,
};
use super::{insist, notify_request::free_unmatched};
use crate::{Failure, Result, context::check};

/// More than any rank has.
const HUGE: usize = 1 << 30;

/// How many bytes could be had at once.
pub(super) fn largest<L: Link>(world: &World<'_, L>) -> Result<usize> {
    match world.reserve(HUGE) {
        Err(Error::MemoryFull { missing_bytes }) => Ok(HUGE - missing_bytes),
        Err(other) => Err(other.into()),
        Ok(_) => Err(NO_ERROR),
    }
}

/// Memory that was a window is put to past all caches, and nothing of the window travels over it.
pub(super) fn dirty<L: Link>(world: &World<'_, L>) -> Result {
    const BYTES: usize = 76;
    let (link, me) = (world.link(), world.rank());
    let next = me.next(world.size());
    let window = world.allocate::<u8>(BYTES)?;
    window.local().copy_in(0, &[9; BYTES])?;
    window.free()?;
    let key = link.allocate(BYTES, Place::Symmetric)?;
    world.barrier()?;
    insist(world.link(), || {
        link.put(next, key, 0, &[next.get() as u8; BYTES])
    })?;
    for _ in 0..4 {
        world.barrier()?;
        let (mut seen, op) = ([0; BYTES], Op::new());
        insist(world.link(), || link.get(me, key, 0, &mut seen, &op))?;
        check("what was put", seen == [me.get() as u8; BYTES], true)?;
    }
    link.withdraw(key);
    Ok(())
}

/// A window with notifications that are not matched is not freed. One that takes its place later
/// finds none of them, nor of its late puts.
pub(super) fn late<L: Link>(world: &World<'_, L>) -> Result {
    let next = world.rank().next(world.size());
    for round in 1..=3_u32 {
        let first = world.allocate::<u32>(8)?;
        first.put_notify(next, 3, &[77], Tag(1))?;
        first.put_notify(next, 4, &[78], Tag(1))?;
        free_unmatched(first, 2)?;
        let second = world.allocate::<u32>(8)?;
        second.put_notify(next, 5, &[round], Tag(1))?;
        hear(second.expect(0..8, TagFilter::Any)?)?;
        let mut seen = [1; 8];
        second.local().copy_out(0, &mut seen)?;
        check("put", seen[5], round)?;
        check("nothing else", seen.iter().sum::<u32>(), round)?;
        second.free()?;
    }
    Ok(())
}

/// A window whose rank is full of another's notifications can be freed once these are matched; none
/// is lost.
pub(super) fn full_queue<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let sent = super::crowd(size);
    let other = world.allocate::<u32>(1)?;
    let window = world.allocate::<u32>(1)?;
    for _ in 0..sent {
        other.put_notify(me.next(size), 0, &[], Tag(2))?;
    }
    let Err(Unfinished { handle, error }) = window.freeing().wait_within(Budget::UNLIMITED) else {
        return Err(NO_ERROR);
    };
    check("full", error == Error::QueueFull { capacity: 64 }, true)?;
    let (group, window) = ([me], handle.keep());
    refuses("no epochs", window.start(group), Error::EpochAbandoned)?;
    hear(
        other
            .expect(0..0, Tag(2))?
            .from(me.prev(size))?
            .times(sent)?,
    )?;
    window.free()?;
    Ok(other.free()?)
}

/// Windows come and go in mixed order; in the end there is as much room as before.
pub(super) fn churn<L: Link>(world: &World<'_, L>) -> Result {
    const LIVE: usize = 4;
    let rounds = if world.size() > 8 { 6 } else { 24 };
    let before = largest(world)?;
    let mut live: [Option<flagpost::Window<'_, u32, L>>; LIVE] = [const { None }; LIVE];
    for round in 0..rounds {
        let place = &mut live[round * 7 % 5 % LIVE];
        if let Some(window) = place.take() {
            window.free()?;
        }
        let len = [1, 19, 0, 40, 8, 3][round % 6];
        let window = world.allocate::<u32>(len)?;
        check("length", window.len() as u64, len as u64)?;
        for index in 0..len {
            check("new element", window.local().get(index)?, 0_u32)?;
            window.local().set(index, round as u32 + 1)?;
        }
        *place = Some(window);
    }
    for window in live.into_iter().rev().flatten() {
        window.free()?;
    }
    check("room", largest(world)? as u64, before as u64)
}

/// Memory that is used up says how much is missing, to the byte; and all of it comes back.
pub(super) fn full<L: Link>(world: &World<'_, L>) -> Result {
    const BLOCKS: usize = 9;
    let all = largest(world)?;
    let bytes = all / 8 + 1;
    let mut blocks: [Option<Memory<'_, L>>; BLOCKS] = [const { None }; BLOCKS];
    let mut missing = 0;
    for block in &mut blocks {
        match world.reserve(bytes) {
            Ok(memory) => *block = Some(memory),
            Err(Error::MemoryFull { missing_bytes }) => {
                missing = missing_bytes;
                break;
            }
            Err(other) => return Err(other.into()),
        }
    }
    check("missing", (1..=bytes).contains(&missing), true)?;
    let full = Error::MemoryFull {
        missing_bytes: missing,
    };
    refuses("still full", world.reserve(bytes), full)?;
    let rest = world.reserve(bytes - missing)?;
    check("the rest", rest.len() as u64, (bytes - missing) as u64)?;
    rest.release()?;
    for start in [1, 0] {
        for block in blocks.iter_mut().skip(start).step_by(2) {
            if let Some(memory) = block.take() {
                memory.release()?;
            }
        }
    }
    check("room", largest(world)? as u64, all as u64)?;
    Ok(world.reserve(all)?.release()?)
}

/// What rank `of` offers: base, bytes and displacement unit.
fn offer<L: Link>(of: Rank) -> (usize, usize, usize) {
    let number = usize::from(of.get());
    let base = L::LINE * (number % 3);
    (base, 48 + 24 * (number % 4), [4, 8, 12][(number + 1) % 3])
}

/// Pieces of different lengths, bases and units; what was in memory before is there, and what was
/// put stays.
pub(super) fn created<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let memory = world.reserve(2 * L::LINE + 48 + 24 * 3 + 5)?;
    let (base, bytes, unit) = offer::<L>(me);
    let mine = 1000 + u32::from(me.get());
    memory.write(base, &[mine, mine + 1])?;
    memory.write(base + bytes, &[0xEE_u8; 5])?;
    let window = world.create::<u32>(&memory, base..base + bytes, unit)?;
    check("kind", window.kind() == Kind::Created, true)?;
    for rank in (0..world.size()).map(Rank::new) {
        let (_, bytes, unit) = offer::<L>(rank);
        check("bytes", window.bytes_of(rank)? as u64, bytes as u64)?;
        check("unit", window.unit_of(rank)? as u64, unit as u64)?;
        let len = (bytes - 4) / unit + 1;
        check("length", window.len_of(rank)? as u64, len as u64)?;
    }
    check("own first", window.local().get(0)?, mine)?;
    let last = window.len_of(next)? - 1;
    for epoch in 1..=2_u32 {
        let exposure = window.post([prev])?;
        let access = window.start([next])?;
        let mut seen = [0; 2];
        access.get(next, 0, &mut seen)?;
        let first = 1000 + u32::from(next.get());
        check("peer's first", seen[0], first)?;
        check("peer's second", seen[1], first + 1)?;
        access.put(next, last, &[mine + epoch])?;
        let (_, bytes, unit) = offer::<L>(next);
        let beyond = Error::OutOfRange {
            end: last as u64 + 2,
            len: (bytes / unit) as u64,
        };
        refuses("beyond", access.put(next, last + 1, &[1]), beyond)?;
        access.complete()?;
        exposure.wait()?;
        let from = 1000 + u32::from(prev.get()) + epoch;
        check("put", window.local().get(window.len() - 1)?, from)?;
    }
    window.free()?;
    let place = base + unit * ((bytes - 4) / unit);
    let (mut word, mut behind) = ([0_u32], [0_u8; 5]);
    memory.read(place, &mut word)?;
    check("stays", word[0], 1000 + u32::from(prev.get()) + 2)?;
    memory.read(base + bytes, &mut behind)?;
    check("behind the piece", behind == [0xEE; 5], true)?;
    Ok(memory.release()?)
}

/// Notified puts into memory that its owner has just written, matched late or never.
pub(super) fn created_notified<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, _) = neighbours(world);
    // Words of lines of their own: matched, the owner's, not matched.
    let line = (L::LINE / 4).max(4);
    let (matched, own, unmatched) = (1, line + 1, 2 * line + 1);
    let bytes = 4 * 3 * line;
    let memory = world.reserve(bytes)?;
    let read = |index| {
        let mut seen = [0_u32];
        memory.read(4 * index, &mut seen)?;
        Ok::<_, Failure>(seen[0])
    };
    for round in 1..=3_u32 {
        for index in 0..3 * line {
            memory.write(4 * index, &[round])?;
        }
        let window = world.create::<u32>(&memory, 0..bytes, 4)?;
        window.put_notify(next, matched, &[100 + round], Tag(1))?;
        world.barrier()?; // it has arrived
        hear(window.expect(0..2, Tag(1))?)?;
        check("put", window.local().get(matched)?, 100 + round)?;
        check("beside", window.local().get(0)?, round)?;
        window.local().set(own, 200 + round)?; // dirty when the window is freed
        check("cached", window.local().get(unmatched)?, round)?;
        world.barrier()?;
        window.put_notify(next, unmatched, &[300 + round], Tag(3))?; // nobody waits for it
        free_unmatched(window, 1)?;
        check("matched", read(matched)?, 100 + round)?;
        check("own", read(own)?, 200 + round)?;
        check("not matched", read(unmatched)?, 300 + round)?;
    }
    Ok(memory.release()?)
}

/// A displacement unit at which elements are put and got, but only some are accumulated to.
pub(super) fn created_unit<L: Link>(world: &World<'_, L>) -> Result {
    let next = world.rank().next(world.size());
    let memory = world.reserve(64)?;
    memory.write(0, &[0_u8; 64])?;
    let window = world.create::<u32>(&memory, 0..64, 6)?;
    let lock = window.lock_all()?;
    let unaligned = Error::UnitUnaligned { unit: 6, size: 4 };
    let sum = |index| lock.accumulate(next, index, &[5], Operation::SUM);
    refuses("sum", sum(1), unaligned)?;
    let fetched = lock.fetch_and_op(next, 3, 5, Operation::SUM);
    refuses("fetch", fetched, unaligned)?;
    let swapped = lock.compare_and_swap(next, 1, 0, 5);
    refuses("swap", swapped, unaligned)?;
    lock.put(next, 1, &[7])?;
    sum(2)?;
    sum(2)?;
    lock.flush(next)?;
    let mut seen = [[0]; 2];
    lock.get(next, 1, &mut seen[0])?;
    lock.get(next, 2, &mut seen[1])?;
    lock.unlock()?;
    check("put", seen[0][0], 7_u32)?;
    check("accumulated", seen[1][0], 10_u32)?;
    world.barrier()?;
    window.free()?;
    let window = world.create::<u32>(&memory, 0..64, 1)?;
    // Who puts all of a range puts its elements one behind the other, past the place of the last.
    let me = world.rank();
    let mut all = window.expect(0..16, Tag(1))?.from(me)?;
    all.start()?;
    refuses("own store", window.local().set(40, 1), Error::Exposed)?;
    window.notify(me, Tag(1))?;
    all.wait()?;
    window.local().set(40, 1)?;
    drop(all);
    window.free()?;
    Ok(memory.release()?)
}

/// Memory that was given back is put to past the cache, and nothing of its former use travels over
/// it.
pub(super) fn released<L: Link>(world: &World<'_, L>) -> Result {
    const BYTES: usize = 70;
    let (link, me) = (world.link(), world.rank());
    let memory = world.reserve(BYTES)?;
    memory.write(0, &[9_u8; BYTES])?;
    memory.release()?;
    let key = link.allocate(BYTES, Place::Own)?;
    insist(world.link(), || link.put(me, key, 0, &[5; BYTES]))?;
    for _ in 0..4 {
        world.barrier()?;
        let (mut seen, op) = ([0; BYTES], Op::new());
        insist(world.link(), || link.get(me, key, 0, &mut seen, &op))?;
        check("what was put", seen == [5; BYTES], true)?;
    }
    link.withdraw(key);
    Ok(())
}

/// Bad memory for a window, on all ranks and on one, is an error on all; the next window is as if
/// nothing had been.
pub(super) fn created_refused<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let memory = world.reserve(100)?;
    let room = largest(world)?;
    let create = |range, unit| world.create::<u32>(&memory, range, unit);
    let bad_base = Error::BadBase {
        line: L::LINE as u32,
    };
    refuses("unit 0", create(0..8, 0), Error::BadUnit { unit: 0 })?;
    if L::LINE > 4 {
        refuses("inside of a line", create(4..8, 4), bad_base)?;
    }
    if let Ok(unit) = usize::try_from(1_u64 << 33) {
        let large = Error::BadUnit { unit: 1 << 33 };
        refuses("large unit", create(0..8, unit), large)?;
    }
    let beyond = Error::OutOfRange { end: 101, len: 100 };
    refuses("beyond", create(0..101, 4), beyond)?;
    #[allow(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    let reversed = create(8..4, 4);
    refuses("reversed", reversed, Error::OutOfRange { end: 8, len: 4 })?;
    let overflow = Error::OutOfRange {
        end: usize::MAX as u64,
        len: 100,
    };
    refuses("overflow", create(0..usize::MAX, 4), overflow)?;
    if size > 1 {
        let odd = me.get() == 0;
        let error = match odd {
            true => Error::BadUnit { unit: 0 },
            false => differs(Rank::new(0), Differs::Other),
        };
        refuses("one fails", create(0..8, usize::from(!odd)), error)?;
        let named = Rank::new(u16::from(odd));
        let different = match odd {
            true => world.create::<u64>(&memory, 0..8, 4).err(),
            false => create(0..8, 4).err(),
        };
        let asymmetric = Some(differs(named, Differs::Element));
        check("elements differ", different == asymmetric, true)?;
    }
    check("room", largest(world)? as u64, room as u64)?;
    let window = create(0..100, 4)?;
    refuses("twice", create(0..8, 4), Error::MemoryInUse)?;
    refuses("read", memory.read(0, &mut [0_u8]), Error::MemoryInUse)?;
    refuses("write", memory.write(0, &[0_u8]), Error::MemoryInUse)?;
    let rank = Rank::new(size);
    let nobody = Error::NoSuchRank { rank, size };
    refuses("length of nobody", window.len_of(rank), nobody)?;
    refuses(
        "peer",
        window.peer(rank).map(|_| ()),
        match L::DIRECT {
            true => nobody,
            false => Error::NotDirect,
        },
    )?;
    let beyond = Error::OutOfRange { end: 26, len: 25 };
    refuses("beyond", window.local().set(25, 1), beyond)?;
    let mut pending = window.expect(0..1, Tag(1))?;
    pending.start()?;
    refuses(
        "request is started",
        window.freeing().wait_within(Budget::UNLIMITED),
        Error::Exposed,
    )?;
    refuses("in a window", memory.release(), Error::MemoryInUse)
}

/// Neighbours' elements by loads and stores, without epochs.
pub(super) fn shared<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let window = world.allocate_with::<u32, EpochSlots<'_>>(4, Model::Unified)?;
    if !L::DIRECT {
        let refused = window.peer(next).map(|_| ());
        return refuses("not direct", refused, Error::NotDirect);
    }
    let (own, peer) = (window.peer(me)?, window.peer(next)?);
    for round in 1..=3_u32 {
        peer.set(0, 10 * u32::from(me.get()) + round)?;
        own.set(1, 1000 * u32::from(me.get()) + round)?;
        world.barrier()?;
        check(
            "set by a peer",
            own.get(0)?,
            10 * u32::from(prev.get()) + round,
        )?;
        check(
            "set by its owner",
            peer.get(1)?,
            1000 * u32::from(next.get()) + round,
        )?;
        check("the owner's view", window.local().get(0)?, own.get(0)?)?;
        world.barrier()?;
    }
    let beyond = Error::OutOfRange { end: 5, len: 4 };
    refuses("get beyond", peer.get(4), beyond)?;
    refuses("set beyond", peer.set(4, 1), beyond)?;
    Ok(window.free()?)
}

/// Where the words of a small window begin: in another line at each rank.
fn small_base<L: Link>(of: Rank) -> usize {
    L::LINE * of.index()
}

/// Memory for it.
pub(super) fn small_memory<'w, L: Link>(world: &'w World<'w, L>) -> Result<Memory<'w, L>> {
    Ok(world.reserve(small_base::<L>(Rank::new(world.size())) + 12)?)
}

/// Three words of it.
pub(super) fn small<'w, L: Link>(
    world: &'w World<'w, L>,
    memory: &'w Memory<'w, L>,
) -> Result<flagpost::Window<'w, u32, L>> {
    let base = small_base::<L>(world.rank());
    Ok(world.create(memory, base..base + 12, 4)?)
}

/// Elements that lie one behind the other where indices are further apart: a run may end between
/// two of these.
pub(super) fn runs<L: Link>(world: &World<'_, L>) -> Result {
    let memory = world.reserve(8)?;
    let window = world.create::<u32>(&memory, 0..8, 8)?;
    let local = window.local();
    check("indices", window.len() as u64, 1_u64)?;
    local.copy_in(0, &[1, 2])?;
    holds("both", &local, 0, [1, 2])?;
    let beyond = Error::OutOfRange { end: 2, len: 1 };
    super::steps::refused("beyond", local.copy_in(0, &[1, 2, 3]), beyond)?;
    world.barrier()?;
    window.free()?;
    Ok(memory.release()?)
}

/// A window, a late put to it, and memory that takes its place, in few steps.
pub(super) fn small_free<L: Link>(
    world: &World<'_, L>,
    window: flagpost::Window<'_, u32, L>,
) -> Result {
    let (link, me) = (world.link(), world.rank());
    let next = me.next(world.size());
    if me.get() == 0 {
        window.local().set(1, 9)?;
        window.put_notify(next, 0, &[7], Tag(1))?;
    }
    if me.get() == 1 {
        free_unmatched(window, 1)?;
    } else {
        window.free()?;
    }
    let key = link.allocate(4, Place::Symmetric)?;
    insist(world.link(), || link.put(me, key, 0, &[5; 4]))?;
    insist(world.link(), || link.fence())?;
    let (mut seen, op) = ([0; 4], Op::new());
    insist(world.link(), || link.get(me, key, 0, &mut seen, &op))?;
    check("what was put", seen == [5; 4], true)
}

/// Elements of a piece below.
const LEN: usize = 16;

/// Where rank `of` has them: its displacement unit, and bytes from the first to the last. Bases are
/// as large as the largest.
fn laid_out<L: Link>(of: Rank) -> (core::ops::Range<usize>, usize) {
    let odd = usize::from(of.get() % 2);
    let base = 256_usize.next_multiple_of(L::LINE) * (1 + odd);
    let unit = [4, 12][odd];
    (base..base + (LEN - 1) * unit + 4, unit)
}

/// Memory for these.
pub(super) fn memory<'w, L: Link>(world: &'w World<'w, L>) -> Result<Memory<'w, L>> {
    let (range, _) = laid_out::<L>(Rank::new(1));
    Ok(world.reserve(range.end + 4)?)
}

/// Pieces that begin anywhere, with any strategy, in both models: ranges of them that are exposed
/// or expected, and neighbours' elements by loads and stores. What lies around them stays.
pub(super) fn anywhere<'w, L: Link, S: Signals<'w, L>>(
    world: &'w World<'w, L>,
    memory: &'w Memory<'w, L>,
) -> Result {
    let (me, next, prev) = neighbours(world);
    let from = |rank: Rank| 100 * (u32::from(rank.get()) + 1);
    let (range, unit) = laid_out::<L>(me);
    for model in [Model::Separate, Model::Unified] {
        memory.write(range.start - 4, &[7])?;
        memory.write(range.end, &[8])?;
        let options = Options {
            strategy: S::posts(1),
            model,
        };
        let window = world.create_with::<u32, S>(memory, range.clone(), unit, options)?;
        let local = window.local();
        check("length", window.len() as u64, LEN as u64)?;
        for round in 1..=3_u32 {
            local.set(9, from(me) + round)?;
            // Are old once they are put.
            local.get(7)?;
            local.get(11)?;
            let exposure = window.post_range(8..12, [prev])?;
            match (local.set(10, round), model) {
                (Err(Error::Exposed), Model::Separate) | (Ok(()), Model::Unified) => {}
                (Err(other), _) => return Err(other.into()),
                (Ok(()), _) => return Err(NO_ERROR),
            }
            let access = window.start([next])?;
            finds(
                "a store of the next",
                &access,
                next,
                9,
                [from(next) + round],
            )?;
            access.put(next, 11, &[from(me) + round])?;
            access.complete()?;
            exposure.wait()?;
            check("put", local.get(11)?, from(prev) + round)?;
            let mut request = window.expect(4..8, Tag(1))?.from(prev)?;
            request.start()?;
            window.put_notify(next, 7, &[from(me) + 10 * round], Tag(1))?;
            request.wait()?;
            check("notified", local.get(7)?, from(prev) + 10 * round)?;
            world.barrier()?;
        }
        if L::DIRECT && model == Model::Unified {
            let (own, peer) = (window.peer(me)?, window.peer(next)?);
            peer.set(13, from(me))?;
            own.set(12, from(me) + 1)?;
            world.barrier()?;
            check("set by a peer", local.get(13)?, from(prev))?;
            check("set by its owner", peer.get(12)?, from(next) + 1)?;
        }
        world.barrier()?;
        window.free()?;
        let mut around = [[0_u32]; 3];
        memory.read(range.start - 4, &mut around[0])?;
        memory.read(range.end, &mut around[1])?;
        memory.read(range.start + 11 * unit, &mut around[2])?;
        let expected = [[7], [8], [from(prev) + 3]];
        check("around it, and in it", around == expected, true)?;
    }
    Ok(())
}
