//! Mail between two ranks of a coherent machine with native atomics: records.
//!
//! Every rank has one ring per peer. An entry is a [record](flagpost_record) of 24 bytes, and
//! 8 more: the first word announces it, and is stored after a drain. Up to `DATA` bytes travel in
//! it. Somebody must put them in their place, and just one rank may. So the word with their length
//! is *claimed*: by the owner when it takes the entry, or by the producer in a flush. A flush
//! therefore waits for no call of the owner.
//!
//! A few ranks have two entries more for each other, in one line: [`facing`](crate::facing).
//!
//! # Guarantee
//! R1. The rank that takes an entry finds its data in their place, and its producer's earlier puts.
//! R2. Entries of one producer are taken in program order, wherever they are.
//! R3. When a flush says so, the data are in their place.
//!
//! # Invariants
//! I1. A facing entry is older than all that are in the ring: see there.
//! I2. At most as many entries are in flight as a ring has, in both places together.
//! I3. Each entry's phase changes with the lap of its place.
//! I4. Only who has changed the length to `CLAIMED` or `TAKEN` stores the data. An owner that
//!     finds `CLAIMED` waits: the producer is about to say `TAKEN`, after the data.
//!
//! # Steps
//! | call | core | memory actions, in order |
//! |---|---|---|
//! | `put_immediate` | producer | store the record (body; drain; first word) |
//! | `progress` | owner | load the first word; acquire; load the rest; claim; store the data; |
//! | | | drain; store head |
//! | `flush` | producer | if data are in flight: load head, acquire; of each entry that is not |
//! | | | taken: claim; store the data; drain; say `TAKEN` |

use flagpost_hal::{Address, Region};
use flagpost_link::{Key, Rank, Refusal};
use flagpost_loadstore::{
    announced::{look_first, put_before},
    flight::is_placed,
    phase::{announcing, immediate, phase},
};
use flagpost_record::Spot;

use crate::{
    RecordMail, Records,
    entry::{BODY, CLAIMED, ELEMENTS, ENTRY, SECOND, TAKEN, body, element, of_head, of_parts},
    facing::{FEW, Facing, facing_at},
    peer::{Inbox, Outbox, Peer},
};

impl<M: Records, const PEERS: usize> RecordMail<M, PEERS> {
    /// The `nth` entry of the ring whose first entry is at `first`.
    #[inline(always)]
    fn in_ring(&self, first: Spot, nth: u32) -> Spot {
        first.plus((nth & self.mask).wrapping_mul(ENTRY / 8))
    }

    // ---- The producer ----

    /// [`send_record`](Self::send_record) of one element of 4 or 8 bytes or of none, where nothing
    /// is in the way: what nearly all notifications are. False if it takes more; then nothing has
    /// happened.
    #[inline(always)]
    pub(crate) fn send_at_once(
        &self,
        to: Rank,
        (key, offset): (Key, usize),
        data: &[u8],
        immediate: u32,
    ) -> bool {
        if !self.at_once.get() || to.get() >= self.base.size() || to == self.base.rank() {
            return false;
        }
        let (Some(place), Some(Peer { out, inbox }), Some(facing)) = (
            self.base.resolve_to_send(key, offset, data.len()),
            self.peer(to),
            self.facing.get(to.index()),
        ) else {
            return false;
        };
        let ticket = out.next();
        let free = facing.is_free(ticket);
        let full = !free && out.is_full(&self.base.layout);
        if full {
            return false;
        }
        let word = match (data.as_chunks(), data.as_chunks()) {
            ((&[one], []), _) => u64::from_le_bytes(one),
            (_, (&[one], [])) => u32::from_le_bytes(one).into(),
            ((&[], []), _) => 0,
            _ => return false,
        };
        let (after, len) = (ticket.wrapping_add(1), data.len());
        let (at, top) = if free {
            out.hears_taken(ticket);
            (facing.out(), phase(facing.stores(ticket)))
        } else {
            let nth = facing.ring_out(ticket);
            (
                self.in_ring(facing.ring_there(), nth),
                nth.wrapping_shl(self.to_top),
            )
        };
        let words = [announcing(immediate, top), inbox.next()];
        let machine = &self.base.machine;
        machine.store_record(at, words, [of_parts(place, len as u8), word]);
        self.base.told(to);
        out.sends(after);
        if len > 0 && out.flight.leaves(after, place, place.wrapping_add(len)) {
            self.in_flight.set(self.in_flight.get().wrapping_add(1));
        }
        true
    }

    /// Takes a ticket of the ring at `to`.
    #[inline]
    fn claim(&self, to: Rank, out: &Outbox) -> Result<u32, Refusal> {
        let ticket = out.next();
        if out.is_full(&self.base.layout) {
            self.look_for_room(to, out)?;
        }
        out.sends(ticket.wrapping_add(1));
        Ok(ticket)
    }

    /// Looks whether a ring has room.
    #[inline(never)]
    fn look_for_room(&self, to: Rank, out: &Outbox) -> Result<(), Refusal> {
        let head = self.head_at(to)?;
        let taken = self.base.machine.load_u32(head);
        if let Some(facing) = self.facing(to) {
            facing.answers(taken);
        }
        out.hears_taken(taken);
        if point!(ROOM "I2: no entry is written over before it is taken":
            "coherent.announced.pair.room", out.is_full(&self.base.layout); else false)
        {
            self.base.polled.note(head, taken);
            return Err(Refusal::Full(to));
        }
        Ok(())
    }

    /// The word in which `to` tells this rank how far its ring was taken.
    fn head_at(&self, to: Rank) -> Result<Address, Refusal> {
        let number = self.base.rank().get().into();
        Ok(self.base.layout.head(self.base.region_of(to)?, number))
    }

    /// The entry of `ticket` in ring `number`.
    #[inline]
    pub(crate) fn entry(&self, rings: Region, number: u32, ticket: u32) -> Address {
        self.base.layout.entry(rings, number, ticket, ENTRY)
    }

    /// Sends a record to `to`; with the data, if these `travel` in it.
    pub(crate) fn send_record(
        &self,
        (to, Peer { out, inbox }): (Rank, &Peer),
        (place, data): (usize, &[u8]),
        immediate: u32,
        travels: bool,
    ) -> Result<(), Refusal> {
        let (ticket, ()) = order!("refused, nothing has moved": "coherent.records.claim<data",
            self.claim(to, out)?,
            if !travels {
                put_before(self, to, place, data);
            }
        );
        let carried = if travels { data } else { &[] };
        let (at, phase) = match self.facing(to).filter(|facing| facing.is_free(ticket)) {
            Some(facing) => {
                let [at, _] = facing_at(&self.base, to);
                (at, phase(facing.stores(ticket)))
            }
            None => {
                let (at, nth) = self.record_in_ring(to, ticket)?;
                (at, self.base.layout.phase(nth))
            }
        };
        let (body, second) = body(place, carried);
        if carried.len() > second.len() {
            self.base.machine.store_bytes(at.plus(SECOND), &second);
        }
        let words = [announcing(immediate, phase), inbox.next()];
        // It drains before its first word: what was put, or read, before the entry comes first.
        let machine = &self.base.machine;
        machine.store_record(machine.spot(at), words, body);
        self.base.told(to);
        if !carried.is_empty() {
            let end = place.saturating_add(data.len());
            if out.flight.leaves(ticket.wrapping_add(1), place, end) {
                self.in_flight.set(self.in_flight.get().saturating_add(1));
            }
        }
        if to == self.base.rank() {
            self.at_once.set(false);
        }
        Ok(())
    }

    /// Where the entry of `ticket` is in the ring at `to`, and its number there.
    fn record_in_ring(&self, to: Rank, ticket: u32) -> Result<(Address, u32), Refusal> {
        let facing = self.facing(to);
        let nth = facing.map_or(ticket, |facing| facing.ring_out(ticket));
        let at = self.entry(self.base.region_of(to)?, self.base.rank().get().into(), nth);
        Ok((at, nth))
    }

    /// Puts the data that are in flight to `to` in their place, as far as the owner has not. False
    /// if the owner is about to.
    pub(crate) fn records_placed(
        &self,
        to: Rank,
        out: &Outbox,
        ticket: u32,
    ) -> Result<bool, Refusal> {
        let sent = out.next();
        let told = self.head_at(to)?;
        let sites = [
            site!(ORDER "loaded before the acquire": "coherent.records.placed.poll<acquire"),
            site!(ACQUIRE "what the owner placed comes earlier": "coherent.records.placed.acquire"),
        ];
        let taken = self.base.poll_for(told, |_| true, sites);
        if is_placed(sent, ticket, taken) {
            return Ok(true);
        }
        let ago = |ticket: u32| sent.wrapping_sub(ticket);
        // Entries that were looked at before, or that come before a facing entry, are left out.
        let mut from = taken;
        let faced = self.facing(to).and_then(Facing::last);
        for later in [Some(out.flight.from()), faced] {
            from = later
                .filter(|later| ago(*later) < ago(from))
                .unwrap_or(from);
        }
        while ago(from) > ago(ticket) {
            let (at, _) = match faced {
                Some(last) if last == from => (facing_at(&self.base, to)[0], 0),
                _ => self.record_in_ring(to, from)?,
            };
            out.flight.is_placed_before(from);
            let is_owners = point!(CLAIM "R3: of two puts of the same bytes the later one stays":
                "coherent.records.claim", !self.place_record(to, at)?; else false);
            if is_owners {
                self.base.polled.note(told, taken);
                return Ok(false);
            }
            from = from.wrapping_add(1);
        }
        out.flight.is_placed_before(ticket);
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
        // Shared memory may hold anything.
        let data = data.as_flattened().get(..len.into()).unwrap_or(&[]);
        if self.base.check(place, data.len()).is_ok() {
            self.base
                .machine
                .store_bytes(self.base.region_of(to)?.at(place), data);
        }
        order!("the data are in their place before the entry says so":
            "coherent.records.data<taken",
            point!(DRAIN "I4: the data are in memory":
                "coherent.records.flush.drain", self.base.machine.drain()),
            self.exchange(at, place, CLAIMED, TAKEN));
        // It may wait for that.
        self.base.told(to);
        Ok(true)
    }

    /// The body of the entry at `at`: the first part, and the data.
    fn load_body(&self, at: Address) -> (u64, [[u8; 8]; 2]) {
        let mut parts = [[0; 8]; 3];
        let body = at.plus(BODY);
        self.base.machine.load_bytes(body, parts.as_flattened_mut());
        let [head, data @ ..] = parts;
        (u64::from_le_bytes(head), data)
    }

    /// Changes the length in the entry at `at` from `len` to `new`, if it is that.
    #[inline]
    fn exchange(&self, at: Address, place: usize, len: u8, new: u8) -> bool {
        let machine = &self.base.machine;
        let [expected, new] = [len, new].map(|len| of_parts(place, len));
        machine.claim_record(machine.spot(at), expected, new)
    }

    // ---- The owner ----

    /// Takes the next entry of the ring whose turn it is, if it has immediate `wanted`, and an
    /// element of 8 bytes. False if it takes more; then nothing has happened. It looks again only
    /// where nothing else can come, and nobody else needs the processor: the full path looks at
    /// the rings of all peers.
    #[inline(always)]
    pub(crate) fn take_at_once(&self, wanted: u32, looks: u32) -> bool {
        if !self.at_once.get() {
            return false;
        }
        // There are no more.
        let turn = self.turn.get().index() % FEW;
        let (Some(facing), Some(peer)) = (self.facing.get(turn), self.peers.get(turn)) else {
            return false;
        };
        let ticket = peer.inbox.next();
        let (nth, next) = (facing.ring_back(ticket), ticket.wrapping_add(1));
        for look in 1..=looks {
            let at = (facing.back(), wanted, phase(facing.lap()));
            let mut taken = self.take_record(at, (peer, facing, next), |_| true);
            if taken == Some(true) {
                facing.took();
            } else if taken.is_none() {
                let top = nth.wrapping_shl(self.to_top);
                let at = (self.in_ring(facing.ring_here(), nth), wanted, top);
                // FIRST: I1.
                let is_next = |element| {
                    element < ELEMENTS && facing.meets() && !facing.has_come(&self.base.machine)
                };
                taken = self.take_record(at, (peer, facing, next), is_next);
            }
            match taken {
                // The turn of an only peer comes after its own.
                None if look < looks
                    && peer.inbox.turn() == self.turn.get()
                    && !self.base.machine.is_crowded() =>
                {
                    core::hint::spin_loop();
                }
                None | Some(false) => return false,
                Some(true) => {
                    peer.inbox.takes(next);
                    self.turn.set(peer.inbox.turn());
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
        self.base
            .machine
            .take_record(at, announcing(wanted, top), |answered, [head, one]| {
                // The machine claims the data, if its region has the element: I4.
                let element = element(head);
                let given_back = (peer.inbox.head(), next);
                is_next(element).then(|| {
                    facing.answers(answered);
                    ((element, one), given_back)
                })
            })
    }

    /// Takes the next notification of `source`, if there is one.
    pub(crate) fn take_entry(&self, rings: Region, source: Rank, inbox: &Inbox) -> Option<u32> {
        let number = source.get().into();
        let ticket = inbox.next();
        let facing = self.facing(source);
        let nth = facing.map_or(ticket, |facing| facing.ring_back(ticket));
        let at = self.entry(rings, number, nth);
        let in_ring = look_first(&self.base, at, self.base.layout.phase(nth));
        if let (Some(facing), Some(_)) = (facing, in_ring) {
            facing.meets();
        }
        // After an acquire, if there is anything in the ring: what is here comes first (I1).
        let faced = facing.and_then(|facing| facing.look(&self.base, source));
        let (at, first) = match faced {
            Some(faced) => faced,
            None => (at, in_ring?),
        };
        let (head, data) = self.load_body(at);
        self.take_data(at, head, data.as_flattened())?;
        if let Some(facing) = facing {
            facing.answers(self.base.machine.load_u32(at.plus(4)));
            if faced.is_some() {
                facing.took();
            }
        }
        let next = ticket.wrapping_add(1);
        inbox.takes(next);
        order!("the data are in their place before the count says so": "coherent.records.data<head",
            point!(DRAIN "R3: the data are in memory":
                "coherent.records.take.drain", self.base.machine.drain()),
            self.base.machine.store_u32(self.base.layout.head(rings, number), next));
        Some(immediate(first))
    }

    /// Puts the data of the entry at `at` in their place, if no flush has. None if
    /// one is about to.
    fn take_data(&self, at: Address, head: u64, data: &[u8]) -> Option<()> {
        let (place, len) = of_head(head);
        if len == TAKEN {
            point!(ACQUIRE "R1: the producer has stored the data before it said so":
                "coherent.records.taken.acquire", self.base.machine.acquire());
        } else if len > 0 {
            let is_own = point!(CLAIM "I4: only one places the data": "coherent.records.take.claim",
                len != CLAIMED && self.exchange(at, place, len, TAKEN); else true);
            if !is_own {
                // The producer says when it has: that is what a waiting loop looks at.
                self.base.polled.note(at.plus(BODY), head as u32);
                return None;
            }
            let data = data.get(..len.into()).unwrap_or(&[]);
            if self.base.check(place, data.len()).is_ok() {
                self.base.machine.store_bytes(self.base.own(place), data);
            }
        }
        Some(())
    }
}
