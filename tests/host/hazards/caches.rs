//! The hazards. Peers cache here, as no link of ours lets them (docs/log/decisions.md, 1): this is
//! why. The last four are those of some chips only.

use flagpost_hal::{Coherence, UncachedMemory};
use flagpost_sim::Oracle::{HiddenStore, PendingClobber, StaleMerge, StaleRead};

use crate::hazards::bench::*;

pub const ALL: &[Hazard] = &[
    // A line that leaves late may arrive after core 1's acquire, and core 1's load be earlier.
    hazard(
        "1 dirty origin line never written back",
        never_written_back,
        &["old data"],
        anywhere,
        &[
            (HiddenStore, anywhere),
            (StaleRead, |profile, acts| {
                weak(profile, acts) && eviction(profile, acts)
            }),
        ],
    ),
    hazard(
        "2 stale target line after wait",
        stale_after_wait,
        &["old data"],
        anywhere,
        &[(StaleRead, anywhere)],
    ),
    hazard(
        "3 target's dirty line evicted over a put",
        evicted_over_a_put,
        &["put overwritten"],
        eviction,
        &[(PendingClobber, anywhere)],
    ),
    hazard(
        "4 origin's stale line merged into a later epoch's put",
        |core, remedy| merged(core, if remedy { AFTER_MATCH } else { NEVER }),
        &["own word lost"],
        anywhere,
        &[(StaleMerge, anywhere)],
    ),
    // Weak: core 1 may have fetched the line before core 0's arrived.
    Hazard {
        cores: 3,
        ..hazard(
            "5 two ranks' data in one line",
            one_line,
            &["put lost"],
            anywhere,
            &[(PendingClobber, anywhere), (StaleMerge, weak)],
        )
    },
    // Weak: core 0 may have fetched the line before a neighbour's store, and put after it.
    hazard(
        "6 head and tail of an unaligned put",
        head_and_tail,
        &["neighbour lost"],
        anywhere,
        &[(PendingClobber, anywhere), (StaleMerge, weak)],
    ),
    hazard(
        "7 prefetch between the target's invalidate and its use",
        prefetched_by_the_target,
        &["old data"],
        fill,
        &[(StaleRead, fill)],
    ),
    Hazard {
        evictions: 1,
        ..hazard(
            "8 prefetch between an origin's invalidate and its put",
            |core, remedy| merged(core, if remedy { AFTER_MATCH } else { AT_COMPLETE }),
            &["own word lost"],
            fill,
            &[(StaleMerge, fill)],
        )
    },
    // Core 0's put would be O1: its load comes first.
    hazard(
        "9 no drain between write-back and post",
        write_back_under_way,
        &["old data", "put overwritten"],
        weak,
        &[(HiddenStore, weak)],
    ),
    hazard(
        "10 no acquire between flag and invalidate",
        fetched_early,
        &["old data"],
        weak,
        &[(StaleRead, weak)],
    ),
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
const NEVER: u8 = 0;
const AT_COMPLETE: u8 = 1;
const AFTER_MATCH: u8 = 2;

/// Core 0 puts a part of a line through its cache, in two epochs; core 1 stores to the other part
/// in between.
fn merged(core: &Core, invalidates: u8) -> Outcome {
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
