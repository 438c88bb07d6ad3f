//! Operations on attached memory: all that other windows have.

use flagpost::{
    Displacement, DynamicOptions, DynamicWindow, Error, Link, Rank, Rma as _, Validation, World,
    rma::{Gather, Layout, Operation, Scatter},
};

use super::dynamic::{epoch, next_of};
use super::steps::refused as refuses;
use crate::{Result, context::check};

/// Bytes of each rank's memory.
const BYTES: usize = 96;

/// Every other one of three elements.
const EVERY_OTHER: Layout<'static> = Layout::Vector {
    blocks: 2,
    block_len: 1,
    stride: 2,
};

/// Runs something on a dynamic window to which each rank has attached memory, full of such words;
/// it is told where its own begins.
fn with_memory<L: Link>(
    world: &World<'_, L>,
    validation: Validation,
    word: u32,
    run: impl FnOnce(&DynamicWindow<'_, L>, Displacement) -> Result,
) -> Result {
    let window = world.dynamic(DynamicOptions {
        validation,
        ..DynamicOptions::default()
    })?;
    let memory = world.reserve(BYTES)?;
    memory.write(0, &[word; BYTES / 4])?;
    run(&window, window.attach(&memory)?)?;
    world.barrier()?;
    window.detach(&memory)?;
    window.free()?;
    Ok(memory.release()?)
}

/// Each operation once, in one epoch, from a displacement within the memory on.
pub(super) fn operations<L: Link>(world: &World<'_, L>, validation: Validation) -> Result {
    with_memory(world, validation, 1, |window, here| {
        let there = next_of(world, here)?.plus(8);
        epoch(window, |access, next| {
            let words = window.at::<u32, _>(access, there);
            let fetched = |what, old: &[u32]| check(what, old.iter().all(|old| *old == 1), true);
            let me = world.rank();
            if me != next {
                let others = words.put(me, 0, &[9]);
                refuses("not in the group", others, Error::NotInGroup(me))?;
            }
            let (target, origin) = (8, 4);
            let short = words
                .to(next, 0)
                .layout(EVERY_OTHER)
                .put(Gather::from(&[9][..]))
                .and_then(flagpost::rma::Request::wait);
            refuses("lengths", short, Error::LengthsDiffer { target, origin })?;
            words.put(next, 0, &[2, 3])?;
            let data = Gather::new(&[4, 0, 5], EVERY_OTHER);
            words.to(next, 2).layout(EVERY_OTHER).put(data)?.wait()?;
            words.accumulate(next, 6, &[5, 6], Operation::SUM)?;
            let mut old = [0; 2];
            words.get_accumulate(next, 8, &[7, 8], Operation::MAX, &mut old)?;
            fetched("get_accumulate", &old)?;
            let old = words.fetch_and_op(next, 10, 8, Operation::XOR)?;
            fetched("fetch_and_op", &[old])?;
            let kept = words.compare_and_swap(next, 11, 0, 9)?;
            let swapped = words.compare_and_swap(next, 12, 1, 11)?;
            fetched("compare_and_swap", &[kept, swapped])?;
            words.to(next, 13).put(&[12])?.wait()?;
            let sum = words.to(next, 14).accumulate(&[12], Operation::SUM)?;
            sum.wait()?;
            let mut old = [0];
            let sum = words
                .to(next, 15)
                .get_accumulate(&[13], Operation::SUM, &mut old)?;
            sum.wait()?;
            fetched("rget_accumulate", &old)?;
            // Elements of another size, at 8 bytes' multiples.
            let longs = window.at::<u64, _>(access, there.plus(64));
            let ones = 1 << 32 | 1;
            let sum = longs.fetch_and_op(next, 0, ones, Operation::SUM)?;
            check("fetch_and_op of 8 bytes", sum, ones)?;
            let swapped = longs.compare_and_swap(next, 1, ones, 14)?;
            check("compare_and_swap of 8 bytes", swapped, ones)?;
            let mut last = [0; 3];
            let into = Scatter::new(&mut last, EVERY_OTHER);
            words.to(next, 19).layout(EVERY_OTHER).get(into)?.wait()?;
            words.to(next, 20).get(&mut last[1..2])?.wait()?;
            check("of 14", last[0], 0_u32)?;
            fetched("get", &last[1..])
        })?;
        let mut found = [0_u32; BYTES / 4];
        window.read(here, &mut found)?;
        let expected: [u32; BYTES / 4] = [
            1, 1, 2, 3, 4, 1, 5, 1, 6, 7, 7, 8, 9, 1, 11, 12, 13, 14, 2, 2, 14, 0, 1, 1,
        ];
        for (found, expected) in found.into_iter().zip(expected) {
            check("element", found, expected)?;
        }
        Ok(())
    })
}

/// All ranks combine with the same elements at once, and nothing is lost; what is wrong changes
/// nothing.
pub(super) fn at_once<L: Link>(world: &World<'_, L>, validation: Validation) -> Result {
    with_memory(world, validation, 0, |window, here| {
        let first = Rank::new(0);
        let mut there = [here.get()];
        world.broadcast(first, &mut there)?;
        let there = Displacement::new(there[0]);

        let lock = window.window().lock_all()?;
        let beside = window.at::<u32, _>(&lock, there.plus(6));
        let unaligned = Error::UnitUnaligned { unit: 1, size: 4 };
        let sum = beside.accumulate(first, 0, &[1], Operation::SUM);
        refuses("unaligned", sum, unaligned)?;
        let fetched = beside.fetch_and_op(first, 0, 1, Operation::SUM);
        refuses("unaligned", fetched, unaligned)?;
        let last = window.at::<u32, _>(&lock, there.plus(BYTES as u32 - 4));
        let outside = Error::OutOfRange { end: 2, len: 1 };
        let swapped = last.compare_and_swap(first, 1, 0, 1);
        refuses("outside", swapped, outside)?;
        let sum = last.accumulate(first, 0, &[1, 1], Operation::SUM);
        refuses("outside", sum, outside)?;
        let end = window.at::<u32, _>(&lock, there.plus(BYTES as u32));
        end.put(first, 0, &[])?;
        let outside = Error::OutOfRange { end: 1, len: 0 };
        refuses("at the end", end.put(first, 0, &[1]), outside)?;

        let words = window.at::<u32, _>(&lock, there);
        words.accumulate(first, 0, &[1, 2, 3], Operation::SUM)?;
        words.fetch_and_op(first, 3, 1, Operation::SUM)?;
        window.at::<u64, _>(&lock, there.plus(16)).fetch_and_op(
            first,
            0,
            1 << 40,
            Operation::SUM,
        )?;
        lock.unlock()?;
        world.barrier()?;
        let lock = window.window().lock_shared(first)?;
        let size = u32::from(world.size());
        let mut found = [0_u32; BYTES / 4];
        window.at(&lock, there).get(first, 0, &mut found)?;
        lock.unlock()?;
        let expected = [size, 2 * size, 3 * size, size, 0, size << 8];
        let expected = expected.into_iter().chain([0; BYTES / 4 - 6]);
        for (found, expected) in found.into_iter().zip(expected) {
            check("element", found, expected)?;
        }
        Ok(())
    })
}
