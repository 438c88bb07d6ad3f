//! Registered memory: bytes of this process that the network loads and stores for peers.
//!
//! # Invariants
//! * M1. The memory is there, and stays in its place, until the value is dropped.
//! * M2. The network changes these bytes at any time. So this process touches them by relaxed
//!   atomic operations only; there is never a reference to them. Any bits are a number.
//! * M3. The order between these accesses and the network's is made by the fences of the module
//!   `end`: release before an operation is posted, acquire after a completion is read; or by those
//!   of `attach`.
//! * M4. Once the value is dropped, nothing else comes to the memory's addresses as long as the
//!   process lives: a peer may still copy there. So each network that was opened keeps addresses,
//!   but no memory.

use std::ffi::{c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Bytes that are loaded or stored in one step, where they are aligned.
const WORD: usize = 8;

/// Bytes of a page, and the least bytes that are cleared by giving pages back.
const PAGE: usize = 4096;
const MANY: usize = 1 << 20;

/// The registered memory of a rank.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    len: usize,
}

impl Memory {
    /// `len` bytes, all zero. None if `len` is 0, or the system has no such memory.
    pub(crate) fn new(len: usize) -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, where the system likes.
        let start = unsafe { map(null_mut(), len, access, 0) }?;
        Some(Self { start, len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where the memory is, for libfabric.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Where the `len` bytes at `at` begin.
    ///
    /// # Panics
    /// Unless they lie inside.
    pub(crate) fn inside(&self, at: usize, len: usize) -> NonNull<u8> {
        let end = at.saturating_add(len);
        let size = self.len;
        assert!(
            end <= size,
            "bytes {at} to {end} of {size} bytes of registered memory"
        );
        // SAFETY: `at` is at most `end`, which is at most the size of the allocation.
        unsafe { self.start.add(at) }
    }

    /// Makes bytes zeros by giving their whole pages back to the system; stores clear the ends.
    /// False, and nothing has happened, if they are few. Not for memory whose pages must be there.
    pub(crate) fn zero(&self, at: usize, len: usize) -> bool {
        if len < MANY {
            return false;
        }
        self.inside(at, len);
        let behind = at + len;
        let (start, end) = (at.next_multiple_of(PAGE), behind / PAGE * PAGE);
        let pages = self.inside(start, end - start).as_ptr().cast();
        // SAFETY: whole private pages of the mapping (M1), which stay mapped, and are zeros then:
        // any bits are a number (M2).
        let cleared = unsafe { libc::madvise(pages, end - start, libc::MADV_DONTNEED) } == 0;
        if cleared {
            self.write(at, &[0; PAGE][..start - at]);
            self.write(end, &[0; PAGE][..behind - end]);
        }
        cleared
    }

    fn byte(&self, at: usize) -> &AtomicU8 {
        let place = self.inside(at, 1);
        // SAFETY: one byte of the allocation (`inside`, M1), which is zero or was stored to; all
        // accesses of this process are atomic (M2). The reference lives no longer than `self`.
        unsafe { AtomicU8::from_ptr(place.as_ptr()) }
    }

    /// The aligned word at `at`.
    fn word(&self, at: usize) -> &AtomicU64 {
        let place = self.inside(at, WORD);
        assert!((at).is_multiple_of(WORD), "no aligned word: {at}");
        // SAFETY: as in `byte`, of 8 bytes; the memory begins at a page, so they are aligned as
        // `at` is.
        unsafe { AtomicU64::from_ptr(place.cast().as_ptr()) }
    }

    /// Loads the bytes at `at`.
    ///
    /// # Panics
    /// Unless they lie inside.
    pub(crate) fn read(&self, at: usize, into: &mut [u8]) {
        self.inside(at, into.len());
        let (head, words) = split(at, into.len());
        let (first, rest) = into.split_at_mut(head);
        let (middle, last) = rest.split_at_mut(words * WORD);
        let word_at = at + head;
        let last_at = word_at + middle.len();
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
    pub(crate) fn write(&self, at: usize, from: &[u8]) {
        self.inside(at, from.len());
        let (head, words) = split(at, from.len());
        let (first, rest) = from.split_at(head);
        let (middle, last) = rest.split_at(words * WORD);
        let word_at = at + head;
        let last_at = word_at + middle.len();
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

/// Maps `len` bytes, which are zero. None if the system refuses.
///
/// # Safety
/// With `MAP_FIXED`, nobody uses what is mapped at `start` from now on.
unsafe fn map(start: *mut c_void, len: usize, access: c_int, flags: c_int) -> Option<NonNull<u8>> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: as the caller promises. Without a file, the last two arguments say nothing.
    let start = unsafe { libc::mmap(start, len, access, flags, -1, 0) };
    NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED)
}

/// Of `len` bytes at `at`: how many come before the first aligned word, and how many words follow.
fn split(at: usize, len: usize) -> (usize, usize) {
    let head = (at.wrapping_neg() % WORD).min(len);
    (head, (len - head) / WORD)
}

impl Drop for Memory {
    fn drop(&mut self) {
        // M4: the pages go back to the system, the addresses do not.
        // SAFETY: mapped by `new`: this is the only owner. No reference is left (M2), and libfabric
        // has forgotten the memory: `End` closes its registration first, or leaks this value.
        unsafe {
            let start = self.start.as_ptr().cast();
            map(
                start,
                self.len,
                libc::PROT_NONE,
                libc::MAP_FIXED | libc::MAP_NORESERVE,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_wherever_they_begin_and_end() {
        let memory = Memory::new(64).unwrap();
        for at in 0..20 {
            for len in 0..30_u8 {
                memory.write(0, &[0; 64]);
                let bytes: Vec<u8> = (1..=len).collect();
                memory.write(at, &bytes);
                let mut all = [0xff; 64];
                memory.read(0, &mut all);
                let (start, end) = (at, at + bytes.len());
                assert_eq!(&all[start..end], bytes);
                let mut around = all[..start].iter().chain(&all[end..]);
                assert!(around.all(|byte| *byte == 0));
                let mut back = vec![0; bytes.len()];
                memory.read(at, &mut back);
                assert_eq!(back, bytes);
            }
        }
    }

    #[test]
    fn what_lies_outside_stops_the_rank() {
        let memory = Memory::new(16).unwrap();
        for (at, len) in [(0, 17), (16, 1), (17, 0), (usize::MAX, 8)] {
            let read = || memory.read(at, &mut vec![0; len]);
            let read = std::panic::AssertUnwindSafe(read);
            assert!(std::panic::catch_unwind(read).is_err(), "{at} {len}");
        }
        memory.read(16, &mut []);
        assert!(Memory::new(0).is_none());
    }
}
