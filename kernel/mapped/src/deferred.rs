//! Data that were taken from the mail and are not in memory yet.
//!
//! To store a line in memory takes longer than a notification takes to come. Memory needs the data
//! only when somebody else may look. So the owner keeps them, answers its own reads from what it
//! keeps, and places them later: mostly while it would wait anyway. Data that fill a whole line of
//! the owner's cache are stored in that cache, and stay there as a dirty line; other bytes are kept
//! in a small table.
//!
//! # Four verbs
//! | verb | what it does |
//! |---|---|
//! | `keep` | keeps bytes that were read from a ring |
//! | `read` | reads this rank's bytes: kept ones, and the others by the cache |
//! | `place` | stores, writes back, drains, invalidates, tells |
//! | `beside` | names this rank's lines, but not those kept in the cache |
//!
//! # Guarantee
//! D1. The owner finds the data of each notification that it was given.
//! D2. Any rank that this one tells something afterwards finds them as well, in memory; so does any
//!     rank that *their producer* tells after it has heard of them.
//! D3. A producer is told that its data are placed only when they are in memory.
//!
//! # Data that a producer has heard of
//! The owner may answer a producer before it has placed that producer's data. Then the producer has
//! *heard* of them: its program knows that they have come, and a rank that it tells next may look
//! for them in the owner's memory. So before the producer tells others, and before it accesses
//! memory of others itself, it waits until the owner says that they are placed. Short data need no
//! call of the owner for this: the owner places them just after its answer. For others the producer
//! asks, and the owner places them in its next call that waits, tests or attends.
//!
//! # When what is kept is placed
//! | the owner | places |
//! |---|---|
//! | finds nothing in its rings | the table |
//! | is asked by the producer, whose flush waits | everything |
//! | is asked to [attend](flagpost_link::Telling::attend), gives memory back, ends | everything |
//! | tells a rank (signal, cell, put, notification), or gets something | everything |
//! | notifies the one rank whose data it keeps | the table, just after that |
//! | writes to a line of which the table has bytes | the table |
//! | has no room for more, or has read `MOST_UNPLACED` lines since the last data | everything |
//!
//! # Invariants
//! I1. A line with bytes in the table is not dirty in the owner's cache: the owner's writes place
//!     it first.
//! I2. A line that is kept in the cache was stored whole. So it is there, newer than in memory, or
//!     it was evicted, and is in memory.
//! I3. Nobody but the owner stores to it: a rank that may was told by the owner, which has placed
//!     it before; or is the producer, which waits once it has heard.
//! I4. Only two ranks can know of data that are kept: their owner, and their producer once the
//!     owner has answered it.
//!
//! # Bounds
//! `PLACES` pieces of 32 bytes, and `SPANS` runs of lines. More are placed immediately.

use core::cell::Cell;

use flagpost_hal::{CoreId, Lines, Machine};
use flagpost_link::{Rank, Refusal};
use flagpost_loadstore::{Atomics, Base, Mail as _};

use crate::LineMail;

/// Pieces in the table.
pub(crate) const PLACES: usize = 16;

/// Runs of dirty lines.
pub(crate) const SPANS: usize = 4;

/// Bytes of the unit that a piece is part of. A unit starts at a multiple.
pub(crate) const UNIT: usize = 32;

/// In place of the rank that was heard.
const NOBODY: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// In how many looks that find nothing more of a put may come, before what has come is placed; and
/// how many waits after long data do not sleep (`docs/costs.md`).
const COMING: u8 = 200;

/// In which look that finds nothing what has come is placed.
const SOON: u8 = 2;

/// The data that [`Deferred::place`] places.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The table.
    Pieces,
    /// The table, and dirty lines.
    All,
}

/// Some bytes of one unit of this rank's memory.
#[derive(Copy, Clone, Debug)]
struct Piece {
    /// The ring that the bytes came through.
    ring: u32,
    /// Where the unit starts, from the start of the memory region.
    unit: usize,
    /// Which of its bytes are here.
    from: usize,
    to: usize,
    bytes: [u8; UNIT],
}

impl Piece {
    const NONE: Self = Self::new(0, 0);

    const fn new(ring: u32, unit: usize) -> Self {
        Self {
            ring,
            unit,
            from: 0,
            to: 0,
            bytes: [0; UNIT],
        }
    }

    const fn start(&self) -> usize {
        self.unit.wrapping_add(self.from)
    }

    const fn end(&self) -> usize {
        self.unit.wrapping_add(self.to)
    }

    fn data(&self) -> &[u8] {
        let range = self.from..self.to;
        self.bytes.get(range).unwrap_or(&[])
    }

    /// With more bytes of its unit; false if others are between.
    fn join(&mut self, from: usize, data: &[u8]) -> bool {
        let to = from.wrapping_add(data.len());
        if self.from == self.to {
            (self.from, self.to) = (from, to);
        } else if from > self.to || self.from > to {
            return false;
        }
        (self.from, self.to) = (self.from.min(from), self.to.max(to));
        let into = self.bytes.iter_mut().skip(from);
        for (to, from) in into.zip(data) {
            *to = *from;
        }
        true
    }
}

/// The data that a rank keeps.
#[derive(Debug)]
pub(crate) struct Deferred {
    /// True if anything is kept, or heard of: every call looks at it first.
    busy: Cell<bool>,
    pieces: [Cell<Piece>; PLACES],
    /// How many of them there are.
    count: Cell<usize>,
    /// Runs of dirty lines: where each starts, and ends, from the start of the memory region.
    spans: [Cell<(usize, usize)>; SPANS],
    /// Whose data are in the table, and in dirty lines: a bit per ring.
    of_pieces: Cell<u64>,
    of_spans: Cell<u64>,
    /// Empty polls left before kept data are placed: more lines of a put are expected.
    coming: Cell<u8>,
    /// Relaxes left that must not sleep: long data are arriving.
    awake: Cell<u8>,
    /// The rank that told this one something while data for it were in flight.
    heard: Cell<u32>,
}

impl Deferred {
    pub(crate) const fn new() -> Self {
        Self {
            busy: Cell::new(false),
            pieces: [const { Cell::new(Piece::NONE) }; PLACES],
            count: Cell::new(0),
            spans: [const { Cell::new((0, 0)) }; SPANS],
            of_pieces: Cell::new(0),
            of_spans: Cell::new(0),
            coming: Cell::new(0),
            awake: Cell::new(0),
            heard: Cell::new(NOBODY),
        }
    }

    /// An entry was read: a `part` of a put, or its last one; and whether it was `long`.
    pub(crate) fn has_read(&self, part: bool, long: bool) {
        self.coming.set(if part { COMING } else { SOON });
        if long {
            self.awake.set(COMING);
        }
    }

    /// Some lines of an entry were read.
    pub(crate) fn has_read_part(&self) {
        self.coming.set(COMING);
    }

    /// Nothing was found. True if something is kept, and more may come in the next look.
    pub(crate) fn is_coming(&self) -> bool {
        let left = self.coming.get().saturating_sub(1);
        self.coming.set(left);
        left > 0 && self.rings() != 0
    }

    /// True if a rank that waits now must not sleep.
    pub(crate) fn stays_awake(&self) -> bool {
        let awake = self.awake.get();
        let stays = self.coming.get() > 0 && self.rings() != 0 || awake > 0;
        if stays {
            self.awake.set(awake.saturating_sub(1));
        }
        stays
    }

    /// `source`, for whom data are in flight, has told something.
    pub(crate) fn hears(&self, source: Rank) {
        let source = source.get().into();
        let heard = match self.heard.get() {
            NOBODY => source,
            heard if heard == source => heard,
            _ => SEVERAL,
        };
        self.heard.set(heard);
        self.busy.set(true);
    }

    /// True if a rank other than `but` has told something.
    pub(crate) fn has_heard(&self, but: Option<Rank>) -> bool {
        let heard = self.heard.get();
        heard != NOBODY && but.is_none_or(|but| u32::from(but.get()) != heard)
    }

    /// All data of those that have told something are in place, but for those of `left`.
    pub(crate) fn has_waited(&self, left: Option<Rank>) {
        self.heard
            .set(left.map_or(NOBODY, |rank| rank.get().into()));
        self.note();
    }

    fn note(&self) {
        self.busy
            .set(self.rings() != 0 || self.heard.get() != NOBODY);
    }

    /// The rings whose data are kept: a bit each.
    pub(crate) fn rings(&self) -> u64 {
        self.of_pieces.get() | self.of_spans.get()
    }

    /// True if data of ring `number` are kept.
    pub(crate) fn owes(&self, number: u32) -> bool {
        self.rings() & bit(number) != 0
    }

    fn table(&self) -> &[Cell<Piece>] {
        self.pieces.get(..self.count.get()).unwrap_or(&[])
    }

    /// The first piece that has some of these bytes.
    fn first_piece(&self, start: usize, end: usize) -> Option<Piece> {
        let all = self.table().iter().map(Cell::get);
        let here = all.filter(|piece| piece.start() < end && start < piece.end());
        here.min_by_key(|piece| piece.start())
    }

    /// The first run of dirty lines that has some of these bytes.
    fn first_span(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        if self.of_spans.get() == 0 {
            return None;
        }
        let all = self.spans.iter().map(Cell::get);
        all.filter(|(first, after)| *first < end && start < *after)
            .min()
    }

    /// True if the line of a unit is kept in the cache.
    fn is_dirty(&self, unit: usize) -> bool {
        self.first_span(unit, unit.saturating_add(UNIT)).is_some()
    }

    /// Notes a dirty line; false if there is no room for that.
    fn add_line(&self, unit: usize) -> bool {
        let after = unit.saturating_add(UNIT);
        let joined = |(first, end): (usize, usize)| {
            if first == end {
                Some((unit, after))
            } else if end == unit {
                Some((first, after))
            } else {
                (first == after).then_some((unit, end))
            }
        };
        // Runs that grow come before places that are free.
        let used = |span: &&Cell<(usize, usize)>| span.get().0 != span.get().1;
        let free = |span: &&Cell<(usize, usize)>| !used(span);
        let mut all = self
            .spans
            .iter()
            .filter(used)
            .chain(self.spans.iter().filter(free));
        let Some((span, grown)) = all.find_map(|span| Some((span, joined(span.get())?))) else {
            return false;
        };
        span.set(grown);
        true
    }
}

/// The bit of a ring.
pub(crate) const fn bit(number: u32) -> u64 {
    1_u64.wrapping_shl(number)
}

impl Deferred {
    /// True if anything is kept, or heard of.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.get()
    }

    /// Keeps `data` of ring `ring`, from byte `from` of a unit on; false if there is no room. Only
    /// of `long` data whole lines stay in the cache: their producer asks for them.
    pub(crate) fn keep<M: Machine, A: Atomics<M>>(
        &self,
        base: &Base<M, A>,
        (ring, unit): (u32, usize),
        from: usize,
        data: &[u8],
        long: bool,
    ) -> bool {
        let same = |cell: &Cell<Piece>| (cell.get().ring, cell.get().unit) == (ring, unit);
        let (found, count) = (self.table().iter().position(same), self.count.get());
        let Some(place) = self.pieces.get(found.unwrap_or(count)) else {
            return false;
        };
        let (mut piece, count) = match found {
            Some(_) => (place.get(), count),
            None => (Piece::new(ring, unit), count.saturating_add(1)),
        };
        if !piece.join(from, data) {
            return false;
        }
        // Where a unit is a line, it may stay in the cache.
        let is_line = M::LINE == UNIT && piece.data().len() == UNIT;
        if long && is_line {
            if !self.is_dirty(unit) && !self.add_line(unit) {
                return false;
            }
            // The last piece takes its place.
            let others = count.saturating_sub(1);
            if let Some(last) = self.pieces.get(others) {
                place.set(last.get());
            }
            self.count.set(others);
            self.of_spans.set(self.of_spans.get() | bit(ring));
            base.machine.write(base.own(unit), piece.data());
        } else {
            place.set(piece);
            self.count.set(count);
            self.of_pieces.set(self.of_pieces.get() | bit(ring));
        }
        self.busy.set(true);
        true
    }

    /// Places what is kept, if anything is, and says by `tell` of which rings that was.
    #[inline]
    pub(crate) fn place<M: Machine, A: Atomics<M>>(
        &self,
        base: &Base<M, A>,
        kept: Kept,
        tell: impl FnOnce(u64),
    ) {
        if self.is_busy() && self.rings() != 0 {
            self.place_now(base, kept, tell);
        }
    }

    #[inline(never)]
    fn place_now<M: Machine, A: Atomics<M>>(
        &self,
        base: &Base<M, A>,
        kept: Kept,
        tell: impl FnOnce(u64),
    ) {
        let all = kept == Kept::All;
        if self.table().is_empty() && !all {
            return;
        }
        let of_spans = if all { self.of_spans.get() } else { 0 };
        let rings = self.of_pieces.take() | of_spans;
        order!("data are in memory before producers hear so": "mapped.deferred.place<tell",
            self.empty(base, all), tell(rings));
        self.note();
    }

    /// Brings the data of the table, or all data, to memory.
    fn empty<M: Machine, A: Atomics<M>>(&self, base: &Base<M, A>, all: bool) {
        self.store_pieces(base);
        for span in self.spans.iter().filter(|_| all) {
            let (first, after) = span.take();
            let lines = base.lines(first, after.saturating_sub(first));
            if first < after {
                point!(WRITE_BACK "D2, D3: peers find the data in memory":
                    "mapped.deferred.write_back", base.machine.write_back(&[lines]));
            }
        }
        if all {
            self.of_spans.set(0);
        }
        point!(DRAIN "D2, D3; and before the cache fetches the lines":
            "mapped.deferred.drain", base.machine.drain());
        self.invalidate_pieces(base);
    }

    /// Stores the bytes of the table in memory.
    fn store_pieces<M: Machine, A: Atomics<M>>(&self, base: &Base<M, A>) {
        for piece in self.table().iter().map(Cell::get) {
            let at = base.own(piece.start());
            if self.is_dirty(piece.unit) {
                // I2: newer than in memory, or there.
                base.machine.write(at, piece.data());
            } else {
                base.machine.store_bytes(at, piece.data());
            }
        }
    }

    /// Drops the table, and copies of its lines that were fetched before.
    fn invalidate_pieces<M: Machine, A: Atomics<M>>(&self, base: &Base<M, A>) {
        let all = self.table();
        let lines: [Lines; PLACES] = core::array::from_fn(|number| {
            let piece = all.get(number).map_or(Piece::NONE, Cell::get);
            let is_dirty = self.is_dirty(piece.unit);
            let len = if is_dirty { 0 } else { piece.data().len() };
            base.lines(piece.start(), len)
        });
        point!(INVALIDATE "D1: the lines were fetched too early": "mapped.deferred.invalidate",
            base.machine.invalidate(lines.get(..all.len()).unwrap_or(&[])));
        self.count.set(0);
    }

    /// Reads this rank's bytes from `start` on: kept ones, and the others by `cached`.
    #[inline]
    pub(crate) fn read(&self, start: usize, into: &mut [u8], cached: impl Fn(usize, &mut [u8])) {
        if self.is_busy() && !self.table().is_empty() {
            self.read_pieces(start, into, cached);
        } else {
            cached(start, into);
        }
    }

    #[inline(never)]
    fn read_pieces(&self, start: usize, into: &mut [u8], cached: impl Fn(usize, &mut [u8])) {
        let end = start.saturating_add(into.len());
        let (mut at, mut rest) = (start, into);
        while let Some(piece) = point!(CHECK "D1: data that are kept are not in memory yet":
            "mapped.deferred.read", self.first_piece(at, end); else None)
        {
            let before = piece.start().saturating_sub(at);
            let (through, others) = rest.split_at_mut_checked(before).unwrap_or_default();
            if !through.is_empty() {
                cached(at, through);
            }
            let skipped = at.saturating_sub(piece.start());
            let kept = piece.data().get(skipped..).unwrap_or(&[]);
            let len = kept.len().min(others.len());
            let (own, others) = others.split_at_mut_checked(len).unwrap_or_default();
            for (to, from) in own.iter_mut().zip(kept) {
                *to = *from;
            }
            (at, rest) = (piece.end(), others);
        }
        if !rest.is_empty() {
            cached(at, rest);
        }
    }

    /// True if the table has bytes of these lines of this rank's memory.
    pub(crate) fn has_pieces(&self, lines: Lines) -> bool {
        self.first_piece(lines.start(), lines.end()).is_some()
    }

    /// Calls `act` with each run of these bytes of this rank's memory that is not kept in the
    /// cache: where it begins, and how many bytes it has.
    #[inline]
    pub(crate) fn beside(&self, start: usize, bytes: usize, mut act: impl FnMut(usize, usize)) {
        let end = start.saturating_add(bytes);
        let mut from = start;
        if self.is_busy() {
            while let Some((first, after)) = self.first_span(from, end) {
                if first > from {
                    act(from, first.wrapping_sub(from));
                }
                if after >= end {
                    return;
                }
                from = after;
            }
        }
        act(from, end.wrapping_sub(from));
    }
}

impl<M: Machine, A: Atomics<M>, const PEERS: usize> LineMail<M, A, PEERS> {
    /// Before a notification for `to`, while data are kept, or heard of. True if it may leave
    /// before they are placed: an answer to the one rank whose data these are.
    #[inline]
    pub(crate) fn may_send(&self, to: Rank) -> Result<bool, Refusal> {
        if self.deferred.rings() == bit(to.get().into()) {
            point!(WAIT "D2: what this rank has heard of is in memory":
                "mapped.heard.answer", self.await_heard(Some(to))?);
            return Ok(true);
        }
        point!(PLACE "D2: the target may read what this rank has taken":
            "mapped.mail.send.told", self.place_before_telling(Some(to))?);
        Ok(false)
    }

    /// Before this rank tells `to` something, or, if nobody is named, changes a word that others
    /// may wait for.
    #[inline]
    pub(crate) fn place_before_telling(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if !self.deferred.is_busy() {
            return Ok(());
        }
        point!(PLACE "D2: the other rank may read what this one has taken":
            "mapped.deferred.tell", self.place_kept(Kept::All));
        point!(WAIT "D2: what this rank has heard of is in memory":
            "mapped.heard.tell", self.await_heard(to)?);
        Ok(())
    }

    /// Before this rank accesses `owner`'s memory directly.
    #[inline]
    pub(crate) fn place_before_access(&self, owner: Rank) -> Result<(), Refusal> {
        if !self.deferred.is_busy() {
            return Ok(());
        }
        point!(PLACE "D1; and no producer waits for a rank that only gets":
            "mapped.deferred.own", self.place_kept(Kept::All));
        if owner != self.base.rank() {
            point!(WAIT "what this rank has heard of is in the owner's memory":
                "mapped.heard.access", self.await_heard(None)?);
        }
        Ok(())
    }

    /// D2, of what this rank has heard of: unless `to` is who told it.
    #[inline(never)]
    fn await_heard(&self, to: Option<Rank>) -> Result<(), Refusal> {
        if !self.deferred.has_heard(to) {
            return Ok(());
        }
        let mut left = None;
        for (number, _) in (0..)
            .zip(&self.peers)
            .filter(|(_, peer)| peer.out.has_heard())
        {
            let rank = Rank::new(number);
            if Some(rank) == to {
                left = to;
            } else if let Err(why) = self.placed(Some(rank))
                && !self.base.machine.is_lost(CoreId::new(number))
            {
                return Err(why);
            }
        }
        self.deferred.has_waited(left);
        Ok(())
    }
}

#[cfg(test)]
impl Deferred {
    /// How many pieces are in the table.
    pub(crate) fn pieces(&self) -> usize {
        self.count.get()
    }

    /// The bytes of each run of dirty lines.
    pub(crate) fn runs(&self) -> impl Iterator<Item = usize> {
        let all = self.spans.iter().map(Cell::get);
        let runs = all.filter(|(first, after)| first != after);
        runs.map(|(first, after)| after.wrapping_sub(first))
    }
}
