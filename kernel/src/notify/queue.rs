//! The unexpected queue: notifications that have arrived and that no request has matched yet.
//!
//! [NA] IV-B: one queue per rank keeps the order of arrival; a test looks here first and only then takes
//! new notifications from the link. Removing from the middle moves the younger ones up, so that order is
//! kept and the oldest lies beside the head.
//!
//! [NA]: crate#sources

use core::cell::Cell;

/// Immediates in order of arrival, in arena words.
#[derive(Debug)]
pub(crate) struct UnexpectedQueue<'a> {
    immediates: &'a [Cell<u32>],
    len: Cell<usize>,
}

impl<'a> UnexpectedQueue<'a> {
    pub(crate) fn new(words: &'a [Cell<u32>]) -> Self {
        Self {
            immediates: words,
            len: Cell::new(0),
        }
    }

    /// How many it holds, not counting the spare place.
    pub(crate) fn capacity(&self) -> u16 {
        u16::try_from(self.immediates.len().saturating_sub(1)).unwrap_or(u16::MAX)
    }

    /// Whether only the spare place is left: no more is taken from the link, but by a test that looks
    /// whether the next one matches.
    pub(crate) fn is_full(&self) -> bool {
        self.len.get().saturating_add(1) >= self.immediates.len()
    }

    /// Whether the spare place is taken as well.
    pub(crate) fn has_no_spare(&self) -> bool {
        self.len.get() >= self.immediates.len()
    }

    /// Appends; the caller has made sure that there is room.
    pub(crate) fn push(&self, immediate: u32) {
        let len = self.len.get();
        if let Some(place) = self.immediates.get(len) {
            place.set(immediate);
            self.len.set(len.saturating_add(1));
        }
    }

    /// Offers all immediates to `wanted`, oldest first, and removes those that it takes.
    pub(crate) fn take_if(&self, mut wanted: impl FnMut(u32) -> bool) {
        let mut kept = 0_usize;
        for place in self.immediates.iter().take(self.len.get()) {
            let immediate = place.get();
            if wanted(immediate) {
                continue;
            }
            if let Some(place) = self.immediates.get(kept) {
                place.set(immediate);
            }
            kept = kept.saturating_add(1);
        }
        self.len.set(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_from_the_middle_keeps_the_order() {
        let mut words = [0_u32; 5];
        let queue = UnexpectedQueue::new(Cell::from_mut(&mut words[..]).as_slice_of_cells());
        for immediate in [1, 2, 3, 4] {
            assert!(!queue.is_full());
            queue.push(immediate);
        }
        assert!(queue.is_full() && !queue.has_no_spare());
        assert_eq!(queue.capacity(), 4);
        queue.push(6);
        assert!(queue.has_no_spare());
        queue.push(8); // no room: the caller should have looked
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
}
