//! Fast paths of notified puts and their requests: see [`window::fast`](crate::window::fast).

use core::cell::Cell;

use bytemuck::Pod;
use flagpost_link::{Link, Rank};

use super::{Request, Status, Tag};
use crate::{
    Error, Window,
    window::{Closed, Core, fast::place},
};

/// [`declined`](crate::window::fast::declined) for a notified put, whose arguments stay in
/// registers.
#[cold]
#[inline(never)]
pub(crate) fn put_notify_declined<T: Pod, L: Link, S>(
    window: &Window<'_, T, L, S>,
    to: Rank,
    index: usize,
    data: &[T],
    tag: Tag,
) -> Result<(), Error> {
    window.put_tagged(to, index, data, tag)
}

/// Puts `data`, and tells `to` by `tag`; false if it declines.
#[inline(always)]
pub(crate) fn put_notify<T: Pod, L: Link>(
    core: &Core<'_, L>,
    to: Rank,
    index: usize,
    data: &[T],
    tag: Tag,
) -> bool {
    if !core.inline.get() {
        return false;
    }
    let Some(place) = place::<T, L>(core, to, index, data.len()) else {
        return false;
    };
    let (link, bytes) = (core.world.link(), bytemuck::cast_slice(data));
    tag.0 <= core.world.limits.tag && link.fast_put(to, place, bytes, core.immediate | tag.0)
}

/// The first place for the closed lines of a request, if it may take that.
#[inline(always)]
pub(crate) fn room<'r, L: Link>(request: &Request<'r, L>) -> Option<&'r Cell<Closed>> {
    let usual = !request.is_started() && !request.lines().is_empty();
    request.first_room().filter(|_| usual)
}

/// Completes a request whose last notification is the next one that arrives, within this many
/// `looks`.
#[inline(always)]
pub(crate) fn test<L: Link>(request: &mut Request<'_, L>, looks: u32) -> Option<Status> {
    if request.lacks_one()
        && request.may_complete()
        && request.world().queue.is_empty()
        && request.world().link().fast_take(request.next(), looks)
    {
        return Some(request.complete_first());
    }
    None
}
