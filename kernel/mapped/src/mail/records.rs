//! Mail between two ranks of a coherent machine with native atomics: records.
//!
//! Every rank has one ring per peer. An entry is a [record](flagpost_hal::Records) of 24 bytes, and
//! 8 more: the first word announces it, and is stored after a drain. Up to `DATA` bytes travel in
//! it. Somebody must put them in their place, and just one rank may. So the word with their length
//! is *claimed*: by the owner when it takes the entry, or by the producer in a flush. A flush
//! therefore waits for no call of the owner.
//!
//! # Facing entries
//! A line that a core has just read is the nearest that it can store to: the caches hand it over
//! with the right to write. So each pair of up to `FEW` ranks has, beside its two rings, a line
//! with two entries face to face. An answer that goes back through the line it answers takes one
//! transfer; through another line, which its reader polls, two. A producer uses its facing entry
//! when the peer has said that nothing is left to take; else the ring.
//!
//! # Memory layout (an entry; a facing line has two, that of the lower rank first)
//! ```text
//!   word   0           1        2        3       4 … 7
//!        ┌───────────┬────────┬────────┬───────┬──────────────────┐
//!        │ phase,    │ taken  │ length │ place │ 16 bytes of data │
//!        │ immediate │        │ claim  │       │                  │
//!        └───────────┴────────┴────────┴───────┴──────────────────┘
//! ```
//! `taken`: how many entries its producer has taken of those that go the other way.
//!
//! # Guarantee
//! R1. Who takes an entry finds its data in their place, and its producer's earlier puts.
//! R2. Entries of one producer are taken in program order, wherever they are.
//! R3. When a flush says so, the data are in their place.
//!
//! # Invariants
//! I1. A facing entry is stored only when its producer's earlier ones have all been taken. So it is
//!     older than all that are in the ring.
//! I2. At most as many entries are under way as a ring has, in both places together.
//! I3. A facing entry has a phase of its own, which changes with each use of it; those of the ring
//!     change with its laps, and a lap counts what was stored in the ring.
//! I4. Only who has changed the length to `CLAIMED` or `TAKEN` stores the data. An owner that
//!     finds `CLAIMED` waits: the producer is about to say `TAKEN`, after the data.
//!
//! # Steps
//! | call | core | memory actions, in order |
//! |---|---|---|
//! | `put_immediate` | producer | store the record (body; drain; first word) |
//! | `progress` | owner | load the first word; acquire; load the rest; claim; store the data; |
//! | | | drain; store head |
//! | `flush` | producer | if data are under way: load head, acquire; of each entry that is not |
//! | | | taken: claim; store the data; drain; say `TAKEN` |
//!
//! The lower rank of two clears their facing line when it starts. Until then it holds anything: so
//! everybody's first entry goes through the ring, and the higher rank looks here when it has taken
//! one from there.
//!
//! # Source
//! Ours. What it gains is measured in `docs/log/decisions.md`, 54.

use core::cell::Cell;

use flagpost_hal::{Address, CLAIM, CoreId, Machine, Region, Spot};
use flagpost_link::{Key, Link as _, Rank, Refusal, order, point, site};

use super::{
    line::{WORDS, announcing, immediate, is_of, phase},
    peer::{Peer, is_placed},
    ring::{FIRST, Ring},
};
use crate::{Atomics, Mapped, layout::round_up};

/// Most ranks that have facing entries.
pub(crate) const FEW: usize = 4;

/// The most data in an entry.
pub(crate) const DATA: usize = 16;

/// Where the body of an entry is, and the second 8 bytes of its data.
const BODY: u32 = 8;
const SECOND: u32 = 24;

/// In place of the length: the data are in their place, or their owner is about to put them there.
const TAKEN: u32 = CLAIM as u32;

/// The producer is about to put them there.
const CLAIMED: u32 = u32::MAX - 1;

/// The first part of a record's body.
#[inline]
const fn of_parts(place: u32, len: u32) -> u64 {
    (place as u64).wrapping_shl(32) | len as u64
}

/// Place and length of the data.
#[inline]
const fn of_head(head: u64) -> (u32, u32) {
    (head.wrapping_shr(32) as u32, head as u32)
}

/// How many elements of 8 bytes come before the place of the data, if the data are such an element
/// and the place is aligned. Else a number that is too large for any region.
#[inline(always)]
const fn element(head: u64) -> u64 {
    // The length and the three low bits of the place become the highest bits.
    (head ^ 8).rotate_right(35)
}

/// The elements of 8 bytes that the largest region has.
const ELEMENTS: u64 = 1 << 29;

/// The body of a record, and the 8 bytes behind it.
#[inline]
fn body(place: u32, data: &[u8]) -> ([u64; 2], [u8; 8]) {
    let mut parts = [[0; 8]; 2];
    for (to, from) in parts.as_flattened_mut().iter_mut().zip(data) {
        *to = *from;
    }
    let [first, second] = parts;
    let head = of_parts(place, data.len().min(DATA) as u32);
    ([head, u64::from_le_bytes(first)], second)
}

/// What a rank knows of the facing entries of itself and a peer. Of 64 bytes, so that a shift finds
/// it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Facing {
    /// Where this rank's entry is, and the peer's (until that has told something: one that is
    /// always empty); the first entries of the peer's ring and of the own one.
    pub(crate) spots: [Cell<Spot>; 4],
    /// Where the peer's entry is; and whether that is known to be cleared.
    met: Cell<Spot>,
    is_met: Cell<bool>,
    /// How many entries this rank has stored here, and taken; and the ticket of its last one.
    stored: Cell<u32>,
    last: Cell<u32>,
    taken: Cell<u32>,
    /// How many of this rank's entries the peer had taken, as its last one says, or `head` did: not
    /// older than a ring is long.
    pub(crate) answered: Cell<u32>,
}

impl Facing {
    pub(crate) const fn new() -> Self {
        Self {
            spots: [const { Cell::new(Spot::new(0)) }; 4],
            met: Cell::new(Spot::new(0)),
            is_met: Cell::new(false),
            stored: Cell::new(0),
            last: Cell::new(FIRST),
            taken: Cell::new(0),
            answered: Cell::new(FIRST),
        }
    }

    /// Whether the entry of `ticket` may be stored here: I1. Not the first one, which goes through
    /// the ring.
    #[inline(always)]
    pub(crate) fn is_free(&self, ticket: u32) -> bool {
        self.answered.get() == ticket && ticket != FIRST
    }

    /// The entry of `ticket` will be stored: the lap of it.
    #[inline(always)]
    fn stores(&self, ticket: u32) -> u32 {
        let lap = self.stored.get();
        self.last.set(ticket);
        self.stored.set(lap.wrapping_add(1));
        lap
    }

    /// An entry of the peer has come through the ring: it has started. Always true.
    #[inline(always)]
    pub(crate) fn meets(&self) -> bool {
        let [_, back, ..] = &self.spots;
        back.set(self.met.get());
        self.is_met.set(true);
        true
    }

    /// The lap of the peer's next entry.
    #[inline(always)]
    pub(crate) fn lap(&self) -> u32 {
        self.taken.get()
    }

    /// It was taken.
    #[inline(always)]
    pub(crate) fn took(&self) {
        self.taken.set(self.taken.get().wrapping_add(1));
    }

    /// The number in the ring of the entry of `ticket`, to be stored there.
    #[inline(always)]
    pub(crate) fn ring_out(&self, ticket: u32) -> u32 {
        ticket.wrapping_sub(self.stored.get())
    }

    /// The same, to be taken there.
    #[inline(always)]
    pub(crate) fn ring_back(&self, ticket: u32) -> u32 {
        ticket.wrapping_sub(self.taken.get())
    }
}

/// Size of a line with two facing entries of so many bytes.
pub(crate) const fn line_of(entry: u32, line: u32) -> u32 {
    round_up(entry.saturating_mul(2), line)
}

/// Whether so many ranks with such rings have facing entries, where these are `records`.
pub(crate) const fn has_facing(records: bool, ring: Ring, ranks: u16) -> bool {
    records && ring.of_pairs() && ranks as usize <= FEW
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// The facing entries of this rank and another one, if they have any.
    #[inline]
    pub(crate) fn facing(&self, rank: Rank) -> Option<&Facing> {
        let have = self.layout.faces && rank != self.rank();
        self.facing.get(rank.index()).filter(|_| have)
    }

    /// Where this rank's facing entry to `rank` is, and that of `rank` to this one.
    pub(crate) fn facing_at(&self, rank: Rank) -> [Address; 2] {
        let (me, entry) = (self.rank(), Self::ENTRY);
        let (low, high) = if me < rank { (me, rank) } else { (rank, me) };
        let before = u32::from(high.get()).saturating_mul(line_of(entry, M::LINE as u32));
        let offset = self.layout.facing.saturating_add(before);
        let first = Region::memory(CoreId::new(low.get())).at(offset);
        let second = first.plus(entry);
        if me == low {
            [first, second]
        } else {
            [second, first]
        }
    }

    /// Finds out where they are; and the own ones are cleared, before any peer may use them.
    pub(crate) fn place_facing(&self) {
        let me = self.rank();
        // The line of this rank and itself is nobody's.
        let [nobody, _] = self.facing_at(me);
        // The other phase than that of the first.
        let empty = [phase(1).to_le_bytes(); WORDS];
        let clear = |at| self.machine.store_bytes(at, empty.as_flattened());
        for rank in (0..self.size()).map(Rank::new).take(FEW) {
            let Some(facing) = self.facing(rank) else {
                continue;
            };
            let [out, back] = self.facing_at(rank);
            facing.met.set(A::spot(&self.machine, back));
            let known = if me < rank {
                clear(out);
                clear(back);
                facing.is_met.set(true);
                back
            } else {
                clear(nobody);
                nobody
            };
            let rings = [(rank, me), (me, rank)].map(|(owner, producer)| {
                let owner = Region::memory(CoreId::new(owner.get()));
                self.entry(owner, self.ring_number(producer), 0)
            });
            let [there, here] = rings;
            for (spot, at) in facing.spots.iter().zip([out, known, there, here]) {
                spot.set(A::spot(&self.machine, at));
            }
        }
    }

    /// Whether entries are records.
    pub(crate) const RECORDS: bool = M::COHERENT && A::NATIVE;

    /// The `nth` entry of the ring whose first entry is at `first`.
    #[inline(always)]
    fn in_ring(&self, first: Spot, nth: u32) -> Spot {
        first.plus((nth & self.layout.mask).wrapping_mul(Self::ENTRY / 8))
    }

    // ---- The producer ----

    /// [`send_record`](Self::send_record) of one element of 4 or 8 bytes or of none, where nothing
    /// is in the way: what nearly all notifications are. False if it takes more; then nothing has
    /// happened.
    #[inline(always)]
    pub(crate) fn send_at_once(
        &self,
        to: Rank,
        (key, offset): (Key, u32),
        data: &[u8],
        immediate: u32,
    ) -> bool {
        if !Self::RECORDS || !self.at_once.get() || to.get() >= self.size() || to == self.rank() {
            return false;
        }
        let (Some(place), Some(peer), Some(facing)) = (
            key.get().checked_add(offset),
            self.peer(to),
            self.facing.get(to.index()),
        ) else {
            return false;
        };
        let ticket = peer.sent.get();
        let free = facing.is_free(ticket);
        let full = !free && self.is_full(ticket, peer.credit.get());
        if full || self.check(place, data.len()).is_err() {
            return false;
        }
        let word = match (data.as_chunks(), data.as_chunks()) {
            ((&[one], []), _) => u64::from_le_bytes(one),
            (_, (&[one], [])) => u32::from_le_bytes(one).into(),
            ((&[], []), _) => 0,
            _ => return false,
        };
        let (after, len) = (ticket.wrapping_add(1), data.len() as u32);
        let [out, _, ring, _] = &facing.spots;
        let (at, top) = if free {
            peer.credit.set(ticket);
            (out.get(), phase(facing.stores(ticket)))
        } else {
            let nth = facing.ring_out(ticket);
            (
                self.in_ring(ring.get(), nth),
                nth.wrapping_shl(self.layout.to_top),
            )
        };
        let words = [announcing(immediate, top), peer.taken.get()];
        A::store_record(&self.machine, at, words, [of_parts(place, len), word]);
        peer.sent.set(after);
        if len > 0 && peer.leaves(after, place, place.wrapping_add(len)) {
            self.under_way.set(self.under_way.get().wrapping_add(1));
        }
        true
    }

    /// Sends a record to `to`; with the data, if these `travel` in it.
    pub(super) fn send_record(
        &self,
        (to, peer): (Rank, &Peer),
        (place, data): (u32, &[u8]),
        immediate: u32,
        travels: bool,
    ) -> Result<(), Refusal> {
        // The claim comes first: refused, it must not have moved a byte of the data.
        let ticket = order!("mapped.records.claim<data", self.claim(to)?, {
            if !travels {
                self.put_before(to, place, data);
            }
        });
        let carried = if travels { data } else { &[] };
        let (at, lap) = match self.facing(to).filter(|facing| facing.is_free(ticket)) {
            Some(facing) => {
                let [out, _] = self.facing_at(to);
                (out, facing.stores(ticket))
            }
            None => {
                let (at, nth) = self.record_in_ring(to, ticket)?;
                (at, self.lap(nth))
            }
        };
        let (body, second) = body(place, carried);
        if carried.len() > second.len() {
            self.machine.store_bytes(at.plus(SECOND), &second);
        }
        let words = [announcing(immediate, phase(lap)), peer.taken.get()];
        // It drains before its first word: what was put, or read, before the entry comes first.
        A::store_record(&self.machine, A::spot(&self.machine, at), words, body);
        if !carried.is_empty() {
            let end = place.saturating_add(data.len() as u32);
            self.leaves(peer, ticket.wrapping_add(1), place, end);
        }
        if to == self.rank() {
            self.at_once.set(false);
        }
        Ok(())
    }

    /// Where the entry of `ticket` is in the ring at `to`, and its number there.
    fn record_in_ring(&self, to: Rank, ticket: u32) -> Result<(Address, u32), Refusal> {
        let facing = self.facing(to);
        let nth = facing.map_or(ticket, |facing| facing.ring_out(ticket));
        let at = self.entry(self.rings_of(to)?, self.ring_number(self.rank()), nth);
        Ok((at, nth))
    }

    /// Puts the data that are under way to `to` in their place, as far as the owner has not. False
    /// if the owner is about to.
    pub(super) fn records_placed(
        &self,
        to: Rank,
        peer: &Peer,
        ticket: u32,
    ) -> Result<bool, Refusal> {
        let sent = peer.sent.get();
        let told = self.head(self.rings_of(to)?, self.ring_number(self.rank()));
        // ACQUIRE: what the owner has placed comes before what is placed here, and is found.
        let sites = [
            site!("mapped.records.placed.poll<acquire"),
            site!("mapped.records.placed.acquire"),
        ];
        let taken = self.poll_for(told, |_| true, sites);
        if is_placed(sent, ticket, taken) {
            return Ok(true);
        }
        let ago = |ticket: u32| sent.wrapping_sub(ticket);
        // What was looked at before, and what comes before a facing entry, is not looked at.
        let mut from = taken;
        let facing = self.facing(to).filter(|facing| facing.stored.get() > 0);
        for later in [
            Some(peer.claimed.get()),
            facing.map(|facing| facing.last.get()),
        ] {
            from = later
                .filter(|later| ago(*later) < ago(from))
                .unwrap_or(from);
        }
        while ago(from) > ago(ticket) {
            let at = match facing.filter(|facing| facing.last.get() == from) {
                Some(_) => self.facing_at(to)[0],
                None => self.record_in_ring(to, from)?.0,
            };
            peer.claimed.set(from);
            // CLAIM: R3. What comes after an entry of the owner's waits for that: of two puts of
            // the same bytes, the later one stays.
            let is_owners = point!("mapped.records.claim", !self.place_record(to, at)?; else false);
            if is_owners {
                self.polled.note(told, taken);
                return Ok(false);
            }
            from = from.wrapping_add(1);
        }
        peer.claimed.set(ticket);
        Ok(true)
    }

    /// Puts the data of the entry at `at` in their place in `to`'s memory; false if their owner is
    /// about to, or has.
    fn place_record(&self, to: Rank, at: Address) -> Result<bool, Refusal> {
        let (head, data) = self.load_body(at);
        let (place, len) = of_head(head);
        if len == 0 {
            return Ok(true);
        }
        if len == TAKEN || !self.exchange(at, place, len, CLAIMED) {
            return Ok(false);
        }
        // What is in shared memory may be anything.
        let data = data.as_flattened().get(..len as usize).unwrap_or(&[]);
        if self.check(place, data.len()).is_ok() {
            self.machine
                .store_bytes(self.region_of(to)?.at(place), data);
        }
        order!(
            "mapped.records.data<taken",
            // DRAIN: I4.
            point!("mapped.records.flush.drain", self.machine.drain()),
            self.exchange(at, place, CLAIMED, TAKEN)
        );
        Ok(true)
    }

    /// The body of the entry at `at`: the first part, and the data.
    fn load_body(&self, at: Address) -> (u64, [[u8; 8]; 2]) {
        let mut parts = [[0; 8]; 3];
        let body = at.plus(BODY);
        self.machine.load_bytes(body, parts.as_flattened_mut());
        let [head, data @ ..] = parts;
        (u64::from_le_bytes(head), data)
    }

    /// Changes the length in the entry at `at` from `len` to `new`, if it is that.
    fn exchange(&self, at: Address, place: u32, len: u32, new: u32) -> bool {
        let spot = A::spot(&self.machine, at);
        let [expected, new] = [len, new].map(|len| of_parts(place, len));
        A::claim_record(&self.machine, spot, expected, new)
    }

    // ---- The owner ----

    /// Takes the next entry of the ring whose turn it is, if it has immediate `wanted`, and an
    /// element of 8 bytes. False if it takes more; then nothing has happened. It looks again only
    /// where nothing else can come, and nobody else needs the processor: the full path looks at
    /// the rings of all peers.
    #[inline(always)]
    pub(crate) fn take_at_once(&self, wanted: u32, looks: u32) -> bool {
        if !Self::RECORDS || !self.at_once.get() {
            return false;
        }
        // There are no more.
        let turn = self.turn.get().index() % FEW;
        let (Some(facing), Some(peer)) = (self.facing.get(turn), self.peers.get(turn)) else {
            return false;
        };
        let ticket = peer.taken.get();
        let [_, back, _, ring] = &facing.spots;
        let (nth, next) = (facing.ring_back(ticket), ticket.wrapping_add(1));
        for look in 1..=looks {
            let at = (back.get(), wanted, phase(facing.lap()));
            let mut taken = self.take_record(at, (peer, facing, next), |_| true);
            if taken == Some(true) {
                facing.took();
            } else if taken.is_none() {
                let top = nth.wrapping_shl(self.layout.to_top);
                let at = (self.in_ring(ring.get(), nth), wanted, top);
                // FIRST: I1.
                let is_next =
                    |element| element < ELEMENTS && facing.meets() && !self.has_faced(facing);
                taken = self.take_record(at, (peer, facing, next), is_next);
            }
            match taken {
                // The turn of an only peer comes after its own.
                None if look < looks && peer.next == self.turn && !self.machine.is_crowded() => {
                    core::hint::spin_loop();
                }
                None | Some(false) => return false,
                Some(true) => {
                    peer.taken.set(next);
                    self.turn.set(peer.next.get());
                    return true;
                }
            }
        }
        false
    }

    /// Takes the entry at a spot, if it is the one that is wanted, of a lap whose phase is the top
    /// bit of `top`, has an element of 8 bytes, and `is_next`. None if it is not there; false if it
    /// takes more.
    #[inline(always)]
    fn take_record(
        &self,
        (at, wanted, top): (Spot, u32, u32),
        (peer, facing, next): (&Peer, &Facing, u32),
        is_next: impl FnOnce(u64) -> bool,
    ) -> Option<bool> {
        A::take_record(
            &self.machine,
            at,
            announcing(wanted, top),
            |answered, [head, one]| {
                // The machine claims the data, if its region has the element: I4.
                let element = element(head);
                let given_back = (peer.head.get().wrapping_mul(4), next);
                is_next(element).then(|| {
                    facing.answered.set(answered);
                    ((element, one), given_back)
                })
            },
        )
    }

    /// Takes the next notification of `source`, if there is one.
    pub(super) fn take_entry(&self, rings: Region, source: Rank, peer: &Peer) -> Option<u32> {
        let number = self.ring_number(source);
        let ticket = peer.taken.get();
        let facing = self.facing(source);
        let nth = facing.map_or(ticket, |facing| facing.ring_back(ticket));
        let at = self.entry(rings, number, nth);
        let in_ring = self.look_first(at, phase(self.lap(nth)));
        if let (Some(facing), Some(_)) = (facing, in_ring) {
            facing.meets();
        }
        // After an acquire, if there is anything in the ring: what is here comes first (I1).
        let faced = facing.and_then(|facing| self.look_facing(source, facing));
        let (at, first) = match faced {
            Some(faced) => faced,
            None => (at, in_ring?),
        };
        let (head, data) = self.load_body(at);
        self.take_data(at, head, data.as_flattened())?;
        if let Some(facing) = facing {
            facing.answered.set(self.machine.load_u32(at.plus(4)));
            if faced.is_some() {
                facing.took();
            }
        }
        let next = ticket.wrapping_add(1);
        peer.taken.set(next);
        order!(
            "mapped.records.data<head",
            // DRAIN: R3: data are in their place before head says so.
            point!("mapped.records.take.drain", self.machine.drain()),
            self.machine.store_u32(self.head(rings, number), next)
        );
        Some(immediate(first))
    }

    /// Puts the data of the entry at `at` in their place, if no flush has. None if
    /// one is about to.
    fn take_data(&self, at: Address, head: u64, data: &[u8]) -> Option<()> {
        let (place, len) = of_head(head);
        if len == TAKEN {
            // ACQUIRE: R1: the producer has stored the data before it said so.
            point!("mapped.records.taken.acquire", self.machine.acquire());
        } else if len > 0 {
            // CLAIM: I4.
            let is_own = point!(
                "mapped.records.take.claim",
                len != CLAIMED && self.exchange(at, place, len, TAKEN); else true
            );
            if !is_own {
                // The producer says when it has: that is what a waiting loop looks at.
                self.polled.note(at.plus(BODY), len);
                return None;
            }
            let data = data.get(..len as usize).unwrap_or(&[]);
            if self.check(place, data.len()).is_ok() {
                self.machine.store_bytes(self.own(place), data);
            }
        }
        Some(())
    }

    /// The facing entry of `peer`: where it is, and its first word, if it has come. A loop that
    /// waits looks at it.
    fn look_facing(&self, peer: Rank, facing: &Facing) -> Option<(Address, u32)> {
        if !facing.is_met.get() {
            return None;
        }
        let ([_, at], lap) = (self.facing_at(peer), facing.lap());
        let first = self.look_first(at, phase(lap))?;
        Some((at, first))
    }

    /// Whether the peer's facing entry has come, after an acquire.
    #[inline(always)]
    pub(crate) fn has_faced(&self, facing: &Facing) -> bool {
        let [_, back, ..] = &facing.spots;
        is_of(
            A::load_record(&self.machine, back.get()),
            phase(facing.lap()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_aligned_and_of_eight_bytes() {
        for number in [0, 1, ELEMENTS - 1] {
            let place = (number * 8) as u32;
            assert_eq!(element(of_parts(place, 8)), number);
            for other in [
                of_parts(place + 4, 8),
                of_parts(place + 1, 8),
                of_parts(place, 0),
                of_parts(place, 16),
                of_parts(place, TAKEN),
                of_parts(place, CLAIMED),
            ] {
                assert!(element(other) >= ELEMENTS, "{other:x}");
            }
        }
    }

    #[test]
    fn a_body_comes_back() {
        for len in 0..=DATA {
            let data = &b"0123456789abcdef"[..len];
            for place in [0, 12, u32::MAX] {
                let ([head, first], second) = body(place, data);
                assert_eq!(of_head(head), (place, len as u32));
                assert!(len as u32 != TAKEN && len as u32 != CLAIMED);
                let parts = [first.to_le_bytes(), second];
                assert_eq!(&parts.as_flattened()[..len], data);
            }
        }
    }
}
