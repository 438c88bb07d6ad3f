//! The lines of a window's started requests: own stores there are refused until they end.

use core::cell::Cell;

use super::core::Lines;
use crate::Error;

/// How many started requests with lines a window takes.
const REQUESTS: usize = 32;

/// Lines of started requests. Most programs have one: it takes the first place, which is looked at
/// without a look at how many there are. Both are in one line, or in two that are neighbours.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Requested {
    /// No place from this one on is taken, but the first one may be.
    used: Cell<u8>,
    /// [`Lines::NONE`] is a free place.
    places: [Cell<Lines>; REQUESTS],
}

impl Requested {
    pub(super) const fn none() -> Self {
        Self {
            used: Cell::new(0),
            places: [const { Cell::new(Lines::NONE) }; REQUESTS],
        }
    }

    /// All places that may be taken.
    pub(super) fn all(&self) -> impl Iterator<Item = Lines> {
        let used = usize::from(self.used.get().max(1));
        self.places.iter().take(used).map(Cell::get)
    }

    /// A place for a request with `lines`; none if there are no lines.
    pub(crate) fn room_for(&self, lines: Lines) -> Result<Option<&Cell<Lines>>, Error> {
        if lines.is_empty() {
            return Ok(None);
        }
        let max = REQUESTS as u8;
        let mut places = (1..=max).zip(&self.places);
        let free = places.find(|(_, place)| place.get().is_empty());
        let (number, place) = free.ok_or(Error::TooManyRequests { max })?;
        self.used.set(self.used.get().max(number));
        Ok(Some(place))
    }

    /// The first place, if it is free.
    #[inline]
    pub(crate) fn first_room(&self) -> Option<&Cell<Lines>> {
        let [first, ..] = &self.places;
        (first.get().end == 0).then_some(first)
    }

    /// A started request with `lines` has ended: own stores there are allowed again. Of equal ones,
    /// any ends.
    #[inline]
    pub(crate) fn close(&self, lines: Lines) {
        if !lines.is_empty() {
            self.close_some(lines);
        }
    }

    /// The request that has the first place has ended.
    #[inline]
    pub(crate) fn close_first(&self) {
        let [first, ..] = &self.places;
        first.set(Lines::NONE);
    }

    /// Whether lines have the first place, or are none while that is free.
    #[inline]
    pub(crate) fn has_first(&self, lines: Lines) -> bool {
        let [first, ..] = &self.places;
        first.get() == lines
    }

    #[inline(never)]
    fn close_some(&self, lines: Lines) {
        if let Some(place) = self.places.iter().find(|place| place.get() == lines) {
            place.set(Lines::NONE);
        }
        let taken = (1..=self.used.get()).zip(&self.places);
        let taken = taken.filter(|(_, place)| !place.get().is_empty());
        self.used.set(taken.last().map_or(0, |(number, _)| number));
    }
}
