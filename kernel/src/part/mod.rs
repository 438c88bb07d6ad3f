//! Worlds of a part of the ranks. The ranks of a world make a [`Part`] together: a share of each
//! rank's memory, and numbers of windows. The ranks in it get a [`PartLink`], a link that reaches
//! these ranks only and works in that share. A [`World`] over that link numbers them anew, and has
//! all calls of any world: windows, epochs, notified accesses, collectives, and parts again. The
//! other ranks take part in the making, since the share has the same place on every rank, and in
//! the end when it is given back; in between they do nothing.
//!
//! ```text
//!   ranks of the world     0    1    2    3    4        color of a rank
//!   split                  a    b    a    ─    b        ─: None, it is in no part
//!   ranks of part a        0         1
//!   ranks of part b             0              1
//! ```
//!
//! # Guarantee
//! G1. Parts of different colors work at the same time, and so do the larger world and several
//!     parts made one after the other: none takes another one's memory, signals or notifications.
//! G2. A wait of a part's world ends for the loss of a rank of the part, and for no other loss,
//!     unless a rank has called [`Spare::survivors`] of the larger world for it.
//!
//! # Memory per rank
//! Shared: `room.bytes`, and 56 bytes per rank of the larger world. 32 slots, and for each of
//! `room.windows` 2 per rank of it, at least 32: so a part inside takes no more than one window
//! more than it has itself. Private: 2 words of the larger world's arena per rank.
//!
//! # Notifications
//! They carry numbers of the larger world: ranks, and windows that the part has of it. So each of
//! both worlds may take the other's from the link. All go through the larger world's queue
//! ([`Config::unexpected`](crate::Config), at least 1). Once that is full of others'
//! notifications, the part's ranks take none before the larger world has matched some.

mod link;
mod survivors;

pub use link::PartLink;
pub use survivors::Spare;
pub(crate) use survivors::Spares;

use core::cell::Cell;

use flagpost_link::{Key, Link, Place, Rank, Slot, Slots};

use crate::{
    Error, Freeing, Making, World,
    collective::Call,
    making::{Row, Ways, halves, offer, same_of},
    window::digest,
};

/// Bytes of scratch memory per rank, as [`LocalMemory::scratch`](flagpost_link::LocalMemory) says.
const SCRATCH: usize = 56;

/// Slots of every world.
const SLOTS: u32 = 32;

/// The resources of a part's world, on each rank: the same on all ranks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of shared memory for all that the part's world allocates: per window its piece in
    /// whole lines and 64 bytes, per event 8, per part inside its `bytes` and 56 for each rank of
    /// this one, in whole lines (of a spare 88, up to 256 ranks). [`Error::RoomFull`] says how many
    /// are missing.
    pub bytes: usize,
    /// How many windows it has at a time. They are taken from the 64 of the larger world. A part
    /// inside counts as one window more than it has itself, and the first spare as two more.
    pub windows: u16,
}

/// A part of a world's ranks, and what their world works in.
///
/// Dropping it keeps its memory and windows taken. [`Part::free`] gives them back.
#[derive(Debug)]
pub struct Part<'w, L> {
    world: &'w World<'w, L>,
    /// The share of each rank's memory: `bytes`, which begin with scratch memory.
    share: Key,
    bytes: usize,
    /// Where its world's memory begins.
    begins: usize,
    slots: Slot,
    /// The larger world's numbers of its windows: the first, and how many.
    first: u16,
    windows: u16,
    /// This rank's color and key.
    place: Option<[u32; 2]>,
    /// Two words per rank of the world. First its key, and whether it is in this part; once they
    /// are [numbered](Self::number_all), the rank of each number, and 1 + each rank's number.
    words: &'w [Cell<u32>],
    size: Cell<u16>,
    /// How many spares of the world were used before, and with this one, if it is a spare.
    before: Cell<u32>,
    is_spare: bool,
    state: Cell<State>,
}

/// How far a part is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// Its link may be taken.
    Ready,
    /// Its link was taken.
    Taken,
    /// All ranks have agreed to free it.
    Left,
}

impl<'w, L: Link> World<'w, L> {
    /// Makes a part of the ranks that give the same `color`, numbered by their `key` and, where
    /// keys are the same, by rank. Collective over all ranks: a rank with no color is in no part.
    ///
    /// The part's world has `room` ([memory](crate::part#memory-per-rank)), which is taken until
    /// [`Part::free`]. Waits for all ranks: O(p).
    ///
    /// # Errors
    /// On all ranks together: [`Error::MemoryFull`] (in a part [`Error::RoomFull`]),
    /// [`Error::ArenaFull`], [`Error::TooManyPieces`], [`Error::TooManyWindows`], and
    /// [`Error::QueueFull`] if [`Config::unexpected`](crate::Config) is 0, where the cause is,
    /// [`Error::Asymmetric`] naming the first such rank elsewhere. [`Error::PeerLost`].
    /// [`Error::CollectiveUnfinished`]: nothing was taken.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(4, |world| {
    /// use flagpost::{Config, Room, World};
    ///
    /// // Even ranks in one part, odd ones in another.
    /// let me = u32::from(world.rank().get());
    /// let part = world.split(Some(me % 2), 0, Room { bytes: 1024, windows: 1 })?;
    /// let mut words = [0; 96];
    /// if let Some(link) = part.link() {
    ///     World::run(link, &mut words, Config::default(), |mine| {
    ///         assert_eq!(mine.size(), 2);
    ///         assert_eq!(u32::from(mine.rank().get()), me / 2);
    ///         mine.barrier() // of 2 ranks
    ///     })?;
    /// }
    /// part.free()
    /// # });
    /// ```
    #[track_caller]
    pub fn split(&'w self, color: Option<u32>, key: u32, room: Room) -> Result<Part<'w, L>, Error> {
        called!(self);
        self.splitting(color, key, room)?.wait()
    }

    /// [`split`](Self::split), with a handle, as [`World::allocating`].
    ///
    /// # Errors
    /// [`Error::CollectiveUnfinished`]: nothing was taken.
    #[track_caller]
    pub fn splitting(
        &'w self,
        color: Option<u32>,
        key: u32,
        room: Room,
    ) -> Result<Making<'w, L, Part<'w, L>>, Error> {
        called!(self);
        self.make_part(Ok(color.map(|color| [color, key])), room, |_| 0, 0)
    }

    /// Makes a part of `ranks`, numbered as in the list. Collective over all ranks, with the same
    /// list. As [`split`](Self::split) otherwise.
    ///
    /// # Errors
    /// Those of [`split`](Self::split), [`Error::Asymmetric`] also where lists differ;
    /// [`Error::NoSuchRank`], [`Error::DuplicateRank`].
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(3, |world| {
    /// use flagpost::{Config, Rank, Room, World};
    ///
    /// let part = world.part(&[Rank::new(2), Rank::new(0)], Room { bytes: 512, windows: 1 })?;
    /// let mut words = [0; 96];
    /// if let Some(link) = part.link() {
    ///     let mine = World::start(link, &mut words, Config::default())?;
    ///     let window = mine.allocate::<u32>(1)?;
    ///     window.peer(mine.rank().next(2))?.set(0, 7)?; // rank 2 is the part's rank 0
    ///     window.free()?;
    /// } // rank 1 is in no part
    /// part.free()
    /// # });
    /// ```
    #[track_caller]
    pub fn part(&'w self, ranks: &[Rank], room: Room) -> Result<Part<'w, L>, Error> {
        called!(self);
        let list = ranks
            .iter()
            .fold(0, |hash, rank| digest([hash, rank.get().into()]) as u32);
        let place = self.group(ranks).map(|_| {
            let number = ranks.iter().position(|rank| *rank == self.rank())?;
            Some([0, number as u32])
        });
        self.make_part(place, room, |_| 0, list)?.wait()
    }

    fn make_part(
        &'w self,
        place: Result<Option<[u32; 2]>, Error>,
        room: Room,
        row: fn(u16) -> usize,
        list: u32,
    ) -> Result<Making<'w, L, Part<'w, L>>, Error> {
        let prepare = || self.prepare_part(place?, room, row);
        // Words that must be the same everywhere, then this rank's place.
        let row = |part: &Part<'w, L>| -> Row {
            let windows = u32::from(part.first).wrapping_shl(u16::BITS) | u32::from(part.windows);
            let [color, key] = part.place.unwrap_or_default();
            let is_in = u32::from(part.place.is_some());
            let [bytes, more] = halves(part.bytes as u64);
            let [slots, rest] = halves(part.slots.0 as u64);
            let same = digest([part.share.get(), slots, rest, bytes, more, windows, list]);
            let [low, high] = same_of(offer(0, part.bytes, same));
            [low, high, is_in, color, key, 0, 0, 0]
        };
        let ways = Ways {
            clear: |_: &Part<'w, L>| Ok(()),
            discard: Part::discard,
        };
        Making::rows(self, prepare, row, Part::note, ways)
    }

    /// This rank's part. Takes nothing if it fails.
    fn prepare_part(
        &'w self,
        place: Option<[u32; 2]>,
        room: Room,
        row: fn(u16) -> usize,
    ) -> Result<Part<'w, L>, Error> {
        let (link, ranks) = (self.link(), self.size());
        let first = self.unused_windows(room.windows)?;
        let capacity = self.queue.capacity();
        if capacity == 0 && room.windows > 0 {
            return Err(Error::QueueFull { capacity });
        }
        let begins = usize::from(ranks).saturating_mul(SCRATCH.saturating_add(row(ranks)));
        let bytes = room.bytes.saturating_add(begins);
        let bytes = bytes.checked_next_multiple_of(L::LINE).unwrap_or(bytes);
        let slots = Slots::Count(slots(ranks, room.windows));
        let is_spare = row(ranks) > 0;
        let words = self.arena.take(usize::from(ranks).saturating_mul(2))?;
        let take_slots = || {
            let slots = link.allocate_slots(slots)?;
            let spare = if is_spare { self.add_spare() } else { Ok(()) };
            spare.inspect_err(|_| link.withdraw(slots))?;
            Ok(slots)
        };
        let taken = link.allocate(bytes, Place::Symmetric).and_then(|share| {
            let slots = take_slots().inspect_err(|_| link.withdraw(share))?;
            Ok((share, slots))
        });
        let (share, slots) = taken.inspect_err(|_| self.arena.give_back(words))?;
        let part = Part {
            world: self,
            share,
            bytes,
            begins,
            slots,
            first,
            windows: room.windows,
            place,
            words,
            size: Cell::new(0),
            before: Cell::new(self.spares.get().used),
            is_spare,
            state: Cell::new(State::Ready),
        };
        self.windows.set(self.windows.get() | part.bits());
        Ok(part)
    }

    /// The first of `count` windows in a row that there are not.
    fn unused_windows(&self, count: u16) -> Result<u16, Error> {
        let max = self.limits.windows;
        let is_unused = |first: &u16| {
            let all = bits(*first, count);
            first.saturating_add(count) <= max && self.windows.get() & all == 0
        };
        (0..=max)
            .find(is_unused)
            .ok_or(Error::TooManyWindows { max })
    }
}

/// Slots of a part with `windows`, in a world of `ranks`.
fn slots(ranks: u16, windows: u16) -> u32 {
    let all = slots_each(ranks).saturating_mul(windows.into());
    SLOTS.saturating_add(all)
}

/// Slots for a window, or for what a part inside has beside its windows.
fn slots_each(ranks: u16) -> u32 {
    Slots::OfPairs.count(ranks).max(SLOTS)
}

/// The bits of `count` windows from `first` on.
fn bits(first: u16, count: u16) -> u64 {
    let all = 1_u64.checked_shl(count.into());
    let all = all.map_or(u64::MAX, |bit| bit.wrapping_sub(1));
    all.checked_shl(first.into()).unwrap_or(0)
}

impl<'w, L: Link> Part<'w, L> {
    /// The link that reaches the part's ranks, for their [`World`]: once. None for a rank that is
    /// not in the part, and if it was taken before.
    ///
    /// Its accesses have no fast paths. Strategies other than
    /// [`MatchVector`](crate::MatchVector) work on it.
    #[track_caller]
    pub fn link(&self) -> Option<PartLink<'_, L>> {
        called!(self.world);
        if self.place.is_none() || self.state.get() != State::Ready {
            return None;
        }
        self.state.set(State::Taken);
        self.number_all();
        Some(PartLink::new(self))
    }

    /// Gives the part back. Collective over all ranks of the larger world, and a barrier: the
    /// part's world has ended. Its notifications that no request has matched are gone.
    ///
    /// # Errors
    /// [`Error::PeerLost`], [`Error::CollectiveUnfinished`]. [`Error::QueueFull`] if the
    /// notifications that have arrived cannot be looked through, since other windows' fill the
    /// queue. The part is dropped then; [`freeing`](Self::freeing) keeps it.
    #[track_caller]
    pub fn free(self) -> Result<(), Error> {
        called!(self.world);
        self.freeing().wait()
    }

    /// [`free`](Self::free), with a handle that keeps the part until it is free.
    #[track_caller]
    pub fn freeing(self) -> Freeing<'w, L, Self> {
        called!(self.world);
        Freeing {
            world: self.world,
            made: self,
            leave: Self::leave,
            discard: Self::discard,
        }
    }

    /// Waits until no rank uses it any more.
    fn leave(&self) -> Result<(), Error> {
        let (world, call) = (self.world, Call::FreePart(self.share));
        if self.state.get() != State::Left {
            point!(PUBLISH "no dirty line travels over what this memory becomes":
                "part.free.publish", world.link().publish(self.share, 0, self.bytes)?);
            point!(WAIT "memory that a rank still accesses is not used again":
                "part.free.barrier", world.attempt(call, || world.order_and_arrive())?);
            self.state.set(State::Left);
        }
        for id in 0..self.windows {
            point!(CHECK "the next window of this number does not get the part's notifications":
                "part.free.sift", world.sift(self.first.saturating_add(id), || true)?);
        }
        Ok(())
    }

    fn discard(&self) {
        let Self { world, .. } = self;
        if self.is_spare {
            world.remove_spare();
        }
        world.link().withdraw(self.slots);
        world.link().withdraw(self.share);
        world.arena.give_back(self.words);
        world.windows.set(world.windows.get() & !self.bits());
    }

    /// The bits of its windows.
    fn bits(&self) -> u64 {
        bits(self.first, self.windows)
    }

    // ---- Numbers ----

    /// Keys, or the rank of each number; then the marks of ranks that are in it, or 1 + numbers.
    fn halves(&self) -> (&[Cell<u32>], &[Cell<u32>]) {
        let half = usize::from(self.world.size());
        self.words.split_at_checked(half).unwrap_or((&[], &[]))
    }

    /// Where `rank` stands: whether it is in a part, color, key.
    fn note(&self, rank: Rank, own: &[u32]) {
        let (keys, marks) = self.halves();
        if let (&[is_in, color, key, ..], Some([mine, _])) = (own, self.place)
            && let (Some(of_key), Some(mark)) = (keys.get(rank.index()), marks.get(rank.index()))
        {
            of_key.set(key);
            mark.set(u32::from(is_in != 0 && color == mine));
        }
    }

    /// Numbers the ranks that are in it, by key and rank.
    fn number_all(&self) {
        let (keys, marks) = self.halves();
        let both = || keys.iter().zip(marks).enumerate();
        let members = || both().filter(|(_, (_, mark))| mark.get() != 0);
        for (rank, (key, mark)) in members() {
            let before =
                members().filter(|(other, (of, _))| (of.get(), *other) < (key.get(), rank));
            mark.set((before.count() as u32).saturating_add(1));
        }
        // From here on no key is read.
        for (rank, mark) in marks.iter().enumerate() {
            let number = mark.get().checked_sub(1);
            if let Some(of_number) = number.and_then(|number| keys.get(number as usize)) {
                of_number.set(rank as u32);
                self.size.set(self.size.get().saturating_add(1));
            }
        }
    }

    /// The larger world's number of the part's rank `rank`.
    fn outer(&self, rank: Rank) -> Option<Rank> {
        let (ranks, _) = self.halves();
        let ranks = ranks.get(..self.size.get().into())?;
        ranks
            .get(rank.index())
            .map(|rank| Rank::new(rank.get() as u16))
    }

    /// The part's number of the larger world's rank `rank`.
    fn number(&self, rank: Rank) -> Option<Rank> {
        let (_, numbers) = self.halves();
        let number = numbers.get(rank.index())?.get().checked_sub(1)?;
        Some(Rank::new(number as u16))
    }
}
