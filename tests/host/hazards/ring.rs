//! Hazards 12 to 17: bulk stores that stay in the combining buffer, and rings of entries.
//!
//! Here all caches are alike, and an entry is read after an `invalidate`; `tagged` has the SCC's
//! message data.

use flagpost_hal::{Coherence, UncachedMemory};
use flagpost_sim::{Oracle, Profile};

use crate::hazards::bench::*;

pub const ALL: &[Hazard] = &[
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
        name: "13 flag left in the combining buffer",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: flag_left,
        most: BUFFERS,
        consequences: &[DEADLOCK],
        shows: anywhere,
        alarms: &[],
    },
    Hazard {
        name: "14 flag before payload",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: flag_before_payload,
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
    Hazard {
        name: "16 acknowledge before read",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: acknowledged_first,
        most: BUFFERS,
        consequences: &["overwritten"],
        shows: anywhere,
        alarms: &[],
    },
    Hazard {
        name: "17 unlocked claim",
        cores: 3,
        memory: 16,
        profiles: &Profile::ALL,
        program: unlocked_claim,
        most: LOCKS,
        consequences: &[DEADLOCK],
        shows: anywhere,
        alarms: &[],
    },
];

/// Core 1's entry: a payload of two words, and its flag in another line.
const PAYLOAD: u32 = 0;
const FLAG: u32 = 8;

/// Core 0 stores an entry of core 1, payload first.
fn produce(core: &Core, number: u32, drain: bool) {
    payload(core, number);
    if drain {
        core.drain();
    }
    core.store_u32(at(1, FLAG), number);
}

fn payload(core: &Core, number: u32) {
    core.store_bytes(at(1, PAYLOAD), &number.to_le_bytes());
}

/// Core 1 waits for an entry, and reads it past the cache.
fn consume(core: &Core, number: u32) -> Outcome {
    wait(core, at(1, FLAG), number);
    check(core.load_u32(at(1, PAYLOAD)) == number, "old payload")
}

/// Remedy: drain before the flag.
fn payload_left(core: &Core, remedy: bool) -> Outcome {
    start(core);
    match me(core) {
        0 => {
            produce(core, 1, remedy);
            Ok(())
        }
        _ => consume(core, 1),
    }
}

/// The flag is a bulk store too. Remedy: drain behind it.
fn flag_left(core: &Core, remedy: bool) -> Outcome {
    start(core);
    if me(core) == 1 {
        return consume(core, 1);
    }
    payload(core, 1);
    core.drain();
    core.store_bytes(at(1, FLAG), &1_u32.to_le_bytes());
    if remedy {
        core.drain();
    }
    Ok(())
}

/// Remedy: payload first.
fn flag_before_payload(core: &Core, remedy: bool) -> Outcome {
    start(core);
    if me(core) == 1 {
        return consume(core, 1);
    }
    if remedy {
        produce(core, 1, true);
        return Ok(());
    }
    core.store_u32(at(1, FLAG), 1);
    core.drain();
    payload(core, 1);
    core.drain();
    Ok(())
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

/// One slot, two entries, read past the cache. Remedy: read first.
fn acknowledged_first(core: &Core, remedy: bool) -> Outcome {
    let acknowledged = at(0, 0);
    let acknowledge = |number| {
        core.drain();
        core.store_u32(acknowledged, number);
    };
    start(core);
    for number in 1..=2 {
        if me(core) == 0 {
            produce(core, number, true);
            wait(core, acknowledged, number);
            continue;
        }
        wait(core, at(1, FLAG), number);
        if !remedy {
            acknowledge(number);
        }
        let found = core.load_u32(at(1, PAYLOAD));
        if remedy {
            acknowledge(number);
        }
        check(found == number, "overwritten")?;
    }
    Ok(())
}

/// Two producers take tickets of core 2's ring. Remedy: under its lock.
fn unlocked_claim(core: &Core, remedy: bool) -> Outcome {
    let tail = at(2, 0);
    let entry = |ticket: u32| at(2, 4 + 4 * ticket);
    start(core);
    if me(core) == 2 {
        for ticket in 0..2 {
            poll(core, entry(ticket), |sequence| sequence == ticket + 1);
        }
        return Ok(());
    }
    if remedy {
        lock(core, 2);
    }
    let ticket = core.load_u32(tail);
    core.store_u32(tail, ticket + 1);
    if remedy {
        unlock(core, 2);
    }
    core.store_u32(entry(ticket), ticket + 1);
    Ok(())
}
