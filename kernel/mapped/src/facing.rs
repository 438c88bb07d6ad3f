//! Facing entries: between two ranks of a coherent machine, an entry each way in one line, for
//! whoever answers.
//!
//! A line that a core has just read is the nearest that it can store to: the caches hand it over
//! with the right to write. An answer that goes back through the line it answers takes one
//! transfer; through another line, which its reader polls, two.
//!
//! So each pair of up to 4 ranks whose machine is [`COHERENT`](flagpost_hal::Coherence::COHERENT)
//! has, beside its two rings, a line with two entries face to face. A producer uses its one when
//! the peer has said that nothing is left to take; else the ring.
//!
//! # Guarantee
//! G1. Entries of one producer are taken in program order, wherever they are.
//!
//! # Invariants
//! I1. An entry is stored here only when its producer's earlier ones have all been taken. So it is
//!     older than all that are in the ring.
//! I2. As many entries are under way as a ring has, in both places together: those in a ring fit.
//! I3. A facing entry has a phase of its own, which changes with each use of it; those of the ring
//!     change with its laps, and a lap counts what was stored in the ring.
//!
//! # Memory layout (per peer, in the region of the lower rank of the two)
//! ```text
//!   0                              32                             64
//!   ┌──────────────────────────────┬──────────────────────────────┐
//!   │ entry of the lower rank      │ entry of the higher rank     │
//!   └──────────────────────────────┴──────────────────────────────┘
//! ```
//! Every entry, wherever it is stored, says in its second word how many entries its producer has
//! taken of the ring the other way (and here): who finds there all that it has sent may use its
//! facing entry next.
//!
//! The lower rank clears the line when it starts. Until then it holds anything: so everybody's
//! first entry goes through the ring, and the higher rank looks here when it has taken one from
//! there.
//!
//! # Steps
//! The owner looks here, then at the next entry of the ring; what it finds there it takes if,
//! behind an acquire, nothing is here: both may have come in between, this one first.
//!
//! # Evidence
//! All cases on a coherent machine, in order and under weak order, and the smallest in all
//! schedules: `tests/host/coherent.rs`.
//!
//! # Source
//! Ours. What it gains is measured in `docs/log/decisions.md`, 54.

use core::cell::Cell;

use flagpost_hal::{Address, CoreId, Machine, Region, Spot};
use flagpost_link::{Link as _, Rank};

use crate::{
    Atomics, Mapped, Ring,
    entry::{Entry, WORDS, phase},
    layout::round_up,
    long::FEW,
    ring::FIRST,
};

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
    /// How many entries this rank has stored here, and taken.
    stored: Cell<u32>,
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

    /// It will be stored: the lap of it.
    #[inline(always)]
    pub(crate) fn stores(&self) -> u32 {
        let lap = self.stored.get();
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

/// Whether so many ranks with such rings have facing entries.
pub(crate) const fn has_facing(coherent: bool, ring: Ring, ranks: u16) -> bool {
    coherent && ring.of_pairs() && ranks as usize <= FEW
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// The facing entries of this rank and another one, if they have any.
    #[inline]
    pub(crate) fn facing(&self, rank: Rank) -> Option<&Facing> {
        let have = has_facing(M::COHERENT, self.layout.ring, self.size()) && rank != self.rank();
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

    /// The facing entry of `peer`: where it is, and its first word, if it has come. A loop that
    /// waits looks at it.
    pub(crate) fn look_facing(&self, peer: Rank, facing: &Facing) -> Option<(Address, u32)> {
        if !facing.is_met.get() {
            return None;
        }
        let ([_, at], lap) = (self.facing_at(peer), facing.lap());
        let first = self.look_first(|| self.machine.load_u32(at), at, phase(lap))?;
        Some((at, first))
    }

    /// Whether the peer's facing entry has come, behind an acquire.
    #[inline(always)]
    pub(crate) fn has_faced(&self, facing: &Facing) -> bool {
        let [_, back, ..] = &facing.spots;
        Entry::is_of(
            A::load_record(&self.machine, back.get()),
            phase(facing.lap()),
        )
    }
}
