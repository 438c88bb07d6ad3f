//! Numbers of immediates: what arrives early waits for what was posted before it.
//!
//! A provider that writes in order may still report the writes' immediates in any order. So where
//! puts are ordered, an immediate travels with its number among those of its sender to this rank,
//! and the ranks put them in order.
//!
//! # Bounds
//! Numbers have 16 bits: of two immediates on the way, fewer than 2^15 were posted between.

use std::cell::{Cell, RefCell};

/// The immediates between this rank and another, both ways.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    /// The number of the next one that is sent, and of the next one that arrives.
    next: Cell<u16>,
    expected: Cell<u16>,
    early: RefCell<Vec<(u16, u32)>>,
}

impl Sequence {
    /// The number of the next one that is sent.
    pub(crate) fn next(&self) -> u16 {
        self.next.get()
    }

    /// It was sent.
    pub(crate) fn sent(&self) {
        self.next.set(self.next.get().wrapping_add(1));
    }

    /// An immediate has arrived; whether it is its turn. Else it is kept.
    pub(crate) fn arrived(&self, number: u16, immediate: u32) -> bool {
        let in_turn = number == self.expected.get();
        if in_turn {
            self.expected.set(number.wrapping_add(1));
        } else {
            self.early.borrow_mut().push((number, immediate));
        }
        in_turn
    }

    /// Whether any has arrived early.
    pub(crate) fn keeps(&self) -> bool {
        !self.early.borrow().is_empty()
    }

    /// One that has arrived early, and whose turn it is.
    pub(crate) fn kept(&self) -> Option<u32> {
        let mut early = self.early.borrow_mut();
        let expected = self.expected.get();
        let found = early.iter().position(|(number, _)| *number == expected)?;
        self.expected.set(expected.wrapping_add(1));
        Some(early.swap_remove(found).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out, when these arrive one after another.
    fn order(sequence: &Sequence, arrivals: impl IntoIterator<Item = u16>) -> Vec<u32> {
        let mut out = Vec::new();
        for number in arrivals {
            if sequence.arrived(number, u32::from(number)) {
                out.push(u32::from(number));
            }
            out.extend(std::iter::from_fn(|| sequence.kept()));
        }
        out
    }

    #[test]
    fn immediates_come_in_the_order_of_their_numbers() {
        let sequence = Sequence::default();
        assert_eq!(order(&sequence, [0, 1, 2]), [0, 1, 2]);
        assert_eq!(order(&sequence, [5, 4, 6]), []);
        assert_eq!(order(&sequence, [3]), [3, 4, 5, 6]);
        // Many that come the other way round, past the greatest number; and one before all others
        // that have another number.
        let mut next = 7_u16;
        let mut all_come = |count: u16, backwards: bool| {
            let first = next;
            let numbers = || (0..count).map(|number| first.wrapping_add(number));
            let sorted: Vec<u32> = numbers().map(u32::from).collect();
            let mut arrivals: Vec<u16> = numbers().collect();
            match backwards {
                true => arrivals.reverse(),
                false => arrivals.rotate_right(1),
            }
            assert_eq!(order(&sequence, arrivals), sorted);
            next = first.wrapping_add(count);
        };
        for _ in 0..70 {
            all_come(1000, true);
        }
        for _ in 0..3 {
            all_come(u16::MAX, false);
        }
    }

    #[test]
    fn numbers_are_those_of_what_was_sent() {
        let sequence = Sequence::default();
        assert_eq!(sequence.next(), 0);
        assert_eq!(sequence.next(), 0);
        for number in (0..=u16::MAX).chain([0]) {
            assert_eq!(sequence.next(), number);
            sequence.sent();
        }
    }
}
