//! Operations that were begun, and their answers. The network answers later, in an event that has
//! only the operation's number. So each that is still of interest has an entry here, until its
//! caller asks for the answer or gives it up. A get brings its bytes to one of a few places in
//! registered memory.

use alloc::vec::Vec;
use core::cell::Cell;

use flagpost_link::{Rank, Refusal};

use crate::lent::{Lent, extend};

/// Places in registered memory for what gets bring.
pub(crate) const PLACES: usize = 4;

/// Why an operation was begun.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Purpose {
    /// A put, a signal: nobody asks what came of it.
    Place,
    /// A piece of a get, into the place of this number.
    Piece(usize),
    /// The same, and nobody asks for it: the place is left when it has come.
    Unwanted(usize),
    /// An operation on a cell; of a compare-and-swap that may be repeated, what it expects.
    Cell(Option<u64>),
}

impl Purpose {
    /// True if somebody will ask what came of it.
    const fn is_asked_for(self) -> bool {
        matches!(self, Self::Piece(_) | Self::Cell(_))
    }
}

/// An operation.
#[derive(Copy, Clone, Debug)]
struct Begun {
    /// Its number; 0 if the entry is free.
    id: u32,
    to: Rank,
    purpose: Purpose,
    /// The former value of the cell, or nothing of interest; none while it is in flight.
    answer: Option<u64>,
    /// Of a piece, the next one of the same get; 0 if there is none.
    next: u32,
    /// How often its place was wanted since it is done.
    wanted: u32,
}

/// A free entry.
const FREE: Begun = Begun {
    id: 0,
    to: Rank::new(0),
    purpose: Purpose::Place,
    answer: None,
    next: 0,
    wanted: 0,
};

/// Entries at first. When all are in use there will be twice as many.
const ENTRIES: usize = 16;

/// Operations that were begun, each in the entry that the low bits of its number say.
#[derive(Debug, Default)]
struct Table(Vec<Begun>);

impl Table {
    /// The entry of operation `id`, or a free one for it.
    fn entry(&mut self, id: u32) -> Option<&mut Begun> {
        let mask = self.0.len().wrapping_sub(1);
        self.0.get_mut(id as usize & mask)
    }

    fn get(&mut self, id: u32) -> Option<&mut Begun> {
        self.entry(id).filter(|begun| id != 0 && begun.id == id)
    }

    fn take(&mut self, id: u32) -> Option<Begun> {
        self.get(id).map(|begun| core::mem::replace(begun, FREE))
    }

    /// Makes room for twice as many. Entries whose numbers differ in the low bits still do.
    fn grow(&mut self) -> Result<(), Refusal> {
        let mut more = Self::default();
        let len = self.0.len().saturating_mul(2).max(ENTRIES);
        extend(&mut more.0, len, || FREE)?;
        for begun in self.0.iter().filter(|begun| begun.id != 0) {
            if let Some(entry) = more.entry(begun.id) {
                *entry = *begun;
            }
        }
        *self = more;
        Ok(())
    }
}

/// How often a place is wanted before it is taken from a piece that nobody asks for.
const PATIENCE: u32 = 1 << 10;

/// The answer of an operation, as far as it is known.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Answer {
    /// It is in flight.
    Waiting,
    /// A get's piece is in this place.
    Piece(usize),
    /// The cell's former value, and what a compare-and-swap expected.
    Cell(u64, Option<u64>),
    /// Nothing is known of it: it failed, or its place was needed.
    Gone,
}

/// All operations that were begun, and whose end or answer is still of interest.
#[derive(Debug)]
pub(crate) struct Answers {
    begun: Lent<Table>,
    last: Cell<u32>,
    /// The operation that has each place; 0 if none has.
    places: [Cell<u32>; PLACES],
}

impl Answers {
    pub(crate) const fn new() -> Self {
        Self {
            begun: Lent::new(Table(Vec::new())),
            last: Cell::new(0),
            places: [const { Cell::new(0) }; PLACES],
        }
    }

    /// A number for the next operation, with a free entry: not 0, nor that of another.
    ///
    /// # Errors
    /// [`Refusal::NoMemory`] if all entries are in use, and the heap has no room for more.
    pub(crate) fn next(&self) -> Result<u32, Refusal> {
        self.begun.with(|all| {
            loop {
                for _ in 0..all.0.len().saturating_add(1) {
                    let next = self.last.get().wrapping_add(1);
                    self.last.set(next);
                    if next != 0 && all.entry(next).is_some_and(|entry| entry.id == 0) {
                        return Ok(next);
                    }
                }
                all.grow()?;
            }
        })
    }

    /// Operation `id` has begun.
    pub(crate) fn begin(&self, id: u32, to: Rank, purpose: Purpose) {
        if let Purpose::Piece(place) = purpose
            && let Some(owner) = self.places.get(place)
        {
            owner.set(id);
        }
        self.begun.with(|all| {
            if let Some(entry) = all.entry(id) {
                *entry = Begun {
                    id,
                    to,
                    purpose,
                    ..FREE
                };
            }
        });
    }

    /// Piece `id` is the next one of the get whose first piece in flight is `first`.
    pub(crate) fn append(&self, first: u32, id: u32) {
        self.begun.with(|all| {
            let mut last = first;
            while let Some(begun) = all.get(last) {
                if begun.next == 0 {
                    begun.next = id;
                    return;
                }
                last = begun.next;
            }
        });
    }

    /// A place for a piece: one that nobody has; or, after [`PATIENCE`] times without, one whose
    /// answer nobody has asked for meanwhile. The get that asks later finds it
    /// [`Gone`](Answer::Gone), and the pieces after it, too. For a piece that follows another of
    /// the same get (`follows`), only one that nobody has.
    pub(crate) fn place(&self, follows: bool) -> Option<usize> {
        let free = self.places.iter().position(|owner| owner.get() == 0);
        if free.is_some() || follows {
            return free;
        }
        let place = self
            .places
            .iter()
            .position(|owner| self.is_left(owner.get()))?;
        let id = self.places.get(place)?.take();
        self.begun.with(|all| {
            let before = all.0.iter_mut().filter(|begun| begun.next == id);
            before.for_each(|begun| begun.next = 0);
        });
        self.abandon(id);
        Some(place)
    }

    /// True if the answer of piece `id` has come long ago. Its place is wanted once more.
    fn is_left(&self, id: u32) -> bool {
        self.begun.with(|all| {
            let begun = all.get(id).filter(|begun| begun.answer.is_some());
            begun.is_some_and(|begun| {
                begun.wanted = begun.wanted.saturating_add(1);
                begun.wanted >= PATIENCE
            })
        })
    }

    /// Operation `id` is done, with this answer; or it has failed, and the pieces after it are of
    /// no use. Returns its target.
    pub(crate) fn end(&self, id: u32, answer: Option<u64>) -> Option<Rank> {
        let (to, wanted) = self.begun.with(|all| {
            let begun = all.get(id)?;
            begun.answer = answer;
            Some((begun.to, begun.purpose.is_asked_for()))
        })?;
        if answer.is_none() || !wanted {
            self.abandon(self.take(id));
        }
        Some(to)
    }

    /// The answer of operation `id`. Its place stays its own until [`Answers::take`].
    pub(crate) fn of(&self, id: u32) -> Answer {
        match self.begun.with(|all| all.get(id).copied()) {
            None => Answer::Gone,
            Some(begun) => match (begun.answer, begun.purpose) {
                (None, _) => Answer::Waiting,
                (Some(_), Purpose::Piece(place)) => Answer::Piece(place),
                (Some(old), Purpose::Cell(expected)) => Answer::Cell(old, expected),
                (Some(_), Purpose::Place | Purpose::Unwanted(_)) => Answer::Gone,
            },
        }
    }

    /// The answer was taken. The next piece of the same get, or 0.
    pub(crate) fn take(&self, id: u32) -> u32 {
        let Some(begun) = self.begun.with(|all| all.take(id)) else {
            return 0;
        };
        self.leave(begun.purpose);
        begun.next
    }

    /// Nobody will ask for the answer, or for those of the pieces after it. They are not kept when
    /// they come.
    pub(crate) fn abandon(&self, id: u32) {
        let mut id = id;
        while id != 0 {
            id = self.abandon_one(id);
        }
    }

    /// The next piece, or 0.
    fn abandon_one(&self, id: u32) -> u32 {
        let next = self.begun.with(|all| {
            let begun = all.get(id).filter(|begun| begun.answer.is_none())?;
            begun.purpose = match begun.purpose {
                Purpose::Piece(place) => Purpose::Unwanted(place),
                Purpose::Cell(_) => Purpose::Place,
                other => other,
            };
            Some(core::mem::take(&mut begun.next))
        });
        next.unwrap_or_else(|| self.take(id))
    }

    /// Operations whose answer is kept, or will be when it comes.
    pub(crate) fn unanswered(&self) -> usize {
        self.begun.with(|all| {
            let asked = all.0.iter().filter(|begun| begun.purpose.is_asked_for());
            asked.count()
        })
    }

    fn leave(&self, purpose: Purpose) {
        if let Purpose::Piece(place) | Purpose::Unwanted(place) = purpose
            && let Some(owner) = self.places.get(place)
        {
            owner.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Rank = Rank::new(1);

    fn is_empty(answers: &Answers) -> bool {
        answers
            .begun
            .with(|all| all.0.iter().all(|begun| begun.id == 0))
    }

    #[test]
    fn answers_wait_until_they_are_taken() {
        let answers = Answers::new();
        let id = answers.next().unwrap();
        answers.begin(id, PEER, Purpose::Cell(Some(7)));
        assert!(matches!(answers.of(id), Answer::Waiting));
        assert_eq!(answers.end(id, Some(8)), Some(PEER));
        assert!(matches!(answers.of(id), Answer::Cell(8, Some(7))));
        answers.take(id);
        assert!(matches!(answers.of(id), Answer::Gone));
        assert_eq!(answers.end(id, Some(8)), None);
    }

    #[test]
    fn what_was_abandoned_is_not_kept() {
        let answers = Answers::new();
        for done_before in [true, false] {
            let id = answers.next().unwrap();
            answers.begin(id, PEER, Purpose::Cell(None));
            if done_before {
                answers.end(id, Some(8));
                answers.abandon(id);
            } else {
                answers.abandon(id);
                assert!(matches!(answers.of(id), Answer::Waiting));
                assert_eq!(answers.end(id, Some(8)), Some(PEER));
            }
            assert!(is_empty(&answers));
        }
    }

    #[test]
    fn the_place_of_what_was_abandoned_is_left_when_it_has_come() {
        let answers = Answers::new();
        for done_before in [true, false] {
            let (id, place) = (answers.next().unwrap(), answers.place(false).unwrap());
            answers.begin(id, PEER, Purpose::Piece(place));
            if done_before {
                answers.end(id, Some(0));
                answers.abandon(id);
            } else {
                answers.abandon(id);
                assert_ne!(answers.place(false), Some(place));
                assert_eq!(answers.end(id, Some(0)), Some(PEER));
            }
            assert!(is_empty(&answers));
            assert_eq!(answers.places[place].get(), 0);
        }
    }

    /// The place that is taken from a piece that nobody asks for, and not before its time.
    fn in_the_end(answers: &Answers) -> usize {
        assert!((1..PATIENCE).all(|_| answers.place(false).is_none()));
        answers.place(false).unwrap()
    }

    #[test]
    fn places_are_taken_from_those_who_do_not_ask() {
        let answers = Answers::new();
        let begin = |place| {
            let id = answers.next().unwrap();
            answers.begin(id, PEER, Purpose::Piece(place));
            id
        };
        let all: [u32; PLACES] = core::array::from_fn(|_| begin(answers.place(false).unwrap()));
        assert_eq!(answers.place(false), None);
        answers.end(all[2], Some(0));
        assert!(matches!(answers.of(all[2]), Answer::Piece(2)));
        assert_eq!(answers.place(true), None);
        assert_eq!(in_the_end(&answers), 2);
        assert!(matches!(answers.of(all[2]), Answer::Gone));
        let id = begin(2);
        answers.end(id, None);
        assert!(matches!(answers.of(id), Answer::Gone));
        assert_eq!(answers.place(true), Some(2));
    }

    #[test]
    fn pieces_of_one_get_follow_each_other_and_are_gone_together() {
        let answers = Answers::new();
        let begin = || {
            let (id, place) = (answers.next().unwrap(), answers.place(false).unwrap());
            answers.begin(id, PEER, Purpose::Piece(place));
            id
        };
        let all = [(); PLACES].map(|()| begin());
        for id in &all[1..] {
            answers.append(all[0], *id);
        }
        for id in all {
            answers.end(id, Some(0));
        }
        assert_eq!(answers.take(all[0]), all[1]);
        // Another get takes the place that was left, and then those of the next piece.
        begin();
        assert_eq!(answers.place(true), None);
        in_the_end(&answers);
        for id in &all[1..] {
            assert!(matches!(answers.of(*id), Answer::Gone));
        }
        assert!(answers.place(true).is_some());
    }

    #[test]
    fn numbers_wrap_around() {
        let answers = Answers::new();
        let next = || answers.next().unwrap();
        let kept = next();
        answers.begin(kept, PEER, Purpose::Place);
        answers.last.set(u32::MAX - 1);
        assert_eq!([(); 3].map(|()| next()), [u32::MAX, 1, 3]);
        assert_eq!(kept, 2);
    }

    /// Whatever is kept, numbers have entries of their own, and answers are found by them.
    #[test]
    fn the_table_grows_with_what_is_kept() {
        let answers = Answers::new();
        let mut kept = Vec::new();
        for round in 0..1000 {
            let id = answers.next().unwrap();
            answers.begin(id, PEER, Purpose::Cell(None));
            answers.end(id, Some(id.into()));
            if round % 7 == 0 {
                kept.push(id);
            } else {
                answers.take(id);
            }
        }
        assert_eq!(answers.unanswered(), kept.len());
        assert_eq!(answers.begun.with(|all| all.0.len()), 256);
        for id in kept {
            assert!(matches!(answers.of(id), Answer::Cell(value, None) if value == id.into()));
            answers.take(id);
        }
        assert!(is_empty(&answers));
    }
}
