//! Accesses to and from any places, compared with a model that goes element by element.

use bytemuck::{Pod, Zeroable};
use flagpost::{
    Error, Link, Rank, Rma as _, World,
    rma::{Block, Gather, Layout, Operation, Scatter},
};
use flagpost_verbs::{Verb, begin};

use super::rma::{Open, next};
use super::steps::{holds, refused as refuses};
use crate::{Result, context::check};

/// Elements of the windows and slices of these cases.
const LEN: usize = 100;

/// Elements of most layouts here.
const COUNT: usize = 24;

const fn block(at: usize, len: usize) -> Block {
    Block { at, len }
}

/// Blocks of different lengths, out of order; two of them are neighbours, one is empty, and would
/// be outside.
const BLOCKS: [Block; 6] = [
    block(40, 3),
    block(43, 5),
    block(0, 1),
    block(10 * LEN, 0),
    block(9, 11),
    block(30, 4),
];

/// [`COUNT`] elements in each way.
const LAYOUTS: [Layout<'static>; 6] = [
    Layout::Contiguous { count: COUNT },
    Layout::Vector {
        blocks: COUNT,
        block_len: 1,
        stride: 3,
    },
    Layout::Vector {
        blocks: 8,
        block_len: 3,
        stride: 5,
    },
    Layout::Vector {
        blocks: 2,
        block_len: 12,
        stride: 50,
    },
    Layout::Vector {
        blocks: 4,
        block_len: 6,
        stride: 6,
    },
    Layout::Indexed { blocks: &BLOCKS },
];

/// Where element `number` of a layout is.
fn position(layout: Layout<'_>, number: usize) -> usize {
    match layout {
        Layout::Vector {
            block_len, stride, ..
        } => number / block_len * stride + number % block_len,
        Layout::Indexed { blocks } => {
            let mut left = number;
            for block in blocks {
                if left < block.len {
                    return block.at + left;
                }
                left -= block.len;
            }
            usize::MAX
        }
        _ => number,
    }
}

/// Elements of these cases.
trait Number: flagpost::rma::Integer + PartialEq {
    fn number(number: usize) -> Self;
}

impl Number for u8 {
    fn number(number: usize) -> Self {
        number as Self
    }
}

impl Number for u16 {
    fn number(number: usize) -> Self {
        number as Self * 0x101
    }
}

impl Number for u32 {
    fn number(number: usize) -> Self {
        number as Self * 0x0101_0101
    }
}

impl Number for u64 {
    fn number(number: usize) -> Self {
        number as Self * 0x0101_0101_0101_0101
    }
}

/// Layouts at the target with layouts at the origin, by each call; the target's piece starts
/// anywhere in a line. Of all pairs a third, as `part` says.
fn both_sides<L: Link, T: Number>(world: &World<'_, L>, index: usize, part: usize) -> Result {
    let window = world.allocate::<T>(index + LEN)?;
    let data: [T; LEN] = core::array::from_fn(|i| T::number(i + 100));
    let initial: [T; 2 * LEN] = core::array::from_fn(T::number);
    let initial = &initial[..index + LEN];
    let mut found = [T::number(0); 2 * LEN];
    let found = &mut found[..index + LEN];
    let pairs = (0..36).map(|pair| (pair / 6, pair % 6));
    for (at_target, at_origin) in pairs.filter(|(one, other)| (one + other) % 3 == part) {
        let (at_target, at_origin) = (LAYOUTS[at_target], LAYOUTS[at_origin]);
        let (mut got, mut fetched) = ([T::number(0); LEN], [T::number(0); LEN]);
        let from = || Gather::new(&data, at_origin);
        window.local().copy_in(0, initial)?;
        next(&window, |access, to| {
            let at = |index, layout| access.to(to, index).layout(layout);
            at(index, at_target)
                .get(Scatter::new(&mut got, at_origin))?
                .wait()?;
            at(index, at_target)
                .accumulate(from(), Operation::XOR)?
                .wait()?;
            let into = Scatter::new(&mut fetched, at_origin);
            Ok(at(index, at_target)
                .get_accumulate(from(), Operation::XOR, into)?
                .wait()?)
        })?;
        for number in 0..COUNT {
            let (place, from) = (position(at_target, number), position(at_origin, number));
            let there = initial[index + place];
            check("got", got[from] == there, true)?;
            let combined = xor(there, data[from]);
            check("fetched", fetched[from] == combined, true)?;
        }
        window.local().copy_out(0, found)?;
        check("combined twice with the same", *found == *initial, true)?;
        for filled in [&got, &fetched] {
            for (place, found) in filled.iter().enumerate() {
                let named = (0..COUNT).any(|number| position(at_origin, number) == place);
                let empty = *found == T::number(0);
                check("not named, not filled", named || empty, true)?;
            }
        }
        next(&window, |access, to| {
            Ok(access.to(to, index).layout(at_target).put(from())?.wait()?)
        })?;
        window.local().copy_out(0, found)?;
        for place in 0..index + LEN {
            let number = (0..COUNT).find(|&n| index + position(at_target, n) == place);
            let expected = match number {
                Some(number) => data[position(at_origin, number)],
                None => initial[place],
            };
            check("put", found[place] == expected, true)?;
        }
    }
    Ok(window.free()?)
}

fn xor<T: Pod>(mut value: T, with: T) -> T {
    let bytes = bytemuck::bytes_of_mut(&mut value).iter_mut();
    for (byte, other) in bytes.zip(bytemuck::bytes_of(&with)) {
        *byte ^= other;
    }
    value
}

/// Blocks that overlap, or all lie in one place, are read again and again.
pub(super) fn overlapping<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(4)?;
    window.local().copy_in(0, &[1, 2, 3, 4])?;
    let vector = |blocks, block_len, stride| Layout::Vector {
        blocks,
        block_len,
        stride,
    };
    next(&window, |access, to| {
        let at = |index, layout| access.to(to, index).layout(layout);
        let mut found = [0; 6];
        at(2, vector(3, 2, 0))
            .get(Scatter::from(&mut found[..]))?
            .wait()?;
        check("in one place", found == [3, 4, 3, 4, 3, 4], true)?;
        at(0, vector(3, 2, 1))
            .get(Scatter::from(&mut found[..]))?
            .wait()?;
        check("overlapping", found == [1, 2, 2, 3, 3, 4], true)?;
        let beyond = Error::OutOfRange { end: 5, len: 4 };
        for (index, layout) in [(3, vector(3, 2, 0)), (1, vector(3, 2, 1))] {
            let got = at(index, layout)
                .get(Scatter::from(&mut found[..]))
                .and_then(flagpost::rma::Request::wait);
            refuses("outside", got, beyond)?;
        }
        let data = [7, 8, 9];
        let again = Gather::new(&data, vector(2, 2, 0));
        Ok(at(0, vector(1, 4, 0)).put(again)?.wait()?)
    })?;
    holds("put twice", &window.local(), 0, [7, 8, 7, 8])
}

/// Bytes and half words.
pub(super) fn narrow<L: Link>(world: &World<'_, L>) -> Result {
    both_sides::<L, u8>(world, 3, 0)?;
    both_sides::<L, u8>(world, 32, 1)?;
    both_sides::<L, u16>(world, 5, 2)
}

/// Words and cells.
pub(super) fn wide<L: Link>(world: &World<'_, L>) -> Result {
    both_sides::<L, u32>(world, 3, 0)?;
    both_sides::<L, u32>(world, 8, 1)?;
    both_sides::<L, u64>(world, 5, 2)
}

/// A record without padding.
#[derive(Copy, Clone, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    kind: u16,
    flags: [u8; 2],
    charge: f64,
}

/// Some fields of each record, from and to slices of those fields alone.
pub(super) fn fields<L: Link>(world: &World<'_, L>) -> Result {
    const RECORDS: usize = 7;
    let window = world.allocate::<Particle>(RECORDS + 1)?;
    let particle = |i: usize| Particle {
        position: [i as f32; 3],
        kind: i as u16,
        flags: [i as u8; 2],
        charge: i as f64,
    };
    for index in 0..=RECORDS {
        window.local().set(index, particle(index))?;
    }
    let kinds_and_charges = [block(12, 2), block(16, 8)];
    let (positions, charges) = ([block(0, 12)], [block(16, 8)]);
    let of = |fields| Layout::Fields {
        records: RECORDS,
        fields,
    };
    let mut packed = [0_u8; RECORDS * 10];
    let mut alone = [0.0_f64; RECORDS];
    next(&window, |access, to| {
        let at = |index, layout| access.to(to, index).layout(layout);
        let all = Layout::Contiguous { count: 70 };
        let layout = of(&kinds_and_charges);
        at(1, layout).get(Scatter::new(&mut packed, all))?.wait()?;
        let data: [f32; 3 * RECORDS] = core::array::from_fn(|i| i as f32 - 5.0);
        let from = Gather::new(&data, Layout::Contiguous { count: data.len() });
        at(1, of(&positions)).put(from)?.wait()?;
        let into = Scatter::new(&mut alone, Layout::Contiguous { count: RECORDS });
        Ok(at(1, of(&charges)).get(into)?.wait()?)
    })?;
    for number in 0..RECORDS {
        let mut expected = particle(number + 1);
        let (kind, charge) = packed[number * 10..][..10].split_at(2);
        let kind_as_put = bytemuck::bytes_of(&expected.kind);
        let charge_as_put = bytemuck::bytes_of(&expected.charge);
        check("kind", kind == kind_as_put, true)?;
        check("charge", charge == charge_as_put, true)?;
        check("charge alone", alone[number] == expected.charge, true)?;
        expected.position = core::array::from_fn(|i| (number * 3 + i) as f32 - 5.0);
        let found = window.local().get(number + 1)?;
        check("positions only", found == expected, true)?;
    }
    let before = window.local().get(0)?;
    check("before", before == particle(0), true)
}

/// Bytes of each access below.
const BYTES: usize = 96;

/// Where byte `number` of a layout of `T`s is.
fn byte_of<T>(layout: Layout<'_>, number: usize) -> usize {
    let size = size_of::<T>();
    let Layout::Fields { fields, .. } = layout else {
        return position(layout, number / size) * size + number % size;
    };
    let len = fields.iter().map(|field| field.len).sum::<usize>();
    let mut left = number % len;
    for field in fields {
        if left < field.len {
            return number / len * size + field.at + left;
        }
        left -= field.len;
    }
    usize::MAX
}

/// `to` with the bytes of `from` that two layouts name.
fn copied<T: Pod, U: Pod>(to: (&mut [T], Layout<'_>), from: (&[U], Layout<'_>)) {
    let into: &mut [u8] = bytemuck::cast_slice_mut(to.0);
    let bytes = bytes(from.0);
    for number in 0..BYTES {
        into[byte_of::<T>(to.1, number)] = bytes[byte_of::<U>(from.1, number)];
    }
}

/// `N` elements that hold the bytes `first`, `first` + 1, ...
fn counted<T: Pod, const N: usize>(first: u8) -> [T; N] {
    let mut all = [T::zeroed(); N];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut all);
    for (number, byte) in bytes.iter_mut().enumerate() {
        *byte = first.wrapping_add(number as u8);
    }
    all
}

/// Elements of a window are put and got as others, `N` and `M` of them, at places of either side.
fn across<L: Link, T: Pod, U: Pod, const N: usize, const M: usize>(
    world: &World<'_, L>,
    at_target: Layout<'_>,
    at_origin: Layout<'_>,
) -> Result {
    let window = world.allocate::<T>(N + 1)?;
    let (data, mut got) = (counted::<U, M>(101), counted::<U, M>(7));
    let mut expected = counted::<T, N>(1);
    window.local().copy_in(1, &expected)?;
    next(&window, |access, to| {
        let into = Scatter::new(&mut got, at_origin);
        access.to(to, 1).layout(at_target).get(into)?.wait()?;
        let from = Gather::new(&data, at_origin);
        Ok(access.to(to, 1).layout(at_target).put(from)?.wait()?)
    })?;
    let mut expected_got = counted::<U, M>(7);
    copied((&mut expected_got, at_origin), (&expected, at_target));
    check("got", bytes(&got) == bytes(&expected_got), true)?;
    copied((&mut expected, at_target), (&data, at_origin));
    let mut found = [T::zeroed(); N];
    window.local().copy_out(1, &mut found)?;
    check("put", bytes(&found) == bytes(&expected), true)?;
    Ok(window.free()?)
}

fn bytes<T: Pod>(of: &[T]) -> &[u8] {
    bytemuck::cast_slice(of)
}

/// Elements of other sizes than the window's, and some fields of records, at either side and at
/// both.
pub(super) fn other_elements<L: Link>(world: &World<'_, L>) -> Result {
    const PARTS: [Block; 2] = [block(4, 2), block(14, 6)];
    const OTHERS: [Block; 2] = [block(0, 3), block(9, 5)];
    let vector = |blocks, block_len, stride| Layout::Vector {
        blocks,
        block_len,
        stride,
    };
    let of = |fields| Layout::Fields {
        records: BYTES / 8,
        fields,
    };
    let words = Layout::Indexed { blocks: &BLOCKS };
    across::<L, u32, u16, 40, 80>(world, vector(8, 3, 5), vector(16, 3, 5))?;
    across::<L, u32, u8, 80, 168>(world, words, vector(24, 4, 7))?;
    across::<L, u8, u64, 160, 20>(world, vector(32, 3, 5), vector(4, 3, 5))?;
    across::<L, u32, Particle, 40, 12>(world, vector(8, 3, 5), of(&PARTS))?;
    across::<L, Particle, u16, 12, 80>(world, of(&OTHERS), vector(16, 3, 5))?;
    across::<L, Particle, Particle, 12, 12>(world, of(&OTHERS), of(&PARTS))
}

/// Layouts that do not fit, in an epoch of a window of 4 words.
pub(super) fn misuse<L: Link>(access: &Open<'_, '_, u32, L>, to: Rank, overflow: Error) -> Result {
    let data = [9_u32; 4];
    let vector = |stride| Layout::Vector {
        blocks: 2,
        block_len: 1,
        stride,
    };
    let far = [block(usize::MAX, 2)];
    let fields = [block(2, 2)];
    let outside = [block(3, 2)];
    let of = |fields| Layout::Fields { records: 2, fields };
    let two = (&data[..], Layout::Contiguous { count: 2 });
    let beyond = Error::OutOfRange { end: 5, len: 4 };
    let differ = |target, origin| Error::LengthsDiffer { target, origin };
    for (layout, (data, from), expected) in [
        (vector(4), two, beyond),
        (vector(usize::MAX), two, overflow),
        (Layout::Indexed { blocks: &far }, two, overflow),
        (of(&outside), two, overflow),
        (vector(2), (&data[..], vector(4)), beyond),
        (
            vector(2),
            (&data[..], Layout::Contiguous { count: 4 }),
            differ(8, 16),
        ),
        (of(&fields), two, differ(4, 8)),
    ] {
        let mut into = [7; 4];
        for verb in [Verb::Put, Verb::Get, Verb::Accumulate, Verb::GetAccumulate] {
            let (data, into) = (Gather::new(data, from), Scatter::new(&mut into, from));
            let found = begin!(verb, access.to(to, 0).layout(layout), data, into).err();
            let combines = matches!(verb, Verb::Accumulate | Verb::GetAccumulate);
            let in_bytes = combines && layout == of(&fields);
            let expected = if in_bytes {
                Error::FieldsAccumulated
            } else {
                expected
            };
            check(verb.name(), found == Some(expected), true)?;
        }
        check("got", into == [7; 4], true)?;
    }
    // One element takes a layout that names one.
    let pair = Layout::Contiguous { count: 2 };
    let found = access
        .to(to, 0)
        .layout(pair)
        .fetch_and_op(1, Operation::SUM);
    check("one", found.err() == Some(differ(8, 4)), true)
}
