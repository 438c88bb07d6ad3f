//! [`Flight`]: data that travel to one peer in entries of its ring. The producer knows until where
//! entries with data have left (a ticket), and for which bytes. They are in flight until the owner
//! has told that it has placed them, or the producer has.

use core::cell::Cell;

use crate::ring::FIRST;

/// True if a ring of `entries` surely has room for `ticket`. `taken` is an older count of the
/// entries taken: others may have sent any number since, so it is believed only where it leaves no
/// doubt.
pub const fn surely_has_room(ticket: u32, taken: u32, entries: u32) -> bool {
    ticket.wrapping_sub(taken) < entries
}

/// True if all before `ticket` is placed, of a ring to which all before `sent` were sent: both are
/// looked at from there on back, since any number may have been sent after `ticket`.
pub const fn is_placed(sent: u32, ticket: u32, placed: u32) -> bool {
    sent.wrapping_sub(placed) <= sent.wrapping_sub(ticket)
}

/// Data in flight to one peer.
#[derive(Debug)]
pub struct Flight {
    /// The ticket after the last of them,
    ticket: Cell<u32>,
    /// and the bytes that they are for, and perhaps others between them. Where `end` is 0, none are
    /// in flight.
    start: Cell<usize>,
    end: Cell<usize>,
    /// Data in entries before this ticket are in place.
    from: Cell<u32>,
}

impl Flight {
    /// Nothing is in flight.
    pub const fn nothing() -> Self {
        Self {
            ticket: Cell::new(FIRST),
            start: Cell::new(usize::MAX),
            end: Cell::new(0),
            from: Cell::new(FIRST),
        }
    }

    /// True if any data are in flight.
    #[inline(always)]
    pub fn is_any(&self) -> bool {
        self.end.get() > 0
    }

    /// The ticket after the last data in flight, if any are.
    #[inline]
    pub fn ticket(&self) -> Option<u32> {
        self.is_any().then(|| self.ticket.get())
    }

    /// True if data for some of these bytes may be in flight.
    #[inline]
    pub fn has(&self, start: usize, end: usize) -> bool {
        self.start.get() < end && start < self.end.get()
    }

    /// Data for these bytes leave, in an entry before ticket `after`. True if they are the only
    /// ones in flight.
    #[inline(always)]
    pub fn leaves(&self, after: u32, start: usize, end: usize) -> bool {
        self.ticket.set(after);
        (start < self.start.get() || end > self.end.get()) && self.widens(start, end)
    }

    #[inline(never)]
    fn widens(&self, start: usize, end: usize) -> bool {
        let others = self.end.get();
        if others == 0 {
            // The entry before `after` is the first one with data.
            self.from.set(self.ticket.get().wrapping_sub(1));
        }
        self.start.set(self.start.get().min(start));
        self.end.set(others.max(end));
        others == 0
    }

    /// The ticket before which all data are in place.
    pub fn from(&self) -> u32 {
        self.from.get()
    }

    /// Data in entries before `ticket` are in place.
    pub fn is_placed_before(&self, ticket: u32) {
        self.from.set(ticket);
    }

    /// All data are in place.
    #[inline]
    pub fn has_arrived(&self) {
        self.start.set(usize::MAX);
        self.end.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_come_round_do_not_mislead() {
        for sent in [0, 5, 1 << 31, u32::MAX] {
            let before = |many: u32| sent.wrapping_sub(many);
            for age in [0, 1, 64, 1 << 20, 1 << 31, u32::MAX - 1] {
                // All that was sent is placed; or all but the last 64 at the most.
                assert!(is_placed(sent, before(age), sent), "{sent} {age}");
                assert_eq!(is_placed(sent, before(age), before(64)), age >= 64);
            }
            // Of a ring of 4: an older view that is not that old.
            for (age, has_room) in [(0, true), (3, true), (4, false), (1 << 31, false)] {
                assert_eq!(surely_has_room(sent, before(age), 4), has_room);
            }
            assert!(!surely_has_room(sent, before(u32::MAX - 2), 4));
        }
    }

    /// Data for some bytes, and then for others: below, above, among them, far away.
    #[test]
    fn data_in_flight_are_known_by_their_bytes() {
        let all = [(64, 96), (32, 64), (96, 97), (0, 8), (70, 80), (200, 300)];
        for first in 0..all.len() {
            for second in (0..all.len()).filter(|second| *second != first) {
                let flight = Flight::nothing();
                for lap in 0..3 {
                    assert_eq!(flight.ticket(), None);
                    assert!(!flight.is_any());
                    for (nth, range) in (0..).zip([all[first], all[second], all[first]]) {
                        let ticket = FIRST.wrapping_add(5 * lap + nth);
                        let (start, end) = range;
                        assert_eq!(flight.leaves(ticket, start, end), nth == 0, "{range:?}");
                        assert_eq!(flight.ticket(), Some(ticket));
                        let both = [all[first], all[second]];
                        for (start, end) in both.into_iter().take(nth as usize + 1) {
                            assert!(flight.has(start, start + 1));
                            assert!(flight.has(end - 1, end));
                            let before = both.iter().all(|(other, _)| start <= *other);
                            let after = both.iter().all(|(_, other)| end >= *other);
                            assert!(!before || !flight.has(0, start));
                            assert!(!after || !flight.has(end, usize::MAX));
                        }
                    }
                    assert!(flight.is_any());
                    flight.has_arrived();
                    assert!(!flight.has(0, usize::MAX));
                }
            }
        }
    }
}
