//! Accesses that exclude each other, to one element of 4 or of 8 bytes: over both kinds of link.
//!
//! Each of the calls changes the element: what does not change is not stored.

use flagpost::rma::{Integer, Operation};
use flagpost::{Config, Link, Rma as _, World};
use flagpost_sim::SimCore;

use super::{BEGIN, CALLS, END, OWN, PEER};
use crate::Failure;

/// Makes the call on an element of `bytes` bytes.
pub(super) fn run<L: Link>(
    core: &SimCore,
    link: L,
    part: &str,
    bytes: usize,
) -> Result<(), Failure> {
    match bytes {
        4 => of::<u32, L>(core, link, part),
        _ => of::<u64, L>(core, link, part),
    }
}

fn of<T: Integer + From<u8>, L: Link>(core: &SimCore, link: L, part: &str) -> Result<(), Failure> {
    let mut arena = [0; 512];
    let world = World::start(link, &mut arena, Config::default())?;
    let window = world.allocate::<T>(1)?;
    for number in 0..CALLS {
        world.barrier()?;
        if world.rank() != OWN {
            continue;
        }
        let lock = window.lock_shared(PEER)?;
        let (one, sum) = (T::from(1), Operation::SUM);
        let [old, new] = [number, number + 1].map(|value| T::from(value as u8));
        core.mark(BEGIN);
        let done = match part {
            "accumulate" => lock.accumulate(PEER, 0, &[one], sum).is_ok(),
            "fetch_and_op" => lock.fetch_and_op(PEER, 0, one, sum).is_ok(),
            "compare_and_swap" => lock.compare_and_swap(PEER, 0, old, new).is_ok(),
            _ => false,
        };
        core.mark(END);
        if !done {
            return Err(Failure::Data);
        }
        lock.unlock()?;
    }
    Ok(())
}
