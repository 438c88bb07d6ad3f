//! Broadcast, reductions, scans, alltoall and the like.

use flagpost::{Config, Differs, Error, Link, Rank, Room, World};

use super::handles::{SHORT, again, unless_early};
use super::steps::{NO_ERROR, differs, refused as refuses};
use crate::{Failure, Result, context::check};

/// Words of the longest call: several chunks for a few ranks.
const MOST: usize = 50;

/// What rank `of` brings as its element `index` in round `round`.
fn value(of: Rank, index: usize, round: u32) -> u32 {
    (u32::from(of.get()) + 1) * 0x1_0000 + 0x100 * round + index as u32
}

/// The sum over all ranks.
fn sum(size: u16, index: usize, round: u32) -> u32 {
    let all = (0..size).map(|rank| value(Rank::new(rank), index, round));
    all.fold(0, u32::wrapping_add)
}

/// Ranks to try as roots.
fn roots(size: u16) -> impl Iterator<Item = Rank> {
    (0..size)
        .filter(move |&rank| size <= 8 || rank % (size / 4) == 1)
        .map(Rank::new)
}

/// Elements of the shortest and the longest calls, and of one more than a chunk.
fn lengths<L: Link>(world: &World<'_, L>) -> [usize; 5] {
    let chunk = world.link().scratch().1 / size_of::<u32>();
    let round = chunk / (u32::BITS - u32::from(world.size() - 1).leading_zeros()).max(1) as usize;
    [0, 1, chunk.min(MOST - 1) + 1, round.min(MOST - 1) + 1, MOST]
}

fn own(me: Rank, round: u32) -> [u32; MOST] {
    core::array::from_fn(|index| value(me, index, round))
}

/// From each root, of all lengths.
pub(super) fn broadcast<L: Link>(world: &World<'_, L>) -> Result {
    for root in roots(world.size()) {
        for (round, len) in (0..).zip(lengths(world)) {
            let mut data = own(world.rank(), round);
            world.broadcast(root, &mut data[..len])?;
            for (index, &found) in data.iter().enumerate() {
                let from = if index < len { root } else { world.rank() };
                check("element", found, value(from, index, round))?;
            }
        }
    }
    let mut large = [world.rank().get(); 32];
    large[31] += 1;
    world.broadcast(Rank::new(0), core::slice::from_mut(&mut large))?;
    check(
        "a large element",
        large == core::array::from_fn(|i| u16::from(i == 31)),
        true,
    )
}

/// To each root, and to all, of all lengths.
pub(super) fn reduce<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    for root in roots(size) {
        for (round, len) in (0..).zip(lengths(world)) {
            let mut data = own(me, round);
            world.reduce(root, &mut data[..len], u32::wrapping_add)?;
            for (index, &found) in data.iter().enumerate() {
                if index >= len {
                    check("untouched", found, value(me, index, round))?;
                } else if me == root {
                    check("sum", found, sum(size, index, round))?;
                }
            }
        }
    }
    Ok(())
}

/// Sums, the place of a maximum, and floating-point sums, which are the same bits everywhere.
pub(super) fn allreduce<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    for (round, len) in (0..).zip(lengths(world)) {
        let mut data = own(me, round);
        world.allreduce(&mut data[..len], u32::wrapping_add)?;
        for (index, &found) in data[..len].iter().enumerate() {
            check("sum", found, sum(size, index, round))?;
        }
    }
    let mut best = [[u64::from(me.get()) ^ 1, u64::from(me.get()), 0, 0]; 3];
    world.allreduce(
        &mut best,
        |one, other| if one[0] > other[0] { one } else { other },
    )?;
    for [largest, place, ..] in best {
        check("place of the largest", place, largest ^ 1)?;
        check("largest", largest >= u64::from(size) - 1, true)?;
    }
    let mut float = [1.0_f64 / f64::from(me.get() + 1)];
    world.allreduce(&mut float, |one, other| one + other)?;
    let mine = float[0].to_bits();
    let mut same = true;
    world.allgather_with(mine, |_, bits| same &= bits == mine)?;
    check("the same bits", same, true)
}

/// Blocks of one and of several elements.
pub(super) fn alltoall<L: Link>(world: &World<'_, L>) -> Result {
    const RANKS: usize = 48;
    const BLOCK: usize = 9; // more than fits 32 bytes
    let (me, size) = (world.rank(), usize::from(world.size()));
    let word = |from: usize, to: usize, index: usize| ((from << 16) | (to << 8) | index) as u32;
    for block in [0, 1, BLOCK] {
        let mut from = [0; RANKS * BLOCK];
        let mut into = [u32::MAX; RANKS * BLOCK];
        for (at, place) in from.iter_mut().take(size * block).enumerate() {
            *place = word(me.index(), at / block, at % block);
        }
        let len = size * block;
        world.alltoall(&from[..len], &mut into[..len])?;
        for (at, &found) in into.iter().enumerate() {
            let expected = match at.checked_div(block) {
                Some(rank) if rank < size => word(rank, me.index(), at % block),
                _ => u32::MAX,
            };
            check("block's element", found, expected)?;
        }
    }
    Ok(())
}

/// Blocks to each root and back; of unequal lengths, from each to each; sums of blocks.
pub(super) fn blocks<L: Link>(world: &World<'_, L>) -> Result {
    const RANKS: usize = 48;
    const BLOCK: usize = 9; // more than fits 32 bytes
    let (me, size) = (world.rank(), usize::from(world.size()));
    let own = own(me, 0);
    // Of two ranks whose blocks are too long, the first is named; the others' are there.
    if size > 2 {
        let wrong = me.get() == 1 || me.get() + 1 == world.size();
        let from = [&own[..1 + usize::from(wrong)]; RANKS];
        let mut places = [[0]; RANKS];
        let mut into = places.each_mut().map(|place| &mut place[..]);
        let result = world.alltoall_uneven(&from[..size], &mut into[..size]);
        let first = Rank::new(1);
        refuses("uneven", result, differs(first, Differs::Length))?;
        check("the first rank's", places[0][0], value(Rank::new(0), 0, 0))?;
    }
    let mut all = [0; RANKS * BLOCK];
    for (root, len) in roots(world.size()).flat_map(|root| [0, 1, BLOCK].map(|len| (root, len))) {
        let count = if me == root { size * len } else { 0 };
        world.gather(root, &own[..len], &mut all[..count])?;
        for (at, &found) in all[..count].iter().enumerate() {
            let from = Rank::new((at / len) as u16);
            check("gathered", found, value(from, at % len, 0))?;
        }
        let mut back = [0; BLOCK];
        world.scatter(root, &all[..count], &mut back[..len])?;
        check("scattered", back[..len] == own[..len], true)?;
    }
    let len = |other: usize| (me.index() + other) % (BLOCK + 1);
    let from: [&[u32]; RANKS] = core::array::from_fn(|to| &own[..len(to)]);
    let mut places = [[0; BLOCK]; RANKS];
    let mut into = places.each_mut().map(|place| &mut place[..]);
    for (rank, place) in into.iter_mut().enumerate() {
        *place = &mut core::mem::take(place)[..len(rank)];
    }
    world.alltoall_uneven(&from[..size], &mut into[..size])?;
    for (rank, place) in (0..).map(Rank::new).zip(&into[..size]) {
        for (index, &found) in place.iter().enumerate() {
            check("uneven", found, value(rank, index, 0))?;
        }
    }
    all = core::array::from_fn(|at| value(me, at, 0));
    let mut sums = [0; BLOCK];
    world.reduce_scatter(&all[..size * BLOCK], &mut sums, u32::wrapping_add)?;
    for (index, &found) in sums.iter().enumerate() {
        check(
            "sum",
            found,
            sum(world.size(), me.index() * BLOCK + index, 0),
        )?;
    }
    Ok(())
}

/// With and without the rank's own elements, of all lengths, in the order of ranks.
pub(super) fn scan<L: Link>(world: &World<'_, L>) -> Result {
    let me = world.rank();
    for (round, len) in (0..).zip(lengths(world)) {
        let (mut upto, mut before) = (own(me, round), own(me, round));
        world.scan(&mut upto[..len], u32::wrapping_add)?;
        world.exscan(&mut before[..len], u32::wrapping_add)?;
        for index in 0..len {
            let expected = sum(me.get() + 1, index, round);
            check("with its own", upto[index], expected)?;
            let own = value(me, index, round);
            let untouched = if me.get() == 0 { own } else { 0 };
            let expected = expected.wrapping_sub(own).wrapping_add(untouched);
            check("before it", before[index], expected)?;
        }
    }
    let mut first = [u32::from(me.get())];
    world.scan(&mut first, |earlier, _| earlier)?;
    check("order", first[0], 0_u32)
}

/// Bad input is an error value, and nothing has happened: the next call finds all as it was.
pub(super) fn refused<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let rank = Rank::new(size);
    let nobody = Error::NoSuchRank { rank, size };
    let mut words = [7_u32; 3];
    // Behind each refusal another call: nothing is under way.
    let refuses = |what, result: Result<(), Error>, error| {
        refuses(what, result, error)?;
        Ok::<(), Failure>(world.barrier()?)
    };
    refuses("root", world.broadcast(rank, &mut words), nobody)?;
    let first = |one, _| one;
    refuses("root", world.reduce(rank, &mut words, first), nobody)?;
    let large = Error::ElementTooLarge { max: 32 };
    let mut wide = [[0_u64; 5]; 2];
    let first = |one, _| one;
    refuses("wide", world.reduce(me, &mut wide, first), large)?;
    refuses("wide", world.allreduce(&mut wide, first), large)?;
    let all = wide;
    refuses("wide", world.alltoall(&all, &mut wide), large)?;
    let each = |_, _: [u64; 5]| ();
    refuses("wide", world.allgather_with(all[0], each), large)?;
    let ranks = usize::from(size);
    // One block too many for the other side, and an element too many for all blocks.
    const ZEROS: [u32; 1025] = [0; 1025]; // two for each of the 512 cores of the largest board
    let (even, odd) = (&ZEROS[..2 * ranks], &ZEROS[..2 * ranks + 1]);
    let differ = Error::LengthsDiffer {
        target: 12,
        origin: 8 * u64::from(size),
    };
    if 2 * ranks != words.len() {
        refuses("lengths", world.alltoall(even, &mut words), differ)?;
    }
    if ranks > 1 {
        let len = odd.len() as u64;
        let uneven = Error::WrongLength { len, ranks: size };
        refuses("blocks", world.alltoall(odd, &mut words), uneven)?;
    }
    // Of the two sides of the other calls, too: an element too many, or too few.
    let bytes = |target: usize, origin: usize| Error::LengthsDiffer {
        target: 4 * target as u64,
        origin: 4 * origin as u64,
    };
    let mut many = [7_u32; 50];
    for len in [2 * ranks - 1, 2 * ranks + 1] {
        let len = if len > many.len() { 0 } else { len };
        let (all, pair) = (&mut many[..len], &mut words[..2]);
        let gathered = world.gather(me, pair, all);
        refuses("gather", gathered, bytes(len, 2 * ranks))?;
        let scattered = world.scatter(me, all, pair);
        refuses("scatter", scattered, bytes(2 * ranks, len))?;
    }
    for len in [1, 3] {
        let sums = world.reduce_scatter(even, &mut words[..len], u32::wrapping_add);
        refuses("reduce_scatter", sums, bytes(len, 2))?;
    }
    if ranks > 1 {
        let len = odd.len() as u64;
        let uneven = Error::WrongLength { len, ranks: size };
        let sums = world.reduce_scatter(odd, &mut words, u32::wrapping_add);
        refuses("reduce_scatter", sums, uneven)?;
    }
    let mut all = [7_u32; 50];
    for len in [ranks - 1, ranks + 1] {
        let len = if len > all.len() { 0 } else { len };
        let wrong = Error::WrongLength {
            len: len as u64,
            ranks: size,
        };
        refuses("all", world.allgather(1_u32, &mut all[..len]), wrong)?;
    }
    check("unchanged", all == [7; 50], true)?;
    check("unchanged", words == [7; 3], true)?;
    world.allreduce(&mut words[..1], u32::wrapping_add)?;
    check("sum", words[0], 7 * u32::from(size))
}

/// Most ranks that [`differ`].
pub(super) const FEW: u16 = 8;

/// What the ranks have otherwise in [`wrong`].
const WRONG: [Differs; 18] = {
    use Differs::{Call, Element, Length, Root};
    [
        Length, Length, Length, Length, Length, Length, Length, Length, Length, Element, Element,
        Root, Root, Root, Root, Root, Call, Call,
    ]
};

/// A call in which rank 1, or each rank, has something otherwise.
fn wrong<L: Link>(world: &World<'_, L>, number: usize) -> Result<(), Error> {
    let (me, size) = (world.rank(), usize::from(world.size()));
    let (odd, first, next) = (me.get() == 1, Rank::new(0), me.next(world.size()));
    let len = 1 + usize::from(odd);
    let add = |one: u32, other: u32| one.wrapping_add(other);
    let (mut data, mut more) = ([7; 20], [7; 2 * FEW as usize]);
    let all = [7; 2 * FEW as usize];
    let root = if me == first { size * len } else { 0 };
    match number {
        0 => world.allreduce(&mut data[..len], add),
        1 => world.allreduce(&mut data[..usize::from(odd)], add),
        2 => world.broadcast(first, &mut data[..10 * len]),
        3 => world.reduce(first, &mut data[..10 * len], add),
        4 => world.gather(first, &data[..len], &mut more[..root]),
        5 => world.scatter(first, &all[..root], &mut data[..len]),
        6 => world.alltoall(&all[..size * len], &mut more[..size * len]),
        7 => world.reduce_scatter(&all[..size * len], &mut data[..len], add),
        8 => world.scan(&mut data[..len], add),
        9 if odd => world.allreduce(&mut [7_u64], |one, _| one),
        9 => world.allreduce(&mut data[..2], add),
        10 if odd => world.allgather_with(7_u64, |_, _| ()),
        10 => world.allgather_with(7_u32, |_, _| ()),
        11 => world.broadcast(me, &mut data[..1]),
        12 => world.broadcast(next, &mut data[..1]),
        13 => world.reduce(next, &mut data[..1], add),
        14 => world.gather(me, &data[..1], &mut more[..size]),
        15 => world.scatter(me, &all[..size], &mut data[..1]),
        16 if odd => world.allgather_with(7_u64, |_, _| ()),
        16 => world.allreduce(&mut [7_u64], |one, _| one),
        _ if odd => world.barrier(),
        _ => world.allreduce(&mut data[..1], add),
    }
}

/// Calls with other lengths, elements or roots, or other calls: no rank ends one, and some rank is
/// told what differs. Each in a world of its own, which is good for nothing then.
pub(super) fn differ<L: Link>(world: &World<'_, L>) -> Result {
    /// A rank that has timed out twice leaves its note, and reads the one of the rank before.
    const ATTEMPTS: usize = 3;
    /// A network that is busy takes the note in a later round.
    const ROUNDS: usize = 8;
    for (number, expected) in WRONG.into_iter().enumerate() {
        let told = in_part(world, |mine| {
            let attempt = |_| mine.within(SHORT, || wrong(mine, number));
            let is_over = |result: &Result<(), Error>| !matches!(result, Err(Error::Timeout(_)));
            // Heads of calls that were alike stay where they are, and are not taken for others.
            again(mine, || mine.allgather_with(7_u64, |_, _| ()))?;
            again(mine, || mine.allreduce(&mut [7_u64], |one, _| one))?;
            let mut told = 0_u16;
            for _ in 0..ROUNDS {
                let first = (told == 0).then(|| (0..ATTEMPTS).map(attempt).find(is_over));
                match first.flatten() {
                    None => {}
                    // A rank that has heard of nobody else's root may end, and finds no note.
                    Some(Err(error @ Error::Asymmetric { differs, .. }))
                        if differs == expected
                            || (expected, differs) == (Differs::Root, Differs::Call) =>
                    {
                        refuses("again", wrong(mine, number), error)?;
                        let other = mine.allgather_with([0_u16; 3], |_, _| ());
                        refuses("another", other, error)?;
                        told = 1;
                    }
                    Some(Err(other)) => return Err(Failure::Library(other)),
                    Some(Ok(())) => return Err(NO_ERROR),
                }
                let mut all = [told];
                world.allreduce(&mut all, u16::wrapping_add)?;
                if all[0] > 0 {
                    return Ok(true);
                }
            }
            Ok(false)
        })?;
        check("some rank is told", told, true)?;
    }
    Ok(())
}

/// Each rank waits for the next one as its root, and does nothing else: only the notes tell them,
/// and they tell all.
pub(super) fn roots_differ<L: Link>(world: &World<'_, L>) -> Result {
    in_part(world, |mine| {
        let (me, size) = (mine.rank(), mine.size());
        let attempt = || mine.within(SHORT, || mine.broadcast(me.next(size), &mut [0_u32]));
        let told = loop {
            match attempt() {
                Err(Error::Timeout(_)) => {}
                told => break told,
            }
        };
        refuses("root", told, differs(me.prev(size), Differs::Root))
    })
}

/// What `program` gives in a world of all ranks that is good for nothing afterwards.
fn in_part<L: Link, R>(
    world: &World<'_, L>,
    program: impl FnOnce(&World<'_, flagpost::PartLink<'_, L>>) -> Result<R>,
) -> Result<R> {
    let room = Room {
        bytes: 0,
        windows: 0,
    };
    let part = world.split(Some(0), 0, room)?;
    let mut words = [0; Config::DEFAULT.words(0, 0)];
    let link = part.link().ok_or(NO_ERROR)?;
    let result = World::run(link, &mut words, Config::DEFAULT, program)?;
    part.free()?;
    Ok(result)
}

/// Every collective with a budget of nothing, repeated until it is done.
pub(super) fn timeouts<L: Link>(world: &World<'_, L>) -> Result {
    const LEN: usize = 40; // several chunks for a few ranks
    let (me, size) = (world.rank(), world.size());
    let last = Rank::new(size - 1);
    world.barrier()?;
    for round in 0..2 {
        let value = |rank: Rank, index: usize| {
            u64::from(rank.get()) * 0x1000 + (index as u64) * 0x10 + round
        };
        let sum = |index| {
            (0..size)
                .map(|rank| value(Rank::new(rank), index))
                .sum::<u64>()
        };
        let own: [u64; LEN] = core::array::from_fn(|index| value(me, index));
        let mut data = own;
        again(world, || world.broadcast(last, &mut data))?;
        for (index, &found) in data.iter().enumerate() {
            check("broadcast", found, value(last, index))?;
        }
        data = own;
        again(world, || {
            world.reduce(last, &mut data, |one, other| one + other)
        })?;
        if me == last {
            for (index, &found) in data.iter().enumerate() {
                check("reduce", found, sum(index))?;
            }
        }
        data = own;
        again(world, || {
            world.allreduce(&mut data, |one, other| one + other)
        })?;
        for (index, &found) in data.iter().enumerate() {
            check("allreduce", found, sum(index))?;
        }
        let block = LEN / usize::from(size);
        let (blocks, mut into) = (&own[..block * usize::from(size)], [0; LEN]);
        again(world, || world.alltoall(blocks, &mut into[..blocks.len()]))?;
        for (at, &found) in into[..blocks.len()].iter().enumerate() {
            let place = block * me.index() + at % block;
            check(
                "alltoall",
                found,
                value(Rank::new((at / block) as u16), place),
            )?;
        }
    }
    unless_early(world.entering()?, SHORT, |_| true).map_err(|late| late.error)?;
    let mut sums = [1_u32];
    again(world, || world.scan(&mut sums, |one, other| one + other))?;
    check("scan", sums[0], u32::from(me.get()) + 1)?;
    again(world, || world.exscan(&mut sums, |one, other| one + other))?;
    let before = u32::from(me.get()) * (u32::from(me.get()) + 1) / 2;
    check("exscan", sums[0], if me.get() == 0 { 1 } else { before })?;
    const FEW: usize = 4;
    let (own, mut places) = ([me.get(); LEN], [[0; LEN]; FEW]);
    let mut into = places.each_mut().map(|place| &mut place[..]);
    if let Some(into) = into.get_mut(..size.into()) {
        let from = &[&own[..]; FEW][..into.len()];
        again(world, || world.alltoall_uneven(from, into))?;
        for (rank, place) in (0..).zip(into) {
            check("uneven", place.iter().all(|&found| found == rank), true)?;
        }
    }
    let mut all = [0; LEN];
    let count = if me == last { usize::from(size) } else { 0 };
    if usize::from(size) <= LEN {
        again(world, || world.gather(last, &[me.get()], &mut all[..count]))?;
        check(
            "gather",
            all[..count].iter().copied().eq(0..count as u16),
            true,
        )?;
        let mut back = [0];
        again(world, || world.scatter(last, &all[..count], &mut back))?;
        check("scatter", back[0], me.get())?;
    }
    Ok(world.barrier()?)
}

/// Two broadcasts of two chunks each, from both ends.
pub(super) fn small_broadcast<L: Link>(world: &World<'_, L>) -> Result {
    let (me, last) = (world.rank(), Rank::new(world.size() - 1));
    for root in [Rank::new(0), last] {
        let mut word = [value(me, 0, 0)];
        world.broadcast(root, &mut word)?;
        check("word", word[0], value(root, 0, 0))?;
    }
    Ok(())
}

/// Two reductions, to both ends.
pub(super) fn small_reduce<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    for root in [Rank::new(0), Rank::new(size - 1)] {
        let mut word = [value(me, 0, 0)];
        world.reduce(root, &mut word, u32::wrapping_add)?;
        if me == root {
            check("sum", word[0], sum(size, 0, 0))?;
        }
    }
    Ok(())
}

/// A reduction that all learn the result of, twice.
pub(super) fn small_allreduce<L: Link>(world: &World<'_, L>) -> Result {
    for round in 0..2 {
        let mut word = [value(world.rank(), 0, round)];
        world.allreduce(&mut word, u32::wrapping_add)?;
        check("sum", word[0], sum(world.size(), 0, round))?;
    }
    Ok(())
}

/// All learn a word of each, twice.
pub(super) fn small_allgather<L: Link>(world: &World<'_, L>) -> Result {
    let size = usize::from(world.size());
    for round in 0..2 {
        let mut into = [0; 4];
        world.allgather(value(world.rank(), 0, round), &mut into[..size])?;
        for (rank, &found) in (0..).map(Rank::new).zip(&into[..size]) {
            check("word", found, value(rank, 0, round))?;
        }
    }
    Ok(())
}

/// A word from each to each, twice.
pub(super) fn small_alltoall<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), usize::from(world.size()));
    for round in 0..2 {
        let from: [u32; 4] = core::array::from_fn(|to| value(me, to, round));
        let mut into = [0; 4];
        world.alltoall(&from[..size], &mut into[..size])?;
        for (rank, &found) in (0..).map(Rank::new).zip(&into[..size]) {
            check("word", found, value(rank, me.index(), round))?;
        }
    }
    Ok(())
}
