//! Payload that is longer than an entry of the ring, and whose producer stops in the middle: its
//! budget runs out, or it gives up.

use flagpost::{Error, Link, Rma as _, Source, Tag, TagFilter, Unfinished, World};

use super::handles::NONE;
use super::steps::hear;
use super::{
    notify_inline::{ROUNDS, check_all},
    notify_long::{SENDER, TARGET},
};
use crate::{Failure, Result, context::check};

/// Long payload whose producer runs out of its budget in the middle goes on where it stopped; from
/// the start, if its producer has sent other long payload to the same rank since. It comes once.
pub(super) fn late<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 600;
    const OTHERS: usize = 10;
    let (sender, target) = (SENDER, TARGET);
    let window = world.allocate::<u32>(3 + WORDS + OTHERS)?;
    for round in 1..=2 * ROUNDS {
        if world.rank() == sender {
            let data = [round; WORDS];
            let late = |error| match error {
                Error::Timeout(_) => {
                    world.link().relax();
                    Ok(())
                }
                other => Err(Failure::from(other)),
            };
            let tell = || {
                let others = [round; OTHERS];
                let len = if round % 3 == 0 { 0 } else { OTHERS };
                let others = others.get(..len).unwrap_or(&[]);
                let put = || window.to(target, 3 + WORDS).notify(Tag(2)).put(others);
                while let Err(Unfinished { error, .. }) = put()?.wait_within(NONE) {
                    late(error)?;
                }
                Ok::<_, Failure>(())
            };
            let mut interrupts = round % 3 != 2;
            let mut rest = window.to(target, 3).notify(Tag(1)).put(&data)?;
            while let Err(Unfinished { handle, error }) = rest.wait_within(NONE) {
                late(error)?;
                if handle.has_begun() && core::mem::take(&mut interrupts) {
                    tell()?;
                }
                rest = handle;
            }
            if round % 3 == 2 || interrupts {
                tell()?;
            }
        } else if world.rank() == target {
            let all = 3..3 + WORDS + OTHERS;
            for (range, tag) in [(3..3 + WORDS, Tag(1)), (all.clone(), Tag(2))] {
                hear(window.expect(range, tag)?.from(sender)?)?;
            }
            let changed = if round % 3 == 0 { 3..3 + WORDS } else { all };
            check_all("what came", &window.local(), changed, round)?;
            let more = window.probe(Source::Any, TagFilter::Any)?;
            check("nothing more", more.is_none(), true)?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// A producer that gives long payload up in the middle: behind a flush nothing of it comes any
/// more, nor in a window that has the memory afterwards.
pub(super) fn dropped<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 600;
    let (sender, target) = (SENDER, TARGET);
    for round in 1..=2 * ROUNDS {
        let window = world.allocate::<u32>(3 + WORDS)?;
        let flushes = round % 2 == 0;
        if world.rank() == sender {
            let data = [round; WORDS];
            let mut put = window.to(target, 3).notify(Tag(1)).put(&data)?;
            while let Err(Unfinished { handle, error }) = put.wait_within(NONE) {
                let Error::Timeout(_) = error else {
                    return Err(error.into());
                };
                if handle.has_begun() {
                    drop(handle);
                    break;
                }
                world.link().relax();
                put = handle;
            }
            if flushes {
                let lock = window.lock_all()?;
                lock.flush(target)?;
                lock.put(target, 3, &[round + 100; WORDS])?;
                lock.unlock()?;
                window.notify(target, Tag(2))?;
            }
        } else if world.rank() == target && flushes {
            hear(window.expect(3..3 + WORDS, Tag(2))?.from(sender)?)?;
            check_all(
                "what was put last",
                &window.local(),
                3..3 + WORDS,
                round + 100,
            )?;
        }
        world.barrier()?;
        if window.probe(sender, Tag(1))?.is_some() {
            hear(window.expect(0..0, Tag(1))?.from(sender)?)?;
        }
        window.free()?;
    }
    Ok(())
}

/// What was taken stays, where payload that comes over it stops in the middle.
pub(super) fn dropped_over<L: Link>(world: &World<'_, L>) -> Result {
    const WORDS: usize = 600;
    let window = world.allocate::<u32>(WORDS)?;
    for round in 1..=2 * ROUNDS {
        let over = round + 100;
        if world.rank() == SENDER {
            window.put_notify(TARGET, 0, &[round; WORDS], Tag(1))?;
            let data = [over; WORDS];
            let put = window.to(TARGET, 0).notify(Tag(2)).put(&data)?;
            match put.wait_within(NONE) {
                Ok(())
                | Err(Unfinished {
                    error: Error::Timeout(_),
                    ..
                }) => {}
                Err(Unfinished { error, .. }) => return Err(error.into()),
            }
            let lock = window.lock_all()?;
            let mut found = [0; WORDS];
            lock.flush(TARGET)?;
            lock.get(TARGET, 0, &mut found)?;
            let first = found.iter().take_while(|word| **word == over).count();
            let rest = found.iter().skip(first);
            check("the rest", rest.clone().all(|word| *word == round), true)?;
            lock.unlock()?;
        } else if world.rank() == TARGET {
            hear(window.expect(0..WORDS, Tag(1))?.from(SENDER)?)?;
        }
        world.barrier()?;
        if window.probe(SENDER, Tag(2))?.is_some() {
            hear(window.expect(0..0, Tag(2))?.from(SENDER)?)?;
        }
        world.barrier()?;
    }
    Ok(())
}
