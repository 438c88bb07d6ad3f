//! Windows over memory that their ranks have reserved. Ranks' pieces may differ in length, unit and
//! place. So each rank tells all others where its piece lies, and keeps a table of four words per
//! rank, of five where bytes have 64-bit numbers. All else is as in an allocated window.

#![allow(
    clippy::result_large_err,
    reason = "what is made goes back to its user, without a heap"
)]

use core::{cell::Cell, ops::Range};

use bytemuck::Pod;
use flagpost_link::{Link, Place, Rank};

use super::{
    Core, Memory, Options, Piece, Pieces, Window,
    allocate::{bit, digest},
    cell,
    core::TABLE,
};
use crate::{
    Error, Making, World,
    epoch::{EpochSlots, Strategy},
    making::{self, halves, same_of},
};

impl<'w, L: Link> World<'w, L> {
    /// Makes a window over bytes `range` of this rank's `memory`. Collective: all ranks call it in
    /// the same order as other collectives, with the same element; memory, range and `unit` are
    /// each rank's own.
    ///
    /// Index i of the window is byte `i * unit` of the range; elements of one access lie one after
    /// the other from there. The range begins at a line, and a unit has less than 4 GiB.
    /// Accumulates need units that are multiples of the element's size ([`Error::UnitUnaligned`]);
    /// puts and gets do not. The memory is the window's until [`Window::free`], and holds what it
    /// held.
    ///
    /// Takes 4 p words of the arena (5 p where `usize` has 64 bits) beside what its epochs need:
    /// where each rank's piece lies. ([foMPI] 2.2: a window whose pieces lie anywhere cannot do
    /// with less than Omega(p).) Waits for all ranks: an allgather.
    ///
    /// # Errors
    /// On all ranks together: [`Error::OutOfRange`] (in bytes),
    /// [`Error::BadBase`], [`Error::BadUnit`], [`Error::MemoryInUse`], [`Error::MemoryFull`],
    /// [`Error::ArenaFull`], [`Error::TooManyPieces`], [`Error::TooManyWindows`] where the cause
    /// is, [`Error::Asymmetric`] naming such a rank elsewhere. [`Error::PeerLost`].
    /// [`Error::CollectiveUnfinished`]: nothing was taken, and the memory is in no window.
    ///
    /// [foMPI]: crate#sources
    ///
    /// # Example
    /// ```
    /// # flagpost_guide::simulate(2, |world| {
    /// let memory = world.reserve(64)?; // each rank may reserve another length
    /// memory.write(32, &[7_u32])?;
    /// let window = world.create::<u32>(&memory, 32..64, 4)?; // 4 bytes from index to index
    /// assert_eq!((window.len(), window.local().get(0)?), (8, 7));
    /// # Ok(())
    /// # });
    /// ```
    #[track_caller]
    pub fn create<T: Pod>(
        &'w self,
        memory: &'w Memory<'w, L>,
        range: Range<usize>,
        unit: usize,
    ) -> Result<Window<'w, T, L>, Error> {
        called!(self);
        self.create_with::<T, EpochSlots<'w>>(memory, range, unit, ())
    }

    /// [`World::create`], with epochs signalled as `S` does, and `options` as of
    /// [`World::allocate_with`].
    ///
    /// # Errors
    /// On all ranks together: [`Error::OutOfRange`] (in bytes), [`Error::BadBase`],
    /// [`Error::BadUnit`], [`Error::MemoryInUse`], [`Error::MemoryFull`], [`Error::ArenaFull`],
    /// [`Error::TooManyPieces`], [`Error::TooManyWindows`] where the cause is,
    /// [`Error::Asymmetric`] naming the first such rank elsewhere. [`Error::PeerLost`].
    /// [`Error::CollectiveUnfinished`]: nothing was taken, and the memory is in no window.
    #[track_caller]
    pub fn create_with<T: Pod, S: Strategy<'w, L>>(
        &'w self,
        memory: &'w Memory<'w, L>,
        range: Range<usize>,
        unit: usize,
        options: impl Into<Options<S::Options>>,
    ) -> Result<Window<'w, T, L, S>, Error> {
        called!(self);
        self.creating::<T, S>(memory, range, unit, options)?.wait()
    }

    /// [`World::create_with`], with a handle, as [`World::allocating`].
    ///
    /// # Errors
    /// [`Error::CollectiveUnfinished`]: nothing was taken, and the memory is in no window.
    #[track_caller]
    pub fn creating<T: Pod, S: Strategy<'w, L>>(
        &'w self,
        memory: &'w Memory<'w, L>,
        range: Range<usize>,
        unit: usize,
        options: impl Into<Options<S::Options>>,
    ) -> Result<Making<'w, L, Window<'w, T, L, S>>, Error> {
        called!(self);
        let options = options.into();
        let prepare = || self.prepare_over::<T, S>(memory, range, unit, options);
        // Words that must be the same everywhere, then where this rank's piece lies.
        let row = |window: &Window<'w, T, L, S>| {
            let Window { core, sync, .. } = window;
            let Piece {
                key,
                base,
                bytes,
                unit,
            } = core.own;
            let element = u32::try_from(size_of::<T>()).unwrap_or(u32::MAX);
            let (offer, cells) = (sync.offer(), core.cells.get());
            let same = digest([core.model as u32, core.id.into(), element, offer, cells]);
            let [low, high] = same_of(making::offer(size_of::<T>(), 0, same));
            let [bytes, more] = halves(bytes as u64);
            let lines = base.checked_div(L::LINE).unwrap_or(0) as u32;
            [low, high, key.get(), unit, lines, bytes, more, 0]
        };
        let note = |window: &Window<'w, T, L, S>, rank: Rank, place: &[u32]| {
            window.core.note(rank, place);
        };
        Making::rows(self, prepare, row, note, Window::WAYS)
    }

    /// This rank's part. Takes nothing if it fails.
    fn prepare_over<T: Pod, S: Strategy<'w, L>>(
        &'w self,
        memory: &'w Memory<'w, L>,
        range: Range<usize>,
        unit: usize,
        options: Options<S::Options>,
    ) -> Result<Window<'w, T, L, S>, Error> {
        let id = self.unused_window()?;
        let (claimed, whole) = memory.part(self)?;
        let Some(unit) = u32::try_from(unit).ok().filter(|unit| *unit > 0) else {
            return Err(Error::BadUnit { unit: unit as u64 });
        };
        let Some(count) = range.end.checked_sub(range.start) else {
            return Err(Error::OutOfRange {
                end: range.start as u64,
                len: range.end as u64,
            });
        };
        let base = whole.inside::<u8>(range.start, count)?;
        if !base.is_multiple_of(L::LINE) {
            return Err(Error::BadBase {
                line: L::LINE as u32,
            });
        }
        if claimed.get() {
            return Err(Error::MemoryInUse);
        }
        let ranks = usize::from(self.size());
        let words = self.arena.take(ranks.saturating_mul(TABLE))?;
        let cells = match self.link().allocate(cell::BYTES, Place::Symmetric) {
            Ok(cells) => cells,
            Err(refusal) => {
                self.arena.give_back(words);
                return Err(refusal.into());
            }
        };
        let sync = match S::prepare(self, options.strategy) {
            Ok(sync) => sync,
            Err(error) => {
                self.link().withdraw(cells);
                self.arena.give_back(words);
                return Err(error);
            }
        };
        let piece = Piece {
            base,
            bytes: count,
            unit,
            ..whole
        };
        let core = Core::new(
            self,
            id,
            piece,
            Pieces::Table { words, claimed },
            cells,
            options.model,
        );
        claimed.set(true);
        self.windows.set(self.windows.get() | bit(id));
        let Piece { key, bytes, .. } = piece;
        let published = point!(PUBLISH "peers read it, and no dirty line travels over puts":
            "window.create.publish", self.link().publish(key, base, bytes); else Ok(()));
        if let Err(refusal) = published {
            self.discard(&core, &sync);
            return Err(refusal.into());
        }
        Ok(Window::new(core, sync))
    }
}

impl<L> Core<'_, L> {
    /// Where `rank` says that its piece lies: the words of a row of the table.
    fn note(&self, rank: Rank, place: &[u32]) {
        let Pieces::Table { words, .. } = self.pieces else {
            return;
        };
        let (rows, _) = words.as_chunks::<TABLE>();
        for (word, value) in rows.get(rank.index()).into_iter().flatten().zip(place) {
            Cell::set(word, *value);
        }
    }
}
