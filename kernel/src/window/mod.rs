//! Windows: memory that every rank gives to all.
//!
//! # Guarantee
//! G1. A window has the same number of elements on every rank, all zero at first. A peer's piece has the
//!     same key as the own one, so no table of peers is kept.
//! G2. [`World::allocate`] fails on all ranks together, and then changes nothing.
//!
//! # Coherence
//! A piece is cached by its owner only ([`Local`]); peers access it past the caches. Who may touch it when:
//!
//! | the owner            | its stores to the piece        | its loads                            |
//! |----------------------|--------------------------------|--------------------------------------|
//! | no epoch, no request | free                           | free                                 |
//! | post … wait          | refused ([`Error::Exposed`])   | may be stale until `wait` returns    |
//! | request start … done | refused in the request's lines | of these lines: may be stale         |
//!
//! `post` (and a request's start) writes the owner's dirty lines back, so that none is left to be evicted
//! over what peers put. `wait` (and a matched request) invalidates.
//!
//! # Source
//! [foMPI] 2.2 (symmetric allocation, O(1) descriptors); [PSCW-SCC] IV-B1 (words in the region nearest to
//! their owner).
//!
//! [PSCW-SCC]: crate#sources
//! [foMPI]: crate#sources

mod local;

use core::{cell::Cell, marker::PhantomData, ops::Range};

use bytemuck::Pod;
use flagpost_link::{Key, Link, MatchVector, Rank, point};

use crate::{
    Error, World,
    arena::RankSet,
    notify::{Notification, Tag},
};

pub use local::Local;

/// How many requests may be started on a window at a time.
pub(crate) const REQUESTS: usize = 8;

/// A window of `T`s: one piece per rank.
#[derive(Debug)]
pub struct Window<'w, T, L> {
    pub(crate) core: Core<'w, L>,
    element: PhantomData<T>,
}

/// What of a window does not depend on its element.
#[derive(Debug)]
pub(crate) struct Core<'w, L> {
    pub(crate) world: &'w World<'w, L>,
    pub(crate) id: u16,
    pub(crate) key: Key,
    /// Match vector and completion counter.
    pub(crate) sync: Key,
    /// Length of each piece, in bytes.
    pub(crate) bytes: u32,
    /// Targets of the open access epoch that have posted: [PSCW-SCC]'s cacheable copy.
    pub(crate) admitted: RankSet<'w>,
    pub(crate) access_open: Cell<bool>,
    pub(crate) exposure_open: Cell<bool>,
    pub(crate) abandoned: Cell<bool>,
    /// Lines of started requests.
    pub(crate) requested: [Cell<Option<Lines>>; REQUESTS],
}

/// Whole lines of the own piece: start and end offset in bytes.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Lines {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl<'w, L: MatchVector> World<'w, L> {
    /// Makes a window of `len` zero elements on each rank. Collective: all ranks call it with the same
    /// element size and length, in the same order as other collectives.
    ///
    /// Takes `len` elements and the synchronization words (`4 ceil(p / 32) + 4` bytes), each in whole
    /// lines, of every rank's shared memory, for as long as the world lives. Waits for all ranks: O(log p).
    ///
    /// # Errors
    /// On all ranks together: [`Error::MemoryFull`], [`Error::ArenaFull`], [`Error::TooManyWindows`] where
    /// the cause is, [`Error::Asymmetric`] naming the first such rank elsewhere. [`Error::Timeout`] if a
    /// rank does not come: then no rank may use the world any more.
    pub fn allocate<T: Pod>(&'w self, len: usize) -> Result<Window<'w, T, L>, Error> {
        let saved = self.arena.save();
        let prepared = self.prepare(len, size_of::<T>());
        // Ranks that have allocated alike so far, and agree on this, have the same keys.
        let offer = |core: &Core<'_, L>| {
            let element = u64::try_from(size_of::<T>())
                .unwrap_or(u64::MAX)
                .min(0xFFFF);
            element.wrapping_shl(u32::BITS) | u64::from(core.bytes)
        };
        // ORDER: no peer accesses the new memory before all have prepared theirs.
        let differs = point!(
            "window.allocate.agree",
            self.agree(prepared.as_ref().ok().map(offer))?;
            else None
        );
        match (prepared, differs) {
            (Ok(core), None) => {
                self.windows.set(self.windows.get().saturating_add(1));
                Ok(Window {
                    core,
                    element: PhantomData,
                })
            }
            (Ok(core), Some(rank)) => {
                self.link().withdraw(core.key);
                self.arena.restore(saved);
                Err(Error::Asymmetric(rank))
            }
            (Err(error), _) => {
                self.arena.restore(saved);
                Err(error)
            }
        }
    }

    /// This rank's part of making a window.
    fn prepare(&'w self, len: usize, size: usize) -> Result<Core<'w, L>, Error> {
        let id = self.windows.get();
        if id >= self.limits().windows {
            return Err(Error::TooManyWindows {
                max: self.limits().windows,
            });
        }
        let bytes = u32::try_from(len.saturating_mul(size)).map_err(|_| Error::MemoryFull {
            missing_bytes: u32::MAX,
        })?;
        let admitted = RankSet::new(self.arena.take(RankSet::words(self.size()))?);
        let link = self.link();
        let key = link.allocate(bytes)?;
        let sync = link
            .allocate(link.sync_bytes())
            .inspect_err(|_| link.withdraw(key))?;
        point!("window.prepare.reset", link.reset(sync)?);
        self.zero(key, bytes)?;
        Ok(Core {
            world: self,
            id,
            key,
            sync,
            bytes,
            admitted,
            access_open: Cell::new(false),
            exposure_open: Cell::new(false),
            abandoned: Cell::new(false),
            requested: [const { Cell::new(None) }; REQUESTS],
        })
    }

    /// Clears a new piece, through the cache: what it holds of these bytes is then right as well.
    fn zero(&self, key: Key, bytes: u32) -> Result<(), Error> {
        const ZEROS: [u8; 64] = [0; 64];
        let mut offset = 0_u32;
        while offset < bytes {
            let step = bytes.saturating_sub(offset).min(ZEROS.len() as u32);
            let zeros = ZEROS.get(..step as usize).unwrap_or(&[]);
            self.link().write_local(key, offset, zeros)?;
            offset = offset.saturating_add(step);
        }
        // PUBLISH: peers read zeros, and no dirty line is left to travel over their puts.
        point!("window.zero.publish", self.link().publish(key, 0, bytes)?);
        Ok(())
    }
}

impl<'w, T: Pod, L: Link> Window<'w, T, L> {
    /// Elements in each rank's piece.
    pub fn len(&self) -> usize {
        (self.core.bytes as usize)
            .checked_div(size_of::<T>())
            .unwrap_or(0)
    }

    /// Whether the pieces have no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The world that made it.
    pub fn world(&self) -> &'w World<'w, L> {
        self.core.world
    }

    /// The own piece.
    pub fn local(&self) -> Local<'_, T, L> {
        Local::new(self)
    }

    /// Byte offset of `count` elements from `index` on.
    pub(crate) fn offset(&self, index: usize, count: usize) -> Result<u32, Error> {
        let len = self.len();
        match index.checked_add(count) {
            // Not above the window's size, which fits u32.
            Some(end) if end <= len => Ok(index.wrapping_mul(size_of::<T>()) as u32),
            _ => Err(Error::OutOfRange {
                end: (index as u64).saturating_add(count as u64),
                len: len as u64,
            }),
        }
    }

    /// The lines of a range of elements.
    pub(crate) fn lines(&self, range: Range<usize>) -> Result<Lines, Error> {
        let Some(count) = range.end.checked_sub(range.start) else {
            return Err(Error::OutOfRange {
                end: range.start as u64,
                len: range.end as u64,
            });
        };
        let start = self.offset(range.start, count)?;
        let bytes = count.saturating_mul(size_of::<T>()) as u32;
        Ok(Lines::covering(start, bytes, L::LINE, self.core.bytes))
    }

    /// Puts `data` at `index` of `to`'s piece and notifies `to` with `tag`: one message, no epoch.
    ///
    /// Waits for room in `to`'s ring. A request of `to` that matches finds the data, and this rank's
    /// earlier puts to `to` in the request's range, when it completes. `to` must not store to these lines meanwhile: it says so
    /// by starting a request for them, or leaves them alone altogether. Zero elements only notify.
    ///
    /// Cost: see the link; over `mapped`, beside the data, 1 lock, 2 loads, 3 stores, 1 unlock.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`], [`Error::OutOfRange`], [`Error::TagTooLarge`]; [`Error::Timeout`] if the ring
    /// stays full or its lock taken. Nothing was sent then.
    pub fn put_notify(&self, to: Rank, index: usize, data: &[T], tag: Tag) -> Result<(), Error> {
        let world = self.core.world;
        world.check_rank(to)?;
        let offset = self.offset(index, data.len())?;
        let max = world.limits().tag;
        if tag.0 > max {
            return Err(Error::TagTooLarge { max });
        }
        let immediate = world.limits().pack(Notification {
            source: world.rank(),
            window: self.core.id,
            tag,
        });
        let bytes = bytemuck::cast_slice(data);
        world.retry(|| {
            world
                .link()
                .put_immediate(to, self.core.key, offset, bytes, immediate)
        })
    }
}

impl<L: Link> Core<'_, L> {
    /// Makes own stores to these lines visible to peers.
    pub(crate) fn publish(&self, lines: Lines) -> Result<(), Error> {
        let bytes = lines.end.saturating_sub(lines.start);
        Ok(self.world.link().publish(self.key, lines.start, bytes)?)
    }

    /// Makes peers' puts to these lines visible to own loads.
    pub(crate) fn refresh(&self, lines: Lines) -> Result<(), Error> {
        let bytes = lines.end.saturating_sub(lines.start);
        Ok(self.world.link().refresh(self.key, lines.start, bytes)?)
    }

    /// All lines of a piece.
    pub(crate) fn all(&self) -> Lines {
        Lines {
            start: 0,
            end: self.bytes,
        }
    }

    /// Whether peers may be writing one of `lines`.
    pub(crate) fn is_exposed(&self, lines: Lines) -> bool {
        self.exposure_open.get()
            || self
                .requested
                .iter()
                .filter_map(Cell::get)
                .any(|open| open.start.max(lines.start) < open.end.min(lines.end))
    }
}

impl Lines {
    /// The lines of `line` bytes that hold `bytes` bytes at `start`, cut at the end of the piece.
    fn covering(start: u32, bytes: u32, line: u32, size: u32) -> Self {
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
