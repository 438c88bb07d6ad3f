//! Checking the arguments of an access, and making a request of it.
//!
//! # Guarantee
//! G1. Nothing has happened if an argument is refused: all are checked before the epoch is asked to
//!     admit the target; on attached memory behind that, since where it lies and how long it is
//!     takes an epoch to ask.

use bytemuck::Pod;
use flagpost_link::{Link, Rank};

use super::{
    Operation,
    accumulate::Accumulate,
    atomic::{Change, Fetch},
    layout::{Cursor, Gather, Layout, Scatter},
    operation::Element,
    request::Request,
    transfer::{Remote, Sides, Work},
};
use crate::{Error, window::reach::Reach};

/// Where an access to elements `T` of `rank`'s piece starts, and how many bytes it is about.
fn locate<'r, 'w, T, L: Link>(
    epoch: &'r (impl Reach<'w, L> + ?Sized),
    rank: Rank,
    index: usize,
    layout: &Layout<'_>,
) -> Result<(Remote<'r, 'w, L>, usize), Error> {
    let piece = epoch.piece(rank)?;
    let len = (piece.bytes as usize).checked_div(size_of::<T>());
    let (end, bytes) = layout.extent::<T>(len.unwrap_or(0))?;
    let remote = Remote {
        core: epoch.core(),
        rank,
        key: piece.key,
        offset: piece.inside::<T>(index, end)?,
    };
    Ok((remote, bytes))
}

/// Elements are changed as a whole at multiples of their size. Windows lie so, unless a
/// displacement unit is none.
fn aligned<T>(remote: &Remote<'_, '_, impl Link>) -> Result<(), Error> {
    let size = size_of::<T>() as u32;
    if remote.offset.is_multiple_of(size) {
        return Ok(());
    }
    let unit = remote.core.piece(remote.rank)?.unit;
    Err(Error::UnitUnaligned { unit, size })
}

/// Both sides must be about as many bytes.
fn same(target: usize, origin: usize) -> Result<(), Error> {
    if target == origin {
        return Ok(());
    }
    Err(Error::LengthsDiffer {
        target: target as u64,
        origin: origin as u64,
    })
}

/// A put of elements `U`, which has not begun.
pub(crate) fn put<'r, 'w, T: Pod, U: Pod, L: Link>(
    epoch: &'r (impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    layout: Layout<'r>,
    data: Gather<'r, U>,
) -> Result<Request<'r, 'w, L>, Error> {
    let (remote, bytes) = locate::<T, L>(epoch, to, index, &layout)?;
    same(bytes, data.layout.check::<U>(data.data.len())?)?;
    epoch.admit(to)?;
    let sides = Sides {
        target: Cursor::new::<T>(layout),
        origin: Cursor::new::<U>(data.layout),
    };
    let work = Work::Put(bytemuck::cast_slice(data.data));
    Ok(Request::new(remote, sides, work, bytes))
}

/// A get of elements `U`, which has not begun.
pub(crate) fn get<'r, 'w, T: Pod, U: Pod, L: Link>(
    epoch: &'r (impl Reach<'w, L> + ?Sized),
    from: Rank,
    index: usize,
    layout: Layout<'r>,
    into: Scatter<'r, U>,
) -> Result<Request<'r, 'w, L>, Error> {
    let (remote, bytes) = locate::<T, L>(epoch, from, index, &layout)?;
    same(bytes, into.layout.check::<U>(into.data.len())?)?;
    epoch.admit(from)?;
    remote.core.world.note_poll()?;
    let sides = Sides {
        target: Cursor::new::<T>(layout),
        origin: Cursor::new::<U>(into.layout),
    };
    let work = Work::Get(bytemuck::cast_slice_mut(into.data));
    Ok(Request::new(remote, sides, work, bytes))
}

/// An accumulate, which has not begun. With `fetched`, former values go there.
pub(crate) fn accumulate<'r, 'w, T: Element, L: Link>(
    epoch: &'r (impl Reach<'w, L> + ?Sized),
    (to, index): (Rank, usize),
    layout: Layout<'r>,
    mut data: Gather<'r, T>,
    operation: Operation<T>,
    fetched: Option<Scatter<'r, T>>,
) -> Result<Request<'r, 'w, L>, Error> {
    let (remote, bytes) = locate::<T, L>(epoch, to, index, &layout)?;
    if layout.is_in_bytes() || data.layout.is_in_bytes() {
        return Err(Error::FieldsAccumulated);
    }
    aligned::<T>(&remote)?;
    let combine = operation.combine();
    if fetched.is_some() && combine.only_reads() {
        data = Gather::from(&[][..]);
    } else {
        same(bytes, data.layout.check::<T>(data.data.len())?)?;
    }
    let fetched = match fetched {
        None => None,
        Some(into) => {
            same(bytes, into.layout.check::<T>(into.data.len())?)?;
            let bytes = bytemuck::cast_slice_mut(into.data);
            Some((Cursor::new::<T>(into.layout), bytes))
        }
    };
    epoch.admit(to)?;
    if fetched.is_some() {
        remote.core.world.note_poll()?;
    }
    let sides = Sides {
        target: Cursor::new::<T>(layout),
        origin: Cursor::new::<T>(data.layout),
    };
    let work = Work::Accumulate(Accumulate {
        combine,
        operands: bytemuck::cast_slice(data.data),
        fetched,
    });
    Ok(Request::new(remote, sides, work, bytes))
}

/// An operation on one element, which has not begun.
pub(crate) fn fetch<'r, 'w, T: Element, L: Link>(
    epoch: &'r (impl Reach<'w, L> + ?Sized),
    to: Rank,
    index: usize,
    change: Change<T>,
) -> Result<Fetch<'r, 'w, T, L>, Error> {
    let one = Layout::Contiguous { count: 1 };
    let (remote, _) = locate::<T, L>(epoch, to, index, &one)?;
    aligned::<T>(&remote)?;
    epoch.admit(to)?;
    remote.core.world.note_poll()?;
    Ok(Fetch::new(remote, change))
}
