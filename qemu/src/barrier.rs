//! A barrier of all harts, for the board and for runners.
//!
//! It uses the emulated machine's coherent atomics, which is why no protocol under test may: it
//! would repair what it should show. Its counter is not part of any region.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::hart::Hart;
use crate::status::{self, set_status};

static ARRIVED: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Waits until all harts of the machine have called this, yielding meanwhile.
///
/// What a hart stored before, by any means but its private image, every hart sees afterwards.
/// Bounded by nothing: a hart that never comes leaves all others here, with status 1 (see
/// [`FLAGPOST_STATUS`](crate::FLAGPOST_STATUS)).
pub fn barrier(hart: Hart) {
    set_status(hart, status::WAITING);
    // ORDERING: Acquire: the generation is read before we arrive. AcqRel below: the last to arrive
    // has seen what all others stored; Release and Acquire of the new generation hand that on to
    // them.
    let generation = GENERATION.load(Ordering::Acquire);
    let arrived = ARRIVED.fetch_add(1, Ordering::AcqRel) + 1;
    if arrived == u32::from(hart.cores()) {
        // Nobody arrives for the next round before the generation changes.
        ARRIVED.store(0, Ordering::Relaxed);
        GENERATION.store(generation.wrapping_add(1), Ordering::Release);
    } else {
        while GENERATION.load(Ordering::Acquire) == generation {
            hart.give_way();
        }
    }
}
