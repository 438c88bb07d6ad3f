//! [`RecordMail`]: mail between ranks of a coherent machine. Each pair of ranks has rings of
//! [`records`](crate::records); a few ranks have [`facing`](crate::facing) entries besides. More
//! ranks than a rank can have rings for share one ([`announced`](flagpost_loadstore::announced)).

use core::cell::Cell;

use flagpost_hal::Region;
use flagpost_link::{Arrival, Key, Op, Rank, Refusal, Wants};
use flagpost_loadstore::{
    Base, Mail, Native, Ring,
    announced::Announced,
    layout::Parts,
    mail::Plan,
    ring::{FIRST, PAIRS, share},
};

use crate::{
    Records,
    entry::{DATA, ENTRY},
    facing::{FEW, Facing, has_facing, line_of},
    peer::Peer,
};

/// Lines per rank, unless asked for otherwise; and least lines of a pair's ring: a producer loads
/// `head` once in as many puts.
const LINES: u32 = 64;
const LEAST: u32 = 16;

/// The rings of a world of `ranks`, unless others are asked for.
fn default_ring(ranks: u16) -> Ring {
    if ranks as usize > PAIRS {
        return Ring::SHARED;
    }
    Ring::Pairs {
        entries: share(LINES, ranks).max(LEAST),
    }
}

/// Notifications in records, whose data one of two ranks puts in their place.
///
/// `PEERS` is of how many peers something is remembered: from 1 to 64. More ranks than that share a
/// ring.
// In this order: one register reaches the tables of peers and of facing entries.
#[derive(Debug)]
#[repr(C)]
pub struct RecordMail<M: Records, const PEERS: usize = PAIRS> {
    pub(crate) base: Base<M, Native>,
    /// The rings between this rank and each peer.
    pub(crate) peers: [Peer; PEERS],
    /// The facing entries of this rank and each other, and whether there are any.
    pub(crate) facing: [Facing; FEW],
    pub(crate) faces: bool,
    /// There are facing entries, and nothing that this rank has sent to itself.
    pub(crate) at_once: Cell<bool>,
    /// Whose ring is looked at first.
    pub(crate) turn: Cell<Rank>,
    /// The ring of all, where there are no pairs.
    announced: Announced<PEERS>,
    /// To how many peers data are in flight.
    pub(crate) in_flight: Cell<u32>,
    /// How many entries of a ring follow its first, and the places from a ticket's bit that tells
    /// laps apart to the top one.
    pub(crate) mask: u32,
    pub(crate) to_top: u32,
}

impl<M: Records, const PEERS: usize> RecordMail<M, PEERS> {
    /// The state of the rings with `rank`, if it has a ring of its own.
    #[inline(always)]
    pub(crate) fn peer(&self, rank: Rank) -> Option<&Peer> {
        self.peers.get(rank.index().checked_rem(PEERS)?)
    }

    /// The facing entries of this rank and another one, if they have any.
    #[inline]
    pub(crate) fn facing(&self, rank: Rank) -> Option<&Facing> {
        let have = self.faces && rank != self.base.rank();
        self.facing.get(rank.index()).filter(|_| have)
    }

    /// Which ring is looked at after which.
    fn take_turns(&self) {
        let (me, count) = (self.base.rank(), self.base.size());
        for (number, Peer { inbox, .. }) in (0..count).zip(&self.peers) {
            let next = Rank::new(number).next(count);
            let other = if next == me { next.next(count) } else { next };
            let head = self.base.layout.head(self.base.own_rings(), number.into());
            inbox.place(other, head.offset);
            if Rank::new(number) == me {
                self.turn.set(other);
            }
        }
    }

    /// `Ok` if all data in flight to `rank` are in their place.
    fn placed_at(&self, rank: Rank) -> Result<(), Refusal> {
        let Some(Peer { out, .. }) = self.peers.get(rank.index()) else {
            return Ok(());
        };
        let Some(ticket) = out.flight.ticket() else {
            return Ok(());
        };
        if !self.records_placed(rank, out, ticket)? {
            return Err(Refusal::Busy(rank));
        }
        out.flight.has_arrived();
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
        Ok(())
    }
}

impl<M: Records, const PEERS: usize> Mail for RecordMail<M, PEERS> {
    type Machine = M;
    type Atomics = Native;
    const COHERENT: bool = true;
    const FAST: bool = true;
    const PEERS: usize = PEERS;

    fn plan(machine: &M, asked: Option<Ring>) -> Plan {
        const {
            // Entries lie at multiples of their size.
            assert!(M::COHERENT && M::LINE >= 32, "a coherent machine");
        }
        let ranks = machine.cores();
        let ring = match asked {
            Some(Ring::Bells { entries }) => Ring::Pairs { entries },
            Some(ring) => ring,
            None => default_ring(ranks).for_peers(ranks, PEERS),
        };
        let facing = if has_facing(ring, ranks) {
            line_of(M::LINE).saturating_mul(ranks.into())
        } else {
            0
        };
        let parts = Parts {
            entry: ENTRY,
            bells: 0,
            behind: facing,
        };
        Plan {
            ring,
            parts,
            buffer: 0,
        }
    }

    #[inline(always)]
    fn new(base: Base<M, Native>) -> Self {
        let ring = base.layout.ring;
        let faces = has_facing(ring, base.size());
        Self {
            base,
            peers: [const { Peer::new() }; PEERS],
            facing: [const { Facing::new() }; FEW],
            faces,
            at_once: Cell::new(faces),
            turn: Cell::new(Rank::new(0)),
            announced: Announced::nothing(),
            in_flight: Cell::new(0),
            mask: ring.entries().wrapping_sub(1),
            to_top: 31_u32.wrapping_sub(ring.entries().trailing_zeros()),
        }
    }

    #[inline(always)]
    fn base(&self) -> &Base<M, Native> {
        &self.base
    }

    fn clear_rings(&self) {
        self.take_turns();
        self.base.clear_tail();
        self.base.empty_rings(ENTRY, FIRST);
        for peer in (0..self.base.size()).map(Rank::new).take(FEW) {
            if let Some(facing) = self.facing(peer) {
                facing.place(&self.base, peer);
            }
        }
    }

    // ---- Notifications ----

    #[inline(never)]
    fn send(
        &self,
        to: Rank,
        (place, data): (usize, &[u8]),
        immediate: u32,
        inline: bool,
        _: &Op,
    ) -> Result<(), Refusal> {
        self.base.region_of(to)?;
        let of_pairs = self.base.layout.ring.of_pairs();
        let Some(peer) = self.peers.get(to.index()).filter(|_| of_pairs) else {
            return self
                .announced
                .send(self, to, (place, data), immediate, ENTRY);
        };
        let travels = inline && to != self.base.rank() && data.len() <= DATA;
        let end = place.saturating_add(data.len());
        // Data that go to their place immediately must not come before older ones that have not.
        if !travels && !data.is_empty() && peer.out.flight.has(place, end) {
            point!(ORDER "of two puts of the same bytes the later one stays":
                "coherent.records.send.placed", self.placed(Some(to))?);
        }
        self.send_record((to, peer), (place, data), immediate, travels)
    }

    #[inline(never)]
    fn take(&self, _: Wants) -> Option<Arrival> {
        if !self.base.layout.ring.of_pairs() {
            return self.announced.take(&self.base, ENTRY);
        }
        // Never in the message buffer.
        let rings = Region::memory(self.base.machine.core());
        let count = self.base.size();
        let mut next = self.turn.get();
        for _ in 0..count {
            let source = next;
            next = source.next(count);
            let Peer { out, inbox } = self.peer(source)?;
            // This rank knows what it has sent to itself. (One that is alone has nothing else to
            // look at.)
            if count > 1 && source == self.base.rank() && out.next() == inbox.next() {
                self.at_once.set(self.faces);
                self.turn.set(inbox.turn());
                continue;
            }
            if let Some(immediate) = self.take_entry(rings, source, inbox) {
                let at_once = self.at_once.get();
                self.turn.set(if at_once { inbox.turn() } else { next });
                let sender = Some(source);
                return Some(Arrival { immediate, sender });
            }
        }
        None
    }

    #[inline(always)]
    fn fast_send(&self, to: Rank, place: (Key, usize), data: &[u8], immediate: u32) -> bool {
        self.send_at_once(to, place, data, immediate)
    }

    #[inline(always)]
    fn fast_take(&self, wanted: u32, looks: u32) -> bool {
        self.take_at_once(wanted, looks)
    }

    // ---- Order ----

    #[inline]
    fn must_drain(&self) -> bool {
        // That costs less than to remember what was stored.
        true
    }

    #[inline]
    fn has_settled(&self, before_amo: bool) -> bool {
        point!(DRAIN "stores that have arrived are in memory": "coherent.flush.settle", {
            if before_amo {
                self.base.machine.drain();
            } else {
                // Before later loads, too: two ranks that put, flush and get do not both miss the
                // other's.
                self.base.machine.settle();
            }
        });
        self.in_flight.get() == 0
    }

    #[inline(never)]
    fn placed(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if self.in_flight.get() == 0 {
            return Ok(());
        }
        if let Some(rank) = to {
            return self.placed_at(rank);
        }
        let mut outcome = Ok(());
        for rank in (0..).map(Rank::new).take(PEERS) {
            if let Err(why) = self.placed_at(rank) {
                outcome = Err(why);
            }
        }
        outcome
    }

    // ---- This rank's memory ----

    #[inline]
    fn read_own(&self, start: usize, into: &mut [u8]) {
        self.base.machine.read(self.base.own(start), into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_a_ring_per_pair_of_up_to_64_ranks() {
        for (ranks, entries) in [(1, 64), (2, 32), (4, 16), (5, 16), (64, 16)] {
            let ring = default_ring(ranks);
            assert_eq!(ring, Ring::Pairs { entries }, "{ranks}");
            assert_eq!(ring.check(ranks, PAIRS), Ok(()));
        }
        assert!(!default_ring(65).of_pairs());
    }
}
