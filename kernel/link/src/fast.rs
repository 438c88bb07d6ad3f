//! [`Fast`]: fast paths.

#[cfg(doc)]
use crate::{Access, Link, Telling};
use crate::{Amo, Key, Rank};

/// Fast paths, which a link may have: each default declines.
///
/// # Contract
/// 1. A call does all of what its counterpart does, or declines and has changed nothing.
/// 2. A call declines whatever is wrong with its arguments: the counterpart says what it is.
/// 3. The kernel calls the counterpart after a call that declined.
///
/// # Refusals
/// None: to decline is the only one.
pub trait Fast {
    /// Does `amo` to the element of 4 bytes at `offset`, and gives its former value: where that is
    /// one operation of the machine, which other `amo_word`s and [`update`](Access::update)s see as a
    /// whole. None where it is not, or where something is wrong: then nothing has happened, and
    /// `update` tells.
    #[inline]
    fn amo_word(&self, to: Rank, key: Key, offset: u32, amo: Amo) -> Option<u32> {
        let _ = (to, key, offset, amo);
        None
    }

    /// The same, to the element of 8 bytes at `offset`.
    #[inline]
    fn amo_long(&self, to: Rank, key: Key, offset: u32, amo: Amo) -> Option<u64> {
        let _ = (to, key, offset, amo);
        None
    }

    /// [`put_immediate`](Telling::put_immediate), inline, where that is short; false where it takes
    /// more, or something is wrong: then nothing has happened.
    #[inline]
    fn put_at_once(&self, to: Rank, place: (Key, u32), data: &[u8], immediate: u32) -> bool {
        let _ = (to, place, data, immediate);
        false
    }

    /// [`flush`](Access::flush), where nothing is under way that takes more to find out; else false,
    /// and nothing has happened that calling `flush` does not do.
    #[inline]
    fn flush_at_once(&self) -> bool {
        false
    }

    /// [`flush_at_once`](Self::flush_at_once), where an [`amo_word`](Self::amo_word) follows whose
    /// effect nobody finds before what has been put: that comes to its place by then.
    #[inline]
    fn flush_at_once_before_amo(&self) -> bool {
        false
    }

    /// Takes the oldest immediate if it is `wanted`, and comes within so many `looks`, where that
    /// is short; false where it takes more to find out: then nothing has happened. (Of links that
    /// are [coherent](Link::COHERENT): nothing is refreshed behind it.)
    #[inline]
    fn take_at_once(&self, wanted: u32, looks: u32) -> bool {
        let _ = (wanted, looks);
        false
    }
}
