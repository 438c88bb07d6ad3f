//! Writing back normally cached lines: by displacing them.
//!
//! No instruction writes one line back, from L1 or from L2. `wbinvd` empties the L1, into the L2
//! where that has the line, else into memory. The L2 is emptied set by set: four reads of lines
//! that fall into the same set, 64 KiB apart, evict its four ways (docs/hardware.md A4; there from
//! Linux's sccmem.c).
//!
//! ```text
//!   area   ┌───────┬───────┬───────┬───────┐    set = address / 32 % 2048
//!          │ 64 KiB│       │       │       │    each 64 KiB has one line of every set
//!          └───────┴───────┴───────┴───────┘
//! ```
//! # Steps
//! | step | without it |
//! |---|---|
//! | interrupts off | handlers' reads and cleaning disturb the replacement state meanwhile |
//! | `wbinvd` | a line dirty in L1 falls into the L2 between our reads, as its set's youngest |
//! | four reads per set, always in the same order | a line stays |
//! | the first time: all sets, twice | see *cold ways* |
//!
//! # Why four reads are enough
//! The L2 replaces by tree pseudo-LRU. Four misses in a row evict all four ways, since the tree
//! points away from what was touched last, at each level. If some of the four lines are still there
//! from the last time, some of the reads hit; then the others evict what lies between, provided
//! that nobody but this code reads the area, and always all four in this order.
//! `tests/port/displacement.rs` goes through every state that a set can be in.
//!
//! The Linux driver alternates two areas, since it leaves out `wbinvd`: reads that hit in L1 never
//! reach the
//! L2. After `wbinvd` none hits there, so a second area would do nothing, and there is none.
//!
//! # Cold ways
//! Misses fill unused ways first, and that leaves the tree pointing elsewhere: four reads may then
//! keep a dirty line. Nothing ever empties a way of this L2, so once is enough: the first call
//! reads everything twice, which evicts all lines from whatever state.
//!
//! # Bounds
//! 4 reads per line; 8,192 for 64 KiB and more; 16,384 the first time. It rests on the replacement:
//! with a random one no number of reads is enough (shown by the same tests). And on the loop's own
//! instructions staying in the L1 for code.

use crate::bus::{Attribute, Bus, LINE, Physical};

const SETS: u32 = 2048;
const WAYS: u32 = 4;

/// Distance of two lines that fall into the same set.
const STRIDE: u32 = SETS * LINE;

/// Writes back and drops the lines of `spans` (first byte, length), and possibly everything else.
#[track_caller]
pub fn clean<B: Bus + ?Sized>(bus: &B, spans: impl Iterator<Item = (Physical, u32)> + Clone) {
    let total = spans
        .clone()
        .fold(0_u32, |sum, (_, len)| sum.saturating_add(len));
    if total == 0 {
        return;
    }
    let admitted = bus.set_interrupts(false);
    bus.wbinvd();
    let warm = bus.state().warm.replace(true);
    if !warm {
        (0..SETS).for_each(|set| displace(bus, set));
    }
    // From here on it is as cheap to clean the whole cache: a matter of cost alone.
    if !warm || total >= STRIDE {
        (0..SETS).for_each(|set| displace(bus, set));
    } else {
        for (start, len) in spans {
            for offset in (0..len).step_by(LINE as usize) {
                displace(bus, start.plus(offset).get() / LINE % SETS);
            }
        }
    }
    bus.set_interrupts(admitted);
}

/// Evicts all ways of a set.
#[track_caller]
fn displace<B: Bus + ?Sized>(bus: &B, set: u32) {
    let first = bus.displacement_area().plus(set * LINE);
    for way in 0..WAYS {
        bus.load_u32(first.plus(way * STRIDE), Attribute::Normal);
    }
}
