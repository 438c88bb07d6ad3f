//! Whose access arrives next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When each core's next access arrives, of those that have one.
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<(u64, u16)>>,
    /// The front entry's core has taken its step and may be given its next time in place: nearly
    /// every step does so, and it costs one sift instead of two.
    taken: bool,
}

impl Agenda {
    pub(crate) fn new(cores: usize) -> Self {
        Self {
            heap: BinaryHeap::with_capacity(cores),
            taken: false,
        }
    }

    /// The next core and its time; lower times first, then lower cores. The entry counts as gone.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(u64, u16)> {
        if std::mem::take(&mut self.taken) {
            self.heap.pop();
        }
        let front = self.heap.peek().map(|&Reverse(entry)| entry);
        self.taken = front.is_some();
        front
    }

    /// Enters a core that is not entered.
    #[inline]
    pub(crate) fn enter(&mut self, time: u64, core: u16) {
        let entry = Reverse((time, core));
        if !std::mem::take(&mut self.taken) {
            self.heap.push(entry);
        } else if let Some(mut front) = self.heap.peek_mut() {
            *front = entry;
        }
    }

    /// Whether nobody is entered.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.heap.len() == usize::from(self.taken)
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
