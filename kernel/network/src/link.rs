//! [`Networked`]: the link itself. Each call of the kernel posts operations to the network, or asks
//! for the answers of earlier ones. No call waits: a call that must come after operations in flight
//! is refused until an event has told their end. Memory, slots and the state of each peer are kept
//! here.

use alloc::{collections::VecDeque, vec::Vec};
use core::cell::Cell;

use flagpost_hal::CoreId;
use flagpost_hal::fabric::Fabric;
use flagpost_link::{
    Access, Amo, Arrival, Fast, Full, Given, Gone, Heap, Key, Link, LocalMemory, Op, Place, Rank,
    Refusal, Slot, Slots, Step, Telling, Time, Waiting, Wants, Width, Word,
};

use crate::{
    answers::{Answer, Answers, PLACES},
    control::Said,
    lent::{Lent, extend},
    looks::Looks,
    pieces::Pieces,
};

/// Slots that are there from the start.
const SLOTS: u32 = 32;

/// The count of a slot before the first signal: the second wraps around, so that every run passes
/// it.
const FIRST: u32 = 0_u32.wrapping_sub(2);

/// Slots that there can be.
const MOST_SLOTS: usize = 1 << 24;

/// Immediates of each peer that a rank keeps for its kernel, unless asked for otherwise.
const ENTRIES: u32 = 64;

/// Scratch bytes per rank.
const SCRATCH_PER_RANK: usize = 56;

/// Bytes of a place for what gets bring, at least and at most.
const PLACE: (usize, usize) = (256, 64 << 10);

/// Bytes of a cell; allocations begin at multiples.
const CELL: usize = 8;

/// Bytes that are handed out: a request can name the last cell of them.
const MOST: usize = CELL.saturating_mul(1 << 30);

/// The state of a peer.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Operations that were begun there and are not done.
    pub(crate) under_way: Cell<u32>,
    /// Puts have left that nothing confirms yet.
    pub(crate) unconfirmed: Cell<bool>,
    /// Immediates that were sent there and whose credits have not come back.
    pub(crate) sent: Cell<u32>,
    /// Immediates of it that were taken here and whose credits were not given back.
    pub(crate) taken: Cell<u32>,
    pub(crate) lost: Cell<bool>,
    /// Nobody has been told of that yet who asked for all ranks, or for this one.
    pub(crate) untold: Untold,
}

/// Calls that are still to be told of a loss. Apart: a call that asks for all ranks may not take
/// the answer meant for one of them.
#[derive(Debug, Default)]
pub(crate) struct Untold {
    pub(crate) to_all: Cell<bool>,
    pub(crate) to_one: Cell<bool>,
}

/// A rank's link over its end of a network.
#[derive(Debug)]
pub struct Networked<F> {
    pub(crate) fabric: F,
    /// Bytes of a place for a piece of a get.
    place: usize,
    memory: Heap,
    pub(crate) answers: Answers,
    pub(crate) peers: Vec<Peer>,
    /// How often each slot was signalled, and which are in use.
    pub(crate) slots: Lent<Vec<u32>>,
    numbers: Heap,
    /// Immediates for the kernel, and who sent them.
    pub(crate) arrived: Lent<VecDeque<(Rank, u32)>>,
    /// Immediates that a rank may send before any is taken.
    pub(crate) credits: u32,
    /// The network has refused credits that a peer must get.
    pub(crate) owed: Cell<bool>,
    pub(crate) looks: Looks,
}

/// Where scratch memory begins, after the places of `place` bytes.
const fn scratch_at(place: usize) -> usize {
    place.saturating_mul(PLACES)
}

/// A counter goes up or down.
pub(crate) fn count(counter: &Cell<u32>, by: i32) {
    counter.set(counter.get().saturating_add_signed(by));
}

impl<F: Fabric> Networked<F> {
    /// This rank's link. Peers may be told things before they have started: it waits for them in
    /// the network.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`] if registered memory, or the heap, cannot hold the fixed part for this
    /// many ranks.
    pub fn start(fabric: F) -> Result<Self, Refusal> {
        Self::start_with_queue(fabric, ENTRIES)
    }

    /// [`start`](Self::start) with room for `entries` immediates of each rank instead of 64, at
    /// least one. The same on all ranks.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`] if registered memory, or the heap, cannot hold the fixed part for this
    /// many ranks and entries.
    pub fn start_with_queue(fabric: F, entries: u32) -> Result<Self, Refusal> {
        let ranks = u32::from(fabric.cores());
        let size = fabric.memory_size();
        // A 64th of memory, so that all four take a sixteenth.
        let place = (size >> 6) & !CELL.wrapping_sub(1);
        let place = place.clamp(PLACE.0, PLACE.1);
        let first =
            scratch_at(place).saturating_add(SCRATCH_PER_RANK.saturating_mul(ranks as usize));
        if first > size {
            let missing = first.saturating_sub(size);
            return Err(Refusal::NoMemory { missing });
        }
        let (mut peers, mut slots) = (Vec::new(), Vec::new());
        extend(&mut peers, ranks as usize, Peer::default)?;
        extend(&mut slots, SLOTS as usize, || FIRST)?;
        Ok(Self {
            place,
            memory: Heap::new(
                Key::unit(CELL),
                first,
                size.min(MOST) & !CELL.wrapping_sub(1),
                CELL,
            ),
            answers: Answers::new(),
            peers,
            slots: Lent::new(slots),
            numbers: Heap::new(1, SLOTS as usize, MOST_SLOTS, 1),
            arrived: Lent::new(VecDeque::new()),
            credits: entries.max(1),
            owed: Cell::new(false),
            looks: Looks::new(),
            fabric,
        })
    }

    /// The network underneath.
    pub fn fabric(&self) -> &F {
        &self.fabric
    }

    /// Operations whose answers are kept, or will be, since somebody may ask for them. For
    /// diagnosis: it grows if answers are left over.
    pub fn unanswered(&self) -> usize {
        self.answers.unanswered()
    }

    // ---- Places ----

    /// Where place `number` for a piece of a get is.
    pub(crate) fn piece_at(&self, number: usize) -> usize {
        self.place.saturating_mul(number)
    }

    /// The offset of `len` bytes at `offset` of `key`'s memory.
    fn resolve(&self, key: Key, offset: usize, len: usize) -> Result<usize, Refusal> {
        let start = key.start(CELL).saturating_add(offset);
        let end = start.saturating_add(len);
        if end > self.fabric.memory_size() {
            return Err(Refusal::OutOfRange { end });
        }
        Ok(start)
    }

    /// Reads this rank's bytes, which no event tells of.
    fn read(&self, at: usize, into: &mut [u8]) {
        self.fabric.read(at, into);
        point!(POLL "it does not sleep while these bytes change":
            "network.read.looked", self.looks.unwatched());
    }

    pub(crate) fn peer(&self, rank: Rank) -> Result<&Peer, Refusal> {
        let peer = self.peers.get(rank.index());
        peer.ok_or(Refusal::NoSuchRank(rank))
    }

    fn is_own(&self, rank: Rank) -> bool {
        rank == self.rank()
    }

    /// Takes the oldest immediate that has arrived.
    fn take(&self) -> Option<Arrival> {
        // A look at the network costs more than an immediate: one look brings several.
        let next = self.arrived.with(VecDeque::pop_front);
        let (from, immediate) = match next {
            Some(arrived) => arrived,
            None => {
                self.look();
                self.arrived.with(VecDeque::pop_front)?
            }
        };
        if !self.is_own(from)
            && let Ok(peer) = self.peer(from)
        {
            count(&peer.taken, 1);
            self.give_back(from, peer);
        }
        let sender = Some(from);
        Some(Arrival { immediate, sender })
    }
}

/// The refusal of a [`Heap`], as the link's.
fn refusal(full: Full, bytes_per_unit: usize) -> Refusal {
    match full {
        Full::Missing { more } => Refusal::NoMemory {
            missing: more.saturating_mul(bytes_per_unit),
        },
        Full::Pieces { max } => Refusal::TooManyPieces { max },
    }
}

impl<F: Fabric> Link for Networked<F> {
    type Word = u64;

    const SLOTS: u32 = SLOTS;
    const LINE: usize = CELL;
    const UPDATE: usize = CELL;
    const DIRECT: bool = false;
    const LISTENS: bool = F::LISTENS;

    fn rank(&self) -> Rank {
        Rank::new(self.fabric.core().get())
    }

    fn size(&self) -> u16 {
        self.fabric.cores()
    }
}

impl<F: Fabric> LocalMemory for Networked<F> {
    fn allocate(&self, bytes: usize, place: Place) -> Result<Key, Refusal> {
        let start = self.memory.take(bytes, place);
        start.map(Key::new).map_err(|full| refusal(full, 1))
    }

    fn zero(&self, key: Key, offset: usize, bytes: usize) -> Result<bool, Refusal> {
        let at = self.resolve(key, offset, bytes)?;
        Ok(self.fabric.zero(at, bytes))
    }

    fn allocate_slots(&self, wanted: Slots) -> Result<Slot, Refusal> {
        let count = (wanted.count(self.size()) as usize).max(1);
        let first = self.numbers.take(count, Place::Symmetric);
        let first = first.map_err(|full| refusal(full, 4))?;
        self.slots.with(|slots| {
            let extended = extend(slots, (first as usize).saturating_add(count), || FIRST);
            extended.inspect_err(|_| {
                self.numbers.give_back(first);
            })
        })?;
        self.renew_slots(Slot(first as usize), count as u32)?;
        Ok(Slot(first as usize))
    }

    fn renew_slots(&self, first: Slot, count: u32) -> Result<(), Refusal> {
        self.slots.with(|slots| {
            let slots = slots.iter_mut().skip(first.0);
            slots.take(count as usize).for_each(|slot| {
                point!(CLEAR "all signals to former owners were heard before their last barrier":
                    "network.allocate_slots.clear", *slot = FIRST);
            });
        });
        Ok(())
    }

    fn withdraw(&self, given: impl Into<Given>) {
        match given.into() {
            Given::Memory(key) => self.memory.give_back(key.get()),
            Given::Slots(first) => self.numbers.give_back(first.0 as u32),
        };
    }

    fn scratch(&self) -> (Key, usize) {
        let bytes = SCRATCH_PER_RANK.saturating_mul(self.size().into());
        (Key::at(scratch_at(self.place), CELL), bytes)
    }

    fn read_local(&self, key: Key, offset: usize, into: &mut [u8]) -> Result<(), Refusal> {
        let at = self.resolve(key, offset, into.len())?;
        self.read(at, into);
        Ok(())
    }

    fn write_local(&self, key: Key, offset: usize, from: &[u8]) -> Result<(), Refusal> {
        let at = self.resolve(key, offset, from.len())?;
        self.fabric.write(at, from);
        Ok(())
    }

    fn publish(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal> {
        // The network loads what the host has stored.
        self.resolve(key, offset, bytes).map(|_| ())
    }

    fn refresh(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal> {
        self.resolve(key, offset, bytes).map(|_| ())
    }
}

impl<F: Fabric> Access for Networked<F> {
    fn connect(&self, to: Rank) -> Result<(), Refusal> {
        // Whatever is sent waits in the network until `to` has started.
        self.peer(to).map(|_| ())
    }

    fn put(&self, to: Rank, key: Key, offset: usize, data: &[u8]) -> Result<(), Refusal> {
        let peer = self.peer(to)?;
        let at = self.resolve(key, offset, data.len())?;
        if self.is_own(to) {
            self.fabric.write(at, data);
        } else if !data.is_empty() {
            self.begin_put(to, peer, at, data, None)?;
        }
        Ok(())
    }

    fn get(
        &self,
        from: Rank,
        key: Key,
        offset: usize,
        into: &mut [u8],
        op: &Op,
    ) -> Result<(), Refusal> {
        let peer = self.peer(from)?;
        let at = self.resolve(key, offset, into.len())?;
        if self.is_own(from) {
            self.read(at, into);
            return Ok(());
        }
        let core = CoreId::new(from.get());
        if !op.is_under_way() && !peer.lost.get() && self.fabric.load(core, at, into) {
            op.seen.set(0);
            return self.tell(());
        }
        let mut pieces = Pieces::of(op, into.len(), self.place);
        while !pieces.have_come() {
            while let Some((start, len)) = pieces.next() {
                match self.begin_piece(from, at.saturating_add(start), len, op) {
                    Ok(()) => pieces.asked = start.saturating_add(len),
                    // Those that are in flight leave a place when they have come.
                    Err(Refusal::Busy(_)) if op.is_under_way() => break,
                    Err(refusal) => return Err(refusal),
                }
                pieces.keep(op);
            }
            match self.answer(op) {
                Answer::Waiting => return Err(Refusal::Busy(from)),
                Answer::Piece(place) => {
                    let (start, len) = pieces.oldest();
                    let end = start.saturating_add(len);
                    let piece = into.get_mut(start..end);
                    self.fabric
                        .read(self.piece_at(place), piece.unwrap_or(&mut []));
                    self.forget(op);
                    pieces.come = end;
                    pieces.keep(op);
                }
                // It has failed, or its place was needed for another get.
                _ => {
                    op.begun.set(0);
                    pieces.asked = pieces.come;
                    pieces.keep(op);
                }
            }
        }
        op.seen.set(0);
        self.tell(())
    }

    fn amo(
        &self,
        to: Rank,
        key: Key,
        offset: usize,
        amo: Amo,
        width: Width,
        op: &Op,
    ) -> Result<u64, Refusal> {
        self.peer(to)?;
        let at = self.resolve(key, offset, CELL)?;
        if !at.is_multiple_of(CELL) {
            return Err(Refusal::BadCell { offset: at });
        }
        match (width, amo) {
            // A sum may be carried into the other half.
            (Width::Half, Amo::Add(_)) => {
                let mut add = |old| u64::from(amo.apply(old) as u32);
                self.change_by_swaps(to, at, &mut add, op)
            }
            _ => self.change_at_once(to, at, amo, op),
        }
    }

    fn update(
        &self,
        to: Rank,
        key: Key,
        offset: usize,
        len: usize,
        change: &mut dyn FnMut(&mut [u8]),
        op: &Op,
    ) -> Result<(), Refusal> {
        self.peer(to)?;
        let place = self.resolve(key, offset, len)?;
        let first = place % CELL;
        let end = first.saturating_add(len);
        if end > CELL {
            return Err(Refusal::BadCell { offset: place });
        }
        let mut change = |old: u64| {
            let mut bytes = old.to_le_bytes();
            change(bytes.get_mut(first..end).unwrap_or(&mut []));
            u64::from_le_bytes(bytes)
        };
        let at = place & !CELL.wrapping_sub(1);
        self.change_by_swaps(to, at, &mut change, op).map(|_| ())
    }

    fn abandon(&self, op: &Op) {
        self.answers.abandon(op.begun.take() as u32);
        op.seen.set(0);
    }

    fn fence(&self) -> Result<(), Refusal> {
        point!(WAIT "this is what a fence is, on a network that orders nothing":
            "network.fence.wait", self.kept(None)?);
        Ok(())
    }

    fn flush(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if let Some(rank) = to {
            self.peer(rank)?;
        }
        point!(WAIT "accesses are in their place when a flush returns":
            "network.flush.wait", self.kept(to)?);
        Ok(())
    }
}

impl<F: Fabric> Telling for Networked<F> {
    fn put_immediate(
        &self,
        to: Rank,
        (key, offset): (Key, usize),
        data: &[u8],
        immediate: u32,
        // The network places data by itself.
        _inline: bool,
        _: &Op,
    ) -> Result<(), Refusal> {
        let peer = self.peer(to)?;
        let at = self.resolve(key, offset, data.len())?;
        let user = Said::User(immediate).pack();
        if self.is_own(to) {
            let waiting = self.arrived.with(|arrived| arrived.len());
            if waiting >= self.credits as usize || !self.has_room() {
                return Err(Refusal::Full(to));
            }
            self.fabric.write(at, data);
            self.keep(to, user);
            return Ok(());
        }
        let full = || peer.sent.get() >= self.credits;
        if full() {
            self.look();
        }
        if point!(ROOM "no more is sent than the target has room for":
            "network.put_immediate.room", full(); else false)
            && !peer.lost.get()
        {
            return Err(Refusal::Full(to));
        }
        if !self.fabric.orders_puts() {
            point!(ORDER "puts and notifications before this one are found after it":
                "network.put_immediate.flush", self.settled(Some(to))?);
        }
        self.begin_put(to, peer, at, data, Some(user))?;
        count(&peer.sent, 1);
        Ok(())
    }

    fn signal(&self, to: Rank, slot: Slot, _: u32) -> Result<(), Refusal> {
        self.peer(to)?;
        if slot.0 >= self.slots.with(|slots| slots.len()) {
            return Err(Refusal::NoSuchSlot(slot));
        }
        if self.is_own(to) {
            self.bump(slot.0);
            self.looks.handled();
            return Ok(());
        }
        self.begin_confirmed(to, Some(Said::Signal(slot.0 as u32).pack()))
    }

    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal> {
        let reached = || {
            let count = self.slots.with(|slots| slots.get(slot.0).copied());
            let count = count.ok_or(Refusal::NoSuchSlot(slot))?;
            Ok((count.wrapping_sub(FIRST.wrapping_add(value)) as i32) >= 0)
        };
        if reached()? {
            return Ok(true);
        }
        self.look();
        reached()
    }

    fn watch<W: Word>(
        &self,
        key: Key,
        offset: usize,
        arrived: impl Fn(W) -> bool,
        op: &Op,
    ) -> Result<Option<W>, Refusal> {
        let own = self.rank();
        let at = self.resolve(key, offset, CELL)?;
        if !op.is_under_way() {
            self.look();
            // A hint: what the network did is seen some time, whole or not.
            let mut cell = [0; CELL];
            self.fabric.read(at, &mut cell);
            let value = u64::from_le_bytes(cell);
            if !arrived(W::low(value)) {
                self.looks.note(at, value as u32);
                if W::WIDE {
                    let high = value.wrapping_shr(u32::BITS);
                    self.looks.note(at.saturating_add(4), high as u32);
                }
                return Ok(None);
            }
        }
        let value = self.amo(own, key, offset, Amo::Read, Width::of::<W>(), op)?;
        let value = W::low(value);
        Ok(arrived(value).then_some(value))
    }

    fn progress(&self, _: Wants) -> Option<Arrival> {
        self.take()
    }
}

impl<F: Fabric> Waiting for Networked<F> {
    fn relax(&self) {
        self.looks.relax(&self.fabric);
    }

    #[inline(always)]
    fn step(&self, step: Step<'_>) {
        match step {
            Step::Called(place) | Step::Looks(place) => self.fabric.called(place),
            Step::Look | Step::Expected(..) => (),
            Step::Begin => self.looks.clear(),
            Step::Waits(what) => self.fabric.waits(what),
            Step::End => self.looks.unwatched(),
        }
    }

    fn gone(&self, rank: Option<Rank>) -> Option<Gone> {
        if let (None, Some(core)) = (rank, self.fabric.lost()) {
            return Some(Gone::Lost(Rank::new(core.get())));
        }
        let core = rank.map(|rank| CoreId::new(rank.get()));
        self.fabric.has_left(core).then_some(Gone::Left)
    }

    fn is_lost(&self, rank: Rank) -> bool {
        let peer = self.peers.get(rank.index());
        self.fabric.is_lost(CoreId::new(rank.get())) || peer.is_some_and(|peer| peer.lost.get())
    }

    fn now(&self) -> Time {
        Time {
            ticks: self.fabric.now(),
            per_second: self.fabric.ticks_per_second(),
        }
    }
}

impl<F: Fabric> Fast for Networked<F> {}
