//! [`Fast`]: fast paths.

#[cfg(doc)]
use crate::{Access, Link, Telling};
use crate::{Amo, Key, Rank, Width};

/// Fast paths, which a link may have: the default of each declines.
///
/// Each has a counterpart in another role, which does the same in all cases. A fast path does it in
/// the usual case, in fewer steps.
///
/// # Contract
/// 1. A call does all that its counterpart does, or it declines and has changed nothing.
/// 2. A call declines if anything is wrong with its arguments. The counterpart says what it is.
/// 3. The kernel calls the counterpart after a call that declined. A link may decline always.
/// 4. A fast path orders all that its counterpart orders.
///
/// # Refusals
/// None: a call declines.
pub trait Fast {
    /// True if the link has fast paths: no other link is asked for one that takes preparation. On
    /// such a link nothing is refreshed, and a change of a cell is answered when it returns.
    const FAST: bool = false;

    /// [`Telling::put_immediate`] of short data, inline. False if it declines.
    #[inline]
    fn fast_put(&self, to: Rank, place: (Key, usize), data: &[u8], immediate: u32) -> bool {
        let _ = (to, place, data, immediate);
        false
    }

    /// Does `amo` to the element of 4 bytes ([`Width::Half`]) or 8 bytes at `offset`, and gives its
    /// former value. None if it declines: so it does where that is not one operation of the
    /// machine.
    ///
    /// Counterparts: [`Access::update`] of these bytes; [`Access::amo`], for elements that are
    /// cells. Both see the operation as a whole.
    #[inline]
    fn fast_amo(&self, to: Rank, key: Key, offset: usize, amo: Amo, width: Width) -> Option<u64> {
        let _ = (to, key, offset, amo, width);
        None
    }

    /// [`Access::flush`], for all ranks. False if it declines: so it does while anything is in
    /// flight.
    ///
    /// `before_amo`: the next call is a [`fast_amo`](Self::fast_amo). Then it is enough that no
    /// rank finds the effect of that before what has been put.
    #[inline]
    fn fast_flush(&self, before_amo: bool) -> bool {
        let _ = before_amo;
        false
    }

    /// [`Telling::progress`], if the oldest immediate is `wanted`, and comes within this many
    /// `looks`, or fewer. False if it declines. The kernel refreshes nothing after it, so only a
    /// link over coherent caches may have it.
    #[inline]
    fn fast_take(&self, wanted: u32, looks: u32) -> bool {
        let _ = (wanted, looks);
        false
    }
}
