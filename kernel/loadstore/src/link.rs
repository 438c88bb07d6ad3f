//! [`LoadStore`]: the link itself. Puts and gets are loads and stores past the caches;
//! notifications are its mail's. Before each access that others may notice it asks the mail to
//! place data that it keeps. It also hands out this rank's shared memory.

use core::cell::Cell;

use flagpost_hal::{
    Address, CachedMemory as _, Clock as _, Coherence, CoreId, Relax as _, Topology as _,
    UncachedMemory as _,
};
use flagpost_link::{
    Access, Amo, Arrival, Fast, Full, Given, Gone, Heap, Key, Link, LocalMemory, Op, Place, Rank,
    Refusal, Slot, Slots, Step, Telling, Time, Waiting, Wants, Width, Word,
};

use crate::{
    Atomics, Base, Mail,
    layout::{SCRATCH_PER_RANK, SLOTS, UPDATE},
};

/// A rank's link over a machine's loads and stores, with such a [`Mail`]. Rank r is core r.
///
/// ```text
///   LoadStore::start(machine, session)   says that this rank begins the session
///   connect(to)                          when all have: clears own words, then says `ready`
/// ```
/// Memory may hold anything at start-up; `session` is what tells a peer that has started from
/// left-over bytes of an earlier run. It must be the same on all ranks, not 0, and different from
/// those of earlier links in this memory. 0 and the last link's are refused. Where memory is zeros
/// before each run, as of a job on Linux, any number does; where it keeps its bytes over a restart,
/// count.
///
/// # Sizes
/// A link lies where its owner puts it, with tables of fixed sizes. Where memory is dear, its type
/// names smaller ones, the same on all ranks:
///
/// * [`Mail::PEERS`], 64 by default: as many as there are ranks, from 1 to 64. More ranks than that
///   share a ring, and rings of pairs are refused.
/// * `PIECES`, 192 by default: how many pieces of a rank's memory, and of its message buffer, are
///   in use at a time. A window takes 3. More are refused: [`Refusal::TooManyPieces`].
///
/// `cargo xtask bench stack`, on an x86-64 processor, prints what each link takes.
#[derive(Debug)]
pub struct LoadStore<W: Mail, const PIECES: usize = { flagpost_link::PIECES }> {
    pub(crate) mail: W,
    /// This rank's memory that is in use, and its message buffer.
    pub(crate) memory: Heap<PIECES>,
    pub(crate) buffer: Heap<PIECES>,
    pub(crate) session: u32,
    /// The first rank that is not known to have begun this session. None once this rank is ready.
    pub(crate) missing: Cell<Option<Rank>>,
}

impl<W: Mail, const PIECES: usize> LoadStore<W, PIECES> {
    /// The machine underneath.
    #[inline(always)]
    pub fn machine(&self) -> &W::Machine {
        &self.base().machine
    }

    /// How notifications travel.
    pub fn mail(&self) -> &W {
        &self.mail
    }

    #[inline(always)]
    pub(crate) fn base(&self) -> &Base<W::Machine, W::Atomics> {
        self.mail.base()
    }

    /// The region offset of `len` bytes at `offset` of `key`'s memory.
    #[inline(always)]
    fn resolve(&self, key: Key, offset: usize, len: usize) -> Result<usize, Refusal> {
        self.base().resolve(key, offset, len)
    }

    /// Where [`Fast::fast_amo`] finds an element of `bytes` bytes, after all that comes before it.
    #[inline(always)]
    fn fast_at(&self, to: Rank, key: Key, offset: usize, bytes: usize) -> Option<Address> {
        let place = self.resolve(key, offset, bytes).ok()?;
        if place & bytes.wrapping_sub(1) != 0 {
            return None;
        }
        let at = self.base().region_of(to).ok()?.at(place);
        self.before_changing().ok()?;
        self.base().looked();
        self.mail.stored();
        Some(at)
    }
}

/// Takes a piece of `heap`: how many units come before it.
pub(crate) fn take<const PIECES: usize>(
    heap: &Heap<PIECES>,
    bytes: usize,
    place: Place,
) -> Result<u32, Refusal> {
    heap.take(bytes, place).map_err(|full| match full {
        Full::Missing { more } => Refusal::NoMemory { missing: more },
        Full::Pieces { max } => Refusal::TooManyPieces { max },
    })
}

impl<W: Mail, const PIECES: usize> Link for LoadStore<W, PIECES> {
    type Word = <W::Atomics as Atomics<W::Machine>>::Word;

    const SLOTS: u32 = SLOTS;
    const LINE: usize = <W::Machine as Coherence>::LINE;
    const UPDATE: usize = if W::Atomics::WIDE { 8 } else { UPDATE };
    const UPDATE_SMALL: usize = if W::Atomics::NATIVE { 4 } else { UPDATE };
    const DIRECT: bool = true;
    const COHERENT: bool = W::COHERENT;
    const PASSIVE: bool = Self::COHERENT;
    const LOOKS: u32 = W::Machine::LOOKS;
    const LISTENS: bool = W::Machine::LISTENS;

    fn rank(&self) -> Rank {
        Rank::new(self.machine().core().get())
    }

    fn size(&self) -> u16 {
        self.machine().cores()
    }
}

impl<W: Mail, const PIECES: usize> LocalMemory for LoadStore<W, PIECES> {
    fn allocate(&self, bytes: usize, place: Place) -> Result<Key, Refusal> {
        take(&self.memory, bytes, place).map(Key::new)
    }

    fn zero(&self, key: Key, offset: usize, bytes: usize) -> Result<bool, Refusal> {
        let start = self.resolve(key, offset, bytes)?;
        Ok(self.machine().zero(self.base().own(start), bytes))
    }

    fn allocate_slots(&self, wanted: Slots) -> Result<Slot, Refusal> {
        match wanted {
            Slots::Count(count) => self.take_slots(count as usize),
            Slots::OfPairs => self.take_slots_of_pairs(),
        }
    }

    fn renew_slots(&self, first: Slot, count: u32) -> Result<(), Refusal> {
        self.renew(first, count)
    }

    fn withdraw(&self, given: impl Into<Given>) {
        match given.into() {
            Given::Memory(key) => {
                point!(PLACE "data kept for these bytes do not come over what they become":
                    "loadstore.withdraw.place", self.mail.before_withdrawing());
                self.memory.give_back(key.get());
            }
            Given::Slots(first) => self.give_back_slots(first),
        }
    }

    fn scratch(&self) -> (Key, usize) {
        let bytes = (SCRATCH_PER_RANK as usize).saturating_mul(self.size().into());
        (
            Key::at(self.base().layout.scratch as usize, Self::LINE),
            bytes,
        )
    }

    #[inline]
    fn read_local(&self, key: Key, offset: usize, into: &mut [u8]) -> Result<(), Refusal> {
        let start = self.resolve(key, offset, into.len())?;
        self.mail.read_own(start, into);
        self.base().looked();
        Ok(())
    }

    fn write_local(&self, key: Key, offset: usize, from: &[u8]) -> Result<(), Refusal> {
        let start = self.resolve(key, offset, from.len())?;
        point!(PLACE "this rank's stores come after it, in lines that only it stores to":
            "loadstore.deferred.write", self.mail.before_writing(start, from.len()));
        self.machine().write(self.base().own(start), from);
        Ok(())
    }

    #[inline]
    fn publish(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal> {
        let start = match bytes {
            0 => 0,
            _ => self.resolve(key, offset, bytes)?,
        };
        order!("the drain waits for the lines": "loadstore.publish.write_back<drain",
            point!(WRITE_BACK "peers load what this rank has stored":
                "loadstore.publish.write_back",
                self.mail.beside_kept(start, bytes, |lines| self.machine().write_back(lines))),
            point!(DRAIN "the lines are in memory before a peer hears of them":
                "loadstore.publish.drain", self.machine().drain()));
        Ok(())
    }

    fn refresh(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal> {
        let start = self.resolve(key, offset, bytes)?;
        point!(INVALIDATE "old copies are not read again": "loadstore.refresh.invalidate",
            self.mail.beside_kept(start, bytes, |lines| self.machine().invalidate(lines)));
        Ok(())
    }
}

impl<W: Mail, const PIECES: usize> Access for LoadStore<W, PIECES> {
    fn connect(&self, to: Rank) -> Result<(), Refusal> {
        let region = self.base().region_of(to)?;
        self.open()?;
        let ready = self
            .base()
            .poll(region.at(self.base().layout.ready as usize));
        if ready != self.session {
            return Err(Refusal::NotReady(to));
        }
        // No acquire is needed: the next access to the peer is a store, or a load under a lock,
        // which acquires.
        Ok(())
    }

    #[inline]
    fn put(&self, to: Rank, key: Key, offset: usize, data: &[u8]) -> Result<(), Refusal> {
        let region = self.base().region_of(to)?;
        let start = self.resolve(key, offset, data.len())?;
        point!(PLACE "D2 of `deferred`: a rank that polls these bytes is notified":
            "loadstore.put.told", self.mail.before_telling(None)?);
        self.machine().store_bytes(region.at(start), data);
        self.mail.stored();
        self.base().told(to);
        Ok(())
    }

    fn get(
        &self,
        from: Rank,
        key: Key,
        offset: usize,
        into: &mut [u8],
        _: &Op,
    ) -> Result<(), Refusal> {
        let region = self.base().region_of(from)?;
        let start = self.resolve(key, offset, into.len())?;
        point!(PLACE "D1, D2 of `deferred`: this rank finds what it has taken":
            "loadstore.get.told", self.mail.before_access(from)?);
        self.machine().load_bytes(region.at(start), into);
        point!(ORDER "a notification after it lets its receiver store there":
            "loadstore.get.order", self.mail.stored());
        self.base().looked();
        Ok(())
    }

    fn amo(
        &self,
        to: Rank,
        key: Key,
        offset: usize,
        amo: Amo,
        width: Width,
        _: &Op,
    ) -> Result<u64, Refusal> {
        self.change_cell(to, self.resolve(key, offset, 8)?, amo, width)
    }

    fn update(
        &self,
        to: Rank,
        key: Key,
        offset: usize,
        len: usize,
        change: &mut dyn FnMut(&mut [u8]),
        _: &Op,
    ) -> Result<(), Refusal> {
        self.change_bytes(to, self.resolve(key, offset, len)?, len, change)
    }

    fn fence(&self) -> Result<(), Refusal> {
        point!(DRAIN "earlier puts are in memory: this is what a fence is":
            "loadstore.fence.drain", self.machine().drain());
        self.mail.drained();
        Ok(())
    }

    #[inline]
    fn flush(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if let Some(rank) = to {
            self.base().region_of(rank)?;
        }
        if self.mail.has_settled(false) {
            Ok(())
        } else {
            self.mail.placed(to)
        }
    }
}

impl<W: Mail, const PIECES: usize> Telling for LoadStore<W, PIECES> {
    fn put_immediate(
        &self,
        to: Rank,
        (key, offset): (Key, usize),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        let place = self.resolve(key, offset, data.len())?;
        self.mail.send(to, (place, data), immediate, inline, op)
    }

    fn signal(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal> {
        self.signal_slot(to, slot, value)
    }

    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal> {
        self.slot_reached(slot, value)
    }

    fn watch<V: Word>(
        &self,
        key: Key,
        offset: usize,
        arrived: impl Fn(V) -> bool,
        _: &Op,
    ) -> Result<Option<V>, Refusal> {
        self.watch_cell(self.resolve(key, offset, 8)?, arrived)
    }

    fn progress(&self, wants: Wants) -> Option<Arrival> {
        self.mail.take(wants)
    }

    #[inline]
    fn attend(&self) {
        self.mail.attend();
    }
}

impl<W: Mail, const PIECES: usize> Waiting for LoadStore<W, PIECES> {
    fn relax(&self) {
        self.mail.relax();
    }

    #[inline(always)]
    fn step(&self, step: Step<'_>) {
        match step {
            Step::Called(place) => self.machine().called(place),
            Step::Looks(place) => self.machine().looks(place),
            Step::Expected(key, offset, bytes, what) => {
                if let Ok(start) = self.resolve(key, offset, bytes) {
                    self.machine().expected(self.base().own(start), bytes, what);
                }
            }
            Step::Look => self.base().polled.look(self.machine()),
            Step::Begin => self.base().polled.begin(),
            Step::Waits(what) => self.machine().waits(what),
            Step::End => {
                self.base().polled.looked();
                self.machine().ended();
            }
        }
    }

    fn gone(&self, rank: Option<Rank>) -> Option<Gone> {
        if let (None, Some(core)) = (rank, self.machine().lost()) {
            return Some(Gone::Lost(Rank::new(core.get())));
        }
        let core = rank.map(|rank| CoreId::new(rank.get()));
        self.machine().has_left(core).then_some(Gone::Left)
    }

    fn is_lost(&self, rank: Rank) -> bool {
        self.machine().is_lost(CoreId::new(rank.get()))
    }

    #[inline]
    fn now(&self) -> Time {
        Time {
            ticks: self.machine().cycles(),
            per_second: self.machine().hertz(),
        }
    }
}

impl<W: Mail, const PIECES: usize> Fast for LoadStore<W, PIECES> {
    const FAST: bool = W::FAST;

    #[inline(always)]
    fn fast_put(&self, to: Rank, place: (Key, usize), data: &[u8], immediate: u32) -> bool {
        self.mail.fast_send(to, place, data, immediate)
    }

    #[inline(always)]
    fn fast_amo(&self, to: Rank, key: Key, offset: usize, amo: Amo, width: Width) -> Option<u64> {
        match width {
            Width::Half if W::Atomics::NATIVE => {
                let at = self.fast_at(to, key, offset, 4)?;
                let old = self.base().change_short(at, amo)?;
                Some(self.changed(to, amo, old.into()))
            }
            Width::Whole if W::Atomics::WIDE => {
                let at = self.fast_at(to, key, offset, 8)?;
                Some(self.changed(to, amo, self.base().change_long(at, amo)?))
            }
            _ => None,
        }
    }

    #[inline]
    fn fast_flush(&self, before_amo: bool) -> bool {
        W::FAST && self.mail.has_settled(before_amo)
    }

    #[inline(always)]
    fn fast_take(&self, wanted: u32, looks: u32) -> bool {
        self.mail.fast_take(wanted, looks)
    }
}
