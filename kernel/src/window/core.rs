//! What of a window does not depend on its element.

use core::cell::Cell;

use flagpost_link::{Key, Link, Rank, point};

use crate::{Error, Model, World, epoch::lock::Passive};

/// How many requests may be started on a window at a time.
pub(crate) const REQUESTS: usize = 8;

/// Words of a window that many ranks change: where they lie, from `Core::cells` on. 8 bytes each, past all caches, zero at
/// first, on every rank.
pub(crate) mod cell {
    /// The lock of the rank's piece.
    pub(crate) const LOCAL: u32 = 0;
    /// At rank 0: who has locked all pieces, and who some exclusively.
    pub(crate) const GLOBAL: u32 = 8;
    /// Who came last to the queue for the rank's piece.
    pub(crate) const TAIL: u32 = 16;
    /// Who comes behind this rank in the queue that it is in.
    pub(crate) const NEXT: u32 = 24;
    /// How it stands with this rank in that queue.
    pub(crate) const TURN: u32 = 32;
    /// Size of all; the last three are spare.
    pub(crate) const BYTES: u32 = 64;
}

/// What of a window does not depend on its element, nor on how its epochs are signalled.
#[derive(Debug)]
pub struct Core<'w, L> {
    pub(crate) world: &'w World<'w, L>,
    pub(crate) id: u16,
    pub(crate) key: Key,
    /// Length of the own piece, in bytes.
    pub(crate) bytes: u32,
    /// The window's [cells](cell), under the same key on every rank.
    pub(crate) cells: Key,
    pub(crate) model: Model,
    pub(crate) access_open: Cell<bool>,
    pub(crate) exposure_open: Cell<bool>,
    /// What the open exposure epoch exposes.
    pub(crate) exposed: Cell<Lines>,
    pub(crate) abandoned: Cell<bool>,
    /// This rank's epochs of passive targets.
    pub(crate) passive: Passive,
    /// Lines of started requests.
    pub(crate) requested: [Cell<Option<Lines>>; REQUESTS],
}

/// Whole lines of the own piece: start and end offset in bytes.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Lines {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl<'w, L: Link> Core<'w, L> {
    pub(crate) fn new(
        world: &'w World<'w, L>,
        id: u16,
        key: Key,
        bytes: u32,
        cells: Key,
        model: Model,
    ) -> Self {
        Self {
            world,
            id,
            key,
            bytes,
            cells,
            model,
            access_open: Cell::new(false),
            exposure_open: Cell::new(false),
            exposed: Cell::new(Lines { start: 0, end: 0 }),
            abandoned: Cell::new(false),
            passive: Passive::new(),
            requested: [const { Cell::new(None) }; REQUESTS],
        }
    }

    /// Byte offset of `count` elements of the own piece from `index` on.
    pub(crate) fn offset<T>(&self, index: usize, count: usize) -> Result<u32, Error> {
        inside::<T>(index, count, self.bytes)
    }

    /// Where `count` elements of `rank`'s piece lie, from `index` on.
    pub(crate) fn place<T>(
        &self,
        rank: Rank,
        index: usize,
        count: usize,
    ) -> Result<(Key, u32), Error> {
        self.world.check_rank(rank)?;
        Ok((self.key, inside::<T>(index, count, self.bytes)?))
    }

    /// Marks one side's epoch as open.
    pub(crate) fn open(&self, side: &Cell<bool>) -> Result<(), Error> {
        if self.abandoned.get() {
            return Err(Error::EpochAbandoned);
        }
        if self.passive.any() && core::ptr::eq(side, &self.access_open) {
            return Err(Error::EpochOpen);
        }
        if side.replace(true) {
            return Err(Error::EpochOpen);
        }
        Ok(())
    }

    /// Makes own stores to these lines visible to peers.
    pub(crate) fn publish(&self, lines: Lines) -> Result<(), Error> {
        let (world, link) = (self.world, self.world.link());
        match self.model {
            Model::Separate => {
                let bytes = lines.end.saturating_sub(lines.start);
                Ok(link.publish(self.key, lines.start, bytes)?)
            }
            // ORDER: own stores, which went past the cache, before whatever tells peers of them.
            Model::Unified => {
                point!("window.unified.fence", world.retry(|| link.fence())?);
                Ok(())
            }
        }
    }

    /// Makes peers' puts to these lines visible to own loads.
    pub(crate) fn refresh(&self, lines: Lines) -> Result<(), Error> {
        match self.model {
            Model::Separate => {
                let bytes = lines.end.saturating_sub(lines.start);
                Ok(self.world.link().refresh(self.key, lines.start, bytes)?)
            }
            Model::Unified => Ok(()),
        }
    }

    /// All lines of a piece.
    pub(crate) fn all(&self) -> Lines {
        Lines {
            start: 0,
            end: self.bytes,
        }
    }

    /// Whether own stores to one of `lines` could travel over what peers put there.
    pub(crate) fn is_exposed(&self, lines: Lines) -> bool {
        let epoch = self.exposure_open.get().then(|| self.exposed.get());
        let requests = self.requested.iter().filter_map(Cell::get);
        self.model == Model::Separate
            && epoch
                .into_iter()
                .chain(requests)
                .any(|open| open.meets(lines))
    }
}

/// Byte offset of `count` elements from `index` on, of a piece of `bytes`.
fn inside<T>(index: usize, count: usize, bytes: u32) -> Result<u32, Error> {
    let len = (bytes as usize).checked_div(size_of::<T>()).unwrap_or(0);
    match index.checked_add(count) {
        // Not above the piece's size, which fits u32.
        Some(end) if end <= len => Ok(index.wrapping_mul(size_of::<T>()) as u32),
        _ => Err(Error::OutOfRange {
            end: (index as u64).saturating_add(count as u64),
            len: len as u64,
        }),
    }
}

impl Lines {
    /// Whether there is a byte in both.
    fn meets(self, other: Self) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }

    /// The lines of `line` bytes that hold `bytes` bytes at `start`, cut at the end of the piece.
    pub(crate) fn covering(start: u32, bytes: u32, line: u32, size: u32) -> Self {
        if bytes == 0 {
            return Self { start, end: start };
        }
        let mask = line.wrapping_sub(1);
        let end = start.saturating_add(bytes);
        Self {
            start: start & !mask,
            end: end
                .checked_add(mask)
                .map_or(size, |end| end & !mask)
                .min(size),
        }
    }
}
