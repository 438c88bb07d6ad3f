//! An entry of 32 bytes: a record, and 8 bytes more. The first word announces it, and is stored
//! last. The 8 bytes more are for data, so that 16 bytes travel in one entry.
//!
//! # Memory layout (an entry; a facing line has two, that of the lower rank first)
//! ```text
//!   word   0           1        2        3       4 … 7
//!        ┌───────────┬────────┬────────┬───────┬──────────────────┐
//!        │ phase,    │ taken  │ length,        │ 16 bytes of data │
//!        │ immediate │        │ claim │ place  │                  │
//!        └───────────┴────────┴────────┴───────┴──────────────────┘
//! ```
//! The length has 8 bits, the place 56. `taken`: how many entries its producer has taken of those
//! that go the other way.

use flagpost_record::CLAIM;

/// Bytes of an entry: fewer lines than of whole ones are on their way between two cores.
pub(crate) const ENTRY: u32 = 32;

/// The most data in an entry.
pub(crate) const DATA: usize = 16;

/// Where the body of an entry is, and the second 8 bytes of its data.
pub(crate) const BODY: usize = 8;
pub(crate) const SECOND: usize = 24;

/// In place of the length: the data are in their place, or their owner is about to put them there.
pub(crate) const TAKEN: u8 = CLAIM as u8;

/// The producer is about to put them there.
pub(crate) const CLAIMED: u8 = TAKEN - 1;

/// The first part of a record's body.
#[inline]
pub(crate) const fn of_parts(place: usize, len: u8) -> u64 {
    (place as u64).wrapping_shl(u8::BITS) | len as u64
}

/// Place and length of the data.
#[inline]
pub(crate) const fn of_head(head: u64) -> (usize, u8) {
    (head.wrapping_shr(u8::BITS) as usize, head as u8)
}

/// How many elements of 8 bytes come before the place of the data, if the data are such an element
/// and the place is aligned. Else a number that is too large for any region.
#[inline(always)]
pub(crate) const fn element(head: u64) -> u64 {
    // The length and the three low bits of the place become the highest bits.
    (head ^ 8).rotate_right(u8::BITS + 3)
}

/// The elements of 8 bytes that the largest region has.
pub(crate) const ELEMENTS: u64 = 1 << 53;

/// The body of a record, and the 8 bytes after it.
#[inline]
pub(crate) fn body(place: usize, data: &[u8]) -> ([u64; 2], [u8; 8]) {
    let mut parts = [[0; 8]; 2];
    for (to, from) in parts.as_flattened_mut().iter_mut().zip(data) {
        *to = *from;
    }
    let [first, second] = parts;
    let head = of_parts(place, data.len().min(DATA) as u8);
    ([head, u64::from_le_bytes(first)], second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_aligned_and_of_eight_bytes() {
        for number in [0, 1, ELEMENTS - 1] {
            let place = (number * 8) as usize;
            assert_eq!(element(of_parts(place, 8)), number);
            for other in [
                of_parts(place + 4, 8),
                of_parts(place + 1, 8),
                of_parts(place, 0),
                of_parts(place, 16),
                of_parts(place, TAKEN),
                of_parts(place, CLAIMED),
            ] {
                assert!(element(other) >= ELEMENTS, "{other:x}");
            }
        }
    }

    #[test]
    fn a_body_comes_back() {
        for len in 0..=DATA {
            let data = &b"0123456789abcdef"[..len];
            for place in [0, 12, usize::MAX >> u8::BITS] {
                let ([head, first], second) = body(place, data);
                assert_eq!(of_head(head), (place, len as u8));
                assert!(len as u8 != TAKEN && len as u8 != CLAIMED);
                let parts = [first.to_le_bytes(), second];
                assert_eq!(&parts.as_flattened()[..len], data);
            }
        }
    }
}
