//! The lines of started requests. A request is started before its data come: a store of this rank
//! to the same lines could overwrite them, so it is refused until the request ends. Lines are whole
//! lines of this rank's cache, counted from the start of its piece's memory.

use core::cell::Cell;

use crate::{Error, immediate::Filter};

/// Whole lines of this rank's piece: the number of the first one, and of the one after the last,
/// from the start of the key's memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) start: u32,
    pub(crate) end: u32,
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
    pub(super) fn meets(self, other: Self) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }

    /// The lines of `line` bytes that hold `bytes` bytes at `start`.
    pub(super) fn covering(start: usize, bytes: usize, line: usize) -> Self {
        let number = |offset: usize| offset.wrapping_shr(line.trailing_zeros()) as u32;
        let last = start.saturating_add(bytes).saturating_sub(1);
        Self {
            start: number(start),
            end: number(last).wrapping_add(u32::from(bytes > 0)),
        }
    }
}

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

    pub(super) fn filter(self, tag_bits: u32) -> Filter {
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
