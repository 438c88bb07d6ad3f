//! Memory models: windows that their owners do not cache, and exposures of a part of a piece.

use flagpost::{Differs, EpochSlots, Error, Link, Model, Rma as _, Tag, World};

use super::steps::{differs, hear, neighbours, refused as refuses};
use crate::{Result, context::check};

/// A word of the piece that no peer puts to.
const OWN: u64 = 77;

/// Two lines of a piece are exposed; its owner goes on storing to the others, dirty ones among
/// them.
pub(super) fn range<L: Link>(world: &World<'_, L>) -> Result {
    const EPOCHS: u64 = 3;
    let (_, next, prev) = neighbours(world);
    let per_line = L::LINE.div_ceil(size_of::<u64>());
    let window = world.allocate::<u64>(4 * per_line)?;
    let local = window.local();
    let (first, last) = (per_line, 3 * per_line - 1);
    for epoch in 1..=EPOCHS {
        local.set(0, OWN + epoch)?;
        local.set(first, 1)?; // dirty when it is exposed
        let exposure = window.post_range(first..last + 1, [prev])?;
        for index in [first, last] {
            refuses("in the range", local.set(index, 0), Error::Exposed)?;
        }
        local.set(3 * per_line, OWN + epoch)?;
        let access = window.start([next])?;
        access.put(next, first, &[10 * epoch])?;
        access.put(next, last, &[10 * epoch + 1])?;
        access.complete()?;
        exposure.wait()?;
        check("first put", local.get(first)?, 10 * epoch)?;
        check("last put", local.get(last)?, 10 * epoch + 1)?;
        check("before", local.get(0)?, OWN + epoch)?;
        check("behind", local.get(3 * per_line)?, OWN + epoch)?;
    }
    // What was stored outside of the range is published with the rest.
    let exposure = window.post([prev])?;
    let access = window.start([next])?;
    let mut seen = [0];
    access.get(next, 3 * per_line, &mut seen)?;
    access.complete()?;
    exposure.wait()?;
    check("peer's store", seen[0], OWN + EPOCHS)
}

/// The owner of a piece that is not cached stores beside its peers' puts, and sees them come.
pub(super) fn unified<L: Link>(world: &World<'_, L>) -> Result {
    let (me, next, prev) = neighbours(world);
    let window = world.allocate_with::<u32, EpochSlots<'_>>(6, Model::Unified)?;
    let local = window.local();
    for epoch in 1..=3_u32 {
        let from = |rank: flagpost::Rank| 0x100 * (u32::from(rank.get()) + 1) + epoch;
        local.copy_in(0, &[from(me), from(me) + 1])?;
        check("own store", local.get(1)?, from(me) + 1)?;
        let exposure = window.post([prev])?;
        local.set(4, from(me))?;
        let access = window.start([next])?;
        let mut seen = [0; 2];
        access.get(next, 0, &mut seen)?;
        check("first store", seen[0], from(next))?;
        check("second store", seen[1], from(next) + 1)?;
        access.put(next, 3, &[from(me)])?;
        window.put_notify(next, 0, &[], Tag(1))?;
        // Who hears of the put sees it: no epoch need end for it.
        hear(window.expect(0..0, Tag(1))?.from(prev)?)?;
        check("put, before the end", local.get(3)?, from(prev))?;
        local.set(5, from(me))?;
        access.complete()?;
        exposure.wait()?;
        check("put", local.get(3)?, from(prev))?;
        check("beside", local.get(4)?, from(me))?;
        check("later", local.get(5)?, from(me))?;
    }
    Ok(())
}

/// Bad ranges, and ranks that want different models.
pub(super) fn refused<L: Link>(world: &World<'_, L>) -> Result {
    let window = world.allocate::<u32>(4)?;
    let all = [world.rank()];
    let group = world.group(&all)?;
    let beyond = Error::OutOfRange { end: 5, len: 4 };
    refuses("range", window.post_range(3..5, &group).map(drop), beyond)?;
    let posting = window.posting_range(3..5, &group).map(drop);
    refuses("range", posting, beyond)?;
    // Nothing was opened.
    let exposure = window.post_range(2..2, &group)?;
    window.start(&group)?.complete()?;
    exposure.wait()?;

    let odd = world.rank().get() == 0;
    let model = if odd { Model::Unified } else { Model::Separate };
    let named = flagpost::Rank::new(u16::from(odd));
    let different = world.allocate_with::<u32, EpochSlots<'_>>(4, model);
    refuses("models differ", different, differs(named, Differs::Other))
}
