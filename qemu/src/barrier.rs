//! A barrier of all harts, for the board and for runners.
//!
//! It uses the emulated machine's coherent atomics, which is why no protocol under test may: it
//! would repair what it should show. Its counter is not part of any region.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::hart::Hart;

static ARRIVED: AtomicU32 = AtomicU32::new(0);
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// For even and for odd rounds, the number of the last one that a hart disagreed in.
static DISAGREED: [AtomicU32; 2] = [const { AtomicU32::new(u32::MAX) }; 2];

/// Waits until all harts of the machine have called this, yielding meanwhile.
///
/// What a hart stored before, by any means but its private image, every hart sees afterwards.
/// Bounded by nothing: a hart that never comes leaves all others here.
pub fn barrier(hart: Hart) {
    agree(hart, true);
}

/// [`barrier`], in which each hart says whether all is well. True if all have said so.
pub fn agree(hart: Hart, well: bool) -> bool {
    // ORDERING: Acquire: the generation is read before we arrive. AcqRel below: the last to arrive
    // has seen what all others stored; Release and Acquire of the new generation hand that on to
    // them.
    let generation = GENERATION.load(Ordering::Acquire);
    // A hart that has left this round cannot leave the next one before we have arrived there: so
    // it stores for the next round at most, into the other word.
    let disagreed = &DISAGREED[generation as usize % 2];
    if !well {
        disagreed.store(generation, Ordering::Relaxed);
    }
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
    disagreed.load(Ordering::Relaxed) != generation
}
