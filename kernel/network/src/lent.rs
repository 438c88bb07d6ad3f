//! Lists on the heap that calls change one after the other, without a panic: one that cannot grow
//! is an error value, and one that is in use is empty.

use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;

use flagpost_link::Refusal;

/// A list that a call takes out, changes, and puts back.
#[derive(Default)]
pub(crate) struct Lent<T>(Cell<T>);

impl<T: Default> Lent<T> {
    pub(crate) const fn new(list: T) -> Self {
        Self(Cell::new(list))
    }

    /// Calls `change` with the list. No such call is within another one.
    #[inline]
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut list = self.0.take();
        let result = change(&mut list);
        self.0.set(list);
        result
    }
}

impl<T> fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").finish_non_exhaustive()
    }
}

/// The list has `len` items, those that are missing like `item`; or there is no memory for them.
pub(crate) fn extend<T>(
    list: &mut Vec<T>,
    len: usize,
    item: impl Fn() -> T,
) -> Result<(), Refusal> {
    let missing = len.saturating_sub(list.len());
    let bytes = missing.saturating_mul(size_of::<T>());
    let room = list.try_reserve_exact(missing);
    room.map_err(|_| Refusal::NoMemory { missing: bytes })?;
    // The second condition is always true, and says so to the compiler.
    while list.len() < len && list.len() < list.capacity() {
        list.push(item());
    }
    Ok(())
}
