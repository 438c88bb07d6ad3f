//! Steps that many cases take: something is heard of, or found.

use bytemuck::Pod;
use flagpost::{Link, Rank, Request, Rma, Status};

use crate::{Result, context::check};

/// Starts `request` and waits for what it asks for.
#[track_caller]
pub(super) fn hear<L: Link>(mut request: Request<'_, L>) -> Result<Status> {
    request.start()?;
    Ok(request.wait()?)
}

/// Checks what lies in the memory of `target` from `index` on.
#[track_caller]
pub(super) fn finds<'w, T: Pod + Into<u64>, L: Link + 'w, const N: usize>(
    what: &'static str,
    access: &impl Rma<'w, T, L>,
    target: Rank,
    index: usize,
    expected: [T; N],
) -> Result {
    let mut found = [T::zeroed(); N];
    access.get(target, index, &mut found)?;
    same(what, found, expected)
}

/// Checks that `found == expected`, element by element.
pub(super) fn same<T: Into<u64>, const N: usize>(
    what: &'static str,
    found: [T; N],
    expected: [T; N],
) -> Result {
    let mut pairs = found.into_iter().zip(expected);
    pairs.try_for_each(|(found, expected)| check(what, found, expected))
}
