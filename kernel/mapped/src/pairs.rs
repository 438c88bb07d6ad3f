//! Mail between two ranks of a machine without coherence: a ring of lines per pair.
//!
//! Every rank has one ring per peer, which only that peer fills. So a producer needs no lock: it
//! stores the entry, and each word of the entry says by itself that it has come
//! ([`line`](mod@super::line)). Data of up to `DATA` bytes travel in the entry. Where the ring is
//! in the message buffer, and lines have 32 bytes, longer data follow in lines of their own. Data
//! that do not fit into the room that there is are sent in *parts*: entries for which nobody is
//! notified, each with a place and data. The owner keeps the data ([`deferred`](crate::deferred))
//! and gives the lines back before the data are in memory.
//!
//! # Guarantee
//! P1. The rank that takes a notification finds its data, by its own reads; and the earlier puts of
//!     its producer to this rank in memory.
//! P2. Notifications of one producer are taken in program order.
//! P3. No entry is lost or overwritten: where there is no room the producer is refused, and has
//!     changed nothing; or has sent parts, and knows how far.
//! P4. When [`flush`](flagpost_link::Access::flush) says so, the data are in their place.
//! P5. The rank that takes a notification may store to what its producer has read before.
//!
//! # Invariants
//! I1. Only the producer writes line `t` of its ring, and only while `t - taken` is less than the
//!     number of lines, where `taken` is what the owner has told.
//! I2. All words of a line are written on every lap, so each word's phase changes with the lap.
//! I3. `taken <= seen <= sent`: what is before `seen` was read; its data are kept or in memory.
//!     `placed <= seen`: no entry before `placed` has the newest data that are not in memory.
//! I4. The owner tells `taken` after it has used each word of the entry: no load of one is later.
//!
//! # Steps
//! | call | core | memory actions, in order |
//! |---|---|---|
//! | `put_immediate` | producer | if the ring may be full: load `head`. Drain, if it has put or |
//! | | | read anything since the last. Store the lines; the bell; drain |
//! | `progress` | owner | load word 0 of the next line; acquire; load the others; keep the data |
//! | `attend` | owner | the same for all entries that have come, taken or not; place the data |
//! | `flush` | producer | if data are in flight: load `head` until it says that they are placed |
//!
//! The owner tells `head` (both counts in one word, `counts`) when it places data or attends,
//! and when most of a ring was taken since (`due`).
//!
//! # Source
//! [NA] IV-C (a ring of line-sized entries, inline payload). Phases in the words replace a shared
//! write position, which the consumer would have to poll under the lock.
//!
//! [NA]: crate#sources

use flagpost_hal::{Address, Machine, Region};
use flagpost_link::{Op, Rank, Refusal};
use flagpost_loadstore::{
    Atomics, Ring,
    announced::put_before,
    phase::{WORDS, is_of},
};

use crate::{
    LineMail,
    bells::Bells,
    deferred::{Kept, UNIT},
    line::{self, DATA, Head, LINE_DATA, Line, MOST_LINES, PART_DATA, lines_of, room},
    peer::{Inbox, Outbox, Peer},
};

/// Rings of this many lines and more are long.
const LONG: u32 = 64;

/// Lines that are taken of a ring of `entries` until its producer is told: it has enough left to
/// continue meanwhile. While data come in parts, one of them; of a long ring, a little more.
const fn due(entries: u32, in_parts: bool) -> u32 {
    match entries {
        LONG.. => entries.wrapping_shr(4).wrapping_mul(9),
        2.. if in_parts => entries.wrapping_shr(1),
        _ => entries.wrapping_sub(entries.wrapping_shr(2)),
    }
}

/// Lines that are taken of such a ring as a whole, at most, where `most` more would follow. Where
/// these do not fit, or the ring is long, it is half, so that its owner and its producer work side
/// by side.
const fn part(entries: u32, most: u32) -> u32 {
    if entries < LONG && most < entries {
        entries
    } else {
        entries.wrapping_shr(1)
    }
}

/// The least lines that follow a head of such a ring, where more data are to come.
const fn least(entries: u32) -> u32 {
    match entries.wrapping_shr(2) {
        few @ 0..2 => few,
        _ => 2,
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize> LineMail<M, A, PEERS> {
    // ---- The producer ----

    /// Sends `data` for `place` at `to`, and `immediate` with the last of them. Data that do not
    /// `travel` go to their place before. Refused in the middle, `op` knows how many bytes have
    /// left.
    pub(crate) fn send_lines(
        &self,
        (to, out): (Rank, &Outbox),
        (place, data): (usize, &[u8]),
        immediate: u32,
        travel: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        let answers = self.deferred.is_busy() && self.may_send(to)?;
        let end = place.saturating_add(data.len());
        let mut sent = op.begun.get();
        loop {
            let rest = data.get(sent..).filter(|_| travel).unwrap_or(&[]);
            let ((ticket, lines), ()) = order!("refused, nothing has moved":
                "mapped.pairs.claim<data",
                self.claim_lines(to, out, lines_of(rest.len(), DATA))?,
                if !travel {
                    put_before(self, to, place, data);
                }
            );
            let part = rest.len() > room(DATA, lines);
            let most = room(if part { PART_DATA } else { DATA }, lines);
            let len = rest.len().min(most);
            let head = Head {
                immediate,
                place: place.saturating_add(sent),
                len,
                part,
            };
            let after = ticket.wrapping_add(lines).wrapping_add(1);
            self.store_entry((to, out), (ticket, after), head, rest)?;
            if len > 0 && out.flight.leaves(after, place, end) {
                self.in_flight.set(self.in_flight.get().saturating_add(1));
            }
            if !head.part {
                break;
            }
            sent = sent.saturating_add(len);
            op.begun.set(sent);
        }
        op.begun.set(0);
        if answers {
            point!(PLACE "the next call may come late":
                "mapped.deferred.answered", self.place_kept(Kept::Pieces));
        }
        Ok(())
    }

    /// Stores an entry and its lines: those from a ticket to before another one. A message of many
    /// parts rings for the first and the last: its owner looks for the others without a bell.
    fn store_entry(
        &self,
        (to, out): (Rank, &Outbox),
        (ticket, after): (u32, u32),
        head: Head,
        data: &[u8],
    ) -> Result<(), Refusal> {
        let (rings, number) = (self.base.rings_of(to)?, self.base.rank().get().into());
        let store = |ticket: u32, line: Line| {
            let at = self.base.layout.entry(rings, number, ticket, Self::ENTRY);
            self.base.machine.store_bytes(at, line.as_flattened());
        };
        order!("data are in memory before the entry for them": "mapped.pairs.send.drain<entry",
            if self.unordered.take() {
                point!(DRAIN "P1, P5: what was put, or read, before the entry":
                    "mapped.pairs.send.drain", self.base.machine.drain());
            },
            store(ticket, head.pack(data, self.base.layout.phase(ticket))));
        let mut next = ticket.wrapping_add(1);
        for data in data.get(head.first()..).unwrap_or(&[]).chunks(LINE_DATA) {
            if next == after {
                break;
            }
            store(next, line::pack_line(data, self.base.layout.phase(next)));
            next = next.wrapping_add(1);
        }
        let between = out.leaves_between(&head);
        if let (Ring::Bells { .. }, false) = (self.base.layout.ring, between) {
            Bells::ring(&self.base, rings, after);
        }
        point!(DRAIN "else the line might stay in this core's buffer for ever":
            "mapped.pairs.send.leave", self.base.machine.drain());
        self.base.told(to);
        Ok(())
    }

    /// Takes a ticket of the ring at `to` that this rank fills, and up to `most` after it: how
    /// many.
    pub(crate) fn claim_lines(
        &self,
        to: Rank,
        out: &Outbox,
        most: u32,
    ) -> Result<(u32, u32), Refusal> {
        let entries = self.base.layout.ring.entries();
        let least = most.min(least(entries));
        if out.free(entries) <= least {
            self.find_room(to, out, least)?;
        }
        let lines = most
            .min(MOST_LINES)
            .min(part(entries, most).saturating_sub(1))
            .min(out.free(entries).saturating_sub(1))
            .max(least);
        Ok((out.claims(lines.wrapping_add(1)), lines))
    }

    /// Looks whether a ring has room for `least` lines and one more.
    #[inline(never)]
    fn find_room(&self, to: Rank, out: &Outbox, least: u32) -> Result<(), Refusal> {
        let at = self.head_at(to)?;
        let word = self.base.machine.load_u32(at);
        out.hears_counts(word);
        let is_full = out.free(self.base.layout.ring.entries()) <= least;
        if point!(ROOM "P3: no line is written over before it is taken":
            "mapped.pairs.room", is_full; else false)
        {
            self.base.polled.note(at, word);
            return Err(Refusal::Full(to));
        }
        Ok(())
    }

    /// The word in which `to` tells this rank how far its ring was taken and placed.
    fn head_at(&self, to: Rank) -> Result<Address, Refusal> {
        let number = self.base.rank().get().into();
        Ok(self.base.layout.head(self.base.rings_of(to)?, number))
    }

    /// `Ok` if the data in flight to `to`, until `ticket`, are in place, as their owner has told.
    pub(crate) fn lines_placed(
        &self,
        to: Rank,
        out: &Outbox,
        ticket: u32,
    ) -> Result<bool, Refusal> {
        let placed = |word: u32| out.is_placed(ticket, word);
        let sites = [
            site!(ORDER "loaded before the acquire": "mapped.pairs.placed.poll<acquire"),
            site!(ACQUIRE "what is loaded later is not older": "mapped.pairs.placed.acquire"),
        ];
        let word = self.base.poll_for(self.head_at(to)?, placed, sites);
        let is_placed = point!(WAIT "the data are in their place when a flush returns":
            "mapped.pairs.placed.wait", placed(word); else true);
        if !is_placed && out.must_ask() {
            point!(NOTIFY "lines that a cache keeps are placed only if a producer asks":
                "mapped.pairs.ask", self.ask(to, out)?);
        }
        Ok(is_placed)
    }

    /// Asks `to` to place what it keeps of this rank's, by an entry without data that notifies
    /// nobody. Later, if there is no room.
    fn ask(&self, to: Rank, out: &Outbox) -> Result<(), Refusal> {
        if let Ok((ticket, _)) = self.claim_lines(to, out, 0) {
            out.asks();
            let asks = Head {
                immediate: 0,
                place: 0,
                len: 0,
                part: true,
            };
            self.store_entry((to, out), (ticket, ticket.wrapping_add(1)), asks, &[])?;
            // The load of `head` may be late, and bring the answer already: look once more.
            self.base.polled.note_unknown();
        }
        Ok(())
    }

    // ---- The owner ----

    /// Takes the next notification of `source`, if there is one.
    #[inline]
    pub(crate) fn take_lines(&self, rings: Region, source: Rank, inbox: &Inbox) -> Option<u32> {
        let number = source.get().into();
        // Each turn takes a line at least.
        for _ in 0..self.base.layout.ring.entries() {
            let head = if inbox.has_read_ahead() {
                // Its words are looked at again, as those of an entry that has just come: I4.
                Head::unpack(&self.look_line(rings, number, inbox.next())?).0
            } else {
                self.read_entry(rings, number, inbox)?
            };
            inbox.takes(head.lines().wrapping_add(1));
            if inbox.untold() >= due(self.base.layout.ring.entries(), head.part) {
                self.tell_counts(rings, number, inbox);
            }
            if !head.part {
                return Some(head.immediate);
            }
        }
        // There may be more.
        self.base.polled.note_unknown();
        None
    }

    /// Reads all entries of a ring that have come, taken or not. Each finds its room: what is not
    /// taken stays in the ring.
    pub(crate) fn read_ring(&self, rings: Region, number: u32, inbox: &Inbox) {
        for _ in 0..self.base.layout.ring.entries() {
            if self.read_entry(rings, number, inbox).is_none() {
                return;
            }
        }
    }

    /// Reads the next entry of ring `number` and keeps its data. None if not all of it has come:
    /// then its lines that have are read.
    #[inline]
    fn read_entry(&self, rings: Region, number: u32, inbox: &Inbox) -> Option<Head> {
        let (ticket, part) = inbox.reading();
        let line = self.look_line(rings, number, ticket)?;
        let (head, data) = Head::unpack(&line);
        if part == 0 {
            self.keep_part(number, &head, 0, data);
        }
        if head.lines() > 0 {
            self.read_lines(rings, number, inbox, &head)?;
        }
        inbox.reads(&head);
        self.deferred.has_read(head.part, head.lines() > 0);
        if inbox.lags() || (head.part && head.len == 0) {
            point!(PLACE "its producer asks, or counts would not say what is placed":
                "mapped.pairs.asked", self.place_kept(Kept::All));
        }
        Some(head)
    }

    /// Reads the lines of the next entry of ring `number`. None if one has not come.
    fn read_lines(&self, rings: Region, number: u32, inbox: &Inbox, head: &Head) -> Option<()> {
        let (first, part) = inbox.reading();
        let mut line = u32::from(part).max(1);
        while line <= head.lines() {
            let ticket = first.wrapping_add(line);
            let Some(words) = self.look_line(rings, number, ticket) else {
                inbox.reads_part(line as u8);
                self.deferred.has_read_part();
                return None;
            };
            self.keep_part(number, head, line, words.as_flattened());
            line = line.wrapping_add(1);
        }
        Some(())
    }

    /// Keeps the data of line `line` of an entry: bytes after its end do not count.
    fn keep_part(&self, number: u32, head: &Head, line: u32, data: &[u8]) {
        let (skipped, most) = match line.checked_sub(1) {
            None => (0, head.first()),
            Some(lines) => (room(head.first(), lines), LINE_DATA),
        };
        let len = head.len.saturating_sub(skipped).min(most);
        let data = data.get(..len).unwrap_or(&[]);
        if self.base.check(head.place, head.len).is_ok() {
            let place = head.place.saturating_add(skipped);
            self.keep(number, place, data, head.lines() > 0);
        }
    }

    /// Keeps `data` of ring `number`, for this rank's memory from `place` on, and places what is
    /// kept where there is no room.
    pub(crate) fn keep(&self, number: u32, place: usize, data: &[u8], long: bool) {
        let (mut at, mut rest) = (place, data);
        while !rest.is_empty() {
            let from = at & UNIT.wrapping_sub(1);
            let len = rest.len().min(UNIT.wrapping_sub(from));
            let (data, others) = rest.split_at_checked(len).unwrap_or((rest, &[]));
            let of = (number, at.wrapping_sub(from));
            if !self.deferred.keep(&self.base, of, from, data, long) {
                point!(PLACE "there is room for no more":
                    "mapped.deferred.full", self.place_kept(Kept::All));
                self.deferred.keep(&self.base, of, from, data, long);
            }
            (at, rest) = (at.wrapping_add(len), others);
        }
    }

    /// The line of `ticket`, if all of it has come, as it was before it was sealed.
    fn look_line(&self, rings: Region, number: u32, ticket: u32) -> Option<Line> {
        let phase = self.base.layout.phase(ticket);
        let at = self.base.layout.entry(rings, number, ticket, Self::ENTRY);
        let mut line = [[0; 4]; WORDS];
        // Where a line takes no longer than a word, all of it is loaded with the first word.
        let at_once = self.base.machine.loads_lines(at.region);
        let load = || {
            if at_once {
                self.base.machine.load_bytes(at, line.as_flattened_mut());
            } else {
                line[0] = self.base.machine.load_u32(at).to_le_bytes();
            }
            u32::from_le_bytes(line[0])
        };
        let here = |word: u32| is_of(word, phase);
        let sites = [
            site!(ORDER "loaded before the acquire": "mapped.pairs.take.poll<acquire"),
            site!(ACQUIRE "data come after the word for them": "mapped.pairs.take.acquire"),
        ];
        if !here(self.base.poll_with(load, at, here, sites)) {
            return None;
        }
        if let (false, [_, others @ ..]) = (at_once, &mut line) {
            let others = others.as_flattened_mut();
            self.base.machine.load_bytes(at.plus(4), others);
        }
        for (number, word) in (0..).zip(line.map(u32::from_le_bytes)) {
            if point!(CHECK "a line may arrive in pieces":
                "mapped.pairs.whole", !here(word); else false)
            {
                // Not here yet: it is what a waiting loop looks at.
                self.base
                    .polled
                    .note(at.plus(usize::wrapping_mul(number, 4)), word);
                return None;
            }
        }
        Some(line::unseal(line))
    }

    /// Tells the producer of ring `number` how far it was taken and placed.
    pub(crate) fn tell_counts(&self, rings: Region, number: u32, inbox: &Inbox) {
        let word = inbox.tells(self.deferred.owes(number));
        // No drain is needed: I4.
        self.base
            .machine
            .store_u32(self.base.layout.head(rings, number), word);
    }

    /// Places what is kept, and tells the producers.
    #[inline]
    pub(crate) fn place_kept(&self, kept: Kept) {
        self.deferred
            .place(&self.base, kept, |rings| self.tell_placed(rings));
    }

    /// Tells the producers of these rings that all their data are in memory.
    fn tell_placed(&self, rings: u64) {
        let mut left = rings;
        while left != 0 {
            let number = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            if let Some(Peer { inbox, .. }) = self.peers.get(number as usize) {
                self.tell_counts(self.base.own_rings(), number, inbox);
            }
        }
    }

    /// There was nothing to take: what is kept is placed, unless more of it may come in the next
    /// look.
    pub(crate) fn is_idle(&self) {
        if !self.deferred.is_coming() {
            point!(PLACE "a flush waits for it":
                "mapped.pairs.idle", self.place_kept(Kept::Pieces));
        }
    }
}
