//! Facing entries: a line that two ranks share, with an entry of each.
//!
//! A line that a core has just read is the nearest that it can store to: the caches hand it over
//! with the right to write. So each pair of up to `FEW` ranks has, beside its two rings, a line
//! with two entries face to face. An answer that goes back through the line it answers takes one
//! transfer; through another line, which its reader polls, two. A producer uses its facing entry
//! when the peer has said that nothing is left to take; else the ring.
//!
//! # Invariants
//! I1. A facing entry is stored only when its producer's earlier ones have all been taken. So it is
//!     older than all that are in the ring.
//! I2. A facing entry has a phase of its own, which changes with each use of it; those of the ring
//!     change with its laps, and a lap counts what was stored in the ring.
//!
//! The lower rank of two clears their facing line when it starts. Until then it holds anything: so
//! everybody's first entry goes through the ring, and the higher rank looks here when it has taken
//! one from there.
//!
//! # Source
//! Ours. Its gain is measured in `docs/log/decisions.md`, 54.

use core::cell::Cell;

use flagpost_hal::{Address, CoreId, Region};
use flagpost_link::Rank;
use flagpost_loadstore::{
    Base, Native,
    announced::look_first,
    layout::round_up,
    phase::{WORDS, is_of, phase},
    ring::{FIRST, Ring},
};
use flagpost_record::Spot;

use crate::{Records, entry::ENTRY};

/// Most ranks that have facing entries.
pub(crate) const FEW: usize = 4;

/// Bytes of a line with two facing entries.
pub(crate) const fn line_of(line: usize) -> u32 {
    round_up(ENTRY.saturating_mul(2), line as u32)
}

/// True if `ranks` with such rings have facing entries.
pub(crate) const fn has_facing(ring: Ring, ranks: u16) -> bool {
    ring.of_pairs() && ranks as usize <= FEW
}

/// The facing entries of a rank and a peer, as the rank knows them. Of 64 bytes, so that a shift
/// finds it.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Facing {
    /// Where this rank's entry is, and the peer's (until that has told something: one that is
    /// always empty); the first entries of the peer's ring and of this rank's.
    spots: [Cell<Spot>; 4],
    /// Where the peer's entry is; and whether that is known to be cleared.
    met: Cell<Spot>,
    is_met: Cell<bool>,
    /// How many entries this rank has stored here, and taken; and the ticket of its last one.
    stored: Cell<u32>,
    last: Cell<u32>,
    taken: Cell<u32>,
    /// How many of this rank's entries the peer had taken, as its last one says, or `head` did: not
    /// older than a ring is long.
    answered: Cell<u32>,
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

    /// True if the entry of `ticket` may be stored here: I1. Not the first one, which goes through
    /// the ring.
    #[inline(always)]
    pub(crate) fn is_free(&self, ticket: u32) -> bool {
        self.answered.get() == ticket && ticket != FIRST
    }

    /// The entry of `ticket` will be stored: the lap of it.
    #[inline(always)]
    pub(crate) fn stores(&self, ticket: u32) -> u32 {
        let lap = self.stored.get();
        self.last.set(ticket);
        self.stored.set(lap.wrapping_add(1));
        lap
    }

    /// Where this rank's entry is.
    #[inline(always)]
    pub(crate) fn out(&self) -> Spot {
        let [out, ..] = &self.spots;
        out.get()
    }

    /// Where the peer's entry is, once it is there.
    #[inline(always)]
    pub(crate) fn back(&self) -> Spot {
        let [_, back, ..] = &self.spots;
        back.get()
    }

    /// The first entry of the ring at the peer.
    #[inline(always)]
    pub(crate) fn ring_there(&self) -> Spot {
        let [_, _, there, _] = &self.spots;
        there.get()
    }

    /// The first entry of this rank's ring.
    #[inline(always)]
    pub(crate) fn ring_here(&self) -> Spot {
        let [.., here] = &self.spots;
        here.get()
    }

    /// The ticket of the last entry that was stored here, if any was.
    pub(crate) fn last(&self) -> Option<u32> {
        (self.stored.get() > 0).then(|| self.last.get())
    }

    /// The peer has said that it has taken all entries before `ticket`, now: what was heard before
    /// is never so old that numbers have come round to it.
    #[inline(always)]
    pub(crate) fn answers(&self, ticket: u32) {
        self.answered.set(ticket);
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

    /// Finds out where the entries of this rank and `peer` are; and clears this rank's, before any
    /// peer may use them.
    pub(crate) fn place<M: Records>(&self, base: &Base<M, Native>, peer: Rank) {
        let (me, machine) = (base.rank(), &base.machine);
        // The line of this rank and itself is nobody's.
        let [nobody, _] = facing_at(base, me);
        // The other phase than that of the first.
        let empty = [phase(1).to_le_bytes(); WORDS];
        let clear = |at| machine.store_bytes(at, empty.as_flattened());
        let [out, back] = facing_at(base, peer);
        self.met.set(machine.spot(back));
        let known = if me < peer {
            clear(out);
            clear(back);
            self.is_met.set(true);
            back
        } else {
            clear(nobody);
            nobody
        };
        let rings = [(peer, me), (me, peer)].map(|(owner, producer)| {
            let owner = Region::memory(CoreId::new(owner.get()));
            base.layout.entry(owner, producer.get().into(), 0, ENTRY)
        });
        let [there, here] = rings;
        for (spot, at) in self.spots.iter().zip([out, known, there, here]) {
            spot.set(machine.spot(at));
        }
    }

    /// The entry of `peer`: where it is, and its first word, if it has come. A loop that waits
    /// looks at it.
    pub(crate) fn look<M: Records>(
        &self,
        base: &Base<M, Native>,
        peer: Rank,
    ) -> Option<(Address, u32)> {
        if !self.is_met.get() {
            return None;
        }
        let ([_, at], lap) = (facing_at(base, peer), self.lap());
        let first = look_first(base, at, phase(lap))?;
        Some((at, first))
    }

    /// True if the peer's entry has come, after an acquire.
    #[inline(always)]
    pub(crate) fn has_come<M: Records>(&self, machine: &M) -> bool {
        is_of(machine.load_record(self.back()), phase(self.lap()))
    }
}

/// Where this rank's facing entry to `rank` is, and that of `rank` to this one.
pub(crate) fn facing_at<M: Records>(base: &Base<M, Native>, rank: Rank) -> [Address; 2] {
    let me = base.rank();
    let (low, high) = if me < rank { (me, rank) } else { (rank, me) };
    let before = u32::from(high.get()).saturating_mul(line_of(M::LINE));
    let offset = base.layout.behind(before) as usize;
    let first = Region::memory(CoreId::new(low.get())).at(offset);
    let second = first.plus(ENTRY as usize);
    if me == low {
        [first, second]
    } else {
        [second, first]
    }
}
