//! Several requests of all kinds.

use flagpost::{
    Compare, Complete, Counter, Link, Rma as _, Tag, World, epoch::Assert, rma::Operation,
    test_any, wait_all, wait_any,
};

use super::steps::NO_ERROR;
use crate::{Result, context::check};

/// Each request is given once, in whatever order they are complete: by waiting for any, by testing,
/// and by waiting for all.
pub(super) fn mixed<L: Link>(world: &World<'_, L>) -> Result {
    let next = world.rank().next(world.size());
    let (mut window, words) = (world.allocate::<u64>(24)?, world.allocate::<u64>(2)?);
    window.set_num_notify(1)?;
    let events = world.events(1)?;
    for round in 1..=3_u64 {
        words.local().set(0, round)?;
        let epoch = words.fence(Assert::empty())?;
        let mut told = window.expect(0..8, Tag(1))?;
        let mut counted = window.expect_count(8..16, Counter(0), 2)?;
        let mut posted = window.expect_word(16..24, events.event(0)?, Compare::Ge, 1.into())?;
        told.start()?;
        counted.start()?;
        posted.start()?;
        world.barrier()?; // all have started
        window.put_notify(next, 16, &[round + 30], events.event(0)?)?;
        window.put_notify(next, 8, &[round + 20], Counter(0))?;
        window.put_notify(next, 9, &[round + 20], Counter(0))?;
        window.put_notify(next, 0, &[round + 10], Tag(1))?;
        let mut got = [0];
        let mut get = epoch.to(next, 0).get(&mut got)?;
        let mut add = epoch.to(next, 1).fetch_and_op(1, Operation::SUM)?;
        let mut all: [&mut dyn Complete<'_, L>; 5] =
            [&mut told, &mut counted, &mut posted, &mut get, &mut add];
        let mut given = [0; 5];
        for _ in 0..5 {
            let index = match round {
                1 => wait_any(&mut all)?.ok_or(NO_ERROR)?,
                2 => loop {
                    match test_any(&mut all)? {
                        Some(index) => break index,
                        None => world.link().relax(),
                    }
                },
                _ => break,
            };
            given[index] += 1;
        }
        if round == 3 {
            wait_all(&mut all)?;
            given = [1; 5];
        }
        check("each once", given == [1; 5], true)?;
        check("none is left", wait_any(&mut all)?.is_none(), true)?;
        check("none to test", test_any(&mut all)?.is_none(), true)?;
        check("added before", add.wait()?, round - 1)?;
        drop(get);
        check("got", got[0], round)?;
        check("told", window.local().get(0)?, round + 10)?;
        check("counted", window.local().get(9)?, round + 20)?;
        check("posted", window.local().get(16)?, round + 30)?;
        check("taken", events.query(0)?, 0_u32)?;
        check("counter", window.reset_notify_value(Counter(0))?, 2_u32)?;
        epoch.end()?;
    }
    Ok(events.free()?)
}
