//! Registered memory: bytes of this process that the network loads and stores for peers.
//!
//! # Invariants
//! * M1. The memory is there, and stays in its place, until the value is dropped.
//! * M2. The network changes these bytes at any time. So this process touches them by relaxed
//!   atomic operations only; there is never a reference to them. Any bits are a number.
//! * M3. The order between these accesses and the network's is made by the fences of the module
//!   `end`: release before an operation is posted, acquire after a completion is read.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Bytes of a page: the memory begins at a multiple.
const PAGE: usize = 4096;

/// Bytes that are loaded or stored in one step, where they are aligned.
const WORD: usize = 8;

/// The registered memory of a rank.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    /// `len` bytes, all zero. None if `len` is 0, or is not a size.
    pub(crate) fn new(len: u32) -> Option<Self> {
        let layout = Layout::from_size_align(len as usize, PAGE).ok()?;
        if len == 0 {
            return None;
        }
        // SAFETY: the layout's size is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Some(Self { start, layout })
    }

    pub(crate) fn len(&self) -> u32 {
        self.layout.size() as u32
    }

    /// Where the memory is, for libfabric.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Where the `len` bytes at `at` begin.
    ///
    /// # Panics
    /// Unless they lie inside.
    pub(crate) fn inside(&self, at: u32, len: usize) -> NonNull<u8> {
        let end = at as usize + len;
        let size = self.layout.size();
        assert!(
            end <= size,
            "bytes {at} to {end} of {size} bytes of registered memory"
        );
        // SAFETY: `at` is at most `end`, which is at most the size of the allocation.
        unsafe { self.start.add(at as usize) }
    }

    fn byte(&self, at: u32) -> &AtomicU8 {
        let place = self.inside(at, 1);
        // SAFETY: one byte of the allocation (`inside`, M1), which is zero or was stored to; all
        // accesses of this process are atomic (M2). The reference lives no longer than `self`.
        unsafe { AtomicU8::from_ptr(place.as_ptr()) }
    }

    /// The aligned word at `at`.
    fn word(&self, at: u32) -> &AtomicU64 {
        let place = self.inside(at, WORD);
        assert!((at as usize).is_multiple_of(WORD), "no aligned word: {at}");
        // SAFETY: as in `byte`, of 8 bytes; the memory begins at a page, so they are aligned as
        // `at` is.
        unsafe { AtomicU64::from_ptr(place.cast().as_ptr()) }
    }

    /// Loads the bytes at `at`.
    ///
    /// # Panics
    /// Unless they lie inside.
    pub(crate) fn read(&self, at: u32, into: &mut [u8]) {
        self.inside(at, into.len());
        let (head, words) = split(at, into.len());
        let (first, rest) = into.split_at_mut(head);
        let (middle, last) = rest.split_at_mut(words * WORD);
        let word_at = at + head as u32;
        let last_at = word_at + middle.len() as u32;
        for (at, byte) in (at..).zip(first).chain((last_at..).zip(last)) {
            *byte = self.byte(at).load(Relaxed);
        }
        for (at, word) in (word_at..).step_by(WORD).zip(middle.chunks_exact_mut(WORD)) {
            word.copy_from_slice(&self.word(at).load(Relaxed).to_ne_bytes());
        }
    }

    /// Stores `from` at `at`.
    ///
    /// # Panics
    /// Unless the bytes lie inside.
    pub(crate) fn write(&self, at: u32, from: &[u8]) {
        self.inside(at, from.len());
        let (head, words) = split(at, from.len());
        let (first, rest) = from.split_at(head);
        let (middle, last) = rest.split_at(words * WORD);
        let word_at = at + head as u32;
        let last_at = word_at + middle.len() as u32;
        for (at, byte) in (at..).zip(first).chain((last_at..).zip(last)) {
            self.byte(at).store(*byte, Relaxed);
        }
        for (at, word) in (word_at..).step_by(WORD).zip(middle.chunks_exact(WORD)) {
            let mut bytes = [0; WORD];
            bytes.copy_from_slice(word);
            self.word(at).store(u64::from_ne_bytes(bytes), Relaxed);
        }
    }
}

/// Of `len` bytes at `at`: how many come before the first aligned word, and how many words follow.
fn split(at: u32, len: usize) -> (usize, usize) {
    let head = (at.wrapping_neg() as usize % WORD).min(len);
    (head, (len - head) / WORD)
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout, and not freed before: this is the only
        // owner. No reference is left (M2), and the network has forgotten the memory: `End` closes
        // its registration first, or leaks this value.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_wherever_they_begin_and_end() {
        let memory = Memory::new(64).unwrap();
        for at in 0..20 {
            for len in 0..30 {
                memory.write(0, &[0; 64]);
                let bytes: Vec<u8> = (1..=len).collect();
                memory.write(at, &bytes);
                let mut all = [0xff; 64];
                memory.read(0, &mut all);
                let (start, end) = (at as usize, at as usize + bytes.len());
                assert_eq!(&all[start..end], bytes);
                assert!(
                    all[..start]
                        .iter()
                        .chain(&all[end..])
                        .all(|byte| *byte == 0)
                );
                let mut back = vec![0; bytes.len()];
                memory.read(at, &mut back);
                assert_eq!(back, bytes);
            }
        }
    }

    #[test]
    fn what_lies_outside_stops_the_rank() {
        let memory = Memory::new(16).unwrap();
        for (at, len) in [(0, 17), (16, 1), (17, 0), (u32::MAX, 8)] {
            let read = || memory.read(at, &mut vec![0; len]);
            let read = std::panic::AssertUnwindSafe(read);
            assert!(std::panic::catch_unwind(read).is_err(), "{at} {len}");
        }
        memory.read(16, &mut []);
        assert!(Memory::new(0).is_none());
    }
}
