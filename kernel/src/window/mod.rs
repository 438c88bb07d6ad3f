//! Windows: memory that every rank gives to all. Each rank has a *piece*. Its owner reads and
//! writes the piece through its cache ([`Local`]); peers access it past all caches, in
//! [epochs](crate::epoch) or by [notified accesses](crate::notify).
//!
//! # Kinds
//! | kind | made by | memory | state per rank, beside the epochs' |
//! |---|---|---|---|
//! | allocated | [`World::allocate`] | under the same key everywhere | O(1) |
//! | created | [`World::create`] | what each rank has [reserved](World::reserve) | 4 p words |
//! | dynamic | [`World::dynamic`] | what each rank has attached since | see [`DynamicWindow`] |
//!
//! The piece of a created window may begin at any line and have any length. Ranks attach memory to
//! a dynamic window without the others.
//!
//! Where a link reaches peers' memory by plain loads and stores, an allocated or created window is
//! *shared* as well: [`Window::peer`].
//!
//! # Guarantee
//! G1. An allocated window has the same number of elements on every rank, all zero at first. A
//!     peer's piece has the same key as this rank's, so no table of peers is kept. A created window
//!     starts with what its memory holds.
//! G2. [`World::allocate`], [`World::create`] and [`World::dynamic`] fail on all ranks together,
//!     and then change nothing. Where a budget runs out, a [`Making`](crate::Making) continues.
//! G3. [`Window::free`] gives back all that the window took, of shared memory and of the arena.
//! G4. Memory is in one window at a time, so its lines have one set of rules.
//!
//! # Coherence
//! Only the owner caches a piece, in windows of the [separate](Model::Separate) model. The table
//! says what it may do when:
//!
//! | the owner            | its stores to the piece        | its loads                            |
//! |----------------------|--------------------------------|--------------------------------------|
//! | no epoch, no request | free                           | free                                 |
//! | post … wait          | refused ([`Error::Exposed`])   | may be stale until `wait` returns    |
//! | post_range … wait    | refused in the range's lines   | of these lines: may be stale         |
//! | request start … done | refused in the request's lines | of these lines: may be stale         |
//!
//! `post` (and a request's start) writes the owner's dirty lines back, so that none is left to be
//! evicted over what peers put. `wait` (and a matched request) invalidates. In a window of the
//! [unified](Model::Unified) model nothing is refused or stale.
//!
//! # Source
//! [foMPI] 2.2 (symmetric allocation, O(1) descriptors; a table of Omega(p) for created windows;
//! dynamic windows); [PSCW-SCC] IV-B1 (words in the region nearest to their owner).
//!
//! [PSCW-SCC]: crate#sources
//! [foMPI]: crate#sources

mod allocate;
mod core;
pub(crate) mod counters;
mod create;
mod dynamic;
pub(crate) mod fast;
mod local;
mod memory;
mod model;
pub(crate) mod passive;
mod peer;
pub(crate) mod reach;
mod requested;

use ::core::ops::Range;

use bytemuck::Pod;
use flagpost_link::{Link, Rank};

use crate::{Error, World, epoch::EpochSlots};

pub(crate) use self::core::{Core, Piece, Pieces, cell};
pub(crate) use allocate::{bit, digest};
pub use dynamic::{Attached, Displacement, DynamicOptions, DynamicWindow, Validation};
pub use local::Local;
pub use memory::Memory;
pub use model::{Model, Options};
pub use peer::Peer;
pub(crate) use requested::{Closed, Lines};

/// Where a window's memory comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Kind {
    /// The library's, the same on all ranks.
    Allocated,
    /// Each rank's own.
    Created,
    /// The memory that each rank has attached.
    Dynamic,
}

/// A window of `T`s: one piece per rank. `S` is how its posts and completions are signalled.
#[derive(Debug)]
pub struct Window<'w, T, L, S = EpochSlots<'w>> {
    pub(crate) core: Core<'w, L>,
    pub(crate) sync: S,
    element: ::core::marker::PhantomData<T>,
}

impl<'w, T: Pod, L: Link, S> Window<'w, T, L, S> {
    fn new(core: Core<'w, L>, sync: S) -> Self {
        Self {
            core,
            sync,
            element: ::core::marker::PhantomData,
        }
    }

    /// Indices of this rank's piece at which an element lies. The same on all ranks, unless the
    /// window is created.
    pub fn len(&self) -> usize {
        self.core.own.len::<T>()
    }

    /// True if this rank's piece has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// [`Window::len`] of `rank`'s piece.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`].
    pub fn len_of(&self, rank: Rank) -> Result<usize, Error> {
        Ok(self.core.piece(rank)?.len::<T>())
    }

    /// Bytes of `rank`'s piece.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`].
    pub fn bytes_of(&self, rank: Rank) -> Result<usize, Error> {
        Ok(self.core.piece(rank)?.bytes)
    }

    /// Displacement unit of `rank`: bytes from one index of its piece to the next. The size of an
    /// element, unless the window is created.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`].
    pub fn unit_of(&self, rank: Rank) -> Result<usize, Error> {
        Ok(self.core.piece(rank)?.unit as usize)
    }

    /// Where its memory comes from.
    pub fn kind(&self) -> Kind {
        self.core.kind()
    }

    /// The world that made it.
    pub fn world(&self) -> &'w World<'w, L> {
        self.core.world
    }

    /// Its model of memory.
    pub fn model(&self) -> Model {
        self.core.model
    }

    /// This rank's piece.
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let window = world.allocate::<u32>(4)?;
    /// window.local().set(1, 7)?;
    /// window.local().copy_in(2, &[8, 9])?;
    /// let mut all = [0; 4];
    /// window.local().copy_out(0, &mut all)?;
    /// assert_eq!(all, [0, 7, 8, 9]);
    /// # Ok(())
    /// # });
    /// ```
    pub fn local(&self) -> Local<'_, T, L, S> {
        Local::new(self)
    }

    /// Byte offset of `count` elements of this rank's piece from `index` on.
    pub(crate) fn offset(&self, index: usize, count: usize) -> Result<usize, Error> {
        self.core.offset::<T>(index, count)
    }

    /// The lines of a range of elements.
    pub(crate) fn lines(&self, range: Range<usize>) -> Result<Lines, Error> {
        let Some(count) = range.end.checked_sub(range.start) else {
            return Err(Error::OutOfRange {
                end: range.start as u64,
                len: range.end as u64,
            });
        };
        // Both: each element at its index, and all of them as one access, which lie one after the
        // other.
        let last = match range.end.checked_sub(1) {
            Some(last) if count > 0 => self.offset(last, 1)?.saturating_add(size_of::<T>()),
            _ => 0,
        };
        let start = self.offset(range.start, 0)?;
        let together = count.saturating_mul(size_of::<T>());
        let bytes = last.saturating_sub(start).max(together);
        Ok(self.core.lines(start, bytes))
    }

    /// Sets whether data of this rank's notified puts may travel with their notifications, as they
    /// do at first, if the link can do so: short data, and on some machines data of any length.
    /// They are in place when the notification is matched, or when a flush has returned, and cost
    /// no store of their own. Without, data are stored in place first. A matter of cost, of what a
    /// later put of the same bytes must wait for, and of what a counter may overtake. For this rank
    /// only.
    pub fn set_inline(&self, inline: bool) {
        self.core.set_inline(inline);
    }
}
