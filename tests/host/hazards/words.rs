//! Hazards 7 to 11: match vectors and completion counters, as in [PSCW-SCC] Algorithms 1 and 2.
//!
//! Each rank's vector is word 0 of its memory, its counter word 2: another line, so that nothing
//! but the vector is at stake when it is cached. Core 0 is the origin, unless said otherwise.

use flagpost_hal::{Coherence, UncachedMemory};
use flagpost_sim::{Oracle, Profile};

use crate::hazards::bench::*;

pub const ALL: &[Hazard] = &[
    Hazard {
        name: "7a post beside post, unlocked",
        cores: 3,
        memory: 16,
        profiles: &Profile::ALL,
        program: post_beside_post,
        most: LOCKS,
        consequences: &[DEADLOCK],
        shows: anywhere,
        alarms: &[],
    },
    Hazard {
        name: "7b reset beside post, unlocked: Algorithm 2 as printed",
        cores: 3,
        memory: 16,
        profiles: &[Profile::Scc],
        program: |core, remedy| reset_beside_post(core, true, remedy),
        most: NOTHING,
        consequences: &[DEADLOCK],
        shows: anywhere,
        alarms: &[],
    },
    Hazard {
        name: "7b reset beside post, unlocked: Algorithm 2 as printed, without its counters",
        cores: 3,
        memory: 16,
        profiles: &[Profile::Weak],
        program: |core, remedy| reset_beside_post(core, false, remedy),
        most: NOTHING,
        consequences: &[DEADLOCK],
        shows: anywhere,
        alarms: &[],
    },
    Hazard {
        name: "7c decrement beside decrement, unlocked",
        cores: 3,
        memory: 16,
        profiles: &Profile::ALL,
        program: decrement_beside_decrement,
        most: LOCKS,
        consequences: &[DEADLOCK],
        shows: anywhere,
        alarms: &[],
    },
    Hazard {
        name: "8 reset after notify loses the next post",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: reset_after_notify,
        most: LOCKS,
        consequences: &[DEADLOCK],
        shows: anywhere,
        alarms: &[],
    },
    Hazard {
        name: "9 counter initialized after post",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: counter_after_post,
        most: LOCKS,
        consequences: &[DEADLOCK],
        shows: anywhere,
        alarms: &[],
    },
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
];

/// The match vector of `rank`.
fn vector(rank: u16) -> flagpost_hal::Address {
    at(rank, 0)
}

/// The completion counter of `rank`.
fn counter(rank: u16) -> flagpost_hal::Address {
    at(rank, 8)
}

fn bit(rank: u16) -> u32 {
    1 << rank
}

/// This rank posts to rank 0.
fn post(core: &Core, locked: bool) {
    change(core, vector(0), locked, |bits| bits | bit(me(core)));
}

/// Rank 0 clears `target`'s bit.
fn reset(core: &Core, target: u16, locked: bool) {
    change(core, vector(0), locked, |bits| bits & !bit(target));
}

/// Counts `target`'s counter down.
fn notify(core: &Core, target: u16, locked: bool) {
    change(core, counter(target), locked, |left| left.saturating_sub(1));
}

/// Rank 0 waits for `target`'s post.
fn await_post(core: &Core, target: u16) {
    poll(core, vector(0), |bits| bits & bit(target) != 0);
    core.acquire();
}

/// Sets the own counter.
fn expect(core: &Core, origins: u32) {
    core.store_u32(counter(me(core)), origins);
    core.drain();
}

/// Two targets post to one origin.
fn post_beside_post(core: &Core, remedy: bool) -> Outcome {
    start(core);
    if me(core) == 0 {
        await_post(core, 1);
        await_post(core, 2);
    } else {
        post(core, remedy);
    }
    Ok(())
}

/// An origin with one target in each of two epochs. The second target posts when it likes.
fn reset_beside_post(core: &Core, counters: bool, remedy: bool) -> Outcome {
    start(core);
    if me(core) > 0 {
        if counters {
            expect(core, 1);
        }
        post(core, true);
        wait(core, counter(me(core)), 0);
        return Ok(());
    }
    for target in [1, 2] {
        await_post(core, target);
        reset(core, target, remedy);
        if counters {
            notify(core, target, true);
        }
    }
    Ok(())
}

/// Two origins complete at one target, core 2.
fn decrement_beside_decrement(core: &Core, remedy: bool) -> Outcome {
    clear(core);
    if me(core) == 2 {
        expect(core, 2);
    }
    go(core);
    match me(core) {
        2 => wait(core, counter(2), 0),
        _ => notify(core, 2, remedy),
    }
    Ok(())
}

/// Two epochs of one origin and one target. Remedy: reset first.
fn reset_after_notify(core: &Core, remedy: bool) -> Outcome {
    start(core);
    for _ in 0..2 {
        if me(core) == 1 {
            expect(core, 1);
            post(core, true);
            wait(core, counter(1), 0);
            continue;
        }
        await_post(core, 1);
        if remedy {
            reset(core, 1, true);
        }
        notify(core, 1, true);
        if !remedy {
            reset(core, 1, true);
        }
    }
    Ok(())
}

/// Remedy: set the counter first.
fn counter_after_post(core: &Core, remedy: bool) -> Outcome {
    start(core);
    if me(core) == 0 {
        await_post(core, 1);
        reset(core, 1, true);
        notify(core, 1, true);
        return Ok(());
    }
    if remedy {
        expect(core, 1);
    }
    post(core, true);
    if !remedy {
        expect(core, 1);
    }
    wait(core, counter(1), 0);
    Ok(())
}

/// [PSCW-SCC] IV-B2: the origin resets through its cache, and keeps the line. Remedy: past the
/// cache.
fn cached_vector_written_back(core: &Core, remedy: bool) -> Outcome {
    start(core);
    if me(core) > 0 {
        post(core, true);
        return Ok(());
    }
    await_post(core, 1);
    if remedy {
        reset(core, 1, true);
    } else {
        lock(core, 0);
        let bits = read(core, vector(0));
        write(core, vector(0), bits & !bit(1));
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
        post(core, true);
        return Ok(());
    }
    await_post(core, 1);
    if remedy {
        reset(core, 1, true);
        await_post(core, 2);
        return Ok(());
    }
    lock(core, 0);
    let bits = read(core, vector(0));
    write(core, vector(0), bits & !bit(1));
    core.write_back(&line(vector(0)));
    unlock(core, 0);
    // However often it looks: here once more after the post has arrived for certain.
    if read(core, vector(0)) & bit(2) == 0 {
        await_post(core, 2);
        check(read(core, vector(0)) & bit(2) != 0, "post never seen")?;
    }
    Ok(())
}
