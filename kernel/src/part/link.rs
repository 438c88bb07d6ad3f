//! [`PartLink`]: the link of a part. Each call names a rank of the part and a place in its share,
//! and becomes the same call of the larger world's link, with that world's rank and the share's
//! key. Refusals name the part's ranks. Notifications go through the larger world's queue.

use flagpost_link::{
    Access, Amo, Arrival, Fast, Full, Given, Gone, Heap, Key, Link, LocalMemory, Op, Place, Rank,
    Refusal, Slot, Slots, Step, Telling, Time, Waiting, Wants, Width, Word,
};

use super::{Part, SCRATCH, SLOTS, slots, slots_each};
use crate::immediate::Notification;

/// How many pieces of memory, and of slots, a part's world has at a time. A window takes 2 and 1.
const PIECES: usize = 64;

/// The link of a part's ranks: see [`Part::link`].
#[derive(Debug)]
pub struct PartLink<'p, L> {
    part: &'p Part<'p, L>,
    memory: Heap<PIECES>,
    slots: Heap<PIECES>,
}

impl<'p, L: Link> PartLink<'p, L> {
    pub(super) fn new(part: &'p Part<'p, L>) -> Self {
        let line = L::LINE.max(L::UPDATE);
        let slots = slots(part.world.size(), part.windows);
        Self {
            part,
            memory: Heap::new(Key::unit(L::LINE), part.begins, part.bytes, line),
            slots: Heap::new(1, SLOTS as usize, slots as usize, 1),
        }
    }

    fn outer(&self) -> &L {
        self.part.world.link()
    }

    /// The larger world's number of `rank`.
    fn to(&self, rank: Rank) -> Result<Rank, Refusal> {
        self.part.outer(rank).ok_or(Refusal::NoSuchRank(rank))
    }

    /// Where `len` bytes at `offset` of `key`'s memory lie in the share.
    fn at(&self, key: Key, offset: usize, len: usize) -> Result<usize, Refusal> {
        let start = key.start(L::LINE).saturating_add(offset);
        let end = start.saturating_add(len);
        if end > self.part.bytes {
            return Err(Refusal::OutOfRange { end });
        }
        Ok(start)
    }

    /// The larger world's slot.
    fn slot(&self, slot: Slot) -> Slot {
        self.part.slots.plus(slot.0)
    }

    /// The answer of the larger world's link, with the part's ranks. A loss elsewhere is none here:
    /// the link tells it once, so that this rank calls again, before it sleeps.
    fn said<T>(&self, result: Result<T, Refusal>) -> Result<T, Refusal> {
        let number = |rank| self.part.number(rank);
        let named = |rank| number(rank).unwrap_or(self.rank());
        result.map_err(|refusal| match refusal {
            Refusal::PeerLost(rank) => {
                let lost = number(rank).map(Refusal::PeerLost);
                lost.unwrap_or_else(|| {
                    self.outer().step(Step::End);
                    Refusal::Busy(self.rank())
                })
            }
            Refusal::NotReady(rank) => Refusal::NotReady(named(rank)),
            Refusal::Full(rank) => Refusal::Full(named(rank)),
            Refusal::Locked(rank) => Refusal::Locked(named(rank)),
            Refusal::Busy(rank) => Refusal::Busy(named(rank)),
            other => other,
        })
    }

    /// All ranks of the part, each with the larger world's number.
    fn all(&self) -> impl Iterator<Item = (Rank, Rank)> {
        let ranks = (0..self.size()).map(Rank::new);
        ranks.filter_map(|rank| Some((rank, self.part.outer(rank)?)))
    }

    /// Takes the oldest notification of the part from the larger world's queue.
    fn take(&self) -> Option<Arrival> {
        let Part {
            world,
            first,
            windows,
            ..
        } = *self.part;
        let mut oldest = None;
        world.queue.take_if(|immediate| {
            let told = world.limits.unpack(immediate);
            let window = told.window.checked_sub(first);
            let Some(window) = window.filter(|window| oldest.is_none() && *window < windows) else {
                return false;
            };
            // In the name of a rank that is not in the part: it is dropped.
            if let Some(source) = self.part.number(told.source) {
                oldest = Some(Notification {
                    source,
                    window,
                    tag: told.tag,
                });
            }
            true
        });
        let oldest = oldest?;
        Some(Arrival {
            immediate: world.limits.pack(oldest),
            sender: Some(oldest.source),
        })
    }
}

impl<L: Link> Link for PartLink<'_, L> {
    type Word = L::Word;

    const SLOTS: u32 = SLOTS;
    const LINE: usize = L::LINE;
    const UPDATE: usize = L::UPDATE;
    const UPDATE_SMALL: usize = L::UPDATE_SMALL;
    const DIRECT: bool = L::DIRECT;
    const COHERENT: bool = L::COHERENT;
    const LOOKS: u32 = L::LOOKS;
    /// An error of its world is told with the call's place, by way of the larger world.
    const LISTENS: bool = true;
    const PASSIVE: bool = L::PASSIVE;

    fn rank(&self) -> Rank {
        let me = self.part.number(self.part.world.rank());
        me.unwrap_or(Rank::new(0))
    }

    fn size(&self) -> u16 {
        self.part.size.get()
    }

    fn room(&self) -> (u16, u16) {
        (self.outer().room().0, self.part.windows)
    }
}

impl<L: Link> LocalMemory for PartLink<'_, L> {
    fn allocate(&self, bytes: usize, place: Place) -> Result<Key, Refusal> {
        let no_room = |bytes| Refusal::NoRoom { bytes, windows: 0 };
        let start = self.memory.take(bytes, place);
        start.map(Key::new).map_err(|full| refusal(full, no_room))
    }

    fn zero(&self, key: Key, offset: usize, bytes: usize) -> Result<bool, Refusal> {
        let at = self.at(key, offset, bytes)?;
        self.outer().zero(self.part.share, at, bytes)
    }

    fn allocate_slots(&self, wanted: Slots) -> Result<Slot, Refusal> {
        let count = wanted.count(self.size());
        let first = self.slots.take(count as usize, Place::Symmetric);
        let no_room = |more: usize| Refusal::NoRoom {
            bytes: 0,
            windows: more.div_ceil(slots_each(self.part.world.size()) as usize) as u16,
        };
        let first = first.map_err(|full| refusal(full, no_room))?;
        let first = Slot(first as usize);
        point!(CLEAR "an earlier window's signals do not count":
            "part.slots.clear", self.renew_slots(first, count)?);
        Ok(first)
    }

    fn renew_slots(&self, first: Slot, count: u32) -> Result<(), Refusal> {
        self.said(self.outer().renew_slots(self.slot(first), count))
    }

    fn withdraw(&self, given: impl Into<Given>) {
        match given.into() {
            Given::Memory(key) => self.memory.give_back(key.get()),
            Given::Slots(first) => self.slots.give_back(first.0 as u32),
        };
    }

    fn scratch(&self) -> (Key, usize) {
        let bytes = SCRATCH.saturating_mul(self.size().into());
        (Key::new(0), bytes)
    }

    fn read_local(&self, key: Key, offset: usize, into: &mut [u8]) -> Result<(), Refusal> {
        let at = self.at(key, offset, into.len())?;
        self.outer().read_local(self.part.share, at, into)
    }

    fn write_local(&self, key: Key, offset: usize, from: &[u8]) -> Result<(), Refusal> {
        let at = self.at(key, offset, from.len())?;
        self.outer().write_local(self.part.share, at, from)
    }

    fn publish(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal> {
        // Of no bytes it may stand anywhere.
        let at = if bytes == 0 {
            0
        } else {
            self.at(key, offset, bytes)?
        };
        self.outer().publish(self.part.share, at, bytes)
    }

    fn refresh(&self, key: Key, offset: usize, bytes: usize) -> Result<(), Refusal> {
        let at = self.at(key, offset, bytes)?;
        self.outer().refresh(self.part.share, at, bytes)
    }
}

impl<L: Link> Access for PartLink<'_, L> {
    fn connect(&self, to: Rank) -> Result<(), Refusal> {
        self.said(self.outer().connect(self.to(to)?))
    }

    fn put(&self, to: Rank, key: Key, offset: usize, data: &[u8]) -> Result<(), Refusal> {
        let (to, at) = (self.to(to)?, self.at(key, offset, data.len())?);
        self.said(self.outer().put(to, self.part.share, at, data))
    }

    fn get(
        &self,
        from: Rank,
        key: Key,
        offset: usize,
        into: &mut [u8],
        op: &Op,
    ) -> Result<(), Refusal> {
        let (from, at) = (self.to(from)?, self.at(key, offset, into.len())?);
        self.said(self.outer().get(from, self.part.share, at, into, op))
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
        let (to, at) = (self.to(to)?, self.at(key, offset, 8)?);
        self.said(self.outer().amo(to, self.part.share, at, amo, width, op))
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
        let (to, at) = (self.to(to)?, self.at(key, offset, len)?);
        let outer = self.outer();
        self.said(outer.update(to, self.part.share, at, len, change, op))
    }

    fn abandon(&self, op: &Op) {
        self.outer().abandon(op);
    }

    fn fence(&self) -> Result<(), Refusal> {
        self.said(self.outer().fence())
    }

    fn flush(&self, to: Option<Rank>) -> Result<(), Refusal> {
        match to {
            Some(rank) => self.said(self.outer().flush(Some(self.to(rank)?))),
            // Not at other ranks: they may be lost, or make no call.
            None => self.all().try_for_each(|(rank, _)| self.flush(Some(rank))),
        }
    }
}

impl<L: Link> Telling for PartLink<'_, L> {
    fn put_immediate(
        &self,
        to: Rank,
        (key, offset): (Key, usize),
        data: &[u8],
        immediate: u32,
        inline: bool,
        op: &Op,
    ) -> Result<(), Refusal> {
        let (to, at) = (self.to(to)?, self.at(key, offset, data.len())?);
        let limits = self.part.world.limits;
        let told = limits.unpack(immediate);
        let immediate = limits.pack(Notification {
            source: self.to(told.source)?,
            window: told.window.saturating_add(self.part.first),
            tag: told.tag,
        });
        let place = (self.part.share, at);
        let outer = self.outer();
        self.said(outer.put_immediate(to, place, data, immediate, inline, op))
    }

    fn signal(&self, to: Rank, slot: Slot, value: u32) -> Result<(), Refusal> {
        let to = self.to(to)?;
        self.said(self.outer().signal(to, self.slot(slot), value))
    }

    fn reached(&self, slot: Slot, value: u32) -> Result<bool, Refusal> {
        self.outer().reached(self.slot(slot), value)
    }

    fn watch<W: Word>(
        &self,
        key: Key,
        offset: usize,
        arrived: impl Fn(W) -> bool,
        op: &Op,
    ) -> Result<Option<W>, Refusal> {
        let at = self.at(key, offset, 8)?;
        self.said(self.outer().watch(self.part.share, at, arrived, op))
    }

    fn progress(&self, wants: Wants) -> Option<Arrival> {
        let outer = |rank| self.part.outer(rank).map_or(Wants::Any, Wants::Of);
        self.take().or_else(|| {
            self.part.world.take_all(match wants {
                Wants::Of(rank) => outer(rank),
                others => others,
            });
            self.take()
        })
    }

    fn attend(&self) {
        self.outer().attend();
    }
}

impl<L: Link> Waiting for PartLink<'_, L> {
    fn relax(&self) {
        self.outer().relax();
    }

    #[inline(always)]
    fn step(&self, step: Step<'_>) {
        match step {
            Step::Called(place) | Step::Looks(place) => self.part.world.place.set(place.into()),
            Step::Expected(key, offset, bytes, what) => {
                if let Ok(at) = self.at(key, offset, bytes) {
                    let step = Step::Expected(self.part.share, at, bytes, what);
                    self.outer().step(step);
                }
                return;
            }
            _ => (),
        }
        self.outer().step(step);
    }

    fn gone(&self, rank: Option<Rank>) -> Option<Gone> {
        if let Some(rank) = rank {
            return self.outer().gone(self.part.outer(rank));
        }
        let gone = self.outer().gone(None);
        // A rank that has called `survivors` knows of a loss; this one may not yet.
        if gone == Some(Gone::Revoked) || gone != Some(Gone::Left) && self.part.is_revoked() {
            return Some(Gone::Revoked);
        }
        gone?;
        let lost = self.all().find(|(rank, _)| self.is_lost(*rank));
        if let Some((rank, _)) = lost {
            return Some(Gone::Lost(rank));
        }
        let mut left = self.all().filter_map(|(rank, _)| self.gone(Some(rank)));
        left.next()
    }

    fn is_lost(&self, rank: Rank) -> bool {
        // Memory of a rank that has ended well may be gone as well.
        let is_lost = |rank| self.outer().is_lost(rank) && self.outer().gone(Some(rank)).is_none();
        self.part.outer(rank).is_some_and(is_lost)
    }

    fn now(&self) -> Time {
        self.outer().now()
    }
}

impl<L: Link> Fast for PartLink<'_, L> {}

/// The refusal of a [`Heap`], as the link's.
fn refusal(full: Full, no_room: impl FnOnce(usize) -> Refusal) -> Refusal {
    match full {
        Full::Missing { more } => no_room(more),
        Full::Pieces { max } => Refusal::TooManyPieces { max },
    }
}
