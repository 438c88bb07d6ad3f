//! The part of a window that is the same for every element type. It knows where the pieces lie,
//! which epochs are open, and in which lines this rank must not store. Epochs and accesses work on
//! it, so they are compiled once, and not for each element.

use core::cell::Cell;

use flagpost_link::{Expected, Key, Link, Rank, Step};

use super::{Kind, counters::Counters, passive::Passive};
use crate::{
    Error, Model, World,
    immediate::{Filter, Notification, Tag},
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
    /// Short data of notified puts may travel with their notifications.
    pub(crate) inline: Cell<bool>,
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

/// Whole lines of this rank's piece: the number of the first one, and of the one after the last,
/// from the start of the key's memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

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
            inline: Cell::new(true),
            passive: Passive::new(world.rank()),
            left: Cell::new(false),
            requested: Requested::none(),
            counters: Counters::none(),
        }
    }

    /// Makes it a window with no piece, of what `words` list.
    pub(crate) fn attaches(&mut self, words: &'w [Cell<u32>], regions: u16) {
        self.pieces = Pieces::Attached { words, regions };
        self.own.bytes = 0;
        self.all = EVERYTHING;
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

impl Lines {
    /// None. No line of a piece that has any ends at 0.
    pub(crate) const NONE: Self = Self { start: 0, end: 0 };

    /// True if there are none.
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// True if there is a byte in both.
    fn meets(self, other: Self) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }

    /// The lines of `line` bytes that hold `bytes` bytes at `start`.
    fn covering(start: usize, bytes: usize, line: usize) -> Self {
        let number = |offset: usize| offset.wrapping_shr(line.trailing_zeros()) as u32;
        let last = start.saturating_add(bytes).saturating_sub(1);
        Self {
            start: number(start),
            end: number(last).wrapping_add(u32::from(bytes > 0)),
        }
    }
}

// ---- The lines of started requests: this rank's stores there are refused until they end ----

/// How many started requests with lines a window takes.
const REQUESTS: usize = 32;

/// A started request, in its own words: their meaning is looked up where a second one is started.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Closed {
    /// The immediate that matches, and [`Closed::STARTED`]; 0 if no notification does.
    pub(crate) wanted: u32,
    /// The first line, and which of source and tag do not matter.
    pub(crate) start: u32,
    /// The number after the last line's.
    pub(crate) end: u32,
}

impl Closed {
    /// In `wanted`: the request is started. No immediate has this bit.
    pub(crate) const STARTED: u32 = 1 << 31;
    /// In `start`, above the number of a line: any source, any tag.
    pub(crate) const ANY_SOURCE: u32 = 1 << 31;
    pub(crate) const ANY_TAG: u32 = 1 << 30;
    /// The last line that a request begins with: a range beyond it has the lines before it as well.
    pub(crate) const LAST: u32 = Self::ANY_TAG - 1;

    const FREE: Self = Self::silent(Lines::NONE);

    /// A request for a word, which matches no notification.
    pub(crate) const fn silent(Lines { start, end }: Lines) -> Self {
        let start = if start < Self::LAST {
            start
        } else {
            Self::LAST
        };
        Self {
            wanted: 0,
            start,
            end,
        }
    }

    pub(crate) const fn lines(self) -> Lines {
        Lines {
            start: self.start & Self::LAST,
            end: self.end,
        }
    }

    fn filter(self, tag_bits: u32) -> Filter {
        if self.wanted == 0 {
            return Filter::NONE;
        }
        let any = [Self::ANY_SOURCE, Self::ANY_TAG].map(|bit| self.start & bit != 0);
        Filter::new(tag_bits, self.wanted, any)
    }
}

/// Lines of started requests. Most programs have one: it takes the first place, which is looked at
/// without a look at how many there are. Both are in one line, or in two that are neighbours.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Requested {
    /// No place from this one on is taken, but the first one may be.
    used: Cell<u8>,
    places: [Cell<Closed>; REQUESTS],
}

impl Requested {
    pub(super) const fn none() -> Self {
        Self {
            used: Cell::new(0),
            places: [const { Cell::new(Closed::FREE) }; REQUESTS],
        }
    }

    /// All places that may be taken.
    pub(super) fn all(&self) -> impl Iterator<Item = Closed> {
        let used = usize::from(self.used.get().max(1));
        self.places.iter().take(used).map(Cell::get)
    }

    /// A place for a request; none if it has no lines.
    ///
    /// # Errors
    /// [`Error::RequestsOverlap`] if one with lines matches notifications that it would match.
    pub(crate) fn room_for(
        &self,
        request: Closed,
        tag_bits: u32,
    ) -> Result<Option<&Cell<Closed>>, Error> {
        let filter = request.filter(tag_bits);
        if self
            .all()
            .any(|one| one.filter(tag_bits).meets(filter, tag_bits))
        {
            return Err(Error::RequestsOverlap);
        }
        if request.lines().is_empty() {
            return Ok(None);
        }
        let max = REQUESTS as u8;
        let mut places = (1..=max).zip(&self.places);
        let free = places.find(|(_, place)| place.get().lines().is_empty());
        let (number, place) = free.ok_or(Error::TooManyRequests { max })?;
        self.used.set(self.used.get().max(number));
        Ok(Some(place))
    }

    /// The first place, if no place is taken.
    #[inline]
    pub(crate) fn first_room(&self) -> Option<&Cell<Closed>> {
        let [first, ..] = &self.places;
        (first.get().end == 0 && self.used.get() <= 1).then_some(first)
    }

    /// A started request has ended: this rank's stores there are allowed again. Of equal ones, any
    /// ends.
    pub(crate) fn close(&self, request: Closed, tag_bits: u32) {
        if request.lines().is_empty() {
        } else if self.used.get() <= 1 {
            self.close_first();
        } else {
            self.close_beside(request, tag_bits);
        }
    }

    #[inline(never)]
    fn close_beside(&self, request: Closed, tag_bits: u32) {
        let is = |one: Closed| (one.lines(), one.filter(tag_bits));
        let mut places = self.places.iter();
        if let Some(place) = places.find(|place| is(place.get()) == is(request)) {
            place.set(Closed::FREE);
        }
        let taken = (1..=self.used.get()).zip(&self.places);
        let taken = taken.filter(|(_, place)| !place.get().lines().is_empty());
        self.used.set(taken.last().map_or(0, |(number, _)| number));
    }

    /// The request that has the first place has ended.
    #[inline]
    pub(crate) fn close_first(&self) {
        let [first, ..] = &self.places;
        first.set(Closed::FREE);
    }

    /// True if the request that wants this has the first place: no two that match the same are
    /// started.
    #[inline]
    pub(crate) fn has_first(&self, wanted: u32) -> bool {
        let [first, ..] = &self.places;
        first.get().wanted == wanted
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    /// Of a request for a word.
    fn nth(nth: usize) -> Closed {
        let start = nth.saturating_mul(2) as u32;
        Closed {
            wanted: Closed::STARTED | (nth as u32).wrapping_shl(8),
            ..Closed::silent(Lines {
                start,
                end: start.saturating_add(1),
            })
        }
    }

    /// Lines are closed while their requests are started, those of 32 at the most; one more is
    /// refused. Again whenever others have ended: the first ones, the last ones, some in between.
    #[test]
    fn lines_of_started_requests_are_closed() {
        let requested = Requested::none();
        let mut open: Vec<usize> = Vec::new();
        let start = |next: usize| {
            let place = match requested.first_room() {
                // As the fast path does.
                Some(first) if next.is_multiple_of(2) => first,
                _ => requested.room_for(nth(next), 0)?.expect("it has lines"),
            };
            place.set(nth(next));
            Ok(())
        };
        let max = REQUESTS as u8;
        let full = Err(Error::TooManyRequests { max });
        for lap in 0..3 * REQUESTS {
            let mut next = 1000 * lap;
            while open.len() < REQUESTS {
                assert_eq!(start(next), Ok(()), "{open:?}");
                open.push(next);
                next += 1;
                check(&requested, &open);
            }
            for _ in 0..2 {
                assert_eq!(start(next), full);
                assert_eq!(start(next + 1), full);
            }
            assert!(matches!(requested.room_for(Closed::FREE, 0), Ok(None)));
            let ended = [1, 2, REQUESTS / 2, REQUESTS][lap % 4];
            for _ in 0..ended {
                let gone = open.remove([0, open.len() - 1, lap % open.len()][lap % 3]);
                if requested.has_first(nth(gone).wanted) && lap % 2 == 0 {
                    requested.close_first();
                } else {
                    requested.close(nth(gone), 0);
                }
                check(&requested, &open);
            }
            // One that has none closes none.
            requested.close(Closed::FREE, 0);
            check(&requested, &open);
        }
    }

    fn check(requested: &Requested, open: &[usize]) {
        for one in open {
            let lines = nth(*one).lines();
            let closed = requested.all().any(|closed| closed.lines().meets(lines));
            assert!(closed, "{one} of {open:?}");
        }
        let closed = requested.all().filter(|closed| !closed.lines().is_empty());
        assert_eq!(closed.count(), open.len());
    }
}
