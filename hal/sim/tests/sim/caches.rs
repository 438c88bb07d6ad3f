//! Hazards of private caches: each is there, and its remedy works. Profile `scc`, no oracles.

use crate::common::*;
use flagpost_hal::{CachedMemory, Coherence, Topology, UncachedMemory};
use flagpost_sim::{Config, End, Profile, SimCore};

/// Core 0 stores through its cache, perhaps writes back, and raises a flag; core 1 looks past the
/// caches.
fn publish(core: &SimCore, write_back: bool) -> Outcome {
    let (data, flag) = (at(0, 64), at(0, 0));
    if core.core().get() == 0 {
        core.write(data, &[1, 2, 3, 4]);
        if write_back {
            core.write_back(&line(data));
            core.drain();
        }
        core.store_u32(flag, 1);
        return Ok(());
    }
    wait_and_acquire(core, flag, 1);
    check("data", core.load_u32(data), 0x0403_0201)
}

#[test]
fn a_missing_write_back_leaves_old_data_in_memory() {
    let report = some_seed_fails(blind(Profile::Scc), |core| publish(&core, false));
    assert_eq!(report.end, End::Failed);
    assert_eq!(report.failures[0].core.get(), 1);
    every_seed_passes(blind(Profile::Scc), |core| publish(&core, true));
}

/// Core 1 has read its own line before core 0 stores to it, and reads it again after.
fn reread(core: &SimCore, invalidate: bool) -> Outcome {
    let (data, ready, flag) = (at(1, 64), at(1, 0), at(1, 4));
    if core.core().get() == 0 {
        wait_and_acquire(core, ready, 1);
        core.store_u32(data, 7);
        core.drain();
        core.store_u32(flag, 1);
        return Ok(());
    }
    let mut bytes = [0; 4];
    core.read(data, &mut bytes);
    core.store_u32(ready, 1);
    wait_and_acquire(core, flag, 1);
    if invalidate {
        core.invalidate(&line(data));
    }
    core.read(data, &mut bytes);
    check("data", u32::from_le_bytes(bytes), 7)
}

#[test]
fn a_missing_invalidate_leaves_old_data_in_the_cache() {
    // Not an accident of the seed: without evictions every one of them fails.
    for seed in 0..20 {
        let config = Config {
            seed,
            evictions: 0,
            ..blind(Profile::Scc)
        };
        assert_eq!(run(config, |core| reread(&core, false)).end, End::Failed);
    }
    every_seed_passes(blind(Profile::Scc), |core| reread(&core, true));
}

/// Core 1 stores to one byte of its line through the cache, then lets core 0 store to another one.
fn share_a_line(core: &SimCore, write_back: bool) -> Outcome {
    let (line_start, ready, flag) = (at(1, 64), at(1, 0), at(1, 4));
    if core.core().get() == 0 {
        wait_and_acquire(core, ready, 1);
        core.store_u32(line_start.plus(4), 7);
        core.drain();
        core.store_u32(flag, 1);
        return Ok(());
    }
    core.write(line_start, &[1]);
    if write_back {
        core.write_back(&line(line_start));
        core.drain();
    }
    core.store_u32(ready, 1);
    wait_and_acquire(core, flag, 1);
    // Time for an eviction: it may come between the store and this load.
    for _ in 0..20 {
        core.mark("waiting for an eviction");
    }
    check("peer's word", core.load_u32(line_start.plus(4)), 7)
}

#[test]
fn an_evicted_dirty_line_destroys_what_a_peer_stored() {
    let config = Config {
        evictions: 64,
        ..blind(Profile::Scc)
    };
    some_seed_fails(config.clone(), |core| share_a_line(&core, false));
    every_seed_passes(config, |core| share_a_line(&core, true));
    // Without evictions nothing happens: the eviction alone does the damage.
    let config = Config {
        evictions: 0,
        ..blind(Profile::Scc)
    };
    every_seed_passes(config, |core| share_a_line(&core, false));
}

/// One core alone: what `write_back` and `invalidate` do to a line.
fn alone(core: &SimCore) -> Outcome {
    let data = at(0, 64);
    core.store_u32(data, 5);
    core.write(data, &[6, 0, 0, 0]);
    core.invalidate(&line(data));
    check("invalidate loses the store", core.load_u32(data), 5)?;
    core.write(data, &[7, 0, 0, 0]);
    core.write_back(&line(data));
    check("write_back saves the store", core.load_u32(data), 7)?;
    core.store_u32(data, 8);
    let mut bytes = [0; 4];
    core.read(data, &mut bytes);
    check("write_back keeps the line", bytes, [7, 0, 0, 0])?;
    core.invalidate(&line(data));
    core.read(data, &mut bytes);
    check("invalidate drops the line", bytes, [8, 0, 0, 0])
}

#[test]
fn write_back_keeps_the_line_and_invalidate_loses_stores() {
    let config = Config {
        cores: 1,
        evictions: 0,
        ..blind(Profile::Scc)
    };
    every_seed_passes(config, |core| alone(&core));
}

#[test]
fn unaligned_pieces_of_many_lines_arrive_whole() {
    every_seed_passes(blind(Profile::Scc), |core| {
        if core.core().get() == 1 {
            return Ok(());
        }
        let text: Vec<u8> = (0..101).collect();
        let mut back = [0; 101];
        core.write(at(0, 67), &text);
        core.read(at(0, 67), &mut back);
        check("through the cache", &back[..], &text)?;
        core.store_bytes(at(1, 61), &text);
        core.drain();
        core.load_bytes(at(1, 61), &mut back);
        check("past the cache", &back[..], &text)
    });
}

#[test]
fn memory_and_registers_start_as_garbage() {
    use flagpost_hal::TestAndSet;
    use std::sync::Mutex;
    let seen = Mutex::new(Vec::new());
    for seed in 0..64 {
        let config = Config {
            seed,
            cores: 1,
            ..Config::default()
        };
        let report = run(config, |core| {
            let word = core.load_u32(at(0, 0));
            let free = core.test_and_set(core.core());
            seen.lock().unwrap().push((word, free));
            Ok(())
        });
        report.assert_done();
    }
    let seen = seen.into_inner().unwrap();
    let free = seen.iter().filter(|(_, free)| *free).count();
    assert!((10..54).contains(&free), "{free} of 64 registers are free");
    let mut words: Vec<u32> = seen.into_iter().map(|(word, _)| word).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), 64);
    assert!(!words.contains(&0));
}
