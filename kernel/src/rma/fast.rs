//! Fast paths of accesses: see [`window::fast`](crate::window::fast).

use bytemuck::Pod;
use flagpost_link::{Amo, Link, Rank, Width};

use super::{
    Element, Integer,
    operation::{Operation, word},
};
use crate::window::{fast::place, reach::Reach};

/// Stores `data`; false if it declines.
#[inline]
pub(crate) fn put<'w, T: Pod, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    data: &[T],
) -> bool {
    let core = epoch.core();
    let link = core.world.link();
    let Some((key, offset)) = place::<T, L>(core, to, index, data.len()) else {
        return false;
    };
    let bytes = bytemuck::cast_slice(data);
    epoch.admits(to) && link.put(to, key, offset, bytes).is_ok()
}

/// Combines one element with `operand`, and gives what it was.
#[inline]
pub(crate) fn fetch_and_op<'w, T: Element, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    operand: T,
    operation: Operation<T>,
) -> Option<T> {
    let amo = operation.combine().as_word(operand)?;
    change(epoch, to, index, amo)
}

/// Stores `new` in one element if it is as `expected`, and gives what it was.
#[inline]
pub(crate) fn compare_and_swap<'w, T: Integer, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    expected: T,
    new: T,
) -> Option<T> {
    let (expected, new) = (word(expected)?, word(new)?);
    change(epoch, to, index, Amo::CompareSwap { expected, new })
}

/// Does `amo` to one element of 4 or 8 bytes, and gives what it was.
#[inline]
fn change<'w, T: Pod, L: Link + 'w>(
    epoch: &(impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    amo: Amo,
) -> Option<T> {
    let core = epoch.core();
    let (key, offset) = place::<T, L>(core, to, index, 1)?;
    if !epoch.admits(to) || core.world.is_poll_due() {
        return None;
    }
    let link = core.world.link();
    if size_of::<T>() == size_of::<u64>() {
        let old = link.fast_amo(to, key, offset, amo, Width::Whole)?;
        return bytemuck::try_cast(old).ok();
    }
    let old = link.fast_amo(to, key, offset, amo, Width::Half)?;
    bytemuck::try_cast(old as u32).ok()
}
