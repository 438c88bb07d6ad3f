//! Hazards 10 to 15: words that ranks poll, and entries that they read: what caches and combining
//! buffers do to them.
//!
//! The other mistakes with such words (an unlocked change, a step too early) have a mutation point
//! each, see `docs/verification.md`.
//!
//! `tagged` has the SCC's message data.

use flagpost_hal::{Address, Coherence, CoreId, Region, UncachedMemory};
use flagpost_sim::{Oracle, Profile};

use crate::hazards::bench::*;

pub const ALL: &[Hazard] = &[
    Hazard {
        name: "10 cached match vector written back over a newer post",
        cores: 3,
        memory: 16,
        profiles: &Profile::ALL,
        program: cached_vector_written_back,
        most: Acts {
            refusals: 1,
            ..CACHES
        },
        consequences: &[DEADLOCK],
        shows: eviction,
        alarms: &[(Oracle::PendingClobber, anywhere)],
    },
    Hazard {
        name: "11 cached copy of the vector believed after reset",
        cores: 3,
        memory: 16,
        profiles: &Profile::ALL,
        program: cached_vector_believed,
        most: CACHES,
        consequences: &["post never seen"],
        shows: anywhere,
        alarms: &[(Oracle::StaleRead, anywhere)],
    },
    Hazard {
        name: "12 payload left in the combining buffer",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: payload_left,
        most: BUFFERS,
        consequences: &["old payload"],
        shows: anywhere,
        alarms: &[],
    },
    Hazard {
        name: "15 no invalidate on slot reuse",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: slot_reused,
        most: CACHES,
        consequences: &["old payload"],
        shows: anywhere,
        alarms: &[(Oracle::StaleRead, anywhere)],
    },
];

/// The match vector of rank 0.
const VECTOR: Address = Region::memory(CoreId::new(0)).at(0);

fn bit(rank: u16) -> u32 {
    1 << rank
}

/// Changes the vector past the cache, under its owner's lock.
fn change(core: &Core, change: impl Fn(u32) -> u32) {
    lock(core, 0);
    core.store_u32(VECTOR, change(core.load_u32(VECTOR)));
    unlock(core, 0);
}

/// This rank posts to rank 0.
fn post(core: &Core) {
    change(core, |bits| bits | bit(me(core)));
}

/// Rank 0 clears `target`'s bit.
fn reset(core: &Core, target: u16) {
    change(core, |bits| bits & !bit(target));
}

/// Rank 0 waits for `target`'s post.
fn await_post(core: &Core, target: u16) {
    poll(core, VECTOR, |bits| bits & bit(target) != 0);
    core.acquire();
}

/// [PSCW-SCC] IV-B2: the origin resets through its cache, and keeps the line. Remedy: past the
/// cache.
fn cached_vector_written_back(core: &Core, remedy: bool) -> Outcome {
    start(core);
    if me(core) > 0 {
        post(core);
        return Ok(());
    }
    await_post(core, 1);
    if remedy {
        reset(core, 1);
    } else {
        lock(core, 0);
        let bits = read(core, VECTOR);
        write(core, VECTOR, bits & !bit(1));
        unlock(core, 0);
    }
    await_post(core, 2);
    Ok(())
}

/// The origin resets through its cache and writes back, and then looks at its copy. Remedy: past
/// the cache.
fn cached_vector_believed(core: &Core, remedy: bool) -> Outcome {
    start(core);
    if me(core) > 0 {
        post(core);
        return Ok(());
    }
    await_post(core, 1);
    if remedy {
        reset(core, 1);
        await_post(core, 2);
        return Ok(());
    }
    lock(core, 0);
    let bits = read(core, VECTOR);
    write(core, VECTOR, bits & !bit(1));
    core.write_back(&line(VECTOR));
    unlock(core, 0);
    // However often it looks: here once more after the post has arrived for certain.
    if read(core, VECTOR) & bit(2) == 0 {
        await_post(core, 2);
        check(read(core, VECTOR) & bit(2) != 0, "post never seen")?;
    }
    Ok(())
}

/// Core 1's entry: a payload of two words, and its flag in another line.
const PAYLOAD: usize = 0;
const FLAG: usize = 8;

/// Core 0 stores an entry of core 1, payload first.
fn produce(core: &Core, number: u32, drain: bool) {
    core.store_bytes(at(1, PAYLOAD), &number.to_le_bytes());
    if drain {
        core.drain();
    }
    core.store_u32(at(1, FLAG), number);
}

/// Remedy: drain before the flag.
fn payload_left(core: &Core, remedy: bool) -> Outcome {
    start(core);
    if me(core) == 0 {
        produce(core, 1, remedy);
        return Ok(());
    }
    wait(core, at(1, FLAG), 1);
    check(core.load_u32(at(1, PAYLOAD)) == 1, "old payload")
}

/// One slot, two entries; the consumer reads them through its cache. Remedy: invalidate before.
fn slot_reused(core: &Core, remedy: bool) -> Outcome {
    let acknowledged = at(0, 0);
    start(core);
    for number in 1..=2 {
        if me(core) == 0 {
            produce(core, number, true);
            wait(core, acknowledged, number);
            continue;
        }
        wait(core, at(1, FLAG), number);
        if remedy {
            core.invalidate(&line(at(1, PAYLOAD)));
        }
        check(read(core, at(1, PAYLOAD)) == number, "old payload")?;
        core.drain();
        core.store_u32(acknowledged, number);
    }
    Ok(())
}
