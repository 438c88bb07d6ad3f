//! The HAL's contracts, as far as every machine must keep them.
//!
//! That a *missing* cache action goes wrong is for the machines' own tests to show; here the
//! remedies must work.

use flagpost_hal::{
    Amo, CachedMemory, Clock, Coherence, Lines, Machine, Region, Relax, TestAndSet, Topology,
    UncachedMemory,
};

use super::join;
use crate::{Context, Failure, MachinePlatform, context::check};

/// A region every core may scribble in: its message buffer, or the end of its memory.
fn scratch<M: Machine>(machine: &M, core: flagpost_hal::CoreId) -> flagpost_hal::Address {
    if machine.message_buffer_size() >= 256 {
        // Behind the link's rings and slots.
        Region::message_buffer(core).at(machine.message_buffer_size() - 256)
    } else {
        Region::memory(core).at(machine.memory_size() - 256)
    }
}

fn neighbour<M: Machine>(machine: &M) -> flagpost_hal::CoreId {
    flagpost_hal::CoreId::new((machine.core().get() + 1) % machine.cores())
}

pub(super) fn topology<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result<(), Failure> {
    let machine = &context.machine;
    check(
        "own number is below the count",
        machine.core().get() < machine.cores(),
        true,
    )?;
    check("clock has a rate", machine.hertz() > 0, true)?;
    let (before, microsecond) = (machine.cycles(), machine.hertz() / 1_000_000);
    while machine.cycles().wrapping_sub(before) < microsecond {
        machine.relax(&[]);
    }
    Ok(())
}

pub(super) fn bulk<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result<(), Failure> {
    let machine = context.machine.clone();
    let world = join(context)?;
    let target = neighbour(&machine);
    // Lengths and alignments around words and lines; the bytes beside must stay.
    for (start, len) in [(0, 1), (3, 2), (5, 40), (31, 2), (32, 64), (1, 95)] {
        let at = scratch(&machine, target);
        for offset in 0..128 {
            machine.store_u8(at.plus(offset), 0xEE);
        }
        let mut data = [0_u8; 96];
        for (byte, value) in data.iter_mut().zip(1..) {
            *byte = value;
        }
        machine.store_bytes(at.plus(start), &data[..len]);
        machine.drain();
        world.barrier()?;
        machine.acquire();
        let own = scratch(&machine, machine.core());
        let mut seen = [0_u8; 128];
        machine.load_bytes(own, &mut seen);
        for (offset, byte) in (0_usize..).zip(seen) {
            let inside = offset >= start && offset - start < len;
            let expected = if inside { offset - start + 1 } else { 0xEE };
            check("U4, exactly the named bytes change", byte, expected as u64)?;
        }
        world.barrier()?;
    }
    Ok(())
}

/// Promise U5: own loads find own stores of the same bytes, wherever those are among what is
/// loaded, with no drain between.
pub(super) fn own_stores<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result<(), Failure> {
    const BYTES: usize = 128;
    let machine = context.machine.clone();
    let world = join(context)?;
    // Own bytes, and others of the neighbour's.
    let own = scratch(&machine, machine.core());
    let theirs = scratch(&machine, neighbour(&machine)).plus(BYTES);
    let mut value = 0;
    for at in [own, theirs] {
        for (start, len) in [
            (0, 4),
            (31, 2),
            (32, 4),
            (64, 1),
            (65, 1),
            (65, 2),
            (66, 1),
            (70, 8),
            (96, 32),
            (127, 1),
        ] {
            let end = start + len;
            for (from, to) in [(0, BYTES), (start, end), (0, start + 1), (end - 1, BYTES)] {
                machine.store_bytes(at, &[0; BYTES]);
                machine.drain();
                value += 1;
                machine.store_bytes(at.plus(start), [value; 32].get(..len).unwrap_or(&[]));
                let mut seen = [0; BYTES];
                let seen = seen.get_mut(from..to).unwrap_or_default();
                machine.load_bytes(at.plus(from), seen);
                for (offset, byte) in (from..).zip(seen) {
                    let inside = (start..end).contains(&offset);
                    check(
                        "U5, own loads find own stores",
                        *byte,
                        if inside { value } else { 0 },
                    )?;
                }
            }
        }
    }
    world.barrier()?;
    Ok(())
}

pub(super) fn write_back<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result<(), Failure> {
    let machine = context.machine.clone();
    let world = join(context)?;
    let own = scratch(&machine, machine.core());
    for round in 0..4_u8 {
        machine.write(own, &[round; 40]);
        machine.write_back(&[Lines::covering::<P::Machine>(own, 40)]);
        machine.drain();
        world.barrier()?;
        machine.acquire();
        let mut seen = [0; 40];
        machine.load_bytes(scratch(&machine, neighbour(&machine)), &mut seen);
        for byte in seen {
            check("S1, what was written back is in memory", byte, round)?;
        }
        world.barrier()?;
    }
    Ok(())
}

pub(super) fn invalidate<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result<(), Failure> {
    let machine = context.machine.clone();
    let world = join(context)?;
    let own = scratch(&machine, machine.core());
    let mut seen = [0; 40];
    machine.read(own, &mut seen); // fetches lines that are about to become stale
    for round in 0..4_u8 {
        world.barrier()?;
        machine.store_bytes(scratch(&machine, neighbour(&machine)), &[round; 40]);
        machine.drain();
        world.barrier()?;
        machine.acquire();
        machine.invalidate(&[Lines::covering::<P::Machine>(own, 40)]);
        machine.read(own, &mut seen);
        for byte in seen {
            check("S2, an invalidated line is fetched anew", byte, round)?;
        }
    }
    Ok(())
}

pub(super) fn lock<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result<(), Failure> {
    const TIMES: u32 = 3;
    let machine = context.machine.clone();
    let world = join(context)?;
    let owner = flagpost_hal::CoreId::new(0);
    let word = scratch(&machine, owner);
    if machine.core() == owner {
        machine.store_u32(word, 0);
        machine.drain();
    }
    world.barrier()?;
    for _ in 0..TIMES {
        let held = loop {
            if let Some(held) = machine.try_lock(owner) {
                break held;
            }
            Relax::relax(&machine, &[]);
        };
        machine.acquire();
        check(
            "T3, a register is not re-entrant",
            machine.try_lock(owner).is_none(),
            true,
        )?;
        let value = machine.load_u32(word);
        // The others' turn, where cores take turns: a register that lets two in must show.
        Relax::relax(&machine, &[]);
        machine.store_u32(word, value + 1);
        machine.drain();
        drop(held);
    }
    world.barrier()?;
    machine.acquire();
    check(
        "T1, one core holds a register (with S3 and S4)",
        machine.load_u32(word),
        TIMES * u32::from(machine.cores()),
    )
}

pub(super) fn atomics<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result<(), Failure> {
    let machine = context.machine.clone();
    let Some(atomic) = P::ATOMICS else {
        return Err(Failure::Argument("this platform has no atomics"));
    };
    let world = join(context)?;
    let at = scratch(&machine, flagpost_hal::CoreId::new(0));
    let me = u32::from(machine.core().get());
    if me == 0 {
        for word in 0..4 {
            machine.store_u32(at.plus(word * 4), 0);
        }
        machine.drain();
    }
    world.barrier()?;
    atomic(&machine, at, Amo::Add(me + 1));
    atomic(&machine, at.plus(4), Amo::Or(1 << (me % 32)));
    // One core, whichever comes first, finds 0 and leaves its number.
    let swap = Amo::CompareSwap {
        expected: 0,
        new: me + 1,
    };
    if atomic(&machine, at.plus(8), swap) == 0 {
        atomic(&machine, at.plus(12), Amo::Swap(me + 1));
    }
    world.barrier()?;
    machine.acquire();
    let cores = u32::from(machine.cores());
    check("sum", machine.load_u32(at), cores * (cores + 1) / 2)?;
    let bits = 1_u32.checked_shl(cores).map_or(u32::MAX, |bit| bit - 1);
    check("or", machine.load_u32(at.plus(4)), bits)?;
    let winner = machine.load_u32(at.plus(8));
    check("a core won", winner >= 1 && winner <= cores, true)?;
    check("the winner swapped", machine.load_u32(at.plus(12)), winner)
}

pub(super) fn doorbell<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result<(), Failure> {
    let machine = context.machine.clone();
    let Some((ring, wait_for_ring)) = P::BELL else {
        return Err(Failure::Argument("this platform has no bells"));
    };
    let world = join(context)?;
    let own = scratch(&machine, machine.core());
    machine.store_u32(own, 0);
    machine.drain();
    world.barrier()?;
    let next = neighbour(&machine);
    machine.store_u32(scratch(&machine, next), 1);
    machine.drain();
    ring(&machine, next);
    loop {
        wait_for_ring(&machine);
        machine.acquire();
        if machine.load_u32(own) == 1 {
            return Ok(());
        }
    }
}
