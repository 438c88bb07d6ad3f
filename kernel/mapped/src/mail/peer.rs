//! What a rank remembers of the mail between itself and one peer.
//!
//! Lines of a ring have numbers, *tickets*, that count on from lap to lap. A rank remembers how far
//! each of its two rings with a peer has come: the one that it fills, and the one that it reads.

use core::cell::Cell;

use flagpost_link::Rank;

use super::ring::FIRST;

/// So many lines of a ring may be read whose data are not placed: see [`counts`].
pub(crate) const MOST_UNPLACED: u32 = (1 << 15) - 1;

/// The word in which an owner tells a producer two tickets of its ring: all lines before `taken`
/// are free, and the data of all entries before `placed` are in memory.
pub(crate) const fn counts(taken: u32, placed: u32) -> u32 {
    (taken & 0xFFFF) | placed.wrapping_shl(16)
}

/// The two tickets of such a word, of a ring to which all lines before `sent` were sent. Neither is
/// further back than a ring and [`MOST_UNPLACED`], so the low halves tell all of them.
pub(crate) const fn tickets(word: u32, sent: u32) -> (u32, u32) {
    (whole(word, sent), whole(word.wrapping_shr(16), sent))
}

/// The ticket with these low bits that is at or before `sent`.
const fn whole(low: u32, sent: u32) -> u32 {
    sent.wrapping_sub(sent.wrapping_sub(low) & 0xFFFF)
}

/// Whether a ring of so many entries has room for `ticket`, as an older view of what was taken
/// tells: others may have sent any number since, so it is believed only where it leaves no doubt.
pub(crate) const fn surely_has_room(ticket: u32, taken: u32, entries: u32) -> bool {
    ticket.wrapping_sub(taken) < entries
}

/// Whether all before `ticket` is placed, of a ring to which all before `sent` were sent: both are
/// looked at from there on back, since any number may have been sent after `ticket`.
pub(crate) const fn is_placed(sent: u32, ticket: u32, placed: u32) -> bool {
    sent.wrapping_sub(placed) <= sent.wrapping_sub(ticket)
}

/// What a rank remembers of its two rings with a peer. Of 64 bytes, so that a shift finds it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Peer {
    // ---- The ring at the peer, which this rank fills ----
    /// The next ticket.
    pub(crate) sent: Cell<u32>,
    /// As far as the peer was known to have taken it.
    pub(crate) credit: Cell<u32>,
    /// The ticket after the last data under way to the peer in its ring,
    ticket: Cell<u32>,
    /// and the bytes that they are for, and perhaps others between them. Where `end` is 0, none are
    /// under way.
    start: Cell<u32>,
    end: Cell<u32>,
    /// Lines: data in lines of their own have left, and the peer was not asked to place them.
    pub(crate) asks: Cell<bool>,
    /// Records: a flush has found that data before this ticket are in place.
    pub(crate) claimed: Cell<u32>,
    /// While data are under way: something of the peer was taken since: see
    /// [`heard`](crate::deferred::heard).
    heard: Cell<bool>,
    /// Shared: the peer whose `credit` this is.
    pub(crate) known: Cell<Option<Rank>>,

    // ---- The own ring, which the peer fills ----
    /// The next ticket to take. Shared, of the first peer: of the ring of all.
    pub(crate) taken: Cell<u32>,
    /// The next one to read: what comes before is kept or placed, whether it is taken or not.
    pub(crate) seen: Cell<u32>,
    /// How many lines of the entry at `seen` were read.
    pub(crate) part: Cell<u8>,
    /// As far as the peer was told that the ring was taken, and placed.
    pub(crate) told: Cell<u32>,
    pub(crate) placed: Cell<u32>,
    /// Whose ring is looked at after the peer's: this rank's own is left out, since it knows what
    /// is in it.
    pub(crate) next: Cell<Rank>,
    /// The word that tells the peer, from the start of the region.
    pub(crate) head: Cell<u32>,
}

impl Peer {
    pub(crate) const fn new() -> Self {
        Self {
            sent: Cell::new(FIRST),
            credit: Cell::new(FIRST),
            ticket: Cell::new(FIRST),
            start: Cell::new(u32::MAX),
            end: Cell::new(0),
            asks: Cell::new(false),
            claimed: Cell::new(FIRST),
            heard: Cell::new(false),
            known: Cell::new(None),
            taken: Cell::new(FIRST),
            seen: Cell::new(FIRST),
            part: Cell::new(0),
            told: Cell::new(FIRST),
            placed: Cell::new(FIRST),
            next: Cell::new(Rank::new(0)),
            head: Cell::new(0),
        }
    }

    /// The ticket after the last data that are under way, if any are.
    pub(crate) fn under_way(&self) -> Option<u32> {
        (self.end.get() > 0).then(|| self.ticket.get())
    }

    /// Whether data for some of these bytes may be under way.
    pub(crate) fn has_under_way(&self, start: u32, end: u32) -> bool {
        self.start.get() < end && start < self.end.get()
    }

    /// Data for these bytes leave, in an entry before ticket `after`. True if they are the only
    /// ones under way.
    #[inline(always)]
    pub(crate) fn leaves(&self, after: u32, start: u32, end: u32) -> bool {
        self.ticket.set(after);
        (start < self.start.get() || end > self.end.get()) && self.widens(start, end)
    }

    #[inline(never)]
    fn widens(&self, start: u32, end: u32) -> bool {
        let others = self.end.get();
        if others == 0 {
            // What comes before the first data under way needs no look.
            self.claimed.set(self.ticket.get().wrapping_sub(1));
        }
        self.start.set(self.start.get().min(start));
        self.end.set(others.max(end));
        others == 0
    }

    /// All data are in place.
    pub(crate) fn has_arrived(&self) {
        self.start.set(u32::MAX);
        self.end.set(0);
        self.asks.set(false);
        self.heard.set(false);
    }

    /// Whether the peer has data of this rank that it may not have placed, though this rank has
    /// heard of it since.
    pub(crate) fn has_told(&self) -> bool {
        self.heard.get()
    }

    /// Something of the peer was taken. True if data for it are under way.
    pub(crate) fn hears(&self) -> bool {
        (self.end.get() > 0).then(|| self.heard.set(true)).is_some()
    }

    /// How many lines were taken that the peer was not told of.
    pub(crate) fn untold(&self) -> u32 {
        self.taken.get().wrapping_sub(self.told.get())
    }

    /// Whether so much was read that is not placed that it must be now.
    pub(crate) fn lags(&self) -> bool {
        self.seen.get().wrapping_sub(self.placed.get()) >= MOST_UNPLACED
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
                let peer = Peer::new();
                for lap in 0..3 {
                    assert_eq!(peer.under_way(), None);
                    assert!(!peer.hears() && !peer.has_told());
                    for (nth, range) in (0..).zip([all[first], all[second], all[first]]) {
                        let ticket = FIRST.wrapping_add(5 * lap + nth);
                        let (start, end) = range;
                        assert_eq!(peer.leaves(ticket, start, end), nth == 0, "{range:?}");
                        assert_eq!(peer.under_way(), Some(ticket));
                        let both = [all[first], all[second]];
                        for (start, end) in both.into_iter().take(nth as usize + 1) {
                            assert!(peer.has_under_way(start, start + 1));
                            assert!(peer.has_under_way(end - 1, end));
                            let before = both.iter().all(|(other, _)| start <= *other);
                            let after = both.iter().all(|(_, other)| end >= *other);
                            assert!(!before || !peer.has_under_way(0, start));
                            assert!(!after || !peer.has_under_way(end, u32::MAX));
                        }
                    }
                    assert!(peer.hears() && peer.has_told());
                    peer.has_arrived();
                    assert!(!peer.has_under_way(0, u32::MAX));
                }
            }
        }
    }

    #[test]
    fn tickets_come_back_from_their_low_halves() {
        let most = (1 << 15) + MOST_UNPLACED;
        for sent in [0, 5, 0xFFFF, 0x1_0000, 1 << 31, u32::MAX] {
            for (ago, longer_ago) in [(0, 0), (0, 1), (7, most), (1 << 15, most), (most, 3)] {
                let (taken, placed) = (sent.wrapping_sub(ago), sent.wrapping_sub(longer_ago));
                assert_eq!(tickets(counts(taken, placed), sent), (taken, placed));
            }
        }
    }
}
