//! What a rank remembers of the rings between itself and each peer, and how their numbers are
//! compared: see [`ring`](crate::ring).

use core::cell::Cell;

use flagpost_link::Rank;

use crate::ring::FIRST;

/// How often one leaves room to others' payload that is under way, though that does not take it.
const PATIENCE: u8 = 8;

/// So many lines are taken that are not placed, at most and about.
const MOST_UNPLACED: u32 = 1 << 30;

/// Whether a ring of so many entries has room for `ticket`, as an older view of its head tells:
/// others may have sent any number since, so it is believed only where it leaves no doubt.
pub(crate) const fn surely_has_room(ticket: u32, head: u32, entries: u32) -> bool {
    ticket.wrapping_sub(head) < entries
}

/// Whether all before `ticket` is placed, of a ring to which all before `sent` were sent: both are
/// looked at from there on back, since any number may have been sent behind `ticket`.
pub(crate) const fn is_placed(sent: u32, ticket: u32, head: u32) -> bool {
    sent.wrapping_sub(head) <= sent.wrapping_sub(ticket)
}

/// What a rank remembers of the rings between itself and some peer. Of 64 bytes, so that a shift
/// finds it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Peer {
    /// Pairs: the next ticket of the peer's ring.
    pub(crate) sent: Cell<u32>,
    /// `head` of the peer's ring, when it was last looked at.
    pub(crate) credit: Cell<u32>,
    /// Pairs: the next ticket to take of the own ring that the peer fills. Shared, of the first
    /// peer: of the own ring.
    pub(crate) taken: Cell<u32>,
    /// Pairs: as far as the peer was told that its ring was taken (`room`), and placed (`head`).
    pub(crate) told: Cell<u32>,
    pub(crate) placed_to: Cell<u32>,
    /// Long payload has left for the peer, which was not asked to place it.
    pub(crate) asks: Cell<bool>,
    /// The number of the long payload that went to the peer last: odd, so never 0. Whether some of
    /// it is still to leave; and how often there was room for that, which others left to it in
    /// vain.
    stream: Cell<u32>,
    live: Cell<bool>,
    patience: Cell<u8>,
    /// Pairs: the ticket behind the last inline payload that is under way to the peer,
    ticket: Cell<u32>,
    /// and the bytes that it is for, and perhaps others between them. Where `end` is 0, none is
    /// under way.
    start: Cell<u32>,
    end: Cell<u32>,
    /// Shared: the peer whose `credit` this is.
    pub(crate) known: Cell<Option<Rank>>,
    /// Pairs: whose ring is looked at behind the peer's: this rank's own is left out, since it
    /// knows what is in it.
    pub(crate) next: Cell<Rank>,
    /// Pairs: the word with the head of the own ring that the peer fills, from the start of the
    /// region.
    pub(crate) head: Cell<u32>,
    /// While inline payload is under way: something of the peer was taken since: see
    /// [`held`](crate::held).
    heard: Cell<bool>,
}

impl Peer {
    pub(crate) const fn new() -> Self {
        Self {
            sent: Cell::new(FIRST),
            credit: Cell::new(FIRST),
            taken: Cell::new(FIRST),
            told: Cell::new(FIRST),
            placed_to: Cell::new(FIRST),
            asks: Cell::new(false),
            stream: Cell::new(1),
            live: Cell::new(false),
            patience: Cell::new(0),
            ticket: Cell::new(FIRST),
            start: Cell::new(u32::MAX),
            end: Cell::new(0),
            known: Cell::new(None),
            next: Cell::new(Rank::new(0)),
            head: Cell::new(0),
            heard: Cell::new(false),
        }
    }

    /// The ticket behind the last inline payload that is under way, if any is.
    pub(crate) fn inline(&self) -> Option<u32> {
        (self.end.get() > 0).then(|| self.ticket.get())
    }

    /// Other long payload begins to leave: who goes on with what has begun to, begins anew.
    pub(crate) fn begins(&self) {
        self.stream.set(self.stream.get().wrapping_add(2));
    }

    /// Some more of it has left; or all.
    pub(crate) fn goes_on(&self, all: bool) {
        self.live.set(!all);
        self.patience.set(0);
    }

    /// There is room. Whether other payload than what is under way must leave that to it: not for
    /// ever, it may have been dropped.
    pub(crate) fn yields(&self) -> bool {
        let waited = self.patience.get();
        self.patience.set(waited.saturating_add(1));
        self.live.get() && waited < PATIENCE
    }

    /// An entry of the peer tells, but for bit 31, how many it has taken.
    pub(crate) fn has_room(&self, taken: u32) {
        let credit = self.credit.get();
        let more = taken.wrapping_sub(credit) & !(1 << 31);
        // Else older than what was looked at since.
        if more < 1 << 30 {
            self.credit.set(credit.wrapping_add(more));
        }
    }

    /// Whether half of its ring, of so many entries, may be full: then entries from there are asked
    /// how many were taken.
    pub(crate) fn wants_room(&self, entries: u32) -> bool {
        self.sent.get().wrapping_sub(self.credit.get()) >= entries.wrapping_shr(1)
    }

    /// Whether what is taken must be placed: `head` must not fall behind by so much that it seems
    /// to be ahead.
    pub(crate) fn lags(&self) -> bool {
        self.taken.get().wrapping_sub(self.placed_to.get()) >= MOST_UNPLACED
    }

    /// The number of the long payload that is under way.
    pub(crate) fn stream(&self) -> u32 {
        self.stream.get()
    }

    /// Whether inline payload for some of these bytes may be under way.
    pub(crate) fn has_inline(&self, start: u32, end: u32) -> bool {
        self.start.get() < end && start < self.end.get()
    }

    /// Inline payload for these bytes leaves. True if it is the only one.
    #[inline(always)]
    pub(crate) fn leaves(&self, behind: u32, start: u32, end: u32) -> bool {
        self.ticket.set(behind);
        (start < self.start.get() || end > self.end.get()) && self.widens(start, end)
    }

    /// These bytes are not among those that inline payload under way is for. True if there is no
    /// other.
    #[inline(never)]
    fn widens(&self, start: u32, end: u32) -> bool {
        let others = self.end.get();
        self.start.set(self.start.get().min(start));
        self.end.set(others.max(end));
        others == 0
    }

    /// All inline payload is in its place.
    pub(crate) fn placed(&self) {
        self.start.set(u32::MAX);
        self.end.set(0);
        self.heard.set(false);
        self.asks.set(false);
    }

    /// Whether it has payload of this rank that it may not have placed, though this rank has heard
    /// of it.
    pub(crate) fn has_told(&self) -> bool {
        self.heard.get()
    }

    /// Something of the peer was taken. True if payload for it is under way.
    pub(crate) fn hears(&self) -> bool {
        let under_way = self.end.get() > 0;
        if under_way {
            self.heard.set(true);
        }
        under_way
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

    #[test]
    fn what_is_not_placed_is_bounded_also_where_tickets_wrap_around() {
        let peer = Peer::new();
        for (taken, lags) in [
            (FIRST, false),
            (FIRST.wrapping_add(MOST_UNPLACED - 1), false),
            (FIRST.wrapping_add(MOST_UNPLACED), true),
            (FIRST.wrapping_add(i32::MAX as u32), true),
        ] {
            peer.taken.set(taken);
            assert_eq!(peer.lags(), lags, "{taken:#x}");
        }
        peer.placed_to.set(peer.taken.get());
        assert!(!peer.lags());
    }
}
