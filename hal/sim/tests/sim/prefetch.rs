//! Lines that come back by themselves: the `+fill` profiles.

use crate::common::*;
use flagpost_hal::{CachedMemory, Coherence, Topology, UncachedMemory};
use flagpost_sim::{Profile, SimCore};

/// The target invalidates when it hands its line out, or when it takes it back.
fn epoch(core: &SimCore, at_the_end: bool) -> Outcome {
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
    if !at_the_end {
        core.invalidate(&line(data));
    }
    core.store_u32(ready, 1);
    wait_and_acquire(core, flag, 1);
    if at_the_end {
        core.invalidate(&line(data));
    }
    core.read(data, &mut bytes);
    check("data", u32::from_le_bytes(bytes), 7)
}

#[test]
fn an_invalidate_before_the_wait_is_undone_by_a_prefetch() {
    some_seed_fails(blind(Profile::SccFill), |core| epoch(&core, false));
    every_seed_passes(blind(Profile::SccFill), |core| epoch(&core, true));
    // Without prefetching it does not matter when.
    every_seed_passes(blind(Profile::Scc), |core| epoch(&core, false));
}
