//! Requests, and calls whose budget runs out.

#![allow(
    clippy::result_large_err,
    reason = "handles go back to their user, without a heap"
)]

use flagpost::{
    Link, Rank, Rma as _, Waiting, World,
    rma::{Operation, Request},
    wait_any,
};
use flagpost_link::{Amo, Op, Place, Width};

use super::handles::{at_lock, finish, short, timed_out};
use super::{
    join,
    rma::{at, next},
    timeout::take,
};
use crate::{Context, MachinePlatform, Result, context::check};

/// Tests until it is done.
fn tested<L: Link>(world: &World<'_, L>, request: &mut Request<'_, '_, L>) -> Result {
    while !request.test()? {
        world.link().relax();
    }
    Ok(())
}

/// Each call begun, then waited for in each way.
pub(super) fn requests<L: Link>(world: &World<'_, L>) -> Result {
    const LEN: usize = 20;
    let window = world.allocate::<u64>(3 * LEN)?;
    for round in 0..3 {
        for index in 0..3 * LEN {
            window.local().set(index, index as u64)?;
        }
        let data: [u64; LEN] = core::array::from_fn(|i| i as u64 + 1000);
        let (mut got, mut fetched) = ([0; LEN], [0; LEN]);
        next(&window, |access, to| {
            let mut put = access.to(to, 0).put(&data)?;
            let mut get = access.to(to, LEN).get(&mut got)?;
            let add = access.to(to, 2 * LEN).accumulate(&data, Operation::SUM);
            let mut add = add?;
            match round {
                0 => {
                    put.wait()?;
                    get.wait()?;
                    add.wait()?;
                }
                1 => {
                    tested(world, &mut add)?;
                    tested(world, &mut get)?;
                    tested(world, &mut put)?;
                }
                _ => {
                    let mut all = [put, get, add];
                    let mut done = [false; 3];
                    while let Some(index) = wait_any(&mut all)? {
                        check("told once", done[index], false)?;
                        done[index] = true;
                    }
                    check("told each", done == [true; 3], true)?;
                    check("nothing is left", wait_any(&mut all)?.is_none(), true)?;
                }
            }
            let no_op = Operation::NO_OP;
            let mut none: [Request<'_, '_, L>; 0] = [];
            check("none of none", wait_any(&mut none)?.is_none(), true)?;
            let last = access
                .to(to, 2 * LEN)
                .get_accumulate(&[], no_op, &mut fetched)?;
            Ok(last.wait()?)
        })?;
        for i in 0..LEN {
            check("put", window.local().get(i)?, data[i])?;
            check("got", got[i], (LEN + i) as u64)?;
            check("left alone", window.local().get(LEN + i)?, (LEN + i) as u64)?;
            let sum = (2 * LEN + i) as u64 + data[i];
            check("combined", window.local().get(2 * LEN + i)?, sum)?;
            check("fetched", fetched[i], sum)?;
        }
    }
    Ok(())
}

/// A budget of nothing: each call goes on where it stopped, and changes nothing twice.
pub(super) fn accumulates<L: Link>(world: &World<'_, L>) -> Result {
    const LEN: usize = 9;
    let target = Rank::new(0);
    let window = world.allocate::<u64>(LEN)?;
    let small = world.allocate::<u32>(LEN)?;
    let (one, small_one) = ([1; LEN], [1; LEN]);
    at(&window, target, |access| {
        at(&small, target, |small| {
            // Both targets have posted, and nobody waits for anything but locks and answers.
            access.get(target, 0, &mut [0])?;
            small.get(target, 0, &mut [0])?;
            finish(
                world,
                access.to(target, 0).accumulate(&one, Operation::SUM)?,
            )?;
            finish(
                world,
                small.to(target, 0).accumulate(&small_one, Operation::SUM)?,
            )?;
            let mut fetched = [0; LEN];
            let both = access
                .to(target, 0)
                .get_accumulate(&one, Operation::SUM, &mut fetched);
            finish(world, both?)?;
            check("fetched", fetched.iter().all(|old| *old > 0), true)?;
            let drawn = access.to(target, LEN - 1).fetch_and_op(1, Operation::SUM)?;
            finish(world, drawn)?;
            Ok(())
        })
    })?;
    if world.rank() == target {
        let ranks = u64::from(world.size());
        for index in 0..LEN {
            let more = if index == LEN - 1 { ranks } else { 0 };
            check("sum", window.local().get(index)?, 2 * ranks + more)?;
            check("small sum", u64::from(small.local().get(index)?), ranks)?;
        }
    }
    Ok(world.barrier()?)
}

/// A lock that is not freed: each call that combines names its owner, and goes on once it is.
pub(super) fn locked<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let world = join(context)?;
    let window = world.allocate::<u32>(20)?;
    let (me, target) = (world.rank(), Rank::new(1));
    let (data, mut fetched) = ([2; 20], [9; 20]);
    at(&window, target, |access| {
        if me.get() != 0 {
            return Ok(());
        }
        access.get(target, 0, &mut [0])?;
        for call in 0..5 {
            let held = take(&machine, target);
            match call {
                0 => {
                    let request = access.to(target, 0).accumulate(&data, Operation::SUM)?;
                    at_lock(held, request)?;
                }
                1 => {
                    let request =
                        access
                            .to(target, 0)
                            .get_accumulate(&data, Operation::SUM, &mut fetched)?;
                    at_lock(held, request)?;
                }
                2 => {
                    let request = access.to(target, 0).fetch_and_op(5, Operation::PROD)?;
                    let found = at_lock(held, request)?;
                    check("fetched one", found, 4_u32)?;
                }
                3 => {
                    let request = access.to(target, 0).compare_and_swap(20, 7)?;
                    let found = at_lock(held, request)?;
                    check("swapped", found, 20_u32)?;
                }
                _ => {
                    let mut requests = [access.to(target, 0).accumulate(&data, Operation::SUM)?];
                    check("begun", requests[0].has_begun(), false)?;
                    check("done", requests[0].test()?, false)?;
                    let late = short(&world, || wait_any(&mut requests));
                    drop(held);
                    timed_out(late, Waiting::Lock, 1, &[target])?;
                    check("the only one", wait_any(&mut requests)? == Some(0), true)?;
                    check("has begun", requests[0].has_begun(), true)?;
                }
            }
        }
        check("fetched", fetched == [2; 20], true)
    })?;
    if me == target {
        for index in 0..20 {
            let expected = if index == 0 { 9 } else { 6 };
            check("combined", window.local().get(index)?, expected as u32)?;
        }
    }
    Ok(world.barrier()?)
}

/// Each operation on a cell, and all ranks at once.
pub(super) fn cells<L: Link>(world: &World<'_, L>) -> Result {
    let (link, me, size) = (world.link(), world.rank(), world.size());
    let key = link.allocate(64, Place::Symmetric)?;
    link.write_local(key, 0, &[0; 64])?;
    link.publish(key, 0, 64)?;
    world.barrier()?;
    let to = me.next(size);
    let change = |rank, offset, amo, width| {
        let op = Op::new();
        loop {
            match link.amo(rank, key, offset, amo, width, &op) {
                Err(refusal) if refusal.is_transient() => link.relax(),
                other => break other,
            }
        }
    };
    for (offset, width) in [(0, Width::Half), (8, Width::Whole)] {
        let high = match width {
            Width::Half => 0,
            Width::Whole => 3 << 40,
        };
        let (expected, far) = (high + 10, high + 11);
        let steps = [
            (Amo::Swap(high + 12), 0),
            (Amo::Read, high + 12),
            (Amo::And(high + 10), high + 12),
            (Amo::Or(3), high + 8),
            (Amo::Xor(1), high + 11),
            (
                Amo::CompareSwap {
                    expected: far,
                    new: 1,
                },
                high + 10,
            ),
            (
                Amo::CompareSwap {
                    expected,
                    new: high + 4,
                },
                high + 10,
            ),
            (Amo::Add(5), high + 4),
            (Amo::Read, high + 9),
        ];
        for (amo, former) in steps {
            check("cell", change(to, offset, amo, width)?, former)?;
        }
    }
    let beyond = Amo::CompareSwap {
        expected: (1 << 32) + 9,
        new: 1,
    };
    check("half a cell", change(to, 0, beyond, Width::Half)?, 9_u64)?;
    for _ in 0..3 {
        change(Rank::new(0), 16, Amo::Add(1), Width::Half)?;
        change(Rank::new(0), 24, Amo::Add((1 << 32) + 1), Width::Whole)?;
        change(
            Rank::new(0),
            32,
            Amo::Xor(1 << (me.get() % 32)),
            Width::Half,
        )?;
    }
    world.barrier()?;
    let times = 3 * u64::from(size);
    let read = |offset, width| change(Rank::new(0), offset, Amo::Read, width);
    check("half", read(16, Width::Half)?, times)?;
    check("whole", read(24, Width::Whole)?, (times << 32) + times)?;
    if size <= 32 {
        let all = (1_u64 << size) - 1;
        check("each one's bit", read(32, Width::Half)?, all)?;
    }
    Ok(world.barrier()?)
}
