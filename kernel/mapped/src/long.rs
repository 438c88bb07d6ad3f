//! Payload that is longer than an entry: it travels in lines behind it, and is assembled in the
//! owner's cache.
//!
//! # Guarantee
//! G1. As of [`held`](crate::held): the owner finds the payload of each notification that it was
//!     given; so does whoever is told afterwards, in memory.
//!
//! # Why
//! To store a line in memory behind a controller takes longer than to store it in a message buffer,
//! and to fetch it from there takes longer than from the own one. So a long put that is stored in
//! place and then announced costs about twice what send and receive take. Whole lines need not be
//! fetched at all: the owner stores them into its cache, and moves them to memory only when
//! somebody else may look.
//!
//! # Which payload
//! More than [`DATA`](crate::entry::DATA) bytes; between up to [`FEW`] ranks whose rings, of pairs
//! without bells, lie in their message buffers, on machines with lines of [`LINE`] bytes. Of any
//! length: what the ring has no room for waits. A producer that is refused in the middle knows how
//! far it has come, and goes on there. Other entries may come between. Other long payload to the
//! same rank waits until that is through, unless there was room for it [some times](crate::ring)
//! and it did not go on (its handle may have been dropped): then the owner drops what came, and
//! whoever goes on with that begins anew.
//!
//! # Memory layout (lines of the ring: the entry, then as many as it takes)
//! ```text
//!   word   0 … 6                          7
//!        ┌─────────────────────────────┬──────────────────────────────────────────┐
//!   bit31│ phase                       │ phase                                    │
//!   30…0 │ bits 30…0 of 7 words of data│ 3 bytes of data; bits 31 of words 0…6    │
//!        └─────────────────────────────┴──────────────────────────────────────────┘
//! ```
//! 31 bytes; each word says by itself that it is there, as those of an entry do
//! ([`ring`](crate::ring)). The entry has the first 12 bytes, the length of all, and how many lines
//! directly follow: a *run*, claimed at once. A further run is opened by a line of 29 bytes, which
//! says how long it is and, by a bit that no entry has, that it is none.
//!
//! # Steps of the owner
//! | when                              | it                                                                               |
//! |-----------------------------------|----------------------------------------------------------------------------------|
//! | the entry has come                | places what it holds, unless the new payload is for the same bytes               |
//! | a line has come                   | puts its bytes where they belong in a line of the window: a whole one it stores through its cache, of one that is not whole it keeps the bytes ([`edges`](crate::edges)) |
//! | the last one has                  | takes the notification: it *holds* the payload                                   |
//! | three quarters of a ring are taken since, or a half and nothing else is to do; or its queue is full, so that it takes no more | tells how many, by the word `room` |
//! | refreshes or publishes own lines  | leaves out whole ones that it holds                                              |
//! | places                            | stores the edges past the cache; writes back the whole lines; drains; stores head |
//!
//! It places, also what has only come in part, when it tells anybody but the producer, gets
//! anything past its cache, or gives memory back; and when the producer asks by an entry: that does
//! so when it must know (a flush, or a put to the same bytes that goes another way).
//!
//! Remote accesses of n bytes: 1 line, one more per 31 bytes beyond 12, a load of `room` per lap;
//! at the owner, a store per three quarters of a lap. To flush them: 1 line, and loads of `head`
//! until it has come.
//!
//! # Invariants
//! I1. A line that is held was written through the owner's cache, whole: it is there, newer than in
//!     memory, or in memory.
//! I2. Nobody but the owner stores to it: whoever may, was told by the owner, who places before; or
//!     is the producer, who waits for `head` once it has heard.
//! I3. An edge's line is not dirty in the owner's cache: own stores to it place first.
//!
//! # Bounds
//! A line that is assembled, two edges, and where lines are held, of each of up to [`FEW`] rings.

use core::{cell::Cell, ptr};

use flagpost_hal::{Address, Lines, Machine, Region};
use flagpost_link::{Link as _, Rank, order, point};

use crate::{
    Atomics, Mapped, Ring,
    edges::Edge,
    entry::{self, Entry, Line, WORDS, phase},
    layout::{Layout, round_up},
    peer::Peer,
    take::Words,
};

/// Most ranks, and rings of each.
pub(crate) const FEW: usize = 4;

/// Bytes of the lines that it is for.
pub(crate) const LINE: usize = 32;

/// Looks at a line that has not come: its producer stores it without waiting for anything.
const LOOKS: u32 = 2;

/// So many lines are taken of a ring of `entries`, and its producer is told: there is enough left
/// for it to go on meanwhile.
const fn due(entries: u32) -> u32 {
    let rest = entries.wrapping_shr(2);
    let due = entries.wrapping_sub(rest);
    if due > 0 { due } else { 1 }
}

/// Payload of one ring's producer that is under way, or held.
#[derive(Debug)]
pub(crate) struct Long {
    immediate: Cell<u32>,
    /// Where it starts, where its next byte belongs, and where it ends, from the start of the
    /// memory region.
    start: Cell<u32>,
    next: Cell<u32>,
    end: Cell<u32>,
    /// Lines that directly follow what was taken.
    run: Cell<u32>,
    /// The line of the next byte, as far as it has come.
    line: Cell<[u8; LINE]>,
    /// The lines that are held, from the start of the memory region.
    first: Cell<u32>,
    behind: Cell<u32>,
    /// What is held besides: at its start, and at its end.
    edges: [Cell<Edge>; 2],
    /// Some has come that is not placed.
    owed: Cell<bool>,
}

impl Long {
    pub(crate) const fn new() -> Self {
        Self {
            immediate: Cell::new(0),
            start: Cell::new(0),
            next: Cell::new(0),
            end: Cell::new(0),
            run: Cell::new(0),
            line: Cell::new([0; LINE]),
            first: Cell::new(0),
            behind: Cell::new(0),
            edges: [const { Cell::new(Edge::NONE) }; 2],
            owed: Cell::new(false),
        }
    }

    /// Whether some of it is still to come.
    #[inline]
    fn is_under_way(&self) -> bool {
        self.next.get() != self.end.get()
    }

    pub(crate) fn is_owed(&self) -> bool {
        self.owed.get()
    }

    pub(crate) fn edges(&self) -> &[Cell<Edge>] {
        &self.edges
    }

    fn begin(&self, entry: &Entry, end: u32) {
        self.immediate.set(entry.immediate);
        self.start.set(entry.place);
        self.next.set(entry.place);
        self.end.set(end);
        self.run.set(entry.run);
    }

    /// Whether payload for these bytes will cover all that is held: then that need not be placed.
    fn is_covered(&self, start: u32, end: u32) -> bool {
        if self.edges.iter().any(|edge| edge.get().len > 0) {
            return (self.start.get(), self.end.get()) == (start, end);
        }
        let whole = end & !(LINE as u32).wrapping_sub(1);
        self.first.get() == round_up(start, LINE as u32) && self.behind.get() <= whole
    }

    /// A whole line is in the cache.
    fn holds(&self, line: u32) {
        let behind = line.saturating_add(LINE as u32);
        if self.first.get() == self.behind.get() {
            self.first.set(line);
            self.behind.set(behind);
        } else {
            // Of payload for the same bytes as what is held, some of which was placed meanwhile.
            self.first.set(self.first.get().min(line));
            self.behind.set(self.behind.get().max(behind));
        }
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// Whether such a layout takes long payload.
    pub(crate) fn takes_long(layout: &Layout, ranks: u16) -> bool {
        let of_pairs = matches!(layout.ring, Ring::Pairs { .. }) && usize::from(ranks) <= FEW;
        !M::COHERENT && layout.in_buffer && M::LINE == LINE && of_pairs
    }

    /// The state of ring `number`.
    #[inline]
    pub(crate) fn long_of(&self, number: u32) -> Option<&Long> {
        self.longs.get(number as usize).filter(|_| self.takes_long)
    }

    /// Begins to take what `entry` of ring `number` announces: so many bytes, and the first of
    /// them. What was under way does not go on.
    pub(crate) fn begin_long(&self, entry: &Entry, (total, first): (u32, &[u8]), number: u32) {
        let fits = self.check(entry.place, total as usize).is_ok();
        let Some(long) = self.long_of(number).filter(|_| fits) else {
            return;
        };
        let end = entry.place.saturating_add(total);
        let peer = self.peers.get(number as usize);
        let covers = long.is_owed()
            && self.owes_only(number)
            && long.is_covered(entry.place, end)
            && !peer.is_some_and(Peer::lags);
        // PLACE: lines of what is held may be stored to past the cache now.
        point!(
            "mapped.long.begin",
            if !covers {
                self.place_held();
            }
        );
        long.begin(entry, end);
        self.feed(long, first);
    }

    /// Takes the lines of ring `number` that directly follow. None if one has not come; of the
    /// last, its notification.
    #[inline]
    pub(crate) fn take_run(
        &self,
        rings: Region,
        number: u32,
        taken: &Cell<u32>,
        long: &Long,
    ) -> Option<Option<u32>> {
        while long.run.get() > 0 {
            let ticket = taken.get();
            let at = self.entry(rings, number, ticket);
            let phase = phase(self.lap(ticket));
            let words = (0..LOOKS).find_map(|_| self.look_line(at, phase))?;
            long.run.set(long.run.get().wrapping_sub(1));
            // TAKEN: behind it: to place others' payload on the way may tell how far this ring is
            // placed, and the line is in hand.
            self.feed(long, &entry::unpack_line(words));
            taken.set(ticket.wrapping_add(1));
            self.tell_room(rings, number);
            if !long.is_under_way() {
                self.owe(long);
                return Some(Some(long.immediate.get()));
            }
        }
        Some(None)
    }

    /// Takes the line of ring `number` that has these words, which goes on with long payload: None
    /// if not all of it has come; of the last, its notification.
    pub(crate) fn take_more(
        &self,
        rings: Region,
        (words, phase): (&Words, u32),
        number: u32,
        taken: &Cell<u32>,
    ) -> Option<Option<u32>> {
        let line = self.whole(words, phase)?;
        let (run, bytes) = entry::unpack_more(line);
        let long = self.long_of(number).filter(|long| long.is_under_way());
        if let Some(long) = long {
            long.run.set(run);
            // TAKEN: behind it, as above.
            self.feed(long, &bytes);
        }
        taken.set(taken.get().wrapping_add(1));
        self.tell_room(rings, number);
        let Some(long) = long else {
            return Some(None);
        };
        if !long.is_under_way() {
            self.owe(long);
            return Some(Some(long.immediate.get()));
        }
        Some(None)
    }

    /// The line at `at`, if all of it is there.
    fn look_line(&self, at: Address, phase: u32) -> Option<Line> {
        let mut words = self.words(at);
        self.look_first(|| self.load_first(&mut words), at, phase)?;
        self.whole(&words, phase)
    }

    /// All words of a line whose first one has come, if they have.
    fn whole(&self, words: &Words, phase: u32) -> Option<Line> {
        let mut line = [[0; 4]; WORDS];
        for (number, to) in (0_u32..).zip(&mut line) {
            let word = self.load(words, number);
            let here = Entry::is_of(word, phase);
            if !point!("mapped.long.whole", here; else true) {
                self.polled.note(words.of(number), word);
                return None;
            }
            *to = word.to_le_bytes();
        }
        Some(line)
    }

    /// The next bytes of some payload have come; those behind its end do not count.
    fn feed(&self, long: &Long, bytes: &[u8]) {
        let mut line = long.line.get();
        let (start, end) = (long.start.get(), long.end.get());
        let mut next = long.next.get();
        for byte in bytes {
            if next == end {
                break;
            }
            let within = next & (LINE as u32).wrapping_sub(1);
            if let Some(to) = line.get_mut(within as usize) {
                *to = *byte;
            }
            next = next.wrapping_add(1);
            let base = next.wrapping_sub(1).wrapping_sub(within);
            if within.wrapping_add(1) == LINE as u32 || next == end {
                self.store_line(long, base, &line, (start.max(base), next));
            }
        }
        long.next.set(next);
        long.line.set(line);
    }

    /// The line at `base` of own memory is complete from `from` to `to`.
    fn store_line(&self, long: &Long, base: u32, line: &[u8; LINE], (from, to): (u32, u32)) {
        self.place_beside(long, base);
        // Also what the producer never goes on with: its memory may become another window.
        self.owe(long);
        if to.wrapping_sub(from) == LINE as u32 {
            self.machine.write(self.own(base), line);
            long.holds(base);
            return;
        }
        let len = to.wrapping_sub(from);
        let mut bytes = [0; LINE];
        let skipped = from.wrapping_sub(base) as usize;
        for (to, from) in bytes.iter_mut().zip(line.iter().skip(skipped)) {
            *to = *from;
        }
        let at = from;
        let [head, tail] = &long.edges;
        let edge = if at == long.start.get() { head } else { tail };
        edge.set(Edge { at, len, bytes });
    }

    /// Places what is held of the line at `base`, but for what `long` holds.
    #[inline]
    fn place_beside(&self, long: &Long, base: u32) {
        let behind = base.saturating_add(LINE as u32);
        if self.entry_touches(base, behind) {
            // PLACE: I1 of `held`.
            point!("mapped.long.line.entry", self.place_entry());
        }
        let touches = |other: &Long| {
            let lines = other.first.get() < behind && base < other.behind.get();
            lines
                || other
                    .edges
                    .iter()
                    .any(|edge| edge.get().touches(base, behind))
        };
        let mut others = self.longs.iter().filter(|other| !ptr::eq(*other, long));
        if self.holds_lines() && others.any(touches) {
            // PLACE: I3.
            point!("mapped.long.line.others", self.place_held());
        }
    }

    /// Writes back all that ring `number` owes, and gives its lines back.
    pub(crate) fn place_long(&self, number: u32, long: &Long) {
        long.owed.set(false);
        for edge in long.edges.iter().map(|edge| edge.replace(Edge::NONE)) {
            self.store_own(edge.at, edge.data());
        }
        let first = long.first.take();
        let bytes = long.behind.take().saturating_sub(first);
        order!(
            "mapped.long.place<head",
            {
                // WRITE BACK: G1.
                point!(
                    "mapped.long.write_back",
                    self.machine.write_back(&[self.lines(first, bytes)])
                );
                // DRAIN: G1.
                point!("mapped.long.drain", self.machine.drain());
            },
            self.give_back(number)
        );
    }

    /// Stores how far ring `number` was taken.
    pub(crate) fn give_back(&self, number: u32) {
        if let (Ok(rings), Some(peer)) =
            (self.rings_of(self.rank()), self.peers.get(number as usize))
        {
            let taken = peer.taken.get();
            peer.placed_to.set(taken);
            self.machine.store_u32(self.head(rings, number), taken);
        }
    }

    /// Tells the producer of ring `number` of room, if most of the ring was taken since: what was
    /// taken need not be in place.
    pub(crate) fn tell_room(&self, rings: Region, number: u32) {
        if self.takes_long {
            self.tell_from(rings, number, due(self.layout.ring.entries()));
        }
    }

    /// The same where there is nothing else to do, already for a half of the ring.
    pub(crate) fn tell_idle(&self, rings: Region, number: u32) {
        self.tell_from(
            rings,
            number,
            self.layout.ring.entries().wrapping_shr(1).max(1),
        );
    }

    /// The same for all rings, of whatever was taken.
    #[inline(never)]
    pub(crate) fn tell_all_room(&self) {
        if let Ok(rings) = self.rings_of(self.rank()) {
            (0..self.size().into()).for_each(|number| self.tell_from(rings, number, 1));
        }
    }

    fn tell_from(&self, rings: Region, number: u32, least: u32) {
        if let Some(peer) = self.peers.get(number as usize) {
            let taken = peer.taken.get();
            if taken.wrapping_sub(peer.told.get()) >= least {
                peer.told.set(taken);
                // No drain is needed: I4 of `ring`.
                self.machine.store_u32(self.room(rings, number), taken);
            }
        }
    }

    /// Asks `to` to place what it holds of this rank's, if it may hold long payload and was not
    /// asked; later, if there is no room.
    pub(crate) fn ask(&self, to: Rank, peer: &Peer) {
        if peer.asks.get()
            && let (Ok(rings), Ok(ticket)) = (self.rings_of(to), self.claim(to))
        {
            peer.asks.set(false);
            self.enter_entry(rings, to, ticket, Entry::ASKING);
            self.leave();
        }
    }

    /// Something has come that is not placed.
    fn owe(&self, long: &Long) {
        long.owed.set(true);
        self.held.owe();
    }

    /// Calls `act` with the lines of these bytes of own memory, but for those that are held.
    #[inline]
    pub(crate) fn beside_held(&self, start: u32, bytes: u32, mut act: impl FnMut(&[Lines])) {
        let end = start.saturating_add(bytes);
        let mut from = start;
        if !M::COHERENT {
            while let Some((first, behind)) = self.first_held(from, end) {
                if first > from {
                    act(&[self.lines(from, first.wrapping_sub(from))]);
                }
                if behind >= end {
                    return;
                }
                from = behind;
            }
        }
        act(&[self.lines(from, end.wrapping_sub(from))]);
    }

    /// The first lines between `from` and `end` that are held.
    #[inline]
    fn first_held(&self, from: u32, end: u32) -> Option<(u32, u32)> {
        let held = |long: &Long| (long.first.get(), long.behind.get());
        let all = self.longs.iter().map(held);
        all.filter(|(first, behind)| first < behind && *first < end && from < *behind)
            .min()
    }
}
