//! Hazards 1 to 6: what caches do to the pieces that ranks put to. Peers cache here, as no link of
//! ours lets them (docs/log/decisions.md, 1): this is why.

use flagpost_hal::{Coherence, UncachedMemory};
use flagpost_sim::{Oracle, Profile};

use crate::hazards::bench::*;

pub const ALL: &[Hazard] = &[
    Hazard {
        name: "1 dirty origin line never written back",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: never_written_back,
        most: CACHES,
        consequences: &["old data"],
        shows: anywhere,
        // A line that leaves late may arrive after core 1's acquire, and core 1's load be earlier.
        alarms: &[
            (Oracle::HiddenStore, anywhere),
            (Oracle::StaleRead, |profile, acts| {
                weak(profile, acts) && eviction(profile, acts)
            }),
        ],
    },
    Hazard {
        name: "2 stale target line after wait",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: stale_after_wait,
        most: CACHES,
        consequences: &["old data"],
        shows: anywhere,
        alarms: &[(Oracle::StaleRead, anywhere)],
    },
    Hazard {
        name: "3 target's dirty line evicted over a put",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: evicted_over_a_put,
        most: CACHES,
        consequences: &["put overwritten"],
        shows: eviction,
        alarms: &[(Oracle::PendingClobber, anywhere)],
    },
    Hazard {
        name: "4 origin's stale line merged into a later epoch's put",
        cores: 2,
        memory: 16,
        profiles: &Profile::ALL,
        program: |core, remedy| merged(core, if remedy { AFTER_MATCH } else { NEVER }),
        most: CACHES,
        consequences: &["own word lost"],
        shows: anywhere,
        alarms: &[(Oracle::StaleMerge, anywhere)],
    },
    Hazard {
        name: "5 two ranks' data in one line",
        cores: 3,
        memory: 32,
        profiles: &Profile::ALL,
        program: one_line,
        most: CACHES,
        consequences: &["put lost"],
        shows: anywhere,
        // Weak: core 1 may have fetched the line before core 0's arrived.
        alarms: &[
            (Oracle::PendingClobber, anywhere),
            (Oracle::StaleMerge, weak),
        ],
    },
    Hazard {
        name: "6 head and tail of an unaligned put",
        cores: 2,
        memory: 32,
        profiles: &Profile::ALL,
        program: head_and_tail,
        most: CACHES,
        consequences: &["neighbour lost"],
        shows: anywhere,
        // Weak: core 0 may have fetched the line before a neighbour's store, and put after it.
        alarms: &[
            (Oracle::PendingClobber, anywhere),
            (Oracle::StaleMerge, weak),
        ],
    },
];

/// Core 0 puts through its cache. Remedy: write back.
fn never_written_back(core: &Core, remedy: bool) -> Outcome {
    let (data, done) = (at(1, 0), at(1, 8));
    start(core);
    if me(core) == 0 {
        write(core, data, 7);
        if remedy {
            core.write_back(&line(data));
        }
        core.drain();
        core.store_u32(done, 1);
        return Ok(());
    }
    wait(core, done, 1);
    core.invalidate(&line(data));
    check(read(core, data) == 7, "old data")
}

/// Core 1 has read its piece before. Remedy: invalidate at wait.
fn stale_after_wait(core: &Core, remedy: bool) -> Outcome {
    let (data, done) = (at(1, 0), at(1, 8));
    clear(core);
    if me(core) == 1 {
        read(core, data);
    }
    go(core);
    if me(core) == 0 {
        core.store_u32(data, 7);
        core.drain();
        core.store_u32(done, 1);
        return Ok(());
    }
    wait(core, done, 1);
    if remedy {
        core.invalidate(&line(data));
    }
    check(read(core, data) == 7, "old data")
}

/// Core 1 has stored to its piece before it posts. Remedy: write back at post.
fn evicted_over_a_put(core: &Core, remedy: bool) -> Outcome {
    let (data, done, post) = (at(1, 0), at(1, 8), at(0, 0));
    start(core);
    if me(core) == 0 {
        wait(core, post, 1);
        core.store_u32(data, 7);
        core.drain();
        core.store_u32(done, 1);
        return Ok(());
    }
    write(core, data, 1);
    if remedy {
        core.write_back(&line(data));
    }
    core.drain();
    core.store_u32(post, 1);
    wait(core, done, 1);
    core.invalidate(&line(data));
    check(read(core, data) == 7, "put overwritten")
}

/// When an origin invalidates what it has put to.
pub const NEVER: u8 = 0;
pub const AT_COMPLETE: u8 = 1;
pub const AFTER_MATCH: u8 = 2;

/// Core 0 puts a part of a line through its cache, in two epochs; core 1 stores to the other part
/// in between.
pub fn merged(core: &Core, invalidates: u8) -> Outcome {
    let (theirs, own, done, post) = (at(1, 0), at(1, 4), at(1, 8), at(0, 0));
    start(core);
    for epoch in 1..=2 {
        if me(core) == 0 {
            wait(core, post, epoch);
            if invalidates == AFTER_MATCH {
                core.invalidate(&line(theirs));
            }
            write(core, theirs, epoch);
            core.write_back(&line(theirs));
            if invalidates == AT_COMPLETE {
                core.invalidate(&line(theirs));
            }
            core.drain();
            core.store_u32(done, epoch);
        } else {
            write(core, own, epoch * 10);
            core.write_back(&line(own));
            core.drain();
            core.store_u32(post, epoch);
            wait(core, done, epoch);
            core.invalidate(&line(own));
            check(read(core, theirs) == epoch, "put lost")?;
            check(read(core, own) == epoch * 10, "own word lost")?;
        }
    }
    Ok(())
}

/// Cores 0 and 1 put a word each, through their caches. Remedy: each into a line of its own.
fn one_line(core: &Core, remedy: bool) -> Outcome {
    let data = |rank: usize| at(2, if remedy { 8 * rank } else { 4 * rank });
    let done = |rank: usize| at(2, 16 + 4 * rank);
    start(core);
    if me(core) < 2 {
        let rank = usize::from(me(core));
        write(core, data(rank), 7);
        core.write_back(&line(data(rank)));
        core.drain();
        core.store_u32(done(rank), 1);
        return Ok(());
    }
    for rank in 0..2 {
        wait(core, done(rank), 1);
    }
    for rank in 0..2 {
        core.invalidate(&line(data(rank)));
        check(read(core, data(rank)) == 7, "put lost")?;
    }
    Ok(())
}

/// Core 0 puts words 1 and 2, the tail of one line and the head of the next; core 1 stores to words
/// 0 and 3 meanwhile. Remedy: what does not fill a line goes past the cache.
fn head_and_tail(core: &Core, remedy: bool) -> Outcome {
    let (word, done) = (|number: usize| at(1, 4 * number), at(1, 16));
    start(core);
    if me(core) == 0 {
        for number in [1, 2] {
            if remedy {
                core.store_u32(word(number), 7);
            } else {
                write(core, word(number), 7);
                core.write_back(&line(word(number)));
            }
        }
        core.drain();
        core.store_u32(done, 1);
        return Ok(());
    }
    core.store_u32(word(0), 5);
    core.store_u32(word(3), 5);
    wait(core, done, 1);
    for number in [1, 2] {
        check(core.load_u32(word(number)) == 7, "put lost")?;
    }
    let kept = core.load_u32(word(0)) == 5 && core.load_u32(word(3)) == 5;
    check(kept, "neighbour lost")
}
