//! The unexpected queue: notifications that have arrived and that no request has matched yet.
//!
//! [NA] IV-B: one queue per rank keeps the order of arrival; a test looks here first and only then
//! takes new notifications from the link. Removing from the middle moves the younger ones up, so
//! that order is kept and the oldest lies beside the head.
//!
//! # Memory layout (the head; 32 bytes, one line)
//! ```text
//!   0               8 or 16      28         30       31
//!   ┌───────────────┬────────────┬──────────┬────────┬────────┐
//!   │ younger ones: │ the oldest │ how many │ bits   │ places │
//!   │ where, room   │ three      │ there are│ of tag │ unused │
//!   └───────────────┴────────────┴──────────┴────────┴────────┘
//! ```
//! All that matching reads besides the request and the link: [NA] V counts two compulsory misses,
//! one for the request and one for this line, while fewer than four notifications wait. (Offsets
//! with pointers of 8 bytes; the compiler may order fields otherwise.)
//!
//! [NA]: crate#sources

use core::cell::Cell;

/// Immediates beside the head.
const BESIDE: usize = 3;

/// Immediates in order of arrival: the first three in the head, the others in arena words.
#[derive(Debug)]
#[repr(align(32))]
pub(crate) struct UnexpectedQueue<'a> {
    words: &'a [Cell<u32>],
    beside: [Cell<u32>; BESIDE],
    len: Cell<u16>,
    /// Bits of a tag in an immediate: here, since matching needs them.
    tag_bits: u8,
    /// Places of the head that a shorter queue does not have.
    unused: u8,
}

// Lines have 32 bytes or more, at multiples of their size.
const _: () =
    assert!(size_of::<UnexpectedQueue<'_>>() == 32 && align_of::<UnexpectedQueue<'_>>() == 32);

impl<'a> UnexpectedQueue<'a> {
    /// How many words a queue needs that keeps `unexpected` immediates and has a spare place.
    pub(crate) const fn words(unexpected: u16) -> usize {
        (unexpected.saturating_add(1) as usize).saturating_sub(BESIDE)
    }

    /// A queue of as many `words` as [`UnexpectedQueue::words`] says.
    pub(crate) fn new(words: &'a [Cell<u32>], unexpected: u16, tag_bits: u32) -> Self {
        Self {
            words,
            beside: [const { Cell::new(0) }; BESIDE],
            len: Cell::new(0),
            tag_bits: tag_bits as u8,
            unused: BESIDE.saturating_sub(unexpected.saturating_add(1).into()) as u8,
        }
    }

    /// How many it has room for, the spare place included.
    fn places(&self) -> u16 {
        let beside = (BESIDE as u16).wrapping_sub(self.unused.into());
        (self.words.len() as u16).wrapping_add(beside)
    }

    /// Bits of a tag in an immediate.
    pub(crate) fn tag_bits(&self) -> u32 {
        u32::from(self.tag_bits)
    }

    /// How many it holds, not counting the spare place.
    pub(crate) fn capacity(&self) -> u16 {
        self.places().saturating_sub(1)
    }

    /// True if only the spare place is left: no more is taken from the link, but by a test that
    /// looks whether the next one matches.
    pub(crate) fn is_full(&self) -> bool {
        self.len.get().saturating_add(1) >= self.places()
    }

    /// True if the spare place is taken as well.
    pub(crate) fn has_no_spare(&self) -> bool {
        self.len.get() >= self.places()
    }

    fn place(&self, index: usize) -> Option<&Cell<u32>> {
        let beside = self.beside.get(index);
        beside.or_else(|| self.words.get(index.wrapping_sub(BESIDE)))
    }

    /// True if it holds none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    /// Appends; the caller has made sure that there is room.
    pub(crate) fn push(&self, immediate: u32) {
        let len = self.len.get();
        if len < self.places()
            && let Some(place) = self.place(usize::from(len))
        {
            place.set(immediate);
            self.len.set(len.saturating_add(1));
        }
    }

    /// The oldest one that is `wanted`.
    pub(crate) fn find(&self, mut wanted: impl FnMut(u32) -> bool) -> Option<u32> {
        (0..usize::from(self.len.get()))
            .filter_map(|index| self.place(index).map(Cell::get))
            .find(|&immediate| wanted(immediate))
    }

    /// Offers all immediates to `wanted`, oldest first, and removes those that it takes.
    pub(crate) fn take_if(&self, mut wanted: impl FnMut(u32) -> bool) {
        let mut kept = 0_u16;
        for index in 0..self.len.get() {
            let Some(place) = self.place(usize::from(index)) else {
                break;
            };
            let immediate = place.get();
            if wanted(immediate) {
                continue;
            }
            if kept != index
                && let Some(place) = self.place(usize::from(kept))
            {
                place.set(immediate);
            }
            kept = kept.saturating_add(1);
        }
        if kept != self.len.get() {
            self.len.set(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_from_the_middle_keeps_the_order() {
        let mut words = [0_u32; 2];
        assert_eq!(UnexpectedQueue::words(4), words.len());
        let queue = UnexpectedQueue::new(Cell::from_mut(&mut words[..]).as_slice_of_cells(), 4, 9);
        for immediate in [1, 2, 3, 4] {
            assert!(!queue.is_full());
            queue.push(immediate);
        }
        assert!(queue.is_full() && !queue.has_no_spare());
        assert_eq!(queue.capacity(), 4);
        queue.push(6);
        assert!(queue.has_no_spare());
        queue.push(8); // no room: the caller should have looked
        assert_eq!(queue.find(|immediate| immediate > 1), Some(2));
        queue.take_if(|immediate| immediate % 2 == 0);
        queue.push(5);
        let mut seen = [0; 4];
        let mut count = 0;
        queue.take_if(|immediate| {
            seen[count] = immediate;
            count += 1;
            true
        });
        assert_eq!((&seen[..count], queue.len.get()), (&[1, 3, 5][..], 0));
    }

    #[test]
    fn short_queues_lie_in_the_head() {
        for unexpected in [0, 1, 2] {
            assert_eq!(UnexpectedQueue::words(unexpected), 0);
            let queue = UnexpectedQueue::new(&[], unexpected, 9);
            assert_eq!(
                (queue.is_full(), queue.capacity()),
                (unexpected == 0, unexpected)
            );
            (0..=unexpected).for_each(|number| queue.push(number.into()));
            assert!(queue.has_no_spare());
        }
    }
}
