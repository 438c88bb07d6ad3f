//! The rings between a rank and one peer, as the rank remembers them: two ends.
//!
//! Lines of a ring have numbers, *tickets*, that count on from lap to lap. The producer's end of a
//! ring is an `Outbox`, the owner's end an `Inbox`. Nobody else changes their numbers.

use core::cell::Cell;

use flagpost_loadstore::{
    flight::{self, Flight},
    ring::FIRST,
};

use crate::line::Head;

/// The most lines of a ring that may be read after the newest data that are not placed: see
/// [`counts`].
const MOST_UNPLACED: u32 = (1 << 15) - 1;

/// The word in which an owner tells a producer two tickets of its ring. All lines before `taken`
/// are free. The entry at `placed`, or one after it, has the newest data that are not in memory: if
/// the producer's newest data were sent before, all are placed.
pub(crate) const fn counts(taken: u32, placed: u32) -> u32 {
    (taken & 0xFFFF) | placed.wrapping_shl(16)
}

/// The two tickets of such a word, of a ring to which all lines before `sent` were sent. Neither is
/// further back than a ring and [`MOST_UNPLACED`], so the low halves tell all of them.
const fn tickets(word: u32, sent: u32) -> (u32, u32) {
    (whole(word, sent), whole(word.wrapping_shr(16), sent))
}

/// The ticket with these low bits that is at or before `sent`.
const fn whole(low: u32, sent: u32) -> u32 {
    sent.wrapping_sub(sent.wrapping_sub(low) & 0xFFFF)
}

/// The producer's end of a ring: what this rank has sent to a peer.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// The next ticket.
    sent: Cell<u32>,
    /// As far as the peer was known to have taken it.
    credit: Cell<u32>,
    /// Data that have left, and are not known to be in place.
    pub(crate) flight: Flight,
    /// Data in lines of their own have left, and the peer was not asked to place them.
    asks: Cell<bool>,
    /// The last entry was a part: more of its message follows.
    more: Cell<bool>,
    /// While data are in flight: something of the peer was taken since: see
    /// [`heard`](crate::deferred::heard).
    heard: Cell<bool>,
}

impl Outbox {
    const fn new() -> Self {
        Self {
            sent: Cell::new(FIRST),
            credit: Cell::new(FIRST),
            flight: Flight::nothing(),
            asks: Cell::new(false),
            more: Cell::new(false),
            heard: Cell::new(false),
        }
    }

    /// How many lines of a ring of `entries` are free, as far as this rank knows.
    pub(crate) fn free(&self, entries: u32) -> u32 {
        entries.saturating_sub(self.sent.get().wrapping_sub(self.credit.get()))
    }

    /// The peer has said this: see [`counts`].
    pub(crate) fn hears_counts(&self, word: u32) {
        let (taken, _) = tickets(word, self.sent.get());
        self.credit.set(taken);
    }

    /// Claims `lines`, all but the first for data alone: the ticket of the first.
    pub(crate) fn claims(&self, lines: u32) -> u32 {
        self.asks.set(self.asks.get() || lines > 1);
        let ticket = self.sent.get();
        self.sent.set(ticket.wrapping_add(lines));
        ticket
    }

    /// This entry leaves. True if it is a part of a message, and neither its first nor its last.
    pub(crate) fn leaves_between(&self, head: &Head) -> bool {
        let open = self.more.get();
        self.more.set(head.leaves_open(open));
        open && head.part && head.len > 0
    }

    /// True if all that was sent was taken, of a ring that this rank sends to itself.
    pub(crate) fn is_all_taken(&self, inbox: &Inbox) -> bool {
        self.sent == inbox.taken
    }

    /// True if the data before `ticket` are in place, as the peer has said: see [`counts`].
    pub(crate) fn is_placed(&self, ticket: u32, word: u32) -> bool {
        let sent = self.sent.get();
        flight::is_placed(sent, ticket, tickets(word, sent).1)
    }

    /// All data are in place.
    pub(crate) fn has_arrived(&self) {
        self.flight.has_arrived();
        self.asks.set(false);
        self.heard.set(false);
    }

    /// True if the peer must be asked to place the data.
    pub(crate) fn must_ask(&self) -> bool {
        self.asks.get()
    }

    /// It is asked.
    pub(crate) fn asks(&self) {
        self.asks.set(false);
    }

    /// Something of the peer was taken. True if data for it are in flight.
    pub(crate) fn hears(&self) -> bool {
        self.flight.is_any().then(|| self.heard.set(true)).is_some()
    }

    /// True if the peer has data of this rank that it may not have placed, though this rank has
    /// heard of it since.
    pub(crate) fn has_heard(&self) -> bool {
        self.heard.get()
    }
}

/// The owner's end of a ring: what this rank has taken of a peer.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The next ticket to take.
    taken: Cell<u32>,
    /// The next one to read: what comes before is kept or placed, whether it is taken or not.
    seen: Cell<u32>,
    /// How many lines of the entry at `seen` were read.
    part: Cell<u8>,
    /// The entry that was read last is a part: more of its message follows.
    more: Cell<bool>,
    /// As far as the peer was told that the ring was taken, and what it is told as placed.
    told: Cell<u32>,
    placed: Cell<u32>,
}

impl Inbox {
    const fn new() -> Self {
        Self {
            taken: Cell::new(FIRST),
            seen: Cell::new(FIRST),
            part: Cell::new(0),
            more: Cell::new(false),
            told: Cell::new(FIRST),
            placed: Cell::new(FIRST),
        }
    }

    /// The next ticket to take.
    pub(crate) fn next(&self) -> u32 {
        self.taken.get()
    }

    /// True if the next entry was read before.
    pub(crate) fn has_read_ahead(&self) -> bool {
        self.taken.get() != self.seen.get()
    }

    /// True if an entry comes that no bell tells of: the next one was read before, or belongs to a
    /// message that was read in part.
    pub(crate) fn is_open(&self) -> bool {
        self.more.get() || self.has_read_ahead()
    }

    /// `lines` were taken.
    pub(crate) fn takes(&self, lines: u32) {
        self.taken.set(self.taken.get().wrapping_add(lines));
    }

    /// The next ticket to read, and how many of its lines were read.
    pub(crate) fn reading(&self) -> (u32, u8) {
        (self.seen.get(), self.part.get())
    }

    /// Some lines of the entry were read.
    pub(crate) fn reads_part(&self, lines: u8) {
        self.part.set(lines);
    }

    /// All lines of an entry were read. Its data, if it has any, are the newest now.
    pub(crate) fn reads(&self, head: &Head) {
        let entry = self.seen.get();
        self.part.set(0);
        self.more.set(head.leaves_open(self.more.get()));
        if head.len > 0 {
            self.placed.set(entry);
        }
        self.seen
            .set(entry.wrapping_add(head.lines()).wrapping_add(1));
    }

    /// How many lines were taken that the peer was not told of.
    pub(crate) fn untold(&self) -> u32 {
        self.taken.get().wrapping_sub(self.told.get())
    }

    /// True if the peer was told less than there is to tell.
    pub(crate) fn owes_word(&self) -> bool {
        self.taken != self.told || self.seen != self.placed
    }

    /// True if too many lines were read after data that are not placed: they must be now.
    pub(crate) fn lags(&self) -> bool {
        self.seen.get().wrapping_sub(self.placed.get()) >= MOST_UNPLACED
    }

    /// The [`counts`] to tell the peer; `kept`: some of its data are not placed.
    pub(crate) fn tells(&self, kept: bool) -> u32 {
        let taken = self.taken.get();
        self.told.set(taken);
        if !kept {
            self.placed.set(self.seen.get());
        }
        counts(taken, self.placed.get())
    }
}

/// The rings between this rank and a peer. Of 64 bytes, so that a shift finds it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Peer {
    /// The ring at the peer, which this rank fills.
    pub(crate) out: Outbox,
    /// This rank's ring, which the peer fills.
    pub(crate) inbox: Inbox,
}

impl Peer {
    pub(crate) const fn new() -> Self {
        Self {
            out: Outbox::new(),
            inbox: Inbox::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of twice as many lines as the low half of a ticket can count.
    #[test]
    fn a_rank_that_places_nothing_lags_from_some_line_on() {
        let inbox = Inbox::new();
        let asks = Head {
            immediate: 0,
            place: 0,
            len: 0,
            part: false,
        };
        for lines in 0..1 << 17 {
            assert_eq!(inbox.lags(), lines >= MOST_UNPLACED, "{lines} lines");
            inbox.reads(&asks);
        }
        inbox.tells(false);
        assert!(!inbox.lags(), "all is placed");
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
