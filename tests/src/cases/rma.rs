//! Accumulates and their like: what they compute, that nothing is lost when all ranks do so at
//! once, and that misuse changes nothing.

use core::fmt::Debug;

use bytemuck::Pod;
use flagpost::{
    EpochSlots, Error, Link, Rank, Rma as _, Window, World,
    epoch::pscw::Access,
    rma::{Bool, Complex, Element, Integer, Number, Operation, Placed},
};
use flagpost_verbs::{Verb, begin};

use crate::{Result, context::check};

/// Most ranks of these cases.
pub(super) const MOST: u16 = 64;

/// All ranks, as far as they fit.
pub(super) fn ranks(size: u16) -> ([Rank; MOST as usize], usize) {
    let mut ranks = [Rank::new(0); MOST as usize];
    for (place, rank) in ranks.iter_mut().zip(0..size) {
        *place = Rank::new(rank);
    }
    (ranks, usize::from(size.min(MOST)))
}

/// The access epochs of these cases.
pub(super) type Open<'e, 'w, T, L> = Access<'e, 'w, T, L, EpochSlots<'w>>;

/// An epoch in which all ranks access the piece of `target`.
pub(super) fn at<'w, T: Pod, L: Link>(
    window: &Window<'w, T, L>,
    target: Rank,
    run: impl FnOnce(&Open<'_, 'w, T, L>) -> Result,
) -> Result {
    let world = window.world();
    let (all, count) = ranks(world.size());
    let all = world.group(&all[..count])?;
    let only = [target];
    let exposure = if world.rank() == target {
        Some(window.post(&all)?)
    } else {
        None
    };
    let access = window.start(only)?;
    run(&access)?;
    access.complete()?;
    if let Some(exposure) = exposure {
        exposure.wait()?;
    }
    Ok(())
}

/// An epoch in which each rank accesses the piece of the next one.
pub(super) fn next<'w, T: Pod, L: Link>(
    window: &Window<'w, T, L>,
    run: impl FnOnce(&Open<'_, 'w, T, L>, Rank) -> Result,
) -> Result {
    let world = window.world();
    let (me, size) = (world.rank(), world.size());
    let (origins, targets) = ([me.prev(size)], [me.next(size)]);
    let exposure = window.post(origins)?;
    let access = window.start(targets)?;
    run(&access, me.next(size))?;
    access.complete()?;
    Ok(exposure.wait()?)
}

fn same<T: PartialEq + Debug>(what: &'static str, found: T, expected: T) -> Result {
    check(what, found == expected, true)
}

/// An operation, what an element held, the operand, and what it holds then.
type Sample<T> = (Operation<T>, T, T, T);

/// Each sample at an element of its own, by each call that combines.
fn sampled<L: Link, T: Element + PartialEq + Debug, const N: usize>(
    world: &World<'_, L>,
    samples: [Sample<T>; N],
) -> Result {
    let window = world.allocate::<T>(N)?;
    for call in 0..3 {
        for (index, (_, old, ..)) in samples.iter().enumerate() {
            window.local().set(index, *old)?;
        }
        next(&window, |access, to| {
            for (index, &(operation, old, operand, _)) in samples.iter().enumerate() {
                let mut found = [operand];
                match call {
                    0 => {
                        access.accumulate(to, index, &[operand], operation)?;
                        continue;
                    }
                    1 => access.get_accumulate(to, index, &[operand], operation, &mut found)?,
                    _ => found = [access.fetch_and_op(to, index, operand, operation)?],
                }
                same("former value", found, [old])?;
            }
            Ok(())
        })?;
        for (index, (.., expected)) in samples.iter().enumerate() {
            same("combined", window.local().get(index)?, *expected)?;
        }
    }
    Ok(window.free()?)
}

/// Samples of all operations on an integer.
macro_rules! integers {
    ($world:ident, $type:ty) => {
        sampled::<_, $type, 13>(
            $world,
            [
                (Operation::SUM, <$type>::MAX, 2, <$type>::MIN + 1),
                (Operation::PROD, 11, 7, 77),
                (
                    Operation::PROD,
                    <$type>::MAX,
                    2,
                    <$type>::MAX.wrapping_mul(2),
                ),
                (Operation::MIN, 7, <$type>::MIN, <$type>::MIN),
                (Operation::MAX, 7, <$type>::MAX, <$type>::MAX),
                (Operation::AND, 0b1100, 0b1010, 0b1000),
                (Operation::OR, 0b1100, 0b1010, 0b1110),
                (Operation::XOR, 0b1100, 0b1010, 0b0110),
                (Operation::LOGICAL_AND, 0b1100, 0b0011, 1),
                (
                    Operation::LOGICAL_OR,
                    0,
                    <$type>::MIN,
                    <$type>::from(<$type>::MIN != 0),
                ),
                (Operation::LOGICAL_XOR, 2, 1, 0),
                (Operation::REPLACE, 5, 9, 9),
                (Operation::NO_OP, 5, 9, 5),
            ],
        )
    };
}

/// Samples of all operations on a float.
macro_rules! floats {
    ($world:ident, $type:ty) => {
        sampled::<_, $type, 7>(
            $world,
            [
                (Operation::SUM, 0.5, 0.25, 0.75),
                (Operation::PROD, 0.5, -4.0, -2.0),
                (Operation::MIN, 2.0, -3.0, -3.0),
                (Operation::MIN, 2.0, <$type>::NAN, 2.0),
                (Operation::MAX, 2.0, 3.0, 3.0),
                (Operation::REPLACE, 5.0, 9.0, 9.0),
                (Operation::NO_OP, 5.0, 9.0, 5.0),
            ],
        )
    };
}

/// Every operation on every signed type.
pub(super) fn signed<L: Link>(world: &World<'_, L>) -> Result {
    integers!(world, i8)?;
    integers!(world, i16)?;
    integers!(world, i32)?;
    integers!(world, i64)
}

/// Every operation on every unsigned type.
pub(super) fn unsigned<L: Link>(world: &World<'_, L>) -> Result {
    integers!(world, u8)?;
    integers!(world, u16)?;
    integers!(world, u32)?;
    integers!(world, u64)
}

/// Every operation on every float.
pub(super) fn floats<L: Link>(world: &World<'_, L>) -> Result {
    floats!(world, f32)?;
    floats!(world, f64)
}

/// Every operation on the elements that are no numbers of Rust.
pub(super) fn others<L: Link>(world: &World<'_, L>) -> Result {
    let [no, yes] = [false, true].map(Bool::from);
    sampled(
        world,
        [
            (Operation::LOGICAL_AND, yes, no, no),
            (Operation::LOGICAL_OR, no, yes, yes),
            (Operation::LOGICAL_XOR, yes, yes, no),
            (Operation::REPLACE, no, yes, yes),
            (Operation::NO_OP, yes, no, yes),
        ],
    )?;
    let (old, operand) = (Complex([1.0_f32, 2.0]), Complex([3.0, -1.0]));
    sampled(
        world,
        [
            (Operation::SUM, old, operand, Complex([4.0, 1.0])),
            (Operation::PROD, old, operand, Complex([5.0, 5.0])),
            (Operation::REPLACE, old, operand, operand),
            (Operation::NO_OP, old, operand, old),
        ],
    )?;
    let [low, high] = [1, 2].map(|place| Placed::new(-5_i32, place));
    let more = Placed::new(5_i32, 0);
    sampled(
        world,
        [
            (Operation::MIN, high, low, low),
            (Operation::MAX, low, high, low),
            (Operation::MIN, more, low, low),
            (Operation::MAX, low, more, more),
            (Operation::REPLACE, low, more, more),
            (Operation::NO_OP, low, more, low),
        ],
    )
}

/// All ranks combine with the same elements that are no numbers of Rust; and reduce them.
pub(super) fn placed<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size, target) = (world.rank(), world.size(), Rank::new(0));
    // Each value comes from several ranks.
    let of = |rank: u16| Placed::new(f32::from(rank % 3), rank.into());
    let best = Placed::new(f32::from((size - 1).min(2)), (size - 1).min(2).into());
    let (places, flags) = (world.allocate(2)?, world.allocate::<Bool>(5)?);
    places.local().copy_in(0, &[of(u16::MAX - 1), best])?;
    world.barrier()?;
    at(&places, target, |places| {
        at(&flags, target, |flags| {
            places.accumulate(target, 0, &[of(me.get())], Operation::MIN)?;
            places.fetch_and_op(target, 1, of(me.get()), Operation::MAX)?;
            Ok(flags.accumulate(target, 3, &[true.into()], Operation::LOGICAL_XOR)?)
        })
    })?;
    if me == target {
        same("the first of the least", places.local().get(0)?, of(0))?;
        same("the first of the most", places.local().get(1)?, best)?;
        let odd = Bool::from(!size.is_multiple_of(2));
        same("odd", flags.local().get(3)?, odd)?;
        same("beside it", flags.local().get(4)?, Bool::from(false))?;
    }
    let mut all = [of(me.get())];
    world.allreduce(&mut all, |a, b| Operation::MAX.apply(a, b))?;
    same("of all", all, [best])?;
    let mut sum = [Complex([f64::from(me.get()), 1.0])];
    world.allreduce(&mut sum, |a, b| Operation::SUM.apply(a, b))?;
    let ranks = f64::from(size);
    same("sum", sum, [Complex([ranks * (ranks - 1.0) / 2.0, ranks])])?;
    places.free()?;
    Ok(flags.free()?)
}

/// All ranks add to the same elements, several at a time and one by one; half of the elements are
/// put instead.
fn added<L: Link, T: Element + Number + PartialEq + Debug + From<u8>>(
    world: &World<'_, L>,
) -> Result {
    const ROUNDS: u8 = 2;
    const LEN: usize = 11;
    let (me, size) = (world.rank(), world.size());
    let target = Rank::new(0);
    let window = world.allocate::<T>(2 * LEN)?;
    let one = [T::from(1); LEN];
    at(&window, target, |access| {
        for _ in 0..ROUNDS {
            access.accumulate(target, 1, &one, Operation::SUM)?;
            access.fetch_and_op(target, me.index() % LEN, one[0], Operation::SUM)?;
        }
        // Beside what others combine.
        if me.index() < LEN - 1 {
            access.put(target, LEN + 1 + me.index(), &[T::from(7)])?;
        }
        Ok(())
    })?;
    if me == target {
        let ranks = usize::from(size);
        for index in 0..=LEN {
            // How many add to it by themselves.
            let alone = if index < LEN {
                (ranks + LEN - 1 - index) / LEN
            } else {
                0
            };
            let all = if index > 0 { ranks } else { 0 };
            let times = (alone + all) as u8;
            let expected = T::from(times.wrapping_mul(ROUNDS));
            same("sum", window.local().get(index)?, expected)?;
        }
        for index in LEN + 1..2 * LEN {
            let put = if index - LEN - 1 < ranks { 7 } else { 0 };
            same("put beside it", window.local().get(index)?, T::from(put))?;
        }
    }
    Ok(window.free()?)
}

/// Nothing is lost, whether elements share a word, a line, or have more than one word.
pub(super) fn concurrent<L: Link>(world: &World<'_, L>) -> Result {
    added::<L, u8>(world)?;
    added::<L, i16>(world)?;
    added::<L, u32>(world)?;
    added::<L, f32>(world)?;
    added::<L, u64>(world)?;
    added::<L, f64>(world)
}

/// All ranks draw numbers from a counter. Each comes once, and each rank's in ascending order: one
/// after the other.
fn drawn<L: Link, T: Integer + From<u8> + Into<u64>>(world: &World<'_, L>, fetch: bool) -> Result {
    const ROUNDS: u64 = 3;
    let target = Rank::new(0);
    let ranks = u64::from(world.size());
    let counter = world.allocate::<T>(1)?;
    let drawn = world.allocate::<u64>(MOST as usize * ROUNDS as usize / 64 + 1)?;
    let mut last = None;
    at(&counter, target, |counter| {
        at(&drawn, target, |drawn| {
            for _ in 0..ROUNDS {
                let (one, mut ticket) = ([T::from(1)], [T::from(0)]);
                if fetch {
                    ticket = [counter.fetch_and_op(target, 0, one[0], Operation::SUM)?];
                } else {
                    counter.get_accumulate(target, 0, &one, Operation::SUM, &mut ticket)?;
                }
                let ticket: u64 = ticket[0].into();
                check("one that comes later", last < Some(ticket), true)?;
                last = Some(ticket);
                let (word, bit) = ((ticket / 64) as usize, 1 << (ticket % 64));
                let before = drawn.fetch_and_op(target, word, bit, Operation::XOR)?;
                check("drawn before", before & bit, 0_u64)?;
            }
            Ok(())
        })
    })?;
    if world.rank() == target {
        let mut all = 0;
        for word in 0..drawn.len() {
            all += u64::from(drawn.local().get(word)?.count_ones());
        }
        check("numbers drawn", all, ranks * ROUNDS)?;
        let next: u64 = counter.local().get(0)?.into();
        check("the next one", next, ranks * ROUNDS)?;
    }
    counter.free()?;
    Ok(drawn.free()?)
}

/// Former values are those of some order, one after the other.
pub(super) fn history<L: Link>(world: &World<'_, L>) -> Result {
    for fetch in [false, true] {
        drawn::<L, u8>(world, fetch)?;
        drawn::<L, u32>(world, fetch)?;
        drawn::<L, u64>(world, fetch)?;
    }
    Ok(())
}

/// All ranks want to replace the same element. One does; the others find its value.
fn elected<L: Link, T: Integer + PartialEq + From<u8> + Into<u64>>(world: &World<'_, L>) -> Result {
    let (me, target) = (world.rank(), Rank::new(0));
    let window = world.allocate::<T>(3)?;
    let own = T::from(me.get() as u8 + 1);
    let mut found = own;
    at(&window, target, |access| {
        found = access.compare_and_swap(target, 1, T::from(0), own)?;
        let mut won = [T::from(0)];
        if found == T::from(0) {
            won = [T::from(1)];
        }
        Ok(access.accumulate(target, 2, &won, Operation::SUM)?)
    })?;
    let mut winner = [own];
    at(&window, target, |access| {
        Ok(access.get_accumulate(target, 1, &[], Operation::NO_OP, &mut winner)?)
    })?;
    let won: u64 = winner[0].into();
    let expected = if won == own.into() { 0 } else { won };
    check("found", found.into(), expected)?;
    if me == target {
        check("elected", window.local().get(2)?.into(), 1_u64)?;
        check("before", window.local().get(0)?.into(), 0_u64)?;
    }
    Ok(window.free()?)
}

/// A comparison and its swap are one.
pub(super) fn elects<L: Link>(world: &World<'_, L>) -> Result {
    elected::<L, u8>(world)?;
    elected::<L, u16>(world)?;
    elected::<L, u32>(world)?;
    elected::<L, u64>(world)
}

/// What is refused changes nothing.
pub(super) fn misuse<L: Link>(world: &World<'_, L>) -> Result {
    let (me, size) = (world.rank(), world.size());
    let window = world.allocate::<u32>(4)?;
    for index in 0..4 {
        window.local().set(index, index as u32)?;
    }
    let nobody = Rank::new(size);
    let no_rank = Error::NoSuchRank { rank: nobody, size };
    let beyond = Error::OutOfRange { end: 5, len: 4 };
    let overflow = Error::OutOfRange {
        end: u64::MAX,
        len: 4,
    };
    let differ = Error::LengthsDiffer {
        target: 8,
        origin: 4,
    };
    let refused = |what, found: Option<Error>, expected| same(what, found, Some(expected));
    next(&window, |access, to| {
        let two = [9, 9];
        let mut into = [7, 7];
        for (to, index, error) in [(nobody, 0, no_rank), (to, 4, beyond)] {
            for verb in Verb::ALL {
                let short = verb.call(access, (to, index), &two[..1], &mut into[..1]);
                refused(verb.name(), short.err(), error)?;
                let target = access.to(to, index);
                let full = begin!(verb, target, &two[..1], &mut into[..1]).err();
                refused(verb.name(), full, error)?;
            }
        }
        for (data, operation, index, error) in [
            (&two[..], Operation::SUM, 3, beyond),
            (&two[..1], Operation::SUM, 0, differ),
            (&[], Operation::NO_OP, 3, beyond),
        ] {
            let fetched = access.get_accumulate(to, index, data, operation, &mut into);
            refused("get_accumulate", fetched.err(), error)?;
        }
        let wrapping = Error::OutOfRange {
            end: u64::MAX,
            len: 4,
        };
        let far = access.accumulate(to, usize::MAX, &two, Operation::SUM);
        let far = far.err();
        check("a sum that overflows", far.is_some(), true)?;
        if usize::BITS == u64::BITS {
            refused("index", far, wrapping)?;
        }
        check("fetched", into == [7, 7], true)?;
        super::rma_layout::misuse(access, to, overflow)
    })?;
    // A rank that the epoch is not about.
    let access_to_nobody = window.start(&world.group(&[])?)?;
    let outside = access_to_nobody.accumulate(me, 0, &[1], Operation::SUM);
    let outside = outside.err();
    refused("not in the group", outside, Error::NotInGroup(me))?;
    access_to_nobody.complete()?;
    for index in 0..4 {
        check("unchanged", window.local().get(index)?, index as u32)?;
    }
    Ok(())
}
