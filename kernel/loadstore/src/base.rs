//! [`Base`]: the machine, and where things are in its memory. A mail and the shared words stand on
//! it, so that each offset is computed in one place. It knows this rank, the layout of all ranks'
//! regions, and the words that a loop that waits has polled.

use core::marker::PhantomData;

use flagpost_hal::{Address, CoreId, Lines, Machine, Region};
use flagpost_link::{Key, Rank, Refusal};

use crate::{
    Atomics, Layout,
    phase::{WORDS, phase},
    ring::FIRST,
    words::poll::Polled,
};

/// A machine with the layout of its ranks' memory: what a link stands on. Rank r is core r.
///
/// `A` is how words that many ranks change are changed: see [`atomics`](crate::words::atomics).
#[derive(Debug)]
pub struct Base<M: Machine, A: Atomics<M>> {
    /// The machine.
    pub machine: M,
    /// Where the fixed parts of each rank's memory are.
    pub layout: Layout,
    /// The words that the loop that waits has polled.
    pub polled: Polled,
    atomics: PhantomData<A>,
}

impl<M: Machine, A: Atomics<M>> Base<M, A> {
    #[inline(always)]
    pub(crate) fn new(machine: M, layout: Layout) -> Self {
        Self {
            machine,
            layout,
            polled: Polled::new(),
            atomics: PhantomData,
        }
    }

    /// This rank.
    #[inline(always)]
    pub fn rank(&self) -> Rank {
        Rank::new(self.machine.core().get())
    }

    /// How many ranks there are.
    #[inline(always)]
    pub fn size(&self) -> u16 {
        self.machine.cores()
    }

    // ---- Memory ----

    /// `rank`'s region of memory.
    ///
    /// # Errors
    /// [`Refusal::NoSuchRank`].
    #[inline]
    pub fn region_of(&self, rank: Rank) -> Result<Region, Refusal> {
        if rank.get() < self.machine.cores() {
            Ok(Region::memory(CoreId::new(rank.get())))
        } else {
            Err(Refusal::NoSuchRank(rank))
        }
    }

    /// A byte of this rank's memory.
    #[inline]
    pub fn own(&self, offset: usize) -> Address {
        Region::memory(self.machine.core()).at(offset)
    }

    /// The lines that hold these bytes of this rank's memory.
    pub fn lines(&self, offset: usize, bytes: usize) -> Lines {
        Lines::covering::<M>(self.own(offset), bytes)
    }

    /// Region offset `offset`, if `len` bytes from there on lie inside a region.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    #[inline]
    pub fn check(&self, offset: usize, len: usize) -> Result<usize, Refusal> {
        // As machines check it, so that the compiler keeps one of the two.
        match offset.checked_add(len) {
            Some(end) if end <= self.machine.memory_size() => Ok(offset),
            end => Err(Refusal::OutOfRange {
                end: end.unwrap_or(usize::MAX),
            }),
        }
    }

    /// [`check`](Self::check) of `len` bytes at `offset` of `key`'s memory.
    ///
    /// # Errors
    /// [`Refusal::OutOfRange`].
    #[inline(always)]
    pub fn resolve(&self, key: Key, offset: usize, len: usize) -> Result<usize, Refusal> {
        match key.start(M::LINE).checked_add(offset) {
            Some(start) => self.check(start, len),
            None => Err(Refusal::OutOfRange { end: usize::MAX }),
        }
    }

    /// [`resolve`](Self::resolve), for an offset that only travels: the machine of this rank does
    /// not check it again, and with a constant `len` this is one comparison.
    #[inline(always)]
    pub fn resolve_to_send(&self, key: Key, offset: usize, len: usize) -> Option<usize> {
        let last = self.machine.memory_size().checked_sub(len)?;
        let start = key.start(M::LINE).checked_add(offset)?;
        (start <= last).then_some(start)
    }

    // ---- Rings ----

    /// The region that `owner`'s rings are in.
    ///
    /// # Errors
    /// [`Refusal::NoSuchRank`].
    #[inline]
    pub fn rings_of(&self, owner: Rank) -> Result<Region, Refusal> {
        self.region_of(owner)
            .map(|region| self.layout.rings_in(region.owner))
    }

    /// The region that this rank's rings are in.
    #[inline]
    pub fn own_rings(&self) -> Region {
        self.layout.rings_in(self.machine.core())
    }

    /// The memory action of a flush where caches may be old.
    #[inline]
    pub fn finish_puts(&self) {
        // Before later loads, too: two ranks that put, flush and get do not both miss the other's.
        point!(DRAIN "stores that have arrived are in memory, and gets after it are not older":
            "loadstore.flush.settle_puts", self.machine.settle());
    }

    /// Makes the next ticket of this rank's ring the first one, before any peer may take one.
    pub fn clear_tail(&self) {
        let at = self.own_rings().at(self.layout.tail as usize);
        self.machine.store_u32(at, FIRST);
    }

    /// Empties this rank's rings with entries of `bytes`, at least 4, before any peer may use them;
    /// each head becomes `told`.
    pub fn empty_rings(&self, bytes: u32, told: u32) {
        let (layout, rings) = (self.layout, self.own_rings());
        for number in 0..layout.ring.rings(self.size()) {
            self.machine.store_u32(layout.head(rings, number), told);
            for step in 0..layout.ring.entries() {
                // The other phase than that of the first ticket which has this entry.
                let ticket = FIRST.wrapping_add(step);
                let empty = layout.phase(ticket) ^ phase(1);
                let line = [empty.to_le_bytes(); WORDS];
                let line = line.as_flattened();
                let line = line.get(..bytes as usize).unwrap_or(line);
                let at = layout.entry(rings, number, ticket, bytes);
                self.machine.store_bytes(at, line);
            }
        }
    }
}
