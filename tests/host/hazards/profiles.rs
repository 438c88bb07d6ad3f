//! Hazards 18 to 20: those that only some chips have. Where a chip has not, what is left out is
//! equivalent, and that is shown too.

use flagpost_hal::{Coherence, CoreId, TestAndSet, UncachedMemory};
use flagpost_sim::{Oracle, Profile};

use crate::hazards::bench::*;
use crate::hazards::caches::{AFTER_MATCH, AT_COMPLETE, merged};

pub const ALL: &[Hazard] = &[
    Hazard {
        name: "18a prefetch between the target's invalidate and its use",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: prefetched_by_the_target,
        most: CACHES,
        consequences: &["old data"],
        shows: fill,
        alarms: &[(Oracle::StaleRead, fill)],
    },
    Hazard {
        name: "18b prefetch between an origin's invalidate and its put",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: |core, remedy| merged(core, if remedy { AFTER_MATCH } else { AT_COMPLETE }),
        most: Acts {
            evictions: 1,
            ..CACHES
        },
        consequences: &["own word lost"],
        shows: fill,
        alarms: &[(Oracle::StaleMerge, fill)],
    },
    Hazard {
        name: "19a no drain between data and flag",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: |core, remedy| message(core, remedy, true),
        most: NOTHING,
        consequences: &["old data"],
        shows: weak,
        alarms: &[],
    },
    Hazard {
        name: "19b no acquire between flag and data",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: |core, remedy| message(core, true, remedy),
        most: NOTHING,
        consequences: &["old data"],
        shows: weak,
        alarms: &[],
    },
    Hazard {
        name: "19c no drain between write-back and post",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: write_back_under_way,
        most: CACHES,
        consequences: &["old data", "put overwritten"],
        shows: weak,
        // Core 0's put would be O1: its load comes first.
        alarms: &[(Oracle::HiddenStore, weak)],
    },
    Hazard {
        name: "19d no acquire between flag and invalidate",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: fetched_early,
        most: CACHES,
        consequences: &["old data"],
        shows: weak,
        alarms: &[(Oracle::StaleRead, weak)],
    },
    Hazard {
        name: "20 lock released before the protected store is placed",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: released_early,
        most: LOCKS,
        consequences: &[DEADLOCK],
        shows: weak,
        alarms: &[],
    },
];

/// Core 1 has read its piece before. Remedy: invalidate at wait; else at post, which is as good
/// where nothing is prefetched.
fn prefetched_by_the_target(core: &Core, remedy: bool) -> Outcome {
    let (data, done, post) = (at(1, 0), at(1, 8), at(0, 0));
    clear(core);
    if me(core) == 1 {
        read(core, data);
    }
    go(core);
    if me(core) == 0 {
        wait(core, post, 1);
        core.store_u32(data, 7);
        core.drain();
        core.store_u32(done, 1);
        return Ok(());
    }
    if !remedy {
        core.invalidate(&line(data));
    }
    core.store_u32(post, 1);
    wait(core, done, 1);
    if remedy {
        core.invalidate(&line(data));
    }
    check(read(core, data) == 7, "old data")
}

/// Word payload, word flag.
fn message(core: &Core, drain: bool, acquire: bool) -> Outcome {
    let (data, flag) = (at(1, 0), at(1, 8));
    start(core);
    if me(core) == 0 {
        core.store_u32(data, 7);
        if drain {
            core.drain();
        }
        core.store_u32(flag, 1);
        return Ok(());
    }
    poll(core, flag, |seen| seen == 1);
    if acquire {
        core.acquire();
    }
    check(core.load_u32(data) == 7, "old data")
}

/// Core 1 stores to its piece, writes back and posts; core 0 gets one word of it and puts another.
/// Remedy: drain before the post.
fn write_back_under_way(core: &Core, remedy: bool) -> Outcome {
    let (theirs, own, done, post) = (at(1, 0), at(1, 4), at(1, 8), at(0, 0));
    start(core);
    if me(core) == 0 {
        wait(core, post, 1);
        let got = core.load_u32(own);
        core.store_u32(theirs, 7);
        core.drain();
        core.store_u32(done, 1);
        return check(got == 5, "old data");
    }
    write(core, own, 5);
    core.write_back(&line(own));
    if remedy {
        core.drain();
    }
    core.store_u32(post, 1);
    wait(core, done, 1);
    core.invalidate(&line(own));
    check(read(core, theirs) == 7, "put overwritten")
}

/// Remedy: acquire before the invalidate, so that the line is not fetched earlier than the flag was
/// seen.
fn fetched_early(core: &Core, remedy: bool) -> Outcome {
    let (data, flag) = (at(1, 0), at(1, 8));
    start(core);
    if me(core) == 0 {
        core.store_u32(data, 7);
        core.drain();
        core.store_u32(flag, 1);
        return Ok(());
    }
    poll(core, flag, |seen| seen == 1);
    if remedy {
        core.acquire();
    }
    core.invalidate(&line(data));
    check(read(core, data) == 7, "old data")
}

/// Both cores count. Remedy: drain before the register is freed.
fn released_early(core: &Core, remedy: bool) -> Outcome {
    let count = at(0, 0);
    start(core);
    lock(core, 0);
    core.store_u32(count, core.load_u32(count) + 1);
    if remedy {
        core.drain();
    }
    core.clear(CoreId::new(0));
    if me(core) == 0 {
        wait(core, count, 2);
    }
    Ok(())
}
