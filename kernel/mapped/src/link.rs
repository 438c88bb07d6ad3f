//! [`Mapped`]: the link itself.

use core::{cell::Cell, marker::PhantomData};

use flagpost_hal::{Address, CoreId, Machine, Region};
use flagpost_link::{
    Access, Amo, Arrival, Fast, Full, Given, Gone, Heap, Key, Link, LocalMemory, Op, Place, Rank,
    Refusal, Slot, Slots, Step, Telling, Time, Waiting, Width, order, point,
};

use crate::{
    Atomics, UnderLock,
    deferred::{Deferred, Kept},
    layout::{Layout, PAIRS, SCRATCH_PER_RANK, SLOTS},
    mail::{
        bells::Bells,
        peer::Peer,
        records::{FEW, Facing},
    },
    words::{cells::UPDATE, poll::Polled},
};

/// A rank's link over the memory of machine `M`. Rank r is core r.
///
/// ```text
///   Mapped::start(machine, session)      says that this rank begins the session
///   connect(to)                          when all have: clears own words, then says `ready`
/// ```
/// Memory may hold anything at start-up; `session` is what tells a peer that has started from
/// left-over bytes of an earlier run. It must be the same on all ranks, not 0, and different from
/// those of earlier links in this memory. 0 and the last link's are refused. Where memory is zeros
/// before each run, as of a job on Linux, any number does; where it keeps its bytes over a restart,
/// count.
///
/// `A` is how words that many change are changed: see [`atomics`](crate::words::atomics).
///
/// # Sizes
/// A link lies where its owner puts it, with tables of fixed sizes. Where memory is dear, its type
/// names smaller ones, the same on all ranks, and [`start_sized`](Self::start_sized) starts it:
///
/// * `PEERS`, 64 by default: as many as there are ranks, from 1 to 64. More ranks than that share
///   a ring, and rings of pairs are refused.
/// * `PIECES`, 192 by default: how many pieces of a rank's memory, and of its message buffer, are
///   in use at a time. A window takes 3. More are refused: [`Refusal::TooManyPieces`].
///
/// `cargo xtask bench stack`, on an x86-64 processor: a link of the default sizes takes 8,960
/// bytes, one of 2 and 16 takes 2,176. A peer is 64 bytes, and a piece 16.
///
/// ```
/// use flagpost_link::{Link as _, Refusal, Session};
/// use flagpost_mapped::{Mapped, UnderLock};
/// use flagpost_sim::{Config, Sim, SimCore};
///
/// /// For two cores, and five windows at a time.
/// type Small = Mapped<SimCore, UnderLock, 2, 16>;
///
/// let report = Sim::new(Config { cores: 2, ..Config::default() }).run(|core| {
///     let link = Small::start_sized(core, Session::FIRST, None)?;
///     assert_eq!(link.size(), 2);
///     Ok::<(), Refusal>(())
/// });
/// report.assert_done();
/// ```
#[derive(Debug)]
pub struct Mapped<
    M: Machine,
    A: Atomics<M> = UnderLock,
    const PEERS: usize = PAIRS,
    const PIECES: usize = { flagpost_link::PIECES },
> {
    pub(crate) machine: M,
    pub(crate) atomics: PhantomData<A>,
    pub(crate) layout: Layout,
    pub(crate) polled: Polled,
    /// What is remembered of the rings between this rank and each peer.
    pub(crate) peers: [Peer; PEERS],
    /// Which of them have rung.
    pub(crate) bells: Bells,
    /// Whose ring is looked at first.
    pub(crate) turn: Cell<Rank>,
    /// Pairs: whose entry was taken last, but for those that are taken at once.
    pub(crate) sender: Cell<Rank>,
    /// The [facing](crate::mail::records) entries of this rank and each other.
    pub(crate) facing: [Facing; FEW],
    /// There are facing entries, and nothing that this rank has sent to itself.
    pub(crate) at_once: Cell<bool>,
    /// Data that were taken and are not placed.
    pub(crate) deferred: Deferred,
    /// The most data that travel in an entry, and in lines behind it.
    pub(crate) most_inline: usize,
    /// To how many peers data are under way.
    pub(crate) under_way: Cell<u32>,
    /// Something was stored at a peer, or loaded that others may store to once they are told, since
    /// the last drain.
    pub(crate) unordered: Cell<bool>,
    /// Own memory that is in use, and own message buffer.
    pub(crate) memory: Heap<PIECES>,
    pub(crate) buffer: Heap<PIECES>,
    pub(crate) session: u32,
    /// The first rank that is not known to have begun this session. None once this rank is ready.
    pub(crate) missing: Cell<Option<Rank>>,
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize>
    Mapped<M, A, PEERS, PIECES>
{
    /// The machine underneath.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    // ---- Addresses ----

    /// `rank`'s region.
    #[inline]
    pub(crate) fn region_of(&self, rank: Rank) -> Result<Region, Refusal> {
        if rank.get() < self.machine.cores() {
            Ok(Region::memory(CoreId::new(rank.get())))
        } else {
            Err(Refusal::NoSuchRank(rank))
        }
    }

    /// A byte of own memory.
    pub(crate) fn own(&self, offset: u32) -> Address {
        Region::memory(self.machine.core()).at(offset)
    }

    /// Region offset `offset`, if `len` bytes from there on lie inside a region.
    #[inline]
    pub(crate) fn check(&self, offset: u32, len: usize) -> Result<u32, Refusal> {
        let size = self.machine.memory_size();
        let end = (len as u64).saturating_add(u64::from(offset));
        if end > u64::from(size) {
            return Err(Refusal::OutOfRange { end, size });
        }
        Ok(offset)
    }

    /// The region offset of `len` bytes at `offset` of `key`'s memory.
    #[inline(always)]
    fn resolve(&self, key: Key, offset: u32, len: usize) -> Result<u32, Refusal> {
        self.check(key.get().saturating_add(offset), len)
    }

    /// Something was stored at a peer, or loaded that others may store to once they are told. Where
    /// the machine is coherent, a drain costs less than to remember that.
    #[inline]
    pub(crate) fn stored(&self) {
        if !M::COHERENT {
            self.unordered.set(true);
        }
    }

    /// Own bytes, through the cache.
    #[inline]
    pub(crate) fn read_own(&self, start: u32, into: &mut [u8]) {
        self.machine.read(self.own(start), into);
        // ORDER: a notification comes behind it: who is told may store there; to lines that are
        // kept, when they are placed.
        point!(
            "mapped.read.order",
            self.beside_kept(start, into.len() as u32, |_| self.stored())
        );
    }

    /// All that was stored is drained.
    #[inline]
    pub(crate) fn drained(&self) {
        if !M::COHERENT {
            self.unordered.set(false);
        }
    }

    /// Drains what this rank has stored; false if inline data are under way. `before_amo`: an
    /// atomic operation of the machine follows.
    #[inline]
    fn has_settled(&self, before_amo: bool) -> bool {
        // DRAIN: stores that have arrived are in memory, which is where peers look.
        point!("mapped.flush.drain", {
            if M::COHERENT && !(A::NATIVE && before_amo) {
                // Before later loads, too: two ranks that put, flush and get do not both miss the
                // other's.
                self.machine.settle();
            } else {
                self.machine.drain();
            }
        });
        if !M::COHERENT {
            // ACQUIRE: what is got behind it is not older than what was got before: a rank may wait
            // for a word by gets.
            point!("mapped.flush.acquire", self.machine.acquire());
        }
        self.drained();
        self.under_way.get() == 0
    }

    /// Where [`Fast::fast_amo`] finds an element of `bytes` bytes, after all that comes before it.
    #[inline(always)]
    fn fast_at(&self, to: Rank, key: Key, offset: u32, bytes: u32) -> Option<Address> {
        let place = self.resolve(key, offset, bytes as usize).ok()?;
        if place & bytes.wrapping_sub(1) != 0 {
            return None;
        }
        let at = self.region_of(to).ok()?.at(place);
        self.before_changing().ok()?;
        self.looked();
        self.stored();
        Some(at)
    }
}

/// Takes a piece of `heap`.
pub(crate) fn take<const PIECES: usize>(
    heap: &Heap<PIECES>,
    units: u32,
    place: Place,
) -> Result<u32, Refusal> {
    heap.take(units, place).map_err(|full| match full {
        Full::Missing { units } => Refusal::NoMemory { missing: units },
        Full::Pieces { max } => Refusal::TooManyPieces { max },
    })
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize> Link
    for Mapped<M, A, PEERS, PIECES>
{
    const SLOTS: u32 = SLOTS;
    const LINE: u32 = M::LINE as u32;
    const UPDATE: u32 = if A::WIDE { 8 } else { UPDATE };
    const UPDATE_SMALL: u32 = if A::NATIVE { 4 } else { UPDATE };
    const DIRECT: bool = true;
    const COHERENT: bool = M::COHERENT;
    const PASSIVE: bool = M::COHERENT;
    const LOOKS: u32 = M::LOOKS;
    const LISTENS: bool = M::LISTENS;

    fn rank(&self) -> Rank {
        Rank::new(self.machine.core().get())
    }

    fn size(&self) -> u16 {
        self.machine.cores()
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize> LocalMemory
    for Mapped<M, A, PEERS, PIECES>
{
    fn allocate(&self, bytes: u32, place: Place) -> Result<Key, Refusal> {
        let start = take(&self.memory, bytes, place)?;
        Ok(Key::new(start))
    }

    fn allocate_slots(&self, wanted: Slots) -> Result<Slot, Refusal> {
        match wanted {
            Slots::Count(count) => self.take_slots(count),
            Slots::OfPairs => self.take_slots_of_pairs(),
        }
    }

    fn withdraw(&self, given: impl Into<Given>) {
        match given.into() {
            Given::Memory(key) => {
                // PLACE: what is kept for it does not come over what it becomes, slots perhaps,
                // which are stored to before anybody is told.
                point!("mapped.withdraw.place", self.place_kept(Kept::All));
                self.memory.give_back(key.get());
            }
            Given::Slots(first) => self.give_back_slots(first),
        }
    }

    fn scratch(&self) -> (Key, u32) {
        let bytes = SCRATCH_PER_RANK.saturating_mul(u32::from(self.size()));
        (Key::new(self.layout.scratch), bytes)
    }

    #[inline]
    fn read_local(&self, key: Key, offset: u32, into: &mut [u8]) -> Result<(), Refusal> {
        let start = self.resolve(key, offset, into.len())?;
        self.read_kept(start, into);
        self.looked();
        Ok(())
    }

    fn write_local(&self, key: Key, offset: u32, from: &[u8]) -> Result<(), Refusal> {
        let start = self.resolve(key, offset, from.len())?;
        // PLACE: own stores come behind it, in a line that nobody stores to but this rank.
        point!(
            "mapped.deferred.write",
            self.place_beside(start, from.len())
        );
        self.machine.write(self.own(start), from);
        Ok(())
    }

    #[inline]
    fn publish(&self, key: Key, offset: u32, bytes: u32) -> Result<(), Refusal> {
        let start = match bytes {
            0 => 0,
            _ => self.resolve(key, offset, bytes as usize)?,
        };
        order!(
            "mapped.publish.write_back<drain",
            point!(
                "mapped.publish.write_back",
                self.beside_kept(start, bytes, |lines| self.machine.write_back(lines))
            ),
            // DRAIN: the lines are in memory before anything that tells a peer so.
            point!("mapped.publish.drain", self.machine.drain())
        );
        Ok(())
    }

    fn refresh(&self, key: Key, offset: u32, bytes: u32) -> Result<(), Refusal> {
        let start = self.resolve(key, offset, bytes as usize)?;
        point!(
            "mapped.refresh.invalidate",
            self.beside_kept(start, bytes, |lines| self.machine.invalidate(lines))
        );
        Ok(())
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize> Access
    for Mapped<M, A, PEERS, PIECES>
{
    fn connect(&self, to: Rank) -> Result<(), Refusal> {
        let region = self.region_of(to)?;
        self.open()?;
        let ready = self.poll(region.at(self.layout.ready));
        if ready != self.session {
            return Err(Refusal::NotReady(to));
        }
        // No acquire is needed: the next access to the peer is a store, or a load under a lock,
        // which acquires.
        Ok(())
    }

    #[inline]
    fn put(&self, to: Rank, key: Key, offset: u32, data: &[u8]) -> Result<(), Refusal> {
        let region = self.region_of(to)?;
        let start = self.resolve(key, offset, data.len())?;
        // PLACE, WAIT: D2 of `deferred`: whoever looks at these bytes is told something.
        point!("mapped.put.told", self.before_telling(None)?);
        self.machine.store_bytes(region.at(start), data);
        self.stored();
        Ok(())
    }

    fn get(
        &self,
        from: Rank,
        key: Key,
        offset: u32,
        into: &mut [u8],
        _: &Op,
    ) -> Result<(), Refusal> {
        let region = self.region_of(from)?;
        let start = self.resolve(key, offset, into.len())?;
        // PLACE, WAIT: D1, D2 of `deferred`.
        point!("mapped.get.told", self.before_access(from)?);
        self.machine.load_bytes(region.at(start), into);
        // ORDER: a notification comes behind it: who is told may store there.
        point!("mapped.get.order", self.stored());
        self.looked();
        Ok(())
    }

    fn amo(
        &self,
        to: Rank,
        key: Key,
        offset: u32,
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
        offset: u32,
        len: usize,
        change: &mut dyn FnMut(&mut [u8]),
        _: &Op,
    ) -> Result<(), Refusal> {
        self.change_bytes(to, self.resolve(key, offset, len)?, len, change)
    }

    fn fence(&self) -> Result<(), Refusal> {
        // DRAIN: this is what a fence is.
        point!("mapped.fence.drain", self.machine.drain());
        self.drained();
        Ok(())
    }

    #[inline]
    fn flush(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if let Some(rank) = to {
            self.region_of(rank)?;
        }
        if self.has_settled(false) {
            Ok(())
        } else {
            self.has_placed(to)
        }
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize> Telling
    for Mapped<M, A, PEERS, PIECES>
{
    fn put_immediate(
        &self,
        to: Rank,
        (key, offset): (Key, u32),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        let place = self.resolve(key, offset, data.len())?;
        self.send(to, (place, data), immediate, inline, op)
    }

    fn signal(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal> {
        self.signal_slot(to, slot, value)
    }

    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal> {
        self.slot_reached(slot, value)
    }

    fn watch(
        &self,
        key: Key,
        offset: u32,
        arrived: impl Fn(u32) -> bool,
        _: &Op,
    ) -> Result<Option<u32>, Refusal> {
        self.watch_cell(self.resolve(key, offset, 8)?, arrived)
    }

    fn progress(&self, aside: bool) -> Option<Arrival> {
        let immediate = self.take(aside)?;
        let sender = self.layout.ring.of_pairs().then(|| self.sender.get());
        Some(Arrival { immediate, sender })
    }

    #[inline]
    fn attend(&self) {
        if !M::COHERENT {
            self.read_without_taking();
        }
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize> Waiting
    for Mapped<M, A, PEERS, PIECES>
{
    fn relax(&self) {
        let awake = &self.deferred.awake;
        if self.deferred.coming.get() > 0 || awake.get() > 0 {
            awake.set(awake.get().saturating_sub(1));
            self.polled.note_unknown();
        }
        self.polled.relax(&self.machine, self.watched_bells());
    }

    #[inline(always)]
    fn step(&self, step: Step<'_>) {
        match step {
            Step::Called(place) => self.machine.called(place),
            Step::Look => self.polled.look(&self.machine),
            Step::Begin => {
                self.polled.forget();
                self.polled.begin();
            }
            Step::Waits(what) => self.machine.waits(what),
            Step::End => {
                self.polled.looked();
                self.machine.ended();
            }
        }
    }

    fn gone(&self, rank: Option<Rank>) -> Option<Gone> {
        if let (None, Some(core)) = (rank, self.machine.lost()) {
            return Some(Gone::Lost(Rank::new(core.get())));
        }
        let core = rank.map(|rank| CoreId::new(rank.get()));
        self.machine.has_left(core).then_some(Gone::Left)
    }

    fn is_lost(&self, rank: Rank) -> bool {
        self.machine.is_lost(CoreId::new(rank.get()))
    }

    #[inline]
    fn now(&self) -> Time {
        Time {
            ticks: self.machine.cycles(),
            per_second: self.machine.hertz(),
        }
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize, const PIECES: usize> Fast
    for Mapped<M, A, PEERS, PIECES>
{
    #[inline(always)]
    fn fast_put(&self, to: Rank, place: (Key, u32), data: &[u8], immediate: u32) -> bool {
        self.send_at_once(to, place, data, immediate)
    }

    #[inline(always)]
    fn fast_amo(&self, to: Rank, key: Key, offset: u32, amo: Amo, width: Width) -> Option<u64> {
        match width {
            Width::Half if A::NATIVE => {
                let at = self.fast_at(to, key, offset, 4)?;
                Some(self.changed(self.change_short(at, amo)?).into())
            }
            Width::Whole if A::WIDE => {
                let at = self.fast_at(to, key, offset, 8)?;
                Some(self.changed(self.change_long(at, amo)?))
            }
            _ => None,
        }
    }

    #[inline]
    fn fast_flush(&self, before_amo: bool) -> bool {
        M::COHERENT && self.has_settled(before_amo)
    }

    #[inline(always)]
    fn fast_take(&self, wanted: u32, looks: u32) -> bool {
        self.take_at_once(wanted, looks)
    }
}
