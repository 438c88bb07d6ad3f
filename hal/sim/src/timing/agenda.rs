//! Whose access arrives next.
//!
//! A binary heap of (time, core), by hand so that the core in front can be given its next time in
//! place: that is what nearly every step does, and it costs one sift instead of two.

/// When each core's next access arrives, of those that have one.
pub(crate) struct Agenda {
    heap: Vec<(u64, u16)>,
    /// The front entry's core has taken its step and may be given its next time.
    taken: bool,
}

impl Agenda {
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            heap: Vec::with_capacity(cores),
            taken: false,
        }
    }

    /// The next core and its time; lower times first, then lower cores. The entry counts as gone.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(u64, u16)> {
        if std::mem::take(&mut self.taken) {
            self.drop_front();
        }
        let front = self.heap.first().copied();
        self.taken = front.is_some();
        front
    }

    /// Enters a core that is not entered.
    #[inline]
    pub(crate) fn enter(&mut self, time: u64, core: u16) {
        let entry = (time, core);
        if std::mem::take(&mut self.taken) {
            // Whoever it is: the front entry is free.
            self.sink(entry);
        } else {
            self.heap.push(entry);
            self.rise(entry);
        }
    }

    /// Whether nobody is entered.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.heap.len() == usize::from(self.taken)
    }

    fn drop_front(&mut self) {
        let last = self.heap.pop();
        if let (false, Some(last)) = (self.heap.is_empty(), last) {
            self.sink(last);
        }
    }

    /// Puts `entry` in place of the front one, and down to where it belongs.
    #[inline]
    fn sink(&mut self, entry: (u64, u16)) {
        let heap = &mut self.heap[..];
        let mut hole = 0;
        loop {
            let left = 2 * hole + 1;
            let Some(&(mut child)) = heap.get(left) else {
                break;
            };
            let mut at = left;
            if let Some(&right) = heap.get(left + 1)
                && right < child
            {
                (child, at) = (right, left + 1);
            }
            if entry < child {
                break;
            }
            heap[hole] = child;
            hole = at;
        }
        heap[hole] = entry;
    }

    /// Moves the last entry up to where it belongs.
    fn rise(&mut self, entry: (u64, u16)) {
        let mut hole = self.heap.len() - 1;
        while hole > 0 && entry < self.heap[(hole - 1) / 2] {
            self.heap[hole] = self.heap[(hole - 1) / 2];
            hole = (hole - 1) / 2;
        }
        self.heap[hole] = entry;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::rng::{Rng, Stream};

    #[test]
    fn it_agrees_with_a_sorted_set() {
        let mut rng = Rng::new(3, Stream::Environment);
        let (mut agenda, mut model) = (Agenda::new(8), BTreeSet::new());
        let mut out: Vec<u16> = (0..40).collect();
        for _ in 0..20_000 {
            if rng.below(3) > 0 && !out.is_empty() {
                let core = out.swap_remove(rng.below(out.len()));
                let time = rng.below(50) as u64;
                agenda.enter(time, core);
                model.insert((time, core));
            } else {
                let next = agenda.next();
                assert_eq!(next, model.pop_first());
                out.extend(next.map(|(_, core)| core));
            }
            assert_eq!(agenda.is_empty(), model.is_empty());
        }
    }
}
