//! The HAL's contracts, as far as every machine must keep them.
//!
//! The cases need no kernel: between their steps the cores [meet](Meeting) by words of their own
//! regions. What a check says begins with the promise of `flagpost-hal` that it asks for. That a
//! *missing* cache action goes wrong is for the machines' own tests to show; here the remedies must
//! work.

use embedded_hal::delay::DelayNs as _;
use flagpost_hal::{
    Amo, CachedMemory, Clock, Coherence, Delay, Lines, Machine, Region, Relax, TestAndSet,
    Topology, UncachedMemory, Watch,
};

use crate::{Context, Failure, MachinePlatform, Platform, Result, context::check};

/// A barrier of all cores: each stores the number of its round into the first word of its memory,
/// and waits until all others have. It rests on U3, S3 and S4, for aligned words alone.
struct Meeting<M> {
    machine: M,
    round: u32,
}

impl<M: Machine + Clone> Meeting<M> {
    fn new<P: Platform<Machine = M>>(context: &Context<'_, P>) -> Self {
        let machine = context.machine.clone();
        let round = context.session.get().wrapping_mul(1 << 8);
        machine.release_at_start(machine.core());
        let mut meeting = Self { machine, round };
        meeting.meet();
        P::go(&context.machine);
        meeting
    }

    fn meet(&mut self) {
        let machine = &self.machine;
        self.round = self.round.wrapping_add(1);
        let word = |core| Region::memory(flagpost_hal::CoreId::new(core)).at(0);
        machine.drain();
        machine.store_u32(word(machine.core().get()), self.round);
        machine.drain();
        for at in (0..machine.cores()).map(word) {
            loop {
                let seen = machine.load_u32(at);
                // A peer is at most one round ahead, since it waits for this core there.
                if seen.wrapping_sub(self.round) <= 1 {
                    break;
                }
                machine.relax(&[Watch { at, seen }]);
            }
        }
        machine.acquire();
    }
}

/// A region every core may scribble in: its message buffer, or the end of its memory.
fn scratch<M: Machine>(machine: &M, core: flagpost_hal::CoreId) -> flagpost_hal::Address {
    if machine.message_buffer_size() >= 256 {
        Region::message_buffer(core).at(machine.message_buffer_size() - 256)
    } else {
        Region::memory(core).at(machine.memory_size() - 256)
    }
}

fn neighbour<M: Machine>(machine: &M) -> flagpost_hal::CoreId {
    flagpost_hal::CoreId::new((machine.core().get() + 1) % machine.cores())
}

pub(super) fn topology<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = &context.machine;
    check(
        "a core's number is below the count",
        machine.core().get() < machine.cores(),
        true,
    )?;
    check("the clock has a rate", machine.hertz() > 0, true)?;
    let (before, microsecond) = (machine.cycles(), machine.hertz() / 1_000_000);
    Delay::new(machine).delay_us(1);
    let taken = machine.cycles().wrapping_sub(before);
    check("a delay takes its time", taken >= microsecond, true)
}

pub(super) fn bulk<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let mut meeting = Meeting::new(context);
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
        meeting.meet();
        let own = scratch(&machine, machine.core());
        let mut seen = [0_u8; 128];
        machine.load_bytes(own, &mut seen);
        for (offset, byte) in (0_usize..).zip(seen) {
            let inside = offset >= start && offset - start < len;
            let expected = if inside { offset - start + 1 } else { 0xEE };
            check("U4, exactly the named bytes change", byte, expected as u64)?;
        }
        meeting.meet();
    }
    Ok(())
}

/// Promise U5: own loads find own stores of the same bytes, wherever those are among what is
/// loaded, with no drain between.
pub(super) fn own_stores<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    const BYTES: usize = 128;
    let machine = context.machine.clone();
    let mut meeting = Meeting::new(context);
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
    meeting.meet();
    Ok(())
}

pub(super) fn write_back<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let mut meeting = Meeting::new(context);
    let own = scratch(&machine, machine.core());
    for round in 0..4_u8 {
        machine.write(own, &[round; 40]);
        machine.write_back(&[Lines::covering::<P::Machine>(own, 40)]);
        machine.drain();
        meeting.meet();
        let mut seen = [0; 40];
        machine.load_bytes(scratch(&machine, neighbour(&machine)), &mut seen);
        for byte in seen {
            check("S1, what was written back is in memory", byte, round)?;
        }
        meeting.meet();
    }
    Ok(())
}

pub(super) fn invalidate<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let mut meeting = Meeting::new(context);
    let own = scratch(&machine, machine.core());
    let mut seen = [0; 40];
    machine.read(own, &mut seen); // fetches lines that are about to become stale
    for round in 0..4_u8 {
        meeting.meet();
        machine.store_bytes(scratch(&machine, neighbour(&machine)), &[round; 40]);
        machine.drain();
        meeting.meet();
        machine.invalidate(&[Lines::covering::<P::Machine>(own, 40)]);
        machine.read(own, &mut seen);
        for byte in seen {
            check("S2, an invalidated line is fetched anew", byte, round)?;
        }
    }
    Ok(())
}

pub(super) fn lock<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    const TIMES: u32 = 3;
    let machine = context.machine.clone();
    let mut meeting = Meeting::new(context);
    let owner = flagpost_hal::CoreId::new(0);
    let word = scratch(&machine, owner);
    if machine.core() == owner {
        machine.store_u32(word, 0);
        machine.drain();
    }
    meeting.meet();
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
    meeting.meet();
    check(
        "T1, one core holds a register (with S3 and S4)",
        machine.load_u32(word),
        TIMES * u32::from(machine.cores()),
    )
}

/// A core that sleeps until it is told finds what it was told of, and no wake-up is lost.
pub(super) fn told<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let mut meeting = Meeting::new(context);
    let (next, at) = (neighbour(&machine), scratch(&machine, machine.core()));
    machine.store_u32(at, 0);
    meeting.meet();
    for round in 1..=4 {
        machine.store_u32(scratch(&machine, next), round);
        machine.drain();
        machine.told(next);
        loop {
            let seen = machine.load_u32(at);
            if seen == round {
                break;
            }
            machine.relax(&[Watch { at, seen }]);
        }
        meeting.meet();
    }
    Ok(())
}

pub(super) fn atomics<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let Some(atomic) = P::ATOMICS else {
        return Err(Failure::Argument("this platform has no atomics"));
    };
    let mut meeting = Meeting::new(context);
    let at = scratch(&machine, flagpost_hal::CoreId::new(0));
    let me = u32::from(machine.core().get());
    if me == 0 {
        for word in 0..4 {
            machine.store_u32(at.plus(word * 4), 0);
        }
        machine.drain();
    }
    meeting.meet();
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
    meeting.meet();
    let cores = u32::from(machine.cores());
    check(
        "atomic additions are one step each",
        machine.load_u32(at),
        cores * (cores + 1) / 2,
    )?;
    let bits = 1_u32.checked_shl(cores).map_or(u32::MAX, |bit| bit - 1);
    check(
        "atomic ors are one step each",
        machine.load_u32(at.plus(4)),
        bits,
    )?;
    let winner = machine.load_u32(at.plus(8));
    check(
        "one compare-and-swap of all wins",
        winner >= 1 && winner <= cores,
        true,
    )?;
    check(
        "the winner has swapped",
        machine.load_u32(at.plus(12)),
        winner,
    )
}

pub(super) fn doorbell<P: MachinePlatform>(context: &mut Context<'_, P>) -> Result {
    let machine = context.machine.clone();
    let Some((ring, wait_for_ring)) = P::BELL else {
        return Err(Failure::Argument("this platform has no bells"));
    };
    let mut meeting = Meeting::new(context);
    let own = scratch(&machine, machine.core());
    machine.store_u32(own, 0);
    machine.drain();
    meeting.meet();
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
