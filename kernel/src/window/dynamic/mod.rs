//! Dynamic windows: memory that ranks attach and detach on their own. The owner gives a name to
//! attached memory, a [`Displacement`], and tells it to peers by any means. A peer that accesses a
//! displacement looks up where the memory lies, in words that the owner keeps for all, and may keep
//! the answer. A name that was detached is never found again.
//!
//! # Guarantee
//! G1. An access by a [`Displacement`] reaches the memory that it was given for, or is refused:
//!     never what was attached in its place later, unless its region has had 2^24 - 1 attachments
//!     since: then numbers come again.
//! G2. A rank that learns of a [detach](DynamicWindow::detach) (by whatever orders memory: an
//!     epoch, a barrier, a notification) and accesses that memory afterwards is refused.
//! G3. Attach and detach wait for nobody but locks, and tell nobody but, if so chosen, ranks that
//!     keep descriptors.
//!
//! # Shared words: the directory, at every rank
//! | cell | content | changed by |
//! |---|---|---|
//! | count | detaches so far (the id counter) | owner |
//! | told | how often peers have said that a descriptor is out of date | peers |
//! | per region: name | number of the attachment, above its length in bytes; 0: none | owner |
//! | per region: key | the key of its memory | owner |
//! | per 64 ranks: readers | a bit per rank that keeps descriptors of this one | peers, owner |
//!
//! Peers set a bit of the readers; the owner clears them.
//!
//! All are cells, changed and read in one step ([`Access::amo`](flagpost_link::Access::amo)), an
//! answered change before whatever follows.
//!
//! # Steps
//! * `attach`, at the owner: publish the memory; write its key; write its name.
//! * `detach`, at the owner: clear the name. Then with `Counter`: raise the count. With
//!   `Invalidation`: take the readers, and tell each. Then publish and refresh the memory.
//! * Access, at the origin. With `Counter`: read the target's count. With `Invalidation`: read its
//!   own `told`. A descriptor that is kept and not out of date is used. If there is none: with
//!   `Invalidation` become a reader; read the key, then the name; keep the descriptor.
//!
//! With a descriptor that is kept an access costs 1 remote load with `Counter`, none with
//! `Invalidation`; without, 3. A detach with `Invalidation` costs 1 per reader; all else is local.
//!
//! # Invariants
//! I1. A region's name is 0 while its key changes, and no name comes twice, as far as G1 says. A
//!     rank that knows a displacement finds no key from before it; so if its name is found after a
//!     key, the key belongs to it.
//! I2. A detach clears the name before it counts, or takes the readers. A kept descriptor was read
//!     after the count that it is kept with, or after its keeper became a reader. So it is out of
//!     date, or its keeper is told, whenever its name was cleared later.
//!
//! # Coherence
//! As of other windows ([`super`]): attached memory is cached by its owner, `post` publishes and
//! `wait` refreshes all that is attached.
//!
//! # Memory per rank
//! Shared: 16 bytes, 16 per region, 8 per 64 ranks. Private words: 3 per region, 5 per kept
//! descriptor, 1 per 32 ranks.
//!
//! # Source
//! [foMPI] 2.2: "Dynamic windows", with the id counter, and its optimized variant, with
//! notifications of detach. There the counter moves with an attach, too, and all of the target's
//! list is fetched; here a displacement names its region, so that one descriptor is fetched, and a
//! new region makes no kept one wrong.
//!
//! [foMPI]: crate#sources

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

mod directory;
mod reach;

use core::cell::Cell;

use bytemuck::Pod;
use flagpost_link::{Amo, Link, Op, Rank};

use self::directory::{Change, Directory, Field};
pub use self::reach::Attached;
use super::{Memory, Model, Window, core::ATTACHED};
use crate::{
    Error, Freeing, Making, World,
    arena::RankSet,
    epoch::{EpochSlots, Strategy},
    making::Ways,
};

/// How origins find out that a descriptor they keep is out of date.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Validation {
    /// They look at the target's counter, with each access.
    #[default]
    Counter,
    /// The target tells them: nothing is looked at remotely, and a detach costs a message per rank
    /// that keeps descriptors.
    Invalidation,
}

/// How a dynamic window is set up. The same on all ranks, but for `kept`.
#[derive(Copy, Clone, Debug)]
pub struct DynamicOptions {
    /// How many regions each rank can have attached at a time: 1 to 128.
    pub regions: u16,
    /// How many descriptors of peers' regions are kept.
    pub kept: u16,
    /// How they are known to be up to date.
    pub validation: Validation,
}

impl Default for DynamicOptions {
    fn default() -> Self {
        Self {
            regions: 16,
            kept: 8,
            validation: Validation::default(),
        }
    }
}

/// Names a byte of attached memory at its rank. Told to peers by the program's own means, as a
/// number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Displacement(u64);

/// Bits of a displacement: byte, number of the attachment, region.
const BYTES: u32 = 32;
const NUMBER: u32 = 24;
const REGIONS: u16 = 128;

impl Displacement {
    /// From what [`Displacement::get`] gave at its rank.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// As a number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The byte `bytes` further on.
    #[must_use]
    pub const fn plus(self, bytes: u32) -> Self {
        // The offset saturates: it does not run over into the number.
        let offset = (self.0 as u32).saturating_add(bytes);
        Self(self.0 & !(u32::MAX as u64) | offset as u64)
    }

    const fn named(region: u16, number: u32) -> Self {
        let high = (region as u64).wrapping_shl(NUMBER) | number as u64;
        Self(high.wrapping_shl(BYTES))
    }

    const fn region(self) -> u16 {
        self.0.wrapping_shr(BYTES.wrapping_add(NUMBER)) as u16
    }

    const fn number(self) -> u32 {
        self.0.wrapping_shr(BYTES) as u32 & NUMBERS
    }

    const fn offset(self) -> u32 {
        self.0 as u32
    }
}

/// The largest number of an attachment; the next is 1 again.
const NUMBERS: u32 = 1_u32.wrapping_shl(NUMBER).wrapping_sub(1);

/// The number after `number`: never 0, which stands for nothing attached.
const fn number_after(number: u32) -> u32 {
    if number >= NUMBERS {
        1
    } else {
        number.wrapping_add(1)
    }
}

/// The number of a region before its first attachment: the second begins anew at 1, so that every
/// run passes that.
const BEFORE_FIRST: u32 = NUMBERS.wrapping_sub(1);

/// In the number of an attachment: it is attached.
const USED: u32 = 1_u32.wrapping_shl(31);

/// A window that consists of what its ranks have attached.
///
/// Its epochs are those of [`DynamicWindow::window`]; accesses go through [`DynamicWindow::at`],
/// which takes the epoch and where they begin, and has all operations. Dropping it instead of
/// [freeing](DynamicWindow::free) keeps all that it took.
#[derive(Debug)]
pub struct DynamicWindow<'w, L, S = EpochSlots<'w>> {
    window: Window<'w, u8, L, S>,
    directory: Directory,
    validation: Validation,
    /// This rank's attachments, `ATTACHED` words each: key, bytes, number (and [`USED`]).
    attached: &'w [Cell<u32>],
    /// Descriptors of peers' regions.
    kept: reach::Kept<'w>,
    /// Ranks that must be told before a detach is done.
    to_tell: RankSet<'w>,
    /// The change of a cell that had begun when a budget ran out.
    begun: Cell<Option<(Rank, Field, Amo)>>,
    changing: Op,
    /// The attach or detach that has not ended; how many steps of naming the region, and of making
    /// descriptors out of date, are done.
    change: Cell<Option<Change>>,
    named: Cell<u16>,
    outdated: Cell<u16>,
    /// The value of `told` at the last look.
    told: Cell<u32>,
}

impl<'w, L: Link> World<'w, L> {
    /// Makes a window with nothing attached. Collective: as [`World::allocate`].
    ///
    /// # Errors
    /// On all ranks together: [`Error::BadRegions`], [`Error::MemoryFull`], [`Error::ArenaFull`],
    /// [`Error::TooManyPieces`], [`Error::TooManyWindows`] where the cause is,
    /// [`Error::Asymmetric`] naming the first such rank elsewhere. [`Error::PeerLost`].
    /// [`Error::CollectiveUnfinished`]: nothing was taken.
    #[track_caller]
    pub fn dynamic(&'w self, options: DynamicOptions) -> Result<DynamicWindow<'w, L>, Error> {
        called!(self);
        self.dynamic_with::<EpochSlots<'w>>(options, ())
    }

    /// [`World::dynamic`], with epochs signalled as `S` does.
    ///
    /// # Errors
    /// On all ranks together: [`Error::BadRegions`], [`Error::MemoryFull`], [`Error::ArenaFull`],
    /// [`Error::TooManyPieces`], [`Error::TooManyWindows`] where the cause is,
    /// [`Error::Asymmetric`] naming the first such rank elsewhere. [`Error::PeerLost`].
    /// [`Error::CollectiveUnfinished`]: nothing was taken.
    #[track_caller]
    pub fn dynamic_with<S: Strategy<'w, L>>(
        &'w self,
        options: DynamicOptions,
        strategy: S::Options,
    ) -> Result<DynamicWindow<'w, L, S>, Error> {
        called!(self);
        self.making_dynamic::<S>(options, strategy)?.wait()
    }

    /// [`World::dynamic_with`], with a handle, as [`World::allocating`].
    ///
    /// # Errors
    /// [`Error::CollectiveUnfinished`]: nothing was taken.
    #[track_caller]
    pub fn making_dynamic<S: Strategy<'w, L>>(
        &'w self,
        options: DynamicOptions,
        strategy: S::Options,
    ) -> Result<Making<'w, L, DynamicWindow<'w, L, S>>, Error> {
        called!(self);
        let prepare = || self.prepare_dynamic::<S>(options, strategy);
        // No element has this size; the two kinds of validation must not meet.
        let offer = |made: &DynamicWindow<'w, L, S>| {
            let kind = u32::MAX.wrapping_sub(made.validation as u32) as usize;
            made.window.offer(kind, made.directory.bytes())
        };
        let ways = Ways::<DynamicWindow<'w, L, S>> {
            clear: |made| made.window.clear(),
            discard: |made| made.window.discard(),
        };
        Making::same(self, prepare, offer, ways)
    }

    /// This rank's part. Takes nothing if it fails.
    fn prepare_dynamic<S: Strategy<'w, L>>(
        &'w self,
        options: DynamicOptions,
        strategy: S::Options,
    ) -> Result<DynamicWindow<'w, L, S>, Error> {
        let DynamicOptions {
            regions,
            kept,
            validation,
        } = options;
        if regions == 0 || regions > REGIONS {
            let max = REGIONS;
            return Err(Error::BadRegions { regions, max });
        }
        let directory = Directory::new(regions, self.size());
        let own = usize::from(regions).saturating_mul(ATTACHED);
        let ranks = RankSet::words(self.size());
        let words = own
            .saturating_add(reach::Kept::words(kept))
            .saturating_add(ranks);
        let words = self.arena.take(words)?;
        let bytes = directory.bytes();
        let mut window = match self.prepare::<u8, S>(bytes, 1, strategy, Model::Separate) {
            Ok(window) => window,
            Err(error) => {
                self.arena.give_back(words);
                return Err(error);
            }
        };
        // Its memory is the directory; peers have no piece.
        window.core.attaches(words, regions);
        let (attached, rest) = words.split_at_checked(own).unwrap_or((words, &[]));
        let (to_tell, kept) = rest.split_at_checked(ranks).unwrap_or((rest, &[]));
        for [_, _, number] in attached.as_chunks::<ATTACHED>().0 {
            number.set(BEFORE_FIRST);
        }
        Ok(DynamicWindow {
            window,
            directory,
            validation,
            attached,
            kept: reach::Kept::new(kept),
            to_tell: RankSet::new(to_tell),
            begun: Cell::new(None),
            changing: Op::new(),
            change: Cell::new(None),
            named: Cell::new(0),
            outdated: Cell::new(0),
            told: Cell::new(0),
        })
    }
}

impl<'w, L: Link, S: Strategy<'w, L>> DynamicWindow<'w, L, S> {
    /// For epochs: of this window [`post`](Window::post), [`start`](Window::start) and the like are
    /// called. It has no elements.
    pub fn window(&self) -> &Window<'w, u8, L, S> {
        &self.window
    }

    /// [`Window::set_num_notify`] of the window.
    ///
    /// # Errors
    /// On all ranks together, which then keep the counters and values that they had:
    /// [`Error::MemoryFull`] (also for a number that cannot be), [`Error::ArenaFull`],
    /// [`Error::TooManyPieces`] where the cause is, [`Error::Asymmetric`] naming the first such
    /// rank elsewhere. [`Error::Timeout`] naming a rank that was waited for: call again to
    /// continue, with the same number. [`Error::CollectiveUnfinished`]: nothing was taken.
    #[track_caller]
    pub fn set_num_notify(&mut self, count: u32) -> Result<(), Error> {
        called!(self.window.core.world);
        self.window.set_num_notify(count)
    }

    /// How origins validate what they keep.
    pub fn validation(&self) -> Validation {
        self.validation
    }

    /// Adds `memory` to the window; gives the displacement of its first byte, which peers must be
    /// told. The memory is only reached through the window then. Waits for nobody.
    ///
    /// # Errors
    /// [`Error::MemoryInUse`] if it is in a window, this one or another; [`Error::WrongWindow`] if
    /// it is another world's; [`Error::TooManyAttached`]; [`Error::OutOfRange`] if it has 4 GiB or
    /// more; [`Error::Timeout`] if the lock of this
    /// rank's words stays taken, or an answer is in flight: nothing is attached; a repeated call
    /// continues where this one stopped.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// use flagpost::{Displacement, DynamicOptions, Rma as _};
    ///
    /// let window = world.dynamic(DynamicOptions::default())?;
    /// let memory = world.reserve(64)?;
    /// let mine = window.attach(&memory)?; // no other rank takes part
    /// let mut all = [0; 2];
    /// world.allgather(mine.get(), &mut all)?; // peers must be told the displacement
    /// let next = world.rank().next(world.size());
    /// let lock = window.window().lock_shared(next)?;
    /// window.at(&lock, Displacement::new(all[next.index()])).put(next, 0, &[7_u32])?;
    /// lock.unlock()?;
    /// world.barrier()?;
    /// let lock = window.window().lock_shared(world.rank())?;
    /// let mut got = [0_u32];
    /// window.at(&lock, mine).get(world.rank(), 0, &mut got)?;
    /// lock.unlock()?;
    /// assert_eq!(got, [7]);
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn attach(&self, memory: &Memory<'w, L>) -> Result<Displacement, Error> {
        called!(self.window.core.world);
        let (claimed, piece) = memory.part(self.window.core.world)?;
        if claimed.get() {
            return Err(Error::MemoryInUse);
        }
        let mut rows = (0..).zip(self.rows());
        let free = rows.find(|(_, [_, _, number])| number.get() & USED == 0);
        let Some((region, [key, bytes, number])) = free else {
            let max = u16::try_from(self.rows().len()).unwrap_or(u16::MAX);
            return Err(Error::TooManyAttached { max });
        };
        // The words of a directory have 32 bits.
        let Ok(length) = u32::try_from(piece.bytes) else {
            let (end, len) = (piece.bytes as u64, u32::MAX.into());
            return Err(Error::OutOfRange { end, len });
        };
        let link = self.window.core.world.link();
        point!(PUBLISH "an exposure may be open: peers read what the memory holds":
            "window.dynamic.attach.publish", link.publish(piece.key, 0, piece.bytes)?);
        let next = number_after(number.get());
        let name = directory::name(next, length);
        self.enter(Change::Attach(region, piece.key));
        // I1: no name is here. Nobody asks for the new one before this rank tells it.
        let place = Amo::Swap(piece.key.get().into());
        Self::step(&self.named, 0, || self.own(Field::Key(region), place))?;
        Self::step(&self.named, 1, || {
            self.own(Field::Name(region), Amo::Swap(name))
        })?;
        self.leave();
        key.set(piece.key.get());
        bytes.set(length);
        number.set(next | USED);
        claimed.set(true);
        Ok(Displacement::named(region, next))
    }

    /// Takes `memory` out of the window. Peers' accesses to it have ended; what they put is there
    /// when this returns.
    ///
    /// Cost: [`Validation::Counter`]: this rank's words only; [`Validation::Invalidation`]: 1
    /// remote operation per rank that has accessed this one's memory since the last detach.
    ///
    /// # Errors
    /// [`Error::NotAttached`]; [`Error::Timeout`] naming whose lock is taken: the memory is not
    /// accessible any more, call again to finish.
    #[track_caller]
    pub fn detach(&self, memory: &Memory<'w, L>) -> Result<(), Error> {
        called!(self.window.core.world);
        let (claimed, piece) = memory.part(self.window.core.world)?;
        let mut rows = (0..).zip(self.rows());
        let mine = rows
            .find(|(_, [key, _, number])| number.get() & USED != 0 && key.get() == piece.key.get());
        let Some((region, [_, bytes, number])) = mine else {
            return Err(Error::NotAttached);
        };
        self.enter(Change::Detach(region, piece.key));
        order!("I2: the name goes before kept descriptors": "window.dynamic.detach.clear<tell",
            Self::step(&self.named, 0, || self.own(Field::Name(region), Amo::Swap(0)))?,
            self.outdate()?);
        let link = self.window.core.world.link();
        order!("dirty lines are not dropped": "window.dynamic.detach.publish<refresh",
            point!(PUBLISH "what this rank has stored since the last exposure stays":
                "window.dynamic.detach.publish", link.publish(piece.key, 0, piece.bytes)?),
            point!(REFRESH "peers may have put in an exposure that is still open":
                "window.dynamic.detach.refresh", link.refresh(piece.key, 0, piece.bytes)?));
        self.leave();
        bytes.set(0);
        number.set(number.get() & !USED);
        claimed.set(false);
        Ok(())
    }

    /// Makes the descriptors that peers keep out of date.
    fn outdate(&self) -> Result<(), Error> {
        match self.validation {
            Validation::Counter => Self::step(&self.outdated, 0, || {
                point!(NOTIFY "peers find by the count that descriptors are out of date":
                    "window.dynamic.detach.count", self.own(Field::Count, Amo::Add(1))?);
                Ok(())
            }),
            Validation::Invalidation => {
                for block in 0..self.directory.readers() {
                    Self::step(&self.outdated, block, || {
                        self.own(Field::Readers(block), Amo::Swap(0))
                    })?;
                }
                let ranks = 0..self.window.core.world.size();
                for rank in ranks.filter(|rank| self.to_tell.contains(*rank)) {
                    let rank = Rank::new(rank);
                    point!(NOTIFY "what readers keep is out of date": "window.dynamic.detach.tell",
                    match self.set(rank, Field::Told, Amo::Add(1)) {
                        // It keeps nothing any more.
                        Err(Error::PeerLost(lost) | Error::PeerLeft(lost)) if lost == rank => {}
                        other => other?,
                    });
                    self.to_tell.remove(rank.get());
                }
                Ok(())
            }
        }
    }

    /// Reads this rank's attached memory from `at` on, through the cache.
    ///
    /// # Errors
    /// [`Error::NotAttached`], [`Error::OutOfRange`] (in bytes).
    #[track_caller]
    pub fn read<T: Pod>(&self, at: Displacement, into: &mut [T]) -> Result<(), Error> {
        called!(self.window.core.world);
        let (key, offset) = self.place_here::<T>(at, into.len())?;
        let link = self.window.core.world.link();
        Ok(link.read_local(key, offset, bytemuck::cast_slice_mut(into))?)
    }

    /// Writes this rank's attached memory from `at` on, through the cache. Peers see it after the
    /// next `post`.
    ///
    /// # Errors
    /// [`Error::NotAttached`], [`Error::OutOfRange`] (in bytes); [`Error::Exposed`] while peers may
    /// be writing.
    #[track_caller]
    pub fn write<T: Pod>(&self, at: Displacement, from: &[T]) -> Result<(), Error> {
        called!(self.window.core.world);
        let (key, offset) = self.place_here::<T>(at, from.len())?;
        let core = &self.window.core;
        if core.is_exposed(core.all()) {
            return Err(Error::Exposed);
        }
        let link = core.world.link();
        Ok(link.write_local(key, offset, bytemuck::cast_slice(from))?)
    }

    /// Gives the window back, as [`Window::free`]; nothing is attached here any more.
    ///
    /// # Errors
    /// [`Error::MemoryInUse`] while something is attached; [`Error::Exposed`] while a request of
    /// the window is started; [`Error::EpochOpen`] while this rank holds a lock of it;
    /// [`Error::EpochAbandoned`]; [`Error::PeerLost`]; [`Error::Unmatched`] while notifications of
    /// the window are not matched; [`Error::QueueFull`] if other windows' notifications fill the
    /// queue.
    ///
    /// The window is dropped then. [`freeing`](Self::freeing) keeps it, to try again.
    #[track_caller]
    pub fn free(self) -> Result<(), Error> {
        called!(self.window.core.world);
        self.freeing().wait()
    }

    /// [`free`](Self::free), with a handle that keeps the window until it is free.
    #[track_caller]
    pub fn freeing(self) -> Freeing<'w, L, Self> {
        called!(self.window.core.world);
        Freeing {
            world: self.window.core.world,
            made: self,
            leave: Self::leave_all,
            discard: Self::discard,
        }
    }

    /// Waits until nobody uses the window any more.
    fn leave_all(&self) -> Result<(), Error> {
        let mut rows = self.rows().iter();
        if rows.any(|[_, _, number]| number.get() & USED != 0) {
            return Err(Error::MemoryInUse);
        }
        self.window.leave()
    }

    /// Gives back what it took.
    fn discard(&self) {
        self.window.discard();
        self.window.core.world.link().abandon(&self.changing);
    }

    /// This rank's attachments.
    fn rows(&self) -> &'w [[Cell<u32>; ATTACHED]] {
        self.attached.as_chunks().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_attachments_fit_displacements_and_are_never_zero() {
        for (number, next) in [(0, 1), (1, 2), (NUMBERS - 1, NUMBERS), (NUMBERS, 1)] {
            assert_eq!(number_after(number), next);
            assert_eq!(Displacement::named(255, next).number(), next);
            assert_eq!(Displacement::named(255, next).region(), 255);
        }
    }
}
