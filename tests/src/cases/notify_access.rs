//! All notified accesses, and how their targets are told.

use flagpost::{
    Counter, EpochSlots, Error, Link, Model, Notice, Rank, Request, Rma as _, Signal, Status, Tag,
    TagFilter, Waiting, Window, World, rma::Operation,
};
use flagpost_link::Op;
use flagpost_verbs::{Verb, begin};

use super::handles::times_out;
use super::steps::{hear, holds, neighbours, refused, same};
use super::{
    insist,
    timeout::{SPARE, fill, hear_sent, hear_signal, say_sent},
};
use crate::{Result, context::check};

/// A request for one notification, started and waited for.
fn told<L: Link, S>(
    window: &Window<'_, u64, L, S>,
    range: core::ops::Range<usize>,
    source: Rank,
    tag: u32,
) -> Result<Status> {
    let mut request = window.expect(range, Tag(tag))?.from(source)?;
    request.start()?;
    Ok(request.wait()?)
}

/// Nobody is told twice.
fn nothing_is_left<L: Link, S>(window: &Window<'_, u64, L, S>) -> Result {
    window.world().barrier()?;
    let mut any = window.expect(0..0, TagFilter::Any)?;
    any.start()?;
    check("nothing is left", any.test()?.is_none(), true)?;
    any.cancel()?;
    Ok(window.world().barrier()?)
}

/// Everybody changes the next rank's piece in all ways that tell, and finds what the previous one
/// did.
pub(super) fn changes<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let window = world.allocate::<u64>(16)?;
    let of = |rank: Rank| 100 * (u64::from(rank.get()) + 1);
    let at = |index, tag| window.to(next, index).notify(Tag(tag));
    for round in 1..=2_u64 {
        let mut old = [0; 3];
        at(0, 1).accumulate(&[of(me); 2], Operation::SUM)?.wait()?;
        let operands = [of(me) + 1; 3];
        at(2, 2)
            .get_accumulate(&operands, Operation::SUM, &mut old)?
            .wait()?;
        same("former values", old, [(round - 1) * (of(me) + 1); 3])?;
        let former = at(5, 3).fetch_and_op(of(me), Operation::SUM)?.wait()?;
        check("former value", former, (round - 1) * of(me))?;
        let expected = (round - 1) * of(me);
        let former = at(6, 4)
            .compare_and_swap(expected, round * of(me))?
            .wait()?;
        check("as expected", former, expected)?;
        let former = at(6, 5).compare_and_swap(7, 8)?.wait()?;
        check("not as expected", former, round * of(me))?;

        at(7, 6).accumulate(&[1; 2], Operation::SUM)?.wait()?;
        let mut old = [9; 2];
        let request = at(9, 7).get_accumulate(&[], Operation::NO_OP, &mut old)?;
        request.wait()?;
        same("only read", old, [0; 2])?;
        at(11, 8).put(&[round, of(me)])?.wait()?;
        let data = [round];
        let mut request = at(13, 9).put(&data)?;
        while !request.test()? {
            world.link().relax();
        }
        check("done", request.has_begun(), true)?;
        window.notify(next, Tag(10))?;

        told(&window, 0..2, prev, 1)?;
        for index in 0..2 {
            check("sum", window.local().get(index)?, round * of(prev))?;
        }
        told(&window, 2..5, prev, 2)?;
        check(
            "fetched sum",
            window.local().get(4)?,
            round * (of(prev) + 1),
        )?;
        told(&window, 5..6, prev, 3)?;
        check("fetched one", window.local().get(5)?, round * of(prev))?;
        told(&window, 6..7, prev, 4)?;
        check("swapped", window.local().get(6)?, round * of(prev))?;
        told(&window, 6..7, prev, 5)?;
        check("not swapped", window.local().get(6)?, round * of(prev))?;
        told(&window, 7..9, prev, 6)?;
        check("sum of the request", window.local().get(8)?, round)?;
        told(&window, 9..11, prev, 7)?;
        told(&window, 11..13, prev, 8)?;
        check("put of the request", window.local().get(12)?, of(prev))?;
        told(&window, 13..14, prev, 9)?;
        check("short put", window.local().get(13)?, round)?;
        told(&window, 0..0, prev, 10)?;
        nothing_is_left(&window)?;
    }
    Ok(())
}

/// Who is told of a get may store to what was read. Long and short ones.
pub(super) fn gets<L: Link>(world: &World<'_, L>) -> Result {
    const LEN: usize = 20;
    let (me, next, prev) = neighbours(world);
    // Not cached: what its owner stores next is there at once, to be read by a get that has told
    // too early.
    let window = world.allocate_with::<u64, EpochSlots<'_>>(LEN, Model::Unified)?;
    let own = |rank: Rank, round: u64| 1000 * (u64::from(rank.get()) + 1) + round;
    window.local().copy_in(0, &[own(me, 0); LEN])?;
    for round in 0..4 {
        world.barrier()?; // all have stored
        let mut seen = [0; LEN];
        let (first, len) = if round % 2 == 0 { (0, LEN) } else { (7, 1) };
        let into = &mut seen[first..first + len];
        if round < 2 {
            window.get_notify(next, first, into, Tag(1))?;
        } else {
            window.to(next, first).notify(Tag(1)).get(into)?.wait()?;
        }
        told(&window, 0..0, prev, 1)?;
        window.local().copy_in(0, &[own(me, round + 1); LEN])?;
        for seen in &seen[first..first + len] {
            check("read before", *seen, own(next, round))?;
        }
    }
    nothing_is_left(&window)
}

/// Who is told by a rank that it has read something may store there: by a put to that rank, or to
/// its own piece.
pub(super) fn read_before<L: Link>(world: &World<'_, L>) -> Result {
    const LEN: usize = 8;
    let (writer, reader) = (Rank::new(0), Rank::new(1));
    let window = world.allocate::<u64>(2 * LEN)?;
    window.set_inline(false);
    for round in 1..=6_u64 {
        let owner = if round % 3 == 0 { reader } else { writer };
        if world.rank() == writer {
            let all = window.lock_all()?;
            all.put(owner, 0, &[round; LEN])?;
            window.notify(reader, Tag(1))?;
            told(&window, 0..0, reader, 2)?;
            all.put(owner, 0, &[round + 100; LEN])?;
            all.unlock()?;
        } else if world.rank() == reader {
            let mut seen = [0; LEN];
            let all = window.lock_all()?;
            told(&window, 0..LEN, writer, 1)?;
            // What came before is in memory: it does not order what follows.
            all.flush(writer)?;
            match round % 3 {
                0 => window.local().copy_out(0, &mut seen)?,
                1 => all.get(writer, 0, &mut seen)?,
                _ => window.get_notify(writer, 0, &mut seen, Tag(2))?,
            }
            if round % 3 != 2 {
                window.notify(writer, Tag(2))?;
            }
            same("read before", seen, [round; LEN])?;
            all.unlock()?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// A cached piece: a started request shows what it holds, and its owner stores to it again when it
/// is told.
pub(super) fn cached_get<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, prev) = neighbours(world);
    let window = world.allocate::<u64>(8)?;
    let mut read = window.expect(0..8, Tag(1))?.from(prev)?;
    for round in 1..=3_u64 {
        window.local().copy_in(0, &[round * 11; 8])?;
        read.start()?;
        refused("while it is read", window.local().set(3, 1), Error::Exposed)?;
        world.barrier()?;
        let mut seen = [0; 8];
        window.get_notify(next, 0, &mut seen, Tag(1))?;
        same("seen", seen, [round * 11; 8])?;
        read.wait()?;
    }
    Ok(())
}

/// Notified accesses beside those of an epoch, to the same window.
pub(super) fn mixed<L: Link>(world: &World<'_, L>) -> Result {
    let (_, next, prev) = neighbours(world);
    let window = world.allocate::<u64>(24)?;
    for round in 1..=2_u64 {
        let exposure = window.post([prev])?;
        let access = window.start([next])?;
        access.put(next, 0, &[round; 8])?;
        window
            .to(next, 16)
            .notify(Tag(1))
            .accumulate(&[round], Operation::SUM)?
            .wait()?;
        access.put(next, 8, &[round; 8])?;
        // What is told of is seen, and so is what was put before.
        told(&window, 0..24, prev, 1)?;
        check("put before", window.local().get(7)?, round)?;
        let sum = round * (round + 1) / 2;
        check("told of", window.local().get(16)?, sum)?;
        access.complete()?;
        exposure.wait()?;
        check("put behind", window.local().get(15)?, round)?;
    }
    Ok(())
}

/// Whatever is wrong is said before any byte moves.
pub(super) fn misuse<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let next = me.next(size);
    let window = world.allocate::<u64>(4)?;
    let max = world.limits().tag;
    let stranger = Rank::new(size);
    let unknown = Error::NoSuchRank {
        rank: stranger,
        size,
    };
    let beyond = Error::OutOfRange { end: 5, len: 4 };
    let no_counter = |index| Error::NoSuchCounter {
        rank: next,
        index,
        count: 0,
    };
    let wrong: [(Rank, usize, Notice<'_, L::Word>, Error); 5] = [
        (next, 3, Tag(max + 1).into(), Error::TagTooLarge { max }),
        (next, 4, Tag(1).into(), beyond),
        (stranger, 3, Tag(1).into(), unknown),
        (next, 3, Counter(0).into(), no_counter(0)),
        (next, 3, Signal(2).set(1.into()), no_counter(2)),
    ];
    let sum = Operation::SUM;
    for (to, index, notice, error) in wrong {
        let (mut old, data) = ([0], [1]);
        refused("put", window.put_notify(to, index, &data, notice), error)?;
        refused("get", window.get_notify(to, index, &mut old, notice), error)?;
        for verb in Verb::ALL {
            let target = window.to(to, index).notify(notice);
            refused(verb.name(), begin!(verb, target, &data, &mut old), error)?;
        }
        if error != beyond {
            refused("notify", window.notify(to, notice), error)?;
        }
    }
    let mut old = [0];
    let result = window
        .to(next, 0)
        .notify(Tag(1))
        .get_accumulate(&[1, 2], sum, &mut old);
    let differ = Error::LengthsDiffer {
        target: 8,
        origin: 16,
    };
    refused("lengths", result, differ)?;
    nothing_is_left(&window)?;
    let mut seen = [9; 4];
    window.get_notify(next, 0, &mut seen, Tag(max))?;
    same("nothing has changed", seen, [0; 4])?;
    told(&window, 0..4, me.prev(size), max)?;
    nothing_is_left(&window)
}

/// Notifications that no rank of this world sends, of windows and of ranks that there are not:
/// nobody is told, and they take no room.
pub(super) fn strange<L: Link>(world: &World<'_, L>) -> Result {
    const WINDOW_BITS: u32 = 6;
    let (sender, target) = (Rank::new(0), Rank::new(1));
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u64>(1)?;
    let (link, (key, _)) = (world.link(), world.link().scratch());
    let tag_bits = world.limits().tag.count_ones();
    let of = |source: Rank, window: u32| {
        let source = u32::from(source.get()) << WINDOW_BITS;
        (source | window) << tag_bits
    };
    let there_is_none = u32::from(world.limits().windows) - 1;
    // More than the queue has room for.
    for _ in 0..100 {
        if me == sender {
            let op = Op::new();
            let tell = |immediate| {
                insist(link, || {
                    link.put_immediate(target, (key, 0), &[], immediate, true, &op)
                })
            };
            tell(of(sender, there_is_none) | 1)?;
            if !size.is_power_of_two() {
                tell(of(Rank::new(size), 0) | 1)?;
            }
            // Where a rank has a ring for each peer, or its network tells whose it is, it is not
            // told in another one's name.
            if size <= 4 && size > 2 {
                tell(of(Rank::new(2), 0) | 1)?;
            }
            window.notify(target, Tag(1))?;
        } else if me == target {
            let mut any = window.expect(0..0, TagFilter::Any)?;
            any.start()?;
            check("who has told", any.wait()?.source.get(), sender.get())?;
        }
    }
    nothing_is_left(&window)
}

/// Accesses whose target has no room for what tells of them: they go on where they stopped, and
/// nothing is done twice.
pub(super) fn late<L: Link>(world: &World<'_, L>) -> Result {
    let (sender, target) = (Rank::new(0), Rank::new(1));
    let window = world.allocate::<u64>(4)?;
    let link = world.link();
    match world.rank().get() {
        0 => {
            hear_signal(link)?;
            let sent = fill(&window, target, 0)?;
            let at = |index| window.to(target, index).notify(Tag(3));
            let mut old = [7];
            let sum = unfinished(at(0).accumulate(&[5], Operation::SUM)?, target)?;
            let get = unfinished(at(1).get(&mut old)?, target)?;
            let result = at(2).fetch_and_op(6, Operation::SUM)?;
            let fetch = times_out(result, Waiting::RingSpace, 1, &[target])?;
            check("fetch has begun", fetch.has_begun(), true)?;
            let mut put = at(3).put(&[8])?;
            check("nothing is put", put.has_begun() || put.test()?, false)?;
            let put = times_out(put, Waiting::RingSpace, 1, &[target])?;

            say_sent(link, target, sent)?;
            sum.wait()?;
            get.wait()?;
            check("fetched", fetch.wait()?, 0_u64)?;
            put.wait()?;
            check("got", old[0], 0_u64)?;
        }
        1 => {
            // From here on it makes no call that takes notifications: a full ring stays full.
            insist(link, || link.signal(sender, SPARE, 1))?;
            let sent = hear_sent(link, target)?;
            let told = window.expect(0..0, Tag(2))?.from(sender)?;
            hear(told.times(sent as u16)?)?;
            hear(window.expect(0..4, Tag(3))?.from(sender)?.times(4)?)?;
            holds("each once", &window.local(), 0, [5, 0, 6, 8])?;
        }
        _ => {}
    }
    nothing_is_left(&window)
}

/// What is left of an access whose budget ran out while `target` had no room.
fn unfinished<'r, 'w, L: Link>(
    request: flagpost::rma::Request<'r, 'w, L>,
    target: Rank,
) -> Result<flagpost::rma::Request<'r, 'w, L>> {
    let handle = times_out(request, Waiting::RingSpace, 1, &[target])?;
    check("it has begun", handle.has_begun(), true)?;
    Ok(handle)
}

/// Programs small enough for every schedule. Windows of three words, as of the other small cases.
pub(super) mod small {
    use super::*;

    /// Rank 0 opens a line, in which it has a dirty word, and tells the others, who add to another
    /// word of it, and tell.
    pub(in super::super) fn accumulate<L: Link>(window: &Window<'_, u32, L>) -> Result {
        let world = window.world();
        let first = Rank::new(0);
        if world.rank() != first {
            hear(window.expect(0..0, Tag(2))?.from(first)?)?;
            let operand = 16 << world.rank().get();
            return Ok(window
                .to(first, 0)
                .notify(Tag(1))
                .accumulate(&[operand], Operation::SUM)?
                .wait()?);
        }
        window.local().set(2, 7)?;
        let count = world.size() - 1;
        let mut all: Request<'_, _> = window.expect(0..1, Tag(1))?.times(count)?;
        all.start()?;
        for rank in 1..=count {
            window.notify(Rank::new(rank), Tag(2))?;
        }
        all.wait()?;
        let sum = (1..=count).map(|rank| 16 << rank).sum::<u32>();
        check("sum", window.local().get(0)?, sum)?;
        check("own word", window.local().get(2)?, 7_u32)
    }

    /// Rank 1 adds to rank 0's word, gets what it was, and tells.
    pub(in super::super) fn fetch<L: Link>(window: &Window<'_, u32, L>) -> Result {
        let world = window.world();
        let first = Rank::new(0);
        if world.rank() != first {
            let former = window
                .to(first, 0)
                .notify(Tag(1))
                .fetch_and_op(5, Operation::SUM)?
                .wait()?;
            return check("former value", former, 0_u32);
        }
        hear(window.expect(0..1, Tag(1))?.from(Rank::new(1))?)?;
        check("told of", window.local().get(0)?, 5_u32)
    }

    /// Rank 1 gets rank 0's word and tells; rank 0 stores another, past its cache.
    pub(in super::super) fn get<L: Link>(window: &Window<'_, u32, L>) -> Result {
        let world = window.world();
        let first = Rank::new(0);
        if world.rank() != first {
            let mut seen = [1];
            window.get_notify(first, 0, &mut seen, Tag(1))?;
            return check("read before", seen[0], 0_u32);
        }
        hear(window.expect(0..0, Tag(1))?.from(Rank::new(1))?)?;
        Ok(window.local().set(0, 9)?)
    }
}
