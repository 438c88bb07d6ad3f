//! Hazards of the write-combining buffer.

use crate::common::*;
use flagpost_hal::{CachedMemory, Coherence, Topology, UncachedMemory};
use flagpost_sim::{Config, End, Profile, SimCore};

/// Core 0 bulk-stores `len` bytes to core 1 and raises a flag; core 1 looks.
fn send(core: &SimCore, len: usize, drain: bool) -> Outcome {
    let (data, flag) = (at(1, 64), at(1, 0));
    if core.core().get() == 0 {
        core.store_bytes(data, &vec![9; len]);
        if drain {
            core.drain();
        }
        core.store_u32(flag, 1);
        return Ok(());
    }
    wait_and_acquire(core, flag, 1);
    let mut bytes = vec![0; len];
    core.load_bytes(data, &mut bytes);
    check("data", bytes, vec![9; len])
}

#[test]
fn without_a_drain_the_flag_overtakes_the_payload() {
    for profile in Profile::ALL {
        some_seed_fails(blind(profile), |core| send(&core, 20, false));
        every_seed_passes(blind(profile), |core| send(&core, 20, true));
        every_seed_passes(blind(profile), |core| send(&core, 1000, true));
    }
}

/// Core 0 bulk-stores the *flag*; core 1 waits for it.
fn bulk_flag(core: &SimCore, drain: bool) -> Outcome {
    let flag = at(1, 0);
    if core.core().get() == 0 {
        core.store_bytes(flag, &1_u32.to_le_bytes());
        // Neither loads nor registers nor time empty the buffer.
        for _ in 0..50 {
            core.load_u32(at(1, 128));
        }
        if drain {
            core.drain();
        }
        return Ok(());
    }
    wait_for(core, flag, 1);
    Ok(())
}

#[test]
fn the_buffer_keeps_a_flag_for_ever() {
    for profile in Profile::ALL {
        for seed in 0..20 {
            let config = Config {
                seed,
                ..blind(profile)
            };
            let report = run(config, |core| bulk_flag(&core, false));
            assert_eq!(report.end, End::Deadlock, "{report}");
            assert_eq!(report.waiting[0].words[0].at, at(1, 0));
        }
        every_seed_passes(blind(profile), |core| bulk_flag(&core, true));
    }
}

#[test]
fn a_full_line_leaves_by_itself() {
    for profile in Profile::ALL {
        every_seed_passes(blind(profile), |core| {
            if core.core().get() == 0 {
                core.store_bytes(at(1, 0), &[1; 32]);
            } else {
                wait_for(&core, at(1, 28), 0x0101_0101);
            }
            Ok(())
        });
    }
}

/// One bulk store of a whole line, whose last word is the flag: 32 bytes do not arrive at once.
fn record(core: &SimCore, flag_in_record: bool) -> Outcome {
    let (slot, flag) = (at(1, 64), at(1, 0));
    if core.core().get() == 0 {
        core.store_bytes(slot, &[1; 32]);
        core.drain();
        core.store_u32(flag, 0x0101_0101);
        return Ok(());
    }
    let polled = if flag_in_record { slot.plus(28) } else { flag };
    wait_and_acquire(core, polled, 0x0101_0101);
    check("payload", core.load_u32(slot), 0x0101_0101)
}

#[test]
fn a_line_is_torn() {
    for profile in Profile::ALL {
        some_seed_fails(blind(profile), |core| record(&core, true));
        every_seed_passes(blind(profile), |core| record(&core, false));
    }
}

#[test]
fn a_core_sees_its_own_buffered_bytes_and_the_last_store_wins() {
    for profile in Profile::ALL {
        every_seed_passes(blind(profile), |core| {
            if core.core().get() == 1 {
                return Ok(());
            }
            let word = at(1, 64);
            core.store_bytes(word, &[1; 8]);
            check("own bulk store", core.load_u32(word), 0x0101_0101)?;
            core.store_u8(word.plus(1), 2);
            check("own byte store", core.load_u32(word), 0x0101_0201)?;
            core.store_bytes(word.plus(2), &[3]);
            core.drain();
            check("after the drain", core.load_u32(word), 0x0103_0201)
        });
    }
}

#[test]
fn bulk_stores_leave_no_copy_in_the_cache() {
    every_seed_passes(blind(Profile::Scc), |core| {
        if core.core().get() == 1 {
            return Ok(());
        }
        let data = at(0, 64);
        core.store_bytes(data, &[1; 32]);
        core.drain();
        let mut bytes = [0; 32];
        core.read(data, &mut bytes);
        check("fetched", bytes, [1; 32])
    });
}
