//! The part of a window that is the same for every element type. It knows where the pieces lie,
//! which epochs are open, and in which lines this rank must not store. Epochs and accesses work on
//! it, so they are compiled once, and not for each element.

use core::cell::Cell;

use flagpost_link::{Expected, Key, Link, Rank, Step};

use super::{
    Kind,
    counters::Counters,
    passive::Passive,
    requested::{Closed, Lines, Requested},
};
use crate::{
    Error, Model, World,
    immediate::{Notification, Tag},
};

/// Words of a window that many ranks change: where they lie, from `Core::cells` on. 8 bytes each,
/// past all caches, zero at first, on every rank.
pub(crate) mod cell {
    /// The lock of the rank's piece.
    pub(crate) const LOCAL: u32 = 0;
    /// At rank 0: who has locked all pieces, and who some exclusively.
    pub(crate) const GLOBAL: u32 = 8;
    /// The rank that came last to the queue for this piece.
    pub(crate) const TAIL: u32 = 16;
    /// The rank that comes after this one in the queue that it is in.
    pub(crate) const NEXT: u32 = 24;
    /// How it stands with this rank in that queue.
    pub(crate) const TURN: u32 = 32;
    /// How many turns writers had that waited for the rank's piece.
    pub(crate) const LOCAL_TURNS: u32 = 40;
    /// At rank 0: the same for the exclusive locks that waited for those of all pieces.
    pub(crate) const GLOBAL_TURNS: u32 = 48;
    /// Size of all; the last one is spare.
    pub(crate) const BYTES: usize = 64;
}

/// The part of a window that is the same for every element type, and for every way of signalling.
#[derive(Debug)]
#[repr(C)]
pub struct Core<'w, L> {
    // Fields that the end of a request touches lie together, from the key on: see `notify/request`.
    /// This rank's piece.
    pub(crate) own: Piece,
    pub(crate) pieces: Pieces<'w>,
    pub(crate) model: Model,
    inline: Cell<Inline>,
    pub(crate) id: u16,
    /// The immediate of this rank's notifications of this window, with tag 0.
    pub(crate) immediate: u32,
    pub(crate) world: &'w World<'w, L>,
    /// Started requests that have lines.
    pub(crate) requested: Requested,
    /// The window's [cells](cell), under the same key on every rank.
    pub(crate) cells: Key,
    pub(crate) access_open: Cell<bool>,
    pub(crate) exposure_open: Cell<bool>,
    pub(crate) abandoned: Cell<bool>,
    /// Every rank has agreed to free the window. Only this rank's clean-up is left.
    pub(crate) left: Cell<bool>,
    /// All lines of this rank's piece.
    all: Lines,
    /// The lines that the open exposure epoch exposes.
    pub(crate) exposed: Cell<Lines>,
    /// This rank's epochs of passive targets.
    pub(crate) passive: Passive,
    /// Notification counters.
    pub(crate) counters: Counters<'w>,
}

/// May short data of notified puts travel with their notifications?
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Inline {
    Never,
    /// They may.
    Placed,
    /// They may, and the pieces lie alike: a fast path asks for both by one look.
    Alike,
}

impl Inline {
    const fn of(inline: bool, pieces: Pieces<'_>) -> Self {
        match (inline, pieces) {
            (false, _) => Self::Never,
            (true, Pieces::Same) => Self::Alike,
            (true, _) => Self::Placed,
        }
    }
}

/// Where the ranks' pieces lie.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Pieces<'w> {
    /// Each piece has the key, offset and length of this rank's.
    Same,
    /// Per rank as the table says; and the mark of this rank's memory that it is in a window.
    Table {
        words: &'w [Cell<u32>],
        claimed: &'w Cell<bool>,
    },
    /// A dynamic window has no piece: `words` lists the memory that this rank has attached.
    Attached {
        words: &'w [Cell<u32>],
        regions: u16,
    },
}

/// Where one rank's piece lies.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Piece {
    /// Where it begins in the key's memory, in bytes; a multiple of the line.
    pub(crate) base: usize,
    /// Its length in bytes.
    pub(crate) bytes: usize,
    pub(crate) key: Key,
    /// Bytes between two indices.
    pub(crate) unit: u32,
}

/// Words per rank of [`Pieces::Table`]: key, unit, lines before the piece, bytes.
pub(crate) const TABLE: usize = 3 + WIDE;

/// Words of a number of bytes.
const WIDE: usize = size_of::<usize>() / size_of::<u32>();

/// Words per attachment of [`Pieces::Attached`]: key, bytes, number (see `dynamic`); the first
/// attachments of all.
pub(crate) const ATTACHED: usize = 3;

/// Stands for everything that is attached.
const EVERYTHING: Lines = Lines {
    start: 0,
    end: u32::MAX,
};

impl<L: Link> World<'_, L> {
    /// `Ok` if there is such a rank.
    pub(crate) fn check_rank(&self, rank: Rank) -> Result<(), Error> {
        if rank.get() < self.size() {
            Ok(())
        } else {
            Err(Error::NoSuchRank {
                rank,
                size: self.size(),
            })
        }
    }
}

impl<'w, L: Link> Core<'w, L> {
    pub(crate) fn new(
        world: &'w World<'w, L>,
        id: u16,
        own: Piece,
        pieces: Pieces<'w>,
        cells: Key,
        model: Model,
    ) -> Self {
        const { assert!(!(L::FAST && Self::CACHES), "fast paths refresh nothing") };
        Self {
            world,
            id,
            own,
            pieces,
            cells,
            model,
            access_open: Cell::new(false),
            exposure_open: Cell::new(false),
            all: Lines::covering(own.base, own.bytes, L::LINE),
            exposed: Cell::new(Lines { start: 0, end: 0 }),
            abandoned: Cell::new(false),
            immediate: world.limits.pack(Notification {
                source: world.rank(),
                window: id,
                tag: Tag(0),
            }),
            inline: Cell::new(Inline::of(true, pieces)),
            passive: Passive::new(world.rank()),
            left: Cell::new(false),
            requested: Requested::none(),
            counters: Counters::none(),
        }
    }

    /// Makes it a window with no piece, of what `words` list.
    pub(crate) fn attaches(&mut self, words: &'w [Cell<u32>], regions: u16) {
        self.pieces = Pieces::Attached { words, regions };
        self.set_inline(self.inline());
        self.own.bytes = 0;
        self.all = EVERYTHING;
    }

    /// [`Window::set_inline`](super::Window::set_inline).
    pub(crate) fn set_inline(&self, inline: bool) {
        self.inline.set(Inline::of(inline, self.pieces));
    }

    /// May short data of notified puts travel with their notifications?
    pub(crate) fn inline(&self) -> bool {
        self.inline.get() != Inline::Never
    }

    /// They may, and the pieces lie alike.
    #[inline(always)]
    pub(crate) fn inline_alike(&self) -> bool {
        self.inline.get() == Inline::Alike
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.pieces {
            Pieces::Same => Kind::Allocated,
            Pieces::Table { .. } => Kind::Created,
            Pieces::Attached { .. } => Kind::Dynamic,
        }
    }

    /// `rank`'s piece.
    #[inline]
    pub(crate) fn piece(&self, rank: Rank) -> Result<Piece, Error> {
        self.world.check_rank(rank)?;
        let Pieces::Table { words, .. } = self.pieces else {
            return Ok(self.own);
        };
        let (rows, _) = words.as_chunks::<TABLE>();
        Ok(rows.get(rank.index()).map_or(self.own, |row| {
            let [key, unit, lines, bytes @ ..] = row;
            // The low word comes first.
            let more = |all: usize, word: &Cell<u32>| all.wrapping_shl(32) | word.get() as usize;
            Piece {
                key: Key::new(key.get()),
                base: (lines.get() as usize).wrapping_mul(L::LINE),
                bytes: bytes.iter().rev().fold(0, more),
                unit: unit.get(),
            }
        }))
    }

    /// The immediate that tells `tag`.
    pub(crate) fn check_tag(&self, tag: Tag) -> Result<u32, Error> {
        let max = self.world.limits.tag;
        if tag.0 > max {
            return Err(Error::TagTooLarge { max });
        }
        Ok(self.immediate | tag.0)
    }

    /// Offset of `count` elements of this rank's piece from `index` on.
    pub(crate) fn offset<T>(&self, index: usize, count: usize) -> Result<usize, Error> {
        self.own.inside::<T>(index, count)
    }

    /// Where `count` elements of `rank`'s piece lie, from `index` on.
    pub(crate) fn place<T>(
        &self,
        rank: Rank,
        index: usize,
        count: usize,
    ) -> Result<(Key, usize), Error> {
        let piece = self.piece(rank)?;
        Ok((piece.key, piece.inside::<T>(index, count)?))
    }

    /// Marks one side's epoch as open.
    #[inline(always)]
    pub(crate) fn open(&self, side: &Cell<bool>) -> Result<(), Error> {
        let locked = self.passive.any() & core::ptr::eq(side, &self.access_open);
        if self.abandoned.get() | locked | side.get() {
            return Err(self.why_closed());
        }
        side.set(true);
        Ok(())
    }

    #[cold]
    fn why_closed(&self) -> Error {
        if self.abandoned.get() {
            Error::EpochAbandoned
        } else {
            Error::EpochOpen
        }
    }

    /// True if stores and loads of this rank may miss memory, in a window of the separate model.
    const CACHES: bool = !L::COHERENT;

    /// True if the link is told of requests and of reads: [`Core::expected`].
    pub(crate) const WATCHED: bool = L::LISTENS && Self::CACHES;

    /// Makes this rank's stores to these lines visible to peers.
    #[inline]
    pub(crate) fn publish(&self, lines: Lines) -> Result<(), Error> {
        if !Self::CACHES {
            // Nothing is to be written back. In windows of both models, what is left is the order.
            return Ok(self.world.link().publish(self.own.key, 0, 0)?);
        }
        let (world, link) = (self.world, self.world.link());
        let publish = |(key, start, bytes)| link.publish(key, start, bytes);
        match self.model {
            Model::Separate => Ok(self.spans(lines).try_for_each(publish)?),
            Model::Unified => {
                point!(ORDER "stores that went past the cache come before what notifies of them":
                    "window.unified.fence", world.wait().retry(|| link.fence())?);
                Ok(())
            }
        }
    }

    /// Makes peers' puts to these lines visible to this rank's loads.
    #[inline]
    pub(crate) fn refresh(&self, lines: Lines) -> Result<(), Error> {
        if !Self::CACHES || lines.is_empty() {
            return Ok(());
        }
        let refresh = |(key, start, bytes)| self.world.link().refresh(key, start, bytes);
        match self.model {
            Model::Separate => Ok(self.spans(lines).try_for_each(refresh)?),
            Model::Unified => Ok(()),
        }
    }

    /// Tells a link that listens of a request for `bytes` bytes of this rank's piece from `start`
    /// on, or of a read: it finds reads before the wait.
    #[inline(always)]
    pub(crate) fn expected(&self, start: usize, bytes: usize, what: Expected<'_>) {
        if Self::WATCHED {
            let link = self.world.link();
            link.step(Step::Expected(self.own.key, start, bytes, what));
        }
    }

    /// The same of lines. All that is attached is not watched.
    #[inline(always)]
    pub(crate) fn expected_in(&self, lines: Lines, what: Expected<'_>) {
        if Self::WATCHED && !lines.is_empty() && lines != EVERYTHING {
            let start = (lines.start as usize).wrapping_mul(L::LINE);
            let end = (lines.end as usize).saturating_mul(L::LINE);
            self.expected(start, end.saturating_sub(start), what);
        }
    }

    /// The memory that `lines` stand for: of each piece its key, the first byte, and how many.
    fn spans(&self, lines: Lines) -> impl Iterator<Item = (Key, usize, usize)> {
        let (words, regions) = match self.pieces {
            Pieces::Attached { words, regions } if lines == EVERYTHING => {
                (words, usize::from(regions))
            }
            _ => (&[][..], 0),
        };
        // All of the last line is the piece's, as links give whole lines.
        let [start, end] =
            [lines.start, lines.end].map(|line| (line as usize).saturating_mul(L::LINE));
        let own = (regions == 0).then_some((self.own.key, start, end.saturating_sub(start)));
        let (rows, _) = words.as_chunks::<ATTACHED>();
        let attached = rows.iter().take(regions);
        let attached =
            attached.map(|[key, bytes, _]| (Key::new(key.get()), 0, bytes.get() as usize));
        own.into_iter()
            .chain(attached.filter(|(_, _, bytes)| *bytes > 0))
    }

    /// All lines of a piece.
    pub(crate) fn all(&self) -> Lines {
        self.all
    }

    /// The lines of `bytes` bytes of this rank's piece that begin at offset `start`.
    pub(crate) fn lines(&self, start: usize, bytes: usize) -> Lines {
        let Lines { start, end } = Lines::covering(start, bytes, L::LINE);
        Lines {
            start,
            end: end.min(self.all().end),
        }
    }

    /// True if this rank's stores to one of `lines` could travel over what peers put there.
    pub(crate) fn is_exposed(&self, lines: Lines) -> bool {
        let epoch = self.exposure_open.get().then(|| self.exposed.get());
        self.model == Model::Separate
            && epoch
                .into_iter()
                .chain(self.requested.all().map(Closed::lines))
                .any(|open| open.meets(lines))
    }
}

impl Piece {
    /// Offset of `count` elements from `index` on, which lie one after the other.
    #[inline]
    pub(crate) fn inside<T>(self, index: usize, count: usize) -> Result<usize, Error> {
        let size = (count as u64).saturating_mul(size_of::<T>() as u64);
        let start = (index as u64).saturating_mul(self.unit.into());
        if start.saturating_add(size) > self.bytes as u64 {
            return Err(self.outside::<T>(index as u64, count as u64));
        }
        // Not after the piece's end.
        Ok(self.base.wrapping_add(start as usize))
    }

    /// The error of `count` elements from `index` on.
    #[cold]
    fn outside<T>(self, index: u64, count: u64) -> Error {
        let (bytes, unit) = (self.bytes as u64, u64::from(self.unit));
        let size = count.saturating_mul(size_of::<T>() as u64);
        let covered = size.checked_div(unit).unwrap_or(0);
        let rest = size.checked_rem(unit).unwrap_or(0);
        Error::OutOfRange {
            end: index
                .saturating_add(covered)
                .saturating_add(u64::from(rest > 0)),
            len: bytes.checked_div(unit).unwrap_or(0),
        }
    }

    /// How many indices have an element.
    pub(crate) fn len<T>(self) -> usize {
        let (bytes, unit) = (self.bytes, self.unit as usize);
        match (size_of::<T>(), bytes.checked_sub(size_of::<T>())) {
            (1.., Some(last)) => last
                .checked_div(unit)
                .map_or(0, |last| last.saturating_add(1)),
            _ => 0,
        }
    }
}
