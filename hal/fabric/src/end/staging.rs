//! Staged data: copies of what a put stores and of what a get loads, while it is in flight.
//!
//! Buffers are used again, the last one first: it is in the cache, its pages are there, and it is
//! registered where that is needed.
//!
//! # Bounds
//! [`KEPT`] bytes wait to be used again. What is in flight comes in addition: a buffer for each
//! slot at most.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

use super::handle::Handle;
use crate::bindings::*;

/// Bytes that are kept at most.
const KEPT: usize = 16 << 20;

/// Bytes of the smallest buffer.
const LEAST: usize = 4096;

/// Bytes that stay where they are, until the buffer is dropped.
#[derive(Debug)]
pub(super) struct Buffer {
    /// Goes first.
    region: Option<Handle<fid_mr>>,
    bytes: Vec<u8>,
}

impl Buffer {
    /// Makes the bytes those of `data`, for which the buffer was taken.
    pub(super) fn fill(&mut self, data: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(data);
    }

    /// Where the buffer's bytes are.
    pub(super) fn start(&mut self) -> NonNull<u8> {
        NonNull::new(self.bytes.as_mut_ptr()).unwrap_or(NonNull::dangling())
    }

    pub(super) fn room(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn region(&self) -> Option<&Handle<fid_mr>> {
        self.region.as_ref()
    }

    pub(super) fn set_region(&mut self, region: Handle<fid_mr>) {
        self.region = Some(region);
    }

    /// Closes the registration, if there is one; false if that fails.
    pub(super) fn close(&mut self) -> bool {
        self.region.as_mut().is_none_or(Handle::close)
    }
}

/// Buffers that wait to be used again.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// By their size: the index is its logarithm.
    free: RefCell<Vec<Vec<Buffer>>>,
    kept: Cell<usize>,
}

impl Pool {
    /// A buffer with room for `len` bytes.
    pub(super) fn take(&self, len: usize) -> Buffer {
        let size = len.max(LEAST).next_power_of_two();
        let mut free = self.free.borrow_mut();
        let class = free.get_mut(size.ilog2() as usize);
        if let Some(buffer) = class.and_then(Vec::pop) {
            self.kept.set(self.kept.get() - size);
            return buffer;
        }
        Buffer {
            region: None,
            bytes: Vec::with_capacity(size),
        }
    }

    /// `buffer` is not used any more.
    pub(super) fn give_back(&self, buffer: Buffer) {
        let size = buffer.room();
        let kept = self.kept.get() + size;
        if kept > KEPT || !size.is_power_of_two() {
            return;
        }
        self.kept.set(kept);
        let mut free = self.free.borrow_mut();
        let class = size.ilog2() as usize;
        if free.len() <= class {
            free.resize_with(class + 1, Vec::new);
        }
        free[class].push(buffer);
    }

    /// Drops all buffers. False if a registration cannot be closed: then they are leaked (E3).
    pub(super) fn close(&self) -> bool {
        let mut free = std::mem::take(&mut *self.free.borrow_mut());
        let buffers = free.iter_mut().flatten();
        let closed = buffers.fold(true, |all, buffer| buffer.close() & all);
        if !closed {
            std::mem::forget(free);
        }
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_room_and_is_used_again_by_what_fits() {
        let pool = Pool::default();
        for len in [0, 1, LEAST, LEAST + 1, 3 * LEAST, 1 << 20] {
            assert!(pool.take(len).room() >= len.max(LEAST), "{len}");
        }
        let mut large = pool.take(3 * LEAST);
        let start = large.start();
        pool.give_back(large);
        assert_ne!(pool.take(LEAST).start(), start, "one too large");
        assert_ne!(pool.take(5 * LEAST).start(), start, "one too small");
        let mut again = pool.take(4 * LEAST);
        assert_eq!(again.start(), start);
        again.fill(&[1; 8]);
        again.fill(&[2; 3]);
        assert_eq!(again.bytes, [2; 3]);
        assert_eq!(again.start(), start, "a buffer does not move");
    }

    #[test]
    fn what_is_kept_is_bounded_each_time_anew() {
        const SIZE: usize = 1 << 20;
        let pool = Pool::default();
        let waiting = || pool.free.borrow().iter().map(Vec::len).sum::<usize>();
        for _ in 0..3 {
            let all: Vec<_> = (0..=KEPT / SIZE).map(|_| pool.take(SIZE)).collect();
            assert_eq!((waiting(), pool.kept.get()), (0, 0));
            all.into_iter().for_each(|buffer| pool.give_back(buffer));
            assert_eq!((waiting(), pool.kept.get()), (KEPT / SIZE, KEPT));
        }
    }
}
